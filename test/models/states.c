/*
 * states.c - a store of states, in the order in which they were found.
 *
 * The store is also the queue: a state is visited after all those that were found before it.  A
 * hash table holds the place of each state.  For its story a state knows the state before it, and
 * the step between both.  The steps of one state are stored side by side, because all of them are
 * found while that state is visited.
 */
#include "models/states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_STATES 4096 /* Chosen: small, since all arrays grow. */
#define NOWHERE UINT32_MAX

struct origin {
    uint32_t parent;
    uint32_t step;
};

/* A step as states_stuck() needs it. */
struct edge {
    uint32_t to;
    uint32_t kind;
};

static struct {
    const struct model *model;
    const struct states_limits *limits;
    struct states_found *found;

    uint8_t *store; /* State i begins at byte i * size. */
    struct origin *origins;
    size_t states, states_max;

    uint32_t *table; /* 1 + the place of a state; 0: free.  Twice as long as the store. */

    struct edge *edges;
    size_t *first_edges; /* State i has the edges first_edges[i] to first_edges[i + 1] - 1. */
    size_t edges_max;

    size_t visiting;
    bool full;
} all;

static const void *state_at(size_t i)
{
    return all.store + i * all.model->size;
}

static uint64_t hash(const uint8_t *state, size_t size)
{
    uint64_t h = size;

    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = 0;

        memcpy(&word, state + i, size - i < sizeof word ? size - i : sizeof word);
        h = (h ^ word) * 0x9E3779B97F4A7C15u; /* An odd number without a pattern. */
        h ^= h >> 29;
    }
    return h ^ h >> 32;
}

/* ---- Memory ---- */

static void *grow(void *old, size_t count, size_t size)
{
    void *grown = realloc(old, count * size);

    if (!grown) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return grown;
}

/* Where the table has the state, or would have it. */
static size_t slot_of(const void *state)
{
    size_t size = all.model->size, mask = all.states_max * 2 - 1;
    size_t slot = hash(state, size) & mask;

    while (all.table[slot] != 0 && memcmp(state_at(all.table[slot] - 1), state, size) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

/* Twice as many states, if the limit allows. */
static bool grow_store(void)
{
    size_t max = all.states_max ? all.states_max * 2 : FIRST_STATES;
    size_t each = all.model->size + sizeof(struct origin) + 2 * sizeof(uint32_t) + sizeof(size_t);
    size_t edges = all.edges_max * sizeof(struct edge);

    if (max * each + edges > all.limits->memory_mb << 20 || max >= NOWHERE)
        return false;
    all.store = grow(all.store, max, all.model->size);
    all.origins = grow(all.origins, max, sizeof *all.origins);
    if (all.limits->stuck)
        all.first_edges = grow(all.first_edges, max + 1, sizeof *all.first_edges);
    free(all.table);
    all.table = grow(NULL, max * 2, sizeof *all.table);
    memset(all.table, 0, max * 2 * sizeof *all.table);
    all.states_max = max;
    for (size_t i = 0; i < all.states; i++)
        all.table[slot_of(state_at(i))] = (uint32_t)(i + 1);
    return true;
}

static void add_edge(size_t to, unsigned kind)
{
    size_t at = all.found->transitions;

    if (!all.limits->stuck)
        return;
    if (at == all.edges_max) {
        all.edges_max = all.edges_max ? all.edges_max * 2 : FIRST_STATES;
        if (all.edges_max * sizeof *all.edges > all.limits->memory_mb << 20) {
            all.full = true;
            return;
        }
        all.edges = grow(all.edges, all.edges_max, sizeof *all.edges);
    }
    all.edges[at] = (struct edge){(uint32_t)to, kind};
}

/* ---- Search ---- */

/* The place of the state, which is stored if it is new. */
static size_t find_or_add(const void *state, size_t parent, uint32_t step)
{
    size_t slot = slot_of(state);

    if (all.table[slot] != 0)
        return all.table[slot] - 1;
    if (all.states == all.states_max) {
        if (!grow_store()) {
            all.full = true;
            return 0;
        }
        slot = slot_of(state);
    }
    memcpy(all.store + all.states * all.model->size, state, all.model->size);
    all.origins[all.states] = (struct origin){(uint32_t)parent, step};
    all.table[slot] = (uint32_t)(all.states + 1);
    if (!all.found->wrong) {
        all.found->wrong = all.model->judge(state);
        all.found->at = all.states;
    }
    return all.states++;
}

void states_step(const void *to, uint32_t step, unsigned kind)
{
    size_t place;

    if (all.full)
        return;
    place = find_or_add(to, all.visiting, step);
    if (all.full)
        return;
    add_edge(place, kind);
    all.found->transitions++;
}

static bool is_over(time_t begun)
{
    return (all.visiting & 0xfff) == 0 && time(NULL) - begun > (time_t)all.limits->seconds;
}

bool states_explore(const struct model *model, const struct states_limits *limits,
                    struct states_found *ret_found)
{
    size_t level_end = 1;
    time_t begun = time(NULL);
    void *first = grow(NULL, 1, model->size);

    states_free();
    *ret_found = (struct states_found){0};
    all.model = model;
    all.limits = limits;
    all.found = ret_found;
    all.full = !grow_store();
    memset(first, 0, model->size);
    model->begin(first);
    if (!all.full)
        find_or_add(first, NOWHERE, 0);
    free(first);

    for (; all.visiting < all.states && !ret_found->wrong && !all.full; all.visiting++) {
        uint8_t state[256]; /* A copy, because the store moves when it grows. */

        if (is_over(begun))
            break;
        if (all.visiting == level_end) {
            level_end = all.states;
            ret_found->depth++;
        }
        if (limits->stuck)
            all.first_edges[all.visiting] = ret_found->transitions;
        memcpy(state, state_at(all.visiting), model->size);
        model->steps(state);
    }
    ret_found->states = all.states;
    ret_found->complete = ret_found->wrong || (all.visiting == all.states && !all.full);
    if (limits->stuck && all.states > 0)
        all.first_edges[all.visiting] = ret_found->transitions;
    return ret_found->complete;
}

/* ---- What stays possible ---- */

/* The states before each state, by steps of these kinds.  Those of state i are at firsts[i] to
 * firsts[i + 1] - 1 of what is returned. */
static uint32_t *turn_edges(unsigned kinds, size_t *firsts)
{
    size_t edges = all.found->transitions, n = all.states;
    uint32_t *befores = grow(NULL, edges + 1, sizeof *befores);

    memset(firsts, 0, (n + 2) * sizeof *firsts);
    for (size_t e = 0; e < edges; e++)
        if (all.edges[e].kind & kinds)
            firsts[all.edges[e].to + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        firsts[i] += firsts[i - 1];
    for (size_t i = 0; i < n; i++) /* Now firsts[i + 1] moves to its end. */
        for (size_t e = all.first_edges[i]; e < all.first_edges[i + 1]; e++)
            if (all.edges[e].kind & kinds)
                befores[firsts[all.edges[e].to + 1]++] = (uint32_t)i;
    return befores;
}

size_t states_stuck(unsigned kinds, bool (*is_good)(const void *state), size_t *ret_at)
{
    size_t n = all.states, head = 0, tail = 0;
    size_t *firsts = grow(NULL, n + 2, sizeof *firsts);
    uint32_t *befores = turn_edges(kinds, firsts);
    uint32_t *queue = grow(NULL, n, sizeof *queue);
    bool *can = grow(NULL, n, sizeof *can);

    for (size_t i = 0; i < n; i++) {
        can[i] = is_good(state_at(i));
        if (can[i])
            queue[tail++] = (uint32_t)i;
    }
    for (; head < tail; head++)
        for (size_t b = firsts[queue[head]]; b < firsts[queue[head] + 1]; b++)
            if (!can[befores[b]]) {
                can[befores[b]] = true;
                queue[tail++] = befores[b];
            }
    *ret_at = 0;
    while (*ret_at < n && can[*ret_at])
        ++*ret_at;
    free(firsts);
    free(befores);
    free(queue);
    free(can);
    return n - tail;
}

size_t states_count(bool (*is_so)(const void *state))
{
    size_t count = 0;

    for (size_t i = 0; i < all.states; i++)
        count += is_so(state_at(i));
    return count;
}

/* ---- Stories ---- */

void states_story(size_t at)
{
    size_t len = 0, i = at;
    uint32_t *path;

    for (; all.origins[i].parent != NOWHERE; i = all.origins[i].parent)
        len++;
    path = grow(NULL, len + 1, sizeof *path);
    for (size_t k = len, j = at; k > 0; k--, j = all.origins[j].parent)
        path[k - 1] = (uint32_t)j;
    for (size_t k = 0; k < len; k++) {
        printf("  %3zu  ", k + 1);
        all.model->tell(state_at(all.origins[path[k]].parent), state_at(path[k]),
                        all.origins[path[k]].step);
        printf("\n");
    }
    free(path);
}

void states_free(void)
{
    free(all.store);
    free(all.origins);
    free(all.table);
    free(all.edges);
    free(all.first_edges);
    memset(&all, 0, sizeof all);
}

bool states_read_option(const char *arg, const struct states_option *options, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t n = strlen(options[i].name);

        if (strncmp(arg, options[i].name, n) == 0 && arg[n] == '=') {
            *options[i].value = (unsigned)strtoul(arg + n + 1, NULL, 10);
            return true;
        }
    }
    return false;
}
