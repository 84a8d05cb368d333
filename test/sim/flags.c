/*
 * flags.c - a master's wait flags, which the code calls marks: queries and announcements.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

bool flags_are_set(const struct server *server, unsigned mark)
{
    return server->marks_end_ms[mark] > store_wall_ms(server);
}

unsigned flags_of(unsigned resource)
{
    return world.plan.permits ? 0 : resource;
}

const char *flags_name(unsigned mark)
{
    static const char *const names[SIM_RESOURCES_MAX] = {"r0", "r1", "r2"};

    return world.plan.permits ? SEMAPHORE : names[mark];
}

static const char digits[] = "0123456789abcdefr";

char flags_digit(unsigned group)
{
    return digits[group];
}

static unsigned group_of(char digit)
{
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;

    return at != NULL ? (unsigned)(at - digits) : 0;
}

/* The number of a wait flag.  The channel has the same name, that of a group more_len bytes more.
 */
static unsigned mark_arg(const struct command *command, unsigned i, size_t more_len)
{
    for (unsigned mark = 0; mark < SIM_RESOURCES_MAX; mark++) {
        const char *name = flags_name(mark);

        if (command->lens[i] == WIRE_MARK_LEN + strlen(name) + more_len &&
            memcmp(command->argv[i], WIRE_MARK, WIRE_MARK_LEN) == 0 &&
            memcmp(command->argv[i] + WIRE_MARK_LEN, name, strlen(name)) == 0)
            return mark;
    }
    world_fail("wire", "an unknown wait flag");
}

static const char *make_text(const char *word, unsigned long long number)
{
    const size_t room = 32;
    char *text = memory_take(room);

    (void)snprintf(text, room, "%s %llu", word, number);
    return text;
}

uint64_t flags_off_ms(const struct server *server, unsigned mark)
{
    return flags_are_set(server, mark) ? server->marks_off_ms[mark] : 0;
}

uint64_t flags_left_ms(const struct server *server, const struct key *key)
{
    return key->end_ms > store_wall_ms(server) ? key->end_ms - store_wall_ms(server) : 0;
}

/* ---- Announcements ---- */

/* Fewer than WIRE_CROWD, so that more runs have crowds.  Clients must not know the number. */
#define CROWD 8

/* Tell enough clients of the groups from the first on, and the readers. */
static unsigned tell_groups(struct server *server, unsigned mark, unsigned first, const char *text)
{
    unsigned told = 0;

    for (unsigned i = 0; i < GROUP_READERS && told < WIRE_CROWD_TOLD; i++)
        told += waits_publish_group(server, mark, (first + i) % GROUP_READERS, text);
    return told + waits_publish_group(server, mark, GROUP_READERS, text);
}

/* A client that may be in a crowd adds the digits of two groups. */
static bool has_groups(const struct command *command)
{
    return command->argc == 9 && command->lens[8] == 2;
}

static void tell_left(struct server *server, unsigned mark, const struct command *command,
                      uint64_t left_ms)
{
    bool is_taken = args_is(command, 7, "taken");
    const char *text = make_text(is_taken ? "taken" : "held", left_ms);

    if (!has_groups(command) || waits_count(server, mark) <= CROWD) {
        waits_publish(server, mark, text);
    } else if (is_taken) {
        (void)waits_publish_group(server, mark, group_of(command->argv[8][0]), text);
        if (tell_groups(server, mark, group_of(command->argv[8][1]), text) == 0)
            waits_publish(server, mark, text);
    }
}

void flags_announce_free(struct server *server, unsigned mark, bool keeps_mark, int token)
{
    unsigned count = waits_count(server, mark), told = 0;

    if (!flags_are_set(server, mark))
        return;
    if (count > CROWD) {
        unsigned some = (count + 15) / 16;
        const char *text = make_text("free", some > WIRE_CROWD_TOLD ? some : WIRE_CROWD_TOLD);

        told = tell_groups(server, mark, group_of(oracle_token_of(token)->text[2]), text);
    }
    if (told == 0)
        waits_publish(server, mark, make_text("free", count));
    if (!keeps_mark) {
        server->marks_end_ms[mark] = told > 0 ? store_wall_ms(server) + WIRE_MARK_MS : 0;
        server->marks_off_ms[mark] = 1;
    }
    world_outcome(OUTCOME_TOLD_FREE);
}

/* ---- Queries ---- */

bool flags_is_query(const struct command *command)
{
    return (command->argc == 8 || has_groups(command)) &&
           (args_is(command, 7, "taken") || args_is(command, 7, "held"));
}

/* A waiter sets the flag if it is missing.  Only then the master announces how long the lock is
 * held.  A query of the holder always announces that the lock was taken.  value_ms: the master's
 * time until which new readers are held off; 1: they are not. */
struct answer flags_leave(struct server *server, const struct command *command, uint64_t left_ms,
                          uint64_t value_ms)
{
    const struct answer *refusal = store_mood(server, true, true);
    unsigned mark = mark_arg(command, 4, 0);
    bool is_new = !flags_are_set(server, mark), is_taken = args_is(command, 7, "taken");

    if (refusal != NULL)
        return *refusal;
    if (is_new || (value_ms > 1 && value_ms > server->marks_off_ms[mark])) {
        server->marks_end_ms[mark] = store_wall_ms(server) + args_ms(command, 5);
        server->marks_off_ms[mark] = value_ms;
    }
    if (is_new || is_taken) {
        if (left_ms > 0)
            tell_left(server, mark, command, left_ms);
        server->is_teller[mark] = is_taken && left_ms > 0;
        world_outcome(is_taken ? OUTCOME_TOLD_TAKEN : OUTCOME_TOLD_HELD);
    }
    return (struct answer){REPLY_INTEGER, (long long)left_ms, ""};
}

/* EVAL, script, 2, name, flag, ttl, for how long readers are held off, or "", what to announce
 * [, groups] */
struct answer flags_query(struct server *server, const struct command *command)
{
    unsigned resource = args_resource(command, 3);
    const struct key *key = store_key(server, resource);
    bool shared = args_is(command, 6, ""), is_read = key != NULL && key->readers > 0;
    uint64_t now_ms = store_wall_ms(server), off_ms = flags_off_ms(server, resource);

    if (!flags_is_query(command) || !args_is(command, 2, "2") ||
        mark_arg(command, 4, 0) != resource)
        world_fail("wire", "a query with other arguments");
    if (shared && (key == NULL || is_read) && off_ms > now_ms)
        return (struct answer){REPLY_INTEGER, (long long)(off_ms - now_ms), ""};
    if (key == NULL || (shared && is_read))
        return (struct answer){REPLY_INTEGER, -2, ""};
    if (is_read && args_is(command, 7, "taken")) /* The announcement is late. */
        return (struct answer){REPLY_INTEGER, (long long)flags_left_ms(server, key), ""};
    return flags_leave(server, command, flags_left_ms(server, key),
                       is_read ? now_ms + args_number(command, 6) : 1);
}

/* ---- Subscriptions ---- */

_Static_assert(sizeof((struct conn *)0)->own == WIRE_CLIENT_DIGITS + 1, "the digits fit");

/* SUBSCRIBE, a client's own channel.  It ends with the connection. */
static struct answer subscribe_own(struct conn *conn, const struct command *command)
{
    const size_t room = sizeof "subscribe " WIRE_CLIENT + WIRE_CLIENT_DIGITS;
    char *text = memory_take(room);

    if (!args_is(command, 0, "SUBSCRIBE") ||
        command->lens[1] != WIRE_CLIENT_LEN + WIRE_CLIENT_DIGITS)
        world_fail("wire", "a client subscribes to its own channel in another way");
    memcpy(conn->own, command->argv[1] + WIRE_CLIENT_LEN, WIRE_CLIENT_DIGITS);
    (void)snprintf(text, room, "subscribe " WIRE_CLIENT "%s", conn->own);
    return (struct answer){REPLY_ARRAY, 0, text};
}

/* SUBSCRIBE or UNSUBSCRIBE, channel of a group */
static struct answer subscribe_group(struct conn *conn, const struct command *command, bool on)
{
    const size_t room = sizeof "unsubscribe " WIRE_MARK SEMAPHORE + WIRE_GROUP_LEN;
    unsigned mark = mark_arg(command, 1, WIRE_GROUP_LEN);
    unsigned group = group_of(command->argv[1][command->lens[1] - 1]);
    char *text = memory_take(room);

    (void)snprintf(text, room, "%s " WIRE_MARK "%s%c%c", on ? "subscribe" : "unsubscribe",
                   flags_name(mark), SIM_NUL, flags_digit(group));
    conn->groups[mark] &= ~(1u << group);
    conn->groups[mark] |= (unsigned)on << group;
    return (struct answer){REPLY_ARRAY, 0, text};
}

/* SUBSCRIBE or UNSUBSCRIBE, channel */
struct answer flags_subscribe(struct conn *conn, const struct command *command)
{
    bool on = args_is(command, 0, "SUBSCRIBE");
    const size_t room = sizeof "unsubscribe " WIRE_MARK SEMAPHORE;
    char *text;
    unsigned mark;

    if (memcmp(command->argv[1], WIRE_CLIENT, WIRE_CLIENT_LEN) == 0)
        return subscribe_own(conn, command);
    if (memchr(command->argv[1], '\0', command->lens[1]) != NULL)
        return subscribe_group(conn, command, on);
    mark = mark_arg(command, 1, 0);
    text = memory_take(room);
    (void)snprintf(text, room, "%s " WIRE_MARK "%s", on ? "subscribe" : "unsubscribe",
                   flags_name(mark));
    conn->hears &= ~(1u << mark);
    conn->hears |= (unsigned)on << mark;
    return (struct answer){REPLY_ARRAY, 0, text};
}
