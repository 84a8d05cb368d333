/*
 * model.h - a small world around the real machine: clients, masters, links, time.
 *
 * The explorer tries everything that can happen within these bounds, and nothing else:
 *
 * Time goes in ticks.  It is the true time, and the clients' clocks are right.  All masters'
 * clocks are always as wrong as the allowance permits.  So all keys live too short, or all
 * too long; the scenario says which.  A key lives from the end of the tick before the one in
 * which it was set.  A world ends after some number of ticks.
 *
 * In each tick first the masters have their turns, and then the clients: A, which begins
 * first, before B.  Masters do not talk to each other, nor do clients, so this leaves out only
 * two orders of events.  No command is sent, obeyed and answered in one instant.  In no tick
 * does B win a lock before A gives it up in the same tick (but A may give it up later).
 *
 * In its turn a master or client does all its work - obey commands, take answers, ring the
 * alarm - in any order.  There are two exceptions.  One that hangs does nothing, for any number
 * of turns.  One that dawdles leaves some work for its next turn.  Clients begin, release,
 * extend and cancel in any of their turns, or never.  Each pause between two rounds is a tick.
 *
 * A link is a stream in each direction.  A master obeys commands in order, and a client takes
 * answers in order.  With three unanswered commands a link takes no more.  A link may be cut
 * in one direction until it heals: then either commands or answers do not arrive.  It may
 * break: then its answers are lost.  A master may obey the first commands of a broken link
 * later, behind the back of the next link.  While some are left, the link does not break again.
 *
 * A master may answer a command with an error and not obey it.  It may lose its data without
 * breaking its links.
 *
 * Where fencing tokens are drawn, each master has a counter, which begins at a number of the
 * scenario and is never lost.  Setting the key and counting are two commands.  Anything may
 * happen between them, and either may be answered with an error.  (If the key exists, no
 * client uses the count, so the master counts at once.)
 *
 * The scenario limits how often each of these happens: hangs, dawdled turns, cuts, breaks,
 * errors, data lost, extensions by the owner, and rounds that an announcement begins early.
 *
 * The fuzzer and the simulator try what is not tried here: adopted and detached leases, links
 * that are still coming up, several leases or lengths of leases, limits of how long a lock is
 * held, extensions that are obeyed and answered with an error.
 */
#ifndef TEST_EXPLORE_MODEL_H
#define TEST_EXPLORE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/quorum.h"

#define CLIENTS 2
#define MASTERS 3
#define ITEMS_MAX 4 /* On one link: with three unanswered it counts as full. */

#define TICK (10 * DRIFT_MS)
#define START (1000 * DRIFT_MS)

/* Events that the scenario limits. */
enum rare {
    RARE_HANG, /* A master or client begins to hang. */
    RARE_DAWDLE,
    RARE_CUT,
    RARE_BREAK,
    RARE_ERROR,
    RARE_FORGET,
    RARE_EXTEND, /* By the owner. */
    RARE_WAKE,   /* A round begins before its pause is over. */
    RARE_LEN
};

struct scenario {
    const char *name;
    const char *about;
    const char *expected; /* The violation that is known; NULL: there must be none. */
    unsigned clients;
    unsigned ticks; /* The length of a world. */
    unsigned lease, extension;
    unsigned allowance; /* The allowance of a lease. */
    bool slow;          /* The masters' clocks are slow, and keys live too long. */
    unsigned timeout;
    unsigned wait; /* A client keeps trying for so long. */
    unsigned margin;
    bool renew, keeps; /* Clients renew; clients never release. */
    bool cancels;
    bool fence;                /* Each lock draws a fencing token. */
    uint8_t counters[MASTERS]; /* The masters' counters when the world begins. */
    bool stepped;              /* A master loses a key because its clock is stepped.  Exclusion is
                                * not promised then, but fencing is. */
    uint8_t at_most[RARE_LEN];
};

/* A command, and once it is obeyed its answer. */
struct item {
    uint8_t command, vote;
    uint8_t ask, round;
    uint8_t lease, sent; /* Ticks of a SET or an extension; else 0. */
    uint8_t counter;     /* The number that was counted to, or that is asked for. */
    bool is_half;        /* A lock with a fencing token: the key is set, the count is to come. */
};

enum { CUT_COMMANDS = 1, CUT_ANSWERS = 2 };

struct link {
    struct item items[ITEMS_MAX]; /* The first ones, in number obeyed, are answers. */
    uint8_t items_len, obeyed;
    struct item ghosts[ITEMS_MAX]; /* Commands of a broken link that may be obeyed later. */
    uint8_t ghosts_len;
    uint8_t cut;
    bool up;
};

struct key {
    uint8_t owner; /* The client's number + 1; 0: the key is free. */
    uint8_t round; /* The owner's round.  Owner and round are the token. */
    uint8_t until; /* The tick in which it expires. */
    bool late;     /* It was set so late that it outlives settle_by of its owner. */
    bool excused;  /* No client can have it released. */
};

struct client {
    struct quorum q; /* The real machine. */
    struct quorum_fence fence;
    uint8_t fence_after; /* The greatest token that was drawn when the round began. */
    drift_time wake_at;
    bool begun;
    bool busy;          /* A request of the owner has not ended. */
    bool told;          /* The lost notice was given. */
    bool held, over;    /* The lock is held; it was held, and is not any more. */
    uint8_t given_back; /* The round that is being released. */
    uint8_t gone;       /* Masters that answered that they do not have the key. */
    uint8_t robbed;     /* Masters that lost the key with their data. */
};

/* A world is plain bytes, padding included, so that it can be copied and stored. */
struct world {
    struct client clients[CLIENTS];
    struct link links[CLIENTS][MASTERS];
    struct key keys[MASTERS];
    uint64_t drawn; /* A bit for each fencing token. */
    uint8_t counters[MASTERS];
    uint8_t tick;
    uint8_t turn;    /* The master, or MASTERS + the client, whose turn it is. */
    uint8_t hanging; /* A bit for each turn whose master or client hangs. */
    bool moved;      /* Something was done in this turn. */
    uint8_t left[RARE_LEN];
};

enum move_kind {
    MOVE_ACQUIRE,
    MOVE_TIMER,
    MOVE_RELEASE,
    MOVE_CANCEL,
    MOVE_EXTEND,
    MOVE_WAKE,
    MOVE_OBEY,
    MOVE_REFUSE,
    MOVE_HEAR,
    MOVE_CUT_COMMANDS,
    MOVE_CUT_ANSWERS,
    MOVE_HEAL,
    MOVE_BREAK,
    MOVE_CONNECT,
    MOVE_GHOST,
    MOVE_FORGET,
    MOVE_PASS, /* The turn goes to the next. */
};

struct move {
    uint8_t kind, client, master;
};

static inline drift_time model_now(const struct world *world)
{
    return START + world->tick * TICK;
}

void model_begin(const struct scenario *scenario, struct world *world);

/* All moves that are possible next; returns how many. */
#define MOVES_MAX (6 + 4 * MASTERS + 1)
size_t model_moves(const struct scenario *scenario, const struct world *world,
                   struct move moves[MOVES_MAX]);

/* Do a move.  Returns NULL, or what is wrong then.  told (may be NULL) gets it as a line. */
const char *model_do(const struct scenario *scenario, struct world *world, struct move move,
                     char *told, size_t told_size);

/* Not assert(): it must hold in every build. */
void model_must(bool condition, const char *what);

/* ---- Masters (masters.c) ---- */

/* Obey a command; the item becomes its answer.  Returns NULL, or what is wrong then. */
const char *masters_obey(const struct scenario *scenario, struct world *world, unsigned c,
                         unsigned m, struct item *item);
/* True if the key stores the token of this command. */
bool masters_have(const struct key *key, unsigned c, const struct item *item);
void masters_free(struct key *key);

/* ---- Rules (rules.c): each returns NULL, or what is wrong ---- */

bool rules_believes(const struct world *world, unsigned c);
const char *rules_of_step(const struct scenario *scenario, struct world *world, unsigned c,
                          const struct quorum *before, const struct quorum_event *event,
                          const struct quorum_actions *act);
const char *rules_of_world(const struct scenario *scenario, struct world *world);
/* The client passes its turn, and has no work left. */
const char *rules_of_pass(const struct scenario *scenario, const struct world *world, unsigned c);

/* ---- Hashes (hash.c) ---- */

/* The same for worlds that will behave alike: they differ only in the past, or in the
 * numbering of the masters. */
uint64_t model_hash(const struct world *world);

/* The same only for worlds whose bytes are the same. */
uint64_t model_hash_all(const struct world *world);

#endif /* TEST_EXPLORE_MODEL_H */
