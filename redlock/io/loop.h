/*
 * loop.h - what a client needs of an event loop, as a table of functions.
 *
 * The table is chosen when a client is opened, so one library can have several kinds of loops.
 * loop_ev.c has the table of libev, loop_poll.c that of one descriptor that any loop can watch. The
 * simulator has one for virtual time.
 */
#ifndef REDLOCK_LOOP_H
#define REDLOCK_LOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "drift/drift.h"

struct ev_loop;
struct loop;
struct watch;

/* The loop calls these. */
struct loop_events {
    /* The time of loop_wake_at() has come. */
    void (*on_timer)(void *cookie);
    /* The loop is about to sleep.  Called once per turn. */
    void (*before_sleep)(void *cookie);
};

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

/* When to try again to watch a descriptor that the kernel refused.  Chosen. */
#define LOOP_AGAIN (50 * DRIFT_MS)

/* A watch has one descriptor and one timer.  Each callback may free the watch. */
struct watch_events {
    void (*on_ready)(void *cookie, unsigned what); /* LOOP_READ, LOOP_WRITE, or both. */
    void (*on_timer)(void *cookie);
};

struct loop_ops {
    void (*free)(struct loop *loop);
    drift_time (*now)(const struct loop *loop);
    void (*wake_at)(struct loop *loop, drift_time at);
    void (*flush_soon)(struct loop *loop); /* NULL: the loop always calls before_sleep(). */
    struct watch *(*watch_new)(struct loop *loop, const struct watch_events *events, void *cookie);
    void (*watch_free)(struct watch *watch);
    void (*watch_fd)(struct watch *watch, int fd, unsigned what);
    bool (*watch_is_refused)(const struct watch *watch);
    void (*watch_timer)(struct watch *watch, drift_span in);
};

/* Every kind of loop begins with this struct. */
struct loop {
    const struct loop_ops *ops;
    void (*kick)(void *cookie); /* NULL: no other thread sleeps in the loop. */
    void *kick_cookie;
};

/* Attach to a libev loop.  NULL: memory or a descriptor was missing; errno says which. */
struct loop *loop_ev_new(struct ev_loop *ev, const struct loop_events *events, void *cookie);

/* Make a loop that runs in loop_poll_dispatch() only.  NULL as above. */
struct loop *loop_poll_new(const struct loop_events *events, void *cookie);

/* A descriptor that is readable while loop_poll_dispatch() has something to do.  It stays the same,
 * and belongs to the loop. */
int loop_poll_fd(const struct loop *loop);

/* Do what is due: descriptors first, then timers, then before_sleep().  It never sleeps.  A
 * callback may free the loop, or call this function. */
void loop_poll_dispatch(struct loop *loop);

static inline void loop_free(struct loop *loop)
{
    loop->ops->free(loop);
}

/* The time now, by the clock of drift_now().  DRIFT_NEVER: the clock failed, so that every lease
 * counts as expired. */
static inline drift_time loop_now(const struct loop *loop)
{
    return loop->ops->now(loop);
}

/* Call on_timer() at this instant, or a little earlier.  This replaces an earlier request.  Called
 * by the loop's thread, or by another thread under the client's mutex. */
static inline void loop_wake_at(struct loop *loop, drift_time at)
{
    loop->ops->wake_at(loop, at);
}

/* There is something to write: before_sleep() must be called before the loop sleeps.  Called
 * between events. */
static inline void loop_flush_soon(struct loop *loop)
{
    if (loop->ops->flush_soon != NULL)
        loop->ops->flush_soon(loop);
}

/* Set the function that wakes the thread that sleeps in the loop. */
static inline void loop_on_kick(struct loop *loop, void (*kick)(void *cookie), void *cookie)
{
    loop->kick = kick;
    loop->kick_cookie = cookie;
}

/* A timer or a descriptor of the loop has changed.  A thread that sleeps in it must see that. */
static inline void loop_kick(struct loop *loop)
{
    if (loop->kick != NULL)
        loop->kick(loop->kick_cookie);
}

/* Make a watch without a descriptor, whose timer is off.  NULL: memory ran out. */
static inline struct watch *watch_new(struct loop *loop, const struct watch_events *events,
                                      void *cookie)
{
    return loop->ops->watch_new(loop, events, cookie);
}

static inline void watch_free(struct loop *loop, struct watch *watch)
{
    loop->ops->watch_free(watch);
}

/* Watch a descriptor for LOOP_READ, LOOP_WRITE or both, in place of the last.  0: stop. */
static inline void watch_fd(struct loop *loop, struct watch *watch, int fd, unsigned what)
{
    loop->ops->watch_fd(watch, fd, what);
}

/* The kernel refuses to watch the descriptor.  The loop tries again, and meanwhile the timeouts of
 * the watch's owner go on. */
static inline bool watch_is_refused(struct loop *loop, const struct watch *watch)
{
    return loop->ops->watch_is_refused(watch);
}

/* Let the timer ring once, after this span.  DRIFT_NEVER turns it off. */
static inline void watch_timer(struct loop *loop, struct watch *watch, drift_span in)
{
    loop->ops->watch_timer(watch, in);
}

#endif /* REDLOCK_LOOP_H */
