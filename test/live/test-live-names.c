/*
 * test-live-names.c - how many host names are resolved at once, and what happens if that takes
 * longer than an attempt to connect.
 *
 * The linker's --wrap redirects getaddrinfo() and connect() to this file.  Under ThreadSanitizer
 * the tests also show that a client reads a result only when it is complete.
 */
#include "test/lib/check.h"

#include <netdb.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster five;

/* ---- Names ---- */

static atomic_bool resolver_hangs; /* slow.test is not resolved until this is false. */
static atomic_uint lookups, under_way;
static atomic_uint lookups_at_first; /* How many had begun at the first connect(); 0: none yet. */

int __real_connect(int fd, const struct sockaddr *address, socklen_t len);
__typeof__(__real_connect) __wrap_connect;

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    unsigned none = 0;

    (void)atomic_compare_exchange_strong(&lookups_at_first, &none, atomic_load(&lookups));
    return __real_connect(fd, address, len);
}

__typeof__(getaddrinfo) __real_getaddrinfo, __wrap_getaddrinfo;

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    if (strcmp(node, "slow.test") != 0)
        return __real_getaddrinfo(node, service, hints, ret);
    atomic_fetch_add(&lookups, 1);
    atomic_fetch_add(&under_way, 1);
    while (atomic_load(&resolver_hangs))
        cluster_nap();
    atomic_fetch_sub(&under_way, 1);
    return __real_getaddrinfo("127.0.0.1", service, hints, ret);
}

/* A list of so many masters by the name slow.test, and one other, which may be NULL. */
static const char *by_name(unsigned len, const char *other)
{
    static char list[1024];
    size_t at = 0;

    for (unsigned i = 0; i < len; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%sslow.test:%u", i > 0 ? "," : "",
                               five.server[i].port);
    if (other != NULL)
        (void)snprintf(list + at, sizeof list - at, ",%s", other);
    return list;
}

static void begin(bool hangs)
{
    cluster_ready(&five, 5);
    atomic_store(&resolver_hangs, hangs);
    atomic_store(&lookups, 0);
    atomic_store(&lookups_at_first, 0);
}

static bool has_no_lookup(void *arg)
{
    (void)arg;
    return atomic_load(&under_way) == 0;
}

static void end(struct pilot *pilot)
{
    atomic_store(&resolver_hangs, false);
    CHECK(pilot_until(pilot, has_no_lookup, NULL));
    pilot_close(pilot);
}

static void set_timeout(struct redlock_options *opts)
{
    opts->connect_timeout_ms = 50;
    opts->restart_guard = 0;
}

/* On a busy machine some attempts fail later, when the name is known. */
static void set_longer_timeout(struct redlock_options *opts)
{
    opts->connect_timeout_ms = 500;
    opts->restart_guard = 0;
}

/* ---- Tests ---- */

TEST(masters_by_name)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        begin(false);
        pilot_open(&pilot, kind, by_name(5, NULL), 0);
        CHECK(pilot_until_up(&pilot, 5));
        for (unsigned round = 1; round <= 3; round++) {
            for (unsigned m = 0; m < five.len; m++)
                (void)server_int(&five.server[m], "CLIENT KILL TYPE normal");
            CHECK(pilot_until_connects(&pilot, 5 * (round + 1)));
            CHECK(pilot_until_up(&pilot, 5));
        }
        end(&pilot);
    }
}

static bool has_a_lookup(void *arg)
{
    (void)arg;
    return atomic_load(&under_way) > 0;
}

static bool has_six_connections(void *arg)
{
    const struct fake *fake = arg;

    return atomic_load(&fake->seen->connections) >= 6;
}

/* The sixth master closes each connection.  After six attempts on it, the attempts on the other
 * masters have timed out and begun again, too. */
TEST(lookups_do_not_pile_up)
{
    const struct fake_plan plan = {.way = FAKE_CLOSES};

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;
        struct fake fake;
        char other[32];

        check_row = pilot_kind_name(kind);
        begin(true);
        fake_start(&fake, &plan);
        (void)snprintf(other, sizeof other, "127.0.0.1:%u", fake.port);
        CHECK_INT(pilot_try_open(&pilot, kind, by_name(5, other), set_timeout), REDLOCK_OK);
        CHECK(pilot_until(&pilot, has_a_lookup, NULL));
        CHECK(pilot_until(&pilot, has_six_connections, &fake));
        CHECK_UINT(atomic_load(&under_way), 1);
        pilot_close(&pilot);
        CHECK_INT(pilot_try_open(&pilot, kind, by_name(5, other), set_timeout), REDLOCK_OK);
        CHECK_UINT(atomic_load(&lookups), 1); /* The previous client began it. */
        end(&pilot);
        fake_stop(&fake);
    }
}

static bool is_up(void *arg)
{
    return pilot_stats(arg).masters_up == 1;
}

/* The name is resolved between two attempts, and the next attempt uses the result. */
TEST(a_late_result_is_taken)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        begin(true);
        CHECK_INT(pilot_try_open(&pilot, kind, by_name(1, NULL), set_longer_timeout), REDLOCK_OK);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
        CHECK_HAS(pilot.message, "timeout while resolving the name");
        atomic_store(&resolver_hangs, false);
        CHECK(pilot_until(&pilot, is_up, &pilot));
        CHECK_UINT(atomic_load(&lookups_at_first), 1); /* Later attempts resolve it again. */
        end(&pilot);
    }
}

/* The resolver's thread exists only in the parent, so the child must resolve the name again. */
static int lock_by_name(void *arg)
{
    struct redlock_lock_options lock;
    struct redlock_options opts;
    struct redlock_lease *lease;
    struct redlock *rl;
    int status;

    atomic_store(&resolver_hangs, false);
    redlock_options_init(&opts);
    opts.masters = by_name(5, NULL);
    cluster_found_list(opts.masters);
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        return 1;
    redlock_lock_options_init(&lock);
    lock.wait_ms = CLUSTER_WAIT_S * 1000;
    status = redlock_lock(rl, "x", &lock, &lease);
    (void)redlock_close(rl);
    (void)redlock_close(((struct pilot *)arg)->rl);
    return status == REDLOCK_OK ? 0 : 1;
}

TEST(a_fork_looks_up_by_itself)
{
    struct pilot pilot;

#ifdef __SANITIZE_THREAD__
    printf("a_fork_looks_up_by_itself: SKIPPED, this sanitizer allows a child no threads\n");
    return;
#endif
    for (const struct cluster_fork *way = cluster_forks; way->row != NULL; way++) {
        check_row = way->row;
        begin(true);
        CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, by_name(5, NULL), set_timeout), REDLOCK_OK);
        CHECK(pilot_until(&pilot, has_a_lookup, NULL));
        CHECK_INT(cluster_join(cluster_spawn_by(way->fork_it, lock_by_name, &pilot)), 0);
        CHECK(atomic_load(&under_way) > 0);
        end(&pilot);
    }
}

CHECK_MAIN({"masters_by_name", masters_by_name}, {"lookups_do_not_pile_up", lookups_do_not_pile_up},
           {"a_late_result_is_taken", a_late_result_is_taken},
           {"a_fork_looks_up_by_itself", a_fork_looks_up_by_itself})
