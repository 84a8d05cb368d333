/*
 * net.c - connections: each delivers in order; there is no order among them.
 *
 * Commands that were sent before a connection was closed may still arrive, at once or much
 * later.  TCP does the same: data wait in the socket of a process that hangs, even if the
 * sender has closed the connection.
 */
#include "net.h"
#include "tls.h"
#include "world.h"

static struct message *spare;
static uint64_t conns;

void net_begin(void)
{
    spare = NULL;
    conns = 0;
}

#define MESSAGE_ROOM 1024 /* Most messages are smaller.  Those that fit are used again. */

struct message *net_message(enum message_kind kind, size_t room)
{
    struct message *message = room <= MESSAGE_ROOM ? spare : NULL;
    size_t all = room <= MESSAGE_ROOM ? MESSAGE_ROOM : room;

    if (message != NULL) {
        spare = message->next;
    } else {
        message = memory_take(sizeof *message);
        message->bytes = memory_take(all);
        message->room = all;
    }
    message->next = NULL;
    message->kind = kind;
    message->len = message->read = 0;
    return message;
}

void net_done(struct message *message)
{
    if (message->room != MESSAGE_ROOM)
        return;
    message->next = spare;
    spare = message;
}

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static struct message *queue_take(struct queue *queue)
{
    struct message *message = queue->first;

    queue->first = message->next;
    if (queue->first == NULL)
        queue->end = &queue->first;
    return message;
}

static void drop_all(struct queue *queue)
{
    while (queue->first != NULL)
        net_done(queue_take(queue));
}

/* ---- Delays ---- */

static sim_time delay(void)
{
    const struct plan *plan = &world.plan;
    sim_time reply_timeout = plan->reply_timeout_ms * DRIFT_MS;

    if (world.phase != PHASE_CHAOS || !dice_chance(plan->slow_permille))
        return plan->hop + dice_below(plan->hop);
    if (dice_chance(100))
        return dice_magnitude(reply_timeout, 2 * plan->ttl_max_ms * DRIFT_MS + reply_timeout * 2);
    return dice_range(reply_timeout / 4, 2 * reply_timeout);
}

static sim_time arrival(const struct conn *conn, const struct queue *queue, sim_time now)
{
    sim_time at = sim_max(now + delay(), queue->last);

    if (conn->client != NULL && at - now > world.plan.quick)
        process_sicken(conn->process, at + world.plan.quick);
    if (conn->client != NULL && at - now > world.plan.reply_timeout_ms * DRIFT_MS)
        world_fault(FAULT_SLOW);
    return at;
}

static void push(struct conn *conn, struct queue *queue, struct message *message, sim_time now,
                 enum event_type event)
{
    message->sent = now;
    message->at = queue->last = arrival(conn, queue, now);
    message->next = NULL;
    *queue->end = message;
    queue->end = &message->next;
    world_post(message->at, event, conn, 0);
}

/* ---- Sending ---- */

struct conn *net_connect(struct ev_loop *process, struct transport *client, unsigned number)
{
    struct server *server = &world.servers[number];
    struct conn *conn = memory_take(sizeof *conn);

    conn->number = ++conns;
    conn->server = server;
    conn->process = process;
    conn->client = client;
    conn->accepted = server->alive;
    conn->master = number;
    conn->doom = FAULT_LEN;
    queue_init(&conn->to_server);
    queue_init(&conn->to_client);
    conn->next = server->conns;
    server->conns = conn;
    conn->to_server.blocked_until = conn->to_client.blocked_until = process->cut[number];
    if (world.plan.tls && server->alive)
        conn->tls = sim_tls_accept(world.plan.tls_old >> number & 1);
    if (server->alive)
        net_to_client(conn, net_message(MESSAGE_CONNECTED, 0));
    else
        net_reset(conn);
    return conn;
}

void net_to_server(struct conn *conn, struct message *message)
{
    if (conn->reset) {
        net_done(message);
        return;
    }
    conn->spoken = true;
    conn->unread += message->len;
    push(conn, &conn->to_server, message, process_now(conn->process), EVENT_TO_SERVER);
}

void net_to_client(struct conn *conn, struct message *message)
{
    if (conn->client == NULL) {
        net_done(message);
        return;
    }
    if (conn->mute && message->kind == MESSAGE_BYTES)
        world_fault(FAULT_SILENCE);
    push(conn, &conn->to_client, message, process_now(conn->process), EVENT_TO_CLIENT);
}

/* The server often still executes the commands in its socket, sometimes late. */
void net_close(struct conn *conn)
{
    const struct plan *plan = &world.plan;

    conn->client = NULL;
    drop_all(&conn->to_client);
    if (conn->to_server.first == NULL || world.phase != PHASE_CHAOS)
        return;
    if (dice_chance(300)) {
        drop_all(&conn->to_server);
    } else if (dice_chance(500)) {
        conn->to_server.blocked_until =
            world.now + dice_magnitude(plan->hop, 3 * plan->ttl_max_ms * DRIFT_MS);
        world_post(conn->to_server.blocked_until, EVENT_TO_SERVER, conn, 0);
    }
}

static bool is_due(const struct queue *queue)
{
    return queue->first != NULL && queue->first->at <= world.now &&
           queue->blocked_until <= world.now;
}

static void wait_for_block(struct conn *conn, const struct queue *queue, enum event_type event)
{
    if (queue->first != NULL && queue->blocked_until > world.now &&
        queue->blocked_until != SIM_NEVER && queue->first->at <= world.now)
        world_post(queue->blocked_until, event, conn, 0);
}

/* True if the client has sent something on a newer connection to this server. */
static bool is_old(const struct conn *conn)
{
    const struct conn *other = conn->server->conns;

    if (conn->client != NULL)
        return false;
    for (; other != conn; other = other->next)
        if (other->process == conn->process && other->client != NULL && other->spoken)
            return true;
    return false;
}

/* The server executes some, all or none of the message.  No answer reaches the client. */
static void break_over(struct conn *conn, struct message *message)
{
    size_t len = message->len;

    if (conn->doom == FAULT_RESET_BEFORE)
        len = 0;
    else if (conn->doom == FAULT_RESET_MIDDLE)
        len = (size_t)dice_below(len);
    world_fault(conn->doom);
    server_take_some(conn, message, len);
    net_reset(conn);
}

void net_deliver(struct conn *conn)
{
    struct server *server = conn->server;

    while (is_due(&conn->to_server) && server->alive) {
        struct message *message = conn->to_server.first;

        if (server->hung) {
            world_fault(FAULT_HANG);
            process_sicken(conn->process, world.now + world.plan.quick);
            return;
        }
        message = queue_take(&conn->to_server);
        conn->unread -= message->len;
        if (is_old(conn))
            world_fault(FAULT_LATE_OLD);
        if (conn->doom != FAULT_LEN && conn->client != NULL)
            break_over(conn, message);
        else
            server_take(conn, message);
        net_done(message);
        if (conn->client != NULL)
            sim_transport_on_space(conn->client);
    }
    wait_for_block(conn, &conn->to_server, EVENT_TO_SERVER);
}

void net_arrive(struct conn *conn)
{
    if (conn->client == NULL || conn->to_client.first == NULL)
        return;
    if (is_due(&conn->to_client))
        process_poke(conn->process, world.now + dice_below(20 * SIM_US));
    else
        wait_for_block(conn, &conn->to_client, EVENT_TO_CLIENT);
}

bool net_has_arrived(const struct conn *conn)
{
    return is_due(&conn->to_client);
}

struct message *net_peek(struct conn *conn)
{
    if (is_due(&conn->to_client))
        return conn->to_client.first;
    wait_for_block(conn, &conn->to_client, EVENT_TO_CLIENT);
    return NULL;
}

struct message *net_take(struct conn *conn)
{
    return queue_take(&conn->to_client);
}

bool net_was_reset(const struct conn *conn)
{
    const struct message *message = conn->to_client.first;

    while (message != NULL && message->kind != MESSAGE_RESET)
        message = message->next;
    return message != NULL && message->at <= world.now &&
           conn->to_client.blocked_until <= world.now;
}

size_t net_room(const struct conn *conn)
{
    return conn->unread < world.plan.window ? world.plan.window - conn->unread : 0;
}

void net_reset(struct conn *conn)
{
    struct message *message;

    if (conn->reset)
        return;
    conn->reset = true;
    drop_all(&conn->to_server);
    conn->unread = conn->inbox_len = 0;
    if (conn->client == NULL)
        return;
    if (conn->to_client.blocked_until == SIM_NEVER)
        drop_all(&conn->to_client); /* They would block the reset. */
    if (conn->to_client.blocked_until == SIM_NEVER)
        conn->to_client.blocked_until = 0;
    /* A client that heard so closes, though the stream does not end. */
    if (conn->tls != NULL && !conn->mute && dice_chance(500) && server_say_goodbye(conn) &&
        dice_chance(500))
        return;
    message = net_message(conn->accepted ? MESSAGE_RESET : MESSAGE_REFUSED, 0);
    net_to_client(conn, message);
}

void net_silence(struct conn *conn)
{
    if (conn->reset || conn->mute)
        return;
    conn->mute = true;
    conn->mute_until = world.now + NET_SILENCE_MAX;
    conn->to_client.blocked_until = SIM_NEVER;
    world_post(conn->mute_until, EVENT_GIVE_UP, conn, 0);
}

void net_give_up(struct conn *conn)
{
    if (conn->mute && conn->client != NULL)
        net_reset(conn);
}

/* No message arrives before it is sent: a process that stalled in its turn sends later.  The
 * order stays. */
static void hurry(struct conn *conn, struct queue *queue, enum event_type event)
{
    queue->blocked_until = queue->last = 0;
    for (struct message *message = queue->first; message != NULL; message = message->next) {
        message->at = sim_min(message->at, sim_max(message->sent, world.now));
        queue->last = message->at;
        world_post(message->at, event, conn, 0);
    }
}

void net_hurry(struct conn *conn)
{
    conn->mute = false;
    conn->doom = FAULT_LEN;
    if (conn->client != NULL)
        process_sicken(conn->process, world.now + 2 * world.plan.quick);
    hurry(conn, &conn->to_server, EVENT_TO_SERVER);
    hurry(conn, &conn->to_client, EVENT_TO_CLIENT);
}
