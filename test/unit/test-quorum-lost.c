/*
 * test-quorum-lost.c - a token that no majority stores, or that an operator
 * replaced on a majority: rules 12 and 14 of quorum.c.
 */
#include "redlock/core/quorum.h"

#include "test/lib/scene.h"

/* Adopt a token, and extend or release it. */
static void adopt_and_ask(bool release)
{
    story_step(&story, QUORUM_EV_ADOPT);
    if (release)
        story_step(&story, QUORUM_EV_RELEASE);
    else
        story_extend(&story, 0);
    check_sent(0, release ? 0 : story.up, release ? story.up : 0);
}

/* What master m does: answers y, n, e(rror); its link goes d(own); or it h(angs). */
static void happen(unsigned m, char what)
{
    if (what == 'd')
        link_down(m);
    else if (what == 'h')
        timer_at(STORY_START + TIMEOUT - 1);
    else
        answer(bit(m), what == 'y' ? YES : what == 'n' ? NO : NONE);
}

/* m5 is down, m4 comes up last, and m1 and m2 say no.  The rows: what m3 and m4 do then. */
static const struct {
    const char *what;
    int status;
} rows[] = {
    {"n", REDLOCK_LOST},         {"yn", REDLOCK_LOST},        {"en", REDLOCK_LOST},
    {"dn", REDLOCK_LOST},        {"hn", REDLOCK_LOST},        {"yy", REDLOCK_UNREACHABLE},
    {"ye", REDLOCK_UNREACHABLE}, {"yd", REDLOCK_UNREACHABLE}, {"yh", REDLOCK_UNREACHABLE},
    {"ee", REDLOCK_UNREACHABLE}, {"dd", REDLOCK_UNREACHABLE}, {"hh", REDLOCK_UNREACHABLE},
};

static void try_row(const char *what, int status, bool release)
{
    begin_with(5);
    story.up = 7;
    story.coming = 8;
    adopt_and_ask(release);
    answer(3, NO);
    check_not_ended();
    happen(2, what[0]);
    if (what[1] != '\0') {
        check_not_ended();
        link_up(3);
        check_sent(0, release ? 0 : 8, release ? 8 : 0);
        check_not_ended();
        happen(3, what[1]);
    }
    if (what[strlen(what) - 1] == 'h') {
        check_not_ended();
        timer_at(STORY_START + TIMEOUT);
    }
    check_ended(status);
    CHECK(!story.act.lost); /* This process never held the lock. */
    CHECK_UINT(remaining(), 0);
}

TEST(masters_that_can_show_a_loss_are_awaited)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (unsigned release = 0; release < 2; release++) {
            check_row = rows[i].what;
            try_row(rows[i].what, rows[i].status, release);
        }
    check_row = NULL;
}

/* The first attempt to connect to m4 fails. */
TEST(a_master_that_does_not_come_is_not_awaited)
{
    for (unsigned release = 0; release < 2; release++) {
        begin_with(5);
        story.up = 7;
        story.coming = 8;
        adopt_and_ask(release);
        answer(3, NO);
        answer(4, NONE);
        check_not_ended();
        link_down(3);
        check_ended(REDLOCK_UNREACHABLE);
    }
}

/* Without two of five, three may store the token.  Without two of four, two: no majority. */
TEST(too_few_masters_cannot_show_a_loss)
{
    for (unsigned n = 4; n <= 5; n++)
        for (unsigned release = 0; release < 2; release++) {
            begin_with(n);
            story.up = 3;
            adopt_and_ask(release);
            if (n == 5) {
                check_ended(REDLOCK_UNREACHABLE);
                continue;
            }
            answer(1, NO);
            check_not_ended();
            answer(2, NO);
            check_ended(REDLOCK_LOST);
        }
}

/* A hold ends when it is known to be lost.  A failed extension does not make it longer. */
TEST(an_extension_of_a_hold_awaits_them_too)
{
    for (unsigned lost = 0; lost < 2; lost++) {
        begin_held(5);
        link_down(4);
        story_extend(&story, 0);
        answer(3, NO);
        check_not_ended();
        CHECK_UINT(remaining(), LEASE - ALLOWANCE);
        if (lost) {
            answer(4, NO);
            check_ended(REDLOCK_LOST);
            CHECK(story.act.lost);
            CHECK_UINT(remaining(), 0);
        } else {
            answer(12, YES);
            check_ended(REDLOCK_UNREACHABLE);
            CHECK_UINT(story.q.deadline, DEADLINE);
        }
    }
}

/* Five masters are asked to extend, because the lease is to be renewed. */
static void begin_renewal(void)
{
    begin_held(5);
    timer_at(story.q.renew_at);
    check_sent(0, 31, 0);
}

static void revoke(quorum_mask mask)
{
    for (unsigned m = 0; m < 5; m++)
        if (mask & bit(m))
            story_revoke(&story, m);
}

/* The holder keeps the lock until then, but no master is asked any more. */
static void check_kept_until_the_deadline(void)
{
    CHECK_UINT(story.q.deadline, DEADLINE);
    CHECK(remaining() > 0);
    CHECK_UINT(story.act.wake_at, DEADLINE);
    check_sent(0, 0, 0);
}

TEST(a_holder_whose_lock_is_revoked_is_told_at_once)
{
    begin_renewal();
    revoke(3);
    CHECK(!story.act.lost);
    revoke(4);
    CHECK(story.act.lost);
    check_kept_until_the_deadline();
    for (unsigned m = 3; m < 5; m++) {
        revoke(bit(m));
        CHECK(!story.act.lost);
        check_kept_until_the_deadline();
    }
    story_extend(&story, 0);
    check_ended(REDLOCK_LOST);
    check_kept_until_the_deadline();
    timer_at(DEADLINE - 1);
    CHECK_UINT(remaining(), 1);
    timer_at(DEADLINE);
    CHECK(!story.act.lost);
    CHECK_UINT(remaining(), 0);
    check_sent(0, 0, 0); /* No master stores the token. */
}

/* Until the deadline no release frees a master for another client. */
TEST(the_rest_of_a_revoked_lock_is_released_at_the_deadline)
{
    begin_renewal();
    revoke(7);
    answer(8, YES);
    check_kept_until_the_deadline();
    timer_at(DEADLINE);
    check_sent(0, 0, 24);
}

/* Two masters are free, or one: no other client can have three. */
TEST(a_text_keeps_others_out)
{
    begin_renewal();
    answer(3, NO);
    CHECK(!story.act.lost);
    revoke(4);
    CHECK(story.act.lost);
    check_kept_until_the_deadline();
    answer(8, NO); /* Three are free. */
    CHECK_UINT(remaining(), 0);
    check_sent(0, 0, 16);
}

TEST(what_a_minority_revoked_is_held)
{
    begin_renewal();
    revoke(3);
    answer(28, YES);
    CHECK(!story.act.lost);
    CHECK(story.q.deadline > DEADLINE);
    timer_at(story.q.renew_at);
    revoke(7); /* The third master has answered for the first time. */
    CHECK(story.act.lost);
    CHECK(remaining() > 0);
}

TEST(a_caller_that_extends_a_revoked_lock_has_none)
{
    begin_held(5);
    story_extend(&story, 0);
    revoke(7);
    check_ended(REDLOCK_LOST);
    CHECK(story.act.lost);
    CHECK_UINT(remaining(), 0);
    check_sent(0, 0, 24);
}

TEST(a_revoked_lock_is_released_early)
{
    begin_renewal();
    revoke(7);
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 24); /* The others store no token. */
    check_ended(REDLOCK_LOST);
    CHECK_UINT(remaining(), 0);
}

CHECK_MAIN(RUN(masters_that_can_show_a_loss_are_awaited),
           RUN(a_master_that_does_not_come_is_not_awaited), RUN(too_few_masters_cannot_show_a_loss),
           RUN(an_extension_of_a_hold_awaits_them_too),
           RUN(a_holder_whose_lock_is_revoked_is_told_at_once),
           RUN(the_rest_of_a_revoked_lock_is_released_at_the_deadline),
           RUN(a_text_keeps_others_out), RUN(what_a_minority_revoked_is_held),
           RUN(a_caller_that_extends_a_revoked_lock_has_none),
           RUN(a_revoked_lock_is_released_early))
