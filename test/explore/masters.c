/*
 * masters.c - what masters do with a command.
 */
#include "explore/model.h"

#include <string.h>

void masters_free(struct key *key)
{
    memset(key, 0, sizeof *key);
}

/* True if the key outlives settle_by of its owner: a lease and an allowance after the request. */
static bool is_late(const struct scenario *scenario, const struct key *key, const struct item *item)
{
    return key->until > item->sent + item->lease + scenario->allowance;
}

static uint8_t expiry(const struct scenario *scenario, const struct world *world,
                      const struct item *item)
{
    /* The master may have obeyed as early as at the end of the tick before. */
    unsigned until = world->tick - 1 + item->lease;

    return (uint8_t)(scenario->slow ? until + scenario->allowance : until - scenario->allowance);
}

bool masters_have(const struct key *key, unsigned c, const struct item *item)
{
    return key->owner == c + 1 && key->round == item->round;
}

static void obey_set(const struct scenario *scenario, struct world *world, unsigned c, unsigned m,
                     struct item *item)
{
    struct key *key = &world->keys[m];

    if (key->owner != 0) {
        item->vote = QUORUM_VOTE_NO;
        return;
    }
    item->vote = QUORUM_VOTE_YES;
    key->owner = (uint8_t)(c + 1);
    key->round = item->round;
    key->until = expiry(scenario, world, item);
    key->late = is_late(scenario, key, item);
    key->excused = false;
}

/* The first call grants, and the second call counts.  A no is counted in the first call. */
static void obey_fence(const struct scenario *scenario, struct world *world, unsigned c, unsigned m,
                       struct item *item)
{
    bool yes;

    if (!item->is_half)
        obey_set(scenario, world, c, m, item);
    yes = item->vote == QUORUM_VOTE_YES;
    item->is_half = yes && !item->is_half;
    if (!item->is_half)
        world->counters[m]++;
    if (!item->is_half && yes)
        item->counter = world->counters[m];
}

static void obey_raise(struct world *world, unsigned c, unsigned m, struct item *item)
{
    uint8_t *counter = &world->counters[m];

    if (world->versions[m] > item->version || world->watched[m] != 0) {
        item->vote = QUORUM_VOTE_NONE; /* The script compares epoch and version. */
        item->counter = 0;
        return;
    }
    if (!masters_have(&world->keys[m], c, item)) {
        item->vote = QUORUM_VOTE_NO;
        item->counter = 0;
        return;
    }
    item->vote = QUORUM_VOTE_YES;
    *counter = item->counter > *counter ? item->counter : (uint8_t)(*counter + 1);
    item->counter = *counter;
}

static void obey_extend(const struct scenario *scenario, struct world *world, unsigned c,
                        unsigned m, struct item *item)
{
    struct key *key = &world->keys[m];
    uint8_t until = expiry(scenario, world, item);

    item->vote = masters_have(key, c, item) ? QUORUM_VOTE_YES : QUORUM_VOTE_NO;
    if (item->vote == QUORUM_VOTE_NO || key->until >= until)
        return; /* An extension never shortens. */
    key->until = until;
    key->late = is_late(scenario, key, item);
}

static const char *obey_release(struct world *world, unsigned c, unsigned m, struct item *item)
{
    struct key *key = &world->keys[m];
    const char *wrong = NULL;

    if (!masters_have(key, c, item)) {
        item->vote = QUORUM_VOTE_NO;
        return NULL;
    }
    item->vote = QUORUM_VOTE_YES;
    if (key->owner != c + 1)
        wrong = "a release removed another's token";
    else if (rules_believes(world, c) && world->clients[c].q.round == key->round)
        wrong = "a release removed the token of a lock that is held";
    masters_free(key);
    return wrong;
}

static const char *obey(const struct scenario *scenario, struct world *world, unsigned c,
                        unsigned m, struct item *item)
{
    switch ((enum quorum_command)item->command) {
    case QUORUM_CMD_SET:
    case QUORUM_CMD_GIVE:
        obey_set(scenario, world, c, m, item);
        break;
    case QUORUM_CMD_EXTEND:
        obey_extend(scenario, world, c, m, item);
        break;
    case QUORUM_CMD_RELEASE:
        return obey_release(world, c, m, item);
    case QUORUM_CMD_FENCE:
        obey_fence(scenario, world, c, m, item);
        break;
    case QUORUM_CMD_RAISE:
        obey_raise(world, c, m, item);
        break;
    }
    return NULL;
}

/* The proof is read behind the command. */
const char *masters_obey(const struct scenario *scenario, struct world *world, unsigned c,
                         unsigned m, struct item *item)
{
    const char *wrong = obey(scenario, world, c, m, item);

    if (item->command == QUORUM_CMD_RELEASE || item->is_half)
        return wrong;
    item->version = world->versions[m];
    item->is_unproven = world->watched[m] != 0;
    return wrong;
}
