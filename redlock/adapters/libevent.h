/*
 * libevent.h - a pollable client of redlock on a loop of libevent 2.
 */
#ifndef REDLOCK_ADAPTERS_LIBEVENT_H
#define REDLOCK_ADAPTERS_LIBEVENT_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>
#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The signal of a descriptor (F_SETSIG) is a mark that each process sees, in any PID namespace.  It
 * has no owner, so none is sent.  <fcntl.h> shows F_SETSIG with _GNU_SOURCE only. */
#ifdef F_SETSIG
#define REDLOCK_LIBEVENT_SETSIG F_SETSIG
#define REDLOCK_LIBEVENT_GETSIG F_GETSIG
#else
#define REDLOCK_LIBEVENT_SETSIG 10
#define REDLOCK_LIBEVENT_GETSIG 11
#endif
#define REDLOCK_LIBEVENT_MARK SIGURG

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

/* Let the loop run the client.  The child of a fork must call event_reinit() before it runs the
 * loop.  NULL: memory ran out, the client is not pollable, or libevent refused. A loop with a
 * client does not end by itself: event_base_dispatch() returns after event_base_loopbreak(), or
 * after redlock_libevent_detach(). */
static inline struct event *redlock_libevent_attach(struct redlock *rl, struct event_base *base)
{
    int fd = redlock_fd(rl);
    struct redlock_libevent *client =
        fd >= 0 ? (struct redlock_libevent *)malloc(sizeof *client) : NULL;

    if (client == NULL)
        return NULL;
    client->rl = rl;
    (void)fcntl(fd, REDLOCK_LIBEVENT_SETSIG, REDLOCK_LIBEVENT_MARK);
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

/* The child of a fork may share the epoll instance of the loop with its parent.  libevent would
 * take the descriptor out of it, and the parent would renew nothing and never hear of the loss.  So
 * in the child another file gets its number, unless one has it already: a daemon may have closed
 * all descriptors, and a file of its own has no such mark. */
static inline void redlock_libevent_replace(int fd)
{
    int other;

    if (fcntl(fd, REDLOCK_LIBEVENT_GETSIG) != REDLOCK_LIBEVENT_MARK)
        return;
    other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (other < 0)
        return;
    if (dup2(other, fd) == fd)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)close(other);
}

/* Take the client from the loop, before redlock_close().  It may be called from a callback, and in
 * the child of a fork, where it leaves the loop of the parent alone. */
static inline void redlock_libevent_detach(struct event *event)
{
    struct redlock_libevent *client = (struct redlock_libevent *)event_get_callback_arg(event);

    if (redlock_fd(client->rl) < 0) /* The child of a fork. */
        redlock_libevent_replace(event_get_fd(event));
    event_free(event);
    free(client);
}

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_ADAPTERS_LIBEVENT_H */
