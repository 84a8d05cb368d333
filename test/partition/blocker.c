/*
 * blocker.c - a thread that locks with the blocking calls: plain, extended and blocking holds.
 * All such threads of a process share one client.
 */
#include <stdio.h>

#include "partition/hold.h"
#include "partition/holder.h"

/* How often to check whether lost was called once the lease is over.  A count instead of a time,
 * because a stopped process makes no checks. */
#define TOLD_NAPS 5000
#define TOLD_NAP_MS 1

static enum hold_next work_until_it_ends(struct hold *hold)
{
    for (;;) {
        enum hold_next next = hold_work(hold);

        /* The next look shows how the extension ended.  Only an error is unexpected here. */
        if (next == HOLD_EXTEND && redlock_extend(hold->lease, hold->ttl_ms) < 0)
            fprintf(stderr, "%s: %s\n", hold->id, redlock_errmsg(hold->rl));
        else if (next != HOLD_EXTEND && next != HOLD_ON)
            return next;
        holder_nap(hold->worker->holder, hold_nap_ms(hold));
    }
}

/* The library must call lost, even if this thread has already seen that the lease is over. */
static void wait_until_told(struct hold *hold)
{
    for (unsigned i = 0; i < TOLD_NAPS && !hold_was_told(hold); i++)
        tool_nap_ms(TOLD_NAP_MS);
}

static void end(struct hold *hold, enum hold_next next)
{
    switch (next) {
    case HOLD_RELEASE:
        hold_releases(hold);
        hold_released(hold, redlock_unlock(hold->lease));
        return;
    case HOLD_OVER:
        wait_until_told(hold);
        break;
    case HOLD_LEAVE:
    case HOLD_ON:
    case HOLD_EXTEND:
        break;
    }
    hold_lost(hold);
    (void)redlock_unlock(hold->lease); /* The lock is lost, whatever this returns. */
}

static int lock(const struct hold *hold, const struct redlock_lock_options *opts,
                struct redlock_lease **ret_lease)
{
    const struct resource *resource = hold->resource;

    if (resource->mode == MODE_SEVERAL)
        return redlock_lock_many(hold->rl, (const char *const *)resource->names,
                                 resource->names_len, opts, ret_lease);
    return redlock_lock(hold->rl, resource->names[0], opts, ret_lease);
}

/* Returns how long to nap before the next attempt. */
static uint32_t attempt(struct worker *worker)
{
    struct holder *holder = worker->holder;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct hold hold;
    int status;

    hold_plan(&hold, worker, holder->rl);
    hold_options(&hold, &opts);
    hold_invoke(&hold);
    status = lock(&hold, &opts, &lease);
    if (status != REDLOCK_OK) {
        hold_failed(&hold, status);
        return dice_range(&worker->dice, HOLD_AFTER_FAIL_MIN_MS, HOLD_AFTER_FAIL_MAX_MS);
    }
    if (hold_begin(&hold, lease))
        end(&hold, work_until_it_ends(&hold));
    else
        (void)redlock_unlock(lease);
    return dice_range(&worker->dice, 1, 20);
}

void *blocker_thread(void *arg)
{
    struct worker *worker = arg;

    while (!atomic_load(&worker->holder->stopping))
        holder_nap(worker->holder, attempt(worker));
    storelink_close(&worker->store);
    return NULL;
}
