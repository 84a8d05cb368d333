/*
 * test-quorum-regain.c - rule 14 of quorum.c: a hold gives its token to masters that lack it.
 * timelines/rolling-restart.txt tells the whole story.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

static quorum_mask given(void)
{
    return sent(QUORUM_CMD_GIVE);
}

static void renew(void)
{
    timer_at(story.act.wake_at);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
}

/* A hold of three masters.  The third refused to grant it. */
static void hold_two_of_three(void)
{
    begin_acquiring(3);
    answer(4, NO);
    answer(3, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* A hold of three masters.  The third has lost the token, and said so. */
static void lose_third(bool many)
{
    begin_with(3);
    config.many = many;
    begin_again();
    hold();
    renew();
    answer(4, NO);
    answer(3, YES);
}

/* An extension won by the first two masters. */
static void extend(void)
{
    renew();
    check_sent(0, 3, 0);
    answer(1, YES);
    CHECK_UINT(given(), 0);
    answer(2, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

TEST(an_extension_that_is_won_gives_the_token)
{
    hold_two_of_three();
    extend();
    CHECK_UINT(given(), 4);
    CHECK_UINT(story.q.round_of[2], story.q.round);
}

TEST(nothing_is_sent_if_all_have_it)
{
    begin_held(3);
    renew();
    check_sent(0, 7, 0);
    answer(7, YES);
    CHECK_UINT(given(), 0);
    CHECK_UINT(story.act.send_len, 0);
}

/* The answer changes no deadline, and ends no extension. */
TEST(a_gift_is_no_vote)
{
    drift_time deadline;

    hold_two_of_three();
    extend();
    deadline = story.q.deadline;
    story.now += DRIFT_MS;
    answer(4, YES);
    CHECK_UINT(story.q.deadline, deadline);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* A gift does not help an extension that is out: one yes of two is too few. */
TEST(a_late_gift_does_not_count_for_the_next_extension)
{
    hold_two_of_three();
    extend();
    renew();
    check_sent(0, 7, 0);
    answer(1, YES);
    answer(4, YES); /* To the gift. */
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(4, YES); /* To the extension. */
    CHECK_INT(story.q.state, QUORUM_HELD);
}

TEST(once_given_it_is_extended_and_counts)
{
    hold_two_of_three();
    extend();
    answer(4, YES);
    renew();
    check_sent(0, 7, 0);
    answer(6, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

TEST(an_extension_that_is_not_won_gives_nothing)
{
    hold_two_of_three();
    renew();
    answer(1, YES);
    answer(2, NONE);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(given(), 0);
    renew();
    answer(1, YES);
    timer_at(story.act.wake_at);
    CHECK_UINT(given(), 0);
}

/* The key is gone on a majority, so the lock is lost: no gift brings it back. */
TEST(a_lock_that_a_majority_lost_is_lost)
{
    lose_third(false);
    renew();
    answer(2, NO);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK_UINT(given(), 0);
}

/* It may say no after an operator's text reached a majority, which the yes came before. */
TEST(who_says_no_is_given_the_token_one_extension_later)
{
    begin_held(3);
    renew();
    answer(4, NO);
    answer(1, YES);
    answer(2, YES);
    CHECK_UINT(given(), 0);
    extend();
    CHECK_UINT(given(), 4);
}

TEST(a_refusal_that_comes_after_the_extension_is_known_to_the_next)
{
    begin_held(3);
    renew();
    answer(3, YES);
    answer(4, NO);
    CHECK_UINT(given(), 0);
    extend();
    CHECK_UINT(given(), 4);
}

/* Its queue is full, so the second extension does not ask it.  It says no to the first when an
 * operator's text has ended there, and has replaced the token on another that said yes before. */
static void refuse_an_earlier_extension(bool many)
{
    begin_with(3);
    config.many = many;
    begin_again();
    hold();
    renew();
    answer(3, YES);
    story.up = 3;
    renew();
    story.up = 7;
    answer(4, NO);
    if (many)
        answer(4, NO); /* To the release. */
    answer(3, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(given(), 0);
    extend();
    CHECK_UINT(given(), 4);
}

/* Its no to the first SET comes when two have granted the lock, and an extension is out. */
TEST(who_refuses_a_set_late_is_given_it_by_the_next_extension)
{
    begin_with(3);
    acquire();
    answer(3, YES);
    story.up = 3;
    renew();
    story.up = 7;
    answer(4, NO);
    answer(3, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(given(), 0);
    renew();
    CHECK_UINT(given(), 0);
    answer(3, YES);
    CHECK_UINT(given(), 4);
}

TEST(who_refuses_an_earlier_extension_is_given_it_by_the_next)
{
    refuse_an_earlier_extension(false);
    refuse_an_earlier_extension(true);
}

/* Our own token may be there: another process that has it may have given it. */
TEST(a_gift_that_is_refused_is_asked_for)
{
    lose_third(false);
    for (unsigned i = 0; i < 3; i++) {
        extend();
        CHECK_UINT(given(), 4);
        answer(4, NO);
        CHECK_UINT(story.act.send_len, 0);
        renew();
        check_sent(0, 7, 0);
        answer(4, NO);
        answer(3, YES);
        CHECK_UINT(given(), 0);
    }
    extend();
    answer(4, NO);
    renew();
    check_sent(0, 7, 0);
    answer(5, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* A vote in the extension of a change is one at once. */
TEST(a_change_gives_nothing_to_a_barred_master)
{
    begin_held(5);
    renew();
    story_revoked(&story, 0);
    answer(0x1e, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    change(0x1f, 0x3f);
    renew();
    CHECK_UINT(given(), 0x20);
}

TEST(who_joined_and_showed_a_revocation_is_given_nothing)
{
    begin_held(5);
    change(0x1f, 0x3f);
    renew();
    CHECK_UINT(given(), 0x20);
    answer(0x1f, YES);
    answer(0x20, VOID);
    renew();
    story_revoked(&story, 5);
    CHECK_UINT(given(), 0);
    answer(0x1f, YES);
    renew();
    CHECK_UINT(given(), 0);
}

/* The release of several names is out when the set changes, and when its link breaks. */
TEST(a_release_that_may_be_late_keeps_a_gift_away)
{
    begin_with(5);
    config.many = true;
    begin_again();
    hold();
    renew();
    answer(0x10, NO);
    answer(0x0f, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    change(0x1f, 0x1e);
    link_down(4);
    link_up(4);
    answer(0x10, NO); /* To the release, which is sent again. */
    renew();
    check_sent(0, 0x0f, 0);
    CHECK_UINT(given(), 0);
}

TEST(a_gift_without_an_answer_is_not_repeated)
{
    lose_third(false);
    extend();
    CHECK_UINT(given(), 4);
    renew();
    check_sent(0, 7, 0);
    answer(3, YES);
    CHECK_UINT(given(), 0);
}

TEST(a_master_that_is_away_is_given_nothing)
{
    lose_third(false);
    link_down(2);
    extend();
    CHECK_UINT(given(), 0);
    link_up(2);
    CHECK_UINT(given(), 0);
    extend();
    CHECK_UINT(given(), 4);
}

TEST(a_master_that_was_away_in_the_round_is_given_it)
{
    begin_with(3);
    link_down(2);
    acquire();
    answer(3, YES);
    link_up(2);
    extend();
    CHECK_UINT(given(), 4);
}

/* A yes to SET that does not count, as of a master that is warming.  Its key is extended. */
TEST(a_void_gift_is_no_vote)
{
    lose_third(false);
    extend();
    answer(4, VOID);
    renew();
    check_sent(0, 7, 0);
    answer(1, YES);
    answer(4, NONE);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(2, YES);
    CHECK_UINT(given(), 0);
}

TEST(what_was_given_is_released)
{
    lose_third(false);
    extend();
    CHECK_UINT(given(), 4);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 7);
    answer(3, YES);
    check_ended(REDLOCK_OK);
    answer(4, YES);
    CHECK(!quorum_is_settled(&story.q));
    answer(4, YES);
    CHECK(quorum_is_settled(&story.q));
}

TEST(the_owner_s_extension_gives_it_too)
{
    begin_with(3);
    config.renew = false;
    begin_again();
    acquire();
    answer(4, NO);
    answer(3, YES);
    story_extend(&story, 5000 * DRIFT_MS);
    answer(3, YES);
    check_ended(REDLOCK_OK);
    CHECK_UINT(given(), 4);
    CHECK_UINT(story.q.lease, 5000 * DRIFT_MS);
}

/* Other processes may have it, and would not release it there. */
TEST(an_adopted_token_is_not_given)
{
    begin_with(3);
    story_step(&story, QUORUM_EV_ADOPT);
    story_extend(&story, 0);
    answer(4, NO);
    answer(3, YES);
    check_ended(REDLOCK_OK);
    extend();
    CHECK_UINT(given(), 0);
}

/* ---- Masters that never regain it ---- */

TEST(a_master_that_showed_a_revocation_never_regains_it)
{
    begin_held(5);
    renew();
    story_revoked(&story, 4);
    answer(15, YES);
    for (unsigned i = 0; i < 3; i++) {
        renew();
        answer(7, YES);
        CHECK_UINT(given(), 0);
        answer(8, YES);
    }
}

TEST(a_raise_that_was_refused_may_hide_a_revocation)
{
    begin_with(5);
    config.fence = true;
    begin_again();
    acquire();
    count_to(0x03, 8);
    count_to(0x04, 7);
    CHECK_UINT(sent(QUORUM_CMD_RAISE), 0x1f);
    count_to(0x18, 6);
    answer(0x08, NO);
    count_to(0x17, 9);
    CHECK_INT(story.q.state, QUORUM_HELD);
    for (unsigned i = 0; i < 2; i++) {
        renew();
        check_sent(0, 0x17, 0);
        answer(0x07, YES);
        CHECK_UINT(given(), 0);
        answer(0x10, YES);
    }
}

/* The release may still come, and delete what was given. */
TEST(a_link_that_owes_a_release_bars_its_master)
{
    lose_third(true);
    CHECK_UINT(story.links[2].asks_len, 1);
    link_down(2);
    link_up(2);
    answer(4, NO); /* To the release, which is sent again. */
    for (unsigned i = 0; i < 2; i++) {
        extend();
        CHECK_UINT(given(), 0);
    }
}

TEST(a_release_that_is_answered_bars_nobody)
{
    lose_third(true);
    extend();
    CHECK_UINT(given(), 0); /* It owes an answer. */
    answer(4, NO);
    extend();
    CHECK_UINT(given(), 4);
}

TEST(a_link_that_owes_a_set_or_a_gift_bars_its_master)
{
    begin_acquiring(3);
    answer(3, YES);
    link_down(2);
    link_up(2);
    renew();
    check_sent(0, 7, 0);
    answer(4, NO);
    answer(3, YES);
    extend();
    CHECK_UINT(given(), 0);

    lose_third(false);
    extend();
    CHECK_UINT(given(), 4);
    link_down(2);
    link_up(2);
    renew();
    answer(4, NO);
    answer(3, YES);
    extend();
    CHECK_UINT(given(), 0);
}

/* A late extension does no harm: it stores nothing. */
TEST(a_link_that_owes_an_extension_bars_nobody)
{
    begin_held(3);
    renew();
    link_down(2);
    answer(3, YES);
    link_up(2);
    renew();
    answer(4, NO);
    answer(3, YES);
    extend();
    CHECK_UINT(given(), 4);
}

/* ---- Two lists ---- */

TEST(masters_of_both_lists_are_given_it)
{
    begin_held(5);
    change(0x07, 0x1c);
    renew();
    answer(0x11, NO);
    answer(0x0e, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    renew();
    answer(0x0e, YES);
    CHECK_UINT(given(), 0x11);
}

CHECK_MAIN(
    RUN(an_extension_that_is_won_gives_the_token), RUN(nothing_is_sent_if_all_have_it),
    RUN(a_gift_is_no_vote), RUN(a_late_gift_does_not_count_for_the_next_extension),
    RUN(once_given_it_is_extended_and_counts), RUN(an_extension_that_is_not_won_gives_nothing),
    RUN(a_lock_that_a_majority_lost_is_lost),
    RUN(who_says_no_is_given_the_token_one_extension_later),
    RUN(a_refusal_that_comes_after_the_extension_is_known_to_the_next),
    RUN(who_refuses_a_set_late_is_given_it_by_the_next_extension),
    RUN(who_refuses_an_earlier_extension_is_given_it_by_the_next),
    RUN(a_gift_that_is_refused_is_asked_for), RUN(a_change_gives_nothing_to_a_barred_master),
    RUN(who_joined_and_showed_a_revocation_is_given_nothing),
    RUN(a_release_that_may_be_late_keeps_a_gift_away),
    RUN(a_gift_without_an_answer_is_not_repeated), RUN(a_master_that_is_away_is_given_nothing),
    RUN(a_master_that_was_away_in_the_round_is_given_it), RUN(a_void_gift_is_no_vote),
    RUN(what_was_given_is_released), RUN(the_owner_s_extension_gives_it_too),
    RUN(an_adopted_token_is_not_given), RUN(a_master_that_showed_a_revocation_never_regains_it),
    RUN(a_raise_that_was_refused_may_hide_a_revocation),
    RUN(a_link_that_owes_a_release_bars_its_master), RUN(a_release_that_is_answered_bars_nobody),
    RUN(a_link_that_owes_a_set_or_a_gift_bars_its_master),
    RUN(a_link_that_owes_an_extension_bars_nobody), RUN(masters_of_both_lists_are_given_it))
