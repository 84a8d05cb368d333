/*
 * handover.c - the release of a fair lock passes each master's vote on to the next waiter: can two
 * clients hold?
 *
 * Masters have keys that expire, and queues with places.  Clients wait, hold, extend, release, give
 * back, leave, stop and die.  handover-check.c has the options.
 *
 * The rules of docs/protocol.md, section 13, each next to the code that keeps it
 *
 *  1. A place has a ticket, the token of the next hold, and SENT: the client's own time before it
 *     sent that heartbeat.  Masters store it and never interpret it.  Only a heartbeat with a
 *     ticket lets its token wait.
 *  2. The release of a holder drops the holder's own place, compares the token, and gives the key
 *     to the first waiter, if that one's token waits; never to the second.  It publishes "granted"
 *     with the token, SENT and the epoch.  The place stays: the next release of that waiter drops
 *     it, or its leaving, or an extension that does not find the token.
 *  3. A grant is a yes for the current token if the epoch is the known one, and the deadline that
 *     SENT gives is not over.  The lease of all votes together counts from the oldest.  A
 *     heartbeat that finds its token extends the key, and counts from its own sending.
 *  4. A token that too few granted is given back: compared, deleted, and not passed on.  It waits
 *     no more, at any master, until all have confirmed that.  Only then a master is asked with
 *     another token.
 *  5. A token that was given back is never used again.
 *  6. An operator may revoke any key: no command finds the token there any more, and the key keeps
 *     its end.
 *
 * What is checked
 *  - Two clients never hold at once, and a majority of keys backs each hold.
 *  - Nobody holds with a token that it held before.
 *  - A client that has left keeps no key, unless a command of it was executed late.
 *  - A vote is not passed on four times before somebody holds.
 *  - A lock that was passed on goes to the first of those whose place a majority had.
 *
 * Not checked here: that a waiter gets the lock in the end.  The simulator does (`liveness`).
 *
 * Made smaller without loss: what only wakes clients is left out, because a heartbeat may come at
 * any time.  One command at a time is on its way from a client to a master.  When its connection
 * breaks, it is executed later (a stray, also after those of the new connection), or never.
 */
#include "models/handover.h"

#include <string.h>

#include "models/explorer.h"

struct bounds bounds;

static const char *broken; /* What the step that is being made breaks. */

static void emit(const struct world *next, enum what what, unsigned a, unsigned b, unsigned c)
{
    const char *why = broken != NULL ? broken : handover_judge(next);

    broken = NULL;
    explorer_take(next, (char)what, a, b, c, why);
}

static unsigned majority(void)
{
    return MAJORITY - (is_planted(MINORITY) ? 1 : 0);
}

/* A tick of the lease is the allowance for drift. */
static unsigned left_of(unsigned age)
{
    return age + 1 < bounds.lease ? bounds.lease - 1 - age : 0;
}

/* ---- Votes ---- */

/* Votes by age, the smallest first.  Returns how many there are. */
static unsigned sort_votes(const struct world *w, unsigned c, unsigned ages[MASTERS],
                           bool *ret_passed)
{
    unsigned len = 0;

    *ret_passed = true;
    for (unsigned m = 0; m < MASTERS; m++) {
        const struct link *l = &w->links[c][m];
        unsigned at = len;

        if (!l->yes || (left_of(l->age) == 0 && !is_planted(LATE)))
            continue;
        for (; at > 0 && ages[at - 1] > l->age; at--)
            ages[at] = ages[at - 1];
        ages[at] = l->age;
        len++;
        *ret_passed &= l->is_passed;
    }
    return len;
}

static void judge_turn(const struct world *w, unsigned c)
{
    const struct client *x = &w->clients[c];

    for (unsigned d = 0; d < CLIENTS; d++) {
        const struct client *y = &w->clients[d];

        if (d != c && y->phase == WAITING && y->in_line &&
            (x->ticket == 0 || x->ticket > y->ticket))
            broken = "the lock was passed to a waiter that is behind, or has no ticket";
    }
}

/* Rule 3.  The best majority of votes: for so long the key lasts there at least. */
static void count_votes(struct world *w, unsigned c)
{
    struct client *x = &w->clients[c];
    unsigned ages[MASTERS], left;
    bool is_passed;

    if (sort_votes(w, c, ages, &is_passed) < majority())
        return;
    left = left_of(ages[majority() - 1]);
    if (x->phase == HOLDING) {
        x->left = (left > x->left ? left : x->left) & 15u;
        return;
    }
    if (x->held >= x->token)
        broken = "a token is used again";
    if (left == 0)
        broken = "a lock is granted whose time is over";
    x->phase = HOLDING;
    x->left = left & 15u;
    x->held = x->token & 15u;
    if (is_passed)
        judge_turn(w, c);
    for (unsigned m = 0; m < MASTERS; m++)
        if (handover_backs(w, c, m))
            w->masters[m].passed = 0;
}

static void take_vote(struct world *w, unsigned c, unsigned m, unsigned age, bool is_passed)
{
    struct link *l = &w->links[c][m];

    if (!l->yes || age < l->age)
        l->age = age & 15u;
    if (!l->yes)
        l->is_passed = is_passed;
    l->yes = 1;
    count_votes(w, c);
}

static bool wants_votes(const struct client *x)
{
    return x->phase == WAITING || x->phase == HOLDING;
}

/* The greatest number that a majority told becomes the ticket. */
static void draw_ticket(struct world *w, unsigned c, unsigned m, unsigned number)
{
    struct client *x = &w->clients[c];
    unsigned told = 0;

    w->links[c][m].is_told = 1;
    x->top = (number > x->top ? number : x->top) & 15u;
    for (unsigned i = 0; i < MASTERS; i++)
        told += w->links[c][i].is_told;
    if (told >= MAJORITY)
        x->ticket = x->top & 15u;
}

static void read_answer(struct world *w, unsigned c, unsigned m)
{
    struct client *x = &w->clients[c];
    struct link *l = &w->links[c][m];
    const struct answer a = l->answer;
    bool is_current = a.token == x->token, is_known = true;

    memset(&l->answer, 0, sizeof l->answer);
    if (a.epoch != l->epoch) { /* Nothing that it said before is good, nor this. */
        l->yes = 0;
        is_known = is_planted(ANY_ANSWER);
        l->epoch = (a.epoch != 0 ? a.epoch : l->epoch) & 7u;
    }
    if (a.command == GIVE_BACK)
        l->back &= (uint16_t) ~(1u << a.token);
    if ((a.command == RELEASE || a.command == LEAVE) && is_current)
        l->is_pending = 0;
    if (a.command == HEARTBEAT && x->phase == WAITING && a.number != 0 && x->ticket == 0)
        draw_ticket(w, c, m, a.number);
    if (a.command == HEARTBEAT && is_current && a.reply == WAIT && is_planted(OWN_TIME))
        l->own_age = a.age & 15u;
    if (a.reply == YES && is_current && is_known && wants_votes(x))
        take_vote(w, c, m, a.age, false);
    if (a.reply == NO && is_current) {
        l->yes = 0;
        l->is_clean = 1;
    }
}

/* Rule 3. */
static void hear(struct world *w, unsigned c, unsigned m)
{
    struct link *l = &w->links[c][m];
    const struct message message = l->message;
    unsigned age = message.age;

    memset(&l->message, 0, sizeof l->message);
    if (message.token != w->clients[c].token || !wants_votes(&w->clients[c]))
        return;
    if (message.epoch != l->epoch && !is_planted(ANY_MESSAGE))
        return;
    if (is_planted(ARRIVAL))
        age = 0;
    else if (is_planted(OWN_TIME))
        age = l->own_age;
    take_vote(w, c, m, age, true);
}

/* ---- Clients ---- */

static void forget_votes(struct world *w, unsigned c)
{
    for (unsigned m = 0; m < MASTERS; m++) {
        struct link *l = &w->links[c][m];

        l->yes = l->age = l->is_passed = l->forgot = 0;
        if (is_planted(OWN_TIME))
            l->own_age = 15;
    }
}

static void must_tell(struct world *w, unsigned c)
{
    forget_votes(w, c);
    for (unsigned m = 0; m < MASTERS; m++)
        w->links[c][m].is_pending = !w->links[c][m].is_clean;
}

/* Who has its place and its token on a majority may expect to be passed the lock in order. */
static void note_lines(struct world *w)
{
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *x = &w->clients[c];
        unsigned count = 0;

        for (unsigned m = 0; m < MASTERS; m++) {
            const struct place *p = &w->masters[m].places[c];

            count += x->ticket != 0 && p->number == x->ticket && p->waits;
        }
        x->in_line = x->phase == WAITING && count >= MAJORITY;
    }
}

static void end_hold(struct world *w, unsigned c)
{
    w->clients[c].phase = RELEASING;
    w->clients[c].left = 0;
    must_tell(w, c);
    note_lines(w);
}

/* Rules 4 and 5. */
static void give_back(struct world *w, unsigned c)
{
    struct client *x = &w->clients[c];

    forget_votes(w, c);
    for (unsigned m = 0; m < MASTERS; m++)
        w->links[c][m].back |= (uint16_t)(1u << x->token);
    x->in_line = 0;
    if (is_planted(SAME_TOKEN))
        x->held = 0;
    else
        x->token++;
}

static bool is_settled(const struct world *w, unsigned c)
{
    for (unsigned m = 0; m < MASTERS; m++)
        if (w->links[c][m].is_pending || w->links[c][m].back != 0)
            return false;
    return true;
}

static void join(struct world *w, unsigned c)
{
    struct client *x = &w->clients[c];

    x->phase = WAITING;
    x->token++;
    x->ticket = x->top = x->in_line = 0;
    for (unsigned m = 0; m < MASTERS; m++) {
        w->links[c][m].is_told = w->links[c][m].is_clean = 0;
        w->links[c][m].own_age = is_planted(OWN_TIME) ? 15 : 0;
    }
}

static void die(struct world *w, unsigned c)
{
    w->clients[c].phase = DEAD;
    w->clients[c].left = w->clients[c].in_line = 0;
    for (unsigned m = 0; m < MASTERS; m++) {
        struct link *l = &w->links[c][m], of_dead = {.request = l->request, .stray = l->stray};

        *l = of_dead;
    }
}

static void step_waiting(const struct world *w, unsigned c)
{
    struct world next = *w;

    if (w->clients[c].token < bounds.tokens) {
        give_back(&next, c);
        emit(&next, GIVES_BACK, c, 0, 0);
    }
    if (w->history.leaves < bounds.leaves) {
        next = *w;
        next.history.leaves++;
        next.clients[c].phase = LEAVING;
        next.clients[c].in_line = 0;
        must_tell(&next, c);
        emit(&next, LEAVES, c, 0, 0);
    }
}

static void step_client(const struct world *w, unsigned c)
{
    const struct client *x = &w->clients[c];
    struct world next = *w;

    if (x->phase == WAITING)
        step_waiting(w, c);
    if (x->phase == HOLDING) {
        end_hold(&next, c);
        emit(&next, RELEASES, c, 0, 0);
    }
    if ((x->phase == RELEASING || x->phase == LEAVING) && is_settled(w, c)) {
        next.clients[c].phase = GONE;
        emit(&next, IS_DONE, c, 0, 0);
    }
    if (x->phase == GONE && x->token < bounds.tokens && w->history.joins < bounds.joins &&
        is_settled(w, c)) {
        next.history.joins++;
        join(&next, c);
        emit(&next, JOINS, c, 0, 0);
    }
    if (x->phase != GONE && x->phase != DEAD && w->history.deaths < bounds.deaths) {
        next = *w;
        next.history.deaths++;
        die(&next, c);
        emit(&next, DIES, c, 0, 0);
    }
}

/* ---- Commands and messages ---- */

/* What the client may send to this master now.  Rule 4: first what is given back. */
static struct request next_request(const struct world *w, unsigned c, unsigned m)
{
    const struct client *x = &w->clients[c];
    const struct link *l = &w->links[c][m];
    struct request q = {NO_COMMAND, x->token & 15u, 0, 0};

    if (l->back != 0) {
        q.command = GIVE_BACK;
        q.token = (unsigned)__builtin_ctz(l->back) & 15u;
    } else if (l->is_pending) {
        q.command = x->phase == LEAVING ? LEAVE : RELEASE;
    } else if (x->phase == WAITING &&
               (bounds.beats == ANY_BEATS || w->history.beats < bounds.beats)) {
        q.command = HEARTBEAT;
        q.ticket = x->ticket & 15u;
    } else if (x->phase == HOLDING && bounds.extend && !l->is_clean) {
        q.command = EXTEND;
    }
    return q;
}

/* A heartbeat or an extension takes its time.  Nothing counts from the time of the others, so they
 * are sent, executed and answered in one step, at any time. */
static void step_send(const struct world *w, unsigned c, unsigned m)
{
    const struct request q = next_request(w, c, m);
    struct world next = *w;

    if (q.command == NO_COMMAND)
        return;
    if (q.command == HEARTBEAT || q.command == EXTEND) {
        next.links[c][m].request = q;
        next.history.beats += q.command == HEARTBEAT && bounds.beats != ANY_BEATS;
        emit(&next, SENDS, c, m, q.command);
        return;
    }
    handover_execute(&next, c, m, q, &next.links[c][m].answer);
    read_answer(&next, c, m);
    emit(&next, AT_ONCE, c, m, q.command);
    if (w->history.breaks < bounds.breaks) {
        next = *w;
        next.history.breaks++;
        next.clients[c].has_stray = 1;
        next.links[c][m].stray = q;
        emit(&next, CUT, c, m, q.command);
    }
}

/* A stray that is there already is never executed then. */
static void break_link(struct world *w, unsigned c, unsigned m)
{
    struct link *l = &w->links[c][m];

    w->history.breaks++;
    w->clients[c].has_stray = 1;
    if (l->request.command != NO_COMMAND)
        l->stray = l->request;
    memset(&l->request, 0, sizeof l->request);
    memset(&l->answer, 0, sizeof l->answer);
}

static void step_master(const struct world *w, unsigned c, unsigned m)
{
    const struct link *l = &w->links[c][m];
    struct world next = *w;
    struct answer answer;

    if (l->request.command != NO_COMMAND) {
        memset(&next.links[c][m].request, 0, sizeof l->request);
        handover_execute(&next, c, m, l->request, &answer);
        if (w->clients[c].phase != DEAD)
            next.links[c][m].answer = answer;
        emit(&next, EXECUTES, c, m, l->request.command);
    }
    if (l->stray.command != NO_COMMAND) {
        next = *w;
        memset(&next.links[c][m].stray, 0, sizeof l->stray);
        handover_execute(&next, c, m, l->stray, &answer);
        emit(&next, STRAYS, c, m, l->stray.command);
    }
}

static void step_link(const struct world *w, unsigned c, unsigned m)
{
    const struct link *l = &w->links[c][m];
    bool is_busy = l->request.command != NO_COMMAND || l->answer.reply != NO_REPLY;
    struct world next = *w;

    step_master(w, c, m);
    if (w->clients[c].phase == DEAD)
        return;
    if (!is_busy)
        step_send(w, c, m);
    if (l->answer.reply != NO_REPLY) {
        read_answer(&next, c, m);
        emit(&next, READS, c, m, l->answer.reply);
    }
    if (l->message.is_there) {
        next = *w;
        hear(&next, c, m);
        emit(&next, HEARS, c, m, 0);
    }
    if (l->message.is_there && w->history.lost < bounds.lost) {
        next = *w;
        next.history.lost++;
        memset(&next.links[c][m].message, 0, sizeof l->message);
        emit(&next, LOSES, c, m, 0);
    }
    if (is_busy && w->history.breaks < bounds.breaks) {
        next = *w;
        break_link(&next, c, m);
        emit(&next, BREAKS, c, m, 0);
    }
}

/* ---- Time and faults ---- */

#define OLDER(age) ((age) = ((age) < bounds.lease ? (age) + 1 : (age)) & 15u)

static void tick_master(struct world *w, struct master *m)
{
    if (m->left != 0 && --m->left == 0)
        handover_free(m);
    if (m->warms != 0 && --m->warms == 0) {
        w->history.epochs++;
        m->epoch = (w->history.epochs + 1) & 7u;
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct place *p = &m->places[c];

        if (p->number == 0)
            continue;
        OLDER(p->age);
        if (--p->left == 0) {
            memset(p, 0, sizeof *p);
            w->clients[c].in_line = 0;
        }
    }
}

static void tick_link(struct link *l)
{
    if (l->request.command != NO_COMMAND)
        OLDER(l->request.age);
    if (l->stray.command != NO_COMMAND)
        OLDER(l->stray.age);
    if (l->answer.reply != NO_REPLY)
        OLDER(l->answer.age);
    if (l->message.is_there)
        OLDER(l->message.age);
    if (l->yes)
        OLDER(l->age);
    if (is_planted(OWN_TIME))
        OLDER(l->own_age);
}

static void tick(const struct world *w)
{
    struct world next = *w;

    for (unsigned m = 0; m < MASTERS; m++)
        tick_master(&next, &next.masters[m]);
    for (unsigned c = 0; c < bounds.clients; c++) {
        struct client *x = &next.clients[c];

        for (unsigned m = 0; m < MASTERS; m++)
            tick_link(&next.links[c][m]);
        if (x->phase == HOLDING && x->left != 0)
            x->left--;
        if (x->phase == HOLDING && x->left == 0)
            end_hold(&next, c);
    }
    emit(&next, TICK, 0, 0, 0);
}

static void step_faults(const struct world *w, unsigned m)
{
    const struct master *x = &w->masters[m];
    struct world next = *w;

    if (bounds.slack && x->left == 1) { /* Clocks are not quite the same. */
        handover_free(&next.masters[m]);
        emit(&next, ENDS_EARLY, m, 0, 0);
    }
    if (w->history.forgets < bounds.forgets && w->history.epochs < 6) {
        next = *w;
        next.history.forgets++;
        handover_forget(&next, m);
        emit(&next, FORGETS, m, 0, 0);
    }
    if (w->history.revokes < bounds.revokes && x->owner != 0 && x->owner != REVOKED) {
        next = *w;
        next.history.revokes++;
        handover_revoke(&next, m);
        emit(&next, REVOKES, m, 0, 0);
    }
}

void handover_steps(const void *world)
{
    const struct world *w = world;

    tick(w);
    for (unsigned c = 0; c < bounds.clients; c++)
        step_client(w, c);
    for (unsigned c = 0; c < bounds.clients; c++)
        for (unsigned m = 0; m < MASTERS; m++)
            step_link(w, c, m);
    for (unsigned m = 0; m < MASTERS; m++)
        step_faults(w, m);
}
