/*
 * tls_scene.h - a real link with the filter of TLS, a made-up socket, and a real server in memory.
 *
 * A test program includes it once, because its functions use the checks of that program.
 */
#ifndef TEST_TLS_SCENE_H
#define TEST_TLS_SCENE_H

#include <stdlib.h>
#include <unistd.h>

#include "redlock/io/env.h"
#include "redlock/io/tls.h"
#include "redlock/io/transport.h"
#include "redlock/link/link.h"
#include "redlock/wire/reply.h"
#include "test/lib/check.h"
#include "test/lib/tls_peer.h"

#define BYTES_MAX 65536
#define NO_LIMIT SIZE_MAX

/* ---- The transport ---- */

struct transport {
    const struct transport_events *events;
    void *cookie;
    char in[BYTES_MAX]; /* From the server. */
    size_t in_len, in_read;
    size_t arrives; /* So many bytes of them arrive. */
    size_t flipped; /* The bits of this byte are wrong. */
    size_t piece;   /* The most bytes of one read. */
    size_t window;  /* The most bytes of one write; then the socket is full.  0: for good. */
    bool ends;      /* After what arrives the stream ends. */
    bool is_full;
    bool awaits_space, is_open, is_told;
    char out[BYTES_MAX]; /* To the server. */
    size_t out_len, out_taken;
};

#include "test/lib/words.h"
#include "test/lib/made_up_transport.h"

void transport_free(struct transport *transport)
{
    transport->is_open = false;
}

bool transport_open(struct transport *transport, const struct transport_to *to, unsigned turn,
                    struct reason *ret_why)
{
    (void)transport, (void)to, (void)turn, (void)ret_why;
    return true;
}

void transport_close(struct transport *transport, bool reset)
{
    (void)reset;
    transport->is_open = false;
}

static size_t arrived(const struct transport *transport)
{
    return transport->in_len < transport->arrives ? transport->in_len : transport->arrives;
}

ssize_t transport_read(struct transport *transport, char *buf, size_t room, struct reason *ret_why)
{
    size_t len = arrived(transport) - transport->in_read;

    CHECK(transport->is_open && !transport->is_told);
    len = len < room ? len : room;
    len = len < transport->piece ? len : transport->piece;
    memcpy(buf, transport->in + transport->in_read, len);
    if (transport->flipped - transport->in_read < len)
        buf[transport->flipped - transport->in_read] ^= (char)0xff;
    transport->in_read += len;
    if (len > 0 || !transport->ends || arrived(transport) < transport->arrives)
        return (ssize_t)len;
    transport->is_told = true;
    reason_set(ret_why, WHY_CLOSED);
    return -1;
}

ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        struct reason *ret_why)
{
    CHECK(transport->is_open && !transport->is_told);
    (void)ret_why;
    if (transport->is_full)
        return 0;
    if (len > transport->window) {
        len = transport->window;
        transport->is_full = true;
    }
    CHECK(transport->out_len + len <= sizeof transport->out);
    memcpy(transport->out + transport->out_len, bytes, len);
    transport->out_len += len;
    return (ssize_t)len;
}

void transport_await_space(struct transport *transport, bool on)
{
    transport->awaits_space = on;
}

void transport_set_timer(struct transport *transport, drift_span in)
{
    (void)transport, (void)in;
}

bool transport_has_timer(const struct transport *transport)
{
    (void)transport;
    return false;
}

/* ---- The owner of the link ---- */

static struct env env;
static quorum_mask dirty;
static unsigned rises, falls;
static char heard[BYTES_MAX];
static size_t heard_len;
static bool has_pinged;

static void on_link(void *cookie, unsigned number, const struct link_fall *fall)
{
    (void)cookie, (void)number;
    rises += fall == NULL;
    falls += fall != NULL;
}

static void on_reply(void *cookie, unsigned number, const struct ask *ask,
                     const struct reply *reply)
{
    (void)cookie, (void)number, (void)ask;
    CHECK(heard_len + reply->text_len < sizeof heard);
    memcpy(heard + heard_len, reply->text, reply->text_len);
    heard_len += reply->text_len;
}

static void on_done(void *cookie)
{
    (void)cookie;
}

static const struct link_events events = {
    .on_link = on_link, .on_reply = on_reply, .on_done = on_done};

/* ---- One connection ---- */

#define SECRET "S3cr3t"

static char folder[] = "/tmp/redlock-tls-XXXXXX";
static char ca_path[64], cert_path[64], key_path[64], other_path[64];
static struct tls_identity ca, good;

/* The text that the server says after the greeting, as one push, and what is heard of it. */
static const char *push = "+pushed\r\n", *pushed = "pushed";
/* What the server does then.  NULL: nothing. */
static void (*finish)(struct tls_peer *peer);
/* What the server says as soon as its handshake is done, and no more.  NULL: nothing. */
static const char *welcome;

static struct tls_settings settings(void)
{
    return (struct tls_settings){.ca = ca_path, .verify = true};
}

static struct link *make_link(const struct tls_settings *chosen, const char *host)
{
    static char secret[] = SECRET, name[] = "rediss://10.0.0.1:6379";
    static struct uri uri = {.name = name, .port = 6379, .password = secret, .tls = true};
    const struct link_config config = {.env = &env, .uri = &uri, .dirty = &dirty, .listens = true};
    struct link *link;

    uri.host = (char *)(uintptr_t)host;
    env.asks_max = LINK_ASKS_MAX;
    env.loop = &made_up_loop;
    CHECK_INT(tls_context_new(chosen, &env.tls), REDLOCK_OK);
    rises = falls = 0;
    heard_len = 0;
    has_pinged = false;
    memset(&the_transport, 0, sizeof the_transport);
    the_transport.arrives = the_transport.flipped = NO_LIMIT;
    the_transport.piece = the_transport.window = NO_LIMIT;
    link = link_new(&config, &events, NULL);
    CHECK(link != NULL);
    return link;
}

static void free_link(struct link *link)
{
    link_free(link);
    tls_context_free(env.tls);
    env.tls = NULL;
}

static void ring(void)
{
    the_transport.events->on_timer(the_transport.cookie);
}

static void open_link(void)
{
    ring();
    the_transport.is_open = true;
    the_transport.is_told = false;
    the_transport.events->on_open(the_transport.cookie, NULL);
}

static bool has_said(const struct tls_peer *peer, const char *text)
{
    return memmem(peer->said, peer->said_len, text, strlen(text)) != NULL;
}

/* The server reads what the client sent.  It answers AUTH, and pushes after a PING. */
static bool serve(struct tls_peer *peer)
{
    static bool has_welcomed, has_greeted, has_pushed;
    struct transport *transport = &the_transport;
    size_t before = transport->in_len;

    if (transport->out_taken == 0)
        has_welcomed = has_greeted = has_pushed = false;
    tls_peer_take(peer, transport->out + transport->out_taken,
                  transport->out_len - transport->out_taken);
    transport->out_taken = transport->out_len;
    if (tls_peer_is_up(peer) && welcome != NULL && !has_welcomed) {
        tls_peer_say(peer, welcome, strlen(welcome));
        has_welcomed = true;
    }
    if (welcome == NULL && tls_peer_is_up(peer) && !has_greeted && has_said(peer, SECRET)) {
        tls_peer_say(peer, "+OK\r\n", 5);
        has_greeted = true;
    }
    if (has_greeted && !has_pushed && has_said(peer, "PING")) {
        tls_peer_say(peer, push, strlen(push));
        has_pushed = true;
        if (finish != NULL)
            finish(peer);
    }
    transport->in_len += tls_peer_give(peer, transport->in + transport->in_len,
                                       sizeof transport->in - transport->in_len);
    return transport->in_len > before;
}

/* The owner of a link that is up says something, once. */
static bool ping(struct link *link)
{
    if (!link_is_up(link) || has_pinged)
        return false;
    has_pinged = true;
    env_begin_event(&env);
    link_say(link, "PING\r\n", 6);
    link_write(link);
    env_end_event(&env);
    return true;
}

/* True: the loop has brought an event. */
static bool turn(void)
{
    struct transport *transport = &the_transport;
    size_t at = arrived(transport);

    if (!transport->is_open)
        return false;
    if (transport->awaits_space && transport->is_full && transport->window > 0) {
        transport->is_full = false;
        transport->events->on_space(transport->cookie);
        return true;
    }
    if (at == transport->in_read && !(transport->ends && at == transport->arrives))
        return false;
    transport->events->on_bytes(transport->cookie);
    return true;
}

/* Every byte that the client sent is of TLS: no password, and records from the first byte on. */
static void check_sealed(void)
{
    const char *bytes = the_transport.out;
    size_t at = 0, len = the_transport.out_len;

    CHECK(memmem(bytes, len, SECRET, sizeof SECRET - 1) == NULL);
    CHECK(memmem(bytes, len, "AUTH", 4) == NULL);
    while (at + 5 <= len) {
        CHECK(bytes[at] >= 20 && bytes[at] <= 23 && bytes[at + 1] == 3);
        at += 5 + ((size_t)(unsigned char)bytes[at + 3] << 8 | (unsigned char)bytes[at + 4]);
    }
}

/* Let the client and the server talk until both are silent. */
static void talk(struct link *link, SSL_CTX *server)
{
    struct tls_peer peer;
    bool goes_on = true;

    tls_peer_init(&peer, server);
    open_link();
    for (unsigned i = 0; goes_on; i++) {
        CHECK(i < 2 * BYTES_MAX);
        goes_on = serve(&peer);
        goes_on = turn() || goes_on;
        goes_on = ping(link) || goes_on;
    }
    tls_peer_done(&peer);
    check_sealed();
}

static void check_up(struct link *link)
{
    CHECK_STR(words_of(link_reason(link)), "");
    CHECK(link_is_up(link));
    CHECK_UINT(rises, 1);
    CHECK_UINT(falls, 0);
    CHECK(heard_len == strlen(pushed) && memcmp(heard, pushed, heard_len) == 0);
}

static void check_down(struct link *link)
{
    CHECK(!link_is_up(link));
    CHECK_UINT(falls, 1);
    CHECK(link_reason(link)->why != WHY_NONE);
}

/* ---- The program ---- */

static void set_up(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    (void)snprintf(ca_path, sizeof ca_path, "%s/ca.pem", folder);
    (void)snprintf(cert_path, sizeof cert_path, "%s/cert.pem", folder);
    (void)snprintf(key_path, sizeof key_path, "%s/key.pem", folder);
    (void)snprintf(other_path, sizeof other_path, "%s/other.pem", folder);
    ca = tls_identity_make(NULL, NULL, -1, 1);
    good = tls_identity_make("IP:10.0.0.1", &ca, -1, 1);
    tls_identity_save(&ca, ca_path);
    tls_identity_save(&good, cert_path);
    tls_identity_save_key(&good, key_path, NULL);
    tls_identity_save_key(&good, other_path, "a passphrase");
}

static void tear_down(void)
{
    (void)unlink(ca_path);
    (void)unlink(cert_path);
    (void)unlink(key_path);
    (void)unlink(other_path);
    (void)rmdir(folder);
    tls_identity_done(&ca);
    tls_identity_done(&good);
}

static int run_all(const struct check_test *tests, size_t tests_len, int argc, char **argv)
{
    int status;

    set_up();
    status = check_run(tests, tests_len, argc, argv);
    tear_down();
    return status;
}

#define TLS_MAIN(...)                                                      \
    int main(int argc, char **argv)                                        \
    {                                                                      \
        static const struct check_test tests[] = {__VA_ARGS__};            \
                                                                           \
        return run_all(tests, sizeof tests / sizeof tests[0], argc, argv); \
    }

#endif /* TEST_TLS_SCENE_H */
