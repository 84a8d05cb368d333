/*
 * test-leave.c - which masters a fair lock takes its place from, and when.
 *
 * The masters and the clock are doubles (masters_double.c).  All else is the library.
 */
#include "test/lib/check.h"

#include <stdio.h>

#include "redlock/core/place.h"
#include "redlock/lease/lease.h"
#include "redlock/lease/table.h"
#include "redlock/line/listener.h"
#include "test/lib/masters_double.h"

#define MASTERS 3
#define SENT_MAX 64
#define TEXT_MAX 512

/* A command, without the text of its script. */
struct sent {
    unsigned master;
    struct ask ask;
    char text[TEXT_MAX];
};

static struct sent sent[SENT_MAX];
static unsigned sent_len;
static struct env env;
static struct masters masters;
static struct leases leases;

/* ---- Doubles ---- */

void masters_send(struct masters *all, unsigned m, const struct ask *ask, const char *command,
                  size_t command_len)
{
    (void)all;
    CHECK(sent_len < SENT_MAX);
    sent[sent_len] = (struct sent){.master = m, .ask = *ask};
    masters_double_decode(command, command_len, sent[sent_len].text);
    sent_len++;
}

static drift_time now(const struct loop *loop)
{
    (void)loop;
    return 1000 * DRIFT_S;
}

static void on_step(void *cookie, struct redlock_lease *lease, enum quorum_state before)
{
    (void)cookie, (void)lease, (void)before;
}

static void on_end(void *cookie, struct redlock_lease *lease, int status)
{
    (void)cookie, (void)lease, (void)status;
}

static void on_free(void *cookie, struct redlock_lease *lease)
{
    (void)cookie, (void)lease;
}

/* ---- Begin and end ---- */

static void begin(void)
{
    static const struct loop_ops ops = {.now = now};
    static struct loop loop = {.ops = &ops};
    static const struct lease_events events = {on_step, on_end, on_free};

    sent_len = 0;
    env = (struct env){.loop = &loop, .dice = 1};
    masters.peers =
        (struct peers){.env = &env, .len = MASTERS, .members = members_first(MASTERS), .up = 7};
    leases = (struct leases){.env = &env,
                             .masters = &masters,
                             .events = &events,
                             .note = "",
                             .reply_timeout = 50 * DRIFT_MS};
    table_init(&leases);
}

static void end(void)
{
    for (uint32_t i = 0; i < leases.slots_len; i++)
        if (leases.slots[i] != NULL)
            lease_free(leases.slots[i]);
    table_done(&leases);
    alarm_done(&env.alarms);
}

/* ---- What happens ---- */

/* Ask all masters for the fair lock "a". */
static struct redlock_lease *lock(bool stands)
{
    struct quorum_config config = {
        .lease = 9 * DRIFT_S,
        .reply_timeout = 50 * DRIFT_MS,
        .wait = DRIFT_NEVER,
        .pause_min = 1000 * DRIFT_S,
        .pause_max = 2000 * DRIFT_S,
        .hold_max = DRIFT_NEVER,
        .stands = stands,
    };
    const struct redlock_lock_options opts = {.retry_delay_max_ms = 100, .note = ""};
    const struct lease_wanted wanted = {
        .kind = KIND_FAIR, .name = "a", .name_len = 1, .opts = &opts, .config = &config};
    struct quorum_event event = {.type = QUORUM_EV_ACQUIRE};
    struct redlock_lease *lease = lease_new(&leases, &wanted);

    CHECK(lease != NULL);
    lease->op = LEASE_OP_LOCK;
    lease_step(lease, &event);
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
    struct redlock_lease *lease = lock(false);

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
    struct redlock_lease *lease;
    unsigned before;

    begin();
    lease = wait_in_line();
    before = sent_len;
    masters.peers.up = 5;
    remove_the_second();
    CHECK_UINT(sent_len, before);
    masters.peers.up = 7;
    lease_wake(lease, 0);
    CHECK_UINT(leaves(lease, 1, before), 1);
    end();
}

/* A token stands, so masters that granted the lock keep the place until the release. */
TEST(a_holder_leaves_a_master_that_was_removed)
{
    for (unsigned stands = 0; stands < 2; stands++) {
        struct redlock_lease *lease;
        unsigned before;

        begin();
        lease = lock(stands != 0);
        masters.peers.up = stands != 0 ? 7 : 5;
        if (stands != 0)
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
    lease = lock(false);
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
