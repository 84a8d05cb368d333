/*
 * callback.h - runs the program's callbacks, done and lost, that are due.
 */
#ifndef REDLOCK_CALLBACK_H
#define REDLOCK_CALLBACK_H

#include <stdbool.h>

struct redlock;

/*
 * Run the callbacks that are due, between events.  Returns false if one of them closed the client.
 *
 * A callback that becomes due meanwhile runs in the next turn of the loop.  Otherwise a lock that
 * fails at once, and is tried again in its callback, would never end.  A callback may run the loop
 * itself and wait there for any other callback, also for one of its own lease.
 */
bool callback_run_due(struct redlock *rl);

#endif /* REDLOCK_CALLBACK_H */
