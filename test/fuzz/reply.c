/*
 * reply.c - fuzz target: any bytes from a master, in pieces of any size.
 *
 * The first byte seeds the sizes of the pieces; the rest is fed to the reader.  Every reply is
 * counted as a vote on every command and for every kind of lock, and parsed as an answer to a
 * marker query.  The target checks that the text stays within its limit.  The reader's buffer
 * stays within its limit, too, if feeding stops when reader_overflows() says so.  Only a complete
 * and exact reply is a yes, or an answer to a query.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "must.h"
#include "redlock/lease/kind.h"
#include "redlock/link/reader.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/vote.h"

#define PIECE_MAX 64

static void check_text(const struct reply *reply)
{
    MUST(reply->text_room <= REPLY_TEXT_MAX + 1);
    switch (reply->type) {
    case REPLY_STATUS:
    case REPLY_ERROR:
    case REPLY_TEXT:
        MUST(reply->text != NULL && reply->text_len < reply->text_room);
        MUST(reply->text[reply->text_len] == '\0');
        break;
    case REPLY_INTEGER:
    case REPLY_NIL:
    case REPLY_ARRAY:
    case REPLY_OTHER:
        break;
    }
}

static void check_vote(enum quorum_command command, const struct reply *reply)
{
    struct vote vote = vote_read(command, reply);
    bool is_script = command != QUORUM_CMD_SET && command != QUORUM_CMD_FENCE;
    bool is_ok = reply->type == REPLY_STATUS && strcmp(reply->text, "OK") == 0;
    bool is_one = reply->type == REPLY_INTEGER && reply->integer == 1;

    MUST((vote.vote == QUORUM_VOTE_YES) == (is_script ? is_one : is_ok));
    MUST(vote.counter == 0);
    if (vote.noscript || vote.relink)
        MUST(vote.vote != QUORUM_VOTE_YES);
    if (vote.noscript)
        MUST(vote.vote == QUORUM_VOTE_NONE);
}

/* For every kind of lock, the same replies are a yes, and hints come only with a no. */
static void check_kind(enum kind_id kind, enum quorum_command command, const struct reply *reply)
{
    struct vote vote = kind_read_vote(kinds[kind], command, reply);
    bool is_set = command == QUORUM_CMD_SET;
    bool is_ok = reply->type == REPLY_STATUS && strcmp(reply->text, "OK") == 0;
    bool is_one = reply->type == REPLY_INTEGER && reply->integer == 1;

    MUST((vote.vote == QUORUM_VOTE_YES) == (is_set ? is_ok : is_one));
    MUST(vote.taken == 0 || (kind == KIND_MANY && vote.taken <= REDLOCK_NAMES_MAX));
    MUST(!vote.hints || (kind == KIND_PERMIT && vote.hint <= REDLOCK_PERMITS_MAX));
    MUST(!vote.is_queued || (kind == KIND_FAIR && vote.number <= WIRE_TICKET_MAX));
    if (vote.taken != 0 || vote.hints || vote.is_queued)
        MUST(is_set && vote.vote == QUORUM_VOTE_NO);
    if (vote.noscript || vote.relink)
        MUST(vote.vote != QUORUM_VOTE_YES);
}

static void check_kinds(const struct reply *reply)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        check_kind((enum kind_id)kind, QUORUM_CMD_SET, reply);
        check_kind((enum kind_id)kind, QUORUM_CMD_EXTEND, reply);
        check_kind((enum kind_id)kind, QUORUM_CMD_RELEASE, reply);
    }
}

/* Check a vote whose yes is a number. */
static void check_number(struct vote vote, const struct reply *reply)
{
    bool is_number = reply->type == REPLY_INTEGER && reply->integer > 0 &&
                     reply->integer <= (long long)QUORUM_FENCE_MAX;

    MUST((vote.vote == QUORUM_VOTE_YES) == is_number);
    MUST(vote.counter == (is_number ? (uint64_t)reply->integer : 0));
    if (vote.noscript || vote.relink)
        MUST(vote.vote != QUORUM_VOTE_YES);
}

/* Write the parsed answer again, and compare it with the text. */
static void check_look(const struct reply *reply)
{
    struct guard_look look;
    struct answer_set set;
    const char *p;
    char text[32];

    if (!answer_look(reply, &look, &set))
        return;
    MUST(reply->type == REPLY_TEXT && look.number != 0 && !(look.ready && look.fresh));
    (void)snprintf(text, sizeof text, "%s %016" PRIx64 "%c", look.ready ? "ready" : "warming",
                   look.number, look.ready ? '.' : ' ');
    MUST(strncmp(reply->text, text, strlen(text)) == 0);
    p = reply->text + strlen(text);
    if (look.ready) { /* "EPOCH.VER" */
        MUST(p[-1] == '.' && strtoull(p, NULL, 10) == set.version);
        MUST(set.state == reply->text + 6);
        p = set.state + set.state_len + 1;
    }
    MUST(p[0] >= '0' && p[0] <= '9' && strtoull(p, NULL, 10) == look.max_ttl_ms);
    MUST(look.floor <= QUORUM_FENCE_MAX && (look.ready || look.floor == 0));
    MUST(look.time_us <= QUORUM_FENCE_MAX && set.version <= CONFIG_VERSION_MAX);
    MUST((set.set != 0) == (set.version != 0) && set.name_len <= CONFIG_PLACE_MAX);
    if (set.config != NULL)
        MUST(set.set != 0 && set.config_len <= CONFIG_TEXT_MAX &&
             (set.config[set.config_len] == '\0' || set.config[set.config_len] == '\n'));
    MUST((set.accepted != NULL) == (look.told.accepted != 0) &&
         look.told.accepted <= look.told.ballot && (look.ready || look.told.ballot == 0));
    if (set.accepted != NULL)
        MUST(set.accepted_len <= WIRE_ACCEPTED_MAX &&
             set.accepted + set.accepted_len == reply->text + reply->text_len);
}

/* The text is a part of the reply, and printable. */
static void check_claim(const struct reply *reply)
{
    struct founder_answer answer;

    MUST(!answer_done(reply, &answer) || reply->type == REPLY_INTEGER);
    if (!answer_claim(reply, &answer))
        return;
    MUST(reply->type == REPLY_TEXT && answer.word <= FOUNDER_SAYS_MEMBER);
    MUST(strlen(answer.text) == answer.text_len && answer.text_len <= WIRE_CONFIG_MAX);
    for (size_t i = 0; i < answer.text_len; i++)
        MUST(answer.text[i] >= ' ' && answer.text[i] <= '~');
    if (answer.word == FOUNDER_SAYS_CLAIM || answer.word == FOUNDER_SAYS_MEMBER)
        MUST(answer.number != 0 &&
             strcmp(answer.text, reply->text + reply->text_len - answer.text_len) == 0);
}

/* Take all complete replies.  Returns false if the reader failed. */
static bool take_all(redisReader *reader, struct reply *reply)
{
    for (;;) {
        void *got = NULL;

        if (redisReaderGetReply(reader, &got) != REDIS_OK)
            return false;
        if (got == NULL)
            return true;
        MUST(got == reply);
        check_text(reply);
        check_vote(QUORUM_CMD_SET, reply);
        check_vote(QUORUM_CMD_EXTEND, reply);
        check_vote(QUORUM_CMD_RELEASE, reply);
        check_vote(QUORUM_CMD_FENCE, reply);
        check_number(vote_read(QUORUM_CMD_RAISE, reply), reply);
        check_number(vote_number(reply), reply);
        check_kinds(reply);
        check_look(reply);
        check_claim(reply);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t len)
{
    struct reply reply = {.text = NULL};
    redisReader *reader = reader_new(&reply);
    unsigned dice = len > 0 ? bytes[0] : 0;
    size_t at = len > 0 ? 1 : 0;

    MUST(reader != NULL);
    while (at < len) {
        size_t piece = 1 + dice % PIECE_MAX;

        dice = dice * 1103515245 + 12345; /* As in the C standard's example of rand(). */
        dice = dice >> 16 | dice << 16;
        if (piece > len - at)
            piece = len - at;
        MUST(redisReaderFeed(reader, (const char *)bytes + at, piece) == REDIS_OK);
        at += piece;
        if (!take_all(reader, &reply) || reader_overflows(reader))
            break;
        MUST(reader->len - reader->pos <= REPLY_TEXT_MAX + 1024);
    }
    redisReaderFree(reader);
    MUST(reply.text_room <= REPLY_TEXT_MAX + 1);
    reader_forget(&reply);
    return 0;
}
