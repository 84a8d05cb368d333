/*
 * wait.c - when to query, and when to try.
 *
 * Rules:
 *
 *  1. A round begins when a majority of masters are free.  Free means announced, seen, or
 *     computed from the time that the key had left (find_free).
 *  2. A round uses up the news that made it begin.  Only later news makes the next round
 *     begin (wait_on_try).
 *  3. What is known of a master is valid only while we hear its announcements.  When we begin
 *     to hear it again, a release may have gone unheard (wait_on_hears).
 *  4. After some time a client queries, whatever was announced (plan_look).  This bounds the
 *     cost of an announcement that is lost or forged.  If queries do not show the
 *     state of a majority, each lease tries by itself, and queries go on (wait_on_lost).
 *  5. A lease that loses rounds in a row tries more and more slowly (patience).  The next
 *     lease in the queue starts without that delay (wait_on_turn).  So does a lease after news
 *     of a winner.  A key is such news, except that of a permit (on_key): if masters disagree
 *     on which permit is free, all waiters lose, and see the keys of each other's lost rounds.
 *     Keys that queries find are such news if a majority cannot be without them (is_held): a
 *     waiter may lose because votes do not count, and one dead key is no winner.  A lease of
 *     several names keeps its losses when it waits for another of them (wait_on_moved).  As long as
 *     the votes of most masters do not count here, no key is such news: this client cannot win, and
 *     others like it would see the keys of its lost rounds.
 *  6. A random delay is drawn once for each announced release.  It then stands until it has
 *     passed, or until the lock is taken (plan_try).
 *  7. The announcer's word speaks for all masters that are heard.  For a semaphore this is a
 *     guess, because each slot has a majority of its own, and one master shows all slots.  A
 *     master becomes the announcer only through a client that had a majority.  A key found on
 *     one master may belong to a lost round, and all waiters would try when that round is
 *     released (wait_on_taken).
 *  8. Some masters may be free, and others of which nothing is known may complete a majority.
 *     Their announcements come within a turn, unless nobody asked for them.  So these masters are
 *     queried soon, but no sooner than after a lost round: else waiters that cannot win would hurry
 *     each other.  That is done once for each round, or each query of all masters (plan_rest).
 */
#include "redlock/core/wait.h"

#include <assert.h>
#include <string.h>

/* A turn: a time in round trips, within a fixed minimum and maximum.  On average
 * WAIT_TRIERS waiters try at once, and as many in each turn after that.  A turn
 * suffices for one to win and for the others to hear of it. */
#define TURN_TRIPS 6
#define TURN_MIN DRIFT_MS
#define TURN_MAX (50 * DRIFT_MS)

/* More rivals make no delay longer: it has reached every limit.  Chosen: so that a forged number of
 * rivals overflows no product in draw(). */
#define RIVALS_MAX 1000000

/* This many losses in a row cause no delay: they happen by chance. */
#define LOSSES_FREE 2
#define LOSSES_MAX 32 /* With more losses, the doubling has long reached every limit. */

/* A key that lasts longer than ten years is not ours, so its end may stay unknown. */
#define WAIT_LEFT_MAX_MS (INT64_C(315360000) * 1000)

static bool decide(const struct wait *w, quorum_mask masters)
{
    return members_decide(w->members, masters);
}

static drift_span between(drift_span low, drift_span high, uint32_t random)
{
    /* random has 32 bits: in microseconds it covers 71 minutes. */
    return low + (high > low ? (drift_span)random * 1000 % (high - low + 1) : 0);
}

static drift_span turn(const struct wait *w)
{
    drift_span span = w->trip * TURN_TRIPS;

    return span < TURN_MIN ? TURN_MIN : span > TURN_MAX ? TURN_MAX : span;
}

/* The time until the next query, if nothing is announced. */
static drift_span fallback(const struct wait_now *now)
{
    drift_span span =
        between(WAIT_PATIENCE * now->pause_min, WAIT_PATIENCE * now->pause_max, now->random);

    return span > DRIFT_MS ? span : DRIFT_MS;
}

/* The time until a query is required, whatever is announced. */
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

void wait_init(struct wait *w, const struct members *members, bool shared)
{
    memset(w, 0, sizeof *w);
    w->members = members;
    w->shared = shared;
    w->expected = w->try_at = w->look_at = w->rest_at = DRIFT_NEVER;
}

/* ---- What happened ---- */

static void learn(struct wait *w, quorum_mask masters, drift_time free_at)
{
    masters &= w->hears;
    w->known |= masters;
    w->seen &= (quorum_mask)~masters;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        w->free_at[m] = masters & mask_of(m) ? free_at : w->free_at[m];
}

static void forget(struct wait *w, quorum_mask masters)
{
    w->known &= (quorum_mask)~masters;
    w->seen &= (quorum_mask)~masters;
}

void wait_on_hears(struct wait *w, unsigned master, bool hears)
{
    assert(master < QUORUM_MASTERS_MAX);
    forget(w, mask_of(master)); /* Rule 3. */
    w->hears &= (quorum_mask)~mask_of(master);
    w->to_look &= (quorum_mask)~mask_of(master);
    if (w->teller & mask_of(master)) { /* The other masters were not asked to announce. */
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
    assert(master < QUORUM_MASTERS_MAX);
    w->looking &= (quorum_mask)~mask_of(master);
    w->doubted &= (quorum_mask)~mask_of(master);
}

void wait_on_left(struct wait *w, quorum_mask left)
{
    for (unsigned m = 0; left >> m != 0; m++) {
        if (!(left & mask_of(m)))
            continue;
        wait_on_hears(w, m, false);
        wait_on_link(w, m);
    }
    w->to_tell &= (quorum_mask)~left;
}

quorum_mask wait_speaks_for(const struct wait *w, unsigned master)
{
    return w->teller & mask_of(master) ? w->hears : mask_of(master);
}

void wait_on_free(struct wait *w, unsigned master, unsigned rivals, drift_time now)
{
    assert(master < QUORUM_MASTERS_MAX);
    w->rivals = rivals < RIVALS_MAX ? rivals : RIVALS_MAX;
    w->doubted |= w->looking & mask_of(master);
    learn(w, wait_speaks_for(w, master), now); /* Rule 7. */
    w->teller &= (quorum_mask)~mask_of(master);
}

/* PTTL cuts off fractions of a millisecond, so add one. */
static drift_time end_of(uint64_t left_ms, drift_time now)
{
    return drift_add(now, drift_add(left_ms * DRIFT_MS, DRIFT_MS));
}

/* Rule 5. */
static void on_key(struct wait *w)
{
    if (!w->permits && decide(w, members_all(w->members) & (quorum_mask)~w->barred))
        w->losses = 0;
}

void wait_on_held(struct wait *w, unsigned master, uint32_t left_ms, drift_time now)
{
    assert(master < QUORUM_MASTERS_MAX);
    on_key(w);
    learn(w, mask_of(master), end_of(left_ms, now));
}

/* Rule 7. */
void wait_on_taken(struct wait *w, unsigned master, uint32_t left_ms, drift_time now)
{
    assert(master < QUORUM_MASTERS_MAX);
    if (!(w->hears & mask_of(master)))
        return;
    w->losses = 0;
    w->teller = mask_of(master);
    forget(w, (quorum_mask)~w->hears); /* A master that we do not hear was free when it was
                                        * queried.  That is outdated. */
    learn(w, w->hears, end_of(left_ms, now));
}

/* Answers and announcements come on different connections.  A query may have found a key whose
 * release we have already heard. */
void wait_on_look(struct wait *w, unsigned master, int64_t pttl_ms, drift_time now)
{
    bool doubted = (w->doubted & mask_of(master)) != 0;

    assert(master < QUORUM_MASTERS_MAX);
    wait_on_link(w, master);
    if (pttl_ms == -2) { /* This counts even if we do not hear the master: at worst a round is
                          * tried in vain. */
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
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (w->free_at[m] <= now)
            forget(w, mask_of(m));
    w->asked = w->chased = false;
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
    /* Nearly always another client has won, and its announcement is on the way.  Do not query
     * before it. */
    span = between(2 * span, 4 * span, now->random);
    look_at = drift_add(now->now, span < longest ? span : longest);
    if (w->sure || look_at < w->look_at) /* Without sure, rounds follow each other, and each
                                          * would put off the query. */
        w->look_at = look_at;
}

/* The other waiters now wait for our release.  Our query announces this.  Readers differ: a
 * master that let one reader in lets the next one in. */
void wait_on_won(struct wait *w, quorum_mask granted, bool others)
{
    w->losses = 0;
    w->teller = 0;
    w->try_at = w->expected = DRIFT_NEVER;
    if (w->shared) {
        for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
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

/* An announcement made now would be about the next holder.  We would not hear of that holder
 * ourselves either. */
void wait_on_over(struct wait *w)
{
    if (w->to_tell != 0)
        look_at_unknown(w);
    w->to_tell = 0;
}

void wait_on_moved(struct wait *w, unsigned losses)
{
    w->losses = losses;
}

void wait_on_turn(struct wait *w, bool any)
{
    w->losses = 0;
    if (any && w->to_tell == 0) /* Otherwise the lock is ours, and all waiters will hear of its
                                 * release. */
        look_at_unknown(w);
}

/* ---- What to do ---- */

/* Rule 1: the instant from which a majority is free, as far as is known. */
static drift_time find_free(const struct wait *w, quorum_mask usable)
{
    drift_time found = DRIFT_NEVER;

    for (unsigned m = 0; usable >> m != 0; m++) {
        quorum_mask sooner = 0;

        if (!(usable & mask_of(m)))
            continue;
        for (unsigned other = 0; usable >> other != 0; other++)
            sooner |= w->free_at[other] <= w->free_at[m] ? usable & mask_of(other) : 0;
        if (decide(w, sooner) && w->free_at[m] < found)
            found = w->free_at[m];
    }
    return found;
}

/* The lock is free.  Try at once, or leave it to others for a while.  The delay is no longer
 * than that of a waiter that heard nothing. */
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

/* The masters that are not known to have the key are too few to grant the lock. */
static bool is_held(const struct wait *w, const struct wait_now *now, quorum_mask usable)
{
    quorum_mask others = members_all(w->members);

    for (unsigned m = 0; usable >> m != 0; m++)
        if ((usable & mask_of(m)) != 0 && w->free_at[m] > now->now)
            others = mask_without(others, m);
    return !decide(w, others);
}

static void plan_try(struct wait *w, const struct wait_now *now, quorum_mask usable)
{
    drift_time expected = find_free(w, usable);

    if (expected > now->now) {
        if (expected == w->expected)
            return;
        w->expected = expected;
        w->try_at = DRIFT_NEVER;
        if (is_held(w, now, usable))
            on_key(w);
        if (decide(w, usable)) /* Another client holds the lock: there is no hurry to query. */
            w->look_at = DRIFT_NEVER;
        if (expected != DRIFT_NEVER)
            w->try_at = drift_add(expected, between(WAIT_EXPIRY_MIN, WAIT_EXPIRY_MAX, now->random));
        return;
    }
    w->teller = 0; /* The lock that the announcer spoke of is over, as far as is known. */
    if (decide(w, w->seen & usable)) {
        w->try_at = now->now; /* The lock has been free for a while, and no other client took it.
                               * A query that follows a lost round has waited for patience(). */
    } else if (w->expected > now->now || w->try_at == DRIFT_NEVER) {
        draw(w, now); /* Rule 6.  Otherwise the planned time stands. */
    }
    w->expected = expected;
}

/* Rule 4. */
static void plan_look(struct wait *w, const struct wait_now *now, quorum_mask usable)
{
    bool knows = decide(w, usable);
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
    w->chased = false;
    w->known_at = now->now;
    w->to_look |= now->up; /* The masters that we do not hear may complete a majority. */
    w->look_at = drift_add(now->now, fallback(now));
}

/* Rule 8. */
static bool may_be_free(const struct wait *w, const struct wait_now *now, quorum_mask usable,
                        quorum_mask rest)
{
    quorum_mask free = 0;

    for (unsigned m = 0; usable >> m != 0; m++)
        if ((usable & mask_of(m)) != 0 && w->free_at[m] <= now->now)
            free |= mask_of(m);
    return free != 0 && !decide(w, free) && decide(w, free | rest);
}

/* Rule 8. */
static void plan_rest(struct wait *w, const struct wait_now *now, quorum_mask usable)
{
    quorum_mask rest = w->hears & now->up & (quorum_mask) ~(w->known | w->looking);
    drift_span span = patience(w, now), longest = fallback(now);

    if (w->chased || !may_be_free(w, now, usable, rest)) {
        w->rest_at = DRIFT_NEVER;
        return;
    }
    span = between(2 * span, 4 * span, now->random);
    if (w->rest_at == DRIFT_NEVER)
        w->rest_at = drift_add(now->now, span < longest ? span : longest);
    if (now->now < w->rest_at)
        return;
    w->rest_at = DRIFT_NEVER;
    w->chased = true;
    w->to_look |= rest;
}

/* Choose any master that granted the lock, can be sent a command, and owes no answer.  If there
 * is none, the waiters find out by their own queries. */
static quorum_mask choose_teller(const struct wait *w, const struct wait_now *now)
{
    quorum_mask from = w->to_tell & w->hears & now->up & (quorum_mask)~w->looking;

    if (from == 0)
        return 0;
    for (unsigned skip = now->random % mask_count(from); skip > 0; skip--)
        from &= (quorum_mask)(from - 1);
    return from & (quorum_mask)-from;
}

static void plan(struct wait *w, const struct wait_now *now, struct wait_actions *actions)
{
    quorum_mask usable = w->known & now->up;

    plan_try(w, now, usable);
    plan_look(w, now, usable);
    plan_rest(w, now, usable);
    actions->look = w->to_look & now->up & (quorum_mask)~w->looking;
    w->to_look &= (quorum_mask)~actions->look;
    w->looking |= actions->look;
    if (!decide(w, w->hears & now->up))
        w->sure = false;
    actions->relies = w->sure;
    actions->try_at = w->try_at;
    actions->wake_at = w->look_at < w->try_at ? w->look_at : w->try_at;
    if (w->rest_at < actions->wake_at)
        actions->wake_at = w->rest_at;
}

void wait_next(struct wait *w, const struct wait_now *now, struct wait_actions *ret_actions)
{
    struct wait_actions actions = {.try_at = DRIFT_NEVER, .wake_at = DRIFT_NEVER};

    w->barred = now->barred;
    actions.tell = choose_teller(w, now);
    if (actions.tell != 0)
        w->to_tell = 0;
    wait_on_over(w); /* If no master can announce it now, query the unknown ones instead. */
    w->looking |= actions.tell;
    if (now->waits)
        plan(w, now, &actions);
    *ret_actions = actions;
}
