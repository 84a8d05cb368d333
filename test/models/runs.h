/*
 * runs.h - which worlds are searched: the runs, the bugs that are planted, the named stories.
 */
#ifndef REDLOCK_TEST_MODELS_RUNS_H
#define REDLOCK_TEST_MODELS_RUNS_H

#include <stdbool.h>

#include "models/bugs.h"

struct run {
    const char *name, *about;
    const char *options; /* As on the command line. */
    bool by_hand;        /* It takes too long for each build. */
};

/* A run that must end in a broken world. */
struct trap {
    enum bug bug;
    const char *about; /* With NO_BUG: what cannot be promised. */
    const char *options;
    bool by_hand;
};

/* A trace that a planted bug takes to a broken world, and that the rules do not allow. */
struct story {
    const char *name, *about;
    enum bug bug;
    const char *options;
    const char *trace; /* As the told story prints it. */
};

extern const struct run runs[];
extern const struct trap traps[];
extern const struct story stories[];
extern const unsigned runs_len, traps_len, stories_len;

#endif
