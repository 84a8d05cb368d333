/*
 * test-quorum-stands.c - a token that waits at the masters between two rounds, and is granted there
 * by the release of another client: rule 13 of quorum.c.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

#define BEAT (550 * DRIFT_MS)

/* A lease that waits for long, and has asked three masters.  It pauses for BEAT between rounds. */
static void begin_waiting(void)
{
    begin_with(3);
    config.stands = true;
    config.wait = DRIFT_NEVER;
    config.pause_min = config.pause_max = BEAT;
    begin_again();
    acquire();
}

/* The token waits at all masters, and the lease pauses. */
static void begin_standing(void)
{
    begin_waiting();
    for (unsigned m = 0; m < 3; m++)
        story_stand(&story, m);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    check_sent(0, 0, 0);
}

static void check_granted(drift_time sent)
{
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.q.deadline, sent + LEASE - ALLOWANCE);
}

TEST(a_majority_of_grants_is_a_lock)
{
    begin_standing();
    story.now += DRIFT_MS;
    story_grant(&story, 2, STORY_START);
    check_not_ended();
    story_grant(&story, 2, STORY_START);
    check_not_ended(); /* One master has one vote. */
    story_grant(&story, 0, STORY_START);
    check_granted(STORY_START);
    CHECK_INT(story.q.state, QUORUM_HELD);
    check_sent(0, 0, 0);
}

TEST(the_lease_counts_from_the_oldest_request_that_is_granted)
{
    drift_time second;

    begin_standing();
    timer_at(story.act.wake_at);
    second = story.now;
    CHECK(second > STORY_START);
    for (unsigned m = 0; m < 3; m++)
        story_stand(&story, m);
    story_grant(&story, 0, second);
    story_grant(&story, 1, STORY_START); /* This message was late. */
    check_granted(STORY_START);
}

TEST(a_grant_is_late_at_its_deadline)
{
    for (unsigned early = 0; early < 2; early++) {
        begin_standing();
        story_grant(&story, 0, STORY_START);
        story.now = DEADLINE - early;
        story_grant(&story, 1, STORY_START);
        CHECK_UINT(story.act.ended, early);
        if (!early)
            CHECK_INT(story.q.state, QUORUM_PAUSING);
    }
}

TEST(the_next_round_asks_with_the_same_token)
{
    uint32_t round;

    begin_standing();
    round = story.q.round;
    timer_at(STORY_START + BEAT);
    check_sent(7, 0, 0);
    CHECK_UINT(story.q.round, round);
    answer(3, YES);
    check_granted(STORY_START + BEAT);
}

TEST(grants_and_answers_add_up)
{
    begin_standing();
    timer_at(STORY_START + BEAT);
    story_grant(&story, 2, STORY_START);
    story_stand(&story, 0);
    check_not_ended();
    answer(2, YES);
    check_granted(STORY_START);
}

TEST(a_minority_is_followed_by_a_round_after_a_reply_timeout)
{
    begin_standing();
    story.now += 10 * DRIFT_MS;
    story_grant(&story, 1, STORY_START);
    CHECK_UINT(story.act.wake_at, story.now + TIMEOUT);
    timer_at(story.act.wake_at);
    check_sent(7, 0, 0);
    answer(2, YES); /* The master that granted it extends it. */
    story_stand(&story, 0);
    answer(4, YES);
    check_granted(STORY_START); /* It may be the vote of the first request that counts. */
}

/* An operator has revoked the lock there, or deleted the key. */
TEST(a_later_refusal_takes_a_grant_back)
{
    static const enum quorum_vote votes[] = {NO, NONE, VOID};

    for (unsigned i = 0; i < 2 * sizeof votes / sizeof votes[0]; i++) {
        bool is_slow = i % 2 != 0; /* The answer comes between two rounds. */
        drift_time sent = STORY_START;

        begin_waiting();
        story_stand(&story, 0);
        story_stand(&story, 1);
        if (!is_slow)
            story_stand(&story, 2);
        else
            timer_at(STORY_START + TIMEOUT);
        CHECK_INT(story.q.state, QUORUM_PAUSING);
        story_grant(&story, 2, STORY_START);
        if (!is_slow) {
            timer_at(story.act.wake_at);
            check_sent(7, 0, 0);
        }
        if (votes[i / 2] == NO)
            story_stand(&story, 2);
        else
            story_reply(&story, 2, votes[i / 2]);
        if (is_slow) {
            timer_at(story.act.wake_at);
            check_sent(7, 0, 0);
            sent = story.now;
        }
        answer(1, YES);
        check_not_ended();
        answer(2, YES);
        check_granted(sent);
    }
}

/* Perhaps the master granted it after it had refused, and the token is there. */
TEST(a_token_whose_grant_was_taken_back_is_given_back)
{
    begin_standing();
    story_grant(&story, 2, STORY_START);
    timer_at(story.act.wake_at);
    story_stand(&story, 2);
    story_stand(&story, 0);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    check_sent(0, 0, 7);
}

/* All are slow, and have granted the lock: nobody else would tell, or get it. */
TEST(a_yes_between_two_rounds_is_followed_by_one_soon)
{
    begin_waiting();
    timer_at(STORY_START + TIMEOUT);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    CHECK_UINT(story.act.wake_at, STORY_START + TIMEOUT + BEAT);
    story.now += DRIFT_MS;
    story_stand(&story, 0);
    CHECK_UINT(story.act.wake_at, STORY_START + TIMEOUT + BEAT);
    answer(6, YES);
    check_not_ended();
    CHECK_UINT(story.act.wake_at, story.now + TIMEOUT);
    timer_at(story.act.wake_at);
    check_sent(7, 0, 0);
    answer(6, YES);
    check_granted(STORY_START + 2 * TIMEOUT + DRIFT_MS);
}

/* The answers take longer than the reply timeout.  Others must get it. */
TEST(who_hears_too_late_twice_gives_it_back)
{
    begin_waiting();
    for (unsigned i = 0; i < 2; i++) {
        timer_at(story.q.timeout);
        CHECK_INT(story.q.state, QUORUM_PAUSING);
        if (i == 0) {
            CHECK_UINT(story.act.send_len, 0);
            story.now += DRIFT_MS;
            answer(7, YES);
            CHECK_UINT(story.act.send_len, 0);
            timer_at(story.act.wake_at);
            check_sent(7, 0, 0);
        }
    }
    check_sent(0, 0, 7);
}

/* It is given back already. */
TEST(a_yes_to_a_dead_token_is_followed_by_none)
{
    begin_waiting();
    story_stand(&story, 0);
    answer(2, YES);
    timer_at(STORY_START + TIMEOUT);
    check_sent(0, 0, 7);
    answer_everything(YES);
    CHECK_UINT(story.act.wake_at, STORY_START + TIMEOUT + BEAT);
}

TEST(a_minority_is_given_back_at_the_end_of_a_round)
{
    uint32_t round;

    begin_standing();
    round = story.q.round;
    story_grant(&story, 1, STORY_START);
    timer_at(story.act.wake_at);
    story_stand(&story, 0);
    answer(2, YES);
    story_stand(&story, 2);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    check_sent(0, 0, 7); /* Where it waits, too. */
    answer(2, YES);
    timer_at(story.act.wake_at);
    check_sent(2, 0, 0); /* Only this one has confirmed that it has no other token. */
    CHECK(story.q.round != round);
    answer(1, NO);
    check_sent(1, 0, 0);
}

TEST(a_grant_of_a_dead_token_is_no_vote)
{
    begin_standing();
    story_grant(&story, 1, STORY_START);
    timer_at(story.act.wake_at);
    story_stand(&story, 0);
    answer(2, YES);
    story_stand(&story, 2);
    story_grant(&story, 0, STORY_START);
    story_grant(&story, 2, STORY_START);
    check_not_ended();
}

TEST(a_master_that_gave_no_answer_does_not_end_the_token)
{
    begin_waiting();
    story_stand(&story, 0);
    timer_at(STORY_START + TIMEOUT);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    check_sent(0, 0, 0);
    story_grant(&story, 0, STORY_START);
    story_grant(&story, 2, STORY_START);
    check_granted(STORY_START);
}

/* The master may have granted the token, and its clock or its data are not to be trusted. */
TEST(a_void_vote_ends_the_token)
{
    begin_waiting();
    answer(1, VOID);
    story_stand(&story, 1);
    check_sent(0, 0, 7);
}

TEST(who_gives_up_releases_the_token_everywhere)
{
    begin_standing();
    story_step(&story, QUORUM_EV_CANCEL);
    check_sent(0, 0, 7);
    CHECK(!quorum_is_settled(&story.q));
    answer_everything(NO);
    CHECK(quorum_is_settled(&story.q));
}

TEST(a_link_that_breaks_takes_its_grant_along)
{
    begin_standing();
    story_grant(&story, 0, STORY_START);
    link_down(0);
    story_grant(&story, 1, STORY_START);
    check_not_ended();
    story_grant(&story, 2, STORY_START);
    check_granted(STORY_START);
}

/* The masters may not vote for a while, and their links stand.  The answer to the first round comes
 * in the second. */
TEST(a_yes_to_an_older_request_is_no_vote_of_a_newer)
{
    for (unsigned full = 0; full < 2; full++) {
        begin_waiting();
        story.linked = 7;
        story_stand(&story, 1);
        story_stand(&story, 2);
        timer_at(STORY_START + TIMEOUT);
        CHECK_INT(story.q.state, QUORUM_PAUSING);
        if (full) {
            story.linked = 6;
            story.full = 1;
        }
        story_link(&story, 0, false);
        story.linked = 7;
        story.full = 0;
        story_link(&story, 0, true);
        CHECK_UINT(story.act.wake_at, STORY_START + 2 * TIMEOUT);
        timer_at(story.act.wake_at);
        story_reply(&story, 0, YES);
        CHECK_UINT(story.q.yes, 0);
    }
}

/* The next round has not asked the master that owes an answer.  When it may vote again, it is not
 * asked either. */
TEST(an_answer_that_is_owed_since_an_earlier_round_is_no_vote)
{
    begin_waiting();
    story.linked = 7;
    story_stand(&story, 1);
    story_stand(&story, 2);
    timer_at(STORY_START + TIMEOUT);
    timer_at(story.act.wake_at);
    CHECK_INT(story.q.state, QUORUM_ACQUIRING);
    story_link(&story, 0, false);
    story_link(&story, 0, true);
    check_sent(0, 0, 0);
    story_reply(&story, 0, YES);
    CHECK_UINT(story.q.yes, 0);
    story_reply(&story, 1, YES);
    check_not_ended();
    story_stand(&story, 2);
    CHECK_UINT(story.q.live, 0); /* It may wait at the first master, which others need. */
}

/* A change brings new members, so the next round waits for their first links.  Meanwhile the master
 * that owes an answer may not vote for a moment. */
TEST(an_answer_that_is_owed_while_first_links_come_up_is_no_vote)
{
    begin_waiting();
    story.linked = 7;
    story_stand(&story, 1);
    story_stand(&story, 2);
    timer_at(STORY_START + TIMEOUT);
    story.coming = 0x38;
    story_change(&story, (struct members){7, 0x38}, 0);
    timer_at(story.act.wake_at);
    CHECK_INT(story.q.state, QUORUM_CONNECTING);
    story_link(&story, 0, false);
    check_sent(0, 0, 7); /* The token is dead. */
    story_link(&story, 0, true);
    story.linked = 0x3f;
    story_link(&story, 3, true);
    story_link(&story, 4, true);
    CHECK_INT(story.q.state, QUORUM_ACQUIRING);
    check_sent(0x18, 0, 0);
    story_reply(&story, 0, YES);
    CHECK_UINT(story.q.yes, 0);
}

/* The queue of that master was full, so it has got no release. */
TEST(an_answer_to_a_token_that_has_ended_does_not_end_the_next)
{
    begin_waiting();
    story_stand(&story, 2);
    timer_at(STORY_START + TIMEOUT);
    story_grant(&story, 1, STORY_START);
    story.up = story.linked = 5;
    story.full = 2;
    story_link(&story, 0, false);
    check_sent(0, 0, 5);
    story_link(&story, 0, true);
    story_stand(&story, 1); /* It is older than the grant, or takes it back. */
    story.up = story.linked = 7;
    story.full = 0;
    story_step(&story, QUORUM_EV_TIMER);
    check_sent(0, 0, 2);
    answer_everything(YES);
    timer_at(story.act.wake_at);
    check_sent(7, 0, 0);
    story_stand(&story, 0);
    story_stand(&story, 1);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    check_sent(0, 0, 0);
}

/* Nothing is owed: nobody else can get this token's place. */
TEST(a_token_stands_while_masters_that_answered_may_not_vote)
{
    begin_standing();
    story.linked = 7;
    for (unsigned m = 0; m < 3; m++)
        story_link(&story, m, false);
    for (unsigned m = 0; m < 3; m++)
        story_link(&story, m, true);
    timer_at(story.act.wake_at);
    answer(3, YES);
    check_granted(STORY_START + BEAT);
}

/* The answer is lost with the link. */
TEST(a_token_stands_when_a_link_breaks_that_owes_an_answer)
{
    begin_waiting();
    story_stand(&story, 1);
    story_stand(&story, 2);
    timer_at(STORY_START + TIMEOUT);
    link_down(0);
    timer_at(STORY_START + TIMEOUT + BEAT);
    answer(6, YES);
    check_granted(STORY_START + TIMEOUT + BEAT);
}

TEST(a_token_that_waited_for_long_is_extended_at_once)
{
    begin_standing();
    story.now = STORY_START + LEASE / 8;
    story_grant(&story, 0, STORY_START);
    story_grant(&story, 1, STORY_START);
    check_granted(STORY_START);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    check_sent(0, 7, 0);
    answer(3, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, STORY_START + LEASE / 8 + LEASE - ALLOWANCE);
    answer(4, NO); /* It drops the token that waits there. */
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 3);
}

TEST(a_release_goes_also_where_the_token_waits)
{
    begin_standing();
    story_grant(&story, 0, STORY_START);
    story_grant(&story, 1, STORY_START);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 7);
    answer(4, NO);
    check_not_ended();
    answer(3, YES);
    check_ended(REDLOCK_OK);
}

/* A key may be granted when the wait is nearly over, and lasts for a lease then. */
TEST(a_master_may_store_the_token_for_two_leases)
{
    begin_standing();
    story.up = 0;
    story_step(&story, QUORUM_EV_CANCEL);
    CHECK_UINT(story.act.wake_at, STORY_START + 2 * LEASE + 182 * DRIFT_MS);
}

TEST(others_do_not_stand)
{
    begin_with(3);
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    answer(7, NO);
    CHECK_UINT(story.q.round, 0);
    story_grant(&story, 0, STORY_START);
    story_grant(&story, 1, STORY_START);
    check_not_ended();
}

CHECK_MAIN(
    RUN(a_majority_of_grants_is_a_lock),
    RUN(the_lease_counts_from_the_oldest_request_that_is_granted),
    RUN(a_grant_is_late_at_its_deadline), RUN(the_next_round_asks_with_the_same_token),
    RUN(grants_and_answers_add_up), RUN(a_minority_is_followed_by_a_round_after_a_reply_timeout),
    RUN(a_later_refusal_takes_a_grant_back), RUN(a_token_whose_grant_was_taken_back_is_given_back),
    RUN(a_yes_between_two_rounds_is_followed_by_one_soon),
    RUN(who_hears_too_late_twice_gives_it_back), RUN(a_yes_to_a_dead_token_is_followed_by_none),
    RUN(a_minority_is_given_back_at_the_end_of_a_round), RUN(a_grant_of_a_dead_token_is_no_vote),
    RUN(a_master_that_gave_no_answer_does_not_end_the_token), RUN(a_void_vote_ends_the_token),
    RUN(who_gives_up_releases_the_token_everywhere), RUN(a_link_that_breaks_takes_its_grant_along),
    RUN(a_yes_to_an_older_request_is_no_vote_of_a_newer),
    RUN(an_answer_that_is_owed_since_an_earlier_round_is_no_vote),
    RUN(an_answer_that_is_owed_while_first_links_come_up_is_no_vote),
    RUN(an_answer_to_a_token_that_has_ended_does_not_end_the_next),
    RUN(a_token_stands_while_masters_that_answered_may_not_vote),
    RUN(a_token_stands_when_a_link_breaks_that_owes_an_answer),
    RUN(a_token_that_waited_for_long_is_extended_at_once),
    RUN(a_release_goes_also_where_the_token_waits),
    RUN(a_master_may_store_the_token_for_two_leases), RUN(others_do_not_stand))
