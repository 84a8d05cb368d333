/*
 * test-forbidden.c - the errors of a master that refuses a user.  The texts are those of real
 * servers, Redis 5 to 7.
 */
#include "redlock/wire/forbidden.h"

#include <stddef.h>

#include "test/lib/check.h"

TEST(a_password_or_a_right_is_missing)
{
    static const char *const errors[] = {
        "NOPERM this user has no permissions to run the 'set' command",
        "NOPERM this user has no permissions to access one of the keys used as arguments",
        "NOPERM",
        "NOAUTH Authentication required.",
        "SELECT: NOAUTH Authentication required.",
        "SCRIPT LOAD: NOPERM this user has no permissions to run the 'script|load' command",
        "restart guard: NOPERM this user has no permissions to run the 'evalsha' command",
        "AUTH: WRONGPASS invalid username-password pair or user is disabled.",
        "AUTH: ERR invalid password",
        "AUTH: ERR Client sent AUTH, but no password is set",
        "ERR ACL failure in script: User redlock has no permissions to run the 'hget' command "
        "script: 0d2c, on @user_script:1.",
        "ERR Error running script (call to f_0d2c): @user_script:1: @user_script: 1: -NOPERM The "
        "user executing the script can't run this command or subcommand",
        "NOPERM The user executing the script can't access at least one of the keys",
    };

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        check_row = errors[i];
        CHECK(forbidden_is(errors[i]));
    }
}

TEST(other_errors_are_no_refusal_of_the_user)
{
    static const char *const errors[] = {
        "",
        "Connection refused",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "ERR unknown command 'NOPERM'",
        "NOPERMIT",
        "XNOPERM of another program",
        "SELECT: ERR DB index is out of range",
        "AUTH: answered with garbage",
        "AUTH: ERR unknown command ",
        "is a member of the set of NOPERM :1 and not of others",
        "is still loading its data",
    };

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        check_row = errors[i];
        CHECK(!forbidden_is(errors[i]));
    }
}

CHECK_MAIN(RUN(a_password_or_a_right_is_missing), RUN(other_errors_are_no_refusal_of_the_user))
