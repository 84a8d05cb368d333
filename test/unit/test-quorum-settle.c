/*
 * test-quorum-settle.c - giving the lock back: rules 4 and 5 of quorum.c,
 * releases, and what may happen in any state.
 */
#include "redlock/core/quorum.h"

#include <string.h>

#include "test/lib/scene.h"

/* ---- Rule 4: whoever may store a dead token is told, once per connection ---- */

TEST(a_dead_round_is_released_where_it_may_be_stored)
{
    begin_with(5);
    acquire();
    answer(1, YES);  /* Stores it. */
    answer(2, NONE); /* Answered with an error: does not. */
    answer(4, NO);   /* Does not. */
    check_not_ended();
    answer(8, NO); /* m5 is silent: may. */
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 17);
    CHECK(!quorum_is_settled(&story.q));
    answer(16, YES); /* The late yes: it has been told already. */
    check_sent(0, 0, 0);
    answer(17, YES);
    CHECK(quorum_is_settled(&story.q));
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER);
}

TEST(a_master_is_told_once_per_connection)
{
    begin_with(3);
    acquire();
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
        link_down(0); /* Another's link. */
        check_sent(0, 0, 0);
        link_up(0);
        check_sent(0, 0, 0);
        if (i == 2)
            break;
        link_down(2);
        check_sent(0, 0, 0);
        CHECK(!quorum_is_settled(&story.q));
    }
    answer(4, NO); /* It was not there. */
    CHECK(quorum_is_settled(&story.q));
}

/* ---- Rule 10: a no to several names says nothing of each ---- */

static void hold_many(unsigned masters)
{
    begin_with(masters);
    config.many = true;
    begin_again();
    hold();
}

TEST(who_lacks_one_of_several_releases_the_others)
{
    hold_many(3);
    timer_at(RENEW_AT);
    answer(1, NO);
    check_sent(0, 0, 1);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(1, YES); /* The release is no extension. */
    answer(2, YES);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(4, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, RENEW_AT + LEASE - ALLOWANCE);
    check_sent(0, 0, 0);
    timer_at(story.act.wake_at);
    check_sent(0, 6, 0); /* It is not asked any more. */
}

TEST(nobody_waits_for_the_release_of_the_others)
{
    hold_many(3);
    timer_at(RENEW_AT);
    answer(1, NO);
    answer(2, NONE);
    CHECK_INT(story.q.state, QUORUM_HELD); /* A majority has become impossible. */
    CHECK_UINT(story.q.deadline, DEADLINE);
}

TEST(the_others_are_released_until_it_is_answered)
{
    hold_many(3);
    timer_at(RENEW_AT);
    answer(1, NO);
    check_sent(0, 0, 1);
    answer(6, YES);
    link_down(0);
    CHECK(quorum_must_release(&story.q, 0));
    link_up(0);
    check_sent(0, 0, 1);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 6);
    answer(6, YES);
    check_ended(REDLOCK_OK);
    CHECK(!quorum_is_settled(&story.q));
    answer(1, NO);
    CHECK(quorum_is_settled(&story.q));
}

TEST(what_is_lost_of_several_is_released_everywhere)
{
    hold_many(3);
    timer_at(RENEW_AT);
    answer(1, NO);
    check_sent(0, 0, 1);
    answer(2, NO);
    CHECK(story.act.lost);
    check_sent(0, 0, 6);
    answer_everything(NO);
    story_step(&story, QUORUM_EV_RELEASE);
    check_ended(REDLOCK_LOST);
    CHECK(quorum_is_settled(&story.q));
}

TEST(a_no_to_one_name_leaves_nothing_to_release)
{
    begin_with(3);
    hold();
    timer_at(RENEW_AT);
    answer(1, NO);
    check_sent(0, 0, 0);
    CHECK(!quorum_must_release(&story.q, 0));
}

/* Until it is proven the token may be of somebody who holds it still. */
TEST(the_others_of_an_adopted_token_are_released_when_it_is_decided)
{
    for (unsigned proven = 0; proven < 3; proven++) {
        begin_with(3);
        config.many = true;
        begin_again();
        story_step(&story, QUORUM_EV_ADOPT);
        story_step(&story, QUORUM_EV_EXTEND);
        answer(1, NO);
        check_sent(0, 0, 0);
        answer(2, proven == 0 ? NO : YES);
        if (proven == 0) {
            check_ended(REDLOCK_LOST);
            check_sent(0, 0, 7);
            continue;
        }
        check_sent(0, 0, 0);
        answer(4, proven == 1 ? YES : NONE);
        check_ended(proven == 1 ? REDLOCK_OK : REDLOCK_UNREACHABLE);
        check_sent(0, 0, proven == 1 ? 1 : 0);
        if (proven == 1)
            continue;
        story_step(&story, QUORUM_EV_RELEASE);
        check_sent(0, 0, 7);
        answer(6, YES);
        check_ended(REDLOCK_OK);
    }
}

TEST(a_release_that_gets_an_error_is_not_sent_again)
{
    begin_with(1);
    hold();
    story_step(&story, QUORUM_EV_RELEASE);
    answer(1, NONE);
    check_ended(REDLOCK_UNREACHABLE);
    check_sent(0, 0, 0);
    CHECK(quorum_is_settled(&story.q));
}

TEST(a_full_queue_is_told_when_it_has_drained)
{
    begin_with(3);
    acquire();
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

/* Who waits for room: not who was told, nor who has nothing, nor who is to keep it. */
TEST(these_releases_wait_for_room)
{
    begin_with(3);
    acquire();
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
    link_down(2); /* It was told on a connection that is gone. */
    CHECK(quorum_must_release(&story.q, 2));
    link_up(2);
    check_sent(0, 0, 4);
    CHECK(!quorum_must_release(&story.q, 2));

    begin_with(3);
    hold();
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
    begin_with(3);
    acquire();
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

    begin_with(3);
    hold();
    story.now += DRIFT_S;
    story_extend(&story, 4 * LEASE); /* Asked for is enough: it may have been done. */
    CHECK_UINT(story.q.settle_by, STORY_START + DRIFT_S + 4 * LEASE + 362 * DRIFT_MS);
    timer_at(STORY_START + DRIFT_S + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
    story_extend(&story, 1000 * DRIFT_MS); /* A shorter one does not bring it back. */
    CHECK_UINT(story.q.settle_by, STORY_START + DRIFT_S + 4 * LEASE + 362 * DRIFT_MS);
}

/* Its queue was full when the round died, so it could not be told; and it hangs
 * longer than a lease.  What it obeys then has not expired by then. */
TEST(a_master_that_obeys_very_late_is_told_then)
{
    begin_with(3);
    acquire();
    story.up = 3;
    answer(3, NO);
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 0);
    timer_at(SETTLED);
    CHECK(!quorum_is_settled(&story.q));
    CHECK(quorum_cares(&story.q, 2));
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER); /* Its answer, or its end, will wake us. */
    story.up = 7;
    story.now += DRIFT_S;
    answer(4, YES);
    check_sent(0, 0, 4);
    timer_at(story.act.wake_at);
    CHECK(quorum_is_settled(&story.q)); /* Told, on a link that stands. */

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

/* A process that was paused for longer than that has told nobody yet. */
TEST(whoever_can_be_told_is_told_before_it_is_forgotten)
{
    begin_with(3);
    hold();
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
    story.up = 7; /* Its queue has drained, and nothing has happened since. */
    timer_at(SETTLED);
    check_sent(0, 0, 4);
}

/* ---- Rule 5: asked as soon as it is there and owes nothing ---- */

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
    answer(4, YES);                             /* To the SET of the first round. */
    check_sent(0, 0, 0);
    CHECK_UINT(story.q.yes, 0);
    answer(4, YES); /* To the release. */
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
    timer_at(story.act.wake_at); /* Timeout. */
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    timer_at(story.act.wake_at); /* Next round: m2 owes as well now. */
    check_sent(1, 0, 0);
    link_down(2); /* And from m3 nothing can come any more. */
    answer(1, NO);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
}

/* A link that comes up in a round with an older token in doubt: first things first. */
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
    answer(2, NO); /* m4 is down: nobody else can be won. */
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 20);
}

TEST(a_master_is_asked_once_in_a_round)
{
    begin_with(3);
    acquire();
    answer(1, NO);
    check_sent(0, 0, 0);
    link_down(0);
    check_sent(0, 0, 0);
    link_up(0);
    check_sent(0, 0, 0);
    check_not_ended();
}

/* ---- Releasing ---- */

/* How three masters that hold the lock answer its release, in turn: y, n, e(rror),
 * d(own); and the status with the last of them. */
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
        {"nn", REDLOCK_LOST}, /* Two do not have it: it was not held. */
        {"ynn", REDLOCK_LOST},
        {"nyn", REDLOCK_LOST},
        {"ee", REDLOCK_UNREACHABLE}, /* Two may still have it. */
        {"dd", REDLOCK_UNREACHABLE},
        {"ed", REDLOCK_UNREACHABLE},
        {"ne", REDLOCK_UNREACHABLE}, /* One has not, one may: m3's yes would not do. */
        {"nd", REDLOCK_UNREACHABLE},
        {"en", REDLOCK_UNREACHABLE},
        {"dn", REDLOCK_UNREACHABLE},
        {"yed", REDLOCK_UNREACHABLE},
        {"yne", REDLOCK_UNREACHABLE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].answers;
        begin_with(3);
        hold();
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
        begin_with(n);
        hold();
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
    begin_with(3);
    hold();
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
    begin_with(5);
    hold();
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
    begin_with(3);
    hold();
    link_down(0);
    link_down(1);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 4);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK(!quorum_is_settled(&story.q));
    link_up(0);
    check_sent(0, 0, 1);
}

/* Never asked, or answered no: these have not lost what they never had. */
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
    check_ended(REDLOCK_UNREACHABLE); /* m3 may still have it. */

    begin_again();
    story.up = 7;
    acquire();
    answer(7, YES);
    story_step(&story, QUORUM_EV_RELEASE);
    answer(1, NO); /* Only two had it, of five. */
    check_ended(REDLOCK_LOST);
}

/* ---- Every state ---- */

/* Bring a new machine of three masters into a state.  What may be stored then is
 * told by the mask; all that is sent is unanswered. */
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
        return 0; /* All are told already. */
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

/* Nobody listens: not to the loss that is noticed in the same step, and not to the
 * end of an extension that was out. */
TEST(a_cancel_is_the_last_word)
{
    static const enum quorum_event_type types[] = {QUORUM_EV_CANCEL, QUORUM_EV_DETACH};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        begin_with(3);
        hold();
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
        {QUORUM_LOST, 0, true, REDLOCK_LOST}, /* All have been told already. */
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
        [QUORUM_CONNECTING] = DRIFT_NEVER, /* The links have timeouts of their own. */
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

/* Being early does no harm. */
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

/* Who fires the timer when it is due gets somewhere. */
TEST(a_timer_makes_progress_in_every_state)
{
    for (unsigned i = 0; i < STATES; i++) {
        (void)reach((enum quorum_state)i);
        story.up = 0; /* Nobody is there: the worst that can be. */
        for (unsigned j = 0; j < 1000 && story.act.wake_at != DRIFT_NEVER; j++) {
            drift_time before = story.act.wake_at;

            timer_at(before);
            CHECK(story.act.wake_at > before);
            if (story.q.state == QUORUM_PAUSING && j == 100)
                break; /* It waits for ever. */
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
    begin_with(3); /* One that said no does not, nor does one that was told and answered. */
    acquire();
    answer(1, NO);
    answer(6, YES);
    CHECK(!quorum_cares(&story.q, 0));
    CHECK(quorum_cares(&story.q, 1));
}

CHECK_MAIN(RUN(a_dead_round_is_released_where_it_may_be_stored),
           RUN(a_master_is_told_once_per_connection),
           RUN(who_lacks_one_of_several_releases_the_others),
           RUN(nobody_waits_for_the_release_of_the_others),
           RUN(the_others_are_released_until_it_is_answered),
           RUN(what_is_lost_of_several_is_released_everywhere),
           RUN(a_no_to_one_name_leaves_nothing_to_release),
           RUN(the_others_of_an_adopted_token_are_released_when_it_is_decided),
           RUN(a_release_that_gets_an_error_is_not_sent_again),
           RUN(a_full_queue_is_told_when_it_has_drained), RUN(these_releases_wait_for_room),
           RUN(what_has_expired_by_itself_is_forgotten),
           RUN(the_time_to_forget_counts_from_the_latest_send),
           RUN(whoever_can_be_told_is_told_before_it_is_forgotten),
           RUN(a_master_that_obeys_very_late_is_told_then),
           RUN(a_master_that_owes_is_asked_when_it_has_answered),
           RUN(a_master_that_owes_is_not_awaited_for_ever),
           RUN(a_master_in_doubt_is_released_and_then_asked_in_the_same_round),
           RUN(a_master_that_comes_up_is_asked_in_the_round_that_is_out),
           RUN(a_master_is_asked_once_in_a_round), RUN(a_release_ends_when_its_outcome_is_certain),
           RUN(a_release_is_a_matter_of_a_majority),
           RUN(a_release_ends_at_its_timeout_and_goes_on_in_the_background),
           RUN(a_master_that_comes_up_is_told_while_a_release_is_out),
           RUN(a_release_with_a_majority_down_does_not_hang),
           RUN(masters_that_never_had_it_do_not_make_it_lost),
           RUN(a_cancel_undoes_everything_in_every_state), RUN(a_cancel_is_the_last_word),
           RUN(a_detach_undoes_nothing_in_any_state), RUN(a_release_is_in_place_in_these_states),
           RUN(an_extension_is_in_place_in_these_states), RUN(a_machine_wakes_in_these_states),
           RUN(an_early_timer_does_nothing_in_any_state),
           RUN(a_timer_makes_progress_in_every_state), RUN(these_masters_matter))
