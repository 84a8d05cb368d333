/*
 * master.c - the link: resolve, connect, greet, up; and down again.
 */
#include "redlock/master.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>
#include <hiredis/read.h>
#include <sodium.h>

#include "redlock/client.h"
#include "redlock/dial.h"
#include "redlock/handshake.h"
#include "redlock/loop.h"
#include "redlock/reply.h"
#include "redlock/resolve.h"

#define ERROR_MAX 160

#define READ_MAX (16u << 10) /* Chosen: the answers to hundreds of locks. */

/* Time between two attempts: doubled from the first to the last, and then
 * shortened by up to a half at random, so that clients that lost a master
 * together do not come back together.  No source; a restart takes redis-server
 * about 100 ms, and one SYN every two seconds is no load. */
#define RETRY_FIRST_S 0.05
#define RETRY_LAST_S 2.0

/* A link that owes answers and has given none at so many looks in a row, a
 * second or a reply timeout apart, is taken down: a host that vanished sends
 * no reset, and the kernel would try for a quarter of an hour. */
#define SILENT_LOOKS 3

/* A server that is listed twice keeps the link that it had: when that breaks it
 * has so many attempts, a second or two, before the other may take its place,
 * or the leases that were asked for on it would be lost. */
#define TWIN_ATTEMPTS 5

/* Bytes of an empty buffer that are kept for the next commands: more than a
 * thousand locks take.  What a master that was slow made it grow to is freed. */
#define OUT_KEPT_MAX (256u << 10)

enum link_state { LINK_DOWN, LINK_RESOLVING, LINK_CONNECTING, LINK_GREETING, LINK_UP };

struct master {
    struct redlock *rl;
    unsigned number;
    const struct uri *uri;
    struct ev_loop *ev;
    enum link_state link;
    int fd;                   /* From CONNECTING on; else -1. */
    redisReader *reader;      /* Likewise; else NULL. */
    struct resolve *resolve;  /* RESOLVING; CONNECTING to one of its addresses. */
    unsigned addresses_tried; /* Of these, in this attempt. */
    struct reply reply;
    ev_io readable, writable;
    ev_timer timer;    /* Timeout, next look for silence, or next attempt, by link. */
    unsigned attempts; /* In a row without success. */
    struct handshake handshake;

    struct master_ask *asks; /* A ring: what was sent and not answered. */
    uint32_t asks_first, asks_len, asks_room;
    char *out; /* What was not sent yet: [out_sent, out_len). */
    size_t out_sent, out_len, out_room;
    bool full;        /* Takes no more commands for now. */
    bool doomed;      /* Goes down at the next flush, because of error. */
    bool refused;     /* That it did not pass the handshake has been told. */
    bool served;      /* It is up, or was, and what it was then is in info. */
    bool listens;     /* Only: see master_new_listener(). */
    uint64_t answers; /* On this connection; and when last looked. */
    uint64_t answers_seen;
    bool works; /* It has answered more on it than how it is. */
    unsigned silent_looks;

    struct master_info info;
    char error[ERROR_MAX];
};

static void set_error(struct master *master, const char *what, const char *why)
{
    (void)snprintf(master->error, sizeof master->error, "%s%s", what, why);
    for (char *p = master->error; *p != 0; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?'; /* What a master says goes into logs, one line each. */
}

/* It has something to write, or to close. */
static void mark_dirty(struct master *master)
{
    struct redlock *rl = master->rl;
    quorum_mask *dirty = master->listens ? &rl->listen.dirty : &rl->dirty;

    *dirty |= (quorum_mask)(1u << master->number);
}

static void doom(struct master *master, const char *what, const char *why)
{
    set_error(master, what, why);
    master->doomed = true;
    mark_dirty(master);
}

/* ---- Down ---- */

/* There is nothing to send any more. */
static void empty_out(struct master *master)
{
    master->out_sent = master->out_len = 0;
    if (master->out_room <= OUT_KEPT_MAX)
        return;
    free(master->out);
    master->out = NULL;
    master->out_room = 0;
}

/* Give up the connection, but not the attempt. */
static void disconnect(struct master *master)
{
    ev_io_stop(master->ev, &master->readable);
    ev_io_stop(master->ev, &master->writable);
    if (master->reader != NULL)
        redisReaderFree(master->reader);
    if (master->fd >= 0)
        (void)close(master->fd);
    master->reader = NULL;
    master->fd = -1;
}

static void close_link(struct master *master)
{
    disconnect(master);
    ev_timer_stop(master->ev, &master->timer);
    if (master->resolve != NULL)
        resolve_free(master->resolve);
    master->resolve = NULL;
    master->link = LINK_DOWN;
    if (master->out != NULL)
        sodium_memzero(master->out, master->out_len); /* May hold a password. */
    empty_out(master);
    master->full = master->doomed = false;
}

static void start_timer(struct master *master, double seconds)
{
    ev_timer_stop(master->ev, &master->timer);
    ev_timer_set(&master->timer, seconds, 0);
    ev_timer_start(master->ev, &master->timer);
    loop_kick(master->rl->loop);
}

static double retry_in(struct master *master)
{
    double seconds = RETRY_FIRST_S;

    for (unsigned i = 0; i < master->attempts && seconds < RETRY_LAST_S; i++)
        seconds *= 2;
    if (seconds > RETRY_LAST_S)
        seconds = RETRY_LAST_S;
    return seconds * (0.5 + client_random(master->rl) / (2.0 * UINT32_MAX));
}

static struct master_ask take_ask(struct master *master)
{
    const struct master_ask ask = master->asks[master->asks_first];

    /* The room is a power of two, and MASTER_ASKS_MAX is too. */
    master->asks_first = (master->asks_first + 1) & (master->asks_room - 1);
    master->asks_len--;
    return ask;
}

/* Questions of the command's own are told; leases hear of the link. */
static void drop_asks(struct master *master)
{
    while (master->asks_len > 0) {
        const struct master_ask ask = take_ask(master);

        if (ask.command == MASTER_QUERY)
            client_on_reply(master->rl, master->number, &ask, NULL);
    }
}

static void tell_of_end(struct master *master)
{
    client_begin_event(master->rl);
    if (master->listens) {
        listen_on_link(master->rl, master->number, false);
    } else {
        client_on_link(master->rl, master->number, false);
        drop_asks(master);
    }
    client_end_event(master->rl);
}

/* The link is down, or did not come up; error says why.  Nobody up the stack uses it. */
static void go_down(struct master *master)
{
    bool was_up = master->link == LINK_UP, greeted = master->link == LINK_GREETING;
    double seconds;

    assert(!master->rl->in_event);
    if (master->works) /* It served; what it did not since counts anew. */
        master->attempts = 0;
    master->works = false;
    seconds = retry_in(master);
    if (master->listens) { /* The other link tells what is wrong with the master. */
        master->attempts++;
        close_link(master);
        tell_of_end(master);
        start_timer(master, seconds);
        return;
    }
    /* What comes back as a replica, say, is told once more: it is not only gone. */
    if (was_up || master->attempts == 0 || (greeted && !master->refused))
        client_log(master->rl, REDLOCK_LOG_WARNING, "master %u (%s): %s; next attempt in %d ms",
                   master->number + 1, master->uri->name, master->error, (int)(seconds * 1000));
    master->refused = !was_up && (master->refused || greeted);
    master->attempts++;
    close_link(master);
    tell_of_end(master);
    start_timer(master, seconds);
}

static void fail(struct master *master, const char *what, const char *why)
{
    set_error(master, what, why);
    go_down(master);
}

/* ---- Sending, and greeting ---- */

/* Make room for so many bytes more; false: the link is doomed. */
static bool make_room(struct master *master, size_t len)
{
    size_t room = master->out_room ? master->out_room : 4096;
    char *out;

    if (master->out_room - master->out_len >= len)
        return true;
    while (room - master->out_len < len)
        room *= 2;
    out = realloc(master->out, room);
    if (out == NULL) {
        doom(master, "out of memory", "");
        return false;
    }
    master->out = out;
    master->out_room = room;
    return true;
}

static void append(struct master *master, const char *bytes, size_t len)
{
    if (!make_room(master, len))
        return;
    memcpy(master->out + master->out_len, bytes, len);
    master->out_len += len;
    mark_dirty(master);
}

/* Another link that leads to the same server, and is up, or will soon be again;
 * NULL: none. */
static const struct master *find_twin(const struct master *master)
{
    for (unsigned m = 0; m < master->rl->options.masters_len; m++) {
        const struct master *other = master->rl->masters[m];
        bool stays = other->link == LINK_UP || (other->served && other->attempts < TWIN_ATTEMPTS);

        if (other != master && stays && handshake_is_same(&other->info, &master->info))
            return other;
    }
    return NULL;
}

/* One server has one vote, by whichever link came up first; the other links to
 * it stay down as long as that one is up. */
static bool is_twin(struct master *master)
{
    const struct master *twin = find_twin(master);
    char text[ERROR_MAX];

    master->served = twin == NULL;
    if (twin == NULL)
        return false;
    (void)snprintf(text, sizeof text, "is the same server as master %u (%s)", twin->number + 1,
                   twin->uri->name);
    doom(master, "", text);
    return true;
}

/* What it may vote with, but should not have to. */
static void warn(const struct master *master)
{
    const struct master_info *info = &master->info;

    if (handshake_evicts(info))
        client_log(master->rl, REDLOCK_LOG_WARNING,
                   "master %u (%s): maxmemory-policy is %s: when its memory is full it drops "
                   "locks that are held; set noeviction",
                   master->number + 1, master->uri->name, info->policy);
    if (handshake_forgets(info))
        client_log(master->rl, REDLOCK_LOG_WARNING,
                   "master %u (%s): appendonly is no: restarted, it has forgotten its locks",
                   master->number + 1, master->uri->name);
}

static void come_up(struct master *master)
{
    bool guarded = !master->listens && master->rl->options.restart_guard;

    master->link = LINK_UP;
    /* Until its look is answered (standing.c). */
    set_error(master, "", guarded ? "has not told yet whether it may vote" : "");
    ev_timer_stop(master->ev, &master->timer);
    if (master->listens) {
        listen_on_link(master->rl, master->number, true);
        return;
    }
    client_log(master->rl, REDLOCK_LOG_INFO, "master %u (%s): up, version %s", master->number + 1,
               master->uri->name, master->info.version);
    warn(master);
    client_on_link(master->rl, master->number, true);
}

static void greet(struct master *master)
{
    bool guarded = master->rl->options.restart_guard;
    char *bytes;
    size_t len;

    master->link = LINK_GREETING;
    master->answers = master->answers_seen = 0;
    master->silent_looks = 0;
    if (master->listens && master->uri->password == NULL) {
        come_up(master);
        return;
    }
    len = master->listens ? handshake_begin_listening(&master->handshake, master->uri, &bytes)
                          : handshake_begin(&master->handshake, master->uri, guarded, &bytes);
    if (len == 0) {
        doom(master, "out of memory", "");
        return;
    }
    append(master, bytes, len);
    sodium_memzero(bytes, len);
    free(bytes);
}

static void on_greeting(struct master *master)
{
    char error[ERROR_MAX];

    switch (handshake_on_reply(&master->handshake, &master->reply, &master->info, error,
                               sizeof error)) {
    case HANDSHAKE_GOES_ON:
        return;
    case HANDSHAKE_FAILED:
        doom(master, "", error);
        return;
    case HANDSHAKE_DONE:
        break;
    }
    if (master->reader->pos < master->reader->len) {
        doom(master, "said something that nobody asked", "");
        return;
    }
    if (master->listens || !is_twin(master))
        come_up(master);
}

/* ---- Sending ---- */

static bool has_room(const struct master *master)
{
    return master->asks_len < MASTER_ASKS_MAX - 3 && /* For a count and a proof. */
           master->out_len - master->out_sent < MASTER_UNSENT_MAX;
}

static void look_again(struct master *master)
{
    double reply_timeout_s = (double)master->rl->options.reply_timeout / (double)DRIFT_S;

    start_timer(master, reply_timeout_s > 1 ? reply_timeout_s : 1);
}

static bool grow_asks(struct master *master)
{
    uint32_t room = master->asks_room ? master->asks_room * 2 : 64;
    struct master_ask *asks = malloc(room * sizeof *asks);

    if (asks == NULL)
        return false;
    for (uint32_t i = 0; i < master->asks_len; i++)
        asks[i] = master->asks[(master->asks_first + i) % master->asks_room];
    free(master->asks);
    master->asks = asks;
    master->asks_first = 0;
    master->asks_room = room;
    return true;
}

void master_send(struct master *master, const struct master_ask *ask, const char *command,
                 size_t command_len)
{
    assert(master->link == LINK_UP);
    if (master->doomed)
        return;
    if (master->asks_len == master->asks_room && !grow_asks(master)) {
        doom(master, "out of memory", "");
        return;
    }
    append(master, command, command_len);
    if (master->doomed)
        return;
    master->asks[(master->asks_first + master->asks_len++) & (master->asks_room - 1)] = *ask;
    if (!has_room(master)) {
        master->full = true;
        standing_on_room(master->rl, master->number, false);
    }
    if (!ev_is_active(&master->timer)) {
        look_again(master);
    }
}

void master_say(struct master *master, const char *command, size_t command_len)
{
    if (master->link != LINK_UP || master->doomed)
        return; /* When it comes up, all is said anew. */
    if (has_room(master))
        append(master, command, command_len);
    else
        doom(master, "takes no commands", "");
}

static void look_if_full(struct master *master)
{
    /* At half only: each time, all leases are looked at. */
    if (!master->full || master->doomed || master->asks_len > MASTER_ASKS_MAX / 2 ||
        master->out_len - master->out_sent > MASTER_UNSENT_MAX / 2)
        return;
    master->full = false;
    client_on_room(master->rl, master->number);
}

static void write_out(struct master *master)
{
    while (master->out_sent < master->out_len) {
        ssize_t n = send(master->fd, master->out + master->out_sent,
                         master->out_len - master->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            doom(master, "", strerror(errno));
            return;
        }
        master->out_sent += (size_t)n;
    }
    if (master->out_sent == master->out_len) {
        if (master->link == LINK_GREETING)
            sodium_memzero(master->out, master->out_len);
        empty_out(master);
    } else if (master->out_sent > master->out_room / 2) {
        master->out_len -= master->out_sent;
        memmove(master->out, master->out + master->out_sent, master->out_len);
        master->out_sent = 0;
    }
}

/* Have the loop tell when the rest can be written. */
static void watch_writer(struct master *master)
{
    if (master->out_len == 0) {
        ev_io_stop(master->ev, &master->writable);
    } else if (!ev_is_active(&master->writable)) {
        ev_io_start(master->ev, &master->writable);
        loop_kick(master->rl->loop);
    }
}

void master_write(struct master *master)
{
    bool is_open = master->link == LINK_UP || master->link == LINK_GREETING;

    if (is_open && !master->doomed)
        write_out(master);
    if (master->doomed)
        mark_dirty(master); /* For the flush that takes it down. */
    else if (is_open)
        watch_writer(master);
}

void master_flush(struct master *master)
{
    master_write(master);
    if (master->doomed) {
        go_down(master);
        return;
    }
    client_begin_event(master->rl);
    look_if_full(master);
    client_end_event(master->rl);
}

/* ---- Receiving ---- */

static void on_answer(struct master *master)
{
    struct master_ask ask;

    if (master->listens) {
        master->answers += master->reply.type != REPLY_ERROR;
        listen_on_push(master->rl, master->number, &master->reply);
        return;
    }
    if (master->asks_len == 0) {
        doom(master, "said something that nobody asked", "");
        return;
    }
    ask = take_ask(master);
    master->answers += ask.command != MASTER_LOOK; /* Which may be all that fails. */
    master->works |= ask.command != MASTER_LOOK && ask.command != MASTER_TIME;
    client_on_reply(master->rl, master->number, &ask, &master->reply);
}

/* What has come, up to so much: the loop calls again. */
static void read_bytes(struct master *master)
{
    char bytes[READ_MAX];
    ssize_t n = recv(master->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n > 0 && redisReaderFeed(master->reader, bytes, (size_t)n) != REDIS_OK)
        doom(master, "", master->reader->errstr);
    else if (n == 0)
        doom(master, "", "Server closed the connection");
    else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        doom(master, "", strerror(errno));
}

static void read_answers(struct master *master)
{
    void *reply;

    read_bytes(master);
    while (!master->doomed) {
        if (redisReaderGetReply(master->reader, &reply) != REDIS_OK) {
            doom(master, "answered with garbage: ", master->reader->errstr);
            return;
        }
        if (reply == NULL)
            break;
        if (master->link == LINK_UP)
            on_answer(master);
        else
            on_greeting(master);
    }
    if (!master->doomed && reply_overflows(master->reader))
        doom(master, "answers without end", "");
    look_if_full(master);
}

static void on_readable(struct ev_loop *ev, ev_io *io, int events)
{
    struct master *master = io->data;
    struct redlock *rl = master->rl;

    (void)ev, (void)events;
    client_begin_event(rl);
    read_answers(master);
    client_end_event(rl);
    if (master->doomed)
        go_down(master);
    client_deliver(rl); /* Last: rl may be gone. */
}

/* ---- Connecting ---- */

static void set_tcp(int fd)
{
    const int on = 1, idle_s = 15, interval_s = 5;
    const unsigned unheard_ms = 15000;

    /* The kernel gives up an idle link to a vanished host at the second probe, after 20 s, and
     * unacknowledged bytes 15 s after they were sent.  Without TCP_USER_TIMEOUT it stops probing
     * while bytes are unacknowledged, and sends these again for a quarter of an hour: a link that
     * listens, which has no timeout of its own, would stay deaf so long after a subscription. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard_ms, sizeof unheard_ms);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* False: there is nothing to wait for; error says why. */
static bool connect_to(struct master *master, const char *address)
{
    const struct uri *uri = master->uri;

    master->reader = reply_reader(&master->reply);
    if (master->reader == NULL) {
        set_error(master, "out of memory", "");
        return false;
    }
    master->fd =
        uri->path != NULL ? dial_path(uri->path) : dial_address(address, (uint16_t)uri->port);
    if (master->fd < 0) {
        set_error(master, "", strerror(errno));
        return false;
    }
    if (uri->path == NULL)
        set_tcp(master->fd);
    master->link = LINK_CONNECTING;
    ev_io_set(&master->writable, master->fd, EV_WRITE);
    ev_io_set(&master->readable, master->fd, EV_READ);
    ev_io_start(master->ev, &master->writable);
    return true;
}

/* Not all addresses of a host need lead to the master - "localhost" may be
 * ::1 first - so that one attempt goes through them until one does.  Each
 * begins with another one: the first may give no answer at all. */
static void connect_to_next(struct master *master)
{
    char address[RESOLVE_ADDRESS_MAX];

    do {
        unsigned turn = master->attempts + master->addresses_tried++;
        const char *error = resolve_take(master->resolve, turn, address);

        if (error != NULL) {
            set_error(master, "cannot resolve the name: ", error);
            break;
        }
        if (connect_to(master, address))
            return;
        disconnect(master);
    } while (master->addresses_tried < resolve_len(master->resolve));
    go_down(master);
}

static void on_refused(struct master *master, int error)
{
    set_error(master, "", strerror(error));
    if (master->resolve == NULL || master->addresses_tried == resolve_len(master->resolve)) {
        go_down(master);
        return;
    }
    disconnect(master);
    connect_to_next(master);
}

static void on_connected(struct master *master)
{
    int error = 0;
    socklen_t error_len = sizeof error;

    if (getsockopt(master->fd, SOL_SOCKET, SO_ERROR, &error, &error_len) != 0)
        error = errno;
    if (error != 0) {
        on_refused(master, error);
        return;
    }
    if (master->resolve != NULL)
        resolve_free(master->resolve);
    master->resolve = NULL;
    ev_io_start(master->ev, &master->readable);
    client_begin_event(master->rl);
    greet(master);
    client_end_event(master->rl);
    master_flush(master);
}

static void on_writable(struct ev_loop *ev, ev_io *io, int events)
{
    struct master *master = io->data;
    struct redlock *rl = master->rl;

    (void)ev, (void)events;
    if (master->link == LINK_CONNECTING)
        on_connected(master);
    else
        master_flush(master);
    client_deliver(rl);
}

/* ---- Resolving ---- */

static void on_io(struct ev_loop *ev, ev_io *io, int events)
{
    struct master *master = io->data;
    struct redlock *rl = master->rl;

    if (master->link != LINK_RESOLVING) {
        on_readable(ev, io, events);
        return;
    }
    ev_io_stop(master->ev, &master->readable);
    master->addresses_tried = 0;
    connect_to_next(master);
    client_deliver(rl);
}

static void attempt(struct master *master)
{
    const struct uri *uri = master->uri;
    double seconds = (double)master->rl->options.connect_timeout / (double)DRIFT_S;

    assert(master->link == LINK_DOWN);
    start_timer(master, seconds);
    if (uri->path != NULL || resolve_is_address(uri->host)) {
        if (!connect_to(master, uri->host))
            go_down(master);
        return;
    }
    master->resolve = resolve_start(uri->host);
    if (master->resolve == NULL) {
        fail(master, "cannot start to resolve the name", "");
        return;
    }
    master->link = LINK_RESOLVING;
    ev_io_set(&master->readable, resolve_fd(master->resolve), EV_READ);
    ev_io_start(master->ev, &master->readable);
}

/* ---- Timers ---- */

/* What the kernel holds of a link that is given up it would send for minutes yet, so that a
 * master that is back obeyed it behind what the next link says: with no time to linger it is
 * dropped, and the link reset (socket(7)). */
static void drop_unsent(const struct master *master)
{
    const struct linger at_once = {.l_onoff = 1};

    (void)setsockopt(master->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void look_for_silence(struct master *master)
{
    if (master->asks_len == 0) {
        master->silent_looks = 0;
        return; /* The next command starts the timer again. */
    }
    if (master->answers != master->answers_seen)
        master->silent_looks = 0;
    master->answers_seen = master->answers;
    if (++master->silent_looks <= SILENT_LOOKS) {
        look_again(master);
        return;
    }
    drop_unsent(master);
    fail(master, "takes commands and does not answer", "");
}

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events)
{
    struct master *master = timer->data;
    struct redlock *rl = master->rl;

    (void)ev, (void)events;
    switch (master->link) {
    case LINK_DOWN:
        attempt(master);
        break;
    case LINK_RESOLVING:
        fail(master, "timeout while resolving the name", "");
        break;
    case LINK_CONNECTING:
        fail(master, "timeout while connecting", "");
        break;
    case LINK_GREETING:
        fail(master, "connected, but does not answer", "");
        break;
    case LINK_UP:
        look_for_silence(master);
        break;
    }
    client_deliver(rl);
}

/* ---- The outside ---- */

struct master *master_new(struct redlock *rl, unsigned number, const struct uri *uri,
                          struct ev_loop *ev)
{
    struct master *master = calloc(1, sizeof *master);

    if (master == NULL)
        return NULL;
    master->rl = rl;
    master->number = number;
    master->uri = uri;
    master->ev = ev;
    master->fd = -1;
    set_error(master, "not connected yet", "");
    ev_io_init(&master->readable, on_io, -1, EV_READ);
    ev_io_init(&master->writable, on_writable, -1, EV_WRITE);
    ev_timer_init(&master->timer, on_timer, 0, 0);
    /* Answers before timeouts, as in loop_ev.c. */
    ev_set_priority(&master->timer, EV_MINPRI);
    master->readable.data = master->writable.data = master->timer.data = master;
    return master;
}

struct master *master_new_listener(struct redlock *rl, unsigned number, const struct uri *uri,
                                   struct ev_loop *ev)
{
    struct master *master = master_new(rl, number, uri, ev);

    if (master != NULL)
        master->listens = true;
    return master;
}

void master_free(struct master *master)
{
    assert(!master->rl->in_event);
    close_link(master);
    reply_done(&master->reply);
    free(master->asks);
    free(master->out);
    free(master);
}

/* The first attempt is made by the loop, so that all that can happen in it -
 * and a refused unix socket happens at once - happens there. */
void master_start(struct master *master)
{
    start_timer(master, 0);
}

void master_relink(struct master *master, const char *reason)
{
    doom(master, "", reason);
}

void master_note(struct master *master, const char *error)
{
    /* Nearly always there is nothing to say, and nothing was said before. */
    if (!master->doomed && (error[0] != 0 || master->error[0] != 0))
        set_error(master, "", error);
}

const char *master_name(const struct master *master)
{
    return master->uri->name;
}

const char *master_error(const struct master *master)
{
    return master->error;
}

const struct master_info *master_info(const struct master *master)
{
    return &master->info;
}
