/*
 * explore.c - the search: worlds put away, known again, and their stories told.
 *
 * Worlds are known again by 64 bits of hash: among 10 million of them, two share
 * one by accident with a probability of 3 in a million, and then the worlds
 * behind the second are not looked at.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explore/explore.h"
#include "story.h"

/* ---- Worlds, put away ---- */

/* Most bytes of a world are zero, and its settings are those of its scenario. */
#define PACKED_MAX (sizeof(struct world) / 8 * 9 + 16)

static size_t pack_bytes(const void *bytes, size_t size, unsigned char *packed)
{
    const unsigned char *p = bytes;
    size_t len = 0;

    for (size_t i = 0; i < size; i += 8) {
        size_t mask_at = len++, here = size - i < 8 ? size - i : 8;
        uint64_t word = 0;

        memcpy(&word, p + i, here);
        packed[mask_at] = 0;
        for (size_t j = 0; word != 0 && j < here; j++) {
            if (p[i + j] == 0)
                continue;
            packed[mask_at] |= (unsigned char)(1u << j);
            packed[len++] = p[i + j];
        }
    }
    return len;
}

static size_t unpack_bytes(const unsigned char *packed, void *bytes, size_t size)
{
    unsigned char *p = bytes;
    size_t len = 0;

    memset(bytes, 0, size);
    for (size_t i = 0; i < size; i += 8) {
        unsigned char mask = packed[len++];

        for (size_t j = 0; mask >> j != 0; j++)
            if (mask & 1u << j)
                p[i + j] = packed[len++];
    }
    return len;
}

/* A world without its settings. */
static size_t pack(const struct world *world, unsigned char *packed)
{
    struct world bare;

    memcpy(&bare, world, sizeof bare);
    for (unsigned c = 0; c < CLIENTS; c++)
        memset(&bare.clients[c].q.config, 0, sizeof bare.clients[c].q.config);
    return pack_bytes(&bare, sizeof bare, packed);
}

static size_t unpack(const unsigned char *packed, const struct world *first, struct world *world)
{
    size_t len = unpack_bytes(packed, world, sizeof *world);

    for (unsigned c = 0; c < CLIENTS; c++)
        memcpy(&world->clients[c].q.config, &first->clients[c].q.config,
               sizeof world->clients[c].q.config);
    return len;
}

/* Worlds in a row. */
struct row {
    unsigned char *bytes;
    size_t len, room;
    uint32_t worlds;
};

static void *grow(void *p, size_t size)
{
    p = realloc(p, size);
    if (p == NULL) {
        fprintf(stderr, "explore: out of memory\n");
        exit(2);
    }
    return p;
}

static void put(struct row *row, const struct world *world)
{
    if (row->room - row->len < PACKED_MAX) {
        row->room = row->room * 2 + PACKED_MAX;
        row->bytes = grow(row->bytes, row->room);
    }
    row->len += pack(world, row->bytes + row->len);
    row->worlds++;
}

/* ---- Worlds, known again ---- */

/* How a world was first reached. */
struct origin {
    uint32_t parent;
    struct move move;
};

struct search {
    const struct scenario *scenario;
    struct world first;
    uint64_t *seen; /* Hashes, at hash % seen_room or after; 0: free. */
    size_t seen_room;
    struct origin *origins; /* By number. */
    uint32_t worlds, worlds_room, worlds_max;
    uint64_t moves;
    uint32_t parent; /* Of the move that is being tried, */
    struct move move;
    unsigned depth;
};

static bool see(uint64_t *seen, size_t room, uint64_t hash)
{
    size_t i = hash & (room - 1);

    while (seen[i] != 0 && seen[i] != hash)
        i = (i + 1) & (room - 1);
    if (seen[i] == hash)
        return false;
    seen[i] = hash;
    return true;
}

static void grow_seen(struct search *search)
{
    size_t room = search->seen_room ? search->seen_room * 2 : 1 << 16;
    uint64_t *seen = calloc(room, sizeof *seen);

    if (seen == NULL) {
        fprintf(stderr, "explore: out of memory\n");
        exit(2);
    }
    for (size_t i = 0; i < search->seen_room; i++)
        if (search->seen[i] != 0)
            (void)see(seen, room, search->seen[i]);
    free(search->seen);
    search->seen = seen;
    search->seen_room = room;
}

/* False: it is known already. */
static bool is_new(struct search *search, const struct world *world)
{
    if (search->worlds >= search->seen_room / 8 * 5)
        grow_seen(search);
    if (!see(search->seen, search->seen_room, model_hash(world)))
        return false;
    if (search->worlds == search->worlds_room) {
        search->worlds_room = search->worlds_room * 2 + 1024;
        search->origins = grow(search->origins, search->worlds_room * sizeof(struct origin));
    }
    search->origins[search->worlds++] = (struct origin){search->parent, search->move};
    return true;
}

/* ---- A story ---- */

static void tell_move(const struct search *search, struct world *world, struct move move)
{
    char told[256], at[32];
    const char *wrong = model_do(search->scenario, world, move, told, sizeof told);

    if (told[0] != '\0')
        printf("%9s  %s\n", story_time(START + world->tick * TICK, START, at, sizeof at), told);
    if (wrong != NULL)
        printf("%9s  WRONG: %s\n", "", wrong);
}

/* How the world with that number was reached, and the last move. */
static void tell_story(const struct search *search)
{
    struct world world;
    unsigned len = 0;
    uint32_t *path;

    memcpy(&world, &search->first, sizeof world);
    for (uint32_t i = search->parent; i != 0; i = search->origins[i].parent)
        len++;
    path = grow(NULL, (len + 1) * sizeof *path);
    for (uint32_t i = search->parent, j = len; i != 0; i = search->origins[i].parent)
        path[--j] = i;
    for (unsigned i = 0; i < len; i++)
        tell_move(search, &world, search->origins[path[i]].move);
    fflush(stdout);
    tell_move(search, &world, search->move);
    free(path);
}

/* An assertion of the machine's has failed: that is a story as well. */
static const struct search *asserted;

static void on_abort(int number)
{
    const struct search *search = asserted;

    asserted = NULL; /* The story ends just so. */
    if (search == NULL)
        _exit(1);
    printf("%s: an assertion fails after %u moves:\n", search->scenario->name, search->depth);
    signal(number, on_abort);
    tell_story(search);
    _exit(1);
}

/* ---- Exploring ---- */

/* All that comes of one world; false: something wrong. */
static bool explore_one(struct search *search, const struct world *world, struct row *next)
{
    struct move moves[MOVES_MAX];
    size_t moves_len = model_moves(search->scenario, world, moves);

    for (size_t i = 0; i < moves_len; i++) {
        struct world after;
        const char *wrong;

        memcpy(&after, world, sizeof after); /* Padding too. */
        search->move = moves[i];
        search->moves++;
        wrong = model_do(search->scenario, &after, moves[i], NULL, 0);
        if (wrong != NULL) {
            printf("%s: %s, after %u moves:\n", search->scenario->name, wrong, search->depth);
            tell_story(search);
            return false;
        }
        if (is_new(search, &after))
            put(next, &after);
    }
    return true;
}

static int search_all(struct search *search)
{
    struct row here = {.bytes = NULL}, next = {.bytes = NULL};
    uint32_t number = 0;
    int status = 0;

    model_begin(search->scenario, &search->first);
    (void)is_new(search, &search->first);
    put(&here, &search->first);
    while (here.worlds > 0 && status == 0) {
        size_t at = 0;

        search->depth++;
        for (uint32_t i = 0; i < here.worlds && status == 0; i++) {
            struct world world;

            at += unpack(here.bytes + at, &search->first, &world);
            search->parent = number++;
            if (!explore_one(search, &world, &next))
                status = 1;
            else if (search->worlds > search->worlds_max)
                status = 2;
        }
        struct row swap = here;
        here = next;
        next = swap;
        next.len = next.worlds = 0;
    }
    free(here.bytes);
    free(next.bytes);
    return status;
}

int explore(const struct scenario *scenario, uint32_t worlds_max, struct explored *ret)
{
    struct search search = {.scenario = scenario, .worlds_max = worlds_max};
    int status;

    asserted = &search;
    signal(SIGABRT, on_abort);
    status = search_all(&search);
    asserted = NULL;
    *ret = (struct explored){search.worlds, search.moves, search.depth};
    free(search.seen);
    free(search.origins);
    return status;
}
