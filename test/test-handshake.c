/*
 * test-handshake.c - what is said on a new connection, and what is made of it.
 */
#include "redlock/handshake.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/reply.h"
#include "redlock/script.h"
#include "redlock/uri.h"
#include "test/check.h"

static char ok_text[] = "OK";
static const struct reply ok = {.type = REPLY_STATUS, .text = ok_text, .text_len = 2};

static struct handshake begin(const char *text, char **ret_bytes, size_t *ret_len)
{
    struct handshake handshake;
    struct uri uri;

    CHECK_INT(uri_parse(text, strlen(text), &uri), 0);
    *ret_len = handshake_begin(&handshake, &uri, ret_bytes);
    CHECK(*ret_len > 0);
    uri_done(&uri);
    return handshake;
}

static struct reply text_reply(enum reply_type type, const char *text)
{
    return (struct reply){.type = type, .text = (char *)(uintptr_t)text, .text_len = strlen(text)};
}

static struct reply digest(enum script_id script)
{
    return text_reply(REPLY_TEXT, script_all[script].sha1);
}

static bool has_bytes(const char *bytes, size_t len, const char *part)
{
    return memmem(bytes, len, part, strlen(part)) != NULL;
}

TEST(says_only_what_is_needed)
{
    char *bytes;
    size_t len;
    struct handshake handshake = begin("h:7001", &bytes, &len);

    CHECK_UINT(handshake.steps_len, 3);
    CHECK(!has_bytes(bytes, len, "AUTH"));
    CHECK(!has_bytes(bytes, len, "SELECT"));
    CHECK(has_bytes(bytes, len, script_all[SCRIPT_RELEASE].text));
    CHECK(has_bytes(bytes, len, script_all[SCRIPT_EXTEND].text));
    CHECK(has_bytes(bytes, len, "*1\r\n$4\r\nINFO\r\n"));
    free(bytes);
}

TEST(logs_in_before_all_else)
{
    char *bytes;
    size_t len;
    const char both[] = "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsecret\r\n"
                        "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
    const char old[] = "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*3\r\n$6\r\nSCRIPT\r\n";

    begin("redis://ann:secret@h/3", &bytes, &len);
    CHECK(len > sizeof both && memcmp(bytes, both, sizeof both - 1) == 0);
    free(bytes);
    begin("redis://:secret@h", &bytes, &len);
    CHECK(len > sizeof old && memcmp(bytes, old, sizeof old - 1) == 0);
    free(bytes);
}

/* Answer all steps of a plain handshake, INFO with this. */
static enum handshake_result shake(struct reply info_reply, struct master_info *info, char *error,
                                   size_t error_size)
{
    struct reply release = digest(SCRIPT_RELEASE), extend = digest(SCRIPT_EXTEND);
    char *bytes;
    size_t len;
    struct handshake handshake = begin("h", &bytes, &len);

    free(bytes);
    CHECK_INT(handshake_on_reply(&handshake, &release, info, error, error_size), HANDSHAKE_GOES_ON);
    CHECK_INT(handshake_on_reply(&handshake, &extend, info, error, error_size), HANDSHAKE_GOES_ON);
    return handshake_on_reply(&handshake, &info_reply, info, error, error_size);
}

TEST(learns_from_info)
{
    struct master_info info;
    char error[80];

    CHECK_INT(shake(text_reply(REPLY_TEXT, "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n"
                                           "uptime_in_seconds:42\r\n\r\n# Replication\r\n"
                                           "role:master\r\n"),
                    &info, error, sizeof error),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "7.0.15");
    CHECK_STR(info.role, "master");
    CHECK_STR(info.run_id, "abc");
    CHECK_UINT(info.uptime_s, 42);
}

TEST(does_without_info)
{
    struct master_info info;
    char error[80];

    CHECK_INT(shake(text_reply(REPLY_ERROR, "NOPERM no INFO for you"), &info, error, sizeof error),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "?");
    CHECK_STR(info.role, "?");
    CHECK_UINT(info.uptime_s, 0);
}

TEST(cuts_what_is_too_long)
{
    struct master_info info;
    char error[80];

    CHECK_INT(shake(text_reply(REPLY_TEXT, "\nredis_version:1234567890123456789012345678901234567"
                                           "\r\nrole:master\r\n"),
                    &info, error, sizeof error),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "1234567890123456789012345678901");
}

TEST(keeps_terminals_safe)
{
    struct master_info info;
    char error[80];

    CHECK_INT(shake(text_reply(REPLY_TEXT, "\nredis_version:7\033[2J\r\nrole:master\r\n"), &info,
                    error, sizeof error),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "7?[2J");
}

TEST(refuses_a_replica)
{
    struct master_info info;
    char error[80];

    CHECK_INT(shake(text_reply(REPLY_TEXT, "\nrole:slave\r\n"), &info, error, sizeof error),
              HANDSHAKE_FAILED);
    CHECK_STR(error, "is a replica, not a master");
}

TEST(says_which_step_failed)
{
    static const struct {
        const char *uri, *reply, *error;
        enum reply_type type;
        unsigned good; /* Steps before that one. */
    } rows[] = {
        {"redis://:x@h", "WRONGPASS no", "AUTH: WRONGPASS no", REPLY_ERROR, 0},
        {"redis://:x@h", "hm", "AUTH: answered with garbage", REPLY_TEXT, 0},
        {"redis://:x@h/99", "ERR range", "SELECT: ERR range", REPLY_ERROR, 1},
        {"h", "NOAUTH first", "SCRIPT LOAD: NOAUTH first", REPLY_ERROR, 0},
        {"h", "0123", "SCRIPT LOAD: gave another digest than ours: not a Redis?", REPLY_TEXT, 0},
        {"h", "OK", "SCRIPT LOAD: gave another digest than ours: not a Redis?", REPLY_STATUS, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct master_info info;
        struct reply reply = text_reply(rows[i].type, rows[i].reply);
        char error[80] = "", *bytes;
        size_t len;
        struct handshake handshake = begin(rows[i].uri, &bytes, &len);

        free(bytes);
        check_row = rows[i].error;
        for (unsigned step = 0; step < rows[i].good; step++)
            CHECK_INT(handshake_on_reply(&handshake, &ok, &info, error, sizeof error),
                      HANDSHAKE_GOES_ON);
        CHECK_INT(handshake_on_reply(&handshake, &reply, &info, error, sizeof error),
                  HANDSHAKE_FAILED);
        CHECK_STR(error, rows[i].error);
    }
}

/* Servers without AUTH repeat what they do not know, and what came with it. */
TEST(keeps_a_password_that_is_echoed)
{
    static const struct {
        const char *reply, *error;
    } rows[] = {
        {"ERR unknown command 'AUTH', with args beginning with: 'joe' 'geheim' ",
         "AUTH: ERR unknown command "},
        {"ERR unknown command `AUTH`, with args beginning with: `joe`, `geheim`, ",
         "AUTH: ERR unknown command "},
        {"ERR \"geheim\"?", "AUTH: ERR "},
        {"'geheim'", "AUTH: "},
        {"WRONGPASS of 'joe' or 'geheim'", "AUTH: WRONGPASS of "},
        {"ERR none of it quoted", "AUTH: ERR none of it quoted"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reply reply = text_reply(REPLY_ERROR, rows[i].reply);
        struct master_info info;
        char error[160] = "", *bytes;
        size_t len;
        struct handshake handshake = begin("redis://joe:geheim@h", &bytes, &len);

        free(bytes);
        check_row = rows[i].reply;
        CHECK_INT(handshake_on_reply(&handshake, &reply, &info, error, sizeof error),
                  HANDSHAKE_FAILED);
        CHECK_STR(error, rows[i].error);
    }
}

CHECK_MAIN({"says_only_what_is_needed", says_only_what_is_needed},
           {"logs_in_before_all_else", logs_in_before_all_else},
           {"learns_from_info", learns_from_info}, {"does_without_info", does_without_info},
           {"cuts_what_is_too_long", cuts_what_is_too_long},
           {"keeps_terminals_safe", keeps_terminals_safe}, {"refuses_a_replica", refuses_a_replica},
           {"says_which_step_failed", says_which_step_failed},
           {"keeps_a_password_that_is_echoed", keeps_a_password_that_is_echoed})
