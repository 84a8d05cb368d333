/*
 * listen.h - who of a client waits for what: carries out what wait.c decides.
 *
 * To wait.c what lease.c is to quorum.c: it keeps the lines of leases that wait for
 * one name, listens to the masters on links of their own as long as there are any,
 * looks at keys, and has the first in a line begin its round.  A lease that waits
 * gets into line when it has lost its first round, and stays there until it has the
 * lock or gives up.  One that waits in the masters' queue (fair.h) has its turn there: it
 * hears the same channel, and begins a round when masters say that it is its turn.
 */
#ifndef REDLOCK_LISTEN_H
#define REDLOCK_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/alarm.h"
#include "redlock/quorum.h"

struct channel;
struct ev_loop;
struct master;
struct redlock;
struct redlock_lease;
struct reply;

#define LISTEN_TABLE 256 /* No source: few clients wait for more names at once. */

/* Links and subscriptions outlast the last who waits by so much: who locks and unlocks the
 * same name in turn with others would connect each time. */
#define LISTEN_LINGER DRIFT_S

struct listen {
    struct ev_loop *ev;
    struct master *links[QUORUM_MASTERS_MAX]; /* NULL: there is none. */
    quorum_mask dirty;                        /* Links with something to write, or to close. */
    quorum_mask linked;                       /* Links that are up. */
    quorum_mask refused;                      /* Masters that do not let us; told once each. */
    struct channel *table[LISTEN_TABLE];      /* By hash of the name; chained. */
    uint32_t channels_len, serial;
    struct alarms alarms; /* Of the channels. */
    struct alarm alarm;   /* Rings with the first of these, among the client's. */
};

/* 0, or -1 without memory. */
int listen_init(struct redlock *rl, struct ev_loop *ev);
void listen_done(struct redlock *rl);

/* What the machine of a lease has done, which was in that state before: the last thing that
 * lease_step() does but callbacks.  Steps no lease by itself. */
void listen_on_step(struct redlock_lease *lease, enum quorum_state before);

/* The lease is freed. */
void listen_forget(struct redlock_lease *lease);

/* A link that listens came up, or is gone; something was told on it; all must be written:
 * between events, and within one (client.h). */
void listen_on_link(struct redlock *rl, unsigned master, bool up);
void listen_on_push(struct redlock *rl, unsigned master, const struct reply *reply);
void listen_flush(struct redlock *rl);
void listen_write(struct redlock *rl);

/* The link by which locks are asked for is gone: looks on it are not answered. */
void listen_on_break(struct redlock *rl, unsigned master);

/* A look was answered; slot and serial are those of its ask. */
void listen_on_look(struct redlock *rl, unsigned master, uint32_t slot, uint32_t serial,
                    const struct reply *reply);

void listen_on_alarm(struct redlock *rl);

/* Between events: free the links when there is no channel left. */
void listen_tidy(struct redlock *rl);

#endif /* REDLOCK_LISTEN_H */
