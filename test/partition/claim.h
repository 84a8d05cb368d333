/*
 * claim.h - the deadline that a client may claim, because it cannot read the library's.
 *
 * redlock_remaining_ms() rounds down, and time passes before and after the call.  A look reads the
 * clock, calls it, and reads the clock again.  This gives a lower bound and a limit for the
 * library's deadline.  The history claims the lower bound: never more than the library said, and
 * about a millisecond less.
 *
 * Pure: no clock, no library.
 */
#ifndef PARTITION_CLAIM_H
#define PARTITION_CLAIM_H

#include <stdint.h>

/* A claim that is later by less than this is rounding, and gets no line in the history. */
#define CLAIM_GRAIN_NS UINT64_C(2000000)

struct look {
    uint64_t before_ns, after_ns; /* CLOCK_MONOTONIC before and after the call. */
    uint32_t left_ms;             /* What redlock_remaining_ms() returned. */
    /* How many extensions the client has made before and after the call, of all its leases. */
    uint64_t renewals_before, renewals_after;
};

struct claim {
    uint64_t deadline_ns; /* The latest claim. */
    uint64_t limit_ns;    /* The library's deadline is before this, unless it was extended. */
    uint64_t renewals;    /* The least number of extensions when limit_ns was set. */
};

enum claim_news {
    CLAIM_OVER,      /* Nothing is left: the lease expired, or is lost. */
    CLAIM_SAME,      /* Nothing new. */
    CLAIM_LONGER,    /* There is a later deadline to claim. */
    CLAIM_UNFOUNDED, /* There is a later deadline, although no extension was made. */
    CLAIM_BLURRED,   /* Too little is left to distinguish it from nothing. */
};

/* The first look at a lease, with something left. */
void claim_begin(struct claim *claim, const struct look *look);

/* Each later one. */
enum claim_news claim_look(struct claim *claim, const struct look *look);

/* The deadline for a write after this look; at most the latest claim. */
uint64_t claim_for_write(const struct claim *claim, const struct look *look);

#endif /* PARTITION_CLAIM_H */
