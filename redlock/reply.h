/*
 * reply.h - what a master said, decoded by hiredis' reader into one struct
 * that is used again and again: no allocation per reply.
 *
 * Only the newest reply of a reader is kept.  Text is copied, into a buffer
 * that grows to the longest reply seen and never past REPLY_TEXT_MAX; a
 * longer one, an array with more elements than REPLY_ELEMENTS_MAX, or one
 * deeper than REPLY_DEPTH_MAX makes the reader fail, as malformed input does.
 */
#ifndef REDLOCK_REPLY_H
#define REDLOCK_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#define REPLY_TEXT_MAX (64 * 1024) /* INFO takes 5 KiB; ten times that, and round. */
#define REPLY_ELEMENTS_MAX 1024    /* Of any array; nothing that we send is answered by one. */
#define REPLY_DEPTH_MAX 4 /* Of arrays in arrays; hiredis 1 would allocate for each, unbounded. */

struct redisReader; /* hiredis'; only reply.c needs its insides. */

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

/* A reader that decodes into *reply, which is zeroes and outlives it; NULL
 * without memory.  redisReaderGetReply() then gives a pointer to *reply. */
struct redisReader *reply_reader(struct reply *reply);

/*
 * Whether the reader has buffered more than any reply that it could accept.
 * hiredis hands over a text only when all of it has come, up to half a GiB, so
 * this must be asked whenever bytes were fed and all whole replies taken.
 */
bool reply_overflows(const struct redisReader *reader);

/* Free the texts. */
void reply_done(struct reply *reply);

#endif /* REDLOCK_REPLY_H */
