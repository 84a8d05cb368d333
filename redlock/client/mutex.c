/*
 * mutex.c - see mutex.h.
 */
#include "redlock/client/mutex.h"

#include <errno.h>
#include <time.h>

void mutex_make(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;

    (void)pthread_mutexattr_init(&attr);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    (void)pthread_mutex_init(mutex, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

void mutex_make_condition(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

bool mutex_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, drift_span at_most)
{
    struct timespec until;

    if (at_most == DRIFT_NEVER)
        return pthread_cond_wait(cond, mutex) != ETIMEDOUT;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(at_most / DRIFT_S);
    until.tv_nsec += (long)(at_most % DRIFT_S);
    if (until.tv_nsec >= (long)DRIFT_S) {
        until.tv_nsec -= (long)DRIFT_S;
        until.tv_sec++;
    }
    return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}
