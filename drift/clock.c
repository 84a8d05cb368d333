/*
 * clock.c - the only code that reads a clock.
 */
#include "drift/drift.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

int drift_now(drift_time *ret_now)
{
    /* A clock that failed once is never used again: a round that began without a clock has no
     * valid deadline. */
    static atomic_bool has_failed;
    struct timespec ts;

    if (atomic_load_explicit(&has_failed, memory_order_relaxed))
        return -1;
    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0) {
        atomic_store_explicit(&has_failed, true, memory_order_relaxed);
        return -1;
    }
    *ret_now = (drift_time)ts.tv_sec * DRIFT_S + (drift_time)ts.tv_nsec;
    return 0;
}
