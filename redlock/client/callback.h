/*
 * callback.h - the callbacks of a program, done and lost, of the leases for which they are due.
 */
#ifndef REDLOCK_CALLBACK_H
#define REDLOCK_CALLBACK_H

#include <stdbool.h>

struct redlock;

/*
 * Run the callbacks that are due, between events.  False: one of them closed the client.
 *
 * A callback that becomes due meanwhile runs in the next turn of the loop.  Else a lock that fails
 * at once, and is tried again in its callback, would never end.  A callback that runs the loop
 * itself may wait there for any other callback, also of its own lease.
 */
bool callback_run_due(struct redlock *rl);

#endif /* REDLOCK_CALLBACK_H */
