/*
 * place.c - which number becomes the ticket, and when to begin a round at once.
 */
#include "redlock/core/place.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MAX_MS 86400000 /* A day: no lease is longer. */

static bool is_majority(const struct place *p, quorum_mask mask)
{
    return members_decide(p->members, mask);
}

drift_span place_patience(drift_span pause_max)
{
    uint64_t patience_ms = PLACE_BEATS * (pause_max / DRIFT_MS + 1);

    if (patience_ms < PLACE_PATIENCE_MIN_MS)
        patience_ms = PLACE_PATIENCE_MIN_MS;
    return (patience_ms < PATIENCE_MAX_MS ? patience_ms : PATIENCE_MAX_MS) * DRIFT_MS;
}

void place_init(struct place *p, const struct members *members, drift_span pause_max)
{
    memset(p, 0, sizeof *p);
    p->members = members;
    p->patience_ms = drift_to_ms(place_patience(pause_max));
}

/* ---- The waiter's name ---- */

#define NUMBER 8 /* Digits of 32 bits. */

static const char digits[] = "0123456789abcdef";

_Static_assert(PLACE_CLIENT + 2 * NUMBER == TOKEN_LEN, "a waiter's name is as long as a token");

static char *write_number(char *p, uint32_t number)
{
    for (unsigned i = NUMBER; i-- > 0; number >>= 4)
        p[i] = digits[number & 15];
    return p + NUMBER;
}

void place_name(struct place *p, const char *client, uint32_t slot, uint32_t serial)
{
    char *end = p->waiter + PLACE_CLIENT;

    memcpy(p->waiter, client, PLACE_CLIENT);
    end = write_number(end, slot);
    end = write_number(end, serial);
    *end = '\0';
}

/* The caller compares the whole name with that of the lease that it finds. */
bool place_read_name(const char *waiter, const char *client, uint32_t *ret_slot,
                     uint32_t *ret_serial)
{
    char slot[NUMBER + 1] = "";

    if (strlen(waiter) != TOKEN_LEN || strncmp(waiter, client, PLACE_CLIENT) != 0 ||
        strspn(waiter, digits) != TOKEN_LEN)
        return false;
    memcpy(slot, waiter + PLACE_CLIENT, NUMBER);
    *ret_slot = (uint32_t)strtoul(slot, NULL, 16);
    *ret_serial = (uint32_t)strtoul(waiter + PLACE_CLIENT + NUMBER, NULL, 16);
    return true;
}

/* ---- The ticket, and news ---- */

void place_on_round(struct place *p)
{
    p->hurries = p->stirred = false;
}

/* A waiter without a ticket joins, and a join is granted only at number 1.  If a master reported
 * the waiter's turn before, it is still its turn there. */
void place_on_ask(struct place *p, quorum_mask masters)
{
    p->asked |= masters;
    p->granted &= (quorum_mask)~masters;
    p->said &= (quorum_mask)~masters;
    if (p->ticket == 0)
        return;
    p->named &= (quorum_mask)~masters;
    p->said |= masters;
}

/* The ticket is the greatest number of a majority.  That majority shares a master with the one
 * that stored any earlier waiter, so the ticket is behind that waiter's. */
static void draw(struct place *p, unsigned master, uint64_t number)
{
    p->told |= mask_of(master);
    if (number > p->top) {
        p->top = number;
        p->stored = 0;
    }
    if (number == p->top)
        p->stored |= mask_of(master);
    if (!is_majority(p, p->told))
        return;
    p->ticket = p->top;
    p->stirred = true; /* Reports that came before the ticket become news, because the waiter can
                        * use them now. */
    /* A waiter whose ticket the masters do not know gets no lock passed on. */
    p->hurries = p->passes || !is_majority(p, p->stored);
}

void place_on_number(struct place *p, unsigned master, uint64_t number)
{
    assert(master < QUORUM_MASTERS_MAX);
    p->stored &= (quorum_mask)~mask_of(master);
    p->full &= (quorum_mask)~mask_of(master);
    if (number == 0)
        p->full |= mask_of(master);
    else if (p->ticket == 0)
        draw(p, master, number);
    else if (number == p->ticket)
        p->stored |= mask_of(master);
}

void place_on_grant(struct place *p, unsigned master)
{
    assert(master < QUORUM_MASTERS_MAX);
    p->granted |= mask_of(master);
    place_on_number(p, master, p->said & mask_of(master) ? p->ticket : 1);
}

/* These masters have the waiter first, at a number from before its ticket.  There it may block
 * waiters that come before it on other masters.  Such a master must be sent the ticket. */
static quorum_mask misplaced(const struct place *p)
{
    return p->ticket != 0 ? (p->named | p->granted) & (quorum_mask)~p->stored : 0;
}

void place_on_answer(struct place *p, unsigned master)
{
    assert(master < QUORUM_MASTERS_MAX);
    p->stirred |= (misplaced(p) & mask_of(master)) != 0;
}

void place_on_named(struct place *p, unsigned master)
{
    assert(master < QUORUM_MASTERS_MAX);
    p->named |= mask_of(master);
    p->stirred = true;
}

void place_on_left(struct place *p, quorum_mask left)
{
    p->asked &= (quorum_mask)~left;
    p->told &= (quorum_mask)~left;
    p->stored &= (quorum_mask)~left;
    p->said &= (quorum_mask)~left;
    p->named &= (quorum_mask)~left;
    p->granted &= (quorum_mask)~left;
    p->full &= (quorum_mask)~left;
}

quorum_mask place_must_leave(const struct place *p, quorum_mask up)
{
    return p->asked & up & (quorum_mask)~members_all(p->members);
}

/* The token may still wait there, or hold the key.  Its release deletes it. */
quorum_mask place_leave_removed(struct place *p, quorum_mask up)
{
    quorum_mask removed = place_must_leave(p, up);

    p->asked &= (quorum_mask)~removed;
    p->told &= (quorum_mask)~removed;
    p->stored &= (quorum_mask)~removed;
    p->named &= (quorum_mask)~removed;
    return removed;
}

/* A round may reach some masters before a release and others after it.  So masters that granted
 * count towards the majority, but are no reason for a round by themselves. */
bool place_is_due(const struct place *p, quorum_mask up)
{
    if (p->hurries)
        return true;
    return p->stirred && ((misplaced(p) & up) != 0 || is_majority(p, p->named | p->granted));
}

quorum_mask place_settled(const struct place *p, quorum_mask stores)
{
    return p->passes && p->won ? (p->granted | p->said) & stores : 0;
}

/* If the holder died, only the heartbeat of the first waiter finds the free lock.  So the narrow
 * range begins at the middle of the wide one: then the waiter waits hardly longer on average. */
void place_pauses(drift_span *min, drift_span *max)
{
    drift_span middle = *min + (*max - *min) / 2, spread = *max / PLACE_SPREAD;

    *min = middle;
    *max = spread < *max - middle ? middle + spread : *max;
}

bool place_joins(drift_time due, drift_time now, drift_span spread)
{
    return due <= drift_add(now, spread);
}

/* The order of a sorted set: by number, and by name if numbers are equal.  A waiter without a
 * ticket comes last. */
bool place_is_before(const struct place *p, const struct place *other)
{
    if (p->ticket != other->ticket)
        return p->ticket != 0 && (p->ticket < other->ticket || other->ticket == 0);
    return strcmp(p->waiter, other->waiter) < 0;
}

bool place_is_full(const struct place *p)
{
    return is_majority(p, p->full);
}
