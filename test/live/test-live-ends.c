/*
 * test-live-ends.c - unusual ends of leases and clients: a second unlock, calls on a lost lease,
 * a close while other threads wait, and a fork.
 *
 * This file is longer than others, because its tests share the ways in which a client ends.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <ev.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

static struct cluster five;

static void open_five(struct pilot *pilot, enum pilot_kind kind)
{
    check_row = pilot_kind_name(kind);
    CHECK(pilot_open_five(pilot, kind, &five));
}

static void with_both(void (*try)(struct pilot *pilot))
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        open_five(&pilot, kind);
        try(&pilot);
        pilot_close(&pilot);
    }
}

/* ---- Used after their end ---- */

static void unlock_twice(struct pilot *pilot)
{
    struct redlock_lease *first, *second;
    char token[REDLOCK_TOKEN_MAX + 1];

    CHECK_INT(pilot_lock(pilot, "x", NULL, &first), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, first), REDLOCK_OK);
    CHECK_INT(pilot_lock(pilot, "x", NULL, &second), REDLOCK_OK);
    (void)snprintf(token, sizeof token, "%s", info_token(second));

    CHECK_INT(pilot_unlock(pilot, first), REDLOCK_E_STATE);
    CHECK_STR(pilot->message, "release: the lease has been unlocked or given up already");
    CHECK_INT(pilot_extend(pilot, first, 0), REDLOCK_E_STATE);
    CHECK_STR(pilot->message, "extend: the lease has been unlocked or given up already");
    CHECK_INT(redlock_detach(first), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "detach: the lease has been unlocked or given up already");
    redlock_cancel(first);
    CHECK_UINT(redlock_remaining_ms(first), 0);

    CHECK(redlock_remaining_ms(second) > 0);
    CHECK(cluster_count(&five, "x", token) >= 3);
    CHECK_INT(pilot_unlock(pilot, second), REDLOCK_OK);
}

TEST(unlocking_twice_is_told)
{
    with_both(unlock_twice);
}

static void use_what_is_lost(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(pilot, "x", 30000, false, 0, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < five.len; i++)
        (void)server_int(&five.server[i], "DEL x");
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_LOST);
    CHECK_STR(pilot->message, "extend x: the lock is not held any more");
    CHECK_UINT(redlock_remaining_ms(lease), 0);
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_LOST);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_LOST);
    CHECK_STR(pilot->message, "release x: the lock is not held any more");
    CHECK(pilot_until_leases(pilot, 0));
}

TEST(extending_what_is_lost_is_told)
{
    with_both(use_what_is_lost);
}

static void extend_what_is_given_up(struct pilot *pilot)
{
    struct pilot_loss loss = {.runs = 0};
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = 8000;
    opts.lost_margin_ms = 7000; /* The library cuts it to half of the validity. */
    opts.no_renew = true;
    opts.lost = pilot_on_lost;
    opts.lost_arg = &loss;
    CHECK_INT(pilot_lock(pilot, "x", &opts, &lease), REDLOCK_OK);
    CHECK(pilot_until(pilot, pilot_is_lost, &loss));
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_LOST);
    CHECK(redlock_remaining_ms(lease) > 0);
    CHECK_STR(pilot->message,
              "extend x: the lock is still held, but the lost notice was given, or was due");
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

TEST(extending_what_is_given_up_is_told)
{
    with_both(extend_what_is_given_up);
}

/* No extension notices the loss first: the release itself does. */
static void unlock_what_is_lost(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(pilot, "x", 30000, false, 0, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        (void)server_int(&five.server[i], "SET x other");
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_LOST);
    CHECK_STR(pilot->message, "release x: the lock is not held any more");
    for (unsigned i = 0; i < 3; i++)
        CHECK_STR(server_get(&five.server[i], "x"), "other");
}

TEST(unlocking_what_is_lost_is_told)
{
    with_both(unlock_what_is_lost);
}

/* ---- Calls of other threads ---- */

enum what { WHAT_LOCK, WHAT_EXTEND, WHAT_UNLOCK };

/* A thread in one blocking call. */
struct caller {
    enum what what;
    struct redlock *rl;
    struct redlock_lease *lease;
    pthread_t thread;
    atomic_bool returned;
    int status;
    char message[512];
};

static void *run_caller(void *arg)
{
    struct caller *caller = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.wait_ms = UINT32_MAX;
    switch (caller->what) {
    case WHAT_LOCK:
        caller->status = redlock_lock(caller->rl, "held", &opts, &lease);
        break;
    case WHAT_EXTEND:
        caller->status = redlock_extend(caller->lease, 0);
        break;
    case WHAT_UNLOCK:
        caller->status = redlock_unlock(caller->lease);
        break;
    }
    (void)snprintf(caller->message, sizeof caller->message, "%s", redlock_errmsg(NULL));
    atomic_store(&caller->returned, true);
    return NULL;
}

static void start_caller(struct caller *caller, struct redlock *rl, enum what what,
                         struct redlock_lease *lease)
{
    caller->what = what;
    caller->rl = rl;
    caller->lease = lease;
    atomic_init(&caller->returned, false);
    if (pthread_create(&caller->thread, NULL, run_caller, caller) != 0)
        cluster_die("no thread");
}

static bool has_returned(void *arg)
{
    struct caller *caller = arg;

    return atomic_load(&caller->returned);
}

static void check_ended(struct caller *caller, int status, const char *message)
{
    struct pilot none = {.kind = PILOT_BLOCKING};

    CHECK(pilot_until(&none, has_returned, caller));
    (void)pthread_join(caller->thread, NULL);
    CHECK_STR(caller->message, message);
    CHECK_INT(caller->status, status);
}

struct count {
    struct pilot *pilot;
    uint64_t leases, commands;
};

static bool has_leases_and_commands(void *arg)
{
    const struct count *count = arg;
    struct redlock_stats stats = pilot_stats(count->pilot);

    return stats.leases >= count->leases && stats.commands >= count->commands;
}

/* Start the call, and wait until it has asked all masters.  No other call may ask them
 * meanwhile. */
static void begin_caller(struct caller *caller, struct pilot *pilot, enum what what,
                         struct redlock_lease *lease)
{
    struct count asked = {.pilot = pilot, .commands = pilot_stats(pilot).commands + five.len};

    start_caller(caller, pilot->rl, what, lease);
    CHECK(pilot_until(pilot, has_leases_and_commands, &asked));
}

TEST(close_ends_eight_threads_that_wait)
{
    struct pilot holder, pilot;
    struct redlock_lease *held;
    struct caller callers[8];
    struct count all = {.pilot = &pilot, .leases = 8};

    open_five(&holder, PILOT_BLOCKING);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 0);
    CHECK_INT(pilot_lock(&holder, "held", NULL, &held), REDLOCK_OK);
    for (unsigned i = 0; i < 8; i++)
        start_caller(&callers[i], pilot.rl, WHAT_LOCK, NULL);
    CHECK(pilot_until(&pilot, has_leases_and_commands, &all));
    pilot_close(&pilot);
    for (unsigned i = 0; i < 8; i++)
        check_ended(&callers[i], REDLOCK_E_STATE, "acquire held: the client was closed meanwhile");
    CHECK(cluster_count(&five, "held", info_token(held)) >= 3);
    CHECK_INT(pilot_unlock(&holder, held), REDLOCK_OK);
    pilot_close(&holder);
}

/* All three calls wait for paused masters.  Closing waits for them too, up to the reply timeout,
 * which must be long enough to start the three calls.  When the masters resume, they get the
 * releases of the closed client. */
TEST(close_ends_calls_of_all_kinds)
{
    struct pilot pilot;
    struct redlock_lease *leases[2];
    struct caller lock, extend, unlock;

    cluster_ready(&five, 5);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 5000);
    CHECK(pilot_until_up(&pilot, 5));
    CHECK_INT(pilot_lock_for(&pilot, "a", 50000, false, 0, &leases[0]), REDLOCK_OK);
    CHECK_INT(pilot_lock_for(&pilot, "b", 50000, false, 0, &leases[1]), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        server_pause(&five.server[i]);
    begin_caller(&extend, &pilot, WHAT_EXTEND, leases[0]);
    begin_caller(&unlock, &pilot, WHAT_UNLOCK, leases[1]);
    begin_caller(&lock, &pilot, WHAT_LOCK, NULL);
    pilot_close(&pilot);
    check_ended(&lock, REDLOCK_E_STATE, "acquire held: the client was closed meanwhile");
    check_ended(&extend, REDLOCK_E_STATE, "extend a: the client was closed meanwhile");
    check_ended(&unlock, REDLOCK_E_STATE, "release b: the client was closed meanwhile");
    for (unsigned i = 0; i < 3; i++)
        server_resume(&five.server[i]);
    CHECK(pilot_until(&(struct pilot){.kind = PILOT_BLOCKING}, cluster_has_no_locks, &five));
}

TEST(unlock_ends_an_extension)
{
    struct pilot pilot;
    struct redlock_lease *lease;
    struct caller extend, unlock;

    open_five(&pilot, PILOT_BLOCKING);
    CHECK_INT(pilot_lock_for(&pilot, "x", 50000, false, 0, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        server_pause(&five.server[i]);
    begin_caller(&extend, &pilot, WHAT_EXTEND, lease);
    CHECK_INT(redlock_detach(lease), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "detach: a call with the lease is under way");
    CHECK_INT(redlock_extend(lease, 0), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "extend: the lease is not held yet, or is busy");
    start_caller(&unlock, pilot.rl, WHAT_UNLOCK, lease);
    check_ended(&extend, REDLOCK_LOST, "extend: unlocked meanwhile");
    for (unsigned i = 0; i < 3; i++)
        server_resume(&five.server[i]);
    check_ended(&unlock, REDLOCK_OK, "");
    CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
    pilot_close(&pilot);
}

/* ---- From the callback of a blocking client ---- */

struct report {
    atomic_bool came;
    uint32_t remaining_ms;
    int unlock, extend, detach;
    char message[512];
};

static void try_calls(struct redlock_lease *lease, void *arg)
{
    struct report *report = arg;

    report->remaining_ms = redlock_remaining_ms(lease);
    report->extend = redlock_extend(lease, 0);
    report->detach = redlock_detach(lease);
    report->unlock = redlock_unlock(lease);
    (void)snprintf(report->message, sizeof report->message, "%s", redlock_errmsg(NULL));
    atomic_store(&report->came, true);
}

static bool has_reported(void *arg)
{
    struct report *report = arg;

    return atomic_load(&report->came);
}

TEST(blocking_calls_from_a_callback_are_told)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct report report = {.unlock = 0};
    struct pilot pilot;

    open_five(&pilot, PILOT_BLOCKING);
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 8000;
    opts.lost_margin_ms = 7800; /* The library cuts it to half of the validity. */
    opts.no_renew = true;
    opts.lost = try_calls;
    opts.lost_arg = &report;
    CHECK_INT(pilot_lock(&pilot, "x", &opts, &lease), REDLOCK_OK);
    CHECK(pilot_until(&pilot, has_reported, &report));
    CHECK(report.remaining_ms > 0);
    CHECK_INT(report.extend, REDLOCK_E_STATE);
    CHECK_INT(report.detach, REDLOCK_E_STATE);
    CHECK_INT(report.unlock, REDLOCK_E_STATE);
    CHECK_STR(report.message, "release: a blocking call from a callback");
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* ---- Forks ---- */

struct heirloom {
    struct pilot *pilot;
    struct redlock_lease *lease;
};

static const char forked[] = "the client belongs to the process before the fork";

static bool is_refused(int status)
{
    return status == REDLOCK_E_STATE && strstr(redlock_errmsg(NULL), forked) != NULL;
}

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)status, (void)arg;
}

/* Runs in the child.  Returns 0, or the number of the check that failed. */
static int use_heirloom(void *arg)
{
    struct heirloom *heirloom = arg;
    struct redlock_stats stats = {.size = sizeof stats};
    struct redlock *rl = heirloom->pilot->rl;
    struct redlock_lease *lease;

    if (!is_refused(redlock_lock(rl, "y", NULL, &lease)))
        return 1;
    if (!is_refused(redlock_lock_async(rl, "y", NULL, on_done, NULL, &lease)))
        return 2;
    if (!is_refused(redlock_adopt(rl, "y", "t", NULL, &lease)))
        return 3;
    if (!is_refused(redlock_stats(rl, &stats)))
        return 4;
    lease = heirloom->lease;
    if (!is_refused(redlock_extend(lease, 0)))
        return 5;
    if (!is_refused(redlock_extend_async(lease, 0, on_done, NULL)))
        return 6;
    if (!is_refused(redlock_detach(lease)))
        return 7;
    if (!is_refused(redlock_unlock_async(lease, on_done, NULL)))
        return 8;
    if (!is_refused(redlock_unlock(lease)))
        return 9;
    redlock_cancel(lease);
    return redlock_close(rl) == NULL ? 0 : 10;
}

static void fork_with_a_lease(struct pilot *pilot)
{
    struct heirloom heirloom = {.pilot = pilot};

    CHECK_INT(pilot_lock(pilot, "x", NULL, &heirloom.lease), REDLOCK_OK);
    CHECK_INT(cluster_join(cluster_spawn(use_heirloom, &heirloom)), 0);
    CHECK(cluster_count(&five, "x", info_token(heirloom.lease)) >= 3);
    CHECK(redlock_remaining_ms(heirloom.lease) > 0);
    CHECK_INT(pilot_extend(pilot, heirloom.lease, 0), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, heirloom.lease), REDLOCK_OK);
    CHECK_UINT(pilot_stats(pilot).masters_up, 5);
    CHECK_UINT(pilot_stats(pilot).connects, 5);
}

TEST(fork_leaves_the_parent_alone)
{
    with_both(fork_with_a_lease);
}

#define BRIEF_TTL_MS 1500

static void be_quiet(struct redlock_options *opts)
{
    opts->clock_guard = REDLOCK_CLOCK_GUARD_OFF;
    opts->restart_guard = false;
    opts->reply_timeout_ms = 3600000; /* Chosen: no timeout may wake the client. */
}

/* Runs in the child: run the parent's loop, which libev allows, until long after the lease has
 * ended; then close. */
static int outlive_heirloom(void *arg)
{
    struct heirloom *heirloom = arg;
    struct pilot *pilot = heirloom->pilot;
    double end_s = cluster_now_s() + 1.2 * BRIEF_TTL_MS / 1e3;

    if (pilot->ev != NULL)
        ev_loop_fork(pilot->ev);
    while (cluster_now_s() < end_s)
        pilot_turn(pilot);
    return redlock_close(pilot->rl) == NULL ? 0 : 1;
}

/* The child shares the parent's timer, but must not consume the alarm of the parent's lease. */
TEST(fork_leaves_the_deadline_alone)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot_loss loss = {.runs = 0};
        struct redlock_lock_options opts;
        struct heirloom heirloom;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 5);
        CHECK_INT(pilot_try_open(&pilot, kind, cluster_masters(&five), be_quiet), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 5));
        redlock_lock_options_init(&opts);
        opts.ttl_ms = BRIEF_TTL_MS;
        opts.no_renew = true;
        opts.lost = pilot_on_lost;
        opts.lost_arg = &loss;
        CHECK_INT(pilot_lock(&pilot, "brief", &opts, &heirloom.lease), REDLOCK_OK);
        heirloom.pilot = &pilot;
        CHECK_INT(cluster_join(cluster_spawn(outlive_heirloom, &heirloom)), 0);
        CHECK(pilot_until(&pilot, pilot_is_lost, &loss));
        CHECK_INT(pilot_unlock(&pilot, heirloom.lease), REDLOCK_LOST);
        CHECK_UINT(pilot_stats(&pilot).connects, 5); /* The child left the links alone. */
        pilot_close(&pilot);
    }
}

#define HELD_TTL_MS 6000 /* Chosen: large enough for a busy machine; renewed each 2 s. */

/* Runs in the child: run the inherited loop for a while, as a program may that forks in a callback,
 * then close.  A loop of the program that watches a pollable client is the program's to tell. */
static int run_heirloom(void *arg)
{
    struct pilot *pilot = arg;
    double end_s = cluster_now_s() + 0.3;

    if (pilot_is_pollable())
        ev_loop_fork(pilot->ev);
    while (cluster_now_s() < end_s)
        pilot_turn(pilot);
    if (redlock_close(pilot->rl) != NULL)
        return 1;
    ev_run(pilot->ev, EVRUN_NOWAIT);
    return 0;
}

static bool is_extended(void *arg)
{
    return pilot_stats(arg).extended > 0;
}

/* The child shares the epoll set of the parent's loop. */
TEST(fork_that_runs_the_loop_leaves_renewal_alone)
{
    struct pilot_loss loss = {.runs = 0};
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct pilot pilot;

    cluster_ready(&five, 5);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&pilot, 5));
    redlock_lock_options_init(&opts);
    opts.ttl_ms = HELD_TTL_MS;
    opts.lost = pilot_on_lost;
    opts.lost_arg = &loss;
    CHECK_INT(pilot_lock(&pilot, "held", &opts, &lease), REDLOCK_OK);
    CHECK_INT(cluster_join(cluster_spawn(run_heirloom, &pilot)), 0);
    CHECK(pilot_until(&pilot, is_extended, &pilot));
    CHECK(redlock_remaining_ms(lease) > 0);
    CHECK_UINT(loss.runs, 0);
    CHECK_UINT(pilot_stats(&pilot).connects, 5);
    for (unsigned i = 0; i < five.len; i++)
        (void)server_int(&five.server[i], "DEL held");
    CHECK(pilot_until(&pilot, pilot_is_lost, &loss));
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
    pilot_close(&pilot);
}

/* A child may open a client of its own. */
static int lock_in_child(void *arg)
{
    struct pilot pilot;
    struct redlock_lease *lease;

    (void)arg;
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 0);
    if (pilot_lock(&pilot, "x", NULL, &lease) != REDLOCK_CONTENDED)
        return 1;
    if (pilot_lock(&pilot, "y", NULL, &lease) != REDLOCK_OK)
        return 2;
    if (pilot_unlock(&pilot, lease) != REDLOCK_OK)
        return 3;
    pilot_close(&pilot);
    return 0;
}

static void fork_and_open(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_INT(cluster_join(cluster_spawn(lock_in_child, NULL)), 0);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

TEST(fork_and_open_another)
{
    with_both(fork_and_open);
}

/* Threads that are inside the library when another thread forks. */
struct busy {
    struct redlock *rl;
    atomic_bool stop;
    atomic_uint failures;
};

static void *lock_all_the_time(void *arg)
{
    struct busy *busy = arg;
    char name[16];

    (void)snprintf(name, sizeof name, "%lx", (unsigned long)pthread_self());
    while (!atomic_load(&busy->stop)) {
        struct redlock_lease *lease;

        if (redlock_lock(busy->rl, name, NULL, &lease) != REDLOCK_OK ||
            redlock_unlock(lease) != REDLOCK_OK)
            atomic_fetch_add(&busy->failures, 1);
    }
    return NULL;
}

static int close_heirloom(void *arg)
{
    (void)redlock_close(arg);
    return 0;
}

TEST(fork_while_threads_are_busy)
{
    struct busy busy = {.failures = 0};
    struct pilot pilot;
    pthread_t threads[4];

    open_five(&pilot, PILOT_BLOCKING);
    busy.rl = pilot.rl;
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, lock_all_the_time, &busy), 0);
    for (unsigned i = 0; i < 40; i++)
        CHECK_INT(cluster_join(cluster_spawn(close_heirloom, pilot.rl)), 0);
    atomic_store(&busy.stop, true);
    for (unsigned i = 0; i < 4; i++)
        (void)pthread_join(threads[i], NULL);
    CHECK_UINT(atomic_load(&busy.failures), 0);
    CHECK_UINT(pilot_stats(&pilot).connects, 5);
    pilot_close(&pilot);
}

CHECK_MAIN({"unlocking_twice_is_told", unlocking_twice_is_told},
           {"extending_what_is_lost_is_told", extending_what_is_lost_is_told},
           {"extending_what_is_given_up_is_told", extending_what_is_given_up_is_told},
           {"unlocking_what_is_lost_is_told", unlocking_what_is_lost_is_told},
           {"close_ends_eight_threads_that_wait", close_ends_eight_threads_that_wait},
           {"close_ends_calls_of_all_kinds", close_ends_calls_of_all_kinds},
           {"unlock_ends_an_extension", unlock_ends_an_extension},
           {"blocking_calls_from_a_callback_are_told", blocking_calls_from_a_callback_are_told},
           {"fork_leaves_the_parent_alone", fork_leaves_the_parent_alone},
           {"fork_leaves_the_deadline_alone", fork_leaves_the_deadline_alone},
           {"fork_that_runs_the_loop_leaves_renewal_alone",
            fork_that_runs_the_loop_leaves_renewal_alone},
           {"fork_and_open_another", fork_and_open_another},
           {"fork_while_threads_are_busy", fork_while_threads_are_busy})
