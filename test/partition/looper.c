/*
 * looper.c - a thread with a loop and a client, which takes several locks at once with the
 * asynchronous calls.
 *
 * Work under a lock waits for the store, and so delays the loop, as real programs do now and then.
 * To the library that is a short pause.
 */
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "partition/hold.h"
#include "partition/holder.h"

#define TOLD_STEPS 500     /* See blocker.c; a step takes 11 ms on average. */
#define CANCEL_PERMILLE 60 /* The part of attempts that are cancelled. */
#define STOP_STEPS 500     /* To end everything when stopping, LOOK_S each. */
#define LOOK_S 0.02        /* How often to check whether to stop. */

enum slot_state {
    SLOT_IDLE,      /* The timer starts the next attempt. */
    SLOT_LOCKING,   /* The timer cancels the attempt. */
    SLOT_HOLDING,   /* The timer rings for each step. */
    SLOT_LOSING,    /* Nothing is left, and lost must be called. */
    SLOT_UNLOCKING, /* There is no timer. */
};

struct slot {
    struct looper *looper;
    struct worker *worker;
    enum slot_state state;
    struct hold hold;
    ev_timer timer;
    bool extending;
    bool tells; /* The history gets a line when the lease is released. */
    unsigned told_steps;
};

struct looper {
    struct holder *holder;
    struct ev_loop *loop;
    struct redlock *rl;
    struct slot slots[HOLDER_WORKERS_MAX];
    unsigned slots_len;
    ev_timer look;
    unsigned stop_steps;
};

static void set_timer(struct slot *slot, uint32_t in_ms)
{
    struct ev_loop *loop = slot->looper->loop;

    ev_now_update(loop);
    ev_timer_stop(loop, &slot->timer);
    ev_timer_set(&slot->timer, in_ms / 1e3, 0);
    ev_timer_start(loop, &slot->timer);
}

static void idle(struct slot *slot, uint32_t for_ms)
{
    slot->state = SLOT_IDLE;
    set_timer(slot, for_ms);
}

static void idle_after_fail(struct slot *slot)
{
    idle(slot, dice_range(&slot->worker->dice, HOLD_AFTER_FAIL_MIN_MS, HOLD_AFTER_FAIL_MAX_MS));
}

/* ---- Ending ---- */

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct slot *slot = arg;

    (void)lease;
    if (slot->tells)
        hold_released(&slot->hold, status);
    idle(slot, dice_range(&slot->worker->dice, 1, 20));
}

static void unlock(struct slot *slot, bool tells)
{
    slot->state = SLOT_UNLOCKING;
    slot->tells = tells;
    ev_timer_stop(slot->looper->loop, &slot->timer);
    if (redlock_unlock_async(slot->hold.lease, on_unlocked, slot) != REDLOCK_OK)
        tool_die("unlock: %s", redlock_errmsg(slot->looper->rl));
}

static void lose(struct slot *slot)
{
    hold_lost(&slot->hold);
    unlock(slot, false);
}

/* ---- Holding ---- */

static void on_extended(struct redlock_lease *lease, int status, void *arg)
{
    struct slot *slot = arg;

    (void)lease, (void)status; /* The next look shows how it ended. */
    slot->extending = false;
}

static void extend(struct slot *slot)
{
    if (slot->extending)
        return;
    slot->extending =
        redlock_extend_async(slot->hold.lease, slot->hold.ttl_ms, on_extended, slot) == REDLOCK_OK;
}

static void work(struct slot *slot)
{
    switch (hold_work(&slot->hold)) {
    case HOLD_EXTEND:
        extend(slot);
        break;
    case HOLD_ON:
        break;
    case HOLD_RELEASE:
        hold_releases(&slot->hold);
        unlock(slot, true);
        return;
    case HOLD_LEAVE:
        lose(slot);
        return;
    case HOLD_OVER:
        slot->state = SLOT_LOSING;
        slot->told_steps = 0;
        break;
    }
    set_timer(slot, hold_nap_ms(&slot->hold));
}

static void wait_until_told(struct slot *slot)
{
    if (hold_was_told(&slot->hold) || ++slot->told_steps > TOLD_STEPS)
        lose(slot);
    else
        set_timer(slot, hold_nap_ms(&slot->hold));
}

/* ---- Locking ---- */

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct slot *slot = arg;

    slot->extending = false;
    if (status != REDLOCK_OK) {
        hold_failed(&slot->hold, status);
        idle_after_fail(slot);
    } else if (hold_begin(&slot->hold, lease)) {
        slot->state = SLOT_HOLDING;
        work(slot);
    } else {
        unlock(slot, false);
    }
}

static int lock(struct slot *slot, const struct redlock_lock_options *opts)
{
    const struct resource *resource = slot->hold.resource;
    struct redlock *rl = slot->looper->rl;

    if (resource->mode == MODE_SEVERAL)
        return redlock_lock_many_async(rl, (const char *const *)resource->names,
                                       resource->names_len, opts, on_locked, slot,
                                       &slot->hold.lease);
    return redlock_lock_async(rl, resource->names[0], opts, on_locked, slot, &slot->hold.lease);
}

static void attempt(struct slot *slot)
{
    struct redlock_lock_options opts;
    int status;

    hold_plan(&slot->hold, slot->worker, slot->looper->rl);
    hold_options(&slot->hold, &opts);
    hold_invoke(&slot->hold);
    status = lock(slot, &opts);
    if (status != REDLOCK_OK) {
        hold_failed(&slot->hold, status);
        idle_after_fail(slot);
        return;
    }
    slot->state = SLOT_LOCKING;
    if (dice_chance(&slot->worker->dice, CANCEL_PERMILLE))
        set_timer(slot, dice_range(&slot->worker->dice, 0, 20));
}

/* After this, the callback is not called. */
static void call_off(struct slot *slot)
{
    redlock_cancel(slot->hold.lease);
    hold_failed_as(&slot->hold, "CANCELLED");
    idle_after_fail(slot);
}

/* ---- The loop ---- */

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct slot *slot = timer->data;

    (void)loop, (void)events;
    switch (slot->state) {
    case SLOT_IDLE:
        if (!atomic_load(&slot->looper->holder->stopping))
            attempt(slot);
        break;
    case SLOT_LOCKING:
        call_off(slot);
        break;
    case SLOT_HOLDING:
        work(slot);
        break;
    case SLOT_LOSING:
        wait_until_told(slot);
        break;
    case SLOT_UNLOCKING:
        break;
    }
}

/* Locks that are held end by themselves; see hold_work(). */
static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct looper *looper = timer->data;
    unsigned busy = 0;

    (void)events;
    if (!atomic_load(&looper->holder->stopping))
        return;
    for (unsigned i = 0; i < looper->slots_len; i++) {
        if (looper->slots[i].state == SLOT_LOCKING)
            call_off(&looper->slots[i]);
        busy += looper->slots[i].state != SLOT_IDLE;
    }
    if (busy == 0 || ++looper->stop_steps > STOP_STEPS)
        ev_break(loop, EVBREAK_ALL);
}

static void open_client(struct looper *looper)
{
    struct redlock_options opts;

    looper->loop = ev_loop_new(EVFLAG_AUTO);
    if (looper->loop == NULL)
        tool_die("cannot make a loop");
    redlock_options_init(&opts);
    opts.masters = looper->holder->masters;
    opts.reply_timeout_ms = looper->holder->reply_timeout_ms;
    opts.max_ttl_ms = looper->holder->ttl_ms;
    opts.restart_guard = holder_is_guarded(looper->holder);
    opts.clock_guard = holder_clock_guard(looper->holder);
    opts.log = holder_log;
    opts.loop = looper->loop;
    if (redlock_open(&opts, &looper->rl) != REDLOCK_OK)
        tool_die("%s", redlock_errmsg(NULL));
}

static void begin_slots(struct looper *looper, struct worker *workers)
{
    looper->slots_len = looper->holder->workers[workers->kind];
    for (unsigned i = 0; i < looper->slots_len; i++) {
        struct slot *slot = &looper->slots[i];

        slot->looper = looper;
        slot->worker = &workers[i];
        ev_init(&slot->timer, on_timer);
        slot->timer.data = slot;
        idle(slot, dice_range(&slot->worker->dice, 0, 20));
    }
    ev_timer_init(&looper->look, on_look, LOOK_S, LOOK_S);
    looper->look.data = looper;
    ev_timer_start(looper->loop, &looper->look);
}

void *looper_thread(void *arg)
{
    struct worker *workers = arg;
    struct looper *looper = calloc(1, sizeof *looper);

    if (looper == NULL)
        tool_die("out of memory");
    looper->holder = workers->holder;
    open_client(looper);
    begin_slots(looper, workers);
    ev_run(looper->loop, 0);
    (void)redlock_close(looper->rl);
    for (unsigned i = 0; i < looper->slots_len; i++) {
        ev_timer_stop(looper->loop, &looper->slots[i].timer);
        storelink_close(&looper->slots[i].worker->store);
    }
    ev_timer_stop(looper->loop, &looper->look);
    ev_loop_destroy(looper->loop);
    free(looper);
    return NULL;
}
