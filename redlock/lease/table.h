/*
 * table.h - the leases of a client: slots, serials, those with callbacks to run, and those that
 * are over.
 */
#ifndef REDLOCK_TABLE_H
#define REDLOCK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "redlock/lease/state.h"

/* Zeroes are a table without leases, once this was called. */
void table_init(struct leases *leases);
/* Free the table, which has no lease left in a slot. */
void table_done(struct leases *leases);

/* Have room for one lease more: 0, or -1 without memory. */
int table_reserve(struct leases *leases);
/* Put a lease into a slot, with a serial number of its own.  There is room. */
void table_take_slot(struct leases *leases, struct redlock_lease *lease);
/* Take a lease out of its slot.  It stays in memory among the newest that are over. */
void table_bury(struct leases *leases, struct redlock_lease *lease);

/* The lease that an ask is of; NULL: it is gone. */
static inline struct redlock_lease *table_find(const struct leases *leases, uint32_t slot,
                                               uint32_t serial)
{
    struct redlock_lease *lease = slot < leases->slots_len ? leases->slots[slot] : NULL;

    return lease != NULL && (uint32_t)lease->serial == serial ? lease : NULL;
}

/* Put a lease at the end of the list of those with callbacks to run; take the first, of some. */
void table_make_ready(struct leases *leases, struct redlock_lease *lease);
struct redlock_lease *table_take_ready(struct leases *leases);

#endif /* REDLOCK_TABLE_H */
