/*
 * histogram.h - counts times in buckets of struct redlock_histogram.  Pure, and allocates nothing.
 */
#ifndef REDLOCK_HISTOGRAM_H
#define REDLOCK_HISTOGRAM_H

#include <stdint.h>

#include "drift/drift.h"
#include "redlock/redlock.h"

/* The limit of the first bucket, in nanoseconds. */
#define HISTOGRAM_FIRST (REDLOCK_BUCKET_US(0) * UINT64_C(1000))

/* The bucket of a time.  Each limit is twice the one before, and belongs to its own bucket. */
static inline unsigned histogram_bucket(drift_span span)
{
    uint64_t firsts = span > 0 ? (span - 1) / HISTOGRAM_FIRST : 0;
    unsigned bucket = 63u - (unsigned)__builtin_clzll(2 * firsts + 1); /* How many bits it has. */

    return bucket < REDLOCK_BUCKETS ? bucket : REDLOCK_BUCKETS - 1;
}

/* Count the time from one instant to another.  If the clock failed, `to` is DRIFT_NEVER, and the
 * time is not counted. */
static inline void histogram_add(struct redlock_histogram *histogram, drift_time from,
                                 drift_time to)
{
    drift_span span = to - from;

    if (span - 1 >= DRIFT_NEVER / 2) { /* Rare, and one comparison: no time has passed. */
        if (to == DRIFT_NEVER)
            return;
        span = 0;
    }
    histogram->sum_ns += span;
    histogram->counts[histogram_bucket(span)]++;
}

#endif /* REDLOCK_HISTOGRAM_H */
