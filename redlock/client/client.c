/*
 * client.c - opens and closes a client, and passes events on.
 */
#include "redlock/client/client.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/base/fork.h"
#include "redlock/base/random.h"
#include "redlock/client/blocking.h"
#include "redlock/client/callback.h"
#include "redlock/io/tls.h"
#include "redlock/lease/explain.h"
#include "redlock/lease/lease.h"
#include "redlock/lease/table.h"

bool client_is_forked(const struct redlock *rl)
{
    return fork_count() != rl->forks;
}

/* ---- The loop ---- */

/* Set the loop's timer if an alarm is due earlier.  Every call and every event ends with this. */
static void arm(struct redlock *rl)
{
    drift_time at = alarm_next(&rl->env.alarms);

    if (rl->leases.ready != NULL && rl->blocking != NULL)
        blocking_call_thread(rl->blocking);
    else if (rl->leases.ready != NULL)
        at = 0;
    if (at >= rl->armed)
        return;
    rl->armed = at;
    loop_wake_at(rl->env.loop, at);
}

/* Between events: write to all masters that need it, and take down the links that break. */
static void flush(struct redlock *rl)
{
    masters_flush(&rl->masters);
    lines_flush(&rl->lines);
}

/* Whether flush() has something to write. */
static bool is_dirty(const struct redlock *rl)
{
    return (rl->masters.peers.dirty | rl->lines.channels.listener.dirty) != 0;
}

/* ---- Callbacks ---- */

static void run_callbacks(void *cookie)
{
    struct redlock *rl = cookie;

    if (rl->leases.ready == NULL || callback_run_due(rl))
        arm(rl);
}

/* Run the due callbacks now.  For a blocking client, call its thread to run them.  Every event of
 * the loop ends with this, because a callback may close the client. */
static void deliver(struct redlock *rl)
{
    if (rl->blocking == NULL)
        run_callbacks(rl);
    else
        arm(rl);
}

/* ---- Events of the masters ---- */

static void on_answer(void *cookie, unsigned m, const struct ask *ask, const struct reply *reply)
{
    struct redlock *rl = cookie;

    if (ask->what == WHAT_WAIT)
        lines_on_look(&rl->lines, m, ask, reply);
    else if (ask->what != WHAT_QUERY)
        leases_on_answer(&rl->leases, m, ask, reply);
    else if (rl->on_query != NULL && ask->slot == rl->listeners)
        rl->on_query(rl->on_query_cookie, m, ask->number, reply);
}

static void on_vote(void *cookie, unsigned m, const struct ask *ask, const struct vote *vote)
{
    struct redlock *rl = cookie;

    leases_on_vote(&rl->leases, m, ask, vote);
}

static void on_change(void *cookie, unsigned m)
{
    struct redlock *rl = cookie;

    leases_on_change(&rl->leases, m);
}

static void on_room(void *cookie, unsigned m)
{
    struct redlock *rl = cookie;

    leases_on_room(&rl->leases, m);
}

static void on_link(void *cookie, unsigned m, bool up)
{
    struct redlock *rl = cookie;

    if (!up)
        lines_on_break(&rl->lines, m);
}

/* Queues first: a step of a lease may read what they know. */
static void on_set(void *cookie, quorum_mask joined, quorum_mask left)
{
    struct redlock *rl = cookie;

    channel_on_left(&rl->lines.channels, left);
    leases_on_set(&rl->leases, joined, left);
}

static void on_close(void *cookie, unsigned m)
{
    struct redlock *rl = cookie;

    listener_close(&rl->lines.channels.listener, m);
}

static void on_done(void *cookie)
{
    deliver(cookie);
}

static const struct masters_events masters_events = {
    .on_answer = on_answer,
    .on_vote = on_vote,
    .on_change = on_change,
    .on_room = on_room,
    .on_link = on_link,
    .on_set = on_set,
    .on_close = on_close,
    .on_done = on_done,
};

/* ---- Events of the leases ---- */

/* If there are no channels, only a lease that pauses can begin to wait. */
static void on_step(void *cookie, struct redlock_lease *lease, enum quorum_state before)
{
    struct redlock *rl = cookie;

    if (rl->lines.channels.len > 0 || lease->q.state == QUORUM_PAUSING)
        lines_on_step(&rl->lines, lease, before);
}

/* Wake the call that waits for the lease. */
static void wake(struct redlock *rl, struct redlock_lease *lease, int status)
{
    struct waiter *waiter = lease->waiter;

    lease->waiter = NULL;
    if (lease->op == LEASE_OP_LOCK && status != REDLOCK_OK)
        lease_disown(lease);
    explain_end(lease, lease->op, status);
    blocking_wake(rl->blocking, waiter, status);
}

static void on_end(void *cookie, struct redlock_lease *lease, int status)
{
    struct redlock *rl = cookie;

    if (rl->blocking != NULL) {
        if (lease->waiter != NULL)
            wake(rl, lease, status);
        lease->op = LEASE_OP_NONE;
        return;
    }
    lease->status = (int8_t)status;
    lease->ready_done = true;
    table_make_ready(&rl->leases, lease);
}

static void on_free(void *cookie, struct redlock_lease *lease)
{
    struct redlock *rl = cookie;

    lines_forget(&rl->lines, lease);
    if (rl->env.stats.leases == 1 && rl->blocking != NULL) /* This lease is the last one. */
        blocking_idle(rl->blocking);
}

static const struct lease_events lease_events = {
    .on_step = on_step,
    .on_end = on_end,
    .on_free = on_free,
};

/* ---- Events of the loop ---- */

static struct redlock_lease *lease_of(struct alarm *alarm)
{
    void *lease = (char *)alarm - offsetof(struct redlock_lease, alarm);

    return lease;
}

static void on_timer(void *cookie)
{
    struct redlock *rl = cookie;
    drift_time now = env_now(&rl->env);
    struct alarm *alarm;

    rl->armed = DRIFT_NEVER;
    env_begin_event(&rl->env);
    while ((alarm = alarm_ring(&rl->env.alarms, now)) != NULL)
        if (!masters_on_alarm(&rl->masters, alarm) && !lines_on_alarm(&rl->lines, alarm))
            lease_on_alarm(lease_of(alarm), now);
    env_end_event(&rl->env);
    lines_tidy(&rl->lines);
    deliver(rl);
}

static void before_sleep(void *cookie)
{
    struct redlock *rl = cookie;

    flush(rl);
    arm(rl);
}

static const struct loop_events loop_events = {
    .on_timer = on_timer,
    .before_sleep = before_sleep,
};

/* End what the lease does, and release it.  A call that waits for it ends with this status. */
static void cancel(struct redlock *rl, struct redlock_lease *lease, int status)
{
    struct quorum_event event = {.type = QUORUM_EV_CANCEL};

    if (lease->waiter != NULL)
        wake(rl, lease, status);
    lease->op = LEASE_OP_NONE;
    lease->lost = NULL;
    lease_step(lease, &event);
    lease->ready_done = lease->ready_lost = false;
    lease_disown(lease);
    lease_reap(lease);
}

/* ---- What a blocking client's thread calls ---- */

static bool has_callbacks(void *cookie)
{
    const struct redlock *rl = cookie;

    return rl->leases.ready != NULL;
}

static bool has_leases(void *cookie)
{
    const struct redlock *rl = cookie;

    return rl->env.stats.leases > 0;
}

/* Only the calls that lock are ended: they alone may wait for long. */
static bool interrupt(void *cookie)
{
    struct redlock *rl = cookie;
    bool any = false;

    for (uint32_t i = 0; i < rl->leases.slots_len; i++) {
        struct redlock_lease *lease = rl->leases.slots[i];

        if (lease == NULL || lease->waiter == NULL || lease->op != LEASE_OP_LOCK)
            continue;
        cancel(rl, lease, REDLOCK_INTERRUPTED);
        any = true;
    }
    return any;
}

static drift_span alarm_in(void *cookie)
{
    const struct redlock *rl = cookie;

    return drift_until(env_now(&rl->env), rl->armed);
}

static int check_open(const struct redlock *rl)
{
    return !rl->env.closing ? REDLOCK_OK : error_set(REDLOCK_E_STATE, "the client is being closed");
}

enum begun client_begin(void *cookie, struct waiter *waiter)
{
    error_clear();
    waiter->status = check_open(cookie);
    if (waiter->status == REDLOCK_OK)
        return waiter->begin(waiter);
    (void)error_wrap(waiter->status, "%s", waiter->doing);
    return BEGUN_OVER;
}

static const struct blocking_events blocking_events = {
    .begin = client_begin,
    .flush = before_sleep,
    .run_callbacks = run_callbacks,
    .has_callbacks = has_callbacks,
    .has_leases = has_leases,
    .interrupt = interrupt,
    .alarm_in = alarm_in,
};

static void kick(void *cookie)
{
    blocking_kick(cookie);
}

/* ---- Open ---- */

static int no_memory(void)
{
    return error_set(REDLOCK_E_NOMEM, "open: %s", redlock_strerror(REDLOCK_E_NOMEM));
}

/* ev: a loop of libev.  NULL: the client gets a descriptor. */
static int make_loop(struct redlock *rl, struct ev_loop *ev)
{
    rl->env.loop = ev != NULL ? loop_ev_new(ev, &loop_events, rl) : loop_poll_new(&loop_events, rl);
    if (rl->env.loop == NULL && errno != ENOMEM)
        return error_set(REDLOCK_E_SYSTEM, "open: cannot make a timer: %s", strerror(errno));
    if (rl->env.loop == NULL)
        return no_memory();
    if (rl->blocking != NULL)
        loop_on_kick(rl->env.loop, kick, rl->blocking);
    if (env_now(&rl->env) == DRIFT_NEVER)
        return error_set(REDLOCK_E_SYSTEM, "open: this system has no CLOCK_BOOTTIME");
    return REDLOCK_OK;
}

static int make_masters(struct redlock *rl)
{
    const struct options *options = &rl->options;
    const struct masters_config config = {
        .env = &rl->env,
        .uris = options->masters,
        .len = options->masters_len,
        .connect_timeout = options->connect_timeout,
        .reply_timeout = options->reply_timeout,
        .max_ttl_ms = options->max_ttl_ms,
        .drift = options->drift,
        .restart_guard = options->restart_guard,
        .clock_guard = options->clock_guard,
    };

    if (masters_init(&rl->masters, &config, &masters_events, rl) != 0 ||
        lines_init(&rl->lines, &rl->leases, &rl->masters, &config, on_done, rl) != 0)
        return no_memory();
    token_subkey(&rl->leases.tokens, rl->lines.channels.key);
    return REDLOCK_OK;
}

static int make_parts(struct redlock *rl)
{
    struct ev_loop *ev = rl->options.loop;
    int status = token_key_init(&rl->leases.tokens);

    rl->leases.note = rl->options.note;
    if (status == REDLOCK_OK)
        status = random_draw(&rl->env.dice, sizeof rl->env.dice);
    if (status != REDLOCK_OK)
        return status;
    if (ev == NULL && !rl->options.pollable) {
        rl->blocking = blocking_new(&blocking_events, rl);
        if (rl->blocking == NULL && errno != ENOMEM)
            return error_set(REDLOCK_E_SYSTEM, "open: cannot make a loop: %s", strerror(errno));
        if (rl->blocking == NULL)
            return no_memory();
        ev = blocking_loop(rl->blocking);
    }
    status = make_loop(rl, ev);
    return status == REDLOCK_OK ? make_masters(rl) : status;
}

static void init(struct redlock *rl)
{
    rl->forks = fork_count();
    rl->armed = DRIFT_NEVER;
    rl->env.asks_max = LINK_ASKS_MAX;
    rl->env.log = rl->options.log;
    rl->env.log_arg = rl->options.log_arg;
    rl->env.tls = rl->options.tls;
    rl->options.tls = NULL;
    rl->env.tls_later = &rl->options.tls_later;
    rl->leases.env = &rl->env;
    rl->leases.masters = &rl->masters;
    rl->leases.events = &lease_events;
    rl->leases.cookie = rl;
    rl->leases.reply_timeout = rl->options.reply_timeout;
    table_init(&rl->leases);
}

/* Warn of a bad number of masters.  Two masters survive no failure, and four survive no more
 * failures than three.  The set is not known yet, and some of its members are enough as a list. */
static void warn_of_number(const struct redlock *rl)
{
    unsigned masters = rl->options.masters_len;

    if (masters < 3)
        env_log(&rl->env, REDLOCK_LOG_WARNING, MSG_FEW_MASTERS,
                "masters: %u in the list; a set of so many survives no loss; use 3 or 5", masters);
    else if (masters % 2 == 0)
        env_log(&rl->env, REDLOCK_LOG_WARNING, MSG_FEW_MASTERS,
                "masters: %u in the list; a set of so many survives no more losses than one of %u",
                masters, masters - 1);
}

/* Free everything but the thread, which must have ended. */
static void free_client(struct redlock *rl)
{
    masters_done(&rl->masters);
    for (uint32_t i = 0; i < rl->leases.slots_len; i++)
        if (rl->leases.slots[i] != NULL)
            lease_free(rl->leases.slots[i]);
    lines_done(&rl->lines);
    table_done(&rl->leases);
    alarm_done(&rl->env.alarms);
    owner_done(&rl->leases.owners);
    if (rl->env.loop != NULL)
        loop_free(rl->env.loop);
    options_done(&rl->options);
    tls_context_free(rl->env.tls);
    token_key_done(&rl->leases.tokens);
    free(rl);
}

static void free_all(struct redlock *rl)
{
    struct blocking *blocking = rl->blocking;

    free_client(rl);
    if (blocking != NULL)
        blocking_free(blocking);
}

int redlock_open(const struct redlock_options *opts, struct redlock **ret_rl)
{
    struct redlock *rl;
    int status;

    error_clear();
    fork_watch();
    if (ret_rl == NULL)
        return error_set(REDLOCK_E_INVAL, "open: ret_rl is NULL");
    rl = calloc(1, sizeof *rl);
    if (rl == NULL)
        return no_memory();
    status = options_copy(opts, &rl->options);
    if (status != REDLOCK_OK) {
        free(rl);
        return error_wrap(status, "open");
    }
    init(rl);
    status = make_parts(rl);
    if (status != REDLOCK_OK)
        goto fail_parts;
    warn_of_number(rl);
    if (rl->options.trusts_all)
        env_log(&rl->env, REDLOCK_LOG_WARNING, MSG_TLS_UNVERIFIED,
                "TLS: certificates are NOT VERIFIED: anybody on the way can answer for the masters "
                "and read the passwords");
    masters_start(&rl->masters);
    if (rl->blocking != NULL)
        status = blocking_start(rl->blocking);
    if (status != REDLOCK_OK)
        goto fail_parts;
    *ret_rl = rl;
    return REDLOCK_OK;

fail_parts:
    free_all(rl);
    return status;
}

/* ---- Close ---- */

/* Cancel every lease.  Calls under way end with E_STATE. */
static void begin_close(struct redlock *rl)
{
    rl->env.closing = true;
    rl->env.deaf = rl->blocking == NULL;
    for (uint32_t i = 0; i < rl->leases.slots_len; i++)
        if (rl->leases.slots[i] != NULL)
            cancel(rl, rl->leases.slots[i], REDLOCK_E_STATE);
    flush(rl);
}

static void close_blocking(struct redlock *rl)
{
    struct blocking *blocking = rl->blocking;
    int before;

    /* A cancelled thread would leave the client half closed. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    blocking_lock(blocking);
    begin_close(rl);
    blocking_wait_idle(blocking, rl->options.reply_timeout);
    blocking_unlock(blocking);
    blocking_stop(blocking);
    free_all(rl);
    (void)pthread_setcancelstate(before, NULL);
}

/* Close in the child of a fork.  If a thread was at work at the fork, its data may be
 * inconsistent, so they are leaked. */
static void close_forked(struct redlock *rl)
{
    if (rl->blocking == NULL || blocking_was_idle(rl->blocking))
        free_all(rl);
}

struct redlock *redlock_close(struct redlock *rl)
{
    if (rl == NULL)
        return NULL;
    if (client_is_forked(rl)) {
        close_forked(rl);
        return NULL;
    }
    if (rl->blocking != NULL && blocking_is_self(rl->blocking)) {
        (void)error_set(REDLOCK_E_STATE, "close: from a callback of a blocking client");
        return rl; /* The client's thread cannot wait for its own end. */
    }
    if (rl->blocking != NULL) {
        close_blocking(rl);
        return NULL;
    }
    begin_close(rl);
    if (rl->gone != NULL)
        *rl->gone = true;
    free_client(rl);
    return NULL;
}

/* ---- Calls ---- */

int client_enter(struct redlock *rl)
{
    int status;

    error_clear();
    if (rl == NULL)
        return error_set(REDLOCK_E_INVAL, "the client is NULL");
    if (client_is_forked(rl))
        return error_set(REDLOCK_E_STATE, "the client belongs to the process before the fork");
    if (rl->blocking != NULL)
        blocking_lock(rl->blocking);
    status = check_open(rl);
    if (status != REDLOCK_OK && rl->blocking != NULL)
        blocking_unlock(rl->blocking);
    return status;
}

/* End a call of a blocking client: write, or leave that to the thread that runs the loop. */
static void let_out(struct redlock *rl)
{
    if (blocking_is_crowded(rl->blocking))
        loop_kick(rl->env.loop);
    else
        flush(rl); /* Arm after the flush, because a link that breaks there sets alarms. */
    arm(rl);
}

void client_leave(struct redlock *rl)
{
    if (rl->blocking == NULL) {
        arm(rl);
        if (is_dirty(rl))
            loop_flush_soon(rl->env.loop); /* The loop flushes before it sleeps. */
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
