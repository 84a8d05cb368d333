/*
 * resolve.h - resolves host names without blocking a loop.
 *
 * getaddrinfo() may take seconds and cannot be interrupted.  So a short-lived thread looks each
 * name up.  It serves all requests for that name, of all clients, and touches no client.  It writes
 * into a look-up that the requests share, and notifies each of them by a descriptor.  A client
 * whose masters are given by address starts no thread.
 */
#ifndef REDLOCK_RESOLVE_H
#define REDLOCK_RESOLVE_H

#include <stdbool.h>

#define RESOLVE_ADDRESS_MAX 46 /* INET6_ADDRSTRLEN */

struct reason;
struct resolve;

/* Returns 1 if host is a numeric address, else 0. */
int resolve_is_address(const char *host);

/* Start to look host up, or join the look-up of it that is under way.  NULL: memory, a descriptor
 * or a thread was missing; errno says which. */
struct resolve *resolve_start(const char *host);

/* The descriptor becomes readable when the look-up is done.  If notifying fails, it does not, but
 * resolve_is_done() returns true all the same. */
int resolve_fd(const struct resolve *resolve);
bool resolve_is_done(const struct resolve *resolve);

/* The number of addresses.  The look-up must be done. */
unsigned resolve_len(const struct resolve *resolve);

/*
 * Write the address number turn, modulo their number, so that later attempts try other addresses.
 * False: there is no address, and *ret_why says why.  The look-up must be done.
 */
bool resolve_take(const struct resolve *resolve, unsigned turn,
                  char ret_address[RESOLVE_ADDRESS_MAX], struct reason *ret_why);

/* Free a request, done or not.  The thread ends by itself. */
void resolve_free(struct resolve *resolve);

#endif /* REDLOCK_RESOLVE_H */
