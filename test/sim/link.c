/*
 * link.c - redlock/master.h on the made up network.
 *
 * The same contract as redlock/master.c, which is to be read beside it: one
 * connection and one attempt at a time, answers in order, a full queue that
 * takes nothing more until half of it is gone, what was asked on a broken
 * connection forgotten, and client_deliver() at the end of every event.
 */
#include "sim.h"

#include "redlock/client.h"
#include "redlock/master.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ERROR_MAX 160
#define SILENT_LOOKS 3

/* As in redlock/master.c. */
#define RETRY_FIRST (50 * DRIFT_MS)
#define RETRY_LAST (2 * DRIFT_S)

enum link_state { LINK_DOWN, LINK_CONNECTING, LINK_GREETING, LINK_UP };

struct out {
    struct out *next;
    size_t len;
    char bytes[];
};

struct master {
    struct redlock *rl;
    struct ev_loop *process;
    unsigned number;
    const struct uri *uri;
    enum link_state link;
    struct conn *conn;
    uint64_t timer; /* On the process' clock. */
    unsigned attempts;
    struct master_ask *asks;
    uint32_t asks_first, asks_len, asks_room;
    struct out *out, **out_end;
    bool full, doomed, works;
    bool listens;
    uint64_t answers, answers_seen;
    unsigned silent_looks;
    struct reply reply;
    char text[256], before[64];
    struct master_info info;
    char error[ERROR_MAX];
};

static void set_error(struct master *link, const char *why)
{
    (void)snprintf(link->error, sizeof link->error, "%s", why);
}

static void mark_dirty(struct master *link)
{
    quorum_mask *dirty = link->listens ? &link->rl->listen.dirty : &link->rl->dirty;

    *dirty |= (quorum_mask)(1u << link->number);
}

static void doom(struct master *link, const char *why)
{
    set_error(link, why);
    link->doomed = true;
    mark_dirty(link);
}

static void start_timer(struct master *link, drift_span span)
{
    link->timer = process_clock(link->process) + span;
}

/* ---- Down ---- */

static void drop_out(struct master *link)
{
    link->out = NULL;
    link->out_end = &link->out;
}

static void close_link(struct master *link)
{
    if (link->conn != NULL)
        net_close(link->conn);
    link->conn = NULL;
    link->timer = DRIFT_NEVER;
    link->link = LINK_DOWN;
    link->full = link->doomed = false;
    drop_out(link);
}

static drift_span retry_in(struct master *link)
{
    drift_span span = RETRY_FIRST;

    for (unsigned i = 0; i < link->attempts && span < RETRY_LAST; i++)
        span *= 2;
    if (span > RETRY_LAST)
        span = RETRY_LAST;
    return span / 2 + (drift_span)client_random(link->rl) * (span / 2 / 1000) / UINT32_MAX * 1000;
}

static void go_down(struct master *link)
{
    drift_span span;

    assert(!link->rl->in_event);
    if (link->works)
        link->attempts = 0;
    link->works = false;
    span = retry_in(link);
    world_note("link down: client, master", link->process->number, link->number, 0);
    world_say("    because: %s", link->error);
    link->attempts++;
    if (link->listens) {
        waits_on_trouble(link->process);
        close_link(link);
        client_begin_event(link->rl);
        listen_on_link(link->rl, link->number, false);
        client_end_event(link->rl);
        start_timer(link, span);
        return;
    }
    process_sicken(link->process, process_now(link->process));
    close_link(link);
    client_begin_event(link->rl);
    client_on_link(link->rl, link->number, false);
    client_end_event(link->rl);
    link->asks_first = link->asks_len = 0;
    start_timer(link, span);
}

static void fail(struct master *link, const char *why)
{
    set_error(link, why);
    go_down(link);
}

/* ---- Sending ---- */

static bool has_room(const struct master *link)
{
    return link->asks_len < world.plan.asks_max;
}

static void look_again(struct master *link)
{
    drift_span reply_timeout = link->rl->options.reply_timeout;

    start_timer(link, reply_timeout > DRIFT_S ? reply_timeout : DRIFT_S);
}

static void grow_asks(struct master *link)
{
    uint32_t room = link->asks_room > 0 ? 2 * link->asks_room : 64;
    struct master_ask *asks = memory_take(room * sizeof *asks);

    for (uint32_t i = 0; i < link->asks_len; i++)
        asks[i] = link->asks[(link->asks_first + i) % link->asks_room];
    link->asks = asks;
    link->asks_first = 0;
    link->asks_room = room;
}

static void append(struct master *link, const char *command, size_t command_len)
{
    struct out *out = memory_take(sizeof *out + command_len);

    out->len = command_len;
    memcpy(out->bytes, command, command_len);
    *link->out_end = out;
    link->out_end = &out->next;
    mark_dirty(link);
}

void master_say(struct master *link, const char *command, size_t command_len)
{
    if (link->link == LINK_UP && !link->doomed)
        append(link, command, command_len);
}

void master_send(struct master *link, const struct master_ask *ask, const char *command,
                 size_t command_len)
{
    assert(link->link == LINK_UP);
    if (link->doomed)
        return;
    oracle_on_send(link->process, link->number, ask, command, command_len);
    append(link, command, command_len);
    if (link->asks_len == link->asks_room)
        grow_asks(link);
    link->asks[(link->asks_first + link->asks_len++) % link->asks_room] = *ask;
    if (!has_room(link)) {
        world_fault(FAULT_QUEUE_FULL);
        process_sicken(link->process, process_now(link->process));
        link->full = true;
        standing_on_room(link->rl, link->number, false);
    }
    if (link->timer == DRIFT_NEVER)
        look_again(link);
}

static void look_if_full(struct master *link)
{
    if (!link->full || link->doomed || link->asks_len > world.plan.asks_max / 2)
        return;
    process_sicken(link->process, process_now(link->process));
    link->full = false;
    client_on_room(link->rl, link->number);
}

/* One message of as many commands as the socket takes; the rest waits. */
static void write_out(struct master *link)
{
    size_t room =
        link->conn->unread < world.plan.window ? world.plan.window - link->conn->unread : 0;
    struct out *out = link->out;
    struct message *message;
    size_t len = 0;
    unsigned commands = 0;

    for (; out != NULL && (len + out->len <= room || link->conn->unread + len == 0);
         out = out->next) {
        len += out->len;
        commands++;
    }
    if (out != NULL) {
        world_fault(FAULT_WINDOW_FULL);
        process_sicken(link->process, process_now(link->process));
    }
    if (commands == 0)
        return;
    message = net_message(MESSAGE_COMMANDS, len);
    for (unsigned i = 0; i < commands; i++, link->out = link->out->next) {
        memcpy(message->bytes + message->len, link->out->bytes, link->out->len);
        message->len += link->out->len;
    }
    if (link->out == NULL)
        drop_out(link);
    message->commands = commands;
    net_to_server(link->conn, message);
}

void master_write(struct master *link)
{
    if (link->doomed)
        mark_dirty(link); /* For the flush that takes it down. */
    else if (link->link == LINK_UP && link->out != NULL)
        write_out(link);
}

void master_flush(struct master *link)
{
    master_write(link);
    if (link->doomed) {
        go_down(link);
        return;
    }
    client_begin_event(link->rl);
    look_if_full(link);
    client_end_event(link->rl);
}

void link_on_window(struct master *link)
{
    if (link->link == LINK_UP && link->out != NULL) {
        mark_dirty(link); /* Flushed before the loop sleeps, as a writable socket would be. */
        process_sicken(link->process, world.now + world.plan.quick);
        process_poke(link->process, world.now);
    }
}

/* ---- Receiving ---- */

static void decode(struct master *link, const struct answer *answer)
{
    const char *text = answer->text;
    size_t before_len = answer->type == REPLY_ARRAY ? strcspn(text, " ") : 0;

    link->reply.type = answer->type;
    link->reply.integer = answer->integer;
    (void)snprintf(link->before, sizeof link->before, "%.*s", (int)before_len, text);
    text += before_len > 0 ? before_len + 1 : 0;
    (void)snprintf(link->text, sizeof link->text, "%s", text);
    link->reply.text = link->text;
    link->reply.text_len = strlen(link->text);
    link->reply.before = link->before;
    link->reply.before_len = strlen(link->before);
}

static void on_push(struct master *link, const struct answer *answer)
{
    link->answers += answer->type != REPLY_ERROR;
    decode(link, answer);
    world_say("    client %u is told by master %u: %s %s", link->process->number, link->number,
              link->before, link->text);
    waits_on_heard(link->process);
    listen_on_push(link->rl, link->number, &link->reply);
}

static void on_answer(struct master *link, const struct answer *answer)
{
    struct master_ask ask;

    if (link->listens) {
        on_push(link, answer);
        return;
    }
    if (link->asks_len == 0) {
        doom(link, "said something that nobody asked");
        return;
    }
    ask = link->asks[link->asks_first];
    link->asks_first = (link->asks_first + 1) % link->asks_room;
    link->asks_len--;
    link->answers += ask.command != MASTER_LOOK;
    link->works |= ask.command != MASTER_LOOK && ask.command != MASTER_TIME;
    decode(link, answer);
    if (ask.command == MASTER_LOOK)
        process_sicken(link->process, process_now(link->process));
    if (answer->type == REPLY_ERROR && strncmp(answer->text, "NOSCRIPT", 8) != 0)
        process_sicken(link->process, process_now(link->process));
    oracle_on_answer(link->process, link->number, &ask, answer);
    client_on_reply(link->rl, link->number, &ask, &link->reply);
}

static void on_welcome(struct master *link, const struct answer *answer)
{
    if (answer->type == REPLY_ERROR) {
        doom(link, answer->text);
        return;
    }
    (void)snprintf(link->info.run_id, sizeof link->info.run_id, "%020x%020llx", link->number + 1,
                   (unsigned long long)answer->integer);
    link->info.keeps = '1';
    link->info.syncs = world.servers[link->number].keeps;
    link->link = LINK_UP;
    link->error[0] = '\0';
    link->timer = DRIFT_NEVER;
    process_sicken(link->process, process_now(link->process));
    world_note("link up: client, master", link->process->number, link->number, 0);
    client_on_link(link->rl, link->number, true);
}

static void on_connected(struct master *link)
{
    link->link = LINK_GREETING;
    link->answers = link->answers_seen = 0;
    link->silent_looks = 0;
    if (!link->listens) {
        net_to_server(link->conn, net_message(MESSAGE_GREETING, 0));
        return;
    }
    link->link = LINK_UP;
    link->timer = DRIFT_NEVER;
    waits_on_trouble(link->process);
    listen_on_link(link->rl, link->number, true);
}

static void on_answers(struct master *link, const struct message *message)
{
    for (unsigned i = 0; i < message->commands && !link->doomed; i++)
        on_answer(link, &message->answers[i]);
    look_if_full(link);
}

/* What does not end the link. */
static void take_event(struct master *link, const struct message *message)
{
    client_begin_event(link->rl);
    if (message->kind == MESSAGE_CONNECTED)
        on_connected(link);
    else if (message->kind == MESSAGE_WELCOME)
        on_welcome(link, &message->answers[0]);
    else
        on_answers(link, message);
    client_end_event(link->rl);
}

/* False: the link is down. */
static bool take_message(struct master *link, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_CONNECTED:
    case MESSAGE_WELCOME:
    case MESSAGE_ANSWERS:
        take_event(link, message);
        break;
    case MESSAGE_REFUSED:
        world_fault(FAULT_REFUSED);
        fail(link, "Connection refused");
        return false;
    case MESSAGE_RESET:
        fail(link, "Connection reset by peer");
        return false;
    case MESSAGE_GREETING:
    case MESSAGE_COMMANDS:
        world_fail("simulator", "a command for a client");
    }
    if (!link->doomed)
        return true;
    go_down(link);
    return false;
}

bool link_has_io(const struct master *link)
{
    return link->conn != NULL && net_has_arrived(link->conn);
}

/* All that has arrived, or, as a loop may, only the first of it. */
void link_on_io(struct master *link)
{
    struct redlock *rl = link->rl;
    bool all = !dice_chance(200);

    do {
        struct message *message = net_take(link->conn);
        bool goes_on;

        if (message == NULL)
            break;
        goes_on = take_message(link, message);
        net_done(message);
        if (!goes_on)
            break;
    } while (all);
    client_deliver(rl); /* Last: rl may be gone. */
}

/* ---- Timers ---- */

uint64_t link_timer(const struct master *link)
{
    return link->timer;
}

static void attempt(struct master *link)
{
    start_timer(link, link->rl->options.connect_timeout);
    link->link = LINK_CONNECTING;
    link->conn = net_connect(link->process, link, link->number);
}

static void look_for_silence(struct master *link)
{
    if (link->asks_len == 0) {
        link->silent_looks = 0;
        return; /* The next command starts the timer again. */
    }
    if (link->answers != link->answers_seen)
        link->silent_looks = 0;
    link->answers_seen = link->answers;
    if (++link->silent_looks > SILENT_LOOKS) {
        world_fault(FAULT_MUTE);
        fail(link, "takes commands and does not answer");
        return;
    }
    look_again(link);
}

void link_on_timer(struct master *link)
{
    struct redlock *rl = link->rl;

    link->timer = DRIFT_NEVER;
    switch (link->link) {
    case LINK_DOWN:
        attempt(link);
        break;
    case LINK_CONNECTING:
        world_fault(FAULT_CONNECT_TIMEOUT);
        fail(link, "timeout while connecting");
        break;
    case LINK_GREETING:
        world_fault(FAULT_GREETING_TIMEOUT);
        fail(link, "connected, but does not answer");
        break;
    case LINK_UP:
        look_for_silence(link);
        break;
    }
    client_deliver(rl);
}

/* ---- The outside ---- */

struct master *master_new(struct redlock *rl, unsigned number, const struct uri *uri,
                          struct ev_loop *process)
{
    struct master *link = memory_take(sizeof *link);

    link->rl = rl;
    link->process = process;
    link->number = number;
    link->uri = uri;
    link->timer = DRIFT_NEVER;
    drop_out(link);
    set_error(link, "not connected yet");
    return link;
}

struct master *master_new_listener(struct redlock *rl, unsigned number, const struct uri *uri,
                                   struct ev_loop *process)
{
    struct master *link = master_new(rl, number, uri, process);

    link->listens = true;
    return link;
}

void master_free(struct master *link)
{
    assert(!link->rl->in_event);
    close_link(link);
}

void master_start(struct master *link)
{
    start_timer(link, 0);
}

void master_relink(struct master *link, const char *reason)
{
    doom(link, reason);
}

void master_note(struct master *link, const char *error)
{
    if (!link->doomed)
        set_error(link, error);
}

const char *master_name(const struct master *link)
{
    return link->uri->name;
}

const char *master_error(const struct master *link)
{
    return link->error;
}

const struct master_info *master_info(const struct master *link)
{
    return &link->info;
}

bool link_is_up(const struct master *link)
{
    return link->link == LINK_UP;
}

bool link_is_full(const struct master *link)
{
    return link->full || link->doomed;
}

struct conn *link_conn(const struct master *link)
{
    return link->conn;
}
