/*
 * test-permit.c - which slot a round asks for, why it asks for one, and when the next begins.
 */
#include "redlock/core/permit.h"

#include "test/lib/check.h"
#include "test/lib/scene.h"

/* ---- Why there are slots ---- */

/*
 * Counters would be simpler, but are wrong.  With them each master grants as many permits as
 * there are, and a client with a majority of grants holds one.  Five masters that grant two
 * each give ten votes, and ten votes make three majorities.
 */
TEST(counting_on_each_master_gives_too_many)
{
    enum { MASTERS = 5, PERMITS = 2, CLIENTS = 3 };
    static const unsigned asked[CLIENTS][3] = {{0, 1, 2}, {3, 4, 0}, {1, 2, 3}};
    unsigned given[MASTERS] = {0}, holders = 0;

    for (unsigned c = 0; c < CLIENTS; c++) {
        unsigned granted = 0;

        for (unsigned i = 0; i < 3; i++) {
            unsigned m = asked[c][i];

            granted += given[m] < PERMITS;
            given[m] += given[m] < PERMITS;
        }
        holders += granted >= MASTERS / 2 + 1;
    }
    CHECK_UINT(holders, 3);
}

/* ---- The slot ---- */

static struct permit of(uint16_t slots)
{
    return (struct permit){.slots = slots};
}

TEST(the_first_slot_is_random_and_the_same_for_all_of_a_round)
{
    struct permit p = of(7);

    permit_ask(&p, 1, 1, 12);
    CHECK_UINT(p.slot, 5);
    permit_ask(&p, 1, 6, 13); /* Masters that are asked later in the same round. */
    for (unsigned m = 0; m < 3; m++)
        CHECK_UINT(p.slot_of[m], 5);
    permit_ask(&p, 2, 2, 13);
    CHECK_UINT(p.slot, 6);
    CHECK_UINT(p.slot_of[0], 5); /* The release of the lost round needs it. */
    CHECK_UINT(p.slot_of[1], 6);
    CHECK_UINT(p.slot_of[2], 5);
}

static const struct {
    const char *row;
    unsigned asked, hints_len, hints[3], next; /* Slots from 0, hints from 1; next: 99: random. */
} hint_rows[] = {
    {"one", 2, 1, {5}, 4},
    {"all agree", 2, 3, {5, 5, 5}, 4},
    {"none is free", 2, 3, {0, 0, 0}, 99},
    {"no hints", 2, 0, {0}, 99},
    {"most of them", 2, 3, {4, 6, 6}, 5},
    {"most of them, the other way round", 2, 3, {6, 4, 6}, 5},
    {"one knows of none", 2, 3, {0, 5, 5}, 4},
    {"the farther of two", 2, 2, {4, 6}, 5},
    {"the farther of two, the other way round", 2, 2, {6, 4}, 5},
    {"the farther, past the end", 5, 2, {7, 2}, 1},
    {"the last", 0, 1, {8}, 7},
};

TEST(the_next_slot_is_what_most_tell)
{
    for (size_t i = 0; i < sizeof hint_rows / sizeof hint_rows[0]; i++) {
        struct permit p = of(8);

        check_row = hint_rows[i].row;
        permit_ask(&p, 1, 31, hint_rows[i].asked);
        for (unsigned h = 0; h < hint_rows[i].hints_len; h++)
            permit_hint(&p, h, hint_rows[i].hints[h]);
        permit_ask(&p, 2, 31, 3);
        CHECK_UINT(p.slot, hint_rows[i].next == 99 ? 3 : hint_rows[i].next);
        permit_ask(&p, 3, 31, 1); /* The hints are used up. */
        CHECK_UINT(p.slot, 1);
    }
    check_row = NULL;
}

/* ---- Tokens and keys ---- */

TEST(a_token_tells_its_slot)
{
    struct permit p = of(256);
    char token[] = "0123456789abcdef";

    for (unsigned slot = 0; slot < 256; slot++) {
        permit_stamp(token, slot);
        CHECK_STR(token + 2, "23456789abcdef");
        CHECK(permit_adopt(&p, token));
        CHECK_UINT(p.slot, slot);
        CHECK_UINT(p.slot_of[14], slot);
        p.slots = (uint16_t)(slot + 1);
        CHECK(permit_adopt(&p, token));
        p.slots = (uint16_t)(slot > 0 ? slot : 1);
        CHECK(permit_adopt(&p, token) == (slot == 0));
        p.slots = 256;
    }
    CHECK(!permit_adopt(&p, ""));
    CHECK(!permit_adopt(&p, "0"));
    CHECK(!permit_adopt(&p, "0G"));
    CHECK(!permit_adopt(&p, "G0"));
    CHECK(!permit_adopt(&p, "0A"));
    CHECK(permit_adopt(&p, "ff"));
}

/* ---- When the next round begins ---- */

static void elsewhere(quorum_mask mask)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (mask & bit(m))
            story_elsewhere(&story, m);
}

/* The client does not wait: without hints the first lost round would be the last. */
TEST(who_hears_of_another_asks_for_it_at_once)
{
    begin_acquiring(5);
    elsewhere(7);
    answer(8, NO);
    check_not_ended();
    check_sent(0, 0, 0); /* m5 may answer yet, and is then asked like the others. */
    answer(16, NO);
    check_not_ended();
    check_sent(31, 0, 0);
    CHECK_INT(story.q.state, QUORUM_ACQUIRING);
    answer(7, YES);
    check_ended(REDLOCK_OK);
}

/* The round waits for the last answers as long again as the others took, or until it times out. */
TEST(who_does_not_answer_is_not_waited_for)
{
    begin_acquiring(5);
    story.now = STORY_START + 3 * DRIFT_MS;
    elsewhere(7);
    CHECK_UINT(story.act.wake_at, STORY_START + 6 * DRIFT_MS);
    timer_at(STORY_START + 6 * DRIFT_MS - 1);
    check_sent(0, 0, 0);
    timer_at(STORY_START + 6 * DRIFT_MS);
    check_not_ended();
    check_sent(7, 0, 24);
    answer(24, YES); /* These answers come too late. */
    answer(24, YES); /* The answers to the release. */
    check_sent(16, 0, 0);
    answer(7, YES);
    check_ended(REDLOCK_OK);

    begin_again();
    acquire();
    story.now = STORY_START + TIMEOUT - 1;
    elsewhere(7);
    CHECK_UINT(story.act.wake_at, STORY_START + TIMEOUT);
}

TEST(half_of_those_who_say_no_are_enough_to_go_on)
{
    begin_acquiring(5);
    answer(6, NO);
    elsewhere(8);
    check_ended(REDLOCK_CONTENDED); /* One of three has a hint. */

    begin_again();
    acquire();
    answer(1, NO);
    elsewhere(6);
    answer(8, NO);
    answer(16, YES);
    check_not_ended(); /* Two of four have one. */
    check_sent(15, 0, 16);
}

TEST(after_a_few_detours_there_is_a_pause)
{
    begin_with(1);
    config.wait = DRIFT_NEVER;
    begin_again();
    for (unsigned turn = 0; turn < 2; turn++) { /* Each pause allows as many again. */
        if (turn == 0)
            acquire();
        else
            timer_at(story.act.wake_at);
        for (unsigned i = 0; i < QUORUM_DETOURS; i++) {
            CHECK_UINT(story.q.detours, QUORUM_DETOURS - i);
            elsewhere(1);
            check_sent(1, 0, 0);
        }
        elsewhere(1);
        CHECK_INT(story.q.state, QUORUM_PAUSING);
        CHECK_UINT(story.act.wake_at, story.now + PAUSE_MIN);
    }
}

/* Two masters know of a free slot, but too few masters answer. */
TEST(nobody_goes_on_when_too_few_answer)
{
    begin_acquiring(5);
    elsewhere(3);
    CHECK_INT(story.q.state, QUORUM_ACQUIRING);
    timer_at(STORY_START + TIMEOUT);
    check_ended(REDLOCK_UNREACHABLE);
}

/* A master that the round does not wait for any more counts as reachable. */
TEST(who_was_taken_at_its_word_is_no_silence)
{
    begin_acquiring(2);
    story.now = STORY_START + 3 * DRIFT_MS;
    elsewhere(1);
    check_sent(0, 0, 0);
    for (unsigned i = 0; i < QUORUM_DETOURS; i++) {
        check_not_ended();
        timer_at(story.act.wake_at);
        check_sent(1, 0, i == 0 ? 2 : 0);
        story.now += DRIFT_MS;
        elsewhere(1);
    }
    check_ended(REDLOCK_CONTENDED);
}

/* A master that granted the lost round gets a release before it is asked again. */
TEST(a_detour_asks_nobody_who_may_store_the_round_before)
{
    begin_acquiring(5);
    answer(3, YES);
    elsewhere(28);
    check_not_ended();
    check_sent(28, 0, 3);
    answer(1, YES); /* The answer to the release. */
    check_sent(1, 0, 0);
    answer(29, YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* A master that joined the set was not asked in the round. */
TEST(a_token_is_given_in_its_slot)
{
    struct permit p = {.slots = 9};

    permit_ask(&p, 1, 3, 5);
    CHECK_UINT(p.slot, 5);
    CHECK_UINT(p.slot_of[2], 0);
    permit_give(&p, 4);
    CHECK_UINT(p.slot_of[2], 5);
    permit_hint(&p, 1, 3);
    permit_on_left(&p, 2);
    CHECK_UINT(p.hinted, 0);
}

CHECK_MAIN(RUN(a_token_is_given_in_its_slot), RUN(counting_on_each_master_gives_too_many),
           RUN(the_first_slot_is_random_and_the_same_for_all_of_a_round),
           RUN(the_next_slot_is_what_most_tell), RUN(a_token_tells_its_slot),
           RUN(who_hears_of_another_asks_for_it_at_once),
           RUN(who_does_not_answer_is_not_waited_for),
           RUN(half_of_those_who_say_no_are_enough_to_go_on),
           RUN(after_a_few_detours_there_is_a_pause), RUN(nobody_goes_on_when_too_few_answer),
           RUN(who_was_taken_at_its_word_is_no_silence),
           RUN(a_detour_asks_nobody_who_may_store_the_round_before))
