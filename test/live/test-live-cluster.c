/*
 * test-live-cluster.c - the basic operations on the cluster of REDLOCK_TEST_MASTERS=host:port,...,
 * or without that on one of its own.  There it changes only keys that begin with "test:".
 */
#include "test/lib/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/contend.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

static const char *masters;

/* Make the own cluster ready only once, because that closes the connections of open clients. */
static void look_for_masters(void)
{
    static struct cluster own;

    if (masters != NULL)
        return;
    masters = getenv("REDLOCK_TEST_MASTERS");
    if (masters != NULL && masters[0] != 0)
        return;
    cluster_ready(&own, 5);
    masters = cluster_masters(&own);
}

/* A name that no other process uses. */
static const char *name_of(const char *what)
{
    static char name[64];

    (void)snprintf(name, sizeof name, "test:%s:%d", what, (int)getpid());
    return name;
}

static void open_client(struct pilot *pilot, enum pilot_kind kind)
{
    check_row = pilot_kind_name(kind);
    look_for_masters();
    pilot_open(pilot, kind, masters, 0);
}

TEST(lock_extend_unlock)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot pilot;

        open_client(&pilot, kind);
        CHECK_INT(pilot_lock_for(&pilot, name_of("lock"), 30000, true, 30000, &lease), REDLOCK_OK);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK_INT(pilot_lock(&pilot, name_of("lock"), NULL, &other), REDLOCK_CONTENDED);
        CHECK_INT(pilot_extend(&pilot, lease, 40000), REDLOCK_OK);
        CHECK(redlock_remaining_ms(lease) > 10000);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK_INT(pilot_lock(&pilot, name_of("lock"), NULL, &other), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, other), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

TEST(hand_on)
{
    struct redlock_lease *lease, *adopted;
    struct pilot first, second;
    char token[REDLOCK_TOKEN_MAX + 1];

    open_client(&first, PILOT_LOOP);
    open_client(&second, PILOT_BLOCKING);
    CHECK_INT(pilot_lock_for(&first, name_of("hand"), 30000, false, 30000, &lease), REDLOCK_OK);
    (void)snprintf(token, sizeof token, "%s", info_token(lease));
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    CHECK_INT(redlock_adopt(second.rl, name_of("hand"), token, NULL, &adopted), REDLOCK_OK);
    CHECK_INT(pilot_extend(&second, adopted, 0), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&second, adopted), REDLOCK_OK);
    pilot_close(&first);
    pilot_close(&second);
}

static void check_contention(struct contend_plan *plan)
{
    struct contend_report report;

    look_for_masters();
    plan->masters = masters;
    contend(plan, &report);
    CHECK_STR(report.failure, "");
    CHECK_UINT(report.overlaps, 0);
    CHECK_UINT(report.counter, report.holds_wanted);
    CHECK_UINT(report.log_bad, 0);
    CHECK_UINT(report.log_lines, 2 * report.holds_wanted);
}

TEST(sixteen_threads)
{
    struct contend_plan plan = {.threads = 16, .rounds = 8};

    check_contention(&plan);
}

TEST(eight_processes)
{
    struct contend_plan plan = {.threads = 1, .processes = 8, .rounds = 15};

    check_contention(&plan);
}

CHECK_MAIN({"lock_extend_unlock", lock_extend_unlock}, {"hand_on", hand_on},
           {"sixteen_threads", sixteen_threads}, {"eight_processes", eight_processes})
