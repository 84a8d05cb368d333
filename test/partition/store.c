/*
 * store.c - the protected resource: what all holders write through.
 *
 * store --socket PATH --history FILE
 *
 * The store has one process, one thread, and one order.  Writes that it accepts get numbers without
 * gaps, and a line in its history before the answer.  A request is
 *
 *     write LOCK ID BY DEADLINE_NS\n
 *
 * The answer is "ok SEQ\n", or "refused\n" if CLOCK_MONOTONIC has reached the deadline that the
 * writer claims.  The store checks nothing else.  It must not know the holder of a lock: the judge
 * tests exclusion later, by the order of the writes.  Any other request is answered "error\n", and
 * the connection ends.  An incomplete line of a client that is gone is ignored.
 *
 * A client that does not read its answers is not served until it does, and delays no other client.
 * The socket appears when it accepts connections.  SIGTERM or SIGINT ends the store.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "partition/record.h"
#include "partition/tool.h"

/* Chosen: enough for a hundred clients with ten connections each. */
#define CONNECTIONS_MAX 1000
#define BACKLOG 512
#define REQUEST_MAX 320 /* Three names of RECORD_WORD_MAX bytes, and a number. */
#define ANSWER_MAX 32   /* "ok 18446744073709551615\n" */
#define ANSWERS_MAX 512 /* The answers of one connection that are not yet sent. */

struct connection {
    int fd;
    size_t in_len, out_len;
    char in[REQUEST_MAX];
    char out[ANSWERS_MAX];
};

struct store {
    struct record record;
    const char *path;
    int listener;
    uint64_t seq;
    struct connection *connections[CONNECTIONS_MAX];
    unsigned connections_len;
};

static volatile sig_atomic_t asked_to_end;

static void on_signal(int number)
{
    (void)number;
    asked_to_end = 1;
}

/* ---- Requests ---- */

struct request {
    char lock[RECORD_WORD_MAX + 1], id[RECORD_WORD_MAX + 1], by[RECORD_WORD_MAX + 1];
    uint64_t deadline_ns;
};

static bool parse(const char *line, struct request *ret)
{
    char number[24], *end;
    int len = 0;

    if (sscanf(line, "write %63s %63s %63s %23[0-9]%n", ret->lock, ret->id, ret->by, number,
               &len) != 4 ||
        line[len] != 0)
        return false;
    errno = 0;
    ret->deadline_ns = strtoull(number, &end, 10);
    return errno == 0 && tool_is_word(ret->lock, RECORD_WORD_MAX) &&
           tool_is_word(ret->id, RECORD_WORD_MAX) && tool_is_word(ret->by, RECORD_WORD_MAX);
}

/* The history gets a write before the client gets the answer, so no known write is missing. */
static void decide(struct store *store, const struct request *request, char *answer)
{
    uint64_t now = tool_now_ns();

    if (now >= request->deadline_ns) {
        record_line(&store->record, now, "refused",
                    ",\"lock\":\"%s\",\"id\":\"%s\",\"by\":\"%s\",\"deadline\":%" PRIu64
                    ",\"why\":\"past its deadline\"",
                    request->lock, request->id, request->by, request->deadline_ns);
        strcpy(answer, "refused\n");
        return;
    }
    store->seq++;
    record_line(&store->record, now, "write",
                ",\"lock\":\"%s\",\"id\":\"%s\",\"by\":\"%s\",\"seq\":%" PRIu64
                ",\"deadline\":%" PRIu64,
                request->lock, request->id, request->by, store->seq, request->deadline_ns);
    (void)snprintf(answer, ANSWER_MAX, "ok %" PRIu64 "\n", store->seq);
}

/* ---- Connections ---- */

static bool has_room(const struct connection *connection)
{
    return connection->out_len + ANSWER_MAX <= sizeof connection->out;
}

static bool has_request(const struct connection *connection)
{
    return memchr(connection->in, '\n', connection->in_len) != NULL;
}

/* Send as many answers as the socket takes.  False: the connection is broken. */
static bool flush(struct connection *connection)
{
    ssize_t sent;

    if (connection->out_len == 0)
        return true;
    sent = send(connection->fd, connection->out, connection->out_len, MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    connection->out_len -= (size_t)sent;
    memmove(connection->out, connection->out + sent, connection->out_len);
    return true;
}

/* Answer the requests that have come, while there is room for answers.  False: one is invalid. */
static bool serve(struct store *store, struct connection *connection)
{
    char *end;

    while (has_room(connection) &&
           (end = memchr(connection->in, '\n', connection->in_len)) != NULL) {
        size_t taken = (size_t)(end - connection->in) + 1;
        char *answer = connection->out + connection->out_len;
        struct request request;
        bool understood;

        *end = 0;
        understood = strlen(connection->in) == taken - 1 && parse(connection->in, &request);
        if (understood)
            decide(store, &request, answer);
        else
            strcpy(answer, "error\n");
        connection->out_len += strlen(answer);
        connection->in_len -= taken;
        memmove(connection->in, connection->in + taken, connection->in_len);
        if (!understood)
            return false;
    }
    return connection->in_len < sizeof connection->in || !has_room(connection);
}

/* False: the connection has ended, or must be ended. */
static bool receive(struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->in + connection->in_len,
                       sizeof connection->in - connection->in_len, 0);

    if (got > 0)
        connection->in_len += (size_t)got;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Handle the events of poll.  False: the connection is over. */
static bool handle(struct store *store, struct connection *connection, short events)
{
    if ((events & (POLLIN | POLLHUP | POLLERR)) && has_room(connection) && !receive(connection))
        return false;
    if (!flush(connection))
        return false;
    do {
        if (!serve(store, connection)) {
            (void)flush(connection); /* Sends "error", if the socket takes it. */
            return false;
        }
        if (!flush(connection))
            return false;
    } while (has_request(connection) && has_room(connection));
    return true;
}

static void drop(struct store *store, unsigned i)
{
    (void)close(store->connections[i]->fd);
    free(store->connections[i]);
    store->connections[i] = store->connections[--store->connections_len];
}

static void take_connection(struct store *store)
{
    struct connection *connection;
    int fd = accept4(store->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        tool_nap_ms(1); /* The client has gone, or no descriptor is free at the moment. */
        return;
    }
    connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        tool_die("out of memory");
    connection->fd = fd;
    store->connections[store->connections_len++] = connection;
}

/* ---- The loop ---- */

/* Requests are read only when all answers have been sent. */
static short events_of(const struct connection *connection)
{
    short wanted = has_room(connection) ? POLLIN : 0;

    return connection->out_len > 0 ? (short)(wanted | POLLOUT) : wanted;
}

static void run_once(struct store *store, const sigset_t *mask)
{
    static struct pollfd fds[CONNECTIONS_MAX + 1];
    unsigned len = store->connections_len;

    for (unsigned i = 0; i < len; i++)
        fds[i] = (struct pollfd){store->connections[i]->fd, events_of(store->connections[i]), 0};
    fds[len] = (struct pollfd){len < CONNECTIONS_MAX ? store->listener : -1, POLLIN, 0};
    if (ppoll(fds, len + 1, NULL, mask) < 0) {
        if (errno != EINTR)
            tool_die("poll: %s", strerror(errno));
        return;
    }
    for (unsigned i = len; i-- > 0;) /* Backwards: drop() puts the last in its place. */
        if (fds[i].revents != 0 && !handle(store, store->connections[i], fds[i].revents))
            drop(store, i);
    if (fds[len].revents != 0)
        take_connection(store);
}

/* Makes the socket under another name first: when it appears, clients may connect at once. */
static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *temporary;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (asprintf(&temporary, "%s.new", path) < 0)
        tool_die("out of memory");
    if (strlen(temporary) >= sizeof address.sun_path)
        tool_die("%s: too long for the name of a socket", path);
    strcpy(address.sun_path, temporary);
    (void)unlink(temporary);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0 || rename(temporary, path) != 0)
        tool_die("%s: %s", path, strerror(errno));
    free(temporary);
    return fd;
}

static void parse_options(struct store *store, int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'},
        {"history", required_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *history = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's')
            store->path = optarg;
        else if (option == 'h')
            history = optarg;
        else
            exit(64);
    }
    if (store->path == NULL || history == NULL || optind != argc)
        tool_die("usage: store --socket PATH --history FILE");
    record_open(&store->record, history, "store");
}

int main(int argc, char **argv)
{
    static struct store store;
    const struct sigaction action = {.sa_handler = on_signal};
    sigset_t block, before;

    parse_options(&store, argc, argv);
    (void)sigemptyset(&block);
    (void)sigaddset(&block, SIGTERM);
    (void)sigaddset(&block, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &block, &before);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    store.listener = listen_at(store.path);
    while (!asked_to_end)
        run_once(&store, &before);
    (void)unlink(store.path);
    while (store.connections_len > 0)
        drop(&store, 0);
    return 0;
}
