/*
 * machines.h - the machines of a world: each different one is stored once.
 */
#ifndef TEST_CHANGE_MACHINES_H
#define TEST_CHANGE_MACHINES_H

#include "change/world.h"

#define NOW (1000 * TICK)

struct stored {
    struct change change; /* Without masters. */
    struct change_master masters[MASTERS];
    drift_time wake_at;
};

extern bool machines_unbounded; /* Any number of ballots. */
extern unsigned machines_pause; /* The first pause between ballots, in ticks. */
extern uint32_t machines_random;

unsigned machines_count(void);   /* How many were stored. */
unsigned machines_masters(void); /* The masters of the scenario. */
void machines_free(void);

/* All but ageing return false if the ballots of the machine are beyond the bounds. */
struct stored machine_load(const struct world *w, unsigned machine, struct change *ret_change);
bool machine_begin(struct world *w, unsigned machine, unsigned wish, bool gives_up);
bool machine_give(struct world *w, unsigned machine, unsigned master, const struct answer *answer);
bool machine_go_on(struct world *w, unsigned machine, struct change *c); /* And stores it. */
void machine_age(struct world *w, unsigned machine);
void machine_note(struct world *w, enum wrong wrong);

void machines_begin(struct world *w);

#endif
