/*
 * transport.c - transport.h on sockets.
 */
#include "redlock/io/transport.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redlock/base/fork.h"
#include "redlock/io/connect.h"
#include "redlock/io/loop.h"
#include "redlock/io/resolve.h"

enum state { CLOSED, RESOLVING, CONNECTING, OPEN };

struct transport {
    struct loop *loop;
    struct watch *watch;
    const struct transport_events *events;
    void *cookie;
    enum state state;
    struct transport_to to;
    unsigned turn;
    struct resolve *resolve; /* The look-up, until all its addresses are tried; or NULL. */
    unsigned tried;          /* Addresses tried in this attempt. */
    int fd;                  /* -1: none. */
    unsigned forks;          /* fork_count() when the socket was made. */
    ino_t inode;             /* The socket's.  0: unknown. */
    bool has_timer, awaits_space;
};

/* ---- Closing ---- */

static void watch(struct transport *transport, int fd, unsigned what)
{
    watch_fd(transport->loop, transport->watch, fd, what);
}

static bool is_forked(const struct transport *transport)
{
    return fork_count() != transport->forks;
}

/* The child of a fork may have closed the socket, and have another file of this number. */
static bool is_own(const struct transport *transport)
{
    struct stat now;

    return !is_forked(transport) || (fstat(transport->fd, &now) == 0 && S_ISSOCK(now.st_mode) &&
                                     now.st_ino == transport->inode);
}

static void close_socket(struct transport *transport)
{
    watch(transport, -1, 0);
    if (transport->fd >= 0 && is_own(transport))
        (void)close(transport->fd);
    transport->fd = -1;
}

static void end_resolve(struct transport *transport)
{
    if (transport->resolve != NULL)
        resolve_free(transport->resolve);
    transport->resolve = NULL;
}

/* With a linger time of 0, close() drops unsent bytes and resets the connection (socket(7)). */
static void drop_unsent(const struct transport *transport)
{
    const struct linger at_once = {.l_onoff = 1};

    (void)setsockopt(transport->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void transport_close(struct transport *transport, bool reset)
{
    if (reset && transport->state == OPEN && !is_forked(transport))
        drop_unsent(transport);
    close_socket(transport);
    if (transport->state != RESOLVING) /* A look-up goes on for the next attempt. */
        end_resolve(transport);
    transport->state = CLOSED;
    transport->awaits_space = false;
}

/* ---- Connecting ---- */

/* Begin to connect.  False: that failed. */
static bool connect_to(struct transport *transport, const char *address, struct reason *ret_why)
{
    struct stat made;

    transport->fd = connect_begin(address, transport->to.path, transport->to.port, ret_why);
    if (transport->fd < 0)
        return false;
    transport->state = CONNECTING;
    transport->forks = fork_count();
    transport->inode = fstat(transport->fd, &made) == 0 ? made.st_ino : 0;
    watch(transport, transport->fd, LOOP_WRITE);
    return true;
}

/* Try the next address.  Not each leads to the server: "localhost" may be ::1 first.  False: all
 * have failed, and *why says why the last did. */
static bool connect_to_next(struct transport *transport, struct reason *why)
{
    char address[RESOLVE_ADDRESS_MAX];

    while (transport->tried < resolve_len(transport->resolve) || transport->tried == 0) {
        if (!resolve_take(transport->resolve, transport->turn + transport->tried++, address, why))
            return false;
        if (connect_to(transport, address, why))
            return true;
    }
    return false;
}

static void fail(struct transport *transport, const struct reason *why)
{
    end_resolve(transport);
    transport_close(transport, false);
    transport->events->on_open(transport->cookie, why);
}

static void on_connected(struct transport *transport)
{
    const int error = connect_error(transport->fd);
    struct reason why;

    if (error != 0) {
        close_socket(transport);
        reason_of_errno(&why, error);
        if (transport->resolve == NULL || !connect_to_next(transport, &why))
            fail(transport, &why);
        return;
    }
    end_resolve(transport);
    transport->state = OPEN;
    watch(transport, transport->fd, LOOP_READ);
    transport->events->on_open(transport->cookie, NULL);
}

static void on_resolved(struct transport *transport)
{
    struct reason why;

    watch(transport, -1, 0);
    if (!connect_to_next(transport, &why))
        fail(transport, &why);
}

/* The look-up took longer than the attempt that started it, and is done now. */
static bool connect_to_late(struct transport *transport, struct reason *ret_why)
{
    bool begun = connect_to_next(transport, ret_why);

    if (!begun)
        end_resolve(transport);
    return begun;
}

bool transport_open(struct transport *transport, const struct transport_to *to, unsigned turn,
                    struct reason *ret_why)
{
    assert(transport->state == CLOSED);
    assert(transport->resolve == NULL || strcmp(transport->to.host, to->host) == 0);
    transport->to = *to;
    transport->turn = turn;
    transport->tried = 0;
    if (to->path != NULL || resolve_is_address(to->host))
        return connect_to(transport, to->host, ret_why);
    if (transport->resolve != NULL && resolve_is_done(transport->resolve))
        return connect_to_late(transport, ret_why);
    if (transport->resolve == NULL)
        transport->resolve = resolve_start(to->host);
    if (transport->resolve == NULL) {
        reason_set(ret_why, WHY_NAME_START);
        ret_why->number = errno;
        return false;
    }
    transport->state = RESOLVING;
    watch(transport, resolve_fd(transport->resolve), LOOP_READ);
    return true;
}

enum why transport_silence(const struct transport *transport)
{
    if (watch_is_refused(transport->loop, transport->watch))
        return WHY_UNWATCHED;
    return transport->state == RESOLVING ? WHY_NAME_TIMEOUT : WHY_CONNECT_TIMEOUT;
}

/* ---- Bytes ---- */

/* After a signal, too: the loop calls again, because the socket is still ready. */
static bool is_none_now(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

ssize_t transport_read(struct transport *transport, char *buf, size_t room, struct reason *ret_why)
{
    ssize_t n;

    assert(transport->state == OPEN);
    n = recv(transport->fd, buf, room, MSG_DONTWAIT);
    if (n > 0)
        return n;
    if (n < 0 && is_none_now(errno))
        return 0;
    if (n == 0)
        reason_set(ret_why, WHY_CLOSED);
    else
        reason_of_errno(ret_why, errno);
    return -1;
}

/* MSG_NOSIGNAL: a SIGPIPE would end a program that does not expect it. */
ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        struct reason *ret_why)
{
    ssize_t n;

    assert(transport->state == OPEN);
    n = send(transport->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        return n;
    if (is_none_now(errno))
        return 0;
    reason_of_errno(ret_why, errno);
    return -1;
}

void transport_await_space(struct transport *transport, bool on)
{
    assert(transport->state == OPEN);
    if (transport->awaits_space == on)
        return;
    transport->awaits_space = on;
    watch(transport, transport->fd, LOOP_READ | (on ? LOOP_WRITE : 0));
}

/* ---- The timer ---- */

void transport_set_timer(struct transport *transport, drift_span in)
{
    transport->has_timer = in != DRIFT_NEVER;
    watch_timer(transport->loop, transport->watch, in);
}

bool transport_has_timer(const struct transport *transport)
{
    return transport->has_timer;
}

/* ---- Events ---- */

/* Make one callback only, because it may free the transport.  Space comes first: while the socket
 * is readable, the loop calls again. */
static void on_ready(void *cookie, unsigned what)
{
    struct transport *transport = cookie;

    if (transport->state == RESOLVING)
        on_resolved(transport);
    else if (transport->state == CONNECTING)
        on_connected(transport);
    else if (what & LOOP_WRITE)
        transport->events->on_space(transport->cookie);
    else
        transport->events->on_bytes(transport->cookie);
}

static void on_timer(void *cookie)
{
    struct transport *transport = cookie;

    transport->has_timer = false;
    transport->events->on_timer(transport->cookie);
}

static const struct watch_events watch_events = {
    .on_ready = on_ready,
    .on_timer = on_timer,
};

struct transport *transport_new(struct loop *loop, const struct transport_events *events,
                                void *cookie)
{
    struct transport *transport = calloc(1, sizeof *transport);

    if (transport == NULL)
        return NULL;
    transport->watch = watch_new(loop, &watch_events, transport);
    if (transport->watch == NULL) {
        free(transport);
        return NULL;
    }
    transport->loop = loop;
    transport->events = events;
    transport->cookie = cookie;
    transport->fd = -1;
    return transport;
}

void transport_free(struct transport *transport)
{
    if (transport == NULL)
        return;
    transport_close(transport, false);
    end_resolve(transport);
    watch_free(transport->loop, transport->watch);
    free(transport);
}
