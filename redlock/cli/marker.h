/*
 * marker.h - looks at the markers of masters besides those of the restart guard
 * itself (guard.h), for commands that tell people of them.
 */
#ifndef REDLOCK_MARKER_H
#define REDLOCK_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/guard.h"
#include "redlock/wire/wire.h"

struct master_info;
struct reply;

/* What a look says: what the guard reads of it, and more. */
struct marker {
    struct guard_look look;
    uint64_t age_ms; /* Warming: since when it has been so, by the master's clock. */
};

/*
 * Write a look; nonce: to be replaced by an epoch, or 0, and floor, what the fencing
 * counters begin with then; masters: how many there are, 0
 * to leave open how many.  Returns its length.
 * Where the greeting was without the guard it is not known what the master keeps,
 * and a look may void an epoch that it has.
 */
size_t marker_look(char buf[WIRE_MAX], const struct master_info *info, uint32_t max_ttl_ms,
                   uint64_t nonce, uint64_t floor, unsigned masters);

/* The answer; false: it is none. */
bool marker_parse(const struct reply *reply, struct marker *ret_marker);

/*
 * What is left of the time that a master must be watched, for somebody who has watched since the
 * nonce was written; all of it where nobody has, or it would have an epoch by now.
 */
drift_span marker_left(drift_span quarantine, uint64_t age_ms);

#endif /* REDLOCK_MARKER_H */
