/*
 * queries.c - writes queries of markers with what the client knows of the set.
 */
#include "redlock/masters/queries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "redlock/masters/peers.h"
#include "redlock/masters/set.h"
#include "redlock/wire/answer.h"

void queries_done(struct queries *queries)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        free(queries->accepted[m]);
}

/* ---- Markers ---- */

/* A random number of 64 bits, never 0.  Two draws make a repetition practically impossible. */
static void write_random(struct env *env, char digits[WIRE_NUMBER + 1])
{
    uint64_t number = (uint64_t)env_random(env) << 32 | env_random(env);

    (void)snprintf(digits, WIRE_NUMBER + 1, "%016" PRIx64, number == 0 ? 1 : number);
}

/* Tell the newest configuration to a member that said that it is in no set or has a smaller
 * version, and to a master that gets an epoch.  config is room for the text. */
static void give_set(const struct queries *queries, unsigned master, struct wire_look *look,
                     char config[CONFIG_TEXT_MAX + 1])
{
    struct set *set = queries->set;
    const struct config *now = &set->seats.now;
    quorum_mask denied = seats_denied(&set->seats), bit = mask_of(master);
    quorum_mask members = members_all(&set->seats.members) & (quorum_mask)~denied;
    bool installs = look->nonce[0] != '\0';

    set->gave = mask_without(set->gave, master);
    if (!set_is_known(set) || (queries->guard->passive && !installs))
        return;
    look->set = now->set;
    look->version = now->version;
    if (!installs && !(set_uninformed(set) & bit))
        return;
    (void)config_print(now, config);
    look->config = config;
    look->name = members & bit ? set_name(set, master) : NULL;
    set->gave |= bit;
}

static void send(struct queries *queries, unsigned master, const char *nonce, uint64_t floor,
                 const struct recall *recall)
{
    struct peers *peers = queries->peers;
    const struct guard *guard = queries->guard;
    const struct master_info *info = link_info(peers->links[master]);
    const struct ask ask = {.what = WHAT_LOOK, .flags = ASK_LOOK};
    char random[WIRE_NUMBER + 1], config[CONFIG_TEXT_MAX + 1];
    struct wire_look look = {
        .id = info->run_id, /* Not the replid, which changes when the first replica connects. */
        .keeps = handshake_keeps(info),
        .is_known = guard->seen_epoch && !guard->passive,
        /* A passive client takes no lease, so it has none to announce (guard.c, rule 3). */
        .max_ttl_ms = guard->passive ? 0 : peers->max_ttl_ms,
        .random = random,
        .nonce = nonce,
        .floor = floor,
        .ballot = recall->ballot,
        .accepted = recall->accepted != 0 ? queries->accepted[recall->accepted_by] : NULL,
    };

    write_random(peers->env, random);
    give_set(queries, master, &look, config);
    link_send(peers->links[master], &ask, peers->scratch, wire_look(peers->scratch, &look));
}

void queries_look(struct queries *queries, unsigned master)
{
    send(queries, master, "", 0, &(struct recall){.ballot = 0});
}

void queries_install(struct queries *queries, unsigned master, uint64_t floor,
                     const struct recall *recall)
{
    char nonce[WIRE_NUMBER + 1];

    (void)snprintf(nonce, sizeof nonce, "%016" PRIx64, queries->guard->masters[master].look.number);
    send(queries, master, nonce, floor, recall);
}

enum why queries_check(struct queries *queries, unsigned master, const struct answer_set *set)
{
    char **text = &queries->accepted[master];
    struct config config = {.version = set->version + 1};

    if (set->accepted == NULL)
        return WHY_NONE;
    if (*text == NULL)
        *text = calloc(1, WIRE_ACCEPTED_MAX + 1);
    if (*text == NULL)
        return WHY_NO_MEMORY;
    return config_parse(set->accepted + WIRE_NUMBER + 1, set->accepted_len - WIRE_NUMBER - 1,
                        &config)
               ? WHY_NONE
               : WHY_GARBAGE;
}

void queries_on_look(struct queries *queries, unsigned master, const struct answer_set *set)
{
    char *text = queries->accepted[master];

    if (text != NULL)
        (void)snprintf(text, WIRE_ACCEPTED_MAX + 1, "%.*s", (int)set->accepted_len,
                       set->accepted != NULL ? set->accepted : "");
}

/* ---- Witnesses ---- */

/* The ask carries a struct guard_ask. */
void queries_witness(struct queries *queries, unsigned master, unsigned warming, bool anew)
{
    struct peers *peers = queries->peers;
    const struct guard *guard = queries->guard;
    uint64_t nonce = guard->masters[warming].look.number;
    const struct ask ask = {
        .slot = (uint32_t)nonce,
        .serial = (uint32_t)(nonce >> 32),
        .number = (uint32_t)guard->masters[master].steps << 16 | warming,
        .what = WHAT_WITNESS,
        .flags = ASK_LIFE,
    };
    bool only_reads = guard->passive && !(guard->guests & mask_of(warming));
    enum wire_witness mode = only_reads ? WIRE_WITNESS_READ
                             : anew     ? WIRE_WITNESS_ANEW
                                        : WIRE_WITNESS_KEEP;

    link_send(peers->links[master], &ask, peers->scratch,
              wire_witness(peers->scratch, mode, set_name(queries->set, warming), nonce,
                           link_info(peers->links[warming])->run_id));
}

struct guard_ask queries_asked(const struct ask *ask)
{
    return (struct guard_ask){
        .master = ask->number & 0xffff,
        .nonce = (uint64_t)ask->serial << 32 | ask->slot,
        .steps = (uint16_t)(ask->number >> 16),
    };
}
