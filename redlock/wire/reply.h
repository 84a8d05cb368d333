/*
 * reply.h - a master's reply, decoded.
 */
#ifndef REDLOCK_REPLY_H
#define REDLOCK_REPLY_H

#include <stdbool.h>
#include <stddef.h>

enum reply_type {
    REPLY_STATUS,
    REPLY_ERROR,
    REPLY_TEXT,
    REPLY_INTEGER,
    REPLY_NIL,
    REPLY_ARRAY, /* Keeps only the last two elements that are texts. */
    /* A type of RESP3, such as a map or a double.  It is not kept, because the client never asks
     * for RESP3. */
    REPLY_OTHER,
};

struct reply {
    enum reply_type type;
    long long integer;
    char *text; /* STATUS, ERROR, TEXT: the text.  ARRAY: the last one.  It ends in a NUL. */
    size_t text_len;
    size_t text_room;
    char *before; /* ARRAY: the text before text.  NULL or "" if there is none. */
    size_t before_len;
    size_t before_room;
    bool is_too_long; /* It is not kept: a text is too long, or an array too long or too deep. */
};

#endif /* REDLOCK_REPLY_H */
