/*
 * hash.c - worlds that will behave alike have the same hash.
 *
 * The hash leaves out the past (alike.h), counts asks and rounds backwards from the
 * latest, and does not depend on the order of the masters.
 */
#include "explore/model.h"

#include <stdlib.h>
#include <string.h>

#include "test/lib/alike.h"

/* An odd number with well mixed bits.  SALT is where all hashes start.  If another SALT
 * gives the same number of worlds, no two worlds share a hash by accident. */
#define FACTOR UINT64_C(0x9fb21c651e98df25)
#ifndef SALT
#define SALT 1
#endif

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * FACTOR;
    return hash ^ hash >> 29;
}

/* A new field of the machine that belongs to a master is mixed in mix_link(), any other
 * in mix_client().  If some states do not use it, alike_forget() must clear it. */
#ifdef __LP64__
_Static_assert(sizeof(struct quorum) == 296, "see above");
#endif

/* Numbers are only compared with each other, so their distance is enough. */
static uint64_t since(const struct quorum *q, uint32_t number)
{
    return number != 0 ? q->ask - number + 1 : 0;
}

/* Half a word is enough for each instant of this world, and for DRIFT_NEVER. */
static uint64_t instants(drift_time a, drift_time b)
{
    return (uint32_t)a | b << 32;
}

static uint64_t mix_client(uint64_t hash, const struct client *client, drift_time now)
{
    const struct quorum *q = &client->q;
    drift_time wake_at = client->wake_at > now ? client->wake_at : now;

    hash = mix(hash, (uint64_t)q->state | (uint64_t)q->wanted << 4 |
                         (uint64_t)q->asked_extend << 8 | (uint64_t)q->told << 9 |
                         (uint64_t)client->begun << 10 | (uint64_t)client->busy << 11 |
                         (uint64_t)client->told << 12 | (uint64_t)client->held << 13 |
                         (uint64_t)client->over << 14 | (uint64_t)client->won << 15 |
                         since(q, q->round) << 16 | since(q, client->given_back) << 32);
    hash = mix(hash, instants(q->sent, q->timeout));
    hash = mix(hash, instants(q->deadline, quorum_give_up(q)));
    hash = mix(hash, instants(q->settle_by, q->lease));
    hash = mix(hash, instants(q->lost_at, q->config.lease));
    hash = mix(hash, client->fence.counter | (uint64_t)client->fence_after << 32 |
                         (uint64_t)client->fence.raises << 40);
    hash = mix(hash, wake_at);
    return mix(hash, client->version | (uint64_t)(client->held ? client->confirmed : 0) << 8 |
                         (uint64_t)client->adopted << 16 | (uint64_t)q->adopted << 24 |
                         (uint64_t)q->late << 25);
}

/* An answer with a version that the client knows is like any other. */
static uint64_t version_of(const struct client *client, const struct item *item)
{
    bool matters = item->command == QUORUM_CMD_RAISE || item->version > client->version;

    return matters ? item->version : 0;
}

static uint64_t mix_items(uint64_t hash, const struct client *client, const struct item *items,
                          size_t items_len)
{
    const struct quorum *q = &client->q;

    for (size_t i = 0; i < items_len; i++)
        hash =
            mix(hash, items[i].command | (uint64_t)items[i].vote << 8 |
                          version_of(client, &items[i]) << 10 |
                          (uint64_t)items[i].is_unproven << 13 | (uint64_t)items[i].is_half << 15 |
                          (uint64_t)items[i].lease << 16 | (uint64_t)items[i].sent << 24 |
                          since(q, items[i].round) << 32 | since(q, items[i].ask) << 48 |
                          (uint64_t)(items[i].counter | items[i].how) << 56) +
            items[i].round_sent;
    return hash;
}

static uint64_t bit(unsigned mask, unsigned m, unsigned at)
{
    return (uint64_t)(mask >> m & 1) << at;
}

/* All that one client and one master have between them. */
static uint64_t mix_link(uint64_t hash, const struct client *client, const struct world *world,
                         unsigned c, unsigned m, unsigned n)
{
    const struct quorum *q = &client->q;
    const struct link *link = &world->links[c][m];
    const struct waiting *waiting = &world->waiting[c][m];
    const struct notice *notice = &world->notices[c][m];

    if (n < QUORUM_MASTERS_MAX)
        hash = mix(hash, since(q, q->round_of[n]) | since(q, q->ask_of[n]) << 16 |
                             bit(q->asked, n, 32) | bit(q->yes, n, 33) | bit(q->none, n, 34) |
                             bit(q->may_hold, n, 35) | bit(q->live, n, 36) | bit(q->owing, n, 37) |
                             bit(q->releasing, n, 38) | bit(q->fresh, n, 39) |
                             bit(client->fence.stale, n, 40) | bit(q->barred, n, 41) |
                             bit(q->deciding, n, 42) | bit(q->relied, n, 43) |
                             (uint64_t)client->fence.behind[n] << 56);
    hash =
        mix(hash, bit(client->gone, m, 39) | bit(client->robbed, m, 40) | (uint64_t)link->up << 41 |
                      (uint64_t)link->cut << 42 | (uint64_t)link->obeyed << 44 |
                      (uint64_t)link->items_len << 48 | (uint64_t)link->ghosts_len << 52 |
                      bit(client->fresh, m, 56) | (uint64_t)link->mute << 57);
    hash = mix(hash, since(q, waiting->round) | (uint64_t)waiting->lease << 16 |
                         (uint64_t)waiting->sent << 24 | (uint64_t)waiting->until << 32 |
                         (uint64_t)waiting->excused << 40);
    hash = mix(hash, since(q, notice->round) | (uint64_t)notice->sent << 16);
    hash = mix_items(hash, client, link->items, link->items_len);
    return mix_items(hash, client, link->ghosts, link->ghosts_len);
}

/* What tells a master from others while the set changes. */
static uint64_t role(const struct scenario *scenario, const struct world *world, unsigned m)
{
    uint64_t role = world->versions[m] | (uint64_t)world->watched[m] << 8 |
                    bit(world->operator.seen, m, 16) | bit(world->operator.read, m, 17) |
                    bit(world->operator.raised, m, 18);

    for (unsigned v = 0; v < scenario->versions_len; v++)
        role |= bit(scenario->versions[v].from, m, 20 + 2 * v) |
                bit(scenario->versions[v].to, m, 21 + 2 * v);
    return role;
}

static uint64_t mix_master(const struct scenario *scenario, const struct client *clients,
                           const struct world *world, unsigned m)
{
    const struct key *key = &world->keys[m];
    uint64_t round = key->owner != 0 ? since(&clients[key->owner - 1].q, key->round) : 0;
    bool in_turn = m == world->turn && world->moved;
    uint64_t hash = mix(SALT, key->owner | (uint64_t)key->until << 8 | (uint64_t)key->late << 16 |
                                  (uint64_t)key->excused << 17 | bit(world->hanging, m, 18) |
                                  (uint64_t)(m < world->turn) << 19 | (uint64_t)in_turn << 20 |
                                  (uint64_t)key->partial << 21 |
                                  (uint64_t)world->counters[m] << 24 | round << 32);

    hash = mix(hash, role(scenario, world, m));
    for (unsigned c = 0; c < CLIENTS; c++) {
        bool is_known = change_is_known(scenario, world, c, m);

        hash = mix_link(hash, &clients[c], world, c, m,
                        is_known ? change_number(scenario, m) : QUORUM_MASTERS_MAX);
    }
    return hash;
}

/* Make machines equal that will behave alike.  A settled machine does nothing any more. */
static void forget(struct client *client, drift_time now)
{
    uint32_t ask = client->q.ask;
    uint8_t version = client->version;

    alike_forget(&client->q, now);
    alike_forget_fence(&client->q, &client->fence);
    if (client->q.state != QUORUM_ACQUIRING && client->q.state != QUORUM_RAISING)
        client->fence_after = 0; /* The next round sets it anew. */
    if (!client->begun || !quorum_is_settled(&client->q))
        return;
    memset(client, 0, sizeof *client);
    client->begun = true;
    client->version = version;
    client->q.ask = ask; /* since() counts from it. */
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

uint64_t model_hash(const struct scenario *scenario, const struct world *world)
{
    drift_time now = model_now(world);
    struct client clients[CLIENTS];
    uint64_t masters[MASTERS], left[2] = {0}, hash = SALT;

    _Static_assert(sizeof world->left <= sizeof left, "two words");
    memcpy(clients, world->clients, sizeof clients);
    for (unsigned c = 0; c < CLIENTS; c++) {
        forget(&clients[c], now);
        hash = mix_client(hash, &clients[c], now);
    }
    for (unsigned m = 0; m < world->masters; m++)
        masters[m] = mix_master(scenario, clients, world, m);
    qsort(masters, world->masters, sizeof masters[0], compare);
    for (unsigned m = 0; m < world->masters; m++)
        hash = mix(hash, masters[m]);
    memcpy(left, world->left, sizeof world->left);
    hash = mix(mix(hash, left[0]), left[1]);
    hash = mix(hash, world->operator.chosen | world->operator.since << 8 |(uint64_t) world->
                     operator.greatest << 16);
    hash = mix(hash, world->drawn);
    hash = mix(hash, world->tick | (uint64_t)world->turn << 8 |
                         (uint64_t)(world->hanging >> world->masters) << 16 |
                         (uint64_t)world->moved << 24);
    return hash != 0 ? hash : 1;
}

uint64_t model_hash_all(const struct world *world)
{
    const unsigned char *bytes = (const unsigned char *)world;
    uint64_t word, hash = SALT;

    for (size_t i = 0; i < sizeof *world; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        hash = mix(hash, word);
    }
    return hash != 0 ? hash : 1;
}
