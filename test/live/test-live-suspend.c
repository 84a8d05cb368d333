/*
 * test-live-suspend.c - a machine that sleeps while it has locks: CLOCK_BOOTTIME goes on, as
 * the masters do, and the clock by which loops wait stands still.
 */
#include "check.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

_Static_assert(sizeof(long) == 8 && sizeof(time_t) == 8, "the kernel's timespec is not libc's");

#define TTL_MS 20000
#define LONG_S 20 /* A sleep that no lease outlasts, */
#define SHORT_S 8 /* and one after which this one has to be renewed at once. */

static atomic_long slept_s;

/* In place of libc's, for the library as well. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (syscall(SYS_clock_gettime, clock, ts) != 0)
        return -1;
    if (clock == CLOCK_BOOTTIME)
        ts->tv_sec += atomic_load(&slept_s);
    return 0;
}

static struct cluster three;

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

/* The masters still store its keys here, as slow ones may: that makes it no longer. */
TEST(a_lease_ends_in_a_long_sleep)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot_loss loss = {.runs = 0};
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        lock(&pilot, kind, &loss, &lease);
        atomic_fetch_add(&slept_s, LONG_S);
        CHECK_UINT(redlock_remaining_ms(lease), 0);
        CHECK_UINT(redlock_holds(lease), 0);
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

/* Nobody asks, and no call is made: it is told all the same, and not renewed. */
TEST(lost_is_told_after_a_long_sleep)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot_loss loss = {.runs = 0};
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        lock(&pilot, kind, &loss, &lease);
        atomic_fetch_add(&slept_s, LONG_S);
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

/* What is left after it is less by what it slept, and is renewed. */
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
        atomic_fetch_add(&slept_s, SHORT_S);
        if (kind == PILOT_LOOP) /* Else its thread may have been quicker. */
            CHECK(!is_renewed(&renewal));
        CHECK(pilot_until(&pilot, is_renewed, &renewal));
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK_UINT(atomic_load(&loss.runs), 0);
        pilot_close(&pilot);
    }
}

CHECK_MAIN({"a_lease_ends_in_a_long_sleep", a_lease_ends_in_a_long_sleep},
           {"lost_is_told_after_a_long_sleep", lost_is_told_after_a_long_sleep},
           {"a_lease_outlasts_a_short_sleep", a_lease_outlasts_a_short_sleep})
