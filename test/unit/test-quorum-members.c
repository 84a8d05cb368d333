/*
 * test-quorum-members.c - the members change: rule 11 of quorum.c.
 *
 * Masters 1 to 3 are the old list.  In most tests 1, 4 and 5 are the new one: bits 0x19.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

#define OLD 0x07
#define NEW 0x19

static void check_given(quorum_mask give, quorum_mask extend)
{
    CHECK_UINT(sent(QUORUM_CMD_GIVE), give);
    check_sent(0, extend, 0);
}

static void renew(void)
{
    timer_at(story.q.timeout);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
}

/* The set changes while masters 1 to 3 hold the lock, and then it is extended. */
static void begin_extending_in_a_change(void)
{
    begin_held(3);
    change(OLD, NEW);
    renew();
}

/* ---- Who decides ---- */

TEST(any_two_sets_that_decide_share_a_master)
{
    static const struct members steps[] = {{OLD, OLD},   {OLD, NEW},   {NEW, NEW},
                                           {0x0f, 0x1f}, {0x01, 0x03}, {0x07, 0x38}};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct members from = {steps[i].from, steps[i].from}, to = {steps[i].to, steps[i].to};

        for (unsigned a = 0; a < 64; a++)
            for (unsigned b = 0; b < 64; b++) {
                quorum_mask one = (quorum_mask)a, other = (quorum_mask)b;

                if (!members_decide(&steps[i], one))
                    continue;
                CHECK(!members_decide(&steps[i], other) || (a & b) != 0);
                CHECK(!members_decide(&from, other) || (a & b) != 0);
                CHECK(!members_decide(&to, other) || (a & b) != 0);
            }
    }
}

TEST(a_round_needs_a_majority_of_each_list)
{
    begin_with(5);
    story.members = (struct members){OLD, NEW};
    acquire();
    check_sent(OLD | NEW, 0, 0);
    answer(0x06, YES); /* A majority of the old list. */
    check_not_ended();
    answer(0x08, YES);
    check_not_ended();
    answer(0x10, YES); /* And one of the new list. */
    check_ended(REDLOCK_OK);
}

TEST(a_round_is_lost_when_one_list_cannot_decide)
{
    begin_with(5);
    story.members = (struct members){OLD, NEW};
    acquire();
    answer(OLD, YES);
    answer(0x08, NO);
    check_not_ended();
    answer(0x10, NO);
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, OLD);
}

/* ---- A change during an operation ---- */

TEST(a_round_goes_on_under_the_new_lists)
{
    begin_acquiring(3);
    answer(0x01, YES);
    change(OLD, NEW);
    check_sent(0x18, 0, 0);
    answer(0x02, YES); /* It would have won under the old list. */
    check_not_ended();
    answer(0x08, YES);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.q.deadline, DEADLINE);
}

TEST(who_joins_in_a_round_and_refuses_is_given_it_later)
{
    begin_acquiring(3);
    answer(0x01, YES);
    change(OLD, NEW);
    answer(0x10, NO);
    answer(0x0a, YES);
    check_ended(REDLOCK_OK);
    renew();
    check_given(0x10, 0x0f);
}

TEST(a_smaller_set_may_decide_a_round_at_once)
{
    begin_acquiring(5);
    answer(0x03, YES);
    check_not_ended();
    story_change(&story, (struct members){OLD, OLD}, 0);
    check_ended(REDLOCK_OK);
}

TEST(raised_counters_must_agree_in_both_lists)
{
    begin_with(3);
    config.fence = true;
    begin_again();
    acquire();
    count_to(0x01, 10);
    change(OLD, NEW);
    count_to(0x02, 10);
    check_not_ended();
    count_to(0x08, 12);
    check_not_ended(); /* Both lists said yes, and the new one agrees on no number. */
    CHECK_UINT(sent(QUORUM_CMD_RAISE), OLD | NEW);
    count_to(0x14, 9); /* The late answers to the first question. */
    count_to(0x07, 13);
    check_not_ended();
    count_to(0x08, 13);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.fence.token, 13);
}

/* The counters of the new list may be raised between. */
TEST(numbers_from_before_a_change_do_not_count)
{
    begin_with(3);
    config.fence = true;
    begin_again();
    acquire();
    count_to(0x01, 10);
    change(OLD, NEW);
    count_to(0x02, 10); /* It was asked before. */
    count_to(0x08, 10);
    check_not_ended();
    CHECK_UINT(sent(QUORUM_CMD_RAISE), OLD | NEW);
    count_to(0x14, 9); /* The late answers to the first question. */
    count_to(0x03, 11);
    check_not_ended();
    count_to(0x08, 11);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.fence.token, 11);
}

TEST(a_hold_outlasts_a_change)
{
    begin_held(3);
    change(OLD, NEW);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, DEADLINE);
    check_given(0, 0);
}

/* A lease that was granted before the change has no majority of the new list. */
TEST(a_hold_of_before_a_change_is_released_not_lost)
{
    begin_held(3);
    change(OLD, NEW);
    story_step(&story, QUORUM_EV_RELEASE);
    check_not_ended();
    check_sent(0, 0, OLD);
    answer(0x02, YES);
    check_not_ended();
    answer(0x04, YES);
    check_ended(REDLOCK_OK);
}

/* The lock is free only when two of the three masters of the new list have released it. */
TEST(a_hold_of_before_a_change_is_released_by_a_smaller_list)
{
    begin_held(5);
    change(0x1f, 0x07);
    story_step(&story, QUORUM_EV_RELEASE);
    answer(0x18, YES);
    check_not_ended();
    answer(0x02, YES);
    check_not_ended();
    answer(0x01, YES);
    check_ended(REDLOCK_OK);
}

TEST(a_hold_that_the_old_list_has_lost_is_lost_at_its_release)
{
    begin_held(3);
    change(OLD, NEW);
    story_step(&story, QUORUM_EV_RELEASE);
    answer(0x02, NO);
    check_not_ended();
    answer(0x04, NO);
    check_ended(REDLOCK_LOST);
}

/* An extension may be shorter than the lease.  The token that it gives then ends on the new members
 * while the old list still keeps it. */
TEST(a_new_member_that_has_the_token_no_longer_is_released)
{
    begin_extending_in_a_change();
    answer(OLD | NEW, YES);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, OLD | NEW);
    answer(0x18, NO);
    answer(0x02, YES);
    check_not_ended();
    answer(0x04, YES);
    check_ended(REDLOCK_OK);
}

/* ---- The extension after a change ---- */

TEST(an_extension_gives_the_token_to_who_joined)
{
    begin_extending_in_a_change();
    check_given(0x18, OLD);
    CHECK_UINT(story.q.round_of[3], story.q.round);
    answer(OLD, YES);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(0x08, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, RENEW_AT + LEASE - ALLOWANCE);
    answer(0x10, YES);
    renew();
    check_given(0, OLD | NEW);
    answer(OLD | NEW, YES);
    story_change(&story, (struct members){NEW, NEW}, 0);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, OLD | NEW);
    answer(0x01, YES);
    check_not_ended();
    answer(0x08, YES);
    check_ended(REDLOCK_OK);
    answer(0x16, YES);
    CHECK(quorum_is_settled(&story.q));
}

/* A token that is extended there would be in the way if the master joined again. */
TEST(a_master_that_was_removed_is_released_and_not_extended)
{
    begin_extending_in_a_change();
    answer(OLD | NEW, YES);
    story_change(&story, (struct members){NEW, NEW}, 0);
    renew();
    check_given(0, NEW);
    answer(NEW, YES);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, OLD | NEW);
}

TEST(without_one_list_the_old_deadline_stands)
{
    begin_extending_in_a_change();
    answer(0x18, NONE);
    answer(OLD, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, DEADLINE);
    timer_at(DEADLINE);
    CHECK_INT(story.q.state, QUORUM_LOST);
}

/* Two of five masters refused.  Of the four masters of the new list, two store the token. */
static void hold_by_three_of_five(void)
{
    begin_acquiring(5);
    answer(0x18, NO);
    answer(0x07, YES);
    change(0x1f, 0x1e);
    CHECK_INT(story.q.state, QUORUM_HELD);
    renew();
    check_given(0x18, 0x07);
}

TEST(who_refused_a_hold_is_given_it_if_the_new_list_needs_it)
{
    hold_by_three_of_five();
    answer(0x07, YES);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(0x08, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, RENEW_AT + LEASE - ALLOWANCE);
}

TEST(a_hold_that_the_new_list_refuses_keeps_its_deadline)
{
    hold_by_three_of_five();
    answer(0x18, NO);
    answer(0x07, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, DEADLINE);
    timer_at(DEADLINE);
    CHECK_INT(story.q.state, QUORUM_LOST);
}

/* Another client's round may have left its token there. */
TEST(who_refuses_the_token_is_asked_again)
{
    begin_extending_in_a_change();
    answer(0x18, NO);
    answer(OLD, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    renew();
    check_given(0, OLD | 0x18); /* Another process may have given them the token. */
    answer(0x18, NO);
    check_given(0x10, 0); /* The last answer is sent last. */
    answer(0x0f, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK(story.q.deadline > DEADLINE);
}

/* It may store the token.  SET NX would then be refused. */
TEST(who_did_not_answer_is_asked_to_extend)
{
    begin_extending_in_a_change();
    answer(OLD, YES);
    link_down(3);
    link_down(4);
    CHECK_INT(story.q.state, QUORUM_HELD);
    link_up(3);
    link_up(4);
    renew();
    check_given(0, OLD | 0x18);
    answer(0x08, YES);
    answer(0x10, NO); /* It does not, so it can be given. */
    check_given(0x10, 0);
    answer(OLD, YES);
    CHECK(story.q.deadline > DEADLINE);
}

TEST(who_comes_up_later_is_given_it_then)
{
    begin_held(3);
    story_change(&story, (struct members){OLD, NEW}, 0);
    story.coming = 0x18;
    renew();
    check_given(0, OLD);
    answer(OLD, YES);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    link_up(3);
    check_given(0x08, 0);
    answer(0x08, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK(story.q.deadline > DEADLINE);
}

TEST(a_hold_that_the_old_list_lost_is_not_given_away)
{
    begin_extending_in_a_change();
    answer(0x01, NO);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(0x02, NO);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK(story.act.lost);
}

/* The old list keeps the hold until its deadline.  The new one must not lose it before. */
TEST(a_gift_lasts_as_long_as_the_hold)
{
    drift_span span;

    begin_held(3);
    story.now = RENEW_AT - 1;
    change(OLD, NEW);
    story_extend(&story, 100 * DRIFT_MS);
    check_given(0x18, OLD);
    CHECK_UINT(quorum_span(&story.q, QUORUM_CMD_EXTEND, story.now), 100 * DRIFT_MS);
    span = quorum_span(&story.q, QUORUM_CMD_GIVE, story.now);
    CHECK(drift_deadline(story.now, span, &config.drift) >= DEADLINE);
    CHECK(drift_deadline(story.now, span - DRIFT_MS, &config.drift) < DEADLINE);
    CHECK_UINT(span % DRIFT_MS, 0);
    answer(OLD | 0x18, YES);
    CHECK_UINT(story.q.deadline, DEADLINE);
}

TEST(several_names_are_given_too)
{
    begin_with(3);
    config.many = true;
    begin_again();
    hold();
    change(OLD, NEW);
    renew();
    answer(OLD, YES);
    link_down(3);
    link_down(4);
    link_up(3);
    renew();
    check_given(0, OLD | 0x08);
    answer(0x08, NO);
    check_given(0x08, 0);
}

/* It confirmed that it was given the token when the extension was over.  Later one of the names is
 * gone there, and the other may still hold the token. */
TEST(who_was_given_several_names_and_lost_one_is_released)
{
    begin_with(3);
    config.many = true;
    begin_again();
    hold();
    change(OLD, NEW);
    renew();
    answer(OLD, YES);
    answer(0x08, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    answer(0x10, YES);
    renew();
    check_given(0, OLD | 0x18);
    answer(0x10, NO);
    check_sent(0, 0, 0x10); /* The hold relies on the others. */
    CHECK_UINT(sent(QUORUM_CMD_GIVE), 0);
    answer(OLD | 0x08, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(sent(QUORUM_CMD_GIVE), 0);
}

/* ---- Adopted tokens ---- */

static void adopt(void)
{
    begin_with(5);
    story.members = (struct members){OLD, NEW};
    story_step(&story, QUORUM_EV_ADOPT);
    story_extend(&story, 0);
    check_given(0, OLD | NEW);
}

TEST(an_adopted_token_is_given_once_the_old_list_has_shown_it)
{
    adopt();
    answer(0x18, NO);
    check_given(0, 0);
    answer(0x01, YES);
    check_given(0, 0);
    answer(0x02, YES);
    check_given(0x18, 0);
    check_not_ended();
    answer(0x08, YES);
    check_ended(REDLOCK_OK);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

TEST(an_adopted_token_that_nobody_stores_is_not_given)
{
    adopt();
    answer(0x18, NO);
    answer(0x01, YES);
    answer(0x02, NO);
    check_not_ended();
    answer(0x04, NO);
    check_ended(REDLOCK_LOST);
    CHECK_UINT(sent(QUORUM_CMD_GIVE), 0);
}

/* Rule 12: those that joined could get the token, so their answers show no loss. */
TEST(who_joined_is_not_awaited_to_show_a_loss)
{
    adopt();
    answer(0x01, YES);
    answer(0x02, NONE);
    check_not_ended();
    answer(0x04, NONE);
    check_ended(REDLOCK_UNREACHABLE);
}

/* Its first holder may have given it to them. */
TEST(who_joined_after_the_adoption_may_store_the_token)
{
    begin_with(3);
    story_step(&story, QUORUM_EV_ADOPT);
    change(OLD, NEW);
    story_extend(&story, 0);
    check_given(0, OLD | NEW);
    answer(0x0b, YES);
    check_ended(REDLOCK_OK);
    answer(0x14, NO);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 0x0b);
}

/* A new client hears of all members at once.  Those outside its list may store the token, but none
 * of them has joined since. */
TEST(a_token_adopted_before_the_set_is_known_is_not_given)
{
    begin_with(3);
    story.members = (struct members){0x01, 0x01};
    story_step(&story, QUORUM_EV_ADOPT);
    change(0x07, 0x07);
    story_extend(&story, 0);
    check_given(0, 0x07);
    answer(0x01, YES);
    answer(0x02, NO);
    check_not_ended();
    answer(0x04, NO);
    check_ended(REDLOCK_LOST);
    CHECK_UINT(sent(QUORUM_CMD_GIVE), 0);
}

/* ---- Masters that go ---- */

TEST(a_number_that_another_master_gets_is_forgotten)
{
    begin_held(3);
    change(OLD, 0x0b);
    renew();
    answer(0x0f, YES);
    story_change(&story, (struct members){0x0b, 0x0b}, 0x04);
    CHECK_UINT(story.q.may_hold, 0x0b);
    change(0x0b, 0x0e); /* Number 3 is another master now. */
    renew();
    check_given(0x04, 0x0b);
}

CHECK_MAIN(RUN(any_two_sets_that_decide_share_a_master), RUN(a_round_needs_a_majority_of_each_list),
           RUN(a_round_is_lost_when_one_list_cannot_decide),
           RUN(a_round_goes_on_under_the_new_lists),
           RUN(who_joins_in_a_round_and_refuses_is_given_it_later),
           RUN(a_smaller_set_may_decide_a_round_at_once),
           RUN(raised_counters_must_agree_in_both_lists),
           RUN(numbers_from_before_a_change_do_not_count), RUN(a_hold_outlasts_a_change),
           RUN(a_hold_of_before_a_change_is_released_not_lost),
           RUN(a_hold_of_before_a_change_is_released_by_a_smaller_list),
           RUN(a_hold_that_the_old_list_has_lost_is_lost_at_its_release),
           RUN(a_new_member_that_has_the_token_no_longer_is_released),
           RUN(an_extension_gives_the_token_to_who_joined),
           RUN(a_master_that_was_removed_is_released_and_not_extended),
           RUN(without_one_list_the_old_deadline_stands),
           RUN(who_refused_a_hold_is_given_it_if_the_new_list_needs_it),
           RUN(a_hold_that_the_new_list_refuses_keeps_its_deadline),
           RUN(who_refuses_the_token_is_asked_again), RUN(who_did_not_answer_is_asked_to_extend),
           RUN(who_comes_up_later_is_given_it_then),
           RUN(a_hold_that_the_old_list_lost_is_not_given_away),
           RUN(a_gift_lasts_as_long_as_the_hold), RUN(several_names_are_given_too),
           RUN(who_was_given_several_names_and_lost_one_is_released),
           RUN(an_adopted_token_is_given_once_the_old_list_has_shown_it),
           RUN(an_adopted_token_that_nobody_stores_is_not_given),
           RUN(who_joined_is_not_awaited_to_show_a_loss),
           RUN(who_joined_after_the_adoption_may_store_the_token),
           RUN(a_token_adopted_before_the_set_is_known_is_not_given),
           RUN(a_number_that_another_master_gets_is_forgotten))
