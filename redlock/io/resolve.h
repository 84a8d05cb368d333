/*
 * resolve.h - host names to addresses, without blocking a loop.
 *
 * getaddrinfo() may take seconds and cannot be interrupted.  So each name that is looked up has
 * a short-lived thread of its own, which touches nothing of a client.  It writes into a look-up
 * that all who asked for this name own, and tells each of them by a descriptor.  There is one
 * thread for each name, however often and by however many clients it is asked for.  A client
 * whose masters are given by address never has one.
 */
#ifndef REDLOCK_RESOLVE_H
#define REDLOCK_RESOLVE_H

#include <stdbool.h>

#define RESOLVE_ADDRESS_MAX 46 /* INET6_ADDRSTRLEN */

struct resolve;

/* Whether host is an address already. */
int resolve_is_address(const char *host);

/* Start to look host up, or join the look-up of it that is under way.  NULL without memory,
 * descriptors or threads: errno says why. */
struct resolve *resolve_start(const char *host);

/* Readable when it is done; a write that failed leaves it as it is. */
int resolve_fd(const struct resolve *resolve);
bool resolve_is_done(const struct resolve *resolve);

/* When done: how many addresses there are. */
unsigned resolve_len(const struct resolve *resolve);

/*
 * When done: write the address number turn (counted round and round, so that
 * later attempts try the others), and return NULL, or else what went wrong, a
 * constant text.
 */
const char *resolve_take(const struct resolve *resolve, unsigned turn,
                         char ret_address[RESOLVE_ADDRESS_MAX]);

/* Free it, done or not; the thread ends by itself. */
void resolve_free(struct resolve *resolve);

#endif /* REDLOCK_RESOLVE_H */
