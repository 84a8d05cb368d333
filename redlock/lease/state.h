/*
 * state.h - one lease, and all leases of a client, for the files of this folder and for those
 * above that keep leases in lists.
 *
 * A lease lives in a slot of its client.  It is the caller's from lock or adopt until unlock,
 * cancel, detach, or a lock that failed.  After that it stays only as long as some master may
 * store a token of it and has to be told.  The last LEASE_SPENT of the leases that are over stay
 * in memory, so that a lease which is unlocked twice is recognized.
 */
#ifndef REDLOCK_STATE_H
#define REDLOCK_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/base/alarm.h"
#include "redlock/base/mask.h"
#include "redlock/base/token.h"
#include "redlock/core/quorum.h"
#include "redlock/io/env.h"
#include "redlock/lease/kind.h"
#include "redlock/lease/owner.h"
#include "redlock/masters/masters.h"
#include "redlock/redlock.h"

struct waiter;

#define LEASE_SPENT 256 /* Chosen: enough for a bug to show itself at once. */

enum lease_op { LEASE_OP_NONE, LEASE_OP_LOCK, LEASE_OP_EXTEND, LEASE_OP_UNLOCK };

struct redlock_lease {
    struct leases *leases;
    struct quorum q;
    struct alarm alarm;        /* Rings at wake_at or earlier. */
    drift_time wake_at;        /* When the machine wants a TIMER. */
    _Atomic uint64_t deadline; /* A copy of the machine's for any thread; 0: not held. */
    uint64_t serial;           /* Never the same twice in one client. */
    uint32_t slot;
    uint32_t token_round; /* The round that token is of; 0: none yet. */
    bool owned : 1;       /* By the caller. */
    bool alive : 1;       /* Not among the spent ones. */
    bool is_ready : 1;    /* In the list of leases with callbacks to run. */
    bool ready_lost : 1;  /* Lost is to be called. */
    bool ready_done : 1;  /* Done is to be called. */
    bool has_owner : 1;   /* Its owner may lock it again: see owner.h. */
    bool in_lost : 1;     /* Lost runs, in the thread of a blocking client, without the mutex. */
    bool waits : 1;       /* In line for its turn: see lines.h. */
    uint8_t op : 7;       /* enum lease_op: what done is about. */
    int8_t status;        /* For done. */
    uint8_t adopted_len;  /* Of the token of an adopted lease; 0: a lease of our own. */
    quorum_mask silent;   /* Masters that gave no answer in time, when the operation ended. */
    uint16_t name_len;
    redlock_done_fn *done;
    void *arg;
    void (*lost)(struct redlock_lease *lease, void *lost_arg);
    void *lost_arg;
    struct waiter *waiter;      /* Of the blocking call under way. */
    struct redlock_lease *next; /* In the ready list, in a line, or among the spent ones. */
    uint8_t kind;               /* enum kind_id */
    uint8_t taken;              /* Of several names: the one that was found taken last. */
    uint8_t line;               /* Of several names: the one that the lease is in line for. */
    uint8_t pins;               /* Callbacks that run with it, and calls that sleep with it. */
    char token[TOKEN_LEN + 1];
    char name[]; /* Or several names, with a NUL between each two.  Behind the NUL at the end comes
                  * the adopted token with another NUL; then, aligned, a struct quorum_fence if
                  * there is to be a fencing token; then what the kind adds. */
};

struct lease_events {
    /* The machine of a lease has made a step; it was in this state before. */
    void (*on_step)(void *cookie, struct redlock_lease *lease, enum quorum_state before);
    /* The operation under way is over. */
    void (*on_end)(void *cookie, struct redlock_lease *lease, int status);
    /* The lease is freed.  The last one ends the close of a blocking client. */
    void (*on_free)(void *cookie, struct redlock_lease *lease);
};

/* All leases of a client, and all that a lease knows of it. */
struct leases {
    struct env *env;
    struct masters *masters;
    const struct lease_events *events;
    void *cookie;
    struct token_key tokens;
    struct owners owners;
    drift_span reply_timeout;

    struct redlock_lease **slots; /* By slot; NULL: free. */
    uint32_t *slots_free;         /* A stack of free slots. */
    uint32_t slots_len, slots_free_len, slots_room;
    uint64_t serial;                                /* Of the latest lease. */
    struct redlock_lease *spent_first, *spent_last; /* Leases that are over, the oldest first. */
    uint32_t spent_len;
    struct redlock_lease *ready; /* Leases with callbacks to run, in order. */
    struct redlock_lease **ready_end;
    uint32_t ready_len;
    quorum_mask brought[KINDS]; /* Masters that got the script of a release from a deaf client. */
};

static inline const struct kind *lease_kind(const struct redlock_lease *lease)
{
    return kinds[lease->kind];
}

/* What lies behind the names.  Nothing in it needs more than this alignment. */
static inline char *lease_behind(const struct redlock_lease *lease)
{
    size_t end =
        offsetof(struct redlock_lease, name) + lease->name_len + 1u + lease->adopted_len + 1u;
    size_t align = _Alignof(uint64_t);

    return (char *)(uintptr_t)lease + (end + align - 1) / align * align;
}

/* What is known of its fencing token; NULL: there is to be none. */
static inline struct quorum_fence *lease_fence(const struct redlock_lease *lease)
{
    return lease->q.config.fence ? (void *)lease_behind(lease) : NULL;
}

/* What its kind adds. */
static inline void *lease_extra(const struct redlock_lease *lease)
{
    size_t fence = lease->q.config.fence ? sizeof(struct quorum_fence) : 0;

    return lease_behind(lease) + fence;
}

/* The name as the caller knows it; of several, the first. */
static inline const char *lease_name(const struct redlock_lease *lease)
{
    return lease->name + lease_kind(lease)->hidden;
}

/* The token that masters store for it, or will. */
static inline const char *lease_token(const struct redlock_lease *lease)
{
    return lease->adopted_len > 0 ? lease->name + lease->name_len + 1 : lease->token;
}

/* Whether it is asking for the lock, or pauses in between. */
static inline bool lease_is_waiting(const struct redlock_lease *lease)
{
    enum quorum_state state = lease->q.state;

    return state == QUORUM_PAUSING || state == QUORUM_ACQUIRING || state == QUORUM_RAISING ||
           state == QUORUM_CONNECTING;
}

/* How long it is held yet, by the clock.  Any thread. */
static inline uint32_t lease_remaining_ms(const struct redlock_lease *lease)
{
    drift_time deadline = atomic_load_explicit(&lease->deadline, memory_order_relaxed);

    return deadline != 0 ? drift_to_ms(drift_until(env_now(lease->leases->env), deadline)) : 0;
}

#endif /* REDLOCK_STATE_H */
