/*
 * relay.c - a TCP relay that holds bytes back: a link that is slow.
 *
 * relay --listen ADDRESS:PORT --to ADDRESS:PORT --delay-file FILE
 *
 * FILE holds the delay, a native 64-bit number in nanoseconds.  It is mapped, so a write in place
 * changes the delay within LOOK_MS, also for bytes that are held back already.  The relay passes on
 * bytes of either side when they are that old.  It reorders and loses nothing.  The end of a stream
 * is delayed like bytes.  A reset is passed on at once.
 *
 * For each direction of a connection, the relay holds at most BYTES_MAX, or what came in MARKS_MAX
 * reads.  It then reads no more, as a network of that size would.  It does not interpret the bytes.
 * It ends when it gets a signal.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "partition/tool.h"

#define CONNECTIONS_MAX 400
#define BYTES_MAX 65536 /* A power of two. */
#define MARKS_MAX 256   /* A power of two. */
#define LOOK_MS 5       /* How often to read the delay while bytes are held back. */

/* All bytes before this place in the stream arrived at this time, or earlier. */
struct mark {
    uint64_t upto, arrived_ns;
};

/* One direction.  Places are counted from the beginning of the connection. */
struct flow {
    uint64_t received, sent;
    uint64_t marks_begin, marks_end;
    struct mark marks[MARKS_MAX];
    bool ended; /* The source ended its stream, at ended_ns. */
    bool told;  /* The end was passed on to the target. */
    uint64_t ended_ns;
    char bytes[BYTES_MAX];
};

struct link {
    int fd[2];           /* The socket of the client, and the socket to the server. */
    struct flow flow[2]; /* The bytes from that side to the other. */
    bool connecting;     /* The connection to the server is not yet made. */
};

struct relay {
    int listener;
    struct sockaddr_in to;
    const volatile int64_t *delay;
    struct link *links[CONNECTIONS_MAX];
    unsigned links_len;
};

/* ---- One direction ---- */

static bool has_room(const struct flow *flow)
{
    return !flow->ended && flow->received - flow->sent < BYTES_MAX &&
           flow->marks_end - flow->marks_begin < MARKS_MAX;
}

/* The place up to which bytes may be passed on: that of the last mark that is old enough. */
static uint64_t due_upto(const struct flow *flow, uint64_t now, uint64_t delay_ns)
{
    uint64_t upto = flow->sent;

    for (uint64_t i = flow->marks_begin; i != flow->marks_end; i++) {
        const struct mark *mark = &flow->marks[i % MARKS_MAX];

        if (mark->arrived_ns + delay_ns > now)
            break;
        upto = mark->upto;
    }
    return upto;
}

static bool end_is_due(const struct flow *flow, uint64_t now, uint64_t delay_ns)
{
    return flow->ended && !flow->told && flow->sent == flow->received &&
           flow->ended_ns + delay_ns <= now;
}

static bool holds_back(const struct flow *flow)
{
    return flow->sent < flow->received || (flow->ended && !flow->told);
}

/* False: the connection is broken. */
static bool take(struct flow *flow, int fd, uint64_t now)
{
    size_t at = flow->received % BYTES_MAX;
    size_t room = BYTES_MAX - (flow->received - flow->sent);
    size_t in_one = BYTES_MAX - at;
    ssize_t got = recv(fd, flow->bytes + at, room < in_one ? room : in_one, 0);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
        flow->ended = true;
        flow->ended_ns = now;
        return true;
    }
    flow->received += (uint64_t)got;
    flow->marks[flow->marks_end++ % MARKS_MAX] = (struct mark){flow->received, now};
    return true;
}

static bool give(struct flow *flow, int fd, uint64_t now, uint64_t delay_ns)
{
    uint64_t due = due_upto(flow, now, delay_ns);

    while (flow->sent < due) {
        size_t at = flow->sent % BYTES_MAX;
        size_t in_one = BYTES_MAX - at;
        size_t len = due - flow->sent < in_one ? due - flow->sent : in_one;
        ssize_t sent = send(fd, flow->bytes + at, len, MSG_NOSIGNAL);

        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        flow->sent += (uint64_t)sent;
        while (flow->marks_begin != flow->marks_end &&
               flow->marks[flow->marks_begin % MARKS_MAX].upto <= flow->sent)
            flow->marks_begin++;
    }
    if (end_is_due(flow, now, delay_ns)) {
        flow->told = true;
        return shutdown(fd, SHUT_WR) == 0;
    }
    return true;
}

/* ---- One connection ---- */

static uint64_t delay_ns_of(const struct relay *relay)
{
    int64_t delay = *relay->delay;

    return delay > 0 ? (uint64_t)delay : 0;
}

static bool has_connected(struct link *link)
{
    int error = 0;
    socklen_t len = sizeof error;

    link->connecting = false;
    return getsockopt(link->fd[1], SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

/* The events to wait for on one side.  If there are none, poll must not watch the side, because it
 * would report its end again and again. */
static struct pollfd side_of(const struct link *link, unsigned side, uint64_t now,
                             uint64_t delay_ns)
{
    const struct flow *in = &link->flow[side], *out = &link->flow[!side];
    struct pollfd poll = {link->fd[side], 0, 0};

    if (side == 1 && link->connecting) {
        poll.events = POLLOUT;
        return poll;
    }
    if (has_room(in))
        poll.events |= POLLIN;
    if (due_upto(out, now, delay_ns) > out->sent)
        poll.events |= POLLOUT;
    if (poll.events == 0)
        poll.fd = -1;
    return poll;
}

/* False: the connection has ended, with or without an error. */
static bool handle(struct link *link, const struct pollfd polls[2], uint64_t now, uint64_t delay_ns)
{
    if (link->connecting && polls[1].revents != 0 && !has_connected(link))
        return false;
    for (unsigned side = 0; side < 2; side++) {
        if ((polls[side].revents & (POLLERR | POLLNVAL)) != 0)
            return false;
        if ((polls[side].revents & (POLLIN | POLLHUP)) != 0 && has_room(&link->flow[side]) &&
            !(side == 1 && link->connecting) && !take(&link->flow[side], link->fd[side], now))
            return false;
    }
    for (unsigned side = 0; side < 2 && !link->connecting; side++)
        if (!give(&link->flow[side], link->fd[!side], now, delay_ns))
            return false;
    return !(link->flow[0].told && link->flow[1].told);
}

/* Close one side: with a reset, unless both streams have ended. */
static void close_side(const struct link *link, unsigned side)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    if (link->fd[side] < 0)
        return;
    if (!link->flow[0].told || !link->flow[1].told)
        (void)setsockopt(link->fd[side], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    (void)close(link->fd[side]);
}

static void drop(struct relay *relay, unsigned i)
{
    struct link *link = relay->links[i];

    close_side(link, 0);
    close_side(link, 1);
    free(link);
    relay->links[i] = relay->links[--relay->links_len];
}

static void at_once(int fd)
{
    const int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void take_connection(struct relay *relay)
{
    struct link *link;
    int fd = accept4(relay->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        tool_nap_ms(1); /* The client has gone, or no descriptor is free at the moment. */
        return;
    }
    link = calloc(1, sizeof *link);
    if (link == NULL)
        tool_die("out of memory");
    link->fd[0] = fd;
    link->fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    relay->links[relay->links_len++] = link;
    at_once(fd);
    at_once(link->fd[1]);
    if (link->fd[1] < 0 ||
        (connect(link->fd[1], (struct sockaddr *)&relay->to, sizeof relay->to) != 0 &&
         errno != EINPROGRESS)) {
        drop(relay, relay->links_len - 1);
        return;
    }
    link->connecting = true;
}

/* ---- The loop ---- */

static bool something_waits(const struct relay *relay)
{
    for (unsigned i = 0; i < relay->links_len; i++)
        if (holds_back(&relay->links[i]->flow[0]) || holds_back(&relay->links[i]->flow[1]))
            return true;
    return false;
}

/* The time until the first byte may be passed on, or the delay must be read again. */
static struct timespec nap_of(const struct relay *relay, uint64_t now, uint64_t delay_ns)
{
    uint64_t nap = LOOK_MS * NS_PER_MS;

    for (unsigned i = 0; i < relay->links_len; i++) {
        for (unsigned side = 0; side < 2; side++) {
            const struct flow *flow = &relay->links[i]->flow[side];
            uint64_t from = flow->ended_ns;

            if (!holds_back(flow))
                continue;
            if (flow->sent < flow->received)
                from = flow->marks[flow->marks_begin % MARKS_MAX].arrived_ns;
            if (from + delay_ns > now && from + delay_ns - now < nap)
                nap = from + delay_ns - now;
        }
    }
    return (struct timespec){.tv_nsec = (long)nap};
}

static void run_once(struct relay *relay)
{
    static struct pollfd fds[2 * CONNECTIONS_MAX + 1];
    unsigned len = relay->links_len;
    uint64_t now = tool_now_ns(), delay_ns = delay_ns_of(relay);
    struct timespec nap = nap_of(relay, now, delay_ns);

    for (unsigned i = 0; i < 2 * len; i++)
        fds[i] = side_of(relay->links[i / 2], i % 2, now, delay_ns);
    fds[2 * len] = (struct pollfd){len < CONNECTIONS_MAX ? relay->listener : -1, POLLIN, 0};
    if (ppoll(fds, 2 * len + 1, something_waits(relay) ? &nap : NULL, NULL) < 0) {
        if (errno != EINTR)
            tool_die("poll: %s", strerror(errno));
        return;
    }
    now = tool_now_ns();
    delay_ns = delay_ns_of(relay);
    for (unsigned i = len; i-- > 0;) /* Backwards: drop() puts the last in its place. */
        if (!handle(relay->links[i], &fds[2 * i], now, delay_ns))
            drop(relay, i);
    if (fds[2 * len].revents != 0)
        take_connection(relay);
}

static struct sockaddr_in parse_address(const char *option, const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN];

    if (colon == NULL || (size_t)(colon - text) >= sizeof host)
        tool_die("%s must be ADDRESS:PORT, and is \"%s\"", option, text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        tool_die("%s must begin with an IPv4 address, and is \"%s\"", option, text);
    address.sin_port = htons((uint16_t)tool_number(option, colon + 1, 1, 65535));
    return address;
}

static int listen_at(const struct sockaddr_in *address)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (const struct sockaddr *)address, sizeof *address) != 0 ||
        listen(fd, SOMAXCONN) != 0)
        tool_die("cannot listen: %s", strerror(errno));
    return fd;
}

static void parse_options(struct relay *relay, int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"to", required_argument, NULL, 't'},
        {"delay-file", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    struct sockaddr_in address = {0};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'l')
            address = parse_address("--listen", optarg);
        else if (option == 't')
            relay->to = parse_address("--to", optarg);
        else if (option == 'd')
            relay->delay = tool_map(optarg, sizeof *relay->delay);
        else
            exit(64);
    }
    if (address.sin_port == 0 || relay->to.sin_port == 0 || relay->delay == NULL || optind != argc)
        tool_die("usage: relay --listen ADDRESS:PORT --to ADDRESS:PORT --delay-file FILE");
    relay->listener = listen_at(&address);
}

int main(int argc, char **argv)
{
    static struct relay relay;

    parse_options(&relay, argc, argv);
    for (;;)
        run_once(&relay);
}
