/*
 * world.c - configurations, quorums, the first world, and worlds that differ in names alone.
 */
#include "models/members.h"

#include <string.h>

const char two_hold[] = "two clients hold the lock at once";
const char two_chosen[] = "two configurations are chosen for one version";
const char revived[] = "a quorum is back at a configuration two versions behind";

struct bounds bounds;

/* What the chosen versions of the world at hand are. */
static struct {
    unsigned from, to; /* Numbers of lists. */
} versions[VERSIONS_LEN];
static unsigned newest;

static unsigned list_after(unsigned list, unsigned value)
{
    return list + 1 + value < bounds.lists_len ? list + 1 + value : LISTS_MAX;
}

void world_read(const struct world *w)
{
    versions[1].from = versions[1].to = 0;
    for (newest = 1; newest < bounds.versions; newest++) {
        unsigned v = newest, chosen = w->history.chosen >> 2 * (v - 1) & 3;
        if (chosen == 0)
            return;
        if (is_joint(v)) {
            unsigned list = chosen == 1 ? versions[v].to : versions[v].from;
            versions[v + 1].from = versions[v + 1].to = list;
        } else {
            versions[v + 1].to = list_after(versions[v].from, chosen - 1);
            versions[v + 1].from = is_planted(BUG_NO_JOINT) ? versions[v + 1].to : versions[v].from;
        }
    }
}

unsigned newest_version(void)
{
    return newest;
}

bool is_joint(unsigned version)
{
    return version <= CHOSEN_MAX && versions[version].from != versions[version].to;
}

unsigned list_of(unsigned version)
{
    return versions[version].to;
}

unsigned next_list(unsigned version, unsigned value)
{
    return value < bounds.choices ? list_after(versions[version].from, value) : LISTS_MAX;
}

struct configuration configuration_of(unsigned version)
{
    if (version == CLOSED)
        return (struct configuration){0, 0};
    if (version == RESCUED)
        return (struct configuration){bounds.rescue_list, bounds.rescue_list};
    return (struct configuration){bounds.lists[versions[version].from],
                                  bounds.lists[versions[version].to]};
}

set members_of(unsigned version)
{
    struct configuration c = configuration_of(version);

    return c.from | c.to;
}

bool is_majority(set list, set of)
{
    return 2 * __builtin_popcount(list & of) > __builtin_popcount(list);
}

/* M2. */
bool is_quorum(unsigned version, set votes)
{
    struct configuration c = configuration_of(version);

    return is_majority(c.to, votes) && (is_planted(BUG_ONE_QUORUM) || is_majority(c.from, votes));
}

/* M3. */
bool is_choosing_quorum(unsigned version, set votes)
{
    struct configuration c = configuration_of(version);

    return is_majority(c.to, votes) &&
           (is_planted(BUG_ONE_QUORUM_CHOOSES) || is_majority(c.from, votes));
}

/* The version as it is written.  R4: those of a rescue are greater than any other. */
unsigned number_of(const struct world *w, unsigned version)
{
    if (version == CLOSED)
        return w->history.closed_as;
    if (version == RESCUED)
        return w->history.closed_as + 1u;
    return version;
}

bool answers(const struct world *w, unsigned master)
{
    return !(w->history.lost & bit_of(master));
}

/* What M5 and M7 are for: no quorum of a configuration two behind the newest is ever had again. */
const char *find_revival(const struct world *w)
{
    world_read(w);
    for (unsigned v = 1; v + 2 <= newest; v++) {
        struct configuration c = configuration_of(v);
        set at = 0;

        for (unsigned m = 0; m < bounds.masters; m++)
            if (w->masters[m].memory && w->masters[m].version == v)
                at |= bit_of(m);
        if (is_majority(c.from, at) && is_majority(c.to, at))
            return revived;
    }
    return NULL;
}

void world_begin(void *world)
{
    struct world *w = world;
    set accepted = 0;

    for (unsigned m = 0; m < bounds.masters; m++)
        w->masters[m].memory = w->masters[m].version = 1;
    for (unsigned c = 0; c < bounds.clients; c++)
        w->clients[c].version = 1;
    if (bounds.chosen != 2)
        return;
    w->history.chosen = w->history.proposed = w->history.drawn = 1;
    for (unsigned m = 0; bounds.paxos && !is_majority(bounds.lists[0], accepted); m++)
        if (bounds.lists[0] & bit_of(m)) {
            w->masters[m].ballot = w->masters[m].accepted_ballot = 1;
            accepted |= bit_of(m);
        }
}

uint32_t world_words_used(void)
{
    uint32_t all = bounds.lose != 0 ? 7 : 3;
    unsigned at = sizeof(struct history) / 4;

    all |= ((1u << bounds.admins) - 1) << at;
    at += ADMINS_MAX;
    all |= ((1u << bounds.masters) - 1) << at;
    at += MASTERS_MAX;
    return all | ((1u << bounds.clients) - 1) << at;
}

/* ---- Names ---- */

static set rename_set(set masters, const unsigned *name)
{
    set renamed = 0;

    for (unsigned m = 0; masters != 0; m++, masters >>= 1)
        if (masters & 1)
            renamed |= bit_of(name[m]);
    return renamed;
}

static void rename_masters(struct world *w, const unsigned *name)
{
    struct master old[MASTERS_MAX];

    memcpy(old, w->masters, sizeof old);
    for (unsigned m = 0; m < bounds.masters; m++) {
        w->masters[name[m]] = old[m];
        w->masters[name[m]].told = rename_set(old[m].told, name);
    }
    for (unsigned c = 0; c < bounds.clients; c++) {
        w->clients[c].stored = rename_set(w->clients[c].stored, name);
        w->clients[c].good = rename_set(w->clients[c].good, name);
        w->clients[c].known = rename_set(w->clients[c].known, name);
    }
    for (unsigned o = 0; o < bounds.admins; o++)
        w->admins[o].seen = rename_set(w->admins[o].seen, name);
    w->history.lost = rename_set(w->history.lost, name);
}

/* Masters are alike if all lists have both or neither. */
static bool are_alike(unsigned a, unsigned b)
{
    set both = bit_of(a) | bit_of(b);

    for (unsigned i = 0; i < bounds.lists_len; i++)
        if ((bounds.lists[i] & both) != 0 && (bounds.lists[i] & both) != both)
            return false;
    if ((bounds.lose & both) != 0 && (bounds.lose & both) != both)
        return false;
    return (bounds.rescue_list & both) == 0 || (bounds.rescue_list & both) == both;
}

/* All that the world says of one master. */
static uint64_t describe_master(const struct world *w, unsigned m)
{
    uint64_t row;
    uint32_t word;
    set columns = w->history.lost >> m & 1;

    memcpy(&word, &w->masters[m], sizeof word);
    row = word;
    for (unsigned c = 0; c < bounds.clients; c++)
        columns = columns << 3 | (w->clients[c].stored >> m & 1) << 2 |
                  (w->clients[c].good >> m & 1) << 1 | (w->clients[c].known >> m & 1);
    for (unsigned o = 0; o < bounds.admins; o++)
        columns = columns << 1 | (w->admins[o].seen >> m & 1);
    return row | (uint64_t)columns << 32;
}

/* Puts masters that are alike into the order of what the world says of them. */
static void sort_masters(struct world *w)
{
    uint64_t row[MASTERS_MAX];
    unsigned at[MASTERS_MAX], name[MASTERS_MAX];
    bool moved = false;

    for (unsigned m = 0; m < bounds.masters; m++) {
        row[m] = describe_master(w, m);
        at[m] = m;
    }
    for (unsigned i = 0; i < bounds.masters; i++)
        for (unsigned j = i + 1; j < bounds.masters; j++)
            if (row[at[i]] > row[at[j]] && are_alike(i, j)) {
                unsigned other = at[i];
                at[i] = at[j];
                at[j] = other;
                moved = true;
            }
    if (!moved)
        return;
    for (unsigned i = 0; i < bounds.masters; i++)
        name[at[i]] = i;
    rename_masters(w, name);
}

static void swap_first_clients(struct world *w)
{
    struct client first = w->clients[0];

    w->clients[0] = w->clients[1];
    w->clients[1] = first;
    for (unsigned m = 0; m < bounds.masters; m++)
        if (w->masters[m].owner == 1 || w->masters[m].owner == 2)
            w->masters[m].owner = (3u - w->masters[m].owner);
}

static void swap_admins(struct world *w)
{
    struct admin first = w->admins[0];

    w->admins[0] = w->admins[1];
    w->admins[1] = first;
}

static void keep_smaller(struct world *least, const struct world *other)
{
    struct world sorted = *other;

    sort_masters(&sorted);
    if (memcmp(&sorted, least, sizeof sorted) < 0)
        *least = sorted;
}

/* The least of the worlds that the names of clients, admins and masters can make. */
void world_rename(void *world)
{
    struct world *w = world, least, swapped = *w;

    least = *w;
    sort_masters(&least);
    if (bounds.clients >= 2) {
        swap_first_clients(&swapped);
        keep_smaller(&least, &swapped);
    }
    if (bounds.admins == 2) {
        swap_admins(&swapped);
        keep_smaller(&least, &swapped);
        if (bounds.clients >= 2) {
            swap_first_clients(&swapped);
            keep_smaller(&least, &swapped);
        }
    }
    *w = least;
}
