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

#include "redlock/line/channel.h"
#include "redlock/masters/masters.h"

struct alarm;
struct ask;
struct redlock_lease;
struct reply;

/* Links and subscriptions outlast the last waiter by this time.  Else a client that locks and
 * unlocks a name in turn with others would connect each time. */
#define LINES_LINGER DRIFT_S

struct lines {
    struct channels channels;
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

/* Between events: write to the links that listen, and take down those that break. */
void lines_flush(struct lines *lines);

/* Between events: close the links when nobody waits. */
void lines_tidy(struct lines *lines);

#endif /* REDLOCK_LINES_H */
