/*
 * permit.h - which slot of a semaphore a lease asks for, and which it has; pure.
 *
 * Of a semaphore of K permits every one is a lock of its own, its *slot*: a key that a
 * majority of masters has to set, as for any lock.  So no two hold one slot, and no more
 * than K hold the semaphore.  To count on each master would not do: of 5 masters that
 * give away 2 each, 10 in all, 3 clients get a majority (test-permit).
 *
 * A round asks for one slot on all masters, at first for a random one.  Masters that have
 * given it away tell another that is free there, if there is one, and that is what the
 * next round is for.  It is a hint and no more: the masters may differ, and others be faster.
 *
 * A round that was lost is released where it asked; so it is kept for each master which
 * slot that was.  And who adopts a token has to know: its first two digits tell.
 */
#ifndef REDLOCK_PERMIT_H
#define REDLOCK_PERMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/quorum.h"

#define PERMIT_NONE 0 /* In the place of a hint: no slot is free. */

/* Zeroes at first, but for slots. */
struct permit {
    uint32_t round;                      /* The latest that was asked for, */
    uint16_t slots;                      /* 1 to REDLOCK_PERMITS_MAX */
    uint8_t slot;                        /* and what it asked for. */
    quorum_mask hinted;                  /* Masters that have told a slot since: */
    uint16_t hints[QUORUM_MASTERS_MAX];  /* its number, from 1; or PERMIT_NONE. */
    uint8_t slot_of[QUORUM_MASTERS_MAX]; /* What was asked of each master last. */
};

/* A master says no, and tells this. */
void permit_hint(struct permit *p, unsigned master, unsigned hint);

/* A SET of this round is asked of these masters.  The first of a round chooses its slot. */
void permit_ask(struct permit *p, uint32_t round, quorum_mask masters, uint32_t random);

/* An adopted token: one of round, whoever stores it.  False: it is of none of the slots. */
bool permit_adopt(struct permit *p, const char *token);

/* Have a token tell of its slot. */
void permit_mark(char *token, unsigned slot);

#endif /* REDLOCK_PERMIT_H */
