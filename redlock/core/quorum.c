/*
 * quorum.c - the machine: events in, actions out; pure.
 *
 * The file is longer than others, because it is one machine: every event in every
 * state.  A reader must see all of them in one place to check a rule.
 *
 * The rules, each next to the code that keeps it:
 *
 *  1. A lease counts from before its first byte was sent (begin_round).
 *  2. The deadline is tested before a vote is counted.  After a pause of the process, the
 *     kernel delivers old answers first (quorum_step).
 *  3. A round is won the moment a majority said yes, and lost the moment a majority can no
 *     longer do so.  No round waits for the remaining answers (judge_round).  Exception: a
 *     round that lost, and may move to another permit (rule 9), waits as long again
 *     (await_rest).
 *  4. Every master that may store the token of a dead round, and can be sent a command, gets
 *     a release, once per connection; if it may not vote, only when no token is live (settle).
 *     Every failure ends by declaring the round dead; settle does the rest.
 *  5. A master is asked as soon as its link is up and it owes us no answer.  So at most one
 *     token of ours is in doubt on any master (ask_for_lock).
 *  6. An extension never shortens a lease.  The script does not, so the deadline must not
 *     move back either (judge_extension).
 *  7. After the lost notice, nothing makes the lease longer (tell_lost).
 *  8. A fencing token is a number that a majority counted to for this round (agreed).  No
 *     master counts to one number twice, and two majorities share a master.  So no other
 *     client has the number, whatever clocks do.  An earlier holder has a smaller number,
 *     because the shared master counted to that one first.
 *  9. A round for a permit asks for one slot.  If it loses, and at least half of the masters
 *     that refuse know a slot that may be free, the next round asks for another slot at once.
 *     It does so a few times (is_elsewhere).
 * 10. A token of several names may be stored under some of them only.  So a master that refuses to
 *     extend it, or to raise the counters, no longer counts as a holder, and gets a release
 *     (on_refusal).  The answer to that release does not count as one to the extension (on_reply).
 *     A hold relies on the majority that granted it, or that extended all names to the deadline or
 *     beyond.  If this master is one of them, it may be needed for the names that it still stores.
 *     So the release waits until the hold relies on others, or has ended (judge_extension,
 *     bury_round).  Likewise if it may be given the token for a change (rule 11): it refuses that
 * if it stores some of the names.  Else it gets the token back only after the release.  So while
 *     the set changes, a majority that needs a master with some names cannot extend the hold.
 *     An adopted token gets no such release, and none when it is lost (is_anothers): another
 *     process may count on what is left of it, until a deadline that we do not know.  Only the
 *     caller releases it, by RELEASE or CANCEL.
 * 11. When the members change:
 *     - Votes that were given still count, and the new lists count them.  Fencing numbers do not
 *       count (spoil_numbers).
 *     - A hold keeps its deadline.  Its next extension gives the token to members that joined, and
 *       to members of the new list that do not store it (ask_to_give).  That is safe: the hold
 *       ends at its deadline (rule 2), and until then no other client has a majority.  They
 *       store it until the deadline at least, also if the extension asks for less (quorum_span).
 *     - Removed masters get releases, and no extension.
 *     - An adopted token is given only when a majority of the old list has extended it.  Otherwise
 *       the extension would take a lock that nobody holds.  Until then only the new members of a
 *       joint configuration count as joined: a client that first hears of the set learns of all
 *       members at once, and they may store the token already.
 *     - A release reports no loss if a majority of the old list stored the token: the lease may
 *       have been granted before the change (shows_hold).
 * 12. A token is lost when so many masters said no that no majority can store it.  An
 *     extension or a release that has failed still waits, until its timeout, for answers that
 *     may show that the token is lost (may_be_lost).  A renewal does not wait: no caller needs
 *     its status, and late answers end the hold, too.
 * 13. A token that *stands* waits at the masters between two rounds (core/place.h), and a
 *     release may grant it there (on_grant).  The next round asks with the same token, and all
 *     votes for it add up.  The lease counts from before the oldest request that any of them
 *     answers (rule 1).  A token that too few masters granted by the end of a round is dead
 *     (stands), and so is one whose answers came too late for two rounds.  It is released where it
 *     may wait, and a master is asked with another token only when it has confirmed that (rules 4
 *     and 5).
 *     - All rounds of a token have one number, so only the bit owing tells their answers apart.  A
 *       LINK event clears it, also where the link stands and only the right to vote has changed.
 *       Then an answer that is owed could be taken for one to the next round, whose lease counts
 *       from later than its request.  So between two rounds such an event ends the token.  Another
 *       is asked for soon, because this one leaves the queues.  In a round the master is not asked
 *       any more, and the token ends with the round if that is not won (on_link).
 *     - A master that grants the token, and then does not say yes to a request, takes its grant
 *       back: it may have lost the token in between (take_back).
 * 14. Each extension that a majority of stored tokens has won gives the token to masters that lack
 *     it (give_back): a hold of weeks keeps its votes while one master after the other restarts.
 *     - The gift is no vote.  Only a later extension counts that master, because it finds the token
 *       there.  So the argument for extensions stays as it is.
 *     - It goes to masters that were known to lack the token before this extension was sent.  Let
 *       an operator's text replace the token on a majority.  A master of it that says no after
 *       that lacks the token for good, because no extension that is sent later is won.
 *     - A master that showed the text, or may have stored it before a raise, is barred: it said no
 *       before the text had reached a majority.
 *     - A master is barred, too, if its link broke before it answered a command that stores or
 *       deletes this token.  That one may still come.  A release (rule 10) would delete what an
 *       extension counts then.  A SET or GIVE would store what was released or revoked meanwhile.
 *     - An adopted token is not given: other processes that have it would not release it there.
 */
#include "redlock/core/quorum.h"

#include <assert.h>
#include <string.h>

#define PAUSE_LEAST DRIFT_MS /* Chosen: the unit in which pauses are configured. */

/* A lock of which this part of the lease is spent when it is granted is extended at once.  Chosen:
 * a caller that does not renew hardly notices less. */
#define SPENT 8

/* The context of one step; saves passing three arguments around. */
struct step {
    struct quorum *q;
    const struct quorum_event *ev;
    struct quorum_actions *act;
    bool goes_on; /* The round was lost, and the next one begins at once. */
};

static unsigned count(quorum_mask mask)
{
    return mask_count(mask);
}

static quorum_mask everyone(const struct step *s)
{
    return members_all(&s->ev->members);
}

/* Redlock rests on this: any two sets of masters that decide share a master. */
static bool decide(const struct step *s, quorum_mask votes)
{
    return members_decide(&s->ev->members, votes);
}

/* Rule 11: every lock that is held is stored by a majority of the old list.  A lease that was
 * granted before the change needs no other. */
static bool shows_hold(const struct step *s, quorum_mask stored)
{
    return members_is_majority(s->ev->members.from, stored);
}

static drift_time earlier(drift_time a, drift_time b)
{
    return a < b ? a : b;
}

static drift_time later(drift_time a, drift_time b)
{
    return a > b ? a : b;
}

/* Masters that may store the token that is held or being asked for.  Tokens that other masters
 * may store are of dead rounds: they must not be extended or relied on. */
static quorum_mask holders(const struct quorum *q)
{
    return q->may_hold & q->live;
}

/* A master that may not vote any more, as when the list turns out to be wrong, may store a token
 * for which it was asked before.  While a token is live, a release waits until its master may vote
 * again: rule 14 would bar a master that gets its vote back before it has answered. */
static quorum_mask takes_release(const struct step *s)
{
    return s->ev->up | (s->q->live == 0 ? s->ev->linked : 0);
}

static void send(struct step *s, enum quorum_command command, quorum_mask to, uint32_t ask)
{
    bool decides_key = command != QUORUM_CMD_EXTEND && command != QUORUM_CMD_RAISE;
    struct quorum *q = s->q;

    if (to == 0)
        return;
    assert(s->act->send_len < QUORUM_SENDS_MAX);
    assert((to & ~(command == QUORUM_CMD_RELEASE ? takes_release(s) : s->ev->up)) == 0);
    s->act->send[s->act->send_len++] = (struct quorum_send){command, to, ask};
    for (unsigned m = 0; to >> m != 0; m++) {
        if (!(to & mask_of(m)))
            continue;
        q->ask_of[m] = ask;
        if (decides_key && q->round_of[m] == q->round)
            q->deciding |= mask_of(m);
    }
    q->owing |= to;
}

static void end(struct step *s, enum quorum_state next, int status)
{
    s->q->state = next;
    s->act->ended = true;
    s->act->status = status;
}

/* Rule 11.  Masters count in whole milliseconds, and the caller's leases are such. */
drift_span quorum_span(const struct quorum *q, enum quorum_command command, drift_time now)
{
    drift_span left = 0;

    if (command == QUORUM_CMD_GIVE && quorum_is_held(q))
        left =
            drift_to_ms_up(drift_lease(drift_until(now, q->deadline), &q->config.drift)) * DRIFT_MS;
    return left > q->lease ? left : q->lease;
}

/*
 * At settle_by, everything asked for so far has expired on every master that obeyed
 * at once.  A master that hung may obey later.  It then gets a release if its link
 * still stands.
 */
static void asked_until(struct step *s, enum quorum_command command)
{
    struct quorum *q = s->q;
    drift_span lease = quorum_span(q, command, s->ev->now);
    /* A token waits no longer than a lease before it is granted: see options.c. */
    drift_span span = q->config.stands ? drift_add(lease, lease) : lease;
    drift_span allowance = drift_allowance(span, &q->config.drift);

    q->settle_by = later(q->settle_by, drift_add(s->ev->now, drift_add(span, allowance)));
}

/* Masters that still owe an answer over a link that stands, and that could not take a release
 * because their queue was full.  What they do late must be undone then. */
static quorum_mask untold(const struct quorum *q)
{
    return q->may_hold & q->owing & (quorum_mask)~q->releasing;
}

/* Rule 10: the token may be another process' as well, and the caller has not given it up. */
static bool is_anothers(const struct quorum *q)
{
    return q->adopted && q->state != QUORUM_RELEASING && q->state != QUORUM_IDLE;
}

/* Masters that may store a token of no use, and were sent no release on this connection. */
static quorum_mask to_release(const struct quorum *q)
{
    return q->may_hold & (quorum_mask) ~(q->live | q->relied | q->releasing);
}

/* Rule 4. */
static void settle(struct step *s)
{
    struct quorum *q = s->q;
    quorum_mask to = to_release(q);

    if (to == 0) /* Nearly always. */
        return;
    to &= takes_release(s);
    if (to == 0 || is_anothers(q))
        return;
    send(s, QUORUM_CMD_RELEASE, to, ++q->ask);
    q->releasing |= to;
}

static void forget_ask(struct quorum *q)
{
    q->asked = q->yes = q->none = 0;
    q->elsewhere = 0;
    q->decided = false;
}

/* From here on, the only use of the token is its release (settle). */
static void bury_round(struct quorum *q)
{
    q->round = 0;
    q->live = 0;
    q->deciding = q->barred = q->relied = 0;
    q->late = false;
    q->deadline = 0;
}

/* A random time between two attempts, so that rivals get out of step.  It is never zero: without
 * a majority each attempt fails at once, and would spin. */
static drift_span pause_between(const struct step *s)
{
    const struct quorum_config *config = &s->q->config;
    drift_span range = config->pause_max - config->pause_min;
    /* random has 32 bits: in microseconds it covers 71 minutes. */
    drift_span pause = config->pause_min + (drift_span)s->ev->random * 1000 % (range + 1);

    return pause > PAUSE_LEAST ? pause : PAUSE_LEAST;
}

/* ---- Acquiring ---- */

/* Rule 5.  Called at the start of a round, and again at each event in it. */
static void ask_for_lock(struct step *s)
{
    struct quorum *q = s->q;
    quorum_mask storing = q->config.stands ? q->may_hold & (quorum_mask)~q->live : q->may_hold;
    quorum_mask busy = q->asked | q->owing | storing;
    quorum_mask to = s->ev->up & everyone(s) & (quorum_mask)~busy;

    if (to == 0 || (q->config.fence && decide(s, q->yes)))
        return; /* A majority said yes.  Next, their counters must agree. */
    for (unsigned m = 0; to >> m != 0; m++)
        if (to & mask_of(m))
            q->round_of[m] = q->round;
    q->live |= to;
    q->may_hold |= to;
    q->asked |= to;
    send(s, q->config.fence ? QUORUM_CMD_FENCE : QUORUM_CMD_SET, to, q->round);
    asked_until(s, QUORUM_CMD_SET);
}

/* Masters from which a yes may still come in this round. */
static quorum_mask awaited(const struct step *s)
{
    const struct quorum *q = s->q;
    quorum_mask answering = q->asked & q->owing & (quorum_mask)~q->none;
    quorum_mask unasked = everyone(s) & (quorum_mask)~q->asked;

    return answering | (unasked & (s->ev->coming | (s->ev->up & q->owing)));
}

/* Rule 9: whether at least half of the masters that refuse know of another choice that may be
 * free.  Not all need to know: a master that missed a release sees that slot as taken until its
 * key ends, and may report none. */
static bool is_elsewhere(const struct quorum *q)
{
    quorum_mask no = q->asked & (quorum_mask) ~(q->yes | q->none | q->owing);

    return q->elsewhere != 0 && 2u * q->elsewhere >= count(no) && q->detours > 0;
}

/* Rule 13: whether the token of a round that is lost goes on waiting.  Not if a master has granted
 * it, or may have: other waiters need that vote. */
static bool stands(const struct step *s, int status)
{
    const struct quorum *q = s->q;
    quorum_mask in_doubt = q->asked & q->none & q->may_hold;

    return q->config.stands && status != REDLOCK_TOO_LATE && s->ev->now < quorum_give_up(q) &&
           q->yes == 0 && in_doubt == 0 && !q->late;
}

/* The round is dead.  Try again while there is time, or end. */
static void lose_round(struct step *s, int status)
{
    struct quorum *q = s->q;

    s->goes_on = status == REDLOCK_CONTENDED && is_elsewhere(q);
    q->contended = status == REDLOCK_CONTENDED;
    s->act->failed = q->none;
    if (!stands(s, status))
        bury_round(q);
    forget_ask(q);
    if (s->goes_on) { /* Until the step ends. */
        q->state = QUORUM_PAUSING;
        return;
    }
    if (s->ev->now >= quorum_give_up(q)) {
        end(s, QUORUM_IDLE, status);
        return;
    }
    q->timeout = earlier(drift_add(s->ev->now, pause_between(s)), quorum_give_up(q));
    q->state = QUORUM_PAUSING;
}

/*
 * When to give the holder the lost notice.  It is given lost_margin before the
 * deadline, but never in the first half of the lease.  It is set when the hold is
 * confirmed, so an extension that fails does not change it.
 */
static drift_time lost_at(const struct quorum *q)
{
    drift_span half = drift_until(q->sent, q->deadline) / 2;
    drift_span margin = q->config.lost_margin < half ? q->config.lost_margin : half;

    return q->deadline - margin;
}

/* Renew when a third of the lease is spent.  If the allowance or the margin is large, renew
 * halfway to the lost notice instead, when that is earlier.  After an extension by less than what
 * was left, the lease is what was left. */
static void hold(struct step *s)
{
    struct quorum *q = s->q;
    drift_span left = drift_until(q->sent, q->deadline);
    drift_span third = (q->lease > left ? q->lease : left) / 3, half;

    q->lost_at = lost_at(q);
    half = drift_until(q->sent, q->lost_at) / 2;
    q->timeout = DRIFT_NEVER;
    if (q->config.renew)
        q->timeout = drift_add(q->sent, third < half ? third : half);
    q->state = QUORUM_HELD;
    forget_ask(q);
}

static void begin_extension(struct step *s, enum quorum_state state);

/* token: the fencing token; 0: none is wanted. */
static void win_round(struct step *s, uint64_t token)
{
    struct quorum *q = s->q;

    if (token != 0)
        s->ev->fence->token = token;
    q->since = s->ev->now;
    q->relied = q->yes;
    hold(s);
    end(s, QUORUM_HELD, REDLOCK_OK);
    /* Rule 13: part of the lease is spent when a token that waited is granted. */
    if (q->config.stands && drift_until(q->sent, s->ev->now) >= q->lease / SPENT)
        begin_extension(s, QUORUM_EXTENDING);
}

/* Rule 9.  Give the other masters as much time again as the answers so far took.  A master that
 * has not answered is not asked in the next round.  A lock that only a bare majority stores is
 * easily lost. */
static void await_rest(struct step *s)
{
    struct quorum *q = s->q;
    drift_span took = drift_until(q->sent, s->ev->now);

    if (!q->decided)
        q->timeout = earlier(q->timeout, drift_add(s->ev->now, took));
    q->decided = true;
}

static void draw_fence(struct step *s);

/* Rule 3. waiting: masters whose yes may still come. */
static void judge_round(struct step *s, quorum_mask waiting)
{
    struct quorum *q = s->q;
    quorum_mask no = q->asked & (quorum_mask) ~(q->yes | q->none | q->owing);

    if (decide(s, q->yes)) {
        if (s->ev->now >= q->deadline) {
            lose_round(s, REDLOCK_TOO_LATE);
            return;
        }
        if (q->config.fence)
            draw_fence(s);
        else
            win_round(s, 0);
    } else if (!decide(s, q->yes | waiting)) {
        /* If enough masters answered, or still can, other clients hold the lock. */
        bool answered = decide(s, q->yes | no | waiting);

        if (answered && waiting != 0 && is_elsewhere(q))
            await_rest(s);
        else
            lose_round(s, answered ? REDLOCK_CONTENDED : REDLOCK_UNREACHABLE);
    }
}

/* Rule 1: sent is the time of this event, read before anything is sent. */
static void begin_round(struct step *s)
{
    struct quorum *q = s->q;

    quorum_mask granted = q->round != 0 ? q->yes : 0; /* Rule 13. */

    forget_ask(q);
    q->yes = granted;
    q->fresh = 0;
    if (!decide(s, s->ev->up | s->ev->coming)) {
        lose_round(s, REDLOCK_UNREACHABLE); /* Do not send requests for a round that cannot win. */
        return;
    }
    if (q->round == 0)
        q->round = ++q->ask;
    if (granted == 0)
        q->sent = s->ev->now;
    q->lease = q->config.lease;
    if (q->config.fence) {
        s->ev->fence->counter = 0;
        s->ev->fence->raises = 0;
        s->ev->fence->stale = 0;
    }
    q->deadline = drift_deadline(q->sent, q->lease, &q->config.drift);
    q->timeout = drift_add(s->ev->now, q->config.reply_timeout);
    q->state = QUORUM_ACQUIRING;
    ask_for_lock(s);
    judge_round(s, awaited(s));
}

/* Rule 9. */
static void go_on(struct step *s)
{
    s->q->detours--;
    begin_round(s);
}

/* ---- Fencing tokens ---- */

/* Each raise asks for four times as much as the last, up to this many; then the step stays the
 * same.  Rivals do not count to 1024 in a round trip, and numbers must not run ahead of the
 * clock. */
#define RAISES_MAX 5

#define FAR_BEHIND UINT8_MAX /* This far behind, or farther: the master agrees with none. */

/* behind is stored in bytes, not as full numbers.  A majority that agrees is this close to the
 * greatest number, or is brought there.  A master whose number is unkept counts as FAR_BEHIND:
 * it agrees with none. */
static void note_counter(struct step *s, unsigned master, uint64_t counter)
{
    struct quorum_fence *fence = s->ev->fence;
    uint64_t gap = counter > fence->counter ? counter - fence->counter : 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX && gap > 0; m++)
        fence->behind[m] = gap < (uint64_t)(FAR_BEHIND - fence->behind[m])
                               ? (uint8_t)(fence->behind[m] + gap)
                               : FAR_BEHIND;
    fence->counter += gap;
    gap = fence->counter - counter;
    if (gap >= FAR_BEHIND || s->ev->unkept || (fence->stale & mask_of(master)))
        gap = FAR_BEHIND;
    fence->behind[master] = (uint8_t)gap;
}

/* Rule 11.  Before the next lists count alone, the counters of their masters are raised to what the
 * old list counted to.  A number from before that may be smaller than a token that was drawn.  A
 * raise needs no such care: it goes beyond the numbers of masters that could decide. */
static void spoil_numbers(struct step *s)
{
    if (!s->q->config.fence || s->q->state != QUORUM_ACQUIRING)
        return;
    memset(s->ev->fence->behind, FAR_BEHIND, sizeof s->ev->fence->behind);
    s->ev->fence->stale |= s->q->asked;
}

/* Masters that said yes and counted to the same number as this one. */
static quorum_mask in_step(const struct step *s, unsigned master)
{
    const uint8_t *behind = s->ev->fence->behind;
    quorum_mask same = 0;

    for (unsigned m = 0; s->q->yes >> m != 0; m++)
        if ((s->q->yes & mask_of(m)) && behind[m] == behind[master])
            same |= mask_of(m);
    return behind[master] < FAR_BEHIND ? same : 0;
}

/* Rule 8: the number that a majority counted to, or 0. */
static uint64_t agreed(const struct step *s)
{
    const struct quorum_fence *fence = s->ev->fence;

    for (unsigned m = 0; s->q->yes >> m != 0; m++)
        if ((s->q->yes & mask_of(m)) && decide(s, in_step(s, m)))
            return fence->counter - fence->behind[m];
    return 0;
}

/*
 * Make the counters equal.  All masters that store our token, or may, count on to
 * one number that none of them has reached.  They must still store the token.
 * Otherwise a master could grant the next owner's round first, and count for us
 * after that.  The next owner would then have the smaller number, although it comes
 * later.
 *
 * Meanwhile rivals that are refused count on, too.  If one counter is already ahead
 * of the number asked for, and another is not, they still differ.  So each raise
 * asks for more than the last.
 */
static void raise_counters(struct step *s)
{
    struct quorum *q = s->q;
    struct quorum_fence *fence = s->ev->fence;
    quorum_mask to = s->ev->up & holders(q);
    uint64_t step = UINT64_C(1) << 2 * fence->raises;

    if (fence->counter > QUORUM_FENCE_MAX - step || !decide(s, to)) {
        lose_round(s, REDLOCK_UNREACHABLE);
        return;
    }
    fence->counter += step;
    if (fence->raises < RAISES_MAX)
        fence->raises++;
    memset(fence->behind, 0, sizeof fence->behind);
    fence->stale = 0;
    forget_ask(q);
    q->asked = to;
    send(s, QUORUM_CMD_RAISE, to, ++q->ask);
}

/* A majority has granted the lock. */
static void draw_fence(struct step *s)
{
    struct quorum *q = s->q;
    uint64_t token = agreed(s);

    if (token != 0) {
        win_round(s, token);
        return;
    }
    q->timeout = drift_add(s->ev->now, q->config.reply_timeout);
    q->state = QUORUM_RAISING;
    raise_counters(s);
}

/* A master that refused owes the answer to its release (rule 10). */
static quorum_mask awaited_raises(const struct quorum *q)
{
    return q->asked & q->owing & holders(q) & (quorum_mask)~q->none;
}

/* Whether the awaited masters can still make a majority with some that agree. */
static bool may_agree(const struct step *s, quorum_mask waiting)
{
    for (unsigned m = 0; s->q->yes >> m != 0; m++)
        if ((s->q->yes & mask_of(m)) && decide(s, in_step(s, m) | waiting))
            return true;
    return decide(s, waiting);
}

/* The counters differ again only if another lock that shares the counter was granted or raised
 * in between. */
static void judge_raise(struct step *s, quorum_mask waiting)
{
    struct quorum *q = s->q;
    uint64_t token = agreed(s);

    if (s->ev->now >= q->deadline)
        lose_round(s, REDLOCK_TOO_LATE);
    else if (token != 0)
        win_round(s, token);
    else if (!decide(s, q->yes | waiting))
        lose_round(s, REDLOCK_UNREACHABLE);
    else if (!may_agree(s, waiting))
        raise_counters(s);
}

/* ---- Holding ---- */

/* Rule 7. */
static void tell_lost(struct step *s)
{
    if (!s->q->told)
        s->act->lost = true;
    s->q->told = true;
}

/* A failed extension does not change how long later ones are to be.  Commands that are sent from
 * now on ask for the old length, also one that is repeated with its script in full. */
static void restore_lease(struct step *s)
{
    struct quorum *q = s->q;

    if (q->lease == q->config.lease)
        return;
    q->lease = q->config.lease;
    asked_until(s, QUORUM_CMD_EXTEND);
}

/* We can no longer show that we hold the lock: the deadline has passed, or a majority does not
 * have our token. */
static void lose_hold(struct step *s)
{
    struct quorum *q = s->q;
    bool somebody_waits = q->asked_extend || q->state == QUORUM_PROVING;

    if (quorum_is_held(q))
        tell_lost(s);
    bury_round(q);
    q->asked_extend = false;
    q->state = QUORUM_LOST;
    forget_ask(q);
    if (somebody_waits)
        end(s, QUORUM_LOST, REDLOCK_LOST);
}

static void fail_extension(struct step *s, int status)
{
    struct quorum *q = s->q;

    q->timeout = q->config.renew ? drift_add(s->ev->now, pause_between(s)) : DRIFT_NEVER;
    s->act->failed = q->none;
    restore_lease(s);
    forget_ask(q);
    if (q->state == QUORUM_PROVING)
        end(s, QUORUM_ADOPTED, status);
    else if (q->asked_extend)
        end(s, QUORUM_HELD, status);
    else
        q->state = QUORUM_HELD;
    q->asked_extend = false;
}

/* Masters that may say yes to an extension, now or later. */
static quorum_mask may_extend(const struct quorum *q)
{
    return holders(q) | q->fresh;
}

/* Rule 12: whether the token is lost if all awaited masters say no.  stored: the masters that may
 * have stored it, except those that said no. */
static bool may_be_lost(const struct step *s, quorum_mask stored, quorum_mask waiting)
{
    return !decide(s, stored & (quorum_mask)~waiting);
}

static void give(struct step *s, quorum_mask to, uint32_t ask)
{
    struct quorum *q = s->q;

    for (unsigned m = 0; to >> m != 0; m++)
        if (to & mask_of(m))
            q->round_of[m] = q->round;
    q->live |= to;
    q->may_hold |= to;
    asked_until(s, QUORUM_CMD_GIVE);
    send(s, QUORUM_CMD_GIVE, to, ask);
}

/* Rule 14.  The extension is won, and nothing waits for these answers. */
static void give_back(struct step *s)
{
    struct quorum *q = s->q;
    quorum_mask busy = q->asked | q->owing | q->may_hold | q->barred;
    quorum_mask to = everyone(s) & s->ev->up & (quorum_mask)~busy;

    if (to != 0 && !q->adopted)
        give(s, to, ++q->ask);
}

static void judge_extension(struct step *s, quorum_mask waiting)
{
    struct quorum *q = s->q;
    bool proving = q->state == QUORUM_PROVING;
    bool somebody_waits = proving || q->asked_extend;

    if (!decide(s, may_extend(q))) {
        lose_hold(s);
    } else if (decide(s, q->yes)) {
        drift_time deadline = drift_deadline(q->sent, q->lease, &q->config.drift);

        if (s->ev->now >= deadline) {
            fail_extension(s, REDLOCK_TOO_LATE);
            return;
        }
        if (proving)
            q->since = s->ev->now;
        if (deadline >= q->deadline) /* Rule 10. */
            q->relied = q->yes;
        q->deadline = later(q->deadline, deadline); /* Rule 6. */
        q->config.lease = q->lease;
        give_back(s);
        hold(s);
        if (somebody_waits)
            end(s, QUORUM_HELD, REDLOCK_OK);
        q->asked_extend = false;
    } else if (!decide(s, q->yes | waiting) &&
               !(somebody_waits &&
                 may_be_lost(s, may_extend(q), waiting & (quorum_mask)~q->fresh))) {
        fail_extension(s, REDLOCK_UNREACHABLE);
    }
}

static void ask_to_extend(struct step *s, uint32_t ask)
{
    struct quorum *q = s->q;
    quorum_mask to = s->ev->up & holders(q) & everyone(s) & (quorum_mask)~q->asked;

    if (to == 0)
        return;
    q->asked |= to;
    asked_until(s, QUORUM_CMD_EXTEND);
    send(s, QUORUM_CMD_EXTEND, to, ask);
}

/* Rule 11: not a master whose release may be late (rules 10 and 14).  It would delete what counts
 * as a vote at once. */
static quorum_mask takes_gift(const struct quorum *q)
{
    return q->fresh & (quorum_mask) ~(q->barred & (quorum_mask) ~(q->live | q->relied));
}

/* Rule 11.  A master where the token may be already gets an extension instead. */
static void ask_to_give(struct step *s, uint32_t ask)
{
    struct quorum *q = s->q;
    quorum_mask refused = q->relied & (quorum_mask)~q->live;
    quorum_mask busy = q->asked | q->owing | (q->may_hold & (quorum_mask)~refused);
    quorum_mask to = takes_gift(q) & everyone(s) & s->ev->up & (quorum_mask)~busy;

    if (to == 0)
        return;
    if (q->state == QUORUM_PROVING && !members_is_majority(s->ev->members.from, q->yes))
        return;
    q->asked |= to;
    give(s, to, ask);
}

/*
 * Masters from which a yes to an extension may still come: those that were asked and have not
 * answered, and new members that are not asked yet (rule 11).  An adopted token may be stored on
 * any master, also on one whose first link is still coming up.  Such a master counts, too, and is
 * asked when its link is up (judge).
 */
static quorum_mask awaited_proofs(const struct step *s)
{
    const struct quorum *q = s->q;
    quorum_mask answering = q->asked & q->owing & holders(q) & (quorum_mask)~q->none;
    quorum_mask coming = holders(q) & (quorum_mask)~q->asked & s->ev->coming;
    quorum_mask fresh = takes_gift(q) & (quorum_mask)~q->asked & (s->ev->up | s->ev->coming);

    return answering | fresh | (q->state == QUORUM_PROVING ? coming : 0);
}

static void begin_extension(struct step *s, enum quorum_state state)
{
    struct quorum *q = s->q;

    forget_ask(q);
    q->state = state;
    q->sent = s->ev->now;
    q->timeout = drift_add(q->sent, q->config.reply_timeout);
    ask_to_extend(s, ++q->ask);
    ask_to_give(s, q->ask);
    judge_extension(s, awaited_proofs(s));
}

static void on_held_timer(struct step *s)
{
    struct quorum *q = s->q;

    if (q->told)
        return;
    if (s->ev->now >= q->lost_at) {
        tell_lost(s);
        return;
    }
    if (s->ev->now < q->timeout)
        return;
    if (s->ev->now >= quorum_give_up(q))
        q->timeout = DRIFT_NEVER;
    else
        begin_extension(s, QUORUM_EXTENDING);
}

/* ---- Releasing ---- */

/* Rule 11: the token is released if a majority of the old list stored it (shows_hold), and a
 * majority of each list is free of it.  A new member is free of it, too, if it never stored the
 * token or no longer has it: an extension may have stored the token there for less time than on the
 * old list.  Without a change there is one list, and shows_hold() is enough. */
static bool is_released(const struct step *s, quorum_mask stored)
{
    quorum_mask unknown = s->q->asked & (s->q->none | s->q->may_hold);
    quorum_mask free_of_it = everyone(s) & (quorum_mask)~unknown;

    return shows_hold(s, stored) &&
           (s->ev->members.from == s->ev->members.to || decide(s, stored | free_of_it));
}

static void judge_release(struct step *s, quorum_mask waiting)
{
    struct quorum *q = s->q;
    quorum_mask unknown = q->asked & (q->none | q->may_hold);
    quorum_mask stored = q->yes | unknown; /* Masters that stored the token, or may have. */

    assert((waiting & ~stored) == 0);
    if (is_released(s, q->yes))
        end(s, QUORUM_IDLE, REDLOCK_OK);
    else if (is_released(s, q->yes | waiting))
        return; /* Neither over nor lost: every awaited master may store the token. */
    else if (!shows_hold(s, stored))
        end(s, QUORUM_IDLE, REDLOCK_LOST);
    else if (shows_hold(s, stored & (quorum_mask)~waiting))
        end(s, QUORUM_IDLE, REDLOCK_UNREACHABLE);
}

static quorum_mask awaited_releases(const struct step *s)
{
    const struct quorum *q = s->q;

    return q->asked & (quorum_mask)~q->none &
           (q->releasing | (q->may_hold & (s->ev->coming | s->ev->full)));
}

/* The round is declared dead, so settle sends the releases.  Here they are only counted. */
static void begin_release(struct step *s)
{
    struct quorum *q = s->q;

    forget_ask(q);
    q->asked = holders(q);
    bury_round(q);
    q->asked_extend = false;
    q->timeout = drift_add(s->ev->now, q->config.reply_timeout);
    q->state = QUORUM_RELEASING;
    settle(s);
    judge_release(s, awaited_releases(s));
}

/* ---- Beginning when the first links are up ---- */

static bool worth_waiting(const struct step *s)
{
    return !decide(s, s->ev->up) && decide(s, s->ev->up | s->ev->coming);
}

static void begin(struct step *s, enum quorum_event_type wanted)
{
    struct quorum *q = s->q;

    if (worth_waiting(s)) {
        q->wanted = (uint8_t)wanted;
        q->state = QUORUM_CONNECTING;
    } else if (wanted == QUORUM_EV_ACQUIRE) {
        q->detours = QUORUM_DETOURS;
        begin_round(s);
    } else if (wanted == QUORUM_EV_EXTEND) {
        begin_extension(s, QUORUM_PROVING);
    } else {
        assert(wanted == QUORUM_EV_RELEASE);
        begin_release(s);
    }
}

/* ---- Events ---- */

static void on_acquire(struct step *s)
{
    assert(s->q->state == QUORUM_IDLE && s->q->ask == 0);
    s->q->since = s->ev->now;
    begin(s, QUORUM_EV_ACQUIRE);
}

/* Every master may store the token.  No round of ours asked for it. */
static void on_adopt(struct step *s)
{
    struct quorum *q = s->q;

    assert(q->state == QUORUM_IDLE && q->ask == 0);
    q->adopted = true;
    q->round = ++q->ask;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        q->round_of[m] = q->round;
    q->may_hold = q->live = everyone(s);
    q->fresh = s->ev->members.to & (quorum_mask)~s->ev->members.from;
    q->lease = q->config.lease;
    asked_until(s, QUORUM_CMD_EXTEND);
    q->state = QUORUM_ADOPTED;
}

static void on_extend(struct step *s)
{
    struct quorum *q = s->q;

    assert(quorum_may_extend(q));
    if (q->told || q->state == QUORUM_LOST) {
        end(s, q->state, REDLOCK_LOST); /* Rule 7. */
        return;
    }
    if (s->ev->lease != 0)
        q->lease = s->ev->lease;
    if (q->state == QUORUM_ADOPTED) {
        begin(s, QUORUM_EV_EXTEND);
        return;
    }
    q->asked_extend = true; /* This replaces a renewal that is out. */
    begin_extension(s, QUORUM_EXTENDING);
}

static void on_release(struct step *s)
{
    switch (s->q->state) {
    case QUORUM_ADOPTED:
        begin(s, QUORUM_EV_RELEASE);
        break;
    case QUORUM_CONNECTING:
    case QUORUM_HELD:
    case QUORUM_EXTENDING:
    case QUORUM_PROVING:
        begin_release(s);
        break;
    case QUORUM_LOST:
        end(s, QUORUM_IDLE, REDLOCK_LOST);
        break;
    case QUORUM_IDLE:
    case QUORUM_ACQUIRING:
    case QUORUM_RAISING:
    case QUORUM_PAUSING:
    case QUORUM_RELEASING:
        assert(!"a release of what is not held");
    }
}

static void on_cancel(struct step *s)
{
    struct quorum *q = s->q;

    bury_round(q);
    q->state = QUORUM_IDLE;
    forget_ask(q);
    s->act->lost = s->act->ended = false; /* The caller wants no more notices, even if this step
                                           * lost the lock. */
}

/* Evaluate the operation under way again after new information. */
static void judge(struct step *s)
{
    struct quorum *q = s->q;

    switch (q->state) {
    case QUORUM_ACQUIRING:
        ask_for_lock(s);
        judge_round(s, awaited(s));
        break;
    case QUORUM_RAISING:
        judge_raise(s, awaited_raises(q));
        break;
    case QUORUM_PROVING:
        ask_to_extend(s, q->ask); /* No other ask is sent meanwhile. */
        ask_to_give(s, q->ask);
        judge_extension(s, awaited_proofs(s));
        break;
    case QUORUM_EXTENDING:
        ask_to_give(s, q->ask);
        judge_extension(s, awaited_proofs(s));
        break;
    case QUORUM_HELD:
        if (!decide(s, may_extend(q)))
            lose_hold(s);
        break;
    case QUORUM_RELEASING:
        settle(s);
        judge_release(s, awaited_releases(s));
        break;
    case QUORUM_CONNECTING:
        if (!worth_waiting(s))
            begin(s, (enum quorum_event_type)q->wanted);
        break;
    case QUORUM_IDLE:
    case QUORUM_PAUSING:
    case QUORUM_ADOPTED:
    case QUORUM_LOST:
        break;
    }
}

/* Rule 14: the extension that is out was sent before this was known, so it gives nothing back. */
static void note_lack(struct quorum *q, quorum_mask from)
{
    if (q->state == QUORUM_EXTENDING)
        q->asked |= from & (quorum_mask)~q->fresh;
}

/* Rule 10. */
static void on_refusal(struct quorum *q, quorum_mask from)
{
    if (q->config.many) {
        q->relied |= q->fresh & q->live & from; /* Released later. */
        q->live &= (quorum_mask)~from;
    } else {
        q->may_hold &= (quorum_mask)~from;
    }
    note_lack(q, from);
    q->asked &= (quorum_mask) ~(q->fresh & from); /* Rule 11: it may be given the token. */
}

/* Rule 13.  A vote that comes alone is followed by others at once, or by a round that asks for
 * them. */
static void follow_up(struct step *s)
{
    struct quorum *q = s->q;

    q->timeout = earlier(q->timeout, drift_add(s->ev->now, q->config.reply_timeout));
}

/* Rule 13.  The next round counts it.  If that one, too, ends before any answer, this client is too
 * slow for its timeout, and its token would keep all others out. */
static void on_late_yes(struct step *s)
{
    s->q->late = true;
    follow_up(s);
}

/* Rule 14: perhaps by our own token, which another process gave.  The next extension asks. */
static bool is_gift_refused(const struct quorum_event *event)
{
    return event->command == QUORUM_CMD_GIVE && event->vote == QUORUM_VOTE_NO;
}

/* Rule 13: an operator may have revoked the lock or deleted the key.  Or the master granted the
 * token after its answer.  Then the key has the token, and keeps others out: so the token ends with
 * the round if that is not won. */
static void take_back(struct quorum *q, quorum_mask grant)
{
    q->late |= (q->yes & grant) != 0;
    q->yes &= (quorum_mask)~grant;
}

static void on_reply(struct step *s)
{
    struct quorum *q = s->q;
    quorum_mask from = mask_of(s->ev->master);
    bool yes = s->ev->vote == QUORUM_VOTE_YES;
    bool is_void = s->ev->vote == QUORUM_VOTE_VOID;

    assert(s->ev->master < QUORUM_MASTERS_MAX);
    if (s->ev->ask != q->ask_of[s->ev->master] || !(q->owing & from))
        return; /* A newer command was sent on the same link; only its answer counts.  A token that
                 * stands has one number in all rounds.  So an answer that comes between two rounds
                 * is not counted: it may answer an older request than sent says.  A yes lets the
                 * next round, which counts it, come soon. */
    q->owing &= (quorum_mask)~from;
    q->deciding &= (quorum_mask)~from;
    if (s->ev->revoked || (s->ev->command == QUORUM_CMD_RAISE && s->ev->vote == QUORUM_VOTE_NO)) {
        q->barred |= from; /* Rule 14. */
        q->fresh &= (quorum_mask)~from;
    }
    if (yes && s->ev->command != QUORUM_CMD_RELEASE)
        q->fresh &= (quorum_mask)~from; /* Perhaps too late for the ask, but it has the token. */
    switch (s->ev->command) {
    case QUORUM_CMD_SET: /* A master that answers with an error has not set the key. */
    case QUORUM_CMD_FENCE:
    case QUORUM_CMD_GIVE:
        if (!yes)
            take_back(q, from);
        if (!yes && !is_void && !s->ev->stands && !is_gift_refused(s->ev)) {
            q->may_hold &= (quorum_mask)~from;
            note_lack(q, from);
        }
        break;
    case QUORUM_CMD_EXTEND:
    case QUORUM_CMD_RAISE:
        if (s->ev->vote == QUORUM_VOTE_NO)
            on_refusal(q, from);
        break;
    case QUORUM_CMD_RELEASE: /* After an error the release is not repeated: the key expires by
                              * itself. */
        q->may_hold &= (quorum_mask)~from;
        q->releasing &= (quorum_mask)~from;
        break;
    }
    /* A master that could not take a release (its queue was full) still answers its earlier
     * command.  That does not confirm a release. */
    if (q->state == QUORUM_RELEASING && s->ev->command != QUORUM_CMD_RELEASE)
        from = 0;
    /* An answer to a release (rule 10) does not confirm an extension or a number either. */
    if ((q->state == QUORUM_EXTENDING || q->state == QUORUM_RAISING) &&
        s->ev->command == QUORUM_CMD_RELEASE)
        from = 0;
    if (q->asked & from) {
        q->yes |= yes ? from : 0;
        if (yes && s->ev->counter != 0)
            note_counter(s, s->ev->master, s->ev->counter);
        q->none |= s->ev->vote == QUORUM_VOTE_NONE || is_void ? from : 0;
        if (s->ev->elsewhere)
            q->elsewhere++;
    }
    if (yes && q->state == QUORUM_PAUSING && (holders(q) & from))
        on_late_yes(s);
    judge(s);
}

/* Rule 13. */
static void on_grant(struct step *s)
{
    struct quorum *q = s->q;
    quorum_mask from = mask_of(s->ev->master) & holders(q) & everyone(s);

    if ((q->state != QUORUM_PAUSING && q->state != QUORUM_ACQUIRING) || from == 0 ||
        s->ev->now >= drift_deadline(s->ev->sent, q->lease, &q->config.drift))
        return;
    if (s->ev->sent < q->sent)
        q->sent = s->ev->sent;
    q->deadline = drift_deadline(q->sent, q->lease, &q->config.drift);
    q->yes |= from;
    if (decide(s, q->yes) || q->state == QUORUM_ACQUIRING)
        judge_round(s, awaited(s));
    else
        follow_up(s);
}

/* Rule 13: masters that owe an answer to the token over a link that stands. */
static quorum_mask stale_answers(const struct step *s)
{
    return s->q->live & s->q->owing & (s->ev->linked | s->ev->full);
}

/* CONNECTING: the next round waits for the first links of masters that joined. */
static bool is_between_rounds(const struct quorum *q)
{
    return q->state == QUORUM_PAUSING || q->state == QUORUM_CONNECTING;
}

static void on_link(struct step *s)
{
    struct quorum *q = s->q;
    quorum_mask on = mask_of(s->ev->master);

    assert(s->ev->master < QUORUM_MASTERS_MAX);
    if (q->state == QUORUM_ACQUIRING)
        q->asked |= stale_answers(s) & on; /* Rule 13: not again in this round. */
    if (q->state == QUORUM_RELEASING) {
        q->none |= q->asked & on & (q->owing | q->releasing);
    } else { /* A master that disconnects may come back without its data, so its yes no longer
              * counts. */
        q->none |= q->asked & on;
        q->yes &= (quorum_mask)~on;
    }
    if (is_between_rounds(q) && (stale_answers(s) & on)) {
        bury_round(q); /* Rule 13. */
        forget_ask(q);
        follow_up(s);
    }

    q->barred |= q->deciding & on; /* Rule 14. */
    q->deciding &= (quorum_mask)~on;
    q->owing &= (quorum_mask)~on;
    q->releasing &= (quorum_mask)~on;
    judge(s);
}

static void on_timer(struct step *s)
{
    struct quorum *q = s->q;
    bool due = s->ev->now >= q->timeout;

    switch (q->state) {
    case QUORUM_ACQUIRING:
        if (due && q->decided)
            lose_round(s, REDLOCK_CONTENDED);
        else if (due)
            judge_round(s, 0);
        break;
    case QUORUM_RAISING:
        if (due)
            lose_round(s, s->ev->now >= q->deadline ? REDLOCK_TOO_LATE : REDLOCK_UNREACHABLE);
        break;
    case QUORUM_PAUSING:
        if (due)
            begin(s, QUORUM_EV_ACQUIRE);
        break;
    case QUORUM_HELD:
        on_held_timer(s);
        break;
    case QUORUM_EXTENDING:
        if (due)
            judge_extension(s, 0);
        if (q->state == QUORUM_EXTENDING && s->ev->now >= q->lost_at) {
            tell_lost(s);
            fail_extension(s, REDLOCK_LOST);
        }
        break;
    case QUORUM_PROVING:
        if (due)
            judge_extension(s, 0);
        break;
    case QUORUM_RELEASING:
        if (due)
            judge_release(s, 0);
        break;
    case QUORUM_IDLE:
    case QUORUM_LOST:
        if (s->ev->now >= q->settle_by) {
            settle(s); /* Masters that may have obeyed late get a release. */
            q->may_hold = untold(q);
            q->releasing = 0;
        }
        break;
    case QUORUM_CONNECTING:
    case QUORUM_ADOPTED:
        break;
    }
}

/* Rule 11. */
static void on_change(struct step *s)
{
    struct quorum *q = s->q;
    quorum_mask stay = (quorum_mask)~s->ev->left;
    quorum_mask storing = q->adopted && q->round != 0 ? s->ev->joined : 0;
    quorum_mask fresh = q->fresh | s->ev->joined;

    if (q->adopted && !quorum_is_held(q))
        fresh &= s->ev->members.to & (quorum_mask)~s->ev->members.from;
    else if (quorum_is_held(q) && s->ev->members.from != s->ev->members.to)
        fresh |= s->ev->members.to & (quorum_mask) ~(holders(q) | q->barred);
    q->fresh = fresh & stay;
    q->asked &= stay;
    q->yes &= stay;
    q->none &= stay;
    q->may_hold &= stay;
    q->live &= stay;
    q->owing &= stay;
    q->releasing &= stay;
    q->deciding &= stay;
    q->barred &= stay;
    q->relied &= stay;
    for (unsigned m = 0; storing >> m != 0; m++)
        if (storing & mask_of(m))
            q->round_of[m] = q->round;
    q->may_hold |= storing;
    q->live |= storing;
    spoil_numbers(s);
    judge(s);
}

/* The caller knows when the lock may be free, and says when the next round is to begin.  The
 * last round begins at give_up at the latest. */
static void on_wake(struct step *s)
{
    struct quorum *q = s->q;

    if (q->state != QUORUM_PAUSING)
        return;
    q->timeout = earlier(s->ev->until, quorum_give_up(q));
    on_timer(s);
}

static drift_time wake_at(const struct quorum *q)
{
    switch (q->state) {
    case QUORUM_ACQUIRING:
    case QUORUM_RAISING:
    case QUORUM_PAUSING:
    case QUORUM_PROVING:
    case QUORUM_RELEASING:
        return q->timeout;
    case QUORUM_HELD:
        return q->told ? q->deadline : earlier(q->timeout, q->lost_at);
    case QUORUM_EXTENDING:
        return earlier(q->timeout, q->lost_at);
    case QUORUM_IDLE:
    case QUORUM_LOST:
        return q->may_hold != untold(q) ? q->settle_by : DRIFT_NEVER;
    case QUORUM_CONNECTING:
    case QUORUM_ADOPTED:
        break;
    }
    return DRIFT_NEVER;
}

void quorum_init(struct quorum *q, const struct quorum_config *config)
{
    assert(config->pause_min <= config->pause_max);
    memset(q, 0, sizeof *q); /* Padding too, so that equal machines have equal bytes. */
    q->config = *config;
    q->state = QUORUM_IDLE;
}

void quorum_step(struct quorum *q, const struct quorum_event *event,
                 struct quorum_actions *ret_actions)
{
    struct step s = {q, event, ret_actions, false};

    ret_actions->send_len = 0;
    ret_actions->lost = ret_actions->ended = false;
    ret_actions->status = REDLOCK_OK;
    assert(event->fence != NULL || !q->config.fence);

    if (quorum_is_held(q) && event->now >= q->deadline)
        lose_hold(&s); /* Rule 2. */
    switch (event->type) {
    case QUORUM_EV_ACQUIRE:
        on_acquire(&s);
        break;
    case QUORUM_EV_ADOPT:
        on_adopt(&s);
        break;
    case QUORUM_EV_EXTEND:
        on_extend(&s);
        break;
    case QUORUM_EV_RELEASE:
        on_release(&s);
        break;
    case QUORUM_EV_CANCEL:
        on_cancel(&s);
        break;
    case QUORUM_EV_DETACH:
        q->may_hold = 0;
        on_cancel(&s);
        break;
    case QUORUM_EV_REPLY:
        on_reply(&s);
        break;
    case QUORUM_EV_LINK:
        on_link(&s);
        break;
    case QUORUM_EV_TIMER:
        on_timer(&s);
        break;
    case QUORUM_EV_WAKE:
        on_wake(&s);
        break;
    case QUORUM_EV_CHANGE:
        on_change(&s);
        break;
    case QUORUM_EV_GRANT:
        on_grant(&s);
        break;
    }
    settle(&s);
    if (s.goes_on)
        go_on(&s);
    ret_actions->wake_at = wake_at(q);
}

drift_span quorum_remaining(const struct quorum *q, drift_time now)
{
    return quorum_is_held(q) ? drift_until(now, q->deadline) : 0;
}

bool quorum_may_extend(const struct quorum *q)
{
    return q->state == QUORUM_ADOPTED || q->state == QUORUM_HELD || q->state == QUORUM_LOST ||
           (q->state == QUORUM_EXTENDING && !q->asked_extend);
}

bool quorum_must_release(const struct quorum *q, unsigned master)
{
    return (to_release(q) & mask_of(master)) != 0 && !is_anothers(q);
}

bool quorum_cares(const struct quorum *q, unsigned master)
{
    if (q->state == QUORUM_CONNECTING || q->state == QUORUM_ACQUIRING)
        return true;
    return ((q->asked | q->owing | q->may_hold | q->fresh) & mask_of(master)) != 0;
}
