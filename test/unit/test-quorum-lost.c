/*
 * test-quorum-lost.c - a token that no majority stores: rule 12 of quorum.c.
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

CHECK_MAIN(RUN(masters_that_can_show_a_loss_are_awaited),
           RUN(a_master_that_does_not_come_is_not_awaited), RUN(too_few_masters_cannot_show_a_loss),
           RUN(an_extension_of_a_hold_awaits_them_too))
