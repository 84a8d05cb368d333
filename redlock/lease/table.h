/*
 * table.h - the leases of a client: slots, serials, leases with callbacks to run, and leases that
 * are over.
 */
#ifndef REDLOCK_TABLE_H
#define REDLOCK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "redlock/lease/state.h"

/* Make a zeroed struct an empty table. */
void table_init(struct leases *leases);
/* Free the table.  No slot may hold a lease. */
void table_done(struct leases *leases);

/* Make room for one more lease.  Returns 0, or -1 if memory runs out. */
int table_reserve(struct leases *leases);
/* Put a lease into a slot, and give it a serial number.  table_reserve() must have made room. */
void table_take_slot(struct leases *leases, struct redlock_lease *lease);
/* Take a lease that is over out of its slot.  Its memory is freed after LEASE_SPENT more leases are
 * over, so that a second unlock is recognised. */
void table_bury(struct leases *leases, struct redlock_lease *lease);

/* The lease that made this request (struct ask).  NULL: it is gone. */
static inline struct redlock_lease *table_find(const struct leases *leases, uint32_t slot,
                                               uint32_t serial)
{
    struct redlock_lease *lease = slot < leases->slots_len ? leases->slots[slot] : NULL;

    return lease != NULL && (uint32_t)lease->serial == serial ? lease : NULL;
}

/* True: this master may store a token of a lease. */
bool table_may_hold(const struct leases *leases, unsigned master);

/* Put a lease at the end of the list of leases with callbacks to run; take the first from the
 * list, which must not be empty. */
void table_make_ready(struct leases *leases, struct redlock_lease *lease);
struct redlock_lease *table_take_ready(struct leases *leases);

#endif /* REDLOCK_TABLE_H */
