/*
 * test-live-set.c - clients found a set of masters, and obey it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/base/mask.h"
#include "redlock/redlock.h"
#include "test/lib/check.h"

#define LISTS 2
#define ROUNDS 8
#define WAIT_MS 2500 /* A list that met another tries again after up to two seconds. */
#define BRIEF_MS 500 /* One list only. */

static struct cluster five, volatile_five;

/* New masters, which keep what is written to them, so they vote at once. */
static void make_new(void)
{
    pilot_founds = false;
    cluster_ready_durable(&five, 5);
    for (unsigned i = 0; i < five.len; i++)
        (void)server_int(&five.server[i], "FLUSHALL");
}

/* "127.0.0.1:port,..." of these servers, counted from 1. */
static const char *list_of(const char *numbers, char list[200])
{
    size_t len = 0;

    for (const char *p = numbers; *p != '\0'; p++)
        len += (size_t)snprintf(list + len, 200 - len, "%s127.0.0.1:%u", len > 0 ? "," : "",
                                five.server[*p - '1'].port);
    return list;
}

/* The number of the set of a server, or NULL. */
static const char *set_of(struct server *server)
{
    return server_text(server, "HGET redlock:master set");
}

/* ---- One client ---- */

TEST(the_first_call_founds_the_set)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;
        char list[200], config[200], set[20];

        check_row = pilot_kind_name(kind);
        make_new();
        pilot_open(&pilot, kind, list_of("312", list), 0);
        CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 0, &lease), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 3));
        (void)snprintf(set, sizeof set, "%s", set_of(&five.server[0]));
        CHECK_UINT(strlen(set), 16);
        (void)snprintf(config, sizeof config, "127.0.0.1:%u 127.0.0.1:%u 127.0.0.1:%u",
                       five.server[0].port, five.server[1].port, five.server[2].port);
        for (unsigned i = 0; i < 3; i++) {
            CHECK_STR(set_of(&five.server[i]), set);
            CHECK(strchr(server_text(&five.server[i], "HGET redlock:master epoch"), '.') != NULL);
            CHECK_STR(server_text(&five.server[i], "HGET redlock:master of"), "set");
        }
        CHECK(set_of(&five.server[3]) == NULL);
        pilot_close(&pilot);
    }
}

/* The whole list must answer once.  Afterwards a majority is enough. */
TEST(all_masters_found_and_a_majority_goes_on)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    char list[200];

    make_new();
    server_kill(&five.server[2]);
    pilot_open(&pilot, PILOT_BLOCKING, list_of("123", list), 0);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    CHECK_INT(pilot_until_told(&pilot, "x", "is in no set of masters yet"), REDLOCK_UNREACHABLE);
    CHECK(set_of(&five.server[0]) == NULL);
    server_restart(&five.server[2]);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 60000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
    server_kill(&five.server[2]);
    pilot_open(&pilot, PILOT_BLOCKING, list, 0);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 60000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

static bool has_set(void *arg)
{
    return set_of(arg) != NULL;
}

/* A member that lost its data is told its set while it warms up. */
TEST(a_member_that_forgot_is_told_its_set)
{
    struct server *server = &volatile_five.server[1];
    struct pilot pilot;
    char set[20];

    cluster_ready(&volatile_five, 5);
    (void)snprintf(set, sizeof set, "%s", set_of(&volatile_five.server[0]));
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&volatile_five), 0);
    CHECK(pilot_until_up(&pilot, 5));
    server_restart(server);
    CHECK(pilot_until_connects(&pilot, 6));
    CHECK(pilot_until(&pilot, has_set, server));
    CHECK_STR(set_of(server), set);
    CHECK(server_text(server, "HGET redlock:master nonce") != NULL);
    CHECK(server_text(server, "HGET redlock:master epoch") == NULL);
    pilot_close(&pilot);
}

/* ---- Wrong lists ---- */

/* A majority may answer, and give a lock, before the stranger has said that it is one. */
static int lock_until_refused(struct pilot *pilot, const char *message)
{
    struct redlock_lease *lease;

    for (unsigned i = 0; i < 1000 && pilot_lock(pilot, "x", NULL, &lease) == REDLOCK_OK; i++)
        (void)pilot_unlock(pilot, lease); /* UNREACHABLE, if the stranger answers meanwhile. */
    return pilot_until_told(pilot, "x", message);
}

static void check_refused(const char *numbers, const char *message)
{
    struct pilot pilot;
    char list[200];

    check_row = numbers;
    pilot_open(&pilot, PILOT_BLOCKING, list_of(numbers, list), 0);
    CHECK_INT(lock_until_refused(&pilot, message), REDLOCK_E_WRONG_SET);
    pilot_close(&pilot);
    CHECK_INT(server_int(&five.server[2], "EXISTS x"), 0);
}

/* Some members are enough: they name the others.  A stranger is too much. */
TEST(lists_with_strangers_are_refused)
{
    static const char *const good[] = {"12", "3", "321"}, *const bad[] = {"1234", "345", "43"};
    struct redlock_lease *lease, *other;
    struct pilot pilot, second;
    char list[200];

    make_new();
    pilot_open(&pilot, PILOT_BLOCKING, list_of("123", list), 0);
    CHECK_INT(pilot_lock_for(&pilot, "y", 30000, true, 0, &lease), REDLOCK_OK);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        check_row = good[i];
        pilot_open(&second, PILOT_BLOCKING, list_of(good[i], list), 0);
        CHECK_INT(pilot_lock_for(&second, "x", 30000, true, 0, &other), REDLOCK_OK);
        CHECK_INT(pilot_lock_for(&second, "y", 30000, true, 0, &other), REDLOCK_CONTENDED);
        pilot_close(&second);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(bad[i], "is no member of the set: take it off the list, or add it "
                              "(redlock members); the members are 127.0.0.1:");
    CHECK(set_of(&five.server[3]) == NULL && set_of(&five.server[4]) == NULL);
    pilot_close(&pilot);
}

static void found(const char *numbers)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    char list[200];

    pilot_open(&pilot, PILOT_BLOCKING, list_of(numbers, list), 0);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 0, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* It is chance which set the client obeys, so which masters are refused. */
TEST(a_list_of_two_sets_is_told_as_data)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_reason reason = {.size = sizeof reason};
        struct pilot pilot;
        quorum_mask wrong = 0;
        char list[200];

        check_row = pilot_kind_name(kind);
        make_new();
        found("123");
        found("45");
        pilot_open(&pilot, kind, list_of("124", list), 0);
        CHECK_INT(lock_until_refused(&pilot, " a member of the set of "), REDLOCK_E_WRONG_SET);
        /* Links that were closed with the list decide nothing. */
        for (unsigned i = 0; redlock_reason(pilot.rl, i, &reason) == REDLOCK_OK && reason.decides;
             i++) {
            wrong |= mask_of(reason.master - 1);
            CHECK_STR(reason.id, "wrong-set");
            CHECK_UINT(reason.over_ms, UINT32_MAX);
            CHECK_HAS(list, reason.address);
            CHECK_HAS(reason.words, "127.0.0.1:");
        }
        CHECK(wrong == mask_of(2) || (wrong != 0 && (wrong & mask_of(2)) == 0));
        pilot_close(&pilot);
    }
}

/* The stranger answers when the client holds a lock already.  Whatever the client has stored on the
 * members must not keep the others out until it expires. */
TEST(a_client_with_a_wrong_list_leaves_no_lock_behind)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    char list[200];

    make_new();
    pilot_open(&pilot, PILOT_BLOCKING, list_of("123", list), 0);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 0, &lease), REDLOCK_OK);
    pilot_close(&pilot);
    server_pause(&five.server[3]);
    pilot_open(&pilot, PILOT_BLOCKING, list_of("1234", list), 0);
    CHECK_INT(pilot_lock_for(&pilot, "held", 30000, true, 0, &lease), REDLOCK_OK);
    server_resume(&five.server[3]);
    CHECK_INT(lock_until_refused(&pilot, "is no member of the set"), REDLOCK_E_WRONG_SET);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(server_int(&five.server[i], "EXISTS x held"), 0);
}

/* The data of one master are old, or a copy, and it answers first. */
TEST(one_master_of_another_set_does_not_decide)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    char list[200];

    make_new();
    pilot_open(&pilot, PILOT_BLOCKING, list_of("123", list), 0);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 0, &lease), REDLOCK_OK);
    pilot_close(&pilot);
    (void)server_text(&five.server[0], "HSET redlock:master set 1111111111111111");
    server_pause(&five.server[1]);
    server_pause(&five.server[2]);
    pilot_open(&pilot, PILOT_BLOCKING, list, 0);
    CHECK_INT(pilot_lock(&pilot, "z", NULL, &lease), REDLOCK_UNREACHABLE);
    server_resume(&five.server[1]);
    server_resume(&five.server[2]);
    CHECK_INT(pilot_lock_for(&pilot, "z", 30000, true, 60000, &lease), REDLOCK_OK);
    CHECK(server_text(&five.server[0], "GET z") == NULL); /* It may not vote. */
    pilot_close(&pilot);
}

/* ---- Two lists that share a master ---- */

static atomic_uint winners;

struct rival {
    const char *list;
    unsigned delay_ms;
    bool same; /* All rivals have the same list, so the loser hears that the lock is held. */
    struct redlock *rl;
    struct redlock_lease *lease;
    int status;
    pthread_t thread;
};

/* On a busy machine one wait may be too short to found a set.  So wait again, until one of two
 * lists has the lock, or until all know that the lock is held. */
static void *compete(void *arg)
{
    struct rival *rival = arg;
    const struct timespec delay = {.tv_nsec = rival->delay_ms * 1000000L};
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;
    struct redlock_lock_options lock;
    struct redlock_options opts;

    (void)nanosleep(&delay, NULL);
    redlock_options_init(&opts);
    opts.masters = rival->list;
    opts.reply_timeout_ms = opts.connect_timeout_ms = PILOT_REPLY_TIMEOUT_MS;
    rival->status = redlock_open(&opts, &rival->rl);
    if (rival->status != REDLOCK_OK)
        return NULL;
    redlock_lock_options_init(&lock);
    lock.wait_ms = rival->same ? BRIEF_MS : WAIT_MS;
    lock.ttl_ms = 30000;
    do {
        rival->status = redlock_lock(rival->rl, "x", &lock, &rival->lease);
    } while (pilot_lacks_votes(rival->status) && (rival->same || atomic_load(&winners) == 0) &&
             cluster_now_s() < end_s);
    atomic_fetch_add(&winners, rival->status == REDLOCK_OK);
    return NULL;
}

static void let_compete(struct rival rivals[LISTS])
{
    atomic_store(&winners, 0);
    for (unsigned i = 0; i < LISTS; i++)
        CHECK_INT(pthread_create(&rivals[i].thread, NULL, compete, &rivals[i]), 0);
    for (unsigned i = 0; i < LISTS; i++)
        (void)pthread_join(rivals[i].thread, NULL);
}

static void check_rivals(struct rival rivals[LISTS])
{
    let_compete(rivals);
    CHECK(atomic_load(&winners) <= 1);
    if (set_of(&five.server[2]) != NULL)
        CHECK((set_of(&five.server[0]) == NULL) != (set_of(&five.server[4]) == NULL));
    for (unsigned i = 0; i < LISTS; i++)
        (void)redlock_close(rivals[i].rl);
}

TEST(two_lists_that_share_a_master_never_both_hold)
{
    static const unsigned delays_ms[ROUNDS] = {0, 0, 1, 2, 3, 5, 8, 13};
    unsigned founded = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        char lists[LISTS][200];
        struct rival rivals[LISTS] = {
            {.list = list_of(round % 2 ? "123" : "321", lists[0])},
            {.list = list_of(round % 3 ? "345" : "543", lists[1])},
        };

        make_new();
        rivals[round / 2 % 2].delay_ms = delays_ms[round];
        check_rivals(rivals);
        founded += set_of(&five.server[2]) != NULL;
    }
    CHECK(founded >= ROUNDS / 2); /* Otherwise the test proves little. */
}

/* The same list in two orders is one set. */
TEST(two_clients_of_one_list_found_one_set)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        char lists[LISTS][200];
        struct rival rivals[LISTS] = {
            {.list = list_of("123", lists[0]), .same = true},
            {.list = list_of("231", lists[1]), .same = true},
        };

        make_new();
        rivals[round % 2].delay_ms = round / 2;
        let_compete(rivals);
        CHECK_UINT(atomic_load(&winners), 1);
        CHECK_INT(rivals[0].status + rivals[1].status, REDLOCK_OK + REDLOCK_CONTENDED);
        for (unsigned i = 0; i < LISTS; i++)
            (void)redlock_close(rivals[i].rl);
    }
}

CHECK_MAIN(RUN(the_first_call_founds_the_set), RUN(all_masters_found_and_a_majority_goes_on),
           RUN(a_member_that_forgot_is_told_its_set), RUN(lists_with_strangers_are_refused),
           RUN(a_list_of_two_sets_is_told_as_data),
           RUN(a_client_with_a_wrong_list_leaves_no_lock_behind),
           RUN(one_master_of_another_set_does_not_decide),
           RUN(two_lists_that_share_a_master_never_both_hold),
           RUN(two_clients_of_one_list_found_one_set))
