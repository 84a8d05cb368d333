/*
 * test-live-lock.c - locks on five real masters without faults, with both kinds of client.
 */
#include "test/lib/check.h"

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define TTL_MS 30000

static struct cluster five;

static void with_both(void (*try)(struct pilot *pilot))
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        CHECK(pilot_open_five(&pilot, kind, &five));
        try(&pilot);
        pilot_close(&pilot);
    }
}

/* The number of servers that store a token under a name. */
struct stored {
    const char *name, *token;
    unsigned servers;
};

static bool is_stored(void *arg)
{
    const struct stored *stored = arg;

    return cluster_count(&five, stored->name, stored->token) == stored->servers;
}

static void check_stored(struct pilot *pilot, const char *name, const char *token, unsigned servers)
{
    struct stored stored = {name, token, servers};

    CHECK(pilot_until(pilot, is_stored, &stored));
}

/* ---- Lock and unlock ---- */

static void lock_and_unlock(struct pilot *pilot)
{
    struct redlock_lease *lease, *again;
    char token[REDLOCK_TOKEN_MAX + 1];

    CHECK_INT(pilot_lock_for(pilot, "jobs/7", TTL_MS, true, 0, &lease), REDLOCK_OK);
    CHECK_STR(pilot->message, "");
    CHECK_STR(info_resource(lease), "jobs/7");
    (void)snprintf(token, sizeof token, "%s", info_token(lease));
    CHECK_UINT(strspn(token, "0123456789abcdef"), 40);
    CHECK(token[40] == ':'); /* A note follows. */
    CHECK(redlock_remaining_ms(lease) > 0);
    CHECK(redlock_remaining_ms(lease) <= TTL_MS - TTL_MS / 100 - 2);
    check_stored(pilot, "jobs/7", token, 5);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_STR(server_text(&five.server[i], "TYPE jobs/7"), "string");
        CHECK(server_pttl(&five.server[i], "jobs/7") > 0);
        CHECK(server_pttl(&five.server[i], "jobs/7") <= TTL_MS);
    }

    CHECK_INT(pilot_lock(pilot, "jobs/7", NULL, &again), REDLOCK_CONTENDED);
    CHECK_STR(pilot->message,
              "acquire jobs/7: another client holds it, or another lease of this one");
    check_stored(pilot, "jobs/7", token, 5);

    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    check_stored(pilot, "jobs/7", NULL, 0);
    CHECK_INT(pilot_lock(pilot, "jobs/7", NULL, &again), REDLOCK_OK);
    CHECK(strcmp(info_token(again), token) != 0);
    CHECK_INT(pilot_unlock(pilot, again), REDLOCK_OK);
    CHECK(pilot_until_leases(pilot, 0));
    CHECK_UINT(pilot_stats(pilot).acquired, 2);
    CHECK_UINT(pilot_stats(pilot).contended, 1);
    CHECK_UINT(pilot_stats(pilot).released, 2);
    CHECK_UINT(pilot_stats(pilot).rounds, 3);
    CHECK_UINT(pilot_stats(pilot).lost, 0);
}

TEST(lock_excludes_and_unlock_frees)
{
    with_both(lock_and_unlock);
}

/* Clients of both kinds take the lock in turn. */
TEST(clients_exclude_each_other)
{
    struct pilot loop, blocking;
    struct redlock_lease *lease, *other;

    cluster_ready(&five, 5);
    pilot_open(&loop, PILOT_LOOP, cluster_masters(&five), 0);
    pilot_open(&blocking, PILOT_BLOCKING, cluster_masters(&five), 0);
    for (unsigned i = 0; i < 20; i++) {
        struct pilot *holder = i % 2 ? &loop : &blocking, *rival = i % 2 ? &blocking : &loop;

        CHECK_INT(pilot_lock_for(holder, "x", TTL_MS, true, 30000, &lease), REDLOCK_OK);
        CHECK_INT(pilot_lock(rival, "x", NULL, &other), REDLOCK_CONTENDED);
        CHECK_INT(pilot_unlock(holder, lease), REDLOCK_OK);
    }
    pilot_close(&loop);
    pilot_close(&blocking);
}

static void lock_by_name(struct pilot *pilot)
{
    static char longest[REDLOCK_NAME_MAX + 1];
    const char *names[] = {"x",
                           "two words",
                           "line\nbreak\r\n",
                           "caf\xc3\xa9 \xff\xfe\x01",
                           "\"quoted\" $3 *1 {tag} %s",
                           longest};

    memset(longest, 'n', REDLOCK_NAME_MAX);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct redlock_lease *lease, *other;

        CHECK_INT(pilot_lock(pilot, names[i], NULL, &lease), REDLOCK_OK);
        check_stored(pilot, names[i], info_token(lease), 5);
        CHECK_STR(info_resource(lease), names[i]);
        CHECK_INT(pilot_lock(pilot, names[i], NULL, &other), REDLOCK_CONTENDED);
        CHECK(strpbrk(pilot->message, "\r\n\x01\xff") == NULL);
        CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
        check_stored(pilot, names[i], NULL, 0);
    }
}

TEST(names_are_any_bytes)
{
    with_both(lock_by_name);
}

/* ---- Waiting ---- */

static void wait_for_expiry(struct pilot *pilot)
{
    struct redlock_lease *lease, *other;

    for (unsigned i = 0; i < 5; i++)
        (void)server_int(&five.server[i], "SET x other PX 3000");
    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, true, 1, &lease), REDLOCK_CONTENDED);
    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, true, UINT32_MAX, &lease), REDLOCK_OK);
    CHECK(pilot_stats(pilot).rounds > 2); /* The second call had more than one. */
    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, true, 500, &other), REDLOCK_CONTENDED);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

TEST(wait_until_it_is_free)
{
    with_both(wait_for_expiry);
}

/* ---- Extending ---- */

/* How long a majority still stores the key, in ms. */
static long long majority_pttl(const char *name)
{
    long long longest[5];

    for (unsigned i = 0; i < 5; i++) {
        long long pttl = server_pttl(&five.server[i], name);
        unsigned at = i;

        for (; at > 0 && longest[at - 1] < pttl; at--)
            longest[at] = longest[at - 1];
        longest[at] = pttl;
    }
    return longest[2];
}

static void extend(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(pilot, "x", 10000, false, 0, &lease), REDLOCK_OK);
    CHECK(majority_pttl("x") <= 10000);
    CHECK_INT(pilot_extend(pilot, lease, 50000), REDLOCK_OK);
    CHECK_STR(pilot->message, "");
    CHECK(majority_pttl("x") > 20000);
    CHECK(redlock_remaining_ms(lease) > 20000);
    CHECK(redlock_remaining_ms(lease) <= 50000 - 502);
    CHECK_INT(pilot_extend(pilot, lease, 1000), REDLOCK_OK); /* Never shorter. */
    CHECK(majority_pttl("x") > 15000);
    CHECK(redlock_remaining_ms(lease) > 15000);
    check_stored(pilot, "x", info_token(lease), 5);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    check_stored(pilot, "x", NULL, 0);
}

TEST(extend_makes_longer_and_never_shorter)
{
    with_both(extend);
}

/* An extension works while a majority has the key, and fails when fewer masters have it. */
static void extend_the_rest(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_OK);
    check_stored(pilot, "x", info_token(lease), 5);
    (void)server_int(&five.server[0], "DEL x");
    (void)server_int(&five.server[1], "SET x other");
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_OK);
    CHECK(redlock_remaining_ms(lease) > 0);
    (void)server_int(&five.server[2], "DEL x");
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_LOST);
    CHECK_STR(pilot->message, "extend x: the lock is not held any more");
    CHECK_UINT(redlock_remaining_ms(lease), 0);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_LOST);
    CHECK(pilot_until_leases(pilot, 0));
    check_stored(pilot, "x", NULL, 1);
    CHECK_STR(server_get(&five.server[1], "x"), "other");
}

TEST(extend_needs_a_majority_of_keys)
{
    with_both(extend_the_rest);
}

/* ---- Handing on ---- */

static void hand_on(struct pilot *pilot)
{
    struct redlock_lease *lease, *adopted;
    char token[REDLOCK_TOKEN_MAX + 1];

    CHECK_INT(pilot_lock_for(pilot, "x", TTL_MS, false, 0, &lease), REDLOCK_OK);
    check_stored(pilot, "x", info_token(lease), 5);
    (void)snprintf(token, sizeof token, "%s", info_token(lease));
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    CHECK(pilot_until_leases(pilot, 0));
    CHECK_UINT(cluster_count(&five, "x", token), 5);

    CHECK_INT(redlock_adopt(pilot->rl, "x", token, NULL, &adopted), REDLOCK_OK);
    CHECK_STR(info_token(adopted), token);
    CHECK_STR(info_resource(adopted), "x");
    CHECK_UINT(redlock_remaining_ms(adopted), 0);
    CHECK_INT(pilot_extend(pilot, adopted, TTL_MS), REDLOCK_OK);
    CHECK(redlock_remaining_ms(adopted) > 0);
    CHECK_INT(pilot_unlock(pilot, adopted), REDLOCK_OK);
    check_stored(pilot, "x", NULL, 0);
}

TEST(detach_and_adopt)
{
    with_both(hand_on);
}

/* Adopt the token of another program, and a token that no master stores. */
static void adopt_foreign(struct pilot *pilot)
{
    struct redlock_lease *lease;

    for (unsigned i = 0; i < 5; i++)
        (void)server_int(&five.server[i], "SET x foreign/%s PX %d", "token", TTL_MS);
    CHECK_INT(redlock_adopt(pilot->rl, "x", "not it", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_LOST);
    CHECK_UINT(redlock_remaining_ms(lease), 0);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_LOST);
    CHECK_INT(redlock_adopt(pilot->rl, "x", "not it", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_LOST);
    CHECK_UINT(cluster_count(&five, "x", "foreign/token"), 5);
    CHECK_INT(redlock_adopt(pilot->rl, "x", "foreign/token", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    check_stored(pilot, "x", NULL, 0);
    CHECK(pilot_until_leases(pilot, 0));
}

TEST(adopt_a_foreign_token)
{
    with_both(adopt_foreign);
}

static struct pilot nobody = {.kind = PILOT_BLOCKING}; /* Waits without a client. */

TEST(cancel_undoes)
{
    struct redlock_lease *lease, *other;
    struct pilot pilot;

    cluster_ready(&five, 5);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&five), 0);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    redlock_cancel(lease);
    check_stored(&pilot, "x", NULL, 0);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &other), REDLOCK_OK);
    redlock_cancel(lease); /* It was given up already, so this has no effect. */
    CHECK(redlock_remaining_ms(other) > 0);
    pilot_close(&pilot); /* On a loop it sends the release, and waits for no answer. */
    check_stored(&nobody, "x", NULL, 0);
}

/* ---- Closing ---- */

static void hold_three(struct pilot *pilot)
{
    struct redlock_lease *leases[3];

    CHECK_INT(pilot_lock(pilot, "a", NULL, &leases[0]), REDLOCK_OK);
    CHECK_INT(pilot_lock(pilot, "b", NULL, &leases[1]), REDLOCK_OK);
    CHECK_INT(pilot_lock(pilot, "c", NULL, &leases[2]), REDLOCK_OK);
}

TEST(close_releases)
{
    with_both(hold_three);
    check_stored(&nobody, "a", NULL, 0);
    check_stored(&nobody, "b", NULL, 0);
    check_stored(&nobody, "c", NULL, 0);
}

static void on_pair(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease;
    *(int *)arg = status;
}

static bool has_ended(void *arg)
{
    return *(int *)arg != PILOT_NEVER;
}

static void hold_pair(struct pilot *pilot)
{
    static const char *const names[] = {"a", "b"};
    struct redlock_lease *lease;
    int status = PILOT_NEVER;

    if (pilot->kind == PILOT_BLOCKING)
        status = redlock_lock_many(pilot->rl, names, 2, NULL, &lease);
    else
        CHECK_INT(redlock_lock_many_async(pilot->rl, names, 2, NULL, on_pair, &status, NULL),
                  REDLOCK_OK);
    CHECK(pilot_until(pilot, has_ended, &status));
    CHECK_INT(status, REDLOCK_OK);
}

static void hold_one_of_each_kind(struct pilot *pilot)
{
    static const char *const names[] = {"plain", "fair", "shared", "permit"};
    struct redlock_lock_options opts[4];
    struct redlock_lease *lease;

    for (unsigned i = 0; i < 4; i++)
        redlock_lock_options_init(&opts[i]);
    opts[1].fair = true;
    opts[2].shared = true;
    opts[3].permits = 1;
    for (unsigned i = 0; i < 4; i++)
        CHECK_INT(pilot_lock(pilot, names[i], &opts[i], &lease), REDLOCK_OK);
    hold_pair(pilot);
    for (unsigned m = 0; m < five.len; m++)
        (void)server_int(&five.server[m], "SCRIPT FLUSH");
}

static bool has_no_clients(void *arg)
{
    unsigned clients = 0;

    (void)arg;
    for (unsigned m = 0; m < five.len; m++)
        clients += server_clients(&five.server[m]);
    return clients == 0;
}

/* A client on a loop closes without waiting for masters that lack a script.  When its connections
 * are gone, the masters have done what it sent. */
TEST(close_releases_on_masters_without_scripts)
{
    static const char *const keys[] = {
        "plain", "fair", "redlock:queue:fair", "shared", "redlock:permit:permit:0", "a", "b"};

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        CHECK(pilot_open_five(&pilot, kind, &five));
        hold_one_of_each_kind(&pilot);
        pilot_close(&pilot);
        CHECK(pilot_until(&nobody, has_no_clients, NULL));
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            check_row = keys[i];
            CHECK_UINT(cluster_count(&five, keys[i], NULL), 0);
        }
    }
}

CHECK_MAIN({"lock_excludes_and_unlock_frees", lock_excludes_and_unlock_frees},
           {"clients_exclude_each_other", clients_exclude_each_other},
           {"names_are_any_bytes", names_are_any_bytes},
           {"wait_until_it_is_free", wait_until_it_is_free},
           {"extend_makes_longer_and_never_shorter", extend_makes_longer_and_never_shorter},
           {"extend_needs_a_majority_of_keys", extend_needs_a_majority_of_keys},
           {"detach_and_adopt", detach_and_adopt}, {"adopt_a_foreign_token", adopt_a_foreign_token},
           {"cancel_undoes", cancel_undoes}, {"close_releases", close_releases},
           {"close_releases_on_masters_without_scripts", close_releases_on_masters_without_scripts})
