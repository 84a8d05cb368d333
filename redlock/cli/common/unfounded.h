/*
 * unfounded.h - what masters are worth that are in no set yet: for what is shown, not for locks.
 *
 * A lock founds the set.  status and list only look, and found none.
 */
#ifndef REDLOCK_UNFOUNDED_H
#define REDLOCK_UNFOUNDED_H

#include <stdbool.h>

#include "redlock/base/mask.h"

struct inspect_client;
struct redlock;

/* True: no set is known, and none can be founded, so no lock is granted, whatever a majority says:
 * all masters of the list must answer and take writes.  able: those that do. */
bool unfounded_is_stuck(const struct inspect_client *client, quorum_mask able);

/* True: a master has said that it is in no set. */
bool unfounded_is_told(struct redlock *rl);

/* True: all masters are new and durable, so the first client that wants a lock gets it at once. */
bool unfounded_is_new(struct redlock *rl);

#endif /* REDLOCK_UNFOUNDED_H */
