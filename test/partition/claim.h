/*
 * claim.h - what a client may say of a deadline that it cannot see.
 *
 * redlock_remaining_ms() is rounded down, and time passes before it is asked
 * and after.  A look is the clock, the question, and the clock again; so the
 * library's deadline is not before what is told, and it is before a limit.
 * What is claimed in a history is the former: never more than the library
 * said, and less by a millisecond or so.
 *
 * Pure: no clock, no library.
 */
#ifndef PARTITION_CLAIM_H
#define PARTITION_CLAIM_H

#include <stdint.h>

/* A claim that is later by less than this is rounding, and not worth a line. */
#define CLAIM_GRAIN_NS UINT64_C(2000000)

struct look {
    uint64_t before_ns, after_ns; /* CLOCK_MONOTONIC around the question; */
    uint32_t left_ms;             /* and its answer. */
    /* Leases that the client has made longer, asked for around all that.  Those
     * of other leases of the same client count, too. */
    uint64_t renewals_before, renewals_after;
};

struct claim {
    uint64_t deadline_ns; /* Claimed last. */
    uint64_t limit_ns;    /* The library's is before this, unless it was made longer. */
    uint64_t renewals;    /* How many there were at least, when that was known. */
};

enum claim_news {
    CLAIM_OVER,      /* Nothing is left: it ran out, or is lost. */
    CLAIM_SAME,      /* Nothing new. */
    CLAIM_LONGER,    /* There is a later deadline to claim. */
    CLAIM_UNFOUNDED, /* Likewise, although nothing has made the lease longer. */
    CLAIM_BLURRED,   /* Less is left than can be told apart from nothing. */
};

/* The first look at a lease, with something left. */
void claim_begin(struct claim *claim, const struct look *look);

/* Each later one. */
enum claim_news claim_look(struct claim *claim, const struct look *look);

/* What may be sent along with a write after this look: not more than is claimed. */
uint64_t claim_for_write(const struct claim *claim, const struct look *look);

#endif /* PARTITION_CLAIM_H */
