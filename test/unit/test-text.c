/*
 * test-text.c - control characters are replaced in texts and in the log; letters stay.
 */
#include "test/lib/check.h"

#include "redlock/base/text.h"
#include "redlock/io/env.h"

static const struct {
    const char *text, *clean;
} rows[] = {
    {"", ""},
    {"ERR plain text ~", "ERR plain text ~"},
    {"a\x1b[2J\x7f\r\n\x01z", "a?[2J????z"},
    {"\x9b"
     "2J\x80\x9f",
     "?2J??"}, /* C1 controls as bytes. */
    {"\xc2\x9b"
     "2J\xc2\x80\xc2\x9f.",
     "??2J????."}, /* C1 controls as characters. */
    {"\xc2\xa0\xc3\x9b gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92",
     "\xc2\xa0\xc3\x9b gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92"},
    {"\xff\xfe\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80", "???????????"},
    {"cut \xe2\x82", "cut ??"},
    {"cut \xe2", "cut ?"},
    {"\xc3(", "?("},
};

TEST(controls_go_and_letters_stay)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];

        check_row = rows[i].clean;
        (void)snprintf(text, sizeof text, "%s", rows[i].text);
        CHECK(text_clean(text) == text);
        CHECK_STR(text, rows[i].clean);
    }
}

static char logged[64];

static void take_line(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)level;
    (void)snprintf(logged, sizeof logged, "%s", message);
}

TEST(the_log_is_clean)
{
    const struct env env = {.log = take_line};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].clean;
        env_log(&env, REDLOCK_LOG_INFO, "%s", rows[i].text);
        CHECK_STR(logged, rows[i].clean);
    }
}

CHECK_MAIN(RUN(controls_go_and_letters_stay), RUN(the_log_is_clean))
