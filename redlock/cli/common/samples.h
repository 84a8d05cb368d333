/*
 * samples.h - the times that `redlock bench` measures, and their percentiles.
 */
#ifndef REDLOCK_SAMPLES_H
#define REDLOCK_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* Read CLOCK_MONOTONIC. */
uint64_t samples_now_ns(void);

/* The processor time of all threads, user and system together. */
uint64_t samples_cpu_ns(void);

/* The sample for a time.  4.3 s or more is the largest sample, so that a sample has 32 bits. */
uint32_t samples_of(uint64_t took_ns);

void samples_sort(uint32_t *samples_ns, size_t len);

/* The nearest-rank percentile of sorted samples.  0 if there are none. */
double samples_percentile_us(const uint32_t *sorted_ns, size_t len, unsigned percent);

#endif /* REDLOCK_SAMPLES_H */
