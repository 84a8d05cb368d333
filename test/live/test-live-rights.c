/*
 * test-live-rights.c - locks that the ACL of the masters forbids, beside others that it allows.
 */
#include "test/lib/check.h"

#include <ev.h>

#include "live/cluster.h"
#include "live/party.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster three;

/* A lock, and how it ended. */
struct ending {
    const char *name;
    bool fence;
    struct redlock_lease *lease;
    int status;
    char message[256];
};

static void on_end(struct redlock_lease *lease, int status, void *arg)
{
    struct ending *ending = arg;

    (void)lease;
    ending->status = status;
    (void)snprintf(ending->message, sizeof ending->message, "%s", redlock_errmsg(NULL));
}

static bool is_over(void *arg)
{
    const struct ending *ending = arg;

    return ending->status != PILOT_NEVER;
}

/* The user may lock names that begin with "ok", and may not count fencing tokens. */
static void open_limited(struct party *party, uint32_t reply_timeout_ms)
{
    struct pilot driver = {.kind = PILOT_LOOP};

    cluster_ready(&three, 3);
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(
            server_text(&three.server[m], "ACL SETUSER u on >pw ~ok* ~redlock:* &* +@all -hincrby"),
            "OK");
    cluster_found_list(cluster_masters(&three));
    party_open(party, cluster_masters_by(&three, "redis://u:pw@127.0.0.1:", ""), reply_timeout_ms);
    driver.ev = party_loop;
    driver.rl = party->rl;
    CHECK(pilot_until_up(&driver, 3));
}

static void begin_lock(struct party *party, struct ending *ending)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = 60000;
    opts.fence = ending->fence;
    ending->status = PILOT_NEVER;
    CHECK_INT(redlock_lock_async(party->rl, ending->name, &opts, on_end, ending, &ending->lease),
              REDLOCK_OK);
}

/* Both are asked for in one turn, so that the answers to the second come behind those to the first.
 */
static void lock_beside(bool fence, const char *name)
{
    struct ending no = {.name = name, .fence = fence}, ok = {.name = "ok"};
    struct party party;

    check_row = name;
    open_limited(&party, PILOT_REPLY_TIMEOUT_MS);
    begin_lock(&party, &no);
    begin_lock(&party, &ok);
    CHECK(party_until(is_over, &no));
    CHECK(party_until(is_over, &ok));
    CHECK_INT(ok.status, REDLOCK_OK);
    CHECK_INT(no.status, REDLOCK_E_FORBIDDEN);
    CHECK_HAS(no.message, "too few masters allow it to this user: master");
    CHECK_HAS(no.message, "NOPERM");
    party_close_all(&party, 1);
}

TEST(a_forbidden_lock_beside_an_allowed_one)
{
    lock_beside(false, "no");
    lock_beside(true, "ok-fenced");
}

/* The masters stop before they answer the second. */
TEST(an_allowed_lock_behind_a_forbidden_one)
{
    struct ending no = {.name = "no"}, ok = {.name = "ok"};
    struct party party;

    open_limited(&party, 1000);
    begin_lock(&party, &no);
    CHECK(party_until(is_over, &no));
    CHECK_INT(no.status, REDLOCK_E_FORBIDDEN);
    for (unsigned m = 0; m < 3; m++)
        server_pause(&three.server[m]);
    begin_lock(&party, &ok);
    CHECK(party_until(is_over, &ok));
    CHECK_INT(ok.status, REDLOCK_UNREACHABLE);
    CHECK_HAS(ok.message, "no answer within 1000 ms");
    CHECK_INT(redlock_ready(party.rl, NULL), REDLOCK_OK);
    party_close_all(&party, 1);
}

/* The memory of all masters is full: they refuse to store, and still release. */
static void fill_up(bool is_full)
{
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "CONFIG SET maxmemory %d", is_full ? 1 : 0), "OK");
}

/* Both fail at the same masters, each for its own reason.  The latest refusal that a link has seen
 * is that of the second. */
static void fail_beside(const char *first, const char *second)
{
    struct ending endings[2] = {{.name = first}, {.name = second}};
    struct party party;

    check_row = first;
    open_limited(&party, PILOT_REPLY_TIMEOUT_MS);
    fill_up(true);
    for (unsigned i = 0; i < 2; i++)
        begin_lock(&party, &endings[i]);
    for (unsigned i = 0; i < 2; i++) {
        bool is_no = strcmp(endings[i].name, "no") == 0;

        CHECK(party_until(is_over, &endings[i]));
        CHECK_INT(endings[i].status, is_no ? REDLOCK_E_FORBIDDEN : REDLOCK_UNREACHABLE);
        CHECK_HAS(endings[i].message, is_no ? "NOPERM" : "OOM");
        CHECK(strstr(endings[i].message, is_no ? "OOM" : "NOPERM") == NULL);
    }
    fill_up(false);
    party_close_all(&party, 1);
}

TEST(two_locks_that_fail_for_different_reasons)
{
    fail_beside("no", "ok");
    fail_beside("ok", "no");
}

/* The masters confirm the release behind the refusal. */
TEST(a_refused_lock_beside_a_release)
{
    struct ending held = {.name = "ok-held"}, refused = {.name = "ok"};
    struct party party;

    open_limited(&party, PILOT_REPLY_TIMEOUT_MS);
    begin_lock(&party, &held);
    CHECK(party_until(is_over, &held));
    CHECK_INT(held.status, REDLOCK_OK);
    fill_up(true);
    begin_lock(&party, &refused);
    CHECK_INT(redlock_unlock_async(held.lease, NULL, NULL), REDLOCK_OK);
    CHECK(party_until(is_over, &refused));
    CHECK_INT(refused.status, REDLOCK_UNREACHABLE);
    CHECK_HAS(refused.message, "OOM");
    fill_up(false);
    party_close_all(&party, 1);
}

CHECK_MAIN(RUN(a_forbidden_lock_beside_an_allowed_one), RUN(an_allowed_lock_behind_a_forbidden_one),
           RUN(two_locks_that_fail_for_different_reasons), RUN(a_refused_lock_beside_a_release))
