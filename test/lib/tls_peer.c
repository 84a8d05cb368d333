/*
 * tls_peer.c - makes certificates, and serves TLS between two BIOs in memory.
 */
#include "test/lib/tls_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static void must(bool is_good, const char *what)
{
    if (is_good)
        return;
    (void)fprintf(stderr, "test: OpenSSL cannot %s\n", what);
    abort();
}

/* ---- Certificates ---- */

static EVP_PKEY *make_key(void)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
    EVP_PKEY *key = NULL;

    must(context != NULL && EVP_PKEY_keygen_init(context) == 1, "begin to make a key");
    must(EVP_PKEY_keygen(context, &key) == 1, "make a key");
    EVP_PKEY_CTX_free(context);
    return key;
}

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    must(extension != NULL && X509_add_ext(cert, extension, -1) == 1, "add an extension");
    X509_EXTENSION_free(extension);
}

struct tls_identity tls_identity_make(const char *name, const struct tls_identity *issuer,
                                      int from_days, int until_days)
{
    static long serial = 1000;
    struct tls_identity identity = {.cert = X509_new(), .key = make_key()};
    X509_NAME *subject = X509_get_subject_name(identity.cert);
    char common[40];

    (void)snprintf(common, sizeof common, "test %ld", ++serial);
    must(X509_set_version(identity.cert, 2) == 1, "set a version");
    ASN1_INTEGER_set(X509_get_serialNumber(identity.cert), serial);
    X509_time_adj_ex(X509_getm_notBefore(identity.cert), from_days, 0, NULL);
    X509_time_adj_ex(X509_getm_notAfter(identity.cert), until_days, 0, NULL);
    X509_set_pubkey(identity.cert, identity.key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)common, -1, -1,
                               0);
    X509_set_issuer_name(identity.cert,
                         issuer != NULL ? X509_get_subject_name(issuer->cert) : subject);
    if (name == NULL)
        add_extension(identity.cert, NID_basic_constraints, "critical,CA:TRUE");
    else
        add_extension(identity.cert, NID_subject_alt_name, name);
    must(X509_sign(identity.cert, issuer != NULL ? issuer->key : identity.key, NULL) > 0,
         "sign a certificate");
    return identity;
}

void tls_identity_done(struct tls_identity *identity)
{
    X509_free(identity->cert);
    EVP_PKEY_free(identity->key);
    *identity = (struct tls_identity){.cert = NULL};
}

void tls_identity_save(const struct tls_identity *identity, const char *path)
{
    FILE *file = fopen(path, "w");

    must(file != NULL && PEM_write_X509(file, identity->cert) == 1, "save a certificate");
    (void)fclose(file);
}

void tls_identity_save_key(const struct tls_identity *identity, const char *path,
                           const char *passphrase)
{
    FILE *file = fopen(path, "w");
    char *secret = passphrase != NULL ? strdup(passphrase) : NULL;

    must(file != NULL, "open a file");
    must(PEM_write_PrivateKey(file, identity->key, secret != NULL ? EVP_aes_256_cbc() : NULL, NULL,
                              0, NULL, secret) == 1,
         "save a key");
    free(secret);
    (void)fclose(file);
}

/* ---- The server ---- */

/* No tickets: their length may differ. */
SSL_CTX *tls_peer_context(const struct tls_identity *identity, const struct tls_identity *clients,
                          int max_version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    must(context != NULL, "make a context");
    SSL_CTX_set_num_tickets(context, 0);
    must(SSL_CTX_use_certificate(context, identity->cert) == 1 &&
             SSL_CTX_use_PrivateKey(context, identity->key) == 1,
         "use a certificate");
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, max_version);
    if (clients != NULL) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), clients->cert);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return context;
}

void tls_peer_init(struct tls_peer *peer, SSL_CTX *context)
{
    *peer = (struct tls_peer){.ssl = SSL_new(context)};
    peer->in = BIO_new(BIO_s_mem());
    peer->out = BIO_new(BIO_s_mem());
    must(peer->ssl != NULL && peer->in != NULL && peer->out != NULL, "make a server");
    SSL_set_bio(peer->ssl, peer->in, peer->out);
    SSL_set_accept_state(peer->ssl);
}

void tls_peer_done(struct tls_peer *peer)
{
    SSL_free(peer->ssl);
    peer->ssl = NULL;
}

void tls_peer_take(struct tls_peer *peer, const char *bytes, size_t len)
{
    int n;

    if (len > 0)
        must(BIO_write(peer->in, bytes, (int)len) == (int)len, "feed a server");
    if (peer->has_failed)
        return;
    ERR_clear_error();
    do {
        n = SSL_read(peer->ssl, peer->said + peer->said_len,
                     (int)(sizeof peer->said - peer->said_len));
        if (n > 0)
            peer->said_len += (size_t)n;
    } while (n > 0 && peer->said_len < sizeof peer->said);
    peer->has_failed = n <= 0 && SSL_get_error(peer->ssl, n) != SSL_ERROR_WANT_READ;
    ERR_clear_error();
}

void tls_peer_say(struct tls_peer *peer, const char *bytes, size_t len)
{
    must(SSL_write(peer->ssl, bytes, (int)len) == (int)len, "say something");
}

size_t tls_peer_give(struct tls_peer *peer, char *buf, size_t room)
{
    int n = BIO_read(peer->out, buf, (int)room);

    return n > 0 ? (size_t)n : 0;
}

bool tls_peer_is_up(const struct tls_peer *peer)
{
    return !peer->has_failed && SSL_is_init_finished(peer->ssl);
}
