/*
 * outliers.c - which clocks a client takes for wrong (the property "clocks").
 *
 * The clock of a member is compared only with those of members.  So a clock is no outlier if it
 * is near most of the members' clocks that the client knows.  A master that left the set keeps
 * its link for as long as a lease lasts.  It must not help to outvote the members.
 */
#include "oracle.h"
#include "world.h"

#include "redlock/client/client.h"

static bool is_far(const struct ev_loop *process, unsigned master)
{
    return world.plan.far >> process->servers[master] & 1;
}

/* The members whose clocks the client has read of late. */
static quorum_mask find_known(const struct ev_loop *process, quorum_mask members)
{
    const struct clocks *clocks = &process->rl->masters.clocks;
    const uint64_t now = process_clock(process);
    quorum_mask known = 0;

    for (unsigned m = 0; members >> m != 0; m++)
        if ((members & mask_of(m)) != 0 && clocks->nodes[m].node.last.received != 0 &&
            drift_until(clocks->nodes[m].node.last.received, now) <= clocks->guard.gap)
            known |= mask_of(m);
    return known;
}

void outliers_on_time(const struct ev_loop *process, unsigned master)
{
    const quorum_mask members = members_all(&process->rl->masters.peers.members);
    const quorum_mask known = find_known(process, members);
    unsigned near = 0;

    if (!(known & mask_of(master)) || mask_count(known) < 3 ||
        2 * mask_count(known) <= mask_count(members)) /* Then none is judged (clocks.c). */
        return;
    for (unsigned m = 0; known >> m != 0; m++)
        near += (known & mask_of(m)) != 0 && is_far(process, m) == is_far(process, master);
    tally.checks++;
    if (2 * near > mask_count(known) &&
        process->rl->masters.clocks.nodes[master].place == DRIFT_PLACE_OUTLIER)
        world_fail("clocks",
                   "client %u takes the clock of master %u for wrong, and %u of %u members agree",
                   process->number, process->servers[master], near, mask_count(known));
}
