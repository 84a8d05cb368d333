/*
 * wanted.h - makes a lease from the names and options of a call.
 */
#ifndef REDLOCK_WANTED_H
#define REDLOCK_WANTED_H

#include <stddef.h>

#include "redlock/lease/kind.h"

struct redlock;
struct redlock_lease;
struct redlock_lock_options;

/* Describe one name, or a list of one or more.  The names stay the caller's. */
struct wanted wanted_one(const char *const *resource);
struct wanted wanted_several(const char *const *resources, size_t len);

/*
 * Check all that can be checked without a master, and make the lease.  If the owner of a reentrant
 * lock has the lease already, return that lease and count it once more.  Returns OK, or E_INVAL,
 * E_STATE, E_NOMEM or LOST with a message.
 */
int wanted_lease(struct redlock *rl, const struct wanted *wanted,
                 const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);

#endif /* REDLOCK_WANTED_H */
