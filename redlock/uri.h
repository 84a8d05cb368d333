/*
 * uri.h - where a master is and how to get in: one URI, parsed; pure.
 *
 *   [redis://] [user[:password]@ | :password@] host [:port] [/db]
 *   unix://[user[:password]@ | :password@]/path [?db=N]
 *
 * host is a name, an IPv4 address, or an IPv6 address in brackets.  Port
 * defaults to 6379, db to 0.  User and password may contain %HH escapes; a
 * password alone ("redis://:secret@host") is Redis' old AUTH with one argument.
 * A user alone ("redis://secret@host", no colon) is an error, because half of
 * the world reads it as a user and the other half as a password.
 * rediss:// is refused by name: this build speaks no TLS.
 */
#ifndef REDLOCK_URI_H
#define REDLOCK_URI_H

#include <stddef.h>

#define URI_HOST_MAX 255   /* RFC 1035, 2.3.4: names are 255 octets or less. */
#define URI_PATH_MAX 107   /* sun_path of unix(7), without the NUL. */
#define URI_SECRET_MAX 511 /* Of user and of password; no source but good sense. */
#define URI_DB_MAX 65535   /* Most servers have 16; there is no limit in the protocol. */

struct uri {
    char *host; /* Name or numeric address, without brackets; NULL for a unix socket. */
    char *path; /* Of the unix socket; NULL otherwise. */
    char *user; /* NULL: none. */
    char *password; /* NULL: none, no AUTH is sent. */
    unsigned port;  /* 1 to 65535; 0 for a unix socket. */
    unsigned db;
    /* "host:port", "[::1]:port" or "unix:/path", "/db" added if not 0: what
     * messages and logs show.  Has neither user nor password. */
    char *name;
};

/*
 * Parse the len bytes at text into *ret_uri, which then is the caller's to
 * uri_done().  Gives OK, E_INVAL, E_NOMEM; on failure *ret_uri is untouched,
 * and the thread's message says what is wrong without quoting any secret (it
 * quotes nothing of the text before the last '@').
 */
int uri_parse(const char *text, size_t text_len, struct uri *ret_uri);

/* Wipe the secrets, free all, and make it all zeroes.  Zeroes are fine. */
void uri_done(struct uri *uri);

/* Whether both lead to the same socket: user, password and db aside. */
int uri_same_place(const struct uri *a, const struct uri *b);

#endif /* REDLOCK_URI_H */
