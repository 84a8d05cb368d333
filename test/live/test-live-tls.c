/*
 * test-live-tls.c - loop clients and masters with TLS: certificates of both ends, names, and
 * servers that must be refused.  The same tests run with pollable clients.
 */
#include "test/lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/tls_peer.h"

/* Servers of one certificate each.  Clients of all need one of the CA. */
enum { GOOD, FOREIGN, ITSELF, OTHER_NAME, OLD, SERVERS };

static struct {
    unsigned port;
    pid_t pid;
} servers[SERVERS];
static struct tls_identity ca, foreign_ca, client, stranger;
static char paths[8][300];
enum { CA, CLIENT, CLIENT_KEY, STRANGER, STRANGER_KEY, SERVER, SERVER_KEY };

static char *path_of(unsigned which, const char *name)
{
    (void)snprintf(paths[which], sizeof paths[which], "%s/%s", cluster_folder(), name);
    return paths[which];
}

static int exec_server(void *arg)
{
    const char *port = arg;

    if (freopen("/dev/null", "w", stdout) == NULL)
        return 1;
    execlp("redis-server", "redis-server", "--port", "0", "--tls-port", port, "--bind", "127.0.0.1",
           "--save", "", "--dir", cluster_folder(), "--tls-ca-cert-file", paths[CA],
           "--tls-cert-file", paths[SERVER], "--tls-key-file", paths[SERVER_KEY], (char *)NULL);
    return 127;
}

static void start(unsigned number, struct tls_identity identity)
{
    char name[24], key[24], port[12];

    (void)snprintf(name, sizeof name, "server%u.pem", number);
    (void)snprintf(key, sizeof key, "server%u.key", number);
    tls_identity_save(&identity, path_of(SERVER, name));
    tls_identity_save_key(&identity, path_of(SERVER_KEY, key), NULL);
    tls_identity_done(&identity);
    servers[number].port = cluster_free_port();
    (void)snprintf(port, sizeof port, "%u", servers[number].port);
    servers[number].pid = cluster_spawn(exec_server, port);
}

static void start_all(void)
{
    ca = tls_identity_make(NULL, NULL, -1, 1);
    foreign_ca = tls_identity_make(NULL, NULL, -1, 1);
    client = tls_identity_make("DNS:client", &ca, -1, 1);
    stranger = tls_identity_make("DNS:client", &foreign_ca, -1, 1);
    tls_identity_save(&ca, path_of(CA, "ca.pem"));
    tls_identity_save(&client, path_of(CLIENT, "client.pem"));
    tls_identity_save_key(&client, path_of(CLIENT_KEY, "client.key"), NULL);
    tls_identity_save(&stranger, path_of(STRANGER, "stranger.pem"));
    tls_identity_save_key(&stranger, path_of(STRANGER_KEY, "stranger.key"), NULL);
    start(GOOD, tls_identity_make("IP:127.0.0.1", &ca, -1, 1));
    start(FOREIGN, tls_identity_make("IP:127.0.0.1", &foreign_ca, -1, 1));
    start(ITSELF, tls_identity_make("IP:127.0.0.1", NULL, -1, 1));
    start(OTHER_NAME, tls_identity_make("DNS:other.example", &ca, -1, 1));
    start(OLD, tls_identity_make("IP:127.0.0.1", &ca, -9, -1));
}

static const char *place(const char *scheme, unsigned port)
{
    static char text[60];

    (void)snprintf(text, sizeof text, "%s127.0.0.1:%u", scheme, port);
    return text;
}

/* ---- Options ---- */

static unsigned warnings;

static void count_warnings(void *arg, enum redlock_level level, const char *text)
{
    (void)arg;
    warnings += level <= REDLOCK_LOG_WARNING && strstr(text, "NOT VERIFIED") != NULL;
}

static void full(struct redlock_options *opts)
{
    opts->tls_ca = paths[CA];
    opts->tls_cert = paths[CLIENT];
    opts->tls_key = paths[CLIENT_KEY];
}

static void of_a_stranger(struct redlock_options *opts)
{
    full(opts);
    opts->tls_cert = paths[STRANGER];
    opts->tls_key = paths[STRANGER_KEY];
}

static void without_certificate(struct redlock_options *opts)
{
    opts->tls_ca = paths[CA];
}

static void by_name(struct redlock_options *opts)
{
    full(opts);
    opts->tls_server_name = "other.example";
}

static void unverified(struct redlock_options *opts)
{
    full(opts);
    opts->tls_verify = false;
    opts->log = count_warnings;
}

/* ---- Tests ---- */

static struct pilot pilot;

static void open_at(const char *master, void (*tune)(struct redlock_options *opts))
{
    pilot_guarded = pilot_founds = false;
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, master, tune), REDLOCK_OK);
}

static void check_locks(unsigned number, void (*tune)(struct redlock_options *opts))
{
    struct redlock_lease *lease;

    open_at(place("rediss://", servers[number].port), tune);
    CHECK(pilot_until_up(&pilot, 1));
    CHECK_INT(pilot_lock_for(&pilot, "a", 60000, false, 0, &lease), REDLOCK_OK);
    CHECK_INT(pilot_extend(&pilot, lease, 60000), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

static void check_refused(const char *master, void (*tune)(struct redlock_options *opts),
                          const char *why)
{
    open_at(master, tune);
    check_row = why;
    CHECK_INT(pilot_until_told(&pilot, "a", why), REDLOCK_UNREACHABLE);
    check_row = NULL;
    CHECK_UINT(pilot_stats(&pilot).connects, 0);
    pilot_close(&pilot);
}

TEST(both_ends_are_verified)
{
    check_locks(GOOD, full);
    check_locks(OTHER_NAME, by_name);
}

#define REFUSED "TLS: the server's certificate is refused: "
#define NO_CA " (its CA is not in tls_ca; redlock: --tls-ca)"

TEST(servers_are_refused)
{
    static const struct {
        unsigned number;
        const char *why;
    } rows[] = {
        {FOREIGN, REFUSED "unable to get local issuer certificate" NO_CA},
        {ITSELF, REFUSED "self-signed certificate" NO_CA},
        {OTHER_NAME, REFUSED "IP address mismatch: it is not for 127.0.0.1"},
        {OLD, REFUSED "certificate has expired"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_refused(place("rediss://", servers[rows[i].number].port), full, rows[i].why);
    check_refused(place("rediss://", servers[GOOD].port), by_name,
                  REFUSED "hostname mismatch: it is not for other.example");
}

TEST(without_verification_any_server_will_do_and_the_log_says_so)
{
    warnings = 0;
    for (unsigned i = 0; i < SERVERS; i++)
        check_locks(i, unverified);
    CHECK_UINT(warnings, SERVERS);
}

/* The server's alert may be lost, because it does not read what was sent meanwhile. */
TEST(clients_are_refused)
{
    open_at(place("rediss://", servers[GOOD].port), without_certificate);
    CHECK_INT(pilot_until_told(&pilot, "a", "TLS"), REDLOCK_UNREACHABLE);
    CHECK(strstr(pilot.message, "tlsv13 alert certificate required") != NULL ||
          strstr(pilot.message, "is a client certificate wanted?") != NULL);
    pilot_close(&pilot);
    open_at(place("rediss://", servers[GOOD].port), of_a_stranger);
    CHECK_INT(pilot_until_told(&pilot, "a", "TLS"), REDLOCK_UNREACHABLE);
    pilot_close(&pilot);
}

/* The server closes, and may send an alert before, which is no reply. */
static bool is_not_understood(void *arg)
{
    static const char *const whys[] = {"reset by peer", "closed the connection", "garbage"};
    struct redlock_lease *lease;
    bool is_told = false;

    (void)arg;
    CHECK_INT(pilot_lock_for(&pilot, "a", 60000, false, 0, &lease), REDLOCK_UNREACHABLE);
    for (size_t i = 0; i < sizeof whys / sizeof *whys; i++)
        is_told = is_told || strstr(pilot.message, whys[i]) != NULL;
    return is_told;
}

/* No downgrade: neither end understands the other. */
TEST(plain_and_tls_do_not_meet)
{
    static struct cluster plain;

    cluster_ready(&plain, 1);
    check_refused(place("rediss://", plain.server[0].port), full, "TLS");
    CHECK_UINT(server_locks(&plain.server[0]), 0);
    open_at(place("redis://", servers[GOOD].port), full);
    CHECK(pilot_until(&pilot, is_not_understood, NULL));
    CHECK_UINT(pilot_stats(&pilot).connects, 0);
    pilot_close(&pilot);
}

/* redis-cli is built with the server. */
static bool servers_have_tls(void)
{
    return system("redis-cli --help 2>&1 | grep -q -e --tls") == 0;
}

static int run_all(const struct check_test *tests, size_t tests_len, int argc, char **argv)
{
    int status;

    start_all();
    status = check_run(tests, tests_len, argc, argv);
    for (unsigned i = 0; i < SERVERS; i++)
        cluster_end(servers[i].pid);
    tls_identity_done(&ca);
    tls_identity_done(&foreign_ca);
    tls_identity_done(&client);
    tls_identity_done(&stranger);
    return status;
}

int main(int argc, char **argv)
{
    static const struct check_test tests[] = {
        RUN(both_ends_are_verified), RUN(servers_are_refused),
        RUN(without_verification_any_server_will_do_and_the_log_says_so), RUN(clients_are_refused),
        RUN(plain_and_tls_do_not_meet)};

    if (!servers_have_tls()) {
        printf("SKIPPED: this redis-server has no TLS\n");
        return 77;
    }
    return run_all(tests, sizeof tests / sizeof tests[0], argc, argv);
}
