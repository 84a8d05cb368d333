/*
 * dial.h - sockets that begin to connect.
 *
 * They are non-blocking, and close-on-exec from the start: a command that another thread
 * starts at this moment must not inherit a link.
 */
#ifndef REDLOCK_DIAL_H
#define REDLOCK_DIAL_H

#include <stdint.h>

/* Begin to connect to an address (IPv4, or IPv6 with or without a zone) and a port.  The
 * socket, which is writable when the attempt is over, and tells by SO_ERROR how it went; or -1
 * with errno. */
int dial_address(const char *address, uint16_t port);

/* Likewise, to a unix socket. */
int dial_path(const char *path);

#endif /* REDLOCK_DIAL_H */
