/*
 * test-quorum-hold.c - keeping the lock: rules 6 and 7 of quorum.c, renewal, loss, and
 * adopted tokens.  Each boundary is tested on both sides.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

/* Three masters store the token, and the machine does not renew it. */
static void hold_unrenewed(void)
{
    begin_with(3);
    config.renew = false;
    begin_again();
    hold();
}

/* ---- Rule 6, and extending ---- */

TEST(renewal_begins_when_a_third_is_spent)
{
    begin_held(3);
    CHECK_UINT(story.act.wake_at, RENEW_AT);
    timer_at(RENEW_AT - 1);
    check_sent(0, 0, 0);
    timer_at(RENEW_AT);
    check_sent(0, 7, 0);
    check_not_ended();
    CHECK_UINT(story.act.wake_at, RENEW_AT + TIMEOUT);
    story.now += 7;
    answer(3, YES);
    check_not_ended(); /* The owner did not ask. */
    CHECK_UINT(story.q.deadline, RENEW_AT + LEASE - ALLOWANCE);
    CHECK_UINT(story.act.wake_at, RENEW_AT + LEASE / 3); /* Counts from the send. */
}

TEST(renewal_is_tried_again_after_a_pause)
{
    begin_held(3);
    timer_at(RENEW_AT);
    timer_at(RENEW_AT + TIMEOUT - 1);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    timer_at(RENEW_AT + TIMEOUT);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, DEADLINE);
    CHECK_UINT(story.act.wake_at, RENEW_AT + TIMEOUT + PAUSE_MIN);
    timer_at(story.act.wake_at);
    check_sent(0, 7, 0);
    answer(7, YES); /* Answers to the first attempt do not count: a newer one is out. */
    CHECK_UINT(story.q.deadline, DEADLINE);
    answer(3, YES);
    CHECK_UINT(story.q.deadline, RENEW_AT + TIMEOUT + PAUSE_MIN + LEASE - ALLOWANCE);
}

TEST(renewal_fails_as_soon_as_a_majority_is_impossible)
{
    begin_held(5);
    timer_at(RENEW_AT);
    answer(3, NONE);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    link_down(2);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(story.q.deadline, DEADLINE);
}

TEST(an_extension_is_a_matter_of_a_majority)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        begin_held(n);
        timer_at(RENEW_AT);
        for (unsigned m = 0; m + 1 < majority(); m++) {
            story_reply(&story, m, YES);
            CHECK_UINT(story.q.deadline, DEADLINE);
        }
        story_reply(&story, majority() - 1, YES);
        CHECK_UINT(story.q.deadline, RENEW_AT + LEASE - ALLOWANCE);
    }
}

TEST(renewal_stops_when_held_for_long_enough)
{
    for (unsigned late = 0; late < 2; late++) {
        begin_with(3);
        config.hold_max = LEASE / 3 + 1 - late;
        begin_again();
        hold();
        timer_at(RENEW_AT);
        check_sent(0, late ? 0 : 7, 0);
        if (late)
            CHECK_UINT(story.act.wake_at, LOST_AT);
    }
}

TEST(without_renewal_the_lease_runs_out)
{
    hold_unrenewed();
    CHECK_UINT(story.act.wake_at, LOST_AT);
    timer_at(RENEW_AT);
    check_sent(0, 0, 0);
    timer_at(LOST_AT);
    CHECK(story.act.lost);
}

TEST(an_extension_never_shortens)
{
    static const struct {
        drift_span lease; /* The new lease, asked for 1 s after the hold began. */
        drift_span held;  /* How long the lock is then still held. */
    } rows[] = {
        {1000 * DRIFT_MS, 7908 * DRIFT_MS},
        {7989 * DRIFT_MS, 7908 * DRIFT_MS},          /* Valid for 7907.11 ms: less than was left. */
        {7990 * DRIFT_MS, 7908 * DRIFT_MS + 100000}, /* 0.1 ms more than was left. */
        {9000 * DRIFT_MS, 8908 * DRIFT_MS},
        {60000 * DRIFT_MS, 59398 * DRIFT_MS},
        {0, 8908 * DRIFT_MS}, /* The same lease as before. */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hold_unrenewed();
        story.now += DRIFT_S;
        story_extend(&story, rows[i].lease);
        check_sent(0, 7, 0);
        check_not_ended();
        answer(3, YES);
        check_ended(REDLOCK_OK);
        CHECK_UINT(remaining(), rows[i].held);
    }
}

TEST(an_extension_that_comes_too_late_leaves_the_old_deadline)
{
    for (unsigned late = 0; late < 2; late++) {
        begin_held(3);
        story_extend(&story, 100 * DRIFT_MS); /* Valid for 97 ms. */
        answer(1, YES);
        story.now = STORY_START + 97 * DRIFT_MS - 1 + late;
        answer(2, YES);
        check_ended(late ? REDLOCK_TOO_LATE : REDLOCK_OK);
        CHECK_INT(story.q.state, QUORUM_HELD);
        CHECK_UINT(story.q.deadline, DEADLINE);
    }
}

TEST(the_owners_extension_overtakes_a_renewal)
{
    begin_held(3);
    timer_at(RENEW_AT);
    answer(1, YES);
    CHECK(quorum_may_extend(&story.q));
    story.now += 10;
    story_extend(&story, 0);
    check_sent(0, 7, 0);
    CHECK(!quorum_may_extend(&story.q));
    answer(6, YES); /* Answers to the renewal; with m1 they would be a majority. */
    check_not_ended();
    CHECK_UINT(story.q.deadline, DEADLINE);
    answer(6, YES);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.q.deadline, RENEW_AT + 10 + LEASE - ALLOWANCE);
}

TEST(the_owner_hears_when_an_extension_fails)
{
    begin_held(3);
    story_extend(&story, 0);
    timer_at(STORY_START + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK(!story.act.lost);

    begin_again(); /* No majority is up. */
    hold();
    link_down(0);
    link_down(1);
    story_extend(&story, 0);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_UINT(story.q.deadline, DEADLINE);
}

/* S12: if a majority says that the key is gone, the lock is lost before its deadline. */
TEST(a_majority_of_no_loses_the_hold_at_once)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        begin_held(n);
        story_extend(&story, 0);
        for (unsigned m = 0; m < n - majority(); m++) {
            story_reply(&story, m, NO);
            CHECK_INT(story.q.state, QUORUM_EXTENDING);
            CHECK(remaining() > 0);
        }
        story_reply(&story, n - majority(), NO);
        CHECK(story.act.lost);
        check_ended(REDLOCK_LOST);
        CHECK_INT(story.q.state, QUORUM_LOST);
        CHECK_UINT(remaining(), 0);
        check_sent(0, 0, (quorum_mask)(all() & ~((1u << (n - majority() + 1)) - 1)));
    }
}

TEST(late_answers_of_a_failed_extension_can_lose_the_hold)
{
    begin_held(3);
    timer_at(RENEW_AT);
    timer_at(RENEW_AT + TIMEOUT);
    CHECK_INT(story.q.state, QUORUM_HELD);
    answer(1, NO);
    CHECK_INT(story.q.state, QUORUM_HELD);
    answer(2, NO);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK(story.act.lost);
}

/* m4 and m5 hang, and round one is lost.  m1 to m3 win round two.  m4 and m5 may store a dead
 * token, which must not be extended or relied on. */
static void hold_beside_dead_tokens(void)
{
    begin_with(5);
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    answer(7, NO);
    check_sent(0, 0, 24);
    timer_at(story.act.wake_at);
    check_sent(7, 0, 0);
    answer(7, YES);
    check_ended(REDLOCK_OK);
}

TEST(a_dead_token_is_not_extended)
{
    hold_beside_dead_tokens();
    timer_at(story.act.wake_at);
    check_sent(0, 7, 0);
    answer(24, YES); /* Answers to SET, and then to release, of round one. */
    answer(24, YES);
    answer(3, YES);
    CHECK_INT(story.q.state, QUORUM_EXTENDING);
    answer(4, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

TEST(a_dead_token_does_not_count_as_held)
{
    hold_beside_dead_tokens();
    timer_at(story.act.wake_at);
    answer(1, NO);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK(story.act.lost);
    check_sent(0, 0, 6);
}

TEST(a_dead_token_does_not_count_as_held_between_extensions_either)
{
    hold_beside_dead_tokens();
    timer_at(story.act.wake_at);
    timer_at(story.act.wake_at);
    CHECK_INT(story.q.state, QUORUM_HELD);
    answer(1, NO); /* A late answer. */
    CHECK_INT(story.q.state, QUORUM_LOST);
}

TEST(a_dead_token_does_not_count_as_released)
{
    hold_beside_dead_tokens();
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 7);
    answer(1, NO); /* The two that are left are no majority. */
    check_ended(REDLOCK_LOST);

    hold_beside_dead_tokens();
    story_step(&story, QUORUM_EV_RELEASE);
    answer(24, YES); /* A deleted dead token does not count. */
    answer(24, YES);
    answer(1, YES);
    check_not_ended();
}

/* ---- Rule 7, and losing ---- */

TEST(lost_is_told_a_margin_before_the_deadline)
{
    hold_unrenewed();
    timer_at(LOST_AT - 1);
    CHECK(!story.act.lost);
    CHECK_UINT(story.act.wake_at, LOST_AT);
    timer_at(LOST_AT);
    CHECK(story.act.lost);
    check_not_ended();
    check_sent(0, 0, 0);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(remaining(), 900 * DRIFT_MS); /* The lock is still held. */
    CHECK_UINT(story.act.wake_at, DEADLINE);
    timer_at(DEADLINE);
    CHECK(!story.act.lost); /* There is one lost notice. */
    CHECK_INT(story.q.state, QUORUM_LOST);
    check_sent(0, 0, 7);
}

/* With a margin as long as the lease, the lost notice would come at once. */
TEST(the_margin_is_at_most_half_of_the_lease)
{
    begin_with(3);
    config.renew = false;
    config.lost_margin = LEASE;
    begin_again();
    hold();
    CHECK_UINT(story.act.wake_at, STORY_START + (LEASE - ALLOWANCE) / 2);
}

/* A failed extension shortens neither the lease nor the margin. */
TEST(the_margin_does_not_shrink_with_failed_extensions)
{
    begin_held(3);
    for (unsigned i = 0; i < 1000 && !story.act.lost; i++) {
        CHECK(story.act.wake_at > story.now);
        timer_at(story.act.wake_at);
    }
    CHECK_UINT(story.now, LOST_AT);
}

TEST(an_extension_that_succeeds_moves_the_margin)
{
    begin_held(3);
    timer_at(RENEW_AT);
    answer(7, YES);
    timer_at(LOST_AT);
    CHECK(!story.act.lost);
    check_sent(0, 7, 0); /* The next extension. */
}

TEST(lost_is_told_even_with_an_extension_out)
{
    for (unsigned asked = 0; asked < 2; asked++) {
        begin_held(3);
        story.now = LOST_AT - 10;
        if (asked)
            story_extend(&story, 0);
        else
            story_step(&story, QUORUM_EV_TIMER);
        check_sent(0, 7, 0);
        CHECK_UINT(story.act.wake_at, LOST_AT);
        timer_at(LOST_AT);
        CHECK(story.act.lost);
        CHECK_UINT(story.act.ended, asked);
        if (asked)
            CHECK_INT(story.act.status, REDLOCK_LOST);
        answer(7, YES);
        CHECK_UINT(story.q.deadline, DEADLINE); /* Rule 7. */
        CHECK_UINT(story.act.wake_at, DEADLINE);
    }
}

TEST(after_lost_was_told_nothing_extends)
{
    hold_unrenewed();
    timer_at(LOST_AT);
    CHECK(quorum_may_extend(&story.q));
    story_extend(&story, 0);
    check_sent(0, 0, 0);
    check_ended(REDLOCK_LOST);
    CHECK_UINT(story.q.deadline, DEADLINE);
    CHECK(remaining() > 0);
    story_step(&story, QUORUM_EV_RELEASE); /* A release still works. */
    check_sent(0, 0, 7);
    answer(3, YES);
    check_ended(REDLOCK_OK);
}

TEST(what_is_lost_cannot_be_extended_and_is_lost_when_released)
{
    begin_held(3);
    timer_at(DEADLINE);
    CHECK(story.act.lost);
    CHECK_INT(story.q.state, QUORUM_LOST);
    check_sent(0, 0, 7);
    story_extend(&story, 0);
    check_ended(REDLOCK_LOST);
    check_sent(0, 0, 0);
    CHECK(!story.act.lost);
    story_step(&story, QUORUM_EV_RELEASE);
    check_ended(REDLOCK_LOST);
    CHECK_INT(story.q.state, QUORUM_IDLE);
}

/* ---- Adopting ---- */

TEST(an_adopted_token_is_not_held_until_it_is_proven)
{
    begin_with(3);
    story_step(&story, QUORUM_EV_ADOPT);
    check_sent(0, 0, 0);
    check_not_ended();
    CHECK_INT(story.q.state, QUORUM_ADOPTED);
    CHECK_UINT(remaining(), 0);
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER);
    CHECK(quorum_may_extend(&story.q));
    story.now += DRIFT_S;
    story_extend(&story, 0);
    check_sent(0, 7, 0);
    CHECK_INT(story.q.state, QUORUM_PROVING);
    CHECK_UINT(remaining(), 0);
    answer(1, YES);
    check_not_ended();
    CHECK_UINT(remaining(), 0);
    answer(2, YES);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.q.deadline, DEADLINE + DRIFT_S);
    CHECK_UINT(story.act.wake_at, RENEW_AT + DRIFT_S);
}

TEST(a_proof_counts_before_its_deadline_and_not_at_it)
{
    for (unsigned late = 0; late < 2; late++) {
        begin_with(1);
        story_step(&story, QUORUM_EV_ADOPT);
        story_extend(&story, 0);
        story.now = DEADLINE - 1 + late;
        answer(1, YES);
        check_ended(late ? REDLOCK_TOO_LATE : REDLOCK_OK);
        CHECK_INT(story.q.state, late ? QUORUM_ADOPTED : QUORUM_HELD);
        CHECK_UINT(remaining(), 1 - late);
    }
}

TEST(a_proof_that_fails_may_be_tried_again)
{
    begin_with(3);
    story_step(&story, QUORUM_EV_ADOPT);
    story_extend(&story, 0);
    CHECK(!quorum_may_extend(&story.q));
    CHECK_UINT(story.act.wake_at, STORY_START + TIMEOUT);
    timer_at(STORY_START + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_INT(story.q.state, QUORUM_ADOPTED);
    CHECK_UINT(story.act.wake_at, DRIFT_NEVER); /* A token that is not proven is not renewed. */
    check_sent(0, 0, 0);                        /* Its lock may be held all the same. */
    answer(7, YES);
    CHECK_UINT(remaining(), 0);
    story_extend(&story, 0);
    answer(3, YES);
    check_ended(REDLOCK_OK);
}

TEST(an_adopted_token_may_turn_out_to_be_lost)
{
    begin_with(3);
    story_step(&story, QUORUM_EV_ADOPT);
    story_extend(&story, 0);
    answer(1, NO);
    check_not_ended();
    answer(2, NO);
    check_ended(REDLOCK_LOST);
    CHECK(!story.act.lost); /* This process never held the lock. */
    CHECK_INT(story.q.state, QUORUM_LOST);
    check_sent(0, 0, 0); /* Another one may. */
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 4);
    check_ended(REDLOCK_LOST);
}

TEST(an_adopted_token_can_be_released_at_once)
{
    static const struct {
        enum quorum_vote vote;
        int status;
    } rows[] = {{YES, REDLOCK_OK}, {NO, REDLOCK_LOST}, {NONE, REDLOCK_UNREACHABLE}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin_with(3);
        story_step(&story, QUORUM_EV_ADOPT);
        story_step(&story, QUORUM_EV_RELEASE);
        check_sent(0, 0, 7);
        answer(1, rows[i].vote);
        check_not_ended();
        answer(2, rows[i].vote);
        check_ended(rows[i].status);
    }
}

TEST(adopted_tokens_wait_for_first_links_too)
{
    for (unsigned release = 0; release < 2; release++) {
        begin_with(3);
        story.up = 1;
        story.coming = 6;
        story_step(&story, QUORUM_EV_ADOPT);
        if (release)
            story_step(&story, QUORUM_EV_RELEASE);
        else
            story_extend(&story, 0);
        CHECK_INT(story.q.state, QUORUM_CONNECTING);
        check_sent(0, 0, 0);
        check_not_ended();
        story.now += DRIFT_S;
        link_up(1);
        check_sent(0, release ? 0 : 3, release ? 3 : 0);
        if (!release)
            CHECK_UINT(story.q.sent, STORY_START + DRIFT_S);
        answer(3, YES);
        check_ended(REDLOCK_OK);
    }
}

/* m1, m2 and m5 store the token; m3 and m4 do not.  The link of m5 comes up last. */
TEST(a_proof_awaits_masters_that_are_coming)
{
    enum { COMES, REFUSES, HANGS, KINDS };

    for (unsigned kind = COMES; kind < KINDS; kind++) {
        begin_with(5);
        story.up = 15;
        story.coming = 16;
        story_step(&story, QUORUM_EV_ADOPT);
        story_extend(&story, 0);
        check_sent(0, 15, 0);
        answer(3, YES);
        answer(12, NO);
        check_not_ended();
        story.now += DRIFT_MS;
        if (kind == COMES) {
            link_up(4);
            check_sent(0, 16, 0);
            check_not_ended();
            answer(16, YES);
            check_ended(REDLOCK_OK);
            CHECK_UINT(story.q.deadline, DEADLINE); /* It counts from the first send. */
        } else if (kind == REFUSES) {
            link_down(4);
            check_ended(REDLOCK_UNREACHABLE);
        } else {
            timer_at(STORY_START + TIMEOUT);
            check_ended(REDLOCK_UNREACHABLE);
            link_up(4);
            check_sent(0, 0, 0);
        }
    }
}

/* The first attempt to connect to m3 decides. */
TEST(a_release_awaits_masters_that_are_coming)
{
    begin_with(3);
    story.up = 3;
    story.coming = 4;
    story_step(&story, QUORUM_EV_ADOPT);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 3);
    answer(1, NONE);
    answer(2, YES);
    check_not_ended();
    link_up(2);
    check_sent(0, 0, 4);
    answer(4, YES);
    check_ended(REDLOCK_OK);
}

TEST(the_limit_of_a_hold_counts_from_its_proof)
{
    begin_with(1);
    config.hold_max = 4 * DRIFT_S;
    begin_again();
    story_step(&story, QUORUM_EV_ADOPT);
    story.now += 100 * DRIFT_S;
    story_extend(&story, 0);
    answer(1, YES);
    timer_at(story.act.wake_at);
    check_sent(0, 1, 0);
    answer(1, YES);
    timer_at(story.act.wake_at); /* 6 s after the proof. */
    check_sent(0, 0, 0);
}

CHECK_MAIN(
    RUN(renewal_begins_when_a_third_is_spent), RUN(renewal_is_tried_again_after_a_pause),
    RUN(renewal_fails_as_soon_as_a_majority_is_impossible),
    RUN(an_extension_is_a_matter_of_a_majority), RUN(renewal_stops_when_held_for_long_enough),
    RUN(without_renewal_the_lease_runs_out), RUN(an_extension_never_shortens),
    RUN(an_extension_that_comes_too_late_leaves_the_old_deadline),
    RUN(the_owners_extension_overtakes_a_renewal), RUN(the_owner_hears_when_an_extension_fails),
    RUN(a_majority_of_no_loses_the_hold_at_once),
    RUN(late_answers_of_a_failed_extension_can_lose_the_hold), RUN(a_dead_token_is_not_extended),
    RUN(a_dead_token_does_not_count_as_held),
    RUN(a_dead_token_does_not_count_as_held_between_extensions_either),
    RUN(a_dead_token_does_not_count_as_released), RUN(lost_is_told_a_margin_before_the_deadline),
    RUN(the_margin_is_at_most_half_of_the_lease),
    RUN(the_margin_does_not_shrink_with_failed_extensions),
    RUN(an_extension_that_succeeds_moves_the_margin), RUN(lost_is_told_even_with_an_extension_out),
    RUN(after_lost_was_told_nothing_extends),
    RUN(what_is_lost_cannot_be_extended_and_is_lost_when_released),
    RUN(an_adopted_token_is_not_held_until_it_is_proven),
    RUN(a_proof_counts_before_its_deadline_and_not_at_it),
    RUN(a_proof_that_fails_may_be_tried_again), RUN(an_adopted_token_may_turn_out_to_be_lost),
    RUN(an_adopted_token_can_be_released_at_once), RUN(adopted_tokens_wait_for_first_links_too),
    RUN(a_proof_awaits_masters_that_are_coming), RUN(a_release_awaits_masters_that_are_coming),
    RUN(the_limit_of_a_hold_counts_from_its_proof))
