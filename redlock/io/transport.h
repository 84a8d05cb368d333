/*
 * transport.h - a stream of bytes to one server, and one timer.
 *
 * transport.c opens sockets.  The simulator links a transport of its own instead, so that all code
 * above this header runs in virtual time.
 *
 * A transport calls its owner only from the loop, and never within a call that the owner makes.  A
 * callback may close or free the transport, so the transport touches nothing after a callback.
 */
#ifndef REDLOCK_TRANSPORT_H
#define REDLOCK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "drift/drift.h"
#include "redlock/base/reason.h"

struct loop;
struct transport;

/* A place to connect to.  The strings must live as long as the transport. */
struct transport_to {
    const char *host; /* A name or a numeric address.  NULL: use path. */
    const char *path; /* The path of a unix socket.  NULL: use host and port. */
    unsigned port;
};

struct transport_events {
    /* why NULL: the transport is connected.  Otherwise no address led to the server, and the
     * transport is closed. */
    void (*on_open)(void *cookie, const struct reason *why);
    /* There may be bytes to read, or the connection ended. */
    void (*on_bytes)(void *cookie);
    /* There is room for bytes (transport_await_space). */
    void (*on_space)(void *cookie);
    /* The timer rang. */
    void (*on_timer)(void *cookie);
};

/* Make a closed transport, whose timer is off.  NULL: memory ran out. */
struct transport *transport_new(struct loop *loop, const struct transport_events *events,
                                void *cookie);
/* Close it and free it.  NULL is allowed. */
void transport_free(struct transport *transport);

/*
 * Begin to connect.  One attempt tries all addresses of a name, beginning with number turn, modulo
 * their number.  Each attempt looks the name up.  If the look-up takes longer than the attempt, the
 * next attempt uses it.  All attempts of a transport must go to the same place.  True: on_open()
 * follows unless the transport is closed before.  False: it cannot connect, and *ret_why says why.
 */
bool transport_open(struct transport *transport, const struct transport_to *to, unsigned turn,
                    struct reason *ret_why);

/* Why the transport is not open, if the time for that is over: "timeout while connecting". */
enum why transport_silence(const struct transport *transport);

/*
 * Read up to room bytes of an open transport.  Returns their number; 0: there are none now; -1: the
 * connection has ended, and *ret_why says why.  After a -1 of a read or a write, the owner
 * neither reads nor writes, and closes the transport before the loop sleeps.  Until then on_bytes()
 * and on_space() may still be called.
 */
ssize_t transport_read(struct transport *transport, char *buf, size_t room, struct reason *ret_why);

/* Write as many bytes as there is room for now.  Returns as transport_read() does. */
ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        struct reason *ret_why);

/* Turn calls of on_space() on or off. */
void transport_await_space(struct transport *transport, bool on);

/* Let the timer ring once, after this span.  DRIFT_NEVER turns it off. */
void transport_set_timer(struct transport *transport, drift_span in);
bool transport_has_timer(const struct transport *transport);

/*
 * Close the connection.  The timer goes on.  With reset, the kernel drops unsent bytes: otherwise a
 * server that comes back would obey them after the commands of the next connection.
 */
void transport_close(struct transport *transport, bool reset);

#endif /* REDLOCK_TRANSPORT_H */
