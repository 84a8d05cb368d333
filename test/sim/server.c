/*
 * server.c - one redis-server: it listens, obeys, hangs, crashes, comes back.
 */
#include "sim.h"

#include <string.h>

/* A wall clock shows some time in 2025. */
#define WALL_ORIGIN (UINT64_C(1750000000) * DRIFT_S)

void server_init(struct server *server, unsigned number)
{
    const struct plan *plan = &world.plan;

    *server = (struct server){.number = number, .alive = true};
    server->clock.origin = WALL_ORIGIN + dice_below(1000 * DRIFT_S);
    if (plan->clock_guard != REDLOCK_CLOCK_GUARD_OFF) /* Nobody is far off the others. */
        server->clock.origin = WALL_ORIGIN + server->clock.origin % (100 * DRIFT_MS);
    /* Without an allowance for it, keys must not end early. */
    server->ends_early = plan->drift_fixed_ms > 0 && dice_chance(300);
    server->old_style = dice_chance(300);
}

void server_set_scripts(struct server *server, bool there)
{
    for (unsigned i = 0; i < SCRIPT_LEN; i++)
        server->has_script[i] = there;
}

static void welcome(struct conn *conn)
{
    static const struct answer loading = {REPLY_ERROR, 0, "LOADING Redis is loading the dataset"};
    struct message *reply = net_message(MESSAGE_WELCOME, sizeof(struct answer));
    struct server *server = conn->server;
    const struct answer fine = {REPLY_STATUS, (long long)server->runs, "OK"};

    if (server->mood == MOOD_LOADING)
        world_fault(FAULT_LOADING);
    else
        server_set_scripts(server, true);
    reply->answers[0] = server->mood == MOOD_LOADING ? loading : fine;
    net_to_client(conn, reply);
}

/* Execute the first commands, and write down their answers. */
static void obey(struct conn *conn, struct message *message, unsigned commands,
                 struct answer *answers)
{
    const char *p = message->bytes;

    for (unsigned i = 0; i < commands; i++) {
        struct command command;

        store_parse(p, message->len - (size_t)(p - message->bytes), &command);
        if (store_parts(&command).is_other) {
            p += store_execute(conn, &command, &answers[i]);
            continue;
        }
        oracle_before(conn->server, &command);
        p += store_execute(conn, &command, &answers[i]);
        oracle_after(conn, &command, &answers[i]);
    }
}

void server_take(struct conn *conn, struct message *message)
{
    struct message *reply;

    if (message->kind == MESSAGE_GREETING) {
        welcome(conn);
        return;
    }
    reply = net_message(MESSAGE_ANSWERS, message->commands * sizeof(struct answer));
    reply->commands = message->commands;
    obey(conn, message, message->commands, reply->answers);
    net_to_client(conn, reply);
}

void server_take_some(struct conn *conn, struct message *message, unsigned commands)
{
    struct answer *answers = memory_take((commands + 1) * sizeof *answers);

    obey(conn, message, commands, answers);
}

/* It says that it does not keep all that it is told: its marker may survive what its
 * locks do not. */
static void forget_some(struct server *server)
{
    if (!world.plan.guarded || server->keeps || !(world.plan.may_forget & 1u << server->number))
        return;
    for (unsigned r = 0; r < world.plan.resources; r++)
        if (dice_chance(500))
            server->keys[r].exists = false;
    if (server->marker.exists && server->saved.exists && world.plan.fenced > 0) {
        world_fault(FAULT_OLD_COUNTERS);
        server->marker = server->saved;
    }
}

/* What is in its sockets is lost. */
void server_crash(struct server *server, bool forget)
{
    server->is_copy = server->is_copy && !forget;
    server->alive = false;
    server->hung = false;
    server->mood = MOOD_FINE;
    server->runs++;
    server_set_scripts(server, false);
    memset(server->marks_end_ms, 0, sizeof server->marks_end_ms);
    forget_some(server);
    if (forget)
        server->marker = (struct marker){.exists = false};
    if (forget)
        line_forget(server);
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next)
        net_reset(conn);
    for (unsigned r = 0; forget && r < world.plan.resources; r++) {
        if (store_key(server, r) == NULL)
            continue;
        server->keys[r].exists = false;
    }
}

bool server_flushall(struct server *server)
{
    bool any = false;

    server->is_copy = false;
    server->marker = (struct marker){.exists = false};
    memset(server->marks_end_ms, 0, sizeof server->marks_end_ms);
    line_forget(server);
    for (unsigned r = 0; r < world.plan.resources; r++) {
        if (store_key(server, r) == NULL)
            continue;
        server->keys[r].exists = false;
        any = true;
    }
    return any;
}

/* It crashed, and is to come back on a copy of another's data, a snapshot from before all
 * locks that are held. */
void server_copy(struct server *server, const struct server *other)
{
    server_crash(server, true);
    server->is_copy = true;
    server->marker = server->saved = other->marker;
    server->marker.run = server->saved.run = SIM_RUN_OF_ANOTHER;
}

/* Alive, awake, and in a good mood again. */
void server_mend(struct server *server)
{
    server->alive = true;
    server->hung = false;
    server->mood = MOOD_FINE;
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next) {
        if (conn->link != NULL)
            process_sicken(conn->process, world.now + 2 * world.plan.quick);
        net_deliver(conn);
    }
}

/* A key that is none of ours, where there is none. */
void server_plant(struct server *server, unsigned resource, bool wrong_type, uint64_t ttl_ms)
{
    uint64_t now_ms = clock_at(&server->clock, world.now) / DRIFT_MS;

    if (store_key(server, resource) != NULL)
        return;
    server->keys[resource] = (struct key){.exists = true,
                                          .wrong_type = wrong_type,
                                          .token = oracle_foreign_token(),
                                          .end_ms = now_ms + ttl_ms};
    world_fault(FAULT_FOREIGN);
}
