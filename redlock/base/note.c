/*
 * note.c - checks and finds the note beside a lock.
 */
#include "redlock/base/note.h"

#include <string.h>

#include "redlock/base/token.h"

_Static_assert(TOKEN_LEN + 1 + REDLOCK_NOTE_MAX <= REDLOCK_TOKEN_MAX,
               "a token with its note may be adopted");

bool note_is_valid(const char *note)
{
    for (size_t i = 0; note[i] != '\0'; i++)
        if (i == REDLOCK_NOTE_MAX || (unsigned char)note[i] < ' ' || note[i] == '\x7f')
            return false;
    return true;
}

const char *note_find(const char *stored, size_t len, size_t *ret_len)
{
    if (len <= TOKEN_LEN + 1 || stored[TOKEN_LEN] != TOKEN_NOTE)
        return NULL;
    for (size_t i = 0; i < TOKEN_LEN; i++)
        if (memchr("0123456789abcdef", stored[i], 16) == NULL)
            return NULL;
    *ret_len = len - TOKEN_LEN - 1;
    return stored + TOKEN_LEN + 1;
}
