/*
 * test-holders.c - lists of readers and of permits, as masters report them.
 */
#include "redlock/cli/status/holders.h"

#include <string.h>

#include "test/lib/check.h"

#define MASTERS 3

static struct holders reported[MASTERS];
static struct holders agreed;

static void report(unsigned master, const char *text)
{
    char copy[8192];
    struct reply reply = {.type = REPLY_TEXT, .text = copy, .text_len = strlen(text)};

    CHECK(strlen(text) < sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    holders_free(&reported[master]);
    CHECK(holders_take(&reported[master], &reply));
}

/* masters: those that count. */
static void agree(unsigned masters)
{
    const struct members lists = {7, 7};
    const struct holders *of[MASTERS];

    for (unsigned m = 0; m < MASTERS; m++)
        of[m] = (masters >> m & 1) != 0 ? &reported[m] : NULL;
    holders_free(&agreed);
    CHECK(holders_agree(of, MASTERS, &lists, &agreed));
}

static void end(void)
{
    for (unsigned m = 0; m < MASTERS; m++)
        holders_free(&reported[m]);
    holders_free(&agreed);
}

static void check_holder(unsigned i, unsigned number, long long ttl_ms, const char *token)
{
    CHECK(i < agreed.len);
    CHECK_UINT(agreed.list[i].number, number);
    CHECK_INT(agreed.list[i].ttl_ms, ttl_ms);
    CHECK_STR(agreed.list[i].token, token);
}

TEST(what_a_majority_stores)
{
    report(0, "0 900 ab:web1/7\n0 50 c d\n3 70 x");
    report(1, "3 90 x\n0 800 ab:web1/7");
    report(2, "4 20 y\n0 100 c d\n0 1000 ab:web1/7");
    agree(7);
    CHECK_UINT(agreed.len, 3);
    check_holder(0, 0, 900, "ab:web1/7"); /* Two masters store it for so long. */
    check_holder(1, 0, 50, "c d");
    check_holder(2, 3, 70, "x");
    agree(5); /* The second master may not vote. */
    CHECK_UINT(agreed.len, 2);
    check_holder(0, 0, 900, "ab:web1/7");
    check_holder(1, 0, 50, "c d");
    agree(1);
    CHECK_UINT(agreed.len, 0);
    end();
}

TEST(one_token_under_two_numbers_is_two)
{
    for (unsigned m = 0; m < MASTERS; m++)
        report(m, "1 10 x\n2 10 x\n1 10 x");
    agree(7);
    CHECK_UINT(agreed.len, 2);
    check_holder(0, 1, 10, "x");
    check_holder(1, 2, 10, "x");
    end();
}

/* A master may say anything. */
TEST(what_is_no_list_is_left_out)
{
    static const char *const texts[] = {
        "",      "\n\n",   "x",         "1 2",   "1 2 ", "-1 5 x", "257 5 x",
        "1 0 x", "1 -1 x", "99999 5 x", "1 x x", "1",    "1  ",    "0x1 5 x",
    };
    struct reply error = {.type = REPLY_ERROR, .text = (char[]){"1 5 x"}, .text_len = 5};
    char text[8192] = "", line[200];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_row = texts[i];
        report(0, texts[i]);
        CHECK_UINT(reported[0].len, 0);
    }
    CHECK(holders_take(&reported[1], &error));
    CHECK_UINT(reported[1].len, 0);
    memset(line, 'x', sizeof line);
    memcpy(line, "1 5 ", 4);
    line[4 + REDLOCK_TOKEN_MAX] = '\0';
    report(0, line);
    CHECK_UINT(reported[0].len, 1);
    line[4 + REDLOCK_TOKEN_MAX] = 'x';
    line[4 + REDLOCK_TOKEN_MAX + 1] = '\0';
    report(0, line); /* Not one of ours. */
    CHECK_UINT(reported[0].len, 0);
    for (unsigned i = 0; i < HOLDERS_MAX + 5; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "0 5 %u\n", i);
    report(0, text);
    CHECK_UINT(reported[0].len, HOLDERS_MAX);
    end();
}

CHECK_MAIN(RUN(what_a_majority_stores), RUN(one_token_under_two_numbers_is_two),
           RUN(what_is_no_list_is_left_out))
