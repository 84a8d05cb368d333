/*
 * test-quorum-fence.c - how a fencing token is drawn.
 */
#include "test/lib/scene.h"

#define COUNTER UINT64_C(1795240480123456) /* Like real ones: microseconds since 1970. */

static void begin_fenced(unsigned masters)
{
    begin_with(masters);
    config.fence = true;
    begin_again();
    acquire();
}

static uint64_t token(void)
{
    return story.fence.token;
}

/* The lock is held with this fencing token. */
static void check_won(uint64_t want)
{
    check_ended(REDLOCK_OK);
    CHECK_INT(story.q.state, QUORUM_HELD);
    CHECK_UINT(token(), want);
    CHECK(remaining() > 0);
}

static void check_raised(quorum_mask to, uint64_t counter)
{
    check_not_ended();
    CHECK_INT(story.q.state, QUORUM_RAISING);
    CHECK_UINT(sent(QUORUM_CMD_RAISE), to);
    CHECK_UINT(story.fence.counter, counter);
    CHECK_UINT(token(), 0);
}

TEST(one_round_trip_where_masters_are_in_step)
{
    for (unsigned masters = 1; masters <= QUORUM_MASTERS_MAX; masters++) {
        begin_fenced(masters);
        CHECK_UINT(sent(QUORUM_CMD_FENCE), all());
        check_sent(0, 0, 0);
        for (unsigned m = 0; m + 1 < majority(); m++) {
            count_to(bit(m), COUNTER);
            check_not_ended();
        }
        count_to(bit(majority() - 1), COUNTER);
        check_won(COUNTER);
        CHECK_UINT(story.act.send_len, 0);
        CHECK_UINT(story.q.deadline, DEADLINE);
    }
}

TEST(two_where_they_are_not)
{
    for (unsigned masters = 2; masters <= QUORUM_MASTERS_MAX; masters++) {
        begin_fenced(masters);
        for (unsigned m = 0; m < majority(); m++)
            count_to(bit(m), COUNTER + m);
        /* Masters that have not answered are asked as well: they may store the token. */
        check_raised(all(), COUNTER + majority());
        for (unsigned m = masters - 1; m > masters - majority(); m--) {
            if (story.links[m].asks_len == 2)
                count_to(bit(m), COUNTER + 99); /* The answer to the first question. */
            count_to(bit(m), COUNTER + majority());
            check_not_ended();
        }
        if (story.links[0].asks_len == 2)
            count_to(1, COUNTER);
        count_to(1, COUNTER + majority());
        check_won(COUNTER + majority());
        CHECK_UINT(story.q.deadline, DEADLINE); /* The lease counts from the first question. */
    }
}

/* One master alone counted to the greatest number.  Others may still count to it for rivals. */
TEST(the_greatest_is_no_token)
{
    begin_fenced(3);
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    check_raised(7, COUNTER + 2);
}

TEST(who_said_no_is_not_asked_to_raise)
{
    begin_fenced(5);
    answer(0x02, NO);
    answer(0x08, NONE);
    count_to(0x01, COUNTER);
    count_to(0x04, COUNTER);
    count_to(0x10, COUNTER - 1);
    check_raised(0x15, COUNTER + 1);
}

/* Once the masters are asked to raise, no other master is asked for the lock. */
TEST(who_comes_up_is_not_asked_then)
{
    begin_with(3);
    config.fence = true;
    begin_again();
    story.up = 3;
    story.coming = 4;
    acquire();
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    check_raised(3, COUNTER + 2);
    link_up(2);
    CHECK_UINT(story.act.send_len, 0);
}

TEST(any_number_of_a_majority_is_a_token)
{
    begin_fenced(5);
    count_to(0x03, COUNTER);
    count_to(0x04, COUNTER - 1);
    check_raised(0x1f, COUNTER + 1);
    count_to(0x01, COUNTER + 1);
    count_to(0x02, COUNTER + 5); /* Another lock shares this counter, and was first. */
    count_to(0x04, COUNTER + 1);
    check_not_ended();
    count_to(0x08, COUNTER);
    check_not_ended();
    count_to(0x08, COUNTER + 1);
    check_won(COUNTER + 1);
}

TEST(they_are_raised_again_if_need_be)
{
    begin_fenced(3);
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    check_raised(7, COUNTER + 2);
    count_to(1, COUNTER + 2);
    count_to(2, COUNTER + 3);
    check_not_ended();
    CHECK_UINT(story.act.send_len, 0); /* m3 may agree with either. */
    count_to(4, COUNTER);
    count_to(4, COUNTER + 9);
    check_raised(7, COUNTER + 9 + 4);
    count_to(7, COUNTER + 13);
    CHECK_UINT(token(), COUNTER + 13);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* Refused rivals count on meanwhile.  So one counter is always ahead of the number asked for,
 * until a far greater number is asked for. */
TEST(rivals_are_left_behind)
{
    static const uint64_t steps[] = {1, 4, 16, 64, 256, 1024, 1024, 1024};
    uint64_t ahead = COUNTER + 3;

    begin_fenced(2);
    count_to(1, COUNTER);
    count_to(2, ahead);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        check_raised(3, ahead + steps[i]);
        count_to(1, ahead + steps[i]);
        ahead += steps[i] + 3;
        count_to(2, ahead);
    }
    story_step(&story, QUORUM_EV_CANCEL);
    answer_everything(YES);
    begin_fenced(2); /* The steps of the next round begin with 1 again. */
    count_to(1, COUNTER);
    count_to(2, COUNTER + 3);
    check_raised(3, COUNTER + 4);
}

/* The machine stores how far a number is behind the greatest, up to 254. */
TEST(numbers_far_apart_are_not_mixed_up)
{
    static const uint64_t gaps[] = {1, 2, 127, 253, 254, 255, 256, 511, 512, UINT64_C(1) << 40};

    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++) {
        begin_fenced(3);
        count_to(1, COUNTER - 2);
        count_to(2, COUNTER - 1);
        check_raised(7, COUNTER);
        count_to(1, COUNTER + gaps[i]);
        count_to(2, COUNTER);
        count_to(4, COUNTER);
        count_to(4, COUNTER);
        if (gaps[i] <= 254)
            check_won(COUNTER);
        else
            check_raised(7, COUNTER + gaps[i] + 4); /* It costs a round trip only. */
    }
}

/* Two numbers that are both far behind need not be equal. */
TEST(those_far_behind_do_not_agree)
{
    begin_fenced(5);
    count_to(0x01, COUNTER + 1000);
    count_to(0x02, COUNTER);
    count_to(0x04, COUNTER - 1000);
    check_raised(0x1f, COUNTER + 1001);
    for (unsigned m = 0; m < 5; m++)
        while (story.links[m].asks_len > 1)
            count_to(bit(m), 1);
    count_to(0x01, COUNTER + 5000);
    count_to(0x02, COUNTER + 2000);
    count_to(0x04, COUNTER + 1002);
    count_to(0x08, COUNTER + 1001);
    check_raised(0x1f, COUNTER + 5004);
}

/* The answer of a master whose link breaks is void: the master may have lost its data. */
TEST(a_link_that_breaks_takes_its_number_with_it)
{
    begin_fenced(5);
    count_to(0x03, COUNTER);
    link_down(0);
    count_to(0x04, COUNTER);
    check_not_ended();
    count_to(0x08, COUNTER);
    check_won(COUNTER);
    begin_fenced(5);
    count_to(0x03, COUNTER);
    count_to(0x04, COUNTER + 1);
    check_raised(0x1f, COUNTER + 2);
    count_to(0x03, COUNTER + 2);
    link_down(1);
    count_to(0x04, COUNTER + 2);
    check_not_ended();
    CHECK_INT(story.q.state, QUORUM_RAISING);
}

TEST(who_lost_the_key_does_not_help)
{
    begin_fenced(3);
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    answer(4, NO);
    answer(1, NO);
    check_not_ended();
    answer(2, NO);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_UINT(token(), 0);
    begin_fenced(3);
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    count_to(1, COUNTER + 2);
    answer(4, NO);
    answer(4, NONE); /* The answer to the raise: m3 may have counted. */
    answer(2, NONE);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_UINT(sent(QUORUM_CMD_RELEASE), 7);
}

/* Rule 10.  A master that lacks one of several names may store the others. */
TEST(who_lost_one_of_several_names_gets_a_release)
{
    begin_with(5);
    config.fence = config.many = true;
    begin_again();
    acquire();
    count_to(0x01, COUNTER);
    count_to(0x02, COUNTER + 1);
    count_to(0x04, COUNTER + 2);
    check_raised(0x1f, COUNTER + 3);
    answer(0x18, NO); /* To the first question. */
    answer(0x01, NO);
    CHECK_UINT(sent(QUORUM_CMD_RELEASE), 0x01);
    answer(0x01, YES); /* This confirms the release, and no number. */
    count_to(0x06, COUNTER + 3);
    check_not_ended();
    CHECK_INT(story.q.state, QUORUM_RAISING);
}

TEST(its_release_is_not_awaited)
{
    begin_with(3);
    config.fence = config.many = true;
    begin_again();
    acquire();
    count_to(0x01, COUNTER);
    count_to(0x02, COUNTER + 1);
    check_raised(0x07, COUNTER + 2);
    answer(0x01, NO);
    check_not_ended();
    answer(0x02, NO);
    check_ended(REDLOCK_UNREACHABLE);
}

TEST(the_deadline_counts_for_the_second_round_trip)
{
    begin_with(3);
    config.fence = true;
    config.reply_timeout = 2 * LEASE;
    begin_again();
    acquire();
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    count_to(1, COUNTER + 2);
    story.now = DEADLINE - 1;
    count_to(2, COUNTER + 2);
    check_won(COUNTER + 2);
    begin_again();
    acquire();
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    count_to(1, COUNTER + 2);
    story.now = DEADLINE;
    count_to(2, COUNTER + 2);
    check_ended(REDLOCK_TOO_LATE);
    CHECK_UINT(sent(QUORUM_CMD_RELEASE), 7);
    CHECK_UINT(token(), 0);
}

TEST(a_raise_that_nobody_answers_ends)
{
    begin_fenced(3);
    count_to(1, COUNTER);
    story.now += 10 * DRIFT_MS;
    count_to(2, COUNTER + 1);
    CHECK_UINT(story.act.wake_at, STORY_START + 10 * DRIFT_MS + TIMEOUT);
    count_to(1, COUNTER + 2);
    timer_at(story.act.wake_at - 1);
    check_not_ended();
    timer_at(STORY_START + 10 * DRIFT_MS + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_UINT(sent(QUORUM_CMD_RELEASE), 7);
}

TEST(the_next_round_draws_anew)
{
    begin_with(3);
    config.fence = true;
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    count_to(1, COUNTER + 50);
    answer(6, NO);
    CHECK_INT(story.q.state, QUORUM_PAUSING);
    answer(1, YES); /* The answer to the release. */
    timer_at(story.act.wake_at);
    CHECK_UINT(sent(QUORUM_CMD_FENCE), 7);
    count_to(6, COUNTER);
    check_won(COUNTER);
}

TEST(a_raise_needs_a_majority_that_can_be_asked)
{
    begin_fenced(3);
    count_to(1, COUNTER);
    answer(4, NO);
    story.up = 5;
    count_to(2, COUNTER + 1);
    check_ended(REDLOCK_UNREACHABLE);
    CHECK_UINT(sent(QUORUM_CMD_RAISE), 0);
}

/* Numbers are doubles in Lua, so there is a greatest one. */
TEST(numbers_have_an_end)
{
    begin_fenced(3);
    count_to(1, QUORUM_FENCE_MAX - 2);
    count_to(2, QUORUM_FENCE_MAX - 1);
    check_raised(7, QUORUM_FENCE_MAX);
    begin_fenced(3);
    count_to(1, QUORUM_FENCE_MAX - 1);
    count_to(2, QUORUM_FENCE_MAX);
    check_ended(REDLOCK_UNREACHABLE);
}

TEST(a_cancelled_raise_is_undone)
{
    begin_fenced(3);
    count_to(1, COUNTER);
    count_to(2, COUNTER + 1);
    story_step(&story, QUORUM_EV_CANCEL);
    CHECK_UINT(sent(QUORUM_CMD_RELEASE), 7);
    answer_everything(YES);
    CHECK(quorum_is_settled(&story.q));
    CHECK_UINT(token(), 0);
}

/* A master that loses its data may count to an unkept number again.  A raise keeps the number. */
TEST(who_may_forget_its_number_does_not_agree)
{
    begin_fenced(3);
    count_to(1, COUNTER);
    count_unkept(2, COUNTER);
    check_raised(7, COUNTER + 1);
    begin_fenced(5);
    count_unkept(0x01, COUNTER + 300);
    count_to(0x06, COUNTER);
    check_raised(0x1f, COUNTER + 301);
    begin_fenced(5);
    count_unkept(0x01, COUNTER); /* m1 breaks away, and three others agree. */
    count_to(0x02, COUNTER);
    link_down(0);
    count_to(0x0c, COUNTER);
    check_won(COUNTER);
}

/* No later event of the hold changes the fencing token. */
TEST(a_token_stays_what_it_is)
{
    begin_fenced(3);
    count_to(3, COUNTER);
    check_won(COUNTER);
    count_to(4, COUNTER + 7); /* A late yes. */
    CHECK_UINT(token(), COUNTER);
    timer_at(RENEW_AT);
    answer(7, YES);
    CHECK_UINT(token(), COUNTER);
    timer_at(story.q.deadline);
    CHECK_INT(story.q.state, QUORUM_LOST);
    CHECK_UINT(token(), COUNTER);
}

CHECK_MAIN(RUN(one_round_trip_where_masters_are_in_step), RUN(two_where_they_are_not),
           RUN(the_greatest_is_no_token), RUN(who_said_no_is_not_asked_to_raise),
           RUN(who_comes_up_is_not_asked_then), RUN(any_number_of_a_majority_is_a_token),
           RUN(they_are_raised_again_if_need_be), RUN(rivals_are_left_behind),
           RUN(numbers_far_apart_are_not_mixed_up), RUN(those_far_behind_do_not_agree),
           RUN(a_link_that_breaks_takes_its_number_with_it), RUN(who_lost_the_key_does_not_help),
           RUN(who_lost_one_of_several_names_gets_a_release), RUN(its_release_is_not_awaited),
           RUN(the_deadline_counts_for_the_second_round_trip),
           RUN(a_raise_that_nobody_answers_ends), RUN(the_next_round_draws_anew),
           RUN(a_raise_needs_a_majority_that_can_be_asked), RUN(numbers_have_an_end),
           RUN(a_cancelled_raise_is_undone), RUN(who_may_forget_its_number_does_not_agree),
           RUN(a_token_stays_what_it_is))
