/*
 * test-leave.c - which masters a fair lock takes its place from, and when.
 */
#include "test/lib/lines_scene.h"

#include <stdio.h>

/* Ask all masters for the fair lock "a". */
static struct redlock_lease *ask(bool may_stand)
{
    struct redlock_lease *lease;

    stands = may_stand;
    lease = lock(KIND_FAIR);
    CHECK_UINT(sent_len, MASTERS);
    return lease;
}

/* A master answers the heartbeat. */
static void answer(unsigned master, struct reply reply)
{
    const struct ask ask = sent[master].ask;

    CHECK(sent[master].master == master && ask.what == QUORUM_CMD_SET);
    leases_on_answer(&leases, master, &ask, &reply);
}

static void answer_ok(unsigned master)
{
    char ok[] = "OK";

    answer(master, (struct reply){.type = REPLY_STATUS, .text = ok, .text_len = 2});
}

static struct redlock_lease *wait_in_line(void)
{
    struct redlock_lease *lease = ask(false);

    for (unsigned m = 0; m < MASTERS; m++)
        answer(m, (struct reply){.type = REPLY_INTEGER, .integer = 2});
    CHECK_INT(lease->q.state, QUORUM_PAUSING);
    return lease;
}

/* The second master is removed from the set, and its link stays for a while. */
static void remove_the_second(void)
{
    masters.peers.members = (struct members){5, 5};
    leases_on_set(&leases, 0, 0);
}

/* How often this master was told to take the waiter out, since that command. */
static unsigned leaves(const struct redlock_lease *lease, unsigned master, unsigned from)
{
    const struct place *place = lease_extra(lease);
    char text[TEXT_MAX];
    unsigned found = 0;

    (void)snprintf(text, sizeof text, "ZREM redlock:queue:a %s -%s", place->waiter, place->waiter);
    for (unsigned i = from; i < sent_len; i++)
        found += sent[i].master == master && strcmp(sent[i].text, text) == 0;
    return found;
}

TEST(a_waiter_leaves_a_master_that_was_removed)
{
    struct redlock_lease *lease;
    unsigned before;

    begin();
    lease = wait_in_line();
    before = sent_len;
    remove_the_second();
    CHECK_UINT(leaves(lease, 1, before), 1);
    CHECK_UINT(sent_len, before + 1); /* It stays in line at the members. */
    leases_on_set(&leases, 0, 0);
    CHECK_UINT(sent_len, before + 1);
    end();
}

TEST(a_removed_master_that_was_away_is_left_when_it_is_back)
{
    for (unsigned had_no_room = 0; had_no_room < 2; had_no_room++) {
        struct redlock_lease *lease;
        unsigned before;

        begin();
        lease = wait_in_line();
        before = sent_len;
        masters.peers.up = 5;
        remove_the_second();
        leases_on_change(&leases, 1);
        CHECK_UINT(sent_len, before);
        masters.peers.up = 7;
        if (had_no_room)
            leases_on_room(&leases, 1);
        else
            leases_on_change(&leases, 1);
        CHECK_UINT(leaves(lease, 1, before), 1);
        CHECK_UINT(sent_len, before + 1);
        CHECK_INT(lease->q.state, QUORUM_PAUSING);
        end();
    }
}

/* A token stands, so masters that granted the lock keep the place until the release. */
TEST(a_holder_leaves_a_master_that_was_removed)
{
    for (unsigned may_stand = 0; may_stand < 2; may_stand++) {
        struct redlock_lease *lease;
        unsigned before;

        begin();
        lease = ask(may_stand != 0);
        masters.peers.up = may_stand != 0 ? 7 : 5;
        if (may_stand != 0)
            answer_ok(1);
        answer_ok(0);
        answer_ok(2);
        CHECK_INT(lease->q.state, QUORUM_HELD);
        CHECK_UINT(leaves(lease, 1, 0), 0);
        masters.peers.up = 7;
        before = sent_len;
        remove_the_second();
        CHECK_UINT(leaves(lease, 1, before), 1);
        CHECK_UINT(leaves(lease, 0, before) + leaves(lease, 2, before), 0);
        end();
    }
}

/* The script in full puts the waiter into the queue, after it has left. */
TEST(a_removed_master_that_lacked_the_script_is_left_again)
{
    char noscript[] = "NOSCRIPT No matching script.";
    struct redlock_lease *lease;
    unsigned before;

    begin();
    lease = ask(false);
    remove_the_second();
    before = sent_len;
    answer(1,
           (struct reply){.type = REPLY_ERROR, .text = noscript, .text_len = sizeof noscript - 1});
    CHECK_UINT(sent_len, before + 2);
    CHECK_INT(sent[before].ask.what, QUORUM_CMD_SET);
    CHECK_INT(leaves(lease, 1, before + 1), 1);
    end();
}

/* A waiter has no place where it never asked. */
TEST(a_master_that_was_not_asked_is_not_left)
{
    struct redlock_lease *lease;
    struct quorum_event event = {.type = QUORUM_EV_CANCEL};

    begin();
    lease = wait_in_line();
    place_on_left(lease_extra(lease), 2); /* The number belongs to another master. */
    lease_step(lease, &event);
    CHECK_UINT(leaves(lease, 0, 0) + leaves(lease, 2, 0), 2);
    CHECK_UINT(leaves(lease, 1, 0), 0);
    end();
}

CHECK_MAIN(RUN(a_waiter_leaves_a_master_that_was_removed),
           RUN(a_removed_master_that_was_away_is_left_when_it_is_back),
           RUN(a_holder_leaves_a_master_that_was_removed),
           RUN(a_removed_master_that_lacked_the_script_is_left_again),
           RUN(a_master_that_was_not_asked_is_not_left))
