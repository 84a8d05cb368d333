/*
 * test-holders.c - readers and permits that a majority stores.
 */
#include "redlock/cli/status/holders.h"

#include <stdio.h>
#include <string.h>

#include "test/lib/check.h"

#define MASTERS 3

static struct shown reported[MASTERS];
static struct shown agreed;

/* What the master stores: lines "NUMBER LEFT TOKEN".  With the number 0 it is a reader. */
static void report(unsigned master, const char *lines)
{
    char text[4096] = "";
    size_t len = 0;
    struct reply reply = {.type = REPLY_TEXT, .text = text};

    while (*lines != '\0') {
        unsigned number;
        long long left_ms;
        int at = 0;
        size_t token_len;

        CHECK_INT(sscanf(lines, "%u %lld %n", &number, &left_ms, &at), 2);
        token_len = strcspn(lines + at, "\n");
        len += (size_t)snprintf(text + len, sizeof text - len, "%c %u %lld 1 6 %zu\nstring%.*s\n",
                                number == 0 ? SHOWN_READER : SHOWN_PERMIT, number, left_ms,
                                token_len, (int)token_len, lines + at);
        lines += at + token_len;
        lines += *lines == '\n';
    }
    reply.text_len = len + (size_t)snprintf(text + len, sizeof text - len, "N 0 9 1 4 0\nzset\n");
    CHECK(reply.text_len < sizeof text);
    shown_free(&reported[master]);
    CHECK(shown_read(&reported[master], &reply));
}

/* masters: those that count. */
static void agree(unsigned masters)
{
    const struct members lists = {7, 7};
    const struct shown *of[MASTERS];

    for (unsigned m = 0; m < MASTERS; m++)
        of[m] = (masters >> m & 1) != 0 ? &reported[m] : NULL;
    shown_free(&agreed);
    CHECK(holders_agree(of, MASTERS, &lists, &agreed));
}

static void end(void)
{
    for (unsigned m = 0; m < MASTERS; m++)
        shown_free(&reported[m]);
    shown_free(&agreed);
}

static void check_holder(unsigned i, unsigned number, long long left_ms, const char *token)
{
    CHECK(i < agreed.len);
    CHECK_UINT(agreed.rows[i].number, number);
    CHECK_INT(agreed.rows[i].left_ms, left_ms);
    CHECK_STR(agreed.rows[i].text, token);
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

TEST(what_redlock_did_not_write_is_left_out)
{
    static const char *const texts[] = {"1 0 x", "1 -1 x", "0 0 x", "1 5 "};
    static char others[] = "N 0 9 0 4 0\nnone\nP 1 5 0 4 1\nlistx\nP 2 5 1 6 3\nstringa\0b\n"
                           "Q 0 5 1 4 1\nzsetx\n";
    struct reply list = {.type = REPLY_TEXT, .text = others, .text_len = sizeof others - 1};
    char line[4 + REDLOCK_TOKEN_MAX + 2];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_row = texts[i];
        for (unsigned m = 0; m < MASTERS; m++)
            report(m, texts[i]);
        agree(7);
        CHECK_UINT(agreed.len, 0);
    }
    for (unsigned m = 0; m < MASTERS; m++) {
        shown_free(&reported[m]);
        CHECK(shown_read(&reported[m], &list));
    }
    agree(7);
    CHECK_UINT(agreed.len, 0);
    memset(line, 'x', sizeof line);
    memcpy(line, "1 5 ", 4);
    for (unsigned more = 0; more <= 1; more++) {
        line[4 + REDLOCK_TOKEN_MAX] = 'x';
        line[4 + REDLOCK_TOKEN_MAX + more] = '\0';
        for (unsigned m = 0; m < MASTERS; m++)
            report(m, line);
        agree(7);
        CHECK_UINT(agreed.len, 1 - more); /* A longer text is not one of ours. */
    }
    end();
}

CHECK_MAIN(RUN(what_a_majority_stores), RUN(one_token_under_two_numbers_is_two),
           RUN(what_redlock_did_not_write_is_left_out))
