/*
 * mutex.h - the kind of mutex and of conditions that a blocking client has.
 */
#ifndef REDLOCK_CLIENT_MUTEX_H
#define REDLOCK_CLIENT_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

#include "drift/drift.h"

/* Make the mutex adaptive where the C library can: a thread spins a little before it sleeps.  For a
 * mutex that is held for microseconds. */
void mutex_make(pthread_mutex_t *mutex);
/* Its waits have their limits on CLOCK_MONOTONIC. */
void mutex_make_condition(pthread_cond_t *cond);

/* Give up the mutex until cond is signalled.  DRIFT_NEVER: without a time limit.  Returns false if
 * the time passed without a signal. */
bool mutex_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, drift_span at_most);

#endif /* REDLOCK_CLIENT_MUTEX_H */
