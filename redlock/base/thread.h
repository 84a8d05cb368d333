/*
 * thread.h - starts the threads of the library.
 */
#ifndef REDLOCK_THREAD_H
#define REDLOCK_THREAD_H

#include <pthread.h>

/* Start a thread that blocks all signals, which are for the program's own threads.  Its stack is at
 * least as large as the program's default, without the thread-local data that glibc keeps there.
 * ret_thread NULL: nobody will join the thread.  Returns 0 or an error of pthread_create(). */
int thread_start(pthread_t *ret_thread, void *(*run)(void *arg), void *arg);

#endif /* REDLOCK_THREAD_H */
