/*
 * kind_many.c - several names in one lease, with one token: all of them or none.
 *
 * Each master sets all keys or none, in one script, and a majority decides as for any lock.  So no
 * client holds one name while it waits for another.  Names need no order, and there is no deadlock.
 *
 * Rules
 * - A master that refuses returns the number of the first name that is taken, from 1.  The client
 *   waits for that name, together with the leases that wait for it alone.
 * - An extension needs all keys: a master that misses one refuses.
 * - If an operator revoked one of the names, that is no vote: the others stay until the lease ends.
 * - There is one fencing token, to which a majority has counted for each of the names.  So it is
 *   greater than the tokens that any of them had before.
 * - A release deletes the other keys if one cannot be deleted, and then returns the error.
 */
#include <stdio.h>
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/lease/kind.h"
#include "redlock/lease/state.h"

#define NAME_SHOWN_MAX 80 /* The longest name in a message, in bytes. */

static size_t write(char *buf, enum script_id script, bool in_full, const struct wire_args *args)
{
    return wire_many(buf, script, in_full, args);
}

static struct vote read_vote(enum quorum_command command, const struct reply *reply)
{
    bool sets =
        command == QUORUM_CMD_SET || command == QUORUM_CMD_FENCE || command == QUORUM_CMD_GIVE;

    if (sets && reply->type == REPLY_INTEGER && reply->integer >= 1 &&
        reply->integer <= REDLOCK_NAMES_MAX)
        return (struct vote){.vote = QUORUM_VOTE_NO, .taken = (uint8_t)reply->integer};
    if (command == QUORUM_CMD_EXTEND && vote_revoked(reply) != NULL)
        return (struct vote){.vote = QUORUM_VOTE_NONE, .revoked = true};
    return vote_read(command, reply);
}

/* From now on the lease waits for the name that this master found taken. */
static void on_answer(struct redlock_lease *lease, unsigned master, const struct ask *ask,
                      const struct vote *vote)
{
    (void)master;
    if (vote->taken == 0 || ask->number != lease->q.round)
        return;
    if (vote->taken > wire_count_names(lease->name, lease->name_len))
        return;
    lease->taken = (uint8_t)(vote->taken - 1) & 127;
    lease->has_taken = true;
}

static const char *name_at(const struct redlock_lease *lease, unsigned index)
{
    const char *name = lease->name;

    for (unsigned i = 0; i < index; i++)
        name += strlen(name) + 1;
    return name;
}

static const char *awaited(const struct redlock_lease *lease, size_t *ret_len)
{
    const char *name = name_at(lease, lease->line);

    *ret_len = strlen(name);
    return name;
}

static enum msg explain(const struct redlock_lease *lease, char *text, size_t size)
{
    const char *name = name_at(lease, lease->taken);
    char quoted[NAME_SHOWN_MAX];

    if (lease->has_taken)
        (void)snprintf(text, size, "%s was taken",
                       text_quote_as(TEXT_NAME, name, strlen(name), quoted, sizeof quoted));
    return MSG_HELD;
}

const struct kind kind_many = {
    .scripts =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_MANY,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND_MANY,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_MANY,
            [QUORUM_CMD_FENCE] = SCRIPT_ACQUIRE_MANY,
            [QUORUM_CMD_RAISE] = SCRIPT_RAISE_MANY,
            [QUORUM_CMD_GIVE] = SCRIPT_ACQUIRE_MANY,
        },
    .write = write,
    .write_count = wire_count_many,
    .read_vote = read_vote,
    .on_answer = on_answer,
    .awaited = awaited,
    .explain = explain,
};
