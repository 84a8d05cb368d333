/*
 * error.h - status texts, and the message that goes with a failure.
 *
 * The message belongs to the calling thread, as errno does, and so needs no
 * lock and no client: redlock_errmsg() hands it out.  It is composed where
 * something went wrong, and wrapped on the way up: "acquire jobs/7: too few
 * masters answered: master 2 (10.0.0.3:6379): Connection refused".
 */
#ifndef REDLOCK_ERROR_H
#define REDLOCK_ERROR_H

#include "redlock/redlock.h"

#define ERROR_MESSAGE_MAX 512 /* Bytes, NUL included; longer ones end in "...". */

/* Code, name and text of every status, in one place. */
#define ERROR_STATUSES(X)                                                  \
    X(REDLOCK_OK, "success")                                               \
    X(REDLOCK_CONTENDED, "held by another owner")                          \
    X(REDLOCK_UNREACHABLE, "too few masters answered")                     \
    X(REDLOCK_TOO_LATE, "no validity left when the majority had answered") \
    X(REDLOCK_LOST, "the lock is not held any more")                       \
    X(REDLOCK_E_INVAL, "invalid argument")                                 \
    X(REDLOCK_E_NOMEM, "out of memory")                                    \
    X(REDLOCK_E_STATE, "not allowed in this state")                        \
    X(REDLOCK_E_SYSTEM, "the system refused a clock, a thread, or entropy")

/* Make the thread's message empty. */
void error_clear(void);

/* Replace the thread's message; returns status, so that one can write
 * "return error_set(REDLOCK_E_INVAL, ...)". */
int error_set(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put "prefix: " before the thread's message; returns status. */
int error_wrap(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The thread's message; "" if there is none. */
const char *error_message(void);

/*
 * Write a name for a person to read: printable ASCII as it is, all else
 * (and the backslash) as \xHH, cut with "..." where size does not allow more.
 * Returns buf.  size >= 8.
 */
const char *error_quote(const char *name, size_t name_len, char *buf, size_t size);

#endif /* REDLOCK_ERROR_H */
