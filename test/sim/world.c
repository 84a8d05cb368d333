/*
 * world.c - true time, the queue of events, and the trace.
 */
#include "world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX (1u << 16) /* Chosen: usually some hundreds of events wait at once. */
#define PPM_ONE UINT64_C(1000000)

struct world world;
struct tally tally;

static struct event heap[EVENTS_MAX];
static unsigned heap_len;
static uint64_t posted;

/* ---- Time ---- */

/* A span, measured by a clock that is too fast.  Two parts, so that nothing overflows.  A longer
 * span never gives less. */
static uint64_t stretch(sim_time span, uint32_t fast_ppm)
{
    return span + span / PPM_ONE * fast_ppm + span % PPM_ONE * fast_ppm / PPM_ONE;
}

uint64_t clock_at(const struct sim_clock *clock, sim_time t)
{
    return clock->origin + stretch(t - world.began, clock->fast_ppm) + (uint64_t)clock->step;
}

sim_time clock_when(const struct sim_clock *clock, uint64_t reading)
{
    uint64_t per_million = PPM_ONE + clock->fast_ppm;
    uint64_t origin = clock->origin + (uint64_t)clock->step;
    uint64_t span;
    sim_time t;

    if (reading == UINT64_MAX)
        return SIM_NEVER;
    if (reading <= origin)
        return world.began;
    span = reading - origin;
    /* First nearly, then exactly. */
    t = world.began + span / per_million * PPM_ONE + span % per_million * PPM_ONE / per_million;
    while (clock_at(clock, t) < reading)
        t++;
    while (t > world.began && clock_at(clock, t - 1) >= reading)
        t--;
    return t;
}

/* ---- Seeds ---- */

static const char *const themes[THEME_LEN] = {
    "",       "clocks:", "restarts:", "starts:", "lines:",    "sets:",
    "moves:", "crowds:", "tls:",      "losses:", "partners:", "revokes:"};

enum theme world_theme(uint64_t seed)
{
    return (enum theme)(seed >> WORLD_SEED_BITS);
}

const char *world_seed_text(uint64_t seed)
{
    static char text[40];
    unsigned long long number = seed & ((UINT64_C(1) << WORLD_SEED_BITS) - 1);

    (void)snprintf(text, sizeof text, "%s%llu", themes[world_theme(seed)], number);
    return text;
}

bool world_parse_seed(const char *text, uint64_t *ret_seed)
{
    uint64_t theme = THEME_LEN - 1;
    char *end;

    while (strncmp(text, themes[theme], strlen(themes[theme])) != 0)
        theme--; /* The name of ANY is empty. */
    text += strlen(themes[theme]);
    errno = 0;
    *ret_seed = strtoull(text, &end, 10) | theme << WORLD_SEED_BITS;
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

void world_begin(uint64_t seed, bool verbose)
{
    memory_reset();
    memset(&world, 0, sizeof world);
    heap_len = 0;
    posted = 0;
    world.seed = seed;
    world.verbose = verbose;
    world.hash = seed;
    dice_seed(seed);
    /* True time begins at up to a month, and never at 0. */
    world.began = world.now = dice_range(1, UINT64_C(1) << 51);
}

/* ---- Events: a binary heap, ties broken by number ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->number < b->number);
}

void world_post(sim_time at, enum event_type type, void *what, uint64_t tag)
{
    struct event event = {at < world.now ? world.now : at, posted++, type, what, tag};
    unsigned i = heap_len++;

    if (heap_len > EVENTS_MAX)
        world_fail("simulator", "too many events are waiting");
    while (i > 0 && is_before(&event, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = event;
}

bool world_next(struct event *ret_event)
{
    struct event last;
    unsigned i = 0, child;

    if (heap_len == 0)
        return false;
    *ret_event = heap[0];
    last = heap[--heap_len];
    while ((child = 2 * i + 1) < heap_len) {
        if (child + 1 < heap_len && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    world.now = ret_event->at;
    world.events++;
    return true;
}

/* ---- The trace ---- */

#define TEXT(name, text) text,
const char *const fault_texts[FAULT_LEN] = {SIM_FAULTS(TEXT)};
const char *const outcome_texts[OUTCOME_LEN] = {SIM_OUTCOMES(TEXT)};
#undef TEXT

void world_fault(enum fault fault)
{
    tally.faults[fault]++;
    world_note(fault_texts[fault], fault, 0, 0);
}

void world_outcome(enum outcome outcome)
{
    tally.outcomes[outcome]++;
}

static void mix(uint64_t value)
{
    world.hash = (world.hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    world.hash ^= world.hash >> 29;
}

static void print_time(void)
{
    printf("%14.6f ms  ", (double)(world.now - world.began) / (double)DRIFT_MS);
}

void world_note(const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    mix(world.now);
    mix((uint64_t)what[0] << 56 ^ a << 40 ^ b << 20 ^ c);
    if (!world.verbose)
        return;
    print_time();
    printf("%s %llu %llu %llu\n", what, (unsigned long long)a, (unsigned long long)b,
           (unsigned long long)c);
}

void world_say(const char *format, ...)
{
    va_list args;

    if (!world.verbose)
        return;
    print_time();
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void world_fail(const char *property, const char *format, ...)
{
    va_list args;

    printf("seed %s: VIOLATED %s: ", world_seed_text(world.seed), property);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" (after %.6f ms and %llu events; SEED=%s replays it)\n",
           (double)(world.now - world.began) / (double)DRIFT_MS, (unsigned long long)world.events,
           world_seed_text(world.seed));
    fflush(stdout);
    exit(1);
}
