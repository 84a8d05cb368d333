/*
 * permit.c - choose slots, record them, and write them into tokens.
 */
#include "redlock/core/permit.h"

#include <assert.h>
#include <string.h>

_Static_assert(REDLOCK_PERMITS_MAX <= 256, "a slot is two hexadecimal digits");

static const char digits[] = "0123456789abcdef";

void permit_hint(struct permit *p, unsigned master, unsigned hint)
{
    assert(master < QUORUM_MASTERS_MAX && hint <= REDLOCK_PERMITS_MAX);
    p->hinted |= (quorum_mask)(1u << master);
    p->hints[master] = (uint16_t)hint;
}

static bool has_hint(const struct permit *p, unsigned master, unsigned hint)
{
    return (p->hinted >> master & 1) != 0 && p->hints[master] == hint;
}

static unsigned count_hint(const struct permit *p, unsigned hint)
{
    unsigned count = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        count += has_hint(p, m, hint);
    return count;
}

/* The distance from the slot asked for to the hint.  Each master hints at its first free slot
 * after the one asked for. */
static unsigned distance(const struct permit *p, unsigned hint)
{
    return (hint - 1u + p->slots - p->slot) % p->slots;
}

/* The slot that most masters hinted at.  Of equals, take the farther one: the other masters do
 * not know it to be taken.  A master that was away wrongly sees slots as free.  PERMIT_NONE: no
 * master has a hint. */
static unsigned best_hint(const struct permit *p)
{
    unsigned best = PERMIT_NONE, best_count = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        unsigned hint = (p->hinted >> m & 1) != 0 ? p->hints[m] : PERMIT_NONE;
        unsigned count = count_hint(p, hint);

        if (hint == PERMIT_NONE || hint > p->slots || count < best_count)
            continue;
        if (count == best_count && distance(p, hint) <= distance(p, best))
            continue;
        best = hint;
        best_count = count;
    }
    return best;
}

void permit_ask(struct permit *p, uint32_t round, quorum_mask masters, uint32_t random)
{
    assert(p->slots >= 1);
    if (round != p->round) {
        unsigned best = best_hint(p);

        p->slot = (uint8_t)(best != PERMIT_NONE ? best - 1 : random % p->slots);
        p->round = round;
        p->hinted = 0;
    }
    permit_give(p, masters);
}

void permit_give(struct permit *p, quorum_mask masters)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (masters >> m & 1)
            p->slot_of[m] = p->slot;
}

void permit_on_left(struct permit *p, quorum_mask left)
{
    p->hinted &= (quorum_mask)~left;
}

bool permit_adopt(struct permit *p, const char *token)
{
    const char *high, *low;
    unsigned slot;

    if (token[0] == '\0' || token[1] == '\0')
        return false;
    high = strchr(digits, token[0]);
    low = strchr(digits, token[1]);
    if (high == NULL || low == NULL)
        return false;
    slot = (unsigned)(high - digits) * 16 + (unsigned)(low - digits);
    if (slot >= p->slots)
        return false;
    p->slot = (uint8_t)slot;
    memset(p->slot_of, p->slot, sizeof p->slot_of);
    return true;
}

void permit_stamp(char *token, unsigned slot)
{
    token[0] = digits[slot >> 4 & 15];
    token[1] = digits[slot & 15];
}
