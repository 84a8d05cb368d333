/*
 * handover-scripts.c - what a master does in the model of handover.c: acquire_fair, release_fair,
 * extend_fair, and what an operator's revoke leaves; and the world at the beginning.
 */
#include "models/handover.h"

#include <string.h>

static unsigned low(unsigned value)
{
    return value & 15u;
}

void handover_free(struct master *m)
{
    m->owner = m->token = m->left = m->passed = m->revoked = 0;
}

static void set_key(struct master *m, unsigned client, unsigned token)
{
    m->owner = (client + 1) & 7u;
    m->token = low(token);
    m->left = low(bounds.lease);
    m->revoked = 0;
}

static bool has_key(const struct master *m, unsigned client, unsigned token)
{
    return m->owner == client + 1 && m->token == token;
}

bool handover_backs(const struct world *w, unsigned client, unsigned master)
{
    const struct master *m = &w->masters[master];
    bool was = m->owner == REVOKED && m->revoked == client + 1;

    return (was || m->owner == client + 1) && m->token == w->clients[client].token;
}

static unsigned first_of(const struct master *m)
{
    unsigned first = CLIENTS;

    for (unsigned c = 0; c < CLIENTS; c++)
        if (m->places[c].number != 0 &&
            (first == CLIENTS || m->places[c].number < m->places[first].number))
            first = c;
    return first;
}

static void drop_place(struct master *m, unsigned client)
{
    memset(&m->places[client], 0, sizeof m->places[client]);
}

/* Rule 2.  A message that is on its way is not joined by a second one, which is lost. */
static void pass_on(struct world *w, unsigned master)
{
    struct master *m = &w->masters[master];
    unsigned first = first_of(m), passed = m->passed;
    struct message *message;
    const struct place *p;

    handover_free(m);
    if (first == CLIENTS)
        return;
    p = &m->places[first];
    if (p->token == 0 || (!p->waits && !is_planted(NO_TICKET)))
        return;
    set_key(m, first, p->token);
    m->passed = (passed + 1) & 7u;
    message = &w->links[first][master].message;
    if (!message->is_there && w->clients[first].phase != DEAD)
        *message = (struct message){1, p->token & 15u, p->age & 15u, m->epoch & 7u};
}

/* A waiter without a number is put behind all others. */
static unsigned number_for(const struct master *m, unsigned client, unsigned ticket)
{
    unsigned last = 0;

    if (ticket != 0)
        return ticket;
    if (m->places[client].number != 0)
        return m->places[client].number;
    for (unsigned c = 0; c < CLIENTS; c++)
        last = m->places[c].number > last ? m->places[c].number : last;
    return last < 15 ? last + 1 : 15;
}

/* Rules 1 and 3. */
static enum reply heartbeat(struct master *m, unsigned client, struct request q,
                            unsigned *ret_number)
{
    unsigned number = number_for(m, client, q.ticket);

    m->places[client] = (struct place){low(number), q.token & 15u, low(bounds.patience),
                                       q.age & 15u, q.ticket != 0};
    *ret_number = number;
    if (m->owner == 0 && first_of(m) == client && (q.ticket != 0 || number == 1)) {
        set_key(m, client, q.token);
        m->passed = 0;
        return YES;
    }
    if (!has_key(m, client, q.token))
        return WAIT;
    if (!is_planted(NOT_EXTENDED))
        m->left = low(bounds.lease);
    return YES;
}

/* In the model a client that comes again has its old place, and in life another name. */
static void drop_old_place(struct master *m, unsigned client, unsigned token)
{
    if (m->places[client].number != 0 && m->places[client].token <= token)
        drop_place(m, client);
}

static enum reply extend(struct master *m, unsigned client, unsigned token)
{
    if (has_key(m, client, token)) {
        m->left = low(bounds.lease);
        return YES;
    }
    if (!is_planted(EXTEND_KEEPS))
        drop_old_place(m, client, token);
    return NO;
}

/* Rule 4. */
static void give_back(struct world *w, unsigned client, unsigned master, unsigned token)
{
    struct master *m = &w->masters[master];
    struct place *p = &m->places[client];

    if (has_key(m, client, token) && is_planted(PING_PONG))
        pass_on(w, master);
    else if (has_key(m, client, token))
        handover_free(m);
    if (p->number != 0 && p->token == token && !is_planted(KEEP_TOKEN))
        p->token = p->waits = 0;
}

void handover_execute(struct world *w, unsigned client, unsigned master, struct request request,
                      struct answer *ret_answer)
{
    struct master *m = &w->masters[master];
    bool is_ours = has_key(m, client, request.token);
    enum reply reply = DONE;
    unsigned number = 0;

    switch ((enum command)request.command) {
    case HEARTBEAT:
        reply = heartbeat(m, client, request, &number);
        break;
    case EXTEND:
        reply = extend(m, client, request.token);
        break;
    case RELEASE:
        if (!is_planted(KEEP_PLACE))
            drop_old_place(m, client, request.token);
        if (is_ours)
            pass_on(w, master);
        break;
    case LEAVE:
        drop_old_place(m, client, request.token);
        if (is_ours && !is_planted(LEAVE_KEY))
            handover_free(m);
        break;
    case GIVE_BACK:
        give_back(w, client, master, request.token);
        break;
    case NO_COMMAND:
        break;
    }
    *ret_answer = (struct answer){(unsigned)reply & 7u, request.command & 7u, request.token & 15u,
                                  request.age & 15u,    m->epoch & 7u,        low(number)};
}

/* ---- Faults ---- */

/* The master may vote again when a whole lease is over. */
void handover_forget(struct world *w, unsigned master)
{
    struct master *m = &w->masters[master];

    for (unsigned c = 0; c < CLIENTS; c++) {
        w->links[c][master].forgot |= handover_backs(w, c, master) & 1u;
        w->clients[c].in_line = 0;
    }
    memset(m, 0, sizeof *m);
    m->warms = low(bounds.lease);
    if (is_planted(NO_WATCH)) {
        m->warms = 0;
        w->history.epochs++;
        m->epoch = (w->history.epochs + 1) & 7u;
    }
}

/* The key keeps its end, and no command finds its token there (redlock/lua/revoke.lua). */
void handover_revoke(struct world *w, unsigned master)
{
    struct master *m = &w->masters[master];

    m->revoked = m->owner & 3u;
    m->owner = REVOKED;
}

/* ---- The beginning ---- */

static void put_place(struct world *w, unsigned c, unsigned m)
{
    w->masters[m].places[c] =
        (struct place){w->clients[c].ticket & 15u, 1, bounds.patience & 15u, 0, 1};
    w->links[c][m].is_told = 1;
    w->links[c][m].own_age = 0;
}

/* start=1: A holds, and the others wait.  2: and only a majority has each place.  3: so, and nobody
 * holds.  0: nobody is there. */
void handover_begin(void *world)
{
    struct world *w = world;

    for (unsigned m = 0; m < MASTERS; m++) {
        w->masters[m].epoch = 1;
        for (unsigned c = 0; c < bounds.clients; c++) {
            w->links[c][m].epoch = 1;
            w->links[c][m].own_age = is_planted(OWN_TIME) ? 15 : 0;
        }
    }
    for (unsigned c = 0; c < bounds.clients && bounds.start != 0; c++) {
        struct client *x = &w->clients[c];
        bool holds = c == 0 && bounds.start < 3;

        x->token = 1;
        x->phase = holds ? HOLDING : WAITING;
        x->ticket = x->top = (bounds.start == 3 ? c + 1 : c) & 15u;
        x->held = holds;
        x->left = (holds ? bounds.lease - 1 : 0) & 15u;
        for (unsigned m = 0; m < MASTERS; m++) {
            if (holds) {
                struct request q = {HEARTBEAT, 1, 0, 0};
                handover_execute(w, c, m, q, &w->links[c][m].answer);
                memset(&w->links[c][m].answer, 0, sizeof(struct answer));
                w->masters[m].places[c] = (struct place){0};
                w->links[c][m].yes = 1;
            } else if (bounds.start == 1 || (m + c) % MASTERS < MAJORITY) {
                put_place(w, c, m);
            }
        }
    }
}
