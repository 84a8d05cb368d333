/*
 * test-node-any.c - what masters report of their clocks may be any numbers.
 */
#include "drift/node.h"

#include "test/lib/check.h"

/* A random number of 64 bits; all magnitudes are equally likely (xorshift64*, Vigna 2016). */
static uint64_t any(void)
{
    static uint64_t state = 1;

    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * UINT64_C(2685821657736338717)) >> (state & 63);
}

/* Looks for undefined behaviour, failing assertions, and ranges that are upside down. */
static void show_anything(struct drift_node *node, const struct drift_guard *guard)
{
    struct drift_sample sample = {0};

    for (unsigned i = 0; i < 50; i++) {
        struct drift_range range;

        sample.sent = any() % 2 == 0 ? sample.received : any();
        sample.received = drift_add(sample.sent, any());
        sample.node_us = any();
        (void)drift_node_sample(node, guard, &sample);
        CHECK(node->step.lo <= node->step.hi);
        CHECK(node->advance.lo <= node->advance.hi);
        (void)drift_node_counts(node, guard, any());
        CHECK(drift_node_offset(node, guard, any(), &range) != 0 || range.lo <= range.hi);
        CHECK(drift_node_rate(node, &range) != 0 || range.lo <= range.hi);
    }
}

TEST(any_numbers_do_no_harm)
{
    for (unsigned i = 0; i < 1000; i++) {
        struct drift_node node = {0};
        struct drift_guard guard = {.rate_ppm = (uint32_t)(any() % 500001)};
        struct drift_range range = {.hi = INT64_MAX};

        guard.tolerance = any();
        guard.window = any();
        guard.gap = any();
        range.lo = (int64_t)any();
        if (i % 2 == 0)
            drift_node_vouch(&node, &guard, any() >> 3, &range);
        show_anything(&node, &guard);
    }
}

CHECK_MAIN(RUN(any_numbers_do_no_harm))
