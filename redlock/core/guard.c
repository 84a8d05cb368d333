/*
 * guard.c - marker queries in, queries and new epochs out; pure.
 *
 * The rules, each next to the code that keeps it.  Q is a majority of N masters.
 *
 *  1. A master without an epoch gets one when its nonce is as old as the longest lease
 *     lasts.  By then every vote that it gave and lost has expired (is_due).  The nonce is
 *     younger than the loss of data.  Its age counts from the answer that first showed it to
 *     this client, or from the time of rule 6 if that is earlier.
 *  2. The longest lease is the longest that any client reported to the masters, not only our
 *     own.  It is read after the time of rule 1, from N - Q + 1 other masters with an epoch.
 *     These share one with every majority that a client reported to.  Where more masters lost
 *     their data, it is read from all there are (is_known).  That is proof only if all
 *     clients have the same longest lease.  If a longer one is found, the wait goes on.
 *     The same masters report the greatest numbers drawn as fencing tokens by then.  A new
 *     epoch begins with the greatest of all.  Where more masters lost their data, it begins
 *     with the time if that is greater (guard_floor).
 *  3. No master is asked for a lock before a majority with epochs knows our own longest
 *     lease (guard_voters).  Otherwise rule 2 could read before that lease is written.
 *  4. If all masters are new, and all keep what is written to them, none needs to wait: no
 *     lease can be alive (is_new_cluster).  All N must say so, because a few masters that
 *     lost their data look the same.  Each must say so after every nonce was seen.  What a
 *     master said before may be out of date: it may have voted since, together with another
 *     one that lost its data after that.  When this client sees an epoch on any master, it
 *     tells those that said that they are new, so that they stop saying so (has_to_hear).
 *  5. Two masters with the same epoch have the same data, because an epoch is drawn for one
 *     master.  A snapshot or a copy of one has replaced the other's data, and the locks in
 *     that data are gone.  Nothing shows which of the two lost its data.  So neither votes,
 *     nor counts as a source for rule 2, until one is emptied (guard_twin).
 *  6. Every other member is a witness of a warming master, also if it warms itself.  A witness
 *     reports for how long, by its own clock, it has known the nonce.  The nonce is old enough
 *     when members that are a majority of all say so (due_at).  So a minority may have clocks
 *     that were set forward.  After a noticed step the witness counts only when it has made
 *     its mark anew (guard_on_step).  The wait has twice the drift: the holder's clock may be
 *     slow, and the witness's fast (guard_quarantine).
 *  7. A guest is a master that is to become a member.  Before that it gets an epoch as a
 *     member does: rules 1, 2, 6 and 8 ask the members, and no other guest (can_get_epoch).
 *  8. With its epoch a master gets back what it may have promised for the next configuration of
 *     the set.  It is read from the answers of rule 2.  recall.c says which of them count, and when
 *     there are too few (is_known).  So masters of a set that was changed are never new (rule 4).
 */
#include "redlock/core/guard.h"

#include <assert.h>
#include <string.h>

/* How often a warming master is queried, to see whether another client has given it an epoch.
 * Two masters with one epoch (rule 5) are queried as often, to see whether one was emptied.  A
 * master gets at most one epoch in this time: a faulty one may go on warming with an epoch.
 * Chosen: the query is one small command. */
#define LOOK_EVERY (500 * DRIFT_MS)

static quorum_mask everyone(const struct guard *g)
{
    return members_all(g->config.members);
}

/* Rule 7.  Without a list, nobody can be asked. */
static quorum_mask guests_of(const struct guard *g)
{
    return everyone(g) != 0 ? g->guests & (quorum_mask)~everyone(g) : 0;
}

static bool can_get_epoch(const struct guard *g, unsigned master)
{
    return ((guests_of(g) | (g->passive ? 0 : everyone(g))) & mask_of(master)) != 0;
}

/* Rule 2: N - Q + 1 of each list, which share one with every majority. */
static bool are_enough(const struct guard *g, quorum_mask masters)
{
    return members_meet_all(g->config.members, masters);
}

static bool is_seen(const struct guard_master *m)
{
    return m->look.number != 0;
}

static bool is_warming(const struct guard_master *m)
{
    return is_seen(m) && !m->look.ready;
}

static bool is_ready(const struct guard_master *m)
{
    return is_seen(m) && m->look.ready;
}

/* Rule 5.  A master that is down counts with the epoch that we last saw there. */
unsigned guard_twin(const struct guard *g, unsigned master)
{
    const struct guard_master *m = &g->masters[master];

    for (unsigned i = 0; everyone(g) >> i != 0; i++)
        if (i != master && (everyone(g) & mask_of(i)) != 0 && is_ready(m) &&
            g->masters[i].epoch == m->look.number)
            return i;
    return QUORUM_MASTERS_MAX;
}

/* The master is a member, and has an epoch that no other member has. */
static bool knows(const struct guard *g, unsigned master)
{
    return (everyone(g) & mask_of(master)) != 0 && is_ready(&g->masters[master]) &&
           guard_twin(g, master) == QUORUM_MASTERS_MAX;
}

static quorum_mask find_knowing(const struct guard *g)
{
    quorum_mask knowing = 0;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        knowing |= knows(g, i) ? mask_of(i) : 0;
    return knowing;
}

/* The holder's clock and ours may differ by what the drift allows.  Twice that is added, because a
 * witness's clock may differ as well. */
drift_span guard_quarantine(const struct guard *g)
{
    drift_span lease = g->longest_ms * DRIFT_MS;

    return drift_add(lease, 2 * drift_allowance(lease, &g->config.drift));
}

/* Rule 6: no master is a witness of its own. */
static quorum_mask witnesses_of(const struct guard *g, unsigned master)
{
    return mask_without(everyone(g), master);
}

static drift_time due_at(const struct guard *g, unsigned master)
{
    const struct guard_master *m = &g->masters[master];
    drift_span span = guard_quarantine(g);
    drift_time own = drift_add(m->since, span);
    drift_time at = witness_due_at(&m->witnesses, g->config.members, witnesses_of(g, master), span);

    return at < own ? at : own;
}

bool guard_is_witnessed(const struct guard *g, unsigned master)
{
    const struct guard_master *m = &g->masters[master];

    return is_warming(m) && witness_due_at(&m->witnesses, g->config.members,
                                           witnesses_of(g, master), 0) != DRIFT_NEVER;
}

drift_span guard_left(const struct guard *g, unsigned master, drift_time now)
{
    const struct guard_master *m = &g->masters[master];

    return is_warming(m) ? drift_until(now, due_at(g, master)) : 0;
}

/* Rule 1. */
static bool is_due(const struct guard *g, unsigned master, drift_time now)
{
    return is_warming(&g->masters[master]) && now >= due_at(g, master);
}

/* Rule 4.  *ret_missing: masters that must still be queried before this can become true. */
static bool is_new_cluster(const struct guard *g, quorum_mask *ret_missing)
{
    drift_time since = 0;

    *ret_missing = 0;
    for (unsigned i = 0; everyone(g) >> i != 0; i++) {
        const struct guard_master *m = &g->masters[i];

        if (!(everyone(g) & mask_of(i)))
            continue;
        if (!m->linked || !is_warming(m) || !m->look.fresh)
            return false;
        since = m->since > since ? m->since : since;
    }
    if (everyone(g) == 0 || g->seen_epoch || g->passive || g->version > 1)
        return false;
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        *ret_missing |= g->masters[i].looked < since ? mask_of(i) : 0;
    *ret_missing &= everyone(g);
    return *ret_missing == 0;
}

/* Rules 2 and 8: enough others were queried since the wait was over, and since we saw the nonce.
 * By the ages of witnesses alone, the wait may seem to have been over before the loss of data: an
 * age is wrong by the drift, and may be long.  *ret_missing: masters that must still be queried
 * before this can become true. */
static bool is_known(const struct guard *g, unsigned master, quorum_mask *ret_missing,
                     struct recall *ret_recall)
{
    struct recall_told told[QUORUM_MASTERS_MAX];
    drift_time over = due_at(g, master), seen = g->masters[master].since;
    drift_time due = over > seen ? over : seen;
    quorum_mask others = mask_without(everyone(g), master), looked = 0, ready = 0;

    *ret_missing = 0;
    for (unsigned i = 0; others >> i != 0; i++) {
        const struct guard_master *m = &g->masters[i];

        told[i] = m->look.told;
        if (!(others & mask_of(i)))
            continue;
        if (is_seen(m) && m->linked && m->looked >= due) {
            looked |= mask_of(i);
            ready |= knows(g, i) ? mask_of(i) : 0;
        } else if (m->linked) {
            *ret_missing |= mask_of(i);
        }
    }
    return (are_enough(g, ready) || looked == others) &&
           recall_collect(told, ready, looked == others, g->version, g->config.members, ret_recall);
}

/* A master that was seen warming may come back with older or newer data, or was given an epoch
 * meanwhile: it is absent until it answers on its new link.  Two with one epoch may remember the
 * set: one of them does when the other was emptied. */
bool guard_has_forgotten(const struct guard *g)
{
    quorum_mask remember = 0, absent = 0;

    for (unsigned i = 0; everyone(g) >> i != 0; i++) {
        const struct guard_master *m = &g->masters[i];

        if (!m->linked || !is_seen(m) || m->looked == 0)
            absent |= mask_of(i);
        else if (is_ready(m))
            remember |= mask_of(i);
    }
    return recall_is_forgotten(g->version, g->config.members, remember, absent);
}

/* ---- Events ---- */

void guard_init(struct guard *g, const struct guard_config *config)
{
    memset(g, 0, sizeof *g);
    g->config = *config;
    g->longest_ms = config->max_ttl_ms;
}

/* A new connection is queried before the master counts.  Since when a nonce was seen stays true. */
void guard_on_link(struct guard *g, unsigned master, bool up)
{
    struct guard_master *m = &g->masters[master];

    assert(master < QUORUM_MASTERS_MAX);
    m->linked = up;
    m->asked = false;
    m->looked = 0;
    m->look_at = up ? 0 : DRIFT_NEVER;
    g->told &= (quorum_mask)~mask_of(master);
    if (is_ready(m))
        m->look.number = 0;
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        witness_on_link(&g->masters[i].witnesses, master);
}

/* A reported lease is never forgotten: the master that reported it may lose its data, and then
 * all others. */
void guard_on_max(struct guard *g, uint32_t max_ttl_ms)
{
    if (max_ttl_ms > g->longest_ms)
        g->longest_ms = max_ttl_ms;
}

void guard_on_look(struct guard *g, unsigned master, const struct guard_look *look, drift_time now)
{
    struct guard_master *m = &g->masters[master];
    bool same = is_warming(m) && !look->ready && m->look.number == look->number;
    unsigned twin;

    assert(master < QUORUM_MASTERS_MAX && look->number != 0);
    if (!m->linked || !m->asked)
        return;
    m->asked = false;
    m->looked = m->asked_at;
    m->look = *look;
    m->epoch = look->ready ? look->number : 0;
    guard_on_max(g, look->max_ttl_ms);
    if (!same) {
        m->since = now;
        witness_on_nonce(&m->witnesses);
    }
    if (!look->ready) {
        g->told &= (quorum_mask)~mask_of(master);
        m->look_at = drift_add(now, LOOK_EVERY);
        return;
    }
    /* While no set is known, another client may found it. */
    m->look_at = everyone(g) == 0 ? drift_add(now, LOOK_EVERY) : DRIFT_NEVER;
    twin = guard_twin(g, master);
    if (twin != QUORUM_MASTERS_MAX)
        m->look_at = g->masters[twin].look_at = drift_add(now, LOOK_EVERY);
    g->seen_epoch = true;
    g->told |= mask_of(master);
    g->open = g->open || members_decide(g->config.members, g->told);
}

void guard_look_again(struct guard *g, unsigned master)
{
    if (g->masters[master].linked)
        g->masters[master].look_at = 0;
}

/* An answer about an earlier nonce does not count.  An answer from before the latest step does not
 * count either. */
void guard_on_age(struct guard *g, unsigned witness, const struct guard_ask *ask, int64_t age_ms,
                  drift_time now)
{
    struct guard_master *m = &g->masters[ask->master];

    assert(witness < QUORUM_MASTERS_MAX && ask->master < QUORUM_MASTERS_MAX);
    if (is_warming(m) && m->look.number == ask->nonce && g->masters[witness].linked &&
        g->masters[witness].steps == ask->steps)
        witness_on_age(&m->witnesses, witness, age_ms, now);
}

void guard_on_step(struct guard *g, unsigned master)
{
    g->masters[master].steps++;
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        witness_on_step(&g->masters[i].witnesses, master);
}

void guard_on_change(struct guard *g, quorum_mask left)
{
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        witness_on_change(&g->masters[i].witnesses, left);
        if (left & mask_of(i))
            g->masters[i] = (struct guard_master){.look_at = DRIFT_NEVER};
    }
    g->told &= (quorum_mask)~left;
    g->open = members_decide(g->config.members, g->told);
}

/* Query the master, unless a query is out already. */
static void look_at(struct guard *g, unsigned master, drift_time now, struct guard_actions *act)
{
    struct guard_master *m = &g->masters[master];

    if (!m->linked || m->asked)
        return;
    m->asked = true;
    m->asked_known = g->seen_epoch;
    m->asked_at = now;
    act->look |= mask_of(master);
}

static void look_at_all(struct guard *g, quorum_mask masters, drift_time now,
                        struct guard_actions *act)
{
    for (unsigned i = 0; masters >> i != 0; i++)
        if (masters & mask_of(i))
            look_at(g, i, now, act);
}

/* ---- Floors ---- */

/* The median of the masters' clocks, as they were when queried.  Of an even number, the later of
 * the middle two. */
static uint64_t median_us(const struct guard *g)
{
    uint64_t times[QUORUM_MASTERS_MAX];
    unsigned len = 0;

    for (unsigned i = 0; everyone(g) >> i != 0; i++) {
        const struct guard_look *look = &g->masters[i].look;
        unsigned at = len;

        if (!(everyone(g) & mask_of(i)) || !g->masters[i].linked || !is_seen(&g->masters[i]))
            continue;
        for (; at > 0 && times[at - 1] > look->time_us; at--)
            times[at] = times[at - 1];
        times[at] = look->time_us;
        len++;
    }
    return len > 0 ? times[len / 2] : 0;
}

/*
 * Rule 2.  A floor begins with the clocks only if too few masters know their numbers.
 * Then all masters have answered (is_known): the median of some clocks may go back
 * although no clock does.  A floor too far ahead of the median is refused.
 */
uint64_t guard_floor(const struct guard *g)
{
    uint64_t median = median_us(g), floor = 0;
    quorum_mask ready = 0;

    for (unsigned i = 0; everyone(g) >> i != 0; i++) {
        const struct guard_master *m = &g->masters[i];

        ready |= m->linked && knows(g, i) ? mask_of(i) : 0;
        if ((everyone(g) & mask_of(i)) != 0 && is_seen(m) && m->look.high > floor)
            floor = m->look.high;
    }
    if (!are_enough(g, ready) && median > floor)
        floor = median;
    return floor <= median + GUARD_AHEAD_US && floor < QUORUM_FENCE_MAX ? floor : 0;
}

/* Above the mark, the number may be only as far ahead of the clock as the script allows.  The
 * time is that of the query, which came before the count. */
uint64_t guard_number(const struct guard *g, unsigned master, uint64_t count, bool *ret_unkept)
{
    const struct guard_look *look = &g->masters[master].look;
    uint64_t number = look->floor + count;

    *ret_unkept = false;
    if (!is_ready(&g->masters[master]) || count > QUORUM_FENCE_MAX - look->floor)
        return 0;
    if (number <= look->high)
        return number;
    *ret_unkept = true;
    return number <= look->time_us + GUARD_AHEAD_US ? number : 0;
}

/* The script puts the mark at the first of its steps that is no less than the number. */
void guard_on_raised(struct guard *g, unsigned master, uint64_t number)
{
    struct guard_look *look = &g->masters[master].look;
    uint64_t steps, high;

    if (!is_ready(&g->masters[master]) || number <= look->floor)
        return;
    steps = (number - look->floor + GUARD_HIGH_STEP - 1) / GUARD_HIGH_STEP;
    high = look->floor + steps * GUARD_HIGH_STEP;
    if (high > look->high)
        look->high = high;
}

/* Query the master, and give it an epoch. */
static void install(struct guard *g, unsigned master, drift_time now, struct guard_actions *act)
{
    struct guard_master *m = &g->masters[master];

    if (now < m->install_at)
        return;
    look_at(g, master, now, act);
    if (!(act->look & mask_of(master)))
        return;
    act->install |= mask_of(master);
    m->install_at = drift_add(now, LOOK_EVERY);
}

/* Rule 4.  It is told once; a faulty master may go on saying that it is new. */
static bool has_to_hear(const struct guard *g, const struct guard_master *m)
{
    return g->seen_epoch && !g->passive && is_warming(m) && m->look.fresh && !m->asked_known;
}

static void end_watch(struct guard *g, unsigned master, drift_time now, struct guard_actions *act)
{
    quorum_mask missing;

    if (!is_known(g, master, &missing, &act->recalls[master])) {
        look_at_all(g, missing, now, act);
        return;
    }
    if (act->floor == 0) { /* From time to time, check whether one of them has been put right. */
        if (now >= g->masters[master].look_at)
            look_at_all(g, everyone(g), now, act);
        return;
    }
    install(g, master, now, act);
}

/* Rule 6.  Each witness is asked once about a nonce on each of its links.  A passive client makes
 * no mark, so it cannot have one made anew. */
static void ask_witnesses(struct guard *g, unsigned master, struct guard_actions *act)
{
    struct witnesses *w = &g->masters[master].witnesses;
    quorum_mask ask = witnesses_of(g, master) & (quorum_mask)~w->asked;

    for (unsigned k = 0; k < QUORUM_MASTERS_MAX; k++)
        if (!g->masters[k].linked || (!can_get_epoch(g, master) && (w->anew & mask_of(k)) != 0))
            ask = mask_without(ask, k);
    w->asked |= ask;
    w->out |= ask;
    act->ask[master] = ask;
    act->anew[master] = ask & w->anew;
}

static drift_time wake_at(const struct guard *g, drift_time now)
{
    drift_time at = DRIFT_NEVER;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        const struct guard_master *m = &g->masters[i];
        bool is_watched = is_warming(m) && ((everyone(g) | guests_of(g)) & mask_of(i)) != 0;
        drift_time due = is_watched ? due_at(g, i) : DRIFT_NEVER;

        if (!m->linked || m->asked)
            continue; /* The next event is its answer, or the end of its link. */
        if (due > now && due < at)
            at = due;
        if (m->look_at < at)
            at = m->look_at;
    }
    return at;
}

void guard_next(struct guard *g, drift_time now, struct guard_actions *ret_actions)
{
    quorum_mask missing;
    bool is_new = is_new_cluster(g, &missing);

    *ret_actions = (struct guard_actions){.floor = guard_floor(g)};
    look_at_all(g, missing, now, ret_actions);
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        struct guard_master *m = &g->masters[i];

        if (!m->linked)
            continue;
        if (g->config.witnesses && ((everyone(g) | guests_of(g)) & mask_of(i)) != 0 &&
            is_warming(m))
            ask_witnesses(g, i, ret_actions);
        if ((everyone(g) & mask_of(i)) != 0 && is_new && ret_actions->floor != 0) {
            install(g, i, now, ret_actions);
        } else if (can_get_epoch(g, i) && is_due(g, i, now)) {
            end_watch(g, i, now, ret_actions);
        }
        if (now >= m->look_at || has_to_hear(g, m))
            look_at(g, i, now, ret_actions);
    }
    ret_actions->wake_at = wake_at(g, now);
}

/* ---- Questions ---- */

/* Rules 3 and 5. */
quorum_mask guard_voters(const struct guard *g)
{
    return g->open ? g->told & find_knowing(g) : 0;
}

/* Whether rule 4 may still come to hold.  While no members are known, all masters that may yet be
 * members count. */
static bool may_be_new(const struct guard *g, quorum_mask coming)
{
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        const struct guard_master *m = &g->masters[i];
        bool may_tell = m->linked || (coming & mask_of(i)) != 0;
        bool unknown = !is_seen(m) && may_tell;
        bool counts = everyone(g) != 0 ? (everyone(g) & mask_of(i)) != 0 : may_tell;

        if (counts && !unknown && !(m->linked && is_warming(m) && m->look.fresh))
            return false;
    }
    return !g->seen_epoch && !g->passive && g->version <= 1;
}

/* Rules 2 and 6: the master may get an epoch as soon as answers come that are out or due. */
static bool may_be_installed(const struct guard *g, unsigned master, quorum_mask coming,
                             drift_time now)
{
    const struct witnesses *w = &g->masters[master].witnesses;
    quorum_mask others = witnesses_of(g, master), there = coming, ready;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        there |= g->masters[i].linked ? mask_of(i) : 0;
    there &= others;
    ready = there;
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        if (is_warming(&g->masters[i]))
            ready = mask_without(ready, i);
    if (g->passive || !is_warming(&g->masters[master]) ||
        (!are_enough(g, ready) && (there != others || g->version > 1)))
        return false;
    return is_due(g, master, now) ||
           (g->config.witnesses && witness_may_be_due(w, g->config.members, others, w->out | coming,
                                                      guard_quarantine(g), now));
}

quorum_mask guard_hopefuls(const struct guard *g, quorum_mask coming, drift_time now)
{
    bool is_new = may_be_new(g, coming);
    quorum_mask hopefuls = 0;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        const struct guard_master *m = &g->masters[i];

        if (m->linked && (m->asked || !is_seen(m) || (is_warming(m) && is_new) || knows(g, i) ||
                          may_be_installed(g, i, coming, now)))
            hopefuls |= mask_of(i);
    }
    return hopefuls & (quorum_mask)~guard_voters(g);
}
