/*
 * fake.c - a small server on poll().
 */
#include "live/fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "live/cluster.h"
#include "redlock/wire/script.h"

#define CONNECTIONS_MAX 64
#define IN_MAX (1u << 16)
#define OUT_MAX (1u << 16)
#define LIST_MAX 2048
#define ARGS_MAX 16
#define ANSWERS_MAX 4096 /* Delayed answers of one connection. */

struct delayed {
    double due_s;
    size_t len;
};

struct connection {
    int fd; /* -1: free. */
    size_t in_len, out_len;
    size_t ready_len; /* Bytes of out that may be sent now. */
    unsigned delayed_len;
    struct delayed delayed[ANSWERS_MAX]; /* When the rest of out may be sent, in order. */
    bool bad;                            /* The plan's way applies from now on. */
    bool endless;
    bool looked; /* The marker was read. */
    bool subscribes;
    char in[IN_MAX], out[OUT_MAX];
};

struct fake_server {
    const struct fake_plan *plan;
    struct fake_seen *seen;
    int listener;
    unsigned port;
    struct connection *connections;
    char claim[LIST_MAX], set[LIST_MAX]; /* "NUMBER LIST", and "SET 1 NAME LIST".  "": none. */
};

/* ---- Commands ---- */

struct command {
    unsigned argc;
    const char *argv[ARGS_MAX];
    size_t len[ARGS_MAX];
};

/* Read the number of "$5\r\n" or "*3\r\n", and move at behind it.  False: it is incomplete. */
static bool take_number(const char *in, size_t in_len, size_t *at, size_t *ret_number)
{
    const char *end = memchr(in + *at, '\n', in_len - *at);

    if (end == NULL)
        return false;
    *ret_number = strtoul(in + *at + 1, NULL, 10);
    *at = (size_t)(end - in) + 1;
    return true;
}

/* Returns the number of bytes of the first command; 0: it is incomplete. */
static size_t parse_command(const char *in, size_t in_len, struct command *command)
{
    size_t at = 0, argc, len;

    if (in_len == 0 || !take_number(in, in_len, &at, &argc))
        return 0;
    command->argc = (unsigned)argc;
    for (size_t i = 0; i < argc; i++) {
        if (at >= in_len || !take_number(in, in_len, &at, &len) || in_len - at < len + 2)
            return 0;
        if (i < ARGS_MAX) {
            command->argv[i] = in + at;
            command->len[i] = len;
        }
        at += len + 2;
    }
    return at;
}

static bool is_command(const struct command *command, const char *name)
{
    return command->len[0] == strlen(name) &&
           strncasecmp(command->argv[0], name, command->len[0]) == 0;
}

/* ---- Answers ---- */

static void say(struct connection *connection, const char *text)
{
    size_t len = strlen(text);

    if (connection->out_len + len > OUT_MAX)
        cluster_die("fake: the output buffer is full");
    memcpy(connection->out + connection->out_len, text, len);
    connection->out_len += len;
}

static void say_bulk(struct connection *connection, const char *text)
{
    char head[24];

    (void)snprintf(head, sizeof head, "$%zu\r\n", strlen(text));
    say(connection, head);
    say(connection, text);
    say(connection, "\r\n");
}

static void say_digest(struct connection *connection, const struct command *command)
{
    for (unsigned i = 0; i < SCRIPT_LEN; i++) {
        const struct script *script = &script_all[i];

        if (command->argc == 3 && command->len[2] == script->text_len &&
            memcmp(command->argv[2], script->text, script->text_len) == 0) {
            say_bulk(connection, script->sha1);
            return;
        }
    }
    say(connection, "-ERR unknown script\r\n");
}

static bool is_argument(const struct command *command, size_t i, const char *text, size_t len)
{
    return command->argc > i && command->len[i] == len && memcmp(command->argv[i], text, len) == 0;
}

static bool is_script(const struct command *command, enum script_id id)
{
    const struct script *script = &script_all[id];

    return (is_command(command, "EVAL") &&
            is_argument(command, 1, script->text, script->text_len)) ||
           (is_command(command, "EVALSHA") &&
            is_argument(command, 1, script->sha1, strlen(script->sha1)));
}

/* The restart guard's query of the marker. */
static bool is_look(const struct command *command)
{
    return is_script(command, SCRIPT_LOOK);
}

/* A command about the set of masters. */
static bool is_founding(const struct command *command)
{
    return is_script(command, SCRIPT_CLAIM) || is_script(command, SCRIPT_FOUND) ||
           is_script(command, SCRIPT_WITHDRAW);
}

/* Copy argument i. */
static const char *arg(const struct command *command, unsigned i, char text[LIST_MAX])
{
    (void)snprintf(text, LIST_MAX, "%.*s", (int)command->len[i], command->argv[i]);
    return text;
}

static void say_marker(struct fake_server *server, struct connection *connection,
                       const struct command *command)
{
    char text[LIST_MAX + 80], set[LIST_MAX], config[LIST_MAX], name[LIST_MAX];
    const char *of;

    if (command->len[13] > 0 && server->set[0] == 0)
        (void)snprintf(server->set, sizeof server->set, "%.16s 1 %.350s %.1600s",
                       arg(command, 9, set), arg(command, 13, name), arg(command, 12, config));
    of = server->set[0] != 0 ? server->set : "-";
    (void)snprintf(text, sizeof text, "ready " FAKE_EPOCH ".%d 60000 1 1 1 %s", of[0] != '-', of);
    say_bulk(connection, text);
}

static void say_of_founding(struct fake_server *server, struct connection *connection,
                            const struct command *command)
{
    char text[LIST_MAX + 80], list[LIST_MAX], number[LIST_MAX], name[LIST_MAX];
    bool is_new = server->claim[0] == 0;

    (void)arg(command, 4, number);
    (void)arg(command, 5, list);
    if (is_script(command, SCRIPT_WITHDRAW)) {
        server->claim[0] = 0;
        say(connection, ":1\r\n");
    } else if (is_script(command, SCRIPT_FOUND)) {
        (void)snprintf(server->set, sizeof server->set, "%.16s 1 %.350s %.1600s",
                       arg(command, 6, number), arg(command, 7, name), list);
        say(connection, ":1\r\n");
    } else if (server->set[0] != 0) {
        (void)snprintf(text, sizeof text, "member %.16s 1 %s", server->set,
                       strchr(server->set + 19, ' ') + 1);
        say_bulk(connection, text);
    } else if (number[0] == 0) {
        (void)snprintf(text, sizeof text, "claim %s", server->claim);
        say_bulk(connection, is_new ? "nothing" : text);
    } else {
        (void)snprintf(server->claim, sizeof server->claim, "%.16s %.1900s", number, list);
        say_bulk(connection, is_new ? "new" : "took");
    }
}

static void say_info(const struct fake_server *server, struct connection *connection)
{
    char info[200];

    (void)snprintf(info, sizeof info,
                   "# Server\r\nredis_version:7.0.0\r\nrun_id:%040x\r\n"
                   "uptime_in_seconds:100\r\nrole:master\r\n",
                   server->port); /* A run_id that no other fake has. */
    say_bulk(connection, info);
}

static void say_time(struct connection *connection)
{
    struct timespec now;
    char seconds[24], micros[8];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(seconds, sizeof seconds, "%lld", (long long)now.tv_sec);
    (void)snprintf(micros, sizeof micros, "%u", (unsigned)now.tv_nsec / 1000);
    say(connection, "*2\r\n");
    say_bulk(connection, seconds);
    say_bulk(connection, micros);
}

static void answer_well(struct fake_server *server, struct connection *connection,
                        const struct command *command)
{
    if (is_command(command, "SCRIPT"))
        say_digest(connection, command);
    else if (is_command(command, "INFO"))
        say_info(server, connection);
    else if (is_look(command) && server->plan->look != NULL)
        say(connection, server->plan->look);
    else if (is_look(command))
        say_marker(server, connection, command);
    else if (is_founding(command))
        say_of_founding(server, connection, command);
    else if (is_command(command, "HGET"))
        say_bulk(connection, FAKE_EPOCH ".1");
    else if (is_command(command, "HMGET"))
        say(connection, "*2\r\n$18\r\n" FAKE_EPOCH ".1\r\n$5\r\n60000\r\n");
    else if (is_command(command, "TIME"))
        say_time(connection);
    else if (is_command(command, "EVALSHA") || is_command(command, "EVAL"))
        say(connection, ":1\r\n");
    else
        say(connection, "+OK\r\n");
}

/* ---- Resets ---- */

static void drop(struct connection *connection)
{
    (void)close(connection->fd);
    connection->fd = -1;
}

/* Send a text, and reset the connection before the client has read it. */
static void reset_behind(struct fake_server *server, struct connection *connection,
                         const char *text)
{
    const struct linger at_once = {.l_onoff = 1};

    (void)send(connection->fd, text, strlen(text), MSG_NOSIGNAL);
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    drop(connection);
    atomic_fetch_add(&server->seen->cuts, 1);
}

static void announce_and_reset(struct fake_server *server)
{
    static const char message[] =
        "*3\r\n$7\r\nmessage\r\n$20\r\nredlock:wait:" FAKE_AWAITED "\r\n$6\r\nfree 1\r\n";

    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &server->connections[i];

        if (connection->fd >= 0 && connection->subscribes)
            reset_behind(server, connection, message);
    }
}

static void confirm(struct connection *connection, const struct command *command)
{
    char channel[64];

    connection->subscribes = true;
    (void)snprintf(channel, sizeof channel, "%.*s", (int)command->len[1], command->argv[1]);
    say(connection, "*3\r\n$9\r\nsubscribe\r\n");
    say_bulk(connection, channel);
    say(connection, ":1\r\n");
}

static bool is_for_awaited(const struct command *command)
{
    return command->len[1] == strlen(FAKE_AWAITED) &&
           memcmp(command->argv[1], FAKE_AWAITED, command->len[1]) == 0;
}

/* Refuse every lock.  False: the connection has been reset. */
static bool answer_and_reset(struct fake_server *server, struct connection *connection,
                             const struct command *command)
{
    bool queries = server->plan->way == FAKE_RESETS_QUERY;

    if (is_command(command, "SET")) {
        if (!queries && !is_for_awaited(command))
            announce_and_reset(server);
        say(connection, "$-1\r\n");
    } else if (is_command(command, "SUBSCRIBE")) {
        confirm(connection, command);
    } else if (is_script(command, SCRIPT_WAIT)) {
        if (queries) {
            reset_behind(server, connection, ":-2\r\n");
            return false;
        }
        say(connection, ":60000\r\n");
    } else if (!is_command(command, "UNSUBSCRIBE")) {
        answer_well(server, connection, command);
    }
    return true;
}

static bool is_of_a_lock(const struct command *command)
{
    return is_command(command, "SET") || is_command(command, "EVALSHA") ||
           (is_command(command, "EVAL") && !is_look(command) && !is_founding(command));
}

static void delay(struct connection *connection, size_t len, unsigned delay_ms)
{
    if (connection->delayed_len == ANSWERS_MAX)
        cluster_die("fake: too many answers to delay");
    connection->delayed[connection->delayed_len++] =
        (struct delayed){cluster_now_s() + delay_ms / 1000.0, len};
}

static void let_go_what_is_due(struct connection *connection)
{
    double now_s = cluster_now_s();
    unsigned due = 0;

    while (due < connection->delayed_len && connection->delayed[due].due_s <= now_s)
        connection->ready_len += connection->delayed[due++].len;
    connection->delayed_len -= due;
    memmove(connection->delayed, connection->delayed + due,
            connection->delayed_len * sizeof connection->delayed[0]);
}

/* False: the caller must close the connection. */
static bool answer(struct fake_server *server, struct connection *connection,
                   const struct command *command)
{
    const struct fake_plan *plan = server->plan;
    size_t len_before = connection->out_len;

    /* The client sends TIME when a second has passed.  A founding is not counted, nor that the
     * marker is read anew after it. */
    if (!is_command(command, "TIME") && !is_founding(command) &&
        !(is_look(command) && connection->looked))
        atomic_fetch_add(&server->seen->commands, 1);
    connection->looked |= is_look(command);
    if (!plan->greets || is_of_a_lock(command))
        connection->bad = true;
    switch (connection->bad ? plan->way : FAKE_GOOD) {
    case FAKE_GOOD:
        answer_well(server, connection, command);
        break;
    case FAKE_ENDLESS:
        if (!connection->endless)
            say(connection, plan->says);
        connection->endless = true;
        break;
    case FAKE_SAYS:
        say(connection, plan->says);
        break;
    case FAKE_CLOSES:
        return false;
    case FAKE_RESETS_QUERY:
    case FAKE_RESETS_SUBSCRIBER:
        if (!answer_and_reset(server, connection, command))
            return false;
        break;
    case FAKE_SILENT:
    case FAKE_DEAF:
        break;
    }
    delay(connection, connection->out_len - len_before, connection->bad ? plan->delay_ms : 0);
    return true;
}

/* ---- Connections ---- */

static void take_connection(struct fake_server *server)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    atomic_fetch_add(&server->seen->connections, 1);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &server->connections[i];

        if (connection->fd >= 0)
            continue;
        connection->fd = fd;
        connection->in_len = connection->out_len = connection->ready_len = 0;
        connection->delayed_len = 0;
        connection->bad = connection->endless = connection->subscribes = false;
        connection->looked = false;
        return;
    }
    (void)close(fd);
}

static void on_input(struct fake_server *server, struct connection *connection)
{
    ssize_t n =
        recv(connection->fd, connection->in + connection->in_len, IN_MAX - connection->in_len, 0);
    struct command command;
    size_t len;

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        if (n < 0 && errno == ECONNRESET)
            atomic_fetch_add(&server->seen->resets, 1);
        drop(connection);
        return;
    }
    connection->in_len += n > 0 ? (size_t)n : 0;
    while ((len = parse_command(connection->in, connection->in_len, &command)) > 0) {
        if (!answer(server, connection, &command)) {
            if (connection->fd >= 0)
                drop(connection);
            return;
        }
        connection->in_len -= len;
        memmove(connection->in, connection->in + len, connection->in_len);
    }
}

static void send_output(struct connection *connection)
{
    static char filler[OUT_MAX];
    ssize_t n;

    if (connection->ready_len > 0) {
        n = send(connection->fd, connection->out, connection->ready_len, MSG_NOSIGNAL);
        if (n > 0) {
            connection->ready_len -= (size_t)n;
            connection->out_len -= (size_t)n;
            memmove(connection->out, connection->out + n, connection->out_len);
        }
    } else {
        if (filler[0] == 0)
            memset(filler, '1', sizeof filler);
        n = send(connection->fd, filler, sizeof filler, MSG_NOSIGNAL);
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        drop(connection);
}

static bool wants_to_send(struct connection *connection)
{
    let_go_what_is_due(connection);
    return connection->ready_len > 0 || (connection->endless && connection->out_len == 0);
}

static void turn(struct fake_server *server)
{
    struct pollfd fds[1 + CONNECTIONS_MAX] = {{.fd = server->listener, .events = POLLIN}};
    bool delayed = false;

    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &server->connections[i];
        bool sends = connection->fd >= 0 && wants_to_send(connection);

        fds[1 + i] = (struct pollfd){.fd = connection->fd, .events = POLLIN};
        if (sends)
            fds[1 + i].events |= POLLOUT;
        delayed |= connection->fd >= 0 && connection->delayed_len > 0;
    }
    (void)poll(fds, 1 + CONNECTIONS_MAX, delayed ? 5 : -1);
    if (fds[0].revents != 0)
        take_connection(server);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *connection = &server->connections[i];

        if (fds[1 + i].revents & POLLOUT)
            send_output(connection);
        if (connection->fd >= 0 && fds[1 + i].revents & (POLLIN | POLLHUP | POLLERR))
            on_input(server, connection);
    }
}

/* Runs until it is killed. */
__attribute__((noreturn)) static int run(void *arg)
{
    struct fake_server *server = arg;

    server->connections = calloc(CONNECTIONS_MAX, sizeof *server->connections);
    if (server->connections == NULL)
        cluster_die("fake: no memory");
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
        server->connections[i].fd = -1;
    for (;;)
        turn(server);
}

/* ---- Start and stop ---- */

static int listen_somewhere(unsigned *ret_port, int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, backlog) != 0 || getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        cluster_die("fake: cannot listen: %s", strerror(errno));
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* With a backlog of 0, one connection waits to be accepted, and the kernel ignores the next. */
static int fill_backlog(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        cluster_die("fake: cannot connect to myself: %s", strerror(errno));
    return fd;
}

__attribute__((noreturn)) static int stand_still(void *arg)
{
    (void)arg;
    for (;;)
        (void)pause();
}

void fake_start(struct fake *fake, const struct fake_plan *plan)
{
    struct fake_server server = {.plan = plan};

    fake->seen =
        mmap(NULL, sizeof *fake->seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fake->seen == MAP_FAILED)
        cluster_die("fake: no memory");
    fake->filler = -1;
    server.seen = fake->seen;
    server.listener = listen_somewhere(&fake->port, plan->way == FAKE_DEAF ? 0 : 64);
    server.port = fake->port;
    if (plan->way == FAKE_DEAF)
        fake->filler = fill_backlog(fake->port);
    fake->pid = cluster_spawn(plan->way == FAKE_DEAF ? stand_still : run, &server);
    (void)close(server.listener);
}

void fake_stop(struct fake *fake)
{
    cluster_end(fake->pid);
    if (fake->filler >= 0)
        (void)close(fake->filler);
    (void)munmap(fake->seen, sizeof *fake->seen);
    *fake = (struct fake){.filler = -1};
}
