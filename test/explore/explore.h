/*
 * explore.h - find every world that a scenario can reach.
 *
 * The search is breadth first: from the worlds after n moves to those after n + 1.  It
 * tries each world once, and ends when it finds no new one.  So the first wrong world
 * has one of the shortest stories, which is printed.
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
    EXPLORE_WRONG,     /* A rule is violated, and the story was printed. */
    EXPLORE_EXPECTED,  /* The violation is the one that the scenario expects. */
    EXPLORE_CUT_SHORT, /* The search needs too much memory, and proves nothing. */
};

struct sought {
    size_t memory_max; /* Bytes, approximately. */
    bool tell;         /* Print the story of an expected violation, too. */
    const char *only;  /* The only violation that is reported; NULL: report each. */
    bool plain;        /* Worlds are recognised by all their bytes. */
    bool starts;       /* Count worlds, by model_hash(), at the starts of ticks. */
};

int explore(const struct scenario *scenario, const struct sought *sought, struct explored *ret);

#endif /* TEST_EXPLORE_EXPLORE_H */
