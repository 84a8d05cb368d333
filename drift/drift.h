/*
 * drift.h - time for leases: read it, add it, and bound its error.
 *
 * All times are nanoseconds.  An instant is only comparable with instants of the
 * same clock.  A span is the difference of two instants.  Only drift_now() reads
 * anything outside its arguments.
 */
#ifndef DRIFT_DRIFT_H
#define DRIFT_DRIFT_H

#include <stdint.h>

typedef uint64_t drift_time; /* Instant, ns since an unspecified start. */
typedef uint64_t drift_span; /* Length of time, ns. */

#define DRIFT_NEVER UINT64_MAX     /* After all other instants; "none" is this, not 0. */
#define DRIFT_MS UINT64_C(1000000) /* One millisecond. */
#define DRIFT_S (1000 * DRIFT_MS)  /* One second. */

/* How far two clocks may disagree over one lease. */
struct drift_bound {
    uint32_t ppm;     /* The difference in rate between any two clocks, parts per million of the
                       * lease. */
    drift_span fixed; /* The resolution of the server's expiry, and of ours. */
};

/*
 * Read CLOCK_BOOTTIME, the only clock that may decide anything.  It keeps counting
 * while the machine sleeps, so a lease cannot outlive a suspend unnoticed.  There
 * is no fallback to another clock.
 *
 * Returns 0.  Returns -1, with *ret_now untouched, if the kernel has no such clock,
 * or if an earlier call failed.  Any thread may call this.
 */
int drift_now(drift_time *ret_now);

/* t + s, or DRIFT_NEVER if the sum overflows. */
drift_time drift_add(drift_time t, drift_span s);

/* The time from now until t, or 0 if t is past. */
drift_span drift_until(drift_time now, drift_time t);

/* The part of a lease that its holder must not rely on, rounded up. */
drift_span drift_allowance(drift_span lease, const struct drift_bound *bound);

/*
 * The first instant at which a lease may be gone. sent must have been read before
 * the first byte of the request was written.  If the allowance is as long as the
 * lease, the result is sent: the lease was never valid.
 */
drift_time drift_deadline(drift_time sent, drift_span lease, const struct drift_bound *bound);

/* The shortest lease of which its holder may rely on this much; DRIFT_NEVER if it does not fit. */
drift_span drift_lease(drift_span reliable, const struct drift_bound *bound);

/* Whole milliseconds in a span, rounded down; UINT32_MAX at most. */
uint32_t drift_to_ms(drift_span span);

/* The same rounded up, so that one who waits for so long does not come too early. */
uint32_t drift_to_ms_up(drift_span span);

#endif /* DRIFT_DRIFT_H */
