/*
 * test-drift.c - both sides of every boundary of the arithmetic of leases.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drift/drift.h"

#ifndef CLONE_NEWTIME /* Not in glibc 2.36. */
#define CLONE_NEWTIME 0x00000080
#endif

#include "test/lib/check.h"

TEST(sums_saturate)
{
    CHECK_UINT(drift_add(0, 0), 0);
    CHECK_UINT(drift_add(5, 7), 12);
    CHECK_UINT(drift_add(DRIFT_NEVER - 2, 1), DRIFT_NEVER - 1);
    CHECK_UINT(drift_add(DRIFT_NEVER - 2, 2), DRIFT_NEVER);
    CHECK_UINT(drift_add(DRIFT_NEVER - 2, 3), DRIFT_NEVER);
    CHECK_UINT(drift_add(DRIFT_NEVER, 0), DRIFT_NEVER);
    CHECK_UINT(drift_add(1, DRIFT_NEVER), DRIFT_NEVER);
    CHECK_UINT(drift_add(DRIFT_NEVER, DRIFT_NEVER), DRIFT_NEVER);
}

TEST(until_is_never_negative)
{
    CHECK_UINT(drift_until(100, 102), 2);
    CHECK_UINT(drift_until(100, 101), 1);
    CHECK_UINT(drift_until(100, 100), 0);
    CHECK_UINT(drift_until(100, 99), 0);
    CHECK_UINT(drift_until(DRIFT_NEVER, 0), 0);
    CHECK_UINT(drift_until(0, DRIFT_NEVER), DRIFT_NEVER);
}

TEST(allowance_is_rounded_up)
{
    static const struct {
        drift_span lease;
        struct drift_bound bound;
        drift_span allowance;
    } rows[] = {
        {0, {10000, 0}, 0},
        {0, {10000, 7}, 7},
        {1, {0, 0}, 0},
        {1, {1, 0}, 1},
        {1, {500000, 0}, 1},
        {99, {10000, 0}, 1},
        {100, {10000, 0}, 1},
        {101, {10000, 0}, 2},
        {999999, {1, 0}, 1},
        {1000000, {1, 0}, 1},
        {1000001, {1, 0}, 2},
        {10000 * DRIFT_MS, {10000, 2 * DRIFT_MS}, 102 * DRIFT_MS},
        {24 * 3600 * DRIFT_S, {500000, 60 * DRIFT_S}, 12 * 3600 * DRIFT_S + 60 * DRIFT_S},
        /* A product of 64 bits would wrap. */
        {DRIFT_NEVER, {1000000, 0}, DRIFT_NEVER},
        {DRIFT_NEVER, {1000001, 0}, DRIFT_NEVER},
        {DRIFT_NEVER, {UINT32_MAX, 0}, DRIFT_NEVER},
        {DRIFT_NEVER, {0, 0}, 0},
        {DRIFT_NEVER, {0, DRIFT_NEVER}, DRIFT_NEVER},
        {1000000, {1, DRIFT_NEVER - 1}, DRIFT_NEVER},
        {1000000, {1, DRIFT_NEVER}, DRIFT_NEVER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_UINT(drift_allowance(rows[i].lease, &rows[i].bound), rows[i].allowance);
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;

/* A fixed sequence (xorshift64*, Vigna 2016) in which all magnitudes are equally likely. */
static uint64_t any(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717)) >> (*state & 63);
}

TEST(allowance_is_that_of_wider_numbers)
{
    uint64_t state = 1;

    for (unsigned i = 0; i < 200000; i++) {
        drift_span lease = any(&state);
        struct drift_bound bound = {.ppm = (uint32_t)any(&state), .fixed = any(&state)};
        wide exact = ((wide)lease * bound.ppm + 999999) / 1000000 + bound.fixed;

        CHECK_UINT(drift_allowance(lease, &bound),
                   exact > DRIFT_NEVER ? DRIFT_NEVER : (drift_span)exact);
    }
}
#else
TEST(allowance_is_that_of_wider_numbers)
{
    /* This machine has no wider numbers, so the table above must suffice. */
}
#endif

TEST(deadline_is_the_lease_less_its_allowance)
{
    struct drift_bound bound = {.ppm = 10000, .fixed = 2};

    /* 1 % of 102 is 1.02, rounded up to 2, and 2 more are fixed. */
    CHECK_UINT(drift_deadline(1000, 102, &bound), 1098);
    CHECK_UINT(drift_deadline(1000, 100, &bound), 1097);
    /* The allowance leaves 1 ns, nothing, less than nothing. */
    CHECK_UINT(drift_deadline(1000, 4, &bound), 1001);
    CHECK_UINT(drift_deadline(1000, 3, &bound), 1000);
    CHECK_UINT(drift_deadline(1000, 2, &bound), 1000);
    CHECK_UINT(drift_deadline(1000, 0, &bound), 1000);
    /* The end of time. */
    CHECK_UINT(drift_deadline(DRIFT_NEVER - 97, 100, &bound), DRIFT_NEVER);
    CHECK_UINT(drift_deadline(DRIFT_NEVER - 98, 100, &bound), DRIFT_NEVER - 1);
    CHECK_UINT(drift_deadline(DRIFT_NEVER - 96, 100, &bound), DRIFT_NEVER);
}

TEST(milliseconds_are_rounded)
{
    CHECK_UINT(drift_to_ms(0), 0);
    CHECK_UINT(drift_to_ms(DRIFT_MS - 1), 0);
    CHECK_UINT(drift_to_ms(DRIFT_MS), 1);
    CHECK_UINT(drift_to_ms(2 * DRIFT_MS - 1), 1);
    CHECK_UINT(drift_to_ms(UINT32_MAX * DRIFT_MS - 1), UINT32_MAX - 1);
    CHECK_UINT(drift_to_ms_up(0), 0);
    CHECK_UINT(drift_to_ms_up(1), 1);
    CHECK_UINT(drift_to_ms_up(DRIFT_MS), 1);
    CHECK_UINT(drift_to_ms_up(DRIFT_MS + 1), 2);
    CHECK_UINT(drift_to_ms_up(DRIFT_NEVER), UINT32_MAX);
    CHECK_UINT(drift_to_ms(UINT32_MAX * DRIFT_MS), UINT32_MAX);
    CHECK_UINT(drift_to_ms((UINT32_MAX + UINT64_C(1)) * DRIFT_MS), UINT32_MAX);
    CHECK_UINT(drift_to_ms(DRIFT_NEVER), UINT32_MAX);
}

static drift_time boottime(void)
{
    struct timespec ts;

    CHECK(clock_gettime(CLOCK_BOOTTIME, &ts) == 0);
    return (drift_time)ts.tv_sec * DRIFT_S + (drift_time)ts.tv_nsec;
}

TEST(now_is_boottime)
{
    drift_time before = boottime();
    drift_time now = 0, later = 0;

    CHECK_INT(drift_now(&now), 0);
    CHECK_INT(drift_now(&later), 0);
    CHECK(before <= now);
    CHECK(now <= later);
    CHECK(later <= boottime());
}

#define SUSPENDED_S 86400

/* In a new time namespace, where the machine was suspended for SUSPENDED_S: whether the clock
 * counts this.  Exit status 0: yes, 1: no, 77: no time namespace. */
static int live_after_suspend(void)
{
    char offset[32];
    int len = snprintf(offset, sizeof offset, "boottime %d 0\n", SUSPENDED_S);
    int fd, status;
    pid_t pid;

    if (unshare(CLONE_NEWTIME) != 0)
        return 77;
    fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, offset, (size_t)len) != len || close(fd) != 0)
        return 77;
    pid = fork(); /* The namespace is for children only. */
    if (pid == 0) {
        struct timespec ts;
        drift_time now = 0;

        if (clock_gettime(CLOCK_MONOTONIC, &ts) != 0 || drift_now(&now) != 0)
            _exit(1);
        _exit(now / DRIFT_S >= (drift_time)ts.tv_sec + SUSPENDED_S ? 0 : 1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 77;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

TEST(time_spent_asleep_counts)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        _exit(live_after_suspend());
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        printf("SKIPPED: no time namespace to be had (root, Linux 5.6)\n");
    else
        CHECK_INT(WEXITSTATUS(status), 0);
}

TEST(a_lease_for_what_is_to_be_relied_on_is_the_shortest)
{
    static const struct drift_bound bounds[] = {
        {0, 0}, {333, 0}, {10000, 2 * DRIFT_MS}, {500000, 0}, {500000, DRIFT_S}};
    static const drift_span leases[] = {1, 7, DRIFT_MS, 12345678901, 3600 * DRIFT_S};

    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (unsigned k = 0; k < sizeof leases / sizeof *leases; k++) {
            drift_span reliable = drift_deadline(0, leases[k], &bounds[i]);
            drift_span lease = drift_lease(reliable, &bounds[i]);

            CHECK(lease <= leases[k]); /* No longer than the one that was granted. */
            CHECK_UINT(drift_deadline(0, lease, &bounds[i]), reliable);
            CHECK(reliable == 0 || drift_deadline(0, lease - 1, &bounds[i]) < reliable);
        }
    CHECK_UINT(drift_lease(DRIFT_NEVER, &bounds[1]), DRIFT_NEVER);
}

TEST(a_lease_for_little_is_enough_where_the_allowance_is_large)
{
    const struct drift_bound bound = {10000, 10 * DRIFT_S};

    CHECK_UINT(drift_lease(0, &bound), 0);
    for (drift_span reliable = 1; reliable < DRIFT_S; reliable = reliable * 3 + 1) {
        drift_span lease = drift_lease(reliable, &bound);

        CHECK(drift_deadline(0, lease, &bound) >= reliable);
        CHECK(drift_deadline(0, lease - 1, &bound) < reliable);
    }
}

CHECK_MAIN(RUN(sums_saturate), RUN(until_is_never_negative), RUN(allowance_is_rounded_up),
           RUN(allowance_is_that_of_wider_numbers),
           RUN(a_lease_for_what_is_to_be_relied_on_is_the_shortest),
           RUN(a_lease_for_little_is_enough_where_the_allowance_is_large),
           RUN(deadline_is_the_lease_less_its_allowance), RUN(milliseconds_are_rounded),
           RUN(now_is_boottime), RUN(time_spent_asleep_counts))
