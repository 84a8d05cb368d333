/*
 * model.h - a small world around the real machine: clients, masters, links, time.
 *
 * Time goes in ticks, which all share: it is the true time, and the clients'
 * clocks are right.  The masters' are as wrong as the allowance permits, all of
 * them, always: they let a key live so much less than they were told, or so much
 * more, whichever is worse.
 *
 * A master obeys what is on a link in order, at any time; a client hears what a
 * master answered in order, at any later time.  When a link breaks, answers on
 * it are gone; commands on it may still be obeyed (a master that hangs reads
 * them when it wakes up), later and behind the back of the next link.
 *
 * In each tick the masters have their turn, one after the other, and then the
 * clients.  As masters do not talk to each other, and clients do not either, that
 * leaves out no order of things but those where a command is sent, obeyed and
 * answered in no time at all.
 *
 * In its turn everybody does all that there is to do - obey commands, hear answers,
 * ring the alarm - in any order; but for those who hang, which do nothing for as
 * many turns as they like, and those who dawdle, which do some and leave some for
 * their next turn.  Only so often does anybody begin to hang, or dawdle.
 */
#ifndef TEST_EXPLORE_MODEL_H
#define TEST_EXPLORE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/quorum.h"

#define CLIENTS 2
#define MASTERS 3
#define ITEMS_MAX 4 /* On one link: with three unanswered it counts as full. */

#define TICK (10 * DRIFT_MS)
#define START (1000 * DRIFT_MS)

/* What may happen, and how often. */
struct scenario {
    const char *name;
    const char *about;
    unsigned clients;
    unsigned ticks; /* The world ends then. */
    unsigned lease;
    unsigned allowance;   /* Of it. */
    bool slow;            /* Masters' clocks: whether keys live longer than told, or shorter. */
    unsigned timeout;     /* Ticks. */
    unsigned wait;        /* Ticks that a client keeps trying. */
    bool renew, releases; /* Whether clients renew, and whether they give back. */
    bool cancels;
    unsigned hangs;   /* Times that a client or a master begins to hang, */
    unsigned dawdles; /* and turns in which one dawdles. */
    unsigned breaks;  /* Links that break. */
    unsigned forgets; /* Masters that lose their memory. */
};

/* A command, and once it is obeyed its answer. */
struct item {
    uint8_t command, vote;
    uint8_t ask, round;
    uint8_t lease, sent; /* Ticks. */
};

struct link {
    struct item items[ITEMS_MAX]; /* The first so many are obeyed, and to be heard. */
    uint8_t items_len, obeyed;
    struct item ghosts[ITEMS_MAX]; /* Of a link that broke: not obeyed yet. */
    uint8_t ghosts_len;
    bool up;
};

struct key {
    uint8_t owner; /* 1 and up; 0: free. */
    uint8_t round; /* The owner's: with it, the token. */
    uint8_t until; /* Tick. */
    bool late;     /* Obeyed so late that it outlives what its owner remembers. */
    bool excused;  /* Nobody could have it released. */
};

struct client {
    drift_time wake_at;
    struct quorum q; /* The real one. */
    bool begun, told, held, over;
    uint8_t gone; /* Masters that were heard to say that they have lost the key. */
};

/* Plain bytes, padding included, so that it can be hashed and compared. */
struct world {
    struct client clients[CLIENTS];
    struct link links[CLIENTS][MASTERS];
    struct key keys[MASTERS];
    uint8_t tick, hangs, dawdles, breaks, forgets;
    uint8_t turn;    /* Whose it is: the masters', then the clients'. */
    uint8_t hanging; /* A bit for each of these. */
    bool moved;      /* Something was done in this turn. */
};

enum move_kind {
    MOVE_ACQUIRE,
    MOVE_TIMER,
    MOVE_RELEASE,
    MOVE_CANCEL,
    MOVE_OBEY,
    MOVE_HEAR,
    MOVE_BREAK,
    MOVE_CONNECT,
    MOVE_GHOST,
    MOVE_FORGET,
    MOVE_PASS, /* The turn goes to the next. */
};

struct move {
    uint8_t kind, client, master;
};

void model_begin(const struct scenario *scenario, struct world *world);

/* All that can happen next; returns how many. */
#define MOVES_MAX (4 + 5 * MASTERS)
size_t model_moves(const struct scenario *scenario, const struct world *world,
                   struct move moves[MOVES_MAX]);

/* Let it happen; NULL, or what is wrong then.  told (may be NULL): as a line. */
const char *model_do(const struct scenario *scenario, struct world *world, struct move move,
                     char *told, size_t told_size);

/* The same for worlds that differ in the numbering of the masters alone. */
uint64_t model_hash(const struct world *world);

#endif /* TEST_EXPLORE_MODEL_H */
