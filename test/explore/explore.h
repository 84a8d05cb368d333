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

/* 0: nothing is wrong; 1: something is, and was told; 2: there were more than
 * worlds_max worlds, so that nothing is known. */
int explore(const struct scenario *scenario, uint32_t worlds_max, struct explored *ret);

#endif /* TEST_EXPLORE_EXPLORE_H */
