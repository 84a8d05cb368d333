/*
 * test-live-counts.c - what redlock_stats() and redlock_master_stats() count.
 *
 * Times are never compared with a limit: it is the number of samples that counts.
 */
#include <string.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#include "test/lib/check.h"

#define TTL_MS 60000

static struct cluster three;

static uint64_t count(const struct redlock_histogram *histogram)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < REDLOCK_BUCKETS; i++)
        sum += histogram->counts[i];
    return sum;
}

static struct redlock_master_stats stats_of(const struct pilot *pilot, unsigned number)
{
    struct redlock_master_stats stats = {.size = sizeof stats};

    CHECK_INT(redlock_master_stats(pilot->rl, number, &stats), REDLOCK_OK);
    return stats;
}

static void each_kind(void (*test)(struct pilot *pilot), uint32_t reply_timeout_ms)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&three, 3);
        pilot_open(&pilot, kind, cluster_masters(&three), reply_timeout_ms);
        CHECK(pilot_until_up(&pilot, 3));
        test(&pilot);
        pilot_close(&pilot);
    }
}

/* ---- Leases ---- */

static bool have_all_voted(void *arg)
{
    for (unsigned m = 1; m <= 3; m++)
        if (stats_of(arg, m).yes < 3)
            return false;
    return true;
}

static void lock_extend_unlock(struct pilot *pilot)
{
    struct redlock_lease *lease;
    struct redlock_stats stats;

    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_OK);
    stats = pilot_stats(pilot);
    CHECK_UINT(count(&stats.wait), 1);
    CHECK_UINT(count(&stats.acquire), 1);
    CHECK(stats.wait.sum_ns >= stats.acquire.sum_ns && stats.acquire.sum_ns > 0);
    CHECK_UINT(count(&stats.hold), 0);
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_OK);
    stats = pilot_stats(pilot);
    CHECK_UINT(count(&stats.extend), stats.extended);
    CHECK_UINT(count(&stats.hold), 0);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    stats = pilot_stats(pilot);
    CHECK_UINT(count(&stats.hold), 1);
    CHECK(stats.hold.sum_ns >= stats.extend.sum_ns);
    CHECK_UINT(count(&stats.wait), 1);
    CHECK(pilot_until(pilot, have_all_voted, pilot));
    for (unsigned m = 1; m <= 3; m++) {
        const struct redlock_master_stats master = stats_of(pilot, m);

        CHECK_UINT(master.yes, 3); /* It stored the token, extended it, and deleted it. */
        CHECK_UINT(count(&master.round_trip) + master.late, 2); /* Not the release. */
        CHECK_UINT(master.no + master.errors + master.forbidden + master.timeouts, 0);
        CHECK_UINT(master.void_clock + master.void_state, 0);
        CHECK_UINT(master.connects, 1);
        CHECK_UINT(master.breaks, 0);
        CHECK(master.is_up);
    }
}

TEST(one_of_each)
{
    each_kind(lock_extend_unlock, 0);
}

static void cancel_and_detach(struct pilot *pilot)
{
    struct redlock_lease *lease;
    struct redlock_stats stats;

    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_OK);
    redlock_cancel(lease);
    CHECK_INT(pilot_lock_for(pilot, "y", TTL_MS, false, 0, &lease), REDLOCK_OK);
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    stats = pilot_stats(pilot);
    CHECK_UINT(count(&stats.wait), 2);
    CHECK_UINT(count(&stats.hold), 2);
    CHECK_UINT(count(&stats.extend), 0);
}

TEST(other_ends_of_a_hold)
{
    each_kind(cancel_and_detach, 0);
}

/* ---- Masters ---- */

static bool have_two_refused(void *arg)
{
    unsigned refused = 0;

    for (unsigned m = 1; m <= 3; m++)
        refused += stats_of(arg, m).no > 0;
    return refused >= 2;
}

static void lock_a_taken_name(struct pilot *pilot)
{
    struct redlock_lease *lease, *none;
    struct redlock_stats stats;

    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_OK);
    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &none), REDLOCK_CONTENDED);
    CHECK(have_two_refused(pilot));
    stats = pilot_stats(pilot);
    CHECK_UINT(count(&stats.wait), 1); /* Only of a lock that was granted. */
    CHECK_UINT(count(&stats.acquire), 1);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

TEST(a_taken_lock_is_refused)
{
    each_kind(lock_a_taken_name, 0);
}

static void lock_what_is_forbidden(struct pilot *pilot)
{
    struct redlock_lease *lease;

    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "ACL SETUSER default -set"), "OK");
    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_E_FORBIDDEN);
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "ACL SETUSER default +set"), "OK");
    CHECK(stats_of(pilot, 1).forbidden + stats_of(pilot, 2).forbidden +
              stats_of(pilot, 3).forbidden >=
          2);
    CHECK_UINT(stats_of(pilot, 1).errors + stats_of(pilot, 2).errors + stats_of(pilot, 3).errors,
               0);
}

TEST(an_acl_that_forbids)
{
    each_kind(lock_what_is_forbidden, 0);
}

static void lock_beside_two_that_hang(struct pilot *pilot)
{
    struct redlock_lease *lease;

    server_pause(&three.server[0]);
    server_pause(&three.server[1]);
    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_UNREACHABLE);
    CHECK_UINT(stats_of(pilot, 1).timeouts, 1);
    CHECK_UINT(stats_of(pilot, 2).timeouts, 1);
    server_resume(&three.server[0]);
    server_resume(&three.server[1]);
}

TEST(masters_that_hang)
{
    each_kind(lock_beside_two_that_hang, 200);
}

static char unconfirmed[512]; /* The latest such line of the log. */

static void note_unconfirmed(void *arg, enum redlock_level level, const char *message)
{
    (void)arg;
    if (strncmp(message, "release ", 8) != 0)
        return;
    CHECK_INT(level, REDLOCK_LOG_WARNING);
    (void)snprintf(unconfirmed, sizeof unconfirmed, "%s", message);
}

static void open_noting(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 1000;
    opts->log = note_unconfirmed;
}

/* The caller learns it from the status.  So does who reads the log, since a caller may not look. */
static void unlock_beside_two_that_hang(struct pilot *pilot)
{
    struct redlock_lease *lease;

    unconfirmed[0] = '\0';
    CHECK(pilot_until_up(pilot, 3));
    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    CHECK_UINT(pilot_stats(pilot).unconfirmed, 0);
    CHECK_STR(unconfirmed, "");
    CHECK_INT(pilot_lock_for(pilot, "y", TTL_MS, false, 0, &lease), REDLOCK_OK);
    server_pause(&three.server[0]);
    server_pause(&three.server[1]);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_UNREACHABLE);
    CHECK_UINT(pilot_stats(pilot).unconfirmed, 1);
    CHECK_UINT(pilot_stats(pilot).released, 1);
    CHECK_HAS(unconfirmed, "release y: too few masters confirmed it: masters 1 and 2 (");
    CHECK_HAS(unconfirmed, "no answer within 1000 ms [no-majority]");
}

TEST(a_release_that_is_not_confirmed)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&three, 3);
        CHECK_INT(pilot_try_open(&pilot, kind, cluster_masters(&three), open_noting), REDLOCK_OK);
        unlock_beside_two_that_hang(&pilot);
        server_resume(&three.server[0]);
        server_resume(&three.server[1]);
        pilot_close(&pilot);
    }
}

static bool is_broken(void *arg)
{
    return stats_of(arg, 1).breaks > 0;
}

static void kill_one(struct pilot *pilot)
{
    server_kill(&three.server[0]);
    CHECK(pilot_until(pilot, is_broken, pilot));
    CHECK(!stats_of(pilot, 1).is_up);
    CHECK_UINT(stats_of(pilot, 2).breaks, 0);
}

TEST(a_link_that_breaks)
{
    each_kind(kill_one, 0);
}

static void ask_for_others(struct pilot *pilot)
{
    struct redlock_master_stats stats = {.size = sizeof stats, .late = 7};
    struct {
        struct redlock_master_stats stats;
        uint64_t later;
    } larger = {.stats.size = sizeof larger, .later = 7};
    static const unsigned none[] = {0, 4, 16, UINT32_MAX};

    for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK_INT(redlock_master_stats(pilot->rl, none[i], &stats), REDLOCK_E_INVAL);
        CHECK_HAS(redlock_errmsg(pilot->rl), "master stats: there is no master ");
        CHECK_UINT(stats.late, 7);
    }
    CHECK_INT(redlock_master_stats(pilot->rl, 1, NULL), REDLOCK_E_INVAL);
    CHECK_INT(redlock_master_stats(NULL, 1, &stats), REDLOCK_E_INVAL);
    stats.size = 0;
    CHECK_INT(redlock_master_stats(pilot->rl, 1, &stats), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(pilot->rl), "master stats: NULL, or its size is not set");
    stats.size = offsetof(struct redlock_master_stats, late);
    CHECK_INT(redlock_master_stats(pilot->rl, 3, &stats), REDLOCK_OK);
    CHECK_HAS(stats.address, "127.0.0.1:");
    CHECK_UINT(stats.late, 7);
    CHECK_INT(redlock_master_stats(pilot->rl, 3, &larger.stats), REDLOCK_OK);
    CHECK_STR(larger.stats.address, stats.address);
    CHECK_UINT(larger.later, 0);
}

TEST(bad_numbers_and_other_sizes)
{
    each_kind(ask_for_others, 0);
}

CHECK_MAIN(RUN(one_of_each), RUN(other_ends_of_a_hold), RUN(a_taken_lock_is_refused),
           RUN(an_acl_that_forbids), RUN(masters_that_hang), RUN(a_release_that_is_not_confirmed),
           RUN(a_link_that_breaks), RUN(bad_numbers_and_other_sizes))
