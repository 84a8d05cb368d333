/*
 * explore.c - the search: it stores worlds, recognises them, and prints their stories.
 *
 * A world is recognised by a hash of 64 bits.  Among 10 million worlds, two share a
 * hash with a probability of 3 in a million.  Then the search skips the second one.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explore/explore.h"
#include "test/lib/story.h"

/* ---- Storing worlds ---- */

/* Most words of a world are zero.  Of 64 words, a bitmap and those that are not zero are stored. */
#define WORDS (sizeof(struct world) / sizeof(uint64_t))
#define PACKED_MAX (sizeof(struct world) + (WORDS / 64 + 1) * sizeof(uint64_t))

#define CHECKED 64 /* One stored world of so many is read back and compared. */

_Static_assert(sizeof(struct world) % sizeof(uint64_t) == 0, "made of words");

static size_t pack_words(const unsigned char *words, size_t words_len, unsigned char *packed)
{
    uint64_t bitmap = 0, word;
    unsigned char *p = packed + sizeof bitmap;

    for (size_t i = 0; i < words_len; i++) {
        memcpy(&word, words + i * sizeof word, sizeof word);
        memcpy(p, &word, sizeof word);
        bitmap |= (uint64_t)(word != 0) << i;
        p += word != 0 ? sizeof word : 0;
    }
    memcpy(packed, &bitmap, sizeof bitmap);
    return (size_t)(p - packed);
}

static size_t unpack_words(const unsigned char *packed, size_t words_len, unsigned char *words)
{
    const unsigned char *p = packed;
    uint64_t bitmap;

    memcpy(&bitmap, p, sizeof bitmap);
    p += sizeof bitmap;
    memset(words, 0, words_len * sizeof bitmap);
    for (; bitmap != 0; bitmap &= bitmap - 1) {
        memcpy(words + (size_t)__builtin_ctzll(bitmap) * sizeof bitmap, p, sizeof bitmap);
        p += sizeof bitmap;
    }
    return (size_t)(p - packed);
}

static size_t words_from(size_t first)
{
    return WORDS - first < 64 ? WORDS - first : 64;
}

/* Of the settings, store only what differs from the first world of the scenario.  That is little: a
 * good extension changes config.lease.  A second call restores them. */
static void fold_settings(struct world *world, const struct world *first)
{
    for (unsigned c = 0; c < CLIENTS; c++) {
        unsigned char *bytes = (unsigned char *)&world->clients[c].q.config;
        const unsigned char *before = (const unsigned char *)&first->clients[c].q.config;

        for (size_t i = 0; i < sizeof world->clients[c].q.config; i++)
            bytes[i] ^= before[i];
    }
}

static size_t pack(const struct world *world, const struct world *first, unsigned char *packed)
{
    struct world bare;
    size_t len = 0;

    memcpy(&bare, world, sizeof bare);
    fold_settings(&bare, first);
    for (size_t i = 0; i < WORDS; i += 64)
        len +=
            pack_words((unsigned char *)&bare + i * sizeof(uint64_t), words_from(i), packed + len);
    return len;
}

static size_t unpack(const unsigned char *packed, const struct world *first, struct world *world)
{
    size_t len = 0;

    for (size_t i = 0; i < WORDS; i += 64)
        len += unpack_words(packed + len, words_from(i),
                            (unsigned char *)world + i * sizeof(uint64_t));
    fold_settings(world, first);
    return len;
}

/* Packed worlds, one behind the other. */
struct row {
    unsigned char *bytes;
    size_t len, room;
    uint32_t worlds;
};

static void *check_memory(void *p)
{
    if (p != NULL)
        return p;
    fprintf(stderr, "explore: out of memory\n");
    exit(2);
}

static void put(struct row *row, const struct world *world, const struct world *first)
{
    struct world stored;
    size_t len;

    if (row->room - row->len < PACKED_MAX + sizeof(uint64_t)) {
        row->room += row->room / 2 + 64 * PACKED_MAX;
        row->bytes = check_memory(realloc(row->bytes, row->room));
    }
    len = pack(world, first, row->bytes + row->len);
    if (row->worlds++ % CHECKED == 0 && (unpack(row->bytes + row->len, first, &stored) != len ||
                                         memcmp(&stored, world, sizeof stored) != 0)) {
        fprintf(stderr, "explore: a stored world is not what was to be stored\n");
        exit(2);
    }
    row->len += len;
}

/* ---- Recognising worlds ---- */

/* A hash is stored at hash % room, or in the next free place; 0: a free place. */
struct set {
    uint64_t *hashes;
    size_t room, len;
};

static bool find(const struct set *set, uint64_t hash, size_t *ret_at)
{
    size_t at = hash & (set->room - 1);

    while (set->hashes[at] != 0 && set->hashes[at] != hash)
        at = (at + 1) & (set->room - 1);
    *ret_at = at;
    return set->hashes[at] == hash;
}

/* Room for so many more hashes. */
static void make_room(struct set *set, size_t more)
{
    struct set larger = {.room = set->room > 0 ? set->room * 2 : 1 << 16, .len = set->len};
    size_t at;

    if (set->len + more < set->room / 8 * 5)
        return;
    larger.hashes = check_memory(calloc(larger.room, sizeof(uint64_t)));
    for (size_t i = 0; i < set->room; i++) {
        if (set->hashes[i] == 0)
            continue;
        (void)find(&larger, set->hashes[i], &at); /* It is not there yet. */
        larger.hashes[at] = set->hashes[i];
    }
    free(set->hashes);
    *set = larger;
}

/* Returns false if the set has the hash already.  The set must have room. */
static bool set_add(struct set *set, uint64_t hash)
{
    size_t at;

    if (find(set, hash, &at))
        return false;
    set->hashes[at] = hash;
    set->len++;
    return true;
}

/* How a world was first reached. */
struct origin {
    uint32_t parent;
    struct move move;
};

struct search {
    const struct scenario *scenario;
    const struct sought *sought;
    struct world first;
    struct row here, next; /* Worlds after n moves, and after n + 1. */
    struct set seen;
    struct set starts;      /* Worlds at the start of a tick, if they are counted. */
    struct origin *origins; /* How each world was reached, by number. */
    uint32_t origins_room;
    uint64_t moves;
    uint32_t parent;  /* The number of the world in which the current move is tried. */
    struct move move; /* The current move. */
    unsigned depth;
};

/* Room for all worlds that follow one world. */
static void make_all_room(struct search *search)
{
    make_room(&search->seen, MOVES_MAX);
    make_room(&search->starts, MOVES_MAX);
    if (search->seen.len + MOVES_MAX < search->origins_room)
        return;
    search->origins_room += search->origins_room / 2 + 1024;
    search->origins =
        check_memory(realloc(search->origins, search->origins_room * sizeof(struct origin)));
}

static size_t memory_of(const struct search *search)
{
    return (search->seen.room + search->starts.room) * sizeof(uint64_t) +
           search->origins_room * sizeof(struct origin) + search->here.room + search->next.room;
}

/* Store the world if it is new. */
static void keep(struct search *search, const struct world *world, uint64_t hash)
{
    uint32_t number = (uint32_t)search->seen.len;

    if (!set_add(&search->seen, hash))
        return;
    search->origins[number] = (struct origin){search->parent, search->move};
    put(&search->next, world, &search->first);
}

/* ---- A story ---- */

static void tell_move(const struct search *search, struct world *world, struct move move)
{
    char told[256], at[32];
    const char *wrong = model_do(search->scenario, world, move, told, sizeof told);

    if (told[0] != '\0')
        printf("%9s  %s\n", story_time(model_now(world), START, at, sizeof at), told);
    if (wrong != NULL)
        printf("%9s  WRONG: %s\n", "", wrong);
}

/* Print the moves that led to the parent, and the current move. */
static void tell_story(const struct search *search)
{
    struct world world;
    unsigned len = 0;
    uint32_t *path;

    memcpy(&world, &search->first, sizeof world);
    for (uint32_t i = search->parent; i != 0; i = search->origins[i].parent)
        len++;
    path = check_memory(malloc((len + 1) * sizeof *path));
    for (uint32_t i = search->parent, j = len; i != 0; i = search->origins[i].parent)
        path[--j] = i;
    for (unsigned i = 0; i < len; i++)
        tell_move(search, &world, search->origins[path[i]].move);
    fflush(stdout);
    tell_move(search, &world, search->move);
    free(path);
}

/* If an assertion of the machine fails, the story of this search is printed. */
static const struct search *asserted;

static void on_abort(int number)
{
    const struct search *search = asserted;

    asserted = NULL; /* The story ends with the same abort, which then only exits. */
    if (search == NULL)
        _exit(1);
    printf("%s: an assertion fails after %u moves:\n", search->scenario->name, search->depth);
    signal(number, on_abort);
    tell_story(search);
    _exit(1);
}

/* ---- Exploring ---- */

static int judge(struct search *search, const char *wrong)
{
    const char *expected = search->scenario->expected;
    bool is_expected = expected != NULL && strcmp(wrong, expected) == 0;

    if (search->sought->only != NULL && strcmp(wrong, search->sought->only) != 0)
        return EXPLORE_FINE;
    if (!is_expected || search->sought->tell) {
        printf("%s: %s, after %u moves:\n", search->scenario->name, wrong, search->depth);
        tell_story(search);
    }
    return is_expected ? EXPLORE_EXPECTED : EXPLORE_WRONG;
}

static uint64_t hash_of(struct search *search, const struct world *world)
{
    uint64_t hash =
        search->sought->plain ? model_hash_all(world) : model_hash(search->scenario, world);

    __builtin_prefetch(&search->seen.hashes[hash & (search->seen.room - 1)]);
    return hash;
}

/* Try all moves in one world.  All hashes are computed before the first is looked up: by
 * then the processor has fetched the memory of each. */
static int explore_one(struct search *search, const struct world *world)
{
    struct world after[MOVES_MAX];
    uint64_t hashes[MOVES_MAX];
    struct move moves[MOVES_MAX];
    size_t moves_len = model_moves(search->scenario, world, moves);

    make_all_room(search);
    for (size_t i = 0; i < moves_len; i++) {
        const char *wrong;
        int status;

        memcpy(&after[i], world, sizeof after[i]); /* Padding too. */
        search->move = moves[i];
        search->moves++;
        wrong = model_do(search->scenario, &after[i], moves[i], NULL, 0);
        status = wrong != NULL ? judge(search, wrong) : EXPLORE_FINE;
        if (status != EXPLORE_FINE)
            return status;
        hashes[i] = hash_of(search, &after[i]);
        if (search->sought->starts && after[i].tick > world->tick)
            (void)set_add(&search->starts, model_hash(search->scenario, &after[i]));
    }
    for (size_t i = 0; i < moves_len; i++) {
        search->move = moves[i];
        keep(search, &after[i], hashes[i]);
    }
    return memory_of(search) > search->sought->memory_max ? EXPLORE_CUT_SHORT : EXPLORE_FINE;
}

/* Try all moves in all worlds of here. */
static int explore_row(struct search *search)
{
    int status = EXPLORE_FINE;
    size_t at = 0;

    for (uint32_t i = 0; i < search->here.worlds && status == EXPLORE_FINE; i++) {
        struct world world;

        at += unpack(search->here.bytes + at, &search->first, &world);
        status = explore_one(search, &world);
        search->parent++;
    }
    return status;
}

static int search_all(struct search *search)
{
    int status = EXPLORE_FINE;

    model_begin(search->scenario, &search->first);
    make_all_room(search);
    keep(search, &search->first, hash_of(search, &search->first));
    while (search->next.worlds > 0 && status == EXPLORE_FINE) {
        struct row done = search->here;

        search->here = search->next;
        search->next = done;
        search->next.len = search->next.worlds = 0;
        search->depth++;
        status = explore_row(search);
    }
    return status;
}

int explore(const struct scenario *scenario, const struct sought *sought, struct explored *ret)
{
    struct search search = {.scenario = scenario, .sought = sought};
    int status;

    asserted = &search;
    signal(SIGABRT, on_abort);
    status = search_all(&search);
    asserted = NULL;
    *ret = (struct explored){search.seen.len, search.starts.len, search.moves, search.depth};
    free(search.here.bytes);
    free(search.next.bytes);
    free(search.seen.hashes);
    free(search.starts.hashes);
    free(search.origins);
    return status;
}
