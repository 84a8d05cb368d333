/*
 * test-text.c - control characters are replaced in texts and in the log; letters stay.  Names are
 * quoted.
 */
#include "test/lib/check.h"

#include <locale.h>

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
    {"a\xe2\x80\xae z\xe2\x80\x8b\xe2\x80\xa8\xd8\x9c\xef\xbb\xbf.",
     "a??? z????????\?\?\?."}, /* Turned, of no width, the end of a line. */
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

/* ---- Quoting ---- */

struct quoted {
    const char *name;
    size_t size;
    const char *quoted;
};

static void check_quoted(const struct quoted *row, size_t len)
{
    for (; len-- > 0; row++) {
        char buf[64];

        memset(buf, '#', sizeof buf);
        check_row = row->quoted;
        CHECK_STR(text_quote(row->name, strlen(row->name), buf, row->size), row->quoted);
        CHECK(row->size == sizeof buf || buf[row->size] == '#');
    }
}

TEST(names_are_quoted)
{
    static const struct quoted cases[] = {
        {"", 8, ""},
        {"plain", 64, "plain"},
        {" two words,", 64, " two words,"},
        {"~ \x1f\x7f", 64, "~ \\x1f\\x7f"},
        {"a\nb\\c\"", 64, "a\\x0ab\\x5cc\""},
        {"\xc3\xa9", 64, "\\xc3\\xa9"},
        {"1234567", 8, "1234567"},
        {"12345678", 8, "1234..."},
        {"123\n", 8, "123\\x0a"},
        {"1234\n", 8, "1234..."},
        {"12\n\n", 8, "12..."},
        {"\n\n", 8, "\\x0a..."},
        {"\n\n", 9, "\\x0a\\x0a"},
    };

    check_quoted(cases, sizeof cases / sizeof cases[0]);
}

static void with_utf8(void (*check)(void))
{
    CHECK(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
    check();
    (void)setlocale(LC_CTYPE, "C");
}

static void check_utf8(void)
{
    static const struct quoted cases[] = {
        {"gr\xc3\xb6\xc3\x9f\x65", 64, "gr\xc3\xb6\xc3\x9f\x65"},
        {"\xd0\xba\xd0\xbb\xe4\xb8\xad\xf0\x9f\x94\x92", 64,
         "\xd0\xba\xd0\xbb\xe4\xb8\xad\xf0\x9f\x94\x92"},
        {"\xc3\xc3\xb6\xff", 64, "\\xc3\xc3\xb6\\xff"},
        {"\xc2\x9b", 64, "\\xc2\\x9b"},                                     /* C1 */
        {"\xe2\x80\xae\xe2\x81\xa6", 64, "\\xe2\\x80\\xae\\xe2\\x81\\xa6"}, /* Turned. */
        {"\xe2\x80\x8b", 64, "\\xe2\\x80\\x8b"},                            /* Of no width. */
        {"o\xcc\x88", 64, "o\\xcc\\x88"},                          /* It joins the one before. */
        {"\xc2\xa0\xe3\x80\x80", 64, "\\xc2\\xa0\\xe3\\x80\\x80"}, /* Blanks. */
        {"\xef\xbf\xbf", 64, "\\xef\\xbf\\xbf"},                   /* No character. */
        {"12345\xc3\xb6", 8, "12345\xc3\xb6"},
        {"123456\xc3\xb6", 8, "1234..."},
        {"123\xc3\xb6zzz", 8, "123..."}, /* No character is cut. */
    };

    check_quoted(cases, sizeof cases / sizeof cases[0]);
}

TEST(a_locale_of_utf8_has_letters)
{
    with_utf8(check_utf8);
}

TEST(what_is_behind_a_name_is_not_read)
{
    char buf[16];

    CHECK_STR(text_quote("a\0b", 3, buf, sizeof buf), "a\\x00b");
    CHECK_STR(text_quote("\xc3\xb6", 1, buf, sizeof buf), "\\xc3");
}

static void check_names(void)
{
    static const struct {
        enum text_quoting how;
        const char *name;
        size_t len;
        const char *quoted;
    } cases[] = {
        {TEXT_NAME, " a ,b\\ ", 7, "\\x20a \\,b\\x5c\\x20"},
        {TEXT_NAME, "a\0b", 3, "a\\x00b"},
        {TEXT_NAMES, "a\0\xc3\xb6,\0 b", 8, "a,\xc3\xb6\\,,\\x20b"},
        {TEXT_NAMES, "a \0b", 4, "a\\x20,b"},
        {TEXT_WORDS, "a,b ", 4, "a,b "},
        {TEXT_DATA, "a,b\\ ", 5, "a,b\\x5c "},
        {TEXT_DATA, "o\xcc\x88\xe2\x80\xae", 6, "o\xcc\x88\\xe2\\x80\\xae"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[64];

        check_row = cases[i].quoted;
        CHECK_STR(text_quote_as(cases[i].how, cases[i].name, cases[i].len, buf, sizeof buf),
                  cases[i].quoted);
    }
}

TEST(names_are_as_commands_take_them)
{
    with_utf8(check_names);
}

TEST(data_is_of_no_locale)
{
    char buf[32];

    CHECK_STR(text_quote_as(TEXT_DATA, "gr\xc3\xb6\xff\n", 6, buf, sizeof buf),
              "gr\xc3\xb6\\xff\\x0a");
}

/* "ab", a letter of two columns, and a byte that is none. */
#define WIDE "ab\xe4\xb8\xad\xff"

static void check_columns(void)
{
    static const struct {
        const char *text;
        size_t columns, fits;
        const char *cut;
    } cases[] = {
        {"abcd", 4, 4, "abcd"},
        {"abcde", 4, 4, "a..."},
        {"\xe4\xb8\xad\xe4\xb8\xad", 4, 6, "\xe4\xb8\xad\xe4\xb8\xad"},
        {"\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 5, 6, "\xe4\xb8\xad..."},
        {"\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 4, 6, "..."},
        {"\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6", 4, 8, "\xc3\xb6..."},
        {"a\\xffbcd", 7, 7, "a..."}, /* An escape is whole. */
        {"ab\\xffcd", 7, 7, "ab..."},
        {"\\,\\,abc", 6, 6, "\\,..."},
    };

    CHECK_INT(text_columns(WIDE, strlen(WIDE)), 5);
    CHECK_INT(text_columns(WIDE, 2), 2);
    CHECK_INT(text_fit("\xe4\xb8\xad", 1), 3); /* At least one. */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[64];

        check_row = cases[i].text;
        (void)snprintf(buf, sizeof buf, "%s", cases[i].text);
        CHECK_INT(text_fit(buf, cases[i].columns), cases[i].fits);
        CHECK_STR(text_cut(buf, cases[i].columns), cases[i].cut);
    }
}

TEST(letters_have_columns)
{
    with_utf8(check_columns);
    CHECK_INT(text_columns(WIDE, strlen(WIDE)), 6); /* Bytes, in the locale C. */
}

CHECK_MAIN(RUN(controls_go_and_letters_stay), RUN(errors_end_without_a_stop), RUN(the_log_is_clean),
           RUN(secrets_are_hidden), RUN(names_are_quoted), RUN(a_locale_of_utf8_has_letters),
           RUN(what_is_behind_a_name_is_not_read), RUN(names_are_as_commands_take_them),
           RUN(data_is_of_no_locale), RUN(letters_have_columns))
