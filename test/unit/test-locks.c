/*
 * test-locks.c - lists of locks, as scans of masters report them.
 */
#include "redlock/cli/list/locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/check.h"

#define MASTERS 3
#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:web1/7"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct locks locks;
static struct locks_row *rows;
static size_t rows_len;
static char cursor[LOCKS_CURSOR_MAX + 1];
static const char *pattern;

static enum locks_step take_bytes(unsigned master, const char *text, size_t len)
{
    char copy[16384];
    struct reply reply = {.type = REPLY_TEXT, .text = copy, .text_len = len};

    CHECK(len < sizeof copy);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return locks_take(&locks, master, pattern, &reply, cursor);
}

static enum locks_step take(unsigned master, const char *text)
{
    return take_bytes(master, text, strlen(text));
}

static void agree(quorum_mask up)
{
    const struct members lists = {7, 7};

    free(rows);
    rows_len = locks_agree(&locks, &lists, up, &rows);
    CHECK(rows != NULL);
}

static void end(void)
{
    locks_free(&locks);
    free(rows);
    rows = NULL;
    pattern = NULL;
}

static void check_row_is(size_t i, const char *name, enum locks_shape shape, unsigned votes,
                         bool is_held, long long ttl_ms)
{
    CHECK(i < rows_len);
    CHECK_STR(rows[i].entry->name, name);
    CHECK_INT(rows[i].entry->shape, shape);
    CHECK_UINT(rows[i].votes, votes);
    CHECK(rows[i].is_held == is_held);
    CHECK_INT(rows[i].ttl_ms, ttl_ms);
}

TEST(what_a_majority_stores)
{
    CHECK_INT(take(0, "17 0\nL 0 900 1 1 47\nx" A "\n"), LOCKS_MORE);
    CHECK_STR(cursor, "17");
    CHECK_INT(take(0, "0 0\nL 0 50 1 1 40\ny" B "\n"), LOCKS_DONE);
    CHECK_INT(take(1, "0 0\nL 0 800 1 1 47\nx" A "\n"), LOCKS_DONE);
    CHECK_INT(take(2, "0 0\nL 0 1000 1 1 47\nx" A "\nL 0 70 1 1 47\ny" A "\n"), LOCKS_DONE);
    agree(7);
    CHECK_UINT(rows_len, 3);
    check_row_is(0, "x", LOCKS_LOCK, 3, true, 900); /* Two masters store it for so long. */
    CHECK_STR(rows[0].entry->token, A);
    check_row_is(1, "y", LOCKS_LOCK, 1, false, 70); /* Two holders, of one master each. */
    check_row_is(2, "y", LOCKS_LOCK, 1, false, 50);
    agree(6); /* The first master may not vote. */
    CHECK_UINT(rows_len, 2);
    check_row_is(0, "x", LOCKS_LOCK, 2, true, 800);
    agree(0);
    CHECK_UINT(rows_len, 0);
    end();
}

/* SCAN may report a key twice. */
TEST(one_master_votes_once)
{
    CHECK_INT(take(0, "0 0\nL 0 900 1 1 40\nx" B "\nL 0 900 1 1 40\nx" B "\n"), LOCKS_DONE);
    agree(7);
    CHECK_UINT(rows_len, 1);
    check_row_is(0, "x", LOCKS_LOCK, 1, false, 900);
    end();
}

TEST(waiters_belong_to_the_rows_of_their_name)
{
    CHECK_INT(take(0, "0 0\nQ 0 9 4 1 0\nx\nP 2 70 1 1 40\nx" B "\nP 1 80 1 1 47\nx" A
                      "\nW 0 9 1 1 0\nz\n"),
              LOCKS_DONE);
    CHECK_INT(take(1, "0 0\nP 1 90 1 1 47\nx" A "\nP 2 60 1 1 40\nx" B "\nQ 0 9 3 1 0\nx\n"),
              LOCKS_DONE);
    CHECK_INT(take(2, "0 0\nQ 0 9 1 1 0\nx\nQ 0 9 1 1 0\ny\nW 0 9 1 1 0\nz\n"), LOCKS_DONE);
    agree(7);
    CHECK_UINT(rows_len, 3);
    check_row_is(0, "x", LOCKS_PERMIT, 2, true, 80);
    check_row_is(1, "x", LOCKS_PERMIT, 2, true, 60);
    CHECK_UINT(rows[0].entry->number, 1);
    CHECK_INT(rows[0].waiting, 3);
    CHECK(rows[1].is_waited);
    check_row_is(2, "z", LOCKS_WAITED, 2, true, 9); /* Nobody holds it. */
    CHECK(rows[2].is_waited);
    CHECK_INT(rows[2].waiting, 0);
    end();
}

TEST(readers_are_counted_by_majority)
{
    CHECK_INT(take(0, "0 0\nR 0 90 2 1 0\nx\n"), LOCKS_DONE);
    CHECK_INT(take(1, "0 0\nR 0 80 3 1 0\nx\n"), LOCKS_DONE);
    CHECK_INT(take(2, "0 0\nR 0 70 5 1 0\nx\n"), LOCKS_DONE);
    agree(7);
    CHECK_UINT(rows_len, 1);
    check_row_is(0, "x", LOCKS_READERS, 3, true, 80);
    CHECK_INT(rows[0].count, 3);
    end();
}

TEST(a_pattern_chooses_names)
{
    static const struct {
        const char *pattern, *names[2];
    } cases[] = {{"a*", {"a", "a/x"}}, {"*/x", {"a/x", "b/x"}}, {"c", {NULL}}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pattern = cases[i].pattern;
        for (unsigned m = 0; m < MASTERS; m++)
            CHECK_INT(take(m, "0 0\nL 0 9 1 3 40\na/x" B "\nL 0 9 1 1 40\na" B
                              "\nL 0 9 1 3 40\nb/x" B "\n"),
                      LOCKS_DONE);
        agree(7);
        CHECK_UINT(rows_len, cases[i].names[0] != NULL ? 2 : 0);
        for (size_t row = 0; row < rows_len; row++)
            CHECK_STR(rows[row].entry->name, cases[i].names[row]);
        end();
    }
}

/* Each master stores one name for each of these letters. */
static void store(unsigned master, const char *names)
{
    char text[1000] = "0 0\n";

    for (; *names != '\0'; names++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "L 0 9 1 1 40\n%c%s\n",
                       *names, B);
    CHECK_INT(take(master, text), LOCKS_DONE);
}

TEST(a_majority_is_bare_if_each_vote_is_needed_and_there_are_others)
{
    static const struct {
        struct members lists;
        quorum_mask up;
        const char *bare; /* '1': it is.  Of the names a to e, which so many masters store. */
    } cases[] = {
        {{31, 31}, 31, "00100"}, /* Three of five. */
        {{31, 31}, 15, "00100"},
        {{31, 31}, 7, "00111"},  /* Two are down. */
        {{15, 15}, 31, "00100"}, /* Three of four. */
        {{7, 7}, 31, "01000"},
        {{3, 3}, 31, "00000"}, /* Two of two: there are no others. */
        {{1, 1}, 31, "00000"},
        {{31, 7}, 31, "00100"},  /* The lists change: three of five, and all of three. */
        {{31, 25}, 31, "00010"}, /* Four of five, and two of three. */
    };

    for (unsigned m = 0; m < 5; m++)
        store(m, &"abcde"[m]);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        free(rows);
        rows_len = locks_agree(&locks, &cases[i].lists, cases[i].up, &rows);
        CHECK_UINT(rows_len, 5);
        for (size_t row = 0; row < 5; row++)
            CHECK_INT(rows[row].is_bare, cases[i].bare[row] == '1');
    }
    end();
}

TEST(what_is_left_out_is_counted)
{
    CHECK_INT(take(0, "7 2\n"), LOCKS_MORE);
    CHECK_INT(take(0, "0 3\nL 0 9 1 1 40\nx" B "\n"), LOCKS_DONE);
    CHECK_INT(take(1, "0 999999999\n"), LOCKS_DONE);
    CHECK_INT(locks.others[0], 5);
    CHECK_INT(locks.others[1], 999999999);
    CHECK_INT(locks.others[2], 0);
    locks_clear(&locks);
    CHECK_INT(locks.others[1], 0);
    end();
}

/* A name may have any bytes, and a master may say anything. */
TEST(what_is_no_answer_is_refused)
{
    static const char *const texts[] = {
        "",
        "x\n",
        "1",
        "0\n",
        "0 \n",
        "0 x\n",
        "0 1",
        "0 1234567890\n",
        "123456789012345678901 0\n",
        "0 0\nx\n",
        "0 0\nL 0 9 1 1 40\n",
        "0 0\nX 0 9 1 1 0\nx\n",
        "0 0\nL 0 0 1 1 40\nx" B "\n",
        "0 0\nL 0 9 0 1 40\nx" B "\n",
        "0 0\nP 257 9 1 1 40\nx" B "\n",
        "0 0\nL 0 9 1 0 40\n" B "\n",
        "0 0\nL 0 9 1 600 40\nx" B "\n",
        "0 0\nL 0 9 1 1 41\nx" B "\n",
        "0 0\nL 0 9 1 1 129\nx" B "\n",
        "0 0\nL 0 9 1 1 40\nx" B "y",
    };
    struct reply error = {.type = REPLY_ERROR, .text = (char[]){"0 0\n"}, .text_len = 4};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_row = texts[i];
        CHECK_INT(take(0, texts[i]), LOCKS_ODD);
        CHECK_UINT(locks.len, 0);
    }
    CHECK_INT(locks_take(&locks, 0, NULL, &error, cursor), LOCKS_ODD);
    CHECK_INT(take_bytes(0, "0 0\nL 0 9 1 4 40\na\n\0b" B "\n", 62), LOCKS_DONE);
    agree(7);
    CHECK_UINT(rows_len, 1);
    CHECK_UINT(rows[0].entry->name_len, 4);
    end();
}

TEST(a_master_has_so_many_and_no_more)
{
    char text[64 * 100] = "5 0\n";

    for (int i = 0; i < 100; i++)
        strcat(text, "L 0 9 1 1 40\nx" B "\n");
    for (int i = 0; i < LOCKS_MAX / 100; i++)
        CHECK_INT(take(1, text), LOCKS_MORE);
    CHECK_INT(take(1, text), LOCKS_FULL);
    CHECK_UINT(locks.len, LOCKS_MAX);
    CHECK_INT(take(2, text), LOCKS_MORE);
    pattern = "y";
    CHECK_INT(take(1, text), LOCKS_MORE); /* What is not chosen is not counted. */
    pattern = NULL;
    locks_clear(&locks);
    CHECK_INT(take(1, text), LOCKS_MORE);
    end();
}

TEST(a_holder_is_known_again)
{
    struct locks_entry other = {
        .name = (char[]){"x"}, .name_len = 1, .shape = LOCKS_LOCK, .token = A};

    CHECK(!locks_have(&locks, &other));
    CHECK_INT(take(0, "0 0\nL 0 9 1 1 40\ny" B "\nL 0 9 1 1 40\nx" B "\n"), LOCKS_DONE);
    agree(7);
    CHECK(locks_have(&locks, rows[0].entry));
    CHECK(!locks_have(&locks, &other)); /* Another token. */
    end();
}

CHECK_MAIN(RUN(what_a_majority_stores), RUN(one_master_votes_once),
           RUN(waiters_belong_to_the_rows_of_their_name), RUN(readers_are_counted_by_majority),
           RUN(a_pattern_chooses_names),
           RUN(a_majority_is_bare_if_each_vote_is_needed_and_there_are_others),
           RUN(what_is_left_out_is_counted), RUN(what_is_no_answer_is_refused),
           RUN(a_master_has_so_many_and_no_more), RUN(a_holder_is_known_again))
