/*
 * revokes.c - operators that revoke locks: what redlock/cli/revoke.c does by core/revoke.h, what
 * redlock/lua/revoke.lua leaves, and what an extension answers then
 * (redlock/lua/parts/revoked.lua).
 *
 * The operator is a fault (nemesis.c).  What it sends reaches masters one after the other, and some
 * not at all: a later operator may reach those.
 *
 * What must always be true; fences.c checks the number that an operator is told:
 *
 *  revoked   When a majority is revoked, no extension that is sent later makes the lease longer,
 *            also when the texts have ended.  The key keeps its end, so that the properties
 *            "deadline" and "exclusion" hold for the holder as before.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/core/revoke.h"

#include <stdio.h>
#include <string.h>

/* The operator.  There is one at a time. */
static struct attempt {
    enum { IDLE, STORES, RAISES } step;
    uint64_t number; /* Of the attempt. */
    struct revoke revoke;
    unsigned resource;
    int text;             /* The number of its text, as for tokens. */
    quorum_mask awaited;  /* Masters that what was sent in this step has not reached. */
    quorum_mask unheard;  /* Their answers are lost. */
    sim_time began, sent; /* When the masters were asked to store it, by step. */
    struct {
        unsigned run;
        char state[SETS_STATE_ROOM];
    } known[SIM_SERVERS_MAX];
} attempt;

void revokes_reset(void)
{
    attempt = (struct attempt){.step = IDLE};
}

/* ---- What the script does ---- */

static bool holds(const struct key *key, const struct revoke *revoke)
{
    if (key == NULL || revoke->has_readers)
        return key != NULL && key->readers > 0;
    return !key->wrong_type && strcmp(oracle_token_of(key->token)->text, revoke->text) == 0;
}

static struct revoke_done store_text(struct server *server, bool is_guarded)
{
    struct key *key = store_key(server, attempt.resource);
    struct revoke_done done = {.is_revoked = holds(key, &attempt.revoke)};

    if (!done.is_revoked)
        return done;
    world_fault(FAULT_REVOKED);
    world_note("revoke: master, resource", server->number, attempt.resource, 0);
    key->was = key->token;
    key->was_readers = key->readers;
    key->token = attempt.text;
    key->readers = 0;
    key->wrong_type = false;
    key->revoked_at = world.now;
    done.left_ms = (uint32_t)(key->end_ms - store_wall_ms(server));
    if (is_guarded && server->marker.floor != 0)
        done.number = marker_raise_to(server, attempt.resource, server->marker.high + 1);
    oracle_on_revoked();
    return done;
}

static uint64_t raise_with_text(struct server *server)
{
    const struct key *key = store_key(server, attempt.resource);

    if (key == NULL || key->token != attempt.text)
        return 0;
    return marker_raise_to(server, attempt.resource, attempt.revoke.number);
}

struct answer revokes_refuse(const struct key *key, const struct answer *otherwise)
{
    const char *stored = oracle_token_of(key->token)->text;

    if (strncmp(stored, WIRE_REVOKED, WIRE_REVOKED_LEN) != 0)
        return *otherwise;
    world_fault(FAULT_REVOKE_HEARD);
    return (struct answer){REPLY_TEXT, 0, stored};
}

bool revokes_was(const struct key *key, int token)
{
    if (key->revoked_at == 0 || token < 0)
        return false;
    for (unsigned i = 0; i < key->was_readers; i++)
        if (key->reader[i].token == token)
            return true;
    return key->was == token;
}

/* ---- The operator ---- */

static bool is_up(const struct server *server)
{
    return server->alive && !server->hung && server->mood != MOOD_LOADING;
}

static bool is_known(const struct server *server)
{
    const struct marker *marker = &server->marker;
    char state[SETS_STATE_ROOM];

    return attempt.known[server->number].run == server->runs &&
           (!attempt.revoke.is_guarded ||
            (marker->epoch != 0 &&
             strcmp(attempt.known[server->number].state, sets_state(marker, state)) == 0));
}

static void arrive(struct server *server)
{
    quorum_mask one = mask_of(server->number);
    bool is_heard = !(attempt.unheard & one);
    struct revoke_done done;
    uint64_t number;

    if (!(attempt.awaited & one))
        return;
    attempt.awaited &= (quorum_mask)~one;
    if (!is_up(server) || !is_known(server) || store_mood(server, true, true) != NULL)
        return;
    if (attempt.step == STORES) {
        done = store_text(server, attempt.revoke.is_guarded);
        if (is_heard)
            revoke_on_done(&attempt.revoke, server->number, &done);
    } else {
        number = raise_with_text(server);
        if (is_heard && number != 0)
            revoke_on_raised(&attempt.revoke, server->number, number);
    }
}

/* What is sent arrives within this time, which may be shorter than that of a message: the operator
 * was asked a question before. */
static void send(quorum_mask masters)
{
    sim_time hop = world.plan.hop;
    sim_time span = dice_chance(500) ? hop : dice_magnitude(hop, world.plan.ttl_max_ms * DRIFT_MS);

    attempt.awaited = attempt.unheard = 0;
    attempt.sent = world.now;
    for (unsigned i = 0; i < world.plan.servers; i++) {
        if (!(masters & mask_of(i)))
            continue;
        attempt.unheard |= dice_chance(50) ? mask_of(i) : 0;
        if (dice_chance(100))
            continue;
        attempt.awaited |= mask_of(i);
        world_post(world.now + dice_below(span), EVENT_REVOKE, &world.servers[i], attempt.number);
    }
    world_post(world.now + span, EVENT_REVOKE, NULL, attempt.number);
    for (unsigned i = 0; i < world.plan.processes; i++)
        process_sicken(&world.processes[i],
                       world.now + span + 2 * world.plan.ttl_max_ms * DRIFT_MS);
}

static void conclude(void)
{
    uint64_t number = revoke_number(&attempt.revoke);

    attempt.step = IDLE;
    if (number == 0)
        return;
    world_outcome(OUTCOME_NUMBER_TOLD);
    world_note("number: resource, number", attempt.resource, number, 0);
    fences_on_number(attempt.resource, number,
                     attempt.revoke.has_readers
                         ? -1
                         : oracle_token(attempt.revoke.text, strlen(attempt.revoke.text)),
                     attempt.began);
}

/* What was sent has arrived, or never will. */
static void go_on(void)
{
    uint32_t ago_ms = (uint32_t)((world.now - attempt.sent) / DRIFT_MS) + 1;

    attempt.awaited = 0;
    if (attempt.step == RAISES) {
        conclude();
        return;
    }
    attempt.step = IDLE;
    if (revoke_judge(&attempt.revoke, ago_ms) != REVOKE_OK)
        return;
    attempt.step = RAISES;
    if (revoke_behind(&attempt.revoke) == 0)
        conclude();
    else
        send(revoke_behind(&attempt.revoke));
}

void revokes_on_event(void *what, uint64_t number)
{
    if (world.phase != PHASE_CHAOS)
        attempt.step = IDLE;
    if (attempt.step == IDLE || attempt.number != number)
        return;
    if (what != NULL)
        arrive(what);
    else
        go_on();
}

static struct revoke_seen seen_of(struct server *server, unsigned resource)
{
    const struct key *key = store_key(server, resource);
    const bool has_token = key != NULL && key->readers == 0 && !key->wrong_type;
    const char *text = has_token ? oracle_token_of(key->token)->text : "";
    struct revoke_seen seen = {.what = key == NULL        ? REVOKE_FREE
                                       : key->readers > 0 ? REVOKE_READERS
                                       : key->wrong_type  ? REVOKE_FOREIGN
                                                          : REVOKE_TOKEN};

    if (strncmp(text, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0)
        seen.what = REVOKE_REVOKED;
    (void)snprintf(seen.text, sizeof seen.text, "%s", text);
    seen.version = server->marker.epoch != 0 ? server->marker.ver : 0;
    if (key != NULL)
        seen.left_ms = (uint32_t)(key->end_ms - store_wall_ms(server));
    return seen;
}

/* The operator knows the set as this master does. */
void revokes_begin(const struct server *first, unsigned resource)
{
    const struct marker *marker = &first->marker;
    struct lists lists = {(1u << world.plan.servers) - 1, (1u << world.plan.servers) - 1};
    struct members members;
    char text[32];

    if (attempt.step != IDLE || (world.plan.guarded && marker->set == 0))
        return;
    if (world.plan.guarded)
        lists = moves_parse(marker->config, marker->ver);
    members = (struct members){(quorum_mask)lists.from, (quorum_mask)lists.to};
    attempt.number++;
    attempt.resource = resource;
    revoke_init(&attempt.revoke, &members, world.plan.guarded, marker->ver);
    for (unsigned i = 0; i < world.plan.servers; i++) {
        struct server *server = &world.servers[i];
        const struct revoke_seen seen = seen_of(server, resource);

        if (!is_up(server) || dice_chance(100))
            continue;
        attempt.known[i].run = server->runs;
        (void)sets_state(&server->marker, attempt.known[i].state);
        revoke_on_read(&attempt.revoke, i, &seen);
    }
    if (revoke_choose(&attempt.revoke) != REVOKE_OK)
        return;
    (void)snprintf(text, sizeof text, WIRE_REVOKED "nemesis/%u", (unsigned)attempt.number);
    attempt.text = oracle_token(text, strlen(text));
    attempt.step = STORES;
    attempt.began = world.now;
    send(attempt.revoke.read);
}

/* The text often comes between a command and the next one of the same connection, above all between
 * the SET and the count of a fenced lock. */
void revokes_on_command(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    unsigned permille = world_theme(world.seed) == THEME_REVOKES ? 300 : 30;

    if (!world.plan.enabled[FAULT_REVOKED] || world.phase != PHASE_CHAOS || at.names == 0)
        return;
    if (attempt.step == IDLE && at.command == QUORUM_CMD_SET && world.plan.fenced > 0 &&
        dice_chance(permille))
        revokes_begin(server, args_resource(command, at.name));
    else if ((attempt.awaited & mask_of(server->number)) != 0 && dice_chance(200))
        arrive(server);
}
