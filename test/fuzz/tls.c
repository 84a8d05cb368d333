/*
 * tls.c - fuzz target: hostile bytes and bad sockets under the filter of TLS.
 *
 * The stream of a link (redlock/link/stream.c) with its filter (redlock/io/tls.c) talks to a real
 * server in memory, through a made-up socket.  The input decides what each does, and what happens
 * to the server's bytes: pieces, bits that are wrong, bytes that are lost or put in between,
 * records that nobody sealed, the end; before, within and after the handshake.
 *
 * It checks:
 *
 *  - the client sends records of TLS and no plain byte;
 *  - what the owner of the stream reads is what the server said, and nothing else;
 *  - what the server reads is what the owner wrote;
 *  - the stream keeps the contract of redlock/io/transport.h;
 *  - a connection whose bytes nobody touched opens, and loses nothing, however it was cut.
 *
 * The random numbers of OpenSSL are those of the input, so a run can be repeated.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_set_rand_method() */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <openssl/rand.h>

#include "must.h"
#include "redlock/io/tls.h"
#include "redlock/io/transport.h"
#include "redlock/link/stream.h"
#include "test/lib/tls_peer.h"

#define BYTES_MAX (256u << 10)
#define SAID_MAX 40000 /* More than two records. */
#define WROTE_MAX 4000 /* The server of tls_peer.c keeps so much. */
#define TURNS_MAX 20000
#define READ_MAX (16u << 10)

static const uint8_t *input;
static size_t input_len;

static unsigned next_byte(void)
{
    if (input_len == 0)
        return 0;
    input_len--;
    return *input++;
}

/* ---- OpenSSL's dice ---- */

static uint64_t dice;

static int draw(unsigned char *buf, int len)
{
    for (int i = 0; i < len; i++) {
        dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
        buf[i] = (unsigned char)(dice >> 56);
    }
    return 1;
}

static int draw_well(void)
{
    return 1;
}

static const RAND_METHOD method = {.bytes = draw, .pseudorand = draw, .status = draw_well};

/* ---- The socket ---- */

enum state { CLOSED, CONNECTING, OPEN };

struct transport {
    const struct transport_events *events;
    void *cookie;
    enum state state;
    char in[BYTES_MAX];
    size_t in_len, in_read;
    bool ended, told_of_end, awaits_space;
    size_t piece, room; /* The most bytes of a read; the bytes that the socket takes. */
    char out[BYTES_MAX];
    size_t out_len, out_taken;
};

#include "test/lib/made_up_transport.h"

void transport_free(struct transport *transport)
{
    transport->state = CLOSED;
}

bool transport_open(struct transport *transport, const struct transport_to *to, unsigned turn,
                    struct reason *ret_why)
{
    (void)to, (void)turn, (void)ret_why;
    MUST(transport->state == CLOSED);
    transport->state = CONNECTING;
    return true;
}

void transport_close(struct transport *transport, bool reset)
{
    (void)reset;
    transport->state = CLOSED;
    transport->awaits_space = false;
}

ssize_t transport_read(struct transport *transport, char *buf, size_t room, struct reason *ret_why)
{
    size_t len = transport->in_len - transport->in_read;

    MUST(transport->state == OPEN && !transport->told_of_end);
    len = len < room ? len : room;
    len = len < transport->piece ? len : transport->piece;
    memcpy(buf, transport->in + transport->in_read, len);
    transport->in_read += len;
    if (len > 0 || !transport->ended)
        return (ssize_t)len;
    transport->told_of_end = true;
    reason_set(ret_why, WHY_CLOSED);
    return -1;
}

ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        struct reason *ret_why)
{
    MUST(transport->state == OPEN && !transport->told_of_end && len > 0);
    (void)ret_why;
    len = len < transport->room ? len : transport->room;
    MUST(transport->out_len + len <= sizeof transport->out);
    memcpy(transport->out + transport->out_len, bytes, len);
    transport->out_len += len;
    transport->room -= len;
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

/* ---- The owner of the stream ---- */

static struct tls_context *client;
static struct stream stream;
static struct tls_peer peer;
static bool is_touched; /* Bytes of the server were changed, or the stream ended. */
static bool is_open, has_peer;
static char said[SAID_MAX];
static size_t said_len, heard_len;
static size_t wrote_len, unsent; /* Of what it wants to write, the last bytes are unsent. */

static char pattern(size_t at)
{
    return "AUTH S3cr3t plain"[at % 17];
}

static void give_up(void)
{
    stream_close(&stream, false);
    is_open = false;
    unsent = 0;
}

static void write_unsent(void)
{
    char bytes[WROTE_MAX];
    struct reason why = {.why = WHY_NONE};
    ssize_t n = 1;

    for (size_t i = 0; i < unsent; i++)
        bytes[i] = pattern(wrote_len + i);
    while (unsent > 0 && n > 0) {
        n = stream_write(&stream, bytes, unsent, &why);
        if (n < 0) {
            MUST(why.why != WHY_NONE);
            give_up();
            return;
        }
        MUST((size_t)n <= unsent);
        unsent -= (size_t)n;
        wrote_len += (size_t)n;
        memmove(bytes, bytes + n, unsent);
    }
    stream_await_space(&stream, unsent > 0);
}

static void read_all(void)
{
    char bytes[READ_MAX];
    struct reason why = {.why = WHY_NONE};
    ssize_t n;

    MUST(is_open);
    do {
        n = stream_read(&stream, bytes, sizeof bytes, &why);
        if (n < 0) {
            MUST(why.why != WHY_NONE);
            give_up();
            return;
        }
        MUST((size_t)n <= said_len - heard_len);
        MUST(memcmp(bytes, said + heard_len, (size_t)n) == 0);
        heard_len += (size_t)n;
    } while (stream_has_more(&stream));
}

static void on_open(void *cookie, const struct reason *why)
{
    (void)cookie;
    MUST(!is_open);
    if (why != NULL) {
        MUST(why->why != WHY_NONE);
        MUST(the_transport.state == CLOSED);
        return;
    }
    MUST(the_transport.in_read > 300); /* No server can prove with less who it is. */
    is_open = true;
    write_unsent();
    if (is_open && stream_has_more(&stream))
        read_all();
}

static void on_bytes(void *cookie)
{
    (void)cookie;
    read_all();
}

static void on_space(void *cookie)
{
    (void)cookie;
    MUST(is_open && unsent > 0);
    write_unsent();
}

static void on_timer(void *cookie)
{
    (void)cookie;
    MUST(false);
}

static const struct transport_events events = {
    .on_open = on_open, .on_bytes = on_bytes, .on_space = on_space, .on_timer = on_timer};

/* True: the loop has brought an event. */
static bool turn(void)
{
    struct transport *transport = &the_transport;

    if (transport->state == CONNECTING) {
        transport->state = OPEN;
        transport->events->on_open(transport->cookie, NULL);
        return true;
    }
    if (transport->state != OPEN)
        return false;
    MUST(!transport->told_of_end); /* It is closed in the same turn. */
    if (transport->in_read < transport->in_len || transport->ended) {
        transport->events->on_bytes(transport->cookie);
        return true;
    }
    if (!transport->awaits_space || transport->room == 0)
        return false;
    transport->events->on_space(transport->cookie);
    return true;
}

/* ---- The server ---- */

static SSL_CTX *servers[2];

/* No plain byte: all is in records. */
static void check_sealed(void)
{
    const char *bytes = the_transport.out;
    size_t at = 0, len = the_transport.out_len;

    MUST(memmem(bytes, len, "S3cr3t", 6) == NULL);
    while (at + 5 <= len) {
        MUST(bytes[at] >= 20 && bytes[at] <= 23 && bytes[at + 1] == 3);
        at += 5 + ((size_t)(unsigned char)bytes[at + 3] << 8 | (unsigned char)bytes[at + 4]);
    }
}

static void give(void)
{
    struct transport *transport = &the_transport;

    transport->in_len += tls_peer_give(&peer, transport->in + transport->in_len,
                                       sizeof transport->in - transport->in_len);
}

/* It reads what the client sent. */
static void serve(void)
{
    struct transport *transport = &the_transport;

    tls_peer_take(&peer, transport->out + transport->out_taken,
                  transport->out_len - transport->out_taken);
    transport->out_taken = transport->out_len;
    MUST(peer.said_len <= wrote_len);
    for (size_t i = 0; i < peer.said_len; i++)
        MUST(peer.said[i] == pattern(i));
    if (!is_touched)
        MUST(!peer.has_failed);
    give();
}

static void say(size_t len)
{
    if (!tls_peer_is_up(&peer) || said_len + len > sizeof said || len == 0 || is_touched)
        return;
    for (size_t i = 0; i < len; i++)
        said[said_len + i] = (char)(said_len + i * 7);
    tls_peer_say(&peer, said + said_len, len);
    said_len += len;
    give();
}

/* Something that a server may do once it is up.  Then the connection may end. */
static void do_more(unsigned what)
{
    if (!tls_peer_is_up(&peer))
        return;
    if (what % 4 == 0 && SSL_version(peer.ssl) == TLS1_3_VERSION) {
        (void)SSL_key_update(peer.ssl, SSL_KEY_UPDATE_REQUESTED);
    } else if (what % 4 == 1) {
        is_touched = true;
        (void)SSL_shutdown(peer.ssl);
    } else if (what % 4 == 2 && SSL_version(peer.ssl) < TLS1_3_VERSION) {
        is_touched = true;
        (void)SSL_renegotiate(peer.ssl);
        (void)SSL_do_handshake(peer.ssl);
    }
    give();
}

/* ---- What happens to its bytes ---- */

static void inject(size_t len)
{
    struct transport *transport = &the_transport;

    is_touched = true;
    for (size_t i = 0; i < len && transport->in_len < sizeof transport->in; i++)
        transport->in[transport->in_len++] = (char)next_byte();
}

/* A record whose head is right, perhaps. */
static void inject_record(void)
{
    static const char types[] = {20, 21, 22, 23, 24, 0};
    struct transport *transport = &the_transport;
    unsigned type = next_byte(), len = next_byte();

    if (sizeof transport->in - transport->in_len < 5 + 255)
        return;
    transport->in[transport->in_len++] = types[type % sizeof types];
    transport->in[transport->in_len++] = 3;
    transport->in[transport->in_len++] = (char)(type / 64 + 1);
    transport->in[transport->in_len++] = (char)(type % 17 == 16 ? 64 : 0); /* Too long, then. */
    transport->in[transport->in_len++] = (char)len;
    inject(len % 3 == 0 ? len / 2 : len);
}

/* Change, drop or repeat some of the bytes that the client has not read. */
static void touch(unsigned what)
{
    struct transport *transport = &the_transport;
    size_t left = transport->in_len - transport->in_read, at, len;
    char *bytes;

    at = (next_byte() * 256 + next_byte()) % (left + 1);
    if (left == 0 || at == left)
        return;
    is_touched = true;
    bytes = transport->in + transport->in_read + at;
    len = 1 + next_byte() % (left - at);
    if (what % 3 == 0) {
        *bytes = (char)(*bytes ^ (1 << next_byte() % 8));
    } else if (what % 3 == 1) {
        memmove(bytes, bytes + len, left - at - len);
        transport->in_len -= len;
    } else if (transport->in_len + len <= sizeof transport->in) {
        memmove(bytes + len, bytes, left - at);
        transport->in_len += len;
    }
}

/* ---- A connection ---- */

static void begin(unsigned version)
{
    static const struct transport_to to = {.host = "10.0.0.1", .port = 1};
    struct transport *transport = &the_transport;
    struct reason why;

    give_up();
    if (has_peer)
        tls_peer_done(&peer);
    has_peer = true;
    tls_peer_init(&peer, servers[version % 2]);
    transport->in_len = transport->in_read = transport->out_len = transport->out_taken = 0;
    transport->ended = transport->told_of_end = false;
    transport->piece = transport->room = SIZE_MAX;
    said_len = heard_len = wrote_len = unsent = 0;
    is_touched = false;
    MUST(stream_open(&stream, &to, 0, &why));
}

static void act(unsigned op)
{
    static const size_t sizes[] = {1, 5, 16, 300, 4096, 16384, 17000, 33000};
    unsigned more = op >> 4;

    switch (op % 16) {
    case 0:
    case 1:
    case 2:
        (void)turn();
        serve();
        break;
    case 3:
        (void)turn();
        break;
    case 4:
        the_transport.piece = 1 + next_byte();
        break;
    case 5:
        the_transport.room = next_byte();
        break;
    case 6:
        the_transport.room = SIZE_MAX;
        break;
    case 7:
        say(sizes[more % 8]);
        break;
    case 8:
        if (wrote_len + unsent + sizes[more % 4] <= WROTE_MAX)
            unsent += sizes[more % 4];
        if (is_open)
            write_unsent();
        break;
    case 9:
        do_more(more);
        break;
    case 10:
        inject(1 + more);
        break;
    case 11:
        inject_record();
        break;
    case 12:
    case 13:
        touch(more);
        break;
    case 14:
        the_transport.ended = is_touched = true;
        break;
    default:
        if (more == 15)
            begin(next_byte());
        break;
    }
}

/* Let all that is under way arrive. */
static void settle(void)
{
    unsigned turns = 0;
    bool goes_on = true;

    the_transport.room = the_transport.piece = SIZE_MAX;
    while (goes_on) {
        size_t before = the_transport.in_len, out = the_transport.out_len;

        serve();
        goes_on = turn() || the_transport.in_len > before || the_transport.out_len > out;
        MUST(++turns < TURNS_MAX);
    }
    check_sealed();
    if (is_touched)
        return;
    MUST(is_open && tls_peer_is_up(&peer));
    MUST(heard_len == said_len && unsent == 0 && peer.said_len == wrote_len);
}

/* ---- The target ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct tls_identity ca, own;
    char path[32];
    const struct tls_settings settings = {.ca = path, .verify = true};

    (void)argc, (void)argv;
    (void)RAND_set_rand_method(&method);
    ca = tls_identity_make(NULL, NULL, -1, 1);
    own = tls_identity_make("IP:10.0.0.1", &ca, -1, 1);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", memfd_create("ca", 0));
    tls_identity_save(&ca, path);
    servers[0] = tls_peer_context(&own, NULL, 0);
    servers[1] = tls_peer_context(&own, NULL, TLS1_2_VERSION);
    /* The dice begin anew with each input, and so draw the same names of sessions.  A server that
     * remembers them finds no new one after some inputs, and fails. */
    for (int i = 0; i < 2; i++)
        (void)SSL_CTX_set_session_cache_mode(servers[i], SSL_SESS_CACHE_OFF);
    MUST(tls_context_new(&settings, &client) == 0);
    tls_identity_done(&ca);
    tls_identity_done(&own);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    input = data;
    input_len = len;
    dice = 1;
    MUST(stream_init(&stream, NULL, true, client, &events, NULL) == 0);
    begin(next_byte());
    while (input_len > 0)
        act(next_byte());
    settle();
    begin(0);
    unsent = 10;
    settle();
    say(17000);
    settle();
    give_up();
    stream_done(&stream);
    tls_peer_done(&peer);
    has_peer = false;
    return 0;
}
