/*
 * permit.h - which slot of a semaphore a lease asks for, and which it has; pure.
 *
 * A semaphore of K permits has K *slots*.  Each slot is a lock of its own: a key
 * that a majority of masters has to set.  So no two clients hold one slot, and no
 * more than K hold the semaphore.  Counting permits on each master would be unsafe.
 * With 5 masters that grant 2 permits each, 10 in all, 3 clients could each get a
 * majority (test-permit).
 *
 * A round asks for one slot on all masters.  The first round picks a random slot.
 * A master that has granted that slot hints at another that is free there, if there
 * is one.  The next round asks for a hinted slot.  A hint is no promise: masters
 * may differ, and other clients may be faster.
 *
 * A lost round must be released under the slot that it asked for.  So the slot is
 * stored for each master.  A process that adopts a token must know the slot too:
 * the first two digits of the token encode it.
 */
#ifndef REDLOCK_PERMIT_H
#define REDLOCK_PERMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/quorum.h"

#define PERMIT_NONE 0 /* In place of a hint: no slot is free. */

/* All zero at first, except slots. */
struct permit {
    uint32_t round;                      /* The latest round. */
    uint16_t slots;                      /* 1 to REDLOCK_PERMITS_MAX. */
    uint8_t slot;                        /* The slot that the latest round asked for. */
    quorum_mask hinted;                  /* Masters that have sent a hint since that round began. */
    uint16_t hints[QUORUM_MASTERS_MAX];  /* The hinted slot, counted from 1, or PERMIT_NONE. */
    uint8_t slot_of[QUORUM_MASTERS_MAX]; /* The slot that each master was last asked for. */
};

/* A master refused, and sent this hint. */
void permit_hint(struct permit *p, unsigned master, unsigned hint);

/* Send a SET of this round to these masters.  The first call of a round chooses its slot. */
void permit_ask(struct permit *p, uint32_t round, quorum_mask masters, uint32_t random);

/* Give these masters the token of the latest round, in its slot. */
void permit_give(struct permit *p, quorum_mask masters);

/* These numbers belong to other masters from now on. */
void permit_on_left(struct permit *p, quorum_mask left);

/* Adopt a token.  All masters get its slot, because any of them may store it.  False: the token
 * names no slot of this semaphore. */
bool permit_adopt(struct permit *p, const char *token);

/* Write the slot into the token's first two digits. */
void permit_stamp(char *token, unsigned slot);

#endif /* REDLOCK_PERMIT_H */
