/*
 * node.c - derive what a master's wall clock did from the TIMEs that it reported.
 *
 * Lines.  Let W(s) be the master's clock at the instant s of ours.  It is compared
 * with two lines.  The fast line runs (1 + rate) as fast as our clock, the slow
 * line (1 - rate).
 *
 *     F(s) = W(s) - (1 + rate) * s      falls, or stays, if the clock is honest
 *     S(s) = W(s) - (1 - rate) * s      rises, or stays, if the clock is honest
 *
 * So F(n) - F(s) is how far the clock went forward from s to n beyond its rate, in
 * whatever steps.  A sample gives a range for either line.  The clock was read at
 * an instant between sent and received.  It showed between node_us and a
 * microsecond more, because TIME is cut off.  This assumes nothing else.
 *
 * Three numbers are kept of a window of samples:
 *
 *     floor      F never was below this, except in dips
 *     ceiling    F once was at or below this
 *     slow_peak  S once was at or above this
 *
 *     forward beyond the rate: at least F(n).lo - ceiling, at most F(n).hi - floor;
 *     backward beyond it: at least slow_peak - S(n).hi.
 *
 * An honest clock has F(n) <= F(s) <= ceiling and S(n) >= S(s) >= slow_peak.  So it
 * is never accused, not even if the tolerance is 0.
 *
 * Proof of THE PROMISE (node.h), which is F(n) - F(s) < tolerance.  A vote counts
 * only if F(n).hi - floor is below the tolerance, so it is enough that floor <=
 * F(s).  Let s be between the useful samples a and b (or b = n), and not in a dip.
 * Then s violates one of the two conditions of a dip.  If it violates the second:
 *
 *     W(s) >= W(b) - (1 + rate) * (b - s), which is F(s) >= F(b).
 *
 * F(b) is in the floor with the pair that follows b.  If b is n, there is nothing
 * to show.  If s violates the first:
 *
 *     W(s) - s >= W(a) - a - min(rate * (s - a), tolerance / 4),  so, less rate * s,
 *     F(s)     >= W(a) - a - min(rate * (b - a), tolerance / 4) - rate * b.
 *
 * keep() puts this value into the floor for the pair of a and b.  It goes into the
 * part of the window in which b was answered, so it stays for a window from any s
 * of the pair.  All s of the window are in some pair.  A pair longer than a gap
 * begins the window anew, and so does a step forward.  The master then does not
 * count before a whole window has passed.
 *
 * Why not keep one range for the offset, widen it with time, and intersect it with
 * each new one?  The range would be narrower, and wrong.  Intersecting assumes that
 * the clock was not stepped, which is the question.  For example, two answers of
 * 100 ms give -50 to 50 ms, and 10 to 110 ms after a step of 60 ms.  The
 * intersection says 10 to 50 ms, but the offset is 60 ms.  Let the clock go back by
 * the same 60 ms unseen, and forward again later.  The range has then forgotten a
 * step that a lease may have begun before.
 *
 * Why does the floor get no credit of rate * (b - a)?  A clock that steps forward
 * at the end of a long pair has had no time to earn it.  With credit, a step of 500
 * ms would pass as the 1 % of a minute without samples.
 */
#include "drift/node.h"

#include <assert.h>
#include <stddef.h>

#define PPM_ONE 1000000

/* Limits on times.  Within them, sums do not overflow 64 bits, even with half added for the
 * rate. */
#define OURS_MAX (UINT64_C(1) << 61)             /* Our clock, ns: 73 years of uptime. */
#define NODE_US_MAX ((UINT64_C(1) << 62) / 1000) /* A TIME: until the year 2116. */
#define NODE_UNIT_NS 1000                        /* The unit that TIME is cut off to. */

/* A sample, relative to the lines. */
struct view {
    struct drift_range offset; /* Against our clock. */
    struct drift_range fast;   /* Against the fast line. */
    struct drift_range slow;   /* Against the slow line. */
};

/* What is known from the window. */
struct past {
    int64_t floor, ceiling, slow_peak;
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* a - b, saturating. */
static int64_t minus(int64_t a, int64_t b)
{
    int64_t difference;

    if (__builtin_sub_overflow(a, b, &difference))
        return b < 0 ? INT64_MAX : INT64_MIN;
    return difference;
}

/* A span as a signed number, saturating. */
static int64_t as_signed(drift_span span)
{
    return span > INT64_MAX ? INT64_MAX : (int64_t)span;
}

/* The rate's share of a time, rounded down, and up.  It is at most half of the time.
 * (drift_allowance() accepts any rate, and divides by it.  This runs for every vote.) */
static int64_t share_down(const struct drift_guard *guard, drift_span time)
{
    return as_signed(time / PPM_ONE * guard->rate_ppm + time % PPM_ONE * guard->rate_ppm / PPM_ONE);
}

static int64_t share_up(const struct drift_guard *guard, drift_span time)
{
    return as_signed(time / PPM_ONE * guard->rate_ppm +
                     (time % PPM_ONE * guard->rate_ppm + PPM_ONE - 1) / PPM_ONE);
}

void drift_sample_offset(const struct drift_sample *sample, struct drift_range *ret_offset)
{
    int64_t node = (int64_t)(sample->node_us * NODE_UNIT_NS);

    *ret_offset = (struct drift_range){.lo = node - (int64_t)sample->received,
                                       .hi = node + NODE_UNIT_NS - (int64_t)sample->sent};
}

static struct view look(const struct drift_guard *guard, const struct drift_sample *sample)
{
    struct view view;

    drift_sample_offset(sample, &view.offset);
    view.fast.lo = view.offset.lo - share_up(guard, sample->received);
    view.fast.hi = view.offset.hi - share_down(guard, sample->sent);
    view.slow.lo = view.offset.lo + share_down(guard, sample->received);
    view.slow.hi = view.offset.hi + share_up(guard, sample->sent);
    return view;
}

static bool can_be(const struct drift_node *node, const struct drift_sample *sample)
{
    return sample->received > 0 && sample->sent <= sample->received &&
           sample->received <= OURS_MAX && sample->node_us <= NODE_US_MAX &&
           sample->sent >= node->last.sent && sample->received >= node->last.received;
}

/* The length of a part.  All parts together are longer than the window. */
static drift_span part_length(const struct drift_guard *guard)
{
    return guard->window / DRIFT_WINDOW_PARTS + 1;
}

static drift_span delay_of(const struct drift_sample *sample)
{
    return sample->received - sample->sent;
}

static bool is_useful(const struct drift_guard *guard, const struct drift_sample *sample)
{
    return delay_of(sample) <= guard->tolerance / 2 && delay_of(sample) <= part_length(guard);
}

/* True: the sample can be compared with the last useful one. */
static bool is_continued(const struct drift_node *node, const struct drift_guard *guard,
                         const struct drift_sample *sample)
{
    return node->is_anchored && sample->received - node->anchor_sent <= guard->gap;
}

/* The floor for the pair of the last useful sample and this one. */
static int64_t floor_of_pair(const struct drift_node *node, const struct drift_guard *guard,
                             const struct drift_sample *sample)
{
    int64_t drift = share_up(guard, sample->received - node->anchor_sent);
    int64_t sunk = smaller(drift, as_signed(guard->tolerance / 4));

    return minus(minus(node->anchor_offset, sunk), share_up(guard, sample->received));
}

/* What was seen in the window before a sample, and in the pair that ends with it.  That pair may
 * be longer than the window.  A clock that was set back during a window without samples is not
 * steady. */
static struct past recall(const struct drift_node *node, const struct drift_guard *guard,
                          const struct drift_sample *sample)
{
    struct past past = {.floor = INT64_MAX, .ceiling = INT64_MAX, .slow_peak = INT64_MIN};

    for (size_t i = 0; i < DRIFT_PARTS_LEN; i++) {
        const struct drift_part *part = &node->parts[i];

        /* Skip parts that ended a window or more before the sample was sent. */
        if (part->number == 0 ||
            drift_add(part->number * part_length(guard), guard->window) <= sample->sent)
            continue;
        past.floor = smaller(past.floor, part->floor);
        past.ceiling = smaller(past.ceiling, part->ceiling);
        past.slow_peak = larger(past.slow_peak, part->slow_peak);
    }
    if (is_continued(node, guard, sample)) {
        past.floor = smaller(past.floor, floor_of_pair(node, guard, sample));
        if (node->last.received != 0)
            past.slow_peak = larger(past.slow_peak, look(guard, &node->last).slow.lo);
    } else {
        past.floor = INT64_MIN;
    }
    return past;
}

/* The part that contains an instant, empty if it is new. */
static struct drift_part *part_at(struct drift_node *node, const struct drift_guard *guard,
                                  drift_time t)
{
    uint64_t number = t / part_length(guard) + 1;
    struct drift_part *part = &node->parts[number % DRIFT_PARTS_LEN];

    if (part->number != number) {
        *part = (struct drift_part){
            .number = number, .floor = INT64_MAX, .ceiling = INT64_MAX, .slow_peak = INT64_MIN};
    }
    return part;
}

static void forget(struct drift_node *node)
{
    for (size_t i = 0; i < DRIFT_PARTS_LEN; i++)
        node->parts[i].number = 0;
    node->is_anchored = false;
}

static void forget_peak(struct drift_node *node)
{
    for (size_t i = 0; i < DRIFT_PARTS_LEN; i++)
        node->parts[i].slow_peak = INT64_MIN;
}

/* Any sample shows where the clock has been. */
static void note(struct drift_node *node, struct drift_part *part,
                 const struct drift_sample *sample, const struct view *view)
{
    part->ceiling = smaller(part->ceiling, view->fast.hi);
    part->slow_peak = larger(part->slow_peak, view->slow.lo);
    node->last = *sample;
}

/* A useful sample also shows where the clock has not been.  The next sample is compared with it. */
static void keep(struct drift_node *node, const struct drift_guard *guard, struct drift_part *part,
                 const struct drift_sample *sample, const struct view *view)
{
    if (node->is_anchored)
        part->floor = smaller(part->floor, floor_of_pair(node, guard, sample));
    node->is_anchored = true;
    node->anchor_sent = sample->sent;
    node->anchor_offset = view->offset.lo;

    if (node->far[1].received == 0) {
        node->far[0] = node->far[1] = *sample;
    } else if (drift_until(node->far[1].received, sample->sent) >= guard->window) {
        node->far[0] = node->far[1];
        node->far[1] = *sample;
    }
}

/* True: the sample ends a span, and at least two spans in a row were fast. */
static bool is_fast(struct drift_node *node, const struct drift_guard *guard,
                    const struct drift_sample *sample, const struct view *view)
{
    struct view then;

    if (node->span.received == 0)
        node->span = *sample;
    if (drift_until(node->span.received, sample->sent) < DRIFT_S)
        return false;
    then = look(guard, &node->span);
    node->fast_spans = view->fast.lo > then.fast.hi ? node->fast_spans + 1 : 0;
    node->span = *sample;
    return node->fast_spans >= 2;
}

/* How far the clock was put forward since the last sample, if its rate was honest. */
static struct drift_range step_of(const struct drift_node *node, const struct drift_guard *guard,
                                  const struct drift_sample *sample, const struct view *view)
{
    struct drift_range then;
    int64_t drift;

    if (node->last.received == 0)
        return (struct drift_range){0, 0};
    drift_sample_offset(&node->last, &then);
    drift = share_up(guard, sample->received - node->last.sent);
    return (struct drift_range){.lo = minus(minus(view->offset.lo, then.hi), drift),
                                .hi = minus(minus(view->offset.hi, then.lo), -drift)};
}

static enum drift_verdict judge(struct drift_node *node, const struct drift_guard *guard,
                                const struct drift_sample *sample, const struct view *view)
{
    struct past past = recall(node, guard, sample);
    int64_t tolerance = as_signed(guard->tolerance);

    node->advance.lo = minus(view->fast.lo, past.ceiling);
    /* An answer that was not useful may have shown a dip, which the floor ignores. */
    node->advance.hi = larger(node->advance.lo, minus(view->fast.hi, past.floor));
    node->step = step_of(node, guard, sample, view);
    if (is_fast(node, guard, sample, view))
        return DRIFT_FAST;
    if (node->advance.lo > tolerance)
        return DRIFT_FORWARD;
    if (minus(past.slow_peak, view->slow.hi) > tolerance)
        return DRIFT_BACKWARD;
    if (!is_continued(node, guard, sample))
        return is_useful(guard, sample) ? DRIFT_FIRST : DRIFT_UNCERTAIN;
    /* While this answer was delayed, other samples may have displaced parts that lie in
     * the window before it was sent. */
    if (delay_of(sample) > part_length(guard))
        return DRIFT_UNCERTAIN;
    return node->advance.hi < tolerance ? DRIFT_STEADY : DRIFT_UNCERTAIN;
}

/* How long the master is not counted by a client that may have begun to watch in a dip.  Until
 * then, each client whose samples lie before and after the dip has lost the thread: they are more
 * than a gap apart, by its clock.  Two clocks that differ by the rate measure a gap with a ratio of
 * (1 + rate) / (1 - rate), which is at most 1 + 4 * rate. */
static drift_span hold_off(const struct drift_guard *guard)
{
    return drift_add(guard->gap, 4 * (drift_span)share_up(guard, guard->gap));
}

drift_span drift_node_watch(const struct drift_guard *guard)
{
    return guard->window > hold_off(guard) ? guard->window : hold_off(guard);
}

/* Do not count the master before t. */
static void bar_until(struct drift_node *node, drift_time t)
{
    if (node->counts_from < t)
        node->counts_from = t;
}

/* Apply the verdict to what is known, and to whether the master counts. */
static void act(struct drift_node *node, const struct drift_guard *guard,
                const struct drift_sample *sample)
{
    bool is_new = is_useful(guard, sample) && !is_continued(node, guard, sample);
    bool may_dip = is_new; /* The clock may be in a dip now. */

    switch (node->verdict) {
    case DRIFT_FIRST:
    case DRIFT_STEADY:
    case DRIFT_UNCERTAIN:
        break;
    case DRIFT_FORWARD:
        node->far[0] = node->far[1] = (struct drift_sample){0};
        is_new = true;
        break;
    case DRIFT_FAST:
        is_new = true;
        break;
    case DRIFT_BACKWARD:
        node->far[0] = node->far[1] = (struct drift_sample){0};
        forget_peak(node);
        may_dip = true;
        break;
    }
    if (may_dip)
        bar_until(node, drift_add(sample->received, hold_off(guard)));
    if (is_new) {
        forget(node);
        bar_until(node, drift_add(sample->received, guard->window));
    }
}

enum drift_verdict drift_node_sample(struct drift_node *node, const struct drift_guard *guard,
                                     const struct drift_sample *sample)
{
    struct drift_part *part;
    struct view view;

    assert(guard->rate_ppm <= PPM_ONE / 2);
    if (!can_be(node, sample)) {
        node->verdict = DRIFT_UNCERTAIN;
        return node->verdict;
    }
    view = look(guard, sample);
    node->verdict = judge(node, guard, sample, &view);
    act(node, guard, sample);
    part = part_at(node, guard, sample->received);
    note(node, part, sample, &view);
    if (is_useful(guard, sample))
        keep(node, guard, part, sample, &view);
    return node->verdict;
}

bool drift_node_counts(const struct drift_node *node, const struct drift_guard *guard,
                       drift_time sent)
{
    return node->verdict == DRIFT_STEADY && sent >= node->counts_from &&
           drift_until(node->last.received, sent) <= guard->gap;
}

void drift_node_vouch(struct drift_node *node, const struct drift_guard *guard, drift_time at,
                      const struct drift_range *offset)
{
    struct drift_part *part;

    assert(at <= OURS_MAX && offset->lo <= offset->hi);
    *node = (struct drift_node){0};
    part = part_at(node, guard, at);
    part->ceiling = minus(offset->hi, share_down(guard, at));
    part->slow_peak = minus(offset->lo, -share_down(guard, at));
    node->is_anchored = true;
    node->anchor_sent = at;
    node->anchor_offset = offset->lo;
}

void drift_node_bar(struct drift_node *node, const struct drift_guard *guard, drift_time now)
{
    bar_until(node, drift_add(now, guard->window));
}

int drift_node_offset(const struct drift_node *node, const struct drift_guard *guard,
                      drift_time now, struct drift_range *ret_offset)
{
    struct drift_range offset;
    int64_t drift;

    if (node->last.received == 0)
        return 1;
    drift_sample_offset(&node->last, &offset);
    drift = share_up(guard, drift_until(node->last.sent, now));
    ret_offset->lo = minus(offset.lo, drift);
    ret_offset->hi = minus(offset.hi, -drift);
    return 0;
}

/* ahead divided by time, in parts per million, rounded down. time is a second or more.  A
 * product might overflow 64 bits, so time is divided instead, with rounding to the safe side. */
static int64_t ppm_down(int64_t ahead, drift_span time)
{
    int64_t unit = (int64_t)(time / PPM_ONE);

    if (ahead >= 0)
        return ahead / (unit + 1);
    return -((-ahead + unit - 1) / unit);
}

/* The rate, minus one, of a clock that went this far in this time. */
static int64_t rate_down(int64_t went, drift_span time)
{
    return ppm_down(went - (int64_t)time, time);
}

static int64_t rate_up(int64_t went, drift_span time)
{
    return -ppm_down((int64_t)time - went, time);
}

int drift_node_rate(const struct drift_node *node, struct drift_range *ret_ppm)
{
    const struct drift_sample *then = &node->far[0], *last = &node->last;
    drift_span longest = last->received - then->sent;
    drift_span shortest = drift_until(then->received, last->sent);
    int64_t went = ((int64_t)last->node_us - (int64_t)then->node_us) * NODE_UNIT_NS;
    int64_t went_lo = went - NODE_UNIT_NS, went_hi = went + NODE_UNIT_NS;

    if (then->received == 0 || shortest < DRIFT_S)
        return 1;
    /* A forward clock is slowest over the longest time, a backward clock over the shortest. */
    ret_ppm->lo = rate_down(went_lo, went_lo < 0 ? shortest : longest);
    ret_ppm->hi = rate_up(went_hi, went_hi < 0 ? longest : shortest);
    return 0;
}

static int64_t end_of(const struct drift_range *offset, bool is_upper)
{
    return is_upper ? offset->hi : offset->lo;
}

/* The lower or upper end of the offsets that has this place in their order, from 0 on. */
static int64_t end_in_order(const struct drift_range *offsets, unsigned offsets_len, bool is_upper,
                            unsigned place)
{
    for (unsigned i = 0; i < offsets_len; i++) {
        int64_t end = end_of(&offsets[i], is_upper);
        unsigned below = 0, same = 0;

        for (unsigned j = 0; j < offsets_len; j++) {
            below += end_of(&offsets[j], is_upper) < end;
            same += end_of(&offsets[j], is_upper) == end;
        }
        if (below <= place && place < below + same)
            return end;
    }
    assert(!"a place");
    return 0;
}

void drift_node_median(const struct drift_range *offsets, unsigned offsets_len,
                       struct drift_range *ret_median)
{
    assert(offsets_len > 0);
    /* The i-th of a set of numbers is not below the i-th of their lower bounds. */
    *ret_median =
        (struct drift_range){.lo = end_in_order(offsets, offsets_len, false, (offsets_len - 1) / 2),
                             .hi = end_in_order(offsets, offsets_len, true, offsets_len / 2)};
}

enum drift_place drift_node_place(const struct drift_range *offset,
                                  const struct drift_range *median)
{
    int64_t off = larger(minus(offset->lo, median->hi), minus(median->lo, offset->hi));

    if (off > as_signed(DRIFT_OUTLIER))
        return DRIFT_PLACE_OUTLIER;
    return off > as_signed(DRIFT_FAR) ? DRIFT_PLACE_FAR : DRIFT_PLACE_NEAR;
}

struct drift_bound drift_node_allowance(struct drift_bound drift)
{
    struct drift_bound allowance = drift;

    allowance.ppm *= 2;
    allowance.fixed += DRIFT_TOLERANCE;
    return allowance;
}
