/*
 * loop.h - the seam between the client and the loop that drives it.
 *
 * loop_ev.c is libev; the simulator links a loop of its own, with virtual
 * time.  Chosen when linking, so there are no tables of function pointers.
 */
#ifndef REDLOCK_LOOP_H
#define REDLOCK_LOOP_H

#include "drift/drift.h"

struct ev_loop;
struct loop;
struct redlock;

/*
 * Attach a client to a loop, which will call client_on_timer() when the time
 * of loop_wake_at() has come, and client_flush() once per turn, before it
 * sleeps.  NULL without memory or a descriptor: errno says which.
 */
struct loop *loop_new(struct redlock *rl, struct ev_loop *ev);
void loop_free(struct loop *loop);

/* The time now, from the clock that decides; DRIFT_NEVER, by which every lease
 * is over, should the clock fail. */
drift_time loop_now(const struct loop *loop);

/* Call client_on_timer() at this instant, or a little earlier; replaces what
 * was asked before.  From the loop's thread, or from another one under the
 * client's mutex. */
void loop_wake_at(struct loop *loop, drift_time at);

/* Something changed behind the loop's back, from another thread, under the
 * client's mutex: the loop must look again before it sleeps on. */
void loop_kick(struct loop *loop);

#endif /* REDLOCK_LOOP_H */
