/*
 * partners.c - clients that use the token of a lock which another client has.
 *
 * A script may extend or release the lock of `redlock run` by its token, which is in the
 * environment.  So a client gets the token of any lock that was held of late, whether its holder
 * still has it, lost it, or ended: this is drawn.  It extends the lock, and leaves it to the
 * others, or releases it.
 *
 * What must always be true:
 *
 *  - Clients with one token hold the lock together, and no client with another token holds it
 *    meanwhile: all properties of oracle.c count for each of them.
 *  - A holder loses nothing because a partner finds the lock lost, lets its time run out, is
 *    detached, or dies.  Only a release that the partner's program asked for ends the lock.
 *  - A partner has no promise from when the client that drew the token releases it.  That client
 *    may end, or its time may be over, and it does not know of the partner.
 */
#include "oracle.h"
#include "world.h"

#include "redlock/client/client.h"

#define KNOWN_MAX 8 /* Chosen: half of them are not held any more. */

static struct known {
    int token;
    unsigned set;
    bool is_shared;
} known[KNOWN_MAX];
static unsigned known_len, next;

void partners_reset(void)
{
    known_len = next = 0;
}

void partners_on_held(const struct lease_rec *rec)
{
    for (unsigned i = 0; i < known_len; i++)
        if (known[i].token == rec->token)
            return;
    known[next] = (struct known){rec->token, rec->set, rec->is_shared};
    next = (next + 1) % KNOWN_MAX;
    known_len += known_len < KNOWN_MAX;
}

bool partners_adopt(struct ev_loop *process)
{
    const struct known *one;
    struct lease_rec *rec;

    if (known_len == 0)
        return false;
    one = &known[dice_chance(600) ? (next + KNOWN_MAX - 1) % KNOWN_MAX : dice_below(known_len)];
    world_fault(FAULT_PARTNER);
    rec = calls_adopt(process, one->set, one->is_shared, oracle_token_of(one->token)->text, false);
    if (rec == NULL)
        return true;
    rec->is_partner = true;
    if (dice_chance(800))
        calls_extend(rec, world.plan.ttls_ms[dice_below(SIM_TTLS_MAX)]);
    return true;
}

static const struct lease_rec *find(const struct ev_loop *process, uint32_t serial)
{
    for (unsigned place = 0; place < world.plan.leases; place++) {
        const struct lease_rec *rec = process->recs[place];

        if (rec != NULL && (uint32_t)rec->lease->serial == serial)
            return rec;
    }
    return NULL;
}

/* A client that adopted the token, and still has the lease, was not asked to release it. */
void partners_on_release(const struct ev_loop *process, uint32_t serial, int number)
{
    struct token *token = oracle_token_of(number);

    if (token->process == process->number && token->client == process->client &&
        token->serial == serial)
        token->is_left = true;
    else if (find(process, serial) == NULL)
        token->is_dropped = true;
}

bool partners_are_done(const struct lease_rec *rec)
{
    const struct token *token = rec->token >= 0 ? oracle_token_of(rec->token) : NULL;

    return rec->is_stale ||
           (token != NULL && (token->is_dropped || (token->is_left && rec->lease->q.adopted)));
}
