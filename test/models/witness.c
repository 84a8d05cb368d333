/*
 * witness.c - a master that forgot is let vote again by clients that do not stay.
 *
 * One master, m, forgets.  A lease that it granted before may be alive.  The other masters, which
 * are the witnesses, keep the time for it, so that no client must stay.  N is the number of
 * masters, Q that of a majority.
 *
 * The rules, each next to the code that keeps it
 *
 *  1. A client that finds m warming learns its nonce.  Every loss of data brings a new nonce.
 *  2. On each other master that it reaches, the client runs `witness`.  The script writes a mark:
 *     the nonce, and the time by the witness's own clock.  It keeps a mark that has this nonce,
 *     unless its time is in the future.  The reply is the age of the mark.
 *  3. A witness says that m is old if the age of a mark that it kept is at least the window.
 *  4. A client that noticed a step of a witness's clock has the mark replaced, before it counts the
 *     witness.  Else the next client could not know of the step.
 *  5. A client may install m when Q witnesses said that m is old.  The script that installs
 *     compares the nonce.  m is no witness of its own.  A witness that is itself warming is one.
 *  6. The window is the longest lease, and twice the greatest drift: the holder's clock may be
 *     slow, and the witness's fast.
 *
 * What is checked
 *  - No client installs m while a lease is alive that m granted before it forgot.  This holds as
 *    long as fewer than Q witnesses said a wrong age, because their clocks were set forward.
 *  - When the faults end, and a client comes every `visit` ticks, reaches any Q witnesses, and goes
 *    away at once, m is installed within N - Q windows (peace=1; see witness_wait_max).
 *
 * Made smaller without loss: a clock is known by the age that it shows.  It is set forward by as
 * much as does most harm, and back to before the mark.  The lease was granted in the tick in which
 * m forgot, and its holder's clock is as slow as it may be.
 */
#include "models/witness.h"

#include <string.h>

struct bounds bounds;

static unsigned count(unsigned mask)
{
    return (unsigned)__builtin_popcount(mask);
}

unsigned witness_count(void)
{
    return bounds.masters - 1;
}

/* Rule 5. */
static unsigned enough(void)
{
    return bounds.masters / 2 + 1 - (is_planted(MINORITY) ? 1 : 0);
}

/* Rule 6. */
static unsigned window(void)
{
    return bounds.lease + 2 * bounds.drift - (is_planted(SHORT_WINDOW) ? 1 : 0);
}

/* The first client leaves Q marks.  A later one may reach Q - 1 of these, and one witness without a
 * mark.  That may happen N - 1 - Q times, and each costs a window by clocks that may be slow. */
unsigned witness_wait_max(void)
{
    unsigned windows = bounds.masters - bounds.masters / 2 - 1;

    return windows * (window() + bounds.drift) + 2 * bounds.visit;
}

/* ---- Scripts ---- */

/* Rule 2, where there is no mark to keep. */
static void mark(struct witness *w, uint8_t nonce)
{
    *w = (struct witness){.nonce = nonce, .fast = (uint8_t)bounds.drift, .warming = w->warming};
}

/* Rules 2 and 3: whether the witness says that m is old. */
static bool script_witness(struct witness *w, uint8_t nonce)
{
    bool any = is_planted(ANY_NONCE) && w->nonce != 0;

    if (w->nonce == 0 && is_planted(NO_MARK_IS_OLD)) {
        mark(w, nonce);
        return true;
    }
    if ((w->nonce != nonce && !any) || (w->future && !is_planted(KEEP_FUTURE)) ||
        is_planted(MARK_ANEW)) {
        mark(w, nonce);
        return false;
    }
    return w->age >= window() && !w->future && !(is_planted(SKIP_WARMING) && w->warming);
}

/* Rule 5. */
static void script_install(struct state *s, uint8_t nonce)
{
    if (s->votes || (s->nonce != nonce && !is_planted(INSTALL_ANY)))
        return;
    s->votes = 1;
    s->broken = s->lease > 0 && !s->peace;
}

/* ---- Clients ---- */

static void emit(const struct state *s, enum what what, unsigned client, unsigned witness)
{
    explorer_take(s, (char)what, client, witness, 0, witness_judge(s));
}

/* The witness said that m is old.  False: more wrong ages than the bounds allow. */
static bool hear(struct state *s, unsigned i, unsigned k)
{
    const struct witness *w = &s->witnesses[k];
    bool known = (is_planted(KNOWN_COUNTS) && s->clients[i].noticed & 1u << k) ||
                 (is_planted(NO_REPLACE) && w->noticed);

    s->clients[i].old |= (uint8_t)(1u << k);
    if (w->stepped && !known)
        s->falsified |= (uint8_t)(1u << k);
    return count(s->falsified) <= bounds.falsified;
}

/* Rules 2 to 4. */
static void visit(const struct state *s, unsigned i, unsigned k)
{
    struct state n = *s;
    struct client *c = &n.clients[i];
    bool noticed = c->noticed & 1u << k && !is_planted(KNOWN_COUNTS);

    if (noticed && is_planted(NO_REPLACE))
        return;
    if (noticed) {
        mark(&n.witnesses[k], c->nonce);
        c->noticed &= (uint8_t) ~(1u << k);
        c->old &= (uint8_t) ~(1u << k);
    } else if (script_witness(&n.witnesses[k], c->nonce) && !hear(&n, i, k)) {
        return;
    }
    emit(&n, VISIT, i, k);
}

static void client_steps(const struct state *s, unsigned i)
{
    const struct client *c = &s->clients[i];
    struct state n = *s;

    if (c->nonce == 0) {
        n.clients[i].nonce = s->nonce;
        if (!s->votes)
            emit(&n, COME, i, 0); /* Rule 1. */
        return;
    }
    for (unsigned k = 0; k < witness_count(); k++)
        visit(s, i, k);
    memset(&n.clients[i], 0, sizeof n.clients[i]);
    emit(&n, LEAVE, i, 0);
    if (count(c->old) < enough())
        return;
    script_install(&n, c->nonce);
    emit(&n, INSTALL, i, 0);
}

/* ---- Time ---- */

static void tick(const struct state *s)
{
    struct state n = *s;

    if (s->peace && s->since == bounds.visit)
        return;
    n.lease -= s->lease > 0;
    n.waited += s->peace;
    n.since += s->peace;
    for (unsigned k = 0; k < witness_count(); k++) {
        struct witness *w = &n.witnesses[k];

        w->age += w->nonce != 0 && !w->future && w->age < window();
    }
    emit(&n, TICK, 0, 0);
}

/* A clock gains or loses a tick. */
static void drift(const struct state *s, unsigned k)
{
    const struct witness *w = &s->witnesses[k];
    struct state n = *s;

    if (w->nonce == 0 || w->future)
        return;
    if (w->fast < 2 * bounds.drift && w->age < window()) {
        n.witnesses[k].fast++;
        n.witnesses[k].age++;
        emit(&n, FAST, 0, k);
        n = *s;
    }
    if (w->fast > 0 && w->age > 0 && w->age < window()) {
        n.witnesses[k].fast--;
        n.witnesses[k].age--;
        emit(&n, SLOW, 0, k);
    }
}

/* ---- Faults ---- */

static void forget(const struct state *s)
{
    struct state n = *s;

    if (s->nonce >= bounds.forgets)
        return;
    if (s->votes)
        n.lease = (uint8_t)(bounds.lease + bounds.drift); /* Rule 6. */
    n.votes = 0;
    n.nonce++;
    n.falsified = 0;
    emit(&n, FORGET, 0, 0);
}

/* A clock is set forward.  Any of the clients that are there may notice. */
static void forward(const struct state *s, unsigned k)
{
    const struct witness *w = &s->witnesses[k];
    struct state n = *s;

    if (w->nonce == 0 || (w->age == window() && !w->future))
        return;
    for (unsigned who = 0; who < 1u << bounds.clients; who++) {
        bool there = true;

        n = *s;
        n.witnesses[k].age = (uint8_t)window();
        n.witnesses[k].future = 0;
        n.witnesses[k].stepped = 1;
        n.witnesses[k].noticed = who != 0;
        for (unsigned i = 0; i < bounds.clients; i++) {
            if (!(who & 1u << i))
                continue;
            there = there && s->clients[i].nonce != 0;
            n.clients[i].noticed |= (uint8_t)(1u << k);
        }
        if (there)
            emit(&n, FORWARD, who, k);
    }
}

static void back(const struct state *s, unsigned k)
{
    struct state n = *s;

    if (s->witnesses[k].nonce == 0 || s->backs >= bounds.backs)
        return;
    n.backs++;
    n.witnesses[k].future = 1;
    n.witnesses[k].age = 0;
    emit(&n, BACK, 0, k);
}

static void lose(const struct state *s, unsigned k)
{
    struct state n = *s;

    if (s->lost >= bounds.lost)
        return;
    n.lost++;
    n.witnesses[k] = (struct witness){.warming = 1};
    emit(&n, LOSE, 0, k);
}

/* ---- Peace: no more faults, and clients that only pass by ---- */

/* Here the lease does not count: whether m waits long enough was checked before. */

static void make_peace(const struct state *s)
{
    struct state n = *s;

    memset(n.clients, 0, sizeof n.clients);
    n.peace = 1;
    n.lost = n.backs = n.falsified = n.lease = 0;
    for (unsigned k = 0; k < witness_count(); k++)
        n.witnesses[k].stepped = n.witnesses[k].noticed = 0;
    emit(&n, PEACE, 0, 0);
}

/* A client comes, visits these witnesses, installs m if it may, and goes. */
static void pass_by(const struct state *s, unsigned visited)
{
    struct state n = *s;
    unsigned old = 0;

    for (unsigned k = 0; k < witness_count(); k++)
        if (visited & 1u << k)
            old += script_witness(&n.witnesses[k], s->nonce);
    if (old >= enough())
        script_install(&n, s->nonce);
    n.since = 0;
    emit(&n, PASS_BY, 0, visited);
}

/* ---- All of it ---- */

void witness_begin(void *state)
{
    struct state *s = state;

    s->votes = 1;
}

static void peace_steps(const struct state *s)
{
    if (s->votes)
        return;
    tick(s);
    for (unsigned visited = 0; visited < 1u << witness_count(); visited++)
        if (count(visited) >= bounds.masters / 2 + 1)
            pass_by(s, visited);
    for (unsigned k = 0; k < witness_count(); k++)
        drift(s, k);
}

void witness_steps(const void *state)
{
    const struct state *s = state;

    if (s->peace) {
        peace_steps(s);
        return;
    }
    tick(s);
    forget(s);
    for (unsigned i = 0; i < bounds.clients; i++)
        client_steps(s, i);
    for (unsigned k = 0; k < witness_count(); k++) {
        drift(s, k);
        forward(s, k);
        back(s, k);
        lose(s, k);
    }
    if (!s->votes && bounds.peace)
        make_peace(s);
}
