/*
 * test-wait-announcer.c - rule 7 of wait.c: one master announces for all of them.
 *
 * The tests call the announcer the teller, as wait.h does.
 */
#include "test/lib/waiter.h"

/* ---- What the announcer says counts for all masters ---- */

/* The client listens to all masters.  teller has announced a holder, and will announce its end. */
static void begin_taken(unsigned masters, unsigned teller)
{
    begin(masters);
    hear(masters);
    for (unsigned m = 0; m < masters; m++)
        wait_on_look(&w, m, WAIT_NO_ANSWER, now.now);
    wait_on_taken(&w, teller, 5000, now.now);
    next();
}

TEST(what_the_teller_says_is_of_all_masters)
{
    begin_taken(5, 3);
    CHECK(act.relies);
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
    hear_free(3, 4, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* Another master announces the next holder. */
TEST(only_the_latest_teller_speaks_for_all)
{
    begin_taken(5, 3);
    wait_on_taken(&w, 0, 6000, now.now);
    hear_free(3, 4, 1);
    CHECK(act.try_at >= now.now + 6000 * DRIFT_MS);
    hear_free(0, 1, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* A lost round is released.  If a waiter set a flag beside its key, the master announces that. */
TEST(a_master_that_is_no_teller_speaks_for_itself)
{
    begin_taken(5, 3);
    wait_on_held(&w, 1, 9000, now.now);
    hear_free(1, 2, 48);
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
    hear_free(3, 4, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* Other masters, where a waiter set a flag, announce the same release. */
TEST(who_drew_when_the_teller_told_does_not_draw_for_the_others)
{
    drift_time turn;

    begin_taken(5, 3);
    now.random = UINT32_MAX;
    hear_free(3, 4, 16);
    turn = act.try_at;
    CHECK(turn > now.now);
    now.random = 0;
    hear_free(0, 3, 16);
    hear_free(4, 5, 16);
    CHECK_UINT(act.try_at, turn);
    wait_on_taken(&w, 2, 5000, now.now);
    next();
    hear_free(2, 3, 16); /* The next release. */
    CHECK_UINT(act.try_at, now.now);
}

TEST(who_does_not_hear_the_teller_looks_at_the_others)
{
    begin_taken(5, 3);
    CHECK_UINT(act.look, 0);
    wait_on_hears(&w, 3, false);
    next();
    CHECK_UINT(act.look, 0x17);
    hear_free(3, 4, 1);
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
}

TEST(who_is_not_heard_cannot_be_the_teller)
{
    begin(5);
    for (unsigned m = 0; m < 3; m++)
        wait_on_hears(&w, m, true);
    wait_on_taken(&w, 3, 5000, now.now);
    next();
    CHECK(!act.relies);
    wait_on_taken(&w, 2, 5000, now.now);
    next();
    CHECK(act.relies);
}

/* Keys that queries found free on masters that are not heard count as taken again. */
TEST(what_is_taken_is_not_free_where_it_was_seen)
{
    begin(5);
    hear(3);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look & 0x18, 0x18);
    wait_on_look(&w, 3, -2, now.now);
    wait_on_look(&w, 4, -2, now.now);
    wait_on_taken(&w, 0, 5000, now.now);
    wait_on_free(&w, 1, 1, now.now);
    next();
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
}

/* The announced holder is dead, and no master announced the next. */
TEST(the_teller_is_none_when_what_it_told_of_has_run_out)
{
    begin_taken(5, 3);
    CHECK_UINT(wait_speaks_for(&w, 3), 31);
    now.now = START + 6 * DRIFT_S;
    next();
    CHECK_UINT(wait_speaks_for(&w, 3), 8);
}

/* ---- A holder asks one master to announce that the lock is taken ---- */

/* Any master that granted the lock and owes no answer may announce it, even without our waiters. */
TEST(who_won_tells_the_others_by_one_master)
{
    unsigned told = 0;

    for (unsigned i = 0; i < 3; i++) {
        begin_held(3, 5000);
        hear_free(0, 3, 4);
        wait_on_try(&w, now.now);
        wait_on_won(&w, 7, false);
        now.waits = false;
        now.random = i;
        next();
        CHECK_UINT((unsigned)__builtin_popcount(act.tell), 1);
        CHECK_UINT(act.look, 0);
        told |= act.tell;
    }
    CHECK_UINT(told, 7);
    for (unsigned i = 0; i < 3; i++) {
        wait_on_won(&w, 7, false);
        next();
    }
    CHECK_UINT(act.tell, 0); /* All masters owe an answer. */
    wait_on_link(&w, 1);
    wait_on_won(&w, 5, false);
    next();
    CHECK_UINT(act.tell, 0);
    wait_on_won(&w, 6, false);
    next();
    CHECK_UINT(act.tell, 2);
}

TEST(who_won_and_was_alone_tells_nobody)
{
    begin_held(3, 5000);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, false);
    next();
    CHECK_UINT(act.tell, 0);
}

/* Waiters of our own client count as rivals, too.  They need no query: the lock is ours. */
TEST(who_won_tells_the_others_of_ours_in_line)
{
    begin_held(3, 5000);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, true);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT((unsigned)__builtin_popcount(act.tell), 1);
    CHECK_UINT(act.look, 0);
}

/* The holder released at once.  An announcement would now speak of another client's hold. */
TEST(who_gives_back_does_not_tell_and_looks_for_others_of_ours)
{
    begin_held(3, 5000);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, true);
    wait_on_turn(&w, true);
    wait_on_over(&w);
    next();
    CHECK_UINT(act.tell, 0);
    CHECK_UINT(act.look, 7);
}

/* All masters owe an answer. */
TEST(who_can_have_nobody_tell_looks_for_others_of_ours)
{
    begin_held(3, 60000);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 7);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, true);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT(act.tell, 0);
    for (unsigned m = 0; m < 3; m++)
        wait_on_link(&w, m);
    next();
    CHECK_UINT(act.look, 7);
}

/* Another lease of our client begins a round meanwhile. */
TEST(who_has_it_tells_whoever_comes)
{
    begin_held(3, 5000);
    hear_free(0, 3, 4);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, false);
    wait_on_try(&w, now.now);
    next();
    CHECK_UINT((unsigned)__builtin_popcount(act.tell), 1);
}

CHECK_MAIN(RUN(what_the_teller_says_is_of_all_masters), RUN(only_the_latest_teller_speaks_for_all),
           RUN(a_master_that_is_no_teller_speaks_for_itself),
           RUN(who_drew_when_the_teller_told_does_not_draw_for_the_others),
           RUN(who_does_not_hear_the_teller_looks_at_the_others),
           RUN(who_is_not_heard_cannot_be_the_teller),
           RUN(what_is_taken_is_not_free_where_it_was_seen),
           RUN(the_teller_is_none_when_what_it_told_of_has_run_out),
           RUN(who_won_tells_the_others_by_one_master), RUN(who_won_and_was_alone_tells_nobody),
           RUN(who_won_tells_the_others_of_ours_in_line),
           RUN(who_gives_back_does_not_tell_and_looks_for_others_of_ours),
           RUN(who_can_have_nobody_tell_looks_for_others_of_ours),
           RUN(who_has_it_tells_whoever_comes))
