/*
 * test-live-suspend.c - a machine that is suspended while a client holds locks.  The masters and
 * CLOCK_BOOTTIME go on, while the clock of event loops stands still.
 *
 * sleep_for() does what a kernel does when it resumes: each timer on CLOCK_BOOTTIME that is
 * overdue rings.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

_Static_assert(sizeof(time_t) == sizeof(long), "the kernel's timespec is not libc's");

#define TTL_MS 20000
#define LONG_S 20 /* A sleep that no lease outlasts. */
#define SHORT_S 8 /* A sleep after which the lease must be renewed at once. */

static atomic_long slept_s;

/* Replaces libc's function, for the library as well. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (syscall(SYS_clock_gettime, clock, ts) != 0)
        return -1;
    if (clock == CLOCK_BOOTTIME)
        ts->tv_sec += atomic_load(&slept_s);
    return 0;
}

static struct cluster three;

/* The timers, indexed by descriptor. */
#define TIMERS_MAX 256

static struct timer {
    bool counts_sleep;  /* It is on CLOCK_BOOTTIME. */
    struct timespec at; /* When it must ring, by CLOCK_BOOTTIME of the test. */
} timers[TIMERS_MAX];
static pthread_mutex_t timers_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Set the kernel's timer to ring when the clock of the test shows this time.  The kernel's clock
 * does not jump. */
static int set_timer(int fd, int flags, struct timespec at)
{
    struct itimerspec when = {.it_value = at};

    if (at.tv_sec != 0 || at.tv_nsec != 0) {
        when.it_value.tv_sec -= atomic_load(&slept_s);
        if (when.it_value.tv_sec < 0)
            when.it_value = (struct timespec){.tv_nsec = 1};
    }
    return (int)syscall(SYS_timerfd_settime, fd, flags, &when, NULL);
}

/* Replaces libc's function, as above. */
int timerfd_create(int clock, int flags)
{
    int fd = (int)syscall(SYS_timerfd_create, clock, flags);

    (void)pthread_mutex_lock(&timers_mutex);
    if (fd >= 0 && fd < TIMERS_MAX)
        timers[fd] = (struct timer){.counts_sleep = clock == CLOCK_BOOTTIME};
    (void)pthread_mutex_unlock(&timers_mutex);
    if (fd >= TIMERS_MAX)
        cluster_die("suspend: the table of timers is full");
    return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *before)
{
    int r;

    if (fd < 0 || fd >= TIMERS_MAX || !timers[fd].counts_sleep)
        return (int)syscall(SYS_timerfd_settime, fd, flags, when, before);
    if (!(flags & TFD_TIMER_ABSTIME) || when->it_interval.tv_sec != 0 || before != NULL)
        cluster_die("suspend: this kind of timer is not supported");
    (void)pthread_mutex_lock(&timers_mutex);
    timers[fd].at = when->it_value;
    r = set_timer(fd, flags, when->it_value);
    (void)pthread_mutex_unlock(&timers_mutex);
    return r;
}

/* Set the timer anew for the jumped clock, unless it has rung or is closed. */
static void resume(int fd)
{
    struct itimerspec left;

    if (!timers[fd].counts_sleep || syscall(SYS_timerfd_gettime, fd, &left) != 0)
        return;
    if (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0)
        (void)set_timer(fd, TFD_TIMER_ABSTIME, timers[fd].at);
}

/* Suspend the machine for so long, and resume. */
static void sleep_for(long seconds)
{
    (void)pthread_mutex_lock(&timers_mutex);
    atomic_fetch_add(&slept_s, seconds);
    for (int fd = 0; fd < TIMERS_MAX; fd++)
        resume(fd);
    (void)pthread_mutex_unlock(&timers_mutex);
}

static void lock(struct pilot *pilot, enum pilot_kind kind, struct pilot_loss *loss,
                 struct redlock_lease **ret_lease)
{
    struct redlock_lock_options opts;

    cluster_ready(&three, 3);
    pilot_open(pilot, kind, cluster_masters(&three), 0);
    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.fence = true;
    opts.lost = pilot_on_lost;
    opts.lost_arg = loss;
    CHECK_INT(pilot_lock(pilot, "x", &opts, ret_lease), REDLOCK_OK);
    CHECK(redlock_remaining_ms(*ret_lease) > 0);
}

/* The masters still store the keys, as slow ones may.  The lease must end all the same. */
TEST(a_lease_ends_in_a_long_sleep)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot_loss loss = {.runs = 0};
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        lock(&pilot, kind, &loss, &lease);
        sleep_for(LONG_S);
        CHECK_UINT(redlock_remaining_ms(lease), 0);
        CHECK_UINT(info_holds(lease), 0);
        CHECK_INT(pilot_extend(&pilot, lease, TTL_MS), REDLOCK_LOST);
        CHECK_UINT(redlock_remaining_ms(lease), 0);
        CHECK(pilot_until(&pilot, pilot_is_lost, &loss));
        CHECK_UINT(loss.remaining_ms, 0);
        CHECK_UINT(redlock_remaining_ms(lease), 0);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        CHECK_UINT(atomic_load(&loss.runs), 1);
        pilot_close(&pilot);
    }
}

/* The lost notice comes without any call, and the lease is not renewed. */
TEST(lost_is_told_after_a_long_sleep)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot_loss loss = {.runs = 0};
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        lock(&pilot, kind, &loss, &lease);
        sleep_for(LONG_S);
        CHECK(pilot_until(&pilot, pilot_is_lost, &loss));
        CHECK_UINT(loss.remaining_ms, 0);
        CHECK_UINT(pilot_stats(&pilot).lost, 1);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        pilot_close(&pilot);
    }
}

struct renewal {
    struct redlock_lease *lease;
    uint32_t more_than_ms;
};

static bool is_renewed(void *arg)
{
    const struct renewal *renewal = arg;

    return redlock_remaining_ms(renewal->lease) > renewal->more_than_ms;
}

/* After a short sleep less of the lease is left, and it is renewed. */
TEST(a_lease_outlasts_a_short_sleep)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct renewal renewal = {.more_than_ms = TTL_MS - SHORT_S * 1000};
        struct pilot_loss loss = {.runs = 0};
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        lock(&pilot, kind, &loss, &lease);
        renewal.lease = lease;
        sleep_for(SHORT_S);
        if (kind == PILOT_LOOP) /* The thread of a blocking client may be quicker. */
            CHECK(!is_renewed(&renewal));
        CHECK(pilot_until(&pilot, is_renewed, &renewal));
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK_UINT(atomic_load(&loss.runs), 0);
        pilot_close(&pilot);
    }
}

/* ---- At once ---- */

#define STILL_TTL_MS 60000
#define AT_ONCE_S 10 /* Chosen: far more than it takes, and far less than STILL_TTL_MS. */

static void be_still(struct redlock_options *opts)
{
    opts->clock_guard = REDLOCK_CLOCK_GUARD_OFF;
    opts->restart_guard = false;
    opts->reply_timeout_ms = STILL_TTL_MS - 10000;
}

/* Lock so that only the deadline of this lease wakes the client: no renewal, no guard and no
 * timeout does. */
static struct redlock_lease *lock_still(struct pilot *pilot, enum pilot_kind kind,
                                        struct pilot_loss *loss)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease = NULL;

    cluster_ready(&three, 3);
    CHECK_INT(pilot_try_open(pilot, kind, cluster_masters(&three), be_still), REDLOCK_OK);
    CHECK(pilot_until_up(pilot, 3));
    redlock_lock_options_init(&opts);
    opts.ttl_ms = STILL_TTL_MS;
    opts.no_renew = true;
    opts.lost = pilot_on_lost;
    opts.lost_arg = loss;
    CHECK_INT(pilot_lock(pilot, "still", &opts, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < 10; i++) /* Give the client's thread time to become idle. */
        pilot_turn(pilot);
    return lease;
}

static void check_lost_at_once(struct pilot *pilot, struct pilot_loss *loss)
{
    double begun_s = cluster_now_s();

    CHECK_UINT(atomic_load(&loss->runs), 0);
    sleep_for(STILL_TTL_MS / 1000);
    CHECK(pilot_until(pilot, pilot_is_lost, loss));
    CHECK(cluster_now_s() - begun_s < AT_ONCE_S);
    CHECK_UINT(loss->remaining_ms, 0);
}

/* The notice comes on a loop, and from the thread of an idle blocking client. */
TEST(lost_is_told_at_once_after_a_sleep)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot_loss loss = {.runs = 0};
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        lease = lock_still(&pilot, kind, &loss);
        check_lost_at_once(&pilot, &loss);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        pilot_close(&pilot);
    }
}

struct call {
    struct redlock *rl;
    int status;
};

static void *wait_for_lock(void *arg)
{
    struct call *call = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.wait_ms = UINT32_MAX;
    opts.retry_delay_min_ms = opts.retry_delay_max_ms = STILL_TTL_MS; /* It does not poll. */
    call->status = redlock_lock(call->rl, "taken", &opts, &lease);
    return NULL;
}

/* Another thread waits for another lock and runs the loop, while the client's own thread sleeps. */
TEST(lost_is_told_at_once_while_a_call_waits)
{
    struct pilot_loss loss = {.runs = 0};
    struct redlock_lease *lease, *taken;
    struct pilot pilot, holder;
    struct call call;
    pthread_t thread;

    lease = lock_still(&pilot, PILOT_BLOCKING, &loss);
    CHECK_INT(pilot_try_open(&holder, PILOT_BLOCKING, cluster_masters(&three), be_still),
              REDLOCK_OK);
    CHECK_INT(pilot_lock_for(&holder, "taken", STILL_TTL_MS, false, 0, &taken), REDLOCK_OK);
    call = (struct call){.rl = pilot.rl};
    CHECK_INT(pthread_create(&thread, NULL, wait_for_lock, &call), 0);
    while (pilot_stats(&pilot).leases < 2) /* The call has begun. */
        pilot_turn(&pilot);
    for (unsigned i = 0; i < 10; i++)
        pilot_turn(&pilot);
    check_lost_at_once(&pilot, &loss);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
    CHECK_INT(pilot_unlock(&holder, taken), REDLOCK_LOST);
    (void)pthread_join(thread, NULL);
    CHECK_INT(call.status, REDLOCK_OK);
    pilot_close(&pilot);
    pilot_close(&holder);
}

CHECK_MAIN({"a_lease_ends_in_a_long_sleep", a_lease_ends_in_a_long_sleep},
           {"lost_is_told_after_a_long_sleep", lost_is_told_after_a_long_sleep},
           {"a_lease_outlasts_a_short_sleep", a_lease_outlasts_a_short_sleep},
           {"lost_is_told_at_once_after_a_sleep", lost_is_told_at_once_after_a_sleep},
           {"lost_is_told_at_once_while_a_call_waits", lost_is_told_at_once_while_a_call_waits})
