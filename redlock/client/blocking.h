/*
 * blocking.h - calls that wait, and the client's thread for the time without calls.
 *
 * One mutex covers the client.  A calling thread takes it, steps the machine, and writes the
 * commands.  Then it runs the loop itself until the answers have come.  If another call runs the
 * loop already, the thread sleeps.  It is woken when its operation is over, or when it must run the
 * loop.  So a lock without concurrent calls costs no hand-over between threads.
 *
 * The client's own thread runs the loop when there was no call for a while: leases are renewed
 * while their holders compute.  It also runs the callbacks.
 *
 * In a crowd of calls it runs the loop as well, and then it also begins the calls.  A calling
 * thread hands its call in without the mutex, and sleeps until the operation is over.  So the
 * threads do not contend for the mutex, and the commands of many calls go out together.
 */
#ifndef REDLOCK_BLOCKING_H
#define REDLOCK_BLOCKING_H

#include <stdbool.h>

#include "drift/drift.h"
#include "redlock/client/waiter.h"

struct blocking;
struct ev_loop;

/* What the thread needs of the client.  Called under the mutex. */
struct blocking_events {
    /* Begin a call that was handed in.  The caller's thread sleeps. */
    enum begun (*begin)(void *cookie, struct waiter *waiter);
    void (*flush)(void *cookie); /* Write to all masters, and set the loop's timer. */
    void (*run_callbacks)(void *cookie);
    bool (*has_callbacks)(void *cookie);
    bool (*has_leases)(void *cookie);
    /* End the calls that an interrupt ends.  Returns false if none is under way. */
    bool (*interrupt)(void *cookie);
    /* The time until the next alarm.  DRIFT_NEVER: no alarm is set. */
    drift_span (*alarm_in)(void *cookie);
};

/* Prepare the mutex and the loop.  NULL: memory or a descriptor was missing; errno says which. */
struct blocking *blocking_new(const struct blocking_events *events, void *cookie);
/* Start the thread.  Returns OK or E_SYSTEM. */
int blocking_start(struct blocking *blocking);
/* blocking_stop() ends the thread; call it without the mutex.  Then free everything that is
 * attached to the loop, and then call blocking_free(). */
void blocking_stop(struct blocking *blocking);
void blocking_free(struct blocking *blocking);
/* Call it in the child of a fork, where the thread does not exist.  Returns true if no thread
 * held the mutex at the fork, so that all data are whole. */
bool blocking_was_idle(struct blocking *blocking);

struct ev_loop *blocking_loop(struct blocking *blocking);
void blocking_lock(struct blocking *blocking);
void blocking_unlock(struct blocking *blocking);

/* Under the mutex: wake the loop, so that it checks again before it sleeps. */
void blocking_kick(void *blocking);
/* Under the mutex: tell the thread that callbacks are due. */
void blocking_call_thread(struct blocking *blocking);

/* Under the mutex: whether many calls are under way.  Then the thread that runs the loop should
 * write, for several calls at once. */
bool blocking_is_crowded(const struct blocking *blocking);

/* Interrupt the calls under way, or else the next one.  Without the mutex, from any thread and from
 * a signal handler. */
void blocking_interrupt(struct blocking *blocking);
/* Under the mutex: whether the call that begins is interrupted.  Each interrupt is taken once. */
bool blocking_is_interrupted(struct blocking *blocking, const struct waiter *waiter);

/* Whether the caller is the client's own thread, which must not wait for itself. */
bool blocking_is_self(const struct blocking *blocking);

/* Under the mutex: wait until the client has no leases, or until the time is over. */
void blocking_wait_idle(struct blocking *blocking, drift_span at_most);
/* Under the mutex: report that the client has no leases, or that a callback returned. */
void blocking_idle(struct blocking *blocking);
/* Under the mutex: wait for a blocking_idle(). */
void blocking_wait_change(struct blocking *blocking);

/* Without the mutex: hand the call in, whose waiter is prepared, and wait until it is over.
 * ret_status is its status. Returns false if no thread takes calls; then the caller has the mutex,
 * and begins it itself. */
bool blocking_hand_in(struct blocking *blocking, struct waiter *waiter, int *ret_status);

/* Under the mutex: the operation of the call is under way. */
void blocking_begin_wait(struct blocking *blocking, struct waiter *waiter);
/* Under the mutex, which it gives up: wait until the call is over.  Returns the status of the
 * call. */
int blocking_wait(struct blocking *blocking, struct waiter *waiter);

/* Under the mutex: end a call with this status and with the thread's message.  The caller is
 * woken after the mutex was given up.  Otherwise it would wake only to wait for the mutex. */
void blocking_wake(struct blocking *blocking, struct waiter *waiter, int status);

#endif /* REDLOCK_BLOCKING_H */
