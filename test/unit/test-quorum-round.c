/*
 * test-quorum-round.c - when a round begins, and which masters it asks: connecting,
 * waiting between rounds, and rule 5 of quorum.c.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

/* ---- Connecting ---- */

TEST(first_attempts_are_awaited_while_they_can_make_a_majority)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        begin_with(n);
        story.up = 0;
        story.coming = (quorum_mask)((1u << majority()) - 1);
        acquire();
        CHECK_INT(story.q.state, QUORUM_CONNECTING);
        check_sent(0, 0, 0);
        CHECK_UINT(story.act.wake_at, DRIFT_NEVER);
        for (unsigned m = 0; m + 1 < majority(); m++) {
            link_up(m);
            CHECK_INT(story.q.state, QUORUM_CONNECTING);
        }
        link_up(majority() - 1);
        CHECK_INT(story.q.state, QUORUM_ACQUIRING);
        check_sent(story.up, 0, 0);

        begin_again(); /* One attempt fails, so no majority can come. */
        story.up = 0;
        story.coming = (quorum_mask)((1u << majority()) - 1);
        acquire();
        link_down(0);
        check_ended(REDLOCK_UNREACHABLE);
        check_sent(0, 0, 0);

        begin_again(); /* One attempt too few from the start. */
        story.up = 0;
        story.coming = (quorum_mask)((1u << (majority() - 1)) - 1);
        acquire();
        check_ended(REDLOCK_UNREACHABLE);
    }
}

TEST(a_round_awaits_masters_that_are_coming)
{
    begin_with(3);
    story.up = 3;
    story.coming = 4;
    acquire();
    check_sent(3, 0, 0);
    answer(1, NO);
    check_not_ended(); /* m3 may still come up in time. */
    link_down(2);
    check_ended(REDLOCK_CONTENDED); /* Two of three can answer, so a majority is reachable. */
}

/* ---- Waiting ---- */

TEST(without_waiting_there_is_one_round)
{
    begin_acquiring(3);
    answer(3, NO);
    check_ended(REDLOCK_CONTENDED);
    CHECK_INT(story.q.state, QUORUM_IDLE);
}

TEST(the_last_round_begins_when_the_wait_is_over)
{
    drift_time give_up;

    begin_with(1);
    config.wait = 70 * DRIFT_MS;
    begin_again();
    give_up = STORY_START + config.wait;
    acquire();
    story.now += DRIFT_MS;
    answer(1, NO);
    check_not_ended();
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    CHECK_UINT(story.act.wake_at, story.now + PAUSE_MIN);
    timer_at(story.act.wake_at);
    check_sent(1, 0, 0);
    answer(1, NO);
    CHECK_UINT(story.act.wake_at, give_up); /* The end of the wait cuts the pause. */
    timer_at(give_up - 1);
    check_sent(0, 0, 0);
    timer_at(give_up);
    check_sent(1, 0, 0);
    answer(1, NO);
    check_ended(REDLOCK_CONTENDED);
}

TEST(a_round_that_ends_before_the_wait_is_not_the_last)
{
    for (unsigned late = 0; late < 2; late++) {
        begin_with(1);
        config.wait = 40 * DRIFT_MS;
        begin_again();
        acquire();
        story.now = STORY_START + config.wait - 1 + late;
        answer(1, NO);
        CHECK_UINT(story.act.ended, late);
        CHECK_INT(story.q.state, late ? QUORUM_IDLE : QUORUM_PAUSING);
        if (!late)
            CHECK_UINT(story.act.wake_at, story.now + 1);
    }
}

TEST(who_waits_for_ever_waits_for_ever)
{
    begin_with(3);
    config.wait = DRIFT_NEVER;
    begin_again();
    story.up = 0;
    acquire();
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_INT(story.q.state, QUORUM_PAUSING);
        check_not_ended();
        CHECK(story.act.wake_at > story.now);
        timer_at(story.act.wake_at);
    }
}

TEST(too_late_a_round_is_followed_by_another)
{
    begin_with(1);
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    story.now = DEADLINE;
    answer(1, YES);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    check_sent(0, 0, 1);
}

static drift_span pause_for(uint32_t random)
{
    begin_again();
    story.random = random;
    acquire();
    answer(all(), NO);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    return story.act.wake_at - story.now;
}

TEST(a_pause_is_random_and_within_its_bounds)
{
    drift_span least = DRIFT_NEVER, most = 0;

    begin_with(1);
    config.wait = DRIFT_NEVER;
    for (uint32_t i = 0; i < 10000; i++) {
        drift_span pause = pause_for(i * UINT32_C(429497)); /* Covers all 32 bits. */

        CHECK(pause >= config.pause_min && pause <= config.pause_max);
        least = pause < least ? pause : least;
        most = pause > most ? pause : most;
    }
    CHECK(least < config.pause_min + DRIFT_MS); /* Pauses cover the whole range. */
    CHECK(most > config.pause_max - DRIFT_MS);
    CHECK_UINT(pause_for(0), config.pause_min);
    CHECK_UINT(pause_for(150000), config.pause_max); /* random counts microseconds. */
    config.pause_min = config.pause_max;
    CHECK_UINT(pause_for(UINT32_MAX), config.pause_max);
}

/* Else a machine without a majority would spin: fail, wake at once, fail. */
TEST(a_pause_is_never_nothing)
{
    begin_with(1);
    config.wait = DRIFT_NEVER;
    config.pause_min = config.pause_max = 0;
    CHECK_UINT(pause_for(0), DRIFT_MS);
    config.pause_max = 5;
    CHECK_UINT(pause_for(UINT32_MAX), DRIFT_MS);

    begin_with(3);
    config.pause_min = config.pause_max = 0;
    begin_again();
    hold();
    link_down(0);
    link_down(1);
    timer_at(RENEW_AT);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.act.wake_at, RENEW_AT + DRIFT_MS);
}

/* ---- Rule 5: a master is asked as soon as it is up and owes no answer ---- */

TEST(a_master_that_owes_is_asked_when_it_has_answered)
{
    begin_with(3);
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    answer(3, NO);
    check_sent(0, 0, 4); /* m3 owes two answers now. */
    timer_at(story.act.wake_at);
    check_sent(3, 0, 0);
    answer(1, NO);
    CHECK_INT(story.q.state, QUORUM_ACQUIRING); /* A yes may still come from m3. */
    answer(4, YES);                             /* The answer to the SET of the first round. */
    check_sent(0, 0, 0);
    CHECK_UINT(story.q.yes, 0);
    answer(4, YES); /* The answer to the release. */
    check_sent(4, 0, 0);
    answer(2, YES);
    check_not_ended();
    answer(4, YES);
    check_ended(REDLOCK_OK);
}

TEST(a_master_that_owes_is_not_awaited_for_ever)
{
    begin_with(3);
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    answer(3, NO);
    timer_at(story.act.wake_at);
    answer(1, NO);
    CHECK_INT(story.q.state, QUORUM_ACQUIRING);
    timer_at(story.act.wake_at); /* The round times out. */
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    timer_at(story.act.wake_at); /* The next round begins.  m2 owes an answer, too. */
    check_sent(1, 0, 0);
    link_down(2); /* m3 cannot answer any more. */
    answer(1, NO);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
}

/* A link comes up in a round, and its master may store an older token: the release comes first. */
TEST(a_master_in_doubt_is_released_and_then_asked_in_the_same_round)
{
    begin_with(3);
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    link_down(2);
    answer(1, NO);
    answer_everything(NO);
    timer_at(story.act.wake_at);
    check_sent(3, 0, 0);
    link_up(2);
    check_sent(0, 0, 4);
    answer(1, NO);
    check_not_ended();
    CHECK_INT(story.q.state, QUORUM_ACQUIRING);
    answer(4, NO);
    check_sent(4, 0, 0);
    answer(6, YES);
    check_ended(REDLOCK_OK);
}

TEST(a_master_that_comes_up_is_asked_in_the_round_that_is_out)
{
    begin_with(5);
    story.up = 7;
    acquire();
    check_sent(7, 0, 0);
    link_up(4);
    check_sent(16, 0, 0);
    answer(1, NO);
    check_not_ended();
    answer(2, NO); /* m4 is down, so no majority is left. */
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 20);
}

TEST(a_master_is_asked_once_in_a_round)
{
    begin_acquiring(3);
    answer(1, NO);
    check_sent(0, 0, 0);
    link_down(0);
    check_sent(0, 0, 0);
    link_up(0);
    check_sent(0, 0, 0);
    check_not_ended();
}

CHECK_MAIN(RUN(first_attempts_are_awaited_while_they_can_make_a_majority),
           RUN(a_round_awaits_masters_that_are_coming), RUN(without_waiting_there_is_one_round),
           RUN(the_last_round_begins_when_the_wait_is_over),
           RUN(a_round_that_ends_before_the_wait_is_not_the_last),
           RUN(who_waits_for_ever_waits_for_ever), RUN(too_late_a_round_is_followed_by_another),
           RUN(a_pause_is_random_and_within_its_bounds), RUN(a_pause_is_never_nothing),
           RUN(a_master_that_owes_is_asked_when_it_has_answered),
           RUN(a_master_that_owes_is_not_awaited_for_ever),
           RUN(a_master_in_doubt_is_released_and_then_asked_in_the_same_round),
           RUN(a_master_that_comes_up_is_asked_in_the_round_that_is_out),
           RUN(a_master_is_asked_once_in_a_round))
