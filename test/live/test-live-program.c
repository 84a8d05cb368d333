/*
 * test-live-program.c - what a program may do around a client: run out of descriptors, fork,
 * cancel threads, and have watchers of its own on the loop.
 */
#include "test/lib/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ev.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster three;

static void open_three(struct pilot *pilot, enum pilot_kind kind)
{
    check_row = pilot_kind_name(kind);
    cluster_ready(&three, 3);
    pilot_open(pilot, kind, cluster_masters(&three), 0);
    CHECK(pilot_until_up(pilot, 3));
}

/* ---- Descriptors ---- */

/* More than a client needs for its loop and for a connection to each master. */
#define SPARE_MAX 8

/* Use up all descriptors of this process but so many. */
static int leave_descriptors(unsigned spare)
{
    int fds[SPARE_MAX];
    struct rlimit limit;
    unsigned len = 0;

    for (; len < spare; len++) {
        fds[len] = open("/dev/null", O_RDONLY);
        if (fds[len] < 0)
            return -1;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    limit.rlim_cur = 256;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -1;
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    while (len > 0)
        (void)close(fds[--len]);
    return 0;
}

#define CHILD_OPENED 10
#define CHILD_HAS_NONE 11

/* Runs in the child.  Returns one of the above, or 1 if a check failed. */
static int open_with_few(void *arg)
{
    const unsigned *spare = arg;
    struct redlock_options opts;
    struct redlock *rl = NULL;
    int status;

    if (leave_descriptors(*spare) != 0)
        return 1;
    redlock_options_init(&opts);
    opts.masters = cluster_masters(&three);
    status = redlock_open(&opts, &rl);
    if (status == REDLOCK_OK)
        return redlock_close(rl) == NULL ? CHILD_OPENED : 1;
    return status < 0 && rl == NULL && redlock_errmsg(NULL)[0] != 0 ? CHILD_HAS_NONE : 1;
}

/* redlock_open() fails or succeeds, but never ends the program. */
TEST(open_without_descriptors)
{
    bool opened = false;

    cluster_ready(&three, 3);
    for (unsigned spare = 0; spare <= SPARE_MAX; spare++) {
        int became = cluster_join(cluster_spawn(open_with_few, &spare));

        if (spare == 0)
            CHECK_INT(became, CHILD_HAS_NONE);
        CHECK(became == CHILD_OPENED || (became == CHILD_HAS_NONE && !opened));
        opened = became == CHILD_OPENED;
    }
    CHECK(opened);
}

/* ---- Forks ---- */

/* Runs in the child, where no client renews the lease or notices its end. */
static int tell_remaining(void *arg)
{
    return redlock_remaining_ms(arg) == 0 ? 0 : 1;
}

TEST(a_fork_has_nothing_remaining)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        open_three(&pilot, kind);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
        CHECK_INT(cluster_join(cluster_spawn(tell_remaining, lease)), 0);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

struct inherited {
    struct pilot *pilot;
    struct redlock_lease *lease;
};

static bool is_refused(int status)
{
    return status == REDLOCK_E_STATE &&
           strstr(redlock_errmsg(NULL), "the process before the fork") != NULL;
}

static void on_refused(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)status, (void)arg;
}

/* Runs in the child.  Returns 0, or the number of the check that failed. */
static int use_inherited(void *arg)
{
    struct inherited *inherited = arg;
    struct redlock *rl = inherited->pilot->rl;
    struct redlock_lease *lease = inherited->lease, *other;

    if (redlock_remaining_ms(lease) != 0)
        return 1;
    if (!is_refused(redlock_lock(rl, "y", NULL, &other)))
        return 2;
    if (!is_refused(redlock_lock_async(rl, "y", NULL, on_refused, NULL, &other)))
        return 3;
    if (!is_refused(redlock_extend(lease, 0)))
        return 4;
    if (!is_refused(redlock_unlock(lease)))
        return 5;
    if (!is_refused(redlock_unlock_async(lease, on_refused, NULL)))
        return 6;
    return redlock_close(rl) == NULL ? 0 : 7;
}

/* A client that asks its masters for nothing unless it is called. */
static void be_quiet(struct redlock_options *opts)
{
    opts->clock_guard = REDLOCK_CLOCK_GUARD_OFF;
    opts->restart_guard = false;
    opts->reply_timeout_ms = 3600000; /* Chosen: no timeout may wake the client. */
}

static bool all_store_x(void *arg)
{
    (void)arg;
    return cluster_count(&three, "x", NULL) == 3;
}

/* The commands that this server has carried out, without this one. */
static long count_commands(struct server *server)
{
    static const char field[] = "total_commands_processed:";
    const char *at = strstr(server_text(server, "INFO stats"), field);

    return at != NULL ? atol(at + strlen(field)) : -1;
}

static void fork_it_with_a_lease(struct pilot *pilot, pid_t (*fork_it)(void))
{
    struct inherited inherited = {.pilot = pilot};
    long before[3];

    CHECK_INT(pilot_lock_for(pilot, "x", 60000, false, 0, &inherited.lease), REDLOCK_OK);
    CHECK(pilot_until(pilot, all_store_x, NULL));
    for (unsigned i = 0; i < 3; i++)
        before[i] = count_commands(&three.server[i]);
    CHECK_INT(cluster_join(cluster_spawn_by(fork_it, use_inherited, &inherited)), 0);
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(count_commands(&three.server[i]), before[i] + 1);
    CHECK(redlock_remaining_ms(inherited.lease) > 0);
    CHECK_INT(pilot_unlock(pilot, inherited.lease), REDLOCK_OK);
    CHECK_UINT(pilot_stats(pilot).connects, 3);
}

TEST(no_fork_goes_unnoticed)
{
    for (const struct cluster_fork *way = cluster_forks; way->row != NULL; way++) {
        for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
            struct pilot pilot;

            check_row = way->row;
            cluster_ready(&three, 3);
            CHECK_INT(pilot_try_open(&pilot, kind, cluster_masters(&three), be_quiet), REDLOCK_OK);
            CHECK(pilot_until_up(&pilot, 3));
            fork_it_with_a_lease(&pilot, way->fork_it);
            pilot_close(&pilot);
        }
    }
}

/* ---- Threads ---- */

struct victim {
    struct redlock *rl;
    atomic_bool returned;
    int status;
};

static void *wait_for_lock(void *arg)
{
    struct victim *victim = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.wait_ms = UINT32_MAX;
    victim->status = redlock_lock(victim->rl, "x", &opts, &lease);
    atomic_store(&victim->returned, true);
    (void)pause(); /* A cancelled thread may end here. */
    return NULL;
}

static bool has_two_leases(void *arg)
{
    return pilot_stats(arg).leases == 2;
}

/* A thread that is cancelled in a call ends after the call, because other threads use its stack
 * until then. */
TEST(a_cancelled_thread_ends_after_its_call)
{
    struct victim victim = {.status = 0};
    struct redlock_lease *lease;
    struct pilot pilot;
    pthread_t thread;
    void *result = NULL;

    open_three(&pilot, PILOT_BLOCKING);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    victim.rl = pilot.rl;
    CHECK_INT(pthread_create(&thread, NULL, wait_for_lock, &victim), 0);
    CHECK(pilot_until(&pilot, has_two_leases, &pilot));
    CHECK_INT(pthread_cancel(thread), 0);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK); /* The call waits for this. */
    CHECK_INT(pthread_join(thread, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(atomic_load(&victim.returned));
    CHECK_INT(victim.status, REDLOCK_OK);
    pilot_close(&pilot);
}

/* The thread is cancelled before it begins the call.  It must not end where the client writes to a
 * socket, because it holds the mutex there. */
static void *lock_when_cancelled(void *arg)
{
    struct victim *victim = arg;
    struct redlock_lease *lease;
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_cancel(pthread_self());
    (void)pthread_setcancelstate(before, NULL);
    victim->status = redlock_lock(victim->rl, "y", NULL, &lease);
    atomic_store(&victim->returned, true);
    pthread_testcancel();
    return NULL;
}

TEST(a_cancel_that_is_pending_waits_for_the_call)
{
    struct victim victim = {.status = -99};
    struct redlock_stats stats = {.size = sizeof stats};
    struct pilot pilot;
    pthread_t thread;
    void *result = NULL;

    open_three(&pilot, PILOT_BLOCKING);
    CHECK(pilot_until_up(&pilot, 3));
    victim.rl = pilot.rl;
    CHECK_INT(pthread_create(&thread, NULL, lock_when_cancelled, &victim), 0);
    CHECK_INT(pthread_join(thread, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(atomic_load(&victim.returned));
    CHECK_INT(victim.status, REDLOCK_OK);
    CHECK_INT(redlock_stats(pilot.rl, &stats), REDLOCK_OK); /* The mutex is free. */
    CHECK_UINT(stats.leases, 1);
    pilot_close(&pilot);
}

/* ---- The program's own watchers ---- */

struct watcher {
    struct pilot *pilot;
    ev_prepare prepare;
    bool begun;
    int status;
};

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    struct watcher *watcher = arg;

    (void)lease;
    watcher->status = status;
    ev_break(watcher->pilot->ev, EVBREAK_ALL);
}

/* Runs just before the loop sleeps. */
static void lock_once(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    struct watcher *watcher = prepare->data;

    (void)ev, (void)events;
    if (watcher->begun)
        return;
    watcher->begun = true;
    watcher->status =
        redlock_lock_async(watcher->pilot->rl, "x", NULL, on_done, watcher, NULL) == REDLOCK_OK
            ? PILOT_NEVER
            : REDLOCK_E_STATE;
}

static void give_up(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)timer, (void)events;
    ev_break(ev, EVBREAK_ALL);
}

/* Nothing else wakes the loop.  A command that is not sent before the loop sleeps is sent after the
 * reply timeout, which is too late. */
static void lock_before_sleep(struct watcher *watcher)
{
    ev_timer bound;

    ev_now_update(watcher->pilot->ev);
    ev_timer_init(&bound, give_up, CLUSTER_WAIT_S, 0);
    ev_timer_start(watcher->pilot->ev, &bound);
    ev_run(watcher->pilot->ev, 0);
    ev_timer_stop(watcher->pilot->ev, &bound);
    CHECK_INT(watcher->status, REDLOCK_OK);
}

static struct ev_loop *watched;

static void set_loop(struct redlock_options *opts)
{
    opts->loop = watched;
    opts->reply_timeout_ms = 3000;
}

/* The order of the watchers makes no difference. */
TEST(a_lock_from_a_prepare_watcher_is_sent_at_once)
{
    for (unsigned first = 0; first < 2; first++) {
        struct pilot pilot;
        struct watcher watcher = {.pilot = &pilot, .begun = true};

        check_row = first ? "the program's first" : "the client's first";
        cluster_ready(&three, 3);
        watched = ev_loop_new(EVFLAG_AUTO);
        CHECK(watched != NULL);
        ev_prepare_init(&watcher.prepare, lock_once);
        watcher.prepare.data = &watcher;
        if (first)
            ev_prepare_start(watched, &watcher.prepare);
        CHECK_INT(pilot_try_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), set_loop),
                  REDLOCK_OK);
        pilot.kind = PILOT_LOOP; /* The client is on the loop of the test. */
        pilot.ev = watched;
        if (!first)
            ev_prepare_start(watched, &watcher.prepare);
        CHECK(pilot_until_up(&pilot, 3));
        watcher.begun = false;
        lock_before_sleep(&watcher);
        ev_prepare_stop(watched, &watcher.prepare);
        pilot_close(&pilot);
    }
}

CHECK_MAIN({"open_without_descriptors", open_without_descriptors},
           {"a_fork_has_nothing_remaining", a_fork_has_nothing_remaining},
           {"no_fork_goes_unnoticed", no_fork_goes_unnoticed},
           {"a_cancelled_thread_ends_after_its_call", a_cancelled_thread_ends_after_its_call},
           {"a_cancel_that_is_pending_waits_for_the_call",
            a_cancel_that_is_pending_waits_for_the_call},
           {"a_lock_from_a_prepare_watcher_is_sent_at_once",
            a_lock_from_a_prepare_watcher_is_sent_at_once})
