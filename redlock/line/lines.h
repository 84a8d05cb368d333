/*
 * lines.h - the client's own queues, or *lines*: carries out what core/wait.c decides.
 *
 * It relates to wait.c as lease.c relates to quorum.c.  The client's leases that wait for one name
 * form a queue.  Meanwhile the client listens to the masters (listener.h), queries keys, and lets
 * the first lease of each queue begin its rounds.  A lease joins when it has lost a round to
 * another client.  It stays until it has the lock or gives up.  A fair lease waits in the masters'
 * queue instead (turns.h).
 */
#ifndef REDLOCK_LINES_H
#define REDLOCK_LINES_H

#include <stdbool.h>

#include "redlock/line/channel.h"
#include "redlock/masters/masters.h"

struct alarm;
struct ask;
struct leases;
struct redlock_lease;
struct reply;

/* Links and subscriptions outlast the last waiter by this time.  Otherwise a client that often
 * waits would connect each time.  Chosen. */
#define LINES_LINGER DRIFT_S

struct lines {
    struct channels channels;
    const struct leases *leases;
    void (*on_done)(void *cookie);
    void *cookie;
};

/* Returns 0, or -1 if memory runs out.  on_done: the last call of each event of the listener. */
int lines_init(struct lines *lines, const struct leases *leases, struct masters *masters,
               const struct masters_config *config, void (*on_done)(void *cookie), void *cookie);
/* Between events, when no lease waits any more.  A zeroed struct is allowed. */
void lines_done(struct lines *lines);

/* The machine of a lease has made a step, from the state before.  This steps no lease. */
void lines_on_step(struct lines *lines, struct redlock_lease *lease, enum quorum_state before);

/* The lease is freed. */
void lines_forget(struct lines *lines, struct redlock_lease *lease);

/* The link that carries commands to this master is gone, so queries on it are not answered. */
void lines_on_break(struct lines *lines, unsigned master);

/* The answer to an ask of WHAT_WAIT. */
void lines_on_look(struct lines *lines, unsigned master, const struct ask *ask,
                   const struct reply *reply);

/* Handle an alarm.  Returns false if it is not the one of the channels. */
bool lines_on_alarm(struct lines *lines, const struct alarm *alarm);

/* Between events: write to the listening links, and take down those that break. */
void lines_flush(struct lines *lines);

/* Between events: close the listening links if there are no channels. */
void lines_tidy(struct lines *lines);

#endif /* REDLOCK_LINES_H */
