/*
 * tls_peer.h - made-up CAs and certificates, and the server's side of TLS in memory.
 *
 * Keys are Ed25519, whose certificates and signatures always have the same length.  So a handshake
 * has the same bytes in number each time, and a test can cut each of them.
 */
#ifndef TEST_TLS_PEER_H
#define TEST_TLS_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

struct tls_identity {
    X509 *cert;
    EVP_PKEY *key;
};

/* name: "DNS:a.example", "IP:10.0.0.1", or NULL: that of a CA.  issuer NULL: signed by itself.
 * The certificate is valid between these days from now. */
struct tls_identity tls_identity_make(const char *name, const struct tls_identity *issuer,
                                      int from_days, int until_days);
void tls_identity_done(struct tls_identity *identity);
/* Write the certificate, or the key, to a file.  passphrase NULL: not encrypted. */
void tls_identity_save(const struct tls_identity *identity, const char *path);
void tls_identity_save_key(const struct tls_identity *identity, const char *path,
                           const char *passphrase);

/* A server with this certificate.  clients: the CA whose certificates clients must have, or NULL.
 * max_version: such as TLS1_2_VERSION, or 0. */
SSL_CTX *tls_peer_context(const struct tls_identity *identity, const struct tls_identity *clients,
                          int max_version);

struct tls_peer {
    SSL *ssl;
    BIO *in, *out;
    char said[4096]; /* What the client said, decrypted. */
    size_t said_len;
    bool has_failed;
};

void tls_peer_init(struct tls_peer *peer, SSL_CTX *context);
void tls_peer_done(struct tls_peer *peer);
/* Take bytes of the client. */
void tls_peer_take(struct tls_peer *peer, const char *bytes, size_t len);
/* Say something.  The handshake must be done. */
void tls_peer_say(struct tls_peer *peer, const char *bytes, size_t len);
/* Move up to room bytes for the client. */
size_t tls_peer_give(struct tls_peer *peer, char *buf, size_t room);
bool tls_peer_is_up(const struct tls_peer *peer);

#endif /* TEST_TLS_PEER_H */
