/*
 * test-live-backoff.c - the pauses between attempts to connect always grow.
 *
 * Each attempt to reach counted.test resolves that name.  So the wrapper of getaddrinfo()
 * counts all attempts, also those that fail.
 */
#include "test/lib/check.h"

#include <netdb.h>
#include <stdatomic.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static atomic_uint attempts;

__typeof__(getaddrinfo) __real_getaddrinfo, __wrap_getaddrinfo;

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret)
{
    if (strcmp(node, "counted.test") != 0)
        return __real_getaddrinfo(node, service, hints, ret);
    atomic_fetch_add(&attempts, 1);
    return __real_getaddrinfo("127.0.0.1", service, hints, ret);
}

/* ---- Warnings about a link that goes down ---- */

static atomic_uint losses; /* The number of warnings; after each one the pauses begin anew. */

static void count_losses(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)message;
    if (level == REDLOCK_LOG_WARNING)
        atomic_fetch_add(&losses, 1);
}

static void set_log(struct redlock_options *opts)
{
    opts->log = count_losses;
}

static bool has_five_more(void *arg)
{
    const unsigned *before = arg;

    return atomic_load(&attempts) >= *before + 5;
}

/* A link worked, goes down, and is refused from then on.  Each pause is twice the one before, as
 * if it had never worked.  The pauses are 50 to 800 ms minus at most a half, so five attempts
 * take at least 0.775 s. */
TEST(a_link_that_served_backs_off_as_well)
{
    const struct fake_plan plan = {.way = FAKE_GOOD};

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct fake fake;
        struct pilot pilot;
        char masters[32];
        unsigned before;
        double begun_s;

        check_row = pilot_kind_name(kind);
        fake_start(&fake, &plan);
        (void)snprintf(masters, sizeof masters, "counted.test:%u", fake.port);
        CHECK_INT(pilot_try_open(&pilot, kind, masters, set_log), REDLOCK_OK);
        for (unsigned i = 0; i < 5; i++) {
            CHECK_INT(pilot_lock_for(&pilot, "x", 10000, false, 30000, &lease), REDLOCK_OK);
            CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        }
        atomic_store(&losses, 0);
        before = atomic_load(&attempts);
        begun_s = cluster_now_s();
        fake_stop(&fake);
        CHECK(pilot_until(&pilot, has_five_more, &before));
        CHECK(cluster_now_s() - begun_s > 0.75);
        CHECK_UINT(atomic_load(&losses), 1);
        pilot_close(&pilot);
    }
}

static bool has_seven_connections(void *arg)
{
    const struct fake *fake = arg;

    return atomic_load(&fake->seen->connections) >= 7;
}

/* If a master closes each connection at once, the client pauses 50 ms, and then twice as long
 * each time, minus at most a half.  So seven attempts take at least 1.575 s. */
TEST(no_storm)
{
    const struct fake_plan plan = {.way = FAKE_CLOSES};
    struct fake fake;
    struct pilot pilot;
    double begun_s;
    char masters[32];

    fake_start(&fake, &plan);
    (void)snprintf(masters, sizeof masters, "127.0.0.1:%u", fake.port);
    begun_s = cluster_now_s();
    pilot_open(&pilot, PILOT_LOOP, masters, 0);
    CHECK(pilot_until(&pilot, has_seven_connections, &fake));
    CHECK(cluster_now_s() - begun_s > 1.5);
    pilot_close(&pilot);
    fake_stop(&fake);
}

CHECK_MAIN({"a_link_that_served_backs_off_as_well", a_link_that_served_backs_off_as_well},
           {"no_storm", no_storm})
