/*
 * state.h - one lease, and all leases of a client.  This folder uses it, and code above it that
 * keeps leases in lists.
 *
 * A lease lives in a slot of its client.  The caller owns it from lock or adopt until unlock,
 * cancel, detach, or a lock that failed.  After that it stays only while some master may store a
 * token of it and must be sent a release.  The last LEASE_SPENT leases that are over stay in
 * memory, so that a second unlock of a lease is recognised.
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
#include "redlock/wire/redis_error.h"

struct waiter;

/* Chosen: enough to catch a double unlock soon after the first; not measured. */
#define LEASE_SPENT 256

enum lease_op { LEASE_OP_NONE, LEASE_OP_LOCK, LEASE_OP_EXTEND, LEASE_OP_UNLOCK };

struct redlock_lease {
    struct leases *leases;
    struct quorum q;
    struct alarm alarm;        /* Rings at wake_at or earlier. */
    drift_time wake_at;        /* When the machine wants a TIMER. */
    _Atomic uint64_t deadline; /* A copy of the machine's deadline, for any thread.  0: not held. */
    uint64_t serial;           /* Unique in one client. */
    uint32_t slot;
    uint32_t token_round; /* The round of token.  0: none yet. */
    bool owned : 1;       /* The caller owns it. */
    bool alive : 1;       /* The lease is not over. */
    bool is_ready : 1;    /* In the list of leases with callbacks to run. */
    bool ready_lost : 1;  /* lost is to be called. */
    bool ready_done : 1;  /* done is to be called. */
    bool has_owner : 1;   /* Its owner may lock it again: see owner.h. */
    bool in_lost : 1;     /* lost runs now, without the mutex, in a blocking client's thread. */
    bool waits : 1;       /* It waits for its turn: see lines.h. */
    uint8_t op : 7;       /* enum lease_op: the operation that done reports. */
    bool adopted : 1;     /* The client did not make the token. */
    int8_t status;        /* The status for done. */
    uint8_t token_len;    /* The length of the token and its note. */
    /* Masters that had not answered when the operation, or the latest extension, timed out. */
    quorum_mask silent;
    /* Masters whose trouble alone would have ended the latest operation with its status. */
    quorum_mask deciding;
    quorum_mask gone; /* Masters that said, when asked to extend it, that they do not store it. */
    uint16_t name_len;
    /* enum why: what the latest answer of each master to this lease says is wrong.  Its words are
     * kept by the link, until its next answer to any lease. */
    uint8_t why[QUORUM_MASTERS_MAX];
    uint8_t kind; /* enum kind_id */
    /* Of several names: the index of the one last found taken, if any was. */
    uint8_t taken : 7;
    bool has_taken : 1;
    /* Of several names: the index of the one that the lease waits for. */
    uint8_t line;
    uint8_t pins; /* Callbacks and sleeping calls that use the lease, so it must not be freed. */
    redlock_done_fn *done;
    void *arg;
    void (*lost)(struct redlock_lease *lease, void *lost_arg);
    void *lost_arg;
    struct waiter *waiter; /* The blocking call under way. */
    /* The next in the ready list, in a local queue, or among the leases that are over. */
    struct redlock_lease *next;
    /* One name, or several with a NUL between any two.  These follow, after the final NUL: the
     * token with its note, and a NUL; then, aligned, a struct quorum_fence if the lease has a
     * fencing token; then the kind's extra. */
    char name[];
};

struct lease_events {
    /* The machine of a lease has made a step.  before: the state that it left. */
    void (*on_step)(void *cookie, struct redlock_lease *lease, enum quorum_state before);
    /* The operation under way is over. */
    void (*on_end)(void *cookie, struct redlock_lease *lease, int status);
    /* The lease is freed.  A blocking client's close ends with its last lease. */
    void (*on_free)(void *cookie, struct redlock_lease *lease);
};

/* All leases of a client, and what a lease knows of the client. */
struct leases {
    struct env *env;
    struct masters *masters;
    const struct lease_events *events;
    void *cookie;
    struct token_key tokens;
    const char *note; /* For locks that bring none.  "": none. */
    struct owners owners;
    drift_span reply_timeout;
    struct { /* The lease that was revoked last, and the text that revoked it. */
        uint64_t serial;
        char text[REDLOCK_TOKEN_MAX + 1];
    } revoked;

    struct redlock_lease **slots; /* Indexed by slot.  NULL: the slot is free. */
    uint32_t *slots_free;         /* A stack of free slots. */
    uint32_t slots_len, slots_free_len, slots_room;
    uint64_t serial;                                /* The serial of the latest lease. */
    struct redlock_lease *spent_first, *spent_last; /* Leases that are over, the oldest first. */
    uint32_t spent_len;
    struct redlock_lease *ready; /* Leases with callbacks to run, in order. */
    struct redlock_lease **ready_end;
    uint32_t ready_len;
    /* Masters to which a closing loop client has sent the full release script. */
    quorum_mask brought[KINDS];
};

static inline const struct kind *lease_kind(const struct redlock_lease *lease)
{
    return kinds[lease->kind];
}

/* The memory behind the names, aligned for everything that is stored there. */
static inline char *lease_behind(const struct redlock_lease *lease)
{
    size_t end =
        offsetof(struct redlock_lease, name) + lease->name_len + 1u + lease->token_len + 1u;
    size_t align = _Alignof(uint64_t);

    return (char *)(uintptr_t)lease + (end + align - 1) / align * align;
}

/* The state of the fencing token.  NULL: the lease has none. */
static inline struct quorum_fence *lease_fence(const struct redlock_lease *lease)
{
    return lease->q.config.fence ? (void *)lease_behind(lease) : NULL;
}

/* The kind's extra. */
static inline void *lease_extra(const struct redlock_lease *lease)
{
    size_t fence = lease->q.config.fence ? sizeof(struct quorum_fence) : 0;

    return lease_behind(lease) + fence;
}

/* The name as the caller knows it.  The first of several names. */
static inline const char *lease_name(const struct redlock_lease *lease)
{
    return lease->name + lease_kind(lease)->hidden;
}

/* What masters store for the lease, or will store: the token with its note. */
static inline const char *lease_token(const struct redlock_lease *lease)
{
    return lease->name + lease->name_len + 1;
}

/* A master has answered.  For the message of a loss. */
static inline void lease_note_gone(struct redlock_lease *lease, const struct quorum_event *reply)
{
    if (reply->command != QUORUM_CMD_EXTEND)
        return;
    if (reply->vote == QUORUM_VOTE_NO)
        lease->gone |= mask_of(reply->master);
    else if (reply->vote == QUORUM_VOTE_YES)
        lease->gone = mask_without(lease->gone, reply->master);
}

/* What a master answers to a release says nothing about the rights to lock. */
static inline void lease_note_why(struct redlock_lease *lease, unsigned master,
                                  enum quorum_command command, enum why why)
{
    if (command != QUORUM_CMD_RELEASE || lease->op == LEASE_OP_UNLOCK)
        lease->why[master] = (uint8_t)why;
}

/* Masters that refuse this user, as they have answered last.  A silent one has not answered. */
static inline quorum_mask lease_refused(const struct redlock_lease *lease)
{
    quorum_mask refused = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (reason_refuses_user((enum why)lease->why[m]))
            refused |= mask_of(m);
    return refused & (quorum_mask)~lease->silent;
}

/* Whether the lease asks for the lock, or pauses between two attempts. */
static inline bool lease_is_waiting(const struct redlock_lease *lease)
{
    enum quorum_state state = lease->q.state;

    return state == QUORUM_PAUSING || state == QUORUM_ACQUIRING || state == QUORUM_RAISING ||
           state == QUORUM_CONNECTING;
}

/* How long the lease is still held, by the clock.  Any thread may call it. */
static inline uint32_t lease_remaining_ms(const struct redlock_lease *lease)
{
    drift_time deadline = atomic_load_explicit(&lease->deadline, memory_order_relaxed);

    return deadline != 0 ? drift_to_ms(drift_until(env_now(lease->leases->env), deadline)) : 0;
}

#endif /* REDLOCK_STATE_H */
