/*
 * world.h - two machines that change a set of masters, and five masters, in every order of events.
 *
 * The machines are the real ones (redlock/core/change.c).  The masters follow the rules of the
 * scripts.  A step is one of these:
 *
 *  - a request reaches its master, and the answer reaches the machine at once; the masters answer a
 *    machine in their order, but for those that hang for any time;
 *  - a timer rings, at its time or later; time goes on by a tick, while requests hang or there are
 *    none; and rarely while there are others;
 *  - a link breaks, with the request done, lost, or late; an answer comes late;
 *  - a machine dies, and another begins with a wish of its own; a request of the dead one is late;
 *  - a master loses its data, or begins without, is watched, and gets back what others tell (M7);
 *  - a client helps, and writes a chosen version to a member; a client draws a fencing token, at
 *    once;
 *  - a client draws fencing tokens step by step (drawer.c), and steps of all others lie between.
 *
 * The rare ones happen as often as the scenario says.  All times are ticks.
 */
#ifndef TEST_CHANGE_WORLD_H
#define TEST_CHANGE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "models/explorer.h"
#include "redlock/core/change.h"

enum { MASTERS = 5, MACHINES = 2, VERSIONS = 6, TTL = 2, NUMBERS = 7 };
#define TICK DRIFT_S

/* A master.  One that has no set yet has version 0. */
struct master {
    uint8_t epoch; /* 0: it is warming. */
    uint8_t losses;
    uint8_t watch; /* Ticks for which it must still be watched. */
    uint8_t version, from, to;
    uint8_t ballot;
    uint8_t accepted_ballot, accepted_from, accepted_to;
    uint8_t number; /* Of its fencing counter: the floor, and what was counted since. */
    uint8_t floor : 7, shows : 1; /* shows: the text EPOCH.VER has the floor behind it.  Both are 0
                                   * without the client of drawer.c. */
    uint8_t age;                  /* Ticks for which it has stored this version; TTL at most. */
};

/* Small numbers for ballots: the round, and the machine that drew it. */
#define BALLOT(round, machine) ((uint8_t)((round) << 2 | (machine)))

/* A request on its way.  epoch and at_version are the text EPOCH.VER. */
struct request {
    uint8_t kind; /* enum change_request */
    uint8_t epoch, at_version;
    uint8_t ballot, version, from, to, number;
};

struct answer {
    uint8_t kind;   /* That of the request. */
    uint8_t answer; /* enum change_answer */
    uint8_t epoch, ballot, version, from, to, number;
};

struct history {
    uint8_t chosen[VERSIONS][2]; /* Lists of each version. */
    uint8_t settled;             /* Bit v: M5 was true for version v. */
    uint8_t last;                /* The greatest fencing token. */
    uint8_t kills, hangs, breaks, lates, slows, ticks, forgets, helps, draws, locks, looks,
        cuts;      /* How often it may still happen. */
    uint8_t wrong; /* enum wrong */
};

/* How far the client of drawer.c is with a master. */
enum drawn {
    DRAWN_NOT,
    DRAWN_ASKED,  /* SET, count and proof are on their way. */
    DRAWN_HELD,   /* Counted; the proof is on its way. */
    DRAWN_UNSURE, /* The proof showed another version; a query is on its way. */
    DRAWN_RAISE,  /* A raise is on its way. */
    DRAWN_SPOILT, /* A yes whose number is of an older version: it must be raised. */
    DRAWN_YES,
};

/* A master, as this client knows it.  epoch 0: it was not queried on this link. */
struct drawn_master {
    uint8_t epoch, version, floor : 7, shows : 1;
    uint8_t drawn;           /* enum drawn */
    uint8_t number, counted; /* As the client has it, 0: void; and as it really is. */
    uint8_t shown;           /* UNSURE: the version that the proof showed. */
};

struct drawer {
    struct drawn_master masters[MASTERS];
    uint8_t version; /* That it obeys. */
    uint8_t due;     /* Masters that it queries as soon as it can. */
    uint8_t after;   /* The greatest token when it began to draw. */
    uint8_t raise;   /* The number to raise to; 0: it does not raise. */
    uint8_t spoils;  /* The version has changed since it asked. */
};

struct world {
    uint32_t machines[MACHINES]; /* Numbers of stored machines; 0: none. */
    struct master masters[MASTERS];
    struct request out[MACHINES][MASTERS];
    struct request late;
    struct answer slow;
    uint8_t late_to, slow_from, slow_to; /* Masters, and the machine that gets the slow answer. */
    uint8_t hung[MACHINES];              /* Masters that hang, as this machine sees them. */
    uint8_t lives[MACHINES];             /* How many machines were before this one. */
    uint8_t base[MACHINES][3];           /* Version and lists that the machine's wish is of. */
    struct history history;
    struct drawer drawer; /* Zero without locks in the budget. */
};
_Static_assert(sizeof(struct world) % 4 == 0, "the explorer takes whole words");

enum wrong {
    NOTHING_WRONG,
    TWO_CHOSEN,
    TOO_EARLY,
    SMALL_TOKEN,
    NOT_FINISHED,
    NOT_GIVEN_UP,
    MISTAKEN,
    OTHER_BASE,
    TOO_SOON,
    FALSE_NUMBER,
    WRONGS_LEN
};
extern const char *const wrongs[WRONGS_LEN];

/* Which world it is.  Lists are masks of masters. */
struct scenario {
    const char *name, *about;
    uint8_t first;               /* The list of version 1. */
    uint8_t empty;               /* Masters that are warming when it begins. */
    uint8_t wishes[MACHINES][2]; /* Of the first machine, and of the next; 0: there is none. */
    bool gives_up[MACHINES][2];
    bool together;     /* All members forget at once, and come back by rule 4 of core/recall.c. */
    const char *limit; /* Wrong in it, and known: it must be found.  NULL: nothing. */
    unsigned rounds;   /* No ballot has a greater round. */
    unsigned races;    /* How many races are run as well. */
    uint8_t rescued; /* The list that rescuer.c founds, in place of the machines.  0: no rescue. */
    uint8_t unreached; /* Masters that the client of drawer.c cannot reach. */
    unsigned last;     /* A machine that knows this version does no more.  0: no bound. */
    struct history budget;
};
extern const struct scenario *scenario;

/* masters.c */
void master_do(struct world *w, unsigned master, const struct request *request,
               struct answer *ret_answer);
bool master_forget(struct world *w, unsigned master);
void master_restore_steps(const struct world *w, unsigned master,
                          void (*step)(const struct world *next, unsigned told));

/* rescuer.c */
void rescuer_begin(struct world *w);
void rescuer_give(struct world *w, unsigned master, const struct answer *answer);
void rescuer_age(struct world *w);
const char *rescuer_text(const struct world *w);

/* drawer.c */
void drawer_begin(struct world *w);
void drawer_steps(const struct world *w, void (*take)(struct world *next, struct move step));

/* world.c, for explorer.h */
void world_begin(void *state);
void world_steps(const void *state);
/* What is wrong, or NULL.  Only this counts; NULL: anything. */
extern const char *world_only;
const char *world_judge(const struct world *w);
void world_age_masters(struct world *w); /* A tick passes for them. */

/* race.c: many runs without faults.  Returns how many did not end with a winner. */
unsigned race(unsigned runs);

/* tell.c */
void world_tell(const void *from, const void *to, struct move step);

#endif
