/*
 * test-live-revoke.c - what the holder of a lock learns when an operator revokes it.
 *
 * The test does what the script of the operator leaves: a text in place of the token, and the end
 * of the key as before.  test-cli-revoke has the operator.
 */
#include "test/lib/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "redlock/wire/keys.h"

#define TTL_MS 60000
#define TEXT WIRE_REVOKED "me@here/1: it hangs"

static struct cluster three;
static struct redlock *rl;
static atomic_uint lines, losses;
static char line[512];

static void on_log(void *arg, enum redlock_level level, const char *message)
{
    (void)arg;
    if (strstr(message, WIRE_REVOKED) == NULL)
        return;
    CHECK_INT(level, REDLOCK_LOG_WARNING);
    if (atomic_fetch_add(&lines, 1) == 0)
        (void)snprintf(line, sizeof line, "%s", message);
}

static void on_lost(struct redlock_lease *lease, void *arg)
{
    (void)lease, (void)arg;
    atomic_fetch_add(&losses, 1);
}

static const char *token_of(const struct redlock_lease *lease)
{
    struct redlock_lease_info info = {.size = sizeof info};

    CHECK_INT(redlock_lease_info(lease, &info), REDLOCK_OK);
    return info.token;
}

/* The first locks may be of a majority, while the third link comes up. */
static void await_all_links(void)
{
    double until = cluster_now_s() + CLUSTER_WAIT_S;
    unsigned stored = 0;

    while (stored < 3 && cluster_now_s() < until) {
        struct redlock_lease *lease = NULL;

        cluster_nap();
        if (redlock_lock(rl, "warm-up", NULL, &lease) != REDLOCK_OK)
            continue;
        stored = cluster_count(&three, "warm-up", token_of(lease));
        (void)redlock_unlock(lease);
    }
    CHECK_UINT(stored, 3);
}

static void begin(void)
{
    struct redlock_options opts;

    cluster_ready(&three, 3);
    lines = losses = 0;
    redlock_options_init(&opts);
    opts.masters = cluster_masters(&three);
    opts.reply_timeout_ms = 3000;
    opts.log = on_log;
    CHECK_INT(redlock_open(&opts, &rl), REDLOCK_OK);
    await_all_links();
}

static struct redlock_lease *lock(const char *name, bool shared)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease = NULL;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.wait_ms = CLUSTER_WAIT_S * 1000;
    opts.no_renew = true;
    opts.shared = shared;
    opts.lost = on_lost;
    CHECK_INT(redlock_lock(rl, name, &opts, &lease), REDLOCK_OK);
    return lease;
}

/* Another thread makes the callback. */
static void await_loss(void)
{
    double until = cluster_now_s() + CLUSTER_WAIT_S;

    while (losses == 0 && cluster_now_s() < until)
        cluster_nap();
}

/* A master that is slow may not store it yet. */
static void revoke(unsigned m, const char *name)
{
    double until = cluster_now_s() + CLUSTER_WAIT_S;

    while (server_pttl(&three.server[m], name) < 0 && cluster_now_s() < until)
        cluster_nap();
    CHECK_INT(server_int(&three.server[m], "SET %s %s XX KEEPTTL", name, TEXT), 2);
    CHECK(server_pttl(&three.server[m], name) > 0);
}

static void a_majority(const char *name)
{
    revoke(0, name);
    revoke(2, name);
}

TEST(the_holder_loses_it)
{
    for (unsigned shared = 0; shared < 2; shared++) {
        struct redlock_lease *lease;

        begin();
        lease = lock("job", shared == 1);
        a_majority("job");
        CHECK_INT(redlock_extend(lease, TTL_MS), REDLOCK_LOST);
        CHECK_STR(redlock_errmsg(rl), "extend job: " TEXT);
        CHECK_INT(redlock_remaining_ms(lease), 0);
        CHECK_UINT(lines, 1);
        CHECK_HAS(line, "lock job: " TEXT ", says master ");
        await_loss();
        (void)redlock_unlock(lease);
        (void)redlock_close(rl);
        CHECK_UINT(losses, 1);
        for (unsigned m = 0; m < 3; m += 2) /* The release has not freed it. */
            CHECK_STR(server_get(&three.server[m], "job"), TEXT);
    }
}

TEST(a_minority_takes_nothing)
{
    struct redlock_lease *lease;

    begin();
    lease = lock("job", false);
    revoke(1, "job");
    CHECK_INT(redlock_extend(lease, TTL_MS), REDLOCK_OK);
    CHECK(redlock_remaining_ms(lease) > 0);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    (void)redlock_close(rl);
    CHECK_UINT(losses, 0);
    CHECK_STR(server_get(&three.server[1], "job"), TEXT);
}

/* Two votes make a lock; the third may come later. */
static bool until_stored_by_all(const char *name, const char *token)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;

    while (cluster_count(&three, name, token) != 3 && cluster_now_s() < end_s)
        cluster_nap();
    return cluster_count(&three, name, token) == 3;
}

/* The other names stay until the holder unlocks: no client may get them before. */
TEST(one_of_several_names)
{
    static const char *const names[] = {"a", "b"};
    struct redlock_lock_options opts;
    struct redlock_lease *lease = NULL;

    begin();
    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.wait_ms = CLUSTER_WAIT_S * 1000;
    opts.no_renew = true;
    CHECK_INT(redlock_lock_many(rl, names, 2, &opts, &lease), REDLOCK_OK);
    a_majority("a");
    CHECK_INT(redlock_extend(lease, TTL_MS), REDLOCK_UNREACHABLE);
    CHECK_STR(redlock_errmsg(rl), "extend a,b: " TEXT);
    CHECK(redlock_remaining_ms(lease) > 0);
    CHECK(until_stored_by_all("b", token_of(lease)));
    (void)redlock_unlock(lease);
    (void)redlock_close(rl);
    CHECK_UINT(cluster_count(&three, "a", TEXT), 2);
}

TEST(no_token_begins_so)
{
    struct redlock_lease *lease;

    begin();
    CHECK_INT(redlock_adopt(rl, "job", TEXT, NULL, &lease), REDLOCK_E_INVAL);
    CHECK_HAS(redlock_errmsg(NULL), "no token begins with '" WIRE_REVOKED "'");
    (void)redlock_close(rl);
}

CHECK_MAIN(RUN(the_holder_loses_it), RUN(a_minority_takes_nothing), RUN(one_of_several_names),
           RUN(no_token_begins_so))
