/*
 * client.c - open, close, events in, callbacks out.
 */
#include "redlock/client.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "redlock/blocking.h"
#include "redlock/error.h"
#include "redlock/loop.h"

/* ---- Forks ---- */

/* How many forks lie between this process and the first: asking the kernel
 * for our pid at every call would cost a tenth of a lock. */
static atomic_uint forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void on_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    /* Fails only without memory, and then forks go unnoticed: no worse than
     * in a library that does not look. */
    (void)pthread_atfork(NULL, NULL, on_fork);
}

bool client_is_forked(const struct redlock *rl)
{
    return atomic_load_explicit(&forks, memory_order_relaxed) != rl->forks;
}

/* ---- Small things ---- */

uint32_t client_random(struct redlock *rl)
{
    /* SplitMix64 (Steele, Lea, Flood 2014): one multiplication would do, but
     * it is the best known of the small ones. */
    uint64_t z = (rl->dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

void client_log(const struct redlock *rl, enum redlock_level level, const char *format, ...)
{
    char line[ERROR_MESSAGE_MAX];
    va_list args;

    if (rl->options.log == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    rl->options.log(rl->options.log_arg, level, line);
}

/* ---- Open and close ---- */

static void free_masters(struct redlock *rl)
{
    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        if (rl->masters[m] != NULL)
            master_free(rl->masters[m]);
        rl->masters[m] = NULL;
    }
}

static void free_leases(struct redlock *rl)
{
    struct redlock_lease *next;

    for (uint32_t i = 0; i < rl->slots_len; i++)
        if (rl->slots[i] != NULL)
            lease_free(rl->slots[i]);
    listen_done(rl);
    for (struct redlock_lease *lease = rl->spent_first; lease != NULL; lease = next) {
        next = lease->next;
        free(lease);
    }
    free(rl->slots);
    free(rl->slots_free);
    alarm_done(&rl->alarms);
}

/* Everything but the thread, which must be gone already. */
static void free_client(struct redlock *rl)
{
    free_masters(rl);
    free_leases(rl);
    proof_done(rl);
    owner_done(&rl->owners);
    if (rl->loop != NULL)
        loop_free(rl->loop);
    options_done(&rl->options);
    token_key_done(&rl->tokens);
    free(rl);
}

static int make_parts(struct redlock *rl)
{
    struct ev_loop *ev = rl->options.loop;

    if (token_key_init(&rl->tokens) != 0)
        return error_set(REDLOCK_E_SYSTEM, "open: libsodium finds no entropy");
    randombytes_buf(&rl->dice, sizeof rl->dice);
    if (ev == NULL) {
        rl->blocking = blocking_new(rl);
        if (rl->blocking == NULL)
            return error_set(REDLOCK_E_NOMEM, "open: %s", redlock_strerror(REDLOCK_E_NOMEM));
        ev = blocking_loop(rl->blocking);
    }
    rl->loop = loop_new(rl, ev);
    if (rl->loop == NULL && errno != ENOMEM)
        return error_set(REDLOCK_E_SYSTEM, "open: cannot make a timer: %s", strerror(errno));
    if (rl->loop == NULL)
        return error_set(REDLOCK_E_NOMEM, "open: %s", redlock_strerror(REDLOCK_E_NOMEM));
    if (standing_init(rl) != 0 || listen_init(rl, ev) != 0 || clocks_init(rl) != 0)
        return error_set(REDLOCK_E_NOMEM, "open: %s", redlock_strerror(REDLOCK_E_NOMEM));
    if (loop_now(rl->loop) == DRIFT_NEVER)
        return error_set(REDLOCK_E_SYSTEM, "open: this system has no CLOCK_BOOTTIME");
    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        rl->masters[m] = master_new(rl, m, &rl->options.masters[m], ev);
        if (rl->masters[m] == NULL)
            return error_set(REDLOCK_E_NOMEM, "open: %s", redlock_strerror(REDLOCK_E_NOMEM));
    }
    return REDLOCK_OK;
}

/* No majority of two survives a failure, and four survive no more than three. */
static void warn_of_number(const struct redlock *rl)
{
    unsigned masters = rl->options.masters_len;

    if (masters < 3)
        client_log(rl, REDLOCK_LOG_WARNING,
                   "masters: %u of them, so that no lock survives the loss of one; use 3 or 5",
                   masters);
    else if (masters % 2 == 0)
        client_log(rl, REDLOCK_LOG_WARNING,
                   "masters: %u, an even number, survive the loss of no more than %u do", masters,
                   masters - 1);
}

int redlock_open(const struct redlock_options *opts, struct redlock **ret_rl)
{
    struct blocking *blocking;
    struct redlock *rl;
    int status;

    error_clear();
    (void)pthread_once(&forks_once, watch_forks);
    if (ret_rl == NULL)
        return error_set(REDLOCK_E_INVAL, "open: ret_rl is NULL");
    rl = calloc(1, sizeof *rl);
    if (rl == NULL)
        return error_set(REDLOCK_E_NOMEM, "open: %s", redlock_strerror(REDLOCK_E_NOMEM));
    rl->forks = atomic_load(&forks);
    rl->ready_end = &rl->ready;
    rl->armed = DRIFT_NEVER;
    status = options_copy(opts, &rl->options);
    if (status != REDLOCK_OK) {
        free(rl);
        return error_wrap(status, "open");
    }
    status = make_parts(rl);
    if (status != REDLOCK_OK)
        goto fail_parts;
    warn_of_number(rl);
    for (unsigned m = 0; m < rl->options.masters_len; m++)
        master_start(rl->masters[m]);
    if (rl->blocking != NULL) {
        status = blocking_start(rl->blocking);
        if (status != REDLOCK_OK)
            goto fail_parts;
    }
    *ret_rl = rl;
    return REDLOCK_OK;

fail_parts:
    blocking = rl->blocking;
    free_client(rl);
    if (blocking != NULL)
        blocking_free(blocking);
    return status;
}

/* Undo every lease; calls under way end with E_STATE. */
static void cancel_all(struct redlock *rl)
{
    for (uint32_t i = 0; i < rl->slots_len; i++) {
        struct redlock_lease *lease = rl->slots[i];
        struct quorum_event cancel = {.type = QUORUM_EV_CANCEL};

        if (lease == NULL)
            continue;
        if (lease->waiter != NULL) {
            struct waiter *waiter = lease->waiter;

            lease->waiter = NULL;
            lease_explain(lease, lease->op, REDLOCK_E_STATE);
            blocking_wake(rl->blocking, waiter, REDLOCK_E_STATE);
        }
        lease->lost = NULL;
        lease_step(lease, &cancel);
        lease->ready_done = lease->ready_lost = false;
        lease_disown(lease);
        lease_reap(lease);
    }
}

static void close_blocking(struct redlock *rl)
{
    struct blocking *blocking = rl->blocking;
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* Half closed is no state. */
    blocking_lock(blocking);
    rl->closing = true;
    cancel_all(rl);
    client_flush(rl);
    blocking_wait_idle(blocking, rl->options.reply_timeout);
    blocking_unlock(blocking);
    blocking_stop(blocking);
    free_client(rl);
    blocking_free(blocking);
    (void)pthread_setcancelstate(before, NULL);
}

/*
 * In the child of a fork.  Where the fork caught a thread at work, what
 * it worked on is not to be trusted, and is leaked.
 */
static void close_forked(struct redlock *rl)
{
    struct blocking *blocking = rl->blocking;

    if (blocking != NULL && !blocking_was_idle(blocking))
        return;
    free_client(rl);
    if (blocking != NULL)
        blocking_free(blocking);
}

struct redlock *redlock_close(struct redlock *rl)
{
    if (rl == NULL)
        return NULL;
    if (client_is_forked(rl)) {
        close_forked(rl);
        return NULL;
    }
    if (rl->blocking != NULL) {
        if (blocking_is_self(rl->blocking)) {
            (void)error_set(REDLOCK_E_STATE, "close: from a callback of a blocking client");
            return rl; /* A thread cannot wait for its own end. */
        }
        close_blocking(rl);
        return NULL;
    }
    rl->closing = true;
    cancel_all(rl);
    client_flush(rl);
    if (rl->gone != NULL)
        *rl->gone = true;
    free_client(rl);
    return NULL;
}

/* ---- Calls ---- */

int client_enter(struct redlock *rl)
{
    error_clear();
    if (rl == NULL)
        return error_set(REDLOCK_E_INVAL, "the client is NULL");
    if (client_is_forked(rl))
        return error_set(REDLOCK_E_STATE, "the client belongs to the process before the fork");
    if (rl->blocking != NULL)
        blocking_lock(rl->blocking);
    if (!rl->closing)
        return REDLOCK_OK;
    if (rl->blocking != NULL)
        blocking_unlock(rl->blocking);
    return error_set(REDLOCK_E_STATE, "the client is being closed");
}

/* Of a blocking client: write, or leave that to who runs the loop. */
static void let_out(struct redlock *rl)
{
    if (blocking_is_crowded(rl->blocking))
        loop_kick(rl->loop);
    else
        client_flush(rl); /* A link that breaks over it sets alarms: arm last. */
    client_arm(rl);
}

void client_leave(struct redlock *rl)
{
    if (rl->blocking == NULL) {
        client_arm(rl); /* The loop flushes before it sleeps. */
        return;
    }
    let_out(rl);
    blocking_unlock(rl->blocking);
}

int client_wait(struct redlock *rl, struct waiter *waiter)
{
    let_out(rl);
    return blocking_wait(rl->blocking, waiter);
}

#define STATS_SIZE_MAX 4096 /* No source: more is a size that was never set. */

int redlock_stats(struct redlock *rl, struct redlock_stats *ret_stats)
{
    size_t size;
    int status;

    if (ret_stats == NULL || ret_stats->size < sizeof ret_stats->size ||
        ret_stats->size > STATS_SIZE_MAX)
        return error_set(REDLOCK_E_INVAL, "stats: NULL, or its size is not set");
    status = client_enter(rl);
    if (status != REDLOCK_OK)
        return error_wrap(status, "stats");
    size = ret_stats->size < sizeof rl->stats ? ret_stats->size : sizeof rl->stats;
    rl->stats.size = ret_stats->size;
    rl->stats.masters = rl->options.masters_len;
    rl->stats.masters_up = (uint32_t)__builtin_popcount(rl->up);
    memcpy(ret_stats, &rl->stats, size);
    if (ret_stats->size > size) /* A newer caller's: what we do not count is 0. */
        memset((char *)ret_stats + size, 0, ret_stats->size - size);
    client_leave(rl);
    return REDLOCK_OK;
}

/* ---- Events ---- */

/* NULL: it is gone. */
static struct redlock_lease *find_lease(const struct redlock *rl, const struct master_ask *ask)
{
    struct redlock_lease *lease = ask->slot < rl->slots_len ? rl->slots[ask->slot] : NULL;

    return lease != NULL && (uint32_t)lease->serial == ask->serial ? lease : NULL;
}

static void on_answer(struct redlock *rl, unsigned master, const struct master_ask *ask,
                      const struct reply *reply)
{
    struct redlock_lease *lease = find_lease(rl, ask);
    struct vote vote;

    if (lease == NULL)
        return;
    vote = kind_count(lease->kind, (enum quorum_command)ask->command, reply);
    if (!proof_hold(rl, master, ask, &vote))
        lease_on_vote(lease, master, ask, &vote, vote_error(&vote, reply));
}

void client_on_reply(struct redlock *rl, unsigned master, const struct master_ask *ask,
                     const struct reply *reply)
{
    if (ask->command == MASTER_QUERY) {
        if (rl->on_query != NULL)
            rl->on_query(rl, master, ask->ask, reply);
    } else if (ask->command == MASTER_WAIT) {
        listen_on_look(rl, master, ask->slot, ask->serial, reply);
    } else if (ask->command == MASTER_LEAVE) {
        return; /* If it was not done: in time they find out. */
    } else if (ask->command == MASTER_LOOK) {
        standing_on_look(rl, master, reply);
    } else if (ask->command == MASTER_PROOF) {
        proof_on_answer(rl, master, reply);
    } else if (ask->command == MASTER_TIME) {
        clocks_on_time(rl, master, ask, reply);
    } else if (ask->command == MASTER_COUNT) {
        proof_on_count(rl, master, ask, reply);
    } else {
        on_answer(rl, master, ask, reply);
    }
}

void client_count_vote(struct redlock *rl, unsigned master, const struct master_ask *ask,
                       const struct vote *vote)
{
    struct redlock_lease *lease = find_lease(rl, ask);

    if (lease != NULL)
        lease_on_vote(lease, master, ask, vote, "");
}

void client_on_link(struct redlock *rl, unsigned master, bool up)
{
    rl->stats.connects += up;
    if (!up)
        listen_on_break(rl, master);
    clocks_on_link(rl, master, up);
    standing_on_link(rl, master, up);
}

void client_tell_leases(struct redlock *rl, unsigned master)
{
    for (uint32_t i = 0; i < rl->slots_len; i++) {
        struct redlock_lease *lease = rl->slots[i];
        struct quorum_event event = {.type = QUORUM_EV_LINK, .master = master};

        if (lease == NULL || !quorum_cares(&lease->q, master))
            continue;
        lease_step(lease, &event);
        lease_reap(lease);
    }
}

void client_on_room(struct redlock *rl, unsigned master)
{
    quorum_mask bit = (quorum_mask)(1u << master);

    standing_on_room(rl, master, true);
    for (uint32_t i = 0; i < rl->slots_len && (rl->up & bit); i++) {
        struct redlock_lease *lease = rl->slots[i];
        struct quorum_event event = {.type = QUORUM_EV_TIMER}; /* Early does no harm. */

        if (lease == NULL || !quorum_must_release(&lease->q, master))
            continue;
        lease_step(lease, &event);
        lease_reap(lease);
    }
}

static struct redlock_lease *lease_of(struct alarm *alarm)
{
    void *lease = (char *)alarm - offsetof(struct redlock_lease, alarm);

    return lease;
}

void client_on_timer(struct redlock *rl)
{
    drift_time now = loop_now(rl->loop);
    struct alarm *alarm;

    rl->armed = DRIFT_NEVER;
    client_begin_event(rl);
    while ((alarm = alarm_ring(&rl->alarms, now)) != NULL) {
        if (alarm == &rl->standing.alarm)
            standing_on_alarm(rl);
        else if (alarm == &rl->clocks.alarm)
            clocks_on_alarm(rl);
        else if (alarm == &rl->listen.alarm)
            listen_on_alarm(rl);
        else
            lease_on_alarm(lease_of(alarm), now);
    }
    client_end_event(rl);
    listen_tidy(rl);
    client_deliver(rl);
}

void client_arm(struct redlock *rl)
{
    drift_time at = alarm_next(&rl->alarms);

    if (rl->ready != NULL && rl->blocking != NULL)
        blocking_call_thread(rl->blocking);
    else if (rl->ready != NULL)
        at = 0;
    if (at >= rl->armed)
        return;
    rl->armed = at;
    loop_wake_at(rl->loop, at);
}

void client_flush(struct redlock *rl)
{
    assert(!rl->in_event);
    /* A link that breaks over it makes work for the others; but it is down
     * then, so that this ends after as many turns as there are masters. */
    while (rl->dirty != 0) {
        unsigned m = (unsigned)__builtin_ctz(rl->dirty);

        proof_ask(rl, m);
        rl->dirty &= (quorum_mask) ~(1u << m);
        master_flush(rl->masters[m]);
    }
    listen_flush(rl);
}

void client_write(struct redlock *rl)
{
    quorum_mask left = rl->dirty;

    while (left != 0) {
        unsigned m = (unsigned)__builtin_ctz(left);

        left &= (quorum_mask)(left - 1);
        proof_ask(rl, m);
        rl->dirty &= (quorum_mask) ~(1u << m);
        master_write(rl->masters[m]);
    }
    listen_write(rl);
}

/* ---- Callbacks ---- */

void client_make_ready(struct redlock *rl, struct redlock_lease *lease)
{
    if (lease->is_ready)
        return;
    lease->is_ready = true;
    lease->next = NULL;
    *rl->ready_end = lease;
    rl->ready_end = &lease->next;
    rl->ready_len++;
}

static struct redlock_lease *take_ready(struct redlock *rl)
{
    struct redlock_lease *lease = rl->ready;

    rl->ready = lease->next;
    if (rl->ready == NULL)
        rl->ready_end = &rl->ready;
    rl->ready_len--;
    lease->is_ready = false;
    return lease;
}

/* A callback may run the loop, and others within it close the client: they tell all. */
static bool is_gone(struct redlock *rl, bool *outer, bool gone)
{
    if (!gone)
        rl->gone = outer;
    else if (outer != NULL)
        *outer = true;
    return gone;
}

/* Lost comes first: done may free the lease.  False: the client is gone. */
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
    lease_explain(lease, op, lease->status);
    rl->gone = &gone;
    done(lease, lease->status, lease->arg);
    return !is_gone(rl, outer, gone);
}

/* What becomes due while callbacks run is for the next turn of the loop, or a
 * lock that fails at once, tried again in its callback, would never end.  A callback
 * may run the loop itself, and wait there for what is due after it, and for its own
 * lease: that is freed by the outermost. */
void client_run_callbacks(struct redlock *rl)
{
    for (uint32_t due = rl->ready_len; due > 0 && rl->ready != NULL; due--) {
        struct redlock_lease *lease = take_ready(rl);

        lease_pin(lease);
        if (lease->ready_lost && !run_lost(rl, lease))
            return;
        if (lease->ready_done && !run_done(rl, lease))
            return;
        lease_unpin(lease);
        lease_reap(lease);
    }
    client_arm(rl);
}

void client_deliver(struct redlock *rl)
{
    if (rl->blocking == NULL)
        client_run_callbacks(rl);
    else
        client_arm(rl);
}

void client_query(struct redlock *rl, unsigned master, uint32_t query, const char *command,
                  size_t command_len)
{
    struct master_ask ask = {.ask = query, .command = MASTER_QUERY};

    master_send(rl->masters[master], &ask, command, command_len);
}
