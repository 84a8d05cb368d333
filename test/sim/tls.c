/*
 * tls.c - see tls.h.
 */
#include "tls.h"
#include "sim.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "test/lib/tls_peer.h"

struct sim_tls {
    struct tls_peer peer;
    size_t read; /* So much of what it said was moved. */
    struct sim_tls *next;
};

static struct sim_tls *all; /* Those of this run. */
static SSL_CTX
    *contexts[2]; /* New clients, and those of TLS 1.2.  They live as long as the program. */
static char ca_path[32];

/* ---- Certificates ---- */

static void make_contexts(void)
{
    struct tls_identity ca = tls_identity_make(NULL, NULL, -1, 1);
    struct tls_identity own = tls_identity_make("IP:10.0.0.1,IP:10.0.0.2,IP:10.0.0.3,IP:10.0.0.4,"
                                                "IP:10.0.0.5,IP:10.0.0.6,IP:10.0.0.7",
                                                &ca, -1, 1);

    (void)snprintf(ca_path, sizeof ca_path, "/proc/self/fd/%d", memfd_create("ca", 0));
    tls_identity_save(&ca, ca_path);
    contexts[0] = tls_peer_context(&own, NULL, 0);
    contexts[1] = tls_peer_context(&own, NULL, TLS1_2_VERSION);
    tls_identity_done(&ca);
    tls_identity_done(&own);
}

bool sim_tls_is_built(void)
{
    return true;
}

const char *sim_tls_ca(void)
{
    if (ca_path[0] == 0)
        make_contexts();
    return ca_path;
}

/* ---- Connections ---- */

void sim_tls_begin(void)
{
    for (; all != NULL; all = all->next)
        tls_peer_done(&all->peer);
}

struct sim_tls *sim_tls_accept(bool is_old)
{
    struct sim_tls *tls = memory_take(sizeof *tls);

    (void)sim_tls_ca();
    tls_peer_init(&tls->peer, contexts[is_old]);
    tls->next = all;
    all = tls;
    return tls;
}

static void listen_on(struct sim_tls *tls, const char *bytes, size_t len)
{
    tls_peer_take(&tls->peer, bytes, len);
    if (tls->peer.has_failed)
        world_fail("tls", "a server cannot read what a client sent");
}

void sim_tls_take(struct sim_tls *tls, const char *bytes, size_t len)
{
    tls->peer.said_len = tls->read = 0;
    listen_on(tls, bytes, len);
}

size_t sim_tls_read(struct sim_tls *tls, char *buf, size_t room)
{
    size_t len;

    if (tls->read == tls->peer.said_len) /* Perhaps there was more than it had room for. */
        sim_tls_take(tls, NULL, 0);
    len = tls->peer.said_len - tls->read;
    len = len < room ? len : room;
    memcpy(buf, tls->peer.said + tls->read, len);
    tls->read += len;
    return len;
}

void sim_tls_say(struct sim_tls *tls, const char *bytes, size_t len)
{
    tls_peer_say(&tls->peer, bytes, len);
}

void sim_tls_renew(struct sim_tls *tls)
{
    if (SSL_version(tls->peer.ssl) == TLS1_3_VERSION && tls_peer_is_up(&tls->peer))
        (void)SSL_key_update(tls->peer.ssl, SSL_KEY_UPDATE_REQUESTED);
}

bool sim_tls_close(struct sim_tls *tls)
{
    return tls_peer_is_up(&tls->peer) && SSL_shutdown(tls->peer.ssl) >= 0;
}

size_t sim_tls_pending(const struct sim_tls *tls)
{
    return BIO_ctrl_pending(tls->peer.out);
}

void sim_tls_give(struct sim_tls *tls, char *buf, size_t len)
{
    if (tls_peer_give(&tls->peer, buf, len) != len)
        world_fail("simulator", "TLS has less to give than it said");
}
