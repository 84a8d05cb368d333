/*
 * listener.h - second connections to the masters, which receive announcements.
 *
 * Redis allows hardly any command on a connection that subscribes.  So a client that waits has a
 * second connection to each master, and keeps it a little longer (LINES_LINGER).
 */
#ifndef REDLOCK_LISTENER_H
#define REDLOCK_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/base/mask.h"
#include "redlock/masters/masters.h"

struct reply;

struct listener_events {
    /* A link came up, and all channels must be subscribed to again; or it fell. */
    void (*on_link)(void *cookie, unsigned master, bool up);
    /* A master pushed this. */
    void (*on_push)(void *cookie, unsigned master, const struct reply *reply);
    /* The event is over.  The callee may free the listener. */
    void (*on_done)(void *cookie);
};

struct listener {
    const struct peers *peers; /* The masters to listen to. */
    struct link_config config; /* The configuration of each link, without its place. */
    const struct listener_events *events;
    void *cookie;
    struct link *links[QUORUM_MASTERS_MAX]; /* NULL: there is none. */
    quorum_mask dirty;                      /* Links with data to flush. */
    quorum_mask linked;                     /* Links that are up. */
    quorum_mask left; /* Links to be closed.  Other links get their numbers. */
};

/* config: that of the masters.  The guards are not for links that listen. */
void listener_init(struct listener *listener, const struct peers *peers,
                   const struct masters_config *config, const struct listener_events *events,
                   void *cookie);

/* Begin to connect to each master to which there is no link.  If memory runs out, a link is left
 * out. */
void listener_start(struct listener *listener);
/* Between events: close all links. */
void listener_stop(struct listener *listener);

/* Within an event: these numbers belong to other masters from now on.  listener_close() follows
 * between events, before the number gets another link. */
void listener_on_left(struct listener *listener, quorum_mask left);
void listener_close(struct listener *listener, unsigned master);

/* Send a command to one master.  Returns false if its link is down. */
bool listener_say(struct listener *listener, unsigned master, const char *command,
                  size_t command_len);

/* Write to all links: between events, or within one.  Only listener_flush() takes links down. */
void listener_flush(struct listener *listener);
void listener_write(struct listener *listener);

#endif /* REDLOCK_LISTENER_H */
