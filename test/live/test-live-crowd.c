/*
 * test-live-crowd.c - crowds of waiters on real masters.  In a queue a hand-over wakes one of them,
 * and costs as many commands and bytes as with few.  Without a queue it wakes a few.
 *
 * Heartbeats and queries come once an hour, so that counts do not depend on how fast the machine
 * is.
 */
#include "test/lib/check.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "live/cluster.h"
#include "live/party.h"
#include "live/pilot.h"
#include "redlock/client/client.h"
#include "redlock/redlock.h"

#define MASTERS 3
#define CLIENTS 200
#define OF_ONE 500 /* Waiters of one client.  A queue takes 1024. */
#define OF_ONE_MAX 2000
#define NAME "crowd"

/* For each hand-over and master, from the release until the next holder has left the queue: a round
 * and its proof, leaving, and the release make 4.  On a busy machine some turns need two rounds. */
#define COMMANDS_MAX 8

/* One message of a release has 120 bytes, and 200 have 24 000. */
#define BYTES_MAX 1500

/* Of a crowd without a queue, this many hand the lock over.  If each told all, each master would
 * send more than 28 000 bytes for each: two messages of 70 to 200 clients. */
#define TURNS 60
#define BYTES_OF_GROUPS_MAX 8000

/* The heap of one client for each of OF_ONE_MAX waiters, with the name and without a note. */
#define HEAP_MAX 700

static struct cluster three;
static struct party parties[OF_ONE_MAX];

static struct redlock_lock_options options(void)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.fair = true;
    opts.wait_ms = UINT32_MAX;
    opts.ttl_ms = 60000;
    opts.retry_delay_min_ms = 1800000;
    opts.retry_delay_max_ms = 3600000;
    return opts;
}

/* 200 clients have 1200 connections. */
static void allow_descriptors(void)
{
    struct rlimit limit;

    CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The sum of a number in INFO of all masters. */
static uint64_t ask_all(const char *section, const char *field)
{
    uint64_t sum = 0;

    for (unsigned m = 0; m < MASTERS; m++) {
        const char *at = strstr(server_text(&three.server[m], "INFO %s", section), field);

        sum += at != NULL ? strtoull(at + strlen(field), NULL, 10) : 0;
    }
    return sum;
}

static uint64_t bytes_sent(void)
{
    return ask_all("stats", "total_net_output_bytes:");
}

static uint64_t proofs(void)
{
    return ask_all("commandstats", "cmdstat_hget:calls=");
}

/* The sums of all clients; the parties of one client share it. */
static struct redlock_stats sum_up(unsigned clients)
{
    struct redlock_stats sum = {.size = sizeof sum};

    for (unsigned i = 0; i < clients; i++) {
        struct redlock_stats stats = {.size = sizeof stats};

        CHECK_INT(redlock_stats(parties[i].rl, &stats), REDLOCK_OK);
        sum.commands += stats.commands;
        sum.rounds += stats.rounds;
    }
    return sum;
}

static bool are_up(void *arg)
{
    const unsigned *clients = arg;

    for (unsigned i = 0; i < *clients; i++) {
        struct redlock_stats stats = {.size = sizeof stats};

        CHECK_INT(redlock_stats(parties[i].rl, &stats), REDLOCK_OK);
        if (stats.masters_up < MASTERS)
            return false;
    }
    return true;
}

/* On each master, count() gives as many. */
static bool all_have(long long (*count)(struct server *server, const char *name), long long want)
{
    unsigned m = 0;

    while (m < MASTERS && count(&three.server[m], NAME) == want)
        m++;
    return m == MASTERS;
}

static bool are_queued(void *arg)
{
    return all_have(server_queued, *(const unsigned *)arg);
}

/* The first party has the lock, and the others are queued in order. */
static void begin(unsigned len)
{
    struct redlock_lock_options opts = options();

    for (unsigned i = 0; i < len; i++) {
        CHECK_INT(party_lock(&parties[i], NAME, &opts), REDLOCK_OK);
        CHECK(i > 0 || party_until(party_is_told, &parties[i]));
        CHECK(party_until(are_queued, &i));
    }
    CHECK_INT(parties[0].status, REDLOCK_OK);
}

static bool listen_all(void *arg)
{
    return all_have(server_listeners, *(const unsigned *)arg);
}

/* Each hands the lock over to the next. */
static void hand_over(unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        CHECK(party_until(party_is_told, &parties[i]));
        CHECK_INT(parties[i].status, REDLOCK_OK);
        CHECK_UINT(parties[i].place, i + 1);
        CHECK(i + 1 == len || parties[i + 1].status == PILOT_NEVER);
        CHECK_INT(redlock_unlock_async(parties[i].lease, NULL, NULL), REDLOCK_OK);
    }
}

TEST(a_hand_over_wakes_one_of_two_hundred_clients)
{
    unsigned clients = CLIENTS, others = CLIENTS - 1;
    uint64_t commands, bytes;

    allow_descriptors();
    cluster_ready(&three, MASTERS);
    cluster_found_list(cluster_masters(&three));
    for (unsigned i = 0; i < CLIENTS; i++)
        party_open(&parties[i], cluster_masters(&three), PILOT_REPLY_TIMEOUT_MS);
    CHECK(party_until(are_up, &clients));
    begin(CLIENTS);
    CHECK(party_until(listen_all, &others));
    commands = sum_up(CLIENTS).commands;
    bytes = bytes_sent();
    hand_over(CLIENTS);
    bytes = bytes_sent() - bytes;
    commands = sum_up(CLIENTS).commands - commands;
    CHECK_UINT(bytes / MASTERS / CLIENTS / BYTES_MAX, 0);
    CHECK_UINT(commands / MASTERS / CLIENTS / COMMANDS_MAX, 0);
    party_close_all(parties, CLIENTS);
}

/* Each waiter has the round that joins, and the one at its turn, which may need another on a busy
 * machine.  When its client begins to listen, only the first waiter has one more. */
TEST(many_waiters_of_one_client_make_no_storm)
{
    unsigned clients = 1;

    cluster_ready(&three, MASTERS);
    cluster_found_list(cluster_masters(&three));
    party_open(&parties[0], cluster_masters(&three), PILOT_REPLY_TIMEOUT_MS);
    CHECK(party_until(are_up, &clients));
    for (unsigned i = 1; i < OF_ONE; i++)
        parties[i] = (struct party){.rl = parties[0].rl, .status = PILOT_NEVER};
    begin(OF_ONE);
    CHECK(party_until(listen_all, &clients));
    hand_over(OF_ONE);
    CHECK_UINT(sum_up(1).rounds / (3 * OF_ONE), 0);
    party_close_all(parties, OF_ONE);
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* All wait, and links have given back what they needed to send so many commands at once. */
static bool takes_little(void *arg)
{
    const size_t *before = arg;

    return sum_up(1).rounds >= OF_ONE_MAX &&
           heap_bytes() < *before + (size_t)HEAP_MAX * (OF_ONE_MAX - 1);
}

static void wait_by_thousands(bool fair)
{
    struct redlock_lock_options opts = options();
    unsigned clients = 1;
    size_t before;

    cluster_ready(&three, MASTERS);
    cluster_found_list(cluster_masters(&three));
    party_open(&parties[0], cluster_masters(&three), PILOT_REPLY_TIMEOUT_MS);
    CHECK(party_until(are_up, &clients));
    opts.fair = fair;
    opts.note = "";
    for (unsigned i = 1; i < OF_ONE_MAX; i++)
        parties[i] = (struct party){.rl = parties[0].rl, .status = PILOT_NEVER};
    CHECK_INT(party_lock(&parties[0], NAME, &opts), REDLOCK_OK);
    CHECK(party_until(party_is_told, &parties[0]));
    before = heap_bytes();
    for (unsigned i = 1; i < OF_ONE_MAX; i++)
        CHECK_INT(party_lock(&parties[i], NAME, &opts), REDLOCK_OK);
    CHECK(party_until(takes_little, &before));
    party_close_all(parties, OF_ONE_MAX);
}

/* A sanitizer has a heap of its own, of which mallinfo2() knows nothing. */
TEST(a_waiter_takes_less_than_700_bytes)
{
    wait_by_thousands(true);
    wait_by_thousands(false);
}

static bool have_beaten(void *arg)
{
    const uint64_t *rounds = arg;

    return sum_up(1).rounds >= *rounds;
}

/* If each heartbeat came by itself, it would have a proof of its own.  On a busy machine more of
 * them go together, never fewer. */
TEST(heartbeats_of_one_client_share_their_proofs)
{
    unsigned clients = 1, waiters = OF_ONE / 2;
    struct redlock_lock_options opts = options();
    uint64_t rounds, before;

    cluster_ready(&three, MASTERS);
    cluster_found_list(cluster_masters(&three));
    party_open(&parties[0], cluster_masters(&three), PILOT_REPLY_TIMEOUT_MS);
    CHECK(party_until(are_up, &clients));
    opts.retry_delay_min_ms = opts.retry_delay_max_ms = 100;
    for (unsigned i = 1; i <= waiters; i++)
        parties[i] = (struct party){.rl = parties[0].rl, .status = PILOT_NEVER};
    for (unsigned i = 0; i <= waiters; i++)
        CHECK_INT(party_lock(&parties[i], NAME, &opts), REDLOCK_OK);
    CHECK(party_until(are_queued, &waiters));
    rounds = sum_up(1).rounds + 2 * waiters; /* By then each has brought its ticket to all. */
    CHECK(party_until(have_beaten, &rounds));
    before = proofs();
    CHECK(before > 0);
    rounds += 4 * waiters;
    CHECK(party_until(have_beaten, &rounds));
    CHECK_UINT((proofs() - before) * 10 / (4 * waiters * MASTERS), 0);
    party_close_all(parties, waiters + 1);
}

/* ---- Without a queue ---- */

/* How many listen in groups of one master. */
static long long grouped(struct server *server)
{
    return server_int(server, "EVAL %s 0 redlock:wait:" NAME,
                      "local sum = 0 "
                      "for i = 0, 15 do "
                      "local group = ARGV[1] .. '\\0' .. string.format('%x', i) "
                      "sum = sum + redis.call('pubsub', 'numsub', group)[2] "
                      "end "
                      "return sum");
}

static bool are_grouped(void *arg)
{
    const unsigned *waiters = arg;
    unsigned m = 0;

    while (m < MASTERS && grouped(&three.server[m]) == (long long)*waiters)
        m++;
    return m == MASTERS;
}

/* The channel of a client that waits, or has waited shortly before. */
static const struct channel *channel_of(const struct party *party)
{
    return channel_find(&party->rl->lines.channels, NAME, strlen(NAME), false);
}

/* All masters have answered its queries, so the wait flags are set. */
static bool have_queried(void *arg)
{
    const unsigned *clients = arg;

    for (unsigned i = 1; i < *clients; i++) {
        const struct channel *channel = channel_of(&parties[i]);

        if (channel == NULL || channel->wait.hears != 7 || channel->wait.looking != 0 ||
            channel->wait.to_look != 0)
            return false;
    }
    return true;
}

/* The holder has told that it has the lock. */
static bool has_told(void *arg)
{
    const struct channel *channel = channel_of(arg);

    return channel == NULL || (channel->wait.to_tell == 0 && channel->wait.looking == 0);
}

static struct party *new_holder(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        if (parties[i].status == REDLOCK_OK && parties[i].lease != NULL)
            return &parties[i];
    return NULL;
}

static bool has_holder(void *arg)
{
    (void)arg;
    return new_holder() != NULL;
}

/* Nobody queries for an hour.  So if a release told only clients that do not wait, a lease would
 * have to run out before the next holder. */
static void take_turns(unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        struct party *holder;

        CHECK(party_until(has_holder, NULL));
        holder = new_holder();
        CHECK(party_until(has_told, holder));
        CHECK_INT(redlock_unlock_async(holder->lease, NULL, NULL), REDLOCK_OK);
        holder->lease = NULL;
    }
}

TEST(a_release_wakes_a_few_of_two_hundred_clients)
{
    unsigned clients = CLIENTS, left = CLIENTS - 1;
    struct redlock_lock_options opts = options();
    uint64_t bytes;

    allow_descriptors();
    cluster_ready(&three, MASTERS);
    cluster_found_list(cluster_masters(&three));
    for (unsigned i = 0; i < CLIENTS; i++)
        party_open(&parties[i], cluster_masters(&three), PILOT_REPLY_TIMEOUT_MS);
    CHECK(party_until(are_up, &clients));
    opts.fair = false;
    for (unsigned i = 0; i < CLIENTS; i++) {
        CHECK_INT(party_lock(&parties[i], NAME, &opts), REDLOCK_OK);
        CHECK(i > 0 || party_until(party_is_told, &parties[i]));
    }
    CHECK(party_until(have_queried, &clients));
    CHECK(party_until(are_grouped, &left));
    bytes = bytes_sent();
    take_turns(TURNS);
    bytes = bytes_sent() - bytes;
    CHECK_UINT(bytes / MASTERS / TURNS / BYTES_OF_GROUPS_MAX, 0);
    left -= TURNS;
    CHECK(party_until(has_holder, NULL));
    CHECK(party_until(are_grouped, &left));
    take_turns(left + 1);
    party_close_all(parties, CLIENTS);
}

CHECK_MAIN(RUN(a_release_wakes_a_few_of_two_hundred_clients),
           RUN(a_hand_over_wakes_one_of_two_hundred_clients),
           RUN(many_waiters_of_one_client_make_no_storm), RUN(a_waiter_takes_less_than_700_bytes),
           RUN(heartbeats_of_one_client_share_their_proofs))
