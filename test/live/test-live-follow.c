/*
 * test-live-follow.c - clients follow a change of the set of masters.
 *
 * The test writes the configurations itself, as `redlock members` does.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/cluster.h"
#include "live/party.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/check.h"
#include "test/lib/info.h"

#define MASTERS 5
#define TTL_MS 5000 /* Long enough for a busy machine.  Renewals come after a third of it. */

static struct cluster five;

/* Masters of no set, all with an epoch. */
static void make_ready(void)
{
    pilot_founds = false;
    cluster_ready_durable(&five, MASTERS);
    cluster_unfound(&five);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *place_of(char number)
{
    static char places[MASTERS][32];
    char *place = places[number - '1'];

    (void)snprintf(place, sizeof places[0], "127.0.0.1:%u", five.server[number - '1'].port);
    return place;
}

/* "127.0.0.1:port127.0.0.1:port", sorted, with this text between two. */
static const char *list_of(const char *numbers, const char *between, char list[200])
{
    const char *places[MASTERS];
    size_t len = 0, masters = strlen(numbers);

    for (size_t i = 0; i < masters; i++)
        places[i] = place_of(numbers[i]);
    qsort(places, masters, sizeof *places, compare);
    for (size_t i = 0; i < masters; i++)
        len += (size_t)snprintf(list + len, 200 - len, "%s%s", i > 0 ? between : "", places[i]);
    return list;
}

/* Store a configuration on one server, as write.lua does. */
static void write_one(char number, unsigned version, const char *config, bool is_member)
{
    struct server *server = &five.server[number - '1'];

    (void)server_int(server,
                     "HSET redlock:master epoch %016x.%u of set set 00000000000000aa ver %u "
                     "config %s",
                     server->port, version, version, config);
    if (is_member)
        (void)server_int(server, "HSET redlock:master name %s", place_of(number));
    else
        (void)server_int(server, "HDEL redlock:master name");
}

/* Store the configuration "from" or, if there is a second list, "from > to", on these servers. */
static void write_set(const char *on, unsigned version, const char *from, const char *to)
{
    char lists[2][200], config[420];

    (void)snprintf(config, sizeof config, "%s%s%s", list_of(from, " ", lists[0]),
                   to != NULL ? " > " : "", to != NULL ? list_of(to, " ", lists[1]) : "");
    for (const char *p = on; *p != '\0'; p++)
        write_one(*p, version, config,
                  strchr(from, *p) != NULL || (to != NULL && strchr(to, *p) != NULL));
}

static bool is_on(char number, const char *name)
{
    return server_get(&five.server[number - '1'], name) != NULL;
}

struct place {
    char number;
    const char *name;
};

static bool is_there(void *arg)
{
    const struct place *place = arg;

    return is_on(place->number, place->name);
}

static bool is_not_there(void *arg)
{
    return !is_there(arg);
}

/* The first three servers are the set, in its first version. */
static void begin_with_three(void)
{
    make_ready();
    write_set("123", 1, "123", NULL);
}

/* ---- One client ---- */

TEST(one_member_of_the_list_names_the_others)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;
        char list[200];

        check_row = pilot_kind_name(kind);
        begin_with_three();
        pilot_open(&pilot, kind, list_of("2", ",", list), 0);
        CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 0, &lease), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 3));
        CHECK_UINT(pilot_stats(&pilot).masters, 3);
        CHECK(is_on('1', "x") + is_on('2', "x") + is_on('3', "x") >= 2);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

TEST(a_hold_is_renewed_through_a_change)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;
        struct place joined = {'4', "x"};
        char list[200];

        check_row = pilot_kind_name(kind);
        begin_with_three();
        pilot_open(&pilot, kind, list_of("123", ",", list), 0);
        /* A round that is won asks no more masters.  A member that stays without the token gives no
         * extension, so all must be up before the lock is taken. */
        CHECK(pilot_until_up(&pilot, 3));
        CHECK_INT(pilot_lock_for(&pilot, "x", TTL_MS, true, 0, &lease), REDLOCK_OK);
        write_set("1234", 2, "123", "124");
        CHECK(pilot_until(&pilot, is_there, &joined));
        write_set("1234", 3, "124", NULL);
        CHECK(pilot_until_up(&pilot, 3));
        server_kill(&five.server[0]);
        CHECK_INT(pilot_extend(&pilot, lease, TTL_MS), REDLOCK_OK);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK_UINT(pilot_stats(&pilot).lost, 0);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK(!is_on('2', "x") && !is_on('4', "x"));
        pilot_close(&pilot);
    }
}

/* It has no votes to learn from. */
TEST(a_hold_without_renewal_hears_of_a_change)
{
    struct place joined = {'4', "x"};
    struct redlock_lease *lease;
    struct pilot pilot;
    char list[200];

    begin_with_three();
    pilot_open(&pilot, PILOT_LOOP, list_of("123", ",", list), 0);
    CHECK_INT(pilot_lock_for(&pilot, "x", 60000, false, 0, &lease), REDLOCK_OK);
    write_set("1234", 2, "123", "1234");
    CHECK(pilot_until_up(&pilot, 4));
    CHECK(!is_on('4', "x")); /* Only an extension gives it. */
    CHECK_INT(pilot_extend(&pilot, lease, 60000), REDLOCK_OK);
    CHECK(pilot_until(&pilot, is_there, &joined)); /* The others are a majority. */
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* From {1,2,3} to {1,4,5}: a majority of the old list is none of the new one. */
TEST(a_hold_is_lost_if_the_new_list_cannot_store_it)
{
    struct pilot_loss loss = {.remaining_ms = 0};
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct pilot pilot;
    char list[200];

    begin_with_three();
    server_kill(&five.server[3]);
    server_kill(&five.server[4]);
    pilot_open(&pilot, PILOT_LOOP, list_of("123", ",", list), 0);
    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.lost = pilot_on_lost;
    opts.lost_arg = &loss;
    CHECK_INT(pilot_lock(&pilot, "x", &opts, &lease), REDLOCK_OK);
    write_set("123", 2, "123", "145");
    CHECK(pilot_until(&pilot, pilot_is_lost, &loss));
    CHECK(loss.remaining_ms > 0); /* In time. */
    CHECK_INT(pilot_extend(&pilot, lease, TTL_MS), REDLOCK_LOST);
    (void)pilot_unlock(&pilot, lease);
    pilot_close(&pilot);
}

/* Server 1 was away while {1,2,3} became {1,4,5}, and has promised a ballot. */
static void leave_one_behind(void)
{
    const char *ballot = "0000000100000002";
    char list[200], accepted[240];

    begin_with_three();
    write_set("45", 3, "145", NULL);
    (void)snprintf(accepted, sizeof accepted, "%s %s", ballot, list_of("12", " ", list));
    (void)server_int(&five.server[0], "HSET redlock:master ballot %s accepted %s", ballot,
                     accepted);
}

static bool is_told(void *arg)
{
    (void)arg;
    return strcmp(server_text(&five.server[0], "HGET redlock:master ver"), "3") == 0;
}

static void check_told(void)
{
    struct server *server = &five.server[0];
    char state[32], list[200];

    (void)snprintf(state, sizeof state, "%016x.3", server->port);
    CHECK_STR(server_text(server, "HGET redlock:master epoch"), state);
    CHECK_STR(server_text(server, "HGET redlock:master config"), list_of("145", " ", list));
    CHECK_STR(server_text(server, "HGET redlock:master name"), place_of('1'));
    CHECK(server_text(server, "HGET redlock:master ballot") == NULL);
    CHECK(server_text(server, "HGET redlock:master accepted") == NULL);
}

/* By any client: no lock is needed. */
TEST(a_member_that_was_away_is_told_the_newest_version)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;
        char list[200];

        check_row = pilot_kind_name(kind);
        leave_one_behind();
        pilot_open(&pilot, kind, list_of("4", ",", list), 0);
        CHECK(pilot_until(&pilot, is_told, NULL));
        check_told();
        CHECK(pilot_until_up(&pilot, 3));
        pilot_close(&pilot);
    }
}

/* The other members of the version that this client knows are gone for good. */
TEST(a_client_without_a_majority_hears_what_its_member_was_told)
{
    struct redlock_lease *lease;
    struct pilot pilot, other;
    char list[200];

    leave_one_behind();
    server_kill(&five.server[1]);
    server_kill(&five.server[2]);
    pilot_open(&pilot, PILOT_BLOCKING, list_of("123", ",", list), 0);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    CHECK_UINT(pilot_stats(&pilot).masters, 3);
    pilot_open(&other, PILOT_LOOP, list_of("45", ",", list), 0);
    CHECK(pilot_until(&other, is_told, NULL));
    pilot_close(&other);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, false, 60000, &lease), REDLOCK_OK);
    CHECK(is_on('1', "x") + is_on('4', "x") + is_on('5', "x") >= 2);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

#define SHORT_MS 2000 /* Some tests wait as long. */

/* A link to a removed master is kept for as long as a lease may be stored there. */
static void be_short(struct redlock_options *opts)
{
    opts->max_ttl_ms = SHORT_MS;
}

/* A client of the set of three. */
static void open_short(struct pilot *pilot)
{
    char list[200];

    CHECK_INT(pilot_try_open(pilot, PILOT_LOOP, list_of("123", ",", list), be_short), REDLOCK_OK);
    CHECK(pilot_until_up(pilot, 3));
}

static bool is_alone(void *arg)
{
    return server_clients(arg) == 0;
}

TEST(a_removed_master_loses_its_link)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    begin_with_three();
    open_short(&pilot);
    CHECK_INT(pilot_lock_for(&pilot, "x", SHORT_MS, true, 0, &lease), REDLOCK_OK);
    write_set("1234", 3, "124", NULL);
    CHECK(pilot_until(&pilot, is_alone, &five.server[2]));
    CHECK(pilot_until_up(&pilot, 3));
    (void)pilot_unlock(&pilot, lease);
    CHECK_INT(pilot_lock_for(&pilot, "y", SHORT_MS, true, 60000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    CHECK(!is_on('3', "y"));
    pilot_close(&pilot);
}

/* Members leave and come back, before and after their numbers were given up. */
TEST(numbers_are_used_again)
{
    static const char *const lists[] = {"123", "145", "123", "345", "234", "125"};
    struct redlock_lease *lease;
    struct pilot pilot;

    begin_with_three();
    open_short(&pilot);
    for (unsigned i = 1; i < 12; i++) {
        check_row = lists[i % 6];
        write_set("12345", i + 1, lists[i % 6], NULL);
        CHECK_INT(pilot_lock_for(&pilot, "x", SHORT_MS, false, 60000, &lease), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 3));
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    }
    pilot_close(&pilot);
}

/* A limit (docs/safety.md, condition 1).  This client slept while {1,2,3} became {1,4,5}.  Then all
 * that it knows lose their data, and nobody else reaches server 1.  So no master that it asks knows
 * the newest version, and it gets a lock that a majority of the newest members has given.  The
 * simulator never does this (test/sim/moves.c). */
TEST(all_members_of_version_1_forget_together)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    begin_with_three();
    open_short(&pilot);
    write_set("12345", 3, "145", NULL); /* Meanwhile it does nothing. */
    for (unsigned i = 0; i < MASTERS; i++)
        (void)server_int(&five.server[i], i < 3 ? "FLUSHALL" : "SETNX x other");
    CHECK_INT(pilot_lock_for(&pilot, "x", SHORT_MS, false, 60000, &lease), REDLOCK_OK);
    CHECK_STR(server_get(&five.server[3], "x"), "other");
    CHECK_STR(server_get(&five.server[4], "x"), "other");
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* ---- Several clients ---- */

enum { HOLDER, FIRST, SECOND, PARTIES };

static struct party parties[PARTIES];

static bool has_winner(void *arg)
{
    (void)arg;
    return party_is_told(&parties[FIRST]) || party_is_told(&parties[SECOND]);
}

/* The holder's token: a waiter may have its own there, until its round is lost. */
static bool is_given(void *arg)
{
    const char *token = server_get(arg, "x");

    return token != NULL && strcmp(token, info_token(parties[HOLDER].lease)) == 0;
}

/* An operator waits until the leases are over that were not renewed.  This one is shown. */
static void replace_two(void)
{
    write_set("1234", 2, "123", "124");
    CHECK(party_until(is_given, &five.server[3]));
    write_set("1234", 3, "124", NULL);
    write_set("1245", 4, "124", "145");
    CHECK(party_until(is_given, &five.server[4]));
    write_set("1245", 5, "145", NULL);
}

static unsigned queued_want;

static bool are_queued(void *arg)
{
    return server_queued(arg, "x") == queued_want;
}

static void unlock(unsigned i)
{
    CHECK_INT(parties[i].status, REDLOCK_OK);
    CHECK(redlock_remaining_ms(parties[i].lease) > 0);
    CHECK_INT(redlock_unlock_async(parties[i].lease, party_on_end, &parties[HOLDER]), REDLOCK_OK);
}

/* One holds and renews, and two wait. */
static void begin_parties(const struct redlock_lock_options *opts)
{
    char list[200];

    begin_with_three();
    for (unsigned i = 0; i < PARTIES; i++) {
        party_open(&parties[i], list_of("321", ",", list), PILOT_REPLY_TIMEOUT_MS);
        CHECK_INT(party_lock(&parties[i], "x", opts), REDLOCK_OK);
        queued_want = i;
        if (i == HOLDER)
            CHECK(party_until(party_is_told, &parties[i]));
        if (opts->fair)
            CHECK(party_until(are_queued, &five.server[0]));
    }
}

/* Two of three masters are replaced meanwhile. */
static void check_waiters(bool fair)
{
    struct redlock_lock_options opts;
    unsigned winner;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.fair = fair;
    opts.wait_ms = 60000;
    begin_parties(&opts);
    replace_two();
    if (fair)
        CHECK(party_until(are_queued, &five.server[4]));
    CHECK(!has_winner(NULL));
    unlock(HOLDER);
    CHECK(party_until(has_winner, NULL));
    winner = party_is_told(&parties[FIRST]) ? FIRST : SECOND;
    CHECK(!fair || winner == FIRST);
    unlock(winner);
    CHECK(party_until(party_is_told, &parties[FIRST + SECOND - winner]));
    unlock(FIRST + SECOND - winner);
    party_close_all(parties, PARTIES);
}

TEST(waiters_follow)
{
    check_waiters(false);
}

TEST(waiters_in_a_queue_keep_their_places)
{
    check_waiters(true);
}

struct waiter {
    struct redlock *rl;
    int status;
};

static void *wait_for_it(void *arg)
{
    struct waiter *waiter = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.wait_ms = 60000;
    waiter->status = redlock_lock(waiter->rl, "x", &opts, &lease);
    if (waiter->status == REDLOCK_OK)
        waiter->status = redlock_unlock(lease);
    return NULL;
}

static bool is_waited_for(void *arg)
{
    return server_listeners(arg, "x") > 0;
}

static bool knows_three(void *arg)
{
    return pilot_stats(arg).masters == 3;
}

/* The waiter hears of the release from masters that it did not know when it began. */
TEST(a_blocking_waiter_follows)
{
    struct place first = {'4', "x"}, second = {'5', "x"};
    struct redlock_lease *lease;
    struct pilot holder, pilot;
    struct waiter waiter;
    pthread_t thread;
    char list[200];

    begin_with_three();
    pilot_open(&holder, PILOT_BLOCKING, list_of("123", ",", list), 0);
    pilot_open(&pilot, PILOT_BLOCKING, list_of("123", ",", list), 0);
    CHECK_INT(pilot_lock_for(&holder, "x", TTL_MS, true, 0, &lease), REDLOCK_OK);
    waiter = (struct waiter){.rl = pilot.rl};
    CHECK_INT(pthread_create(&thread, NULL, wait_for_it, &waiter), 0);
    CHECK(pilot_until(&holder, is_waited_for, &five.server[0]));
    write_set("12345", 2, "123", "145");
    CHECK(pilot_until(&holder, is_there, &first) && pilot_until(&holder, is_there, &second));
    write_set("12345", 3, "145", NULL);
    CHECK(pilot_until(&holder, is_waited_for, &five.server[3]));
    CHECK(pilot_until(&holder, knows_three, &holder));
    CHECK(pilot_until(&pilot, knows_three, &pilot));
    server_kill(&five.server[1]);
    server_kill(&five.server[2]);
    CHECK_INT(pilot_unlock(&holder, lease), REDLOCK_OK);
    (void)pthread_join(thread, NULL);
    CHECK_INT(waiter.status, REDLOCK_OK);
    pilot_close(&holder);
    pilot_close(&pilot);
}

/* The token is given to the joint list only after a majority of the old list has shown it. */
TEST(a_token_is_adopted_across_a_change)
{
    struct redlock_lock_options opts;
    struct place places[] = {{'4', "x"}, {'5', "x"}};
    struct redlock_lease *lease;
    struct pilot first, second;
    char list[200], token[REDLOCK_TOKEN_MAX + 1];

    begin_with_three();
    pilot_open(&first, PILOT_LOOP, list_of("123", ",", list), 0);
    pilot_open(&second, PILOT_LOOP, list_of("2", ",", list), 0);
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 60000;
    CHECK_INT(pilot_lock(&first, "x", &opts, &lease), REDLOCK_OK);
    (void)snprintf(token, sizeof token, "%s", info_token(lease));
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    write_set("12345", 2, "123", "145");
    CHECK_INT(redlock_adopt(second.rl, "x", token, &opts, &lease), REDLOCK_OK);
    CHECK_INT(pilot_extend(&second, lease, 60000), REDLOCK_OK);
    CHECK(is_on('4', "x") + is_on('5', "x") >= 1);
    write_set("12345", 3, "145", NULL);
    CHECK_INT(pilot_extend(&second, lease, 60000), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&second, lease), REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) /* One may be late. */
        CHECK(pilot_until(&second, is_not_there, &places[i]));
    CHECK_INT(redlock_adopt(first.rl, "x", token, &opts, &lease), REDLOCK_OK);
    CHECK_INT(pilot_extend(&first, lease, 60000), REDLOCK_LOST);
    pilot_close(&first);
    pilot_close(&second);
}

CHECK_MAIN(RUN(one_member_of_the_list_names_the_others), RUN(a_hold_is_renewed_through_a_change),
           RUN(a_hold_without_renewal_hears_of_a_change),
           RUN(a_hold_is_lost_if_the_new_list_cannot_store_it),
           RUN(a_member_that_was_away_is_told_the_newest_version),
           RUN(a_client_without_a_majority_hears_what_its_member_was_told),
           RUN(a_removed_master_loses_its_link), RUN(numbers_are_used_again),
           RUN(all_members_of_version_1_forget_together), RUN(waiters_follow),
           RUN(waiters_in_a_queue_keep_their_places), RUN(a_blocking_waiter_follows),
           RUN(a_token_is_adopted_across_a_change))
