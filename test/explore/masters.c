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
static bool is_late(const struct scenario *scenario, const struct key *key, unsigned sent,
                    unsigned lease)
{
    unsigned waits = scenario->stands ? lease : 0; /* Before it is granted. */

    return key->until > sent + waits + lease + scenario->allowance;
}

static uint8_t expiry(const struct scenario *scenario, const struct world *world, unsigned lease)
{
    /* The master may have obeyed as early as at the end of the tick before. */
    unsigned until = world->tick - 1 + lease;

    return (uint8_t)(scenario->slow ? until + scenario->allowance : until - scenario->allowance);
}

bool masters_have(const struct key *key, unsigned c, const struct item *item)
{
    return key->owner == c + 1 && key->round == item->round;
}

static void obey_extend(const struct scenario *scenario, struct world *world, unsigned c,
                        unsigned m, struct item *item);

static void put_token(const struct scenario *scenario, struct world *world, unsigned c, unsigned m,
                      const struct item *item)
{
    world->waiting[c][m] = (struct waiting){
        .round = item->round,
        .lease = item->lease,
        .sent = item->round_sent,
        .until = expiry(scenario, world, item->lease),
    };
}

static void obey_set(const struct scenario *scenario, struct world *world, unsigned c, unsigned m,
                     struct item *item)
{
    struct key *key = &world->keys[m];

    if (scenario->stands && item->command == QUORUM_CMD_SET) {
        put_token(scenario, world, c, m, item);
        if (masters_have(key, c, item)) { /* It was passed on. */
            obey_extend(scenario, world, c, m, item);
            return;
        }
    }
    if (key->owner != 0) {
        item->vote = QUORUM_VOTE_NO;
        return;
    }
    item->vote = QUORUM_VOTE_YES;
    key->owner = (uint8_t)(c + 1);
    key->round = item->round;
    key->until = expiry(scenario, world, item->lease);
    key->late = is_late(scenario, key, item->sent, item->lease);
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
    uint8_t until = expiry(scenario, world, item->lease);

    item->vote = masters_have(key, c, item) && !key->partial ? QUORUM_VOTE_YES : QUORUM_VOTE_NO;
    if (item->vote == QUORUM_VOTE_NO)
        memset(&world->waiting[c][m], 0, sizeof world->waiting[c][m]);
    if (item->vote == QUORUM_VOTE_NO || key->until >= until)
        return; /* An extension never shortens. */
    key->until = until;
    key->late = is_late(scenario, key, item->sent, item->lease);
}

/* The key goes to the token that waits, with a lease of its own. */
static void pass_on(const struct scenario *scenario, struct world *world, unsigned c, unsigned m)
{
    const struct waiting *next = &world->waiting[c][m];
    const struct link *link = &world->links[c][m];
    struct key *key = &world->keys[m];

    if (next->round == 0)
        return;
    key->owner = (uint8_t)(c + 1);
    key->round = next->round;
    key->until = expiry(scenario, world, next->lease);
    key->late = is_late(scenario, key, next->sent, next->lease);
    key->excused = next->excused;
    world->notices[c][m] = (struct notice){.round = next->round, .sent = next->sent};
    if (!link->up)
        masters_excuse(world, c, m);
}

static void drop_token(struct world *world, unsigned c, unsigned m, struct item *item)
{
    struct waiting *waiting = &world->waiting[c][m];

    if (item->how != HOW_BACK || waiting->round == item->round)
        memset(waiting, 0, sizeof *waiting);
}

void masters_excuse(struct world *world, unsigned c, unsigned m)
{
    bool is_settled = quorum_is_settled(&world->clients[c].q);
    struct key *key = &world->keys[m];

    if (key->owner == c + 1 && (key->late || is_settled))
        key->excused = true;
    if (world->waiting[c][m].round != 0 && is_settled)
        world->waiting[c][m].excused = true;
}

quorum_mask masters_tick(struct world *world)
{
    quorum_mask expired = 0;

    for (unsigned m = 0; m < world->masters; m++) {
        for (unsigned c = 0; c < CLIENTS; c++)
            if (world->tick >= world->waiting[c][m].until)
                memset(&world->waiting[c][m], 0, sizeof world->waiting[c][m]);
        if (world->keys[m].owner == 0 || world->tick < world->keys[m].until)
            continue;
        masters_free(&world->keys[m]);
        expired |= (quorum_mask)(1u << m);
    }
    return expired;
}

static const char *obey_release(const struct scenario *scenario, struct world *world, unsigned c,
                                unsigned m, struct item *item)
{
    const struct quorum *q = &world->clients[c].q;
    /* Rule 10 of quorum.c releases the token of a hold on masters that it does not count on. */
    bool counts = (q->live & mask_of(change_number(scenario, m))) != 0;
    struct key *key = &world->keys[m];
    const char *wrong = NULL;

    if (scenario->stands)
        drop_token(world, c, m, item);
    if (!masters_have(key, c, item)) {
        item->vote = QUORUM_VOTE_NO;
        return NULL;
    }
    item->vote = key->partial ? QUORUM_VOTE_NO : QUORUM_VOTE_YES;
    if (key->owner != c + 1)
        wrong = "a release removed another's token";
    else if (rules_believes(world, c) && q->round == key->round && counts)
        wrong = "a release removed the token of a lock that is held";
    masters_free(key);
    if (item->how == HOW_PASS)
        pass_on(scenario, world, 1 - c, m);
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
        return obey_release(scenario, world, c, m, item);
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
