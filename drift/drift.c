/*
 * drift.c - arithmetic of instants and spans; pure.
 *
 * Sums saturate instead of wrapping.  What is subtracted from a lease is rounded
 * up, and what remains is rounded down.  So a rounding error can only shorten a
 * lease.
 */
#include "drift/drift.h"

#define PPM_ONE UINT64_C(1000000)

drift_time drift_add(drift_time t, drift_span s)
{
    return s > DRIFT_NEVER - t ? DRIFT_NEVER : t + s;
}

drift_span drift_until(drift_time now, drift_time t)
{
    return t > now ? t - now : 0;
}

drift_span drift_allowance(drift_span lease, const struct drift_bound *bound)
{
    /* lease * ppm does not fit 64 bits for long leases.  Its two parts do. */
    uint64_t millions = lease / PPM_ONE;
    uint64_t rest = lease % PPM_ONE;
    uint64_t fine = (rest * bound->ppm + PPM_ONE - 1) / PPM_ONE;

    if (bound->ppm != 0 && millions > DRIFT_NEVER / bound->ppm)
        return DRIFT_NEVER;
    return drift_add(drift_add(millions * bound->ppm, fine), bound->fixed);
}

drift_time drift_deadline(drift_time sent, drift_span lease, const struct drift_bound *bound)
{
    drift_span allowance = drift_allowance(lease, bound);

    return allowance >= lease ? sent : drift_add(sent, lease - allowance);
}

/* From below: what the allowance takes away is added, and then what it takes away of that.  Each
 * step gains half of the one before at most, because no clock is off by more than half.  The
 * allowance itself counts, not what it leaves: it may be longer than the lease. */
drift_span drift_lease(drift_span reliable, const struct drift_bound *bound)
{
    drift_span lease = reliable;

    for (unsigned i = 0; i < 64 && drift_deadline(0, lease, bound) < reliable; i++)
        lease = drift_add(reliable, drift_allowance(lease, bound));
    return lease;
}

uint32_t drift_to_ms(drift_span span)
{
    drift_span ms = span / DRIFT_MS;

    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

uint32_t drift_to_ms_up(drift_span span)
{
    return drift_to_ms(drift_add(span, DRIFT_MS - 1));
}
