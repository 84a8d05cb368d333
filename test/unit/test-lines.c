/*
 * test-lines.c - which commands follow from what masters announce to waiters without a queue.
 */
#include "test/lib/lines_scene.h"

static struct redlock_lease *wait_for_it(void)
{
    struct redlock_lease *lease = lock(KIND_PLAIN);

    answer_all(REPLY_NIL, 0, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    return lease;
}

TEST(a_waiter_listens_to_all_and_to_its_group)
{
    begin();
    wait_for_it();
    CHECK_UINT(subscriptions("SUBSCRIBE " CHANNEL), 2 * MASTERS);
    CHECK_UINT(subscriptions("SUBSCRIBE " GROUP), MASTERS);
    end();
}

TEST(who_waits_for_a_permit_is_in_no_group)
{
    struct redlock_lease *lease;

    begin();
    lease = lock(KIND_PERMIT);
    answer_all(REPLY_INTEGER, 0, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    CHECK_UINT(subscriptions("SUBSCRIBE "), MASTERS);
    end();
}

TEST(the_last_waiter_of_a_crowd_leaves_its_group)
{
    struct redlock_lease *first, *last;

    begin();
    first = wait_for_it();
    last = wait_for_it();
    tell_group(0, "free 4");
    step(first, QUORUM_EV_CANCEL);
    CHECK_UINT(subscriptions("UNSUBSCRIBE"), 0);
    step(last, QUORUM_EV_CANCEL);
    CHECK_UINT(subscriptions("UNSUBSCRIBE " GROUP), MASTERS);
    CHECK_UINT(subscriptions("UNSUBSCRIBE"), MASTERS);
    wait_for_it();
    CHECK_UINT(subscriptions("SUBSCRIBE " GROUP), 3 * MASTERS);
    end();
}

TEST(without_a_crowd_a_client_stays_in_its_group_until_that_is_told)
{
    begin();
    step(wait_for_it(), QUORUM_EV_CANCEL);
    CHECK_UINT(subscriptions("UNSUBSCRIBE " GROUP), MASTERS); /* It has heard of no release. */
    said_len = 0;
    tell_all(0, "free 2");
    step(wait_for_it(), QUORUM_EV_CANCEL);
    tell_all(0, "free 2");
    CHECK_UINT(subscriptions("UNSUBSCRIBE"), 0);
    tell_group(0, "taken 9000");
    CHECK_UINT(subscriptions("UNSUBSCRIBE " GROUP), MASTERS);
    end();
}

/* A waiter that knows who has the lock wins a round.  It announces itself with one query. */
static struct redlock_lease *win(void)
{
    struct redlock_lease *lease = wait_for_it();
    unsigned from;

    for (unsigned m = 0; m < MASTERS; m++)
        push(m, "subscribe", 9, CHANNEL);
    ring();
    answer_all(REPLY_INTEGER, 9000, "");
    lease_wake(lease, 0);
    from = sent_len;
    answer_all(REPLY_STATUS, 0, "OK");
    CHECK_INT(lease->q.state, QUORUM_HELD);
    ring();
    CHECK_UINT(sent_len, from + 1);
    CHECK_UINT(count(sent, sent_len, from, " taken"), 1);
    return lease;
}

/* Two tokens have the same third digit by chance, but not many. */
TEST(a_holder_tells_its_group_and_the_one_that_its_release_wakes)
{
    unsigned differs = 0;

    for (unsigned i = 0; i < 8; i++) {
        char groups[16];
        struct redlock_lease *lease;

        begin();
        leases.tokens.bytes[0] = (unsigned char)i;
        lease = win();
        (void)snprintf(groups, sizeof groups, " taken %c%c", channel_group(channel()),
                       lease_token(lease)[2]);
        CHECK_HAS(sent[sent_len - 1].text, groups);
        differs += lease_token(lease)[2] != lease_token(lease)[3];
        end();
    }
    CHECK(differs > 0);
}

TEST(who_knows_that_there_is_no_crowd_names_no_groups)
{
    const char *text;

    begin();
    wait_for_it();
    tell_all(0, "free 2");
    step(leases.slots[0], QUORUM_EV_CANCEL);
    (void)win();
    text = sent[sent_len - 1].text;
    CHECK_STR(text + strlen(text) - strlen(" taken"), " taken");
    end();
}

TEST(a_master_that_lacks_the_script_gets_the_same_query_in_full)
{
    unsigned from;

    begin();
    (void)win();
    from = sent_len;
    answer_all(REPLY_ERROR, 0, "NOSCRIPT No matching script");
    CHECK_UINT(count(sent, sent_len, from, "EVAL 2 a " CHANNEL), 1);
    CHECK_UINT(count(sent, sent_len, from, " taken"), 1);
    CHECK_UINT(sent[from].master, sent[from - 1].master);
    answer_all(REPLY_ERROR, 0, "NOSCRIPT No matching script"); /* It is asked only once more. */
    CHECK_UINT(sent_len, from + 1);
    end();
}

TEST(a_waiter_asks_again_for_both_channels_that_were_refused)
{
    struct redlock_lease *lease;

    begin();
    lease = wait_for_it();
    push(0, "subscribe", strlen("subscribe"), CHANNEL);
    push(2, "subscribe", strlen("subscribe"), CHANNEL);
    refuse_subscription(1);
    said_len = 0;
    lease_wake(lease, 0);
    answer_all(REPLY_NIL, 0, "");
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    CHECK(said_len > 0);
    CHECK_UINT(subscriptions("SUBSCRIBE " GROUP) * 2, said_len);
    for (unsigned i = 0; i < said_len; i++)
        CHECK_UINT(said[i].master, 1);
    end();
}

TEST(a_link_that_comes_back_listens_to_all_and_to_its_group)
{
    begin();
    wait_for_it();
    said_len = 0;
    lines.channels.listener.events->on_link(&lines, 1, false);
    lines.channels.listener.events->on_link(&lines, 1, true);
    CHECK_UINT(said_len, 2);
    CHECK_HAS(said[0].text, "SUBSCRIBE " GROUP); /* First: a query follows the other. */
    CHECK_STR(said[1].text, "SUBSCRIBE " CHANNEL);
    CHECK_UINT(said[0].master, 1);
    CHECK_UINT(said[1].master, 1);
    end();
}

/* It gives up during its round, so no alarm is set. */
TEST(who_gives_up_leaves_its_turn_to_the_next)
{
    struct redlock_lease *first;
    unsigned from;

    begin();
    first = wait_for_it();
    wait_for_it();
    for (unsigned m = 0; m < MASTERS; m++)
        push(m, "subscribe", strlen("subscribe"), CHANNEL);
    ring();
    answer_all(REPLY_INTEGER, 9000, "");
    for (unsigned m = 0; m < MASTERS; m++)
        tell_all(m, "free 2");
    ring();
    CHECK_INT(first->q.state, QUORUM_ACQUIRING);
    from = sent_len;
    step(first, QUORUM_EV_CANCEL);
    ring();
    CHECK(count(sent, sent_len, from, " 2 a " CHANNEL) > 0); /* Who holds it now? */
    end();
}

CHECK_MAIN(RUN(a_waiter_listens_to_all_and_to_its_group),
           RUN(who_waits_for_a_permit_is_in_no_group),
           RUN(the_last_waiter_of_a_crowd_leaves_its_group),
           RUN(without_a_crowd_a_client_stays_in_its_group_until_that_is_told),
           RUN(a_holder_tells_its_group_and_the_one_that_its_release_wakes),
           RUN(who_knows_that_there_is_no_crowd_names_no_groups),
           RUN(a_master_that_lacks_the_script_gets_the_same_query_in_full),
           RUN(a_waiter_asks_again_for_both_channels_that_were_refused),
           RUN(a_link_that_comes_back_listens_to_all_and_to_its_group),
           RUN(who_gives_up_leaves_its_turn_to_the_next))
