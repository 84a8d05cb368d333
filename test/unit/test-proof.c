/*
 * test-proof.c - which votes count by the field that follows them.
 *
 * The functions of links and of the guards, and the clock, are those below.
 */
#include "redlock/masters/proof.h"

#include <string.h>

#include "redlock/io/loop.h"
#include "redlock/masters/clocks.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/standing.h"
#include "redlock/wire/reply.h"
#include "test/lib/check.h"

#define EPOCH "00000000000000aa"

static struct env env;
static struct peers peers;
static struct standing standing;
static struct proof proof;
static char link_of_one;
static drift_time now;
static uint64_t version; /* Of this client. */
static unsigned reads, looks, relinks;
static enum quorum_vote got[8];
static bool has_place;  /* The latest vote told a place in a queue. */
static bool is_refused; /* The latest vote says that the master refuses this user. */
static unsigned got_len;

/* ---- What the shell calls ---- */

static drift_time read_now(const struct loop *loop)
{
    (void)loop;
    return now;
}

static const struct loop_ops ops = {.now = read_now};
static struct loop loop = {.ops = &ops};

void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len)
{
    (void)link, (void)command, (void)command_len;
    CHECK_UINT(ask->what, WHAT_PROOF);
    reads++;
}

void link_note(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
}

void link_relink(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
    relinks++;
}

void clocks_ask(struct clocks *clocks, unsigned master)
{
    (void)clocks, (void)master;
}

void standing_look_again(struct standing *s, unsigned master)
{
    (void)s, (void)master;
    looks++;
}

uint64_t standing_version(const struct standing *s)
{
    (void)s;
    return version;
}

static void on_vote(void *cookie, unsigned master, const struct ask *ask, const struct vote *vote)
{
    (void)cookie, (void)master, (void)ask;
    CHECK(got_len < sizeof got / sizeof *got);
    got[got_len++] = vote->vote;
    has_place = vote->is_queued;
    is_refused = vote->why == WHY_ERROR_RIGHT;
}

/* ---- Steps of the tests ---- */

static void begin(void)
{
    proof_done(&proof);
    alarm_done(&env.alarms);
    memset(&env, 0, sizeof env);
    memset(&peers, 0, sizeof peers);
    memset(&standing, 0, sizeof standing);
    env.loop = &loop;
    peers.env = &env;
    peers.len = 1;
    peers.up = 1;
    peers.restart_guard = true;
    peers.links[0] = (struct link *)(void *)&link_of_one;
    proof = (struct proof){.peers = &peers, .standing = &standing, .on_vote = on_vote};
    CHECK_INT(proof_init(&proof), 0);
    standing.guard.masters[0].look = (struct guard_look){.ready = true, .number = 0xaa};
    memcpy(standing.states[0], EPOCH ".1", sizeof EPOCH ".1");
    version = 1;
    now = 1000 * DRIFT_S;
    reads = looks = relinks = got_len = 0;
}

static void say_yes(enum quorum_command command)
{
    const struct ask ask = {.what = (uint8_t)command};
    const struct vote vote = {.vote = QUORUM_VOTE_YES};

    CHECK(proof_hold(&proof, 0, &ask, &vote));
    if (command == QUORUM_CMD_FENCE) {
        const struct ask count = {.what = WHAT_COUNT};
        const struct reply reply = {.type = REPLY_INTEGER, .integer = 7};

        standing.guard.masters[0].look.high = 100;
        proof_on_count(&proof, 0, &count, &reply);
    }
}

static void show(const char *state)
{
    char text[64];
    struct reply reply = {.type = REPLY_TEXT, .text = text, .text_len = strlen(state)};

    memcpy(text, state, reply.text_len + 1);
    proof_on_answer(&proof, 0, &reply);
}

static void check_votes(unsigned len, enum quorum_vote first, enum quorum_vote second)
{
    CHECK_UINT(got_len, len);
    CHECK(len < 1 || got[0] == first);
    CHECK(len < 2 || got[1] == second);
    got_len = 0;
}

/* ---- Tests ---- */

TEST(a_vote_of_the_known_version_counts)
{
    begin();
    say_yes(QUORUM_CMD_SET);
    say_yes(QUORUM_CMD_EXTEND);
    check_votes(0, 0, 0);
    show(EPOCH ".1");
    check_votes(2, QUORUM_VOTE_YES, QUORUM_VOTE_YES);
    CHECK_UINT(looks, 0);
}

TEST(a_vote_of_a_newer_version_waits_for_the_marker)
{
    for (unsigned learns = 0; learns < 2; learns++) {
        begin();
        say_yes(QUORUM_CMD_SET);
        say_yes(QUORUM_CMD_EXTEND);
        show(EPOCH ".3");
        check_votes(0, 0, 0);
        CHECK_UINT(looks, 1);
        version = learns ? 3 : 2;
        proof_on_look(&proof, 0);
        if (learns)
            check_votes(2, QUORUM_VOTE_YES, QUORUM_VOTE_YES);
        else
            check_votes(2, QUORUM_VOTE_VOID, QUORUM_VOTE_NONE);
        proof_on_look(&proof, 0);
        CHECK_UINT(got_len, 0);
        CHECK_UINT(relinks, 0);
    }
}

/* A waiter that slept over a change asks former members, whose queues are empty.  Their places
 * would bring it before those that wait at the members. */
TEST(a_place_in_the_queue_of_a_former_member_does_not_count)
{
    static const struct ask ask = {.what = QUORUM_CMD_SET};
    static const struct vote vote = {.vote = QUORUM_VOTE_NO, .is_queued = true, .number = 1};

    for (unsigned learns = 0; learns < 2; learns++) {
        begin();
        CHECK(proof_hold(&proof, 0, &ask, &vote));
        show(EPOCH ".3");
        check_votes(0, 0, 0);
        version = learns ? 3 : 2;
        proof_on_look(&proof, 0);
        check_votes(1, QUORUM_VOTE_NO, 0);
        CHECK_INT(has_place, learns);
    }
    begin();
    CHECK(proof_hold(&proof, 0, &ask, &vote));
    show(EPOCH ".1");
    check_votes(1, QUORUM_VOTE_NO, 0);
    CHECK(has_place);
}

/* A heartbeat of a fenced lock is counted, too.  A count behind a place makes no yes of it. */
TEST(a_place_with_a_count_is_no_yes)
{
    static const struct ask ask = {.what = QUORUM_CMD_FENCE}, count = {.what = WHAT_COUNT};
    static const struct vote vote = {.vote = QUORUM_VOTE_NO, .is_queued = true, .number = 1};
    static const struct reply reply = {.type = REPLY_INTEGER, .integer = 7};

    for (unsigned learnt = 0; learnt < 2; learnt++) {
        begin();
        standing.guard.masters[0].look.high = 100;
        version = learnt ? 3 : 1; /* From another master.  The numbers here may not be known. */
        CHECK(proof_hold(&proof, 0, &ask, &vote));
        proof_on_count(&proof, 0, &count, &reply);
        show(learnt ? EPOCH ".3" : EPOCH ".1");
        check_votes(1, QUORUM_VOTE_NO, 0);
        CHECK(has_place);
        CHECK_UINT(looks, learnt);
    }
}

/* The user may set the name, and may not count.  The next count of the same token may be allowed.
 */
TEST(a_count_that_is_forbidden_makes_a_refusal_of_the_vote)
{
    static const struct ask ask = {.what = QUORUM_CMD_FENCE}, count = {.what = WHAT_COUNT};
    static const struct vote vote = {.vote = QUORUM_VOTE_YES};
    char text[] = "NOPERM this user has no permissions to run the 'hincrby' command";
    const struct reply reply = {.type = REPLY_ERROR, .text = text};

    begin();
    CHECK(proof_hold(&proof, 0, &ask, &vote));
    proof_on_count(&proof, 0, &count, &reply);
    show(EPOCH ".1");
    check_votes(1, QUORUM_VOTE_VOID, 0);
    CHECK(is_refused);
    say_yes(QUORUM_CMD_FENCE);
    show(EPOCH ".1");
    check_votes(1, QUORUM_VOTE_YES, 0);
    CHECK(!is_refused);
}

/* What another master told in the meantime does not change the order. */
TEST(votes_behind_one_that_waits_wait_as_well)
{
    begin();
    say_yes(QUORUM_CMD_SET);
    show(EPOCH ".2");
    version = 2;
    say_yes(QUORUM_CMD_EXTEND);
    show(EPOCH ".2");
    check_votes(0, 0, 0);
    say_yes(QUORUM_CMD_EXTEND); /* Not proved yet. */
    proof_on_look(&proof, 0);
    check_votes(2, QUORUM_VOTE_YES, QUORUM_VOTE_YES);
    memcpy(standing.states[0], EPOCH ".2", sizeof EPOCH ".2");
    show(EPOCH ".2");
    check_votes(1, QUORUM_VOTE_YES, 0);
}

/* A floor that was there in between may be gone from the text. */
TEST(a_count_needs_the_version_of_the_latest_look)
{
    begin();
    version = 3;
    say_yes(QUORUM_CMD_SET);
    say_yes(QUORUM_CMD_FENCE);
    show(EPOCH ".3");
    check_votes(2, QUORUM_VOTE_YES, QUORUM_VOTE_VOID);
    CHECK_UINT(looks, 1);
    say_yes(QUORUM_CMD_FENCE);
    show(EPOCH ".3.500");
    proof_on_look(&proof, 0);
    check_votes(1, QUORUM_VOTE_VOID, 0);
    memcpy(standing.states[0], EPOCH ".3.500", sizeof EPOCH ".3.500");
    say_yes(QUORUM_CMD_FENCE);
    show(EPOCH ".3.500");
    check_votes(1, QUORUM_VOTE_YES, 0);
}

/* The number was computed with the floor before.  A SET without a count has none. */
TEST(a_query_between_a_count_and_its_proof_spoils_the_number)
{
    begin();
    say_yes(QUORUM_CMD_FENCE);
    say_yes(QUORUM_CMD_SET);
    proof_on_state(&proof, 0);
    memcpy(standing.states[0], EPOCH ".1.500", sizeof EPOCH ".1.500");
    proof_on_look(&proof, 0);
    show(EPOCH ".1.500");
    check_votes(2, QUORUM_VOTE_VOID, QUORUM_VOTE_YES);
}

/* A proof asked for that query.  The number behind it was counted before the query, too. */
TEST(a_query_that_a_proof_asked_for_spoils_the_numbers_behind_it)
{
    static const char *const texts[] = {EPOCH ".1.500", EPOCH ".3.500", EPOCH ".3"};

    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (unsigned known = 1; known <= 3; known += 2) {
            begin();
            version = known; /* From another master, if it is 3. */
            say_yes(QUORUM_CMD_FENCE);
            show(texts[i]);
            CHECK_UINT(looks, 1);
            say_yes(QUORUM_CMD_FENCE);
            proof_on_state(&proof, 0);
            memcpy(standing.states[0], texts[i], strlen(texts[i]) + 1);
            version = 3;
            proof_on_look(&proof, 0);
            show(texts[i]);
            check_votes(2, QUORUM_VOTE_VOID, QUORUM_VOTE_VOID);
        }
    }
}

TEST(another_epoch_is_a_loss_of_data)
{
    begin();
    say_yes(QUORUM_CMD_SET);
    show("00000000000000ab.1");
    CHECK_UINT(relinks, 1);
    check_votes(0, 0, 0);
    proof_forget(&proof, 0);
    proof_on_look(&proof, 0);
    check_votes(0, 0, 0);
}

TEST(a_master_that_proved_nothing_for_a_second_is_asked)
{
    begin();
    proof_on_change(&proof);
    CHECK_UINT(alarm_next(&env.alarms), now + DRIFT_S);
    CHECK(alarm_ring(&env.alarms, now + DRIFT_S) == &proof.alarm);
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 1);
    proof_want(&proof, QUORUM_CMD_SET, 1);
    proof_ask(&proof, 0);
    CHECK_UINT(reads, 2);
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 2);
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 3);
    peers.up = 0;
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 3);
}

/* With the guard per vote a vote waits for the TIME that follows its proof.  A read without TIME,
 * and a query behind it, would let go of the vote before. */
TEST(a_master_that_gets_a_proof_anyway_is_sent_no_other)
{
    begin();
    peers.clock_guard = REDLOCK_CLOCK_GUARD_PER_VOTE;
    proof_on_change(&proof);
    CHECK(alarm_ring(&env.alarms, now + DRIFT_S) == &proof.alarm);
    proof_want(&proof, QUORUM_CMD_SET, 1);
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 0);
    proof_ask(&proof, 0);
    CHECK_UINT(reads, 1);
    proof_on_alarm(&proof); /* It has shown one. */
    CHECK_UINT(reads, 1);
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 2);
}

/* One of them may be all that is left of its version. */
TEST(without_a_majority_each_master_with_an_epoch_is_asked)
{
    begin();
    peers.up = 0;
    proof_on_change(&proof);
    CHECK_UINT(alarm_next(&env.alarms), DRIFT_NEVER);
    standing.guard.told = 1;
    proof_on_change(&proof);
    CHECK(alarm_ring(&env.alarms, now + DRIFT_S) == &proof.alarm);
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 1);
    version = 1;
    show(EPOCH ".2");
    CHECK_UINT(looks, 1);
    proof_on_alarm(&proof);
    peers.full = 1;
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 1);
    peers.full = 0;
    standing.guard.open = true; /* It is a twin, or another set's. */
    proof_on_alarm(&proof);
    CHECK_UINT(reads, 1);
}

CHECK_MAIN(RUN(a_vote_of_the_known_version_counts),
           RUN(a_vote_of_a_newer_version_waits_for_the_marker),
           RUN(a_place_in_the_queue_of_a_former_member_does_not_count),
           RUN(a_place_with_a_count_is_no_yes),
           RUN(a_count_that_is_forbidden_makes_a_refusal_of_the_vote),
           RUN(votes_behind_one_that_waits_wait_as_well),
           RUN(a_count_needs_the_version_of_the_latest_look),
           RUN(a_query_between_a_count_and_its_proof_spoils_the_number),
           RUN(a_query_that_a_proof_asked_for_spoils_the_numbers_behind_it),
           RUN(another_epoch_is_a_loss_of_data),
           RUN(a_master_that_proved_nothing_for_a_second_is_asked),
           RUN(a_master_that_gets_a_proof_anyway_is_sent_no_other),
           RUN(without_a_majority_each_master_with_an_epoch_is_asked))
