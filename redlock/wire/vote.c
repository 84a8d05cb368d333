/*
 * vote.c - judges what a reply says about a key.
 *
 * A reply is a yes only if it has exactly the form that the command defines.  It is a no if it has
 * the form of a no, or is the error WRONGTYPE: the key then holds no lock of ours.  Any other reply
 * is no vote.
 */
#include "redlock/wire/vote.h"

#include <assert.h>
#include <string.h>

#include "redlock/wire/keys.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"

const char *vote_revoked(const struct reply *reply)
{
    bool is_revoked =
        reply->type == REPLY_TEXT && strncmp(reply->text, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0;

    return is_revoked ? reply->text : NULL;
}

bool vote_lacks_script(const struct reply *reply)
{
    return reply->type == REPLY_ERROR && redis_error_kind(reply->text) == WHY_ERROR_SCRIPT;
}

static struct vote count_error(const struct reply *reply)
{
    const enum why why = redis_error_kind(reply->text);

    return (struct vote){
        .vote = why == WHY_ERROR_TYPE ? QUORUM_VOTE_NO : QUORUM_VOTE_NONE,
        .why = why,
        .noscript = why == WHY_ERROR_SCRIPT,
        /* Its state has changed since the handshake. */
        .relink = why == WHY_ERROR_LOGIN || why == WHY_ERROR_REPLICA || why == WHY_ERROR_LOADING ||
                  why == WHY_ERROR_MASTER_DOWN,
    };
}

static struct vote count_set(const struct reply *reply)
{
    if (reply->type == REPLY_STATUS && strcmp(reply->text, "OK") == 0)
        return (struct vote){.vote = QUORUM_VOTE_YES};
    if (reply->type == REPLY_NIL)
        return (struct vote){.vote = QUORUM_VOTE_NO};
    return (struct vote){.vote = QUORUM_VOTE_NONE, .relink = true};
}

static struct vote count_script(const struct reply *reply)
{
    if (reply->type == REPLY_INTEGER && reply->integer == 1)
        return (struct vote){.vote = QUORUM_VOTE_YES};
    if (reply->type == REPLY_INTEGER && reply->integer == 0)
        return (struct vote){.vote = QUORUM_VOTE_NO};
    return (struct vote){.vote = QUORUM_VOTE_NONE, .relink = true};
}

/* A key that was revoked holds no token. */
static struct vote count_extend(const struct reply *reply)
{
    if (vote_revoked(reply) != NULL)
        return (struct vote){.vote = QUORUM_VOTE_NO, .revoked = true};
    return count_script(reply);
}

static struct vote count_raise(const struct reply *reply)
{
    if (reply->type == REPLY_INTEGER && reply->integer >= 0 &&
        reply->integer <= (long long)QUORUM_FENCE_MAX)
        return (struct vote){
            .vote = reply->integer > 0 ? QUORUM_VOTE_YES : QUORUM_VOTE_NO,
            .counter = (uint64_t)reply->integer,
        };
    if (reply->type == REPLY_INTEGER && reply->integer == -1)
        return (struct vote){.vote = QUORUM_VOTE_NONE, .outdated = true};
    return (struct vote){.vote = QUORUM_VOTE_NONE, .relink = true};
}

struct vote vote_read(enum quorum_command command, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR)
        return count_error(reply);
    switch (command) {
    case QUORUM_CMD_SET:
    case QUORUM_CMD_FENCE:
    case QUORUM_CMD_GIVE:
        return count_set(reply);
    case QUORUM_CMD_EXTEND:
        return count_extend(reply);
    case QUORUM_CMD_RELEASE:
        return count_script(reply);
    case QUORUM_CMD_RAISE:
        return count_raise(reply);
    }
    assert(!"a command");
    return (struct vote){.vote = QUORUM_VOTE_NONE};
}

struct vote vote_number(const struct reply *reply)
{
    struct vote vote = reply->type == REPLY_ERROR ? count_error(reply) : count_raise(reply);

    if (vote.vote == QUORUM_VOTE_YES)
        return vote;
    vote.outdated = false;
    if (reply->type == REPLY_INTEGER)
        vote.relink = false;
    else if (vote.vote == QUORUM_VOTE_NO)
        vote.relink = true;
    vote.vote = QUORUM_VOTE_NONE;
    return vote;
}
