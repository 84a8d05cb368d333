/*
 * test-live-guard.c - the restart guard on real masters.  A master that is new, flushed or
 * restarted without data gets no vote until every lease that it may have granted is over.  A
 * master that has its data votes at once.
 */
#include "test/lib/check.h"

#include <stdlib.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

/* The longest leases of clients: a short one, which tests wait for; and a long one, during which
 * they start masters. */
#define SHORT_MS 3000
#define LONG_MS 10000

static struct cluster volatile_five, durable_five, lazy_five, three;

static uint32_t wanted_max_ttl_ms;

static void set_max_ttl(struct redlock_options *opts)
{
    opts->max_ttl_ms = wanted_max_ttl_ms;
}

static void open_for(struct pilot *pilot, enum pilot_kind kind, const struct cluster *cluster,
                     uint32_t max_ttl_ms)
{
    wanted_max_ttl_ms = max_ttl_ms;
    CHECK_INT(pilot_try_open(pilot, kind, cluster_masters(cluster), set_max_ttl), REDLOCK_OK);
}

/* Delete all locks and markers. */
static void make_new(struct cluster *cluster)
{
    for (unsigned i = 0; i < cluster->len; i++)
        (void)server_int(&cluster->server[i], "FLUSHALL");
}

/* ---- New masters ---- */

/* A durable master without a marker has granted nothing.  So it votes at once, not after the
 * default minute. */
TEST(new_durable_masters_vote_at_once)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot first, second;

        check_row = pilot_kind_name(kind);
        cluster_ready_durable(&durable_five, 5);
        make_new(&durable_five);
        pilot_open(&first, kind, cluster_masters(&durable_five), 0);
        CHECK_INT(pilot_lock(&first, "x", NULL, &lease), REDLOCK_OK);
        pilot_open(&second, kind, cluster_masters(&durable_five), 0);
        CHECK_INT(pilot_lock_for(&second, "y", 10000, false, 30000, &other), REDLOCK_OK);
        CHECK(pilot_until_up(&first, 5));
        CHECK(pilot_until_up(&second, 5));
        CHECK_INT(pilot_lock(&second, "x", NULL, &other), REDLOCK_CONTENDED);
        CHECK_INT(pilot_unlock(&first, lease), REDLOCK_OK);
        pilot_close(&second);
        pilot_close(&first);
    }
}

/* Both clients find no marker.  On each master they must agree on one epoch. */
TEST(two_clients_of_new_masters_agree)
{
    struct redlock_lease *lease, *other;
    struct pilot first, second;

    cluster_ready_durable(&durable_five, 5);
    make_new(&durable_five);
    pilot_open(&first, PILOT_BLOCKING, cluster_masters(&durable_five), 0);
    pilot_open(&second, PILOT_BLOCKING, cluster_masters(&durable_five), 0);
    CHECK_INT(pilot_lock_for(&first, "x", 30000, false, 30000, &lease), REDLOCK_OK);
    CHECK(pilot_until_up(&second, 5));
    CHECK_INT(pilot_lock(&second, "x", NULL, &other), REDLOCK_CONTENDED);
    CHECK_INT(pilot_unlock(&first, lease), REDLOCK_OK);
    CHECK_INT(pilot_lock(&second, "x", NULL, &other), REDLOCK_OK);
    pilot_close(&second);
    pilot_close(&first);
}

#define WARMING "is warming up: it is new or lost its data, and may vote in at most "

/* Ask for a lock that no master grants, until the message says how many seconds all five masters
 * still warm.  Returns these. */
static double ask_left_s(struct pilot *pilot)
{
    static const char begin[] =
        "acquire x: too few masters may vote yet: masters 1 to 5 (127.0.0.1:";
    static const char expected[] = "): each " WARMING;
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;
    struct redlock_lease *lease;
    const char *at;

    do {
        CHECK(pilot_lacks_votes(pilot_lock_for(pilot, "x", 1000, false, 0, &lease)));
        at = strstr(pilot->message, begin) ? strstr(pilot->message, expected) : NULL;
        if (at == NULL)
            pilot_turn(pilot);
    } while (at == NULL && cluster_now_s() < end_s);
    CHECK_HAS(pilot->message, begin);
    CHECK_HAS(pilot->message, expected);
    return strtod(at + strlen(expected), NULL);
}

/* A volatile master without a marker may be new, or may have lost its data. */
TEST(new_volatile_masters_are_watched_first)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;
        double begun_s;

        check_row = pilot_kind_name(kind);
        cluster_ready(&volatile_five, 5);
        make_new(&volatile_five);
        begun_s = cluster_now_s();
        open_for(&pilot, kind, &volatile_five, SHORT_MS);
        CHECK(ask_left_s(&pilot) <= SHORT_MS / 1e3 + 0.2);
        CHECK_INT(pilot_lock_for(&pilot, "x", 1000, false, 30000, &lease), REDLOCK_OK);
        CHECK(cluster_now_s() - begun_s >= SHORT_MS / 1e3);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

/* ---- The attack ---- */

static void restart(struct server *server)
{
    server_restart(server);
}

static void flush(struct server *server)
{
    (void)server_int(server, "FLUSHALL");
}

/* The master loses the lock, but keeps its marker, which is older. */
static void fail_power(struct server *server)
{
    server_fail_power(server, "x");
}

struct attack {
    const char *row;
    void (*forget)(struct server *server);
    enum pilot_kind kind; /* The holder's kind of client; the rival has the other kind. */
    struct cluster *five;
    void (*ready)(struct cluster *cluster, unsigned len);
};

static const struct attack attacks[] = {
    {"restarted, loop holds", restart, PILOT_LOOP, &volatile_five, cluster_ready},
    {"flushed, blocking holds", flush, PILOT_BLOCKING, &volatile_five, cluster_ready},
    {"without power, loop holds", fail_power, PILOT_LOOP, &lazy_five, cluster_ready_lazy},
};

struct sides {
    struct pilot holder, rival;
    struct redlock_lease *held, *taken;
};

/*
 * Three masters store a lock, while two are down.  Then these two come back, and one of the three
 * loses its data.  So a majority does not know of the lock.
 */
static void begin_attack(struct sides *sides, const struct attack *attack, uint32_t ttl_ms)
{
    struct cluster *five = attack->five;

    attack->ready(five, 5);
    for (unsigned i = 3; i < 5; i++)
        server_kill(&five->server[i]);
    open_for(&sides->holder, attack->kind, five, ttl_ms);
    CHECK_INT(pilot_lock_for(&sides->holder, "x", ttl_ms, false, 30000, &sides->held), REDLOCK_OK);
    for (unsigned i = 3; i < 5; i++) {
        server_restart(&five->server[i]);
        server_season(&five->server[i]);
    }
    attack->forget(&five->server[2]);
    open_for(&sides->rival, attack->kind == PILOT_LOOP ? PILOT_BLOCKING : PILOT_LOOP, five, ttl_ms);
}

static void end_attack(struct sides *sides)
{
    CHECK_INT(pilot_unlock(&sides->rival, sides->taken), REDLOCK_OK);
    (void)pilot_unlock(&sides->holder, sides->held);
    pilot_close(&sides->rival);
    pilot_close(&sides->holder);
}

TEST(a_master_that_forgot_does_not_help_a_second_owner)
{
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        struct sides sides;
        uint32_t remaining_ms;

        check_row = attacks[i].row;
        begin_attack(&sides, &attacks[i], LONG_MS);
        CHECK(pilot_lock_for(&sides.rival, "x", LONG_MS, false, 0, &sides.taken) != REDLOCK_OK);
        CHECK(redlock_remaining_ms(sides.held) > 0); /* Otherwise the test proves nothing. */
        CHECK_INT(pilot_lock_for(&sides.rival, "x", LONG_MS, false, 60000, &sides.taken),
                  REDLOCK_OK);
        remaining_ms = redlock_remaining_ms(sides.held);
        CHECK_UINT(remaining_ms, 0);
        end_attack(&sides);
    }
}

/* Without the guard the attack succeeds, so the test above proves something. */
TEST(without_the_guard_it_does)
{
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        struct sides sides;

        check_row = attacks[i].row;
        pilot_guarded = false;
        begin_attack(&sides, &attacks[i], 60000);
        CHECK_INT(pilot_lock_for(&sides.rival, "x", 60000, false, 0, &sides.taken), REDLOCK_OK);
        CHECK(redlock_remaining_ms(sides.held) > 0);
        CHECK(redlock_remaining_ms(sides.taken) > 0);
        end_attack(&sides);
        pilot_guarded = true;
    }
}

/* A majority stores a token that did not win the lock: one of these masters lost the holder's key,
 * and then stored the token.  A client that adopts the token must not be able to extend it. */
TEST(nor_does_it_help_to_extend)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *held, *adopted;
        struct pilot holder, heir;

        check_row = pilot_kind_name(kind);
        cluster_ready(&volatile_five, 5);
        (void)server_int(&volatile_five.server[0], "SET x token PX 60000");
        (void)server_int(&volatile_five.server[1], "SET x token PX 60000");
        pilot_open(&holder, kind, cluster_masters(&volatile_five), 0);
        pilot_open(&heir, kind, cluster_masters(&volatile_five), 0);
        CHECK(pilot_until_up(&holder, 5));
        CHECK(pilot_until_up(&heir, 5));
        CHECK_INT(pilot_lock_for(&holder, "x", 60000, false, 0, &held), REDLOCK_OK);
        flush(&volatile_five.server[2]);
        (void)server_int(&volatile_five.server[2], "SET x token PX 60000");
        CHECK_INT(redlock_adopt(heir.rl, "x", "token", NULL, &adopted), REDLOCK_OK);
        CHECK_INT(pilot_extend(&heir, adopted, 0), REDLOCK_UNREACHABLE);
        CHECK_UINT(redlock_remaining_ms(adopted), 0);
        CHECK(redlock_remaining_ms(held) > 0); /* Otherwise the test proves nothing. */
        pilot_close(&heir);
        pilot_close(&holder);
    }
}

/* ---- Voting at once ---- */

/* A durable master still stores the locks that it granted. */
TEST(a_durable_master_votes_when_it_is_back)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *held, *lease;
        struct pilot holder, rival;

        check_row = pilot_kind_name(kind);
        cluster_ready_durable(&durable_five, 5);
        pilot_open(&holder, kind, cluster_masters(&durable_five), 0);
        CHECK(pilot_until_up(&holder, 5));
        CHECK_INT(pilot_lock_for(&holder, "x", 60000, false, 0, &held), REDLOCK_OK);
        for (unsigned i = 0; i < 5; i++)
            server_restart(&durable_five.server[i]);
        pilot_open(&rival, kind, cluster_masters(&durable_five), 0);
        CHECK_INT(pilot_lock(&rival, "y", NULL, &lease), REDLOCK_OK);
        CHECK(pilot_until_up(&rival, 5));
        CHECK_INT(pilot_lock(&rival, "x", NULL, &lease), REDLOCK_CONTENDED);
        CHECK(pilot_until_connects(&holder, 10));
        CHECK(pilot_until_up(&holder, 5));
        CHECK_INT(pilot_unlock(&holder, held), REDLOCK_OK);
        CHECK_INT(pilot_lock(&rival, "x", NULL, &lease), REDLOCK_OK);
        pilot_close(&rival);
        pilot_close(&holder);
    }
}

/* A client that has just been opened gets a lock from a bare majority. */
TEST(the_first_lock_needs_a_majority_and_no_more)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        for (unsigned masters = 3; masters <= 5; masters += 2) {
            struct cluster *cluster = masters == 3 ? &three : &volatile_five;
            struct redlock_lease *lease;
            struct pilot pilot;

            check_row = pilot_kind_name(kind);
            cluster_ready(cluster, masters);
            for (unsigned i = 0; i < masters / 2; i++)
                server_kill(&cluster->server[i]);
            pilot_open(&pilot, kind, cluster_masters(cluster), 0);
            CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
            CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
            pilot_close(&pilot);
        }
    }
}

/* ---- Copies ---- */

/* Master 2 comes back with the data of master 3, which lack the locks of master 2.  Neither gets a
 * vote, because either may be the copy. */
TEST(a_copy_of_another_does_not_vote)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    const char *epoch;

    cluster_ready(&volatile_five, 5);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&volatile_five), 0);
    CHECK(pilot_until_up(&pilot, 5));
    server_kill(&volatile_five.server[1]);
    server_restart(&volatile_five.server[1]);
    server_season(&volatile_five.server[1]);
    epoch = server_text(&volatile_five.server[2], "HGET redlock:master epoch");
    (void)server_int(&volatile_five.server[1], "HSET redlock:master epoch %s", epoch);
    (void)server_int(&volatile_five.server[1], "CLIENT KILL TYPE normal"); /* To query it again. */
    CHECK(pilot_until_up(&pilot, 3));
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    CHECK_UINT(server_locks(&volatile_five.server[1]), 0);
    CHECK_UINT(server_locks(&volatile_five.server[2]), 0);
    server_pause(&volatile_five.server[4]);
    CHECK_INT(pilot_until_told(&pilot, "x", "has the same epoch as master 3"), REDLOCK_UNREACHABLE);
    CHECK_INT(pilot_until_told(&pilot, "x", "has the same epoch as master 2"), REDLOCK_UNREACHABLE);
    server_resume(&volatile_five.server[4]);
    server_season(&volatile_five.server[1]); /* Gives it an epoch of its own. */
    CHECK(pilot_until_up(&pilot, 5));
    pilot_close(&pilot);
}

/* ---- Closing ---- */

static bool is_on_all(void *arg)
{
    (void)arg;
    return cluster_count(&three, "x", NULL) == 3;
}

/* A link comes up again while the client is being closed.  The guard checks its master as usual;
 * then the master gets the release, for which the close waits. */
TEST(close_releases_also_where_the_link_was_lost)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&pilot, 3));
    CHECK_INT(pilot_lock_for(&pilot, "x", 60000, false, 0, &lease), REDLOCK_OK);
    CHECK(pilot_until(&pilot, is_on_all, NULL));
    (void)server_int(&three.server[0], "CLIENT KILL TYPE normal");
    pilot_close(&pilot);
    CHECK_UINT(cluster_count(&three, "x", NULL), 0);
}

/* ---- The watch ---- */

struct countdown {
    struct pilot *pilot;
    double below_s;
};

static bool has_come_down(void *arg)
{
    const struct countdown *countdown = arg;

    return ask_left_s(countdown->pilot) < countdown->below_s;
}

/* The watch takes a minute.  If it began anew, more time would be left than before. */
TEST(a_watch_outlives_its_connection)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        char nonce[20];
        struct pilot pilot;
        struct countdown countdown = {.pilot = &pilot};

        check_row = pilot_kind_name(kind);
        cluster_ready(&volatile_five, 5);
        make_new(&volatile_five);
        pilot_open(&pilot, kind, cluster_masters(&volatile_five), 0);
        CHECK(pilot_until_connects(&pilot, 5));
        countdown.below_s = ask_left_s(&pilot) - 2;
        CHECK(countdown.below_s < 60 * 1.02 + 0.1 - 2);
        CHECK(pilot_until(&pilot, has_come_down, &countdown));
        (void)snprintf(nonce, sizeof nonce, "%s",
                       server_text(&volatile_five.server[0], "HGET redlock:master nonce"));
        for (unsigned i = 0; i < 5; i++)
            (void)server_int(&volatile_five.server[i], "CLIENT KILL TYPE normal");
        CHECK(pilot_until_connects(&pilot, 10));
        CHECK(ask_left_s(&pilot) < countdown.below_s);
        CHECK_STR(server_text(&volatile_five.server[0], "HGET redlock:master nonce"), nonce);
        CHECK_UINT(pilot_stats(&pilot).masters_up, 0);
        pilot_close(&pilot);
    }
}

/* The client is closed, but its longest lease is in the markers of the other masters. */
TEST(a_client_of_longer_leases_is_respected)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot patient, hasty;
        double begun_s;

        check_row = pilot_kind_name(kind);
        cluster_ready(&volatile_five, 5);
        open_for(&patient, kind, &volatile_five, LONG_MS);
        CHECK(pilot_until_up(&patient, 5));
        pilot_close(&patient);
        CHECK_STR(server_text(&volatile_five.server[0], "HGET redlock:master max"), "10000");
        begun_s = cluster_now_s();
        server_restart(&volatile_five.server[2]);
        open_for(&hasty, kind, &volatile_five, SHORT_MS);
        CHECK(pilot_until_up(&hasty, 5));
        CHECK(cluster_now_s() - begun_s >= LONG_MS / 1e3);
        CHECK_STR(server_text(&volatile_five.server[0], "HGET redlock:master max"), "10000");
        pilot_close(&hasty);
    }
}

/* ---- Markers that are none ---- */

TEST(the_marker_is_no_lock)
{
    cluster_ready(&three, 3);
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease = NULL;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        pilot_open(&pilot, kind, cluster_masters(&three), 0);
        CHECK_INT(pilot_lock(&pilot, "redlock:master", NULL, &lease), REDLOCK_E_INVAL);
        CHECK_STR(pilot.message, "acquire: the resource name is that of the masters' markers");
        CHECK_INT(redlock_adopt(pilot.rl, "redlock:master", "t", NULL, &lease), REDLOCK_E_INVAL);
        CHECK_STR(redlock_errmsg(pilot.rl),
                  "adopt: the resource name is that of the masters' markers");
        CHECK(lease == NULL);
        pilot_close(&pilot);
    }
}

static void plant_text(struct server *server)
{
    (void)server_text(server, "SET redlock:master text");
}

static void fill(struct server *server)
{
    (void)server_text(server, "CONFIG SET maxmemory 1");
}

static void empty(struct server *server)
{
    (void)server_text(server, "CONFIG SET maxmemory 0");
}

static void unplant(struct server *server)
{
    (void)server_int(server, "DEL redlock:master");
    server_season(server);
}

struct obstacle {
    const char *row;
    void (*put)(struct server *server);
    void (*remove)(struct server *server);
    const char *message;
    bool votes; /* It counts as up: it has its marker, and lacks memory only for locks. */
};

static const struct obstacle obstacles[] = {
    {"a text", plant_text, unplant, "restart guard: WRONGTYPE Operation against a key", false},
    {"no memory", fill, empty, "OOM command not allowed", true},
};

/* Two of three masters are enough.  With only one of them, the message names the obstacle. */
static void check_obstacle(const struct obstacle *obstacle, enum pilot_kind kind)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    cluster_ready(&three, 3);
    obstacle->put(&three.server[0]);
    pilot_open(&pilot, kind, cluster_masters(&three), 0);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    CHECK(pilot_until_up(&pilot, 2 + obstacle->votes));
    server_kill(&three.server[2]);
    CHECK(pilot_until_up(&pilot, 1 + obstacle->votes));
    CHECK_INT(pilot_until_told(&pilot, "x", obstacle->message), REDLOCK_UNREACHABLE);
    CHECK_HAS(pilot.message, obstacle->message);
    obstacle->remove(&three.server[0]);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, false, 60000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

TEST(a_master_that_cannot_be_marked_is_told_of)
{
    for (size_t i = 0; i < sizeof obstacles / sizeof *obstacles; i++) {
        for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
            check_row = obstacles[i].row;
            check_obstacle(&obstacles[i], kind);
        }
    }
}

struct answer {
    const char *look, *message;
    int status;
};

#define GARBAGE "restart guard: answered with garbage", REDLOCK_UNREACHABLE
static const struct answer answers[] = {
    {"-READONLY You can't write\r\n", "restart guard: READONLY You can't write",
     REDLOCK_UNREACHABLE},
    {"-LOADING Redis is loading\r\n", "restart guard: LOADING Redis is loading",
     REDLOCK_UNREACHABLE},
    {"-NOPERM this user\r\n", "restart guard: NOPERM this user", REDLOCK_E_FORBIDDEN},
    {"+OK\r\n", GARBAGE},
    {":1\r\n", GARBAGE},
    {"$-1\r\n", GARBAGE},
    {"*1\r\n$34\r\nready 0123456789abcdef.0 60000 6 7 8 -\r\n", GARBAGE},
    {"$34\r\nready 0000000000000000 60000 6 7 8\r\n", GARBAGE},
    {"$34\r\nready 0123456789abcdeg 60000 6 7 8\r\n", GARBAGE},
    {"$36\r\nready 0123456789abcdef 60000 6 7 8 x\r\n", GARBAGE},
    {"$36\r\nready 0123456789abcdef 60000 6 7 8 9\r\n", GARBAGE},
    {"$31\r\nready 0123456789abcdef -5 6 7 8\r\n", GARBAGE},
    {"$35\r\nready 0123456789abcdef 60000 6 -7 8\r\n", GARBAGE},
    {"$49\r\nready 0123456789abcdef 60000 6 7 9007199254740992\r\n", GARBAGE},
    {"$32\r\nready 0123456789abcdef 60000 6 7\r\n", GARBAGE},
    {"$30\r\nready 0123456789abcdef 60000 6\r\n", GARBAGE},
    {"$49\r\nready 0123456789abcdef 60000 9007199254740992 7 8\r\n", GARBAGE},
    {"$28\r\nready 0123456789abcdef 60000\r\n", GARBAGE},
    {"$22\r\nready 0123456789abcdef\r\n", GARBAGE},
    {"$36\r\nwarming 0123456789abcdef 60000 0 1 7\r\n", GARBAGE},
    {"$38\r\nwarming 0123456789abcdef 60000 2 1 7 8\r\n", GARBAGE},
    {"$38\r\nwarming 0123456789abcdef 60000 0 1 7 8\r\n", GARBAGE},
    {"$7\r\nother 3\r\n", GARBAGE},
    {"$40\r\nwarming 0123456789abcdef 60000 0 1 7 8 -\r\n", "is in no set of masters yet",
     REDLOCK_NOT_READY},
    {"$62\r\nwarming 0123456789abcdef 60000 0 1 7 8 000000000000000a 1 a ab\r\n",
     "was removed from the set: take it off the list; the members are ab", REDLOCK_UNREACHABLE},
    {"$63\r\nwarming 0123456789abcdef 60000 0 1 7 8 000000000000000a 1 a b a\r\n", GARBAGE},
};

TEST(answers_to_a_look_are_not_trusted)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct fake_plan plan = {.way = FAKE_GOOD, .look = answers[i].look};
        struct redlock_lease *lease;
        struct pilot pilot;
        struct fake fake;
        char masters[32];

        check_row = answers[i].look;
        fake_start(&fake, &plan);
        (void)snprintf(masters, sizeof masters, "127.0.0.1:%u", fake.port);
        pilot_open(&pilot, PILOT_LOOP, masters, 0);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), answers[i].status);
        CHECK_HAS(pilot.message, answers[i].message);
        CHECK_UINT(pilot_stats(&pilot).masters_up, 0);
        pilot_close(&pilot);
        fake_stop(&fake);
    }
}

CHECK_MAIN({"new_durable_masters_vote_at_once", new_durable_masters_vote_at_once},
           {"two_clients_of_new_masters_agree", two_clients_of_new_masters_agree},
           {"new_volatile_masters_are_watched_first", new_volatile_masters_are_watched_first},
           {"a_master_that_forgot_does_not_help_a_second_owner",
            a_master_that_forgot_does_not_help_a_second_owner},
           {"without_the_guard_it_does", without_the_guard_it_does},
           {"nor_does_it_help_to_extend", nor_does_it_help_to_extend},
           {"a_durable_master_votes_when_it_is_back", a_durable_master_votes_when_it_is_back},
           {"the_first_lock_needs_a_majority_and_no_more",
            the_first_lock_needs_a_majority_and_no_more},
           {"a_copy_of_another_does_not_vote", a_copy_of_another_does_not_vote},
           {"close_releases_also_where_the_link_was_lost",
            close_releases_also_where_the_link_was_lost},
           {"a_watch_outlives_its_connection", a_watch_outlives_its_connection},
           {"a_client_of_longer_leases_is_respected", a_client_of_longer_leases_is_respected},
           {"the_marker_is_no_lock", the_marker_is_no_lock},
           {"a_master_that_cannot_be_marked_is_told_of", a_master_that_cannot_be_marked_is_told_of},
           {"answers_to_a_look_are_not_trusted", answers_to_a_look_are_not_trusted})
