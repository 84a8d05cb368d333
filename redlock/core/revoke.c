/*
 * revoke.c - the rules of revoke.h; pure.
 */
#include "redlock/core/revoke.h"

#include <assert.h>
#include <string.h>

#define FASTEST 5 /* A clock that is slewed by 20 % at most: see condition 2 of docs/safety.md. */

void revoke_init(struct revoke *r, const struct members *lists, bool is_guarded, uint64_t version)
{
    memset(r, 0, sizeof *r);
    r->lists = *lists;
    r->is_guarded = is_guarded;
    r->version = version;
}

static bool decide(const struct revoke *r, quorum_mask masters)
{
    return members_decide(&r->lists, masters);
}

void revoke_on_read(struct revoke *r, unsigned master, const struct revoke_seen *seen)
{
    assert(master < QUORUM_MASTERS_MAX);
    r->seen[master] = *seen;
    r->read |= mask_of(master);
}

/* The script compares the whole field epoch with what was read: rule 2. */
void revoke_on_done(struct revoke *r, unsigned master, const struct revoke_done *done)
{
    assert(master < QUORUM_MASTERS_MAX);
    r->did[master] = *done;
    r->done |= mask_of(master);
    if (done->number > r->number)
        r->number = done->number;
}

/* The number stays: rivals may have counted beyond it meanwhile. */
void revoke_on_raised(struct revoke *r, unsigned master, uint64_t number)
{
    assert(revoke_behind(r) & mask_of(master));
    r->did[master].number = number;
}

/* Rule 2.  An older version counts: no client obeys it that knows ours, and it changes no key. */
static bool counts(const struct revoke *r, unsigned master)
{
    bool is_member = (members_all(&r->lists) & mask_of(master)) != 0;

    return (r->read & mask_of(master)) && is_member &&
           (!r->is_guarded || r->seen[master].version != 0);
}

static quorum_mask counted(const struct revoke *r)
{
    quorum_mask masters = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        masters |= counts(r, m) ? mask_of(m) : 0;
    return masters;
}

/* Masters that count, and store the same holder as this one. */
static quorum_mask with_same(const struct revoke *r, unsigned master)
{
    const struct revoke_seen *one = &r->seen[master];
    quorum_mask same = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        const struct revoke_seen *other = &r->seen[m];
        bool has_text = one->what == REVOKE_TOKEN || one->what == REVOKE_REVOKED;

        if (counts(r, m) && other->what == one->what &&
            (!has_text || strcmp(one->text, other->text) == 0))
            same |= mask_of(m);
    }
    return same;
}

/* Rule 3.  Take the holder of this sort that most masters store. */
static void find_holder(struct revoke *r, enum revoke_what what)
{
    quorum_mask silent = members_all(&r->lists) & (quorum_mask)~counted(r);

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        quorum_mask same;

        if (!counts(r, m) || r->seen[m].what != what)
            continue;
        same = with_same(r, m);
        if (!decide(r, same | silent) || mask_count(same) <= mask_count(r->holders))
            continue;
        r->holders = same;
        r->has_readers = what == REVOKE_READERS;
        memcpy(r->text, r->seen[m].text, sizeof r->text);
        r->text[what == REVOKE_READERS ? 0 : REDLOCK_TOKEN_MAX] = '\0';
    }
}

static enum revoke_status find_other(struct revoke *r)
{
    find_holder(r, REVOKE_REVOKED);
    if (r->holders != 0)
        return REVOKE_ALREADY;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (counts(r, m) && r->seen[m].what == REVOKE_FOREIGN)
            r->foreign |= mask_of(m);
    return r->foreign != 0 ? REVOKE_NO_LOCK : REVOKE_NOBODY;
}

enum revoke_status revoke_choose(struct revoke *r)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        if (!counts(r, m) || !r->is_guarded || r->seen[m].version <= r->version)
            continue;
        r->culprit = m;
        return REVOKE_OVERTAKEN;
    }
    if (!decide(r, counted(r)))
        return REVOKE_TOO_FEW;
    find_holder(r, REVOKE_TOKEN);
    find_holder(r, REVOKE_READERS);
    if (r->holders == 0)
        return find_other(r);
    return REVOKE_OK;
}

quorum_mask revoke_masters(const struct revoke *r)
{
    uint64_t longest = (uint64_t)r->ago_ms + r->ago_ms / FASTEST; /* By the masters' clocks. */
    quorum_mask masters = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if ((r->done & mask_of(m)) && r->did[m].is_revoked && r->did[m].left_ms > longest)
            masters |= mask_of(m);
    return masters;
}

/* Rule 1. */
enum revoke_status revoke_judge(struct revoke *r, uint32_t ago_ms)
{
    bool was_there;

    r->ago_ms = 0;
    was_there = revoke_masters(r) != 0;
    r->ago_ms = ago_ms;
    if (decide(r, revoke_masters(r)))
        return REVOKE_OK;
    return !was_there && decide(r, r->done) ? REVOKE_NOBODY : REVOKE_TOO_FEW;
}

/* The masters that stored the text and counted in one step, to a number of this range. */
static quorum_mask counted_to(const struct revoke *r, uint64_t least, uint64_t most)
{
    quorum_mask masters = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if ((r->done & mask_of(m)) && r->did[m].number >= least && r->did[m].number <= most)
            masters |= mask_of(m);
    return masters;
}

quorum_mask revoke_behind(const struct revoke *r)
{
    return r->number > 1 ? counted_to(r, 1, r->number - 1) : 0;
}

/* Rule 4. */
uint64_t revoke_number(const struct revoke *r)
{
    return r->number > 0 && decide(r, counted_to(r, r->number, UINT64_MAX)) ? r->number : 0;
}

/* How long the key of this master stays. */
static uint32_t left_of(const struct revoke *r, unsigned master)
{
    if (r->done & mask_of(master))
        return r->did[master].left_ms;
    return counts(r, master) ? r->seen[master].left_ms : UINT32_MAX;
}

/* Rule 5.  The shortest time in which a majority is free. */
uint32_t revoke_left_ms(const struct revoke *r)
{
    uint32_t best = UINT32_MAX;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        uint32_t left = left_of(r, i);
        quorum_mask free = 0;

        for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
            free |= left_of(r, m) <= left ? mask_of(m) : 0;
        if (decide(r, free) && left < best)
            best = left;
    }
    return best;
}
