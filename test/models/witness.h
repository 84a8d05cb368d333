/*
 * witness.h - the state of the model in witness.c, its bounds, and the names of its steps.
 */
#ifndef TEST_MODELS_WITNESS_H
#define TEST_MODELS_WITNESS_H

#include <stdint.h>

#include "models/check.h"

#define WITNESSES 4
#define CLIENTS 2

struct witness {
    uint8_t nonce; /* Of its mark.  0: it has none. */
    uint8_t age;   /* Of its mark, by its clock.  It stops at the window. */
    uint8_t fast;  /* Ticks that its clock has gained since the mark, plus bounds.drift. */
    uint8_t future;
    uint8_t stepped; /* Its clock was set forward since the mark. */
    uint8_t noticed; /* A client noticed that. */
    uint8_t warming;
};

struct client {
    uint8_t nonce;   /* That it learned from m.  0: it is not there. */
    uint8_t old;     /* Witnesses that told it that m is old. */
    uint8_t noticed; /* Witnesses whose clock it saw step. */
};

struct state {
    struct witness witnesses[WITNESSES];
    struct client clients[CLIENTS];
    uint8_t nonce; /* Of m.  It grows with every loss. */
    uint8_t votes;
    uint8_t lease;     /* Ticks for which a lease of before m forgot is alive. */
    uint8_t broken;    /* m was installed while it was. */
    uint8_t falsified; /* Witnesses that said a wrong age. */
    uint8_t lost, backs;
    uint8_t peace, waited, since; /* No more faults; ticks since then; ticks since a client came. */
};
_Static_assert(sizeof(struct state) % sizeof(uint32_t) == 0, "a state is made of words");

enum bug {
    NO_BUG,
    MINORITY,
    ANY_NONCE,
    INSTALL_ANY,
    SHORT_WINDOW,
    NO_MARK_IS_OLD,
    MANY_STEPS,
    KNOWN_COUNTS,
    NO_REPLACE,
    KEEP_FUTURE,
    MARK_ANEW,
    SKIP_WARMING,
    BUGS_LEN
};

struct bounds {
    unsigned masters, clients, forgets, falsified, lost, backs, lease, drift, visit, peace;
};

extern struct bounds bounds;

enum what {
    COME = 'a',
    VISIT,
    INSTALL,
    LEAVE,
    TICK,
    FAST,
    SLOW,
    FORGET,
    LOSE,
    FORWARD,
    BACK,
    PEACE,
    PASS_BY,
};

void witness_begin(void *state);
void witness_steps(const void *state);

/* Of witness-check.c: what is wrong in the state, or NULL. */
const char *witness_judge(const struct state *s);

unsigned witness_count(void);

/* For so many ticks m waits at most, when the faults have ended. */
unsigned witness_wait_max(void);

#endif /* TEST_MODELS_WITNESS_H */
