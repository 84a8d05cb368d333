/*
 * reader.h - decodes bytes into replies, with hiredis' parser.
 *
 * All replies of a reader use one struct, so that no reply costs an allocation.  Only the latest is
 * kept.  Its buffer grows to the longest text so far, up to REPLY_TEXT_MAX.  A longer text makes
 * the reader fail, as malformed input does.  So does an array with more elements than
 * REPLY_ELEMENTS_MAX, or one deeper than REPLY_DEPTH_MAX.
 */
#ifndef REDLOCK_READER_H
#define REDLOCK_READER_H

#include <stdbool.h>

#include "redlock/base/reason.h"
#include "redlock/wire/reply.h"

/* INFO takes 5 KiB, and some 40 bytes for each database in use, each replica, and each kind of
 * error.  Chosen: twenty thousand of these fit, and the texts of one link take 2 MiB at most. */
#define REPLY_TEXT_MAX (1024 * 1024)
#define REPLY_ELEMENTS_MAX 1024 /* Of one array.  Chosen: no answer that we need comes close. */
#define REPLY_DEPTH_MAX 4       /* Arrays in arrays.  Chosen: hiredis 1 allocates for each level. */

struct redisReader; /* Defined by hiredis. */

/* Make a reader that decodes into *reply, which begins as zeroes and outlives the reader.
 * redisReaderGetReply() returns a pointer to it.  NULL: memory ran out. */
struct redisReader *reader_new(struct reply *reply);

/* True if the reader has buffered more than any reply that it accepts.  hiredis buffers up to half
 * a GiB for one text.  So check this after each feed, when all complete replies were taken. */
bool reader_overflows(const struct redisReader *reader);

/* Why the reader failed. */
void reader_explain(const struct redisReader *reader, struct reason *ret_why);

/*
 * Hide the password in an error, because errors are shown.  A master, or somebody who answers in
 * its place, may repeat what it was told.  What reader_known_len() counts stays, because it decides
 * what is done.  NULL: there is no password.
 */
void reader_hide(struct reply *reply, const char *password);

/* The length of the beginning of an error that Redis itself has written, whatever the password is:
 * its code, or a whole sentence about passwords.  0: there is none. */
size_t reader_known_len(const char *error);

/* Free the texts of a reply. */
void reader_forget(struct reply *reply);

#endif /* REDLOCK_READER_H */
