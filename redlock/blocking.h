/*
 * blocking.h - the I/O thread of a blocking client, and those who wait for it.
 *
 * One mutex covers the client.  The I/O thread holds it except while its loop
 * sleeps; a calling thread takes it, steps the machine and writes the commands
 * itself, and then sleeps until the I/O thread has read enough answers.  So a
 * lock costs one hand-over between threads, not two.
 */
#ifndef REDLOCK_BLOCKING_H
#define REDLOCK_BLOCKING_H

#include <semaphore.h>
#include <stdbool.h>

#include "drift/drift.h"
#include "redlock/error.h"

struct blocking;
struct ev_loop;
struct redlock;

/* One thread in a blocking call. */
struct waiter {
    sem_t done;
    struct waiter *next;
    int status;
    char message[ERROR_MESSAGE_MAX];
};

/* Prepare the mutex and the loop; NULL without memory. */
struct blocking *blocking_new(struct redlock *rl);
/* Start the thread: OK or E_SYSTEM. */
int blocking_start(struct blocking *blocking);
/* Stop it, not under the mutex.  Then everything that is attached to the loop
 * goes, and then the loop. */
void blocking_stop(struct blocking *blocking);
void blocking_free(struct blocking *blocking);
/* In the child of a fork, where there is no thread any more: whether it held
 * no mutex, and so left everything whole. */
bool blocking_was_idle(struct blocking *blocking);

struct ev_loop *blocking_loop(struct blocking *blocking);
void blocking_lock(struct blocking *blocking);
void blocking_unlock(struct blocking *blocking);

/* Under the mutex: whether so many calls are under way that writing is better
 * left to the I/O thread, which then does it for several of them at once. */
bool blocking_is_crowded(const struct blocking *blocking);

/* Whether the caller is the I/O thread itself, which must not wait for itself. */
bool blocking_is_self(const struct blocking *blocking);

/* Under the mutex: wait until the client has no leases left, at most so long. */
void blocking_wait_idle(struct blocking *blocking, drift_span at_most);
/* Under the mutex: it has none, or a callback returned. */
void blocking_idle(struct blocking *blocking);
/* Under the mutex: wait for the above. */
void blocking_wait_change(struct blocking *blocking);

/* Under the mutex: a call begins to wait. */
void blocking_begin_wait(struct blocking *blocking, struct waiter *waiter);
/* Not under the mutex: until it is woken, and then its status. */
int blocking_end_wait(struct waiter *waiter);

/* Under the mutex: tell a waiter how it ended; the thread's message goes along.
 * Those that the I/O thread wakes run when it has given up the mutex, or they
 * would only line up for it. */
void blocking_wake(struct blocking *blocking, struct waiter *waiter, int status);

#endif /* REDLOCK_BLOCKING_H */
