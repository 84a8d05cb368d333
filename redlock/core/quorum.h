/*
 * quorum.h - one lock, as a machine that decides and never acts.
 *
 * quorum_step() takes one event with the time it happened, and says what to
 * send, when to be woken, and whether an operation ended.  It does no I/O,
 * reads no clock, draws no random number, allocates nothing, and calls nobody
 * back, so that a test can be the network, the clock, and the dice.
 *
 * Words.  A *round* is one attempt to lock: one token, one SET to every
 * master.  An *ask* is one fan-out of a command, of a round or of an extension
 * or a release; asks are numbered, and an answer tells the number of its ask,
 * so that late answers are known for what they are.
 */
#ifndef REDLOCK_QUORUM_H
#define REDLOCK_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/redlock.h"

enum quorum_state {
    QUORUM_IDLE,       /* Nothing is held and nothing wanted. */
    QUORUM_CONNECTING, /* Something is wanted; first links are still coming up. */
    QUORUM_ACQUIRING,  /* A round is out. */
    QUORUM_RAISING,    /* A majority said yes; their counters are brought in step. */
    QUORUM_PAUSING,    /* Between two rounds. */
    QUORUM_HELD,       /* Held until the deadline. */
    QUORUM_EXTENDING,  /* Held, with an extension out. */
    QUORUM_ADOPTED,    /* A token of somebody else's, that may be held or not. */
    QUORUM_PROVING,    /* The same, with its first extension out. */
    QUORUM_RELEASING,  /* A release is out, and somebody waits for it. */
    QUORUM_LOST,       /* Was held; ended unasked. */
};

enum quorum_event_type {
    QUORUM_EV_ACQUIRE, /* Only in IDLE, of a new machine. */
    QUORUM_EV_ADOPT,   /* Likewise. */
    QUORUM_EV_EXTEND,  /* Only where quorum_may_extend(). */
    QUORUM_EV_RELEASE, /* Only of what is or was held, or adopted; ends with a status. */
    QUORUM_EV_CANCEL,  /* Any state; undoes everything, ends without one. */
    QUORUM_EV_DETACH,  /* Any state; undoes nothing, ends without one. */
    QUORUM_EV_REPLY,   /* A master answered. */
    QUORUM_EV_LINK,    /* A link came up or went down: what was asked on it stays unanswered. */
    QUORUM_EV_TIMER,   /* wake_at has come (being early does no harm). */
    QUORUM_EV_WAKE,    /* Between two rounds: begin the next one at until.  Else ignored. */
};

enum quorum_vote {
    QUORUM_VOTE_YES,  /* Set, extended, deleted. */
    QUORUM_VOTE_NO,   /* Not: the key is not, or not any more, ours there. */
    QUORUM_VOTE_NONE, /* An error: it may or may not have been done. */
    QUORUM_VOTE_VOID, /* Of SET: set, but that does not count (clocks.h), or was not counted. */
};

enum quorum_command {
    QUORUM_CMD_SET,
    QUORUM_CMD_EXTEND,
    QUORUM_CMD_RELEASE,
    QUORUM_CMD_FENCE, /* SET, and count: a yes tells the number. */
    QUORUM_CMD_RAISE, /* Count on to fence->counter where our token is stored. */
};

/* Of a fencing token, exact in a double, which is what Lua counts in. */
#define QUORUM_FENCE_MAX ((UINT64_C(1) << 53) - 1)

/* What is known of counters, for those alone who want a fencing token: zeroes at first,
 * and written by quorum.c only. */
struct quorum_fence {
    uint64_t token;   /* Once it is drawn; 0: not yet. */
    uint64_t counter; /* The greatest that was told in this round, or is to be counted to; */
    uint8_t behind[QUORUM_MASTERS_MAX]; /* and how far each that said yes is behind it. */
    uint8_t raises;                     /* In this round. */
};

struct quorum_event {
    enum quorum_event_type type;
    drift_time now;     /* Read just before the call, not when the loop woke. */
    uint32_t random;    /* Any; picks the pause between two rounds. */
    quorum_mask up;     /* Masters that take a command now: linked, their queue not full. */
    quorum_mask coming; /* Masters whose very first attempt to connect goes on. */
    drift_span lease;   /* EXTEND: the new lease; 0: as long as before. */
    drift_time until;   /* WAKE: sooner or later than planned; DRIFT_NEVER: as late as may be. */
    unsigned master;    /* REPLY, LINK. */
    uint32_t ask;       /* REPLY: of the command that it answers; likewise the next. */
    enum quorum_command command;
    enum quorum_vote vote;
    struct quorum_fence *fence; /* NULL, unless one is wanted; the same at each event. */
    uint64_t counter;           /* REPLY: with a yes to FENCE or RAISE, 1 to QUORUM_FENCE_MAX; */
    bool unkept;                /* to FENCE: which nobody may know of if the master forgets. */
    bool elsewhere; /* REPLY: with a no to SET: what the next round will ask for may be had. */
};

#define QUORUM_SENDS_MAX 3  /* A release of what is past, and a round, and the one after it. */
#define QUORUM_SENDS_EACH 2 /* No master gets all of them. */

/* Rounds that may follow a lost one at once; no source: after so many others are faster. */
#define QUORUM_DETOURS 3

struct quorum_send {
    enum quorum_command command;
    quorum_mask to;
    uint32_t ask;
};

struct quorum_actions {
    struct quorum_send send[QUORUM_SENDS_MAX]; /* In this order.  The token for master m is that */
    unsigned send_len;                         /* of round round_of[m], the lease is q->lease. */
    drift_time wake_at;                        /* DRIFT_NEVER: no timer. */
    bool lost;                                 /* Tell the holder, once, that the end is near. */
    bool ended;                                /* The operation is over, with status. */
    int status;                                /* REDLOCK_*; meaningful if ended. */
};

struct quorum_config {
    unsigned masters; /* 1 to QUORUM_MASTERS_MAX */
    bool renew;
    bool fence; /* A fencing token is wanted: there is a struct quorum_fence. */
    bool many;  /* The token is stored under several names, or under some of them. */
    drift_span lease, reply_timeout;
    drift_span wait; /* DRIFT_NEVER: for ever. */
    drift_span pause_min, pause_max;
    drift_span lost_margin; /* Before the deadline; less than the validity. */
    drift_span hold_max;    /* No renewal after so long; DRIFT_NEVER: no limit. */
    struct drift_bound drift;
};

/* Visible so that it can be embedded, printed and hashed; to be written by
 * quorum.c only. */
struct quorum {
    struct quorum_config config;
    enum quorum_state state;
    enum quorum_event_type wanted; /* CONNECTING: what to begin when links are up. */
    bool asked_extend : 1;         /* EXTENDING: by the owner, not by the renewal. */
    bool told : 1;                 /* lost was said: no more extensions. */
    bool contended : 1;            /* PAUSING: others had it in the round before. */
    uint8_t elsewhere : 4;         /* ACQUIRING: so many said no, and that it is elsewhere. */
    bool decided : 1;              /* ACQUIRING: it is; a few may say where it can be had. */
    uint8_t detours : 2;           /* That may be taken before the next pause. */
    quorum_mask asked, yes, none;  /* Of the ask under way: sent, granted, error or silence. */
    quorum_mask may_hold;          /* Masters that may store the token of their round_of. */
    quorum_mask live;              /* Masters whose round_of is the live round. */
    quorum_mask owing;             /* Masters that have not answered our latest command. */
    quorum_mask releasing;         /* Masters told to release round_of, on this connection. */
    uint32_t ask;                  /* Number of the latest ask. */
    uint32_t round;                /* Number of the live round, 0: none. */
    drift_time sent;               /* When the ask under way began. */
    drift_time timeout;            /* When it ends whatever comes; also the end of a pause. */
    drift_time deadline;           /* Of the hold: not held from this instant on. */
    drift_time give_up;            /* To get it, and once it is held, to renew it. */
    drift_time renew_at, lost_at;
    drift_time settle_by; /* When everything ever asked for has expired by itself. */
    drift_span lease;     /* Of the latest SET or extension. */
    uint32_t round_of[QUORUM_MASTERS_MAX];
    uint32_t ask_of[QUORUM_MASTERS_MAX]; /* The latest ask sent to each master. */
};

void quorum_init(struct quorum *q, const struct quorum_config *config);

/* Take one event.  An event out of place is an error of the caller's (asserted). */
void quorum_step(struct quorum *q, const struct quorum_event *event,
                 struct quorum_actions *ret_actions);

/* Until the deadline, 0 when not held.  Compares clocks at every call. */
drift_span quorum_remaining(const struct quorum *q, drift_time now);

/* Whether an EXTEND event is in place. */
bool quorum_may_extend(const struct quorum *q);

/* Over and done with: nothing held, wanted, or left to clean up. */
bool quorum_is_settled(const struct quorum *q);

/* Whether a release for this master waits for room in its queue. */
bool quorum_must_release(const struct quorum *q, unsigned master);

/* Whether a change of this master's link matters to the machine. */
bool quorum_cares(const struct quorum *q, unsigned master);

#endif /* REDLOCK_QUORUM_H */
