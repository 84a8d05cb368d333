/*
 * wait.c - when to look, and when to try.
 *
 * Rules:
 *
 *  1. A round begins when a majority is free: as heard, seen, or reckoned from the
 *     time that the key had left (find_free).
 *  2. What made a round begin is used up by it: only what is heard from then on
 *     makes the next one begin (wait_on_try).
 *  3. What is known of a master is known as long as it is heard: from then on a
 *     release may have gone by (wait_on_hears).
 *  4. In time somebody looks, whatever was heard (plan_look): a message that was
 *     lost, or made up, costs so much.  If that comes to nothing, each tries for
 *     itself, and goes on to look (wait_on_lost).
 *  5. Who loses rounds in a row becomes slower and slower (patience), but not who comes
 *     after him (wait_on_turn).
 *  6. Lots are drawn once for each release that is heard, and then hold until the
 *     turn comes, or it is taken (plan_try).
 *  7. What the teller says is of all masters that are heard; of a semaphore that is a guess,
 *     since a majority has one slot, and all are seen on one master.  It is the teller only by the
 *     word of who had a majority: a key that somebody found on one master may be of a
 *     round that is lost, and all would try when that is taken back (wait_on_taken).
 */
#include "redlock/core/wait.h"

#include <assert.h>
#include <string.h>

/* Between two who were drawn to try one after the other: time for one to win, and
 * for the others to hear of it.  In round trips; and whatever these are. */
#define TURN_TRIPS 6
#define TURN_MIN DRIFT_MS
#define TURN_MAX (50 * DRIFT_MS)

/* Rounds lost in a row that still cost no patience: as many are lost by chance. */
#define LOSSES_FREE 2
#define LOSSES_MAX 32 /* Beyond it the doubling has reached every limit. */

/* A key that lasts longer than ten years is none of ours: so long it may stay unknown. */
#define WAIT_LEFT_MAX_MS (INT64_C(315360000) * 1000)

static unsigned count(quorum_mask mask)
{
    return mask_count(mask);
}

static unsigned majority(const struct wait *w)
{
    return w->masters / 2 + 1;
}

static drift_span between(drift_span low, drift_span high, uint32_t random)
{
    /* The dice have 32 bits: in microseconds they cover 71 minutes. */
    return low + (high > low ? (drift_span)random * 1000 % (high - low + 1) : 0);
}

static drift_span turn(const struct wait *w)
{
    drift_span span = w->trip * TURN_TRIPS;

    return span < TURN_MIN ? TURN_MIN : span > TURN_MAX ? TURN_MAX : span;
}

/* Until the next look, if nothing is heard. */
static drift_span fallback(const struct wait_now *now)
{
    drift_span span =
        between(WAIT_PATIENCE * now->pause_min, WAIT_PATIENCE * now->pause_max, now->random);

    return span > DRIFT_MS ? span : DRIFT_MS;
}

/* Until it must look, whatever is heard. */
static drift_span trust(const struct wait_now *now)
{
    drift_span span = WAIT_PATIENCE * now->pause_max;

    return WAIT_TRUST * (span > DRIFT_MS ? span : DRIFT_MS);
}

/* Rule 5. */
static drift_span patience(const struct wait *w, const struct wait_now *now)
{
    drift_span span = turn(w), longest = fallback(now);

    for (unsigned i = LOSSES_FREE; i < w->losses && span < longest; i++)
        span *= 2;
    return span < longest ? span : longest;
}

void wait_init(struct wait *w, unsigned masters, bool shared)
{
    assert(masters >= 1 && masters <= QUORUM_MASTERS_MAX);
    memset(w, 0, sizeof *w);
    w->masters = masters;
    w->shared = shared;
    w->expected = w->try_at = w->look_at = DRIFT_NEVER;
}

/* ---- What happened ---- */

static void learn(struct wait *w, quorum_mask masters, drift_time free_at)
{
    masters &= w->hears;
    w->known |= masters;
    w->seen &= (quorum_mask)~masters;
    for (unsigned m = 0; m < w->masters; m++)
        w->free_at[m] = masters & mask_of(m) ? free_at : w->free_at[m];
}

static void forget(struct wait *w, quorum_mask masters)
{
    w->known &= (quorum_mask)~masters;
    w->seen &= (quorum_mask)~masters;
}

void wait_on_hears(struct wait *w, unsigned master, bool hears)
{
    assert(master < w->masters);
    forget(w, mask_of(master)); /* Rule 3. */
    w->hears &= (quorum_mask)~mask_of(master);
    w->to_look &= (quorum_mask)~mask_of(master);
    if (w->teller & mask_of(master)) { /* The others were not asked to tell. */
        w->teller = 0;
        w->to_look |= w->hears;
    }
    if (!hears)
        return;
    w->hears |= mask_of(master);
    w->to_look |= mask_of(master);
}

void wait_on_link(struct wait *w, unsigned master)
{
    assert(master < w->masters);
    w->looking &= (quorum_mask)~mask_of(master);
    w->doubted &= (quorum_mask)~mask_of(master);
}

quorum_mask wait_speaks_for(const struct wait *w, unsigned master)
{
    return w->teller & mask_of(master) ? w->hears : mask_of(master);
}

void wait_on_free(struct wait *w, unsigned master, unsigned rivals, drift_time now)
{
    assert(master < w->masters);
    w->rivals = rivals;
    w->doubted |= w->looking & mask_of(master);
    learn(w, wait_speaks_for(w, master), now); /* Rule 7. */
    w->teller &= (quorum_mask)~mask_of(master);
}

/* The master has cut off what is less than a millisecond. */
static drift_time end_of(uint64_t left_ms, drift_time now)
{
    return drift_add(now, drift_add(left_ms * DRIFT_MS, DRIFT_MS));
}

void wait_on_held(struct wait *w, unsigned master, uint32_t left_ms, drift_time now)
{
    assert(master < w->masters);
    w->losses = 0;
    learn(w, mask_of(master), end_of(left_ms, now));
}

/* Rule 7. */
void wait_on_taken(struct wait *w, unsigned master, uint32_t left_ms, drift_time now)
{
    assert(master < w->masters);
    if (!(w->hears & mask_of(master)))
        return;
    w->losses = 0;
    w->teller = mask_of(master);
    forget(w, (quorum_mask)~w->hears); /* There it was free when somebody looked. */
    learn(w, w->hears, end_of(left_ms, now));
}

/* Answers come on another connection than what is told, so that a key that was there when
 * we looked may have been released since, and we have heard so already. */
void wait_on_look(struct wait *w, unsigned master, int64_t pttl_ms, drift_time now)
{
    bool doubted = (w->doubted & mask_of(master)) != 0;

    assert(master < w->masters);
    wait_on_link(w, master);
    if (pttl_ms == -2) { /* Even if it is not heard: at worst it is tried in vain. */
        w->known |= mask_of(master);
        w->seen |= mask_of(master);
        w->free_at[master] = now;
    } else if (!(w->hears & mask_of(master))) {
        forget(w, mask_of(master));
    } else if (pttl_ms < -1 || pttl_ms > WAIT_LEFT_MAX_MS) {
        forget(w, mask_of(master));
    } else if (!doubted) {
        learn(w, mask_of(master), pttl_ms == -1 ? DRIFT_NEVER : end_of((uint64_t)pttl_ms, now));
    }
}

/* Rule 2. */
void wait_on_try(struct wait *w, drift_time now)
{
    for (unsigned m = 0; m < w->masters; m++)
        if (w->free_at[m] <= now)
            forget(w, mask_of(m));
    w->asked = false;
    w->known_at = now;
    w->try_at = w->expected = DRIFT_NEVER;
}

void wait_on_lost(struct wait *w, drift_span trip, const struct wait_now *now)
{
    drift_span span, longest = fallback(now);
    drift_time look_at;

    w->trip = trip;
    w->lost_at = now->now;
    w->losses += w->losses < LOSSES_MAX;
    span = patience(w, now);
    /* Nearly always somebody has won, and tells: not before that. */
    span = between(2 * span, 4 * span, now->random);
    look_at = drift_add(now->now, span < longest ? span : longest);
    if (w->sure || look_at < w->look_at) /* Else rounds follow each other, and would put it off. */
        w->look_at = look_at;
}

/* The others wait for ours now: they are told by a look.  But who has let one reader in lets
 * in the next. */
void wait_on_won(struct wait *w, quorum_mask granted, bool others)
{
    w->losses = 0;
    w->teller = 0;
    w->try_at = w->expected = DRIFT_NEVER;
    if (w->shared) {
        for (unsigned m = 0; m < w->masters; m++)
            w->free_at[m] = granted & mask_of(m) ? 0 : w->free_at[m];
        w->known |= granted;
        w->seen |= granted;
        return;
    }
    w->to_tell = w->rivals != 1 || others ? granted : 0;
}

static void look_at_unknown(struct wait *w)
{
    w->to_look |= w->hears & (quorum_mask)~w->known;
}

/* To tell it now would be of whoever has it next; nor do we hear of it ourselves. */
void wait_on_over(struct wait *w)
{
    if (w->to_tell != 0)
        look_at_unknown(w);
    w->to_tell = 0;
}

void wait_on_turn(struct wait *w, bool any)
{
    w->losses = 0;
    if (any && w->to_tell == 0) /* Else it is ours, and all will be told of its release. */
        look_at_unknown(w);
}

/* ---- What to do ---- */

/* The instant from which a majority is free, as far as is known.  Rule 1. */
static drift_time find_free(const struct wait *w, quorum_mask usable)
{
    drift_time found = DRIFT_NEVER;

    for (unsigned m = 0; m < w->masters; m++) {
        unsigned sooner = 0;

        if (!(usable & mask_of(m)))
            continue;
        for (unsigned other = 0; other < w->masters; other++)
            sooner += (usable & mask_of(other)) != 0 && w->free_at[other] <= w->free_at[m];
        if (sooner >= majority(w) && w->free_at[m] < found)
            found = w->free_at[m];
    }
    return found;
}

/* It is free.  Try at once, or leave it to others for a while: for no longer than who has
 * heard nothing. */
static void draw(struct wait *w, const struct wait_now *now)
{
    unsigned rivals = w->rivals > WAIT_TRIERS && !w->shared ? w->rivals : WAIT_TRIERS;
    uint64_t lot = (uint64_t)now->random * rivals; /* In units of 2^-32 rivals. */
    uint64_t turns_1000 = (lot >> 16) * 1000 / WAIT_TRIERS >> 16;
    drift_span later = turns_1000 < 1000 ? 0 : turn(w) * turns_1000 / 1000;
    drift_span longest = fallback(now);
    drift_time soonest = drift_add(w->lost_at, patience(w, now));

    w->try_at = drift_add(now->now, later < longest ? later : longest);
    if (w->losses > LOSSES_FREE && soonest > w->try_at)
        w->try_at = soonest;
}

static void plan_try(struct wait *w, const struct wait_now *now, quorum_mask usable)
{
    drift_time expected = find_free(w, usable);

    if (expected > now->now) {
        if (expected == w->expected)
            return;
        w->expected = expected;
        w->try_at = DRIFT_NEVER;
        if (count(usable) >= majority(w)) { /* Somebody has it: there is no hurry to look. */
            w->losses = 0;
            w->look_at = DRIFT_NEVER;
        }
        if (expected != DRIFT_NEVER)
            w->try_at = drift_add(expected, between(WAIT_EXPIRY_MIN, WAIT_EXPIRY_MAX, now->random));
        return;
    }
    w->teller = 0; /* What it told of is over, as far as is known. */
    if (count(w->seen & usable) >= majority(w)) {
        w->try_at = now->now; /* It has been so for a while, and nobody else came. */
    } else if (w->expected > now->now || w->try_at == DRIFT_NEVER) {
        draw(w, now); /* Rule 6: else it goes on as was planned. */
    }
    w->expected = expected;
}

/* Rule 4. */
static void plan_look(struct wait *w, const struct wait_now *now, quorum_mask usable)
{
    bool knows = count(usable) >= majority(w);
    drift_time latest;

    if (w->known_at == 0)
        w->known_at = now->now;
    latest = drift_add(w->known_at, trust(now));
    if (knows)
        w->sure = true;
    if (w->look_at == DRIFT_NEVER)
        w->look_at = drift_add(now->now, fallback(now));
    if (w->look_at > latest)
        w->look_at = latest;
    if (now->now < w->look_at)
        return;
    if (w->asked && !knows)
        w->sure = false;
    w->asked = true;
    w->known_at = now->now;
    w->to_look |= now->up; /* What is not heard may be what makes it a majority. */
    w->look_at = drift_add(now->now, fallback(now));
}

/* Any of those that granted it, can be asked and owe nothing.  If there is none, those who
 * wait find out by themselves. */
static quorum_mask choose_teller(const struct wait *w, const struct wait_now *now)
{
    quorum_mask from = w->to_tell & w->hears & now->up & (quorum_mask)~w->looking;

    for (unsigned i = 0; i < w->masters; i++) {
        quorum_mask one = mask_of((unsigned)((now->random + (uint64_t)i) % w->masters));

        if (from & one)
            return one;
    }
    return 0;
}

static void plan(struct wait *w, const struct wait_now *now, struct wait_actions *actions)
{
    quorum_mask usable = w->known & now->up;

    plan_try(w, now, usable);
    plan_look(w, now, usable);
    actions->look = w->to_look & now->up & (quorum_mask)~w->looking;
    w->to_look &= (quorum_mask)~actions->look;
    w->looking |= actions->look;
    if (count(w->hears & now->up) < majority(w))
        w->sure = false;
    actions->relies = w->sure;
    actions->try_at = w->try_at;
    actions->wake_at = w->look_at < w->try_at ? w->look_at : w->try_at;
}

void wait_next(struct wait *w, const struct wait_now *now, struct wait_actions *ret_actions)
{
    struct wait_actions actions = {.try_at = DRIFT_NEVER, .wake_at = DRIFT_NEVER};

    actions.tell = choose_teller(w, now);
    if (actions.tell != 0)
        w->to_tell = 0;
    wait_on_over(w); /* There is nobody else to tell it. */
    w->looking |= actions.tell;
    if (now->waits)
        plan(w, now, &actions);
    *ret_actions = actions;
}
