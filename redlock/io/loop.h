/*
 * loop.h - what a client needs of an event loop, as a table of functions.
 *
 * The table is chosen when a client is opened, so that several kinds of loops can be in one
 * library: loop_ev.c is libev.  The simulator links a table of its own, in virtual time.
 */
#ifndef REDLOCK_LOOP_H
#define REDLOCK_LOOP_H

#include <stddef.h>

#include "drift/drift.h"

struct ev_loop;
struct loop;
struct watch;

/* All are called from the loop. */
struct loop_events {
    /* The time of loop_wake_at() has come. */
    void (*on_timer)(void *cookie);
    /* The loop is about to sleep: once per turn. */
    void (*before_sleep)(void *cookie);
};

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

/* Of a watch: one descriptor and one timer.  After each of these the watch may be gone. */
struct watch_events {
    void (*on_ready)(void *cookie, unsigned what); /* LOOP_READ, LOOP_WRITE, or both. */
    void (*on_timer)(void *cookie);
};

struct loop_ops {
    void (*free)(struct loop *loop);
    drift_time (*now)(const struct loop *loop);
    void (*wake_at)(struct loop *loop, drift_time at);
    struct watch *(*watch_new)(struct loop *loop, const struct watch_events *events, void *cookie);
    void (*watch_free)(struct watch *watch);
    void (*watch_fd)(struct watch *watch, int fd, unsigned what);
    void (*watch_timer)(struct watch *watch, drift_span in);
};

/* What each kind of loop begins with. */
struct loop {
    const struct loop_ops *ops;
    void (*kick)(void *cookie); /* NULL: no other thread sleeps in the loop. */
    void *kick_cookie;
};

/* Attach to a libev loop.  NULL without memory or a descriptor: errno says which. */
struct loop *loop_ev_new(struct ev_loop *ev, const struct loop_events *events, void *cookie);

static inline void loop_free(struct loop *loop)
{
    loop->ops->free(loop);
}

/* The time now, from the clock that decides; DRIFT_NEVER, by which every lease is over, if the
 * clock fails. */
static inline drift_time loop_now(const struct loop *loop)
{
    return loop->ops->now(loop);
}

/* Call on_timer() at this instant, or a little earlier; replaces what was asked before.  From the
 * loop's thread, or from another one under the client's mutex. */
static inline void loop_wake_at(struct loop *loop, drift_time at)
{
    loop->ops->wake_at(loop, at);
}

/* Call this where another thread may sleep in the loop, which must look again before it sleeps
 * on. */
static inline void loop_on_kick(struct loop *loop, void (*kick)(void *cookie), void *cookie)
{
    loop->kick = kick;
    loop->kick_cookie = cookie;
}

/* Something changed behind the loop's back, from another thread, under the client's mutex. */
static inline void loop_kick(struct loop *loop)
{
    if (loop->kick != NULL)
        loop->kick(loop->kick_cookie);
}

/* A watch that watches nothing yet, with a timer that is off; NULL without memory. */
static inline struct watch *watch_new(struct loop *loop, const struct watch_events *events,
                                      void *cookie)
{
    return loop->ops->watch_new(loop, events, cookie);
}

static inline void watch_free(struct loop *loop, struct watch *watch)
{
    loop->ops->watch_free(watch);
}

/* Watch a descriptor for this, in place of what was watched; 0: for nothing. */
static inline void watch_fd(struct loop *loop, struct watch *watch, int fd, unsigned what)
{
    loop->ops->watch_fd(watch, fd, what);
}

/* Have the timer ring once, so long from now; DRIFT_NEVER turns it off. */
static inline void watch_timer(struct loop *loop, struct watch *watch, drift_span in)
{
    loop->ops->watch_timer(watch, in);
}

#endif /* REDLOCK_LOOP_H */
