/*
 * libevent.h - a pollable client of redlock on a loop of libevent 2.
 */
#ifndef REDLOCK_ADAPTERS_LIBEVENT_H
#define REDLOCK_ADAPTERS_LIBEVENT_H

#include <event2/event.h>
#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline void redlock_libevent_on_readable(evutil_socket_t fd, short what, void *rl)
{
    (void)fd, (void)what;
    (void)redlock_dispatch((struct redlock *)rl);
}

/* Let the loop run the client.  NULL: memory ran out, the client is not pollable, or libevent
 * refused. A loop with a client does not end by itself: event_base_dispatch() returns after
 * event_base_loopbreak(), or after redlock_libevent_detach(). */
static inline struct event *redlock_libevent_attach(struct redlock *rl, struct event_base *base)
{
    int fd = redlock_fd(rl);
    struct event *event =
        fd >= 0 ? event_new(base, fd, EV_READ | EV_PERSIST, redlock_libevent_on_readable, rl)
                : NULL;

    if (event == NULL || event_add(event, NULL) == 0)
        return event;
    event_free(event);
    return NULL;
}

/* Take the client from the loop, before redlock_close().  It may be called from a callback. */
static inline void redlock_libevent_detach(struct event *event)
{
    event_free(event);
}

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_ADAPTERS_LIBEVENT_H */
