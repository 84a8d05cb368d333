/*
 * test-quorum-settle.c - giving the lock back: rule 4 of quorum.c, and releases.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

/* ---- Rule 4: a master that may store a dead token gets a release, once per connection ---- */

TEST(a_dead_round_is_released_where_it_may_be_stored)
{
    begin_acquiring(5);
    answer(1, YES);  /* m1 stores the token. */
    answer(2, NONE); /* m2 answers with an error, and does not. */
    answer(4, NO);   /* m3 does not. */
    check_not_ended();
    answer(8, NO); /* m5 is silent, and may store it. */
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 17);
    CHECK(!quorum_is_settled(&story.q));
    answer(16, YES); /* A late yes: m5 has already got a release. */
    check_sent(0, 0, 0);
    answer(17, YES);
    CHECK(quorum_is_settled(&story.q));
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER);
}

TEST(a_master_is_told_once_per_connection)
{
    begin_acquiring(3);
    link_down(2);
    answer(1, NO);
    check_ended(REDLOCK_CONTENDED); /* m3 is down: a majority has become impossible. */
    check_sent(0, 0, 2);
    answer_everything(NO);
    for (unsigned i = 0; i < 3; i++) {
        link_up(2);
        check_sent(0, 0, 4);
        story_step(&story, QUORUM_EV_TIMER);
        check_sent(0, 0, 0);
        link_down(0); /* The link of another master. */
        check_sent(0, 0, 0);
        link_up(0);
        check_sent(0, 0, 0);
        if (i == 2)
            break;
        link_down(2);
        check_sent(0, 0, 0);
        CHECK(!quorum_is_settled(&story.q));
    }
    answer(4, NO); /* m3 did not store the token. */
    CHECK(quorum_is_settled(&story.q));
}

/* The list of the client turns out to be wrong while it asks: no master may vote any more, but
 * their links stand. */
TEST(masters_that_may_not_vote_any_more_are_told)
{
    begin_acquiring(3);
    answer(1, YES);
    story.linked = 7;
    link_down(0);
    check_not_ended();
    link_down(1);
    check_ended(REDLOCK_UNREACHABLE); /* A majority has become impossible. */
    check_sent(0, 0, 7);
    link_down(2); /* The machine cannot know that this link stands. */
    check_sent(0, 0, 4);
    answer_everything(YES);
    CHECK(quorum_is_settled(&story.q));

    begin_held(3);
    story.linked = 3; /* The queue of m3 is full. */
    story.up = 0;
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 3);
    answer(3, YES);
    check_ended(REDLOCK_OK);
}

/* It is to get the token back, and a release that is under way then would bar it (rule 14). */
TEST(a_master_that_may_not_vote_is_not_told_while_a_token_is_live)
{
    begin_with(3);
    config.many = true;
    begin_again();
    hold();
    timer_at(RENEW_AT);
    story.linked = 7;
    story.up = 6;
    answer(1, NO); /* It lost its data. */
    check_sent(0, 0, 0);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(6, YES); /* Now it is no part of the hold any more. */
    CHECK_INT(story.q.state, QUORUM_HELD);
    check_sent(0, 0, 0);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 7);
}

TEST(a_release_that_gets_an_error_is_not_sent_again)
{
    begin_held(1);
    story_step(&story, QUORUM_EV_RELEASE);
    answer(1, NONE);
    check_ended(REDLOCK_UNREACHABLE);
    check_sent(0, 0, 0);
    CHECK(quorum_is_settled(&story.q));
}

TEST(a_full_queue_is_told_when_it_has_drained)
{
    begin_acquiring(3);
    answer(1, NO);
    story.up = 3;
    answer(2, NO);
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 0);
    CHECK(!quorum_is_settled(&story.q));
    story.up = 7;
    story_step(&story, QUORUM_EV_TIMER);
    check_sent(0, 0, 4);
}

/* A release waits for room only if its master may store a dead token and got no release. */
TEST(these_releases_wait_for_room)
{
    begin_acquiring(3);
    for (unsigned m = 0; m < 3; m++)
        CHECK(!quorum_must_release(&story.q, m)); /* The round is out. */
    answer(1, NO);
    story.up = 3; /* The queue of the third is full. */
    answer(2, NO);
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 0);
    CHECK(!quorum_must_release(&story.q, 0));
    CHECK(!quorum_must_release(&story.q, 1));
    CHECK(quorum_must_release(&story.q, 2));
    story.up = 7;
    story_step(&story, QUORUM_EV_TIMER);
    check_sent(0, 0, 4);
    CHECK(!quorum_must_release(&story.q, 2));
    link_down(2); /* The connection of the release is gone. */
    CHECK(quorum_must_release(&story.q, 2));
    link_up(2);
    check_sent(0, 0, 4);
    CHECK(!quorum_must_release(&story.q, 2));

    begin_held(3);
    for (unsigned m = 0; m < 3; m++)
        CHECK(!quorum_must_release(&story.q, m));
    story.up = 6;
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 6);
    CHECK(quorum_must_release(&story.q, 0));
    CHECK(!quorum_must_release(&story.q, 1));
    answer(6, YES);
    CHECK(quorum_must_release(&story.q, 0));
    story_step(&story, QUORUM_EV_DETACH);
    CHECK(!quorum_must_release(&story.q, 0));
}

TEST(what_has_expired_by_itself_is_forgotten)
{
    begin_acquiring(3);
    link_down(2);
    answer(1, NO);
    answer_everything(NO);
    CHECK_UINT(story.q.settle_by, SETTLED);
    CHECK_UINT(story.act.wake_at, SETTLED);
    timer_at(SETTLED - 1);
    CHECK(!quorum_is_settled(&story.q));
    CHECK_UINT(story.act.wake_at, SETTLED);
    timer_at(SETTLED);
    CHECK(quorum_is_settled(&story.q));
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER);
    link_up(2);
    check_sent(0, 0, 0);
}

TEST(the_time_to_forget_counts_from_the_latest_send)
{
    begin_with(3);
    story.up = 3;
    acquire();
    story.now += 30 * DRIFT_MS;
    link_up(2);
    CHECK_UINT(story.q.settle_by, SETTLED + 30 * DRIFT_MS);
    story.now += DRIFT_MS;
    answer(1, YES); /* Nothing is sent for this. */
    CHECK_UINT(story.q.settle_by, SETTLED + 30 * DRIFT_MS);

    begin_held(3);
    story.now += DRIFT_S;
    story_extend(&story, 4 * LEASE); /* A master may have obeyed, so the question counts. */
    CHECK_UINT(story.q.settle_by, STORY_START + DRIFT_S + 4 * LEASE + 362 * DRIFT_MS);
    timer_at(STORY_START + DRIFT_S + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
    story_extend(&story, 1000 * DRIFT_MS); /* A shorter extension does not shorten the time. */
    CHECK_UINT(story.q.settle_by, STORY_START + DRIFT_S + 4 * LEASE + 362 * DRIFT_MS);
}

/* The queue of m3 is full when the round dies, so m3 gets no release.  Then m3 hangs for longer
 * than a lease.  A key that it sets after that has not expired. */
TEST(a_master_that_obeys_very_late_is_told_then)
{
    begin_acquiring(3);
    story.up = 3;
    answer(3, NO);
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 0);
    timer_at(SETTLED);
    CHECK(!quorum_is_settled(&story.q));
    CHECK(quorum_cares(&story.q, 2));
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER); /* An answer or a broken link wakes it. */
    story.up = 7;
    story.now += DRIFT_S;
    answer(4, YES);
    check_sent(0, 0, 4);
    timer_at(story.act.wake_at);
    CHECK(quorum_is_settled(&story.q)); /* m3 got a release on a link that stands. */

    begin_again();
    acquire();
    story.up = 3;
    answer(3, NO);
    timer_at(SETTLED);
    link_down(2);
    CHECK_UINT(story.act.wake_at, SETTLED);
    timer_at(story.now);
    CHECK(quorum_is_settled(&story.q));
}

/* A process that was paused until the token expired has sent no release yet. */
TEST(whoever_can_be_told_is_told_before_it_is_forgotten)
{
    begin_held(3);
    timer_at(SETTLED);
    check_sent(0, 0, 7);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER);

    begin_again();
    acquire();
    answer(1, NO);
    story.up = 3;
    answer(2, NO);
    check_sent(0, 0, 0);
    story.up = 7; /* The queue of m3 has drained; no other event has come. */
    timer_at(SETTLED);
    check_sent(0, 0, 4);
}

/* ---- Releasing ---- */

/* The answers of three masters to a release, in turn: y, n, e(rror), d(own); and the status
 * after the last of them. */
TEST(a_release_ends_when_its_outcome_is_certain)
{
    static const struct {
        const char *answers;
        int status;
    } rows[] = {
        {"yy", REDLOCK_OK},
        {"yny", REDLOCK_OK},
        {"nyy", REDLOCK_OK},
        {"eyy", REDLOCK_OK},
        {"dyy", REDLOCK_OK},
        {"nn", REDLOCK_LOST}, /* Two do not store the token: it was not held. */
        {"ynn", REDLOCK_LOST},
        {"nyn", REDLOCK_LOST},
        {"ee", REDLOCK_UNREACHABLE}, /* Two may still store it. */
        {"dd", REDLOCK_UNREACHABLE},
        {"ed", REDLOCK_UNREACHABLE},
        {"nen", REDLOCK_LOST}, /* m3 decides whether two do not store it. */
        {"ndn", REDLOCK_LOST},
        {"enn", REDLOCK_LOST},
        {"dnn", REDLOCK_LOST},
        {"ney", REDLOCK_UNREACHABLE},
        {"ndy", REDLOCK_UNREACHABLE},
        {"ene", REDLOCK_UNREACHABLE},
        {"dnd", REDLOCK_UNREACHABLE},
        {"yed", REDLOCK_UNREACHABLE},
        {"yne", REDLOCK_UNREACHABLE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].answers;
        begin_held(3);
        story_step(&story, QUORUM_EV_RELEASE);
        check_sent(0, 0, 7);
        CHECK_UINT(remaining(), 0);
        for (unsigned m = 0; rows[i].answers[m] != '\0'; m++) {
            char c = rows[i].answers[m];

            check_not_ended();
            if (c == 'd')
                link_down(m);
            else
                answer(bit(m), c == 'y' ? YES : c == 'n' ? NO : NONE);
        }
        check_ended(rows[i].status);
        CHECK_INT(story.q.state, QUORUM_IDLE);
    }
    check_row = NULL;
}

TEST(a_release_is_a_matter_of_a_majority)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        begin_held(n);
        story_step(&story, QUORUM_EV_RELEASE);
        for (unsigned m = 0; m + 1 < majority(); m++) {
            story_reply(&story, m, YES);
            check_not_ended();
        }
        story_reply(&story, majority() - 1, YES);
        check_ended(REDLOCK_OK);
    }
}

TEST(a_release_ends_at_its_timeout_and_goes_on_in_the_background)
{
    begin_held(3);
    story.now += 5;
    story_step(&story, QUORUM_EV_RELEASE);
    answer(1, YES);
    timer_at(STORY_START + 5 + TIMEOUT - 1);
    check_not_ended();
    timer_at(STORY_START + 5 + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_UINT(story.act.wake_at, SETTLED);
    answer(6, YES);
    check_not_ended();
    CHECK(quorum_is_settled(&story.q));
}

TEST(a_master_that_comes_up_is_told_while_a_release_is_out)
{
    begin_held(5);
    link_down(4);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 15);
    link_up(4);
    check_sent(0, 0, 16);
    answer(3, NONE);
    answer(12, YES);
    check_not_ended();
    answer(16, YES);
    check_ended(REDLOCK_OK);
}

TEST(a_release_with_a_majority_down_does_not_hang)
{
    begin_held(3);
    link_down(0);
    link_down(1);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 4);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK(!quorum_is_settled(&story.q));
    link_up(0);
    check_sent(0, 0, 1);
}

/* A master that was never asked, or said no, did not lose the token. */
TEST(masters_that_never_had_it_do_not_make_it_lost)
{
    begin_with(5);
    story.up = 7;
    acquire();
    answer(7, YES);
    check_ended(REDLOCK_OK);
    story_step(&story, QUORUM_EV_RELEASE);
    answer(3, YES);
    check_not_ended();
    timer_at(STORY_START + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE); /* m3 may still store it. */

    begin_again();
    story.up = 7;
    acquire();
    answer(7, YES);
    story_step(&story, QUORUM_EV_RELEASE);
    answer(1, NO); /* Only two of five stored it. */
    check_ended(REDLOCK_LOST);
}

CHECK_MAIN(RUN(a_dead_round_is_released_where_it_may_be_stored),
           RUN(a_master_is_told_once_per_connection),
           RUN(masters_that_may_not_vote_any_more_are_told),
           RUN(a_master_that_may_not_vote_is_not_told_while_a_token_is_live),
           RUN(a_release_that_gets_an_error_is_not_sent_again),
           RUN(a_full_queue_is_told_when_it_has_drained), RUN(these_releases_wait_for_room),
           RUN(what_has_expired_by_itself_is_forgotten),
           RUN(the_time_to_forget_counts_from_the_latest_send),
           RUN(a_master_that_obeys_very_late_is_told_then),
           RUN(whoever_can_be_told_is_told_before_it_is_forgotten),

           RUN(a_release_ends_when_its_outcome_is_certain),
           RUN(a_release_is_a_matter_of_a_majority),
           RUN(a_release_ends_at_its_timeout_and_goes_on_in_the_background),
           RUN(a_master_that_comes_up_is_told_while_a_release_is_out),
           RUN(a_release_with_a_majority_down_does_not_hang),
           RUN(masters_that_never_had_it_do_not_make_it_lost))
