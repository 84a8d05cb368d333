/*
 * model.h - a small world around the real machine: clients, masters, links, time.
 *
 * What is tried is everything that can happen within these bounds, and nothing
 * beyond them:
 *
 * Time goes in ticks, which all share: it is the true time, and the clients'
 * clocks are right.  The masters' are as wrong as the allowance permits, all of
 * them, always: they let a key live so much less than they were told, or so much
 * more, whichever is worse in a scenario; and a key lives from the end of the
 * tick before the one in which it was set.  A world ends after so many ticks.
 *
 * In each tick the masters have their turn, one after the other, and then the
 * clients, A (who begins first) before B.  As masters do not talk to each other,
 * and clients do not either, that leaves out no order of things but these: that a
 * command is sent, obeyed and answered in no time at all, and that B wins a lock
 * in the same tick as A gives it up and before (but A may give it up later).
 *
 * In its turn everybody does all that there is to do - obey commands, hear answers,
 * ring the alarm - in any order; but for those who hang, which do nothing for as
 * many turns as they like, and those who dawdle, which do some and leave some for
 * their next turn.  Clients begin, give back, extend and cancel in any of their
 * turns, or never; all pauses between two rounds are one tick.
 *
 * A link is a stream each way.  A master obeys what is on it in order; a client
 * hears the answers in order; with three unanswered it takes no more.  It may be
 * cut in one direction, and be as it was when that heals: commands that do not
 * arrive, or answers that do not.  It may break: then answers on it are gone, and
 * commands on it that were not obeyed yet may be obeyed later (by a master that
 * hung), behind the back of the next link, the first so many of them, or never.
 * Until they are, that link does not break again.
 *
 * A master may answer with an error what it does not do.  It may lose all that it
 * stores, without breaking its links.
 *
 * Where fencing tokens are drawn, each master counts what it is asked, from a number that
 * the scenario says; that it does not lose.  To set the key and to count are two commands:
 * anything may happen between them, and either may be answered with an error.  (Where the key
 * is there already nobody looks at the count, so that it may as well come at once.)
 *
 * All these - hangs, turns dawdled, cuts, breaks, errors, memories lost, extensions
 * by the owner, rounds that begin at once since it is heard that the lock is free - happen at most
 * so often in a world, which the scenario says.
 *
 * Not tried here, but by the fuzzer and the simulator: adopted and detached leases,
 * links that are still coming up, more than one lease or of other lengths, limits of
 * how long a lock is held, extensions that are done and answered with an error.
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

/* What happens at most so often. */
enum rare {
    RARE_HANG, /* Somebody begins to hang. */
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
    const char *expected; /* What is known to go wrong; NULL: nothing may. */
    unsigned clients;
    unsigned ticks; /* The world ends then. */
    unsigned lease, extension;
    unsigned allowance; /* Of it. */
    bool slow;          /* Masters' clocks: whether keys live longer than told, or shorter. */
    unsigned timeout;
    unsigned wait; /* A client keeps trying for so long. */
    unsigned margin;
    bool renew, keeps; /* Clients renew; they never give back. */
    bool cancels;
    bool fence;                /* A fencing token is drawn with each lock; */
    uint8_t counters[MASTERS]; /* what the masters have counted to before. */
    bool stepped;              /* Who loses a key has had its clock stepped: of exclusion nothing is
                                * promised, but of fencing tokens all the same. */
    uint8_t at_most[RARE_LEN];
};

/* A command, and once it is obeyed its answer. */
struct item {
    uint8_t command, vote;
    uint8_t ask, round;
    uint8_t lease, sent; /* Ticks; of a SET or an extension. */
    uint8_t counter;     /* What was counted to, or is to be. */
    bool is_half;        /* Of a lock with a fencing token: done but for the count. */
};

enum { CUT_COMMANDS = 1, CUT_ANSWERS = 2 };

struct link {
    struct item items[ITEMS_MAX]; /* The first so many are obeyed, and to be heard. */
    uint8_t items_len, obeyed;
    struct item ghosts[ITEMS_MAX]; /* Of a link that broke: not obeyed yet. */
    uint8_t ghosts_len;
    uint8_t cut;
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
    struct quorum q; /* The real one. */
    struct quorum_fence fence;
    uint8_t fence_after; /* The greatest token that was drawn when the round began. */
    drift_time wake_at;
    bool begun;
    bool busy;          /* Something was asked for that has not ended. */
    bool told;          /* Of the loss. */
    bool held, over;    /* Now; and once, but no more. */
    uint8_t given_back; /* The round that is being so. */
    uint8_t gone;       /* Masters that were heard to say that they do not have the key, */
    uint8_t robbed;     /* and those that have lost it with their memory. */
};

/* Plain bytes, padding included, so that it can be copied and put away. */
struct world {
    struct client clients[CLIENTS];
    struct link links[CLIENTS][MASTERS];
    struct key keys[MASTERS];
    uint64_t drawn; /* A bit for each fencing token. */
    uint8_t counters[MASTERS];
    uint8_t tick;
    uint8_t turn;    /* Whose it is: the masters', then the clients'. */
    uint8_t hanging; /* A bit for each of these. */
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

/* All that can happen next; returns how many. */
#define MOVES_MAX (6 + 4 * MASTERS + 1)
size_t model_moves(const struct scenario *scenario, const struct world *world,
                   struct move moves[MOVES_MAX]);

/* Let it happen; NULL, or what is wrong then.  told (may be NULL): as a line. */
const char *model_do(const struct scenario *scenario, struct world *world, struct move move,
                     char *told, size_t told_size);

/* Not assert(): it must hold in every build. */
void model_must(bool condition, const char *what);

/* ---- Masters (masters.c) ---- */

/* Obey a command, which becomes its answer; NULL, or what is wrong then. */
const char *masters_obey(const struct scenario *scenario, struct world *world, unsigned c,
                         unsigned m, struct item *item);
/* Whether it is the token of this command. */
bool masters_have(const struct key *key, unsigned c, const struct item *item);
void masters_free(struct key *key);

/* ---- Rules (rules.c): NULL, or what is wrong ---- */

bool rules_believes(const struct world *world, unsigned c);
const char *rules_of_step(const struct scenario *scenario, struct world *world, unsigned c,
                          const struct quorum *before, const struct quorum_event *event,
                          const struct quorum_actions *act);
const char *rules_of_world(const struct scenario *scenario, struct world *world);
/* The client's turn is over, and all that there was to do is done. */
const char *rules_of_pass(const struct scenario *scenario, const struct world *world, unsigned c);

/* ---- Hashes (hash.c) ---- */

/* The same for worlds that will do alike: that differ in the past alone, or in the
 * numbering of the masters. */
uint64_t model_hash(const struct world *world);

/* The same for worlds that are the same. */
uint64_t model_hash_all(const struct world *world);

#endif /* TEST_EXPLORE_MODEL_H */
