/*
 * troubles.h - lists what is wrong with masters, for a message; pure.
 *
 * Masters with the same reason become one group, so that a message stays short when all masters
 * are down: "masters 1 and 3 (10.0.0.1:6379, 10.0.0.3:6379): Connection refused; master 4
 * (10.0.0.4:6379): no answer within 50 ms".  A group names the places of its first masters.
 */
#ifndef REDLOCK_TROUBLES_H
#define REDLOCK_TROUBLES_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/base/error.h"
#include "redlock/base/reason.h"
#include "redlock/core/members.h"

struct trouble {
    const char *name;  /* The place of the master: "10.0.0.5:6379". */
    struct reason why; /* What is wrong with it.  NONE: nothing. */
    bool decides;      /* So few voted for this reason.  Equal for equal reasons. */
};

/*
 * Find the reasons for which a call failed: those of the masters that decided (outlook.h).  Remove
 * the troubles of masters that have not answered yet and may still do so, unless their votes would
 * have been enough.  No vote is enough if none of the members decided: the list is wrong.  Without
 * members all masters are needed, to found a set.
 */
void troubles_weigh(struct trouble *troubles, unsigned troubles_len, const struct members *members,
                    quorum_mask deciding);

/*
 * Write the troubles, by groups; masters are numbered from 1.  The groups that decide come first,
 * and of two such groups, or of two others, the one with more masters.  Reasons that differ only in
 * the time until they may be over are one reason, with the longest of the times.  If the places of
 * a group do not fit into buf, only its numbers are written.  "..." stands for all groups that do
 * not fit.  size must be at least 16, and troubles_len at most QUORUM_MASTERS_MAX.  *ret_parts:
 * where each group begins.
 */
void troubles_list(const struct trouble *troubles, unsigned troubles_len, drift_time now, char *buf,
                   size_t size, struct error_parts *ret_parts);

#endif /* REDLOCK_TROUBLES_H */
