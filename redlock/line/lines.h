/*
 * lines.h - which leases of a client wait for what: carries out what core/wait.c decides.
 *
 * It is to wait.c what lease.c is to quorum.c.  It keeps the lines of leases that wait for one
 * name, listens to the masters as long as there are any (listener.h), looks at keys, and has the
 * first lease in a line begin its round.  A lease that waits gets into line when it has lost its
 * first round, and stays there until it has the lock or gives up.  A lease that waits in the
 * masters' queue (kind_fair.c) has its turn there: it hears the same channel, and begins a round
 * when masters say that it is its turn.
 */
#ifndef REDLOCK_LINES_H
#define REDLOCK_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/alarm.h"
#include "redlock/line/listener.h"
#include "redlock/masters/masters.h"

struct channel;
struct redlock_lease;
struct reply;

#define LINES_TABLE 256 /* Chosen: few clients wait for more names at once. */

/* Links and subscriptions outlast the last waiter by so much: a client that locks and unlocks the
 * same name in turn with others would connect each time. */
#define LINES_LINGER DRIFT_S

struct lines {
    struct env *env;
    struct masters *masters;
    struct listener listener;
    quorum_mask refused;                /* Masters that forbid to listen; told once each. */
    struct channel *table[LINES_TABLE]; /* By hash of the name; chained. */
    uint32_t channels_len, serial;
    struct alarms alarms; /* Of the channels. */
    struct alarm alarm;   /* Rings with the first of these, among the client's. */
    void (*on_done)(void *cookie);
    void *cookie;
};

/* 0, or -1 without memory.  on_done: the last act of each event of a link that listens. */
int lines_init(struct lines *lines, struct masters *masters, const struct listener_config *config,
               void (*on_done)(void *cookie), void *cookie);
/* Between events, when no lease waits any more.  Zeroes are fine. */
void lines_done(struct lines *lines);

/* The machine of a lease has made a step; it was in that state before.  Steps no lease. */
void lines_on_step(struct lines *lines, struct redlock_lease *lease, enum quorum_state before);

/* The lease is freed. */
void lines_forget(struct lines *lines, struct redlock_lease *lease);

/* The link by which locks are asked for is gone: looks on it are not answered. */
void lines_on_break(struct lines *lines, unsigned master);

/* The answer to an ask of WHAT_WAIT. */
void lines_on_look(struct lines *lines, unsigned master, const struct ask *ask,
                   const struct reply *reply);

/* An alarm rang; false: it is not that of the lines. */
bool lines_on_alarm(struct lines *lines, const struct alarm *alarm);

/* Between events: close the links when nobody waits. */
void lines_tidy(struct lines *lines);

#endif /* REDLOCK_LINES_H */
