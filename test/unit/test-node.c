/*
 * test-node.c - what a master's clock did: both sides of every boundary.
 *
 * The master's clock is exactly ours plus an offset.  The test chooses the instants of
 * the questions; test-node-attack.c draws them at random.
 */
#include "drift/node.h"

#include "test/lib/check.h"

#define US INT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)
#define BEGIN (1000 * S)           /* Our clock at the beginning of a test. */
#define EPOCH (1700000 * S * 1000) /* How far a master's clock is ahead of ours. */

/* The offset of a clock that is ahead by EPOCH and no more. */
static const struct drift_range in_step = {EPOCH, EPOCH};
/* No rate is allowed, so every change of an offset is a step. */
static const struct drift_guard exact = {
    .rate_ppm = 0, .tolerance = DRIFT_TOLERANCE, .window = 80 * DRIFT_S - 8, .gap = 10 * DRIFT_S};
/* The rate is 1 %. */
static const struct drift_guard usual = {.rate_ppm = 10000,
                                         .tolerance = DRIFT_TOLERANCE,
                                         .window = 80 * DRIFT_S - 8,
                                         .gap = 10 * DRIFT_S};
/* A window with parts shorter than the tolerance. */
static const struct drift_guard brief = {
    .rate_ppm = 0, .tolerance = DRIFT_TOLERANCE, .window = 320 * DRIFT_MS - 8, .gap = 10 * DRIFT_S};
/* The length of a part of the windows of the others. */
#define PART (10 * S)

/* A question is sent at t since BEGIN.  The answer comes after delay, and the clock is then ahead
 * by this much more than EPOCH. */
static enum drift_verdict tell(struct drift_node *node, const struct drift_guard *guard, int64_t t,
                               int64_t delay, int64_t ahead)
{
    struct drift_sample sample = {.sent = (drift_time)(BEGIN + t),
                                  .received = (drift_time)(BEGIN + t + delay),
                                  .node_us = (uint64_t)((BEGIN + t + delay + EPOCH + ahead) / US)};

    return drift_node_sample(node, guard, &sample);
}

/* One sample a second without delay.  The verdict on each is STEADY. */
static void be_steady(struct drift_node *node, const struct drift_guard *guard, int64_t from,
                      int64_t until, int64_t ahead)
{
    for (int64_t t = from; t <= until; t += S)
        CHECK_INT(tell(node, guard, t, 0, ahead), DRIFT_STEADY);
}

static bool counts(const struct drift_node *node, const struct drift_guard *guard, int64_t t)
{
    return drift_node_counts(node, guard, (drift_time)(BEGIN + t));
}

TEST(an_offset_is_between_question_and_answer)
{
    struct drift_sample sample = {.sent = 5000, .received = 9000, .node_us = 100};
    struct drift_range offset;

    /* The clock was read between 5 and 9 us, and said between 100 and 101 us. */
    drift_sample_offset(&sample, &offset);
    CHECK_INT(offset.lo, 91000);
    CHECK_INT(offset.hi, 96000);
}

/* Two samples, and the verdict on the second. */
static const struct step_row {
    const char *name;
    const struct drift_guard *guard;
    int64_t delay_a, t, delay_b, ahead; /* ahead is 0 at the first answer. */
    enum drift_verdict verdict;
} step_rows[] = {
    /* Without rate and delays 2 us are in doubt, because each TIME is cut off to 1 us. */
    {"nothing", &exact, 0, S, 0, 0, DRIFT_STEADY},
    {"below", &exact, 0, S, 0, 100 * MS - 2 * US, DRIFT_STEADY},
    {"perhaps at", &exact, 0, S, 0, 100 * MS - US, DRIFT_UNCERTAIN},
    {"perhaps above", &exact, 0, S, 0, 100 * MS + US, DRIFT_UNCERTAIN},
    {"above", &exact, 0, S, 0, 100 * MS + 2 * US, DRIFT_FORWARD},
    {"a day", &exact, 0, S, 0, 86400 * S, DRIFT_FORWARD},
    {"back below", &exact, 0, S, 0, -100 * MS, DRIFT_STEADY},
    {"back perhaps above", &exact, 0, S, 0, -100 * MS - US, DRIFT_STEADY},
    {"back above", &exact, 0, S, 0, -100 * MS - 2 * US, DRIFT_BACKWARD},
    {"back a day", &exact, 0, S, 0, -86400 * S, DRIFT_BACKWARD},
    /* In a second an honest clock may gain 10 ms, which explains a part of the step.  Or it lost
     * 10 ms before the step, which makes the step longer for a lease that began then. */
    {"rate: below", &usual, 0, S, 0, 90 * MS - 2 * US, DRIFT_STEADY},
    {"rate: perhaps at", &usual, 0, S, 0, 90 * MS - US, DRIFT_UNCERTAIN},
    {"rate: perhaps above", &usual, 0, S, 0, 110 * MS + US, DRIFT_UNCERTAIN},
    {"rate: above", &usual, 0, S, 0, 110 * MS + 2 * US, DRIFT_FORWARD},
    {"rate: back", &usual, 0, S, 0, -110 * MS - US, DRIFT_STEADY},
    {"rate: back above", &usual, 0, S, 0, -110 * MS - 2 * US, DRIFT_BACKWARD},
    /* In four seconds it is 40 ms, but at most a quarter of the tolerance counts as lost. */
    {"pause: below", &usual, 0, 4 * S, 0, 75 * MS - 2 * US, DRIFT_STEADY},
    {"pause: perhaps at", &usual, 0, 4 * S, 0, 75 * MS - US, DRIFT_UNCERTAIN},
    {"pause: perhaps above", &usual, 0, 4 * S, 0, 140 * MS + US, DRIFT_UNCERTAIN},
    {"pause: above", &usual, 0, 4 * S, 0, 140 * MS + 2 * US, DRIFT_FORWARD},
    /* The direction of a delay is not known.  In the rows "delay a" the first sample has it, and
     * the clock may be ahead by that much more. */
    {"delay: below", &exact, 0, S, 40 * MS, 60 * MS - 2 * US, DRIFT_STEADY},
    {"delay: perhaps at", &exact, 0, S, 40 * MS, 60 * MS - US, DRIFT_UNCERTAIN},
    {"delay: perhaps above", &exact, 0, S, 40 * MS, 100 * MS + US, DRIFT_UNCERTAIN},
    {"delay: above", &exact, 0, S, 40 * MS, 100 * MS + 2 * US, DRIFT_FORWARD},
    {"delay: back", &exact, 0, S, 40 * MS, -140 * MS - US, DRIFT_STEADY},
    {"delay: back above", &exact, 0, S, 40 * MS, -140 * MS - 2 * US, DRIFT_BACKWARD},
    {"delay a: below", &exact, 40 * MS, S, 0, 100 * MS - 2 * US, DRIFT_STEADY},
    {"delay a: perhaps at", &exact, 40 * MS, S, 0, 100 * MS - US, DRIFT_UNCERTAIN},
    {"delay a: perhaps above", &exact, 40 * MS, S, 0, 140 * MS + US, DRIFT_UNCERTAIN},
    {"delay a: above", &exact, 40 * MS, S, 0, 140 * MS + 2 * US, DRIFT_FORWARD},
    /* Delays of many seconds. */
    {"slow answer", &exact, 0, S, 30 * S, 0, DRIFT_UNCERTAIN},
    {"slow answer, above", &exact, 0, S, 5 * S, 101 * MS, DRIFT_FORWARD},
    {"slow answer, back", &exact, 0, S, 5 * S, -5101 * MS, DRIFT_BACKWARD},
    /* An answer that takes longer than a part of the window (40 ms) may hide a step. */
    {"brief", &brief, 0, S, 40 * MS, 0, DRIFT_STEADY},
    {"brief, slow answer", &brief, 0, S, 40 * MS + 1, 0, DRIFT_UNCERTAIN},
    {"brief, useful", &brief, 40 * MS, S, 0, 0, DRIFT_STEADY},
    {"brief, not useful", &brief, 40 * MS + 1, S, 0, 0, DRIFT_FIRST},
    /* Later samples are compared with useful samples only. */
    {"useful", &exact, 50 * MS, S, 0, 0, DRIFT_STEADY},
    {"not useful", &exact, 50 * MS + 1, S, 0, 0, DRIFT_FIRST},
    /* A certain step is found with a sample that is not useful, too. */
    {"not useful, above", &exact, 60 * MS, S, 0, 160 * MS + 2 * US, DRIFT_FORWARD},
    /* A gap counts from question to answer. */
    {"gap", &exact, 0, 10 * S, 0, 0, DRIFT_STEADY},
    {"over a gap", &exact, 0, 10 * S + 1, 0, 0, DRIFT_FIRST},
    {"over a gap with the delay", &exact, 0, 10 * S, 1, 0, DRIFT_FIRST},
    {"gap from the question on", &exact, 40 * MS, 10 * S, 0, 0, DRIFT_STEADY},
    {"over a gap from the question on", &exact, 40 * MS, 10 * S + 1, 0, 0, DRIFT_FIRST},
    {"over a gap, slow", &exact, 0, 10 * S, 51 * MS, 0, DRIFT_UNCERTAIN},
    {"over a gap, forward", &exact, 0, 11 * S, 0, 101 * MS, DRIFT_FORWARD},
    /* No sample was taken for a window (320 ms). */
    {"over a window, back", &brief, 0, S, 0, -100 * MS - US, DRIFT_STEADY},
    {"over a window, back above", &brief, 0, S, 0, -100 * MS - 2 * US, DRIFT_BACKWARD},
    {"over a gap, back", &exact, 0, 11 * S, 0, -101 * MS, DRIFT_BACKWARD},
    /* Impossible samples. */
    {"answer before question", &exact, 0, S, -1, 0, DRIFT_UNCERTAIN},
    {"earlier question", &exact, 0, -1, 2, 0, DRIFT_UNCERTAIN},
    {"earlier answer", &exact, 2, 0, 1, 0, DRIFT_UNCERTAIN},
};

TEST(a_step_is_known_by_what_it_must_be)
{
    for (size_t i = 0; i < sizeof step_rows / sizeof step_rows[0]; i++) {
        const struct step_row *row = &step_rows[i];
        struct drift_node node = {0};

        check_row = row->name;
        CHECK_INT(tell(&node, row->guard, 0, row->delay_a, 0),
                  row->delay_a <= (row->guard == &brief ? 40 : 50) * MS ? DRIFT_FIRST
                                                                        : DRIFT_UNCERTAIN);
        CHECK_INT(tell(&node, row->guard, row->t, row->delay_b, row->ahead), row->verdict);
        CHECK_INT(node.verdict, row->verdict);
    }
}

TEST(a_step_has_bounds)
{
    struct drift_node node = {0};

    tell(&node, &usual, 0, 0, 0);
    CHECK_INT(node.step.lo, 0);
    CHECK_INT(node.step.hi, 0);
    CHECK(node.advance.hi == INT64_MAX);
    /* 3 ms of delay, 1 us of each TIME, and 1 % of 1003 ms to either side. */
    CHECK_INT(tell(&node, &usual, S, 3 * MS, 200 * MS), DRIFT_FORWARD);
    CHECK_INT(node.step.lo, 200 * MS - US - 10030 * US);
    CHECK_INT(node.step.hi, 203 * MS + US + 10030 * US);
    /* The least sum assumes the whole rate.  The greatest assumes no rate, and that the clock lost
     * as much before. */
    CHECK_INT(node.advance.lo, 200 * MS - US - 10030 * US);
    CHECK_INT(node.advance.hi, 203 * MS + US + 10030 * US + 30 * US);
}

TEST(a_new_clock_counts_after_a_window)
{
    struct drift_node node = {0};
    int64_t window = (int64_t)usual.window;

    CHECK(!counts(&node, &usual, 0));
    CHECK_INT(tell(&node, &usual, 0, MS, 0), DRIFT_FIRST);
    CHECK(!counts(&node, &usual, 0));
    CHECK_UINT(node.counts_from, (drift_time)(BEGIN + MS + window));
    be_steady(&node, &usual, S, window, 0);
    CHECK(!counts(&node, &usual, window));
    CHECK(!counts(&node, &usual, MS + window - 1));
    CHECK(counts(&node, &usual, MS + window));
}

TEST(a_clock_counts_for_a_gap_after_it_was_seen)
{
    struct drift_node node = {0};

    drift_node_vouch(&node, &usual, BEGIN, &in_step);
    CHECK(!counts(&node, &usual, 0)); /* There is no sample yet. */
    CHECK_INT(tell(&node, &usual, 0, MS, 0), DRIFT_STEADY);
    CHECK(counts(&node, &usual, 0));
    CHECK(counts(&node, &usual, MS + 10 * S));
    CHECK(!counts(&node, &usual, MS + 10 * S + 1));
    CHECK_INT(tell(&node, &usual, S, 99 * MS, 0), DRIFT_UNCERTAIN);
    CHECK(!counts(&node, &usual, S));
    CHECK_INT(tell(&node, &usual, 2 * S, 0, 0), DRIFT_STEADY);
    CHECK(counts(&node, &usual, 2 * S));
    /* An impossible sample. */
    CHECK_INT(tell(&node, &usual, 3 * S, -1, 0), DRIFT_UNCERTAIN);
    CHECK(!counts(&node, &usual, 3 * S));
}

TEST(forward_does_not_count_for_a_window)
{
    struct drift_node node = {0};
    int64_t window = (int64_t)usual.window;

    tell(&node, &usual, 0, 0, 0);
    be_steady(&node, &usual, S, window + S, 0);
    CHECK(counts(&node, &usual, window + S));
    CHECK_INT(tell(&node, &usual, 85 * S, MS, S), DRIFT_FORWARD);
    CHECK(!counts(&node, &usual, 85 * S));
    CHECK_UINT(node.counts_from, (drift_time)(BEGIN + 85 * S + MS + window));
    /* The new offset is known now, so it is no step any more. */
    be_steady(&node, &usual, 86 * S, 85 * S + window, S);
    CHECK(!counts(&node, &usual, 85 * S + MS + window - 1));
    CHECK(counts(&node, &usual, 85 * S + MS + window));
}

/* Found by the simulator (seed 3163758): a clock is seen for the first time while it is set back.
 */
TEST(first_does_not_count_until_everybody_has_seen_it)
{
    struct drift_guard guard = usual;
    struct drift_node node = {0};

    guard.window = 2 * S;
    CHECK_INT(tell(&node, &guard, 0, MS, -300 * MS), DRIFT_FIRST);
    be_steady(&node, &guard, S, 10401 * MS, -300 * MS);
    CHECK(!counts(&node, &guard, 10401 * MS - 1));
    CHECK(counts(&node, &guard, 10401 * MS));
}

/* A holds the lock by a vote from a clock that was set back.  The clock is corrected, and A's key
 * expires early.  B has samples from before and after only, and finds no step. */
TEST(backward_does_not_count_until_everybody_has_seen_it)
{
    struct drift_node a = {0}, b = {0};

    drift_node_vouch(&a, &usual, BEGIN, &in_step);
    drift_node_vouch(&b, &usual, BEGIN, &in_step);
    be_steady(&a, &usual, 0, 5 * S, 0);
    be_steady(&b, &usual, 0, 5 * S, 0);
    CHECK(counts(&a, &usual, 5 * S));
    CHECK_INT(tell(&a, &usual, 5500 * MS, MS, -300 * MS), DRIFT_BACKWARD);
    CHECK_INT(tell(&b, &usual, 6000 * MS, MS, 0), DRIFT_STEADY);
    CHECK(counts(&b, &usual, 6000 * MS));
    CHECK(!counts(&a, &usual, 5500 * MS)); /* So A must not rely on it. */

    /* If the clock stays back, A counts it after a gap and 4 * 1 % of it, because B must find the
     * step by then. */
    CHECK_UINT(a.counts_from, (drift_time)(BEGIN + 15901 * MS));
    be_steady(&a, &usual, 6500 * MS, 15900 * MS, -300 * MS);
    CHECK(!counts(&a, &usual, 15901 * MS - 1));
    CHECK(counts(&a, &usual, 15901 * MS));
    CHECK_INT(tell(&b, &usual, 15800 * MS, MS, -300 * MS), DRIFT_BACKWARD);
    CHECK_INT(tell(&b, &usual, 16800 * MS, MS, 0), DRIFT_FORWARD);
}

/* Steps of 48 ms every three seconds.  Each is below the tolerance. */
/* All samples but the last lie before the window. */
TEST(backward_is_known_after_a_window_without_samples)
{
    struct drift_node node = {.counts_from = 0};

    CHECK_INT(tell(&node, &brief, 0, 0, 0), DRIFT_FIRST);
    CHECK_INT(tell(&node, &brief, S, 0, 0), DRIFT_STEADY);
    CHECK_INT(tell(&node, &brief, 2 * S, 0, -200 * MS), DRIFT_BACKWARD);
}

TEST(creeping_is_known_by_its_sum)
{
    struct drift_node node = {0};

    for (int64_t t = 0; t <= 15; t++) {
        enum drift_verdict verdict = tell(&node, &usual, t * S, 0, t / 3 * 48 * MS);
        static char row[8];

        snprintf(row, sizeof row, "%d", (int)t);
        check_row = row;

        /* 4 * 48 ms, less 1 % of the 10 s since the sample before the first step, plus 20 ms that
         * the clock may have lost between this sample and the step. */
        if (t == 12 || t == 13)
            CHECK_INT(verdict, DRIFT_UNCERTAIN);
        /* 5 * 48 ms, less 1 % of the 13 s since the last sample before the first step. */
        else if (t == 15)
            CHECK_INT(verdict, DRIFT_FORWARD);
        else
            CHECK_INT(verdict, t == 0 ? DRIFT_FIRST : DRIFT_STEADY);
    }
}

/* Small steps add up for a window, and until the part of the window with the first step ends. */
TEST(the_sum_is_that_of_a_window)
{
    struct drift_node early = {0}, late = {0};

    tell(&early, &exact, 0, 0, 0);
    be_steady(&early, &exact, S, 89 * S, 60 * MS);
    /* A part of the window begins with an answer, which comes after the next question. */
    CHECK_INT(tell(&early, &exact, 9 * PART - MS, MS, 60 * MS), DRIFT_STEADY);
    late = early;
    /* The clock may have been read when the question was sent. */
    CHECK_INT(tell(&early, &exact, PART + (int64_t)exact.window - 1, MS, 120 * MS), DRIFT_FORWARD);
    CHECK_INT(tell(&late, &exact, PART + (int64_t)exact.window, MS, 120 * MS), DRIFT_STEADY);
}

/* Parts are reused: old data in a part must not count as new. */
TEST(windows_follow_on_one_another)
{
    struct drift_node node = {0};

    tell(&node, &exact, 0, 0, 0);
    for (int64_t t = 1; t < 1000; t++)
        CHECK_INT(tell(&node, &exact, t * S, 0, t / 100 * 90 * MS), DRIFT_STEADY);
    CHECK_INT(tell(&node, &exact, 1000 * S, 0, 1000 * MS), DRIFT_FORWARD);
}

TEST(fast_is_so_twice)
{
    static const struct row {
        const char *name;
        int64_t every, gain; /* gain: of the master's clock on ours, between two samples. */
        int64_t fast_at;     /* The first sample with the verdict FAST; -1: none. */
    } rows[] = {
        {"at the rate", S, 10 * MS, -1},
        {"perhaps over it", S, 10 * MS + US, -1},
        {"over it", S, 10 * MS + 2 * US, 2},
        {"asked more often", S / 4, 5 * MS, 8},
        {"asked a little too often", S - 1000, 20 * MS, 4},
        {"asked less often", 3 * S, 31 * MS, 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct drift_node node = {0};

        check_row = rows[i].name;
        for (int64_t j = 0; j <= 8; j++) {
            enum drift_verdict verdict =
                tell(&node, &usual, j * rows[i].every, 0, j * rows[i].gain);

            if (j > 0 && (rows[i].fast_at < 0 || j < rows[i].fast_at))
                CHECK_INT(verdict, DRIFT_STEADY);
            if (j == rows[i].fast_at) {
                CHECK_INT(verdict, DRIFT_FAST);
                CHECK_UINT(node.counts_from,
                           (drift_time)(BEGIN + j * rows[i].every) + usual.window);
                break;
            }
        }
    }
}

TEST(fast_goes_on)
{
    struct drift_node node = {0};

    for (int64_t t = 0; t <= 9; t++) {
        enum drift_verdict verdict = tell(&node, &usual, t * S, 0, t * 20 * MS);

        if (t >= 2)
            CHECK_INT(verdict, DRIFT_FAST);
    }
    /* The verdict ends with the next span. */
    CHECK_INT(tell(&node, &usual, 10 * S, 0, 180 * MS), DRIFT_STEADY);
    CHECK_UINT(node.counts_from, BEGIN + 9 * S + usual.window);
}

TEST(who_is_vouched_for_is_held_to_it)
{
    static const struct drift_range offset = {EPOCH + 5 * MS, EPOCH + 8 * MS};
    static const struct row {
        const char *name;
        int64_t t, ahead;
        enum drift_verdict verdict;
    } rows[] = {
        {"below", 0, 105 * MS - 2 * US, DRIFT_STEADY},
        {"perhaps at", 0, 105 * MS - US, DRIFT_UNCERTAIN},
        {"perhaps above", 0, 108 * MS, DRIFT_UNCERTAIN},
        {"above", 0, 108 * MS + US, DRIFT_FORWARD},
        {"back perhaps above", 0, -95 * MS - US, DRIFT_STEADY},
        {"back above", 0, -95 * MS - 2 * US, DRIFT_BACKWARD},
        {"in a gap", 10 * S, 5 * MS, DRIFT_STEADY},
        {"after a gap", 10 * S + 1, 5 * MS, DRIFT_FIRST},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct drift_node node = {0};

        check_row = rows[i].name;
        CHECK_INT(tell(&node, &exact, -20 * S, 0, 7 * S), DRIFT_FIRST);
        drift_node_vouch(&node, &exact, BEGIN, &offset); /* Forgets earlier samples. */
        CHECK_INT(tell(&node, &exact, rows[i].t, 0, rows[i].ahead), rows[i].verdict);
        CHECK_INT(counts(&node, &exact, rows[i].t), rows[i].verdict == DRIFT_STEADY);
    }
}

TEST(who_is_barred_does_not_count)
{
    struct drift_node node = {0};

    drift_node_vouch(&node, &usual, BEGIN, &in_step);
    be_steady(&node, &usual, 0, 0, 0);
    drift_node_bar(&node, &usual, BEGIN);
    CHECK_UINT(node.counts_from, BEGIN + usual.window);
    be_steady(&node, &usual, S, (int64_t)usual.window, 0);
    CHECK(!counts(&node, &usual, (int64_t)usual.window - 1));
    CHECK(counts(&node, &usual, (int64_t)usual.window));
    /* A bar never ends earlier than one before. */
    drift_node_bar(&node, &usual, BEGIN - S);
    CHECK_UINT(node.counts_from, BEGIN + usual.window);
}

TEST(what_cannot_be_teaches_nothing)
{
    static const struct drift_sample rows[] = {
        {.sent = 0, .received = 0, .node_us = 1},
        {.sent = 2, .received = 1, .node_us = 1},
        {.sent = 1, .received = (UINT64_C(1) << 61) + 1, .node_us = 1},
        {.sent = DRIFT_NEVER, .received = DRIFT_NEVER, .node_us = 1},
        {.sent = 1, .received = 1, .node_us = (UINT64_C(1) << 62) / 1000 + 1},
        {.sent = 1, .received = 1, .node_us = UINT64_MAX},
    };
    static const struct drift_node nothing;
    static const struct drift_sample last = {.sent = UINT64_C(1) << 61,
                                             .received = UINT64_C(1) << 61,
                                             .node_us = (UINT64_C(1) << 62) / 1000};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct drift_node node = {0};

        CHECK_INT(drift_node_sample(&node, &usual, &rows[i]), DRIFT_UNCERTAIN);
        node.verdict = nothing.verdict;
        CHECK(memcmp(&node, &nothing, sizeof node) == 0);
    }
    CHECK_INT(drift_node_sample(&(struct drift_node){0}, &usual, &last), DRIFT_FIRST);
}

TEST(an_offset_gets_wider_with_time)
{
    struct drift_node node = {0};
    struct drift_range offset = {1, 2};

    CHECK_INT(drift_node_offset(&node, &usual, BEGIN, &offset), 1);
    CHECK_INT(offset.lo, 1);
    tell(&node, &usual, 0, 5 * MS, 7 * MS);
    CHECK_INT(drift_node_offset(&node, &usual, BEGIN, &offset), 0);
    CHECK_INT(offset.lo, EPOCH + 7 * MS);
    CHECK_INT(offset.hi, EPOCH + 12 * MS + US);
    CHECK_INT(drift_node_offset(&node, &usual, BEGIN + 2 * S, &offset), 0);
    CHECK_INT(offset.lo, EPOCH + 7 * MS - 20 * MS);
    CHECK_INT(offset.hi, EPOCH + 12 * MS + US + 20 * MS);
}

/* One sample a second of a clock that gains ppm. */
static void run_at(struct drift_node *node, int64_t from, int64_t until, int64_t ahead, int64_t ppm)
{
    for (int64_t t = from; t <= until; t++)
        tell(node, &usual, t * S, 0, ahead + (t - from) * ppm * US);
}

TEST(a_rate_has_bounds)
{
    struct drift_node node = {0};
    struct drift_range ppm = {1, 2};

    CHECK_INT(drift_node_rate(&node, &ppm), 1);
    run_at(&node, 0, 0, 0, 0);
    CHECK_INT(drift_node_rate(&node, &ppm), 1);
    CHECK_INT(ppm.lo, 1);
    /* Each TIME is exact to 1 us. */
    run_at(&node, 1, 1, 100 * US, 0);
    CHECK_INT(drift_node_rate(&node, &ppm), 0);
    CHECK_INT(ppm.lo, 98); /* 99 us in 1.001 s. */
    CHECK_INT(ppm.hi, 101);
    run_at(&node, 2, 10, 200 * US, 100);
    CHECK_INT(drift_node_rate(&node, &ppm), 0);
    CHECK_INT(ppm.lo, 99);
    CHECK_INT(ppm.hi, 101);
    /* With a delay of 30 ms, the length of the last second is not known. */
    tell(&node, &usual, 11 * S, 30 * MS, 1100 * US);
    CHECK_INT(drift_node_rate(&node, &ppm), 0);
    CHECK_INT(ppm.lo, 99); /* The TIME shows that it was not 30 ms longer. */
    CHECK(ppm.hi > 2800 && ppm.hi < 2900);
}

TEST(a_rate_is_of_the_last_windows)
{
    struct drift_node node = {0};
    struct drift_range ppm;

    run_at(&node, 0, 100, 0, 100);
    run_at(&node, 101, 400, 10 * MS, -100);
    CHECK_INT(drift_node_rate(&node, &ppm), 0);
    CHECK(ppm.lo >= -102 && ppm.hi <= -98);
    /* Only samples after the last step count. */
    run_at(&node, 401, 402, S, 500);
    CHECK_INT(drift_node_rate(&node, &ppm), 0);
    CHECK(ppm.lo >= 497 && ppm.hi <= 502);
    run_at(&node, 403, 404, -S, 500);
    CHECK_INT(drift_node_rate(&node, &ppm), 0);
    CHECK(ppm.lo >= 497 && ppm.hi <= 502);
}

TEST(a_median_is_between)
{
    static const struct row {
        unsigned len;
        struct drift_range offsets[5], median;
    } rows[] = {
        {1, {{3, 4}}, {3, 4}},
        {2, {{3, 4}, {-7, -6}}, {-7, 4}},
        {3, {{3, 4}, {-7, -6}, {0, 9}}, {0, 4}},
        {3, {{5, 5}, {5, 5}, {5, 5}}, {5, 5}},
        {3, {{5, 5}, {5, 5}, {1, 9}}, {5, 5}},
        {4, {{1, 1}, {2, 2}, {3, 3}, {4, 4}}, {2, 3}},
        {5, {{INT64_MIN, INT64_MAX}, {1, 2}, {1, 2}, {7, 8}, {7, 8}}, {1, 7 + 1}},
        {5, {{50, 50}, {10, 10}, {40, 40}, {20, 20}, {30, 30}}, {30, 30}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct drift_range median;

        drift_node_median(rows[i].offsets, rows[i].len, &median);
        CHECK_INT(median.lo, rows[i].median.lo);
        CHECK_INT(median.hi, rows[i].median.hi);
    }
}

TEST(a_place_is_what_is_certain)
{
    static const struct drift_range median = {-3, 8};
    static const struct row {
        struct drift_range offset;
        enum drift_place place;
    } rows[] = {
        {{-3, 8}, DRIFT_PLACE_NEAR},
        {{8 + 500 * MS, 9 + 900 * MS}, DRIFT_PLACE_NEAR},
        {{9 + 500 * MS, 9 + 900 * MS}, DRIFT_PLACE_FAR},
        {{-900 * S, -3 - 500 * MS}, DRIFT_PLACE_NEAR},
        {{-900 * S, -4 - 500 * MS}, DRIFT_PLACE_FAR},
        {{8 + 5 * S, 900 * S}, DRIFT_PLACE_FAR},
        {{9 + 5 * S, 900 * S}, DRIFT_PLACE_OUTLIER},
        {{-900 * S, -3 - 5 * S}, DRIFT_PLACE_FAR},
        {{-900 * S, -4 - 5 * S}, DRIFT_PLACE_OUTLIER},
        {{INT64_MIN, INT64_MIN}, DRIFT_PLACE_OUTLIER},
        {{INT64_MIN, INT64_MAX}, DRIFT_PLACE_NEAR},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(drift_node_place(&rows[i].offset, &median), rows[i].place);
}

CHECK_MAIN(RUN(an_offset_is_between_question_and_answer), RUN(a_step_is_known_by_what_it_must_be),
           RUN(a_step_has_bounds), RUN(a_new_clock_counts_after_a_window),
           RUN(a_clock_counts_for_a_gap_after_it_was_seen),
           RUN(forward_does_not_count_for_a_window),
           RUN(first_does_not_count_until_everybody_has_seen_it),
           RUN(backward_does_not_count_until_everybody_has_seen_it),
           RUN(backward_is_known_after_a_window_without_samples), RUN(creeping_is_known_by_its_sum),
           RUN(the_sum_is_that_of_a_window), RUN(windows_follow_on_one_another),
           RUN(fast_is_so_twice), RUN(fast_goes_on), RUN(who_is_vouched_for_is_held_to_it),
           RUN(who_is_barred_does_not_count), RUN(what_cannot_be_teaches_nothing),
           RUN(an_offset_gets_wider_with_time), RUN(a_rate_has_bounds),
           RUN(a_rate_is_of_the_last_windows), RUN(a_median_is_between),
           RUN(a_place_is_what_is_certain))
