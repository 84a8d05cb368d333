/*
 * stored.c - what is chosen while a set changes, and since when servers store it.
 *
 *  versions  Two operators never believe different values of one version.  It may be chosen before
 *            any server stores it.
 *  early     An operator ends a joint configuration only after a majority of the old list stored it
 *            for as long as the longest lease lasts, and forgot nothing meanwhile (M5).
 *  recall    A master gets an epoch, and what it had promised, from a client that knows the newest
 *            version that a majority stored when the client had to ask (redlock/core/recall.c).
 */
#include "oracle.h"
#include "world.h"

#include <string.h>

static struct lists chosen[MOVES_VERSIONS_MAX]; /* No lists: no operator knows the version. */

/* Since when each server has stored a version or a greater one, and remembered it.  SIM_NEVER: it
 * does not. */
static sim_time since[SIM_SERVERS_MAX][MOVES_VERSIONS_MAX];

void stored_begin(void)
{
    memset(chosen, 0, sizeof chosen);
    for (unsigned s = 0; s < SIM_SERVERS_MAX; s++)
        for (unsigned v = 0; v < MOVES_VERSIONS_MAX; v++)
            since[s][v] = SIM_NEVER;
}

static bool is_majority(unsigned list, unsigned servers)
{
    return 2 * __builtin_popcount(list & servers) > __builtin_popcount(list);
}

void stored_on_version(const struct server *server)
{
    uint64_t len = sim_min(server->marker.ver + 1, MOVES_VERSIONS_MAX);

    for (uint64_t v = 0; v < len && moves_remembers(server); v++)
        if (since[server->number][v] == SIM_NEVER)
            since[server->number][v] = world.now;
}

void stored_on_loss(const struct server *server)
{
    for (unsigned v = 0; v < MOVES_VERSIONS_MAX; v++)
        since[server->number][v] = SIM_NEVER;
}

void stored_on_choice(uint64_t version, struct lists lists)
{
    struct lists *known = &chosen[version];

    if (version == 0 || version >= MOVES_VERSIONS_MAX)
        return;
    if (known->from == 0)
        *known = lists;
    if (known->from != lists.from || known->to != lists.to)
        world_fail("versions",
                   "version %llu is %x to %x for one operator, and %x to %x for another",
                   (unsigned long long)version, known->from, known->to, lists.from, lists.to);
}

unsigned stored_for_long(uint64_t version, sim_time now)
{
    const sim_time lease = world.plan.ttl_max_ms * DRIFT_MS;
    unsigned servers = 0;

    for (unsigned s = 0; s < world.plan.servers && version < MOVES_VERSIONS_MAX; s++)
        if (since[s][version] != SIM_NEVER && since[s][version] + lease <= now)
            servers |= 1u << s;
    return servers;
}

void stored_on_end(uint64_t version, struct lists lists, unsigned waited)
{
    tally.checks++;
    if (!is_majority(lists.from, waited))
        world_fail("early", "version %llu, %x to %x, ends, and only %x stored it for long enough",
                   (unsigned long long)version, lists.from, lists.to, waited & lists.from);
}

/* Its client watched the nonce for as long as a lease lasts, and asked the members after that. */
static sim_time asked_at(const struct server *server)
{
    const struct plan *plan = &world.plan;
    uint32_t longest_ms = plan->modest != 0 ? plan->ttls_ms[2] : plan->ttl_max_ms;

    return server->marker.warms_since + longest_ms * DRIFT_MS;
}

void stored_on_epoch(const struct server *server, uint64_t version)
{
    struct lists lists;
    unsigned newer = 0;

    if (world.plan.operators == 0 || version == 0 || version >= moves_newest())
        return;
    lists = moves_lists(version);
    for (unsigned s = 0; s < world.plan.servers; s++)
        if (since[s][version + 1] <= asked_at(server))
            newer |= 1u << s;
    tally.checks++;
    if (is_majority(lists.from, newer) || is_majority(lists.to, newer))
        world_fail("recall",
                   "master %u gets an epoch from a client that knows version %llu, and masters %x "
                   "had stored a newer one",
                   server->number, (unsigned long long)version, newer);
}
