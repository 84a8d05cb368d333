/*
 * answer.h - reads the answers that are not votes; pure.
 */
#ifndef REDLOCK_ANSWER_H
#define REDLOCK_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/founder.h"
#include "redlock/core/guard.h"
#include "redlock/wire/reply.h"

/* Read the marker from the answer.  Returns false if the answer is malformed. */
bool answer_look(const struct reply *reply, struct guard_look *ret_look);

/* Read the answer of SCRIPT_WITNESS: an age in ms, or -1.  Returns false if it is malformed or an
 * error. */
bool answer_witness(const struct reply *reply, int64_t *ret_age_ms);

/* Read the longest lease from a marker's field.  Returns false if no client may have such a
 * lease. */
bool answer_max(const char *text, uint32_t *ret_max_ttl_ms);

/* Read the answer of SCRIPT_CLAIM, to CLAIM or LOOK.  Its text is that of the reply.  Returns false
 * if the answer is malformed. */
bool answer_claim(const struct reply *reply, struct founder_answer *ret_answer);

/* Read the answer of SCRIPT_FOUND or SCRIPT_WITHDRAW.  Returns false if it is malformed. */
bool answer_done(const struct reply *reply, struct founder_answer *ret_answer);

/* Read the answer to TIME, in microseconds since 1970.  Returns false if the answer is malformed.
 */
bool answer_time(const struct reply *reply, uint64_t *ret_us);

#endif /* REDLOCK_ANSWER_H */
