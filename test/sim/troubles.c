/*
 * troubles.c - whether a status says truly why too few masters voted (the property "trouble").
 *
 * The library chooses among four statuses (redlock/core/outlook.h).  This file asks for what each
 * of them promises, by what links, servers and guards show, and counts masters by itself.
 *
 *  NOT_READY    So many members have links that they could decide, and one of them may not vote
 *               yet.
 *  WRONG_SET    There are two lists of masters, or copies of data, or operators change the set.
 *  FORBIDDEN    Never: the servers know no passwords.
 */
#include "oracle.h"
#include "world.h"

#include "redlock/client/client.h"

/* By what the client was told. */
static bool is_ready(const struct ev_loop *process, unsigned m)
{
    const struct masters *masters = &process->rl->masters;
    const struct guard_look *look = &masters->standing.guard.masters[m].look;

    return look->number != 0 && look->ready && (masters->set.told & mask_of(m)) != 0 &&
           masters->clocks.nodes[m].node.counts_from <= process_clock(process) &&
           world.plan.clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE;
}

static struct troubles look(const struct ev_loop *process)
{
    struct troubles now = {.near = 0};

    for (unsigned m = 0; process->rl != NULL && m < process->rl->masters.peers.len; m++) {
        now.near |= masters_link_is_up(&process->rl->masters, m) ? mask_of(m) : 0;
        now.unready |= is_ready(process, m) ? 0 : mask_of(m);
    }
    if (process->rl != NULL)
        now.members = process->rl->masters.peers.members;
    return now;
}

void troubles_on_turn(struct ev_loop *process)
{
    process->troubles[1] = process->troubles[0];
    process->troubles[0] = look(process);
}

/* The call back comes in the turn of the decision or in the next.  Within a turn a link may fall
 * and a master may become ready; a link may also come up and fall (watch.c notes that). */
static void check_not_ready(const struct ev_loop *process)
{
    const struct troubles seen[] = {look(process), process->troubles[0], process->troubles[1]};
    quorum_mask near = seen[0].near | seen[1].near | seen[2].near;
    quorum_mask unready = seen[0].unready | seen[1].unready | seen[2].unready;
    bool can_decide = false, has_unready = false;

    for (unsigned i = 0; i < 3; i++) {
        const struct members *members = &seen[i].members;

        can_decide = can_decide || members_decide(members, near);
        has_unready = has_unready || (members_all(members) & unready & near) != 0;
    }
    if (!can_decide)
        world_fail("trouble", "client %u is told that masters are not ready, and has links to %x",
                   process->number, near);
    if (!has_unready)
        world_fail("trouble", "client %u is told that masters are not ready, and all are",
                   process->number);
}

static void check_wrong_set(const struct ev_loop *process)
{
    if (!world.plan.two_lists && world.plan.may_copy == 0 && world.plan.operators == 0)
        world_fail("trouble", "client %u is told that its list is wrong, and there is no other",
                   process->number);
}

void troubles_check(const struct op *op, int status)
{
    if (status == REDLOCK_NOT_READY)
        check_not_ready(op->process);
    else if (status == REDLOCK_E_WRONG_SET)
        check_wrong_set(op->process);
    else if (status == REDLOCK_E_FORBIDDEN)
        world_fail("trouble", "client %u is told that masters forbid it", op->process->number);
}
