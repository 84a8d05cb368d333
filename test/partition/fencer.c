/*
 * fencer.c - a thread with a loop and a client, which takes locks of its own in close order, each
 * with a fencing token.
 *
 * A fault in the order of tokens may show only while an operator is between two steps, and only if
 * a client sends many commands then.  So the loop sleeps a little between two turns, as a program
 * does that computes.  Then a turn has many answers and many requests.
 *
 * A history of all holds would be too long.  It gets each hold whose token is not greater than all
 * before it of the same lock, the hold with the greatest, and of the others one of TOLD_EVERY.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ev.h>

#include "partition/hold.h"
#include "partition/holder.h"
#include "partition/tool.h"
#include "test/lib/info.h"

#define SLOTS 64
#define TURN_NS (3 * NS_PER_MS)
#define PAUSE_MS 20
#define TOLD_EVERY 64

struct fenced {
    char id[RECORD_WORD_MAX + 1], token[RECORD_WORD_MAX + 1];
    uint64_t invoke_ns, ok_ns, deadline_ns, release_ns, released_ns;
    int status; /* Of the release. */
    uint64_t fence;
    bool is_told;
};

struct slot {
    struct fencer *fencer;
    struct redlock_lease *lease;
    char lock[RECORD_WORD_MAX + 1];
    struct fenced now, greatest;
    bool is_busy;
    ev_timer timer;
};

struct fencer {
    struct holder *holder;
    struct worker *worker;
    struct ev_loop *loop;
    struct redlock *rl;
    struct slot slots[SLOTS];
    unsigned holds;
    ev_prepare prepare;
};

static void tell(const struct slot *slot, struct fenced *hold)
{
    const struct record *record = &slot->fencer->holder->record;

    if (hold->is_told)
        return;
    hold->is_told = true;
    record_line(record, hold->invoke_ns, "invoke",
                ",\"id\":\"%s\",\"lock\":\"%s\",\"kind\":\"plain\",\"ttl_ms\":%" PRIu32
                ",\"wait_ms\":0,\"renew\":false,\"fenced\":true,\"via\":\"loop\",\"mode\":\"alone\""
                ",\"permits\":0,\"max_hold_ms\":0",
                hold->id, slot->lock, slot->fencer->holder->ttl_ms);
    record_line(record, hold->ok_ns, "ok",
                ",\"id\":\"%s\",\"deadline\":%" PRIu64 ",\"token\":\"%s\",\"fence\":%" PRIu64,
                hold->id, hold->deadline_ns, hold->token, hold->fence);
    record_line(record, hold->release_ns, "release", ",\"id\":\"%s\"", hold->id);
    record_line(record, hold->released_ns, "released", ",\"id\":\"%s\",\"result\":\"%s\"", hold->id,
                hold_word(hold->status));
}

/* The hold is over. */
static void judge(struct slot *slot)
{
    struct fenced *now = &slot->now;

    if (now->fence <= slot->greatest.fence) {
        tell(slot, &slot->greatest);
        tell(slot, now);
    } else {
        if (slot->fencer->holds++ % TOLD_EVERY == 0)
            tell(slot, now);
        slot->greatest = *now;
    }
}

static void pause_slot(struct slot *slot)
{
    slot->is_busy = false;
    ev_timer_set(&slot->timer, dice_range(&slot->fencer->worker->dice, 0, PAUSE_MS) / 1e3, 0);
    ev_timer_start(slot->fencer->loop, &slot->timer);
}

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct slot *slot = arg;

    (void)lease;
    slot->now.released_ns = tool_now_ns();
    slot->now.status = status;
    if (slot->now.deadline_ns > slot->now.ok_ns)
        judge(slot);
    pause_slot(slot);
}

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct slot *slot = arg;
    struct fenced *now = &slot->now;
    uint64_t left_ms;

    if (status != REDLOCK_OK) {
        pause_slot(slot);
        return;
    }
    now->ok_ns = tool_now_ns();
    left_ms = redlock_remaining_ms(lease);
    now->deadline_ns = now->ok_ns + left_ms * NS_PER_MS;
    now->fence = info_fence(lease);
    (void)snprintf(now->token, sizeof now->token, "%s", info_token(lease));
    now->release_ns = tool_now_ns();
    if (redlock_unlock_async(lease, on_unlocked, slot) != REDLOCK_OK)
        tool_die("unlock: %s", redlock_errmsg(slot->fencer->rl));
}

static void attempt(struct slot *slot)
{
    struct holder *holder = slot->fencer->holder;
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = holder->ttl_ms;
    opts.wait_ms = 0;
    opts.no_renew = true;
    opts.fence = true;
    slot->now = (struct fenced){.invoke_ns = tool_now_ns()};
    (void)snprintf(slot->now.id, sizeof slot->now.id, "%.40s.%u", holder->record.who,
                   atomic_fetch_add(&holder->op, 1) + 1);
    slot->is_busy = true;
    if (redlock_lock_async(slot->fencer->rl, slot->lock, &opts, on_locked, slot, &slot->lease) !=
        REDLOCK_OK)
        pause_slot(slot);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct slot *slot = timer->data;

    (void)loop, (void)events;
    if (!atomic_load(&slot->fencer->holder->stopping))
        attempt(slot);
}

/* Before the loop waits. */
static void on_prepare(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    const struct fencer *fencer = prepare->data;
    const struct timespec turn = {0, TURN_NS};
    unsigned busy = 0;

    (void)events;
    (void)nanosleep(&turn, NULL);
    if (!atomic_load(&fencer->holder->stopping))
        return;
    for (unsigned i = 0; i < SLOTS; i++)
        busy += fencer->slots[i].is_busy;
    if (busy == 0)
        ev_break(loop, EVBREAK_ALL);
}

static void open_client(struct fencer *fencer)
{
    struct redlock_options opts;

    fencer->loop = ev_loop_new(EVFLAG_AUTO);
    if (fencer->loop == NULL)
        tool_die("cannot make a loop");
    redlock_options_init(&opts);
    opts.masters = fencer->holder->masters;
    opts.reply_timeout_ms = fencer->holder->reply_timeout_ms;
    opts.max_ttl_ms = fencer->holder->ttl_ms;
    opts.clock_guard = holder_clock_guard(fencer->holder);
    opts.log = holder_log;
    opts.loop = fencer->loop;
    if (redlock_open(&opts, &fencer->rl) != REDLOCK_OK)
        tool_die("%s", redlock_errmsg(NULL));
}

void *fencer_thread(void *arg)
{
    struct worker *worker = arg;
    struct fencer *fencer = calloc(1, sizeof *fencer);

    if (fencer == NULL)
        tool_die("out of memory");
    fencer->holder = worker->holder;
    fencer->worker = worker;
    open_client(fencer);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &fencer->slots[i];

        slot->fencer = fencer;
        (void)snprintf(slot->lock, sizeof slot->lock, "%.40s-%u", worker->holder->record.who,
                       i + 1);
        ev_timer_init(&slot->timer, on_timer, 0, 0);
        slot->timer.data = slot;
        pause_slot(slot);
    }
    ev_prepare_init(&fencer->prepare, on_prepare);
    fencer->prepare.data = fencer;
    ev_prepare_start(fencer->loop, &fencer->prepare);
    ev_run(fencer->loop, 0);
    (void)redlock_close(fencer->rl);
    for (unsigned i = 0; i < SLOTS; i++)
        ev_timer_stop(fencer->loop, &fencer->slots[i].timer);
    ev_prepare_stop(fencer->loop, &fencer->prepare);
    ev_loop_destroy(fencer->loop);
    free(fencer);
    return NULL;
}
