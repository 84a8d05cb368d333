/*
 * inspect.c - copies what a client knows.
 */
#include "redlock/client/inspect.h"

#include <stdio.h>
#include <string.h>

#include "redlock/client/client.h"
#include "redlock/lease/explain.h"
#include "redlock/lease/lease.h"
#include "redlock/lease/table.h"

_Static_assert(INSPECT_IN_FLIGHT_MAX == LINK_ASKS_MAX / 2, "a command and its release");

/* A link that was refused because its server answered by another place first comes up after all if
 * the set names this place, and not the other one. */
static bool may_take_over(const struct masters *masters, unsigned m)
{
    const struct standing *standing = &masters->standing;
    const struct reason *why = masters_reason(masters, m);
    quorum_mask members = members_all(&masters->set.seats.members), unread = 0;

    if (why->why != WHY_TWIN)
        return false;
    if (set_is_known(&masters->set))
        return (members & mask_of(m)) != 0 && (members & mask_of(why->other)) == 0;
    for (unsigned other = 0; other < masters->peers.len; other++)
        unread |= standing->guard.masters[other].look.number == 0 ? mask_of(other) : 0;
    return masters->peers.restart_guard && (standing->linked & unread) != 0;
}

/* Nobody needs to wait for these. */
static quorum_mask find_unlinked(const struct masters *masters)
{
    const struct standing *standing = &masters->standing;
    quorum_mask unlinked = 0;

    for (unsigned m = 0; m < masters->peers.len; m++)
        if (((standing->linked | standing->connecting) & mask_of(m)) == 0 &&
            !may_take_over(masters, m))
            unlinked |= mask_of(m);
    return unlinked;
}

struct inspect_client inspect_client(struct redlock *rl)
{
    struct inspect_client seen = {.masters = 0};
    const struct masters *masters = &rl->masters;

    if (client_enter(rl) != REDLOCK_OK)
        return seen;
    seen = (struct inspect_client){
        .now = env_now(&rl->env),
        .masters = masters->peers.len,
        .up = masters->peers.up,
        .coming = masters->peers.coming,
        .linked = masters->standing.linked,
        .connecting = masters->standing.connecting,
        .unlinked = find_unlinked(masters),
        .max_ttl_ms = rl->options.max_ttl_ms,
        .connect_timeout = rl->options.connect_timeout,
        .quarantine = guard_quarantine(&masters->standing.guard),
        .clock_window = drift_node_watch(&masters->clocks.guard),
        .restart_guard = rl->options.restart_guard,
        .clock_guard = rl->options.clock_guard,
        .refuser = masters->set.why[0] != '\0' ? masters->set.why_of : masters->peers.len,
        .set = masters->set.seats.now.set,
        .set_version = masters->set.seats.now.version,
        .members = masters->set.told,
        .lists = masters->set.seats.now.version != 0 ? masters->set.seats.members
                                                     : members_first(masters->peers.len),
        .has_forgotten = masters->standing.forgotten,
        .is_closed = set_is_closed(&masters->set),
        .has_founded = masters->founding.founder.phase == FOUNDER_FOUNDED,
        .leases = (uint32_t)rl->env.stats.leases,
        .commands = rl->env.stats.commands,
    };
    client_leave(rl);
    return seen;
}

int inspect_open(const struct redlock_options *opts, const struct option_names *names,
                 struct redlock **ret_rl)
{
    return client_open(opts, names, ret_rl);
}

bool inspect_may_hold(struct redlock *rl)
{
    const struct peers *peers = &rl->masters.peers;
    bool may_hold = false;

    if (client_enter(rl) != REDLOCK_OK)
        return false;
    for (unsigned m = 0; m < peers->len && !may_hold; m++)
        may_hold = peers->links[m] != NULL && !link_is_given_up(peers->links[m]) &&
                   table_may_hold(&rl->leases, m);
    client_leave(rl);
    return may_hold;
}

static void look_at_clock(const struct clocks *clocks, unsigned m, drift_time now,
                          struct inspect_master *seen)
{
    const struct clocks_node *node = &clocks->nodes[m];
    struct reason why;

    seen->has_offset = clocks_offset(clocks, m, now, &seen->offset) == 0;
    seen->has_rate = drift_node_rate(&node->node, &seen->rate_ppm) == 0;
    if (!clocks_explain(clocks, m, now, &why))
        return;
    seen->clock_why = why.why;
    seen->clock.message = reason_message(&why);
    (void)reason_write(&why, now, seen->clock.text, sizeof seen->clock.text);
    seen->is_barred = node->why != WHY_NONE && node->why != WHY_CLOCK_NEW;
}

/* Such a number is free again, or its link was refused because the member's own link is up. */
static bool is_elsewhere(const struct masters *masters, unsigned m)
{
    const struct seats *seats = &masters->set.seats;

    return set_is_known(&masters->set) && (members_all(&seats->members) & mask_of(m)) == 0 &&
           (!seats->seats[m].used || masters_reason(masters, m)->why == WHY_TWIN);
}

/* The guard's reason, since another one may have been noted after it. */
static void look_for_copy(const struct guard *guard, unsigned m, struct inspect_master *seen)
{
    unsigned twin = guard_twin(guard, m);

    seen->is_copy = twin < QUORUM_MASTERS_MAX;
    if (!seen->is_copy || seen->why.why == WHY_COPY)
        return;
    reason_set(&seen->why, WHY_COPY);
    seen->why.other = (uint8_t)twin;
}

struct inspect_master inspect_master(struct redlock *rl, unsigned m)
{
    struct inspect_master seen = {.name = ""};
    const struct masters *masters = &rl->masters;
    const struct guard *guard = &masters->standing.guard;
    drift_time now;

    if (client_enter(rl) != REDLOCK_OK)
        return seen;
    now = env_now(&rl->env);
    seen.uri = masters->peers.uris[m];
    seen.name = masters_name(masters, m);
    seen.why = *masters_reason(masters, m);
    if (masters_is_linked(masters, m))
        look_for_copy(guard, m, &seen);
    seen.remark.message = reason_message(&seen.why);
    (void)reason_write(&seen.why, now, seen.remark.text, sizeof seen.remark.text);
    if (masters->peers.links[m] != NULL) {
        seen.info = *link_info(masters->peers.links[m]);
        seen.has_certificate = link_left_s(masters->peers.links[m], &seen.certificate_left_s);
    }
    seen.is_elsewhere = is_elsewhere(masters, m);
    seen.is_linked = masters_is_linked(masters, m);
    seen.look = guard->masters[m].look;
    seen.is_looked_at = guard->masters[m].asked;
    seen.warming_left = guard_left(guard, m, now);
    seen.is_asked_about = guard->masters[m].witnesses.out != 0;
    seen.has_witnesses = standing_has_witnesses(&masters->standing, m);
    seen.is_witnessed = guard_is_witnessed(guard, m);
    look_at_clock(&masters->clocks, m, now, &seen);
    client_leave(rl);
    return seen;
}

bool inspect_uri(struct redlock *rl, const char *place, struct uri *ret_uri)
{
    return links_uri(&rl->masters.links, place, ret_uri) == REDLOCK_OK;
}

unsigned inspect_login(struct redlock *rl, const struct uri *uri)
{
    return links_login(&rl->masters.links, uri);
}

struct tls_context *inspect_tls(struct redlock *rl)
{
    return rl->env.tls;
}

bool inspect_set(struct redlock *rl, char *members, size_t members_size, char *why, size_t why_size)
{
    const struct set *set = &rl->masters.set;
    bool is_mixed;

    members[0] = why[0] = '\0';
    if (client_enter(rl) != REDLOCK_OK)
        return false;
    if (set_is_known(set))
        set_print(&set->seats.now, members, members_size);
    is_mixed = set_write_why(set, why, why_size);
    client_leave(rl);
    return is_mixed;
}

drift_span inspect_quarantine(struct redlock *rl, uint32_t max_ttl_ms)
{
    const struct options *options = &rl->options;
    const struct guard_config config = {
        .max_ttl_ms = max_ttl_ms > options->max_ttl_ms ? max_ttl_ms : options->max_ttl_ms,
        .drift = options->drift,
    };
    struct guard guard;

    guard_init(&guard, &config);
    return guard_quarantine(&guard);
}

int inspect_wait(struct redlock *rl, const struct redlock_lease *lease)
{
    int status;

    if (client_enter(rl) != REDLOCK_OK)
        return REDLOCK_OK;
    status = explain_wait(lease);
    client_leave(rl);
    return status;
}

enum msg inspect_loss(struct redlock *rl, const struct redlock_lease *lease, struct error *ret_list)
{
    enum msg why;

    memset(ret_list, 0, sizeof *ret_list);
    if (client_enter(rl) != REDLOCK_OK)
        return MSG_NONE;
    why = explain_loss(lease, sizeof ret_list->text, ret_list);
    client_leave(rl);
    return why;
}

void inspect_look_only(struct redlock *rl)
{
    rl->masters.standing.guard.passive = true;
}

void inspect_obey_none(struct redlock *rl)
{
    inspect_look_only(rl);
    rl->masters.set.obeys_none = true;
}

void inspect_watch(struct redlock *rl, const struct config *newest, quorum_mask from,
                   quorum_mask to, quorum_mask guests)
{
    const struct members members = {from, to};

    if (client_enter(rl) != REDLOCK_OK)
        return;
    standing_watch(&rl->masters.standing, newest, &members, guests);
    client_leave(rl);
}

bool inspect_place(const struct uri *uri, struct config_member *ret_member)
{
    struct config config;
    unsigned at;

    if (set_list(uri, 1, &config, &at) != CONFIG_OK)
        return false;
    *ret_member = config.members[0];
    return true;
}

void inspect_listen(struct redlock *rl, inspect_answer_fn *on_answer, void *cookie)
{
    rl->on_query = on_answer;
    rl->on_query_cookie = cookie;
    rl->listeners++;
}

void inspect_query(struct redlock *rl, unsigned m, uint32_t query, const char *command,
                   size_t command_len)
{
    const struct ask ask = {
        .slot = rl->listeners, .number = query, .what = WHAT_QUERY, .flags = ASK_TELL};

    link_send(rl->masters.peers.links[m], &ask, command, command_len);
}
