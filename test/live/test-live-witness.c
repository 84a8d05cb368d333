/*
 * test-live-witness.c - masters that warm up although no client stays to watch them.
 *
 * The masters lose their data when they restart, as with the default settings of Redis.  The
 * clients try once and end, as a job of cron does.
 */
#include "test/lib/check.h"

#include <stdio.h>
#include <string.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#define MAX_TTL_MS 3000
#define EVERY_S 0.3

static struct cluster five, two;
static enum redlock_clock_guard clock_guard;
static unsigned refusals; /* Lines of the log that say that a master is no witness. */

static void on_log(void *arg, enum redlock_level level, const char *text)
{
    (void)level;
    (void)arg;
    refusals += strstr(text, "cannot report how long other masters have been warming: ") != NULL;
}

static void tune(struct redlock_options *opts)
{
    opts->max_ttl_ms = MAX_TTL_MS;
    opts->clock_guard = clock_guard;
    opts->log = on_log;
}

/* Open a client, try to lock, and close the client. */
static int try_once(enum pilot_kind kind, const char *masters, char *message, size_t size)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    int status;

    CHECK_INT(pilot_try_open(&pilot, kind, masters, tune), REDLOCK_OK);
    status = pilot_lock_for(&pilot, "x", MAX_TTL_MS, false, 0, &lease);
    (void)snprintf(message, size, "%s", pilot.message);
    if (status == REDLOCK_OK)
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
    return status;
}

static void wait_until(double end_s)
{
    while (cluster_now_s() < end_s)
        cluster_nap();
}

TEST(a_client_that_tries_once_gets_the_lock_in_the_end)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        double begun_s, tried_s, end_s;
        int status = PILOT_NEVER;
        char message[1024];

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 5);
        for (unsigned i = 0; i < 5; i++)
            (void)server_int(&five.server[i], "FLUSHALL");
        begun_s = cluster_now_s();
        end_s = begun_s + CLUSTER_WAIT_S;
        do {
            tried_s = cluster_now_s();
            status = try_once(kind, cluster_masters(&five), message, sizeof message);
            if (status != REDLOCK_OK) /* On a busy machine a majority may not have answered yet. */
                CHECK_HAS(message, "at most ");
            wait_until(tried_s + EVERY_S);
        } while (status != REDLOCK_OK && tried_s < end_s);
        CHECK_INT(status, REDLOCK_OK);
        CHECK(cluster_now_s() - begun_s >= MAX_TTL_MS / 1e3);
        for (unsigned i = 0; i < 5; i++) {
            CHECK_INT(server_int(&five.server[i], "HLEN redlock:witness"), 4);
            CHECK(server_int(&five.server[i], "PTTL redlock:witness") > 0);
        }
    }
}

/* Two masters are restarted.  When they vote again, two others may go. */
TEST(some_masters_warm_up_while_clients_come_and_go)
{
    double begun_s, end_s;
    char message[1024];
    long long epochs;

    cluster_ready(&five, 5);
    begun_s = cluster_now_s();
    end_s = begun_s + CLUSTER_WAIT_S;
    for (unsigned i = 0; i < 2; i++)
        server_restart(&five.server[i]);
    do {
        double tried_s = cluster_now_s();

        CHECK_INT(try_once(PILOT_BLOCKING, cluster_masters(&five), message, sizeof message),
                  REDLOCK_OK);
        epochs = 0;
        for (unsigned i = 0; i < 2; i++)
            epochs += server_int(&five.server[i], "HEXISTS redlock:master epoch");
        CHECK(epochs == 0 || cluster_now_s() - begun_s >= MAX_TTL_MS / 1e3);
        wait_until(tried_s + EVERY_S);
    } while (epochs < 2 && cluster_now_s() < end_s);
    CHECK_INT(epochs, 2);
    for (unsigned i = 2; i < 4; i++)
        server_kill(&five.server[i]);
    CHECK_INT(try_once(PILOT_LOOP, cluster_masters(&five), message, sizeof message), REDLOCK_OK);
}

/* A mark of somebody who noticed nothing is believed, but not that of a minority. */
TEST(fewer_than_a_majority_of_old_marks_are_not_believed)
{
    char message[1024];

    cluster_ready(&five, 5);
    for (unsigned i = 0; i < 5; i++)
        (void)server_int(&five.server[i], "FLUSHALL");
    CHECK_INT(try_once(PILOT_LOOP, cluster_masters(&five), message, sizeof message),
              REDLOCK_NOT_READY);
    for (unsigned i = 0; i < 2; i++)
        (void)server_int(
            &five.server[i], "EVAL %s 1 redlock:witness",
            "local old = string.format('%.0f', redis.call('time')[1] * 1000 - 1e8) "
            "for _, name in ipairs(redis.call('hkeys', KEYS[1])) do redis.call('hset', "
            "KEYS[1], name, (string.gsub(redis.call('hget', KEYS[1], name), '^%d+', "
            "old))) end return 0");
    CHECK_INT(try_once(PILOT_LOOP, cluster_masters(&five), message, sizeof message),
              REDLOCK_NOT_READY);
    for (unsigned i = 0; i < 5; i++)
        CHECK_INT(server_int(&five.server[i], "HEXISTS redlock:master epoch"), 0);
}

/* Then the client watches by itself, as before. */
static void check_watched(const char *masters, unsigned len, unsigned refused)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    double begun_s = cluster_now_s();

    refusals = 0;
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, masters, tune), REDLOCK_OK);
    CHECK_INT(pilot_lock_for(&pilot, "x", MAX_TTL_MS, false, 30000, &lease), REDLOCK_OK);
    CHECK(cluster_now_s() - begun_s >= MAX_TTL_MS / 1e3);
    CHECK_UINT(refusals, refused);
    CHECK(pilot_until_up(&pilot, len));
    CHECK_UINT((unsigned)pilot_stats(&pilot).connects, len);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

TEST(a_missing_right_is_told_once)
{
    cluster_ready(&five, 5);
    for (unsigned i = 0; i < 5; i++) {
        (void)server_int(&five.server[i], "FLUSHALL");
        (void)server_text(
            &five.server[i],
            "ACL SETUSER few reset on >pw ~x ~redlock:master ~redlock:wait:* &* +@all");
    }
    check_watched(cluster_masters_by(&five, "redis://few:pw@127.0.0.1:", ""), 5, 5);
}

/* With two masters a majority is both, and one of them is the master that warms. */
TEST(two_masters_need_a_client_that_stays)
{
    cluster_ready(&two, 2);
    for (unsigned i = 0; i < 2; i++)
        (void)server_int(&two.server[i], "FLUSHALL");
    check_watched(cluster_masters(&two), 2, 0);
}

TEST(with_the_clock_guard_per_vote_there_are_no_witnesses)
{
    char message[1024];

    cluster_ready(&five, 5);
    for (unsigned i = 0; i < 5; i++)
        (void)server_int(&five.server[i], "FLUSHALL");
    clock_guard = REDLOCK_CLOCK_GUARD_PER_VOTE;
    CHECK_INT(try_once(PILOT_LOOP, cluster_masters(&five), message, sizeof message),
              REDLOCK_NOT_READY);
    clock_guard = REDLOCK_CLOCK_GUARD_PERIODIC;
    for (unsigned i = 0; i < 5; i++)
        CHECK_INT(server_int(&five.server[i], "EXISTS redlock:witness"), 0);
}

CHECK_MAIN({"a_client_that_tries_once_gets_the_lock_in_the_end",
            a_client_that_tries_once_gets_the_lock_in_the_end},
           {"some_masters_warm_up_while_clients_come_and_go",
            some_masters_warm_up_while_clients_come_and_go},
           {"fewer_than_a_majority_of_old_marks_are_not_believed",
            fewer_than_a_majority_of_old_marks_are_not_believed},
           {"a_missing_right_is_told_once", a_missing_right_is_told_once},
           {"two_masters_need_a_client_that_stays", two_masters_need_a_client_that_stays},
           {"with_the_clock_guard_per_vote_there_are_no_witnesses",
            with_the_clock_guard_per_vote_there_are_no_witnesses})
