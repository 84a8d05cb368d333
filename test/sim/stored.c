/*
 * stored.c - what is chosen while a set changes, and since when servers store it.
 *
 *  versions  Two operators never believe different values of one version.  It may be chosen before
 *            any server stores it.
 *  early     An operator ends a joint configuration only after a majority of the old list stored it
 *            for as long as the longest lease lasts, and forgot nothing meanwhile (M5).
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
    if (2 * __builtin_popcount(waited & lists.from) <= __builtin_popcount(lists.from))
        world_fail("early", "version %llu, %x to %x, ends, and only %x stored it for long enough",
                   (unsigned long long)version, lists.from, lists.to, waited & lists.from);
}
