/*
 * world.h - a small world: several founder machines, and masters that keep the rules of the
 * scripts.
 *
 * What can happen, in any order: a founder begins; a master executes a command of a founder, which
 * reads the answer at once; a founder is stopped, and begins again; a command is late, and its
 * founder does not wait for it; a founder dies, and its commands are executed later or never; a
 * master forgets; a member gets a later version.
 *
 * An answer is read in the step that causes it.  Nothing is lost by that: what a founder then does
 * may happen at any later time.
 */
#ifndef TEST_FOUNDER_WORLD_H
#define TEST_FOUNDER_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "models/explorer.h"
#include "redlock/core/founder.h"

#define MASTERS 5
#define FOUNDERS 4
#define NUMBERS 23 /* 0: none.  More than a world has at a time. */

enum has { HAS_NOTHING, HAS_CLAIM, HAS_SET };

struct master {
    uint8_t has;
    uint8_t list; /* A mask of masters. */
    uint8_t number;
    uint8_t ver;     /* Of the configuration. */
    uint8_t forgot;  /* At any time. */
    uint8_t excused; /* It forgot its part in a decision. */
};

/* A machine, without what is the same in all worlds. */
struct packed {
    uint8_t phase, stopping, own, took, number, set, other;
    uint8_t asked[MASTERS];
};

struct actor {
    struct packed machine;
    uint8_t is_dead;
};

/* A command that its founder does not wait for any more. */
struct mail {
    uint8_t command, master, list, number, set;
};

/* All bytes count.  The explorer takes it as 24 words. */
struct world {
    struct master masters[MASTERS];
    struct actor actors[FOUNDERS];
    struct mail mail;
    uint8_t forgets, crashes, delays, changes; /* How many there were. */
    uint8_t decided[3]; /* Bit n: all masters of its list carried number n at one time. */
    uint8_t unused[2];
};

_Static_assert(sizeof(struct world) % 4 == 0, "the explorer takes whole words");

struct bounds {
    uint8_t lists[FOUNDERS];
    unsigned founders, masters;
    unsigned forgets, crashes, delays, changes; /* At most. */
    bool begun;
};

extern struct bounds bounds;

/* The kind of a move. */
enum what {
    DO_BEGIN = 'b',   /* Also: begin an attempt after a pause. */
    DO_EXECUTE = 'x', /* The master executes the command of the founder. */
    DO_STOP = 's',
    DO_DELAY = 'd',  /* The command stays away. */
    DO_ARRIVE = 'a', /* It is executed. */
    DO_DIE = 'k',
    DO_REVIVE = 'r',
    DO_FORGET = 'f',
    DO_CHANGE = 'v',
};

/* What causes a move, as its last number. */
enum cause { PLAIN, FAULT, OPERATOR };

void world_begin(void *ret_world);
void world_steps(const void *world);

/* ---- settle.c ---- */

bool world_is_majority(unsigned list, unsigned mask);

/* The members of this set. */
unsigned world_members(const struct world *w, unsigned list, unsigned number);

/* All masters of its list carried this number at one time. */
bool world_is_decided(const struct world *w, unsigned number);

/* The number of the set of this list: from 1, and below those of attempts. */
uint8_t world_set_of(unsigned list);

/* A number that nothing carries. */
uint8_t world_free_number(const struct world *w);

/* What is wrong in the world, or NULL.  Only these words, if they are not NULL. */
extern const char *world_sought;
const char *world_judge(const struct world *w);

/* A set has members: a majority of its list, or wholly all. */
bool world_is_founded(const struct world *w, bool wholly);

/* Notes decisions, and gives numbers by the order in which they appear. */
void world_settle(struct world *w);

/* ---- masters.c ---- */

const char *world_list_text(unsigned list);

/* The master executes a command. */
void master_execute(struct master *m, enum founder_command command, uint8_t list, uint8_t number,
                    uint8_t set, struct founder_answer *ret_answer);

#endif /* TEST_FOUNDER_WORLD_H */
