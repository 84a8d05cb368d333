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

#include "redlock/alarm.h"
#include "redlock/guard.h"
#include "redlock/wire.h"

struct redlock;
struct reply;

struct standing {
    struct guard guard;
    struct alarm alarm;
    quorum_mask twins;      /* Masters of which it was told that they have another's epoch. */
    quorum_mask linked;     /* Masters whose links are up, and not full. */
    quorum_mask connecting; /* Masters whose first attempt to connect goes on. */
    drift_time hope_until;  /* Those whose first look goes on are waited for as long. */
    char epochs[QUORUM_MASTERS_MAX][WIRE_NUMBER + 1]; /* That a SET must name. */
};

/* 0, or -1 without memory. */
int standing_init(struct redlock *rl);

/* A link came up or went down; its queue is full or not any more; a look at
 * its marker was answered; the alarm rang. */
void standing_on_link(struct redlock *rl, unsigned master, bool up);
void standing_on_room(struct redlock *rl, unsigned master, bool room);
void standing_on_look(struct redlock *rl, unsigned master, const struct reply *reply);
void standing_on_alarm(struct redlock *rl);

/* The reply to a look, parsed; false: that is none. */
bool standing_parse(const struct reply *reply, struct guard_look *ret_look);

/* The longest lease, as a marker has it; false: it is none that a client may have. */
bool standing_parse_max(const char *text, uint32_t *ret_max_ttl_ms);

#endif /* REDLOCK_STANDING_H */
