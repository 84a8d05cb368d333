/*
 * queue.c - the queues that a server keeps for fair locks, and the scripts on them.
 */
#include "oracle.h"
#include "store.h"

#include <stdio.h>
#include <string.h>

static struct line *line_of(struct server *server, unsigned resource)
{
    struct line *line = &server->lines[resource];

    if (store_wall_ms(server) >= line->ends_ms + !server->ends_early)
        line->len = 0;
    return line;
}

/* Remove dead waiters, if the server may write.  Returns how many. */
static unsigned purge(const struct server *server, struct line *line)
{
    if (server->mood != MOOD_FINE && server->mood != MOOD_OOM)
        return 0;
    return line_purge(line, store_wall_ms(server));
}

/* Readers are held off until two more heartbeats are due. */
static void mark_in_line(struct server *server, unsigned resource, uint64_t patience_ms)
{
    const struct key *key = store_key(server, resource);
    bool is_read = key != NULL && key->readers > 0;
    uint64_t off_ms = is_read ? store_wall_ms(server) + (patience_ms + 1) / 2 : 1;

    if (flags_off_ms(server, resource) >= off_ms)
        return;
    server->marks_end_ms[resource] = store_wall_ms(server) + WIRE_MARK_MS;
    server->marks_off_ms[resource] = off_ms;
}

/* The first waiter in the queue of a lock that is free; -1: none. */
static int find_due(struct server *server, unsigned resource)
{
    const struct line_place *first = line_first(line_of(server, resource));

    return store_key(server, resource) == NULL && first != NULL ? first->waiter : -1;
}

/* A command made a waiter due.  It needs an announcement, unless the command was its own. */
static void judge_due(struct server *server, unsigned resource, int before, int asker)
{
    int due = find_due(server, resource);

    if (due >= 0 && due != before)
        line_on_turn_of(server, resource, due, due != asker);
}

static void tell_next(struct server *server, const struct line_place *first)
{
    const char *waiter = oracle_token_of(first->waiter)->text;
    const size_t room = sizeof "next " + REDLOCK_TOKEN_MAX;
    char *text = memory_take(room);

    (void)snprintf(text, room, "next %s", waiter);
    waits_publish_own(server, waiter, text);
}

/* EVALSHA or EVAL, script, 1, name, token, ttl, waiter, ticket, patience */
struct answer queue_acquire(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    unsigned resource = args_resource(command, at.name);
    struct line *line = line_of(server, resource);
    uint64_t ticket = args_number(command, 7), now_ms = store_wall_ms(server), before, number;
    int waiter = args_token(command, 6), due = find_due(server, resource);
    /* A script that has written is not refused for lack of memory. */
    bool has_written = purge(server, line) > 0, is_moved;
    const struct answer *refusal = store_mood(server, true, !has_written);
    const struct line_place *place = line_find(line, waiter);

    if (command->argc != 9 || !args_is(command, 2, "1"))
        world_fail("wire", "a fair script with other arguments");
    if (refusal != NULL)
        return *refusal;
    before = place != NULL ? place->ticket : 0;
    number = line_put(line, waiter, ticket, now_ms + args_ms(command, 8));
    line_on_change(server, resource);
    if (number == 0)
        return answer_zero;
    if ((ticket != 0 || number == 1) && line_first(line)->waiter == waiter &&
        store_key(server, resource) == NULL)
        return store_put(server, resource, args_token(command, at.token), args_ms(command, at.ttl));
    mark_in_line(server, resource, args_ms(command, 8));
    is_moved = ticket != 0 && number != before;
    if (store_key(server, resource) == NULL && line->len > 0 && (is_moved || has_written))
        tell_next(server, line_first(line));
    judge_due(server, resource, due, waiter);
    return (struct answer){REPLY_INTEGER, (long long)number, ""};
}

/* EVALSHA or EVAL, script, 1, name, token, waiter */
struct answer queue_release(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    unsigned resource = args_resource(command, at.name);
    const struct key *key = store_key(server, resource);
    struct line *line = line_of(server, resource);
    const struct line_place *first;
    const struct answer *refusal;
    int due = line->was_left ? -1 : find_due(server, resource);

    if (command->argc != 6 || !args_is(command, 2, "1"))
        world_fail("wire", "a fair script with other arguments");
    if (key != NULL && key->wrong_type)
        return store_type_error(server);
    if (key != NULL && key->token != args_token(command, at.token))
        return answer_zero;
    refusal = store_mood(server, true, false);
    if (refusal != NULL && key != NULL)
        return *refusal;
    if (refusal == NULL)
        (void)purge(server, line);
    line_on_change(server, resource);
    first = line_first(line);
    if (first == NULL && refusal == NULL)
        store_drop_key(server, resource);
    server->keys[resource].exists = false;
    line->was_left = false;
    if (first != NULL && first->waiter != args_token(command, 5))
        tell_next(server, first);
    judge_due(server, resource, due, args_token(command, 5));
    return key != NULL ? answer_one : answer_zero;
}

/* ZREM, queue, waiter, "-" and waiter */
struct answer queue_leave(struct server *server, const struct command *command)
{
    const struct answer *refusal = store_mood(server, false, false);
    unsigned resource;
    bool found;

    if (command->argc != 4 || command->lens[1] != WIRE_QUEUE_LEN + 2 ||
        memcmp(command->argv[1], WIRE_QUEUE "r", WIRE_QUEUE_LEN + 1) != 0 ||
        command->lens[3] != command->lens[2] + 1 || command->argv[3][0] != '-' ||
        memcmp(command->argv[3] + 1, command->argv[2], command->lens[2]) != 0)
        world_fail("wire", "a ZREM of something else");
    resource = (unsigned)(command->argv[1][WIRE_QUEUE_LEN + 1] - '0') % SIM_RESOURCES_MAX;
    if (refusal != NULL)
        return *refusal;
    found = line_remove(line_of(server, resource), args_token(command, 2));
    line_of(server, resource)->was_left |= found;
    line_on_change(server, resource);
    return (struct answer){REPLY_INTEGER, found ? 2 : 0, ""};
}
