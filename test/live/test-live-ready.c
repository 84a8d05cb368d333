/*
 * test-live-ready.c - whether a majority may vote, and when (redlock_ready()).
 */
#include <stdint.h>
#include <string.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#include "test/lib/check.h"

static struct cluster three;

#define UNTOUCHED 4711

struct wish {
    struct pilot *pilot;
    int status;
    const char *why; /* The message has this. */
    uint32_t ms;
};

static bool has_come(void *arg)
{
    struct wish *wish = arg;
    uint32_t ms = UNTOUCHED;
    int status = redlock_ready(wish->pilot->rl, &ms);

    if (status != wish->status || strstr(redlock_errmsg(wish->pilot->rl), wish->why) == NULL)
        return false;
    wish->ms = ms;
    return true;
}

/* Ask until the status and the message are these.  Returns the time that comes with them. */
static uint32_t await_told(struct pilot *pilot, int status, const char *why)
{
    struct wish wish = {.pilot = pilot, .status = status, .why = why};

    CHECK(pilot_until(pilot, has_come, &wish));
    return wish.ms;
}

static uint32_t await(struct pilot *pilot, int status)
{
    return await_told(pilot, status, "");
}

static void each_kind(void (*test)(struct pilot *pilot))
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&three, 3);
        pilot_open(&pilot, kind, cluster_masters(&three), 0);
        test(&pilot);
        pilot_close(&pilot);
    }
}

static void open_and_lock(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_UINT(await(pilot, REDLOCK_OK), 0);
    CHECK_STR(redlock_errmsg(pilot->rl), "");
    CHECK_INT(redlock_ready(pilot->rl, NULL), REDLOCK_OK);
    CHECK_INT(pilot_lock_for(pilot, "x", 1000, false, 0, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

TEST(a_good_majority_is_ready)
{
    each_kind(open_and_lock);
}

/* No event has come yet. */
TEST(a_client_that_was_just_opened_is_not)
{
    struct pilot pilot;
    uint32_t ms = UNTOUCHED;

    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&three), 0);
    CHECK_INT(redlock_ready(pilot.rl, &ms), REDLOCK_NOT_READY);
    CHECK(ms > 0 && ms != UNTOUCHED);
    CHECK_HAS(redlock_errmsg(pilot.rl), "ready: too few masters may vote yet: masters 1 to 3");
    pilot_close(&pilot);
}

static void kill_two(struct pilot *pilot)
{
    (void)await(pilot, REDLOCK_OK);
    server_kill(&three.server[0]);
    CHECK(pilot_until_up(pilot, 2));
    CHECK_INT(redlock_ready(pilot->rl, NULL), REDLOCK_OK);
    server_kill(&three.server[1]);
    CHECK_UINT(await(pilot, REDLOCK_UNREACHABLE), UNTOUCHED);
    CHECK_HAS(redlock_errmsg(pilot->rl), "ready: too few masters could vote: ");
}

TEST(a_majority_that_is_gone_is_not)
{
    each_kind(kill_two);
}

/* The default max_ttl_ms is 60 s, and the allowance 2 x (1 % + 2 ms). */
static void flush_two(struct pilot *pilot)
{
    uint32_t ms;

    (void)await(pilot, REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        (void)server_int(&three.server[i], "FLUSHALL");
        (void)server_int(&three.server[i], "CLIENT KILL TYPE normal"); /* To query it again. */
    }
    ms = await_told(pilot, REDLOCK_NOT_READY, "each is warming up: ");
    CHECK(ms > 0 && ms <= 61204);
    CHECK(await(pilot, REDLOCK_NOT_READY) <= ms);
}

TEST(masters_that_forgot_are_ready_later)
{
    each_kind(flush_two);
}

static void demand_passwords(struct pilot *pilot)
{
    (void)await(pilot, REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        (void)server_int(&three.server[i], "CONFIG SET requirepass geheim");
        (void)server_int(&three.server[i], "CLIENT KILL TYPE normal");
    }
    CHECK_UINT(await(pilot, REDLOCK_E_FORBIDDEN), UNTOUCHED);
    CHECK_HAS(redlock_errmsg(pilot->rl), "ready: too few masters allow it to this user: ");
    for (unsigned i = 0; i < 2; i++)
        (void)server_int(&three.server[i], "CONFIG SET requirepass %s", "");
    CHECK_UINT(await(pilot, REDLOCK_OK), 0);
}

TEST(a_password_is_missing)
{
    each_kind(demand_passwords);
}

static void give_other_set(struct pilot *pilot)
{
    (void)await(pilot, REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        (void)server_int(&three.server[i], "HSET redlock:master set 1111111111111111 config a:1");
        (void)server_int(&three.server[i], "CLIENT KILL TYPE normal");
    }
    CHECK_UINT(await(pilot, REDLOCK_E_WRONG_SET), UNTOUCHED);
    CHECK_HAS(redlock_errmsg(pilot->rl), "ready: the list of masters does not fit their set: ");
    /* Refused masters that are gone are not refused any more. */
    server_kill(&three.server[0]);
    server_kill(&three.server[1]);
    CHECK_UINT(await(pilot, REDLOCK_UNREACHABLE), UNTOUCHED);
}

TEST(masters_of_another_set_are_named)
{
    each_kind(give_other_set);
}

TEST(wrong_calls_are_refused)
{
    uint32_t ms = UNTOUCHED;

    CHECK_INT(redlock_ready(NULL, &ms), REDLOCK_E_INVAL);
    CHECK_UINT(ms, UNTOUCHED);
    CHECK_HAS(redlock_errmsg(NULL), "ready: ");
}

CHECK_MAIN(RUN(a_good_majority_is_ready), RUN(a_client_that_was_just_opened_is_not),
           RUN(a_majority_that_is_gone_is_not), RUN(masters_that_forgot_are_ready_later),
           RUN(a_password_is_missing), RUN(masters_of_another_set_are_named),
           RUN(wrong_calls_are_refused))
