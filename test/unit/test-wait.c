/*
 * test-wait.c - when a waiter queries, and when it tries: rules 1 to 6 of wait.c.  Rule 7 is in
 * test-wait-announcer.c, rule 8 in test-wait-rest.c.
 */
#include "test/lib/waiter.h"

/* ---- Rule 1: a round begins when a majority is free ---- */

TEST(a_majority_that_is_free_is_tried_at_once)
{
    begin_held(5, 5000);
    hear_free(0, 2, 1);
    CHECK(act.try_at > now.now);
    hear_free(2, 3, 1);
    CHECK_UINT(act.try_at, now.now);
}

TEST(a_lock_that_runs_out_is_tried_for_soon_after)
{
    const drift_time end = START + 5001 * DRIFT_MS; /* Rounded up. */

    begin_held(3, 5000);
    CHECK_UINT(act.try_at, end + WAIT_EXPIRY_MIN);
    now.random = UINT32_MAX;
    begin_held(3, 5000);
    for (unsigned i = 0; i < 100; i++) {
        begin(3);
        now.random = i * UINT32_C(42949672);
        hear(3);
        answer_look(3, 5000);
        CHECK(act.try_at >= end + WAIT_EXPIRY_MIN && act.try_at <= end + WAIT_EXPIRY_MAX);
    }
}

/* When the second of three keys expires, a majority is without the key. */
TEST(it_runs_out_when_a_majority_has_dropped_it)
{
    begin_held(3, 5000);
    wait_on_look(&w, 0, 1000, now.now);
    wait_on_look(&w, 1, 2000, now.now);
    next();
    CHECK_UINT(act.try_at, START + 2001 * DRIFT_MS + WAIT_EXPIRY_MIN);
}

/* The release draws a later try, so the older plan is void. */
TEST(an_older_plan_does_not_outlive_a_release)
{
    begin_held(5, 5000);
    CHECK(act.try_at != DRIFT_NEVER);
    now.random = UINT32_MAX;
    hear_free(0, 3, 16);
    CHECK(act.try_at > now.now && act.try_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
}

TEST(a_key_without_an_end_is_not_waited_out)
{
    begin_held(3, -1);
    CHECK(act.relies);
    CHECK_UINT(act.try_at, DRIFT_NEVER);
    CHECK(act.wake_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
}

/* The key of another client on one heard master must not hide that a majority has none. */
TEST(a_majority_may_be_free_where_it_is_not_heard)
{
    begin(5);
    hear(3);
    answer_look(3, 60000);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 31);
    wait_on_look(&w, 0, 60000, now.now);
    for (unsigned m = 1; m < 4; m++)
        wait_on_look(&w, m, -2, now.now);
    next();
    CHECK_UINT(act.try_at, now.now);
    wait_on_try(&w, now.now);
    wait_on_look(&w, 4, 60000, now.now); /* The try used up the other news. */
    next();
    CHECK_UINT(act.try_at, DRIFT_NEVER);
}

TEST(nonsense_is_no_answer)
{
    begin_held(3, 60000);
    answer_look(3, INT64_MAX);
    CHECK_UINT(act.try_at, DRIFT_NEVER);
    answer_look(3, -4);
    CHECK_UINT(act.try_at, DRIFT_NEVER);
}

/* ---- Rule 2: a round uses up the news that made it begin ---- */

TEST(what_made_a_round_begin_is_used_up)
{
    begin_held(5, 5000);
    hear_free(0, 5, 1);
    CHECK_UINT(act.try_at, now.now);
    lose_round();
    next();
    CHECK(act.try_at > now.now);
    hear_free(0, 3, 1); /* Later announcements count. */
    CHECK_UINT(act.try_at, now.now);
}

TEST(what_is_heard_during_the_first_round_is_not_used_up)
{
    drift_time began;

    begin_held(3, 5000);
    began = now.now++;
    hear_free(0, 3, 1);
    now.now += DRIFT_MS;
    wait_on_try(&w, began);
    wait_on_lost(&w, DRIFT_MS, &now);
    next();
    CHECK_UINT(act.try_at, now.now);
}

/* ---- Rule 3: a master is known only while it is heard ---- */

TEST(who_begins_to_listen_looks)
{
    begin(3);
    next();
    CHECK_UINT(act.look, 0);
    CHECK(!act.relies);
    wait_on_hears(&w, 1, true);
    next();
    CHECK_UINT(act.look, 2);
    next();
    CHECK_UINT(act.look, 0); /* m2 owes an answer. */
    wait_on_link(&w, 1);
    wait_on_hears(&w, 1, true);
    next();
    CHECK_UINT(act.look, 2);
}

TEST(a_master_that_cannot_be_asked_is_looked_at_later)
{
    begin(3);
    now.up = 5;
    wait_on_hears(&w, 1, true);
    next();
    CHECK_UINT(act.look, 0);
    now.up = 7;
    next();
    CHECK_UINT(act.look, 2);
}

TEST(it_relies_on_a_majority_that_is_heard_and_known)
{
    begin(5);
    hear(3);
    answer_look(2, 5000);
    CHECK(!act.relies);
    wait_on_look(&w, 2, 5000, now.now);
    next();
    CHECK(act.relies);
    wait_on_hears(&w, 2, false);
    next();
    CHECK(!act.relies);
}

TEST(who_is_not_heard_tells_nothing)
{
    begin_held(3, 60000);
    for (unsigned m = 0; m < 3; m++)
        wait_on_hears(&w, m, false);
    hear_free(0, 3, 1);
    CHECK(!act.relies);
    CHECK_UINT(act.try_at, DRIFT_NEVER);
}

/* Answers and announcements come on two connections. */
TEST(an_old_look_does_not_overrule_a_release)
{
    begin_held(3, 60000);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 7);
    for (unsigned m = 0; m < 3; m++)
        wait_on_free(&w, m, 1, now.now);
    answer_look(3, 60000);
    CHECK_UINT(act.try_at, now.now);
}

TEST(the_next_in_line_looks_at_what_is_not_known)
{
    begin_held(3, 5000);
    hear_free(0, 2, 1);
    wait_on_try(&w, now.now);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT(act.look, 3);
}

/* ---- Rule 4: after some time a waiter queries, whatever was announced ---- */

TEST(in_time_it_looks_whatever_was_heard)
{
    begin_held(3, 60000);
    CHECK(act.wake_at >= now.now + WAIT_PATIENCE * PAUSE_MIN);
    CHECK(act.wake_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
    now.now = act.wake_at - 1;
    next();
    CHECK_UINT(act.look, 0);
    now.now++;
    next();
    CHECK_UINT(act.look, 7);
}

/* Any client may publish, and the announcement of a release may be lost.  So each announced hold
 * delays the next query, but not for ever. */
TEST(what_is_heard_again_and_again_does_not_keep_from_looking)
{
    unsigned looks = 0;

    begin_held(5, 60000);
    for (unsigned i = 0; i < 100; i++) {
        now.now += 100 * DRIFT_MS;
        now.random += UINT32_C(0x9e3779b9);
        if (i % 2 == 0)
            wait_on_taken(&w, 0, UINT32_MAX, now.now);
        else
            wait_on_taken(&w, 1, 500, now.now);
        next();
        looks += act.look == 31;
        for (unsigned m = 0; m < 5; m++)
            if (act.look & 1u << m)
                wait_on_look(&w, m, 60000, now.now);
    }
    CHECK(looks >= 100 * 100 / (WAIT_TRUST * WAIT_PATIENCE * 200) - 1);
    CHECK(looks <= 100 * 100 / (WAIT_PATIENCE * 50));
}

/* While masters give no valid answers, each lease tries without announcements. */
TEST(who_tries_for_itself_goes_on_to_look)
{
    unsigned looks = 0;

    begin_held(3, 60000);
    for (unsigned i = 0; i < 100; i++) {
        now.now += 100 * DRIFT_MS;
        now.random += UINT32_C(0x9e3779b9);
        next();
        looks += act.look != 0;
        for (unsigned m = 0; m < 3; m++)
            if (act.look & 1u << m)
                wait_on_look(&w, m, i < 60 ? WAIT_NO_ANSWER : 60000, now.now);
        next();
        CHECK(i < 40 || i >= 60 || !act.relies);
        if (!act.relies)
            lose_round();
    }
    CHECK(act.relies);
    CHECK(looks >= 5);
}

TEST(looks_that_come_to_nothing_are_not_relied_on)
{
    begin_held(3, 60000);
    for (unsigned i = 0; i < 2; i++) {
        now.now = act.wake_at;
        next();
        CHECK(act.relies);
        answer_look(3, WAIT_NO_ANSWER);
        now.now = act.wake_at;
        next();
        CHECK(!act.relies);
        answer_look(3, 60000);
        CHECK(act.relies);
    }
}

TEST(pauses_of_nothing_do_not_spin)
{
    begin_held(3, 60000);
    now.pause_min = now.pause_max = 0;
    now.now = act.wake_at;
    next();
    CHECK(act.wake_at >= now.now + DRIFT_MS);
}

/* For example, a client that had the lock and does not want it now. */
TEST(who_waits_no_more_does_not_look)
{
    begin_held(3, 5000);
    wait_on_hears(&w, 0, true);
    now.waits = false;
    now.pause_min = now.pause_max = 0;
    for (unsigned i = 0; i < 10; i++) {
        now.now += DRIFT_S;
        next();
        CHECK_UINT(act.look, 0);
        CHECK_UINT(act.try_at, DRIFT_NEVER);
        CHECK_UINT(act.wake_at, DRIFT_NEVER);
    }
    now.waits = true;
    next();
    CHECK(act.look & 1);
}

/* ---- Rule 5: with each lost round a waiter tries more slowly ---- */

TEST(who_lost_looks_soon_and_less_soon_each_time)
{
    drift_span before = 0;

    begin_held(5, 5000);
    for (unsigned i = 0; i < 12; i++) {
        drift_span span;

        hear_free(0, 5, 1);
        lose_round();
        next();
        span = act.wake_at - now.now;
        CHECK(span >= before && span <= WAIT_PATIENCE * PAUSE_MAX);
        CHECK(i >= 2 || span <= 20 * DRIFT_MS);
        CHECK(i != 11 || span >= WAIT_PATIENCE * PAUSE_MIN);
        before = span;
    }
}

static void lose(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        hear_free(0, 5, 1);
        lose_round();
    }
}

/* The former first waiter may have had less time than a round takes, and lost every round. */
TEST(the_losses_of_who_has_left_are_his)
{
    begin_held(5, 5000);
    lose(12);
    hear_free(0, 5, 1);
    CHECK(act.try_at > now.now);
    wait_on_turn(&w, true);
    wait_on_try(&w, now.now);
    hear_free(0, 5, 1);
    CHECK_UINT(act.try_at, now.now);
    lose(12);
    wait_on_turn(&w, false);
    next();
    CHECK_UINT(act.look, 0);
    hear_free(0, 5, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* All permits are held, each by a bare majority, and masters disagree on which is free.  So every
 * master has a key, also that of a lost round, and no waiter wins. */
TEST(a_key_of_a_permit_does_not_hurry_who_lost)
{
    begin_held(3, 60000);
    w.permits = true;
    for (unsigned i = 0; i < 12; i++) {
        wait_on_held(&w, 0, 1000, now.now); /* Another waiter's round. */
        next();
        hear_free(0, 2, 3);
        CHECK(act.try_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
        CHECK(i != 11 || act.try_at >= now.now + WAIT_PATIENCE * PAUSE_MIN);
        lose_round();
    }
}

/* A majority is free, and its votes do not count.  On one master lies a dead client's key. */
TEST(one_dead_key_does_not_hurry_who_lost)
{
    begin_held(3, 60000);
    for (unsigned i = 0; i < 12; i++) {
        wait_on_look(&w, 2, 60000, now.now);
        wait_on_look(&w, 0, -2, now.now);
        next();
        wait_on_look(&w, 1, -2, now.now);
        next();
        CHECK_UINT(act.try_at, now.now);
        lose_round();
        next();
    }
    CHECK(act.wake_at >= now.now + WAIT_PATIENCE * PAUSE_MIN);
}

/* Where a majority has a key, another client has won, unless most votes do not count. */
TEST(the_keys_of_a_majority_hurry_who_lost)
{
    for (quorum_mask barred = 1; barred <= 3; barred += 2) {
        begin_held(3, 60000);
        now.barred = barred;
        lose(12);
        answer_look(3, 1000);
        hear_free(0, 3, 1);
        CHECK_UINT(act.try_at > now.now, barred == 3);
    }
}

TEST(who_waits_for_another_name_has_lost_as_often)
{
    begin_held(5, 5000);
    wait_on_moved(&w, 12);
    hear_free(0, 5, 1);
    lose_round();
    next();
    CHECK(act.wake_at >= now.now + WAIT_PATIENCE * PAUSE_MIN);
}

TEST(news_of_the_winner_of_a_permit_hurries_who_lost)
{
    begin_held(3, 60000);
    w.permits = true;
    lose(12);
    wait_on_taken(&w, 0, 1000, now.now);
    hear_free(0, 3, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* ---- Rule 6: a random delay is drawn once for each release ---- */

TEST(of_many_few_try_at_once)
{
    unsigned tried = 0;

    for (unsigned i = 0; i < 1600; i++) {
        begin_held(5, 5000);
        now.random = i * UINT32_C(2684354);
        hear_free(0, 5, 16);
        tried += act.try_at == now.now;
        if (act.try_at != now.now) {
            CHECK(act.try_at <= now.now + 16 * 50 * DRIFT_MS / WAIT_TRIERS);
            CHECK(act.wake_at == act.try_at);
        }
    }
    CHECK(tried >= 1600 / 16 * WAIT_TRIERS - 2 && tried <= 1600 / 16 * WAIT_TRIERS + 2);
}

/* Two clients cannot split an odd number of masters. */
TEST(of_two_both_try_whatever_the_lots)
{
    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 3, 2);
    CHECK_UINT(act.try_at, now.now);
}

TEST(who_does_not_try_does_so_later_if_nobody_did)
{
    drift_time turn;

    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    turn = act.try_at;
    CHECK(turn > now.now && turn < DRIFT_NEVER);
    now.now = turn - 1;
    now.random = 0; /* No second delay is drawn. */
    next();
    CHECK_UINT(act.try_at, turn);
    now.now = turn;
    next();
    CHECK_UINT(act.try_at, turn);
}

/* Else, with many rivals and slow round trips, a waiter that heard nothing would try earlier. */
TEST(no_lot_is_later_than_the_next_look_would_be)
{
    begin_held(5, 60000);
    wait_on_try(&w, now.now);
    wait_on_lost(&w, DRIFT_S, &now);
    now.random = UINT32_MAX;
    hear_free(0, 5, 1000);
    CHECK(act.try_at > now.now && act.try_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
}

/* A query that was out at the release finds the key free, and the waiter tries at once. */
TEST(who_waits_for_his_turn_and_sees_a_majority_free_tries)
{
    begin_held(5, 60000);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 31);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    CHECK(act.try_at > now.now);
    answer_look(3, -2);
    CHECK_UINT(act.try_at, now.now);
}

/* Each master announces a release.  A delay for each announcement would let too many waiters try.
 * A release of a hold that was not announced draws no other delay: the drawn one ends soon. */
TEST(of_one_release_lots_are_drawn_once)
{
    drift_time turn;

    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 3, 16);
    turn = act.try_at;
    CHECK(turn > now.now);
    now.random = 0;
    hear_free(3, 5, 16);
    hear_free(0, 5, 16);
    CHECK_UINT(act.try_at, turn);
    for (unsigned m = 0; m < 3; m++)
        wait_on_held(&w, m, 9000, now.now);
    next();
    hear_free(0, 3, 16); /* The next release. */
    CHECK_UINT(act.try_at, now.now);
}

/* A minority that was announced as held announces its release.  That draws no other delay. */
TEST(who_drew_and_heard_of_some_that_are_taken_does_not_draw_for_these)
{
    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    now.random = 0;
    for (unsigned m = 0; m < 2; m++)
        wait_on_held(&w, m, 9000, now.now);
    hear_free(0, 2, 16);
    CHECK(act.try_at > now.now);
}

TEST(who_does_not_try_sleeps_on_if_somebody_did)
{
    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    for (unsigned m = 0; m < 3; m++)
        wait_on_held(&w, m, 9000, now.now);
    next();
    CHECK(act.try_at >= now.now + 9000 * DRIFT_MS);
}

TEST(readers_draw_no_lots)
{
    begin_held(5, 5000);
    w.shared = true;
    now.random = UINT32_MAX;
    hear_free(0, 3, 16);
    CHECK_UINT(act.try_at, now.now);
}

/* A free lock lets in the next reader, too, which tries at once.  No master has to announce. */
TEST(a_reader_lets_in_the_next)
{
    begin_held(5, 5000);
    w.shared = true;
    hear_free(0, 3, 16);
    wait_on_try(&w, now.now);
    now.now += DRIFT_MS;
    wait_on_won(&w, 0x0b, true);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT(act.try_at, now.now);
    CHECK_UINT(act.look & 0x0b, 0);
    lose_round();
    next();
    CHECK(act.try_at > now.now);
}

/* What the master of before said is not true of the next one. */
TEST(a_number_that_another_master_gets_is_not_heard)
{
    begin(3);
    hear(3);
    next();
    for (unsigned m = 0; m < 3; m++)
        wait_on_look(&w, m, 1000, now.now);
    CHECK_UINT(w.known, 7);
    wait_on_left(&w, 6);
    CHECK_UINT(w.known | w.hears | w.seen | w.looking | w.to_look | w.to_tell, 1);
}

CHECK_MAIN(
    RUN(a_number_that_another_master_gets_is_not_heard),
    RUN(a_majority_that_is_free_is_tried_at_once),
    RUN(a_lock_that_runs_out_is_tried_for_soon_after),
    RUN(it_runs_out_when_a_majority_has_dropped_it), RUN(an_older_plan_does_not_outlive_a_release),
    RUN(a_key_without_an_end_is_not_waited_out), RUN(a_majority_may_be_free_where_it_is_not_heard),
    RUN(nonsense_is_no_answer), RUN(what_made_a_round_begin_is_used_up),
    RUN(what_is_heard_during_the_first_round_is_not_used_up), RUN(who_begins_to_listen_looks),
    RUN(a_master_that_cannot_be_asked_is_looked_at_later),
    RUN(it_relies_on_a_majority_that_is_heard_and_known), RUN(who_is_not_heard_tells_nothing),
    RUN(an_old_look_does_not_overrule_a_release), RUN(the_next_in_line_looks_at_what_is_not_known),
    RUN(in_time_it_looks_whatever_was_heard),
    RUN(what_is_heard_again_and_again_does_not_keep_from_looking),
    RUN(who_tries_for_itself_goes_on_to_look), RUN(looks_that_come_to_nothing_are_not_relied_on),
    RUN(pauses_of_nothing_do_not_spin), RUN(who_waits_no_more_does_not_look),
    RUN(who_lost_looks_soon_and_less_soon_each_time), RUN(the_losses_of_who_has_left_are_his),
    RUN(a_key_of_a_permit_does_not_hurry_who_lost), RUN(one_dead_key_does_not_hurry_who_lost),
    RUN(the_keys_of_a_majority_hurry_who_lost), RUN(who_waits_for_another_name_has_lost_as_often),
    RUN(news_of_the_winner_of_a_permit_hurries_who_lost), RUN(of_many_few_try_at_once),
    RUN(of_two_both_try_whatever_the_lots), RUN(who_does_not_try_does_so_later_if_nobody_did),
    RUN(no_lot_is_later_than_the_next_look_would_be),
    RUN(who_waits_for_his_turn_and_sees_a_majority_free_tries),
    RUN(of_one_release_lots_are_drawn_once),
    RUN(who_drew_and_heard_of_some_that_are_taken_does_not_draw_for_these),
    RUN(who_does_not_try_sleeps_on_if_somebody_did), RUN(readers_draw_no_lots),
    RUN(a_reader_lets_in_the_next))
