/*
 * uri.h - where a master is and how to get in: one URI, parsed; pure.
 *
 *   [redis://] [user:password@ | :password@] host [:port] [/[db]]
 *   unix://[user:password@ | :password@]/path [?db=N]
 *
 * host is a name (letters, digits, '-', '_', '.'), an IPv4 address, or an IPv6
 * address in brackets, without a zone.  Port defaults to 6379, db to 0.  User,
 * password and path may contain %HH escapes of any byte but NUL; a '%', and
 * an '@', '?' or separator of a list where it could be taken for one, must be
 * escaped.  The last '@' ends user and password.  "unix:/path" will do where
 * there is neither.
 *
 * A password alone ("redis://:secret@host") is Redis' old AUTH with one
 * argument.  A user alone ("redis://secret@host", no colon) is an error,
 * because half of the world reads it as a user and the other half as a
 * password.  An empty password is an error, because most of them are a shell
 * variable that was not set.  rediss:// is refused by name: this build speaks
 * no TLS.
 */
#ifndef REDLOCK_URI_H
#define REDLOCK_URI_H

#include <stdbool.h>
#include <stddef.h>

#define URI_PORT 6379      /* Redis' own; IANA has it too. */
#define URI_HOST_MAX 255   /* RFC 1035, 2.3.4: names are 255 octets or less. */
#define URI_PATH_MAX 107   /* sun_path of unix(7), without the NUL. */
#define URI_SECRET_MAX 511 /* Of user and of password; no source but good sense. */
#define URI_DB_MAX 65535   /* Most servers have 16; there is no limit in the protocol. */

struct uri {
    char *host;     /* Name or numeric address, IPv6 in its canonical form and without
                     * brackets; NULL for a unix socket. */
    char *path;     /* Of the unix socket; NULL otherwise. */
    char *user;     /* NULL: none. */
    char *password; /* NULL: none, no AUTH is sent. */
    unsigned port;  /* 1 to 65535; 0 for a unix socket. */
    unsigned db;
    /* "host:port" or "[::1]:port", with "/db" if that is not 0; "unix:/path",
     * with "?db=N" likewise.  Printable ASCII, what messages and logs show, and
     * a URI again.  Has neither user nor password. */
    char *name;
};

/*
 * Parse the len bytes at text into *ret_uri, which then is the caller's to
 * uri_done().  Gives OK, E_INVAL, E_NOMEM; on failure *ret_uri is untouched,
 * and the thread's message says what is wrong.  It quotes nothing of the text:
 * what is a secret in a malformed URI, only its writer knows.
 */
int uri_parse(const char *text, size_t text_len, struct uri *ret_uri);

/* Wipe the secrets, free all, and make it all zeroes.  Zeroes are fine. */
void uri_done(struct uri *uri);

/* Whether both lead to the same socket: user, password and db aside. */
bool uri_same_place(const struct uri *a, const struct uri *b);

/* How much of uri->name is the place, without the db. */
size_t uri_place_len(const struct uri *uri);

#endif /* REDLOCK_URI_H */
