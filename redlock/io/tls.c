/*
 * tls.c - tls.h by OpenSSL.
 *
 * OpenSSL reads from one BIO in memory and writes to another, so it sees neither a socket nor the
 * loop.  Nothing is asked of its user: an encrypted key is refused.
 */
#include "redlock/io/tls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"

#define NAME_SHOWN_MAX 80 /* The longest name of a server in a message.  Chosen. */
#define NAME_MAX_LEN 255  /* Of a server: RFC 1035, 2.3.4. */
#define PATH_SHOWN_MAX 200
/* The most bytes of one record: RFC 8446, 5.1. */
#define RECORD_MAX 16384

/* The first byte of a server that speaks TLS: an alert, or its part of a handshake. */
enum { CONTENT_ALERT = 21, CONTENT_HANDSHAKE = 22 };

struct tls_context {
    SSL_CTX *ssl;
    char *server_name; /* NULL: that of the URI. */
    bool verify, is_own_ca;
};

struct tls {
    SSL *ssl;
    BIO *in, *out; /* The SSL owns them. */
    bool heard;    /* The server has sent a byte. */
    bool is_plain; /* Its first byte is not of TLS. */
    char name[NAME_SHOWN_MAX + 1];
    struct reason why;
};

/* ---- The context ---- */

/* The oldest error of OpenSSL in this thread has the cause. */
static const char *reason_of(unsigned long error)
{
    const char *reason = ERR_reason_error_string(error);

    if (ERR_GET_LIB(error) == ERR_LIB_SYS)
        return text_of_errno(ERR_GET_REASON(error));
    return reason != NULL ? reason : "it cannot be read";
}

static int refuse_file(const char *option, const char *path, const char *reason)
{
    char shown[PATH_SHOWN_MAX];

    return error_set(REDLOCK_E_INVAL, "%s: %s: %s", option,
                     text_quote(path, strlen(path), shown, sizeof shown), reason);
}

/* OpenSSL calls what it does not find "unsupported", or a "start line". */
static bool has_no_pem(unsigned long error)
{
#ifdef ERR_LIB_OSSL_DECODER /* OpenSSL 3 */
    if (ERR_GET_LIB(error) == ERR_LIB_OSSL_DECODER)
        return ERR_GET_REASON(error) == ERR_R_UNSUPPORTED;
#endif
    return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static const char *name_or(const char *name, const char *option)
{
    return name != NULL ? name : option;
}

static int load_ca(SSL_CTX *ssl, const struct tls_settings *settings)
{
    const char *ca = settings->ca, *name = name_or(settings->ca_from, "tls_ca");
    struct stat info;
    bool is_folder;

    if (ca == NULL)
        return SSL_CTX_set_default_verify_paths(ssl) == 1
                   ? REDLOCK_OK
                   : error_set(REDLOCK_E_INVAL, "tls_ca: the CAs of the system cannot be read");
    if (stat(ca, &info) != 0)
        return refuse_file(name, ca, strerror(errno));
    is_folder = S_ISDIR(info.st_mode);
    if (SSL_CTX_load_verify_locations(ssl, is_folder ? NULL : ca, is_folder ? ca : NULL) != 1)
        return refuse_file(name, ca, reason_of(ERR_peek_error()));
    return REDLOCK_OK;
}

static int load_own(SSL_CTX *ssl, const struct tls_settings *settings)
{
    const char *cert = settings->cert, *cert_name = name_or(settings->cert_from, "tls_cert");
    const char *key = settings->key, *key_name = name_or(settings->key_from, "tls_key");
    bool is_encrypted = false;
    unsigned long error;
    char reason[64];
    int r;

    if (cert == NULL && key == NULL)
        return REDLOCK_OK;
    if (cert == NULL || key == NULL)
        return error_set(REDLOCK_E_INVAL, "%s is set, and %s is not", cert ? cert_name : key_name,
                         cert ? key_name : cert_name);
    if (SSL_CTX_use_certificate_chain_file(ssl, cert) != 1) {
        error = ERR_peek_error();
        return refuse_file(cert_name, cert,
                           has_no_pem(error) ? "it has no certificate in PEM" : reason_of(error));
    }
    SSL_CTX_set_default_passwd_cb_userdata(ssl, &is_encrypted);
    r = SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
    if (r != 1) {
        error = ERR_peek_error();
        return refuse_file(key_name, key,
                           is_encrypted        ? "the key is encrypted"
                           : has_no_pem(error) ? "it has no key in PEM"
                                               : reason_of(error));
    }
    (void)snprintf(reason, sizeof reason, "is not the key of %s", cert_name);
    return SSL_CTX_check_private_key(ssl) == 1 ? REDLOCK_OK : refuse_file(key_name, key, reason);
}

/* OpenSSL would ask at the terminal for the passphrase of a key.  cookie: of load_own(), or NULL.
 */
static int no_passphrase(char *buf, int size, int is_write, void *cookie)
{
    bool *is_encrypted = cookie;

    (void)buf, (void)size, (void)is_write;
    if (is_encrypted != NULL)
        *is_encrypted = true;
    return -1;
}

/* A session is never resumed: a handshake more costs a client nothing that matters. */
static int set_up(SSL_CTX *ssl, const struct tls_settings *settings)
{
    int status;

    if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1)
        return error_set(REDLOCK_E_INVAL, "TLS: this OpenSSL has no TLS 1.2");
    (void)SSL_CTX_set_options(ssl,
                              SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    /* An idle connection keeps no buffers: they are 34 kB. */
    (void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
    SSL_CTX_set_verify(ssl, settings->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    status = load_ca(ssl, settings);
    return status == REDLOCK_OK ? load_own(ssl, settings) : status;
}

static int no_memory(void)
{
    return error_set(REDLOCK_E_NOMEM, "out of memory");
}

/* A certificate has names without the dot that may end one.  Returns 0 if no server can have this
 * name. */
static size_t len_of_name(const char *name)
{
    size_t len = strlen(name);

    if (len > 0 && name[len - 1] == '.')
        len--;
    return len <= NAME_MAX_LEN ? len : 0;
}

static int make_context(const struct tls_settings *settings, struct tls_context *context)
{
    /* At the end of a program OpenSSL would free what the thread of a blocking client still uses.
     */
    if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return error_set(REDLOCK_E_SYSTEM, "TLS: OpenSSL cannot start");
    if (settings->server_name != NULL) {
        if (len_of_name(settings->server_name) == 0)
            return error_set(REDLOCK_E_INVAL, "tls_server_name must have 1 to %d bytes",
                             NAME_MAX_LEN);
        context->server_name = strdup(settings->server_name);
        if (context->server_name == NULL)
            return no_memory();
    }
    context->verify = settings->verify;
    context->is_own_ca = settings->ca != NULL;
    context->ssl = SSL_CTX_new(TLS_client_method());
    return context->ssl != NULL ? set_up(context->ssl, settings) : no_memory();
}

int tls_context_new(const struct tls_settings *settings, struct tls_context **ret_context)
{
    struct tls_context *context = calloc(1, sizeof *context);
    int status;

    if (context == NULL)
        return no_memory();
    ERR_clear_error();
    status = make_context(settings, context);
    ERR_clear_error(); /* The program may use OpenSSL as well. */
    if (status == REDLOCK_OK)
        *ret_context = context;
    else
        tls_context_free(context);
    return status;
}

void tls_context_free(struct tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ssl);
    free(context->server_name);
    free(context);
}

bool tls_context_is_strict(const struct tls_context *context)
{
    return context != NULL && context->verify && context->is_own_ca;
}

/* ---- The connection ---- */

/* Say which server must answer. */
static bool set_name(struct tls *tls, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
    char name[NAME_MAX_LEN + 1];
    size_t len = len_of_name(host);

    if (len == 0)
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    (void)snprintf(tls->name, sizeof tls->name, "%.*s", NAME_SHOWN_MAX, name);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1)
        return true; /* RFC 6066, 3: a server is not told its address. */
    SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(tls->ssl, name) == 1 && SSL_set_tlsext_host_name(tls->ssl, name) == 1;
}

static bool set_bios(struct tls *tls)
{
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (tls->in == NULL || tls->out == NULL) {
        (void)BIO_free(tls->in);
        (void)BIO_free(tls->out);
        return false;
    }
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    return true;
}

struct tls *tls_new(struct tls_context *context, const char *host)
{
    struct tls *tls = calloc(1, sizeof *tls);

    if (tls == NULL)
        return NULL;
    ERR_clear_error();
    tls->ssl = SSL_new(context->ssl);
    if (tls->ssl == NULL || !set_bios(tls) ||
        !set_name(tls, context->server_name != NULL ? context->server_name : host)) {
        tls_free(tls);
        return NULL;
    }
    SSL_set_connect_state(tls->ssl);
    ERR_clear_error();
    return tls;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

bool tls_feed(struct tls *tls, const char *bytes, size_t len)
{
    if (!tls->heard && len > 0) {
        tls->heard = true;
        tls->is_plain = bytes[0] != CONTENT_ALERT && bytes[0] != CONTENT_HANDSHAKE;
    }
    return len <= INT_MAX && BIO_write(tls->in, bytes, (int)len) == (int)len;
}

/* ---- Failures ---- */

static void explain_verify(struct tls *tls, long result)
{
    enum why why = WHY_TLS_CERTIFICATE;

    switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        why = WHY_TLS_NAME;
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        why = WHY_TLS_EXPIRED;
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        why = WHY_TLS_EARLY;
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        why = WHY_TLS_CA;
        break;
    default:
        break;
    }
    reason_quote(&tls->why, why, X509_verify_cert_error_string(result),
                 why == WHY_TLS_NAME ? tls->name : NULL);
}

static void explain_alert(struct tls *tls, unsigned long error)
{
    int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
    bool is_bad = (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
                  alert == SSL_AD_UNKNOWN_CA;
    enum why why = alert == SSL_AD_CERTIFICATE_REQUIRED ? WHY_TLS_UNKNOWN_US
                   : is_bad                             ? WHY_TLS_BAD_US
                                                        : WHY_TLS_REFUSED;

    reason_quote(&tls->why, why, reason_of(error), NULL);
}

/* code: that of SSL_get_error().  error: the oldest error of OpenSSL, or 0. */
static void explain(struct tls *tls, int code, unsigned long error)
{
    const long verified = SSL_get_verify_result(tls->ssl);

    if (code == SSL_ERROR_ZERO_RETURN)
        reason_set(&tls->why, WHY_CLOSED);
    else if (tls->is_plain)
        reason_set(&tls->why, WHY_TLS_PLAIN);
    else if (verified != X509_V_OK && SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE)
        explain_verify(tls, verified);
    else if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET)
        explain_alert(tls, error);
    else
        reason_quote(&tls->why, WHY_TLS_ERROR, error != 0 ? reason_of(error) : "out of memory",
                     NULL);
}

/* The call returned r.  0: it needs more bytes of the server. */
static int judge(struct tls *tls, int r)
{
    const unsigned long error = ERR_peek_error();
    int code = SSL_get_error(tls->ssl, r);

    ERR_clear_error();
    if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE)
        return 0;
    explain(tls, code, error);
    return -1;
}

int tls_shake(struct tls *tls)
{
    int r;

    ERR_clear_error();
    r = SSL_do_handshake(tls->ssl);
    return r == 1 ? 1 : judge(tls, r);
}

enum why tls_silence(const struct tls *tls)
{
    return tls->heard ? WHY_TLS_HALT : WHY_TLS_SILENT;
}

/* To ASN1_TIME_diff(), NULL is the time now. */
bool tls_left_s(const struct tls *tls, int64_t *ret_left_s)
{
    const STACK_OF(X509) *chain = SSL_get0_verified_chain(tls->ssl);
    int64_t left = INT64_MAX;
    int days, seconds;

    for (int i = 0; chain != NULL && i < sk_X509_num(chain); i++) {
        const ASN1_TIME *end = X509_get0_notAfter(sk_X509_value(chain, i));

        if (ASN1_TIME_diff(&days, &seconds, NULL, end) == 1 &&
            days * INT64_C(86400) + seconds < left)
            left = days * INT64_C(86400) + seconds;
    }
    if (left < INT64_MAX)
        *ret_left_s = left;
    return left < INT64_MAX;
}

/* ---- Bytes ---- */

ssize_t tls_read(struct tls *tls, char *buf, size_t room)
{
    int n;

    ERR_clear_error();
    n = SSL_read(tls->ssl, buf, room < INT_MAX ? (int)room : INT_MAX);
    return n > 0 ? n : judge(tls, n);
}

ssize_t tls_write(struct tls *tls, const char *bytes, size_t len)
{
    int n;

    ERR_clear_error();
    n = SSL_write(tls->ssl, bytes, len < RECORD_MAX ? (int)len : RECORD_MAX);
    return n > 0 ? n : judge(tls, n);
}

size_t tls_unsent(struct tls *tls, const char **ret_bytes)
{
    char *bytes;
    long len = BIO_get_mem_data(tls->out, &bytes);

    *ret_bytes = bytes;
    return len > 0 ? (size_t)len : 0;
}

void tls_sent(struct tls *tls, size_t len)
{
    char bytes[512];

    while (len > 0) {
        int n = BIO_read(tls->out, bytes, len < sizeof bytes ? (int)len : (int)sizeof bytes);

        if (n <= 0)
            return;
        len -= (size_t)n;
    }
}

const struct reason *tls_error(const struct tls *tls)
{
    return &tls->why;
}
