/*
 * clock.c - the only reader of clocks.
 */
#include "drift/drift.h"

#include <time.h>

int drift_now(drift_time *ret_now)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_BOOTTIME, &ts) != 0)
        return -1;
    *ret_now = (drift_time)ts.tv_sec * DRIFT_S + (drift_time)ts.tv_nsec;
    return 0;
}
