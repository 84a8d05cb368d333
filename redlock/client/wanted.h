/*
 * wanted.h - from the names and options of a call to a lease.
 */
#ifndef REDLOCK_WANTED_H
#define REDLOCK_WANTED_H

#include <stddef.h>

#include "redlock/lease/kind.h"

struct redlock;
struct redlock_lease;
struct redlock_lock_options;

/* One name; several, as a list that may hold one.  The names stay the caller's. */
struct wanted wanted_one(const char *const *resource);
struct wanted wanted_several(const char *const *resources, size_t len);

/*
 * Check all that can be checked before a master is asked, and make the lease.  A reentrant lock of
 * an owner that has the lease already gives that lease, and counts it once more.
 * Returns OK, or E_INVAL, E_STATE, E_NOMEM or LOST with a message.
 */
int wanted_lease(struct redlock *rl, const struct wanted *wanted,
                 const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);

#endif /* REDLOCK_WANTED_H */
