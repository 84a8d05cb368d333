/*
 * kind_fair.c - one name, in the order of a queue.
 *
 * A heartbeat takes the place of SET.  It puts the waiter into a queue beside the key, and only the
 * first in the queue gets the lock (core/place.h).  Exclusion is that of SET NX on a majority.  The
 * queue only decides which waiter may ask, so no fault of the queue gives a lock to two clients.
 *
 * Rules
 * - A master answers a heartbeat with OK, with the number of the waiter's place, or with 0: the
 *   queue is full.
 * - A waiter that stops waiting leaves the queue on every master that it asked, before its release
 *   is sent.  So the release notifies the next waiter.
 * - On a master where the waiter may have the key, its release notifies.  On the others the ZREM is
 *   followed by a release that only notifies: the waiter may have been the first while the lock was
 *   free.
 * - A waiter leaves the queue of a master that was removed from the set as soon as it can.  No
 *   heartbeat goes there any more, and the link may be closed before the waiter's patience ends.
 */
#include <stdio.h>

#include "redlock/core/place.h"
#include "redlock/core/wait.h"
#include "redlock/lease/kind.h"
#include "redlock/lease/state.h"

static size_t write(char *buf, enum script_id script, bool in_full, const struct wire_args *args)
{
    return script == SCRIPT_ACQUIRE_FAIR || script == SCRIPT_EXTEND_FAIR ||
                   script == SCRIPT_RELEASE_FAIR
               ? wire_fair(buf, script, in_full, args)
               : wire_script(buf, script, in_full, args);
}

/* With FENCE a count follows the heartbeat, whether it is granted or not. */
static bool is_heartbeat(unsigned command)
{
    return command == QUORUM_CMD_SET || command == QUORUM_CMD_FENCE;
}

/* WRONGTYPE is no vote here.  SET NX refuses a key of any type, so the error comes from the
 * queue's key. */
static struct vote read_vote(enum quorum_command command, const struct reply *reply)
{
    struct vote vote = vote_read(command, reply);

    if (!is_heartbeat(command))
        return vote;
    if (reply->type == REPLY_INTEGER && reply->integer >= 0 && reply->integer <= WIRE_TICKET_MAX)
        return (struct vote){
            .vote = QUORUM_VOTE_NO, .is_queued = true, .number = (uint64_t)reply->integer};
    if (vote.vote == QUORUM_VOTE_NO)
        vote.vote = QUORUM_VOTE_NONE;
    return vote;
}

_Static_assert(PLACE_CLIENT == WIRE_CLIENT_DIGITS, "scripts find the channel in a waiter's name");

/* No lease has serial 0, so its token names the client. */
static void init(struct redlock_lease *lease, const struct redlock_lock_options *opts,
                 const char *token)
{
    struct place *place = lease_extra(lease);
    drift_span longest = WAIT_PATIENCE * opts->retry_delay_max_ms * DRIFT_MS;
    char client[TOKEN_LEN + 1];

    (void)token;
    place_init(place, &lease->leases->masters->peers.members,
               longest + lease->q.config.reply_timeout);
    token_write(&lease->leases->tokens, 0, 0, client);
    place->passes = lease->q.config.stands;
    place_name(place, client, lease->slot, (uint32_t)lease->serial);
}

static enum wire_release how_to_release(const struct place *place)
{
    if (!place->passes)
        return WIRE_RELEASE_PLAIN;
    if (place->won)
        return WIRE_RELEASE_PASS;
    return place->left ? WIRE_RELEASE_LEAVE : WIRE_RELEASE_BACK;
}

static void fill(const struct redlock_lease *lease, unsigned master, char key[WIRE_KEY_MAX],
                 struct wire_args *args)
{
    const struct place *place = lease_extra(lease);

    (void)master, (void)key;
    args->waiter = place->waiter;
    args->ticket = place->ticket;
    args->patience_ms = place->patience_ms;
    args->sent = place->passes && place->ticket != 0 ? lease->q.sent : 0;
    args->how = how_to_release(place);
}

/* The answer is ignored.  A master that misses the command drops the waiter when its patience
 * ends. */
static void say(struct masters *masters, quorum_mask to, size_t len)
{
    const struct ask ask = {.what = WHAT_LEAVE};

    for (unsigned m = 0; m < masters->peers.len; m++)
        if (masters->peers.up & to & mask_of(m))
            masters_send(masters, m, &ask, masters->peers.scratch, len);
}

/* The script is sent in full, because a NOSCRIPT would not be answered. */
static void leave(const struct redlock_lease *lease, quorum_mask masters)
{
    struct leases *leases = lease->leases;
    char *scratch = leases->masters->peers.scratch;
    struct wire_args args = {.name = lease->name, .name_len = lease->name_len};
    quorum_mask others = masters & (quorum_mask)~lease->q.may_hold;

    fill(lease, 0, NULL, &args);
    say(leases->masters, masters, wire_leave(scratch, &args));
    args.how = WIRE_RELEASE_PLAIN;
    args.token = args.waiter; /* No key has this token, so the script only notifies. */
    args.token_len = TOKEN_LEN;
    say(leases->masters, others, wire_fair(scratch, SCRIPT_RELEASE_FAIR, true, &args));
}

/* No waiter there is notified, because the members alone grant the lock. */
static void leave_removed(const struct redlock_lease *lease)
{
    struct masters *masters = lease->leases->masters;
    quorum_mask removed = place_leave_removed(lease_extra(lease), masters->peers.up);
    struct wire_args args = {.name = lease->name, .name_len = lease->name_len};

    if (removed == 0)
        return;
    fill(lease, 0, NULL, &args);
    say(masters, removed, wire_leave(masters->peers.scratch, &args));
}

static void on_step(struct redlock_lease *lease)
{
    struct place *place = lease_extra(lease);
    quorum_mask settled;

    leave_removed(lease);
    if (place->left || place->asked == 0 || lease_is_waiting(lease))
        return;
    place->left = true;
    place->won = lease->q.state == QUORUM_HELD || lease->q.state == QUORUM_EXTENDING;
    settled = place_settled(place, lease->q.may_hold & lease->q.live);
    leave(lease, place->asked & (quorum_mask)~settled);
}

/* The lease may make no step of its own before the link is closed. */
static bool is_due(const struct redlock_lease *lease, unsigned master)
{
    return place_must_leave(lease_extra(lease), mask_of(master)) != 0;
}

static void on_ask(struct redlock_lease *lease, const struct quorum_send *send)
{
    place_on_ask(lease_extra(lease), send->to);
}

/* The command that leaves the queue was sent before this, if there was one.  So it is sent again.
 */
static void on_ask_again(struct redlock_lease *lease, unsigned master)
{
    struct place *place = lease_extra(lease);

    place_on_ask(place, mask_of(master));
    leave_removed(lease);
    if (place->left)
        leave(lease, mask_of(master));
}

/* A client that has only the token does not know the place, so its release would not drop it.  All
 * masters are told: one whose link was down when the lock was won has not heard it yet. */
static void on_detach(struct redlock_lease *lease)
{
    leave(lease, lease->leases->masters->peers.up);
}

static void on_left(struct redlock_lease *lease, quorum_mask left)
{
    place_on_left(lease_extra(lease), left);
}

static void on_answer(struct redlock_lease *lease, unsigned master, const struct ask *ask,
                      const struct vote *vote)
{
    struct place *place = lease_extra(lease);

    if (is_heartbeat(ask->what) && vote->is_queued)
        place_on_number(place, master, vote->number);
    else if (is_heartbeat(ask->what) && vote->vote == QUORUM_VOTE_YES)
        place_on_grant(place, master);
    place_on_answer(place, master);
}

/* A token that was sent with a ticket may wait at the master. */
static bool stands(const struct redlock_lease *lease, unsigned master)
{
    return (place_tokens(lease_extra(lease)) & mask_of(master)) != 0;
}

static enum msg explain(const struct redlock_lease *lease, char *text, size_t size)
{
    if (place_is_full(lease_extra(lease)))
        (void)snprintf(text, size, "its queue is full: %d clients wait", WIRE_QUEUE_MAX);
    return MSG_QUEUE_FULL;
}

const struct kind kind_fair = {
    .extra = sizeof(struct place),
    .queued = true,
    .scripts =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_FAIR,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND_FAIR,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_FAIR,
            [QUORUM_CMD_FENCE] = SCRIPT_ACQUIRE_FAIR,
            [QUORUM_CMD_RAISE] = SCRIPT_RAISE,
            [QUORUM_CMD_GIVE] = KIND_NO_SCRIPT,
        },
    .write = write,
    .read_vote = read_vote,
    .init = init,
    .fill = fill,
    .on_step = on_step,
    .is_due = is_due,
    .on_ask = on_ask,
    .on_ask_again = on_ask_again,
    .on_detach = on_detach,
    .on_left = on_left,
    .on_answer = on_answer,
    .stands = stands,
    .explain = explain,
};
