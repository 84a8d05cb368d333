/*
 * test-quorum-states.c - the events that may come in any state, tried in every state.
 */
#include "redlock/core/quorum.h"

#include <string.h>

#include "test/lib/scene.h"

/* Bring a new machine of three masters into a state.  Returns the masters that may store a live
 * token.  In most states they have not answered the last command. */
static quorum_mask reach(enum quorum_state state)
{
    begin_with(3);
    config.wait = DRIFT_NEVER;
    begin_again();
    switch (state) {
    case QUORUM_IDLE:
        return 0;
    case QUORUM_CONNECTING:
        story.up = 0;
        story.coming = 7;
        acquire();
        return 0;
    case QUORUM_ACQUIRING:
        acquire();
        return 7;
    case QUORUM_RAISING:
        config.fence = true;
        begin_again();
        acquire();
        count_to(1, 7);
        count_to(2, 8);
        return 7;
    case QUORUM_PAUSING:
        acquire();
        answer(7, NO);
        return 0;
    case QUORUM_HELD:
        hold();
        return 7;
    case QUORUM_EXTENDING:
        hold();
        timer_at(RENEW_AT);
        return 7;
    case QUORUM_ADOPTED:
        story_step(&story, QUORUM_EV_ADOPT);
        return 7;
    case QUORUM_PROVING:
        story_step(&story, QUORUM_EV_ADOPT);
        story_extend(&story, 0);
        return 7;
    case QUORUM_RELEASING:
        hold();
        story_step(&story, QUORUM_EV_RELEASE);
        return 0; /* All have got a release. */
    case QUORUM_LOST:
        hold();
        timer_at(DEADLINE);
        return 0;
    }
    return 0;
}

#define STATES (QUORUM_LOST + 1)

TEST(a_cancel_undoes_everything_in_every_state)
{
    for (unsigned i = 0; i < STATES; i++) {
        quorum_mask stored = reach((enum quorum_state)i);

        CHECK_UINT(story.q.state, i);
        story_step(&story, QUORUM_EV_CANCEL);
        check_not_ended();
        CHECK(!story.act.lost);
        check_sent(0, 0, stored);
        CHECK_INT(story.q.state, QUORUM_IDLE);
        CHECK_UINT(remaining(), 0);
        CHECK(!quorum_may_extend(&story.q));
        for (unsigned j = 0; j < 4; j++)
            for (unsigned m = 0; m < 3; m++)
                if (story.links[m].asks_len > 0) {
                    story_reply(&story, m, YES);
                    check_not_ended();
                    check_sent(0, 0, 0);
                }
        CHECK(quorum_is_settled(&story.q));
    }
}

/* After a cancel the machine reports nothing: neither a loss in the same step nor the end of an
 * extension. */
TEST(a_cancel_is_the_last_word)
{
    static const enum quorum_event_type types[] = {QUORUM_EV_CANCEL, QUORUM_EV_DETACH};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        begin_held(3);
        story_extend(&story, 0);
        story.now = DEADLINE;
        story_step(&story, types[i]);
        check_not_ended();
        CHECK(!story.act.lost);
        CHECK_INT(story.q.state, QUORUM_IDLE);
    }
}

TEST(a_detach_undoes_nothing_in_any_state)
{
    for (unsigned i = 0; i < STATES; i++) {
        (void)reach((enum quorum_state)i);
        story_step(&story, QUORUM_EV_DETACH);
        check_not_ended();
        CHECK(!story.act.lost);
        check_sent(0, 0, 0);
        CHECK(quorum_is_settled(&story.q));
        CHECK_UINT(story.act.wake_at, DRIFT_NEVER);
        for (unsigned j = 0; j < 4; j++)
            for (unsigned m = 0; m < 3; m++)
                if (story.links[m].asks_len > 0) {
                    story_reply(&story, m, YES);
                    check_sent(0, 0, 0);
                }
        link_down(0);
        link_up(0);
        check_sent(0, 0, 0);
        CHECK(quorum_is_settled(&story.q));
    }
}

TEST(a_release_is_in_place_in_these_states)
{
    static const struct {
        enum quorum_state state;
        quorum_mask release;
        bool ends;
        int status;
    } rows[] = {
        {QUORUM_HELD, 7, false, 0},           {QUORUM_EXTENDING, 7, false, 0},
        {QUORUM_ADOPTED, 7, false, 0},        {QUORUM_PROVING, 7, false, 0},
        {QUORUM_LOST, 0, true, REDLOCK_LOST}, /* All have got a release. */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)reach(rows[i].state);
        story_step(&story, QUORUM_EV_RELEASE);
        check_sent(0, 0, rows[i].release);
        CHECK_UINT(remaining(), 0);
        CHECK_INT(story.act.ended, rows[i].ends);
        if (rows[i].ends)
            CHECK_INT(story.act.status, rows[i].status);
        else
            CHECK_UINT(story.act.wake_at, story.now + TIMEOUT);
    }
}

/* The queue of the first master is full, so it gets no release, and answers the extension. */
TEST(a_late_answer_to_an_extension_is_no_release)
{
    (void)reach(QUORUM_EXTENDING);
    story.up = 6;
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 6);
    answer(7, YES); /* To the extension. */
    answer(2, YES);
    check_not_ended();
    answer(4, YES);
    check_ended(REDLOCK_OK);
}

TEST(an_extension_is_in_place_in_these_states)
{
    for (unsigned i = 0; i < STATES; i++) {
        bool may =
            i == QUORUM_HELD || i == QUORUM_EXTENDING || i == QUORUM_ADOPTED || i == QUORUM_LOST;

        (void)reach((enum quorum_state)i);
        CHECK_INT(quorum_may_extend(&story.q), may);
    }
}

TEST(a_machine_wakes_in_these_states)
{
    static const drift_time wake[STATES] = {
        [QUORUM_IDLE] = DRIFT_NEVER,
        [QUORUM_CONNECTING] = DRIFT_NEVER, /* The links have timeouts. */
        [QUORUM_ACQUIRING] = STORY_START + TIMEOUT,
        [QUORUM_RAISING] = STORY_START + TIMEOUT,
        [QUORUM_PAUSING] = STORY_START + PAUSE_MIN,
        [QUORUM_HELD] = RENEW_AT,
        [QUORUM_EXTENDING] = RENEW_AT + TIMEOUT,
        [QUORUM_ADOPTED] = DRIFT_NEVER,
        [QUORUM_PROVING] = STORY_START + TIMEOUT,
        [QUORUM_RELEASING] = STORY_START + TIMEOUT,
        [QUORUM_LOST] = SETTLED,
    };

    for (unsigned i = 0; i < STATES; i++) {
        (void)reach((enum quorum_state)i);
        CHECK_UINT(story.act.wake_at, wake[i]);
    }
}

/* A timer may fire too early. */
TEST(an_early_timer_does_nothing_in_any_state)
{
    for (unsigned i = 0; i < STATES; i++) {
        struct quorum before;

        (void)reach((enum quorum_state)i);
        before = story.q;
        if (story.act.wake_at != DRIFT_NEVER)
            story.now = story.act.wake_at - 1;
        story_step(&story, QUORUM_EV_TIMER);
        CHECK(memcmp(&before, &story.q, sizeof before) == 0);
        check_sent(0, 0, 0);
        check_not_ended();
    }
}

/* Each timer that is due moves the next one to a later time. */
TEST(a_timer_makes_progress_in_every_state)
{
    for (unsigned i = 0; i < STATES; i++) {
        (void)reach((enum quorum_state)i);
        story.up = 0; /* No master is up: the worst case. */
        for (unsigned j = 0; j < 1000 && story.act.wake_at != DRIFT_NEVER; j++) {
            drift_time before = story.act.wake_at;

            timer_at(before);
            CHECK(story.act.wake_at > before);
            if (story.q.state == QUORUM_PAUSING && j == 100)
                break; /* The machine waits for ever. */
            CHECK(j < 999);
        }
    }
}

TEST(these_masters_matter)
{
    for (unsigned i = 0; i < STATES; i++) {
        bool cares = i != QUORUM_IDLE && i != QUORUM_PAUSING;

        (void)reach((enum quorum_state)i);
        CHECK_INT(quorum_cares(&story.q, 0), cares);
    }
    begin_with(3); /* A master that said no does not matter. */
    acquire();
    answer(1, NO);
    answer(6, YES);
    CHECK(!quorum_cares(&story.q, 0));
    CHECK(quorum_cares(&story.q, 1));
}

/* ---- The length of the lease ---- */

TEST(an_extension_that_fails_leaves_the_length_of_the_lease)
{
    static const enum quorum_vote votes[] = {NONE, YES};

    for (unsigned i = 0; i < 2; i++) {
        begin_held(3);
        story_extend(&story, 20 * DRIFT_MS);
        if (votes[i] == YES)
            story.now += 20 * DRIFT_MS;
        answer(3, votes[i]);
        check_ended(votes[i] == YES ? REDLOCK_TOO_LATE : REDLOCK_UNREACHABLE);
        answer(4, votes[i]);
        timer_at(story.act.wake_at);
        check_sent(0, 7, 0);
        answer(7, YES);
        CHECK_UINT(remaining(), LEASE - ALLOWANCE);
    }
}

TEST(a_proof_that_fails_leaves_the_length_of_the_lease)
{
    begin_with(3);
    config.many = true;
    begin_again();
    story_step(&story, QUORUM_EV_ADOPT);
    story_extend(&story, 20 * DRIFT_MS);
    answer(3, NONE);
    check_ended(REDLOCK_UNREACHABLE);
    answer(4, NONE);
    story_extend(&story, 0);
    answer(7, YES);
    CHECK_UINT(remaining(), LEASE - ALLOWANCE);
}

/* Nothing of the lease is spent then. */
TEST(an_extension_by_less_than_is_left_is_no_reason_to_hurry)
{
    begin_held(3);
    story_extend(&story, 20 * DRIFT_MS);
    answer(3, YES);
    check_ended(REDLOCK_OK);
    CHECK(story.act.wake_at >= story.now + (DEADLINE - story.now) / 3);
}

/* ---- A queue without room ---- */

TEST(an_unlock_waits_until_masters_can_take_it)
{
    for (unsigned has_room = 0; has_room < 2; has_room++) {
        begin_held(3);
        story.up = 0;
        story.full = 7;
        story_step(&story, QUORUM_EV_RELEASE);
        check_sent(0, 0, 0);
        check_not_ended();
        if (has_room) {
            story.full = 0;
            story.up = 7;
            timer_at(story.now + DRIFT_MS);
            check_sent(0, 0, 7);
            answer(3, YES);
            check_ended(REDLOCK_OK);
        } else {
            timer_at(story.act.wake_at);
            check_ended(REDLOCK_UNREACHABLE);
        }
    }
}

CHECK_MAIN(RUN(a_cancel_undoes_everything_in_every_state), RUN(a_cancel_is_the_last_word),
           RUN(a_detach_undoes_nothing_in_any_state), RUN(a_release_is_in_place_in_these_states),
           RUN(a_late_answer_to_an_extension_is_no_release),
           RUN(an_extension_is_in_place_in_these_states), RUN(a_machine_wakes_in_these_states),
           RUN(an_early_timer_does_nothing_in_any_state),
           RUN(a_timer_makes_progress_in_every_state), RUN(these_masters_matter),
           RUN(an_extension_that_fails_leaves_the_length_of_the_lease),
           RUN(a_proof_that_fails_leaves_the_length_of_the_lease),
           RUN(an_extension_by_less_than_is_left_is_no_reason_to_hurry),
           RUN(an_unlock_waits_until_masters_can_take_it))
