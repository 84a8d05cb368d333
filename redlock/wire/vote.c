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

#include "redlock/wire/forbidden.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/reply.h"

const char *vote_revoked(const struct reply *reply)
{
    bool is_revoked =
        reply->type == REPLY_TEXT && strncmp(reply->text, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0;

    return is_revoked ? reply->text : NULL;
}

/* Errors of a master whose state has changed since the handshake. */
static const char *const relink_codes[] = {"READONLY", "NOAUTH", "LOADING", "MASTERDOWN"};

/*
 * Whether an error has this code.  Redis 7 puts the code first, also for errors inside a script.
 * Redis up to 6 hides such an error in "ERR Error running script (call to f_...): ... WRONGTYPE
 * ...".
 */
static bool has_code(const struct reply *reply, const char *code)
{
    static const char in_script[] = "ERR Error running script";
    size_t code_len = strlen(code);

    if (strncmp(reply->text, in_script, sizeof in_script - 1) == 0)
        return strstr(reply->text, code) != NULL;
    return strncmp(reply->text, code, code_len) == 0 &&
           (reply->text[code_len] == ' ' || reply->text[code_len] == '\0');
}

bool vote_lacks_script(const struct reply *reply)
{
    return reply->type == REPLY_ERROR && has_code(reply, "NOSCRIPT");
}

static struct vote count_error(const struct reply *reply)
{
    struct vote vote = {.vote = QUORUM_VOTE_NONE, .forbidden = forbidden_is(reply->text)};

    if (vote_lacks_script(reply))
        vote.noscript = true;
    else if (has_code(reply, "WRONGTYPE"))
        vote.vote = QUORUM_VOTE_NO;
    for (size_t i = 0; i < sizeof relink_codes / sizeof relink_codes[0]; i++) {
        if (has_code(reply, relink_codes[i]))
            vote.relink = true;
    }
    return vote;
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

const char *vote_error(const struct vote *vote, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR)
        return reply->text;
    if (!vote->relink)
        return "";
    return "answered with garbage";
}
