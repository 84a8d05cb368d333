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
    uint32_t worlds;
    uint64_t moves;
    unsigned depth;
};

enum {
    EXPLORE_FINE,
    EXPLORE_WRONG,     /* Something is, and was told. */
    EXPLORE_EXPECTED,  /* Likewise, but it is what was expected. */
    EXPLORE_CUT_SHORT, /* There were more than worlds_max worlds: nothing is known. */
};

struct sought {
    uint32_t worlds_max;
    bool tell;        /* The story of what is expected as well. */
    const char *only; /* What else is wrong is passed by; NULL: everything is looked for. */
};

int explore(const struct scenario *scenario, const struct sought *sought, struct explored *ret);

#endif /* TEST_EXPLORE_EXPLORE_H */
