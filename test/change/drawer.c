/*
 * drawer.c - a client that draws fencing tokens, while all others do what they do.
 *
 * It sends SET, count and proof to each member at once, and queries before or between them.
 * So any number of steps of others lie between two of its commands at a master.  A SET does nothing
 * here, and belongs to its count.  The client judges the answers by the real
 * redlock/masters/proof.c and core/guard.c; what it does with votes is rule 8 and rule 11 of
 * core/quorum.c.
 *
 * Two things must be true: a yes has the number that its master really counted to, and each token
 * is greater than all that were drawn before the client began.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "change/machines.h"
#include "redlock/masters/clocks.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/proof.h"
#include "redlock/masters/standing.h"
#include "redlock/wire/reply.h"

static struct world *world; /* In which the event happens. */
static struct env env;
static struct peers peers = {.env = &env, .restart_guard = true};
static struct standing standing;
static struct yes room[2];
static bool is_lost; /* The link was taken down. */
static void on_vote(void *cookie, unsigned master, const struct ask *ask, const struct vote *vote);
static struct proof proof = {.peers = &peers, .standing = &standing, .on_vote = on_vote};

/* ---- What proof.c calls ---- */

void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len)
{
    (void)link, (void)ask, (void)command, (void)command_len;
}

void link_note(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
}

void link_relink(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
    is_lost = true;
}

void link_relink_for(struct link *link, enum why why)
{
    (void)why;
    link_relink(link, NULL);
}

void clocks_ask(struct clocks *clocks, unsigned master)
{
    (void)clocks, (void)master;
}

void standing_look_again(struct standing *s, unsigned master)
{
    (void)s;
    world->drawer.due |= (uint8_t)(1u << master);
}

uint64_t standing_version(const struct standing *s)
{
    (void)s;
    return world->drawer.version;
}

/* ---- The proof of one master, loaded and stored ---- */

static void write_state(char *to, unsigned epoch, unsigned version, unsigned floor)
{
    if (epoch == 0)
        to[0] = '\0';
    else if (floor == 0)
        (void)snprintf(to, WIRE_STATE_MAX + 1, "%016x.%u", epoch, version);
    else
        (void)snprintf(to, WIRE_STATE_MAX + 1, "%016x.%u.%u", epoch, version, floor);
}

static void know(struct guard_master *known, const struct drawn_master *m)
{
    *known = (struct guard_master){
        .linked = true,
        .look = {.ready = m->epoch != 0, .number = m->epoch, .floor = m->floor, .high = UINT8_MAX}};
}

static void load(struct world *w, unsigned master)
{
    const struct drawn_master *m = &w->drawer.masters[master];
    struct held *held = &proof.held[master];

    world = w;
    is_lost = false;
    write_state(standing.states[master], m->epoch, m->version, m->shows ? m->floor : 0);
    know(&standing.guard.masters[master], m);
    *held = (struct held){.yes = room, .room = sizeof room / sizeof *room, .shown = m->shown};
    if (m->drawn != DRAWN_HELD && m->drawn != DRAWN_UNSURE)
        return;
    room[0] = (struct yes){
        .ask = {.what = QUORUM_CMD_FENCE},
        .vote = {.vote = m->number ? QUORUM_VOTE_YES : QUORUM_VOTE_VOID, .counter = m->number}};
    held->len = 1;
    held->proven = m->drawn == DRAWN_UNSURE;
}

/* The link is down, or the master has another epoch. */
static void forget(struct world *w, unsigned master)
{
    memset(&w->drawer.masters[master], 0, sizeof w->drawer.masters[master]);
    w->drawer.due |= (uint8_t)(1u << master);
}

static void store(struct world *w, unsigned master)
{
    struct drawn_master *m = &w->drawer.masters[master];
    const struct held *held = &proof.held[master];

    if (is_lost) {
        forget(w, master);
        return;
    }
    if (held->len == 0)
        return; /* on_vote() has stored it, or there was none. */
    m->drawn = held->proven ? DRAWN_UNSURE : DRAWN_HELD;
    m->number = held->yes[0].vote.vote == QUORUM_VOTE_YES ? (uint8_t)held->yes[0].vote.counter : 0;
    m->shown = held->proven ? (uint8_t)held->shown : 0;
}

static void end_at(struct drawn_master *m)
{
    m->drawn = DRAWN_NOT;
    m->number = m->counted = m->shown = 0;
}

static void on_vote(void *cookie, unsigned master, const struct ask *ask, const struct vote *vote)
{
    struct drawn_master *m = &world->drawer.masters[master];

    (void)cookie, (void)ask;
    m->shown = 0;
    if (vote->vote != QUORUM_VOTE_YES) {
        end_at(m);
        return;
    }
    if (vote->counter != m->counted)
        machine_note(world, FALSE_NUMBER);
    m->number = (uint8_t)vote->counter;
    m->drawn = world->drawer.spoils ? DRAWN_SPOILT : DRAWN_YES;
}

/* ---- Votes ---- */

static struct roster_lists lists_of(const struct world *w)
{
    const uint8_t *chosen = w->history.chosen[w->drawer.version];

    return (struct roster_lists){w->drawer.version, chosen[0], chosen[1]};
}

static unsigned find(const struct world *w, enum drawn first, enum drawn last)
{
    unsigned found = 0;

    for (unsigned i = 0; i < MASTERS; i++)
        if (w->drawer.masters[i].drawn >= first && w->drawer.masters[i].drawn <= last)
            found |= 1u << i;
    return found;
}

/* Rule 8: the number that enough masters counted to, or 0. */
static unsigned agreed(const struct world *w, const struct roster_lists *lists)
{
    for (unsigned number = 1; number <= NUMBERS; number++) {
        unsigned same = 0;

        for (unsigned i = 0; i < MASTERS; i++)
            if (w->drawer.masters[i].drawn == DRAWN_YES && w->drawer.masters[i].number == number)
                same |= 1u << i;
        if (roster_is_quorum(lists, same))
            return number;
    }
    return 0;
}

/* What it knows is read anew when it draws again. */
static void end_draw(struct world *w)
{
    w->drawer = (struct drawer){.version = w->drawer.version};
}

static void begin_raise(struct world *w)
{
    for (unsigned i = 0; i < MASTERS; i++) {
        struct drawn_master *m = &w->drawer.masters[i];

        if (m->drawn >= DRAWN_SPOILT && m->number >= w->drawer.raise)
            w->drawer.raise = (uint8_t)(m->number + 1);
    }
    for (unsigned i = 0; i < MASTERS; i++)
        if (w->drawer.masters[i].drawn >= DRAWN_SPOILT)
            w->drawer.masters[i].drawn = DRAWN_RAISE;
}

/* Returns false if the numbers are beyond the bounds. */
static bool conclude(struct world *w)
{
    const struct roster_lists lists = lists_of(w);
    unsigned token;

    if (roster_is_quorum(&lists, find(w, DRAWN_SPOILT, DRAWN_YES))) {
        token = agreed(w, &lists);
        if (token != 0) {
            if (token <= w->drawer.after)
                machine_note(w, SMALL_TOKEN);
            if (token > w->history.last)
                w->history.last = (uint8_t)token;
            end_draw(w);
        } else if (w->drawer.raise == 0 || !find(w, DRAWN_RAISE, DRAWN_RAISE)) {
            begin_raise(w);
        }
    } else if (!find(w, DRAWN_ASKED, DRAWN_RAISE)) {
        end_draw(w);
    }
    return w->drawer.raise <= NUMBERS;
}

/* ---- Steps ---- */

/* What the client takes over from a query of a marker, in the order of take_look() and
 * standing_on_look() in masters/standing.c. */
static void look(struct world *w, unsigned master)
{
    const struct master *at = &w->masters[master];
    struct drawn_master *m = &w->drawer.masters[master];
    unsigned epoch = m->epoch;
    char text[WIRE_STATE_MAX + 1];

    w->drawer.due &= (uint8_t) ~(1u << master);
    load(w, master);
    if (at->epoch != 0 && at->version > w->drawer.version) {
        w->drawer.version = at->version;
        w->drawer.due |=
            (uint8_t)((w->history.chosen[at->version][0] | w->history.chosen[at->version][1]) &
                      ~(1u << master));
        w->drawer.spoils = w->drawer.raise == 0 && find(w, DRAWN_ASKED, DRAWN_YES) != 0;
        for (unsigned i = 0; i < MASTERS && w->drawer.spoils; i++)
            if (w->drawer.masters[i].drawn == DRAWN_YES)
                w->drawer.masters[i].drawn = DRAWN_SPOILT;
    }
    write_state(text, at->epoch, at->version, at->shows ? at->floor : 0);
    if (strcmp(text, standing.states[master]) != 0)
        proof_on_state(&proof, master);
    memcpy(standing.states[master], text, sizeof text);
    if (at->epoch != epoch) {
        end_at(m);
        proof_forget(&proof, master);
    }
    m->epoch = at->epoch;
    m->version = at->epoch ? at->version : 0;
    m->floor = at->epoch ? at->floor & 0x7f : 0;
    m->shows = at->epoch && at->shows;
    know(&standing.guard.masters[master], m);
    proof_on_look(&proof, master);
    store(w, master);
}

static void count(struct world *w, unsigned master)
{
    static const struct ask ask = {.what = QUORUM_CMD_FENCE}, counts = {.what = WHAT_COUNT};
    static const struct vote yes = {.vote = QUORUM_VOTE_YES};
    struct master *at = &w->masters[master];
    struct reply reply = {.type = REPLY_INTEGER, .integer = 1};

    if (at->epoch != 0) { /* Else it counts in an empty marker. */
        at->number++;
        reply.integer = at->number - at->floor;
        w->drawer.masters[master].counted = at->number;
    }
    load(w, master);
    (void)proof_hold(&proof, master, &ask, &yes);
    proof_on_count(&proof, master, &counts, &reply);
    store(w, master);
}

static void prove(struct world *w, unsigned master)
{
    const struct master *at = &w->masters[master];
    char text[WIRE_STATE_MAX + 1];
    struct reply reply = {.type = at->epoch ? REPLY_TEXT : REPLY_NIL, .text = text};

    write_state(text, at->epoch, at->version, at->shows ? at->floor : 0);
    reply.text_len = strlen(text);
    load(w, master);
    proof_on_answer(&proof, master, &reply);
    store(w, master);
}

/* lua/raise.lua, which compares the text by itself. */
static void raise_at(struct world *w, unsigned master)
{
    struct master *at = &w->masters[master];
    struct drawn_master *m = &w->drawer.masters[master];

    if (at->epoch == 0 || at->epoch != m->epoch || at->version != m->version ||
        at->shows != m->shows || (at->shows && at->floor != m->floor)) {
        end_at(m);
        w->drawer.due |= (uint8_t)(1u << master);
        return;
    }
    at->number = at->number < w->drawer.raise ? w->drawer.raise : (uint8_t)(at->number + 1);
    m->number = m->counted = at->number;
    m->drawn = DRAWN_YES;
}

/* The link breaks, before the command was obeyed or behind it. */
static void cut(struct world *w, unsigned master, bool obeyed)
{
    enum drawn drawn = w->drawer.masters[master].drawn;

    if (obeyed && drawn == DRAWN_ASKED)
        count(w, master);
    if (obeyed && drawn == DRAWN_RAISE)
        raise_at(w, master);
    w->history.cuts--;
    forget(w, master);
}

/* A query that is due goes out at once, but lies behind what is on its way already.  That behind a
 * proof is a step of its own. */
static void look_where_due(struct world *w)
{
    for (unsigned m = 0; m < MASTERS; m++) {
        unsigned busy = find(w, DRAWN_ASKED, DRAWN_RAISE) | scenario->unreached;

        if (!(w->drawer.due & ~busy & 1u << m))
            continue;
        look(w, m);
        m = UINT_MAX; /* All again, for there may be a newer version. */
    }
}

static void finish(struct world *next, char kind, unsigned master,
                   void (*take)(struct world *next, struct move step))
{
    look_where_due(next);
    if (conclude(next) && next->masters[master].number <= NUMBERS)
        take(next, (struct move){kind, (unsigned char)master, 0, 0});
}

static void steps_at(const struct world *w, unsigned master,
                     void (*take)(struct world *next, struct move step))
{
    static void (*const what[])(struct world * next, unsigned at) = {[DRAWN_ASKED] = count,
                                                                     [DRAWN_HELD] = prove,
                                                                     [DRAWN_UNSURE] = look,
                                                                     [DRAWN_RAISE] = raise_at};
    static const char kinds[] = "-cpqr";
    enum drawn drawn = w->drawer.masters[master].drawn;
    struct world next = *w;

    if (drawn == DRAWN_NOT || drawn > DRAWN_RAISE || scenario->unreached >> master & 1)
        return;
    if (find(w, drawn, drawn) & ((1u << master) - 1))
        return; /* Masters answer in their order. */
    what[drawn](&next, master);
    finish(&next, kinds[drawn], master, take);
    for (unsigned way = 0; way < 2 && w->history.cuts > 0; way++) {
        next = *w;
        cut(&next, master, way);
        finish(&next, "uU"[way], master, take);
    }
    if (w->history.looks == 0 || (drawn != DRAWN_ASKED && drawn != DRAWN_HELD))
        return;
    next = *w;
    next.history.looks--;
    look(&next, master);
    finish(&next, 'q', master, take);
}

/* Returns false if too few masters may vote. */
static bool begin_draw(struct world *w)
{
    struct roster_lists lists = lists_of(w);
    unsigned up = 0;

    w->drawer.due = (uint8_t)(roster_members(&lists) | scenario->first);
    look_where_due(w);
    lists = lists_of(w);
    for (unsigned i = 0; i < MASTERS; i++)
        if (w->drawer.masters[i].epoch != 0 && roster_members(&lists) >> i & 1) {
            w->drawer.masters[i].drawn = DRAWN_ASKED;
            up |= 1u << i;
        }
    w->drawer.after = w->history.last;
    w->history.locks--;
    return roster_is_quorum(&lists, up);
}

void drawer_steps(const struct world *w, void (*take)(struct world *next, struct move step))
{
    for (unsigned m = 0; m < machines_masters(); m++)
        steps_at(w, m, take);
    if (w->history.locks > 0 && !find(w, DRAWN_ASKED, DRAWN_YES)) {
        struct world next = *w;

        if (begin_draw(&next))
            take(&next, (struct move){'d', 0, 0, 0});
    }
}

/* Before a rescue it has begun, with the one master that answers.  The others had counted further.
 */
void drawer_begin(struct world *w)
{
    w->drawer.version = 1;
    if (scenario->rescued == 0)
        return;
    for (unsigned m = 0; m < MASTERS; m++)
        if (scenario->unreached >> m & 1)
            w->masters[m].number = 3;
        else if (scenario->first >> m & 1)
            w->drawer.masters[m] =
                (struct drawn_master){.epoch = 1, .version = 1, .floor = 1, .drawn = DRAWN_ASKED};
    w->history.last = w->drawer.after = 3;
}
