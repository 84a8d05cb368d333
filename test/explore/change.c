/*
 * change.c - the set of masters changes: what the operator and the clients do about it.
 *
 * The rules M1 to M9 and F1 to F4 are those of test/models/members.h and fencing.h.  A version is
 * chosen as soon as the rules permit it, and is written to each master at any time, or never.
 */
#include "explore/model.h"

#include <stdio.h>
#include <string.h>

struct members change_lists(const struct scenario *scenario, unsigned version)
{
    return scenario->versions_len > 0 ? scenario->versions[version] : members_first(3);
}

static quorum_mask numbers_of(const struct scenario *scenario, quorum_mask masters)
{
    quorum_mask numbers = 0;

    for (unsigned m = 0; m < MASTERS; m++)
        if (masters & mask_of(m))
            numbers |= mask_of(change_number(scenario, m));
    return numbers;
}

struct members change_members(const struct scenario *scenario, unsigned version)
{
    struct members lists = change_lists(scenario, version);

    return (struct members){numbers_of(scenario, lists.from), numbers_of(scenario, lists.to)};
}

static quorum_mask members_of(const struct scenario *scenario, unsigned version)
{
    struct members lists = change_lists(scenario, version);

    return members_all(&lists);
}

static unsigned count(unsigned mask)
{
    return (unsigned)__builtin_popcount(mask);
}

/* Not that of the machine, which may be wrong. */
static bool is_majority(quorum_mask list, unsigned masters)
{
    return 2 * count(list & masters) > count(list);
}

bool change_is_quorum(const struct scenario *scenario, unsigned version, unsigned masters)
{
    struct members lists = change_lists(scenario, version);

    return is_majority(lists.from, masters) && is_majority(lists.to, masters);
}

static bool is_shared(const struct scenario *scenario, unsigned m)
{
    for (unsigned other = 0; other < scenario->masters; other++)
        if (other != m && change_number(scenario, other) == change_number(scenario, m))
            return true;
    return false;
}

bool change_is_known(const struct scenario *scenario, const struct world *world, unsigned c,
                     unsigned m)
{
    return !scenario->renumbered || !is_shared(scenario, m) ||
           (members_of(scenario, world->clients[c].version) & mask_of(m));
}

/* ---- The operator ---- */

/* So many masters share one with each majority: N - Q + 1. */
static unsigned enough_of(quorum_mask list)
{
    return count(list) - count(list) / 2;
}

static bool has_epoch(const struct world *world, unsigned m)
{
    return world->watched[m] == 0;
}

/* Masters that store the newest version. */
static quorum_mask storing(const struct world *world)
{
    quorum_mask masters = 0;

    for (unsigned m = 0; m < world->masters; m++)
        if (has_epoch(world, m) && world->versions[m] == world->operator.chosen)
            masters |= mask_of(m);
    return masters;
}

/* M5, F3 and F4. */
static bool may_leave_joint(const struct scenario *scenario, struct world *world,
                            struct members lists)
{
    struct operator* o = & world->operator;

    if (o->since == 0 && is_majority(lists.from, storing(world))) {
        o->seen = (uint8_t)(storing(world) & lists.from);
        o->since = (uint8_t)(world->tick + 1);
    }
    if (o->since == 0)
        return false;
    if (scenario->left_out != NO_WAIT && world->tick < o->since - 1 + scenario->lease)
        return false;
    return !scenario->fence || scenario->left_out == NO_RAISE || is_majority(lists.to, o->raised);
}

/* What the rules permit is chosen. */
static void choose(const struct scenario *scenario, struct world *world)
{
    struct operator* o = & world->operator;

    while (o->chosen + 1u < scenario->versions_len) {
        struct members lists = change_lists(scenario, o->chosen);

        bool goes_back = change_lists(scenario, o->chosen + 1u).to == lists.from;

        if (lists.from != lists.to && !goes_back && !may_leave_joint(scenario, world, lists))
            return;
        if (!is_majority(lists.from, storing(world)) || !is_majority(lists.to, storing(world)))
            return;
        *o = (struct operator){.chosen = (uint8_t)(o->chosen + 1)};
    }
}

static bool may_read(const struct scenario *scenario, const struct world *world, unsigned m)
{
    const struct operator* o = & world->operator;
    quorum_mask list = change_lists(scenario, o->chosen).from;

    return o->since != 0 && (storing(world) & list & mask_of(m)) && !(o->read & mask_of(m)) &&
           count(o->read) < enough_of(list);
}

static bool may_raise(const struct scenario *scenario, const struct world *world, unsigned m)
{
    const struct operator* o = & world->operator;
    struct members lists = change_lists(scenario, o->chosen);

    return o->since != 0 && count(o->read) == enough_of(lists.from) && has_epoch(world, m) &&
           (lists.to & mask_of(m)) && !(o->raised & mask_of(m)) &&
           !is_majority(lists.to, o->raised);
}

static void add(struct move *moves, size_t *len, enum move_kind kind, unsigned c, unsigned m)
{
    moves[(*len)++] = (struct move){(uint8_t)kind, (uint8_t)c, (uint8_t)m};
}

void change_add_master(const struct scenario *scenario, const struct world *world, unsigned m,
                       struct move *moves, size_t *len)
{
    if (scenario->versions_len == 0 || !has_epoch(world, m))
        return;
    for (unsigned v = world->versions[m] + 1u; v <= world->operator.chosen; v++)
        if ((members_of(scenario, v) | members_of(scenario, v - 1)) & mask_of(m))
            add(moves, len, MOVE_WRITE, v, m);
    if (scenario->fence && may_read(scenario, world, m))
        add(moves, len, MOVE_READ, 0, m);
    if (scenario->fence && may_raise(scenario, world, m))
        add(moves, len, MOVE_RAISE, 0, m);
}

/* ---- Masters that lose their data ---- */

/* M7.  The master gets the greatest version that enough others tell: the least that this can be. */
static bool install(const struct scenario *scenario, struct world *world, unsigned m)
{
    quorum_mask telling = 0;

    for (unsigned v = 0; v <= world->operator.chosen; v++) {
        struct members lists = change_lists(scenario, v);
        bool is_told = false;

        for (unsigned other = 0; other < world->masters; other++) {
            if (other == m || !has_epoch(world, other) || world->versions[other] != v)
                continue;
            telling |= mask_of(other);
            is_told = true;
        }
        if (!is_told || count(telling & lists.from) < enough_of(lists.from) ||
            count(telling & lists.to) < enough_of(lists.to))
            continue;
        world->versions[m] = (uint8_t)v;
        world->watched[m] = 0;
        return true;
    }
    return false;
}

void change_forget(const struct scenario *scenario, struct world *world, unsigned m)
{
    struct operator* o = & world->operator;

    if (scenario->versions_len == 0)
        return;
    world->versions[m] = 0;
    world->watched[m] = (uint8_t)(world->tick + scenario->lease);
    if (scenario->left_out == NO_WATCH)
        (void)install(scenario, world, m);
    if (o->seen & mask_of(m))
        *o = (struct operator){.chosen = o->chosen}; /* M5 (3): it begins anew. */
    choose(scenario, world);
}

void change_tick(const struct scenario *scenario, struct world *world)
{
    for (unsigned m = 0; m < world->masters; m++)
        if (world->watched[m] != 0 && world->watched[m] <= world->tick &&
            !install(scenario, world, m))
            world->watched[m] = (uint8_t)(world->tick + 1);
    if (scenario->versions_len > 0)
        choose(scenario, world);
}

/* ---- Clients ---- */

unsigned change_newest(const struct world *world)
{
    unsigned version = 0;

    for (unsigned m = 0; m < world->masters; m++)
        if (has_epoch(world, m) && world->versions[m] > version)
            version = world->versions[m];
    return version;
}

void change_add_client(const struct scenario *scenario, const struct world *world, unsigned c,
                       struct move *moves, size_t *len)
{
    const struct client *client = &world->clients[c];
    enum quorum_state state = client->q.state;

    if (scenario->versions_len == 0 || !client->begun || quorum_is_settled(&client->q))
        return; /* A client that has ended takes nothing over. */
    for (unsigned v = client->version + 1u; world->left[RARE_LOOK] > 0 && v <= change_newest(world);
         v++)
        add(moves, len, MOVE_LOOK, c, v);
    if (world->left[RARE_ADOPT] > 0 && (state == QUORUM_HELD || state == QUORUM_EXTENDING))
        for (unsigned v = 0; v <= change_newest(world); v++)
            add(moves, len, MOVE_ADOPT, c, v);
}

/* Numbers that other masters get next.  Nothing is sent to these masters any more. */
static quorum_mask leave(const struct scenario *scenario, struct world *world, unsigned c,
                         quorum_mask gone)
{
    quorum_mask left = 0;

    for (unsigned m = 0; m < world->masters; m++) {
        if (!(gone & mask_of(m)) || !is_shared(scenario, m))
            continue;
        left |= mask_of(change_number(scenario, m));
        model_end_link(&world->links[c][m]);
        if (world->keys[m].owner == c + 1)
            world->keys[m].excused = true;
    }
    return left;
}

static const char *take_over(const struct scenario *scenario, struct world *world, unsigned c,
                             unsigned version, char *told, size_t told_size)
{
    struct client *client = &world->clients[c];
    quorum_mask before = members_of(scenario, client->version);
    quorum_mask after = members_of(scenario, version);
    quorum_mask joined = after & (quorum_mask)~before;
    struct quorum_event event = {
        .type = QUORUM_EV_CHANGE,
        .joined = numbers_of(scenario, joined),
        .left = leave(scenario, world, c, before & (quorum_mask)~after),
    };
    size_t len = told != NULL ? strlen(told) : 0;

    client->version = (uint8_t)version;
    if (told != NULL)
        len += (size_t)snprintf(told + len, told_size - len, "%s(%c knows version %u)\n%11s",
                                len > 0 ? "\n           " : "", 'A' + (int)c, version + 1, "");
    if (client->q.round != 0)
        client->fresh |= (uint8_t)joined;
    for (unsigned m = 0; m < world->masters; m++)
        if (client->q.adopted && (joined & mask_of(m)) && world->keys[m].owner == c + 1 &&
            world->keys[m].round == client->q.round)
            world->keys[m].excused = false; /* It knows of the master now. */
    return model_step(scenario, world, c, &event, told != NULL ? told + len : NULL,
                      told_size - len);
}

/* A client takes over the newest version that it knows of.  If numbers are used again, it takes
 * over each version between, so that a number is free before another master gets it. */
const char *change_take_over(const struct scenario *scenario, struct world *world, unsigned c,
                             unsigned version, char *told, size_t told_size)
{
    const char *wrong = NULL;
    unsigned v = scenario->renumbered ? world->clients[c].version + 1u : version;

    for (; v <= version && wrong == NULL; v++)
        wrong = take_over(scenario, world, c, v, told, told_size);
    return wrong;
}

/* The rounds of the new process begin with 1, that of its token.  0: a dead round.  It cannot
 * release what it does not know of. */
static void renumber(const struct scenario *scenario, struct world *world, unsigned c,
                     unsigned live, unsigned version)
{
    for (unsigned m = 0; m < world->masters; m++) {
        struct link *link = &world->links[c][m];
        struct key *key = &world->keys[m];

        if (link->ghosts_len == 0)
            model_end_link(link);
        memset(link->items, 0, sizeof link->items);
        link->items_len = link->obeyed = link->cut = 0;
        for (unsigned i = 0; i < link->ghosts_len; i++) {
            link->ghosts[i].round = link->ghosts[i].round == live;
            link->ghosts[i].ask = 0;
        }
        if (key->owner != c + 1)
            continue;
        key->excused |= key->round != live || !(members_of(scenario, version) & mask_of(m));
        key->round = key->round == live;
    }
}

/* A holder ends, and another process adopts its token. */
static const char *adopt(const struct scenario *scenario, struct world *world, unsigned c,
                         unsigned version, char *told, size_t told_size)
{
    struct client *client = &world->clients[c];
    struct quorum_event event = {.type = QUORUM_EV_ADOPT};
    struct quorum_config config = client->q.config;
    struct members lists = change_lists(scenario, version);
    const char *wrong;

    world->left[RARE_ADOPT]--;
    renumber(scenario, world, c, client->q.round, version);
    memset(client, 0, sizeof *client);
    quorum_init(&client->q, &config);
    client->wake_at = DRIFT_NEVER;
    client->begun = true;
    client->version = (uint8_t)version;
    client->adopted = ADOPTED;
    wrong = model_step(scenario, world, c, &event, told, told_size);
    client->fresh = (uint8_t)(lists.to & ~lists.from);
    return wrong;
}

/* ---- Moves ---- */

static void read_counter(struct world *world, unsigned m)
{
    struct operator* o = & world->operator;

    o->read |= (uint8_t)mask_of(m);
    if (world->counters[m] > o->greatest)
        o->greatest = world->counters[m];
}

static void raise_counter(struct world *world, unsigned m)
{
    world->operator.raised |=(uint8_t) mask_of(m);
    if (world->operator.greatest> world->counters[m])
        world->counters[m] = world->operator.greatest;
}

static const char *do_operator(const struct scenario *scenario, struct world *world,
                               struct move move, char *told, size_t told_size)
{
    unsigned m = move.master;

    if (move.kind == MOVE_WRITE)
        world->versions[m] = move.client;
    else if (move.kind == MOVE_READ)
        read_counter(world, m);
    else
        raise_counter(world, m);
    choose(scenario, world);
    if (told != NULL && move.kind == MOVE_WRITE)
        (void)snprintf(told, told_size, "   (m%u gets version %u)", m + 1, move.client + 1);
    else if (told != NULL)
        (void)snprintf(told, told_size, "   (the operator %s the counter of m%u: %u)",
                       move.kind == MOVE_READ ? "reads" : "raises", m + 1, world->counters[m]);
    return NULL;
}

const char *change_do(const struct scenario *scenario, struct world *world, struct move move,
                      char *told, size_t told_size)
{
    if (move.kind == MOVE_LOOK)
        world->left[RARE_LOOK]--;
    if (move.kind == MOVE_LOOK)
        return change_take_over(scenario, world, move.client, move.master, told, told_size);
    if (move.kind == MOVE_ADOPT)
        return adopt(scenario, world, move.client, move.master, told, told_size);
    return do_operator(scenario, world, move, told, told_size);
}
