/*
 * test-lines.c - the client's waiters, with made-up masters: which commands follow from what
 * masters announce.
 *
 * The masters, their listening links and the clock are doubles (masters_double.c).  All else is the
 * library.  A test answers commands in the order in which they were sent.
 */
#include "test/lib/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "redlock/core/place.h"
#include "redlock/lease/lease.h"
#include "redlock/lease/table.h"
#include "redlock/line/lines.h"
#include "redlock/line/turns.h"
#include "test/lib/masters_double.h"

#define MASTERS 3
#define SENT_MAX 64
#define SAID_MAX 64
#define TEXT_MAX 512

#define CHANNEL WIRE_MARK "a"
#define GROUP WIRE_MARK "a/" /* What a test sees of the channel of a group, before its digit. */

/* A command, without the text of its script. */
struct sent {
    unsigned master;
    struct ask ask;
    bool is_answered;
    char text[TEXT_MAX];
};

static struct sent sent[SENT_MAX];
static unsigned sent_len;
static struct sent said[SAID_MAX]; /* Likewise, to listening links. */
static unsigned said_len;
static drift_time now;
static bool stands; /* The tokens of fair leases wait at the masters. */

static struct env env;
static struct masters masters;
static struct leases leases;
static struct lines lines;

/* ---- Doubles ---- */

static void note(struct sent *list, unsigned *len, unsigned master, const char *command,
                 size_t command_len)
{
    CHECK(*len < SENT_MAX);
    list[*len] = (struct sent){.master = master};
    masters_double_decode(command, command_len, list[*len].text);
    ++*len;
}

void masters_send(struct masters *all, unsigned m, const struct ask *ask, const char *command,
                  size_t command_len)
{
    (void)all;
    note(sent, &sent_len, m, command, command_len);
    sent[sent_len - 1].ask = *ask;
}

bool listener_say(struct listener *listener, unsigned master, const char *command,
                  size_t command_len)
{
    (void)listener;
    note(said, &said_len, master, command, command_len);
    return true;
}

void listener_init(struct listener *listener, const struct peers *peers,
                   const struct masters_config *config, const struct listener_events *events,
                   void *cookie)
{
    *listener = (struct listener){.peers = peers, .events = events, .cookie = cookie};
    listener->config.reply_timeout = config->reply_timeout;
}

static drift_time loop_double_now(const struct loop *loop)
{
    (void)loop;
    return now;
}

/* ---- Begin and end ---- */

static void on_step(void *cookie, struct redlock_lease *lease, enum quorum_state before)
{
    (void)cookie;
    lines_on_step(&lines, lease, before);
}

static void on_end(void *cookie, struct redlock_lease *lease, int status)
{
    (void)cookie, (void)lease, (void)status;
}

static void on_free(void *cookie, struct redlock_lease *lease)
{
    (void)cookie;
    lines_forget(&lines, lease);
}

static void on_quiet(void *cookie)
{
    (void)cookie;
}

static void begin(void)
{
    static const struct loop_ops ops = {.now = loop_double_now};
    static struct loop loop = {.ops = &ops};
    static const struct lease_events events = {on_step, on_end, on_free};
    const struct masters_config config = {.env = &env, .reply_timeout = 50 * DRIFT_MS};

    sent_len = said_len = 0;
    now = 1000 * DRIFT_S;
    env = (struct env){.loop = &loop, .dice = 1};
    masters.peers =
        (struct peers){.env = &env, .len = MASTERS, .members = members_first(MASTERS), .up = 7};
    leases = (struct leases){.env = &env,
                             .masters = &masters,
                             .events = &events,
                             .note = "",
                             .reply_timeout = 50 * DRIFT_MS};
    memset(&lines, 0, sizeof lines);
    table_init(&leases);
    CHECK_INT(lines_init(&lines, &leases, &masters, &config, on_quiet, NULL), 0);
}

static void end(void)
{
    for (uint32_t i = 0; i < leases.slots_len; i++)
        if (leases.slots[i] != NULL)
            lease_free(leases.slots[i]);
    lines_done(&lines);
    table_done(&leases);
    alarm_done(&env.alarms);
}

/* ---- What happens ---- */

/* Ask all masters for the lock "a". */
static struct redlock_lease *lock(enum kind_id kind)
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
    const struct redlock_lock_options opts = {
        .retry_delay_max_ms = 100, .note = "", .permits = kind == KIND_PERMIT ? 1 : 0};
    const struct lease_wanted wanted = {
        .kind = kind, .name = "a", .name_len = 1, .opts = &opts, .config = &config};
    struct quorum_event event = {.type = QUORUM_EV_ACQUIRE};
    struct redlock_lease *lease = lease_new(&leases, &wanted);

    CHECK(lease != NULL);
    lease->op = LEASE_OP_LOCK;
    lease_step(lease, &event);
    return lease;
}

static void step(struct redlock_lease *lease, enum quorum_event_type type)
{
    struct quorum_event event = {.type = type};

    lease_step(lease, &event);
}

/* Answer all commands that have no answer yet, and the releases that follow: no key has the token.
 */
static void answer_all(enum reply_type type, long long integer, const char *text)
{
    const struct reply reply = {.type = type,
                                .integer = integer,
                                .text = (char *)(uintptr_t)text,
                                .text_len = strlen(text)};
    const struct reply none = {.type = REPLY_INTEGER, .integer = 0};
    unsigned len = sent_len;

    for (unsigned i = 0; i < sent_len; i++) {
        struct sent *one = &sent[i];
        bool releases = one->ask.what == QUORUM_CMD_RELEASE;

        if (one->is_answered || one->ask.what == WHAT_LEAVE || (i >= len && !releases))
            continue;
        one->is_answered = true;
        if (one->ask.what == WHAT_WAIT)
            lines_on_look(&lines, one->master, &one->ask, &reply);
        else
            leases_on_answer(&leases, one->master, &one->ask, releases ? &none : &reply);
    }
}

/* Two texts of an array: a channel and a message, or "subscribe" and a channel. */
static void push(unsigned master, const char *before, size_t before_len, const char *text)
{
    const struct reply reply = {
        .type = REPLY_ARRAY,
        .text = (char *)(uintptr_t)text,
        .text_len = strlen(text),
        .before = (char *)(uintptr_t)before,
        .before_len = before_len,
    };

    lines.channels.listener.events->on_push(&lines, master, &reply);
}

static void tell_all(unsigned master, const char *text)
{
    push(master, CHANNEL, strlen(CHANNEL), text);
}

static void tell_own(unsigned master, const char *text)
{
    push(master, lines.channels.own, strlen(lines.channels.own), text);
}

static void refuse_subscription(unsigned master)
{
    const struct reply reply = {.type = REPLY_ERROR, .text = (char *)(uintptr_t) "NOPERM"};

    lines.channels.listener.events->on_push(&lines, master, &reply);
}

static struct channel *channel(void)
{
    return channel_find(&lines.channels, "a", 1, false);
}

static void tell_group(unsigned master, const char *text)
{
    push(master, channel()->mark, channel()->mark_len + WIRE_GROUP_LEN, text);
}

/* Let all alarms ring that are due. */
static void ring(void)
{
    struct alarm *alarm;

    while ((alarm = alarm_ring(&env.alarms, now)) != NULL)
        CHECK(lines_on_alarm(&lines, alarm));
}

/* How many commands with this text were sent since the first of these. */
static unsigned count(const struct sent *list, unsigned len, unsigned from, const char *text)
{
    unsigned found = 0;

    for (unsigned i = from; i < len; i++)
        found += strstr(list[i].text, text) != NULL;
    return found;
}

static unsigned subscriptions(const char *text)
{
    return count(said, said_len, 0, text);
}

/* How many masters got a round of this lease, since that command. */
static unsigned asked(const struct redlock_lease *lease, unsigned from)
{
    unsigned found = 0;

    for (unsigned i = from; i < sent_len; i++)
        found += sent[i].ask.what == QUORUM_CMD_SET && sent[i].ask.slot == lease->slot;
    return found;
}

/* ---- Groups of a crowd ---- */

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

/* ---- Turns in the masters' queue ---- */

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
static void grant(unsigned master, const struct redlock_lease *lease, bool is_dead)
{
    const struct place *place = lease_extra(lease);
    char text[256];

    (void)snprintf(text, sizeof text, "granted %s %" PRIu64 " 1.0 %s%s", place->waiter,
                   (uint64_t)lease->q.sent, lease_token(lease), is_dead ? "0" : "");
    tell_own(master, text);
}

/* What is wrong with a vote that was passed on. */
enum flaw { FLAW_NONE, FLAW_DEAD, FLAW_DOWN, FLAW_CLOCK, FLAWS };

TEST(a_lock_is_passed_on_by_masters_that_are_up_and_count_for_the_token_that_waits)
{
    struct redlock_lease *lease;

    for (unsigned flaw = FLAW_NONE; flaw < FLAWS; flaw++) {
        begin();
        stands = true;
        lease = lock(KIND_FAIR);
        answer_all(REPLY_INTEGER, 2, "");
        ring(); /* The next heartbeat carries the ticket, so the token waits. */
        answer_all(REPLY_INTEGER, 2, "");
        CHECK_INT(lease->q.state, QUORUM_PAUSING);
        stands = false;
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

CHECK_MAIN(RUN(a_waiter_listens_to_all_and_to_its_group),
           RUN(who_waits_for_a_permit_is_in_no_group),
           RUN(the_last_waiter_of_a_crowd_leaves_its_group),
           RUN(without_a_crowd_a_client_stays_in_its_group_until_that_is_told),
           RUN(a_holder_tells_its_group_and_the_one_that_its_release_wakes),
           RUN(who_knows_that_there_is_no_crowd_names_no_groups),
           RUN(a_master_that_lacks_the_script_gets_the_same_query_in_full),
           RUN(a_waiter_asks_again_for_both_channels_that_were_refused),
           RUN(a_majority_that_tells_a_turn_wakes_that_waiter),
           RUN(a_turn_told_during_a_round_is_tried_after_it),
           RUN(a_confirmed_subscription_counts_as_a_turn_of_the_first),
           RUN(a_waiter_in_the_queue_asks_again_for_channels_that_were_refused),
           RUN(a_lock_is_passed_on_by_masters_that_are_up_and_count_for_the_token_that_waits))
