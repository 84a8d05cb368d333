/*
 * test-quorum.c - the votes of a round: rules 1 to 3 of quorum.c, and which answers
 * count.  Each boundary is tested on both sides.
 *
 * The other files have the other rules: test-quorum-round.c begins rounds,
 * test-quorum-hold.c keeps the lock, test-quorum-settle.c gives it back,
 * test-quorum-fence.c draws fencing tokens, and test-quorum-states.c tries events in
 * every state.  timelines/ has whole stories.
 */
#include "redlock/core/quorum.h"

#include <string.h>

#include "test/lib/scene.h"

/* ---- Rule 1: a lease counts from before its first byte was sent ---- */

TEST(a_lease_counts_from_before_the_send)
{
    begin_acquiring(5);
    check_sent(all(), 0, 0);
    CHECK_UINT(story.q.sent, STORY_START);
    story.now += 40 * DRIFT_MS; /* However long the answers take. */
    answer(7, YES);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.q.deadline, DEADLINE);
    CHECK_UINT(remaining(), LEASE - ALLOWANCE - 40 * DRIFT_MS);
}

/* Waiting for links is not part of the lease, because nothing has been sent. */
TEST(a_lease_does_not_count_while_connecting)
{
    begin_with(1);
    story.up = 0;
    story.coming = 1;
    acquire();
    check_sent(0, 0, 0);
    CHECK_INT(story.q.state, QUORUM_CONNECTING);
    story.now += DRIFT_S;
    link_up(0);
    check_sent(1, 0, 0);
    answer(1, YES);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.q.deadline, DEADLINE + DRIFT_S);
}

/* A master that is asked later in the round makes the lease no longer. */
TEST(a_lease_counts_from_the_first_send)
{
    begin_with(3);
    story.up = 3;
    acquire();
    story.now += 30 * DRIFT_MS;
    link_up(2);
    check_sent(4, 0, 0);
    answer(6, YES);
    check_ended(REDLOCK_OK);
    CHECK_UINT(story.q.deadline, DEADLINE);
}

TEST(every_round_counts_anew_and_has_a_number_of_its_own)
{
    uint32_t last = 0;

    begin_with(3);
    config.wait = DRIFT_NEVER;
    begin_again();
    acquire();
    for (unsigned i = 0; i < 20; i++) {
        CHECK_INT(story.q.state, QUORUM_ACQUIRING);
        CHECK_UINT(story.q.sent, story.now);
        CHECK_UINT(story.q.deadline, story.now + LEASE - ALLOWANCE);
        CHECK(story.q.round > last);
        last = story.q.round;
        for (unsigned m = 0; m < 3; m++)
            CHECK_UINT(story.q.round_of[m], last);
        answer_everything(i % 2 == 0 ? NO : NONE);
        CHECK_INT(story.q.state, QUORUM_PAUSING);
        CHECK_UINT(story.q.round, 0);
        timer_at(story.act.wake_at);
    }
}

/* ---- Rule 2: the deadline is tested before a vote is counted ---- */

TEST(a_round_is_won_before_the_deadline_and_not_at_it)
{
    for (unsigned late = 0; late < 2; late++) {
        begin_acquiring(3);
        answer(1, YES);
        story.now = DEADLINE - 1 + late;
        answer(2, YES);
        if (late) {
            check_ended(REDLOCK_TOO_LATE);
            CHECK_INT(story.q.state, QUORUM_IDLE);
            CHECK_UINT(remaining(), 0);
            check_sent(0, 0, 7);
        } else {
            check_ended(REDLOCK_OK);
            CHECK_UINT(remaining(), 1);
            check_sent(0, 0, 0);
        }
    }
}

TEST(a_lease_that_its_allowance_swallows_is_never_held)
{
    static const struct {
        drift_span lease, fixed;
        int status;
    } rows[] = {
        {1000, 989, REDLOCK_OK},       /* Leaves 1 ns: 1 % of 1000 ns is 10. */
        {1000, 990, REDLOCK_TOO_LATE}, /* Leaves nothing. */
        {1000, 5000, REDLOCK_TOO_LATE},
        {0, 0, REDLOCK_TOO_LATE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin_with(1);
        config.lease = rows[i].lease;
        config.drift.fixed = rows[i].fixed;
        begin_again();
        acquire();
        answer(1, YES);
        check_ended(rows[i].status);
        CHECK_UINT(remaining(), rows[i].status == REDLOCK_OK ? 1 : 0);
    }
}

TEST(a_hold_ends_at_the_deadline_whatever_happens_then)
{
    static const enum quorum_event_type types[] = {QUORUM_EV_TIMER,  QUORUM_EV_RELEASE,
                                                   QUORUM_EV_CANCEL, QUORUM_EV_DETACH,
                                                   QUORUM_EV_EXTEND, QUORUM_EV_LINK};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        bool is_undone = types[i] == QUORUM_EV_CANCEL || types[i] == QUORUM_EV_DETACH;

        for (unsigned late = 0; late < 2; late++) {
            begin_with(3);
            config.lost_margin = 0; /* Else the lost notice comes earlier. */
            config.renew = false;
            begin_again();
            hold();
            story.now = DEADLINE - 1 + late;
            CHECK_UINT(remaining(), 1 - late); /* No event is needed. */
            if (types[i] == QUORUM_EV_EXTEND)
                story_extend(&story, 0);
            else
                story_step(&story, types[i]);
            CHECK_UINT(story.act.lost, late && !is_undone);
        }
    }
}

TEST(a_release_after_the_deadline_tells_of_the_loss)
{
    begin_held(3);
    story.now = DEADLINE;
    story_step(&story, QUORUM_EV_RELEASE);
    check_ended(REDLOCK_LOST);
    CHECK_INT(story.q.state, QUORUM_IDLE);
    check_sent(0, 0, 7); /* The keys may still be there. */
}

TEST(an_extension_counts_before_the_old_deadline_and_not_at_it)
{
    for (unsigned late = 0; late < 2; late++) {
        begin_with(3);
        config.lost_margin = 0;
        begin_again();
        hold();
        timer_at(DEADLINE - 10);
        check_sent(0, 7, 0);
        answer(1, YES);
        story.now = DEADLINE - 1 + late;
        answer(2, YES);
        CHECK_INT(story.q.state, late ? QUORUM_LOST : QUORUM_HELD);
        CHECK_UINT(story.act.lost, late);
        CHECK_UINT(remaining(), late ? 0 : LEASE - ALLOWANCE - 9);
        check_sent(0, 0, late ? 7 : 0);
    }
}

/* ---- Rule 3: won and lost as soon as it is certain ---- */

TEST(a_majority_of_yes_wins_and_one_less_does_not)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        begin_acquiring(n);
        check_sent(all(), 0, 0);
        for (unsigned m = 0; m + 1 < majority(); m++) {
            story_reply(&story, m, YES);
            check_not_ended();
            CHECK_INT(story.q.state, QUORUM_ACQUIRING);
            CHECK_UINT(remaining(), 0);
        }
        story_reply(&story, majority() - 1, YES);
        check_ended(REDLOCK_OK);
        CHECK_INT(story.q.state, QUORUM_HELD);
        CHECK_UINT(remaining(), LEASE - ALLOWANCE);
        check_sent(0, 0, 0);
    }
}

/* Two majorities of any set share a master.  Redlock rests on this. */
TEST(two_majorities_share_a_master)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        unsigned need = 0;

        begin_acquiring(n);
        while (!story.act.ended)
            story_reply(&story, need++, YES);
        CHECK(2 * need > n);
        CHECK(2 * (need - 1) <= n); /* No smaller number is a majority. */
    }
}

/* Lose n masters by no, error, or link, until a majority has become impossible. */
static void lose_by(enum quorum_vote vote, bool by_link, int status)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        unsigned spare = n - (n / 2 + 1);
        quorum_mask rest;

        begin_acquiring(n);
        for (unsigned m = 0; m <= spare; m++) {
            check_not_ended();
            if (by_link)
                link_down(m);
            else
                story_reply(&story, m, vote);
        }
        /* Masters that can still answer count as reachable, even where one no is enough. */
        check_ended(status);
        CHECK_INT(story.q.state, QUORUM_IDLE);
        rest = (quorum_mask)(all() & ~((1u << (spare + 1)) - 1));
        check_sent(0, 0, rest);
    }
}

TEST(a_round_is_lost_as_soon_as_a_majority_is_impossible)
{
    lose_by(NO, false, REDLOCK_CONTENDED);
}

/* The masters that can still answer are no majority. */
TEST(errors_and_broken_links_lose_a_round_as_well)
{
    lose_by(NONE, false, REDLOCK_UNREACHABLE);
    lose_by(NONE, true, REDLOCK_UNREACHABLE);
}

TEST(a_split_vote_of_an_even_set_ends_the_round)
{
    for (unsigned n = 2; n < QUORUM_MASTERS_MAX; n += 2) {
        quorum_mask half = (quorum_mask)((1u << n / 2) - 1);

        begin_acquiring(n);
        answer(half, YES);
        check_not_ended();
        answer((quorum_mask)(all() & ~half), NO);
        check_ended(REDLOCK_CONTENDED);
        check_sent(0, 0, half);
    }
}

/* The status of a round that ends by timeout depends on how many of n masters answered. */
TEST(a_silent_majority_is_unreachable_and_an_answering_one_contended)
{
    for (unsigned n = 3; n <= QUORUM_MASTERS_MAX; n++) {
        for (unsigned fewer = 0; fewer < 2; fewer++) {
            unsigned answers = n / 2 + 1 - fewer;

            begin_acquiring(n);
            story_reply(&story, 0, NO);
            for (unsigned m = 1; m < answers; m++)
                story_reply(&story, m, YES);
            check_not_ended();
            timer_at(STORY_START + TIMEOUT);
            check_ended(fewer ? REDLOCK_UNREACHABLE : REDLOCK_CONTENDED);
        }
    }
}

/* A void yes wins no more than an error does, but the key is there. */
TEST(a_void_yes_wins_nothing_and_is_released)
{
    begin_acquiring(5);
    answer(3, YES);
    answer(12, VOID);
    check_not_ended();
    answer(16, VOID);
    check_ended(REDLOCK_UNREACHABLE);
    check_sent(0, 0, 31);
    answer_everything(YES);
    CHECK(quorum_is_settled(&story.q));
}

/* The master stores the key like the others, so its key is extended and released. */
TEST(a_void_yes_is_of_a_hold_that_others_won)
{
    begin_acquiring(5);
    answer(1, VOID);
    answer(2, NO);
    answer(28, YES);
    check_ended(REDLOCK_OK);
    timer_at(RENEW_AT);
    check_sent(0, 29, 0);
    answer(29, YES); /* The master that refused is given the token: test-quorum-regain.c. */
    story_step(&story, QUORUM_EV_RELEASE);
    check_sent(0, 0, 31);
}

TEST(a_round_ends_at_its_timeout_and_not_before)
{
    begin_acquiring(3);
    CHECK_UINT(story.act.wake_at, STORY_START + TIMEOUT);
    timer_at(STORY_START + TIMEOUT - 1);
    check_not_ended();
    CHECK_UINT(story.act.wake_at, STORY_START + TIMEOUT);
    timer_at(STORY_START + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
    check_sent(0, 0, 7);
}

/* An answer that came while the process was paused is counted before the timer. */
TEST(an_answer_counts_after_the_timeout_if_the_timer_has_not_run)
{
    begin_acquiring(1);
    story.now += TIMEOUT + 1;
    answer(1, YES);
    check_ended(REDLOCK_OK);
}

TEST(the_yes_of_a_master_whose_link_breaks_is_void)
{
    begin_acquiring(3);
    answer(1, YES);
    link_down(0);
    check_not_ended();
    answer(2, YES);
    check_not_ended(); /* The master may have lost its data. */
    answer(4, YES);
    check_ended(REDLOCK_OK);

    begin_acquiring(3);
    answer(1, YES);
    link_down(0);
    link_up(0); /* The master is not asked again in this round. */
    check_sent(0, 0, 0);
    answer(2, YES);
    check_not_ended();
    answer(4, NO);
    check_ended(REDLOCK_CONTENDED);
    check_sent(0, 0, 3);
}

TEST(a_hopeless_round_bothers_nobody)
{
    for (unsigned n = 1; n <= QUORUM_MASTERS_MAX; n++) {
        begin_with(n);
        story.up = (quorum_mask)((1u << (majority() - 1)) - 1);
        acquire();
        check_sent(0, 0, 0);
        check_ended(REDLOCK_UNREACHABLE);
        CHECK(quorum_is_settled(&story.q));
        CHECK_UINT(story.act.wake_at, DRIFT_NEVER);

        begin_again();
        story.up = (quorum_mask)((1u << majority()) - 1);
        acquire();
        check_sent(story.up, 0, 0);
        check_not_ended();
    }
}

/* ---- Answers ---- */

static void reply_raw(unsigned m, uint32_t ask, enum quorum_command command, enum quorum_vote vote)
{
    struct quorum_event event = {
        .type = QUORUM_EV_REPLY,
        .now = story.now,
        .members = story.members,
        .up = story.up,
        .master = m,
        .ask = ask,
        .command = command,
        .vote = vote,
    };

    quorum_step(&story.q, &event, &story.act);
}

TEST(an_answer_counts_once)
{
    begin_acquiring(3);
    reply_raw(0, story.q.ask_of[0], QUORUM_CMD_SET, YES);
    reply_raw(0, story.q.ask_of[0], QUORUM_CMD_SET, YES);
    check_not_ended();
    reply_raw(0, story.q.ask_of[0], QUORUM_CMD_SET, NO); /* A second answer is ignored. */
    CHECK_UINT(story.q.yes, 1);
    CHECK_UINT(story.q.may_hold, 7);
    reply_raw(1, story.q.ask_of[1] + 1, QUORUM_CMD_SET, YES); /* An answer to no question. */
    reply_raw(1, story.q.ask_of[1] - 1, QUORUM_CMD_SET, YES);
    check_not_ended();
    reply_raw(1, story.q.ask_of[1], QUORUM_CMD_SET, YES);
    check_ended(REDLOCK_OK);
}

TEST(an_answer_from_before_the_link_broke_does_not_count)
{
    uint32_t ask;

    begin_acquiring(3);
    ask = story.q.ask_of[0];
    link_down(0);
    link_up(0);
    reply_raw(0, ask, QUORUM_CMD_SET, YES);
    CHECK_UINT(story.q.yes, 0);
}

/* The explorer compares machines byte by byte. */
TEST(equal_machines_have_equal_bytes)
{
    struct quorum a, b;
    struct quorum_actions act;
    struct quorum_event event = {
        .type = QUORUM_EV_ACQUIRE, .now = STORY_START, .members = {31, 31}, .up = 31};

    begin_with(5);
    memset(&a, 0x55, sizeof a);
    memset(&b, 0xaa, sizeof b);
    quorum_init(&a, &config);
    quorum_init(&b, &config);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    quorum_step(&a, &event, &act);
    quorum_step(&b, &event, &act);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
}

CHECK_MAIN(RUN(a_lease_counts_from_before_the_send), RUN(a_lease_does_not_count_while_connecting),
           RUN(a_lease_counts_from_the_first_send),
           RUN(every_round_counts_anew_and_has_a_number_of_its_own),
           RUN(a_round_is_won_before_the_deadline_and_not_at_it),
           RUN(a_lease_that_its_allowance_swallows_is_never_held),
           RUN(a_hold_ends_at_the_deadline_whatever_happens_then),
           RUN(a_release_after_the_deadline_tells_of_the_loss),
           RUN(an_extension_counts_before_the_old_deadline_and_not_at_it),
           RUN(a_majority_of_yes_wins_and_one_less_does_not), RUN(two_majorities_share_a_master),
           RUN(a_round_is_lost_as_soon_as_a_majority_is_impossible),
           RUN(errors_and_broken_links_lose_a_round_as_well),
           RUN(a_split_vote_of_an_even_set_ends_the_round),
           RUN(a_silent_majority_is_unreachable_and_an_answering_one_contended),
           RUN(a_void_yes_wins_nothing_and_is_released),
           RUN(a_void_yes_is_of_a_hold_that_others_won),
           RUN(a_round_ends_at_its_timeout_and_not_before),
           RUN(an_answer_counts_after_the_timeout_if_the_timer_has_not_run),
           RUN(the_yes_of_a_master_whose_link_breaks_is_void), RUN(a_hopeless_round_bothers_nobody),
           RUN(an_answer_counts_once), RUN(an_answer_from_before_the_link_broke_does_not_count),
           RUN(equal_machines_have_equal_bytes))
