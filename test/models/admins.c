/*
 * admins.c - the rules M3 and M5 of members.h: admins choose the next version by Paxos, and a joint
 * version becomes simple.
 *
 * An admin may be killed at any step, and another may go on from any state of the masters.
 */
#include "models/members.h"

void admin_end(struct admin *o, bool keeps_ready)
{
    struct admin next = {0};

    if (keeps_ready && o->ready) {
        next.version = o->version;
        next.ready = 1;
    }
    *o = next;
}

/* ---- M5 ---- */

/* M5 (1): a master shows the joint version.  With Q(L1) of them the wait begins. */
static void see_version(const struct world *w, unsigned admin, unsigned version, unsigned master)
{
    struct configuration c = configuration_of(version);
    set list = is_planted(BUG_WRONG_LIST) ? c.to : c.from;
    struct world next = *w;
    struct admin *o = &next.admins[admin];

    if (!is_joint(version) || version >= bounds.versions || o->ready)
        return;
    if (o->phase != IDLE && !(o->phase == SEEING && o->version == version))
        return;
    if (!(list & bit_of(master) & ~o->seen) || !w->masters[master].memory ||
        w->masters[master].version != version)
        return;
    o->version = version;
    o->phase = SEEING;
    o->seen |= bit_of(master);
    if (is_majority(list, o->seen) || is_planted(BUG_EARLY_WAIT)) {
        o->phase = WAITING;
        o->wait = bounds.ttl;
    }
    explorer_take(&next, 'e', admin, master, version, NULL);
}

/* ---- M3 ---- */

/* Whether the version after VERSION may have this value, for an admin that found no other. */
static bool may_propose(const struct admin *o, unsigned version, unsigned value)
{
    if (!is_joint(version))
        return next_list(version, value) != LISTS_MAX;
    if (value == 1)
        return bounds.give_up != 0;
    return (o->ready && o->version == version) || is_planted(BUG_NO_WAIT);
}

/* All promises of a ballot are there. */
static void propose(const struct world *w, unsigned admin, unsigned master)
{
    const struct admin *now = &w->admins[admin];
    unsigned shift = 2 * ((now->version - 1u) * BALLOTS_MAX + now->ballot - 1u);

    for (unsigned value = 0; value < 2; value++) {
        struct world next = *w;
        struct admin *o = &next.admins[admin];

        if (now->found_ballot != 0 ? value != now->found : !may_propose(now, now->version, value))
            continue;
        next.history.proposed |= (1 + value) << shift;
        o->phase = ACCEPTING;
        o->seen = 0;
        o->found_ballot = o->found = 0;
        o->value = value & 1;
        explorer_take(&next, value == 0 ? 'p' : 'q', admin, master, now->ballot, NULL);
    }
}

/* One script on one master: a promise, and what was accepted there. */
static void prepare(const struct world *w, unsigned admin, unsigned master, unsigned version,
                    unsigned ballot)
{
    struct world next = *w;
    struct admin *o = &next.admins[admin];
    struct master *m = &next.masters[master];

    if (!(members_of(version) & bit_of(master)) || !m->memory || m->version != version ||
        (o->seen & bit_of(master)))
        return;
    if (is_planted(BUG_EQUAL_BALLOTS) ? m->ballot > ballot : m->ballot >= ballot)
        return;
    o->phase = PREPARING;
    o->version = version;
    o->ballot = ballot;
    next.history.drawn |= 1u << ((version - 1) * BALLOTS_MAX + ballot - 1);
    if (is_planted(BUG_NO_PREPARE)) {
        propose(&next, admin, master);
        return;
    }
    o->seen |= bit_of(master);
    m->ballot = ballot;
    if (m->accepted_ballot > o->found_ballot) {
        o->found_ballot = m->accepted_ballot;
        o->found = m->accepted;
    }
    if (is_choosing_quorum(version, o->seen))
        propose(&next, admin, master);
    else
        explorer_take(&next, 'p', admin, master, ballot, NULL);
}

static bool may_draw(const struct world *w, unsigned version, unsigned ballot)
{
    if (is_planted(BUG_EQUAL_BALLOTS))
        return ballot == 1;
    return !(w->history.drawn >> ((version - 1) * BALLOTS_MAX + ballot - 1) & 1);
}

static void prepare_steps(const struct world *w, unsigned admin, unsigned master)
{
    const struct admin *o = &w->admins[admin];

    if (o->phase == PREPARING)
        prepare(w, admin, master, o->version, o->ballot);
    if (o->phase != IDLE)
        return;
    for (unsigned v = 1; v <= newest_version() && v < bounds.versions; v++)
        for (unsigned b = 1; b <= bounds.ballots; b++)
            if ((!o->ready || o->version == v) && may_draw(w, v, b))
                prepare(w, admin, master, v, b);
}

/* bounds.paxos == 0: the newest version is followed by the next in one step.  A master that is
 * watched, and of which nobody has read anything yet, may have accepted before it forgot. */
static void choose_at_once(const struct world *w, unsigned admin)
{
    unsigned v = newest_version();
    set able = 0;

    for (unsigned m = 0; m < bounds.masters; m++) {
        const struct master *x = &w->masters[m];
        unsigned version = x->memory ? x->version : x->watch ? x->ballot : 0;
        if (answers(w, m) && version == v)
            able |= bit_of(m);
    }
    if (v >= bounds.versions || !is_choosing_quorum(v, able))
        return;
    for (unsigned value = 0; value < 2; value++) {
        struct world next = *w;

        if (!may_propose(&w->admins[admin], v, value))
            continue;
        next.history.chosen |= (1 + value) << 2 * (v - 1);
        admin_end(&next.admins[admin], false);
        explorer_take(&next, 'O', admin, (v + 1), value, find_revival(&next));
        world_read(w);
    }
}

static void kill_admin(const struct world *w, unsigned admin)
{
    struct world next = *w;

    admin_end(&next.admins[admin], false);
    explorer_take(&next, 'K', admin, 0, 0, NULL);
}

static void leave_ballot(const struct world *w, unsigned admin)
{
    struct world next = *w;

    admin_end(&next.admins[admin], true);
    explorer_take(&next, 'b', admin, 0, 0, NULL);
}

void admin_steps(const struct world *w, unsigned admin)
{
    const struct admin *o = &w->admins[admin];

    for (unsigned m = 0; m < bounds.masters; m++) {
        if (!answers(w, m))
            continue;
        if (bounds.paxos)
            prepare_steps(w, admin, m);
        for (unsigned v = 1; v <= newest_version(); v++)
            see_version(w, admin, v, m);
    }
    if (!bounds.paxos)
        choose_at_once(w, admin);
    if (o->phase != IDLE || o->ready)
        kill_admin(w, admin);
    if (o->phase >= PREPARING && o->ready)
        leave_ballot(w, admin);
}

/* ---- M3, on the masters ---- */

/* The admin that counts this answer.  ADMINS_MAX: its admin was killed or went on. */
static unsigned find_proposer(const struct world *w, unsigned version, unsigned ballot,
                              unsigned master)
{
    for (unsigned i = 0; i < bounds.admins; i++) {
        const struct admin *o = &w->admins[i];
        if (o->phase == ACCEPTING && o->version == version && o->ballot == ballot &&
            !(o->seen & bit_of(master)))
            return i;
    }
    return ADMINS_MAX;
}

/* An accept that was sent may arrive at any time, and once more. */
static void accept(const struct world *w, unsigned master, unsigned version, unsigned ballot)
{
    struct world next = *w;
    struct master *m = &next.masters[master];
    unsigned shift = 2 * ((version - 1) * BALLOTS_MAX + ballot - 1);
    unsigned proposed = w->history.proposed >> shift & 3, value;
    unsigned i = find_proposer(w, version, ballot, master);
    const char *broken = NULL;

    if (proposed == 0 || !(members_of(version) & bit_of(master)) || !m->memory ||
        m->version != version)
        return;
    if (is_planted(BUG_NO_PREPARE) ? m->accepted_ballot == ballot
                                   : m->ballot > ballot || (m->accepted_ballot == ballot &&
                                                            !is_planted(BUG_EQUAL_BALLOTS)))
        return;
    if (is_planted(BUG_EQUAL_BALLOTS) && i == ADMINS_MAX)
        return;
    value = i < ADMINS_MAX ? w->admins[i].value : proposed - 1;
    m->ballot = m->accepted_ballot = ballot;
    m->accepted = value & 1;
    if (i < ADMINS_MAX) {
        struct admin *o = &next.admins[i];
        o->seen |= bit_of(master);
        if (is_choosing_quorum(version, o->seen)) {
            unsigned was = w->history.chosen >> 2 * (version - 1) & 3;
            if (was != 0 && was != value + 1)
                broken = two_chosen;
            next.history.chosen |= (1 + value) << 2 * (version - 1);
            admin_end(o, false);
        }
    }
    if (broken == NULL)
        broken = find_revival(&next);
    explorer_take(&next, 'a', version, ballot, master, broken);
    world_read(w);
}

void accept_steps(const struct world *w, unsigned master)
{
    for (unsigned v = 1; v <= newest_version() && v < bounds.versions; v++)
        for (unsigned b = 1; b <= bounds.ballots; b++)
            accept(w, master, v, b);
}
