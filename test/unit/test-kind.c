/*
 * test-kind.c - the commands of each kind of lock, and the votes of their answers.
 */
#include "redlock/lease/kind.h"

#include "test/lib/check.h"

static struct reply number(long long integer)
{
    return (struct reply){.type = REPLY_INTEGER, .integer = integer};
}

static struct reply text(enum reply_type type, char *words)
{
    return (struct reply){.type = type, .text = words, .text_len = strlen(words)};
}

static struct vote count_fair(const struct reply *reply)
{
    return kind_read_vote(&kind_fair, QUORUM_CMD_SET, reply);
}

TEST(a_heartbeat_tells_a_place)
{
    static const long long places[] = {0, 1, 1024, WIRE_TICKET_MAX};

    for (size_t i = 0; i < 2 * sizeof places / sizeof places[0]; i++) {
        const struct reply reply = number(places[i / 2]);
        struct vote vote =
            kind_read_vote(&kind_fair, i % 2 ? QUORUM_CMD_FENCE : QUORUM_CMD_SET, &reply);

        CHECK_INT(vote.vote, QUORUM_VOTE_NO);
        CHECK(vote.is_queued && !vote.relink);
        CHECK_UINT(vote.number, (uint64_t)places[i / 2]);
    }
}

TEST(what_is_no_place_is_no_vote)
{
    static const long long others[] = {-1, WIRE_TICKET_MAX + 1LL, INT64_MIN, INT64_MAX};
    char wrong_type[] = "WRONGTYPE Operation against a key holding the wrong kind of value";
    char noscript[] = "NOSCRIPT No matching script.";
    char garbage[] = "7";
    struct reply reply;
    struct vote vote;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        reply = number(others[i]);
        vote = count_fair(&reply);
        CHECK_INT(vote.vote, QUORUM_VOTE_NONE);
        CHECK(vote.relink && !vote.is_queued);
    }
    reply = text(REPLY_ERROR, wrong_type); /* The queue has the wrong type; SET NX just refuses. */
    vote = count_fair(&reply);
    CHECK_INT(vote.vote, QUORUM_VOTE_NONE);
    CHECK(!vote.relink && !vote.is_queued);
    reply = text(REPLY_ERROR, noscript);
    CHECK(count_fair(&reply).noscript);
    reply = text(REPLY_TEXT, garbage);
    CHECK(count_fair(&reply).relink);
}

TEST(a_heartbeat_is_granted_as_a_set)
{
    char ok[] = "OK";
    struct reply reply = text(REPLY_STATUS, ok);

    CHECK_INT(count_fair(&reply).vote, QUORUM_VOTE_YES);
    CHECK(!count_fair(&reply).is_queued);
    reply = number(1); /* To a heartbeat a number is a no; to a release it is a yes. */
    CHECK_INT(count_fair(&reply).vote, QUORUM_VOTE_NO);
    CHECK_INT(kind_read_vote(&kind_fair, QUORUM_CMD_RELEASE, &reply).vote, QUORUM_VOTE_YES);
    CHECK_INT(kind_read_vote(&kind_fair, QUORUM_CMD_EXTEND, &reply).vote, QUORUM_VOTE_YES);
    CHECK(kind_read_vote(&kind_plain, QUORUM_CMD_SET, &reply).relink);
}

CHECK_MAIN(RUN(a_heartbeat_tells_a_place), RUN(what_is_no_place_is_no_vote),
           RUN(a_heartbeat_is_granted_as_a_set))
