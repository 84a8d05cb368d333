/*
 * redis_error.h - what an error of Redis means; pure.
 *
 * The one place that decides it, when the error arrives.  link/reader.c and base/text.c know some
 * of its words, too, to hide a password and to cut what says nothing.
 */
#ifndef REDLOCK_REDIS_ERROR_H
#define REDLOCK_REDIS_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/base/reason.h"

struct reply;

/* The kind of an error of Redis 5 to 8 or of Valkey: WHY_ERROR, or one of those that begin so. */
enum why redis_error_kind(const char *text);

/* The length of the code with which an error begins, if Redis has it.  0: it has none. */
size_t redis_error_code_len(const char *error);

/* What an ACL forbids, of an error that says NOPERM. */
enum redis_right { RIGHT_TO_COMMAND, RIGHT_TO_KEY, RIGHT_TO_CHANNEL };
enum redis_right redis_error_right(const char *text);

/* True: it is the kind of an error of Redis. */
bool redis_error_is(enum why why);

/* Make a reason that quotes it. */
void redis_error_reason(struct reason *ret_reason, const char *text);

/* What is wrong with a reply that was not to be expected: an error, or garbage. */
void reply_reason(const struct reply *reply, struct reason *ret_reason);

#endif /* REDLOCK_REDIS_ERROR_H */
