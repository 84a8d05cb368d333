/*
 * test-node-attack.c - clocks that do anything, and a judge that knows what they did.
 *
 * A seed makes a clock (honest; stepping, creeping, slewing, set back and forth), a network
 * (delays either way, a few of them long), and questions to it.  judge() compares the
 * verdicts of drift_node with what the clock did.  The judge follows node.h and not node.c:
 * it knows of no lines, parts, or floors.
 *
 * The judge is tested as well: it must find guards that allow too much, and samples that
 * claim too much.
 */
#include <stdlib.h>

#include "drift/node.h"

#include "test/lib/check.h"

#define US INT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)
#define EPOCH (1700000000 * S)
#define PPM INT64_C(1000000)

#define SEEDS 1000
#define SAMPLES_MAX 300
#define BENDS_MAX 2000

/* At the instant at, the clock shows this, and from then on runs faster than true time by ppm. */
struct bend {
    int64_t at, shows, ppm;
};

struct clock {
    struct bend bends[BENDS_MAX];
    size_t bends_len;
};

/* A question, its true answer, and the verdict on it. */
struct asked {
    struct drift_sample sample;
    int64_t read_at, shown; /* When the clock was read, by true time, and what it showed, in ns. */
    bool is_useful, counts;
    enum drift_verdict verdict;
};

/* How a guard or its samples are spoiled. */
enum flaw {
    FLAW_NONE,
    FLAW_TOLERANCE, /* The tolerance is twice what leases subtract. */
    FLAW_RATE,      /* The rate is twice what leases subtract. */
    FLAW_WINDOW,    /* The window is half of a lease. */
    FLAW_MIDPOINT,  /* Assumes that the clock was read midway between question and answer. */
    FLAW_ANSWER,    /* Assumes that the clock was read when the answer came. */
    FLAW_STRICT,    /* The tolerance is nothing.  With an honest clock this is no flaw. */
};

struct world {
    uint64_t dice;
    struct drift_guard guard; /* The promised guard. */
    struct drift_guard used;  /* The guard that drift_node uses. */
    enum flaw flaw;
    int64_t end;
    struct clock clock;
    struct asked asked[SAMPLES_MAX];
    size_t asked_len, told_len;
    const char *wrong; /* The fault that the judge found; NULL: none. */
    unsigned verdicts[DRIFT_FAST + 1], counted;
};

/* xorshift64*, Vigna 2016. */
static uint64_t roll(struct world *w)
{
    w->dice ^= w->dice >> 12;
    w->dice ^= w->dice << 25;
    w->dice ^= w->dice >> 27;
    return w->dice * UINT64_C(2685821657736338717);
}

/* From a to b, both included. */
static int64_t between(struct world *w, int64_t a, int64_t b)
{
    return a + (int64_t)((roll(w) >> 1) % (uint64_t)(b - a + 1));
}

/* Like between(), but all magnitudes are equally likely; 0 < a. */
static int64_t about(struct world *w, int64_t a, int64_t b)
{
    int64_t top = a;

    for (int64_t doubled = a; doubled < b; doubled *= 2)
        top = between(w, 0, 3) == 0 ? top : doubled;
    return between(w, a, top * 2 < b ? top * 2 : b);
}

static bool chance(struct world *w, int64_t percent)
{
    return between(w, 1, 100) <= percent;
}

static int64_t shows_after(const struct bend *bend, int64_t t)
{
    return bend->shows + (t - bend->at) + (t - bend->at) / US * bend->ppm / 1000;
}

/* The index of the last bend at t or before. */
static size_t bend_at(const struct clock *clock, int64_t t)
{
    size_t from = 0, until = clock->bends_len;

    while (until - from > 1) {
        size_t middle = (from + until) / 2;

        *(clock->bends[middle].at <= t ? &from : &until) = middle;
    }
    return from;
}

static int64_t shows(const struct clock *clock, int64_t t)
{
    return shows_after(&clock->bends[bend_at(clock, t)], t);
}

/* At t, step the clock forward, and let it run at this rate. */
static void bend(struct clock *clock, int64_t t, int64_t step, int64_t ppm)
{
    const struct bend *last = &clock->bends[clock->bends_len - 1];

    if (clock->bends_len < BENDS_MAX && t > last->at) {
        int64_t shown = shows_after(last, t) + step;

        clock->bends[clock->bends_len++] = (struct bend){.at = t, .shows = shown, .ppm = ppm};
    }
}

/* --- clocks ----------------------------------------------------------------- */

/* An honest rate.  It stays a little below the bound, because nanoseconds are rounded. */
static int64_t honest_rate(struct world *w)
{
    int64_t bound = (int64_t)w->guard.rate_ppm - 2;

    if (chance(w, 30))
        return chance(w, 50) ? bound : -bound;
    return between(w, -bound, bound);
}

/* At t, step the clock forward or back, and let it run honestly. */
static void bend_either(struct world *w, int64_t t, int64_t step, int64_t forward_percent)
{
    int64_t ppm = honest_rate(w);

    bend(&w->clock, t, chance(w, forward_percent) ? step : -step, ppm);
}

static void run_honestly(struct world *w, int64_t t)
{
    while (t < w->end) {
        t += about(w, 100 * MS, w->end);
        bend(&w->clock, t, 0, honest_rate(w));
    }
}

static void step_now_and_then(struct world *w, int64_t t)
{
    while (t < w->end) {
        int64_t step = about(w, MS, chance(w, 20) ? 100 * S : S);

        t += about(w, 300 * MS, w->end);
        bend_either(w, t, step, 60);
    }
}

/* Steps below the tolerance, most of them in one direction. */
static void creep(struct world *w, int64_t t)
{
    int64_t step = between(w, MS, (int64_t)w->guard.tolerance);
    int64_t every = about(w, 50 * MS, w->end / 4);
    int64_t forward_percent = between(w, 50, 100);

    while (t < w->end) {
        t += every;
        bend_either(w, t, step, forward_percent);
    }
}

/* One step in about a window, by a clock that runs as fast as an honest one may.  Sometimes the
 * window has not forgotten the step before. */
static void creep_slowly(struct world *w, int64_t t)
{
    int64_t window = (int64_t)w->guard.window;

    while (t < w->end) {
        t += between(w, window / 2, window * 5 / 4);
        bend(&w->clock, t, (int64_t)w->guard.tolerance * between(w, 50, 75) / 100,
             (int64_t)w->guard.rate_ppm - 2);
    }
}

static void slew(struct world *w, int64_t t)
{
    while (t < w->end) {
        int64_t ppm = about(w, 500, 300000);

        t += about(w, 300 * MS, w->end);
        bend(&w->clock, t, 0, chance(w, 70) ? ppm : -ppm);
    }
}

/* Steps back and forth, like Jepsen's strobe. */
static void strobe(struct world *w, int64_t t)
{
    int64_t step = about(w, 4 * MS, S);
    int64_t period = about(w, 10 * MS, w->end / 8);
    int64_t sign = chance(w, 50) ? 1 : -1;

    for (; t < w->end; sign = -sign) {
        t += period / 2 + between(w, 0, period / 2);
        bend(&w->clock, t, sign * step, honest_rate(w));
    }
}

static void make_clock(struct world *w, bool is_honest)
{
    static void (*const tricks[])(struct world *, int64_t) = {step_now_and_then, creep,
                                                              creep_slowly, slew, strobe};
    int64_t tricks_len = sizeof tricks / sizeof tricks[0];
    /* In most cases the clock is first honest until it counts. */
    int64_t from = chance(w, 30) ? S : (int64_t)w->guard.window * 5 / 4;

    w->clock.bends_len = 1;
    w->clock.bends[0].shows = EPOCH + between(w, -S, S);
    w->clock.bends[0].ppm = honest_rate(w);
    if (is_honest)
        run_honestly(w, S);
    else
        tricks[between(w, 0, tricks_len - 1)](w, from);
}

/* --- questions -------------------------------------------------------------- */

enum network {
    NETWORK_GOOD, /* Delays up to 2 ms, and no long pauses between questions. */
    NETWORK_BAD,  /* Long delays and pauses. */
    NETWORK_CALM, /* A round trip takes at most a quarter of the tolerance. */
};

static int64_t delay(struct world *w, enum network network)
{
    int64_t tolerance = (int64_t)w->guard.tolerance;

    if (network == NETWORK_CALM)
        return between(w, 0, tolerance / 8);
    if (network == NETWORK_GOOD)
        return about(w, 10 * US, 2 * MS);
    if (chance(w, 2))
        return about(w, 10 * MS, 5 * S);
    return about(w, 10 * US, chance(w, 20) ? tolerance / 2 : 2 * MS);
}

/* Ask the next question at sent.  Answers come in the order of the questions. */
static void ask(struct world *w, int64_t sent, enum network network)
{
    struct asked *asked = &w->asked[w->asked_len];
    int64_t read_at = sent + delay(w, network), received;

    if (w->asked_len > 0 && read_at < asked[-1].read_at)
        read_at = asked[-1].read_at;
    received = read_at + delay(w, network);
    if (w->asked_len > 0 && received < (int64_t)asked[-1].sample.received)
        received = (int64_t)asked[-1].sample.received;
    asked->read_at = read_at;
    asked->shown = shows(&w->clock, read_at);
    asked->sample = (struct drift_sample){.sent = (drift_time)sent,
                                          .received = (drift_time)received,
                                          .node_us = (uint64_t)(asked->shown / US)};
    asked->is_useful = received - sent <= (int64_t)w->guard.tolerance / 2;
    w->asked_len++;
}

static void ask_all(struct world *w, int64_t pause_max, enum network network)
{
    int64_t t = S / 2;

    while (t < w->end && w->asked_len < SAMPLES_MAX) {
        ask(w, t, network);
        if (network == NETWORK_BAD && chance(w, 3))
            t += about(w, S, 2 * (int64_t)w->guard.gap);
        else
            t += between(w, 0, pause_max);
    }
}

/* --- the judge -------------------------------------------------------------- */

/* How much further the clock went from s to n than one at the greatest honest rate, times PPM. */
static int64_t excess(const struct world *w, int64_t shown_s, int64_t s, int64_t shown_n, int64_t n)
{
    return ((shown_n - shown_s) - (n - s)) * PPM - (int64_t)w->guard.rate_ppm * (n - s);
}

/* The definition in node.h. */
static bool is_dip(const struct world *w, int64_t shown, int64_t s, const struct asked *a,
                   const struct asked *b)
{
    int64_t rate = w->guard.rate_ppm, most = (int64_t)w->guard.tolerance / 4 * PPM;
    int64_t lost = (a->shown + (s - a->read_at) - shown) * PPM;
    int64_t may_lose = rate * (s - a->read_at) < most ? rate * (s - a->read_at) : most;

    return lost > may_lose && (b->shown - shown) * PPM > (PPM + rate) * (b->read_at - s);
}

/* The promise for sample n and the instant s, at which the clock shows this. */
static void judge_instant(struct world *w, int64_t shown, int64_t s, const struct asked *a,
                          const struct asked *b, const struct asked *n)
{
    if (excess(w, shown, s, n->shown, n->read_at) >= (int64_t)w->guard.tolerance * PPM &&
        !is_dip(w, shown, s, a, b))
        w->wrong = "promise";
}

/* The promise for sample n and all instants between the samples a and b. */
static void judge_pair(struct world *w, const struct asked *a, const struct asked *b,
                       const struct asked *n, int64_t from)
{
    const struct clock *clock = &w->clock;
    int64_t begin = a->read_at > from ? a->read_at : from;
    int64_t middle = begin + (b->read_at - begin) / 2;

    if (begin > b->read_at)
        return;
    judge_instant(w, shows(clock, begin), begin, a, b, n);
    judge_instant(w, shows(clock, middle), middle, a, b, n);
    /* Just before each bend, and at it. */
    for (size_t i = bend_at(clock, begin) + 1; i <= bend_at(clock, b->read_at); i++) {
        int64_t at = clock->bends[i].at;

        judge_instant(w, shows(clock, at - 1), at - 1, a, b, n);
        judge_instant(w, shows(clock, at), at, a, b, n);
    }
}

/* The promise for sample n, back to the instant from. */
static void judge_promise(struct world *w, const struct asked *n, int64_t from)
{
    const struct asked *b = n;

    for (const struct asked *a = n - 1; a >= w->asked && b->read_at >= from; a--) {
        if (a->is_useful) {
            judge_pair(w, a, b, n, from);
            b = a;
        }
    }
}

/* When the clock began to be known, by the verdicts up to sample n. */
static int64_t known_since(const struct world *w, const struct asked *n)
{
    const struct asked *useful = NULL;
    int64_t since = w->end * 2;

    for (const struct asked *a = w->asked; a <= n; a++) {
        bool is_continued =
            useful != NULL && a->sample.received - useful->sample.sent <= w->guard.gap;

        if (a->verdict == DRIFT_FIRST || a->verdict == DRIFT_FORWARD || a->verdict == DRIFT_FAST ||
            (a->verdict == DRIFT_BACKWARD && a->is_useful && !is_continued))
            since = a->read_at;
        if (a->is_useful)
            useful = a;
    }
    return since;
}

/* A certain step must be reported: from k to n the clock went further, or less far, than rate and
 * delays explain.  Each TIME is cut off by less than 1 us. */
static void judge_found(struct world *w, const struct asked *k, const struct asked *n)
{
    int64_t rate = w->guard.rate_ppm, tolerance = (int64_t)w->guard.tolerance;
    int64_t doubt = 2 * US * PPM + tolerance * PPM;
    int64_t after_n = (int64_t)n->sample.received - n->read_at;
    int64_t before_n = n->read_at - (int64_t)n->sample.sent;
    int64_t after_k = (int64_t)k->sample.received - k->read_at;
    int64_t before_k = k->read_at - (int64_t)k->sample.sent;
    int64_t forward = excess(w, k->shown, k->read_at, n->shown, n->read_at);
    int64_t backward = -forward - 2 * rate * (n->read_at - k->read_at);
    bool is_forward = n->verdict == DRIFT_FORWARD || n->verdict == DRIFT_FAST;

    if (forward > doubt + (PPM + rate) * (after_n + before_k) && !is_forward)
        w->wrong = "forward unseen";
    if (backward > doubt + PPM * (before_n + after_k) && !is_forward &&
        n->verdict != DRIFT_BACKWARD)
        w->wrong = "backward unseen";
}

/* Compares sample n with all samples of the window before it. */
static void judge_all_found(struct world *w, const struct asked *n)
{
    int64_t window_ago = n->read_at - (int64_t)w->guard.window;

    /* drift_node may lack data if an answer took longer than a part of the window. */
    if (n->sample.received - n->sample.sent > w->guard.window / DRIFT_WINDOW_PARTS)
        return;
    for (const struct asked *k = n - 1; k >= w->asked && k->read_at > window_ago; k--) {
        judge_found(w, k, n);
        /* With this verdict drift_node forgets earlier samples. */
        if (k->verdict != DRIFT_STEADY && k->verdict != DRIFT_UNCERTAIN)
            break;
    }
}

static void judge(struct world *w, const struct asked *n)
{
    int64_t since = known_since(w, n);
    int64_t window_ago = n->read_at - (int64_t)w->guard.window;

    if (n->counts && since > n->read_at - (int64_t)w->used.window)
        w->wrong = "counted too soon";
    if (n->counts && n->verdict != DRIFT_STEADY)
        w->wrong = "counted though not steady";
    if (n->verdict == DRIFT_STEADY)
        judge_promise(w, n, since > window_ago ? since : window_ago);
    judge_all_found(w, n);
}

/* --- a run ------------------------------------------------------------------ */

static void spoil(struct world *w)
{
    w->used = w->guard;
    if (w->flaw == FLAW_TOLERANCE)
        w->used.tolerance *= 2;
    else if (w->flaw == FLAW_RATE)
        w->used.rate_ppm *= 2;
    else if (w->flaw == FLAW_WINDOW)
        w->used.window /= 2;
    else if (w->flaw == FLAW_STRICT)
        w->used.tolerance = 0;
}

static struct drift_sample spoiled(const struct world *w, const struct drift_sample *sample)
{
    struct drift_sample s = *sample;

    if (w->flaw == FLAW_MIDPOINT)
        s.sent = s.received = s.sent + (s.received - s.sent) / 2;
    else if (w->flaw == FLAW_ANSWER)
        s.sent = s.received;
    return s;
}

static void begin(struct world *w, uint64_t seed, enum flaw flaw)
{
    *w = (struct world){.dice = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .flaw = flaw};
    for (int i = 0; i < 8; i++)
        (void)roll(w); /* The first numbers of neighbouring seeds are similar. */
    w->guard.rate_ppm = (uint32_t)about(w, 100, 50000);
    w->guard.tolerance = (drift_span)about(w, 20 * MS, 200 * MS);
    w->guard.window = (drift_span)about(w, 2 * S, 40 * S);
    w->guard.gap = (drift_span)about(w, S, 10 * S);
    w->end = S + 4 * (int64_t)w->guard.window;
    spoil(w);
}

/* Pass all samples to a drift_node.  The judge checks each verdict. */
static void tell_all(struct world *w)
{
    struct drift_node node = {0};

    for (size_t i = 0; i < w->asked_len && w->wrong == NULL; i++) {
        struct asked *n = &w->asked[i];
        struct drift_sample sample = spoiled(w, &n->sample);

        n->verdict = drift_node_sample(&node, &w->used, &sample);
        n->counts = drift_node_counts(&node, &w->used, sample.sent);
        w->told_len++;
        w->verdicts[n->verdict]++;
        w->counted += n->counts;
        judge(w, n);
    }
}

static void run_attack(struct world *w, uint64_t seed, enum flaw flaw)
{
    begin(w, seed, flaw);
    make_clock(w, false);
    ask_all(w, w->end / 100, seed % 2 == 0 ? NETWORK_GOOD : NETWORK_BAD);
    tell_all(w);
}

static struct world world; /* Too large for a stack. */

/* Fail at the first fault, and print the sample. */
static void check_right(uint64_t seed)
{
    if (world.wrong == NULL)
        return;
    printf("seed %" PRIu64 ", sample %zu of %zu\n", seed, world.told_len, world.asked_len);
    CHECK_STR(world.wrong, NULL);
}

TEST(no_promise_is_broken)
{
    unsigned verdicts[DRIFT_FAST + 1] = {0}, counted = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_attack(&world, seed, FLAW_NONE);
        check_right(seed);
        for (int i = 0; i <= DRIFT_FAST; i++)
            verdicts[i] += world.verdicts[i];
        counted += world.counted;
    }
    printf("first %u, steady %u, uncertain %u, forward %u, backward %u, fast %u; counted %u\n",
           verdicts[DRIFT_FIRST], verdicts[DRIFT_STEADY], verdicts[DRIFT_UNCERTAIN],
           verdicts[DRIFT_FORWARD], verdicts[DRIFT_BACKWARD], verdicts[DRIFT_FAST], counted);
    /* A drift_node that never counts or never accuses would also break no promise. */
    for (int i = 0; i <= DRIFT_FAST; i++)
        CHECK(verdicts[i] > SEEDS);
    CHECK(counted > 10 * SEEDS);
}

/* This holds even with a tolerance of nothing. */
TEST(no_honest_clock_is_accused)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(&world, seed, seed % 2 == 0 ? FLAW_NONE : FLAW_STRICT);
        make_clock(&world, true);
        ask_all(&world, world.end / 100, seed % 4 / 2 ? NETWORK_GOOD : NETWORK_BAD);
        tell_all(&world);
        check_right(seed);
        CHECK_UINT(world.verdicts[DRIFT_FORWARD] + world.verdicts[DRIFT_BACKWARD] +
                       world.verdicts[DRIFT_FAST],
                   0);
    }
}

/* The round trips of two samples use up at most half of the tolerance.  The rate may use up one
 * more quarter between them. */
TEST(an_honest_clock_counts)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        int64_t quarter, pause_max;
        drift_span gap, watch;

        begin(&world, seed, FLAW_NONE);
        gap = world.guard.gap + 4 * ((world.guard.gap * world.guard.rate_ppm + PPM - 1) / PPM);
        watch = world.guard.window > gap ? world.guard.window : gap;
        quarter = (int64_t)world.guard.tolerance / 4;
        pause_max = (quarter - 2 * US) * PPM / world.guard.rate_ppm - 2 * quarter;
        if (pause_max > (int64_t)world.guard.gap - quarter)
            pause_max = (int64_t)world.guard.gap - quarter;
        make_clock(&world, true);
        ask_all(&world, pause_max, NETWORK_CALM);
        tell_all(&world);
        check_right(seed);
        CHECK_UINT(world.verdicts[DRIFT_FIRST], 1);
        CHECK_UINT(world.verdicts[DRIFT_STEADY], world.asked_len - 1);
        for (size_t i = 0; i < world.asked_len; i++) {
            CHECK_INT(world.asked[i].counts,
                      world.asked[i].sample.sent >= world.asked[0].sample.received + watch);
        }
    }
}

/* The judge must find planted flaws. */
TEST(flaws_are_found_out)
{
    static const struct {
        enum flaw flaw;
        const char *name;
    } rows[] = {
        {FLAW_TOLERANCE, "tolerance"}, {FLAW_RATE, "rate"},     {FLAW_WINDOW, "window"},
        {FLAW_MIDPOINT, "midpoint"},   {FLAW_ANSWER, "answer"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned found = 0;

        check_row = rows[i].name;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            run_attack(&world, seed, rows[i].flaw);
            found += world.wrong != NULL && strcmp(world.wrong, "promise") == 0;
        }
        printf("%s: found out with %u of %u seeds\n", rows[i].name, found, SEEDS);
        CHECK(found >= 3);
    }
}

CHECK_MAIN(RUN(no_promise_is_broken), RUN(no_honest_clock_is_accused), RUN(an_honest_clock_counts),
           RUN(flaws_are_found_out))
