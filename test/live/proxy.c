/*
 * proxy.c - one thread on poll().
 */
#include "live/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/cluster.h"

#define CONNECTIONS_MAX 128
#define CHUNK 2048

/* A fault comes after a random number of bytes in one direction, below 2^9 to 2^18; the exponent
 * is random, too.  So some connections break in the handshake, and some last for hundreds of
 * locks. */
#define CALM_LOG_MIN 9
#define CALM_LOGS 10

enum fault { FAULT_DELAY, FAULT_MUTE, FAULT_CLOSE, FAULT_RESET, FAULTS };

/* One direction of a connection. */
struct way {
    int from, to;
    size_t left;    /* Bytes up to the next fault. */
    double until_s; /* It passes nothing on until then. */
    bool is_mute;   /* At until_s the connection is reset, instead of going on. */
    size_t len;     /* Bytes that were read and not yet written. */
    char bytes[CHUNK];
};

struct connection {
    bool is_open;
    struct way ways[2];
};

struct proxy {
    pthread_t thread;
    uint64_t dice;
    unsigned len;
    int listeners[CLUSTER_MAX];
    unsigned ports[CLUSTER_MAX]; /* The ports of the masters. */
    char masters[CLUSTER_MAX * 48];
    atomic_bool calm, stopping;
    atomic_uint faults;
    struct connection connections[CONNECTIONS_MAX];
};

/* SplitMix64. */
static uint64_t draw(struct proxy *proxy, uint64_t below)
{
    uint64_t z = (proxy->dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

static size_t draw_left(struct proxy *proxy)
{
    return (size_t)draw(proxy, UINT64_C(1) << (CALM_LOG_MIN + draw(proxy, CALM_LOGS)));
}

/* ---- Connections ---- */

static void end(struct connection *connection, bool reset)
{
    const struct linger at_once = {.l_onoff = 1};

    for (unsigned i = 0; i < 2; i++) {
        if (reset)
            (void)setsockopt(connection->ways[i].from, SOL_SOCKET, SO_LINGER, &at_once,
                             sizeof at_once);
        (void)close(connection->ways[i].from);
    }
    connection->is_open = false;
}

static int connect_to(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static void take(struct proxy *proxy, unsigned master)
{
    int client = accept4(proxy->listeners[master], NULL, NULL, SOCK_CLOEXEC);
    int server = client >= 0 ? connect_to(proxy->ports[master]) : -1;
    unsigned i = 0;

    while (i < CONNECTIONS_MAX && proxy->connections[i].is_open)
        i++;
    if (server < 0 || i == CONNECTIONS_MAX) {
        (void)close(client);
        (void)close(server);
        return;
    }
    proxy->connections[i] = (struct connection){
        .is_open = true,
        .ways = {{.from = client, .to = server, .left = draw_left(proxy)},
                 {.from = server, .to = client, .left = draw_left(proxy)}},
    };
}

/* ---- Faults ---- */

/* False: the connection is over. */
static bool fail(struct proxy *proxy, struct connection *connection, struct way *way)
{
    enum fault fault = (enum fault)draw(proxy, FAULTS);

    atomic_fetch_add(&proxy->faults, 1);
    way->left = draw_left(proxy);
    if (fault == FAULT_CLOSE || fault == FAULT_RESET) {
        end(connection, fault == FAULT_RESET);
        return false;
    }
    way->is_mute = fault == FAULT_MUTE;
    way->until_s = cluster_now_s() + (double)draw(proxy, way->is_mute ? 400 : 80) / 1e3;
    return true;
}

/* Write as much as the socket takes, up to the next fault.  False: the connection is over. */
static bool pass_on(struct proxy *proxy, struct connection *connection, struct way *way)
{
    bool calm = atomic_load(&proxy->calm);
    size_t len = calm || way->len < way->left ? way->len : way->left;
    ssize_t n = len > 0 ? send(way->to, way->bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

    if (n < 0 && errno != EAGAIN) {
        end(connection, false);
        return false;
    }
    if (n > 0) {
        way->len -= (size_t)n;
        memmove(way->bytes, way->bytes + n, way->len);
        way->left -= calm ? 0 : (size_t)n;
    }
    return calm || way->left > 0 || fail(proxy, connection, way);
}

static bool is_held_up(const struct way *way)
{
    return way->until_s > 0;
}

/* False: the connection is over. */
static bool go_on(struct proxy *proxy, struct connection *connection, struct way *way)
{
    if (way->until_s > cluster_now_s() && !atomic_load(&proxy->calm))
        return true;
    way->until_s = 0;
    if (way->is_mute) {
        end(connection, true);
        return false;
    }
    return pass_on(proxy, connection, way);
}

/* False: the connection is over. */
static bool take_in(struct proxy *proxy, struct connection *connection, struct way *way)
{
    ssize_t n = recv(way->from, way->bytes + way->len, CHUNK - way->len, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        end(connection, n < 0);
        return false;
    }
    way->len += n > 0 ? (size_t)n : 0;
    return pass_on(proxy, connection, way);
}

/* ---- The thread ---- */

static void turn_connection(struct proxy *proxy, struct connection *connection,
                            const struct pollfd fds[2])
{
    for (unsigned i = 0; i < 2; i++) {
        struct way *way = &connection->ways[i];
        bool goes_on = true;

        if (is_held_up(way))
            goes_on = go_on(proxy, connection, way);
        else if (fds[i].revents != 0 && way->len < CHUNK)
            goes_on = take_in(proxy, connection, way);
        else if (way->len > 0)
            goes_on = pass_on(proxy, connection, way);
        if (!goes_on)
            return;
    }
}

static void turn(struct proxy *proxy)
{
    struct pollfd fds[CLUSTER_MAX + 2 * CONNECTIONS_MAX];
    struct pollfd *ways = fds + proxy->len;

    for (unsigned m = 0; m < proxy->len; m++)
        fds[m] = (struct pollfd){.fd = proxy->listeners[m], .events = POLLIN};
    for (unsigned i = 0; i < 2 * CONNECTIONS_MAX; i++) {
        const struct connection *connection = &proxy->connections[i / 2];
        const struct way *way = &connection->ways[i % 2];
        bool reads = connection->is_open && !is_held_up(way) && way->len < CHUNK;

        ways[i] = (struct pollfd){.fd = reads ? way->from : -1, .events = POLLIN};
    }
    (void)poll(fds, proxy->len + 2 * CONNECTIONS_MAX, 2);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
        if (proxy->connections[i].is_open)
            turn_connection(proxy, &proxy->connections[i], ways + 2 * (size_t)i);
    for (unsigned m = 0; m < proxy->len; m++)
        if (fds[m].revents != 0)
            take(proxy, m);
}

static void *run(void *arg)
{
    struct proxy *proxy = arg;

    while (!atomic_load(&proxy->stopping))
        turn(proxy);
    return NULL;
}

/* ---- Start and stop ---- */

static int listen_somewhere(unsigned *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        cluster_die("proxy: cannot listen: %s", strerror(errno));
    *ret_port = ntohs(address.sin_port);
    return fd;
}

struct proxy *proxy_start(const struct cluster *cluster, uint64_t seed)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    size_t at = 0;

    if (proxy == NULL)
        cluster_die("proxy: no memory");
    proxy->dice = seed;
    proxy->len = cluster->len;
    for (unsigned m = 0; m < proxy->len; m++) {
        unsigned port;

        proxy->ports[m] = cluster->server[m].port;
        proxy->listeners[m] = listen_somewhere(&port);
        at += (size_t)snprintf(proxy->masters + at, sizeof proxy->masters - at,
                               "%s127.0.0.1:%u#127.0.0.1:%u", m > 0 ? "," : "", port,
                               proxy->ports[m]);
    }
    if (pthread_create(&proxy->thread, NULL, run, proxy) != 0)
        cluster_die("proxy: no thread");
    return proxy;
}

const char *proxy_masters(const struct proxy *proxy)
{
    return proxy->masters;
}

void proxy_calm(struct proxy *proxy)
{
    atomic_store(&proxy->calm, true);
}

unsigned proxy_faults(const struct proxy *proxy)
{
    return atomic_load(&proxy->faults);
}

void proxy_stop(struct proxy *proxy)
{
    atomic_store(&proxy->stopping, true);
    (void)pthread_join(proxy->thread, NULL);
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
        if (proxy->connections[i].is_open)
            end(&proxy->connections[i], false);
    for (unsigned m = 0; m < proxy->len; m++)
        (void)close(proxy->listeners[m]);
    free(proxy);
}
