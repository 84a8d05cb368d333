/*
 * forbidden.c - knows the errors of Redis 5 to 8 that are about passwords and rights.
 */
#include "redlock/wire/forbidden.h"

#include <stddef.h>
#include <string.h>

/* Codes, which stand first or after a colon. */
static const char *const codes[] = {"NOPERM", "NOAUTH", "WRONGPASS"};

/* A script was allowed, and not what it calls.  Redis 6 says so in one of its own errors, and Redis
 * 7 in an ERR. */
static const char *const in_scripts[] = {
    "The user executing the script can't",
    "ACL failure in script",
};

static bool has_code(const char *error, const char *code)
{
    size_t len = strlen(code);

    for (const char *at = strstr(error, code); at != NULL; at = strstr(at + len, code))
        if ((at == error || (at >= error + 2 && at[-2] == ':' && at[-1] == ' ')) &&
            (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

bool forbidden_is(const char *error)
{
    /* Redis 5 has no code for a wrong password. */
    if (strncmp(error, "AUTH: ERR ", 10) == 0)
        return strstr(error, "unknown command") == NULL;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (has_code(error, codes[i]))
            return true;
    for (size_t i = 0; i < sizeof in_scripts / sizeof in_scripts[0]; i++)
        if (strstr(error, in_scripts[i]) != NULL)
            return true;
    return false;
}
