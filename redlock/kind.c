/*
 * kind.c - a table of kinds and commands.
 */
#include "redlock/kind.h"

#include <assert.h>

#define COMMANDS (QUORUM_CMD_RAISE + 1)
#define NO_SCRIPT SCRIPT_LEN /* SET, as it is. */

static const enum script_id scripts[LEASE_KINDS][COMMANDS] = {
    [LEASE_PLAIN] =
        {
            [QUORUM_CMD_SET] = NO_SCRIPT,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE,
            [QUORUM_CMD_FENCE] = NO_SCRIPT, /* And behind it a count: see lease.c. */
            [QUORUM_CMD_RAISE] = SCRIPT_RAISE,
        },
    [LEASE_MANY] =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_MANY,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND_MANY,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_MANY,
            [QUORUM_CMD_FENCE] = NO_SCRIPT, /* Neither is asked for. */
            [QUORUM_CMD_RAISE] = NO_SCRIPT,
        },
    [LEASE_PERMIT] =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_PERMIT,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_PERMIT,
            [QUORUM_CMD_FENCE] = NO_SCRIPT, /* Likewise. */
            [QUORUM_CMD_RAISE] = NO_SCRIPT,
        },
    [LEASE_FAIR] =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_FAIR,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_FAIR,
            [QUORUM_CMD_FENCE] = NO_SCRIPT, /* Likewise. */
            [QUORUM_CMD_RAISE] = NO_SCRIPT,
        },
    [LEASE_SHARED] =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_SHARED,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND_SHARED,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_SHARED,
            [QUORUM_CMD_FENCE] = NO_SCRIPT, /* Likewise. */
            [QUORUM_CMD_RAISE] = NO_SCRIPT,
        },
};

bool kind_is_script(enum lease_kind kind, enum quorum_command command)
{
    assert(kind < LEASE_KINDS);
    return scripts[kind][command] != NO_SCRIPT;
}

size_t kind_write(char *buf, enum lease_kind kind, enum quorum_command command, bool in_full,
                  const struct wire_args *args)
{
    if (!kind_is_script(kind, command))
        return wire_set(buf, args);
    if (kind == LEASE_MANY)
        return wire_many(buf, scripts[kind][command], in_full, args);
    if (kind == LEASE_PERMIT && command == QUORUM_CMD_SET)
        return wire_permit(buf, in_full, args);
    if (kind == LEASE_FAIR && command != QUORUM_CMD_EXTEND)
        return wire_fair(buf, scripts[kind][command], in_full, args);
    return wire_script(buf, scripts[kind][command], in_full, args);
}

/* Of a heartbeat.  Whatever the lock's key is, SET NX says no to it: where an error tells of
 * a wrong type it is the queue's. */
static struct vote count_heartbeat(const struct reply *reply)
{
    struct vote vote = vote_count(QUORUM_CMD_SET, reply);

    if (reply->type == REPLY_INTEGER && reply->integer >= 0 && reply->integer <= WIRE_TICKET_MAX)
        return (struct vote){
            .vote = QUORUM_VOTE_NO, .is_queued = true, .number = (uint64_t)reply->integer};
    if (vote.vote == QUORUM_VOTE_NO)
        vote.vote = QUORUM_VOTE_NONE;
    return vote;
}

struct vote kind_count(enum lease_kind kind, enum quorum_command command, const struct reply *reply)
{
    if (kind == LEASE_MANY && command == QUORUM_CMD_SET && reply->type == REPLY_INTEGER &&
        reply->integer >= 1 && reply->integer <= REDLOCK_NAMES_MAX)
        return (struct vote){.vote = QUORUM_VOTE_NO, .taken = (unsigned)reply->integer};
    if (kind == LEASE_PERMIT && command == QUORUM_CMD_SET && reply->type == REPLY_INTEGER &&
        reply->integer >= 0 && reply->integer <= REDLOCK_PERMITS_MAX)
        return (struct vote){
            .vote = QUORUM_VOTE_NO, .hints = true, .hint = (unsigned)reply->integer};
    if (kind == LEASE_FAIR && command == QUORUM_CMD_SET)
        return count_heartbeat(reply);
    return vote_count(command, reply);
}
