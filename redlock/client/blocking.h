/*
 * blocking.h - calls that wait, and the thread that is there when none does.
 *
 * One mutex covers the client.  A calling thread takes it, steps the machine,
 * writes the commands, and then runs the loop itself until the answers have
 * come; if another call does so already, it sleeps, and is woken when it is
 * done, or when it is its turn to run the loop.  So a lock with nobody else
 * about costs no hand-over between threads at all.
 *
 * The client's own thread runs the loop when nobody has called for a while -
 * leases are renewed while their holders compute - and runs the callbacks.
 */
#ifndef REDLOCK_BLOCKING_H
#define REDLOCK_BLOCKING_H

#include <semaphore.h>
#include <stdbool.h>

#include "drift/drift.h"
#include "redlock/base/error.h"

struct blocking;
struct ev_loop;

/* What the thread needs of the client, under the mutex. */
struct blocking_events {
    void (*flush)(void *cookie); /* And tell the loop when to ring. */
    void (*run_callbacks)(void *cookie);
    bool (*has_callbacks)(void *cookie);
    bool (*has_leases)(void *cookie);
    drift_span (*alarm_in)(void *cookie); /* DRIFT_NEVER: no alarm is set. */
};

/* One thread in a blocking call. */
struct waiter {
    struct waiter *before, *after; /* In the order in which they came. */
    struct waiter *next_woken;
    sem_t woken;  /* Posted once, if at all: */
    bool serves;  /* to run the loop, */
    bool is_done; /* or because it is over. */
    int status;
    char message[ERROR_MESSAGE_MAX];
};

/* Prepare the mutex and the loop.  NULL without memory or a descriptor: errno says which. */
struct blocking *blocking_new(const struct blocking_events *events, void *cookie);
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

/* Under the mutex: the loop must look again before it sleeps on. */
void blocking_kick(struct blocking *blocking);
/* Under the mutex: there are callbacks for the thread to run. */
void blocking_call_thread(struct blocking *blocking);

/* Under the mutex: whether so many calls are under way that writing is better
 * left to who runs the loop, and then does it for several of them at once. */
bool blocking_is_crowded(const struct blocking *blocking);

/* Whether the caller is the client's own thread, which must not wait for itself. */
bool blocking_is_self(const struct blocking *blocking);

/* Under the mutex: wait until the client has no leases left, at most so long. */
void blocking_wait_idle(struct blocking *blocking, drift_span at_most);
/* Under the mutex: it has none, or a callback returned. */
void blocking_idle(struct blocking *blocking);
/* Under the mutex: wait for the above. */
void blocking_wait_change(struct blocking *blocking);

/* Under the mutex: a call begins. */
void blocking_begin_wait(struct blocking *blocking, struct waiter *waiter);
/* Under the mutex, which it gives up: wait until the call is over, and return its status. */
int blocking_wait(struct blocking *blocking, struct waiter *waiter);

/* Under the mutex: tell a waiter how it ended; the thread's message goes along.
 * It runs when the mutex has been given up, or it would only line up for it. */
void blocking_wake(struct blocking *blocking, struct waiter *waiter, int status);

#endif /* REDLOCK_BLOCKING_H */
