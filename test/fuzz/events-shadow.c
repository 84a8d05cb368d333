/*
 * events-shadow.c - the shadow of fuzz-events, which checks the machine.
 *
 * The shadow keeps its own books, only from the commands sent and the answers received.
 * After every step:
 *
 *  - the lock is held only with a majority of yes in each list, for its token, to one ask, from
 *    links that stand;
 *  - it is held until the deadline that follows from the first command of that ask, and an
 *    extension never makes the deadline earlier;
 *  - a lock that was held and is not any more is never held again;
 *  - commands go to masters that are up; SET, with a token never used before, goes to those
 *    that owe nothing and store nothing; EXTEND has the live token, RELEASE a dead one;
 *  - GIVE has the live token, and goes to masters that joined since the round began; with an
 *    adopted token, only after a majority of the old list extended it;
 *  - or, when an extension is won, to masters that lack it, were not asked in this extension, and
 *    are not barred; never with an adopted token, and its answer counts for nothing;
 *  - an operation ends once, with one of its outcomes; the lost notice comes once;
 *  - an operation that has not ended has an alarm, or waits for a link;
 *  - an alarm is not set again and again to ring at once;
 *  - a machine that has settled does nothing any more;
 *  - a twin that clears what cannot matter (alike.h) does the same.
 */
#include "events.h"

#include <stdlib.h>

#include "../lib/alike.h"
#include "../lib/story.h"

static drift_time deadline_of(const struct world *w, drift_time sent, drift_span lease)
{
    drift_span lost = events_allowance(w, lease);

    return lost < lease ? sent + lease - lost : sent;
}

/* ---- The shadow's books ---- */

static void book_set(struct world *w, struct master *master, const struct quorum_send *send,
                     uint32_t token)
{
    MUST(master->queue_len == 0);
    MUST(!master->in_doubt || (w->config.stands && master->asked == token));
    master->asked = token;
    if (send->ask != w->ask) {
        MUST(token > w->newest);
        w->newest = w->live = token;
        w->ask = send->ask;
        w->ask_sent = w->now;
        w->rounds++;
        w->ask_lease = w->config.lease;
        w->ask_yes = w->fresh = 0;
        for (unsigned m = 0; m < w->masters_len; m++)
            w->masters[m].barred = false;
    }
    MUST(token == w->live);
    master->in_doubt = true;
    master->undone = false;
}

static void book_extend(struct world *w, const struct quorum_send *send, uint32_t token)
{
    MUST(token == w->live);
    if (send->ask == w->ask)
        return;
    w->ask = send->ask;
    w->ask_sent = w->now;
    w->ask_lease = w->q.lease;
    w->ask_yes = 0;
}

/* No answer to it counts.  An extension that failed at once may have sent what counts, to masters
 * that joined. */
static bool is_gift(const struct world *w, const struct quorum_send *send)
{
    return send->ask != w->ask && w->q.state == QUORUM_HELD && decides(w, w->ask_yes);
}

static void book_gift(const struct world *w, const struct master *master)
{
    MUST(!w->is_adopted && w->has_been_held);
    MUST(!master->barred && master->ask != w->ask);
}

/* Returns true if it is a gift.  A release has a number, too.  So a GIVE that is sent while an
 * extension goes on may have another number than that. */
static bool book_give(struct world *w, unsigned m, const struct quorum_send *send, uint32_t token,
                      bool goes_on)
{
    struct master *master = &w->masters[m];

    MUST(master->queue_len == 0 && !master->in_doubt);
    MUST(token == w->live);
    master->in_doubt = true;
    master->undone = false;
    master->asked = token;
    if (is_gift(w, send)) {
        book_gift(w, master);
        return true;
    }
    MUST(w->fresh & w->members.to & 1u << m || w->fresh & w->members.from & 1u << m);
    if (!goes_on || w->ask == 0)
        book_extend(w, send, token);
    master->ask = w->ask;
    MUST(w->has_been_held || is_majority(w->members.from, w->ask_yes));
    return false;
}

static void book_send(struct world *w, const struct quorum_send *send, bool goes_on)
{
    MUST(send->to != 0 && send->to >> w->masters_len == 0);
    for (unsigned m = 0; m < w->masters_len; m++) {
        struct master *master = &w->masters[m];
        uint32_t token = w->q.round_of[m];
        bool is_gift = false;

        if (!(send->to & 1u << m))
            continue;
        MUST(events_take(master) || (w->act.send_len >= 2 && master->queue_len < QUEUE_MAX));
        MUST(master->up && !master->full);
        switch (send->command) {
        case QUORUM_CMD_SET:
            book_set(w, master, send, token);
            break;
        case QUORUM_CMD_EXTEND:
            book_extend(w, send, token);
            master->ask = send->ask;
            break;
        case QUORUM_CMD_GIVE:
            is_gift = book_give(w, m, send, token, goes_on);
            break;
        case QUORUM_CMD_RELEASE:
            MUST(master->in_doubt);
            master->undone = true;
            break;
        case QUORUM_CMD_FENCE:
        case QUORUM_CMD_RAISE:
            MUST(false);
        }
        master->queue[master->queue_len++] =
            (struct item){send->ask,
                          token,
                          is_gift ? 0 : w->ask,
                          send->command,
                          QUORUM_VOTE_NONE,
                          quorum_span(&w->q, send->command, w->now),
                          w->now,
                          w->rounds};
    }
}

/* Update the deadline after a yes: it may begin a hold, or make it longer. */
static void book_hold(struct world *w)
{
    drift_time deadline = deadline_of(w, w->ask_sent, w->ask_lease);

    if (w->deadline != 0 && w->now >= w->deadline)
        return; /* Too late for any extension. */
    if (!decides(w, w->ask_yes) || w->now >= deadline)
        return;
    if (deadline > w->deadline)
        w->deadline = deadline;
}

void shadow_answer(struct world *w, unsigned m, const struct item *item)
{
    struct master *master = &w->masters[m];
    quorum_mask from = (quorum_mask)(1u << m);
    bool is_latest = master->queue_len == 0;
    bool waits = w->config.stands && item->command == QUORUM_CMD_SET; /* And may be granted. */
    bool is_no = item->vote == QUORUM_VOTE_NO && item->command != QUORUM_CMD_GIVE; /* Rule 14. */

    if (is_latest && !waits &&
        (item->command == QUORUM_CMD_RELEASE || is_no ||
         (item->vote == QUORUM_VOTE_NONE &&
          (item->command == QUORUM_CMD_SET || item->command == QUORUM_CMD_GIVE))))
        master->in_doubt = false;
    master->barred |= is_latest && events_is_revoked(item);
    if (item->command == QUORUM_CMD_RELEASE && item->vote == QUORUM_VOTE_YES &&
        item->token == w->releasing)
        w->released |= from;
    if (is_latest && item->command == QUORUM_CMD_SET && item->vote != QUORUM_VOTE_YES)
        w->ask_yes &= (quorum_mask)~from; /* What it granted before is taken back. */
    if (item->command == QUORUM_CMD_SET &&
        (w->q.state == QUORUM_PAUSING || w->q.state == QUORUM_CONNECTING ||
         item->round < w->rounds))
        return; /* It answers a round that is over.  The next one asks with the same token. */
    if (item->command != QUORUM_CMD_RELEASE && item->vote == QUORUM_VOTE_YES &&
        item->of == w->ask && item->of != 0 && item->token == w->live)
        w->ask_yes |= from;
    book_hold(w);
}

void shadow_grant(struct world *w, unsigned m, const struct item *item)
{
    bool asks = w->q.state == QUORUM_ACQUIRING || w->q.state == QUORUM_PAUSING;

    if (!asks || !w->masters[m].in_doubt || !(members_all(&w->members) & 1u << m) ||
        w->now >= deadline_of(w, item->sent, item->lease))
        return;
    if (item->sent < w->ask_sent)
        w->ask_sent = item->sent;
    w->ask_yes |= (quorum_mask)(1u << m);
    book_hold(w);
}

/* The next round asks with the same token.  Without a vote that was granted meanwhile its lease
 * counts from now.  With such votes it may be won at once: a change of the list can make a majority
 * of them while the client pauses. */
static void book_round(struct world *w, const struct quorum *before,
                       const struct quorum_event *event)
{
    bool is_won =
        before->state == QUORUM_PAUSING && is_held(&w->q) && event->type != QUORUM_EV_GRANT;

    if (before->state == QUORUM_ACQUIRING || w->q.round != w->live)
        return;
    if (w->q.state != QUORUM_ACQUIRING && !is_won)
        return;
    w->rounds++;
    if (w->ask_yes == 0)
        w->ask_sent = w->now;
    book_hold(w);
}

static bool extends(const struct quorum *q)
{
    return q->state == QUORUM_EXTENDING || q->state == QUORUM_PROVING;
}

/* The extension that was under way is neither over nor replaced. */
static bool goes_on(const struct quorum *before, const struct quorum_event *event)
{
    bool is_over = event->type == QUORUM_EV_TIMER && event->now >= before->timeout;

    return extends(before) && !is_over && event->type != QUORUM_EV_EXTEND;
}

/* An extension may begin while no master can be asked.  Its ask is then that of the first GIVE. */
static void book_beginning(struct world *w, const struct quorum *before,
                           const struct quorum_event *event)
{
    bool begins = !goes_on(before, event) && extends(&w->q);

    for (unsigned i = 0; i < w->act.send_len; i++)
        begins &= w->act.send[i].command != QUORUM_CMD_EXTEND &&
                  w->act.send[i].command != QUORUM_CMD_GIVE;
    if (!begins)
        return;
    w->ask = 0;
    w->ask_yes = 0;
}

/* ---- After every step ---- */

static void check_hold(struct world *w, const struct quorum *before)
{
    drift_span remaining = quorum_remaining(&w->q, w->now);

    if (is_held(before) && before->deadline <= w->now)
        MUST(!is_held(&w->q));
    if (!is_held(&w->q)) {
        MUST(remaining == 0);
        w->deadline = 0;
        return;
    }
    if (!is_held(before))
        MUST(!w->has_been_held); /* A lost lock does not come back. */
    w->has_been_held = true;
    MUST(remaining > 0 && w->now < w->deadline && remaining <= w->deadline - w->now);
    w->deadline = w->now + remaining; /* A round counts from before its first send. */
    if (is_held(before))
        MUST(w->q.deadline >= before->deadline);
}

static void check_end(struct world *w)
{
    int status = w->act.status;

    MUST(w->op != OP_NONE);
    switch (w->op) {
    case OP_NONE:
        break;
    case OP_LOCK:
        MUST(status == REDLOCK_OK || status == REDLOCK_CONTENDED || status == REDLOCK_UNREACHABLE ||
             status == REDLOCK_TOO_LATE);
        MUST((status == REDLOCK_OK) == is_held(&w->q));
        MUST(is_held(&w->q) || w->q.state == QUORUM_IDLE);
        break;
    case OP_EXTEND:
        MUST(status == REDLOCK_OK || status == REDLOCK_UNREACHABLE || status == REDLOCK_TOO_LATE ||
             status == REDLOCK_LOST);
        MUST(status != REDLOCK_OK || is_held(&w->q));
        break;
    case OP_RELEASE:
        MUST(status == REDLOCK_OK || status == REDLOCK_UNREACHABLE || status == REDLOCK_LOST);
        /* Members that joined may never have stored the token (quorum.c, rule 11). */
        MUST(status != REDLOCK_OK || is_majority(w->members.from, w->released));
        MUST(w->q.state == QUORUM_IDLE);
        break;
    }
    w->op = OP_NONE;
}

/* Without an alarm, an operation may wait only for a link, or, with an endless wait, for a
 * QUORUM_EV_WAKE (the waiter of redlock/line has an alarm of its own). */
static void check_alarm(const struct world *w)
{
    bool sleeps = w->q.state == QUORUM_PAUSING && w->config.wait == DRIFT_NEVER;

    if (w->act.wake_at != DRIFT_NEVER || w->op == OP_NONE)
        return;
    MUST(w->q.state == QUORUM_CONNECTING || sleeps);
}

static void tell(const struct world *w, const struct quorum *before,
                 const struct quorum_event *event, drift_time wake_before)
{
    char at[48], what[64], did[256];

    if (getenv("FUZZ_TELL") == NULL)
        return;
    fprintf(stderr, "%18s  %-18s -> %s\n", story_time(w->now, START, at, sizeof at),
            story_event(event, w->masters[event->master].up, what, sizeof what),
            story_tell(before, &w->q, &w->act, wake_before, START, did, sizeof did));
}

/* The same command, with the same token and lease. */
static void check_alike(const struct world *w, const struct quorum_send *a,
                        const struct quorum_send *b)
{
    MUST(a->command == b->command && a->to == b->to && a->ask == b->ask);
    MUST(a->command == QUORUM_CMD_RELEASE || w->twin.lease == w->q.lease);
    for (unsigned m = 0; m < w->masters_len; m++)
        MUST(!(a->to & 1u << m) || w->twin.round_of[m] == w->q.round_of[m]);
}

static void step_twin(struct world *w, const struct quorum_event *event)
{
    struct quorum_actions act;

    alike_forget(&w->twin, w->now);
    quorum_step(&w->twin, event, &act);
    MUST(act.send_len == w->act.send_len);
    for (unsigned i = 0; i < act.send_len; i++)
        check_alike(w, &act.send[i], &w->act.send[i]);
    MUST(act.lost == w->act.lost && act.ended == w->act.ended && act.status == w->act.status);
    MUST(act.wake_at == w->act.wake_at || (act.wake_at <= w->now && w->act.wake_at <= w->now));
    MUST(quorum_remaining(&w->twin, w->now) == quorum_remaining(&w->q, w->now));
    MUST(quorum_may_extend(&w->twin) == quorum_may_extend(&w->q));
    for (unsigned m = 0; m < w->masters_len; m++)
        MUST(quorum_cares(&w->twin, m) == quorum_cares(&w->q, m) &&
             quorum_must_release(&w->twin, m) == quorum_must_release(&w->q, m));
}

static void check_settled(const struct world *w)
{
    MUST(quorum_is_settled(&w->q) && w->act.wake_at == DRIFT_NEVER);
    MUST(w->act.send_len == 0 && !w->act.lost && !w->act.ended);
}

void shadow_step(struct world *w, struct quorum_event *event)
{
    struct quorum before = w->q;
    drift_time wake_before = w->act.wake_at;

    event->now = w->now;
    event->members = w->members;
    event->up = event->coming = 0;
    for (unsigned m = 0; m < w->masters_len; m++) {
        event->up |= (quorum_mask)(events_take(&w->masters[m]) ? 1u << m : 0);
        event->coming |= (quorum_mask)(w->masters[m].coming ? 1u << m : 0);
    }
    quorum_step(&w->q, event, &w->act);
    tell(w, &before, event, wake_before);
    step_twin(w, event);
    if (before.ask > 0 && quorum_is_settled(&before))
        check_settled(w);
    book_round(w, &before, event);
    MUST(w->act.send_len <= QUORUM_SENDS_MAX);
    for (unsigned i = 0; i < w->act.send_len; i++) {
        MUST(!w->is_detached);
        book_send(w, &w->act.send[i], goes_on(&before, event));
    }
    book_beginning(w, &before, event);
    for (unsigned i = 0; i < w->act.send_len; i++)
        for (unsigned m = 0; m < w->masters_len; m++)
            if (w->act.send[i].command == QUORUM_CMD_RELEASE && (w->act.send[i].to & 1u << m))
                MUST(w->q.round == 0 || w->q.round_of[m] != w->q.round);
    if (w->act.lost) {
        MUST(!w->was_told && is_held(&before));
        w->was_told = true;
    }
    if (w->act.ended)
        check_end(w);
    if (w->q.round != w->live) /* The token is dead, or no master was asked in the round yet. */
        w->live = 0;
    check_hold(w, &before);
    check_alarm(w);
}

/* It may store a token of an earlier round, and not that of the hold. */
static bool may_store_live(const struct world *w, const struct master *master)
{
    return master->in_doubt && !master->undone && master->asked == w->live;
}

/* Masters of the second list that may be given the token of a hold, so that a majority of it stores
 * the token: they need not have joined with this change. */
static quorum_mask may_lack(const struct world *w)
{
    quorum_mask masters = 0;

    if (w->deadline == 0 || w->members.from == w->members.to)
        return 0;
    for (unsigned m = 0; m < w->masters_len; m++)
        if (w->members.to & 1u << m && !may_store_live(w, &w->masters[m]))
            masters |= (quorum_mask)(1u << m);
    return masters;
}

void shadow_change(struct world *w, struct members members, quorum_mask left)
{
    struct quorum_event event = {
        .type = QUORUM_EV_CHANGE,
        .joined = members_all(&members) & (quorum_mask)~members_all(&w->members),
        .left = left,
    };

    w->members = members;
    w->ask_yes &= (quorum_mask)~left;
    w->released &= (quorum_mask)~left;
    w->fresh = (w->fresh | event.joined | may_lack(w)) & (quorum_mask)~left;
    for (unsigned m = 0; m < w->masters_len; m++) {
        if (!w->is_adopted || w->q.round == 0 || !(event.joined & 1u << m))
            continue;
        w->masters[m].in_doubt = true; /* It may store the adopted token, too. */
        w->masters[m].asked = w->live;
        w->masters[m].excused &= w->masters[m].stored != w->live || w->masters[m].late;
    }
    book_hold(w);
    shadow_step(w, &event);
}
