/*
 * test-live-clocks.c - the clock guard on real masters.  A preload (test/partition/skew.c) steps
 * the wall clock of each.
 */
#include "test/lib/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#define MASTERS 5
#define STEP_S 4     /* Below the difference that makes a master an outlier. */
#define LONG_MS 3000 /* The longest lease; the guard waits for as long. */
#define SHORT_MS 500 /* The longest lease of a client that takes short ones only. */

static struct {
    struct cluster one; /* A cluster of one server. */
    int64_t *offset_ns;
} masters[MASTERS];

/* Each server has a file of its own with the offset of its clock. */
static void start(unsigned i)
{
    char path[64], folder[] = SKEW, *name = strrchr(folder, '/');
    int fd = memfd_create("skew", MFD_CLOEXEC);
    void *map;

    if (access(SKEW, R_OK) != 0) /* Without this check the server would start without it. */
        cluster_die("cannot read %s", SKEW);
    *name++ = '\0'; /* A list of libraries cannot name a folder with a blank. */
    if (fd < 0 || ftruncate(fd, sizeof *masters[i].offset_ns) != 0)
        cluster_die("no memory for a clock");
    map = mmap(NULL, sizeof *masters[i].offset_ns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        cluster_die("no memory for a clock");
    masters[i].offset_ns = map;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    if (setenv("SKEW_FILE", path, 1) != 0 || setenv("LD_PRELOAD", name, 1) != 0 ||
        setenv("LD_LIBRARY_PATH", folder, 1) != 0)
        cluster_die("no memory for the environment");
    cluster_ready(&masters[i].one, 1);
    if (unsetenv("LD_PRELOAD") != 0 || unsetenv("LD_LIBRARY_PATH") != 0 ||
        unsetenv("SKEW_FILE") != 0)
        cluster_die("no memory for the environment");
}

static struct server *server(unsigned i)
{
    return &masters[i].one.server[0];
}

static void step(unsigned i, double seconds)
{
    __atomic_store_n(masters[i].offset_ns, (int64_t)(seconds * 1e9), __ATOMIC_RELAXED);
}

/* Make all masters run, with equal clocks and no locks. */
static void ready(void)
{
    for (unsigned i = 0; i < MASTERS; i++) {
        if (masters[i].offset_ns == NULL)
            start(i);
        step(i, 0);
        cluster_ready(&masters[i].one, 1);
    }
}

static const char *list(void)
{
    static char text[MASTERS * 32];
    size_t len = 0;

    for (unsigned i = 0; i < MASTERS; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "127.0.0.1:%u,", server(i)->port);
    text[len - 1] = '\0';
    return text;
}

static enum redlock_clock_guard wanted;
static uint32_t longest_ms = LONG_MS;

static void set_guard(struct redlock_options *opts)
{
    opts->clock_guard = wanted;
    opts->max_ttl_ms = longest_ms;
}

static void open_with(struct pilot *pilot, enum pilot_kind kind, enum redlock_clock_guard guard)
{
    wanted = guard;
    CHECK_INT(pilot_try_open(pilot, kind, list(), set_guard), REDLOCK_OK);
    CHECK(pilot_until_up(pilot, MASTERS));
}

/* A holder needs any majority, so a given master may store the lock later. */
static bool is_stored(void *arg)
{
    const unsigned *i = arg;

    return server_get(server(*i), "x") != NULL;
}

/* Step the clocks of a majority, so that the locks there expire. */
static void step_majority(struct pilot *holder)
{
    for (unsigned i = 0; i < 3; i++) {
        CHECK(pilot_until(holder, is_stored, &i));
        step(i, STEP_S);
        CHECK(server_get(server(i), "x") == NULL);
    }
}

/* Ask for a lock that no client holds, until it fails with a message that contains why. */
static void until_fails(struct pilot *pilot, int wanted_status, const char *why)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;
    struct redlock_lease *lease;
    bool is_refused = false;

    while (!is_refused && cluster_now_s() < end_s) {
        int status = pilot_lock_for(pilot, "y", 1000, false, 0, &lease);

        if (status == REDLOCK_OK)
            CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
        is_refused = status == wanted_status && strstr(pilot->message, why) != NULL;
        pilot_turn(pilot);
    }
    CHECK(is_refused);
}

static void until_refused(struct pilot *pilot, const char *why)
{
    until_fails(pilot, REDLOCK_NOT_READY, why);
}

/* Without a guard, a step breaks a lock.  This also shows that the preload steps the clocks. */
TEST(without_a_guard_two_hold_a_lock)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot first, second;

        check_row = pilot_kind_name(kind);
        ready();
        open_with(&first, kind, REDLOCK_CLOCK_GUARD_OFF);
        open_with(&second, kind, REDLOCK_CLOCK_GUARD_OFF);
        CHECK_INT(pilot_lock_for(&first, "x", LONG_MS, false, 0, &lease), REDLOCK_OK);
        step_majority(&first);
        CHECK_INT(pilot_lock_for(&second, "x", LONG_MS, false, 0, &other), REDLOCK_OK);
        CHECK(redlock_remaining_ms(lease) > 0 && redlock_remaining_ms(other) > 0);
        pilot_close(&second);
        pilot_close(&first);
    }
}

/* Once a client has noticed the step, it gets the lock only when the holder's lease is over. */
TEST(periodic_finds_a_step)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot first, second;

        check_row = pilot_kind_name(kind);
        ready();
        open_with(&first, kind, REDLOCK_CLOCK_GUARD_PERIODIC);
        open_with(&second, kind, REDLOCK_CLOCK_GUARD_PERIODIC);
        CHECK_INT(pilot_lock_for(&second, "y", 1000, false, 0, &other), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&second, other), REDLOCK_OK);
        CHECK_INT(pilot_lock_for(&first, "x", LONG_MS, false, 0, &lease), REDLOCK_OK);
        step_majority(&first);
        until_refused(&second, "its wall clock was stepped by +");
        CHECK_INT(pilot_lock_for(&second, "x", 1000, false, 30000, &other), REDLOCK_OK);
        CHECK_UINT(redlock_remaining_ms(lease), 0);
        pilot_close(&second);
        pilot_close(&first);
    }
}

/* The periodic guard does not wait before the first lock: it trusts clocks that it knows nothing
 * of. */
TEST(periodic_begins_at_once)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    ready();
    for (unsigned i = 0; i < MASTERS; i++)
        step(i, i); /* Clocks may differ, if they do not jump. */
    wanted = REDLOCK_CLOCK_GUARD_PERIODIC;
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, list(), set_guard), REDLOCK_OK);
    CHECK_INT(pilot_lock_for(&pilot, "x", 1000, false, 0, &lease), REDLOCK_OK);
    pilot_close(&pilot);
}

TEST(a_step_back_is_told)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    ready();
    open_with(&pilot, PILOT_LOOP, REDLOCK_CLOCK_GUARD_PERIODIC);
    CHECK_INT(pilot_lock_for(&pilot, "x", 1000, false, 0, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        step(i, -STEP_S);
    until_refused(&pilot, "its wall clock was stepped by -");
    pilot_close(&pilot);
}

/* Masters 0 and 1 get no vote, because their clocks are far off.  Without master 4, two votes of
 * five are left. */
TEST(far_off_is_not_counted)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    ready();
    step(0, 60);
    step(1, -60);
    wanted = REDLOCK_CLOCK_GUARD_PERIODIC;
    CHECK_INT(pilot_try_open(&pilot, PILOT_BLOCKING, list(), set_guard), REDLOCK_OK);
    CHECK(pilot_until_up(&pilot, MASTERS));
    server_pause(server(4));
    until_fails(&pilot, REDLOCK_UNREACHABLE, "s off those of the others, and it may vote ");
    server_resume(server(4));
    CHECK_INT(pilot_lock_for(&pilot, "x", 1000, false, 30000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* per_vote rejects any vote that a clock step could have affected.  Here and in the next test, a
 * client on a loop would not sample for longer than a gap, while the test waits for the other. */
TEST(per_vote_finds_a_step_at_once)
{
    for (enum pilot_kind kind = PILOT_BLOCKING; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot first, second;
        int status;

        check_row = pilot_kind_name(kind);
        ready();
        open_with(&first, kind, REDLOCK_CLOCK_GUARD_PER_VOTE);
        open_with(&second, kind, REDLOCK_CLOCK_GUARD_PER_VOTE);
        CHECK_INT(pilot_lock_for(&first, "y", 1000, false, 30000, &lease), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&first, lease), REDLOCK_OK);
        CHECK_INT(pilot_lock_for(&second, "y", 1000, false, 30000, &other), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&second, other), REDLOCK_OK);
        CHECK_INT(pilot_lock_for(&first, "x", LONG_MS, false, 30000, &lease), REDLOCK_OK);
        step_majority(&first);
        CHECK(redlock_remaining_ms(lease) > 0);
        /* Two masters answer that it is held.  The order of the answers decides the status. */
        status = pilot_lock_for(&second, "x", 1000, false, 0, &other);
        CHECK(status == REDLOCK_NOT_READY || status == REDLOCK_CONTENDED);
        until_refused(&second, "its wall clock was stepped by +");
        CHECK_INT(pilot_lock_for(&second, "x", 1000, false, 30000, &other), REDLOCK_OK);
        CHECK_UINT(redlock_remaining_ms(lease), 0);
        pilot_close(&second);
        pilot_close(&first);
    }
}

/* With each vote the client learns the longest lease of all clients.  So a client with short
 * leases respects a longer one. */
TEST(per_vote_hears_of_longer_leases)
{
    for (enum pilot_kind kind = PILOT_BLOCKING; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot first, second;

        check_row = pilot_kind_name(kind);
        ready();
        longest_ms = SHORT_MS;
        open_with(&first, kind, REDLOCK_CLOCK_GUARD_PER_VOTE);
        CHECK_INT(pilot_lock_for(&first, "y", SHORT_MS, false, 30000, &other), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&first, other), REDLOCK_OK);
        longest_ms = LONG_MS;
        open_with(&second, kind, REDLOCK_CLOCK_GUARD_PER_VOTE);
        CHECK_INT(pilot_lock_for(&second, "x", LONG_MS, false, 30000, &lease), REDLOCK_OK);
        step_majority(&second);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK_INT(pilot_lock_for(&first, "x", SHORT_MS, false, 30000, &other), REDLOCK_OK);
        CHECK_UINT(redlock_remaining_ms(lease), 0);
        pilot_close(&second);
        pilot_close(&first);
    }
}

/* A longest lease that is missing, or no number, proves nothing.  The next query repairs it. */
TEST(per_vote_mends_what_tells_the_longest_lease)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    ready();
    open_with(&pilot, PILOT_BLOCKING, REDLOCK_CLOCK_GUARD_PER_VOTE);
    for (unsigned i = 0; i < MASTERS; i++)
        (void)server_int(server(i),
                         i % 2 == 0 ? "HSET redlock:master max never" : "HDEL redlock:master max");
    CHECK_INT(pilot_lock_for(&pilot, "x", 1000, false, 30000, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < MASTERS; i++)
        CHECK_STR(server_text(server(i), "HGET redlock:master max"), "3000");
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* A clock that was not watched for as long as the longest lease does not count. */
TEST(per_vote_watches_first)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        double begun_s = cluster_now_s();
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        ready();
        open_with(&pilot, kind, REDLOCK_CLOCK_GUARD_PER_VOTE);
        until_refused(&pilot, "its wall clock has not been watched for long enough");
        CHECK_INT(pilot_lock_for(&pilot, "x", 1000, false, 30000, &lease), REDLOCK_OK);
        CHECK(cluster_now_s() - begun_s >= LONG_MS / 1e3);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

/* Renewals succeed, although each one checks the clocks. */
TEST(per_vote_renews)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    double end_s;

    ready();
    open_with(&pilot, PILOT_BLOCKING, REDLOCK_CLOCK_GUARD_PER_VOTE);
    CHECK_INT(pilot_lock_for(&pilot, "x", 1000, true, 30000, &lease), REDLOCK_OK);
    end_s = cluster_now_s() + 3;
    while (cluster_now_s() < end_s)
        pilot_turn(&pilot);
    CHECK(pilot_stats(&pilot).extended >= 3);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* A lease that is extended while clocks are behind would end early when they are corrected.  So
 * such an extension does not count. */
TEST(per_vote_extends_nothing_by_clocks_that_are_back)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        ready();
        open_with(&pilot, kind, REDLOCK_CLOCK_GUARD_PER_VOTE);
        CHECK_INT(pilot_lock_for(&pilot, "x", LONG_MS, false, 30000, &lease), REDLOCK_OK);
        for (unsigned i = 0; i < 3; i++) {
            CHECK(pilot_until(&pilot, is_stored, &i));
            step(i, -STEP_S);
        }
        CHECK_INT(pilot_extend(&pilot, lease, LONG_MS), REDLOCK_NOT_READY);
        CHECK_HAS(pilot.message, "its wall clock was stepped by -");
        CHECK(redlock_remaining_ms(lease) > 0);
        pilot_close(&pilot);
    }
}

static void set_user(struct redlock_options *opts)
{
    opts->restart_guard = false;
}

/* If an ACL forbids TIME, the message names the clock guard. */
TEST(time_must_be_allowed)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    char text[64];

    ready();
    (void)server_int(server(0), "ACL SETUSER blind on >pass ~* +@all -time");
    (void)snprintf(text, sizeof text, "blind:pass@127.0.0.1:%u", server(0)->port);
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, text, set_user), REDLOCK_OK);
    for (double end_s = cluster_now_s() + CLUSTER_WAIT_S;
         strstr(pilot.message, "clock guard: NOPERM") == NULL && cluster_now_s() < end_s;
         pilot_turn(&pilot))
        if (pilot_lock_for(&pilot, "x", 1000, false, 0, &lease) == REDLOCK_OK)
            CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    CHECK_HAS(pilot.message, "clock guard: NOPERM");
    pilot_close(&pilot);
    (void)server_int(server(0), "ACL DELUSER blind");
}

CHECK_MAIN({"without_a_guard_two_hold_a_lock", without_a_guard_two_hold_a_lock},
           {"periodic_finds_a_step", periodic_finds_a_step},
           {"periodic_begins_at_once", periodic_begins_at_once},
           {"a_step_back_is_told", a_step_back_is_told},
           {"far_off_is_not_counted", far_off_is_not_counted},
           {"per_vote_finds_a_step_at_once", per_vote_finds_a_step_at_once},
           {"per_vote_hears_of_longer_leases", per_vote_hears_of_longer_leases},
           {"per_vote_mends_what_tells_the_longest_lease",
            per_vote_mends_what_tells_the_longest_lease},
           {"per_vote_watches_first", per_vote_watches_first},
           {"per_vote_extends_nothing_by_clocks_that_are_back",
            per_vote_extends_nothing_by_clocks_that_are_back},
           {"per_vote_renews", per_vote_renews}, {"time_must_be_allowed", time_must_be_allowed})
