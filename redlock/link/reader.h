/*
 * reader.h - bytes to replies: hiredis' parser, decoding into one struct that is used again and
 * again, so that no reply costs an allocation.
 *
 * Only the newest reply of a reader is kept.  Text is copied into a buffer that grows to the
 * longest reply seen, and never past REPLY_TEXT_MAX.  A longer text, an array with more elements
 * than REPLY_ELEMENTS_MAX, or one deeper than REPLY_DEPTH_MAX makes the reader fail, as malformed
 * input does.
 */
#ifndef REDLOCK_READER_H
#define REDLOCK_READER_H

#include <stdbool.h>

#include "redlock/wire/reply.h"

/* INFO takes 5 KiB, and some 40 bytes more for each database that is in use, each replica, and
 * each kind of error.  Chosen: twenty thousand of these fit, and 16 masters that each send as much
 * as they may take 32 MiB. */
#define REPLY_TEXT_MAX (1024 * 1024)
#define REPLY_ELEMENTS_MAX 1024 /* Of any array; nothing that we send is answered by one. */
#define REPLY_DEPTH_MAX 4 /* Of arrays in arrays; hiredis 1 would allocate for each, unbounded. */

#define READER_TOO_LONG "sent an answer that is too long"

struct redisReader; /* hiredis'; only reader.c needs its insides. */

/* A reader that decodes into *reply, which is zeroes and outlives it; NULL without memory.
 * redisReaderGetReply() then gives a pointer to *reply. */
struct redisReader *reader_new(struct reply *reply);

/* Whether the reader has buffered more than any reply that it could accept.  hiredis hands over a
 * text only when all of it has come, up to half a GiB, so this must be asked whenever bytes were
 * fed and all whole replies taken. */
bool reader_overflows(const struct redisReader *reader);

/* Whether it failed because a text was too long, which hiredis takes for a lack of memory. */
bool reader_met_too_long(const struct redisReader *reader);

/* Free the texts of a reply. */
void reader_forget(struct reply *reply);

#endif /* REDLOCK_READER_H */
