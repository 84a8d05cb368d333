/*
 * test-guard-again.c - what the restart guard tells a master again, and how soon: the master may be
 * faulty and never obey.
 */
#include "redlock/core/guard.h"

#include "test/lib/watch.h"

/* Also one whose answer was on its way when the epoch was seen. */
TEST(who_says_that_it_is_new_is_told_of_an_epoch_once)
{
    begin(3);
    answer_warming(0, 1, true);
    next();
    CHECK_UINT(act.look, 0);
    answer_ready(1, 2, MAX_TTL_MS);
    next();
    CHECK_UINT(act.look, 1);
    answer_warming(2, 3, true);
    next();
    CHECK_UINT(act.look, 4);
    answer_warming(0, 1, true); /* They say so again. */
    answer_warming(2, 3, true);
    next();
    CHECK_UINT(act.look, 0);
    look_again(2);
    answer_warming(2, 4, true);
    next();
    CHECK_UINT(act.look, 0);
}

/* Until the master says for itself what it has. */
static void check_installed_again(quorum_mask warming, bool is_fresh)
{
    CHECK_UINT(act.install, warming);
    now += ONE_MS;
    for (unsigned m = 0; m < LEN; m++)
        if (warming & 1u << m)
            answer_warming(m, 9, is_fresh);
    next();
    CHECK_UINT(act.look, 0);
    CHECK_UINT(act.wake_at, now + 500 * ONE_MS);
    now += 500 * ONE_MS;
    next();
    CHECK_UINT(act.install, warming);
}

TEST(an_epoch_without_effect_is_given_again_later)
{
    begin_warming(0x10);
    run_until(since + 2 * WATCH, 0x10);
    check_installed_again(0x10, false);
    look_again(4); /* A new link does not make it sooner. */
    answer_warming(4, 9, false);
    next();
    CHECK_UINT(act.install, 0);
    begin(LEN);
    for (unsigned m = 0; m < LEN; m++)
        answer_warming(m, 9, true);
    next();
    check_installed_again(ALL, true);
}

static void tell_age(unsigned master)
{
    const struct guard_ask ask = {master, 9, 0};

    next();
    for (unsigned k = 0; k < 3; k++)
        guard_on_age(&g, k, &ask, WATCH / ONE_MS, now);
}

/* It says that it has the epoch, and then that it has the nonce of before. */
TEST(an_epoch_that_was_denied_is_given_again_later)
{
    with_witnesses = true;
    begin_warming(0x10);
    with_witnesses = false;
    tell_age(4);
    next();
    CHECK_UINT(act.install, 0x10);
    now += ONE_MS;
    answer_ready(4, 50, MAX_TTL_MS);
    look_again(4);
    answer_warming(4, 9, false);
    tell_age(4);
    next();
    answer_all(0x10);
    next();
    CHECK_UINT(guard_left(&g, 4, now), 0);
    CHECK_UINT(act.install, 0);
    now += 499 * ONE_MS;
    next();
    CHECK_UINT(act.install, 0x10);
}

CHECK_MAIN(RUN(who_says_that_it_is_new_is_told_of_an_epoch_once),
           RUN(an_epoch_without_effect_is_given_again_later),
           RUN(an_epoch_that_was_denied_is_given_again_later))
