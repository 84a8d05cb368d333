/*
 * test-revoke.c - the rules of core/revoke.h, and its requests and answers on the wire.
 */
#include "redlock/core/revoke.h"

#include <stdio.h>
#include <string.h>

#include "redlock/wire/revocation.h"
#include "test/lib/check.h"

#define VERSION 3

static struct revoke r;

static void begin(unsigned masters)
{
    const struct members lists = members_first(masters);

    revoke_init(&r, &lists, true, VERSION);
}

static void read_as(unsigned m, enum revoke_what what, const char *text, uint32_t left_ms)
{
    struct revoke_seen seen = {.what = what, .version = VERSION, .left_ms = left_ms};

    (void)snprintf(seen.text, sizeof seen.text, "%s", text);
    revoke_on_read(&r, m, &seen);
}

static void read_token(unsigned m, const char *token)
{
    read_as(m, REVOKE_TOKEN, token, 1000);
}

static void done(unsigned m, bool is_revoked, uint64_t number, uint32_t left_ms)
{
    const struct revoke_done done = {is_revoked, left_ms, number};

    revoke_on_done(&r, m, &done);
}

/* ---- The holder ---- */

TEST(a_majority_of_one_token_is_the_holder)
{
    begin(3);
    read_token(0, "a");
    read_token(1, "b");
    read_token(2, "b");
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
    CHECK_STR(r.text, "b");
    CHECK_UINT(r.holders, 0x6);
}

TEST(a_minority_may_hold_with_a_silent_master)
{
    begin(3);
    read_token(0, "a");
    read_as(1, REVOKE_FREE, "", 0);
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
    CHECK_STR(r.text, "a");
    read_as(2, REVOKE_FREE, "", 0);
    r.holders = 0;
    CHECK_UINT(revoke_choose(&r), REVOKE_NOBODY);
}

TEST(tokens_of_lost_rounds_are_no_holders)
{
    begin(3);
    read_token(0, "a");
    read_token(1, "b");
    read_token(2, "c");
    CHECK_UINT(revoke_choose(&r), REVOKE_NOBODY);
}

TEST(too_few_answer)
{
    begin(3);
    read_token(0, "a");
    CHECK_UINT(revoke_choose(&r), REVOKE_TOO_FEW);
}

TEST(masters_that_are_no_members_do_not_count)
{
    begin(3);
    read_token(0, "a");
    read_token(3, "a");
    read_token(4, "a");
    CHECK_UINT(revoke_choose(&r), REVOKE_TOO_FEW);
}

TEST(a_master_without_an_epoch_does_not_count)
{
    const struct revoke_seen warming = {.what = REVOKE_TOKEN, .text = "a"};

    begin(3);
    read_token(0, "a");
    revoke_on_read(&r, 1, &warming);
    CHECK_UINT(revoke_choose(&r), REVOKE_TOO_FEW);
    r.is_guarded = false;
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
}

TEST(a_newer_version_ends_the_attempt)
{
    const struct revoke_seen newer = {.what = REVOKE_FREE, .version = VERSION + 1};

    begin(3);
    read_token(0, "a");
    read_token(1, "a");
    revoke_on_read(&r, 2, &newer);
    CHECK_UINT(revoke_choose(&r), REVOKE_OVERTAKEN);
    CHECK_UINT(r.culprit, 2);
}

TEST(an_older_version_counts)
{
    struct revoke_seen older = {.what = REVOKE_TOKEN, .version = VERSION - 1, .text = "a"};

    begin(3);
    read_token(0, "a");
    revoke_on_read(&r, 1, &older);
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
}

TEST(readers_are_one_holder)
{
    begin(3);
    for (unsigned m = 0; m < 3; m++)
        read_as(m, REVOKE_READERS, "", 1000);
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
    CHECK(r.has_readers);
    CHECK_STR(r.text, "");
}

TEST(a_lock_that_was_revoked)
{
    begin(3);
    read_as(0, REVOKE_REVOKED, WIRE_REVOKED "me", 500);
    read_as(1, REVOKE_REVOKED, WIRE_REVOKED "me", 900);
    read_as(2, REVOKE_FREE, "", 0);
    CHECK_UINT(revoke_choose(&r), REVOKE_ALREADY);
    CHECK_STR(r.text, WIRE_REVOKED "me");
    CHECK_UINT(revoke_left_ms(&r), 500);
}

TEST(a_lock_that_a_minority_has_revoked_is_held)
{
    begin(3);
    read_as(0, REVOKE_REVOKED, WIRE_REVOKED "me", 500);
    read_token(1, "a");
    read_token(2, "a");
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
    CHECK_STR(r.text, "a");
}

TEST(a_foreign_key_is_no_lock)
{
    begin(3);
    read_as(0, REVOKE_FREE, "", 0);
    read_as(1, REVOKE_FOREIGN, "", 0);
    read_as(2, REVOKE_FOREIGN, "", 0);
    CHECK_UINT(revoke_choose(&r), REVOKE_NO_LOCK);
    CHECK_UINT(r.foreign, mask_of(1) | mask_of(2));
}

/* ---- The end ---- */

static void held_by_all(unsigned masters)
{
    begin(masters);
    for (unsigned m = 0; m < masters; m++)
        read_token(m, "a");
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
}

TEST(a_majority_has_to_store_the_text)
{
    held_by_all(5);
    done(0, true, 7, 10);
    done(1, true, 7, 10);
    CHECK_UINT(revoke_judge(&r, 0), REVOKE_TOO_FEW);
    done(2, true, 7, 10);
    CHECK_UINT(revoke_judge(&r, 0), REVOKE_OK);
    CHECK_UINT(revoke_masters(&r), 0x7);
}

/* The holder's request may be late, and set the key there after this. */
TEST(a_master_that_lacks_the_token_does_not_count)
{
    held_by_all(5);
    done(0, true, 7, 10);
    done(1, true, 7, 10);
    for (unsigned m = 2; m < 5; m++)
        done(m, false, 0, 0);
    CHECK_UINT(revoke_judge(&r, 0), REVOKE_TOO_FEW);
}

/* From then on the holder may give itself the key there again. */
TEST(a_text_that_has_ended_does_not_count)
{
    held_by_all(3);
    done(0, true, 7, 10);
    done(1, true, 7, 13);
    CHECK_UINT(revoke_judge(&r, 10), REVOKE_TOO_FEW);
    CHECK_UINT(revoke_masters(&r), 0x2);
    CHECK_UINT(revoke_judge(&r, 8), REVOKE_OK);
    CHECK_UINT(revoke_judge(&r, 20), REVOKE_TOO_FEW);
}

TEST(the_holder_was_gone)
{
    held_by_all(3);
    done(0, false, 0, 0);
    CHECK_UINT(revoke_judge(&r, 0), REVOKE_TOO_FEW);
    done(1, false, 0, 0);
    CHECK_UINT(revoke_judge(&r, 0), REVOKE_NOBODY);
}

TEST(two_lists_decide_together)
{
    held_by_all(6);
    r.lists = (struct members){.from = 0x07, .to = 0x38};
    for (unsigned m = 0; m < 4; m++)
        done(m, true, 7, 10);
    CHECK_UINT(revoke_judge(&r, 0), REVOKE_TOO_FEW);
    CHECK_UINT(revoke_number(&r), 0);
    done(4, true, 7, 10);
    CHECK_UINT(revoke_judge(&r, 0), REVOKE_OK);
    CHECK_UINT(revoke_number(&r), 7);
}

/* The next holder may count from what a master of a majority reached. */
TEST(a_majority_has_counted_to_the_number)
{
    held_by_all(5);
    done(0, true, 101, 10);
    done(1, true, 103, 10);
    done(2, true, 0, 10);
    done(3, false, 0, 0);
    done(4, true, 102, 10);
    CHECK_UINT(revoke_number(&r), 0);
    CHECK_UINT(revoke_behind(&r), 0x11);
    revoke_on_raised(&r, 0, 103);
    CHECK_UINT(revoke_number(&r), 0);
    CHECK_UINT(revoke_behind(&r), 0x10);
    revoke_on_raised(&r, 4, 109);
    CHECK_UINT(revoke_number(&r), 103);
    CHECK_UINT(revoke_behind(&r), 0);
}

TEST(without_counters_there_is_no_number)
{
    const struct revoke_seen seen = {.what = REVOKE_TOKEN, .text = "a"};

    begin(1);
    r.is_guarded = false;
    revoke_on_read(&r, 0, &seen);
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
    done(0, true, 0, 10);
    CHECK_UINT(revoke_number(&r), 0);
}

TEST(free_when_a_majority_is)
{
    held_by_all(3);
    done(0, true, 7, 300);
    done(1, true, 7, 200);
    CHECK_UINT(revoke_left_ms(&r), 300);
    done(2, false, 0, 0);
    CHECK_UINT(revoke_left_ms(&r), 200);
}

TEST(a_silent_master_is_not_free)
{
    begin(3);
    read_token(0, "a");
    read_token(1, "a");
    CHECK_UINT(revoke_choose(&r), REVOKE_OK);
    done(0, true, 7, 10);
    done(1, true, 7, 20);
    CHECK_UINT(revoke_left_ms(&r), 20);
    begin(3);
    read_token(0, "a");
    CHECK_UINT(revoke_left_ms(&r), UINT32_MAX);
}

/* ---- The wire ---- */

TEST(a_request)
{
    const struct revocation revocation = {
        .key = "stock",
        .key_len = 5,
        .token = "a",
        .text = WIRE_REVOKED "me",
        .state = "b748a9f6b748a9f6.1",
    };
    char buf[WIRE_MAX + 1];
    size_t len = revocation_write(buf, &revocation);
    const char *keys = strstr(buf, "$1\r\n2\r\n$5\r\nstock\r\n");

    buf[len] = '\0';
    CHECK(strncmp(buf, "*9\r\n$4\r\nEVAL\r\n", 14) == 0);
    CHECK(keys != NULL);
    CHECK_STR(keys, "$1\r\n2\r\n$5\r\nstock\r\n$14\r\nredlock:master\r\n$1\r\na\r\n"
                    "$18\r\nb748a9f6b748a9f6.1\r\n$5\r\n16793\r\n$13\r\nrevoked by me\r\n");
}

static bool parse(const char *text, struct revoke_seen *ret_seen, char state[WIRE_STATE_MAX + 1])
{
    const struct reply reply = {
        .type = REPLY_TEXT, .text = (char *)(uintptr_t)text, .text_len = strlen(text)};

    return revocation_read(&reply, state, ret_seen);
}

TEST(what_a_master_stores)
{
    static const struct {
        const char *text;
        enum revoke_what what;
        uint32_t left_ms;
    } rows[] = {
        {"b748a9f6b748a9f6.4 12 string a:host/1 x", REVOKE_TOKEN, 12},
        {"b748a9f6b748a9f6.4 12 string revoked by me", REVOKE_REVOKED, 12},
        {"b748a9f6b748a9f6.4.99 12 zset ", REVOKE_READERS, 12},
        {"b748a9f6b748a9f6.4 -2 none ", REVOKE_FREE, 0},
        {"b748a9f6b748a9f6.4 -1 string a", REVOKE_FOREIGN, UINT32_MAX},
        {"b748a9f6b748a9f6.4 12 string ", REVOKE_FOREIGN, 12},
        {"b748a9f6b748a9f6.4 12 list ", REVOKE_FOREIGN, 12},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct revoke_seen seen;
        char state[WIRE_STATE_MAX + 1];

        CHECK(parse(rows[i].text, &seen, state));
        CHECK_UINT(seen.what, rows[i].what);
        CHECK_UINT(seen.left_ms, rows[i].left_ms);
        CHECK_UINT(seen.version, 4);
        CHECK(strncmp(rows[i].text, state, strlen(state)) == 0);
        if (i == 0)
            CHECK_STR(seen.text, "a:host/1 x");
    }
}

TEST(a_token_that_is_too_long_is_foreign)
{
    char text[300], state[WIRE_STATE_MAX + 1];
    struct revoke_seen seen;

    for (unsigned len = REDLOCK_TOKEN_MAX; len <= REDLOCK_TOKEN_MAX + 1; len++) {
        (void)snprintf(text, sizeof text, "- 12 string %0*d", (int)len, 0);
        CHECK(parse(text, &seen, state));
        CHECK_STR(state, "-");
        CHECK_UINT(seen.version, 0);
        CHECK_UINT(seen.what, len == REDLOCK_TOKEN_MAX ? REVOKE_TOKEN : REVOKE_FOREIGN);
    }
}

TEST(malformed_answers)
{
    static const char *const texts[] = {
        "", "-", "- 12", "- 12 string", "- y none ", "b748.1 1 none ", "  1 none ",
    };
    const struct reply nil = {.type = REPLY_NIL};
    struct revoke_seen seen;
    char state[WIRE_STATE_MAX + 1];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK(!parse(texts[i], &seen, state));
    CHECK(!revocation_read(&nil, state, &seen));
}

TEST(what_a_master_did)
{
    static const struct {
        const char *text;
        bool is_good, is_revoked;
        uint32_t left_ms;
        uint64_t number;
    } rows[] = {
        {"revoked 12 1795422713980074", true, true, 12, UINT64_C(1795422713980074)},
        {"revoked 0 0", true, true, 0, 0},
        {"gone -2 0", true, false, 0, 0},
        {"gone -1 0", true, false, UINT32_MAX, 0},
        {"revoked 12 9007199254740991", true, true, 12, QUORUM_FENCE_MAX},
        {"revoked 12 9007199254740992", false, false, 0, 0},
        {"revoked 12", false, false, 0, 0},
        {"revoked 12 -1", false, false, 0, 0},
        {"revoked 12 1 ", false, false, 0, 0},
        {"revoke 12 1", false, false, 0, 0},
        {"", false, false, 0, 0},
        {"gone", false, false, 0, 0},
    };
    const struct reply nil = {.type = REPLY_NIL};
    struct revoke_done done;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct reply reply = {.type = REPLY_TEXT,
                                    .text = (char *)(uintptr_t)rows[i].text,
                                    .text_len = strlen(rows[i].text)};

        CHECK_UINT(revocation_done(&reply, &done), rows[i].is_good);
        if (!rows[i].is_good)
            continue;
        CHECK_UINT(done.is_revoked, rows[i].is_revoked);
        CHECK_UINT(done.number, rows[i].number);
        CHECK_UINT(done.left_ms, rows[i].left_ms);
    }
    CHECK(!revocation_done(&nil, &done));
}

CHECK_MAIN(RUN(a_majority_of_one_token_is_the_holder),
           RUN(a_minority_may_hold_with_a_silent_master), RUN(tokens_of_lost_rounds_are_no_holders),
           RUN(too_few_answer), RUN(masters_that_are_no_members_do_not_count),
           RUN(a_master_without_an_epoch_does_not_count), RUN(a_newer_version_ends_the_attempt),
           RUN(an_older_version_counts), RUN(readers_are_one_holder), RUN(a_lock_that_was_revoked),
           RUN(a_lock_that_a_minority_has_revoked_is_held), RUN(a_foreign_key_is_no_lock),
           RUN(a_majority_has_to_store_the_text), RUN(a_master_that_lacks_the_token_does_not_count),
           RUN(a_text_that_has_ended_does_not_count), RUN(the_holder_was_gone),
           RUN(two_lists_decide_together), RUN(a_majority_has_counted_to_the_number),
           RUN(without_counters_there_is_no_number), RUN(free_when_a_majority_is),
           RUN(a_silent_master_is_not_free), RUN(a_request), RUN(what_a_master_stores),
           RUN(a_token_that_is_too_long_is_foreign), RUN(malformed_answers), RUN(what_a_master_did))
