/*
 * connect.h - a socket that connects to a server: by address, or by the path of a unix socket.
 */
#ifndef REDLOCK_CONNECT_H
#define REDLOCK_CONNECT_H

/*
 * Begin to connect to a numeric address and a port, or, if path is not NULL, to a unix socket.
 * The socket is close-on-exec and does not block, both from the start: a fork in another thread
 * never inherits it.  Returns it, and it can be written to when connect_error() is to be asked;
 * or -1, and *ret_error says why.
 */
int connect_begin(const char *address, const char *path, unsigned port, const char **ret_error);

/* What became of it; NULL: it is connected. */
const char *connect_error(int fd);

#endif /* REDLOCK_CONNECT_H */
