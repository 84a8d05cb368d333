/*
 * masters.c - versions that are written, data that is lost and comes back, and time: M3, M6, M7.
 */
#include "models/members.h"

#include <string.h>

/* M3, M9: anybody may write what is chosen, at any time, but not over a greater version. */
static void write_version(const struct world *w, unsigned master, unsigned version)
{
    struct world next = *w;
    struct master *m = &next.masters[master];
    bool is_old = is_planted(BUG_WRITE_BACK) ? m->version == version
                                             : number_of(w, m->version) >= number_of(w, version);

    if (is_old)
        return;
    m->version = version;
    m->ballot = m->accepted_ballot = m->accepted = 0;
    explorer_take(&next, 'W', master, version, 0, find_revival(&next));
    world_read(w);
}

static void write_steps(const struct world *w, unsigned master)
{
    for (unsigned v = 2; v <= newest_version(); v++)
        if ((members_of(v - 1) | members_of(v)) & bit_of(master))
            write_version(w, master, v);
    if (w->history.rescue == FOUNDED) /* Also to those that come back. */
        write_version(w, master, RESCUED);
}

static unsigned count_warming(const struct world *w)
{
    unsigned warming = 0;

    for (unsigned m = 0; m < bounds.masters; m++)
        warming += !w->masters[m].memory;
    return warming;
}

/* A master loses its data: proofs fail that are read later (M1), and so does M5 (3). */
static void forget(const struct world *w, unsigned master)
{
    struct world next = *w;
    struct master *m = &next.masters[master];

    if (w->history.forgotten >= bounds.forgets || count_warming(w) >= bounds.forgets_at_once)
        return;
    memset(m, 0, sizeof *m);
    m->watch = is_planted(BUG_NO_WATCH) ? 0 : bounds.ttl; /* M6, M7. */
    if (!bounds.paxos) /* What it may have accepted as: see choose_at_once(). */
        m->ballot = w->masters[master].version;
    next.history.forgotten++;
    for (unsigned c = 0; c < bounds.clients; c++)
        next.clients[c].stored &= ~bit_of(master);
    for (unsigned i = 0; i < bounds.admins; i++) {
        struct admin *o = &next.admins[i];
        if ((o->phase == SEEING || o->phase == WAITING) && (o->seen & bit_of(master)))
            o->spoilt = 1;
    }
    explorer_take(&next, 'F', master, 0, 0, NULL);
}

/* M7: another master tells its version and ballots, when the watch is over. */
static void read_other(const struct world *w, unsigned master, unsigned other)
{
    const struct master *teller = &w->masters[other];
    struct world next = *w;
    struct master *m = &next.masters[master];

    if (other == master || (m->told & bit_of(other)) ||
        (!teller->memory && !is_planted(BUG_WARMING_TELLS)))
        return;
    m->told |= bit_of(other);
    if (!bounds.paxos)
        m->ballot = 0;
    if (teller->memory && teller->version > m->version) {
        m->version = teller->version;
        m->ballot = m->accepted_ballot = m->accepted = 0;
    }
    if (teller->memory && teller->version == m->version && !is_planted(BUG_BALLOTS_LOST)) {
        if (teller->ballot > m->ballot)
            m->ballot = teller->ballot;
        if (teller->accepted_ballot > m->accepted_ballot) {
            m->accepted_ballot = teller->accepted_ballot;
            m->accepted = teller->accepted;
        }
    }
    explorer_take(&next, 'r', master, other, 0, NULL);
}

/* M7: N - Q + 1 of the list. */
static bool tell_enough(set list, set told)
{
    unsigned n = (unsigned)__builtin_popcount(list), q = n / 2 + 1;
    unsigned enough = n - q + 1 - (is_planted(BUG_FEW_TELL) ? 1 : 0);

    return (unsigned)__builtin_popcount(told & list) >= enough;
}

/* M7: it gets an epoch. */
static void install(const struct world *w, unsigned master)
{
    const struct master *m = &w->masters[master];
    struct configuration c = configuration_of(m->version);
    set told = m->told & ~bit_of(master);
    struct world next = *w;

    if (m->version == 0 || !tell_enough(c.from, told) || !tell_enough(c.to, told))
        return;
    next.masters[master].memory = 1;
    next.masters[master].told = 0;
    explorer_take(&next, 'I', master, 0, 0, find_revival(&next));
    world_read(w);
}

void master_steps(const struct world *w, unsigned master)
{
    const struct master *m = &w->masters[master];

    if (!answers(w, master))
        return;
    if (m->memory) {
        accept_steps(w, master);
        write_steps(w, master);
        forget(w, master);
    } else if (m->watch == 0) {
        for (unsigned other = 0; other < bounds.masters; other++)
            read_other(w, master, other);
        install(w, master);
    }
}

/* ---- Time ---- */

static void age_masters(struct world *w)
{
    for (unsigned i = 0; i < bounds.masters; i++) {
        struct master *m = &w->masters[i];
        if (m->left > 0 && --m->left == 0)
            m->owner = 0;
        if (!m->memory && m->watch > 0)
            m->watch--;
    }
}

static void age_clients(struct world *w)
{
    for (unsigned i = 0; i < bounds.clients; i++) {
        struct client *c = &w->clients[i];
        bool held = c->left > 0;

        if (held)
            c->left--;
        if (c->asking)
            c->age++;
        if (held ? c->left == 0 : c->asking && c->age >= bounds.ttl)
            client_end(w, i);
    }
}

static void age_admins(struct world *w)
{
    for (unsigned i = 0; i < bounds.admins; i++) {
        struct admin *o = &w->admins[i];

        if (o->phase == WAITING && --o->wait == 0) { /* M5 (2), and the second look of (3). */
            bool same_epochs = !o->spoilt || is_planted(BUG_NO_SECOND_LOOK);
            o->ready = same_epochs;
            admin_end(o, same_epochs);
        } else if (o->phase >= PREPARING && !is_planted(BUG_NO_BALLOT_LIMIT)) {
            o->age++;
            if (o->age >= bounds.ttl) /* M3: the ballot ends. */
                admin_end(o, true);
        }
    }
}

static void pass_time(const struct world *w)
{
    struct world next = *w;

    age_masters(&next);
    age_clients(&next);
    age_admins(&next);
    if (next.history.wait > 0)
        next.history.wait--;
    if (memcmp(&next, w, sizeof next) != 0)
        explorer_take(&next, 'T', 0, 0, 0, NULL);
}

void world_steps(const void *world)
{
    const struct world *w = world;

    world_read(w);
    pass_time(w);
    for (unsigned c = 0; c < bounds.clients; c++)
        client_steps(w, c);
    for (unsigned o = 0; o < bounds.admins; o++)
        admin_steps(w, o);
    for (unsigned m = 0; m < bounds.masters; m++)
        master_steps(w, m);
    rescue_steps(w);
}
