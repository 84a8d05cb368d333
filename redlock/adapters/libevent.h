/*
 * libevent.h - a pollable client of redlock on a loop of libevent 2.
 */
#ifndef REDLOCK_ADAPTERS_LIBEVENT_H
#define REDLOCK_ADAPTERS_LIBEVENT_H

#include <stdlib.h>

#include <event2/event.h>
#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The argument of the event. */
struct redlock_libevent {
    struct redlock *rl;
    struct event *event;
};

/* The child of a fork may not use the client, so the event goes: the descriptor may be readable for
 * good.  Only then nothing has detached the client meanwhile. */
static inline void redlock_libevent_on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct redlock_libevent *client = (struct redlock_libevent *)arg;

    (void)fd, (void)what;
    if (redlock_dispatch(client->rl) != REDLOCK_OK)
        (void)event_del(client->event);
}

static inline void redlock_libevent_detach(struct event *event);

/* Let the loop run the client.  NULL: memory ran out, the client is not pollable, or libevent
 * refused. A loop with a client does not end by itself: event_base_dispatch() returns after
 * event_base_loopbreak(), or after redlock_libevent_detach(). */
static inline struct event *redlock_libevent_attach(struct redlock *rl, struct event_base *base)
{
    int fd = redlock_fd(rl);
    struct redlock_libevent *client =
        fd >= 0 ? (struct redlock_libevent *)malloc(sizeof *client) : NULL;

    if (client == NULL)
        return NULL;
    client->rl = rl;
    client->event = event_new(base, fd, EV_READ | EV_PERSIST, redlock_libevent_on_readable, client);
    if (client->event == NULL) {
        free(client);
        return NULL;
    }
    if (event_add(client->event, NULL) == 0)
        return client->event;
    redlock_libevent_detach(client->event);
    return NULL;
}

/* Take the client from the loop, before redlock_close().  It may be called from a callback. */
static inline void redlock_libevent_detach(struct event *event)
{
    void *client = event_get_callback_arg(event);

    event_free(event);
    free(client);
}

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_ADAPTERS_LIBEVENT_H */
