/*
 * clocks.c - asks masters for TIME, judges the samples, and decides which votes count.
 */
#include "redlock/masters/clocks.h"

#include <stdio.h>
#include <string.h>

#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/standing.h"
#include "redlock/wire/answer.h"

static const char time_command[] = "*1\r\n$4\r\nTIME\r\n";

static bool is_on(const struct clocks *clocks)
{
    return clocks->peers->clock_guard != REDLOCK_CLOCK_GUARD_OFF;
}

static bool is_per_vote(const struct clocks *clocks)
{
    return clocks->peers->clock_guard == REDLOCK_CLOCK_GUARD_PER_VOTE;
}

int clocks_init(struct clocks *clocks, struct peers *peers, struct standing *standing)
{
    clocks->peers = peers;
    clocks->standing = standing;
    clocks->guard = (struct drift_guard){
        .rate_ppm = peers->drift.ppm,
        .tolerance = DRIFT_TOLERANCE,
        .window = guard_quarantine(&clocks->standing->guard),
        .gap = CLOCKS_GAP,
    };
    clocks->alarm.pos = ALARM_OFF;
    return alarm_reserve(&peers->env->alarms, 3); /* With those of standing.c and founding.c. */
}

/* ---- Asking ---- */

/* The ask carries the time of sending, because several TIMEs may be on their way.  A number of 1
 * says that votes wait for this TIME. */
static struct ask ask_at(drift_time sent, bool is_proof)
{
    return (struct ask){
        .slot = (uint32_t)sent,
        .serial = (uint32_t)(sent >> 32),
        .number = is_proof,
        .what = WHAT_TIME,
        .flags = ASK_LIFE,
    };
}

static drift_time sent_at(const struct ask *ask)
{
    return (drift_time)ask->serial << 32 | ask->slot;
}

/* The TIME is queued now, so later commands follow it on the connection. */
static void send_time(struct clocks *clocks, unsigned master, bool is_proof)
{
    const struct ask ask = ask_at(env_now(clocks->peers->env), is_proof);

    clocks->nodes[master].asked |= !is_proof;
    link_send(clocks->peers->links[master], &ask, time_command, sizeof time_command - 1);
}

void clocks_ask(struct clocks *clocks, unsigned master)
{
    send_time(clocks, master, true);
}

/* How often a master is asked. */
static drift_span every(const struct clocks *clocks)
{
    return clocks->guard.gap / CLOCKS_SAMPLES;
}

void clocks_on_link(struct clocks *clocks, unsigned master, bool up)
{

    clocks->nodes[master].asked = false;
    if (!is_on(clocks) || !up)
        return;
    send_time(clocks, master, false);
    if (clocks->alarm.pos == ALARM_OFF)
        alarm_set(&clocks->peers->env->alarms, &clocks->alarm,
                  drift_add(env_now(clocks->peers->env), every(clocks)));
}

void clocks_on_left(struct clocks *clocks, unsigned master)
{
    clocks->nodes[master] = (struct clocks_node){.asked = false};
}

void clocks_on_alarm(struct clocks *clocks)
{
    quorum_mask linked = clocks->standing->linked;

    if (clocks->peers->env->deaf)
        return;
    for (unsigned m = 0; m < clocks->peers->len; m++)
        if ((linked & 1u << m) != 0 && !clocks->nodes[m].asked)
            send_time(clocks, m, false);
    /* A master whose queue was full is skipped here.  It takes part again at a later alarm,
     * without a further event. */
    alarm_set(&clocks->peers->env->alarms, &clocks->alarm,
              drift_add(env_now(clocks->peers->env), every(clocks)));
}

/* ---- Judging ---- */

/* True if the clock of this master is one of those that others are compared with: the members'.  A
 * master that left the set, or has not joined it, must not help to outvote them.  While no set is
 * known, any may be a member. */
static bool is_compared(const struct clocks *clocks, unsigned master)
{
    quorum_mask members = members_all(&clocks->peers->members);

    return members == 0 || (members & mask_of(master)) != 0;
}

/* Returns 0, or 1 if this clock's offset from ours is not known now. */
static int own_offset(const struct clocks *clocks, unsigned master, drift_time now,
                      struct drift_range *ret_offset)
{
    const struct drift_node *node = &clocks->nodes[master].node;

    if (drift_until(node->last.received, now) > clocks->guard.gap)
        return 1;
    return drift_node_offset(node, &clocks->guard, now, ret_offset);
}

int clocks_offset(const struct clocks *clocks, unsigned master, drift_time now,
                  struct drift_range *ret_offset)
{
    struct drift_range offsets[QUORUM_MASTERS_MAX], own, median;
    unsigned len = 0;

    for (unsigned m = 0; m < clocks->peers->len; m++)
        if (is_compared(clocks, m) && own_offset(clocks, m, now, &offsets[len]) == 0)
            len++;
    /* Two masters cannot show which of them is wrong.  A minority might be wrong as a whole. */
    if (own_offset(clocks, master, now, &own) != 0 || len < 3 ||
        2 * len <= mask_count(members_all(&clocks->peers->members)))
        return 1;
    drift_node_median(offsets, len, &median);
    ret_offset->lo = own.lo - median.hi;
    ret_offset->hi = own.hi - median.lo;
    return 0;
}

/* Compare one master's clock with the others.  An outlier loses its vote; any large offset is
 * logged. */
static void place_one(struct clocks *clocks, unsigned master, drift_time now)
{
    struct clocks_node *node = &clocks->nodes[master];
    const struct drift_range others = {0, 0};
    enum drift_place before = node->place;
    struct drift_range offset;
    struct reason why;

    if (clocks_offset(clocks, master, now, &offset) != 0)
        return;
    node->place = drift_node_place(&offset, &others);
    if (node->place == DRIFT_PLACE_OUTLIER) {
        drift_node_bar(&node->node, &clocks->guard, now);
        node->why = WHY_CLOCK_OFF;
        node->amount = offset.lo > 0 ? offset.lo : offset.hi;
    }
    if (node->place == before || node->place == DRIFT_PLACE_NEAR)
        return;
    reason_set(&why, node->place == DRIFT_PLACE_OUTLIER ? WHY_CLOCK_FAR_OFF : WHY_CLOCK_FAR);
    why.amount = (offset.lo > 0 ? offset.lo : offset.hi) / (int64_t)DRIFT_MS;
    peers_warn(clocks->peers, master, &why);
}

/* Start over with a longer window when a longer lease turns out to be possible.  The samples so
 * far speak only about the shorter window, so all but the last are dropped.  That one still
 * tells the offset.  The anchor is dropped, so drift_node_sample() bases no verdict on it. */
static void lengthen_window(struct clocks *clocks)
{
    drift_span window = guard_quarantine(&clocks->standing->guard), more;

    if (window <= clocks->guard.window)
        return;
    more = window - clocks->guard.window;
    clocks->guard.window = window;
    for (unsigned m = 0; m < clocks->peers->len; m++) {
        struct drift_node *node = &clocks->nodes[m].node;
        drift_time until = node->counts_from != 0 ? drift_add(node->counts_from, more) : 0;

        *node = (struct drift_node){.counts_from = until, .last = node->last};
    }
}

/* Trust a first sample, as if another source had confirmed the clock.  An earlier objection
 * against the clock stays. */
static enum drift_verdict trust(struct clocks *clocks, struct drift_node *node,
                                const struct drift_sample *sample, drift_time counts_from)
{
    struct drift_range offset;

    drift_sample_offset(sample, &offset);
    drift_node_vouch(node, &clocks->guard, sample->sent, &offset);
    node->counts_from = counts_from;
    return drift_node_sample(node, &clocks->guard, sample);
}

static enum why why_of(enum drift_verdict verdict)
{
    switch (verdict) {
    case DRIFT_FIRST:
        return WHY_CLOCK_NEW;
    case DRIFT_FORWARD:
    case DRIFT_BACKWARD:
        return WHY_CLOCK_STEPPED;
    case DRIFT_FAST:
        return WHY_CLOCK_FAST;
    case DRIFT_STEADY:
    case DRIFT_UNCERTAIN:
        break;
    }
    return WHY_NONE;
}

/* The part of a step that is certain, in ns: positive for forward, negative for back. */
static int64_t amount_of(const struct drift_node *node)
{
    if (node->verdict == DRIFT_FORWARD)
        return node->advance.lo;
    return node->step.hi < 0 ? node->step.hi : 0;
}

/* Learn from a sample.  Returns true if the clock was certainly stepped since the last sample, by
 * more than the tolerance.  The last sample may be of any age.  A clock that is off by a constant
 * amount is not stepped. */
static bool learn(struct clocks_node *node, const struct drift_guard *guard,
                  const struct drift_sample *sample)
{
    const int64_t tolerance = (int64_t)guard->tolerance;
    struct drift_range before, after;
    bool is_known = drift_node_offset(&node->node, guard, sample->received, &before) == 0;

    (void)drift_node_sample(&node->node, guard, sample);
    return is_known && drift_node_offset(&node->node, guard, sample->received, &after) == 0 &&
           (after.lo - tolerance > before.hi || after.hi + tolerance < before.lo);
}

/* Returns true if the clock was stepped, or runs too fast. */
static bool judge(struct clocks *clocks, unsigned master, const struct drift_sample *sample)
{
    struct clocks_node *node = &clocks->nodes[master];
    drift_time before = node->node.counts_from;
    bool is_step = learn(node, &clocks->guard, sample), is_news;
    enum drift_verdict verdict = node->node.verdict;
    struct reason why;
    int64_t amount;

    if (verdict == DRIFT_FIRST && !is_per_vote(clocks))
        verdict = trust(clocks, &node->node, sample, before);
    is_step |= why_of(verdict) != WHY_NONE && verdict != DRIFT_FIRST;
    if (why_of(verdict) == WHY_NONE || node->node.counts_from == before)
        return is_step;
    amount = amount_of(&node->node);
    is_news = before <= sample->sent || node->why != why_of(verdict) ||
              (node->amount < 0) != (amount < 0); /* Stepped again, the other way. */
    node->why = why_of(verdict);
    node->amount = amount;
    if (is_news && clocks_explain(clocks, master, sample->received, &why))
        peers_warn(clocks->peers, master, &why);
    return is_step;
}

bool clocks_on_time(struct clocks *clocks, unsigned master, const struct ask *ask,
                    const struct reply *reply)
{
    struct clocks_node *node = &clocks->nodes[master];
    struct drift_sample sample = {.sent = sent_at(ask), .received = env_now(clocks->peers->env)};
    struct reason why;
    bool is_step;

    if (ask->number != 1)
        node->asked = false;
    if (!answer_time(reply, &sample.node_us)) {
        reply_reason(reply, &why);
        reason_answers(&why, AT_TIME);
        link_relink(clocks->peers->links[master], &why);
        return false;
    }
    lengthen_window(clocks);
    is_step = judge(clocks, master, &sample);
    for (unsigned m = 0; ask->number != 1 && m < clocks->peers->len; m++)
        place_one(clocks, m, sample.received); /* One sample moves the median of all. */
    if (is_step)
        standing_on_step(clocks->standing, master);
    return ask->number == 1;
}

/* ---- Counting ---- */

static bool counts(const struct clocks *clocks, unsigned master, drift_time sent)
{
    const struct drift_node *node = &clocks->nodes[master].node;

    if (!is_on(clocks))
        return true;
    if (is_per_vote(clocks))
        return drift_node_counts(node, &clocks->guard, sent);
    return sent >= node->counts_from;
}

/* A vote that waited for a TIME is judged by that TIME, which the guard has just processed. */
static drift_time proved_at(const struct clocks *clocks, unsigned master, drift_time sent)
{
    return is_per_vote(clocks) ? clocks->nodes[master].node.last.sent : sent;
}

bool clocks_count(struct clocks *clocks, unsigned master, enum quorum_command command,
                  drift_time sent)
{
    struct reason why;

    if (command == QUORUM_CMD_RELEASE || (command == QUORUM_CMD_EXTEND && !is_per_vote(clocks)))
        return true;
    if (counts(clocks, master, proved_at(clocks, master, sent)))
        return true;
    if (clocks_explain(clocks, master, env_now(clocks->peers->env), &why))
        link_note(clocks->peers->links[master], &why);
    return false;
}

quorum_mask clocks_barred(const struct clocks *clocks, drift_time now)
{
    quorum_mask barred = 0;

    for (unsigned m = 0; is_on(clocks) && m < clocks->peers->len; m++)
        barred |= now < clocks->nodes[m].node.counts_from ? mask_of(m) : 0;
    return barred;
}

drift_span clocks_left(const struct clocks *clocks, unsigned master, drift_time now)
{
    drift_span left = drift_until(now, clocks->nodes[master].node.counts_from);

    if (!is_on(clocks) || counts(clocks, master, now))
        return 0;
    return left > 0 ? left : DRIFT_NEVER;
}

bool clocks_is_off(const struct clocks *clocks, unsigned master)
{
    const struct clocks_node *node = &clocks->nodes[master];

    return node->why == WHY_CLOCK_OFF && node->place == DRIFT_PLACE_OUTLIER;
}

bool clocks_explain(const struct clocks *clocks, unsigned master, drift_time now,
                    struct reason *ret_why)
{
    const struct clocks_node *node = &clocks->nodes[master];
    drift_span left = clocks_left(clocks, master, now);

    if (left == 0)
        return false;
    reason_set(ret_why, left == DRIFT_NEVER     ? WHY_CLOCK_SLOW
                        : node->why == WHY_NONE ? WHY_CLOCK_NEW
                                                : node->why);
    if (left == DRIFT_NEVER)
        return true;
    if (ret_why->why == WHY_CLOCK_OFF && !clocks_is_off(clocks, master))
        ret_why->why = WHY_CLOCK_CORRECTED; /* Each comparison began the time again until now. */
    if (ret_why->why == WHY_CLOCK_STEPPED || node->why == WHY_CLOCK_OFF)
        ret_why->amount = node->amount / (int64_t)DRIFT_MS;
    ret_why->over_at = drift_add(now, left);
    return true;
}
