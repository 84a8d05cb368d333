/*
 * reply.h - what a master said, decoded.
 */
#ifndef REDLOCK_REPLY_H
#define REDLOCK_REPLY_H

#include <stddef.h>

enum reply_type {
    REPLY_STATUS,
    REPLY_ERROR,
    REPLY_TEXT,
    REPLY_INTEGER,
    REPLY_NIL,
    REPLY_ARRAY, /* Only the last two of its elements that are texts are kept. */
    REPLY_OTHER, /* What RESP3 adds: maps, doubles, ...; not kept, for we never ask for RESP3. */
};

struct reply {
    enum reply_type type;
    long long integer;
    char *text; /* NUL-terminated; of STATUS, ERROR, TEXT and ARRAY. */
    size_t text_len;
    size_t text_room;
    char *before; /* Of ARRAY: the text before text; NULL or "" if there is none. */
    size_t before_len;
    size_t before_room;
};

#endif /* REDLOCK_REPLY_H */
