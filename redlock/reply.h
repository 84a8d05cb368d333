/*
 * reply.h - what a master said, decoded by hiredis' reader into one struct
 * that is used again and again: no allocation per reply.
 *
 * Only the newest reply of a reader is kept.  Text is copied, into a buffer
 * that grows to the longest reply seen and never past REPLY_TEXT_MAX; a
 * longer one, or one nested deeper or with more elements than allowed, makes
 * the reader fail, as malformed input does.
 */
#ifndef REDLOCK_REPLY_H
#define REDLOCK_REPLY_H

#include <stddef.h>

#include <hiredis/read.h>

#define REPLY_TEXT_MAX (64 * 1024) /* INFO takes 5 KiB; ten times that, and round. */

enum reply_type {
    REPLY_STATUS,
    REPLY_ERROR,
    REPLY_TEXT,
    REPLY_INTEGER,
    REPLY_NIL,
    REPLY_ARRAY, /* Elements are skipped. */
};

struct reply {
    enum reply_type type;
    long long integer;
    char *text; /* NUL-terminated; of STATUS, ERROR and TEXT. */
    size_t text_len;
    size_t text_room;
};

/* A reader that decodes into *reply, which is zeroes and outlives it; NULL
 * without memory.  redisReaderGetReply() then gives a pointer to *reply. */
redisReader *reply_reader(struct reply *reply);

/* Make an existing reader, a redisContext's, do so. */
void reply_attach(struct reply *reply, redisReader *reader);

/* Free the text. */
void reply_done(struct reply *reply);

#endif /* REDLOCK_REPLY_H */
