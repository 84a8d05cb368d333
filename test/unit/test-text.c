/*
 * test-text.c - control characters are replaced in texts and in the log; letters stay.
 */
#include "test/lib/check.h"

#include "redlock/base/text.h"
#include "redlock/io/env.h"

static const struct row {
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

TEST(errors_end_without_a_stop)
{
    static const struct row ends[] = {
        {"WRONGPASS user is disabled.", "WRONGPASS user is disabled"},
        {"WRONGTYPE kind script: 78c6f4c10f62, on @user_script:1.", "WRONGTYPE kind"},
        {"ERR ACL failure in script: No right script: 78c6f4c10f62, on @user_script:1.",
         "ERR ACL failure in script: No right"},
        {"WRONGTYPE kind script: 78c6f4c10f62, on", "WRONGTYPE kind"}, /* It was cut. */
        {"ERR unknown command 'SCRIPT', with args beginning with: 'LOAD'",
         "ERR unknown command 'SCRIPT'"},
        {"bad script: none.", "bad script: none"},
        {"cut...", "cut..."},
        {".", "."},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char text[64];

        check_row = ends[i].clean;
        (void)snprintf(text, sizeof text, "%s", ends[i].text);
        CHECK(text_end_error(text) == text);
        CHECK_STR(text, ends[i].clean);
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
        char line[512];

        env_log(&env, REDLOCK_LOG_INFO, MSG_UP, "%s", rows[i].text);
        (void)snprintf(line, sizeof line, "%s [up]", rows[i].clean);
        CHECK_STR(logged, line);
    }
}

TEST(secrets_are_hidden)
{
    static const struct {
        const char *text, *secret, *hidden;
    } hides[] = {
        {"ERR no user has geheim, geheim", "geheim", "ERR no user has ******, ******"},
        {"geheimgeheim", "geheim", "************"},
        {"aaa", "aa", "**a"},
        {"nothing", "geheim", "nothing"},
        {"nothing", "", "nothing"},
        {"", "geheim", ""},
    };
    char text[64];

    for (size_t i = 0; i < sizeof hides / sizeof hides[0]; i++) {
        check_row = hides[i].hidden;
        (void)snprintf(text, sizeof text, "%s", hides[i].text);
        CHECK(text_hide(text, hides[i].secret) == text);
        CHECK_STR(text, hides[i].hidden);
    }
}

CHECK_MAIN(RUN(controls_go_and_letters_stay), RUN(errors_end_without_a_stop), RUN(the_log_is_clean),
           RUN(secrets_are_hidden))
