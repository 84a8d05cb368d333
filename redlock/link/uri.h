/*
 * uri.h - the place of a master, user and password: one parsed URI; pure.
 *
 *   [SCHEME://] [user:password@ | :password@] host [:port] [/[db]] [#NAME]
 *   unix://[user:password@ | :password@]/path [?db=N] [#NAME]
 *
 * NAME says which member of the set this master is, if the set knows it by another place than this
 * one.  It has letters, digits, and "._:[]-".
 *
 * host is a name (letters, digits, '-', '_', '.'), an IPv4 address, or an IPv6 address in brackets,
 * without a zone.  The default port is 6379, the default db 0.  User, password and path may contain
 * %HH escapes of any byte but NUL.  A '%' must be escaped, and so must an '@', a '?', a '#' or a
 * separator of a list that could be taken for one.  The last '@' ends user and password.  Without
 * them, "unix:/path" is a unix socket, too.  A user or password in which another master seems to
 * begin ("://", or a ':' or '@' behind a ';' or '|') is an error: the list has a wrong separator.
 *
 * A password alone ("redis://:secret@host") is Redis' old AUTH with one argument.  A user alone
 * ("redis://secret@host", no colon) is an error, because some programs take it for a password.  An
 * empty password is an error, because it mostly comes from an unset shell variable.  SCHEME is
 * redis or valkey, and with TLS rediss or valkeys.
 */
#ifndef REDLOCK_URI_H
#define REDLOCK_URI_H

#include <stdbool.h>
#include <stddef.h>

#define URI_PORT 6379      /* Registered for Redis with IANA. */
#define URI_HOST_MAX 255   /* RFC 1035, 2.3.4: names are 255 octets or less. */
#define URI_PATH_MAX 107   /* sun_path of unix(7), without the NUL. */
#define URI_SECRET_MAX 511 /* Of user, and of password.  Chosen. */
#define URI_DB_MAX 65535   /* Chosen: most servers have 16; the protocol has no limit. */
#define URI_MEMBER_MAX 64  /* Of NAME, as in core/config.h. */

struct uri {
    char *host;     /* A name or a numeric address; IPv6 in its canonical form, without brackets.
                     * NULL: a unix socket. */
    char *path;     /* The path of a unix socket, or NULL. */
    char *user;     /* NULL: none.  It and the password are in no core file. */
    char *password; /* NULL: none, and no AUTH is sent. */
    char *member;   /* NAME.  NULL: none. */
    unsigned port;  /* 1 to 65535.  0: a unix socket. */
    unsigned db;
    bool tls; /* The server is reached by TLS. */
    /* For messages and logs: "host:port" or "[::1]:port", with "/db" behind it if db is not 0, and
     * with "rediss://" before it for TLS.  A unix socket is "unix:/path", with "?db=N" if db is not
     * 0.  Always printable ASCII, without user and password. */
    char *name;
};

/*
 * Parse text into *ret_uri, for which the caller calls uri_done().  Returns OK, E_INVAL or E_NOMEM.
 * On failure *ret_uri is untouched, and the thread's message says what is wrong.  The message
 * quotes nothing of the text, because any part of a malformed URI may be a secret.
 */
int uri_parse(const char *text, size_t text_len, struct uri *ret_uri);

/* Wipe the secrets, free all texts, and zero the struct.  A zeroed struct is allowed. */
void uri_done(struct uri *uri);

/* Copy user and password of one URI to another that has none.  Returns OK or E_NOMEM, and leaves
 * *to as it was. */
int uri_copy_login(struct uri *to, const struct uri *from);

/* True if both lead to the same socket, whatever user, password and db are. */
bool uri_same_place(const struct uri *a, const struct uri *b);

/* The length of the place in uri->name, before the db. */
size_t uri_place_len(const struct uri *uri);

/* The length of the host in the name of a uri, with what is before it, if it is a loopback address.
 * 0: it is none.  Each host reaches itself by such an address. */
size_t uri_loopback_len(const char *name);

#endif /* REDLOCK_URI_H */
