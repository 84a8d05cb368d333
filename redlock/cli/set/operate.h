/*
 * operate.h - the machine of a change (core/change.h) on the client of a survey.
 *
 * It prints nothing, and does not turn the loop: driver.c does both, and so does the simulator.
 */
#ifndef REDLOCK_OPERATE_H
#define REDLOCK_OPERATE_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/cli/set/survey.h"
#include "redlock/core/change.h"
#include "redlock/core/roster.h"

struct operate {
    struct survey *survey;
    struct change change;
    struct roster roster;
    uint64_t surveyed;                      /* The wish was computed from this version. */
    unsigned master[ROSTER_MAX];            /* For each entry of the roster, the client's number of
                                             * the master.  survey->masters: it has no link. */
    uint32_t query[REDLOCK_MASTERS_MAX];    /* The number of the request that is out. */
    struct reason why[REDLOCK_MASTERS_MAX]; /* The latest error of a master. */
    uint32_t queries;
    quorum_mask guests;          /* The guests that the client was told of last. */
    struct roster_lists watched; /* The configuration that the client was told of last. */
};

enum operate_state {
    OPERATE_GOES_ON,
    OPERATE_AGAIN,     /* The survey is out of date, and nothing was begun. */
    OPERATE_ENDED,     /* The machine has ended: change.status says how. */
    OPERATE_OVERTAKEN, /* Another operator changed the set, and this client cannot write that to all
                        * masters: it has no link to some of them. */
};

/* Begin to change the set to a list that was computed from survey->newest.  Returns false if there
 * are more masters than the machine has room for. */
bool operate_begin(struct operate *op, struct survey *survey, const struct config *list,
                   const struct change_config *config);

/* Do what is due.  Call it after each turn of the loop, and at *ret_wake_at.  random: any value. */
enum operate_state operate_step(struct operate *op, uint32_t random, drift_time *ret_wake_at);

/* Answers that come later are dropped. */
void operate_end(struct operate *op);

/* The client's numbers of the masters in these entries of the roster. */
quorum_mask operate_masters(const struct operate *op, roster_mask entries);

#endif /* REDLOCK_OPERATE_H */
