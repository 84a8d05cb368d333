/*
 * test-redis-error.c - what the errors of a master mean.  The texts are those of real servers,
 * Redis 5 to 7.
 */
#include "redlock/wire/redis_error.h"

#include <stddef.h>
#include <string.h>

#include "test/lib/check.h"
#include "test/lib/words.h"

static const struct {
    const char *error;
    enum why why;
} rows[] = {
    {"NOPERM this user has no permissions to run the 'set' command", WHY_ERROR_RIGHT},
    {"NOPERM this user has no permissions to access one of the keys used as arguments",
     WHY_ERROR_RIGHT},
    {"NOPERM", WHY_ERROR_RIGHT},
    {"NOPERM The user executing the script can't access at least one of the keys", WHY_ERROR_RIGHT},
    {"ERR ACL failure in script: User redlock has no permissions to run the 'hget' command script: "
     "0d2c, on @user_script:1.",
     WHY_ERROR_RIGHT},
    {"ERR Error running script (call to f_0d2c): @user_script:1: @user_script: 1: -NOPERM The user "
     "executing the script can't run this command or subcommand",
     WHY_ERROR_RIGHT},
    {"ERR Error running script (call to f_0d2c): @user_script:1: The user executing the script "
     "can't run this command or subcommand",
     WHY_ERROR_RIGHT},
    {"ERR The user executing the script can't run this command or subcommand", WHY_ERROR_RIGHT},
    {"@user_script: 48: The user executing the script can't run this command or subcommand",
     WHY_ERROR_RIGHT},
    {"NOAUTH Authentication required.", WHY_ERROR_LOGIN},
    {"WRONGPASS invalid username-password pair or user is disabled.", WHY_ERROR_LOGIN},
    {"ERR invalid password", WHY_ERROR_LOGIN},
    {"ERR Client sent AUTH, but no password is set", WHY_ERROR_LOGIN},
    {"ERR AUTH <password> called without any password configured for the default user.",
     WHY_ERROR_LOGIN},
    {"ERR unknown command 'NOPERM'", WHY_ERROR_COMMAND},
    {"ERR unknown command `EVALSHA`, with args beginning with: ", WHY_ERROR_COMMAND},
    {"READONLY You can't write against a read only replica.", WHY_ERROR_REPLICA},
    {"ERR Error running script (call to f_b998): @user_script:1: @user_script: 1: -READONLY You "
     "can't write against a read only replica.",
     WHY_ERROR_REPLICA},
    {"LOADING Redis is loading the dataset in memory", WHY_ERROR_LOADING},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     WHY_ERROR_MASTER_DOWN},
    {"CLUSTERDOWN Hash slot not served", WHY_ERROR_CLUSTER},
    {"MOVED 3999 127.0.0.1:6381", WHY_ERROR_CLUSTER},
    {"OOM command not allowed when used memory > 'maxmemory'.", WHY_ERROR_MEMORY},
    {"MISCONF Redis is configured to save RDB snapshots, but it is unable to persist on disk.",
     WHY_ERROR_DISK},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", WHY_ERROR_TYPE},
    {"ERR Error running script (call to f_b998): @user_script:1: WRONGTYPE Operation against a key",
     WHY_ERROR_TYPE},
    {"NOSCRIPT No matching script. Please use EVAL.", WHY_ERROR_SCRIPT},
    {"ERR max number of clients reached", WHY_ERROR_CLIENTS},
    {"ERR DB index is out of range", WHY_ERROR_DATABASE},
    {"ERR invalid DB index", WHY_ERROR_DATABASE}, /* Redis 5. */
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
     WHY_ERROR_BUSY},
    {"DENIED Redis is running in protected mode because protected mode is enabled and no password "
     "is set for the default user.",
     WHY_ERROR_PROTECTED},
    {"NOREPLICAS Not enough good replicas to write.", WHY_ERROR_REPLICAS},
    {"BUSYKEY Target key name already exists.", WHY_ERROR},
    /* Another first word, and words that others may quote. */
    {"", WHY_ERROR},
    {"NOPERMIT", WHY_ERROR},
    {"XNOPERM of another program", WHY_ERROR},
    {"ERR the key NOPERM is not there: WRONGTYPE", WHY_ERROR},
    {"ERR Error running script (call to f_b998): @user_script:1: attempt to call NOPERM",
     WHY_ERROR},
};

TEST(an_error_has_a_kind)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].error;
        CHECK_INT(redis_error_kind(rows[i].error), rows[i].why);
    }
}

/* Of Redis 6, and of Redis 7. */
TEST(what_an_acl_forbids_is_known)
{
    static const struct {
        const char *error;
        enum redis_right right;
    } forbidden[] = {
        {"NOPERM this user has no permissions to run the 'set' command", RIGHT_TO_COMMAND},
        {"NOPERM this user has no permissions to run the 'script' command or its subcommand",
         RIGHT_TO_COMMAND},
        {"NOPERM User redlock has no permissions to run the 'config|get' command",
         RIGHT_TO_COMMAND},
        {"NOPERM this user has no permissions to access one of the keys used as arguments",
         RIGHT_TO_KEY},
        {"NOPERM No permissions to access a key", RIGHT_TO_KEY},
        {"NOPERM this user has no permissions to access one of the channels used as arguments",
         RIGHT_TO_CHANNEL},
        {"NOPERM No permissions to access a channel", RIGHT_TO_CHANNEL},
        {"NOPERM", RIGHT_TO_COMMAND},
    };

    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        check_row = forbidden[i].error;
        CHECK_INT(redis_error_right(forbidden[i].error), forbidden[i].right);
    }
}

/* What a master says is cleaned, cut and quoted, and does not change what is decided. */
TEST(an_error_is_quoted)
{
    struct reason why;

    redis_error_reason(&why, "NOPERM \x1b[31mred\nline.");
    CHECK_INT(why.why, WHY_ERROR_RIGHT);
    CHECK_STR(words_of(&why), "NOPERM ?[31mred?line");
    redis_error_reason(&why, "WRONGTYPE wrong kind script: 5f0a1b2c3d, on @user_script:9.");
    CHECK_STR(words_of(&why), "WRONGTYPE wrong kind");
    redis_error_reason(&why,
                       "ERR unknown command `EVAL`, with args beginning with: `return 1`, `0`");
    CHECK_STR(words_of(&why), "ERR unknown command `EVAL`");
}

/* Each version says it otherwise, some at length: ours is told, and of no command. */
TEST(what_is_said_of_all_commands_is_told_in_our_words)
{
    static const char *const errors[] = {"BUSY Redis is busy", "DENIED Redis is running in a mode"};
    struct reason why;

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        redis_error_reason(&why, errors[i]);
        reason_answers(&why, AT_SCRIPT);
        CHECK_INT(why.at, AT_ANYTHING);
        CHECK(strstr(words_of(&why), "Redis") == NULL && strncmp(words_of(&why), "is ", 3) == 0);
    }
    redis_error_reason(&why, "NOREPLICAS Not enough");
    reason_answers(&why, AT_SCRIPT);
    CHECK_STR(words_of(&why), "SCRIPT LOAD: NOREPLICAS Not enough");
}

/* Its words may be gone when a lease that was refused fails. */
TEST(an_error_without_its_words_is_told)
{
    char text[REASON_TEXT_MAX];
    struct reason why;

    for (unsigned i = WHY_ERROR_LOGIN; i <= WHY_ERROR; i++) {
        CHECK(redis_error_is((enum why)i));
        reason_set(&why, (enum why)i);
        CHECK(reason_write(&why, 0, text, sizeof text) > 0);
    }
    CHECK(!redis_error_is(WHY_ERROR_LOGIN - 1) && !redis_error_is(WHY_ERROR + 1));
    reason_quote(&why, WHY_ERROR_MEMORY, "OOM no", NULL);
    (void)reason_write(&why, 0, text, sizeof text);
    CHECK_STR(text, "OOM no");
}

CHECK_MAIN(RUN(an_error_has_a_kind), RUN(what_an_acl_forbids_is_known), RUN(an_error_is_quoted),
           RUN(what_is_said_of_all_commands_is_told_in_our_words),
           RUN(an_error_without_its_words_is_told))
