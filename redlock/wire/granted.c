/*
 * granted.c - reads the message of a master that has passed a lock on.
 */
#include "redlock/wire/granted.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(TOKEN_LEN == 40 && WIRE_STATE_MAX == 50, "the widths below");

bool granted_parse(const char *text, struct granted *ret_granted)
{
    struct granted granted = {.sent = 0};
    int len = 0;

    if (sscanf(text, "granted %40[0-9a-f]%*1[ ]%20" SCNu64 "%*1[ ]%50[0-9a-f.-]%*1[ ]%n",
               granted.waiter, &granted.sent, granted.state, &len) != 3 ||
        len == 0 || text[len] == '\0')
        return false;
    granted.token = text + len;
    *ret_granted = granted;
    return true;
}

bool granted_is_good(const struct granted *granted, const char *token, const char *state,
                     drift_time now)
{
    if (strcmp(granted->token, token) != 0 || granted->sent > now)
        return false;
    return state == NULL || strcmp(granted->state, state) == 0;
}
