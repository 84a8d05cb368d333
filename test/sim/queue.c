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
    if (store_wall_ms(server) >= line->waiting_ends_ms + !server->ends_early)
        line->waiting_len = 0;
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

static void drop_place(struct server *server, unsigned resource, int waiter)
{
    struct line *line = line_of(server, resource);

    (void)line_remove(line, waiter);
    line_stop_waiting(line, waiter);
    line_on_change(server, resource);
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

/* The token waits from now on, if the client says when it sent this. */
static void put_waiting(const struct server *server, struct line *line,
                        const struct command *command)
{
    const struct parts at = args_parts(command);
    uint64_t lasts_ms = sim_max(args_ms(command, 8), WIRE_NEXT_MS);
    struct line_waiting *waiting = line_waiting(line, args_token(command, 6));

    if (!args_stands(command))
        return;
    if (waiting == NULL && line->waiting_len == WAITING_MAX)
        world_fail("simulator", "too many tokens wait");
    if (line->waiting_len == 0)
        line->waiting_ends_ms = store_wall_ms(server) + lasts_ms;
    if (waiting == NULL)
        waiting = &line->waiting[line->waiting_len++];
    *waiting = (struct line_waiting){args_token(command, 6), args_token(command, at.token),
                                     args_ms(command, at.ttl), args_time(command, 9)};
}

/* The clock was set back: nobody is patient until it is where it was. */
static void end_early(struct line *line, uint64_t now_ms, uint64_t patience_ms)
{
    uint64_t latest_ms = now_ms + sim_max(WIRE_PATIENCE_MS, 4 * patience_ms);

    if (line->ends_ms <= latest_ms)
        return;
    line->ends_ms = latest_ms;
    for (unsigned i = 0; i < line->len; i++)
        if (line->places[i].end_ms > latest_ms)
            line->places[i].end_ms = latest_ms;
}

/* EVALSHA or EVAL, script, 1, name, token, ttl, waiter, ticket, patience [, sent] */
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
    struct key *key;

    if (command->argc < 9 || command->argc > 10 || !args_is(command, 2, "1"))
        world_fail("wire", "a fair script with other arguments");
    if (refusal != NULL)
        return *refusal;
    before = place != NULL ? place->ticket : 0;
    number = line_put(line, waiter, ticket, now_ms + args_ms(command, 8), server->obeys_late);
    line_on_change(server, resource);
    if (number == 0)
        return answer_zero;
    end_early(line, now_ms, args_ms(command, 8));
    put_waiting(server, line, command);
    if ((ticket != 0 || number == 1) && line_first(line)->waiter == waiter &&
        store_key(server, resource) == NULL)
        return store_put(server, resource, args_token(command, at.token), args_ms(command, at.ttl));
    key = store_key(server, resource);
    if (key != NULL && !key->wrong_type && key->token == args_token(command, at.token)) {
        (void)store_extend(server, key, key->token, args_ms(command, at.ttl));
        return answer_ok;
    }
    mark_in_line(server, resource, args_ms(command, 8));
    is_moved = ticket != 0 && number != before;
    if (store_key(server, resource) == NULL && line->len > 0 && (is_moved || has_written))
        tell_next(server, line_first(line));
    judge_due(server, resource, due, waiter);
    return (struct answer){REPLY_INTEGER, (long long)number, ""};
}

/* EVALSHA or EVAL, script, 1, name, token, ttl, waiter */
struct answer queue_extend(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    unsigned resource = args_resource(command, at.name);
    struct key *key = store_key(server, resource);
    const struct answer *refusal = store_mood(server, true, false);

    if (command->argc != 7 || !args_is(command, 2, "1"))
        world_fail("wire", "a fair script with other arguments");
    if (key != NULL && key->wrong_type)
        return store_type_error(server);
    if (key != NULL && key->token == args_token(command, at.token))
        return store_extend(server, key, key->token, args_ms(command, at.ttl));
    if (refusal == NULL)
        drop_place(server, resource, args_token(command, 6));
    return key != NULL ? revokes_refuse(key, &answer_zero) : answer_zero;
}

/* Give the key to the first waiter, if its token waits. */
static bool pass_on(struct server *server, unsigned resource, const struct line_place *first)
{
    struct line *line = line_of(server, resource);
    struct line_waiting *waiting = first != NULL ? line_waiting(line, first->waiter) : NULL;
    const size_t room = sizeof "granted " + 3 * REDLOCK_TOKEN_MAX;
    char *text, state[SETS_STATE_ROOM];
    int waiter;

    if (waiting == NULL)
        return false;
    waiter = waiting->waiter;
    text = memory_take(room);
    (void)snprintf(text, room, "granted %s %llu %s %s", oracle_token_of(waiter)->text,
                   (unsigned long long)waiting->sent,
                   server->marker.epoch != 0 ? sets_state(&server->marker, state) : "-",
                   oracle_token_of(waiting->token)->text);
    (void)store_put(server, resource, waiting->token, waiting->ttl_ms);
    waits_publish_own(server, oracle_token_of(waiter)->text, text);
    world_outcome(OUTCOME_PASSED);
    return true;
}

/* EVALSHA or EVAL, script, 1, name, token, waiter, how */
struct answer queue_release(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    unsigned resource = args_resource(command, at.name);
    const struct key *key = store_key(server, resource);
    struct line *line = line_of(server, resource);
    const struct line_place *first;
    const struct answer *refusal;
    int due = line->was_left ? -1 : find_due(server, resource);

    bool passes = args_is(command, 6, "pass"), leaves = args_is(command, 6, "leave"), is_ours;
    const struct line_waiting *waiting = line_waiting(line, args_token(command, 5));

    if (command->argc != 7 || !args_is(command, 2, "1"))
        world_fail("wire", "a fair script with other arguments");
    refusal = store_mood(server, true, false);
    is_ours = key != NULL && key->token == args_token(command, at.token);
    if (refusal == NULL && (passes || leaves))
        drop_place(server, resource, args_token(command, 5));
    else if (refusal == NULL && args_is(command, 6, "back") && waiting != NULL &&
             waiting->token == args_token(command, at.token))
        line_stop_waiting(line, args_token(command, 5));
    if (key != NULL && key->wrong_type)
        return store_type_error(server);
    if (key != NULL && !is_ours)
        return answer_zero;
    if (refusal != NULL && key != NULL)
        return *refusal;
    if (refusal == NULL)
        (void)purge(server, line);
    line_on_change(server, resource);
    first = line_first(line);
    if (passes && key != NULL && pass_on(server, resource, first)) {
        line_on_change(server, resource);
        return answer_one;
    }
    if (first == NULL && refusal == NULL)
        store_drop_key(server, resource, args_token(command, at.token));
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
