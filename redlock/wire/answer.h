/*
 * answer.h - what the answers say that are no votes; pure.
 */
#ifndef REDLOCK_ANSWER_H
#define REDLOCK_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/guard.h"
#include "redlock/wire/reply.h"

/* The answer to a look at the marker; false: it is none. */
bool answer_look(const struct reply *reply, struct guard_look *ret_look);

/* The longest lease, as a marker has it; false: it is none that a client may have. */
bool answer_max(const char *text, uint32_t *ret_max_ttl_ms);

/* The answer to TIME, in microseconds since 1970; false: it is none. */
bool answer_time(const struct reply *reply, uint64_t *ret_us);

#endif /* REDLOCK_ANSWER_H */
