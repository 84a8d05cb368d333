/*
 * samples.c - reads clocks, and sorts samples.
 */
#include "redlock/cli/common/samples.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

uint64_t samples_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* Cannot fail with this clock. */
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t timeval_ns(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

uint64_t samples_cpu_ns(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage); /* Cannot fail with these arguments. */
    return timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime);
}

uint32_t samples_of(uint64_t took_ns)
{
    return took_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)took_ns;
}

static int compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

void samples_sort(uint32_t *samples_ns, size_t len)
{
    qsort(samples_ns, len, sizeof *samples_ns, compare);
}

double samples_percentile_us(const uint32_t *sorted_ns, size_t len, unsigned percent)
{
    return len == 0 ? 0 : sorted_ns[(len * percent + 99) / 100 - 1] / 1e3;
}
