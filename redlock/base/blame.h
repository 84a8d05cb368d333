/*
 * blame.h - which masters were at fault in a failure, for programs; small, because each thread
 * has one.
 *
 * It has kinds and times.  Addresses and words are looked up in the client, which has them.
 */
#ifndef REDLOCK_BLAME_H
#define REDLOCK_BLAME_H

#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/base/reason.h"

#define BLAME_NOT_KNOWN UINT32_MAX

struct blame {
    const void *owner;    /* The leases of the client whose masters they are. */
    drift_time since;     /* When the call failed. */
    quorum_mask masters;  /* Those at fault. */
    quorum_mask deciding; /* Those of them for which the call failed as it did. */
    uint8_t why[QUORUM_MASTERS_MAX], at[QUORUM_MASTERS_MAX]; /* As in struct reason. */
    uint32_t over_ms[QUORUM_MASTERS_MAX]; /* From since, rounded up; or BLAME_NOT_KNOWN. */
    /* A hash of the master's name: the number may belong to another one when it is looked up. */
    uint32_t place[QUORUM_MASTERS_MAX];
};
_Static_assert(sizeof(struct blame) <= 200, "each thread has one");

/* Begin: no master is at fault. */
void blame_init(struct blame *blame, const void *owner, drift_time now);
/* Master m, of this name, is at fault. */
void blame_add(struct blame *blame, unsigned m, const char *name, const struct reason *why,
               bool decides);

/* The master with this number in the list, from 0: those that decide come first.
 * QUORUM_MASTERS_MAX: the list is shorter. */
unsigned blame_master(const struct blame *blame, unsigned number);
/* Whether master m had this name. */
bool blame_is_place(const struct blame *blame, unsigned m, const char *name);
/* The time from now until it may be over.  BLAME_NOT_KNOWN: not known. */
uint32_t blame_over_ms(const struct blame *blame, unsigned m, drift_time now);

#endif /* REDLOCK_BLAME_H */
