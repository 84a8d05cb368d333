/*
 * test-live-fence.c - fencing tokens from real masters whose counters are equal, differ, or were
 * lost.
 */
#include "test/lib/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"
#include "redlock/wire/wire.h"
#include "test/lib/info.h"

#define SHORT_MS 800  /* The longest lease of tests that wait until all leases are over. */
#define LONG_MS 30000 /* No lease of the others ends, or is renewed, on a busy machine. */
#define NAME "x"

static struct cluster three, five, durable_three;

static void set_max_ttl(struct redlock_options *opts)
{
    opts->max_ttl_ms = SHORT_MS;
}

static void open_short(struct pilot *pilot, enum pilot_kind kind, const struct cluster *cluster)
{
    CHECK_INT(pilot_try_open(pilot, kind, cluster_masters(cluster), set_max_ttl), REDLOCK_OK);
}

static int lock_for(struct pilot *pilot, const char *name, uint32_t ttl_ms, uint32_t wait_ms,
                    struct redlock_lease **ret_lease)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = ttl_ms;
    opts.wait_ms = wait_ms;
    opts.fence = true;
    return pilot_lock(pilot, name, &opts, ret_lease);
}

/* Load the script that makes counters equal.  Otherwise a master that reports late that it lacks
 * the script would take no part in the lock. */
static void load(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->len; i++)
        (void)server_text(&cluster->server[i], "SCRIPT LOAD %s", script_all[SCRIPT_RAISE].text);
}

/* Lock, note the token, unlock.  On a busy machine a short lease may be over by then. */
static uint64_t draw_for(struct pilot *pilot, const char *name, uint32_t ttl_ms)
{
    struct redlock_lease *lease;
    uint64_t token;
    int status;

    CHECK_INT(lock_for(pilot, name, ttl_ms, 60000, &lease), REDLOCK_OK);
    token = info_fence(lease);
    CHECK(token > 0 && token < UINT64_C(1) << 53);
    status = pilot_unlock(pilot, lease);
    CHECK(status == REDLOCK_OK || (status == REDLOCK_LOST && ttl_ms == SHORT_MS));
    return token;
}

static uint64_t draw(struct pilot *pilot, const char *name)
{
    return draw_for(pilot, name, LONG_MS);
}

static uint64_t draw_short(struct pilot *pilot)
{
    return draw_for(pilot, NAME, SHORT_MS);
}

static uint64_t number_of(struct server *server, const char *field)
{
    const char *text = server_text(server, "HGET redlock:master %s", field);

    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static const char *counter_of(const char *name)
{
    static char field[8];

    (void)snprintf(field, sizeof field, "%u", wire_counter(name, strlen(name)));
    return field;
}

static uint64_t counted(struct server *server)
{
    return number_of(server, counter_of(NAME));
}

static void set_counter(struct server *server, uint64_t number)
{
    (void)server_int(server, "HSET redlock:master %s %llu", counter_of(NAME),
                     (unsigned long long)number);
}

static bool are_unlocked(void *arg)
{
    return cluster_count(arg, NAME, NULL) == 0;
}

/* Wait until all masters have released the lock, so that the next one finds equal counters. */
static void settle(struct pilot *pilot, struct cluster *cluster)
{
    CHECK(pilot_until(pilot, are_unlocked, cluster));
    CHECK(pilot_until_leases(pilot, 0));
}

/* ---- Equal counters, and others ---- */

TEST(one_round_trip_and_one_more_each_time)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_stats stats;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 5);
        load(&five);
        pilot_open(&pilot, kind, cluster_masters(&five), 0);
        CHECK(pilot_until_up(&pilot, 5));
        for (uint64_t i = 0; i < 20; i++) {
            CHECK_UINT(draw(&pilot, NAME), 2 + i); /* server_season() sets a floor of 1. */
            settle(&pilot, &five);
        }
        CHECK_UINT(draw(&pilot, "another"), 2);
        settle(&pilot, &five);
        stats = pilot_stats(&pilot);
        CHECK_UINT(stats.fenced, 21);
        CHECK_UINT(stats.raised, 0);
        CHECK_UINT(stats.commands, 21 * 20); /* SET, count, proof and release, on five masters. */
        for (unsigned i = 0; i < 5; i++) {
            CHECK_UINT(counted(&five.server[i]), 20);
            CHECK_INT(server_pttl(&five.server[i], "redlock:master"), -1);
        }
        pilot_close(&pilot);
    }
}

/* The numbers have 16 digits, as in practice, and Lua must not round them. */
TEST(two_round_trips_bring_them_in_step)
{
    static const uint64_t base = UINT64_C(1795240480123456);

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;
        unsigned agree = 0;
        uint64_t token;

        check_row = pilot_kind_name(kind);
        cluster_ready(&three, 3);
        load(&three);
        for (unsigned i = 0; i < 3; i++) {
            set_counter(&three.server[i], i + 1);
            (void)server_int(&three.server[i], "HSET redlock:master floor %llu high %llu",
                             (unsigned long long)base, (unsigned long long)base);
        }
        pilot_open(&pilot, kind, cluster_masters(&three), 0);
        CHECK(pilot_until_up(&pilot, 3));
        token = draw(&pilot, NAME);
        CHECK(token >= base + 4);
        settle(&pilot, &three);
        CHECK_UINT(pilot_stats(&pilot).raised, 1);
        for (unsigned i = 0; i < 3; i++) {
            agree += base + counted(&three.server[i]) == token;
            CHECK_UINT(number_of(&three.server[i], "high"), base + (1 << 14));
        }
        CHECK(agree >= 2); /* The third may be ahead of the number asked for. */
        CHECK(draw(&pilot, NAME) > token);
        pilot_close(&pilot);
    }
}

/* A number above the marker's field high costs one raise, whose script also moves high. */
TEST(a_number_above_the_mark_is_raised)
{
    struct pilot pilot;
    uint64_t high;

    cluster_ready(&three, 3);
    load(&three);
    high = number_of(&three.server[0], "high");
    for (unsigned i = 0; i < 3; i++)
        set_counter(&three.server[i], high - 2); /* Counted from the floor, which is 1. */
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&pilot, 3));
    CHECK_UINT(draw(&pilot, NAME), high);
    settle(&pilot, &three);
    CHECK_UINT(pilot_stats(&pilot).raised, 0);
    CHECK_UINT(draw(&pilot, NAME), high + 2);
    settle(&pilot, &three);
    CHECK_UINT(pilot_stats(&pilot).raised, 1);
    for (unsigned i = 0; i < 3; i++)
        CHECK_UINT(number_of(&three.server[i], "high"), high + (1 << 14));
    CHECK_UINT(draw(&pilot, NAME), high + 3);
    CHECK_UINT(pilot_stats(&pilot).raised, 1);
    pilot_close(&pilot);
}

TEST(scripts_that_are_gone_are_sent_again)
{
    struct pilot pilot;

    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&pilot, 3));
    for (unsigned i = 0; i < 3; i++) {
        set_counter(&three.server[i], 10 * (i + 1));
        (void)server_text(&three.server[i], "SCRIPT FLUSH");
    }
    CHECK(draw(&pilot, NAME) >= 22);
    CHECK_UINT(pilot_stats(&pilot).raised, 1);
    pilot_close(&pilot);
}

/* The first round already has a token, also if its heartbeat had to be sent again with its script.
 */
TEST(a_heartbeat_that_is_sent_again_is_counted_again)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct pilot pilot;

    redlock_lock_options_init(&opts);
    opts.fence = opts.fair = true;
    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&pilot, 3));
    for (unsigned i = 0; i < 3; i++)
        (void)server_text(&three.server[i], "SCRIPT FLUSH");
    CHECK_INT(pilot_lock(&pilot, NAME, &opts, &lease), REDLOCK_OK);
    CHECK_UINT(info_fence(lease), 3); /* The floor is 1, and each master has counted twice. */
    CHECK_UINT(pilot_stats(&pilot).rounds, 1);
    CHECK_UINT(pilot_stats(&pilot).raised, 0);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    CHECK(cluster_until_queued(&three, NAME, 0, 3)); /* The third may be late. */
    pilot_close(&pilot);
}

TEST(only_who_wants_one_pays)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    CHECK_INT(pilot_lock(&pilot, NAME, NULL, &lease), REDLOCK_OK);
    CHECK_UINT(info_fence(lease), 0);
    CHECK_UINT(info_fence(NULL), 0);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    settle(&pilot, &three);
    for (unsigned i = 0; i < 3; i++)
        CHECK_UINT(counted(&three.server[i]), 0);
    CHECK_UINT(pilot_stats(&pilot).fenced, 0);
    CHECK_INT(redlock_adopt(pilot.rl, NAME, "t", NULL, &lease), REDLOCK_OK);
    CHECK_UINT(info_fence(lease), 0);
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    pilot_close(&pilot);
}

TEST(a_token_lasts_as_long_as_its_lease)
{
    struct redlock_lease *lease, *other;
    uint64_t token;
    struct pilot pilot;

    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&three), 0);
    CHECK_INT(lock_for(&pilot, NAME, LONG_MS, 0, &lease), REDLOCK_OK);
    token = info_fence(lease);
    CHECK_INT(lock_for(&pilot, NAME, LONG_MS, 0, &other), REDLOCK_CONTENDED);
    CHECK_INT(pilot_extend(&pilot, lease, 0), REDLOCK_OK);
    CHECK_UINT(info_fence(lease), token);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    CHECK(draw(&pilot, NAME) > token);
    pilot_close(&pilot);
}

TEST(without_the_guard_there_are_none)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    cluster_ready(&three, 3);
    pilot_guarded = false;
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    pilot_guarded = true;
    CHECK_INT(lock_for(&pilot, NAME, LONG_MS, 0, &lease), REDLOCK_E_INVAL);
    CHECK_HAS(pilot.message, "fence is set, and restart_guard is not");
    pilot_close(&pilot);
}

/* ---- Counters that were lost ---- */

static void flush(struct server *server)
{
    (void)server_text(server, "FLUSHALL");
}

static void evict(struct server *server)
{
    (void)server_int(server, "DEL redlock:master");
}

static void restart_empty(struct server *server)
{
    server_kill(server);
    server_restart(server);
}

static void lose_epoch(struct server *server)
{
    (void)server_int(server, "HDEL redlock:master epoch");
}

static void lose_floor(struct server *server)
{
    (void)server_int(server, "HDEL redlock:master floor");
    (void)server_int(server, "CLIENT KILL TYPE normal"); /* The client must query it again. */
}

/* Make the marker look like one from a snapshot of an earlier run. */
static void restore(struct server *server)
{
    (void)server_int(server, "HSET redlock:master id 0123456789012345678901234567890123456789");
    set_counter(server, 1000);
    (void)server_int(server, "HSET redlock:master high 1");
    (void)server_int(server, "CLIENT KILL TYPE normal");
}

static const struct loss {
    const char *row;
    void (*lose)(struct server *server);
} losses[] = {
    {"FLUSHALL", flush},        {"evicted", evict},         {"restarted empty", restart_empty},
    {"epoch gone", lose_epoch}, {"floor gone", lose_floor}, {"snapshot", restore},
};

/* The number of an epoch, without the version behind it; "": there is none. */
static void read_epoch(struct server *server, char epoch[17])
{
    const char *text = server_text(server, "HGET redlock:master epoch");

    (void)snprintf(epoch, 17, "%.16s", text != NULL ? text : "");
}

static char old_epoch[17];

static bool has_another_epoch(void *arg)
{
    char epoch[17];

    read_epoch(arg, epoch);
    return epoch[0] != '\0' && strcmp(epoch, old_epoch) != 0;
}

/* A master that lost its data gets a floor that is not below the others' field high, and begins
 * without old counters. */
static void check_loss(const struct loss *loss, enum pilot_kind kind)
{
    struct pilot pilot;
    uint64_t token, high;

    cluster_ready(&three, 3);
    open_short(&pilot, kind, &three);
    CHECK(pilot_until_up(&pilot, 3));
    for (unsigned i = 0; i < 30; i++)
        token = draw_short(&pilot);
    CHECK(token > 30);
    settle(&pilot, &three);
    high = number_of(&three.server[2], "high"); /* It grows once server 0 counts again. */
    read_epoch(&three.server[0], old_epoch);
    loss->lose(&three.server[0]);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t next = draw_short(&pilot);

        CHECK(next > token);
        token = next;
    }
    CHECK(pilot_until(&pilot, has_another_epoch, &three.server[0])); /* Clients notice late. */
    CHECK(pilot_until_up(&pilot, 3));
    settle(&pilot, &three);
    CHECK(number_of(&three.server[0], "floor") >= high);
    CHECK_UINT(number_of(&three.server[0], "high"),
               number_of(&three.server[0], "floor") + (1 << 14));
    CHECK(counted(&three.server[0]) < 30);
    server_kill(&three.server[1]); /* Now the lock needs the vote of server 0. */
    CHECK(draw_short(&pilot) > token);
    pilot_close(&pilot);
}

TEST(a_master_that_forgot_counts_on)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        check_row = losses[i].row;
        check_loss(&losses[i], i % 2 == 0 ? PILOT_LOOP : PILOT_BLOCKING);
    }
}

TEST(where_all_forgot_the_clocks_count_on)
{
    struct pilot pilot;
    uint64_t token, time_us;

    cluster_ready(&three, 3);
    open_short(&pilot, PILOT_BLOCKING, &three);
    token = draw_short(&pilot);
    settle(&pilot, &three);
    time_us = (uint64_t)server_int(&three.server[0], "EVAL %s 0",
                                   "local t=redis.call('time') return t[1]*1000000+t[2]");
    for (unsigned i = 0; i < 3; i++)
        flush(&three.server[i]);
    CHECK(draw_short(&pilot) > time_us && time_us > token);
    pilot_close(&pilot);
}

/* New durable masters take the time as their floor, and vote at once. */
TEST(new_masters_begin_with_the_time)
{
    struct pilot pilot;
    uint64_t time_us;

    cluster_ready_durable(&durable_three, 3);
    for (unsigned i = 0; i < 3; i++)
        flush(&durable_three.server[i]);
    load(&durable_three);
    time_us = (uint64_t)server_int(&durable_three.server[0], "EVAL %s 0",
                                   "local t=redis.call('time') return t[1]*1000000+t[2]");
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&durable_three), 0);
    CHECK(pilot_until_up(&pilot, 3));
    CHECK(draw(&pilot, NAME) > time_us);
    CHECK(draw(&pilot, NAME) < time_us + UINT64_C(60000000));
    CHECK_UINT(pilot_stats(&pilot).raised, 0); /* All have the same floor. */
    pilot_close(&pilot);
}

/* Durable masters keep their counters over a restart. */
TEST(who_keeps_what_it_is_told_keeps_its_counters)
{
    struct pilot pilot;
    uint64_t token, next, rounds;

    cluster_ready_durable(&durable_three, 3);
    load(&durable_three);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&durable_three), 0);
    /* A master that is not up when the round is won does not count, and its number stays behind. */
    CHECK(pilot_until_up(&pilot, 3));
    token = draw(&pilot, NAME);
    settle(&pilot, &durable_three);
    for (unsigned i = 0; i < 3; i++)
        restart_empty(&durable_three.server[i]); /* A durable one is not empty. */
    CHECK(pilot_until_connects(&pilot, 6));
    CHECK(pilot_until_up(&pilot, 3));
    load(&durable_three);
    rounds = pilot_stats(&pilot).rounds;
    next = draw(&pilot, NAME);
    CHECK(next > token);
    if (rounds == 1 && pilot_stats(&pilot).rounds == 2) {
        CHECK_UINT(next, token + 1);
        CHECK_UINT(pilot_stats(&pilot).raised, 0);
    } else { /* The machine was busy.  A lost round counts where it arrives, so numbers may differ.
              * A new counter begins with the time in microseconds. */
        CHECK(next - token < 1000);
    }
    pilot_close(&pilot);
}

/* ---- Repairs ---- */

#define OLD "1111111111111111"
#define NEW "2222222222222222"
#define FLOOR "1800000000000000" /* Lua's tostring() writes it 1.8e+15. */
#define HIGH "1800000000016384"

/* Query the marker.  number: the new nonce or epoch.  nonce: the one that the client saw last. */
static const char *look(struct server *server, const char *number, const char *nonce)
{
    const char *text =
        server_text(server, "EVAL %s 1 redlock:master run 0 1000 %s %s %s " FLOOR " 0 %s %s",
                    script_all[SCRIPT_LOOK].text, number, nonce, "", "", "");

    return text != NULL ? text : "";
}

/* A client that repairs a master is stopped.  Meanwhile the master loses its data again, and
 * another client begins a repair.  When the first goes on, it must install nothing. */
TEST(an_old_repairer_installs_nothing)
{
    struct server *server = &three.server[0];

    cluster_ready(&three, 3);
    evict(server);
    CHECK_HAS(look(server, OLD, ""), "warming " OLD " ");
    evict(server);
    CHECK_HAS(look(server, NEW, ""), "warming " NEW " ");
    CHECK_HAS(look(server, "3333333333333333", OLD), "warming " NEW " ");
    CHECK_UINT(number_of(server, "floor"), 0);
    set_counter(server, 7); /* A counter from a snapshot. */
    CHECK_HAS(look(server, "3333333333333333", NEW),
              "ready 3333333333333333.0 1000 " FLOOR " " HIGH " ");
    CHECK_STR(server_text(server, "HGET redlock:master floor"), FLOOR);
    CHECK_STR(server_text(server, "HGET redlock:master high"), HIGH);
    CHECK_STR(server_text(server, "HGET redlock:master epoch"), "3333333333333333.0");
    CHECK(server_text(server, "HGET redlock:master nonce") == NULL);
    CHECK_UINT(counted(server), 0);
    server_season(server);
}

/* A master without memory for the floor keeps its marker.  Without one it would count as new. */
TEST(a_repair_that_fails_deletes_nothing)
{
    struct server *server = &three.server[0];
    redisReply *reply;

    cluster_ready(&three, 3);
    evict(server);
    CHECK_HAS(look(server, OLD, ""), "warming " OLD " ");
    (void)server_text(server, "CONFIG SET maxmemory 1");
    reply = redisCommand(server->control,
                         "EVAL %s 1 redlock:master run 0 1000 " NEW " " OLD " %s " FLOOR " 0 %s %s",
                         script_all[SCRIPT_LOOK].text, "", "", "");
    CHECK(reply != NULL && reply->type == REDIS_REPLY_ERROR);
    CHECK_HAS(reply->str, "OOM");
    freeReplyObject(reply);
    (void)server_text(server, "CONFIG SET maxmemory 0");
    CHECK_STR(server_text(server, "HGET redlock:master nonce"), OLD);
    server_season(server);
}

/* ---- Counters that are wrong ---- */

static void set_wrong(struct server *server)
{
    set_counter(server, UINT64_C(9007199254740000));
}

TEST(a_number_far_ahead_of_the_clock_is_not_handed_on)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    uint64_t token;

    cluster_ready(&three, 3);
    load(&three);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&pilot, 3));
    token = draw(&pilot, NAME);
    settle(&pilot, &three);
    set_wrong(&three.server[1]);
    CHECK_UINT(draw(&pilot, NAME), token + 1); /* The two others agree on it. */
    settle(&pilot, &three);
    set_wrong(&three.server[2]);
    CHECK_INT(lock_for(&pilot, NAME, LONG_MS, 0, &lease), REDLOCK_UNREACHABLE);
    CHECK_HAS(pilot.message, "the fencing counter is days ahead of the clock");
    settle(&pilot, &three);
    CHECK_UINT(draw(&pilot, "another"), 2);                        /* Other names work. */
    CHECK_INT(pilot_lock(&pilot, NAME, NULL, &lease), REDLOCK_OK); /* So do plain locks. */
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* If masters lose the keys of a lock, still no other client gets its fencing token. */
TEST(who_lost_the_key_does_not_help)
{
    struct redlock_lease *lease, *other;
    struct pilot pilot;
    uint64_t token;

    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&pilot, 3));
    CHECK_INT(lock_for(&pilot, NAME, LONG_MS, 0, &lease), REDLOCK_OK);
    token = info_fence(lease);
    for (unsigned i = 0; i < 3; i++)
        server_forget_locks(&three.server[i]);
    CHECK_INT(lock_for(&pilot, NAME, LONG_MS, 0, &other), REDLOCK_OK);
    CHECK(info_fence(other) > token);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
    CHECK_INT(pilot_unlock(&pilot, other), REDLOCK_OK);
    pilot_close(&pilot);
}

CHECK_MAIN(RUN(one_round_trip_and_one_more_each_time), RUN(two_round_trips_bring_them_in_step),
           RUN(a_number_above_the_mark_is_raised), RUN(scripts_that_are_gone_are_sent_again),
           RUN(only_who_wants_one_pays), RUN(a_heartbeat_that_is_sent_again_is_counted_again),
           RUN(a_token_lasts_as_long_as_its_lease), RUN(without_the_guard_there_are_none),
           RUN(a_master_that_forgot_counts_on), RUN(where_all_forgot_the_clocks_count_on),
           RUN(new_masters_begin_with_the_time), RUN(who_keeps_what_it_is_told_keeps_its_counters),
           RUN(an_old_repairer_installs_nothing), RUN(a_repair_that_fails_deletes_nothing),
           RUN(a_number_far_ahead_of_the_clock_is_not_handed_on),
           RUN(who_lost_the_key_does_not_help))
