/*
 * loop.h - the seam between a client and the loop that drives it.
 *
 * loop_ev.c is libev; the simulator links a loop of its own, with virtual time.
 */
#ifndef REDLOCK_LOOP_H
#define REDLOCK_LOOP_H

#include "drift/drift.h"

struct ev_loop;
struct loop;

/* All are called from the loop. */
struct loop_events {
    /* The time of loop_wake_at() has come. */
    void (*on_timer)(void *cookie);
    /* The loop is about to sleep: once per turn. */
    void (*before_sleep)(void *cookie);
};

/* Attach to a loop.  NULL without memory or a descriptor: errno says which. */
struct loop *loop_new(struct ev_loop *ev, const struct loop_events *events, void *cookie);
void loop_free(struct loop *loop);

/* Call this where another thread may sleep in the loop, which must look again before it sleeps
 * on. */
void loop_on_kick(struct loop *loop, void (*kick)(void *cookie), void *cookie);

/* The time now, from the clock that decides; DRIFT_NEVER, by which every lease is over, if the
 * clock fails. */
drift_time loop_now(const struct loop *loop);

/* Call on_timer() at this instant, or a little earlier; replaces what was asked before.  From the
 * loop's thread, or from another one under the client's mutex. */
void loop_wake_at(struct loop *loop, drift_time at);

/* Something changed behind the loop's back, from another thread, under the client's mutex. */
void loop_kick(struct loop *loop);

#endif /* REDLOCK_LOOP_H */
