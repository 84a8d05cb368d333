/*
 * explorer.c - the search, what stays possible, random walks, and the way back from a world.
 *
 * Every world is stored whole, in the order in which it was found.  A hash table finds it again.
 * No two worlds are confused, so a complete search is a proof within the bounds of its model.
 */
#include "models/explorer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/hash.h"

/* What explorer_take() does with a step. */
static void (*taker)(const void *next, struct move move, const char *broken);

static const struct model *model;
static unsigned packed_len; /* Words of a stored world. */

static struct {
    uint32_t *worlds;
    uint32_t *parent; /* The world from which it was reached first. */
    uint32_t *table;  /* 1 + the number of a world, and bits of its hash above; or 0. */
    size_t len, max;
    size_t slots; /* Of the table: a power of two. */
    size_t at;    /* The world whose steps are being taken. */
} found;

static struct outcome *outcome;

void explorer_take(const void *next, char kind, unsigned a, unsigned b, unsigned c,
                   const char *broken)
{
    taker(next, (struct move){kind, (unsigned char)a, (unsigned char)b, (unsigned char)c}, broken);
}

/* ---- Worlds, stored ---- */

static void pack(const void *world, uint32_t *packed)
{
    uint32_t words[WORDS_MAX];

    memcpy(words, world, model->words * sizeof *words);
    if (model->rename != NULL)
        model->rename(words);
    for (unsigned i = 0; i < model->words; i++)
        if (model->used >> i & 1)
            *packed++ = words[i];
}

static void unpack(size_t number, void *world)
{
    const uint32_t *packed = found.worlds + number * packed_len;
    uint32_t words[WORDS_MAX] = {0};

    for (unsigned i = 0; i < model->words; i++)
        if (model->used >> i & 1)
            words[i] = *packed++;
    memcpy(world, words, model->words * sizeof *words);
}

/* Most of the time of a search goes into looking worlds up, and there into waiting for memory.  So
 * a slot has a tag, six bits of the hash, and a world with another tag is not read. */
#define NUMBER UINT32_C(0x3ffffff) /* The bits of a slot that have the number. */

static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32) & ~NUMBER;
}

static size_t number_in(size_t slot)
{
    return (found.table[slot] & NUMBER) - 1;
}

/* The slot that has this world, or the empty slot for it. */
static size_t find_slot(const uint32_t *packed, uint64_t hash)
{
    size_t slot = hash & (found.slots - 1);

    while (found.table[slot] != 0) {
        if ((found.table[slot] & ~NUMBER) == tag_of(hash) &&
            memcmp(found.worlds + number_in(slot) * packed_len, packed,
                   packed_len * sizeof *packed) == 0)
            break;
        slot = (slot + 1) & (found.slots - 1);
    }
    return slot;
}

static size_t number_of(const uint32_t *packed)
{
    return number_in(find_slot(packed, hash_of(packed, packed_len)));
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    return memory;
}

static void grow_table(size_t slots)
{
    free(found.table);
    found.slots = slots;
    found.table = allocate(slots, sizeof *found.table);
    for (size_t i = 0; i < found.len; i++) {
        const uint32_t *packed = found.worlds + i * packed_len;
        uint64_t hash = hash_of(packed, packed_len);

        found.table[find_slot(packed, hash)] = (uint32_t)(i + 1) | tag_of(hash);
    }
}

/* The arrays have their greatest length at once.  Pages that are never written cost nothing. */
static void open_store(size_t megabytes)
{
    size_t slot_bytes = 3 * sizeof *found.table; /* A table is at least a third full. */

    free(found.worlds);
    free(found.parent);
    packed_len = (unsigned)__builtin_popcountll(model->used);
    found.max = (megabytes << 20) / (packed_len * 4 + 4 + slot_bytes);
    if (found.max > NUMBER - 1)
        found.max = NUMBER - 1;
    found.len = 0;
    found.worlds = allocate(found.max, packed_len * sizeof *found.worlds);
    found.parent = allocate(found.max, sizeof *found.parent);
    grow_table((size_t)1 << 12);
}

static void store(const void *next, struct move move, const char *broken)
{
    uint32_t packed[WORDS_MAX];
    uint64_t hash;
    size_t slot;

    (void)move;
    outcome->transitions++;
    if (broken != NULL && outcome->broken == NULL)
        outcome->broken = broken;
    pack(next, packed);
    hash = hash_of(packed, packed_len);
    slot = find_slot(packed, hash);
    if (found.table[slot] != 0 || found.len == found.max)
        return;
    memcpy(found.worlds + found.len * packed_len, packed, packed_len * sizeof *packed);
    found.parent[found.len++] = (uint32_t)found.at;
    found.table[slot] = (uint32_t)found.len | tag_of(hash);
    if (found.len > found.slots / 3 * 2)
        grow_table(found.slots * 2);
}

/* ---- The story ---- */

static struct {
    uint32_t target[WORDS_MAX]; /* The packed world that the step must lead to. */
    struct move wanted;
    bool done;
    struct move move;
    uint32_t world[WORDS_MAX];
    const char *broken;
} match;

static void remember(const void *next, struct move move, const char *broken)
{
    match.done = true;
    match.move = move;
    match.broken = broken;
    memcpy(match.world, next, model->words * sizeof *match.world);
}

static void match_world(const void *next, struct move move, const char *broken)
{
    uint32_t packed[WORDS_MAX];

    if (match.done)
        return;
    pack(next, packed);
    if (memcmp(packed, match.target, packed_len * sizeof *packed) == 0)
        remember(next, move, broken);
}

static void match_broken(const void *next, struct move move, const char *broken)
{
    if (!match.done && broken != NULL)
        remember(next, move, broken);
}

static void match_move(const void *next, struct move move, const char *broken)
{
    if (!match.done && memcmp(&move, &match.wanted, sizeof move) == 0)
        remember(next, move, broken);
}

static bool take_matching(const void *world,
                          void (*matcher)(const void *, struct move, const char *))
{
    match.done = false;
    taker = matcher;
    model->steps(world);
    return match.done;
}

static void begin(uint32_t *world)
{
    memset(world, 0, WORDS_MAX * sizeof *world);
    model->begin(world);
}

/* The stored worlds on the way have other names than those of the story, so it is walked again
 * from the start, with the names of the start.  WORLD is set to the end of it. */
static void find_trace(size_t end, uint32_t *world)
{
    static uint32_t way[TRACE_MAX];
    unsigned len = 0;

    for (size_t i = end; i != 0 && len < TRACE_MAX - 1; i = found.parent[i])
        way[len++] = (uint32_t)i;
    begin(world);
    outcome->trace_len = 0;
    for (unsigned i = len; i-- > 0;) {
        memcpy(match.target, found.worlds + (size_t)way[i] * packed_len, packed_len * 4);
        if (!take_matching(world, match_world))
            abort();
        outcome->trace[outcome->trace_len++] = match.move;
        memcpy(world, match.world, sizeof match.world);
    }
}

static void find_broken_trace(void)
{
    uint32_t world[WORDS_MAX];

    find_trace(found.at, world);
    if (!take_matching(world, match_broken))
        abort();
    outcome->trace[outcome->trace_len++] = match.move;
}

unsigned explorer_replay(const struct model *m, const struct move *trace, unsigned len, bool aloud,
                         const char **broken)
{
    uint32_t world[WORDS_MAX];
    char text[5];

    model = m;
    *broken = NULL;
    begin(world);
    for (unsigned i = 0; i < len; i++) {
        match.wanted = trace[i];
        explorer_write_move(trace[i], text);
        if (!take_matching(world, match_move)) {
            if (aloud)
                printf("  %s  cannot happen\n", text);
            return i;
        }
        if (aloud) {
            printf("  %s  ", text);
            model->tell(world, match.world, trace[i]);
        }
        memcpy(world, match.world, sizeof world);
        *broken = match.broken;
        if (match.broken != NULL) {
            if (aloud)
                printf("        => %s\n", match.broken);
            return i + 1;
        }
    }
    return len;
}

void explorer_write_move(struct move move, char text[5])
{
    snprintf(text, 5, "%c%x%x%x", move.kind, move.a & 15u, move.b & 15u, move.c & 15u);
}

static unsigned char read_digit(char c)
{
    return (unsigned char)(c >= 'a' ? c - 'a' + 10 : c - '0');
}

struct move explorer_read_move(const char *text)
{
    return (struct move){text[0], read_digit(text[1]), read_digit(text[2]), read_digit(text[3])};
}

/* ---- The search ---- */

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void search(const struct limits *limits)
{
    uint32_t world[WORDS_MAX];
    size_t level_end = 1;
    double begun_s = cpu_seconds();

    open_store(limits->megabytes);
    begin(world);
    store(world, (struct move){0}, NULL);
    outcome->transitions = 0;
    for (found.at = 0; found.at < found.len; found.at++) {
        if (found.at == level_end) {
            level_end = found.len;
            outcome->depth++;
        }
        unpack(found.at, world);
        taker = store;
        model->steps(world);
        if (outcome->broken != NULL || found.len == found.max)
            break;
        if (found.at % 65536 == 0 && cpu_seconds() - begun_s > limits->seconds)
            break;
    }
    outcome->states = found.len;
    outcome->complete = found.at == found.len;
    if (outcome->broken != NULL)
        find_broken_trace();
}

/* ---- What stays possible ---- */

static struct {
    bool *can; /* From world i a good one can be reached. */
    bool (*counts)(struct move move);
    bool leads; /* So it can from the world whose steps are taken. */
} stays;

static void follow(const void *next, struct move move, const char *broken)
{
    uint32_t packed[WORDS_MAX];

    (void)broken;
    if (stays.leads || !stays.counts(move))
        return;
    pack(next, packed);
    stays.leads = stays.can[number_of(packed)];
}

size_t explorer_count(bool (*is_so)(const void *world))
{
    uint32_t world[WORDS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < found.len; i++) {
        unpack(i, world);
        count += is_so(world);
    }
    return count;
}

/* Repeat until nothing changes.  Most steps lead to worlds that were found later, so a round that
 * begins with the last world needs few repeats. */
size_t explorer_stuck(bool (*counts)(struct move move), bool (*is_good)(const void *world))
{
    uint32_t world[WORDS_MAX];
    size_t stuck = found.len, before, first = 0;

    stays.can = allocate(found.len, sizeof *stays.can);
    stays.counts = counts;
    taker = follow;
    do {
        before = stuck;
        for (size_t i = found.len; i-- > 0;) {
            if (stays.can[i])
                continue;
            unpack(i, world);
            stays.leads = is_good(world);
            if (!stays.leads)
                model->steps(world);
            stays.can[i] = stays.leads;
            stuck -= stays.leads;
        }
    } while (stuck < before);
    while (first < found.len && stays.can[first])
        first++;
    if (stuck > 0)
        find_trace(first, world);
    free(stays.can);
    return stuck;
}

/* ---- Random walks ---- */

static uint64_t dice;

static unsigned roll(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (unsigned)(dice >> 32);
}

static unsigned choices; /* The sum of the weights so far. */

static void choose(const void *next, struct move move, const char *broken)
{
    unsigned weight = model->weight != NULL ? model->weight(move) : 1;

    choices += weight;
    outcome->transitions++;
    if (match.done && match.broken != NULL)
        return;
    if (broken != NULL || roll() % choices < weight)
        remember(next, move, broken);
}

/* A walk is shortened while the same end is reached with some steps left out. */
static void shorten(void)
{
    static struct move less[TRACE_MAX];

    for (unsigned cut = outcome->trace_len / 2 + 1; cut >= 1; cut /= 2)
        for (unsigned from = 0; from + cut < outcome->trace_len;) {
            unsigned rest = outcome->trace_len - from - cut;
            const char *broken;

            memcpy(less, outcome->trace, from * sizeof *less);
            memcpy(less + from, outcome->trace + from + cut, rest * sizeof *less);
            outcome->transitions += from + rest;
            unsigned taken = explorer_replay(model, less, from + rest, false, &broken);
            if (broken != NULL) {
                memcpy(outcome->trace, less, taken * sizeof *less);
                outcome->trace_len = taken;
            } else {
                from++;
            }
        }
}

static void walk(const struct limits *limits, unsigned number)
{
    uint32_t world[WORDS_MAX];

    dice = (limits->seed * UINT64_C(1000003) + number) * UINT64_C(0x9fb21c651e98df25) + 77;
    for (unsigned i = 0; i < 8; i++)
        roll();
    begin(world);
    outcome->trace_len = 0;
    while (outcome->trace_len < limits->walk_steps && outcome->trace_len < TRACE_MAX) {
        choices = 0;
        if (!take_matching(world, choose))
            return;
        memcpy(world, match.world, sizeof world);
        outcome->trace[outcome->trace_len++] = match.move;
        outcome->states++;
        if (match.broken != NULL) {
            outcome->broken = match.broken;
            shorten();
            return;
        }
    }
}

void explorer_run(const struct model *m, const struct limits *limits, struct outcome *out)
{
    double begun_s = cpu_seconds();

    model = m;
    outcome = out;
    memset(out, 0, sizeof *out);
    if (limits->walks == 0)
        search(limits);
    for (unsigned i = 0; i < limits->walks && out->broken == NULL; i++) {
        if (cpu_seconds() - begun_s > limits->seconds)
            break;
        walk(limits, i);
    }
    out->cpu_s = cpu_seconds() - begun_s;
}
