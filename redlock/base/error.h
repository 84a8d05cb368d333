/*
 * error.h - the texts of statuses, and the message of a failure.
 *
 * The message belongs to the calling thread, as errno does.  So it needs no lock and no client.
 * redlock_errmsg() returns it.  The function that fails composes it, and its callers put their own
 * words before it: "acquire jobs/7: too few masters could vote: master 2 (10.0.0.3:6379):
 * Connection refused".
 */
#ifndef REDLOCK_ERROR_H
#define REDLOCK_ERROR_H

#include <stddef.h>
#include <stdint.h>

#include "redlock/base/blame.h"
#include "redlock/base/message.h"
#include "redlock/redlock.h"

#define ERROR_MESSAGE_MAX 512 /* In bytes, with the NUL.  A longer message ends in "...". */

/* The reasons that a message lists, one behind the other: where each begins, and what people look
 * up about it.  "; " stands between two.  The command prints a line for each. */
struct error_part {
    uint16_t at;     /* Where it begins in the text. */
    uint8_t message; /* enum msg. */
};
struct error_parts {
    struct error_part list[REDLOCK_MASTERS_MAX];
    uint8_t len;
};

struct error {
    char text[ERROR_MESSAGE_MAX];
    uint16_t inner; /* Where the text begins behind what error_wrap() put before it. */
    struct error_parts parts;
    struct blame blame; /* The same masters, for programs. */
};

/* The code, the identifier and the text of every status. */
#define ERROR_STATUSES(X)                                                               \
    X(REDLOCK_OK, NONE, "success")                                                      \
    X(REDLOCK_CONTENDED, HELD, "another client holds it, or another lease of this one") \
    X(REDLOCK_UNREACHABLE, NO_MAJORITY, "too few masters could vote")                   \
    X(REDLOCK_TOO_LATE, TOO_LATE, "no validity left when the majority had answered")    \
    X(REDLOCK_LOST, LOST, "the lock is not held any more")                              \
    X(REDLOCK_INTERRUPTED, INTERRUPTED, "redlock_interrupt() ended the call")           \
    X(REDLOCK_NOT_READY, WARMING, "too few masters may vote yet")                       \
    X(REDLOCK_E_INVAL, WRONG_ARGUMENT, "invalid argument")                              \
    X(REDLOCK_E_NOMEM, NO_MEMORY, "out of memory")                                      \
    X(REDLOCK_E_STATE, WRONG_STATE, "not allowed in this state")                        \
    X(REDLOCK_E_SYSTEM, SYSTEM, "the system refused a clock, a thread, or entropy")     \
    X(REDLOCK_E_FORBIDDEN, NO_RIGHT, "too few masters allow it to this user")           \
    X(REDLOCK_E_WRONG_SET, WRONG_SET, "the list of masters does not fit their set")

/* The kind of a status of the library.  REDLOCK_OK, or an unknown one: MSG_NONE. */
enum msg message_of_status(int status);

/* Empty the thread's message. */
void error_clear(void);

/* Replace the thread's message.  Returns status, for "return error_set(REDLOCK_E_INVAL, ...)". */
int error_set(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put "prefix: " before the thread's message.  Returns status. */
int error_wrap(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put ": " and a list of reasons behind the thread's message.  "": there is none. */
void error_list(const struct error *list);

/* Text was put before a list of reasons. */
void error_shift(struct error_parts *parts, size_t by);

/* Keep the thread's message, and make a kept one that of this thread, also of another thread.
 * error_pass_on() returns status. */
void error_save(struct error *ret_error);
int error_pass_on(int status, const struct error *error);

/* The thread's message.  "": there is none. */
const char *error_message(void);

/* What it was before error_wrap() put words before it for the last time; or all of it. */
const char *error_inner(void);

/* The reasons that it lists.  One that begins behind the end of the message was cut off. */
const struct error_parts *error_parts(void);

/* The masters that it blames.  NULL: none, or there is no message. */
const struct blame *error_blamed(void);

#endif /* REDLOCK_ERROR_H */
