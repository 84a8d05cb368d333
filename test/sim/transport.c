/*
 * transport.c - redlock/io/transport.h on the made-up network.
 *
 * The whole library above the sockets runs on it: greeting, queues, back-off, silence, parsing.
 * It delivers a stream of bytes as a kernel does.  Pieces end anywhere, a write may take any
 * number of bytes, and the stream may end at any byte, at a read or a write.
 */
#include "net.h"
#include "world.h"

#include "redlock/client/client.h"
#include "redlock/io/transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Half of the first pause of a link, and of the longest, by docs/protocol.md (section 3). */
#define PAUSE_FIRST (25 * DRIFT_MS)
#define PAUSE_LAST DRIFT_S

struct transport {
    const struct transport_events *events;
    void *cookie;
    struct ev_loop *process;
    unsigned place;           /* Its index in process->transports. */
    const struct link *owner; /* NULL: not known yet. */
    struct conn *conn;
    bool is_open;
    bool is_told; /* The library knows that the connection ended. */
    bool awaits_space;
    bool is_stuffed;    /* The socket takes nothing until the next turn. */
    uint64_t timer;     /* When it rings, on the process' clock. */
    uint64_t closed_at; /* When it was closed, on the process' clock; 0: never. */
    unsigned failures;  /* How often it was closed since it served. */
};

struct transport *transport_new(struct loop *loop, const struct transport_events *events,
                                void *cookie)
{
    struct transport *transport = calloc(1, sizeof *transport);
    struct ev_loop *process = process_of_loop(loop);

    if (transport == NULL)
        return NULL;
    transport->events = events;
    transport->cookie = cookie;
    transport->process = process;
    transport->timer = DRIFT_NEVER;
    while (process->transports[transport->place] != NULL)
        if (++transport->place == SIM_TRANSPORTS_MAX)
            world_fail("simulator", "more links than there is room for");
    process->transports[transport->place] = transport;
    return transport;
}

void transport_free(struct transport *transport)
{
    if (transport == NULL)
        return;
    transport_close(transport, false);
    transport->process->transports[transport->place] = NULL;
    free(transport);
}

/* So a link that does not serve is tried six times in the first second, then once in a second. */
static uint64_t shortest_pause(const struct transport *transport)
{
    uint64_t pause = PAUSE_FIRST;

    for (unsigned i = 1; i < transport->failures && pause < PAUSE_LAST; i++)
        pause *= 2;
    return sim_min(pause, PAUSE_LAST);
}

void sim_transport_served(const struct ev_loop *process, const struct link *link)
{
    for (unsigned i = 0; i < SIM_TRANSPORTS_MAX; i++)
        if (process->transports[i] != NULL && process->transports[i]->owner == link)
            process->transports[i]->failures = 0;
}

/* Masters are at 10.0.0.1, 10.0.0.2, ... */
bool transport_open(struct transport *transport, const struct transport_to *to, unsigned turn,
                    struct reason *ret_why)
{
    uint64_t now = process_clock(transport->process);

    (void)turn, (void)ret_why;
    if (transport->conn != NULL)
        world_fail("contract", "a transport that is opened twice");
    if (transport->closed_at != 0 && now - transport->closed_at < shortest_pause(transport))
        world_fail("storms", "a link is tried again %llu us after its failure number %u",
                   (unsigned long long)(now - transport->closed_at) / SIM_US, transport->failures);
    transport->conn = net_connect(transport->process, transport,
                                  (unsigned)(to->host[strlen(to->host) - 1] - '1'));
    return true;
}

enum why transport_silence(const struct transport *transport)
{
    (void)transport;
    return WHY_CONNECT_TIMEOUT;
}

void transport_close(struct transport *transport, bool reset)
{
    (void)reset; /* Always the worse case: commands may still arrive, at once or late. */
    if (transport->conn != NULL) {
        net_close(transport->conn);
        transport->failures++;
    }
    transport->closed_at = process_clock(transport->process);
    transport->conn = NULL;
    transport->is_open = transport->is_told = false;
    transport->awaits_space = transport->is_stuffed = false;
}

/* ---- Bytes ---- */

/* Now and then, a piece ends anywhere. */
static size_t cut(size_t len, enum fault fault)
{
    if (len < 2 || !world.plan.enabled[fault] || !dice_chance(world.plan.cut_permille))
        return len;
    world_fault(fault);
    return 1 + (size_t)dice_below(len - 1);
}

static void end_of_stream(struct transport *transport, struct reason *ret_why)
{
    world_note("end of stream: client", transport->process->number, 0, 0);
    if (dice_chance(300))
        reason_set(ret_why, WHY_CLOSED);
    else
        reason_of_errno(ret_why, ECONNRESET);
}

ssize_t transport_read(struct transport *transport, char *buf, size_t room, struct reason *ret_why)
{
    size_t len = 0;
    struct message *message;

    if (!transport->is_open || transport->is_told)
        world_fail("contract", "a read of a transport that is not open, or that ended");
    room = cut(room < 512 ? room : 512, FAULT_CUT_READ);
    while (len < room && (message = net_peek(transport->conn)) != NULL &&
           message->kind == MESSAGE_BYTES) {
        size_t left = message->len - message->read;
        size_t piece = left < room - len ? left : room - len;

        memcpy(buf + len, message->bytes + message->read, piece);
        len += piece;
        message->read += piece;
        if (message->read == message->len)
            net_done(net_take(transport->conn));
    }
    if (len > 0 || net_peek(transport->conn) == NULL)
        return (ssize_t)len;
    transport->is_told = true;
    end_of_stream(transport, ret_why);
    return -1;
}

/* A write fails if a reset has arrived, perhaps behind unread answers, or if one comes now. */
static bool write_fails(struct transport *transport)
{
    if (net_was_reset(transport->conn)) {
        world_fault(FAULT_WRITE_AFTER_RESET);
        return true;
    }
    if (world.phase != PHASE_CHAOS || !world.plan.enabled[FAULT_WRITE_FAILS] ||
        dice_below(700) != 0)
        return false;
    world_fault(FAULT_WRITE_FAILS);
    net_reset(transport->conn);
    return true;
}

/* Where operators revoke locks, all writes of some turns end before a count.  Then texts come
 * between it and the SET before it. */
static size_t cut_before_count(const struct transport *transport, const char *bytes, size_t len)
{
    static const char count[] = "*4\r\n$7\r\nHINCRBY\r\n";
    const char *at = NULL;

    if (world.phase == PHASE_CHAOS && world.plan.enabled[FAULT_REVOKED] && world.plan.fenced > 0 &&
        transport->process->turn_tag % 4 == 0)
        at = memmem(bytes, len, count, sizeof count - 1);
    return at != NULL && at != bytes ? (size_t)(at - bytes) : len;
}

ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        struct reason *ret_why)
{
    struct message *message;
    size_t room, before;

    if (!transport->is_open || transport->is_told)
        world_fail("contract", "a write to a transport that is not open, or that ended");
    if (write_fails(transport)) {
        transport->is_told = true;
        reason_of_errno(ret_why, dice_chance(500) ? EPIPE : ECONNRESET);
        return -1;
    }
    if (transport->is_stuffed)
        return 0;
    room = net_room(transport->conn);
    if (room < len) {
        world_fault(FAULT_WINDOW_FULL);
        process_sicken(transport->process, process_now(transport->process));
        len = room;
    }
    before = cut_before_count(transport, bytes, len);
    if (before < len || cut(len, FAULT_CUT_WRITE) < len) {
        len = before < len ? before : (size_t)dice_below(len);
        transport->is_stuffed = true;
        process_sicken(transport->process, process_now(transport->process) + world.plan.quick);
    }
    if (len == 0)
        return 0;
    message = net_message(MESSAGE_BYTES, len);
    memcpy(message->bytes, bytes, len);
    message->len = len;
    net_to_server(transport->conn, message);
    return (ssize_t)len;
}

void transport_await_space(struct transport *transport, bool on)
{
    transport->awaits_space = on;
}

/* ---- The timer ---- */

void transport_set_timer(struct transport *transport, drift_span in)
{
    transport->timer =
        in == DRIFT_NEVER ? DRIFT_NEVER : drift_add(process_clock(transport->process), in);
}

bool transport_has_timer(const struct transport *transport)
{
    return transport->timer != DRIFT_NEVER;
}

/* ---- Turns of the loop ---- */

static bool has_space(const struct transport *transport)
{
    return transport->awaits_space && transport->is_open && net_room(transport->conn) > 0;
}

void sim_transport_rest(const struct transport *transport)
{
    if (transport->is_told)
        world_fail("contract", "a transport that ended and is not closed");
}

bool sim_transport_has_io(const struct transport *transport)
{
    return (transport->conn != NULL && net_has_arrived(transport->conn)) || has_space(transport);
}

static void open_or_fail(struct transport *transport)
{
    struct message *message = net_take(transport->conn);
    bool is_open = message->kind == MESSAGE_CONNECTED;
    struct reason why;

    net_done(message);
    if (is_open) {
        transport->is_open = true;
        transport->events->on_open(transport->cookie, NULL);
        return;
    }
    world_fault(FAULT_REFUSED);
    transport_close(transport, false);
    reason_of_errno(&why, ECONNREFUSED);
    transport->events->on_open(transport->cookie, &why);
}

/* Each callback may free the transport. */
void sim_transport_on_io(struct transport *transport)
{
    struct ev_loop *process = transport->process;
    unsigned place = transport->place;

    transport->is_stuffed = false;
    if (transport->conn != NULL && !transport->is_open && net_has_arrived(transport->conn)) {
        open_or_fail(transport);
        return;
    }
    if (transport->conn != NULL && net_has_arrived(transport->conn))
        transport->events->on_bytes(transport->cookie);
    if (process->transports[place] == transport && has_space(transport))
        transport->events->on_space(transport->cookie);
}

uint64_t sim_transport_timer(const struct transport *transport)
{
    return transport->timer;
}

void sim_transport_on_timer(struct transport *transport)
{
    transport->timer = DRIFT_NEVER;
    transport->events->on_timer(transport->cookie);
}

void sim_transport_on_space(struct transport *transport)
{
    if (!transport->awaits_space)
        return;
    process_sicken(transport->process, world.now + world.plan.quick);
    process_poke(transport->process, world.now);
}

void sim_transport_own(const struct ev_loop *process, const struct link *link)
{
    for (unsigned i = 0; i < SIM_TRANSPORTS_MAX; i++)
        if (process->transports[i] != NULL && process->transports[i]->owner == NULL)
            process->transports[i]->owner = link;
}

struct conn *conn_of(const struct ev_loop *process, const struct link *link)
{
    for (unsigned i = 0; i < SIM_TRANSPORTS_MAX; i++)
        if (process->transports[i] != NULL && process->transports[i]->owner == link)
            return process->transports[i]->conn;
    return NULL;
}
