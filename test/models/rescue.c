/*
 * rescue.c - the newest configuration has lost its quorum for good: R1 to R5 of members.h.
 */
#include "models/members.h"

/* Closed and rescued versions of the right rescue: greater than any that can be chosen. */
enum { GREATEST = 16 };

/* R1: without the lost masters no version can be chosen, and no lease granted. */
static bool is_blocked(const struct world *w, set lost)
{
    (void)w;
    return !is_choosing_quorum(newest_version(), ~lost & 63) &&
           !is_quorum(newest_version(), ~lost & 63);
}

static void lose(const struct world *w)
{
    struct world next = *w;

    if (bounds.lose == 0 || w->history.rescue != NO_RESCUE)
        return;
    if (!is_blocked(w, bounds.lose) && !is_planted(BUG_RESCUE_STALE))
        return;
    next.history.rescue = LOST;
    next.history.lost = bounds.lose;
    next.history.closed_as = GREATEST;
    if (is_planted(BUG_RESCUE_NEXT_VERSION)) {
        unsigned greatest = 0;
        for (unsigned m = 0; m < bounds.masters; m++)
            if (!(bounds.lose & bit_of(m)) && w->masters[m].version > greatest)
                greatest = w->masters[m].version;
        next.history.closed_as = (greatest + 1);
    }
    explorer_take(&next, 'L', 0, 0, 0, NULL);
}

/* R2: whom the admin knows of.  With BUG_RESCUE_STALE, it is the first list alone. */
static set members_to_close(void)
{
    set all = 0;

    if (is_planted(BUG_RESCUE_STALE))
        return members_of(1);
    for (unsigned v = 1; v <= newest_version(); v++)
        all |= members_of(v);
    return all;
}

static set find_open(const struct world *w)
{
    set open = 0;

    for (unsigned m = 0; m < bounds.masters; m++)
        if (w->masters[m].version < CLOSED)
            open |= bit_of(m);
    return open & members_to_close() & ~bounds.lose;
}

static void start_wait(struct world *next)
{
    next->history.rescue = CLOSING_WAIT;
    next->history.wait = is_planted(BUG_RESCUE_NO_WAIT) ? 0 : bounds.ttl;
}

/* R2, and R3 behind the last. */
static void close_steps(const struct world *w)
{
    set open = find_open(w);

    if (open == 0 || is_planted(BUG_RESCUE_NO_CLOSE)) {
        struct world next = *w;
        start_wait(&next);
        explorer_take(&next, 'C', 15, 0, 0, NULL);
        return;
    }
    for (unsigned m = 0; m < bounds.masters; m++) {
        struct world next = *w;

        if (!(open & bit_of(m)))
            continue;
        next.masters[m].version = CLOSED;
        next.masters[m].ballot = next.masters[m].accepted_ballot = next.masters[m].accepted = 0;
        if (open == bit_of(m))
            start_wait(&next);
        explorer_take(&next, 'C', m, 0, 0, NULL);
    }
}

/* R4. */
static void found(const struct world *w)
{
    struct world next = *w;

    next.history.rescue = FOUNDED;
    explorer_take(&next, 'U', 0, 0, 0, NULL);
}

/* R5. */
static void come_back(const struct world *w, unsigned master)
{
    struct world next = *w;

    next.history.lost &= ~bit_of(master);
    next.history.returned++;
    explorer_take(&next, 'B', master, 0, 0, NULL);
}

void rescue_steps(const struct world *w)
{
    lose(w);
    if (w->history.rescue == LOST)
        close_steps(w);
    if (w->history.rescue == CLOSING_WAIT && w->history.wait == 0)
        found(w);
    for (unsigned m = 0; w->history.returned < bounds.returns && m < bounds.masters; m++)
        if (w->history.lost & bit_of(m))
            come_back(w, m);
}
