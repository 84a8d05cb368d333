/*
 * server.c - one redis-server: it accepts connections, executes, hangs, crashes, comes back.
 */
#include "net.h"
#include "oracle.h"
#include "process.h"
#include "store.h"
#include "tls.h"
#include "world.h"

#include <string.h>

/* Wall clocks begin in June 2025. */
#define WALL_ORIGIN (UINT64_C(1750000000) * DRIFT_S)

void server_init(struct server *server, unsigned number)
{
    const struct plan *plan = &world.plan;

    *server = (struct server){.number = number, .alive = true};
    server->clock.origin = WALL_ORIGIN + dice_below(1000 * DRIFT_S);
    if (plan->clock_guard != REDLOCK_CLOCK_GUARD_OFF) /* Clocks are close together. */
        server->clock.origin = WALL_ORIGIN + server->clock.origin % (100 * DRIFT_MS);
    if (plan->far >> number & 1)
        server->clock.origin += PLAN_FAR;
    /* Keys may expire a millisecond early only if the allowance covers it. */
    server->ends_early = plan->drift_fixed_ms > 0 && dice_chance(300);
    server->old_style = dice_chance(300);
}

void server_set_scripts(struct server *server, bool there)
{
    memset(server->has_script, there, sizeof server->has_script);
}

/* The answers to all commands of one message.  Chosen: far more than a run needs. */
static char answers[1u << 20];

/* Execute the complete commands, and write their answers; returns the length. */
static size_t obey(struct conn *conn)
{
    struct answer answer;
    struct command command;
    size_t len = 0, done = 0, command_len;

    while ((command_len = resp_command(conn->inbox + done, conn->inbox_len - done, &command)) > 0) {
        bool is_other = args_parts(&command).is_other;

        if (!is_other)
            oracle_before(conn->server, &command);
        answer = store_execute(conn, &command);
        if (!is_other)
            oracle_after(conn, &command, &answer);
        else
            claims_on_executed(conn, &command, &answer);
        revokes_on_command(conn->server, &command);
        if (sizeof answers - len < resp_answer_max(&answer))
            world_fail("simulator", "more answers than there is room for");
        len += resp_write(answers + len, &answer);
        done += command_len;
    }
    conn->inbox_len -= done;
    if (conn->inbox_len > 0)
        memmove(conn->inbox, conn->inbox + done, conn->inbox_len);
    return len;
}

static void receive_plain(struct conn *conn, const char *bytes, size_t len)
{
    if (conn->inbox_room < conn->inbox_len + len) {
        char *inbox = memory_take(2 * (conn->inbox_len + len));

        if (conn->inbox_len > 0)
            memcpy(inbox, conn->inbox, conn->inbox_len);
        conn->inbox = inbox;
        conn->inbox_room = 2 * (conn->inbox_len + len);
    }
    if (len > 0)
        memcpy(conn->inbox + conn->inbox_len, bytes, len);
    conn->inbox_len += len;
}

static void receive(struct conn *conn, const char *bytes, size_t len)
{
    char plain[1024];
    size_t plain_len;

    if (conn->tls == NULL) {
        receive_plain(conn, bytes, len);
        return;
    }
    sim_tls_take(conn->tls, bytes, len);
    while ((plain_len = sim_tls_read(conn->tls, plain, sizeof plain)) > 0)
        receive_plain(conn, plain, plain_len);
}

/* TLS has something to send without answers, too. */
static void send_sealed(struct conn *conn)
{
    size_t len = sim_tls_pending(conn->tls);
    struct message *message;

    if (len == 0)
        return;
    message = net_message(MESSAGE_BYTES, len);
    sim_tls_give(conn->tls, message->bytes, len);
    message->len = len;
    net_to_client(conn, message);
}

static void send_bytes(struct conn *conn, const char *bytes, size_t len)
{
    struct message *message;

    if (conn->tls != NULL) {
        if (len > 0 && dice_chance(100))
            sim_tls_renew(conn->tls);
        if (len > 0)
            sim_tls_say(conn->tls, bytes, len);
        send_sealed(conn);
        return;
    }
    if (len == 0)
        return;
    message = net_message(MESSAGE_BYTES, len);
    memcpy(message->bytes, bytes, len);
    message->len = len;
    net_to_client(conn, message);
}

void server_take(struct conn *conn, const struct message *message)
{
    receive(conn, message->bytes, message->len);
    send_bytes(conn, answers, obey(conn));
}

void server_answer(struct conn *conn, const struct answer *answer)
{
    char bytes[512];

    if (resp_answer_max(answer) > sizeof bytes)
        world_fail("simulator", "a message that is longer than there is room for");
    send_bytes(conn, bytes, resp_write(bytes, answer));
}

void server_take_some(struct conn *conn, const struct message *message, size_t len)
{
    receive(conn, message->bytes, len);
    (void)obey(conn);
}

bool server_say_goodbye(struct conn *conn)
{
    if (!sim_tls_close(conn->tls))
        return false;
    send_sealed(conn);
    return true;
}

/* A server that does not claim to keep its data may lose keys in a crash, and keep its marker. */
static void forget_some(struct server *server)
{
    if (!world.plan.guarded || server->keeps || !(world.plan.may_forget & 1u << server->number))
        return;
    for (unsigned r = 0; r < world.plan.resources; r++)
        if (dice_chance(500))
            server->keys[r].exists = false;
    if (server->runs % 2 == 0)
        server->marks.len = 0;
    if (server->marker.exists && server->saved.exists && world.plan.fenced > 0) {
        world_fault(FAULT_OLD_COUNTERS);
        server->marker = server->saved;
    }
}

/* Commands in its sockets are lost. */
void server_crash(struct server *server, bool forget)
{
    server->alive = false;
    server->hung = false;
    server->mood = MOOD_FINE;
    server->runs++;
    server_set_scripts(server, false);
    memset(server->marks_end_ms, 0, sizeof server->marks_end_ms);
    forget_some(server);
    if (forget)
        (void)server_flushall(server);
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next)
        net_reset(conn);
}

bool server_flushall(struct server *server)
{
    bool any = false;

    server->is_copy = false;
    server->marker = (struct marker){.exists = false};
    server->marks.len = 0;
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

/* The server crashes, and will come back on a copy of other's data: a snapshot from before all
 * locks that are held now. */
void server_copy(struct server *server, const struct server *other)
{
    server_crash(server, true);
    server->is_copy = true;
    server->marker = server->saved = other->marker;
    server->marks = other->marks;
    server->marker.run = server->saved.run = SIM_RUN_OF_ANOTHER;
}

/* The server is alive, does not hang, and answers without errors again. */
void server_mend(struct server *server)
{
    server->alive = true;
    server->hung = false;
    server->mood = MOOD_FINE;
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next) {
        if (conn->client != NULL)
            process_sicken(conn->process, world.now + 2 * world.plan.quick);
        net_deliver(conn);
    }
}

/* Set a key that belongs to no client, if there is no key. */
void server_plant(struct server *server, unsigned resource, bool wrong_type, uint64_t ttl_ms)
{
    if (store_key(server, resource) != NULL)
        return;
    (void)store_put(server, resource, oracle_foreign_token(), ttl_ms);
    server->keys[resource].wrong_type = wrong_type;
    world_fault(FAULT_FOREIGN);
}
