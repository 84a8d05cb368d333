/*
 * test-shown.c - what a master stores under a name, as show.lua tells it.
 */
#include "redlock/cli/common/shown.h"

#include <stdio.h>
#include <string.h>

#include "test/lib/check.h"

static struct shown shown;

/* bytes: a literal, which may contain NULs. */
#define TAKE(bytes) take(bytes, sizeof(bytes) - 1)

static bool take(const char *bytes, size_t len)
{
    static char copy[64 * 1024];
    struct reply reply = {.type = REPLY_TEXT, .text = copy, .text_len = len};

    CHECK(len < sizeof copy);
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    shown_free(&shown);
    return shown_read(&shown, &reply);
}

TEST(rows_are_found)
{
    const struct shown_row *row;

    CHECK(TAKE(
        "R 0 70 1 0 3\na\nb\nR 0 80 1 0 1\nc\nN 0 90 2 4 0\nzset\nP 256 -1 0 4 5\nlista\0bcd\n"));
    CHECK_UINT(shown.len, 4);
    row = shown_find(&shown, SHOWN_READER, 0); /* The first. */
    CHECK_STR(row->text, "a\nb");
    CHECK_INT(row->left_ms, 70);
    row = shown_find(&shown, SHOWN_NAME, 0);
    CHECK(shown_is(row, "zset") && !shown_is(row, "zse") && !shown_is(row, "zset2"));
    CHECK_INT(row->count, 2);
    CHECK_STR(row->text, "");
    row = shown_find(&shown, SHOWN_PERMIT, 256);
    CHECK_UINT(row->text_len, 5);
    CHECK_INT(row->left_ms, -1);
    CHECK(shown_find(&shown, SHOWN_PERMIT, 1) == NULL);
    CHECK(shown_find(&shown, SHOWN_QUEUE, 0) == NULL);
    shown_free(&shown);
}

/* A master may say anything. */
TEST(what_is_no_answer_is_refused)
{
    static const char *const texts[] = {
        "",
        "x",
        "N 0 90 1 6 1\nstringx",
        "N 0 90 1 6 1\nstringxy",
        "N 0 90 1 6 1000\nstringx\n",
        "N 0 90 1 6 -1\nstring\n",
        "N 0 90 1 6\nstringx\n",
        "N 257 90 1 6 1\nstringx\n",
        "R 0 90 1 0 1\nx\n",
        "N 0 90 1 6 1\nstringx\nN",
        "N 0 90 1 999 999\nx\n",
    };
    struct reply error = {
        .type = REPLY_ERROR, .text = (char[]){"N 0 9 1 4 0\nnone\n"}, .text_len = 17};
    char text[16384] = "N 0 90 1 6 1\nstringx\n";

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_row = texts[i];
        CHECK(!take(texts[i], strlen(texts[i])));
        CHECK_UINT(shown.len, 0);
        CHECK(shown.rows == NULL);
    }
    CHECK(!shown_read(&shown, &error));
    error.type = REPLY_TEXT;
    CHECK(shown_read(&shown, &error));
    for (unsigned i = 1; i < 2 + 64 + REDLOCK_PERMITS_MAX; i++)
        strcat(text, "R 0 1 1 0 1\nx\n");
    CHECK(take(text, strlen(text)));
    strcat(text, "R 0 1 1 0 1\nx\n");
    CHECK(!take(text, strlen(text)));
}

TEST(what_redlock_did_not_write)
{
    static const struct {
        char what;
        const char *of;
        long long left_ms;
        const char *text, *wanted; /* NULL: it is not foreign. */
    } cases[] = {
        {SHOWN_NAME, "none", -2, "", NULL},
        {SHOWN_NAME, "string", 1, "", NULL},
        {SHOWN_NAME, "zset", 0, "", NULL},
        {SHOWN_NAME, "error", -1, "NOPERM", NULL},
        {SHOWN_NAME, "string", -1, "", "a string without an end"},
        {SHOWN_NAME, "zset", -1, "", "a zset without an end"},
        {SHOWN_NAME, "hash", -1, "", "a hash without an end"},
        {SHOWN_NAME, "ReJSON-RL", 5, "", "a ReJSON-RL"},
        {SHOWN_NAME, "a type that does not exist", 5, "", NULL},
        {SHOWN_NAME, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -1, "",
         "a aaaaaaaaaaaaaaaaaaaa without an end"},
        {SHOWN_NAME, "h\n", 5, "", NULL},
        {SHOWN_NAME, "", 5, "", NULL},
        {SHOWN_PERMIT, "string", 5, "", NULL},
        {SHOWN_PERMIT, "string", -1, "", "a string without an end"},
        {SHOWN_PERMIT, "zset", 5, "", "a zset"},
        {SHOWN_PERMIT, "list", -1, "", "a list without an end"},
        {SHOWN_QUEUE, "none", 0, "", NULL},
        {SHOWN_QUEUE, "zset", 0, "", NULL},
        {SHOWN_QUEUE, "zset", 0, "odd", "a zset with entries that are no waiters"},
        {SHOWN_QUEUE, "string", 0, "WRONGTYPE", "a string"},
    };
    char buf[SHOWN_FOREIGN_MAX];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[20];
        const struct shown_row row = {
            .what = cases[i].what,
            .left_ms = cases[i].left_ms,
            .of = cases[i].of,
            .of_len = strlen(cases[i].of),
            .text = strcpy(text, cases[i].text),
            .text_len = strlen(cases[i].text),
        };
        const char *said = shown_foreign(&row, buf);

        check_row = cases[i].of;
        CHECK_STR(said == NULL ? "nothing" : said,
                  cases[i].wanted == NULL ? "nothing" : cases[i].wanted);
    }
    CHECK(shown_foreign(NULL, buf) == NULL);
}

CHECK_MAIN(RUN(rows_are_found), RUN(what_is_no_answer_is_refused), RUN(what_redlock_did_not_write))
