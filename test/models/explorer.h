/*
 * explorer.h - searches every world that a model can reach.
 *
 * A model has a world, made of 32-bit words, and steps from one world to the next.  The explorer
 * knows nothing else about it.  The search is breadth first.  So the first broken world is
 * reached on a shortest way, and that way is the story of a bug.
 */
#ifndef REDLOCK_TEST_MODELS_EXPLORER_H
#define REDLOCK_TEST_MODELS_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORDS_MAX = 64, TRACE_MAX = 512 };

/* A step by name.  Only its model gives it a meaning. */
struct move {
    char kind;
    unsigned char a, b, c;
};

struct model {
    unsigned words; /* The size of a world, at most WORDS_MAX. */
    uint64_t used;  /* Bit i: word i is not 0 in every world.  The others are not stored. */

    void (*begin)(void *world); /* The world is 0 before. */

    /* Calls explorer_take() for every step out of WORLD. */
    void (*steps)(const void *world);

    /* Replaces WORLD by the one that stands for all worlds that differ in names alone.  May be
     * NULL.  It may miss some of them, which costs states.  It must not confuse others. */
    void (*rename)(void *world);

    /* Prints one line: what happened. */
    void (*tell)(const void *before, const void *after, struct move move);

    /* How often a random walk prefers a step, from 1.  NULL: it prefers none. */
    unsigned (*weight)(struct move move);
};

struct limits {
    unsigned megabytes, seconds;
    unsigned walks; /* 0: the search, else so many random walks. */
    unsigned walk_steps, seed;
};

struct outcome {
    const char *broken; /* The invariant that does not hold in some world, or NULL. */
    bool complete;      /* There is no other world within the bounds of the model. */
    size_t states, transitions;
    unsigned depth;
    double cpu_s;
    struct move trace[TRACE_MAX]; /* How the broken world is reached. */
    unsigned trace_len;
};

/* For model.steps alone: a step leads to NEXT.  KIND, A, B and C are the move.  BROKEN names the
 * invariant that the step breaks, or is NULL. */
void explorer_take(const void *next, char kind, unsigned a, unsigned b, unsigned c,
                   const char *broken);

/* The worlds that were found are kept until the next run. */
void explorer_run(const struct model *model, const struct limits *limits, struct outcome *out);

/* How many of the worlds that were found are so. */
size_t explorer_count(bool (*is_so)(const void *world));

/* After a complete search: how many worlds there are from which steps that count never lead to a
 * good one.  If there are any, the trace of the outcome leads to the first of them. */
size_t explorer_stuck(bool (*counts)(struct move move), bool (*is_good)(const void *world));

/* Walks a trace again, and tells it if ALOUD.  Returns how many steps could be taken.  BROKEN
 * is set to what the last of them broke, or to NULL. */
unsigned explorer_replay(const struct model *model, const struct move *trace, unsigned len,
                         bool aloud, const char **broken);

/* "p01a" and the like, which the told story prints beside each step. */
void explorer_write_move(struct move move, char text[5]);
struct move explorer_read_move(const char *text);

#endif
