/*
 * callback.c - runs the program's callbacks.
 *
 * A callback on a program's loop may free its lease, close the client, or run the loop.  That loop
 * then runs other callbacks within the first one.
 */
#include "redlock/client/callback.h"

#include <stddef.h>

#include "redlock/client/blocking.h"
#include "redlock/client/state.h"
#include "redlock/lease/explain.h"
#include "redlock/lease/lease.h"
#include "redlock/lease/table.h"

/* Pass the news that the client is closed to the callbacks around this one.  A callback may run
 * the loop, and a callback within that may close the client.  outer: the flag of the callback in
 * which this one runs. */
static bool is_gone(struct redlock *rl, bool *outer, bool gone)
{
    if (!gone)
        rl->gone = outer;
    else if (outer != NULL)
        *outer = true;
    return gone;
}

/* lost runs before done, because done may free the lease.  Returns false if the client is gone. */
static bool run_lost(struct redlock *rl, struct redlock_lease *lease)
{
    void (*lost)(struct redlock_lease *, void *) = lease->lost;
    struct blocking *blocking = rl->blocking;
    bool gone = false, *outer = rl->gone;

    lease->ready_lost = false;
    if (lost == NULL)
        return true;
    rl->gone = &gone;
    if (blocking != NULL) {
        lease->in_lost = true;
        blocking_unlock(blocking);
    } else {
        explain_lost(lease);
    }
    lost(lease, lease->lost_arg);
    if (blocking != NULL) {
        blocking_lock(blocking);
        lease->in_lost = false;
        blocking_idle(blocking);
    }
    return !is_gone(rl, outer, gone);
}

static bool run_done(struct redlock *rl, struct redlock_lease *lease)
{
    redlock_done_fn *done = lease->done;
    enum lease_op op = lease->op;
    bool gone = false, *outer = rl->gone;

    lease->ready_done = false;
    lease->done = NULL;
    lease->op = LEASE_OP_NONE;
    if (op == LEASE_OP_LOCK && lease->status != REDLOCK_OK)
        lease_disown(lease);
    if (done == NULL)
        return true;
    explain_end(lease, op, lease->status);
    rl->gone = &gone;
    done(lease, lease->status, lease->arg);
    return !is_gone(rl, outer, gone);
}

bool callback_run_due(struct redlock *rl)
{
    for (uint32_t due = rl->leases.ready_len; due > 0 && rl->leases.ready != NULL; due--) {
        struct redlock_lease *lease = table_take_ready(&rl->leases);

        lease_pin(lease);
        if (lease->ready_lost && !run_lost(rl, lease))
            return false;
        if (lease->ready_done && !run_done(rl, lease))
            return false;
        lease_unpin(lease);
        lease_reap(lease);
    }
    return true;
}
