/*
 * drift.h - time for leases: reading it, adding it up, and distrusting it.
 *
 * All times are nanoseconds.  An instant is only comparable with instants of
 * the same clock; a span is the difference of two.  Nothing in this file but
 * drift_now() looks at the outside world.
 */
#ifndef DRIFT_DRIFT_H
#define DRIFT_DRIFT_H

#include <stdint.h>

typedef uint64_t drift_time; /* Instant, ns since an unspecified start. */
typedef uint64_t drift_span; /* Length of time, ns. */

#define DRIFT_NEVER UINT64_MAX     /* The instant after all others; never 0 for "none". */
#define DRIFT_MS UINT64_C(1000000) /* One millisecond. */
#define DRIFT_S (1000 * DRIFT_MS)  /* One second. */

/* How far two clocks may disagree over one lease. */
struct drift_bound {
    uint32_t ppm;     /* Rate between any two clocks, parts per million of the lease. */
    drift_span fixed; /* Resolution of the server's expiry, and of ours. */
};

/*
 * Read the only clock that may decide anything: CLOCK_BOOTTIME, which keeps
 * counting while the machine sleeps, so that a lease cannot outlive a suspend
 * unnoticed.  There is no fallback to another clock.  Returns 0, or -1 if the
 * kernel has no such clock, or had none once, with *ret_now untouched.  Any thread.
 */
int drift_now(drift_time *ret_now);

/* t + s, or DRIFT_NEVER if that is past the end of time. */
drift_time drift_add(drift_time t, drift_span s);

/* From now until t, or 0 if t is past. */
drift_span drift_until(drift_time now, drift_time t);

/* The part of a lease that is not to be relied on, rounded up. */
drift_span drift_allowance(drift_span lease, const struct drift_bound *bound);

/*
 * The first instant at which a lease asked for at sent may be gone, provided
 * that sent was read before the first byte was written.  Where the allowance
 * swallows the lease whole, that is sent itself: such a lease never was.
 */
drift_time drift_deadline(drift_time sent, drift_span lease, const struct drift_bound *bound);

/* Whole milliseconds in a span, rounded down, UINT32_MAX at the most. */
uint32_t drift_to_ms(drift_span span);

#endif /* DRIFT_DRIFT_H */
