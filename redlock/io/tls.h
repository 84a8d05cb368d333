/*
 * tls.h - TLS as a filter of bytes: what comes from a server goes in, what a server must get comes
 * out.  It opens no socket, and reads no clock but that of certificates.
 *
 * tls.c does it by OpenSSL.  tls_none.c is built instead where OpenSSL is missing: it refuses.
 *
 * A connection uses TLS 1.2 or later.  Unless the user has turned that off, the chain of the
 * server's certificate must end at a CA that the user trusts, and the certificate must have the
 * name or the address by which the user asked for the server.
 */
#ifndef REDLOCK_TLS_H
#define REDLOCK_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "redlock/base/reason.h"

/* What the user has chosen.  NULL stands for the default.  tls_context_new() copies it. */
struct tls_settings {
    const char *ca;          /* A file or a folder of CAs.  NULL: those of the system. */
    const char *cert, *key;  /* Files of the client's own certificate.  NULL: it has none. */
    const char *server_name; /* The name of all servers.  NULL: the host of the URI. */
    bool verify;             /* False: any certificate is accepted. */
    /* What messages call them, if not tls_ca, tls_cert, tls_key and tls_server_name. */
    const char *ca_from, *cert_from, *key_from, *server_name_from;
};

struct tls_context; /* The settings, loaded.  All connections of a client share it. */
struct tls;         /* One connection. */

/* Load the settings.  Returns OK, E_INVAL or E_NOMEM, with a message that names the option. */
int tls_context_new(const struct tls_settings *settings, struct tls_context **ret_context);
/* No connection may use it any more.  NULL is allowed. */
void tls_context_free(struct tls_context *context);

/* True: servers are verified, by CAs that the user has named.  Such a server may be sent a
 * password, whatever its address is.  The CAs of the system are no proof: they sign for anybody.
 * NULL is allowed. */
bool tls_context_is_strict(const struct tls_context *context);

/* Make a connection to this host, a name or an address.  NULL: memory ran out. */
struct tls *tls_new(struct tls_context *context, const char *host);
/* NULL is allowed. */
void tls_free(struct tls *tls);

/* Take bytes that the server has sent.  False: memory ran out. */
bool tls_feed(struct tls *tls, const char *bytes, size_t len);

/* Go on with the handshake.  Returns 1: it is done; 0: the server must send more; -1: it failed,
 * and tls_error() says why.  What tls_unsent() has must be sent in each case: a failure tells the
 * server. */
int tls_shake(struct tls *tls);

/* Read up to room bytes of what the server said.  Returns their number; 0: there are none now; -1:
 * the connection has failed, and tls_error() says why.  The handshake must be done. */
ssize_t tls_read(struct tls *tls, char *buf, size_t room);

/* Say these bytes to the server, as many as one record takes.  Returns their number, or -1 as
 * tls_read() does. */
ssize_t tls_write(struct tls *tls, const char *bytes, size_t len);

/* The bytes that the server must get next, valid until the next call.  tls_sent() drops those that
 * were sent. */
size_t tls_unsent(struct tls *tls, const char **ret_bytes);
void tls_sent(struct tls *tls, size_t len);

/* How long until the first certificate of the server's chain ends, in seconds; below 0: it has
 * ended, and is not verified.  False: there is no chain, as before the handshake is done. */
bool tls_left_s(const struct tls *tls, int64_t *ret_left_s);

/* Why the handshake is not done, if no more bytes come.  A master that hangs and a plain Redis,
 * which waits for the end of a line, both stay silent. */
enum why tls_silence(const struct tls *tls);

/* Why the connection failed.  Valid as long as the connection. */
const struct reason *tls_error(const struct tls *tls);

#endif /* REDLOCK_TLS_H */
