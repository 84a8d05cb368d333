/*
 * place.h - a place in the queue for one lock, as the lease that waits there knows it; pure.
 *
 * Words.  Each master keeps a *queue* beside the key: who waits, in the order of their
 * *tickets*, and until when each counts as alive.  A *heartbeat* stands for SET: it puts the
 * waiter where its ticket says, and grants the lock to the first in line alone.  Who has no
 * ticket yet *joins*: he gets one more than the greatest there, and is told it.
 *
 * Masters give numbers by themselves, so that they differ.  The greatest that a majority
 * told is the ticket, and each heartbeat says it to all masters: those that had him
 * elsewhere, missed him, forgot him or took him for dead put him there.  He is in line when
 * a majority has him with his ticket: whoever joins from then on is told a greater number by
 * one of them at least, and so is behind him on all of these.
 *
 * Nothing of this is what a lock relies on: it is SET NX on a majority, as ever.
 */
#ifndef REDLOCK_PLACE_H
#define REDLOCK_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/quorum.h"
#include "redlock/base/token.h"

/* Who is not heard of for so many heartbeats is taken for dead.  No source: one may be lost,
 * one late, and two are left. */
#define PLACE_BEATS 4
#define PLACE_PATIENCE_MIN_MS 1000 /* No source: what a busy process may stop for. */

struct place {
    unsigned masters;
    quorum_mask told;     /* Masters that have told a number; */
    quorum_mask stored;   /* those that have it with the ticket, or with the top one so far. */
    quorum_mask said;     /* These were told the ticket when they were asked last; */
    quorum_mask named;    /* since then (or ever, while there is none to be told) these told that it
                           * is its turn, or may have, */
    quorum_mask granted;  /* and since they were asked these granted it the lock: it was. */
    quorum_mask full;     /* These have no room in their queues. */
    bool hurries;         /* It has a ticket that too few of the masters know. */
    bool stirred;         /* Since the round began there is news of its turn, or of its ticket. */
    bool joined, left;    /* Some master was asked; all were told that it waits no more. */
    uint32_t patience_ms; /* So long after a heartbeat it counts as alive. */
    uint64_t ticket, top; /* 0: none yet. */
    char waiter[TOKEN_LEN + 1];
};

/* pause_max: between two heartbeats, with the time for their answers.  waiter is the caller's. */
void place_init(struct place *p, unsigned masters, drift_span pause_max);

/* A round begins: without news there is no reason for another. */
void place_on_round(struct place *p);

/* These are asked: what they told before is no news, if it has a ticket. */
void place_on_ask(struct place *p, quorum_mask masters);

/* A master told where it has put it; 0: it has no room. */
void place_on_number(struct place *p, unsigned master, uint64_t number);

/* A master granted the lock: if that was a join, there was nobody else, and the number is 1. */
void place_on_grant(struct place *p, unsigned master);

/* Whatever it answered, it can be asked again. */
void place_on_answer(struct place *p, unsigned master);

/* A master tells that it is the first in line, and that the key is free; or we begin to hear
 * what that tells, which may have told so before. */
void place_on_named(struct place *p, unsigned master);

/* Whether the next round, in which these can be asked, is to begin at once. */
bool place_is_due(const struct place *p, quorum_mask up);

/* Whether it is in line. */
bool place_is_taken(const struct place *p);

/* Whether it comes before that other one of the same queue, as far as they know. */
bool place_is_before(const struct place *p, const struct place *other);

/* Whether there is no room for it. */
bool place_is_full(const struct place *p);

#endif /* REDLOCK_PLACE_H */
