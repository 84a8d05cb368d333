/*
 * explore.h - every world that can come of a scenario.
 *
 * Breadth first: from the worlds that can be reached by n moves to those by n + 1,
 * each looked at once, until there are no others.  Breadth first also means that
 * the first wrong world that is found is the one with the shortest story, which
 * is then told.
 */
#ifndef TEST_EXPLORE_EXPLORE_H
#define TEST_EXPLORE_EXPLORE_H

#include <stdint.h>

#include "explore/model.h"

struct explored {
    size_t worlds, starts;
    uint64_t moves;
    unsigned depth;
};

enum {
    EXPLORE_FINE,
    EXPLORE_WRONG,     /* Something is, and was told. */
    EXPLORE_EXPECTED,  /* Likewise, but it is what was expected. */
    EXPLORE_CUT_SHORT, /* It would have taken more memory: nothing is known. */
};

struct sought {
    size_t memory_max; /* Bytes, or so. */
    bool tell;         /* The story of what is expected as well. */
    const char *only;  /* What else is wrong is passed by; NULL: everything is looked for. */
    bool plain;        /* Worlds are known by all their bytes. */
    bool starts;       /* Count worlds, by model_hash(), at the starts of ticks. */
};

int explore(const struct scenario *scenario, const struct sought *sought, struct explored *ret);

#endif /* TEST_EXPLORE_EXPLORE_H */
