/*
 * test-quorum-partner.c - a token that another process counts on: rule 10 of quorum.c.
 *
 * The other process may hold the lock until a deadline that this one does not know.  So whatever
 * this one finds out, only its caller releases the token.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

static void adopt(unsigned masters)
{
    begin_with(masters);
    config.renew = false;
    begin_again();
    story_step(&story, QUORUM_EV_ADOPT);
}

/* The extension succeeds: this process holds the lock, too. */
static void hold_too(unsigned masters)
{
    adopt(masters);
    story_extend(&story, 0);
    answer(all(), YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* Nothing is due, also when a link comes up again, and the token is as it was. */
static void check_left_alone(unsigned masters)
{
    check_sent(0, 0, 0);
    for (unsigned m = 0; m < masters; m++) {
        CHECK(!quorum_must_release(&story.q, m));
        link_down(m);
        link_up(m);
        check_sent(0, 0, 0);
    }
}

/* m1, m2 and m3 store an operator's text, or had the token for less time than m4 and m5.  With m4
 * and m5, other clients could lock as soon as two of the three are free. */
TEST(a_token_that_is_found_lost_is_not_released)
{
    adopt(5);
    story_extend(&story, 0);
    answer(7, NO);
    check_ended(REDLOCK_LOST);
    check_left_alone(5);
    story_extend(&story, 0);
    check_ended(REDLOCK_LOST);
    check_left_alone(5);
}

TEST(a_token_that_was_held_too_is_not_released_when_it_is_lost)
{
    hold_too(5);
    story_extend(&story, 0);
    answer(7, NO);
    check_ended(REDLOCK_LOST);
    CHECK(story.act.lost);
    check_left_alone(5);
}

/* The other process may have extended it for longer. */
TEST(a_token_is_not_released_when_the_time_is_over)
{
    hold_too(3);
    timer_at(DEADLINE - 1);
    CHECK_UINT(remaining(), 1);
    timer_at(DEADLINE);
    CHECK_UINT(remaining(), 0);
    CHECK_INT(story.q.state, QUORUM_LOST);
    check_left_alone(3);
    timer_at(SETTLED);
    check_left_alone(3);
}

/* The caller gives the lock up: for all. */
TEST(the_caller_releases_it)
{
    for (unsigned cancel = 0; cancel < 2; cancel++) {
        hold_too(3);
        timer_at(DEADLINE);
        story_step(&story, cancel ? QUORUM_EV_CANCEL : QUORUM_EV_RELEASE);
        check_sent(0, 0, 7);
        answer(7, YES);
        CHECK(quorum_is_settled(&story.q));
    }
}

TEST(the_caller_releases_what_is_held)
{
    hold_too(3);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 7);
    answer(3, YES);
    check_ended(REDLOCK_OK);
}

CHECK_MAIN(RUN(a_token_that_is_found_lost_is_not_released),
           RUN(a_token_that_was_held_too_is_not_released_when_it_is_lost),
           RUN(a_token_is_not_released_when_the_time_is_over), RUN(the_caller_releases_it),
           RUN(the_caller_releases_what_is_held))
