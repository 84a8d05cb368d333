/*
 * transport.h - a stream of bytes to one server, and one timer: the seam at the sockets.
 *
 * transport.c opens sockets.  The simulator links a transport of its own in its place, so
 * that every line above this header runs in virtual time, too.
 *
 * A transport calls its owner from the loop only, and never from within a call of the
 * owner's.  A callback may close the transport, and may free it: the transport touches
 * nothing after a callback.
 */
#ifndef REDLOCK_TRANSPORT_H
#define REDLOCK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "drift/drift.h"

struct loop;
struct transport;

/* A place to connect to.  The strings live as long as the transport. */
struct transport_to {
    const char *host; /* A name, or a numeric address; NULL: a unix socket. */
    const char *path; /* Of the unix socket; NULL: none. */
    unsigned port;
};

struct transport_events {
    /* It is connected; or, with an error, no address led there, and it is closed. */
    void (*on_open)(void *cookie, const char *error);
    /* There may be bytes to read, or an end. */
    void (*on_bytes)(void *cookie);
    /* There is room for bytes, which was awaited. */
    void (*on_space)(void *cookie);
    /* The timer rang. */
    void (*on_timer)(void *cookie);
};

/* A transport that is closed, with a timer that is off; NULL without memory. */
struct transport *transport_new(struct loop *loop, const struct transport_events *events,
                                void *cookie);
/* Close it and free it.  NULL is allowed. */
void transport_free(struct transport *transport);

/*
 * Begin to connect.  A name may have several addresses: one attempt tries all of them, and
 * begins with the address number turn, round and round.  A name is looked up at each attempt,
 * unless the look-up of the last one took longer than that.  Later attempts go to the same place
 * as the first.  Returns NULL, and on_open() follows
 * unless it is closed before; or, at once, why it cannot connect.
 */
const char *transport_open(struct transport *transport, const struct transport_to *to,
                           unsigned turn);

/* What it does until it is open, for the message of a timeout: "connecting". */
const char *transport_doing(const struct transport *transport);

/*
 * Read up to room bytes of an open transport.  Returns their number; 0: there are none now;
 * -1: the connection has ended, and *ret_error says why.
 */
ssize_t transport_read(struct transport *transport, char *buf, size_t room, const char **ret_error);

/* Write likewise: as many bytes as there is room for now. */
ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        const char **ret_error);

/* Whether on_space() is to be called when there is room. */
void transport_await_space(struct transport *transport, bool on);

/* Set the timer to ring once, so long from now; DRIFT_NEVER turns it off. */
void transport_set_timer(struct transport *transport, drift_span in);
bool transport_has_timer(const struct transport *transport);

/*
 * Close it; the timer goes on.  With reset, the kernel forgets what it was given and has not
 * sent: else a server that is back would obey it behind what the next connection says.
 */
void transport_close(struct transport *transport, bool reset);

#endif /* REDLOCK_TRANSPORT_H */
