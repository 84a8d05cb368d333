/*
 * trial.h - whether a master that may vote would give its vote now: it takes writes of this user,
 * and answers within the reply timeout.  For what is shown, not for locks.
 *
 * A lock needs no such question, since a master that refuses a SET says so itself.  But a command
 * that only reads would call this master up.
 */
#ifndef REDLOCK_TRIAL_H
#define REDLOCK_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/client/inspect.h"

struct reply;

/* A busy machine may be late once.  A lock has several attempts, too. */
#define TRIAL_TIMES_MAX 3 /* Chosen. */

/* The numbers of its queries. */
enum { TRIAL_WRITE = 0x10000, TRIAL_PROVE };

struct trial {
    unsigned times; /* How often the write was tried. */
    drift_time asked_at;
    drift_span round_trip; /* The shortest of them.  0: none was answered. */
    struct remark refusal; /* It refuses writes, or an ACL forbids this user what each lock needs.
                            * MSG_NONE: neither is so. */
};

/* The words of TRIAL_PROVE, which is sent once, with the restart guard. */
extern const char *const trial_to_prove[];

/* Begin to measure.  Returns the words of TRIAL_WRITE, to be sent now.  They change nothing. */
const char *const *trial_begin(struct trial *trial);

/* Take an answer to either query.  True: the write is to be tried again. */
bool trial_take(struct trial *trial, uint32_t query, const struct reply *reply,
                uint32_t reply_timeout_ms);

static inline bool trial_is_query(uint32_t query)
{
    return query == TRIAL_WRITE || query == TRIAL_PROVE;
}

/* True: answers come too late for a lock. */
static inline bool trial_is_late(drift_span round_trip, uint32_t reply_timeout_ms)
{
    return round_trip > (drift_span)reply_timeout_ms * DRIFT_MS;
}

/* The same in words. */
struct remark trial_lateness(const struct trial *trial, uint32_t reply_timeout_ms);

#endif /* REDLOCK_TRIAL_H */
