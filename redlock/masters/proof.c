/*
 * proof.c - adds one or two reads after the SETs and extensions of a write, and judges the answers.
 */
#include "redlock/masters/proof.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"
#include "redlock/masters/clocks.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/standing.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/vote.h"

/* How soon a client learns of a change that no vote shows.  Chosen: a read each second is no load.
 */
#define EVERY DRIFT_S

/* An empty list of at most so many votes is kept.  Chosen: four times 256 locks in flight.  A
 * longer one was needed for a thousand waiters at once, and is freed. */
#define HELD_KEPT_MAX 1024

static void set_alarm(struct proof *proof)
{
    if (!proof->peers->restart_guard)
        return;
    alarm_set(&proof->peers->env->alarms, &proof->alarm,
              drift_add(env_now(proof->peers->env), EVERY));
}

int proof_init(struct proof *proof)
{
    proof->alarm.pos = ALARM_OFF;
    return alarm_reserve(&proof->peers->env->alarms, 4); /* With those of the other guards. */
}

void proof_done(struct proof *proof)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        free(proof->held[m].yes);
}

/* True if the master's clock must be proved. */
static bool needs_time(const struct proof *proof)
{
    return proof->peers->clock_guard == REDLOCK_CLOCK_GUARD_PER_VOTE;
}

/* True if a yes to this command needs proof.  RAISE names the epoch itself, so only its clock is
 * open.  A release needs none: one that finds the token shows that the data is there. */
static bool is_to_be_proved(const struct proof *proof, enum quorum_command command)
{
    switch (command) {
    case QUORUM_CMD_SET:
    case QUORUM_CMD_GIVE:
    case QUORUM_CMD_EXTEND:
        return proof->peers->restart_guard || needs_time(proof);
    case QUORUM_CMD_FENCE:
        return true;
    case QUORUM_CMD_RAISE:
        return needs_time(proof);
    case QUORUM_CMD_RELEASE:
        break;
    }
    return false;
}

void proof_want(struct proof *proof, enum quorum_command command, quorum_mask masters)
{
    if (is_to_be_proved(proof, command))
        proof->wanted |= masters;
}

static void send_read(struct proof *proof, unsigned master, const struct ask *ask)
{
    struct link *link = proof->peers->links[master];

    proof->shown |= mask_of(master);
    if (needs_time(proof))
        link_send(link, ask, WIRE_PROOF_MAX, sizeof WIRE_PROOF_MAX - 1);
    else
        link_send(link, ask, WIRE_PROOF, sizeof WIRE_PROOF - 1);
    proof->peers->env->stats.commands++;
}

void proof_ask(struct proof *proof, unsigned master)
{
    static const struct ask ask = {.what = WHAT_PROOF};

    if (!(proof->wanted & mask_of(master)))
        return;
    proof->wanted &= (quorum_mask)~mask_of(master);
    if (proof->peers->restart_guard)
        send_read(proof, master, &ask);
    if (needs_time(proof)) { /* TIME goes last: see proof_on_answer(). */
        clocks_ask(proof->clocks, master);
        proof->peers->env->stats.commands++;
    }
}

/* Masters that are asked for a proof if they show none.  Until a majority may vote, those that have
 * an epoch are asked as well: one of them may be the only member of its version that is left, and
 * other clients may tell it a newer one. */
static quorum_mask find_asked(const struct proof *proof)
{
    const struct guard *guard = &proof->standing->guard;
    quorum_mask waiting = guard->open ? 0 : guard->told & (quorum_mask)~proof->peers->full;

    return proof->peers->up | waiting;
}

void proof_on_change(struct proof *proof)
{
    if (proof->alarm.pos == ALARM_OFF && find_asked(proof) != 0)
        set_alarm(proof);
}

/* The read also proves what was asked for before.  Masters that get a read with this turn's
 * commands need no other.  Its answer would let go of their votes as soon as a query that is behind
 * it is answered, and that may be before their TIME (proof_on_look). */
void proof_on_alarm(struct proof *proof)
{
    static const struct ask ask = {.what = WHAT_PROOF, .flags = ASK_LIFE};
    quorum_mask due = find_asked(proof) & (quorum_mask) ~(proof->shown | proof->wanted);

    proof->shown = 0;
    if (proof->peers->env->deaf)
        return;
    for (unsigned m = 0; due >> m != 0; m++)
        if (due & mask_of(m))
            send_read(proof, m, &ask);
    set_alarm(proof);
}

/* A yes that is held back ends with its connection.  The leases learn of the broken connection
 * and do not wait. */
void proof_forget(struct proof *proof, unsigned master)
{
    proof->wanted &= (quorum_mask)~mask_of(master);
    proof->held[master].len = proof->held[master].proven = 0;
}

static bool grow(struct held *held)
{
    uint32_t room = held->room > 0 ? held->room * 2 : 64;
    struct yes *yes = realloc(held->yes, room * sizeof *yes);

    if (yes == NULL)
        return false;
    held->yes = yes;
    held->room = room;
    return true;
}

static void drop(struct held *held)
{
    free(held->yes);
    *held = (struct held){.shown = held->shown};
}

bool proof_hold(struct proof *proof, unsigned master, const struct ask *ask,
                const struct vote *vote)
{
    struct held *held = &proof->held[master];
    struct yes *yes;

    if ((vote->vote != QUORUM_VOTE_YES && !vote->is_queued) ||
        !is_to_be_proved(proof, (enum quorum_command)ask->what))
        return false;
    if (held->len == held->room && !grow(held)) {
        link_relink_for(proof->peers->links[master], WHY_NO_MEMORY);
        return true;
    }
    yes = &held->yes[held->len++];
    *yes = (struct yes){*ask, *vote};
    if (ask->what == QUORUM_CMD_FENCE && vote->vote == QUORUM_VOTE_YES)
        yes->vote.vote = QUORUM_VOTE_VOID; /* Until its count has come. */
    return true;
}

enum proved { PROVED_GOOD, PROVED_OTHER, PROVED_CHANGED, PROVED_LOST };

/* Judge a field epoch that is not the known text.  The number of the epoch must be the known one,
 * else the master has lost its data.  A version above ours, or a floor that we do not know, shows
 * that the set has changed.  Otherwise the master has got a version that we have from another one.
 * Its floor may have changed before, so what it counted is not known. */
static enum proved judge_other(struct proof *proof, unsigned master, const char *text, size_t len)
{
    const struct standing *standing = proof->standing;
    struct answer_state state;

    if (!answer_state(text, len, &state) ||
        state.epoch != standing->guard.masters[master].look.number)
        return PROVED_LOST;
    proof->held[master].shown = state.version;
    return state.version == 0 || state.floor != 0 || state.version > standing_version(standing)
               ? PROVED_CHANGED
               : PROVED_OTHER;
}

/* Judge the field epoch.  It is nearly always the known text.  Both texts end with a NUL. */
static enum proved judge(struct proof *proof, unsigned master, const char *text, size_t len)
{
    const struct standing *standing = proof->standing;

    if (len <= WIRE_STATE_MAX && memcmp(text, standing->states[master], len + 1) == 0)
        return PROVED_GOOD;
    return judge_other(proof, master, text, len);
}

/* With the guard per vote the answer also carries the longest lease, which the restart guard
 * takes over. */
static enum proved take_proof(struct proof *proof, unsigned master, const struct reply *reply)
{
    uint32_t max_ttl_ms;
    enum proved proved;

    if (!needs_time(proof))
        return reply->type == REPLY_TEXT ? judge(proof, master, reply->text, reply->text_len)
                                         : PROVED_LOST;
    if (reply->type != REPLY_ARRAY || reply->before == NULL)
        return PROVED_LOST;
    proved = judge(proof, master, reply->before, reply->before_len);
    if (proved == PROVED_LOST || !answer_max(reply->text, &max_ttl_ms))
        return PROVED_LOST;
    guard_on_max(&proof->standing->guard, max_ttl_ms);
    return proved;
}

/* The master stores what the votes say, but a majority is to be counted by another set.  The number
 * of RAISE was compared by the script.  A place in the queue of a former member says nothing of who
 * waits at the members. */
static void make_void(struct yes *yes, uint32_t len, bool fenced_alone)
{
    for (uint32_t i = 0; i < len; i++, yes++) {
        if (yes->ask.what == QUORUM_CMD_RAISE ||
            (fenced_alone && (yes->ask.what != QUORUM_CMD_FENCE || yes->vote.is_queued)))
            continue;
        if (yes->vote.is_queued)
            yes->vote.is_queued = false;
        else
            yes->vote.vote =
                yes->ask.what == QUORUM_CMD_EXTEND ? QUORUM_VOTE_NONE : QUORUM_VOTE_VOID;
    }
}

/* A count that is still to come was made behind the query, because a SET and its count are written
 * together.  It makes the vote good again. */
void proof_on_state(struct proof *proof, unsigned master)
{
    make_void(proof->held[master].yes, proof->held[master].len, true);
}

/* on_vote() may run a callback that asks for the next lock.  No answer is processed before this
 * returns, so the list does not grow meanwhile. */
static void let_go(struct proof *proof, unsigned master, uint32_t len)
{
    struct held *held = &proof->held[master];

    for (uint32_t i = 0; i < len; i++)
        proof->on_vote(proof->cookie, master, &held->yes[i].ask, &held->yes[i].vote);
    held->len -= len;
    if (held->len > 0)
        memmove(held->yes, held->yes + len, held->len * sizeof *held->yes);
    else if (held->room > HELD_KEPT_MAX)
        drop(held);
}

/* True if the count belongs to the latest yes.  A master answers nothing between the two.  A place
 * in a queue is no yes, and its count is of no use. */
static bool is_of(const struct held *held, const struct ask *ask)
{
    const struct ask *last;

    if (held->len == 0 || held->yes[held->len - 1].vote.is_queued)
        return false;
    last = &held->yes[held->len - 1].ask;
    return last->what == QUORUM_CMD_FENCE && last->slot == ask->slot &&
           last->serial == ask->serial && last->number == ask->number;
}

void proof_on_count(struct proof *proof, unsigned master, const struct ask *ask,
                    const struct reply *reply)
{
    const struct vote vote = vote_number(reply);
    struct held *held = &proof->held[master];
    struct link *link = proof->peers->links[master];
    struct reason why;
    struct yes *yes;

    if (vote.relink || reply->type == REPLY_ERROR)
        reply_reason(reply, &why);
    if (vote.relink)
        link_relink(link, &why);
    else if (reply->type == REPLY_ERROR)
        link_note(link, &why);
    if (!is_of(held, ask))
        return;
    yes = &held->yes[held->len - 1];
    yes->vote.why = vote.why;
    if (reply->type == REPLY_ERROR || vote.relink)
        return;
    if (vote.counter != 0)
        yes->vote.counter =
            guard_number(&proof->standing->guard, master, vote.counter, &yes->vote.unkept);
    if (yes->vote.counter != 0) {
        yes->vote.vote = QUORUM_VOTE_YES;
        return;
    }
    yes->vote.why = WHY_COUNTER;
    reason_set(&why, WHY_COUNTER);
    link_note(link, &why);
}

/* Nearly always there are none that wait.  Others wait behind them, so that votes stay in order. */
static void let_go_proven(struct proof *proof, unsigned master)
{
    struct held *held = &proof->held[master];

    if (held->proven == 0)
        let_go(proof, master, held->len);
    else
        held->proven = held->len;
}

void proof_on_answer(struct proof *proof, unsigned master, const struct reply *reply)
{
    struct held *held = &proof->held[master];
    struct reason why;

    switch (take_proof(proof, master, reply)) {
    case PROVED_GOOD:
        break;
    case PROVED_OTHER:
        make_void(held->yes, held->len, true);
        standing_look_again(proof->standing, master);
        break;
    case PROVED_CHANGED:
        held->proven = held->len;
        standing_look_again(proof->standing, master);
        break;
    case PROVED_LOST:
        reply_reason(reply, &why);
        if (reply->type != REPLY_ERROR)
            reason_set(&why, WHY_LOST_DATA);
        link_relink(proof->peers->links[master], &why);
        return;
    }
    if (!needs_time(proof)) /* Otherwise the TIME that follows releases the votes. */
        let_go_proven(proof, master);
}

void proof_on_time(struct proof *proof, unsigned master)
{
    let_go_proven(proof, master);
}

/* The TIME of these votes was answered before the marker was read: it is sent right behind the
 * proof, and the query only when that is answered, or with a later turn's commands. */
void proof_on_look(struct proof *proof, unsigned master)
{
    struct held *held = &proof->held[master];
    uint32_t proven = held->proven;
    bool has_it = held->shown != 0 && held->shown <= standing_version(proof->standing);

    if (proven == 0)
        return;
    held->proven = 0;
    make_void(held->yes, proven, has_it);
    let_go(proof, master, proven);
}
