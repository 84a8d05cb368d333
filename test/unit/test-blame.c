/*
 * test-blame.c - the masters at fault in a failure.
 */
#include "redlock/base/blame.h"

#include "redlock/base/error.h"
#include "test/lib/check.h"

static struct reason reason(enum why why, drift_time over_at)
{
    struct reason reason;

    reason_set(&reason, why);
    reason.over_at = over_at;
    return reason;
}

static struct blame some(void)
{
    const struct reason closed = reason(WHY_CLOSED, DRIFT_NEVER);
    const struct reason warming = reason(WHY_WARMING_NEW, 10 * DRIFT_S + 1);
    struct blame blame;

    blame_init(&blame, &blame, 4 * DRIFT_S);
    blame_add(&blame, 0, "a:1", &closed, false);
    blame_add(&blame, 2, "c:1", &warming, true);
    blame_add(&blame, 3, "d:1", &closed, false);
    blame_add(&blame, 14, "e:1", &warming, true);
    return blame;
}

TEST(those_that_decide_come_first)
{
    static const unsigned masters[] = {2, 14, 0, 3, QUORUM_MASTERS_MAX, QUORUM_MASTERS_MAX};
    struct blame blame = some();

    for (unsigned i = 0; i < 6; i++)
        CHECK_UINT(blame_master(&blame, i), masters[i]);
    CHECK_UINT(blame_master(&blame, UINT32_MAX), QUORUM_MASTERS_MAX);
    blame_init(&blame, NULL, 0);
    CHECK_UINT(blame_master(&blame, 0), QUORUM_MASTERS_MAX);
}

/* Rounded up, so that nobody comes too early. */
TEST(the_time_runs)
{
    const struct blame blame = some();

    CHECK_UINT(blame_over_ms(&blame, 0, 4 * DRIFT_S), BLAME_NOT_KNOWN);
    CHECK_UINT(blame_over_ms(&blame, 0, 4000 * DRIFT_S), BLAME_NOT_KNOWN);
    CHECK_UINT(blame_over_ms(&blame, 2, 4 * DRIFT_S), 6001);
    CHECK_UINT(blame_over_ms(&blame, 2, 5 * DRIFT_S - 1), 5002);
    CHECK_UINT(blame_over_ms(&blame, 2, 5 * DRIFT_S), 5001);
    CHECK_UINT(blame_over_ms(&blame, 2, 10 * DRIFT_S + DRIFT_MS), 0);
    CHECK_UINT(blame_over_ms(&blame, 2, 3 * DRIFT_S), 6001); /* The clock of another thread. */
}

TEST(a_number_may_get_another_master)
{
    const struct blame blame = some();

    CHECK(blame_is_place(&blame, 2, "c:1"));
    CHECK(!blame_is_place(&blame, 2, "a:1"));
    CHECK(!blame_is_place(&blame, 2, ""));
}

/* As the message does. */
TEST(it_belongs_to_the_message)
{
    const struct error list = {.text = "master 1", .blame = some()};

    CHECK(error_blamed() == NULL);
    (void)error_set(REDLOCK_UNREACHABLE, "some");
    CHECK(error_blamed() == NULL);
    error_list(&list);
    CHECK(error_blamed() != NULL && error_blamed()->masters == list.blame.masters);
    (void)error_wrap(REDLOCK_UNREACHABLE, "outer");
    CHECK(error_blamed() != NULL);
    (void)error_set(REDLOCK_UNREACHABLE, "others");
    CHECK(error_blamed() == NULL);
    error_list(&list);
    error_clear();
    CHECK(error_blamed() == NULL);
    (void)error_wrap(REDLOCK_E_STATE, "outer");
    CHECK(error_blamed() == NULL);
    error_list(&list);
    (void)error_pass_on(REDLOCK_CONTENDED, &(struct error){.text = "of another thread"});
    CHECK(error_blamed() == NULL);
    (void)error_pass_on(REDLOCK_UNREACHABLE, &list);
    CHECK(error_blamed() != NULL);
    error_list(&(struct error){.text = "master 2"});
    CHECK(error_blamed() == NULL);
}

CHECK_MAIN(RUN(those_that_decide_come_first), RUN(the_time_runs),
           RUN(a_number_may_get_another_master), RUN(it_belongs_to_the_message))
