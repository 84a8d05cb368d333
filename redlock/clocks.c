/*
 * clocks.c - TIME asked, samples judged, votes counted.
 */
#include "redlock/clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/client.h"
#include "redlock/loop.h"

#define US_PER_S 1000000
#define TIME_S_MAX UINT32_MAX /* In 2106; more would not be taken for a TIME. */
#define TEXT_MAX 128

static const char time_command[] = "*1\r\n$4\r\nTIME\r\n";

static bool is_on(const struct redlock *rl)
{
    return rl->options.clock_guard != REDLOCK_CLOCK_GUARD_OFF;
}

static bool is_per_vote(const struct redlock *rl)
{
    return rl->options.clock_guard == REDLOCK_CLOCK_GUARD_PER_VOTE;
}

int clocks_init(struct redlock *rl)
{
    rl->clocks.guard = (struct drift_guard){
        .rate_ppm = rl->options.drift.ppm,
        .tolerance = DRIFT_TOLERANCE,
        .window = guard_quarantine(&rl->standing.guard),
        .gap = CLOCKS_GAP,
    };
    rl->clocks.alarm.pos = ALARM_OFF;
    return alarm_reserve(&rl->alarms, 3); /* This one, and those of standing.c and listen.c. */
}

/* ---- Asking ---- */

/* When it was asked goes with the ask, since several may be on their way; in_full says
 * that votes wait for it. */
static struct master_ask ask_at(drift_time sent, bool is_proof)
{
    return (struct master_ask){
        .slot = (uint32_t)sent,
        .serial = (uint32_t)(sent >> 32),
        .command = MASTER_TIME,
        .in_full = is_proof,
    };
}

static drift_time sent_at(const struct master_ask *ask)
{
    return (drift_time)ask->serial << 32 | ask->slot;
}

/* What is written is written after this. */
static void send_time(struct redlock *rl, unsigned master, bool is_proof)
{
    const struct master_ask ask = ask_at(loop_now(rl->loop), is_proof);

    rl->clocks.nodes[master].asked |= !is_proof;
    master_send(rl->masters[master], &ask, time_command, sizeof time_command - 1);
}

void clocks_ask(struct redlock *rl, unsigned master)
{
    send_time(rl, master, true);
}

void clocks_on_link(struct redlock *rl, unsigned master, bool up)
{
    struct clocks *clocks = &rl->clocks;

    clocks->nodes[master].asked = false;
    if (!is_on(rl) || !up)
        return;
    send_time(rl, master, false);
    if (clocks->alarm.pos == ALARM_OFF)
        alarm_set(&rl->alarms, &clocks->alarm, drift_add(loop_now(rl->loop), CLOCKS_EVERY));
}

void clocks_on_alarm(struct redlock *rl)
{
    quorum_mask linked = rl->standing.linked;

    if (rl->closing && rl->blocking == NULL)
        return;
    for (unsigned m = 0; m < rl->options.masters_len; m++)
        if ((linked & 1u << m) != 0 && !rl->clocks.nodes[m].asked)
            send_time(rl, m, false);
    /* Whoever is not among them comes back without a word if its queue was full. */
    alarm_set(&rl->alarms, &rl->clocks.alarm, drift_add(loop_now(rl->loop), CLOCKS_EVERY));
}

/* ---- Judging ---- */

/* A number without a sign, of so many digits at the most; false: it is none. */
static bool parse_number(const char *text, size_t digits_max, uint64_t *ret_number)
{
    size_t digits = text != NULL ? strspn(text, "0123456789") : 0;

    if (digits == 0 || digits > digits_max || text[digits] != '\0')
        return false;
    *ret_number = strtoull(text, NULL, 10);
    return true;
}

/* Two texts: seconds, and microseconds. */
bool clocks_parse(const struct reply *reply, uint64_t *ret_us)
{
    uint64_t s, us;

    if (reply->type != REPLY_ARRAY || !parse_number(reply->before, 10, &s) ||
        !parse_number(reply->text, 6, &us) || s > TIME_S_MAX)
        return false;
    *ret_us = s * US_PER_S + us;
    return true;
}

int clocks_offset(const struct redlock *rl, unsigned master, drift_time now,
                  struct drift_range *ret_offset)
{
    const struct clocks *clocks = &rl->clocks;
    struct drift_range offsets[QUORUM_MASTERS_MAX], own = {0, 0}, median;
    unsigned len = 0;
    bool is_known = false;

    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        const struct drift_node *node = &clocks->nodes[m].node;

        if (drift_until(node->last.received, now) > clocks->guard.gap ||
            drift_node_offset(node, &clocks->guard, now, &offsets[len]) != 0)
            continue;
        if (m == master) {
            own = offsets[len];
            is_known = true;
        }
        len++;
    }
    /* Fewer might all be in the wrong, and two agree about nothing. */
    if (!is_known || len < 3 || len < rl->options.masters_len / 2 + 1)
        return 1;
    drift_node_median(offsets, len, &median);
    ret_offset->lo = own.lo - median.hi;
    ret_offset->hi = own.hi - median.lo;
    return 0;
}

static void tell(const struct redlock *rl, unsigned master, const char *text)
{
    client_log(rl, REDLOCK_LOG_WARNING, "master %u (%s): %s", master + 1,
               master_name(rl->masters[master]), text);
}

/* So far off that it is not to be counted, or that somebody should know. */
static void place_one(struct redlock *rl, unsigned master, drift_time now)
{
    struct clocks_node *node = &rl->clocks.nodes[master];
    const struct drift_range others = {0, 0};
    enum drift_place before = node->place;
    struct drift_range offset;
    char text[TEXT_MAX];

    if (clocks_offset(rl, master, now, &offset) != 0)
        return;
    node->place = drift_node_place(&offset, &others);
    if (node->place == DRIFT_PLACE_OUTLIER) {
        drift_node_bar(&node->node, &rl->clocks.guard, now);
        node->reason = CLOCKS_OUTLIER;
        node->amount = offset.lo > 0 ? offset.lo : offset.hi;
    }
    if (node->place == before || node->place == DRIFT_PLACE_NEAR)
        return;
    (void)snprintf(text, sizeof text, "its wall clock is %+.3f s off those of the others%s",
                   (double)(offset.lo > 0 ? offset.lo : offset.hi) / (double)DRIFT_S,
                   node->place == DRIFT_PLACE_OUTLIER ? ", and it may not vote" : "");
    tell(rl, master, text);
}

/* What one says moves the median of all. */
static void place(struct redlock *rl, drift_time now)
{
    for (unsigned m = 0; m < rl->options.masters_len; m++)
        place_one(rl, m, now);
}

/* The longest lease that may be alive is longer than was thought: what was learned was
 * about a window that is too short. */
static void lengthen_window(struct redlock *rl)
{
    struct clocks *clocks = &rl->clocks;
    drift_span window = guard_quarantine(&rl->standing.guard), more;

    if (window <= clocks->guard.window)
        return;
    more = window - clocks->guard.window;
    clocks->guard.window = window;
    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        struct drift_node *node = &clocks->nodes[m].node;
        drift_time until = node->counts_from != 0 ? drift_add(node->counts_from, more) : 0;

        *node = (struct drift_node){.counts_from = until};
    }
}

/* Without anything to compare with: as if somebody had said that all is well.  What
 * stands against it stays. */
static enum drift_verdict trust(struct clocks *clocks, struct drift_node *node,
                                const struct drift_sample *sample, drift_time counts_from)
{
    struct drift_range offset;

    drift_sample_offset(sample, &offset);
    drift_node_vouch(node, &clocks->guard, sample->sent, &offset);
    node->counts_from = counts_from;
    return drift_node_sample(node, &clocks->guard, sample);
}

static enum clocks_reason reason_of(enum drift_verdict verdict)
{
    switch (verdict) {
    case DRIFT_FIRST:
        return CLOCKS_NOT_KNOWN;
    case DRIFT_FORWARD:
        return CLOCKS_FORWARD;
    case DRIFT_BACKWARD:
        return CLOCKS_BACKWARD;
    case DRIFT_FAST:
        return CLOCKS_FAST;
    case DRIFT_STEADY:
    case DRIFT_UNCERTAIN:
        break;
    }
    return CLOCKS_NOTHING;
}

/* Of what it was put forward or back, so much for certain. */
static int64_t amount_of(const struct drift_node *node)
{
    if (node->verdict == DRIFT_FORWARD)
        return node->advance.lo;
    return node->step.hi < 0 ? node->step.hi : 0;
}

static void judge(struct redlock *rl, unsigned master, const struct drift_sample *sample)
{
    struct clocks_node *node = &rl->clocks.nodes[master];
    drift_time before = node->node.counts_from;
    enum drift_verdict verdict = drift_node_sample(&node->node, &rl->clocks.guard, sample);
    char text[TEXT_MAX];
    bool is_news;

    if (verdict == DRIFT_FIRST && !is_per_vote(rl))
        verdict = trust(&rl->clocks, &node->node, sample, before);
    if (reason_of(verdict) == CLOCKS_NOTHING || node->node.counts_from == before)
        return;
    is_news = before <= sample->sent || node->reason != reason_of(verdict);
    node->reason = reason_of(verdict);
    node->amount = amount_of(&node->node);
    if (is_news && clocks_explain(rl, master, sample->received, text, sizeof text))
        tell(rl, master, text);
}

void clocks_on_time(struct redlock *rl, unsigned master, const struct master_ask *ask,
                    const struct reply *reply)
{
    struct clocks_node *node = &rl->clocks.nodes[master];
    struct drift_sample sample = {.sent = sent_at(ask), .received = loop_now(rl->loop)};
    char text[TEXT_MAX];

    if (!ask->in_full)
        node->asked = false;
    if (!clocks_parse(reply, &sample.node_us)) {
        (void)snprintf(text, sizeof text, "clock guard: %s",
                       reply->type == REPLY_ERROR ? reply->text : "answered with garbage");
        master_relink(rl->masters[master], text);
        return;
    }
    lengthen_window(rl);
    judge(rl, master, &sample);
    if (ask->in_full)
        proof_on_time(rl, master);
    else
        place(rl, sample.received);
}

/* ---- Counting ---- */

static bool counts(const struct redlock *rl, unsigned master, drift_time sent)
{
    const struct drift_node *node = &rl->clocks.nodes[master].node;

    if (!is_on(rl))
        return true;
    if (is_per_vote(rl))
        return drift_node_counts(node, &rl->clocks.guard, sent);
    return sent >= node->counts_from;
}

/* A vote that waited for a TIME counts as that does, which was just learned from. */
static drift_time proved_at(const struct redlock *rl, unsigned master, drift_time sent)
{
    return is_per_vote(rl) ? rl->clocks.nodes[master].node.last.sent : sent;
}

bool clocks_count(struct redlock *rl, unsigned master, enum quorum_command command, drift_time sent)
{
    char text[TEXT_MAX];

    if (command == QUORUM_CMD_RELEASE || (command == QUORUM_CMD_EXTEND && !is_per_vote(rl)))
        return true;
    if (counts(rl, master, proved_at(rl, master, sent)))
        return true;
    if (clocks_explain(rl, master, loop_now(rl->loop), text, sizeof text))
        master_note(rl->masters[master], text);
    return false;
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)DRIFT_S;
}

bool clocks_explain(const struct redlock *rl, unsigned master, drift_time now, char *text,
                    size_t size)
{
    const struct clocks_node *node = &rl->clocks.nodes[master];
    drift_span left = drift_until(now, node->node.counts_from);
    char what[TEXT_MAX / 2];

    if (!is_on(rl) || (!is_per_vote(rl) && left == 0))
        return false;
    if (left == 0 && counts(rl, master, now))
        return false;
    if (left == 0) {
        (void)snprintf(text, size, "its wall clock cannot be told well enough: it answers slowly");
        return true;
    }
    switch (node->reason) {
    case CLOCKS_NOTHING:
    case CLOCKS_NOT_KNOWN:
        (void)snprintf(what, sizeof what, "has not been watched for long enough");
        break;
    case CLOCKS_FORWARD:
    case CLOCKS_BACKWARD:
        (void)snprintf(what, sizeof what, "was stepped by %+.3f s", seconds(node->amount));
        break;
    case CLOCKS_FAST:
        (void)snprintf(what, sizeof what, "runs faster than the drift allows");
        break;
    case CLOCKS_OUTLIER:
        (void)snprintf(what, sizeof what, "is %+.3f s off those of the others",
                       seconds(node->amount));
        break;
    }
    (void)snprintf(text, size, "its wall clock %s, and it may not vote for %.1f s", what,
                   seconds((int64_t)left));
    return true;
}
