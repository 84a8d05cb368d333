/*
 * mask.h - sets of masters, one bit for each master.
 */
#ifndef REDLOCK_MASK_H
#define REDLOCK_MASK_H

#include <stdint.h>

#include "redlock/redlock.h"

#define QUORUM_MASTERS_MAX REDLOCK_MASTERS_MAX

typedef uint16_t quorum_mask;

_Static_assert(QUORUM_MASTERS_MAX <= 16, "a mask has a bit for each master");

/* The mask with the bit of this master alone. */
static inline quorum_mask mask_of(unsigned master)
{
    return (quorum_mask)(1u << master);
}

/* The mask without the bit of this master. */
static inline quorum_mask mask_without(quorum_mask mask, unsigned master)
{
    return (quorum_mask)(mask & ~(1u << master));
}

/* How many bits are set in each byte: mask_bits[5] is 2. */
extern const uint8_t mask_bits[256];

/* The number of masters in a mask.  Each vote is counted several times, so the table pays: the
 * builtin would call a function on processors that may lack the instruction. */
static inline unsigned mask_count(quorum_mask mask)
{
    return mask_bits[mask & 0xff] + mask_bits[mask >> 8];
}

#endif /* REDLOCK_MASK_H */
