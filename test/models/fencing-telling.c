/*
 * fencing-telling.c - the steps of fencing.h in words, and worlds that differ in names alone.
 */
#include "models/fencing.h"

#include <stdio.h>
#include <string.h>

/* ---- In words ---- */

static char name_of(unsigned master)
{
    return (char)('a' + master);
}

static void tell_client(const struct fencing_world *before, const struct fencing_world *after,
                        struct move move)
{
    const struct fencing_client *c = &after->clients[move.a];

    printf("client %c ", 'A' + move.a);
    switch (move.kind) {
    case 'S':
        printf("asks %c, which counts to %u%s", name_of(move.b), move.c,
               c->stored & bit_of(move.b) ? "" : " and refuses");
        break;
    case 'P':
        printf("reads the proof of %c: version %u", name_of(move.b),
               before->masters[move.b].version);
        break;
    case 'n':
        printf("has votes but no token, and asks all for %u", move.b);
        break;
    case 'N':
        printf("raises %c, which counts to %u", name_of(move.b), after->masters[move.b].counter);
        break;
    case 'V':
        printf("cannot raise %c", name_of(move.b));
        break;
    default:
        printf("gives everything back");
        break;
    }
    if (c->version != before->clients[move.a].version && !c->over)
        printf(", and takes version %u over", c->version);
    if (strchr("PSN", move.kind) != NULL && move.c != 0 &&
        c->round != before->clients[move.a].round && c->round != ASKING)
        printf(", and HOLDS with token %u", move.c);
    printf("\n");
}

static void tell_change(const struct fencing_world *after, struct move move)
{
    switch (move.kind) {
    case 'O':
        printf("version %u is chosen\n", move.a);
        break;
    case 'e':
        printf("the admin sees the joint version on %c%s\n", name_of(move.a),
               after->admin.waiting ? ", and waits" : "");
        break;
    case 'd':
        printf("the admin reads %u on %c\n", move.b, name_of(move.a));
        break;
    case 'u':
        printf("the admin raises %c to %u\n", name_of(move.a), move.b);
        break;
    default:
        printf("the admin is killed, and another begins\n");
        break;
    }
}

static void tell_master(struct move move)
{
    switch (move.kind) {
    case 'W':
        printf("version %u is written to %c\n", move.b, name_of(move.a));
        break;
    case 'F':
        printf("%c loses its data\n", name_of(move.a));
        break;
    case 'r':
        printf("for %c, %c tells %u\n", name_of(move.a), name_of(move.b), move.c);
        break;
    case 'I':
        printf("%c gets an epoch, and counts on from %u\n", name_of(move.a), move.b);
        break;
    case 'h':
        printf("a rival counts on %c to %u\n", name_of(move.a), move.b);
        break;
    case 'c':
        printf("the clock of %c is stepped, and its key ends\n", name_of(move.a));
        break;
    default:
        printf("-- a tick of time\n");
        break;
    }
}

void fencing_tell(const void *before, const void *after, struct move move)
{
    if (strchr("SPnNVR", move.kind) != NULL)
        tell_client(before, after, move);
    else if (strchr("OeduK", move.kind) != NULL)
        tell_change(after, move);
    else
        tell_master(move);
}

/* ---- Names ---- */

static void swap_bits(struct fencing_client *c, unsigned a, unsigned b)
{
    unsigned one = c->numbers >> 4 * a & 15, other = c->numbers >> 4 * b & 15;

    c->numbers &= ~(15u << 4 * a | 15u << 4 * b);
    c->numbers |= one << 4 * b | other << 4 * a;
}

static set swap_in(set masters, unsigned a, unsigned b)
{
    unsigned differ = (masters >> a ^ masters >> b) & 1;

    return masters ^ (differ << a | differ << b);
}

static void swap_masters(struct fencing_world *w, unsigned a, unsigned b)
{
    struct fencing_master first = w->masters[a];

    w->masters[a] = w->masters[b];
    w->masters[b] = first;
    for (unsigned m = 0; m < bounds.masters; m++)
        w->masters[m].told = swap_in(w->masters[m].told, a, b);
    for (unsigned i = 0; i < bounds.clients; i++) {
        struct fencing_client *c = &w->clients[i];
        c->asked = swap_in(c->asked, a, b);
        c->stored = swap_in(c->stored, a, b);
        c->good = swap_in(c->good, a, b);
        swap_bits(c, a, b);
    }
    w->admin.seen = swap_in(w->admin.seen, a, b);
    w->admin.read = swap_in(w->admin.read, a, b);
    w->admin.raised = swap_in(w->admin.raised, a, b);
}

/* All that the world says of one master. */
static uint64_t describe(const struct fencing_world *w, unsigned m)
{
    uint64_t row = w->admin.seen >> m & 1;
    uint32_t word;

    row = row << 2 | (w->admin.read >> m & 1) << 1 | (w->admin.raised >> m & 1);
    for (unsigned i = 0; i < bounds.clients; i++) {
        const struct fencing_client *c = &w->clients[i];
        row = row << 7 | (c->asked >> m & 1) << 6 | (c->stored >> m & 1) << 5 |
              (c->good >> m & 1) << 4 | (c->numbers >> 4 * m & 15);
    }
    memcpy(&word, &w->masters[m], sizeof word);
    return row << 32 | word;
}

static bool are_alike(unsigned a, unsigned b)
{
    for (unsigned i = 0; i < bounds.lists_len; i++)
        if ((bounds.lists[i] >> a ^ bounds.lists[i] >> b) & 1)
            return false;
    return true;
}

static void sort_masters(struct fencing_world *w)
{
    for (unsigned a = 0; a < bounds.masters; a++)
        for (unsigned b = a + 1; b < bounds.masters; b++)
            if (are_alike(a, b) && describe(w, a) > describe(w, b))
                swap_masters(w, a, b);
}

void fencing_rename(void *world)
{
    struct fencing_world *w = world, swapped = *w;

    sort_masters(w);
    if (bounds.clients < 2 || !bounds.overlap)
        return;
    swapped.clients[0] = w->clients[1];
    swapped.clients[1] = w->clients[0];
    memcpy(swapped.masters, w->masters, sizeof swapped.masters);
    swapped.admin = w->admin;
    for (unsigned m = 0; m < bounds.masters; m++)
        if (swapped.masters[m].owner != 0)
            swapped.masters[m].owner = 3u - swapped.masters[m].owner;
    sort_masters(&swapped);
    if (memcmp(&swapped, w, sizeof swapped) < 0)
        *w = swapped;
}

uint32_t fencing_words_used(void)
{
    uint32_t clients = (1u << 2 * bounds.clients) - 1, masters = (1u << bounds.masters) - 1;

    return 3 | masters << 2 | clients << (2 + MASTERS_MAX);
}
