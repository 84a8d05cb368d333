/*
 * test-error.c - every status has its text; messages are cut and prefixed.
 */
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>

#include "redlock/base/reason.h"
#include "redlock/base/error.h"
#include "redlock/base/message.h"

#include "test/lib/check.h"

static const struct {
    int status;
    const char *name, *text;
} statuses[] = {
#define ROW(code, message, text) {code, #code, text},
    ERROR_STATUSES(ROW)
#undef ROW
};

#define STATUSES_LEN (sizeof statuses / sizeof statuses[0])

TEST(statuses_are_distinct)
{
    for (size_t i = 0; i < STATUSES_LEN; i++) {
        check_row = statuses[i].name;
        CHECK(statuses[i].text[0] != '\0');
        CHECK_STR(redlock_strerror(statuses[i].status), statuses[i].text);
        for (size_t j = 0; j < i; j++) {
            CHECK(statuses[i].status != statuses[j].status);
            CHECK(strcmp(statuses[i].text, statuses[j].text) != 0);
        }
    }
}

/* Programs are compiled with these numbers (docs/design.md, the promise about the ABI). */
TEST(a_status_keeps_its_number)
{
    CHECK_INT(REDLOCK_OK, 0);
    CHECK_INT(REDLOCK_CONTENDED, 1);
    CHECK_INT(REDLOCK_UNREACHABLE, 2);
    CHECK_INT(REDLOCK_TOO_LATE, 3);
    CHECK_INT(REDLOCK_LOST, 4);
    CHECK_INT(REDLOCK_INTERRUPTED, 5);
    CHECK_INT(REDLOCK_NOT_READY, 6);
    CHECK_INT(REDLOCK_E_INVAL, -1);
    CHECK_INT(REDLOCK_E_NOMEM, -2);
    CHECK_INT(REDLOCK_E_STATE, -3);
    CHECK_INT(REDLOCK_E_SYSTEM, -4);
    CHECK_INT(REDLOCK_E_FORBIDDEN, -5);
    CHECK_INT(REDLOCK_E_WRONG_SET, -6);
}

/* The table has every status of the public header.  All numbers near them are unknown. */
TEST(unknown_statuses_have_a_text)
{
    unsigned known = 0;

    for (int status = -1000; status <= 1000; status++)
        known += strcmp(redlock_strerror(status), "unknown status") != 0;
    CHECK_UINT(known, STATUSES_LEN);
    CHECK_STR(redlock_strerror(INT32_MAX), "unknown status");
    CHECK_STR(redlock_strerror(INT32_MIN), "unknown status");
    CHECK_STR(redlock_strerror(REDLOCK_NOT_READY + 1), "unknown status");
    CHECK_STR(redlock_strerror(REDLOCK_E_WRONG_SET - 1), "unknown status");
}

TEST(every_failure_has_an_identifier)
{
    unsigned known = 0;

    for (int status = -1000; status <= 1000; status++) {
        bool fails =
            status != REDLOCK_OK && strcmp(redlock_strerror(status), "unknown status") != 0;

        CHECK(fails == (message_id(message_of_status(status))[0] != '\0'));
        known += fails;
    }
    CHECK_UINT(known, STATUSES_LEN - 1);
    CHECK_STR(message_id(message_of_status(REDLOCK_UNREACHABLE)), "no-majority");
}

/* Whatever the program's locale is: see setlocale(3). */
TEST(a_reason_is_told_in_english)
{
    struct reason why = {.why = WHY_CLOCK_STEPPED, .amount = -1234, .over_at = 57260 * DRIFT_MS};
    char text[REASON_TEXT_MAX], short_text[8];

    (void)setlocale(LC_ALL, "de_DE.UTF-8"); /* If the machine has it. */
    (void)reason_write(&why, 0, text, sizeof text);
    CHECK_STR(text, "its wall clock was stepped by -1.234 s, and it may not vote for 57.3 s");
    CHECK_UINT(reason_write(&why, 0, short_text, sizeof short_text), strlen(text));
    CHECK_STR(short_text, "its wal");
    reason_of_errno(&why, ECONNREFUSED);
    (void)reason_write(&why, 0, text, sizeof text);
    CHECK_STR(text, "Connection refused");
    CHECK_STR(message_id(reason_message(&why)), "no-connection");
    reason_of_errno(&why, EMFILE);
    CHECK_STR(message_id(reason_message(&why)), "system");
    (void)setlocale(LC_ALL, "C");
}

TEST(messages_are_wrapped_on_the_way_up)
{
    error_clear();
    CHECK_STR(redlock_errmsg(NULL), "");
    CHECK_INT(error_set(REDLOCK_UNREACHABLE, "connection %s", "refused"), REDLOCK_UNREACHABLE);
    CHECK_INT(error_wrap(REDLOCK_E_INVAL, "master %d (%s)", 2, "10.0.0.3:6379"), REDLOCK_E_INVAL);
    CHECK_INT(error_wrap(-77, "acquire jobs/7"), -77);
    CHECK_STR(redlock_errmsg(NULL), "acquire jobs/7: master 2 (10.0.0.3:6379): connection refused");
    CHECK_STR(error_message(), redlock_errmsg(NULL));
    CHECK_STR(error_inner(), "master 2 (10.0.0.3:6379): connection refused");
    error_set(1, "new");
    CHECK_STR(error_message(), "new");
    CHECK_STR(error_inner(), "new");
    error_clear();
    CHECK_STR(error_message(), "");
    error_wrap(1, "alone");
    CHECK_STR(error_message(), "alone");
    CHECK_STR(error_inner(), "alone");
}

TEST(a_message_may_be_made_of_itself)
{
    error_set(1, "inner");
    error_set(1, "<%s>", error_message());
    CHECK_STR(error_message(), "<inner>");
    error_wrap(1, "again %s", error_message());
    CHECK_STR(error_message(), "again <inner>: <inner>");
}

/* As a call does with the message that another thread left for it. */
TEST(a_message_is_passed_on)
{
    struct error error = {.parts.len = 1, .parts.list[0] = {3, MSG_HELD}};

    memset(error.text, 'x', sizeof error.text - 1);
    error_set(1, "of before");
    CHECK_INT(error_pass_on(-77, &error), -77);
    CHECK_STR(error_message(), error.text);
    CHECK_UINT(error_parts()->len, 1);
    error_set(REDLOCK_CONTENDED, "%s", "100%s");
    error_save(&error);
    CHECK_UINT(error.parts.len, 0);
    error_clear();
    CHECK_INT(error_pass_on(REDLOCK_CONTENDED, &error), REDLOCK_CONTENDED);
    CHECK_STR(error_message(), "100%s");
    CHECK_INT(error_pass_on(REDLOCK_OK, &(struct error){.text = ""}), REDLOCK_OK);
    CHECK_STR(error_message(), "");
}

/* The reasons of a message, as the command prints them: each with its identifier. */
static const char *show_parts(void)
{
    static char shown[ERROR_MESSAGE_MAX + 256];
    size_t len = 0;

    shown[0] = '\0';
    for (unsigned i = 0; i < error_parts()->len; i++) {
        const struct error_part *part = &error_parts()->list[i];

        len += (size_t)snprintf(shown + len, sizeof shown - len, "<%.6s %s>",
                                error_message() + part->at, message_id((enum msg)part->message));
    }
    return shown;
}

TEST(the_reasons_move_with_the_text)
{
    const struct error list = {
        .text = "first a; second b",
        .parts = {.list = {{0, MSG_NO_CONNECTION}, {9, MSG_LOADING}}, .len = 2},
    };

    error_set(1, "acquire x");
    error_list(&(struct error){.text = ""});
    CHECK_STR(error_message(), "acquire x");
    CHECK_STR(show_parts(), "");
    error_list(&list);
    CHECK_STR(error_message(), "acquire x: first a; second b");
    CHECK_STR(show_parts(), "<first  no-connection><second loading>");
    error_wrap(1, "again");
    CHECK_STR(error_message(), "again: acquire x: first a; second b");
    CHECK_STR(show_parts(), "<first  no-connection><second loading>");
    error_set(1, "new: %s", error_message());
    CHECK_STR(show_parts(), "");
    error_list(&list);
    error_wrap(1, "%*s", 1 << 17, "");
    CHECK_STR(show_parts(), "");
}

/* A text of len times the letter x. */
static const char *xs(size_t len)
{
    static char text[2 * ERROR_MESSAGE_MAX];

    memset(text, 'x', len);
    text[len] = '\0';
    return text;
}

TEST(long_messages_end_in_dots)
{
    error_set(1, "%s", xs(ERROR_MESSAGE_MAX - 1));
    CHECK_STR(error_message(), xs(ERROR_MESSAGE_MAX - 1));
    error_set(1, "%s", xs(ERROR_MESSAGE_MAX));
    CHECK_UINT(strlen(error_message()), ERROR_MESSAGE_MAX - 1);
    CHECK_STR(error_message() + ERROR_MESSAGE_MAX - 5, "x...");
    /* A prefix that fills the message to its last byte, and one more byte. */
    error_set(1, "%s", xs(ERROR_MESSAGE_MAX - 4));
    error_wrap(1, "p");
    CHECK_UINT(strlen(error_message()), ERROR_MESSAGE_MAX - 1);
    CHECK_STR(error_message() + ERROR_MESSAGE_MAX - 5, "xxxx");
    error_set(1, "%s", xs(ERROR_MESSAGE_MAX - 3));
    error_wrap(1, "p");
    CHECK_STR(error_message() + ERROR_MESSAGE_MAX - 5, "x...");
    CHECK(strncmp(error_message(), "p: xxx", 6) == 0);
    error_wrap(1, "%s", xs(ERROR_MESSAGE_MAX + 100));
    CHECK_STR(error_message() + ERROR_MESSAGE_MAX - 5, "x...");
}

static void *look_from_another_thread(void *arg)
{
    char **ret_seen = arg;

    *ret_seen = strdup(error_message());
    error_set(1, "of the other thread");
    return NULL;
}

TEST(every_thread_has_its_own)
{
    pthread_t thread;
    char *seen = NULL;

    error_set(1, "of this thread");
    CHECK(pthread_create(&thread, NULL, look_from_another_thread, &seen) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STR(seen, "");
    CHECK_STR(error_message(), "of this thread");
    free(seen);
}

/* The version is three numbers with dots. */
TEST(the_version_is_that_of_the_build)
{
    int numbers[3], len = 0;

    CHECK_STR(redlock_version(), REDLOCK_VERSION);
    CHECK_INT(sscanf(redlock_version(), "%d.%d.%d%n", &numbers[0], &numbers[1], &numbers[2], &len),
              3);
    CHECK_INT(redlock_version()[len], '\0');
}

/* Of all kinds, wherever they are met, with the longest words and numbers. */
TEST(the_longest_sentence_fits)
{
    char words[REASON_WORDS_MAX + 1], text[2 * REASON_TEXT_MAX];
    struct reason why;

    memset(words, 'x', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    for (unsigned i = WHY_NONE; i < WHYS_LEN; i++) {
        for (unsigned at = AT_ANYTHING; at < REASON_ATS_LEN; at++) {
            reason_quote(&why, (enum why)i, words, NULL);
            why.at = (enum reason_at)at;
            why.other = REDLOCK_MASTERS_MAX - 1;
            why.number = -1;
            why.amount = -INT64_MAX;
            why.over_at = DRIFT_NEVER - 1;
            CHECK(reason_write(&why, 0, text, sizeof text) < REASON_TEXT_MAX);
        }
    }
}

CHECK_MAIN(RUN(the_longest_sentence_fits), RUN(statuses_are_distinct),
           RUN(a_status_keeps_its_number), RUN(unknown_statuses_have_a_text),
           RUN(every_failure_has_an_identifier),

           RUN(a_reason_is_told_in_english), RUN(messages_are_wrapped_on_the_way_up),
           RUN(a_message_may_be_made_of_itself), RUN(a_message_is_passed_on),
           RUN(the_reasons_move_with_the_text), RUN(long_messages_end_in_dots),
           RUN(every_thread_has_its_own), RUN(the_version_is_that_of_the_build))
