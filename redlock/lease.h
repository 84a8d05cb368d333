/*
 * lease.h - one lease: the machine, its actions carried out, its callbacks.
 *
 * A lease lives in a slot of its client.  It is the caller's from lock or
 * adopt until unlock, cancel, detach, or a failed lock; after that it stays
 * only as long as some master may store a token of it and has to be told.
 * The last LEASE_SPENT of a client's leases that are over stay in memory, so
 * that one which is unlocked twice is recognized.
 */
#ifndef REDLOCK_LEASE_H
#define REDLOCK_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "redlock/alarm.h"
#include "redlock/kind.h"
#include "redlock/permit.h"
#include "redlock/quorum.h"
#include "redlock/redlock.h"
#include "redlock/token.h"

struct master_ask;
struct place;
struct waiter;

#define LEASE_SPENT 256 /* No source: enough for a bug to show itself at once. */

enum lease_op { LEASE_OP_NONE, LEASE_OP_LOCK, LEASE_OP_EXTEND, LEASE_OP_UNLOCK };

struct redlock_lease {
    struct redlock *rl;
    struct quorum q;
    struct alarm alarm;        /* Rings at wake_at or earlier. */
    drift_time wake_at;        /* When the machine wants a TIMER. */
    _Atomic uint64_t deadline; /* A copy of the machine's for any thread; 0: not held. */
    uint64_t serial;           /* Never the same twice in one client. */
    uint32_t slot;
    uint32_t token_round; /* The round that token is of; 0: none yet. */
    bool owned : 1;       /* By the caller. */
    bool alive : 1;       /* Not among the spent ones. */
    bool is_ready : 1;    /* In the client's list of callbacks to run; */
    bool ready_lost : 1;  /* which ones. */
    bool ready_done : 1;
    bool has_owner : 1;  /* Who may lock it again: see owner.h. */
    bool in_lost : 1;    /* In the thread of a blocking client, without the mutex. */
    bool waits : 1;      /* In line for its turn: see listen.h. */
    uint8_t op : 7;      /* enum lease_op: what done is about. */
    int8_t status;       /* For done. */
    uint8_t adopted_len; /* Of the token of an adopted lease; 0: a lease of our own. */
    quorum_mask silent;  /* Masters that gave no answer in time, when the operation ended. */
    uint16_t name_len;
    redlock_done_fn *done;
    void *arg;
    void (*lost)(struct redlock_lease *lease, void *lost_arg);
    void *lost_arg;
    struct waiter *waiter;      /* Of the blocking call under way. */
    struct redlock_lease *next; /* In the ready list, in a line, or among the spent ones. */
    uint8_t kind;               /* enum lease_kind */
    uint8_t taken;              /* Of several names: the one that was found taken last; */
    uint8_t line;               /* and the one it is in line for. */
    uint8_t pins;               /* Callbacks that run with it, and calls that sleep with it. */
    char token[TOKEN_LEN + 1];
    char name[]; /* Or several, see kind.h.  And after the NUL the adopted token, with another one;
                  * and behind that, aligned, a struct quorum_fence if there is to be a fencing
                  * token, or the struct permit of a LEASE_PERMIT, or the struct place of a
                  * LEASE_FAIR. */
};

/* A new lease in a slot of its own, owned.  NULL without memory. */
struct redlock_lease *lease_new(struct redlock *rl, enum lease_kind kind, const char *name,
                                size_t name_len, const char *token,
                                const struct redlock_lock_options *opts,
                                const struct quorum_config *config);

/* What it knows of its fencing token; NULL if there is to be none. */
struct quorum_fence *lease_fence(const struct redlock_lease *lease);

/* Its slot; NULL: it is no LEASE_PERMIT. */
struct permit *lease_permit(const struct redlock_lease *lease);

/* The name as the caller knows it; of several, the first. */
const char *lease_name(const struct redlock_lease *lease);

/* Its place in a queue; NULL if it is of another kind. */
struct place *lease_place(const struct redlock_lease *lease);

/* The name for which it waits, or would; of several, one that was taken. */
const char *lease_awaited(const struct redlock_lease *lease, size_t *ret_len);

/* Whether it is asking for the lock, or pauses in between. */
bool lease_is_waiting(const struct redlock_lease *lease);

/* The token that masters store for it, or will. */
const char *lease_token(const struct redlock_lease *lease);

/* Feed the machine (event->type and what goes with it set; the rest is filled
 * in here), carry out its actions, and note what callbacks are due. */
void lease_step(struct redlock_lease *lease, struct quorum_event *event);

/* What a master answered, and what is wrong with that master, or "". */
void lease_on_vote(struct redlock_lease *lease, unsigned master, const struct master_ask *ask,
                   const struct vote *vote, const char *error);

/* The alarm rang. */
void lease_on_alarm(struct redlock_lease *lease, drift_time now);

/* Likewise, and without a lost: free it now, or when all masters have been told. */
void lease_let_go(struct redlock_lease *lease);

/* The caller's no more. */
void lease_disown(struct redlock_lease *lease);

/*
 * A thread that will use the lease pins it before it runs a callback or gives up the mutex, and
 * unpins it afterwards: a lease with pins is not freed.  The thread that unpins it reaps it
 * then.  The exception is a callback of a loop client that closes the client: its pin goes with
 * the lease.
 */
void lease_pin(struct redlock_lease *lease);
void lease_unpin(struct redlock_lease *lease);

/* Free it if nobody needs it. */
void lease_reap(struct redlock_lease *lease);

/* Free it whoever needs it: the client closes. */
void lease_free(struct redlock_lease *lease);

/* Set the thread's message to why op ended with status. */
void lease_explain(const struct redlock_lease *lease, enum lease_op op, int status);

/* OK if it is the caller's, else E_INVAL or E_STATE with a message. */
int lease_check(const struct redlock_lease *lease);

#endif /* REDLOCK_LEASE_H */
