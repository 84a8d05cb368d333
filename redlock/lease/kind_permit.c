/*
 * kind_permit.c - one of K permits of a semaphore.
 *
 * A permit is a lock on one of K names, its slots: "redlock:permit:NAME:0" to K-1.  core/permit.h
 * says why a counter on each master would be wrong, and which slot a round asks for.
 *
 * Rules
 * - The client chooses the slot at random.  A master that refuses returns the next slot that is
 *   free there, from 1, or 0: none is free.  The next round asks for the slot that most masters
 *   returned.
 * - A client that finds all slots taken waits for the semaphore: every release of a slot notifies.
 * - The first two digits of a token are its slot, so that a client which adopts it knows the slot.
 * - A lost round is released on each master in the slot that it asked for there.
 * - A fencing token grows for its slot: the counter is that of the slot's key.
 * - K is not stored.  Clients with different K exclude one another in the slots that both know.
 */
#include "redlock/core/permit.h"

#include "redlock/lease/kind.h"
#include "redlock/lease/state.h"

static size_t write(char *buf, enum script_id script, bool in_full, const struct wire_args *args)
{
    return script == SCRIPT_ACQUIRE_PERMIT ? wire_permit(buf, in_full, args)
                                           : wire_script(buf, script, in_full, args);
}

static struct vote read_vote(enum quorum_command command, const struct reply *reply)
{
    bool asks = command == QUORUM_CMD_SET || command == QUORUM_CMD_FENCE;

    if (asks && reply->type == REPLY_INTEGER && reply->integer >= 0 &&
        reply->integer <= REDLOCK_PERMITS_MAX)
        return (struct vote){
            .vote = QUORUM_VOTE_NO, .hints = true, .hint = (uint16_t)reply->integer};
    return vote_read(command, reply);
}

static void init(struct redlock_lease *lease, const struct redlock_lock_options *opts,
                 const char *token)
{
    struct permit *permit = lease_extra(lease);

    permit->slots = (uint16_t)opts->permits;
    if (token != NULL)
        (void)permit_adopt(permit, token); /* kind_check() has checked the token. */
}

static void fill(const struct redlock_lease *lease, unsigned master, char key[WIRE_KEY_MAX],
                 struct wire_args *args)
{
    const struct permit *permit = lease_extra(lease);

    args->slot = permit->slot_of[master];
    args->slots = permit->slots;
    args->name_len = wire_permit_key(key, lease->name, lease->name_len, args->slot);
    args->name = key;
}

static void stamp(const struct redlock_lease *lease, unsigned master, char *token)
{
    const struct permit *permit = lease_extra(lease);

    permit_stamp(token, permit->slot_of[master]);
}

static void on_ask(struct redlock_lease *lease, const struct quorum_send *send)
{
    permit_ask(lease_extra(lease), send->ask, send->to, env_random(lease->leases->env));
}

static void on_give(struct redlock_lease *lease, quorum_mask masters)
{
    permit_give(lease_extra(lease), masters);
}

static void on_left(struct redlock_lease *lease, quorum_mask left)
{
    permit_on_left(lease_extra(lease), left);
}

static void on_answer(struct redlock_lease *lease, unsigned master, const struct ask *ask,
                      const struct vote *vote)
{
    if (vote->hints && ask->number == lease->q.round)
        permit_hint(lease_extra(lease), master, vote->hint);
}

static unsigned slots(const struct redlock_lease *lease)
{
    const struct permit *permit = lease_extra(lease);

    return permit->slots;
}

unsigned kind_permit_slot(const struct redlock_lease *lease)
{
    const struct permit *permit = lease_extra(lease);

    return permit->slot;
}

const struct kind kind_permit = {
    .extra = sizeof(struct permit),
    .hidden = WIRE_PERMIT_LEN,
    .scripts =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_PERMIT,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_PERMIT,
            [QUORUM_CMD_FENCE] = SCRIPT_ACQUIRE_PERMIT,
            [QUORUM_CMD_RAISE] = SCRIPT_RAISE,
            [QUORUM_CMD_GIVE] = KIND_NO_SCRIPT,
        },
    .write = write,
    .read_vote = read_vote,
    .init = init,
    .fill = fill,
    .stamp = stamp,
    .on_ask = on_ask,
    .on_give = on_give,
    .on_left = on_left,
    .on_answer = on_answer,
    .slots = slots,
};
