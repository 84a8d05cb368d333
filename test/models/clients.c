/*
 * clients.c - rounds and extensions of clients whose versions are old or new: M1, M2, M4.
 *
 * A round and an extension are alike: the key is set on a master, a proof is read behind it, and
 * the vote counts.  An extension is one that a client begins while it holds the lock.
 */
#include "models/members.h"

static void delete_keys(struct world *w, unsigned client)
{
    for (unsigned m = 0; m < bounds.masters; m++)
        if (w->masters[m].owner == client + 1)
            w->masters[m].owner = w->masters[m].left = 0;
}

static void stop_asking(struct client *c)
{
    c->asking = c->age = c->stored = c->good = 0;
}

/* It holds nothing and asks for nothing. */
void client_end(struct world *w, unsigned client)
{
    struct client next = {.version = w->clients[client].version, .known = w->clients[client].known};

    delete_keys(w, client);
    w->clients[client] = next;
}

/* M2: are these votes enough?  The lease counts from before the first request. */
static void judge(struct world *next, char kind, unsigned client, unsigned master)
{
    struct client *c = &next->clients[client];
    const char *broken = NULL;

    if (is_quorum(c->version, c->good)) {
        unsigned left = bounds.ttl - (is_planted(BUG_LATE_DEADLINE) ? 0 : c->age);
        if (left > c->left)
            c->left = left;
        stop_asking(c);
        for (unsigned other = 0; other < bounds.clients; other++)
            if (other != client && next->clients[other].left > 0)
                broken = two_hold;
    }
    explorer_take(next, kind, client, master, 0, broken);
}

/* M4. */
static void take_over(struct client *c, unsigned version)
{
    c->version = version;
    if (!bounds.keep)
        c->good = 0;
    c->known = 0;
}

/* Whether a proof is good enough although it shows another version. */
static bool overlooks(const struct client *c, unsigned shown, unsigned known)
{
    if (is_planted(BUG_NO_VERSION) || is_planted(BUG_NO_PROOF))
        return true;
    if (is_planted(BUG_OLD_EXTENSION) && c->left > 0)
        return true;
    return bounds.laggards && shown < known;
}

/* M1: the read behind a key that was set. */
static void prove(const struct world *w, unsigned client, unsigned master)
{
    const struct master *m = &w->masters[master];
    struct world next = *w;
    struct client *c = &next.clients[client];
    unsigned shown = number_of(w, m->version), known = number_of(w, c->version);
    bool epoch = m->memory || is_planted(BUG_NO_PROOF);

    c->stored &= ~bit_of(master);
    if (epoch && (shown == known || overlooks(c, shown, known)))
        c->good |= bit_of(master);
    if (m->memory && shown > known) {
        if (c->good & bit_of(master)) { /* A planted bug.  It takes the version over, or not. */
            struct world newer = *w;
            take_over(&newer.clients[client], m->version);
            explorer_take(&newer, 'V', client, master, 0, NULL);
        } else {
            take_over(c, m->version);
            if (members_of(c->version) & bit_of(master))
                c->good |= bit_of(master);
        }
    }
    judge(&next, 'P', client, master);
}

/* The command sets the key, or makes it live longer. */
static void set_key(struct world *next, unsigned client, unsigned master)
{
    struct master *m = &next->masters[master];
    unsigned left = bounds.ttl - next->clients[client].age;

    m->owner = (client + 1);
    if (left > m->left) /* It may live longer than that: this is the least. */
        m->left = left;
    next->clients[client].asking = 1;
    next->clients[client].stored |= bit_of(master);
}

/* Planted bugs: the vote counts at once.  Whether a proof was read does not matter. */
static bool counts_unproved(const struct world *w, unsigned client, unsigned master)
{
    const struct client *c = &w->clients[client];

    if (is_planted(BUG_UNPROVED_KEY))
        return c->left > 0 && w->masters[master].owner == 0;
    return is_planted(BUG_EARLY_PROOF) && (c->known & bit_of(master));
}

static bool may_ask(const struct world *w, unsigned client, unsigned master)
{
    const struct client *c = &w->clients[client];
    unsigned owner = w->masters[master].owner;

    if (!(members_of(c->version) & bit_of(master)) || ((c->stored | c->good) & bit_of(master)))
        return false;
    if (owner != 0 && owner != client + 1)
        return false;
    return c->asking || c->left < bounds.ttl; /* Else there is nothing to gain. */
}

static void ask(const struct world *w, unsigned client, unsigned master)
{
    struct world next = *w;

    set_key(&next, client, master);
    if (counts_unproved(w, client, master)) {
        next.clients[client].stored &= ~bit_of(master);
        next.clients[client].good |= bit_of(master);
        judge(&next, 'N', client, master);
    } else if (bounds.split) {
        explorer_take(&next, 'S', client, master, 0, NULL);
    } else {
        prove(&next, client, master);
    }
}

/* BUG_EARLY_PROOF: the proof is read once, and counts in all rounds after it. */
static void prove_early(const struct world *w, unsigned client, unsigned master)
{
    const struct master *m = &w->masters[master];
    struct world next = *w;

    if (!m->memory || m->version != w->clients[client].version)
        return;
    next.clients[client].known |= bit_of(master);
    explorer_take(&next, 'E', client, master, 0, NULL);
}

/* A client whose version has no members can only look around for a newer one (R5). */
static void look_around(const struct world *w, unsigned client, unsigned master)
{
    const struct client *c = &w->clients[client];
    const struct master *m = &w->masters[master];
    struct world next = *w;

    if (c->version != CLOSED || !m->memory || number_of(w, m->version) <= number_of(w, c->version))
        return;
    take_over(&next.clients[client], m->version);
    explorer_take(&next, 'V', client, master, 0, NULL);
}

static void give_back(const struct world *w, unsigned client)
{
    struct world next = *w;

    client_end(&next, client);
    explorer_take(&next, 'R', client, 0, 0, NULL);
}

static void give_extension_up(const struct world *w, unsigned client)
{
    struct world next = *w;

    stop_asking(&next.clients[client]);
    explorer_take(&next, 'G', client, 0, 0, NULL);
}

void client_steps(const struct world *w, unsigned client)
{
    const struct client *c = &w->clients[client];

    for (unsigned m = 0; m < bounds.masters; m++) {
        if (!answers(w, m))
            continue;
        if (c->stored & bit_of(m))
            prove(w, client, m);
        if (may_ask(w, client, m))
            ask(w, client, m);
        if (is_planted(BUG_EARLY_PROOF) && may_ask(w, client, m) && !(c->known & bit_of(m)))
            prove_early(w, client, m);
        look_around(w, client, m);
    }
    if (c->left > 0 || c->asking)
        give_back(w, client);
    if (c->left > 0 && c->asking)
        give_extension_up(w, client);
}
