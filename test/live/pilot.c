/*
 * pilot.c - one set of calls for both kinds of client.
 */
#include "live/pilot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "live/cluster.h"

#define TURN_S 0.01
#define WATCHED_MAX 256 /* Pollable clients at the same time.  Chosen. */

/* What a callback reports to the call that waits for it. */
struct outcome {
    struct pilot *pilot;
    bool came;
    int status;
};

bool pilot_guarded = true;
bool pilot_founds = true;

const char *pilot_kind_name(enum pilot_kind kind)
{
    return kind == PILOT_LOOP ? "loop" : "blocking";
}

/* ---- The loop ---- */

/* Not allocated, because test-alloc counts and fails allocations. */
static ev_io watched[WATCHED_MAX + 1];

bool pilot_is_pollable(void)
{
    const char *text = getenv("PILOT");

    return text != NULL && strcmp(text, "pollable") == 0;
}

void pilot_set_loop(struct redlock_options *opts, struct ev_loop *ev)
{
    opts->pollable = pilot_is_pollable();
    opts->loop = opts->pollable ? NULL : ev;
}

/* A test may have closed the client, or be the child of a fork. */
static void on_readable(struct ev_loop *ev, ev_io *io, int events)
{
    struct redlock **rl = io->data;

    (void)events;
    if (redlock_dispatch(*rl) != REDLOCK_OK || *rl == NULL)
        ev_io_stop(ev, io);
}

struct ev_io *pilot_watch(struct redlock **rl, struct ev_loop *ev)
{
    struct ev_io *io = watched;
    int fd;

    if (!pilot_is_pollable())
        return NULL;
    while (io->data != NULL)
        io++;
    fd = redlock_fd(*rl);
    if (fd < 0 || io == watched + WATCHED_MAX)
        cluster_die("no descriptor: %s", redlock_errmsg(*rl));
    ev_io_init(io, on_readable, fd, EV_READ);
    io->data = rl;
    ev_io_start(ev, io);
    return io;
}

void pilot_unwatch(struct ev_loop *ev, struct ev_io *io)
{
    if (io == NULL)
        return;
    ev_io_stop(ev, io);
    io->data = NULL;
}

static void note_message(struct pilot *pilot)
{
    (void)snprintf(pilot->message, sizeof pilot->message, "%s", redlock_errmsg(pilot->rl));
}

/* ---- Open and close ---- */

int pilot_try_open(struct pilot *pilot, enum pilot_kind kind, const char *masters,
                   void (*tune)(struct redlock_options *opts))
{
    struct redlock_options opts;
    int status;

    *pilot = (struct pilot){.kind = kind};
    redlock_options_init(&opts);
    opts.masters = masters;
    opts.reply_timeout_ms = PILOT_REPLY_TIMEOUT_MS;
    opts.connect_timeout_ms = PILOT_REPLY_TIMEOUT_MS;
    opts.restart_guard = pilot_guarded;
    if (kind == PILOT_LOOP) {
        pilot->ev = ev_loop_new(EVFLAG_AUTO);
        if (pilot->ev == NULL)
            cluster_die("no loop");
        pilot_set_loop(&opts, pilot->ev);
    }
    if (tune != NULL)
        tune(&opts);
    if (pilot_founds)
        cluster_found_list(masters);
    status = redlock_open(&opts, &pilot->rl);
    note_message(pilot);
    if (status == REDLOCK_OK && kind == PILOT_LOOP)
        pilot->io = pilot_watch(&pilot->rl, pilot->ev);
    if (status != REDLOCK_OK && pilot->ev != NULL) {
        ev_loop_destroy(pilot->ev);
        pilot->ev = NULL;
    }
    return status;
}

static uint32_t wanted_timeout_ms;

static void set_timeout(struct redlock_options *opts)
{
    opts->reply_timeout_ms = wanted_timeout_ms;
    if (wanted_timeout_ms < PILOT_REPLY_TIMEOUT_MS) /* The test has a master that cannot answer. */
        opts->connect_timeout_ms = 2000;
}

void pilot_open(struct pilot *pilot, enum pilot_kind kind, const char *masters,
                uint32_t reply_timeout_ms)
{
    wanted_timeout_ms = reply_timeout_ms != 0 ? reply_timeout_ms : PILOT_REPLY_TIMEOUT_MS;
    if (pilot_try_open(pilot, kind, masters, set_timeout) != REDLOCK_OK)
        cluster_die("open: %s", pilot->message);
}

bool pilot_open_up(struct pilot *pilot, enum pilot_kind kind, struct cluster *cluster,
                   unsigned masters)
{
    cluster_ready(cluster, masters);
    pilot_open(pilot, kind, cluster_masters(cluster), 0);
    return pilot_until_up(pilot, masters);
}

bool pilot_open_five(struct pilot *pilot, enum pilot_kind kind, struct cluster *five)
{
    return pilot_open_up(pilot, kind, five, 5);
}

void pilot_close(struct pilot *pilot)
{
    pilot_unwatch(pilot->ev, pilot->io);
    pilot->io = NULL;
    pilot->rl = redlock_close(pilot->rl);
    if (pilot->ev != NULL)
        ev_loop_destroy(pilot->ev);
    pilot->ev = NULL;
}

/* ---- Waiting ---- */

static void on_turn(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev, (void)timer, (void)events;
}

void pilot_turn(struct pilot *pilot)
{
    ev_timer timer;

    if (pilot->ev == NULL) {
        cluster_nap();
        return;
    }
    ev_now_update(pilot->ev);
    ev_timer_init(&timer, on_turn, TURN_S, 0);
    ev_timer_start(pilot->ev, &timer);
    ev_run(pilot->ev, EVRUN_ONCE);
    ev_timer_stop(pilot->ev, &timer);
}

bool pilot_until(struct pilot *pilot, bool (*is_so)(void *arg), void *arg)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;

    while (!is_so(arg)) {
        if (cluster_now_s() > end_s)
            return false;
        pilot_turn(pilot);
    }
    return true;
}

struct level {
    struct pilot *pilot;
    uint64_t wanted;
};

static bool has_masters_up(void *arg)
{
    struct level *level = arg;

    return pilot_stats(level->pilot).masters_up == level->wanted;
}

bool pilot_until_up(struct pilot *pilot, unsigned masters)
{
    struct level level = {pilot, masters};

    return pilot_until(pilot, has_masters_up, &level);
}

static bool has_connects(void *arg)
{
    struct level *level = arg;

    return pilot_stats(level->pilot).connects >= level->wanted;
}

bool pilot_until_connects(struct pilot *pilot, uint64_t connects)
{
    struct level level = {pilot, connects};

    return pilot_until(pilot, has_connects, &level);
}

static bool has_leases(void *arg)
{
    struct level *level = arg;

    return pilot_stats(level->pilot).leases <= level->wanted;
}

bool pilot_until_leases(struct pilot *pilot, unsigned leases)
{
    struct level level = {pilot, leases};

    return pilot_until(pilot, has_leases, &level);
}

/* ---- Calls ---- */

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    struct outcome *outcome = arg;

    (void)lease;
    if (outcome->came)
        cluster_die("a callback ran twice");
    outcome->came = true;
    outcome->status = status;
    note_message(outcome->pilot);
}

static bool has_come(void *arg)
{
    const struct outcome *outcome = arg;

    return outcome->came;
}

/* Wait for the callback of a call that returned this status. */
static int await(struct pilot *pilot, struct outcome *outcome, int status)
{
    if (status != REDLOCK_OK) {
        note_message(pilot);
        return status;
    }
    if (outcome->came)
        cluster_die("a callback ran before its call returned");
    return pilot_until(pilot, has_come, outcome) ? outcome->status : PILOT_NEVER;
}

int pilot_lock(struct pilot *pilot, const char *resource, const struct redlock_lock_options *opts,
               struct redlock_lease **ret_lease)
{
    struct outcome outcome = {.pilot = pilot};
    struct redlock_lease *lease = NULL;
    int status;

    if (pilot->kind == PILOT_BLOCKING) {
        status = redlock_lock(pilot->rl, resource, opts, ret_lease);
        note_message(pilot);
        return status;
    }
    status = redlock_lock_async(pilot->rl, resource, opts, on_done, &outcome, &lease);
    status = await(pilot, &outcome, status);
    if (status == PILOT_NEVER)
        redlock_cancel(lease); /* A late callback would write to a stack frame that is gone. */
    if (status == REDLOCK_OK)
        *ret_lease = lease;
    return status;
}

int pilot_extend(struct pilot *pilot, struct redlock_lease *lease, uint32_t ttl_ms)
{
    struct outcome outcome = {.pilot = pilot};
    int status;

    if (pilot->kind == PILOT_BLOCKING) {
        status = redlock_extend(lease, ttl_ms);
        note_message(pilot);
        return status;
    }
    status = await(pilot, &outcome, redlock_extend_async(lease, ttl_ms, on_done, &outcome));
    if (status == PILOT_NEVER)
        redlock_cancel(lease);
    return status;
}

int pilot_unlock(struct pilot *pilot, struct redlock_lease *lease)
{
    struct outcome outcome = {.pilot = pilot};
    int status;

    if (pilot->kind == PILOT_BLOCKING) {
        status = redlock_unlock(lease);
        note_message(pilot);
        return status;
    }
    status = await(pilot, &outcome, redlock_unlock_async(lease, on_done, &outcome));
    if (status == PILOT_NEVER)
        cluster_die("the callback of an unlock never ran");
    return status;
}

int pilot_lock_for(struct pilot *pilot, const char *resource, uint32_t ttl_ms, bool renew,
                   uint32_t wait_ms, struct redlock_lease **ret_lease)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = ttl_ms;
    opts.no_renew = !renew;
    opts.wait_ms = wait_ms;
    return pilot_lock(pilot, resource, &opts, ret_lease);
}

bool pilot_lacks_votes(int status)
{
    return status == REDLOCK_UNREACHABLE || status == REDLOCK_NOT_READY ||
           status == REDLOCK_E_FORBIDDEN || status == REDLOCK_E_WRONG_SET;
}

struct question {
    struct pilot *pilot;
    const char *resource, *why;
    int status;
};

static bool is_told(void *arg)
{
    struct question *question = arg;
    struct redlock_lease *lease;

    question->status = pilot_lock(question->pilot, question->resource, NULL, &lease);
    return !pilot_lacks_votes(question->status) ||
           strstr(question->pilot->message, question->why) != NULL;
}

bool pilot_blames(const struct pilot *pilot, unsigned masters)
{
    static const char start[] = "acquire x: too few masters ", end[] = ": master";
    const char *at = strstr(pilot->message, start);
    unsigned long number;

    at = at != NULL ? strstr(at, end) : NULL;
    if (at == NULL)
        return false;
    at += strlen(end);
    at += *at == 's' ? 1 : 0;
    number = strtoul(at, NULL, 10);
    return number >= 1 && (masters >> (number - 1) & 1) != 0;
}

int pilot_until_told(struct pilot *pilot, const char *resource, const char *why)
{
    struct question question = {.pilot = pilot, .resource = resource, .why = why};

    return pilot_until(pilot, is_told, &question) ? question.status : PILOT_NEVER;
}

struct redlock_stats pilot_stats(struct pilot *pilot)
{
    struct redlock_stats stats = {.size = sizeof stats};

    if (redlock_stats(pilot->rl, &stats) != REDLOCK_OK)
        cluster_die("stats: %s", redlock_errmsg(pilot->rl));
    return stats;
}

void pilot_on_lost(struct redlock_lease *lease, void *arg)
{
    struct pilot_loss *loss = arg;

    loss->remaining_ms = redlock_remaining_ms(lease);
    atomic_fetch_add(&loss->runs, 1);
}

bool pilot_is_lost(void *arg)
{
    struct pilot_loss *loss = arg;

    return atomic_load(&loss->runs) > 0;
}
