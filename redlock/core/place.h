/*
 * place.h - a waiter's place in the queue of one fair lock, as its own lease knows
 * it; pure.
 *
 * Each master keeps a *queue* beside the key.  It stores the waiters in the order
 * of their *tickets*, and until when each counts as alive.  A *heartbeat* replaces
 * SET: it puts the waiter where its ticket says, and grants the lock only to the
 * first in the queue.  A waiter without a ticket *joins*: the master gives it the
 * greatest number in the queue plus one, and reports that number.
 *
 * Masters assign numbers independently, so the numbers differ.  The greatest number
 * that a majority reported becomes the ticket.  Each heartbeat sends the ticket to
 * all masters.  A master that has the waiter at another number, or not at all, then
 * puts it at its ticket.  A waiter has its place when a majority stores it with its
 * ticket.  Any waiter that joins later gets a greater number from at least one of
 * these masters.  Its ticket is no less, so it is behind on all of them.
 *
 * A waiter's name begins with digits that all waiters of one client share.  They name the channel
 * on which masters tell that client whose turn it is, so no other client is woken.  The other
 * digits say which lease of the client waits.
 *
 * Exclusion does not depend on any of this.  It rests on SET NX on a majority, as
 * for any lock.
 */
#ifndef REDLOCK_PLACE_H
#define REDLOCK_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/members.h"
#include "redlock/base/token.h"

/* A waiter that misses this many heartbeats counts as dead.  Chosen: one may be lost, one may be
 * late, and two are left. */
#define PLACE_BEATS 4
#define PLACE_PATIENCE_MIN_MS 1000 /* Chosen: the time that a busy process may stop for. */

/* Pauses between two heartbeats differ by this part of the longest at most.  Chosen: clients get
 * out of step, and the heartbeats of one client go together without coming much more often. */
#define PLACE_SPREAD 8

/* The digits at the start of a waiter's name that are those of its client: 96 bits, so that no two
 * clients share a channel. */
#define PLACE_CLIENT 24

struct place {
    const struct members *members; /* The members now.  The caller owns and changes it. */
    quorum_mask asked;             /* Masters that may have the waiter in their queues. */
    quorum_mask told;              /* Masters that have reported a number. */
    quorum_mask stored;   /* Masters that store the waiter with its ticket, or with top while it
                           * has none. */
    quorum_mask said;     /* Masters whose latest request carried the ticket. */
    quorum_mask named;    /* Masters that reported the waiter's turn, or may have done so.  With
                           * a ticket, this counts only since they were last asked. */
    quorum_mask granted;  /* Masters that granted the lock since they were last asked: it was the
                           * waiter's turn. */
    quorum_mask full;     /* Masters whose queues have no room. */
    bool hurries;         /* The waiter has a ticket that too few masters store. */
    bool stirred;         /* Since the round began, news of the waiter's turn or ticket has come. */
    bool left;            /* Its masters were sent a request to take it out of the queue. */
    bool passes;          /* A token waits with the waiter, so that a release can grant it. */
    bool won;             /* The waiter got the lock. */
    uint32_t patience_ms; /* The waiter counts as alive for this long after a heartbeat. */
    uint64_t ticket, top; /* 0: none yet. */
    char waiter[TOKEN_LEN + 1];
};

/* For how long a waiter counts as alive.  pause_max: the longest time between two heartbeats, with
 * the time for their answers. */
drift_span place_patience(drift_span pause_max);

/* pause_max: the longest time between two heartbeats, with the time for their answers.
 * place_name() is next. */
void place_init(struct place *p, const struct members *members, drift_span pause_max);

/* Write the waiter's name.  client: PLACE_CLIENT digits.  slot and serial: of the lease. */
void place_name(struct place *p, const char *client, uint32_t slot, uint32_t serial);

/* Read the numbers of the lease from a waiter's name.  False: it is no such name of this client. */
bool place_read_name(const char *waiter, const char *client, uint32_t *ret_slot,
                     uint32_t *ret_serial);

/* A round begins.  Without news there is no reason for another. */
void place_on_round(struct place *p);

/* These masters are asked.  If the waiter has a ticket, what they reported before is no longer
 * news. */
void place_on_ask(struct place *p, quorum_mask masters);

/* A master reported the number at which it stores the waiter.  0: its queue has no room. */
void place_on_number(struct place *p, unsigned master, uint64_t number);

/* A master granted the lock.  If the request was a join, the queue was empty, and the number is
 * 1. */
void place_on_grant(struct place *p, unsigned master);

/* A master answered, with any answer.  It can be asked again. */
void place_on_answer(struct place *p, unsigned master);

/* A master announces that this waiter is first and that the key is free.  This is also called
 * when we begin to hear a master's announcements, because we may have missed that one. */
void place_on_named(struct place *p, unsigned master);

/* These numbers belong to other masters from now on. */
void place_on_left(struct place *p, quorum_mask left);

/* Masters that may have the waiter in their queues though they were removed from the set, and that
 * can be sent a command.  place_leave_removed(): the caller takes it out of them. */
quorum_mask place_must_leave(const struct place *p, quorum_mask up);
quorum_mask place_leave_removed(struct place *p, quorum_mask up);

/* Masters where the waiter's token may wait with it: all that were sent its ticket.  Rule 13 of
 * quorum.c. */
static inline quorum_mask place_tokens(const struct place *p)
{
    return p->passes ? p->said : 0;
}

/* Masters that drop the place of a holder by themselves, when its release comes.  stores: masters
 * that may store the token of the lease.  No other gets a release: one that granted an earlier
 * token may have got that token back, and still has the waiter in its queue. */
quorum_mask place_settled(const struct place *p, quorum_mask stores);

/* The pauses between two heartbeats, for rounds that may pause from *min to *max.  On average they
 * are as long. */
void place_pauses(drift_span *min, drift_span *max);

/* Whether a heartbeat that is due at this time goes together with one that begins now.  spread: by
 * how much its pauses differ. */
bool place_joins(drift_time due, drift_time now, drift_span spread);

/* Whether the next round is to begin at once. up: masters that this round can ask. */
bool place_is_due(const struct place *p, quorum_mask up);

/* Whether p comes before other in the same queue, as far as both know. */
bool place_is_before(const struct place *p, const struct place *other);

/* Whether the queues have no room for the waiter. */
bool place_is_full(const struct place *p);

#endif /* REDLOCK_PLACE_H */
