/*
 * client.h - what a client is made of, for the files that make it up.
 *
 * client.c owns it; lease.c runs the leases; master.c (or the simulator's
 * masters) calls client_on_*(); blocking.c adds a mutex and a thread.
 */
#ifndef REDLOCK_CLIENT_H
#define REDLOCK_CLIENT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "redlock/alarm.h"
#include "redlock/clocks.h"
#include "redlock/lease.h"
#include "redlock/listen.h"
#include "redlock/master.h"
#include "redlock/options.h"
#include "redlock/owner.h"
#include "redlock/proof.h"
#include "redlock/redlock.h"
#include "redlock/reply.h"
#include "redlock/standing.h"
#include "redlock/token.h"
#include "redlock/wire.h"

struct blocking;
struct loop;
struct waiter;

struct redlock {
    struct options options;
    struct token_key tokens;
    struct loop *loop;
    struct blocking *blocking; /* NULL: a client on the caller's loop. */
    struct master *masters[REDLOCK_MASTERS_MAX];
    struct standing standing;
    struct clocks clocks;
    struct listen listen;
    struct proof proof;
    struct owners owners;
    quorum_mask up;     /* Masters that may vote and take a command now. */
    quorum_mask coming; /* Masters that may soon, for the first time. */
    quorum_mask dirty;  /* Masters with something to write, or to close. */

    struct redlock_lease **slots; /* By slot; NULL: free. */
    uint32_t *slots_free;         /* A stack of free slots. */
    uint32_t slots_len, slots_free_len, slots_room;
    uint64_t serial;                                /* Of the latest lease. */
    struct redlock_lease *spent_first, *spent_last; /* Leases that are over, the oldest first. */
    uint32_t spent_len;
    struct alarms alarms;
    drift_time armed;            /* What the loop was told last. */
    struct redlock_lease *ready; /* Leases with callbacks to run, in order. */
    struct redlock_lease **ready_end;
    uint32_t ready_len;

    uint64_t dice;  /* State of the generator of pauses. */
    unsigned forks; /* How many forks had happened when it was opened. */
    bool closing;
    bool in_event;                    /* See client_begin_event(). */
    quorum_mask brought[LEASE_KINDS]; /* Masters that got the script of a release meanwhile. */
    bool *gone;                       /* Set when the client is closed by a callback of its own. */
    struct redlock_stats stats;
    void (*on_query)(struct redlock *rl, unsigned master, uint32_t query,
                     const struct reply *reply); /* reply NULL: the link broke. */
    void *query_arg;
    char scratch[WIRE_MAX];
};

/* ---- Events ---- */

/*
 * What a link brings, its end, and the alarms are events.  Within an event no link goes down
 * and none is freed, since a caller up the stack may use it: a link that breaks is doomed, and
 * goes down when the event is over.  Events do not nest.  The user's callbacks run between
 * events (client_deliver()), because they may run the loop and close the client.
 */
static inline void client_begin_event(struct redlock *rl)
{
    assert(!rl->in_event);
    rl->in_event = true;
}

static inline void client_end_event(struct redlock *rl)
{
    assert(rl->in_event);
    rl->in_event = false;
}

/* ---- Upcalls ---- */

/* A master answered one of its asks, in order. */
void client_on_reply(struct redlock *rl, unsigned master, const struct master_ask *ask,
                     const struct reply *reply);

/* What was held back of a lease's answers counts; the lease may be gone by then. */
void client_count_vote(struct redlock *rl, unsigned master, const struct master_ask *ask,
                       const struct vote *vote);

/* A link came up or is gone, or did not come up at the first attempt. */
void client_on_link(struct redlock *rl, unsigned master, bool up);

/* What a lease may ask of this master has changed: for those that care. */
void client_tell_leases(struct redlock *rl, unsigned master);

/* A full queue has room again: what could not be released there is. */
void client_on_room(struct redlock *rl, unsigned master);

/* The time has come. */
void client_on_timer(struct redlock *rl);

/* Between events: write to all masters that need it, and take down the links that are doomed
 * or break over it. */
void client_flush(struct redlock *rl);

/* Within an event: write to all masters that need it.  A link that breaks over it goes down at
 * the next flush. */
void client_write(struct redlock *rl);

/*
 * See to it that the callbacks that are due run: now, or in the thread of a
 * blocking client.  The last thing that an event of the loop does: the client
 * may be gone when it returns.
 */
void client_deliver(struct redlock *rl);
/* Run them.  For client_deliver() and that thread. */
void client_run_callbacks(struct redlock *rl);

/* ---- For the API ---- */

/* Whether this process is a child of the one that opened it.  Any thread. */
bool client_is_forked(const struct redlock *rl);

/* Begin a call: OK, or E_INVAL or E_STATE with a message; then, and only
 * then, client_leave() must follow. */
int client_enter(struct redlock *rl);
void client_leave(struct redlock *rl);
/* The same for a call that waits; returns its status. */
int client_wait(struct redlock *rl, struct waiter *waiter);

/* Tell the loop when to call client_on_timer(), if that is earlier than it
 * knows: the last thing of every call and every event. */
void client_arm(struct redlock *rl);

/* Put a lease at the end of the list of those with callbacks to run. */
void client_make_ready(struct redlock *rl, struct redlock_lease *lease);

/* 32 fair bits for spreading retries; nothing secret. */
uint32_t client_random(struct redlock *rl);

/* One line to the caller's log. */
void client_log(const struct redlock *rl, enum redlock_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Send a command of one's own to a master that is up; the answer goes to
 * rl->on_query.  For the `redlock` command only. */
void client_query(struct redlock *rl, unsigned master, uint32_t query, const char *command,
                  size_t command_len);

#endif /* REDLOCK_CLIENT_H */
