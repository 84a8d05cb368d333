/*
 * test-quorum-many.c - rule 10 of quorum.c: a no to several names proves nothing about each of
 * them.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

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
    check_sent(0, 0, 0); /* The hold may need it for the others. */
    CHECK(!quorum_must_release(&story.q, 0));
    answer(2, YES);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(4, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, RENEW_AT + LEASE - ALLOWANCE);
    check_sent(0, 0, 1);
    timer_at(story.act.wake_at);
    check_sent(0, 6, 0); /* m1 is not asked any more. */
    answer(1, YES);      /* An answer to the release is no vote. */
    answer(2, YES);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(4, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* m3 did not answer when the lock was granted.  Until the deadline only m1 and m2 keep the other
 * name from another client. */
TEST(a_hold_relies_on_who_lacks_one_of_several)
{
    begin_with(3);
    config.many = true;
    begin_again();
    acquire();
    answer(3, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    link_down(2);
    timer_at(RENEW_AT);
    answer(1, NO);
    answer(2, NONE); /* It is slow. */
    check_sent(0, 0, 0);
    link_down(0);
    link_up(0);
    check_sent(0, 0, 0);
    CHECK_INT(story.q.state, QUORUM_HELD);
    timer_at(DEADLINE);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK_UINT(sent(QUORUM_CMD_RELEASE) & 1, 1);
}

/* Its refusal comes when the others have extended the lock. */
TEST(who_refuses_what_others_have_confirmed_is_released_at_once)
{
    hold_many(3);
    timer_at(RENEW_AT);
    answer(6, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    answer(1, NO);
    check_sent(0, 0, 1);
}

/* Its queue is full, so the second extension does not ask it. */
TEST(who_refuses_an_earlier_extension_is_released_at_once)
{
    hold_many(3);
    timer_at(RENEW_AT);
    answer(6, YES);
    story.up = 6;
    timer_at(story.act.wake_at);
    check_sent(0, 6, 0);
    answer(6, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    story.up = 7;
    answer(1, NO);
    check_sent(0, 0, 1);
}

/* The deadline is that of the earlier majority. */
TEST(a_shorter_extension_does_not_do_without_who_lacks_one)
{
    hold_many(3);
    timer_at(STORY_START + 1);
    story_extend(&story, LEASE / 2);
    answer(1, NO);
    answer(6, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, DEADLINE);
    check_sent(0, 0, 0);
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
    answer(6, YES);
    check_sent(0, 0, 1);
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
    answer(2, NO);
    CHECK(story.act.lost);
    check_sent(0, 0, 7);
    answer_everything(NO);
    story_step(&story, QUORUM_EV_RELEASE);
    check_ended(REDLOCK_LOST);
    CHECK(quorum_is_settled(&story.q));
}

TEST(a_no_to_one_name_leaves_nothing_to_release)
{
    begin_held(3);
    timer_at(RENEW_AT);
    answer(1, NO);
    check_sent(0, 0, 0);
    CHECK(!quorum_must_release(&story.q, 0));
}

/* Another process may hold some or all of its names. */
TEST(only_an_unlock_releases_an_adopted_token)
{
    static const struct {
        enum quorum_vote second, third;
        int status;
    } rows[] = {
        {NO, NO, REDLOCK_LOST},
        {YES, YES, REDLOCK_OK},
        {YES, NONE, REDLOCK_UNREACHABLE},
    };

    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin_with(3);
        config.many = true;
        begin_again();
        story_step(&story, QUORUM_EV_ADOPT);
        story_step(&story, QUORUM_EV_EXTEND);
        answer(1, NO);
        check_sent(0, 0, 0);
        answer(2, rows[i].second);
        if (rows[i].status == REDLOCK_LOST)
            check_ended(REDLOCK_LOST);
        check_sent(0, 0, 0);
        answer(4, rows[i].third);
        if (rows[i].status != REDLOCK_LOST)
            check_ended(rows[i].status);
        check_sent(0, 0, 0);
        CHECK(!story.act.lost);
        for (unsigned m = 0; m < 3; m++)
            CHECK(!quorum_must_release(&story.q, m));
        story_step(&story, QUORUM_EV_RELEASE);
        check_sent(0, 0, 7);
        answer_everything(rows[i].status == REDLOCK_LOST ? NO : YES);
        CHECK(quorum_is_settled(&story.q));
    }
}

/* A second attempt to extend fails at once, and a late yes does not make the lock held. */
TEST(what_was_not_proven_is_not_held_later)
{
    begin_with(3);
    config.many = true;
    begin_again();
    story_step(&story, QUORUM_EV_ADOPT);
    story_step(&story, QUORUM_EV_EXTEND);
    answer(3, NO);
    check_ended(REDLOCK_LOST);
    story_step(&story, QUORUM_EV_EXTEND);
    check_ended(REDLOCK_LOST);
    answer(4, YES);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK_UINT(quorum_remaining(&story.q, story.now), 0);
}

/* ---- The set changes ---- */

static quorum_mask given(void)
{
    return sent(QUORUM_CMD_GIVE);
}

/* It stores all names, and its yes did not count.  Then one of them is revoked there. */
TEST(who_joined_and_lacks_one_of_several_is_released_at_last)
{
    hold_many(3);
    change(7, 0x1e);
    timer_at(RENEW_AT);
    CHECK_UINT(given(), 0x18);
    answer(0x0f, YES);
    answer(0x10, VOID);
    timer_at(story.act.wake_at);
    answer(0x0f, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    answer(0x10, NO);
    check_sent(0, 0, 0); /* Perhaps it stores none, and may be given all. */
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 0x1f);
}

/* The lists become one and three, and only one again.  The other two have the token. */
static void give_and_go_back(void)
{
    hold_many(1);
    change(1, 0x07);
    timer_at(RENEW_AT);
    CHECK_UINT(given(), 0x06);
    answer(0x07, YES);
    timer_at(story.act.wake_at);
    change(1, 1);
    answer(1, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    answer(2, NO);
    check_sent(0, 0, 2);
}

TEST(a_release_that_may_be_late_keeps_a_gift_from_who_joins_again)
{
    give_and_go_back();
    link_down(1);
    link_up(1);
    answer(2, NO); /* To the release, which is sent again. */
    change(1, 0x07);
    timer_at(story.act.wake_at);
    CHECK_UINT(given(), 0);
}

TEST(a_hold_outlasts_a_link_that_owes_a_release)
{
    give_and_go_back();
    change(1, 0x03);
    link_down(1);
    CHECK_INT(story.q.state, QUORUM_HELD);
    link_up(1);
    answer(2, NO);
    timer_at(story.act.wake_at);
    CHECK_UINT(given(), 0);
}

CHECK_MAIN(RUN(who_lacks_one_of_several_releases_the_others),
           RUN(a_hold_relies_on_who_lacks_one_of_several),
           RUN(who_refuses_what_others_have_confirmed_is_released_at_once),
           RUN(who_refuses_an_earlier_extension_is_released_at_once),
           RUN(a_shorter_extension_does_not_do_without_who_lacks_one),
           RUN(nobody_waits_for_the_release_of_the_others),
           RUN(the_others_are_released_until_it_is_answered),
           RUN(what_is_lost_of_several_is_released_everywhere),
           RUN(a_no_to_one_name_leaves_nothing_to_release),
           RUN(only_an_unlock_releases_an_adopted_token),
           RUN(what_was_not_proven_is_not_held_later),
           RUN(who_joined_and_lacks_one_of_several_is_released_at_last),
           RUN(a_release_that_may_be_late_keeps_a_gift_from_who_joins_again),
           RUN(a_hold_outlasts_a_link_that_owes_a_release))
