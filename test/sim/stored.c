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

/* From when until when a server stored a version or a greater one, and remembered it. */
struct span {
    sim_time since, until; /* SIM_NEVER: it does not, or still does. */
};

static struct lists chosen[MOVES_VERSIONS_MAX]; /* No lists: no operator knows the version. */

/* The latest two spans of each server. */
static struct span spans[SIM_SERVERS_MAX][MOVES_VERSIONS_MAX][2];

void stored_begin(void)
{
    memset(chosen, 0, sizeof chosen);
    for (unsigned s = 0; s < SIM_SERVERS_MAX; s++)
        for (unsigned v = 0; v < MOVES_VERSIONS_MAX; v++)
            spans[s][v][0] = spans[s][v][1] = (struct span){SIM_NEVER, SIM_NEVER};
}

static bool is_open(const struct span *span)
{
    return span->since != SIM_NEVER && span->until == SIM_NEVER;
}

void stored_on_version(const struct server *server)
{
    uint64_t len = sim_min(server->marker.ver + 1, MOVES_VERSIONS_MAX);

    for (uint64_t v = 0; v < len && moves_remembers(server); v++) {
        struct span *span = spans[server->number][v];

        if (is_open(&span[0]))
            continue;
        span[1] = span[0];
        span[0] = (struct span){world.now, SIM_NEVER};
    }
}

void stored_on_loss(const struct server *server)
{
    for (unsigned v = 0; v < MOVES_VERSIONS_MAX; v++)
        if (is_open(&spans[server->number][v][0]))
            spans[server->number][v][0].until = world.now;
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

/* The server stored the version for long enough, and was looked at again after that. */
static bool has_waited(unsigned server, uint64_t version, sim_time looked)
{
    const struct span *span = spans[server][version];
    const sim_time lease = world.plan.ttl_max_ms * DRIFT_MS;

    for (unsigned i = 0; i < 2; i++)
        if (span[i].since != SIM_NEVER && span[i].since + lease <= looked &&
            span[i].until >= looked)
            return true;
    return false;
}

void stored_on_end(uint64_t version, struct lists lists, sim_time looked)
{
    unsigned waited = 0;

    for (unsigned s = 0; s < world.plan.servers && version < MOVES_VERSIONS_MAX; s++)
        waited |= has_waited(s, version, looked) ? 1u << s : 0;
    tally.checks++;
    if (2 * __builtin_popcount(waited & lists.from) <= __builtin_popcount(lists.from))
        world_fail("early", "version %llu, %x to %x, ends, and only %x stored it for long enough",
                   (unsigned long long)version, lists.from, lists.to, waited & lists.from);
}
