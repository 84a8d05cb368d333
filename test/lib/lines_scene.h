/*
 * lines_scene.h - the client's waiters, with made-up masters: one short function for each event
 * that tests of them cause.
 *
 * The masters, their listening links and the clock are doubles (masters_double.c).  All else is the
 * library.  A test answers commands in the order in which they were sent.
 */
#ifndef TEST_LINES_SCENE_H
#define TEST_LINES_SCENE_H

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

__attribute__((unused)) static void note(struct sent *list, unsigned *len, unsigned master,
                                         const char *command, size_t command_len)
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

__attribute__((unused)) static drift_time loop_double_now(const struct loop *loop)
{
    (void)loop;
    return now;
}

/* ---- Begin and end ---- */

__attribute__((unused)) static void on_step(void *cookie, struct redlock_lease *lease,
                                            enum quorum_state before)
{
    (void)cookie;
    lines_on_step(&lines, lease, before);
}

__attribute__((unused)) static void on_end(void *cookie, struct redlock_lease *lease, int status)
{
    (void)cookie, (void)lease, (void)status;
}

__attribute__((unused)) static void on_free(void *cookie, struct redlock_lease *lease)
{
    (void)cookie;
    lines_forget(&lines, lease);
}

__attribute__((unused)) static void on_quiet(void *cookie)
{
    (void)cookie;
}

__attribute__((unused)) static void begin(void)
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

__attribute__((unused)) static void end(void)
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
__attribute__((unused)) static struct redlock_lease *lock(enum kind_id kind)
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

__attribute__((unused)) static void step(struct redlock_lease *lease, enum quorum_event_type type)
{
    struct quorum_event event = {.type = type};

    lease_step(lease, &event);
}

/* Answer all commands that have no answer yet, and the releases that follow: no key has the token.
 */
__attribute__((unused)) static void answer_all(enum reply_type type, long long integer,
                                               const char *text)
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
__attribute__((unused)) static void push(unsigned master, const char *before, size_t before_len,
                                         const char *text)
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

__attribute__((unused)) static void tell_all(unsigned master, const char *text)
{
    push(master, CHANNEL, strlen(CHANNEL), text);
}

__attribute__((unused)) static void tell_own(unsigned master, const char *text)
{
    push(master, lines.channels.own, strlen(lines.channels.own), text);
}

__attribute__((unused)) static void refuse_subscription(unsigned master)
{
    const struct reply reply = {.type = REPLY_ERROR, .text = (char *)(uintptr_t) "NOPERM"};

    lines.channels.listener.events->on_push(&lines, master, &reply);
}

__attribute__((unused)) static struct channel *channel(void)
{
    return channel_find(&lines.channels, "a", 1, false);
}

__attribute__((unused)) static void tell_group(unsigned master, const char *text)
{
    push(master, channel()->mark, channel()->mark_len + WIRE_GROUP_LEN, text);
}

/* Let all alarms ring that are due. */
__attribute__((unused)) static void ring(void)
{
    struct alarm *alarm;

    while ((alarm = alarm_ring(&env.alarms, now)) != NULL)
        CHECK(lines_on_alarm(&lines, alarm));
}

/* How many commands with this text were sent since the first of these. */
__attribute__((unused)) static unsigned count(const struct sent *list, unsigned len, unsigned from,
                                              const char *text)
{
    unsigned found = 0;

    for (unsigned i = from; i < len; i++)
        found += strstr(list[i].text, text) != NULL;
    return found;
}

__attribute__((unused)) static unsigned subscriptions(const char *text)
{
    return count(said, said_len, 0, text);
}

/* How many masters got a round of this lease, since that command. */
__attribute__((unused)) static unsigned asked(const struct redlock_lease *lease, unsigned from)
{
    unsigned found = 0;

    for (unsigned i = from; i < sent_len; i++)
        found += sent[i].ask.what == QUORUM_CMD_SET && sent[i].ask.slot == lease->slot;
    return found;
}

#endif /* TEST_LINES_SCENE_H */
