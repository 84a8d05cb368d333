/*
 * test-vote.c - every kind of reply to every command, in one table.
 *
 * The program is linked without hiredis, and makes the replies by hand.
 */
#include "redlock/wire/vote.h"

#include "test/lib/check.h"

#define YES QUORUM_VOTE_YES
#define NO QUORUM_VOTE_NO
#define NONE QUORUM_VOTE_NONE

#define WRONG_KIND "Operation against a key holding the wrong kind of value"

static const struct {
    enum reply_type type;
    const char *text;
    long long integer;
    struct vote set, script;
} rows[] = {
    {REPLY_STATUS, "OK", 0, {.vote = YES}, {.vote = NONE, .relink = true}},
    {REPLY_STATUS, "QUEUED", 0, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_STATUS, "OKAY", 0, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_STATUS, "ok", 0, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_STATUS, "", 0, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_NIL, NULL, 0, {.vote = NO}, {.vote = NONE, .relink = true}},
    {REPLY_INTEGER, NULL, 1, {.vote = NONE, .relink = true}, {.vote = YES}},
    {REPLY_INTEGER, NULL, 0, {.vote = NONE, .relink = true}, {.vote = NO}},
    {REPLY_INTEGER, NULL, 2, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_INTEGER, NULL, -1, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_INTEGER,
     NULL,
     1LL << 32,
     {.vote = NONE, .relink = true},
     {.vote = NONE, .relink = true}},
    {REPLY_INTEGER,
     NULL,
     1LL << 32 | 1,
     {.vote = NONE, .relink = true},
     {.vote = NONE, .relink = true}},
    {REPLY_TEXT, "OK", 1, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_TEXT, "1", 1, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_ARRAY, "OK", 1, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},
    {REPLY_OTHER, "OK", 1, {.vote = NONE, .relink = true}, {.vote = NONE, .relink = true}},

    /* Errors.  Only type and text count, not the integer of an earlier reply. */
    {REPLY_ERROR,
     "WRONGTYPE " WRONG_KIND,
     1,
     {.vote = NO, .why = WHY_ERROR_TYPE},
     {.vote = NO, .why = WHY_ERROR_TYPE}},
    {REPLY_ERROR,
     "WRONGTYPE",
     1,
     {.vote = NO, .why = WHY_ERROR_TYPE},
     {.vote = NO, .why = WHY_ERROR_TYPE}},
    {REPLY_ERROR,
     "WRONGTYPES",
     1,
     {.vote = NONE, .why = WHY_ERROR},
     {.vote = NONE, .why = WHY_ERROR}},
    {REPLY_ERROR,
     "ERR WRONGTYPE",
     1,
     {.vote = NONE, .why = WHY_ERROR},
     {.vote = NONE, .why = WHY_ERROR}},
    {REPLY_ERROR,
     "NOSCRIPT No matching script. Please use EVAL.",
     1,
     {.vote = NONE, .why = WHY_ERROR_SCRIPT, .noscript = true},
     {.vote = NONE, .why = WHY_ERROR_SCRIPT, .noscript = true}},
    {REPLY_ERROR,
     "READONLY You can't write against a read only replica.",
     1,
     {.vote = NONE, .why = WHY_ERROR_REPLICA, .relink = true},
     {.vote = NONE, .why = WHY_ERROR_REPLICA, .relink = true}},
    {REPLY_ERROR,
     "NOAUTH Authentication required.",
     1,
     {.vote = NONE, .why = WHY_ERROR_LOGIN, .relink = true},
     {.vote = NONE, .why = WHY_ERROR_LOGIN, .relink = true}},
    {REPLY_ERROR,
     "LOADING Redis is loading the dataset in memory",
     1,
     {.vote = NONE, .why = WHY_ERROR_LOADING, .relink = true},
     {.vote = NONE, .why = WHY_ERROR_LOADING, .relink = true}},
    {REPLY_ERROR,
     "MASTERDOWN Link with MASTER is down",
     1,
     {.vote = NONE, .why = WHY_ERROR_MASTER_DOWN, .relink = true},
     {.vote = NONE, .why = WHY_ERROR_MASTER_DOWN, .relink = true}},
    {REPLY_ERROR,
     "LOADINGS",
     1,
     {.vote = NONE, .why = WHY_ERROR},
     {.vote = NONE, .why = WHY_ERROR}},
    {REPLY_ERROR, "LOADIN", 1, {.vote = NONE, .why = WHY_ERROR}, {.vote = NONE, .why = WHY_ERROR}},
    {REPLY_ERROR,
     "ERR unknown command",
     1,
     {.vote = NONE, .why = WHY_ERROR_COMMAND},
     {.vote = NONE, .why = WHY_ERROR_COMMAND}},
    {REPLY_ERROR,
     "ERR READONLY",
     1,
     {.vote = NONE, .why = WHY_ERROR},
     {.vote = NONE, .why = WHY_ERROR}},
    {REPLY_ERROR,
     "OOM command not allowed",
     1,
     {.vote = NONE, .why = WHY_ERROR_MEMORY},
     {.vote = NONE, .why = WHY_ERROR_MEMORY}},
    {REPLY_ERROR,
     "BUSY Redis is busy running a script.",
     1,
     {.vote = NONE, .why = WHY_ERROR_BUSY},
     {.vote = NONE, .why = WHY_ERROR_BUSY}},
    {REPLY_ERROR,
     "MISCONF Errors writing to the AOF file",
     1,
     {.vote = NONE, .why = WHY_ERROR_DISK},
     {.vote = NONE, .why = WHY_ERROR_DISK}},
    {REPLY_ERROR,
     "NOPERM this user has no permissions",
     1,
     {.vote = NONE, .why = WHY_ERROR_RIGHT},
     {.vote = NONE, .why = WHY_ERROR_RIGHT}},
    {REPLY_ERROR,
     "MOVED 866 127.0.0.1:7002",
     1,
     {.vote = NONE, .why = WHY_ERROR_CLUSTER},
     {.vote = NONE, .why = WHY_ERROR_CLUSTER}},
    {REPLY_ERROR, "OK", 1, {.vote = NONE, .why = WHY_ERROR}, {.vote = NONE, .why = WHY_ERROR}},
    {REPLY_ERROR, "", 1, {.vote = NONE, .why = WHY_ERROR}, {.vote = NONE, .why = WHY_ERROR}},

    /* Errors inside a script, as reported by Redis up to version 6. */
    {REPLY_ERROR,
     "ERR Error running script (call to f_b998): @user_script:1: WRONGTYPE " WRONG_KIND,
     1,
     {.vote = NO, .why = WHY_ERROR_TYPE},
     {.vote = NO, .why = WHY_ERROR_TYPE}},
    {REPLY_ERROR,
     "ERR Error running script (call to f_b998): @user_script:1: @user_script: 1: -READONLY You "
     "can't write against a read only replica.",
     1,
     {.vote = NONE, .why = WHY_ERROR_REPLICA, .relink = true},
     {.vote = NONE, .why = WHY_ERROR_REPLICA, .relink = true}},
    {REPLY_ERROR,
     "ERR Error running script (call to f_b998): @user_script:1: user_script:1: attempt to call "
     "nil",
     1,
     {.vote = NONE, .why = WHY_ERROR},
     {.vote = NONE, .why = WHY_ERROR}},
};

static void check_vote(struct vote got, struct vote want)
{
    CHECK_INT(got.vote, want.vote);
    CHECK_INT(got.noscript, want.noscript);
    CHECK_INT(got.relink, want.relink);
    CHECK_INT(got.revoked, want.revoked);
    CHECK_INT(got.outdated, want.outdated);
    CHECK_INT(got.why, want.why);
    CHECK_UINT(got.counter, want.counter);
}

TEST(replies_are_counted)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256] = "OK"; /* From an earlier reply, if this one has no text. */
        struct reply reply = {.type = rows[i].type, .integer = rows[i].integer, .text = text};

        if (rows[i].text != NULL)
            snprintf(text, sizeof text, "%s", rows[i].text);
        reply.text_len = strlen(text);
        check_row = rows[i].text;
        check_vote(vote_read(QUORUM_CMD_SET, &reply), rows[i].set);
        check_vote(vote_read(QUORUM_CMD_EXTEND, &reply), rows[i].script);
        check_vote(vote_read(QUORUM_CMD_RELEASE, &reply), rows[i].script);
    }
}

/* The first reply of a connection may have no text. */
TEST(a_text_may_be_missing)
{
    struct reply nil = {.type = REPLY_NIL};
    struct reply one = {.type = REPLY_INTEGER, .integer = 1};

    CHECK_INT(vote_read(QUORUM_CMD_SET, &nil).vote, NO);
    CHECK_INT(vote_read(QUORUM_CMD_RELEASE, &nil).vote, NONE);
    CHECK_INT(vote_read(QUORUM_CMD_SET, &one).vote, NONE);
    CHECK_INT(vote_read(QUORUM_CMD_EXTEND, &one).vote, YES);
}

/* In reply to a count, any number from 1 that fits into a double is a yes. */
TEST(numbers_are_counted)
{
    static const struct {
        long long integer;
        struct vote vote;
    } numbers[] = {
        {0, {.vote = NO}},
        {1, {.vote = YES, .counter = 1}},
        {2, {.vote = YES, .counter = 2}},
        {1795240480123456, {.vote = YES, .counter = 1795240480123456}},
        {(1LL << 53) - 1, {.vote = YES, .counter = (UINT64_C(1) << 53) - 1}},
        {1LL << 53, {.vote = NONE, .relink = true}},
        {-1, {.vote = NONE, .outdated = true}}, /* The epoch or the version is another one. */
        {-2, {.vote = NONE, .relink = true}},
        {INT64_MIN, {.vote = NONE, .relink = true}},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct reply reply = {.type = REPLY_INTEGER, .integer = numbers[i].integer};

        check_vote(vote_read(QUORUM_CMD_RAISE, &reply), numbers[i].vote);
        if (numbers[i].vote.vote == YES)
            check_vote(vote_number(&reply), numbers[i].vote);
        else /* An operator wrote the counter.  A new connection does not help. */
            check_vote(vote_number(&reply), (struct vote){.vote = NONE});
    }
}

TEST(what_counts_and_fails_counts_nothing)
{
    char ok[] = "OK", wrong[] = "WRONGTYPE " WRONG_KIND, noscript[] = "NOSCRIPT No matching",
         ahead[] = "ERR the fencing counter is days ahead of the clock";
    struct reply reply = {.type = REPLY_STATUS, .text = ok, .text_len = 2, .integer = 7};

    check_vote(vote_read(QUORUM_CMD_FENCE, &reply), (struct vote){.vote = YES});
    check_vote(vote_read(QUORUM_CMD_RAISE, &reply), (struct vote){.vote = NONE, .relink = true});
    check_vote(vote_number(&reply), (struct vote){.vote = NONE, .relink = true});
    reply.type = REPLY_ERROR;
    reply.text = ahead;
    check_vote(vote_read(QUORUM_CMD_RAISE, &reply), (struct vote){.vote = NONE, .why = WHY_ERROR});
    check_vote(vote_number(&reply), (struct vote){.vote = NONE, .why = WHY_ERROR});
    reply.text = noscript;
    check_vote(vote_read(QUORUM_CMD_RAISE, &reply),
               (struct vote){.vote = NONE, .why = WHY_ERROR_SCRIPT, .noscript = true});
    reply.text = wrong; /* The name has the wrong type; in reply to a count, the marker has. */
    check_vote(vote_read(QUORUM_CMD_RAISE, &reply),
               (struct vote){.vote = NO, .why = WHY_ERROR_TYPE});
    check_vote(vote_number(&reply),
               (struct vote){.vote = NONE, .why = WHY_ERROR_TYPE, .relink = true});
}

TEST(a_text_that_revoked_the_lock_is_no)
{
    char revoked[] = "revoked by me", other[] = "revoked";
    struct reply reply = {.type = REPLY_TEXT, .text = revoked, .text_len = 13};

    CHECK_STR(vote_revoked(&reply), revoked);
    check_vote(vote_read(QUORUM_CMD_EXTEND, &reply), (struct vote){.vote = NO, .revoked = true});
    check_vote(vote_read(QUORUM_CMD_RELEASE, &reply), (struct vote){.vote = NONE, .relink = true});
    check_vote(vote_read(QUORUM_CMD_SET, &reply), (struct vote){.vote = NONE, .relink = true});
    reply.text = other;
    CHECK(vote_revoked(&reply) == NULL);
    check_vote(vote_read(QUORUM_CMD_EXTEND, &reply), (struct vote){.vote = NONE, .relink = true});
    reply.type = REPLY_STATUS;
    reply.text = revoked;
    CHECK(vote_revoked(&reply) == NULL);
}

CHECK_MAIN(RUN(a_text_that_revoked_the_lock_is_no), RUN(numbers_are_counted),
           RUN(what_counts_and_fails_counts_nothing), RUN(replies_are_counted),
           RUN(a_text_may_be_missing))
