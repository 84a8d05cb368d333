/*
 * test-handshake.c - the commands on a new connection, and how their answers are judged.
 */
#include "redlock/redlock.h"
#include "redlock/link/handshake.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/wire/reply.h"
#include "redlock/wire/script.h"
#include "redlock/link/uri.h"
#include "test/lib/words.h"
#include "test/lib/check.h"

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"

static char ok_text[] = "OK";
static const struct reply ok = {.type = REPLY_STATUS, .text = ok_text, .text_len = 2};

static bool guarded; /* With the restart guard. */

static struct handshake begin(const char *text, char **ret_bytes, size_t *ret_len)
{
    static struct uri uri; /* The handshake uses it until its end. */
    struct handshake handshake;

    uri_done(&uri);
    CHECK_INT(uri_parse(text, strlen(text), &uri), 0);
    *ret_len = handshake_begin(&handshake, &uri, guarded, ret_bytes);
    CHECK(*ret_len > 0);
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

/* The reply to CONFIG GET.  The reader keeps its last text. */
static struct reply setting(const char *value)
{
    return text_reply(REPLY_ARRAY, value);
}

/* A whole handshake with the guard, with these answers to INFO and to the last two commands. */
static struct master_info guarded_info(const char *info_text, struct reply fsync,
                                       struct reply rewrite)
{
    struct reply answers[] = {text_reply(REPLY_TEXT, info_text), digest(SCRIPT_RELEASE),
                              digest(SCRIPT_EXTEND), fsync, rewrite};
    struct handshake handshake;
    struct master_info info;
    struct reason why;
    char *bytes;
    size_t len, last = sizeof answers / sizeof answers[0] - 1;

    memset(&info, 0x5a, sizeof info); /* Left from an earlier connection. */
    guarded = true;
    handshake = begin("h", &bytes, &len);
    guarded = false;
    CHECK_UINT(handshake.steps_len, last + 1);
    free(bytes);
    for (size_t i = 0; i < last; i++)
        CHECK_INT(handshake_on_reply(&handshake, &answers[i], &info, &why), HANDSHAKE_GOES_ON);
    CHECK_INT(handshake_on_reply(&handshake, &answers[last], &info, &why), HANDSHAKE_DONE);
    return info;
}

TEST(knows_who_keeps_what_he_is_told)
{
    const struct reply forbidden = text_reply(REPLY_ERROR, "NOPERM no config"),
                       always = setting("always"), no = setting("no");
    static const char stores[] = "\naof_enabled:1\r\n", forgets[] = "\naof_enabled:0\r\n";
    const struct {
        const char *name, *info;
        struct reply fsync, rewrite;
        bool keeps;
    } rows[] = {
        {"always", stores, always, no, true},
        {"no file", forgets, always, no, false},
        {"not told", "", always, no, false},
        {"every second", stores, setting("everysec"), no, false},
        {"not on rewrite", stores, always, setting("yes"), false},
        {"CONFIG forbidden", stores, forbidden, no, false},
        {"the other one forbidden", stores, always, forbidden, false},
        {"a text", stores, text_reply(REPLY_TEXT, "always"), no, false},
        {"no such setting", stores, setting(""), no, false},
        {"never a replica",
         "\nmaster_replid2:0000000000000000000000000000000000000000\r\n"
         "aof_enabled:1\r\n",
         always, no, true},
        {"a replica before", "\nmaster_replid2:" RUN_ID "\r\naof_enabled:1\r\n", always, no, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct master_info info = guarded_info(rows[i].info, rows[i].fsync, rows[i].rewrite);

        check_row = rows[i].name;
        CHECK(handshake_keeps(&info) == rows[i].keeps);
    }
}

TEST(logs_in_before_all_else)
{
    char *bytes;
    size_t len;
    const char both[] = "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsecret\r\n"
                        "*1\r\n$4\r\nINFO\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
    const char old[] = "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"
                       "*1\r\n$4\r\nINFO\r\n*3\r\n$6\r\nSCRIPT\r\n";

    begin("redis://ann:secret@h/3", &bytes, &len);
    CHECK(len > sizeof both && memcmp(bytes, both, sizeof both - 1) == 0);
    free(bytes);
    begin("redis://:secret@h", &bytes, &len);
    CHECK(len > sizeof old && memcmp(bytes, old, sizeof old - 1) == 0);
    free(bytes);
}

/* Answer the steps of a handshake until it ends. */
static enum handshake_result answer(const char *uri, const struct reply *replies,
                                    unsigned replies_len, struct master_info *info,
                                    struct reason *why)
{
    enum handshake_result result = HANDSHAKE_GOES_ON;
    char *bytes;
    size_t len;
    struct handshake handshake = begin(uri, &bytes, &len);

    free(bytes);
    for (unsigned i = 0; i < replies_len && result == HANDSHAKE_GOES_ON; i++)
        result = handshake_on_reply(&handshake, &replies[i], info, why);
    return result;
}

/* Of a plain handshake, whose answer to INFO is this. */
static enum handshake_result shake(struct reply info_reply, struct master_info *info,
                                   struct reason *why)
{
    const struct reply replies[] = {info_reply, digest(SCRIPT_RELEASE), digest(SCRIPT_EXTEND)};

    return answer("h", replies, 3, info, why);
}

TEST(learns_from_info)
{
    struct master_info info;
    struct reason why = {.why = WHY_NONE};

    CHECK_INT(shake(text_reply(REPLY_TEXT, "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n"
                                           "uptime_in_seconds:42\r\n\r\n# Replication\r\n"
                                           "role:master\r\n"),
                    &info, &why),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "7.0.15");
    CHECK_STR(info.role, "master");
    CHECK_STR(info.run_id, "abc");
    CHECK_UINT(info.uptime_s, 42);
}

/* Valkey puts the version of Redis that it is compatible with into redis_version. */
TEST(shows_the_version_of_valkey)
{
    static const struct {
        const char *info, *version;
    } rows[] = {
        {"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n"
         "role:master\r\n",
         "8.1.1"},
        {"# Server\r\nvalkey_version:8.1.1\r\nredis_version:7.2.4\r\n", "8.1.1"},
        {"# Server\r\nredis_version:7.2.4\r\n", "7.2.4"},
        {"# Server\r\nvalkey_version:8.1.1\033[2J\r\n", "8.1.1?[2J"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct master_info info;
        struct reason why = {.why = WHY_NONE};

        check_row = rows[i].info;
        CHECK_INT(shake(text_reply(REPLY_TEXT, rows[i].info), &info, &why), HANDSHAKE_DONE);
        CHECK_STR(info.version, rows[i].version);
    }
}

TEST(does_without_info)
{
    struct master_info info;
    struct reason why = {.why = WHY_NONE};

    CHECK_INT(shake(text_reply(REPLY_ERROR, "NOPERM no INFO for you"), &info, &why),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "?");
    CHECK_STR(info.role, "?");
    CHECK_UINT(info.uptime_s, 0);
}

/* A right that is missing is no fault of the network: see redlock/base/reason.h. */
TEST(says_that_info_is_forbidden)
{
    struct master_info info;
    struct reason why = {.why = WHY_NONE};

    CHECK_INT(shake(text_reply(REPLY_ERROR, "NOPERM no INFO for you"), &info, &why),
              HANDSHAKE_DONE);
    CHECK_INT(handshake_refuses(&info), WHY_NO_INFO);
    CHECK_INT(shake(text_reply(REPLY_ERROR, "ERR unknown command 'INFO'"), &info, &why),
              HANDSHAKE_DONE);
    CHECK_INT(handshake_refuses(&info), WHY_NO_RUN_ID);
    CHECK_INT(shake(text_reply(REPLY_TEXT, "\nrun_id:" RUN_ID "\r\n"), &info, &why),
              HANDSHAKE_DONE);
    CHECK_INT(handshake_refuses(&info), WHY_NONE);
}

/* What is shown of INFO does not hold the password, and what decides something stays. */
TEST(hides_a_password_in_info)
{
    static const struct {
        const char *uri, *info, *version, *role, *policy;
    } rows[] = {
        {"redis://joe:geheim@h",
         "\nredis_version:geheim\r\nrole:xgeheim\r\nmaxmemory_policy:geheim!", "******", "x******",
         "******!"},
        {"redis://joe:geheim@h",
         "\nredis_version:0123456789012345678901234 geheim\r\nrole:master\r\n",
         "0123456789012345678901234 *****", "master", "?"},
        {"redis://:slave@h", "\nredis_version:7\r\nrole:slave\r\n", "7", "slave", "?"},
        {"redis://:7@h", "\nredis_version:7.0\r\nmaxmemory_policy:noeviction\r\n", "7.0", "?",
         "noeviction"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reply replies[] = {ok, text_reply(REPLY_TEXT, rows[i].info)};
        struct master_info info;
        struct reason why;

        check_row = rows[i].uri;
        (void)answer(rows[i].uri, replies, 2, &info, &why);
        CHECK_STR(info.version, rows[i].version);
        CHECK_STR(info.role, rows[i].role);
        CHECK_STR(info.policy, rows[i].policy);
    }
}

TEST(cuts_what_is_too_long)
{
    struct master_info info;
    struct reason why = {.why = WHY_NONE};

    CHECK_INT(shake(text_reply(REPLY_TEXT, "\nredis_version:1234567890123456789012345678901234567"
                                           "\r\nrole:master\r\n"),
                    &info, &why),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "1234567890123456789012345678901");
}

TEST(keeps_terminals_safe)
{
    struct master_info info;
    struct reason why = {.why = WHY_NONE};

    CHECK_INT(
        shake(text_reply(REPLY_TEXT, "\nredis_version:7\033[2J\r\nrole:master\r\n"), &info, &why),
        HANDSHAKE_DONE);
    CHECK_STR(info.version, "7?[2J");
    CHECK_INT(shake(text_reply(REPLY_TEXT, "\nredis_version:7\x9b"
                                           "2J\r\nrole:m\xc2\x9bx\xc3\x9f\r\n"),
                    &info, &why),
              HANDSHAKE_DONE);
    CHECK_STR(info.version, "7?2J");
    CHECK_STR(info.role, "m??x\xc3\x9f");
}

#define SERVER "# Server\r\nredis_version:7.0.15\r\n"

TEST(refuses_what_is_no_master)
{
    static const struct {
        const char *info, *error; /* error: NULL if the master is accepted. */
    } rows[] = {
        {SERVER "role:slave\r\n", "is a replica, not a master"},
        {SERVER "role:master\r\n", NULL},
        {SERVER "redis_mode:cluster\r\nrole:master\r\n",
         "is a node of a Redis Cluster, not a master by itself"},
        {SERVER "redis_mode:standalone\r\nrole:master\r\n", NULL},
        {SERVER "server_mode:cluster\r\nrole:master\r\n",
         "is a node of a Redis Cluster, not a master by itself"},
        {SERVER "server_mode:standalone\r\nrole:master\r\n", NULL},
        {SERVER "redis_mode:sentinel\r\n",
         "is a Sentinel, not a master: give the servers themselves"},
        {SERVER "server_mode:sentinel\r\n",
         "is a Sentinel, not a master: give the servers themselves"},
        {SERVER "loading:1\r\nrole:master\r\n", "is still loading its data"},
        {SERVER "loading:0\r\nasync_loading:1\r\nrole:master\r\n", NULL},
        {SERVER "redis_mode:cluster\r\nloading:1\r\nrole:slave\r\n", "is a replica, not a master"},
        /* A field counts only at the beginning of a line. */
        {SERVER "also_loading:1\r\nold_role:slave\r\n", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct master_info info;
        struct reason why = {.why = WHY_NONE};

        check_row = rows[i].info;
        CHECK_INT(shake(text_reply(REPLY_TEXT, rows[i].info), &info, &why),
                  rows[i].error != NULL ? HANDSHAKE_FAILED : HANDSHAKE_DONE);
        CHECK_STR(words_of(&why), rows[i].error != NULL ? rows[i].error : "");
    }
}

static struct master_info info_of(const char *text)
{
    struct master_info info;
    struct reason why = {.why = WHY_NONE};

    (void)shake(text_reply(REPLY_TEXT, text), &info, &why);
    return info;
}

TEST(knows_a_server_again)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {RUN_ID, RUN_ID, true},
        {RUN_ID, "1123456789abcdef0123456789abcdef01234567", false},
        {RUN_ID, "0123456789abcdef0123456789abcdef01234568", false},
        {RUN_ID, "", false},
        {"", "", false},
        /* A text that is no id of Redis proves nothing. */
        {"0123", "0123", false},
        {RUN_ID "8", RUN_ID "8", false},
        {"0123456789abcdef0123456789abcdef0123456x", "0123456789abcdef0123456789abcdef0123456x",
         false},
        {"0000000000000000000000000000000000000000", "0000000000000000000000000000000000000000",
         false},
        {"0000000000000000000000000000000000000001", "0000000000000000000000000000000000000001",
         true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[120];
        struct master_info a, b;

        check_row = rows[i].b;
        (void)snprintf(text, sizeof text, SERVER "run_id:%s\r\n", rows[i].a);
        a = info_of(text);
        (void)snprintf(text, sizeof text, SERVER "run_id:%s\r\n", rows[i].b);
        b = info_of(text);
        CHECK_INT(handshake_is_same(&a, &b), rows[i].same);
        CHECK_INT(handshake_is_same(&b, &a), rows[i].same);
    }
}

/* Without the right to INFO, two masters cannot be compared, and do not count as the same. */
TEST(knows_nobody_without_info)
{
    const struct master_info never = {.uptime_s = 0};
    struct master_info a, b;
    struct reason why = {.why = WHY_NONE};

    (void)shake(text_reply(REPLY_ERROR, "NOPERM"), &a, &why);
    (void)shake(text_reply(REPLY_ERROR, "NOPERM"), &b, &why);
    CHECK(!handshake_is_same(&a, &b));
    CHECK(!handshake_is_informed(&a));
    CHECK(!handshake_evicts(&a));
    CHECK(!handshake_forgets(&a));
    CHECK(!handshake_is_same(&never, &never));
    CHECK(!handshake_is_informed(&never));
    CHECK(!handshake_evicts(&never));
    CHECK(!handshake_forgets(&never));
    a = info_of(SERVER);
    CHECK(handshake_is_informed(&a));
}

TEST(sees_risks)
{
    static const struct {
        const char *info;
        bool evicts, forgets;
    } rows[] = {
        {SERVER "maxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n", false, false},
        {SERVER "maxmemory:1\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n", false, false},
        {SERVER "maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n", false, false},
        {SERVER "maxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n", true, false},
        {SERVER "maxmemory:4294967296\r\nmaxmemory_policy:volatile-ttl\r\n", true, false},
        {SERVER "maxmemory:1\r\naof_enabled:0\r\n", false, true},
        {SERVER "aof_enabled:00\r\n", false, false}, /* An unknown text. */
        {SERVER, false, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct master_info info = info_of(rows[i].info);

        check_row = rows[i].info;
        CHECK_INT(handshake_evicts(&info), rows[i].evicts);
        CHECK_INT(handshake_forgets(&info), rows[i].forgets);
    }
}

TEST(says_which_step_failed)
{
    static const struct {
        const char *uri, *reply, *error;
        enum reply_type type;
        unsigned step; /* The number of the step that fails. */
    } rows[] = {
        {"redis://:x@h", "WRONGPASS no", "AUTH: WRONGPASS no", REPLY_ERROR, 0},
        {"redis://:PASS@h", "WRONGPASS no", "AUTH: WRONGPASS no", REPLY_ERROR, 0},
        {"redis://:pair@h", "WRONGPASS invalid username-password pair",
         "AUTH: WRONGPASS invalid username-password pair", REPLY_ERROR, 0},
        {"redis://:x@h", "hm", "AUTH: answered with garbage", REPLY_TEXT, 0},
        {"redis://:x@h/99", "ERR range", "SELECT: ERR range", REPLY_ERROR, 2},
        {"h", "NOAUTH first",
         "needs a password in the list of masters, as in redis://:PASSWORD@HOST:PORT: NOAUTH first",
         REPLY_ERROR, 1},
        {"h", "NOAUTHS", "SCRIPT LOAD: NOAUTHS", REPLY_ERROR, 1},
        {"h", "0123", "SCRIPT LOAD: gave another digest than ours: not a Redis?", REPLY_TEXT, 1},
        {"h", "OK", "SCRIPT LOAD: gave another digest than ours: not a Redis?", REPLY_STATUS, 1},
        {"h", "LOADING Redis is loading the dataset in memory", "is still loading its data",
         REPLY_ERROR, 0},
        {"redis://:x@h/1", "LOADING Redis is loading the dataset in memory",
         "is still loading its data", REPLY_ERROR, 2},
        {"h", "LOADINGS", "SCRIPT LOAD: LOADINGS", REPLY_ERROR, 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reply replies[] = {ok, ok, ok};
        struct master_info info;
        struct reason why;

        check_row = rows[i].error;
        replies[rows[i].step] = text_reply(rows[i].type, rows[i].reply);
        CHECK_INT(answer(rows[i].uri, replies, 3, &info, &why), HANDSHAKE_FAILED);
        CHECK_STR(words_of(&why), rows[i].error);
    }
}

/* A Sentinel knows no password, no database and no script.  What a master refuses is said of any
 * other. */
TEST(the_kind_of_a_server_comes_first)
{
    static const char sentinel[] = SERVER "redis_mode:sentinel\r\n";
    static const char cluster[] = SERVER "redis_mode:cluster\r\nrole:master\r\n";
    const struct reply unset = text_reply(REPLY_ERROR, "ERR AUTH <password> called without any"),
                       wrong = text_reply(REPLY_ERROR, "WRONGPASS no"),
                       unknown = text_reply(REPLY_ERROR, "ERR unknown command 'x'"),
                       noauth = text_reply(REPLY_ERROR, "NOAUTH first");
    const struct {
        const char *uri;
        struct reply replies[3];
        enum why why;
    } rows[] = {
        {"redis://:x@h", {unset, text_reply(REPLY_TEXT, sentinel), unknown}, WHY_SENTINEL},
        {"h/1", {text_reply(REPLY_TEXT, sentinel), unknown, unknown}, WHY_SENTINEL},
        {"h", {text_reply(REPLY_TEXT, sentinel), unknown, unknown}, WHY_SENTINEL},
        {"h/1", {text_reply(REPLY_TEXT, cluster), unknown, unknown}, WHY_CLUSTER},
        {"redis://me:x@h",
         {wrong, text_reply(REPLY_TEXT, SERVER "role:slave\r\n"), ok},
         WHY_REPLICA},
        {"redis://:x@h", {wrong, noauth, noauth}, WHY_ERROR_LOGIN},
        {"redis://:x@h", {wrong, text_reply(REPLY_TEXT, SERVER), ok}, WHY_ERROR_LOGIN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct master_info info;
        struct reason why;

        check_row = rows[i].uri;
        CHECK_INT(answer(rows[i].uri, rows[i].replies, 3, &info, &why), HANDSHAKE_FAILED);
        CHECK_INT(why.why, rows[i].why);
    }
}

/* Servers without AUTH repeat the unknown command and its arguments.  A proxy may repeat the
 * password alone, and without quotes. */
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
        {"'geheim'", "AUTH: it answered with an error"},
        {"WRONGPASS of 'joe' or 'geheim'", "AUTH: WRONGPASS of "},
        {"ERR none of it quoted", "AUTH: ERR none of it quoted"},
        {"ERR no user has geheim", "AUTH: ERR no user has "},
        {"ERR geheim is not 'geheim'", "AUTH: ERR "},
        {"geheim", "AUTH: it answered with an error"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct reply replies[] = {text_reply(REPLY_ERROR, rows[i].reply), ok};
        struct master_info info;
        struct reason why;

        check_row = rows[i].reply;
        CHECK_INT(answer("redis://joe:geheim@h", replies, 2, &info, &why), HANDSHAKE_FAILED);
        CHECK_STR(words_of(&why), rows[i].error);
    }
}

/* Only what is about the password is a refusal of the user: DENIED is of protected mode. */
TEST(a_refused_login_is_told_from_other_errors)
{
    static const struct {
        const char *reply;
        bool refuses_user;
    } rows[] = {
        {"WRONGPASS no", true},
        {"ERR invalid password", true},
        {"ERR what no version has said yet", true},
        {"DENIED Redis is running in protected mode", false},
        {"ERR max number of clients reached", false},
        {"ERR unknown command 'AUTH'", false},
        {"", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct reply replies[] = {text_reply(REPLY_ERROR, rows[i].reply), ok};
        struct master_info info;
        struct reason why;

        check_row = rows[i].reply;
        CHECK_INT(answer("redis://:x@h", replies, 2, &info, &why), HANDSHAKE_FAILED);
        CHECK(why.at == AT_LOGIN || why.why == WHY_ERROR_PROTECTED);
        CHECK_INT(reason_refuses_user(why.why), rows[i].refuses_user);
    }
}

CHECK_MAIN(RUN(says_only_what_is_needed), RUN(knows_who_keeps_what_he_is_told),
           RUN(logs_in_before_all_else), RUN(learns_from_info), RUN(does_without_info),
           RUN(shows_the_version_of_valkey), RUN(says_that_info_is_forbidden),
           RUN(hides_a_password_in_info), RUN(cuts_what_is_too_long), RUN(keeps_terminals_safe),
           RUN(refuses_what_is_no_master), RUN(knows_a_server_again),
           RUN(knows_nobody_without_info), RUN(sees_risks), RUN(says_which_step_failed),
           RUN(the_kind_of_a_server_comes_first), RUN(keeps_a_password_that_is_echoed),
           RUN(a_refused_login_is_told_from_other_errors))
