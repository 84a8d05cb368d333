/*
 * connect.h - connects a socket to a numeric address or to the path of a unix socket.
 */
#ifndef REDLOCK_CONNECT_H
#define REDLOCK_CONNECT_H

struct reason;

/*
 * Begin to connect to an address and port or, if path is not NULL, to a unix socket.  The socket is
 * created close-on-exec and non-blocking, so no program that another thread starts inherits it.
 * Returns the socket: call connect_error() when it is writable.  Returns -1 on failure, and
 * *ret_why says why.
 */
int connect_begin(const char *address, const char *path, unsigned port, struct reason *ret_why);

/* Why the connection failed, as an errno.  0: the socket is connected. */
int connect_error(int fd);

#endif /* REDLOCK_CONNECT_H */
