/*
 * check.h - a small test harness.
 *
 *   TEST(adds_up)
 *   {
 *       CHECK_INT(1 + 1, 2);
 *   }
 *   CHECK_MAIN(RUN(adds_up))
 *
 * A check that fails prints its place and its text.  It ends its test, from any depth
 * of calls, and the next test runs.  The last line is "N passed, N failed", and the
 * exit status is 1 if any failed.  Arguments pick tests by name.
 */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct check_test {
    const char *name;
    void (*run)(void);
};

/* The row under test.  A test that walks a table sets it to the row's name. */
static const char *check_row;
static jmp_buf check_out;

#define TEST(name) static void name(void)
#define RUN(test)                  \
    {                              \
        .name = #test, .run = test \
    }

__attribute__((noreturn, unused)) static void check_failed(const char *file, int line,
                                                           const char *what)
{
    printf("%s:%d: %s%s%s: failed: %s\n", file, line, check_row != NULL ? "[" : "",
           check_row != NULL ? check_row : "", check_row != NULL ? "]" : "", what);
    longjmp(check_out, 1);
}

__attribute__((unused)) static void check_int(intmax_t got, intmax_t want, const char *file,
                                              int line, const char *what)
{
    if (got == want)
        return;
    printf("got %" PRIdMAX ", want %" PRIdMAX "\n", got, want);
    check_failed(file, line, what);
}

__attribute__((unused)) static void check_uint(uintmax_t got, uintmax_t want, const char *file,
                                               int line, const char *what)
{
    if (got == want)
        return;
    printf("got %" PRIuMAX ", want %" PRIuMAX "\n", got, want);
    check_failed(file, line, what);
}

__attribute__((unused)) static void check_str(const char *got, const char *want, const char *file,
                                              int line, const char *what)
{
    if (got == want || (got != NULL && want != NULL && strcmp(got, want) == 0))
        return;
    printf("got  \"%s\"\nwant \"%s\"\n", got != NULL ? got : "(null)",
           want != NULL ? want : "(null)");
    check_failed(file, line, what);
}

__attribute__((unused)) static void check_has(const char *text, const char *part, const char *file,
                                              int line, const char *what)
{
    if (text != NULL && strstr(text, part) != NULL)
        return;
    printf("got  \"%s\"\nwant \"...%s...\"\n", text != NULL ? text : "(null)", part);
    check_failed(file, line, what);
}

/* The actual value comes first, the expected value second. */
#define CHECK(condition)                                  \
    do {                                                  \
        if (!(condition))                                 \
            check_failed(__FILE__, __LINE__, #condition); \
    } while (0)
#define CHECK_INT(got, want) check_int((got), (want), __FILE__, __LINE__, #got " == " #want)
#define CHECK_UINT(got, want) check_uint((got), (want), __FILE__, __LINE__, #got " == " #want)
#define CHECK_STR(got, want) check_str((got), (want), __FILE__, __LINE__, #got " is " #want)
#define CHECK_HAS(text, part) check_has((text), (part), __FILE__, __LINE__, #text " has " #part)

static bool check_is_picked(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return true;
    }
    return argc < 2;
}

static int check_run(const struct check_test *tests, size_t tests_len, int argc, char **argv)
{
    volatile unsigned passed = 0, failed = 0; /* They outlive a longjmp(). */

    setvbuf(stdout, NULL, _IOLBF, 0); /* A crash loses no finished line. */
    for (volatile size_t i = 0; i < tests_len; i++) {
        if (!check_is_picked(tests[i].name, argc, argv))
            continue;
        check_row = NULL;
        if (setjmp(check_out) == 0) {
            tests[i].run();
            passed++;
        } else {
            printf("FAILED %s\n", tests[i].name);
            failed++;
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0 || passed == 0; /* A run without a test fails. */
}

#define CHECK_MAIN(...)                                                      \
    int main(int argc, char **argv)                                          \
    {                                                                        \
        static const struct check_test tests[] = {__VA_ARGS__};              \
                                                                             \
        return check_run(tests, sizeof tests / sizeof tests[0], argc, argv); \
    }

#endif /* TEST_CHECK_H */
