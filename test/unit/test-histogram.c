/*
 * test-histogram.c - each time is counted in one bucket, and the limits are those of redlock.h.
 */
#include "redlock/base/histogram.h"

#include "test/lib/check.h"

TEST(a_limit_belongs_to_its_bucket)
{
    for (unsigned i = 0; i < REDLOCK_BUCKETS - 1; i++) {
        drift_span limit = REDLOCK_BUCKET_US(i) * UINT64_C(1000);

        CHECK_UINT(histogram_bucket(limit - 1), i);
        CHECK_UINT(histogram_bucket(limit), i);
        CHECK_UINT(histogram_bucket(limit + 1), i + 1);
    }
}

TEST(the_ends)
{
    CHECK_UINT(histogram_bucket(0), 0);
    CHECK_UINT(histogram_bucket(1), 0);
    CHECK_UINT(histogram_bucket(REDLOCK_BUCKET_US(REDLOCK_BUCKETS - 1) * UINT64_C(4000)),
               REDLOCK_BUCKETS - 1);
    CHECK_UINT(histogram_bucket(DRIFT_NEVER), REDLOCK_BUCKETS - 1);
    CHECK_UINT(REDLOCK_BUCKET_US(0), 32);
    CHECK_UINT(REDLOCK_BUCKET_US(REDLOCK_BUCKETS - 2), UINT64_C(8589934592)); /* 2.4 hours. */
}

TEST(the_sum_and_the_counts)
{
    struct redlock_histogram histogram = {.sum_ns = 0};
    uint64_t all = 0;

    histogram_add(&histogram, 7, 7 + 32000);
    histogram_add(&histogram, 7, 7 + 32001);
    histogram_add(&histogram, 7, 7 + 1);
    histogram_add(&histogram, 7, DRIFT_NEVER); /* The clock failed. */
    histogram_add(&histogram, 7, 6);           /* Nothing ends before it begins. */
    CHECK_UINT(histogram.sum_ns, 64002);
    CHECK_UINT(histogram.counts[0], 3);
    CHECK_UINT(histogram.counts[1], 1);
    for (unsigned i = 0; i < REDLOCK_BUCKETS; i++)
        all += histogram.counts[i];
    CHECK_UINT(all, 4);
}

CHECK_MAIN(RUN(a_limit_belongs_to_its_bucket), RUN(the_ends), RUN(the_sum_and_the_counts))
