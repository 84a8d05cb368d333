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
 * Tokens may wait at the masters between two rounds (fair locks).  Then each SET lets its token
 * wait for a lease.  A holder's release passes the key on to the token of the other client that
 * waits there.  The message of that may come at any time, or never.  There is no queue: whoever
 * waits is the first.
 *
 * The set of masters may change (change.c).  The scenario lists its configurations, from version
 * 1 on.  An operator writes each version to the masters, one by one, in any order, at any time, or
 * never.  It writes the first version after a joint one only when a majority of the old list has
 * stored the joint one, the longest lease has passed, and counters are raised.  A client begins
 * with any version that a master stores.  It takes a greater one over when an answer shows it, or
 * at any other time.  The vote in such an answer is void.  The votes of a master that lost
 * its data are void for the longest lease.  Then it gets back the greatest version that enough
 * others tell.  Which others tell is not tried: it is those whose greatest version is the least.
 *
 * Another process may adopt the token of a holder, which ends then.  It may know an older version.
 *
 * The scenario limits how often each of these happens: hangs, dawdled turns, cuts, breaks,
 * masters that may not vote for a while, errors, data lost, extensions by the owner, rounds that an
 * announcement begins early, versions taken over without an answer that shows them, and adoptions.
 *
 * The fuzzer and the simulator try what is not tried here: detached leases, links that are still
 * coming up, several leases or lengths of leases, limits of how long a lock is
 * held, extensions that are obeyed and answered with an error.
 */
#ifndef TEST_EXPLORE_MODEL_H
#define TEST_EXPLORE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/quorum.h"

#define CLIENTS 2
#define MASTERS 5 /* At most; the scenario says how many there are. */
#define VERSIONS_MAX 5
#define ITEMS_MAX 4 /* On one link: with three unanswered it counts as full. */

#define TICK (10 * DRIFT_MS)
#define START (1000 * DRIFT_MS)

/* Events that the scenario limits. */
enum rare {
    RARE_HANG, /* A master or client begins to hang. */
    RARE_DAWDLE,
    RARE_CUT,
    RARE_BREAK,
    RARE_MUTE, /* A master may not vote for a client, although their link is up. */
    RARE_ERROR,
    RARE_FORGET,
    RARE_EXTEND, /* By the owner. */
    RARE_WAKE,   /* A round begins before its pause is over. */
    RARE_LOOK,   /* A client takes a version over without an answer that shows it. */
    RARE_ADOPT,  /* Another process takes over the token of a holder that ends. */
    RARE_LEN
};

/* What is left out of the rules of a change, to see that the scenario shows the harm. */
enum left_out {
    ALL_RULES,
    NO_WAIT,  /* M5 (2): the longest lease passes before simple(L2) is chosen. */
    NO_VOID,  /* M1: a vote does not count if the master shows a greater version. */
    NO_RAISE, /* F4: the counters of a quorum of L2 are raised. */
    NO_WATCH, /* M7: a master that lost its data is watched for the longest lease. */
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
    bool many;                 /* Of several names.  A master loses the same one, and no data. */
    bool stands;               /* Tokens wait at the masters, and releases pass the key on. */
    bool fence;                /* Each lock draws a fencing token. */
    uint8_t counters[MASTERS]; /* The masters' counters when the world begins. */
    bool stepped;              /* A master loses a key because its clock is stepped.  Exclusion is
                                * not promised then, but fencing is. */
    unsigned masters;          /* 0: three. */
    unsigned versions_len;     /* Of configurations; 0: the set of masters does not change. */
    struct members versions[VERSIONS_MAX]; /* Of masters. */
    bool renumbered;          /* Two masters that are never members at once have one number. */
    uint8_t numbers[MASTERS]; /* If so: the numbers. */
    enum left_out left_out;
    bool if_named; /* It takes long, so it is explored only if it is named. */
    uint8_t at_most[RARE_LEN];
};

/* A command, and once it is obeyed its answer. */
struct item {
    uint8_t command, vote;
    uint8_t ask, round;
    uint8_t lease, sent; /* Ticks of a SET or an extension; else 0. */
    uint8_t counter;     /* The number that was counted to, or that is asked for. */
    uint8_t version;     /* That the client knew; once it is obeyed, that of the master. */
    bool is_half;        /* A lock with a fencing token: the key is set, the count is to come. */
    bool is_unproven;    /* The master lost its data, and its votes do not count yet. */
    uint8_t how;         /* enum how; only if tokens wait. */
    uint8_t round_sent;  /* Likewise: the tick from which a lease of this SET counts. */
};

/* What a release does with the token that waits (release_fair.lua). */
enum how { HOW_BACK, HOW_LEAVE, HOW_PASS };

enum { CUT_COMMANDS = 1, CUT_ANSWERS = 2 };

struct link {
    struct item items[ITEMS_MAX]; /* The first ones, in number obeyed, are answers. */
    uint8_t items_len, obeyed;
    struct item ghosts[ITEMS_MAX]; /* Commands of a broken link that may be obeyed later. */
    uint8_t ghosts_len;
    uint8_t cut;
    bool up, mute;
};

struct key {
    uint8_t owner; /* The client's number + 1; 0: the key is free. */
    uint8_t round; /* The owner's round.  Owner and round are the token. */
    uint8_t until; /* The tick in which it expires. */
    bool late;     /* It was set so late that it outlives settle_by of its owner. */
    bool excused;  /* No client can have it released. */
    bool partial;  /* Of several names, one is gone. */
};

/* A token that waits at a master. */
struct waiting {
    uint8_t round; /* 0: none waits. */
    uint8_t lease; /* That it gets. */
    uint8_t sent;  /* The tick from which that lease counts. */
    uint8_t until; /* The tick in which the waiter counts as dead. */
    bool excused;  /* No client can have it dropped. */
};

/* A message that a master has passed the key on. */
struct notice {
    uint8_t round, sent;
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
    bool won;           /* It was held at some time, also if this step has ended it. */
    uint8_t given_back; /* The round that is being released. */
    uint8_t gone;       /* Masters that answered that they do not have the key. */
    uint8_t robbed;     /* Masters that lost the key with their data. */
    uint8_t version;    /* The newest configuration that it knows. */
    uint8_t confirmed;  /* The configuration under which the hold began or was made longer. */
    uint8_t fresh;      /* Masters that joined since the round began, and did not say yes. */
    uint8_t adopted;    /* enum adopted. */
};

enum adopted { NOT_ADOPTED, ADOPTED, ADOPTED_DEAD /* No majority stores the token any more. */ };

/* Who changes the set of masters (change.c). */
struct operator
{
    uint8_t chosen; /* The newest configuration that may be written. */
    uint8_t seen;   /* Masters that were seen to store the joint version: M5 (1). */
    uint8_t since;  /* 1 + the tick in which they were a majority of L1. */
    uint8_t read;   /* Masters of L1 whose counters were read. */
    uint8_t raised; /* Masters of L2 whose counters were raised to greatest. */
    uint8_t greatest;
};

/* A world is plain bytes, padding included, so that it can be copied and stored. */
struct world {
    struct client clients[CLIENTS];
    struct link links[CLIENTS][MASTERS];
    struct key keys[MASTERS];
    struct waiting waiting[CLIENTS][MASTERS];
    struct notice notices[CLIENTS][MASTERS]; /* The latest of each master: the last may be lost. */
    uint64_t drawn;                          /* A bit for each fencing token. */
    uint8_t counters[MASTERS];
    uint8_t versions[MASTERS]; /* The configuration that each master stores. */
    uint8_t watched[MASTERS];  /* The tick in which a master that lost its data may vote again. */
    struct operator operator;
    uint8_t masters; /* How many there are. */
    uint8_t tick;
    uint8_t turn;    /* The master, or masters + the client, whose turn it is. */
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
    MOVE_GRANT, /* A client reads that a master has passed the key on. */
    MOVE_CUT_COMMANDS,
    MOVE_CUT_ANSWERS,
    MOVE_HEAL,
    MOVE_BREAK,
    MOVE_CONNECT,
    MOVE_MUTE, /* The master may not vote any more, or may vote again. */
    MOVE_GHOST,
    MOVE_FORGET,
    MOVE_WRITE, /* The operator writes a version to a master; client is the version. */
    MOVE_READ,  /* It reads a counter. */
    MOVE_RAISE, /* It raises a counter. */
    MOVE_LOOK,  /* A client takes over a version; master is the version. */
    MOVE_ADOPT,
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
#define MOVES_MAX (7 + VERSIONS_MAX + 6 * MASTERS + 1)
size_t model_moves(const struct scenario *scenario, const struct world *world,
                   struct move moves[MOVES_MAX]);

/* All moves but MOVE_PASS. */
size_t moves_of_turn(const struct scenario *scenario, const struct world *world,
                     struct move *moves);
/* True if the master or client whose turn it is has work: commands, answers, or an alarm. */
bool moves_is_awaited(const struct world *world);

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
/* The link of a client has ended.  What it cannot have undone is excused. */
void masters_excuse(struct world *world, unsigned c, unsigned m);
/* Keys expire, and waiters die. Returns the masters whose keys have expired. */
quorum_mask masters_tick(struct world *world);

/* ---- Clients (model.c) ---- */

/* Hand an event to the machine of a client.  Returns NULL, or what is wrong then. */
const char *model_step(const struct scenario *scenario, struct world *world, unsigned c,
                       struct quorum_event *event, char *told, size_t told_size);
/* The commands of a link that ends may be obeyed later. */
void model_end_link(struct link *link);

/* ---- A change of the set of masters (change.c) ---- */

/* The number of a master in the machine. */
static inline unsigned change_number(const struct scenario *scenario, unsigned m)
{
    return scenario->renumbered ? scenario->numbers[m] : m;
}

/* A configuration, as masters. */
struct members change_lists(const struct scenario *scenario, unsigned version);
/* The same, as the numbers of masters. */
struct members change_members(const struct scenario *scenario, unsigned version);
bool change_is_quorum(const struct scenario *scenario, unsigned version, unsigned masters);
/* True if this client knows this master, by its number. */
bool change_is_known(const struct scenario *scenario, const struct world *world, unsigned c,
                     unsigned m);
/* The greatest version that a client can read. */
unsigned change_newest(const struct world *world);
/* Moves in the turn of a master or a client. */
void change_add_master(const struct scenario *scenario, const struct world *world, unsigned m,
                       struct move *moves, size_t *len);
void change_add_client(const struct scenario *scenario, const struct world *world, unsigned c,
                       struct move *moves, size_t *len);
const char *change_do(const struct scenario *scenario, struct world *world, struct move move,
                      char *told, size_t told_size);
/* The client takes a version over. */
const char *change_take_over(const struct scenario *scenario, struct world *world, unsigned c,
                             unsigned version, char *told, size_t told_size);
void change_forget(const struct scenario *scenario, struct world *world, unsigned m);
void change_tick(const struct scenario *scenario, struct world *world);

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
uint64_t model_hash(const struct scenario *scenario, const struct world *world);

/* The same only for worlds whose bytes are the same. */
uint64_t model_hash_all(const struct world *world);

#endif /* TEST_EXPLORE_MODEL_H */
