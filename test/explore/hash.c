/*
 * hash.c - worlds that differ in names and in the past alone have one hash.
 */
#include "explore/model.h"

#include <stdlib.h>
#include <string.h>

#include "alike.h"

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25); /* Odd, and its bits are well mixed. */
    return hash ^ hash >> 29;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t word = 0;

    for (; len >= sizeof word; p += sizeof word, len -= sizeof word) {
        memcpy(&word, p, sizeof word);
        hash = mix_word(hash, word);
    }
    word = 0;
    memcpy(&word, p, len);
    return len > 0 ? mix_word(hash, word) : hash;
}

/* A new field of the machine: does it belong to one master each?  Then it has to
 * be among those that follow their master when the masters are numbered anew
 * (take_master).  Is it an instant?  Then alike_forget() may know it. */
_Static_assert(sizeof(struct quorum) == 296, "see above");

/* Of machines that do alike, make one; one that has settled does nothing any more. */
static uint64_t forget(struct client *client, drift_time now, uint64_t hash)
{
    alike_forget(&client->q, now);
    if (client->begun && quorum_is_settled(&client->q))
        memset(&client->q, 0, sizeof client->q);
    return mix_word(hash, client->wake_at > now ? client->wake_at : now);
}

static unsigned take_bit(quorum_mask *mask, unsigned m)
{
    unsigned bit = *mask >> m & 1;

    *mask &= (quorum_mask) ~(1u << m);
    return bit;
}

/* All that is about this master, taken out of q. */
static uint64_t take_master(struct quorum *q, unsigned m, uint64_t hash)
{
    uint32_t words[3] = {q->round_of[m], q->ask_of[m], 0};

    words[2] = take_bit(&q->asked, m) | take_bit(&q->yes, m) << 1 | take_bit(&q->none, m) << 2 |
               take_bit(&q->may_hold, m) << 3 | take_bit(&q->live, m) << 4 |
               take_bit(&q->owing, m) << 5 | take_bit(&q->releasing, m) << 6;
    q->round_of[m] = q->ask_of[m] = 0;
    return mix(hash, words, sizeof words);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

#define CONFIG_END (offsetof(struct client, q.config) + sizeof(struct quorum_config))

uint64_t model_hash(const struct world *world)
{
    drift_time now = START + world->tick * TICK;
    struct client clients[CLIENTS];
    uint64_t masters[MASTERS], hash = 1;
    uint8_t rest[] = {world->tick,
                      world->hangs,
                      world->dawdles,
                      world->breaks,
                      world->forgets,
                      world->turn,
                      world->hanging >> MASTERS,
                      world->moved};

    memcpy(clients, world->clients, sizeof clients);
    for (unsigned c = 0; c < CLIENTS; c++)
        hash = forget(&clients[c], now, hash);
    for (unsigned m = 0; m < MASTERS; m++) {
        masters[m] = mix(1, &world->keys[m], sizeof world->keys[m]);
        for (unsigned c = 0; c < CLIENTS; c++) {
            unsigned gone = clients[c].gone >> m & 1;

            gone |= (unsigned)(m < world->turn) << 1; /* Had its turn. */
            gone |= (world->hanging >> m & 1u) << 2;
            masters[m] = mix(masters[m], &world->links[c][m], sizeof world->links[c][m]);
            masters[m] = take_master(&clients[c].q, m, masters[m] + gone);
        }
    }
    for (unsigned c = 0; c < CLIENTS; c++)
        clients[c].gone = 0;
    qsort(masters, MASTERS, sizeof masters[0], compare);
    hash = mix(hash, masters, sizeof masters);
    for (unsigned c = 0; c < CLIENTS; c++) /* Settings are the same for all. */
        hash = mix(hash, (const char *)&clients[c] + CONFIG_END, sizeof clients[c] - CONFIG_END);
    hash = mix(hash, rest, sizeof rest);
    return hash != 0 ? hash : 1;
}
