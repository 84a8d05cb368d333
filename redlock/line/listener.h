/*
 * listener.h - second connections to the masters, by which a client is told of releases.
 *
 * Redis allows hardly any command on a connection that subscribes, so that waiting takes one of
 * its own to each master.  They exist as long as somebody waits, and a moment longer (lines.h).
 */
#ifndef REDLOCK_LISTENER_H
#define REDLOCK_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/base/mask.h"
#include "redlock/link/link.h"

struct env;
struct reply;

struct listener_config {
    struct env *env;
    const struct uri *uris; /* Live as long as the listener. */
    unsigned len;
    drift_span connect_timeout, reply_timeout;
};

struct listener_events {
    /* A link came up, so that all is to be subscribed anew; or it fell. */
    void (*on_link)(void *cookie, unsigned master, bool up);
    /* A master pushed this. */
    void (*on_push)(void *cookie, unsigned master, const struct reply *reply);
    /* The event is over.  The listener may be gone when this returns. */
    void (*on_done)(void *cookie);
};

struct listener {
    struct listener_config config;
    const struct listener_events *events;
    void *cookie;
    struct link *links[QUORUM_MASTERS_MAX]; /* NULL: there is none. */
    quorum_mask dirty;                      /* Links with something to flush. */
    quorum_mask linked;                     /* Links that are up. */
};

void listener_init(struct listener *listener, const struct listener_config *config,
                   const struct listener_events *events, void *cookie);

/* Begin to connect to all masters to which there is no link.  A link for which there is no memory
 * is left out. */
void listener_start(struct listener *listener);
/* Between events: close all. */
void listener_stop(struct listener *listener);

/* Send a command to one master, if its link is up; true: it was sent. */
bool listener_say(struct listener *listener, unsigned master, const char *command,
                  size_t command_len);

/* Between events; within one. */
void listener_flush(struct listener *listener);
void listener_write(struct listener *listener);

#endif /* REDLOCK_LISTENER_H */
