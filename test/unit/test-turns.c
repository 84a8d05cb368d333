/*
 * test-turns.c - which commands follow from what masters announce to waiters in their queue.
 */
#include "test/lib/lines_scene.h"

/* A waiter that each master has at this place. */
static struct redlock_lease *queue_up(unsigned number)
{
    struct redlock_lease *lease = lock(KIND_FAIR);

    answer_all(REPLY_INTEGER, number, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    ring();
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    return lease;
}

static void tell_turn(unsigned master, const struct redlock_lease *lease)
{
    const struct place *place = lease_extra(lease);
    char text[64];

    (void)snprintf(text, sizeof text, "next %s", place->waiter);
    tell_own(master, text);
}

TEST(a_majority_that_tells_a_turn_wakes_that_waiter)
{
    struct redlock_lease *first, *second;

    begin();
    first = queue_up(2);
    second = queue_up(3);
    sent_len = 0;
    tell_turn(0, second);
    CHECK_UINT(sent_len, 0);
    tell_turn(2, second);
    CHECK_UINT(asked(first, 0), 0);
    CHECK_UINT(asked(second, 0), MASTERS);
    end();
}

TEST(a_turn_told_during_a_round_is_tried_after_it)
{
    struct redlock_lease *lease;

    begin();
    lease = queue_up(2);
    lease_wake(lease, 0);
    CHECK_INT(lease->q.state, QUORUM_ACQUIRING);
    tell_turn(0, lease);
    tell_turn(1, lease);
    answer_all(REPLY_INTEGER, 2, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    ring();
    CHECK_INT(lease->q.state, QUORUM_ACQUIRING);
    end();
}

static void confirm_own(unsigned master)
{
    push(master, "subscribe", strlen("subscribe"), lines.channels.own);
}

/* What masters told before they confirmed is lost. */
TEST(a_confirmed_subscription_counts_as_a_turn_of_the_first)
{
    struct redlock_lease *leases_in_order[3];

    for (unsigned first = 0; first < 3; first++) {
        begin();
        for (unsigned i = 0; i < 3; i++)
            leases_in_order[i] = queue_up(2 + (i + 3 - first) % 3);
        sent_len = 0;
        confirm_own(0);
        ring();
        CHECK_UINT(sent_len, 0);
        confirm_own(1);
        ring();
        for (unsigned i = 0; i < 3; i++)
            CHECK_UINT(asked(leases_in_order[i], 0), i == first ? MASTERS : 0);
        end();
    }
}

/* The masters may have executed its round nevertheless. */
TEST(a_waiter_that_no_master_answered_hears_its_turn)
{
    struct redlock_lease *lease;

    begin();
    lease = lock(KIND_FAIR);
    masters.peers.up = 0;
    for (unsigned m = 0; m < MASTERS; m++)
        leases_on_change(&leases, m);
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    CHECK_UINT(subscriptions("SUBSCRIBE " WIRE_CLIENT), MASTERS);
    masters.peers.up = 7;
    for (unsigned m = 0; m < MASTERS; m++)
        leases_on_change(&leases, m);
    answer_all(REPLY_INTEGER, 1, ""); /* The keys are released. */
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    sent_len = 0;
    tell_turn(0, lease);
    CHECK_UINT(sent_len, 0);
    tell_turn(1, lease);
    CHECK_UINT(asked(lease, 0), MASTERS);
    end();
}

TEST(a_waiter_in_the_queue_asks_again_for_channels_that_were_refused)
{
    struct redlock_lease *lease;

    begin();
    lease = queue_up(2);
    CHECK_UINT(subscriptions("SUBSCRIBE " WIRE_CLIENT), MASTERS);
    for (unsigned m = 0; m < MASTERS; m++) {
        push(m, "subscribe", strlen("subscribe"), CHANNEL);
        if (m != 1)
            confirm_own(m);
    }
    refuse_subscription(1);
    said_len = 0;
    lease_wake(lease, 0);
    answer_all(REPLY_INTEGER, 2, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    CHECK(said_len > 0);
    for (unsigned i = 0; i < said_len; i++) {
        CHECK_UINT(said[i].master, 1);
        CHECK_HAS(said[i].text, "SUBSCRIBE " WIRE_CLIENT);
    }
    end();
}

/* The master says that it passed the lock on to this waiter: to the token that waits there, or to a
 * dead one. */
static void grant_sent_at(drift_time at, unsigned master, const struct redlock_lease *lease,
                          bool is_dead)
{
    const struct place *place = lease_extra(lease);
    char text[256];

    (void)snprintf(text, sizeof text, "granted %s %" PRIu64 " 1.0 %s%s", place->waiter,
                   (uint64_t)at, lease_token(lease), is_dead ? "0" : "");
    tell_own(master, text);
}

static void grant(unsigned master, const struct redlock_lease *lease, bool is_dead)
{
    grant_sent_at(lease->q.sent, master, lease, is_dead);
}

/* A lease whose token waits at all masters. */
static struct redlock_lease *stand(void)
{
    struct redlock_lease *lease;

    stands = true;
    lease = lock(KIND_FAIR);
    answer_all(REPLY_INTEGER, 2, "");
    ring(); /* The next heartbeat carries the ticket, so the token waits. */
    answer_all(REPLY_INTEGER, 2, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    stands = false;
    return lease;
}

/* What is wrong with a vote that was passed on. */
enum flaw { FLAW_NONE, FLAW_DEAD, FLAW_DOWN, FLAW_CLOCK, FLAWS };

TEST(a_lock_is_passed_on_by_masters_that_are_up_and_count_for_the_token_that_waits)
{
    struct redlock_lease *lease;

    for (unsigned flaw = FLAW_NONE; flaw < FLAWS; flaw++) {
        begin();
        lease = stand();
        masters.peers.up = flaw == FLAW_DOWN ? 6 : 7;
        masters_double_uncounted = flaw == FLAW_CLOCK ? 1 : 0;
        grant(0, lease, flaw == FLAW_DEAD);
        masters.peers.up = 7;
        masters_double_uncounted = 0;
        grant(1, lease, false);
        CHECK_INT(lease->q.state, flaw == FLAW_NONE ? QUORUM_HELD : QUORUM_PAUSING);
        grant(2, lease, false);
        CHECK_INT(lease->q.state, QUORUM_HELD);
        end();
    }
}

/* The messages are late, and name the heartbeat that each master answered.  Another one followed.
 */
TEST(a_vote_that_was_passed_on_counts_from_the_heartbeat_that_it_names)
{
    struct redlock_lease *lease;
    drift_time first;

    begin();
    lease = stand();
    first = lease->q.sent;
    now += DRIFT_MS;
    lease_wake(lease, 0);
    answer_all(REPLY_INTEGER, 2, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    CHECK_UINT(lease->q.sent, first + DRIFT_MS);
    now += DRIFT_MS;
    grant_sent_at(first, 0, lease, false);
    grant_sent_at(first, 1, lease, false);
    CHECK_INT(lease->q.state, QUORUM_HELD);
    CHECK_UINT(lease->q.deadline, first + lease->q.config.lease);
    end();
}

/* The token was given back just before, and no other message tells the turn. */
TEST(a_vote_for_a_dead_token_tells_a_turn)
{
    struct redlock_lease *lease;

    begin();
    lease = queue_up(2);
    sent_len = 0;
    grant(0, lease, true);
    CHECK_UINT(sent_len, 0);
    grant(2, lease, true);
    CHECK_UINT(asked(lease, 0), MASTERS);
    end();
}

/* Answer what this master was asked last. */
static void answer(unsigned master, enum reply_type type, long long integer, const char *text)
{
    const struct reply reply = {.type = type,
                                .integer = integer,
                                .text = (char *)(uintptr_t)text,
                                .text_len = strlen(text)};
    struct sent *last = NULL;

    for (unsigned i = 0; i < sent_len; i++)
        if (sent[i].master == master && !sent[i].is_answered && sent[i].ask.what != WHAT_LEAVE)
            last = &sent[i];
    CHECK(last != NULL);
    last->is_answered = true;
    leases_on_answer(&leases, master, &last->ask, &reply);
}

/* Only its own client knows that the waiter is in the queue there: no release follows. */
TEST(a_holder_leaves_the_queue_of_a_master_that_got_its_vote_back)
{
    struct redlock_lease *lease;
    unsigned from;

    begin();
    stands = true;
    lease = lock(KIND_FAIR);
    stands = false;
    answer(0, REPLY_STATUS, 0, "OK");
    answer(1, REPLY_INTEGER, 2, "");
    answer(2, REPLY_INTEGER, 2, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    ring(); /* The first master has not confirmed its release yet, so it is not asked. */
    CHECK_INT(lease->q.state, QUORUM_ACQUIRING);
    from = sent_len;
    answer(1, REPLY_STATUS, 0, "OK");
    answer(2, REPLY_STATUS, 0, "OK");
    CHECK_INT(lease->q.state, QUORUM_HELD);
    CHECK_UINT(count(sent, sent_len, from, "ZREM"), 1);
    CHECK_UINT(sent[from].master, 0);
    end();
}

CHECK_MAIN(RUN(a_majority_that_tells_a_turn_wakes_that_waiter),
           RUN(a_turn_told_during_a_round_is_tried_after_it),
           RUN(a_confirmed_subscription_counts_as_a_turn_of_the_first),
           RUN(a_waiter_that_no_master_answered_hears_its_turn),
           RUN(a_waiter_in_the_queue_asks_again_for_channels_that_were_refused),
           RUN(a_lock_is_passed_on_by_masters_that_are_up_and_count_for_the_token_that_waits),
           RUN(a_vote_that_was_passed_on_counts_from_the_heartbeat_that_it_names),
           RUN(a_vote_for_a_dead_token_tells_a_turn),
           RUN(a_holder_leaves_the_queue_of_a_master_that_got_its_vote_back))
