/*
 * standing.h - which masters may vote now: carries out what guard.c decides.
 *
 * To guard.c what lease.c is to quorum.c: it looks at the markers of masters,
 * keeps the client's masks of those that can be asked, and tells the leases.
 * With the restart guard off every link that is up may vote.
 */
#ifndef REDLOCK_STANDING_H
#define REDLOCK_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/alarm.h"
#include "redlock/core/guard.h"
#include "redlock/wire/wire.h"

struct peers;
struct reply;

/* What the masters learn of it. */
struct standing_events {
    /* This master has another epoch than before, or a new link. */
    void (*on_new_epoch)(void *cookie, unsigned master);
    /* What may be asked of this master has changed, or what was asked of it is void. */
    void (*on_change)(void *cookie, unsigned master);
};

struct standing {
    struct peers *peers;
    const struct standing_events *events;
    void *cookie;
    struct guard guard;
    struct alarm alarm;
    quorum_mask twins;      /* Masters of which it was told that they have another's epoch. */
    quorum_mask linked;     /* Masters whose links are up, and not full. */
    quorum_mask connecting; /* Masters whose first attempt to connect goes on. */
    drift_time hope_until;  /* Those whose first look goes on are waited for as long. */
    char epochs[QUORUM_MASTERS_MAX][WIRE_NUMBER + 1]; /* That a SET must name. */
};

/* 0, or -1 without memory. */
int standing_init(struct standing *standing, struct peers *peers,
                  const struct standing_events *events, void *cookie);

/* A link came up or went down; its queue is full or not any more; a look at
 * its marker was answered; the alarm rang. */
void standing_on_link(struct standing *standing, unsigned master, bool up);
void standing_on_room(struct standing *standing, unsigned master, bool room);
void standing_on_look(struct standing *standing, unsigned master, const struct reply *reply);
void standing_on_alarm(struct standing *standing);

#endif /* REDLOCK_STANDING_H */
