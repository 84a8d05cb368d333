/*
 * check.h - the program of a model: its options, its runs, and the bugs that can be planted.
 *
 *   model-NAME                           the runs: no world is broken
 *   model-NAME --traps [by-hand]         every planted bug leads to a broken world
 *   model-NAME --stories                 the named stories are told; the rules refuse them
 *   model-NAME --list                    what there is
 *   model-NAME [RUN|BUG] [OPTION=N...]   one run, with other bounds
 *
 *   bug=NAME                   plants a bug.  The shortest story of a broken world is told
 *   mb=3000 seconds=600        limits of the search: memory and processor time
 *   walks=0 steps=300 seed=1   random walks in place of the search
 *
 * The other options are those of the model.  Exit status 0: all is as it must be.  1: it is not.
 * 2: an unknown argument, no memory, or the search reached a limit.
 */
#ifndef REDLOCK_TEST_MODELS_CHECK_H
#define REDLOCK_TEST_MODELS_CHECK_H

#include <stdbool.h>

#include "models/explorer.h"

struct option {
    const char *name;
    unsigned *value;
    unsigned least, most;
};

struct run {
    const char *name, *about;
    const char *options; /* As on the command line. */
    bool by_hand;        /* It takes too long for each build. */
};

/* A planted bug, and a run in which it must lead to a broken world. */
struct trap {
    const char *name, *about;
    const char *options; /* NULL: only a story shows it. */
    bool by_hand;
};

/* A trace that a planted bug takes to a broken world, and that the rules do not allow. */
struct story {
    const char *name, *about;
    unsigned bug;
    const char *options;
    const char *trace; /* As the told story prints it. */
};

/* Behind the last element of each table stands one without a name. */
struct check {
    const char *defaults; /* The value of every option of the model. */
    const struct option *options;
    bool (*read)(const char *name, const char *value); /* Options that are not numbers. */
    const struct run *runs;
    const struct trap *traps; /* Trap i is that of bug i, from 1. */
    const struct story *stories;
    struct model (*build)(void);

    /* What is wrong with all worlds together.  It may set the outcome's `broken`.  May be NULL. */
    void (*judge_all)(struct outcome *outcome);

    /* Sees that names do not change in a story.  True: search again.  May be NULL. */
    bool (*keep_names)(void);
};

extern unsigned planted; /* The number of the bug that is planted, or 0. */

static inline bool is_planted(unsigned bug)
{
    return planted == bug;
}

/* Reads lists of masters, as in `abc,abd` where FIRST is 'a'.  Returns how many lists there are, or
 * 0: there are too many, or a master that does not exist. */
unsigned check_read_lists(const char *text, char first, unsigned masters_max, unsigned *ret_lists,
                          unsigned lists_max);

int check_main(const struct check *check, int argc, char **argv);

#endif
