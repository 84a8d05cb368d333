/*
 * test-wait-rest.c - rule 8 of wait.c: masters that may complete a majority of free ones, and
 * announce nothing.  Also a number that is forged.
 */
#include "test/lib/waiter.h"

#define TURN (6 * DRIFT_MS) /* lose_round() takes a millisecond. */

/* After a lost round the waiter knows the keys of the first and of the last of three masters.  The
 * first announces that it is free.  The last one's key may be of a client that died. */
static void hear_one_free(void)
{
    begin_held(3, 5000);
    hear_free(0, 3, 1);
    lose_round();
    wait_on_held(&w, 0, 5000, now.now);
    wait_on_held(&w, 2, 5000, now.now);
    next();
    hear_free(0, 1, 1);
    CHECK_UINT(act.look, 0);
    CHECK(act.try_at > now.now);
}

TEST(who_hears_of_too_few_asks_the_others_soon)
{
    hear_one_free();
    CHECK_UINT(act.wake_at, now.now + 2 * TURN);
    now.now += 2 * TURN - 1;
    next();
    CHECK_UINT(act.look, 0);
    now.now++;
    next();
    CHECK_UINT(act.look, 2);
    wait_on_look(&w, 1, -2, now.now);
    next();
    CHECK_UINT(act.try_at, now.now);
}

TEST(who_hears_of_enough_meanwhile_asks_nobody)
{
    hear_one_free();
    now.now += 2 * TURN - 1;
    hear_free(1, 2, 1);
    CHECK_UINT(act.try_at, now.now);
    now.now++;
    next();
    CHECK_UINT(act.look, 0);
}

TEST(a_lock_that_is_taken_meanwhile_is_not_asked_for)
{
    hear_one_free();
    wait_on_taken(&w, 0, 5000, now.now);
    now.now += 2 * TURN;
    next();
    CHECK_UINT(act.look, 0);
}

TEST(who_cannot_complete_a_majority_is_not_asked)
{
    begin_held(5, 5000);
    hear_free(0, 5, 1);
    lose_round();
    for (unsigned m = 2; m < 5; m++)
        wait_on_held(&w, m, 5000, now.now);
    next();
    hear_free(0, 1, 1);
    now.now += 4 * TURN;
    next();
    CHECK_UINT(act.look, 0);
}

TEST(who_cannot_be_asked_is_not)
{
    hear_one_free();
    now.up = 5;
    now.now += 4 * TURN;
    next();
    CHECK_UINT(act.look, 0);
}

/* Its answer is still to come, and to wake up would be in vain. */
TEST(who_owes_an_answer_is_not_asked_again)
{
    hear_one_free();
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 2);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 5); /* Some time later all are queried. */
    CHECK_UINT(act.wake_at, now.now + WAIT_PATIENCE * PAUSE_MIN);
}

/* The answer may be an error. */
TEST(the_others_are_asked_once_for_each_round)
{
    hear_one_free();
    now.now += 2 * TURN;
    next();
    CHECK_UINT(act.look, 2);
    for (unsigned i = 0; i < 3; i++) {
        wait_on_look(&w, 1, WAIT_NO_ANSWER, now.now);
        now.now += 2 * TURN;
        next();
        CHECK_UINT(act.look, 0);
    }
    wait_on_try(&w, now.now);
    now.now++;
    hear_free(0, 1, 1);
    now.now += 2 * TURN;
    next();
    CHECK_UINT(act.look, 2);
}

/* Else two clients that cannot win would hurry each other. */
TEST(who_lost_often_asks_as_late_as_after_a_lost_round)
{
    begin_held(5, 5000);
    hear_free(0, 5, 1);
    for (unsigned i = 0; i < 4; i++)
        lose_round();
    wait_on_look(&w, 3, 5000, now.now);
    wait_on_look(&w, 4, 5000, now.now);
    hear_free(0, 1, 1);
    now.now += 2 * 4 * TURN - 1;
    next();
    CHECK_UINT(act.look, 0);
    now.now++;
    next();
    CHECK_UINT(act.look, 6);
}

/* Rule 6.  Any client that may publish can forge the number.  The delay of this lot would be 2^64
 * nanoseconds and 20 ms. */
TEST(no_number_of_rivals_makes_a_delay_short)
{
    begin_held(5, 60000);
    wait_on_try(&w, now.now);
    wait_on_lost(&w, DRIFT_S, &now);
    now.random = 737869764;
    hear_free(0, 5, UINT32_MAX);
    CHECK(act.try_at >= now.now + WAIT_PATIENCE * PAUSE_MIN);
}

CHECK_MAIN(RUN(who_hears_of_too_few_asks_the_others_soon),
           RUN(who_hears_of_enough_meanwhile_asks_nobody),
           RUN(a_lock_that_is_taken_meanwhile_is_not_asked_for),
           RUN(who_cannot_complete_a_majority_is_not_asked), RUN(who_cannot_be_asked_is_not),
           RUN(who_owes_an_answer_is_not_asked_again),
           RUN(the_others_are_asked_once_for_each_round),
           RUN(who_lost_often_asks_as_late_as_after_a_lost_round),
           RUN(no_number_of_rivals_makes_a_delay_short))
