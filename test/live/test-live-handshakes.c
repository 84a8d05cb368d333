/*
 * test-live-handshakes.c - connections with TLS that end at every byte of the handshake and of the
 * greeting behind it, in both directions, closed in order and reset.  Each is a clear error: the
 * client has no lock, says nothing but TLS, and keeps no descriptor.  The same runs with pollable
 * clients.
 *
 * A relay between client and master cuts.  It serves one connection at a time.
 */
#include "test/lib/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/tls_peer.h"

/* ---- Records ---- */

/* TLS 1.3, section 5.1: a record has five bytes of header, the last two of which are its length,
 * and begins with its type: change_cipher_spec, alert, handshake or application data. */
#define HEADER_LEN 5
#define TYPE_MIN 20
#define TYPE_MAX 23

struct records {
    size_t header_len; /* Bytes of the header that have come. */
    size_t left;       /* Bytes of the record behind it. */
};

/* False: this is no TLS. */
static bool records_take(struct records *records, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (records->header_len == HEADER_LEN) {
            if (--records->left == 0)
                records->header_len = 0;
            continue;
        }
        if (records->header_len == 0 && (bytes[i] < TYPE_MIN || bytes[i] > TYPE_MAX))
            return false;
        records->left = (records->left << 8 | bytes[i]) & 0xffff;
        if (++records->header_len == HEADER_LEN && records->left == 0)
            return false;
    }
    return true;
}

/* ---- The relay ---- */

enum { TO_SERVER, TO_CLIENT, WAYS };

static struct relay {
    pthread_t thread;
    int listener;
    unsigned port, server_port;
    atomic_size_t limits[WAYS]; /* So many bytes pass; the next one cuts. */
    atomic_size_t passed[WAYS]; /* On the connection that was taken last. */
    atomic_bool resets, stopping;
    atomic_uint cuts, plain; /* plain: clients that said something else than TLS. */
} relay;

static struct sockaddr_in loopback(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* A socket with unread bytes would be reset by close(). */
static void cut(const int fds[WAYS])
{
    const struct linger at_once = {.l_onoff = 1};
    char dropped[4096];

    atomic_fetch_add(&relay.cuts, 1);
    for (unsigned way = 0; way < WAYS; way++) {
        if (atomic_load(&relay.resets))
            (void)setsockopt(fds[way], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        while (recv(fds[way], dropped, sizeof dropped, MSG_DONTWAIT) > 0)
            ;
    }
}

/* False: the connection is over.  fds[way] is where the bytes of this way come from. */
static bool pass_on(const int fds[WAYS], unsigned way, struct records *records)
{
    size_t left = atomic_load(&relay.limits[way]) - atomic_load(&relay.passed[way]);
    unsigned char bytes[4096];
    ssize_t len;

    len = recv(fds[way], bytes, left == 0 ? 1 : left < sizeof bytes ? left : sizeof bytes, 0);
    if (len <= 0)
        return false;
    if (left == 0) {
        cut(fds);
        return false;
    }
    if (way == TO_SERVER && !records_take(records, bytes, (size_t)len))
        atomic_fetch_add(&relay.plain, 1);
    atomic_fetch_add(&relay.passed[way], (size_t)len);
    return send(fds[1 - way], bytes, (size_t)len, MSG_NOSIGNAL) == len;
}

static void serve(int client)
{
    struct sockaddr_in address = loopback(relay.server_port);
    int fds[WAYS] = {client, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct pollfd polled[WAYS] = {{.fd = fds[0], .events = POLLIN},
                                  {.fd = fds[1], .events = POLLIN}};
    struct records records = {0};
    bool goes_on = connect(fds[1], (struct sockaddr *)&address, sizeof address) == 0;

    for (unsigned way = 0; way < WAYS; way++)
        atomic_store(&relay.passed[way], 0);
    while (goes_on && !atomic_load(&relay.stopping)) {
        (void)poll(polled, WAYS, 10);
        for (unsigned way = 0; way < WAYS && goes_on; way++)
            if (polled[way].revents != 0)
                goes_on = pass_on(fds, way, &records);
    }
    for (unsigned way = 0; way < WAYS; way++)
        (void)close(fds[way]);
}

static void *run_relay(void *arg)
{
    (void)arg;
    while (!atomic_load(&relay.stopping)) {
        struct pollfd polled = {.fd = relay.listener, .events = POLLIN};
        int client =
            poll(&polled, 1, 10) > 0 ? accept4(relay.listener, NULL, NULL, SOCK_CLOEXEC) : -1;

        if (client >= 0)
            serve(client);
    }
    return NULL;
}

static void relay_start(unsigned server_port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof address;

    relay.server_port = server_port;
    relay.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (relay.listener < 0 || bind(relay.listener, (struct sockaddr *)&address, len) != 0 ||
        listen(relay.listener, 16) != 0 ||
        getsockname(relay.listener, (struct sockaddr *)&address, &len) != 0)
        cluster_die("the relay cannot listen");
    relay.port = ntohs(address.sin_port);
    if (pthread_create(&relay.thread, NULL, run_relay, NULL) != 0)
        cluster_die("no thread");
}

static void relay_stop(void)
{
    atomic_store(&relay.stopping, true);
    (void)pthread_join(relay.thread, NULL);
    (void)close(relay.listener);
}

/* SIZE_MAX: no limit. */
static void relay_limit(unsigned way, size_t limit)
{
    atomic_store(&relay.limits[way], limit);
    atomic_store(&relay.limits[1 - way], SIZE_MAX);
}

/* ---- A master and its client ---- */

static char paths[5][300];
enum { CA, CLIENT, CLIENT_KEY, SERVER, SERVER_KEY };
static pid_t master;
static struct pilot pilot;

static char *path_of(unsigned which, const char *name)
{
    (void)snprintf(paths[which], sizeof paths[which], "%s/%s", cluster_folder(), name);
    return paths[which];
}

static int exec_server(void *arg)
{
    if (freopen("/dev/null", "w", stdout) == NULL)
        return 1;
    execlp("redis-server", "redis-server", "--port", "0", "--tls-port", (char *)arg, "--bind",
           "127.0.0.1", "--save", "", "--dir", cluster_folder(), "--tls-ca-cert-file", paths[CA],
           "--tls-cert-file", paths[SERVER], "--tls-key-file", paths[SERVER_KEY], (char *)NULL);
    return 127;
}

static void save(const struct tls_identity *identity, unsigned cert, const char *cert_name,
                 unsigned key, const char *key_name)
{
    tls_identity_save(identity, path_of(cert, cert_name));
    tls_identity_save_key(identity, path_of(key, key_name), NULL);
}

static void start_master(void)
{
    struct tls_identity ca = tls_identity_make(NULL, NULL, -1, 1);
    struct tls_identity client = tls_identity_make("DNS:client", &ca, -1, 1);
    struct tls_identity server = tls_identity_make("IP:127.0.0.1", &ca, -1, 1);
    unsigned number = cluster_free_port();
    char port[12];

    tls_identity_save(&ca, path_of(CA, "ca.pem"));
    save(&client, CLIENT, "client.pem", CLIENT_KEY, "client.key");
    save(&server, SERVER, "server.pem", SERVER_KEY, "server.key");
    tls_identity_done(&ca);
    tls_identity_done(&client);
    tls_identity_done(&server);
    (void)snprintf(port, sizeof port, "%u", number);
    master = cluster_spawn(exec_server, port);
    relay_start(number);
}

static void with_certificate(struct redlock_options *opts)
{
    opts->tls_ca = paths[CA];
    opts->tls_cert = paths[CLIENT];
    opts->tls_key = paths[CLIENT_KEY];
}

static void open_through_relay(void)
{
    char text[60];

    (void)snprintf(text, sizeof text, "rediss://127.0.0.1:%u", relay.port);
    pilot_guarded = pilot_founds = false;
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, text, with_certificate), REDLOCK_OK);
}

static void lock_once(void)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(&pilot, "a", 60000, false, 0, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
}

/* ---- Tests ---- */

/* Chosen: more than a handshake has, either way, with the keys of tls_peer.h (600 and 900). */
#define EACH_UNTIL 1500
#define HANDSHAKE_MAX 3000 /* Chosen: OpenSSL 3.5 has keys that are 1 200 bytes longer. */
#define STEP 61            /* From there on, for the greeting.  Chosen. */
#define LAST 200 /* Not cut, since replies differ in length, and a request may follow.  Chosen. */

static bool says(const char *text)
{
    return strstr(pilot.message, text) != NULL;
}

static bool is_told(void *arg)
{
    struct redlock_lease *lease;

    (void)arg;
    CHECK_INT(pilot_lock_for(&pilot, "a", 60000, false, 0, &lease), REDLOCK_UNREACHABLE);
    return says("TLS handshake") &&
           (says("closed the connection") || says("reset by peer") || says("Broken pipe"));
}

static void check_cut(unsigned way, size_t limit, bool resets)
{
    static char row[80];
    unsigned cuts = atomic_load(&relay.cuts);

    (void)snprintf(row, sizeof row, "%s after %zu bytes to the %s", resets ? "reset" : "closed",
                   limit, way == TO_SERVER ? "server" : "client");
    check_row = row;
    relay_limit(way, limit);
    atomic_store(&relay.resets, resets);
    open_through_relay();
    CHECK(pilot_until(&pilot, is_told, NULL));
    CHECK(atomic_load(&relay.cuts) > cuts);
    CHECK_UINT(pilot_stats(&pilot).connects, 0);
    if (way == TO_CLIENT && limit >= HANDSHAKE_MAX)
        CHECK(says("after the TLS handshake"));
    pilot_close(&pilot);
    check_row = NULL;
}

/* The other end of a connection may be open for a moment. */
static bool has_descriptors(void *wanted)
{
    return cluster_descriptors() == *(unsigned *)wanted;
}

/* Bytes that pass before the client is up. */
static void measure(size_t lens[WAYS])
{
    relay_limit(TO_SERVER, SIZE_MAX);
    open_through_relay();
    CHECK(pilot_until_up(&pilot, 1));
    for (unsigned way = 0; way < WAYS; way++)
        lens[way] = atomic_load(&relay.passed[way]);
    pilot_close(&pilot);
    printf("%zu bytes to the server, %zu to the client\n", lens[TO_SERVER], lens[TO_CLIENT]);
}

/* At each byte one is closed or reset, and the other with the other loop of the library. */
TEST(cut_at_every_byte)
{
    unsigned descriptors = cluster_descriptors(), tried = 0;
    size_t lens[WAYS];

    measure(lens);
    for (unsigned way = 0; way < WAYS; way++)
        for (size_t limit = 0; limit + LAST < lens[way];
             limit += limit < EACH_UNTIL ? 1 : STEP, tried++)
            check_cut(way, limit, (limit + pilot_is_pollable()) % 2 != 0);
    printf("%u cuts\n", tried);
    relay_limit(TO_SERVER, SIZE_MAX);
    open_through_relay();
    CHECK(pilot_until_up(&pilot, 1));
    lock_once();
    CHECK_UINT(atomic_load(&relay.plain), 0);
    pilot_close(&pilot);
    pilot = (struct pilot){.kind = PILOT_BLOCKING};
    CHECK(pilot_until(&pilot, has_descriptors, &descriptors));
}

/* redis-cli is built with the server. */
static bool servers_have_tls(void)
{
    return system("redis-cli --help 2>&1 | grep -q -e --tls") == 0;
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {RUN(cut_at_every_byte)};
    int status;

    if (!servers_have_tls()) {
        printf("SKIPPED: this redis-server has no TLS\n");
        return 77;
    }
    start_master();
    status = check_run(tests, sizeof tests / sizeof tests[0], argc, argv);
    relay_stop();
    cluster_end(master);
    return status;
}
