/*
 * quorum.h - one lock, as a machine that decides and never acts.
 *
 * quorum_step() takes one event with the time at which it happened.  It says what
 * to send, when to wake the machine, and whether an operation ended.  It does no
 * I/O, reads no clock, draws no random number, allocates nothing, and makes no
 * callbacks.  So a test can play the network, the clock, and the random numbers.
 *
 * A *round* is one attempt to lock: one token, one SET to every master.  An *ask*
 * is one command sent to several masters, for a round, an extension or a release.
 * Asks are numbered, and an answer carries the number of its ask.  So late answers
 * are recognised.
 */
#ifndef REDLOCK_QUORUM_H
#define REDLOCK_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/core/members.h"
#include "redlock/redlock.h"

enum quorum_state {
    QUORUM_IDLE,       /* Nothing is held or wanted. */
    QUORUM_CONNECTING, /* An operation is wanted; first links are still coming up. */
    QUORUM_ACQUIRING,  /* A round is out. */
    QUORUM_RAISING,    /* A majority said yes; their counters are being made equal. */
    QUORUM_PAUSING,    /* Between two rounds. */
    QUORUM_HELD,       /* Held until the deadline. */
    QUORUM_EXTENDING,  /* Held, with an extension out. */
    QUORUM_ADOPTED,    /* The token came from another process; it may be held or not. */
    QUORUM_PROVING,    /* Adopted, with the first extension out. */
    QUORUM_RELEASING,  /* A release is out, and the caller waits for its result. */
    QUORUM_LOST,       /* The hold ended without a release. */
};

enum quorum_event_type {
    QUORUM_EV_ACQUIRE, /* Only in IDLE, of a new machine. */
    QUORUM_EV_ADOPT,   /* Only in IDLE, of a new machine. */
    QUORUM_EV_EXTEND,  /* Only where quorum_may_extend(). */
    QUORUM_EV_RELEASE, /* Only of what is or was held, or adopted.  Ends with a status. */
    QUORUM_EV_CANCEL,  /* In any state.  Releases all that was asked for; ends without a status. */
    QUORUM_EV_DETACH,  /* In any state.  Releases nothing; ends without a status. */
    QUORUM_EV_REPLY,   /* A master answered. */
    QUORUM_EV_LINK,    /* A link came up or went down, or its master may vote now, or no more.
                        * Answers to earlier requests do not count. */
    QUORUM_EV_TIMER,   /* wake_at has come.  An early call does no harm. */
    QUORUM_EV_WAKE,    /* Between two rounds: begin the next one at until.  Else ignored. */
    QUORUM_EV_CHANGE,  /* The members have changed. */
    QUORUM_EV_GRANT,   /* A release has passed a master's vote on to the token that waits there. */
};

enum quorum_vote {
    QUORUM_VOTE_YES,  /* Set, extended, deleted. */
    QUORUM_VOTE_NO,   /* Not done: the master does not store our token, or no longer. */
    QUORUM_VOTE_NONE, /* An error: the command may or may not have been done. */
    QUORUM_VOTE_VOID, /* SET, FENCE, GIVE: set, but the vote does not count (clocks.h), or
                       * the counter did not count. */
};
#define QUORUM_VOTES (QUORUM_VOTE_VOID + 1) /* How many there are. */

enum quorum_command {
    QUORUM_CMD_SET,
    QUORUM_CMD_EXTEND,
    QUORUM_CMD_RELEASE,
    QUORUM_CMD_FENCE, /* SET and count: a yes carries the number. */
    QUORUM_CMD_RAISE, /* Where our token is stored, count on to fence->counter. */
    QUORUM_CMD_GIVE,  /* SET on a master that lacks the token of a hold.  On one that joined, the
                       * answer counts as that to the extension of the same ask; else as none. */
};

/* The greatest fencing token.  It is exact in a double, which is Lua's number type. */
#define QUORUM_FENCE_MAX ((UINT64_C(1) << 53) - 1)

/* What is known of fencing counters.  Used only if a fencing token is wanted.  All zero at
 * first, and written only by quorum.c. */
struct quorum_fence {
    uint64_t token;   /* The fencing token; 0: not drawn yet. */
    uint64_t counter; /* The greatest number reported in this round, or the one to count to. */
    uint8_t behind[QUORUM_MASTERS_MAX]; /* How far each master that said yes is behind counter. */
    uint8_t raises;                     /* Raises in this round. */
    quorum_mask stale; /* Masters that were asked before the members changed: what they count to
                        * does not matter until they are raised. */
};

/* Small, because each vote is one. */
struct quorum_event {
    enum quorum_event_type type : 8;
    enum quorum_command command : 8; /* REPLY: the command that was answered. */
    enum quorum_vote vote : 8;       /* REPLY: what the answer counts as. */
    uint8_t master;                  /* REPLY, LINK, GRANT: the master. */
    uint32_t ask;                    /* REPLY: the ask that it answers. */
    drift_time now;                  /* Read just before the call, not when the event loop woke. */
    struct members members;
    quorum_mask up;     /* Masters that take a command now: linked, their queue not full. */
    quorum_mask coming; /* Masters that may soon take a command for the first time: see peers.h. */
    quorum_mask full;   /* Masters that can take a command when they have answered others. */
    quorum_mask linked; /* Masters that take a release now, also if they may not vote. */
    quorum_mask joined; /* CHANGE: members that were none before. */
    quorum_mask left;   /* CHANGE: numbers that have lost their masters, and may get others. */
    bool unkept;        /* REPLY to FENCE: if the master loses its data, perhaps no master knows
                         * this number. */
    bool elsewhere;     /* REPLY: a no to SET.  What the next round will ask for may be free. */
    bool stands;        /* REPLY to SET: the token may wait at this master, and be granted later. */
    bool revoked;       /* REPLY to EXTEND: an operator has revoked the lock at this master. */
    uint32_t random;    /* Any value; picks the pause between two rounds. */
    drift_span lease;   /* EXTEND: the new lease; 0: as long as before. */
    drift_time sent;    /* GRANT: before the request was sent that is granted. */
    drift_time until;   /* WAKE: when to begin the next round, whatever was planned.
                         * DRIFT_NEVER: as late as possible. */
    struct quorum_fence *fence; /* NULL, unless a fencing token is wanted.  The same at each
                                 * event. */
    uint64_t counter;           /* REPLY: comes with a yes to FENCE or RAISE, 1 to
                                 * QUORUM_FENCE_MAX. */
};

#define QUORUM_SENDS_MAX 3  /* A release of an old round, a round, and the round after it. */
#define QUORUM_SENDS_EACH 2 /* No master gets all of them. */

/* How many rounds may follow a lost one at once.  Chosen: after so many, other clients are
 * faster. */
#define QUORUM_DETOURS 3

struct quorum_send {
    enum quorum_command command;
    quorum_mask to;
    uint32_t ask;
};

struct quorum_actions {
    struct quorum_send send[QUORUM_SENDS_MAX]; /* Sent in this order.  Master m gets the token of
                                                * round round_of[m]. */
    unsigned send_len;                         /* quorum_span() is for how long. */
    drift_time wake_at;                        /* DRIFT_NEVER: no timer. */
    bool lost;                                 /* Notify the holder, once, that the end is near. */
    bool ended;                                /* The operation is over, with status. */
    int status;                                /* REDLOCK_*; meaningful if ended. */
    quorum_mask failed;                        /* Why a round or an extension failed: masters
                                                * that answered with an error, or whose links
                                                * broke, or whose yes does not count. */
};

struct quorum_config {
    bool renew;
    bool fence;       /* A fencing token is wanted, so events carry a struct quorum_fence. */
    bool many;        /* The token is stored under several names, or under some of them. */
    bool stands;      /* Between two rounds the token waits at the masters: rule 13 of quorum.c. */
    drift_span lease; /* The lease that a SET asks for; later that of the latest good extension. */
    drift_span reply_timeout;
    drift_span wait; /* DRIFT_NEVER: for ever. */
    drift_span pause_min, pause_max;
    drift_span lost_margin; /* Before the deadline; less than the validity. */
    drift_span hold_max;    /* No renewal after this long; DRIFT_NEVER: no limit. */
    struct drift_bound drift;
};

/* Visible so that it can be embedded, printed and hashed.  Only quorum.c writes it. */
struct quorum {
    struct quorum_config config;
    enum quorum_state state : 8;
    uint8_t wanted;               /* CONNECTING: the EV_ to begin with when links are up. */
    bool asked_extend : 1;        /* EXTENDING: the owner asked for it, not the renewal. */
    bool told : 1;                /* The lost notice was given: no more extensions. */
    bool late : 1;                /* A yes to the token that stands came after its round, or was
                                   * taken back. */
    bool contended : 1;           /* PAUSING: in the last round other clients held the lock. */
    uint8_t elsewhere : 4;        /* ACQUIRING: how many masters refused, and reported that
                                   * another choice may be free. */
    bool decided : 1;             /* ACQUIRING: a majority is impossible, but some masters may
                                   * still report another choice. */
    bool adopted : 1;             /* The token came from another process. */
    uint8_t detours : 2;          /* How many rounds may still begin without a pause. */
    quorum_mask asked, yes, none; /* Masters that the ask under way was sent to; those that
                                   * granted it; those that failed or stay silent. */
    quorum_mask may_hold;         /* Masters that may store the token of their round_of. */
    quorum_mask live;             /* Masters whose round_of is the live round. */
    quorum_mask owing;            /* Masters that have not answered our latest command. */
    quorum_mask releasing;        /* Masters sent a release of round_of on this connection. */
    quorum_mask fresh;            /* Masters that joined since the round began, or that a change
                                   * needs: an extension gives them the token. */
    quorum_mask deciding;         /* Masters that owe the answer to a command that stores the live
                                   * token or deletes it, and to any later one. */
    quorum_mask barred;           /* Masters that never regain the live token (rule 14). */
    quorum_mask relied;           /* Masters by whose votes the lock is held until the deadline: a
                                   * majority of them stores all its names.  Members that may be
                                   * given it, and refused to extend it (rule 10). */
    uint32_t ask;                 /* Number of the latest ask. */
    uint32_t round;               /* Number of the live round; 0: none. */
    drift_time sent;              /* When the ask under way began. */
    drift_time timeout;           /* When the ask or the pause under way ends at the latest; HELD:
                                   * when to renew. */
    drift_time deadline;          /* From this instant on, the lock is not held. */
    drift_time since;             /* When the caller asked for the lock; once held, when it was
                                   * granted. */
    drift_time lost_at;
    drift_time settle_by; /* When every lease that was ever asked for has expired. */
    drift_span lease;     /* The lease that the latest SET or extension asked for. */
    uint32_t round_of[QUORUM_MASTERS_MAX];
    uint32_t ask_of[QUORUM_MASTERS_MAX]; /* The latest ask sent to each master. */
};

/* How long a master is to store what a command asks for.  now: for GIVE, which lasts as long as the
 * hold at least. */
drift_span quorum_span(const struct quorum *q, enum quorum_command command, drift_time now);

void quorum_init(struct quorum *q, const struct quorum_config *config);

/* Take one event.  The caller must not pass an event out of place (asserted). */
void quorum_step(struct quorum *q, const struct quorum_event *event,
                 struct quorum_actions *ret_actions);

/* The time until the deadline, 0 when not held.  Compares clocks at every call. */
drift_span quorum_remaining(const struct quorum *q, drift_time now);

static inline bool quorum_is_held(const struct quorum *q)
{
    return q->state == QUORUM_HELD || q->state == QUORUM_EXTENDING;
}

/* Whether answers are awaited, until the timeout. */
static inline bool quorum_awaits(enum quorum_state state)
{
    return state == QUORUM_ACQUIRING || state == QUORUM_RAISING || state == QUORUM_EXTENDING ||
           state == QUORUM_PROVING || state == QUORUM_RELEASING;
}

/* When to stop trying to acquire; once held, when to stop renewing. */
static inline drift_time quorum_give_up(const struct quorum *q)
{
    return drift_add(q->since, quorum_is_held(q) ? q->config.hold_max : q->config.wait);
}

/* Whether an EXTEND event is in place. */
bool quorum_may_extend(const struct quorum *q);

/* True if nothing is held, wanted, or left to clean up. */
static inline bool quorum_is_settled(const struct quorum *q)
{
    return q->state == QUORUM_IDLE && q->may_hold == 0;
}

/* Whether a release for this master is due, and was not sent on this connection. */
bool quorum_must_release(const struct quorum *q, unsigned master);

/* Whether a change of this master's link matters to the machine. */
bool quorum_cares(const struct quorum *q, unsigned master);

#endif /* REDLOCK_QUORUM_H */
