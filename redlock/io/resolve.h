/*
 * resolve.h - host names to addresses, without blocking a loop.
 *
 * getaddrinfo() may take seconds and cannot be interrupted, so each look-up
 * has a short-lived thread of its own that touches nothing of the client: it
 * writes into a job that both sides own, and tells a descriptor that the loop
 * watches.  A client whose masters are given by address never has one.
 */
#ifndef REDLOCK_RESOLVE_H
#define REDLOCK_RESOLVE_H

#include <stddef.h>

#define RESOLVE_ADDRESS_MAX 46 /* INET6_ADDRSTRLEN */

struct resolve;

/* Whether host is an address already. */
int resolve_is_address(const char *host);

/* Start to look host up.  NULL without memory, descriptors or threads: errno says why. */
struct resolve *resolve_start(const char *host);

/* Readable when it is done. */
int resolve_fd(const struct resolve *resolve);

/* When done: how many addresses there are. */
unsigned resolve_len(const struct resolve *resolve);

/*
 * When done: write the address number turn (counted round and round, so that
 * later attempts try the others), and return NULL, or else what went wrong, a
 * constant text.
 */
const char *resolve_take(struct resolve *resolve, unsigned turn,
                         char ret_address[RESOLVE_ADDRESS_MAX]);

/* Free it, done or not; the thread ends by itself. */
void resolve_free(struct resolve *resolve);

#endif /* REDLOCK_RESOLVE_H */
