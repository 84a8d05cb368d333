/*
 * uri.c - parses URIs of masters.
 *
 * The text is cut into pieces from the outside in: scheme, user and password, place.  A piece is a
 * pointer into the text and a length.  Nothing is copied before it is checked.  Letters are
 * compared as ASCII, in any locale.
 */
#include "redlock/link/uri.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <sodium.h>

#include "redlock/base/error.h"
#include "redlock/base/random.h"
#include "redlock/base/text.h"

_Static_assert(URI_PATH_MAX < sizeof(((struct sockaddr_un *)0)->sun_path), "room for the NUL");

/* The longest name: every byte of a path escaped, with "unix:" and "?db=65535". */
#define NAME_MAX_LEN (3 * URI_PATH_MAX + 32)
_Static_assert(NAME_MAX_LEN >= URI_HOST_MAX + 32, "the longest host fits as well");

/* What is before the name of a master that is reached by TLS. */
#define TLS_SCHEME "rediss://"

struct piece {
    const char *p;
    size_t len;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_digit(c) || (text_lower(c) >= 'a' && text_lower(c) <= 'z');
}

/* True if the piece is this word, in letters of either case. */
static bool is_word(struct piece piece, const char *word)
{
    return piece.len == strlen(word) && text_same_letters(piece.p, word, piece.len);
}

static bool starts_with(struct piece piece, const char *word)
{
    return piece.len >= strlen(word) && text_same_letters(piece.p, word, strlen(word));
}

static struct piece skip(struct piece piece, size_t len)
{
    assert(len <= piece.len);
    return (struct piece){.p = piece.p + len, .len = piece.len - len};
}

/* The number of bytes before the first of these characters. */
static size_t span_until(struct piece piece, const char *stops)
{
    size_t i = 0;

    while (i < piece.len && strchr(stops, piece.p[i]) == NULL)
        i++;
    return i;
}

static int refuse(const char *why)
{
    return error_set(REDLOCK_E_INVAL, "%s", why);
}

/* Refuse what is behind the password.  Without one, a forgotten '@' may have led to it: then the
 * text has the password where a host or a port should be. */
static int refuse_place(const struct uri *uri, const char *why)
{
    return error_set(REDLOCK_E_INVAL, "%s%s", why,
                     uri->password == NULL
                         ? "; a password ends with '@', as in redis://USER:PASSWORD@HOST, and "
                           "has %2C for a comma and %20 for a blank"
                         : "");
}

static int copy_piece(struct piece piece, char **ret_text)
{
    char *text = malloc(piece.len + 1);

    if (text == NULL)
        return error_set(REDLOCK_E_NOMEM, "out of memory");
    memcpy(text, piece.p, piece.len);
    text[piece.len] = '\0';
    *ret_text = text;
    return REDLOCK_OK;
}

/* A decimal number from min to max, which is a million at most.  -1: it is none. */
static long parse_number(struct piece piece, long min, long max)
{
    long number = 0;

    if (piece.len == 0)
        return -1;
    for (size_t i = 0; i < piece.len; i++) {
        if (!is_digit(piece.p[i]))
            return -1;
        number = 10 * number + (piece.p[i] - '0');
        if (number > max)
            return -1;
    }
    return number < min ? -1 : number;
}

/* The value of a hexadecimal digit.  -1: it is none. */
static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (text_lower(c) >= 'a' && text_lower(c) <= 'f')
        return text_lower(c) - 'a' + 10;
    return -1;
}

/* Decode %HH into text, which has room for piece.len bytes.  Returns NULL, or what is wrong. */
static const char *unescape(struct piece piece, char *text, size_t *ret_len)
{
    size_t len = 0;

    for (size_t i = 0; i < piece.len; i++) {
        bool is_whole = i + 2 < piece.len;
        int high, low;

        if (piece.p[i] != '%') {
            text[len++] = piece.p[i];
            continue;
        }
        high = is_whole ? hex_value(piece.p[i + 1]) : -1;
        low = is_whole ? hex_value(piece.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return "has a '%' without two hexadecimal digits (a '%' itself is written %25)";
        if (high == 0 && low == 0)
            return "has a NUL (%00)";
        text[len++] = (char)(16 * high + low);
        i += 2;
    }
    *ret_len = len;
    return NULL;
}

/* Copy a user, password or path, unescaped. */
static int copy_unescaped(struct piece piece, const char *what, size_t max, char **ret_text)
{
    char *text = malloc(piece.len + 1);
    const char *problem;
    size_t len = 0;

    if (text == NULL)
        return error_set(REDLOCK_E_NOMEM, "out of memory");
    problem = unescape(piece, text, &len);
    if (problem == NULL && len <= max) {
        text[len] = '\0';
        *ret_text = text;
        return REDLOCK_OK;
    }
    sodium_memzero(text, piece.len + 1);
    free(text);
    if (problem != NULL)
        return error_set(REDLOCK_E_INVAL, "the %s %s", what, problem);
    return error_set(REDLOCK_E_INVAL, "the %s is longer than %zu bytes", what, max);
}

/* True: another master begins in this user or password, so a wrong byte is between both.  All
 * before the last '@' would go out as the password. */
static bool has_master(struct piece login)
{
    const struct piece rest = skip(login, span_until(login, ";|"));

    if (span_until(rest, ":@") < rest.len)
        return true;
    for (size_t i = 0; i < login.len; i++)
        if (starts_with(skip(login, i), "://"))
            return true;
    return false;
}

/* Parse user and password: all before the last '@', if there is one.  Cut them off *rest. */
static int parse_login(struct piece *rest, struct uri *uri)
{
    struct piece user = *rest;
    struct piece password;
    const char *at = rest->len > 0 ? memrchr(rest->p, '@', rest->len) : NULL;
    int r;

    if (at == NULL)
        return REDLOCK_OK;
    user.len = (size_t)(at - rest->p);
    *rest = skip(*rest, user.len + 1);
    if (has_master(user))
        return refuse("a comma or a blank separates masters (in a password ';' is written %3B, '|' "
                      "%7C, and '/' %2F)");
    password = skip(user, span_until(user, ":"));
    if (password.len == 0)
        return refuse("a user needs a password: user:password@host, or :password@host without"
                      " a user (an '@' of something else is written %40)");
    user.len -= password.len;
    password = skip(password, 1);
    if (password.len == 0)
        return refuse("the password is empty");
    if (user.len > 0) {
        r = copy_unescaped(user, "user", URI_SECRET_MAX, &uri->user);
        if (r != REDLOCK_OK)
            return r;
    }
    return copy_unescaped(password, "password", URI_SECRET_MAX, &uri->password);
}

static int parse_db(struct piece db, struct uri *uri)
{
    long number = parse_number(db, 0, URI_DB_MAX);

    if (number < 0)
        return error_set(REDLOCK_E_INVAL, "the database is not a number from 0 to %d", URI_DB_MAX);
    uri->db = (unsigned)number;
    return REDLOCK_OK;
}

/* "/path[?db=N]" */
static int parse_socket(struct piece place, struct uri *uri)
{
    struct piece path = {.p = place.p, .len = span_until(place, "?")};
    struct piece query = skip(place, path.len);
    int r;

    if (path.len == 0 || path.p[0] != '/')
        return refuse("the path of a unix socket must begin with '/', as in unix:///run/r.sock");
    if (query.len > 0) {
        if (!starts_with(query, "?db="))
            return refuse("only ?db=N may follow the path of a unix socket");
        r = parse_db(skip(query, sizeof "?db=" - 1), uri);
        if (r != REDLOCK_OK)
            return r;
    }
    return copy_unescaped(path, "path", URI_PATH_MAX, &uri->path);
}

/* Copy an address from brackets in its canonical form, so that two can be compared. */
static int parse_ipv6(struct piece address, struct uri *uri)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr binary;

    if (address.len < sizeof text) {
        memcpy(text, address.p, address.len);
        text[address.len] = '\0';
        if (inet_pton(AF_INET6, text, &binary) == 1) {
            inet_ntop(AF_INET6, &binary, text, sizeof text);
            return copy_piece((struct piece){.p = text, .len = strlen(text)}, &uri->host);
        }
    }
    return refuse("what is in brackets is not an IPv6 address (zones are not supported)");
}

static int parse_host_name(struct piece host, struct uri *uri)
{
    bool has_word = false;

    if (host.len == 0)
        return refuse("no host");
    if (host.len > URI_HOST_MAX)
        return error_set(REDLOCK_E_INVAL, "the host is longer than %d bytes", URI_HOST_MAX);
    for (size_t i = 0; i < host.len; i++) {
        if (!is_alnum(host.p[i]) && strchr("-_.", host.p[i]) == NULL)
            return refuse("the host may have letters, digits, '-', '_' and '.' only");
        has_word = has_word || strchr("-.", host.p[i]) == NULL;
    }
    if (!has_word)
        return error_set(REDLOCK_E_INVAL, "'%.*s' is no host", host.len < 80 ? (int)host.len : 80,
                         host.p);
    return copy_piece(host, &uri->host);
}

/* True: a slip in a port, and no password behind a user, which seldom has dots as hosts have. */
static bool is_port_slip(const struct uri *uri, struct piece port)
{
    return port.len == 0 || strpbrk(uri->host, ".:") != NULL || parse_number(port, 0, 99999) >= 0 ||
           (port.len <= sizeof "65535" && is_digit(port.p[0]) && !is_digit(port.p[port.len - 1]));
}

/* Parse the host, with brackets or without.  Cut it off *rest. */
static int parse_host(struct piece *rest, struct uri *uri)
{
    struct piece host = *rest;
    struct piece port;

    if (rest->len > 0 && rest->p[0] == '[') {
        host = skip(*rest, 1);
        host.len = span_until(host, "]");
        if (host.len == rest->len - 1)
            return refuse("a '[' has no ']'");
        *rest = skip(*rest, host.len + 2);
        return parse_ipv6(host, uri);
    }
    if (rest->len > 0 && rest->p[0] == '/')
        return refuse("no host (for a unix socket, write unix:// before its path)");
    host.len = span_until(host, ":/?#");
    *rest = skip(*rest, host.len);
    if (rest->len > 0 && rest->p[0] == ':') {
        port = skip(*rest, 1);
        port.len = span_until(port, "/");
        if (span_until(port, ":") < port.len)
            return refuse_place(
                uri, "more than one ':' (an IPv6 address needs brackets, as in [::1]:6379)");
        if (host.len == 0)
            return refuse_place(uri, "no host before the ':'");
    }
    return parse_host_name(host, uri);
}

/* "host[:port][/[db]]" */
static int parse_endpoint(struct piece place, struct uri *uri)
{
    static const char bad_port[] = "the port is not a number from 1 to 65535";
    struct piece rest = place;
    struct piece port;
    long number;
    int r;

    if (span_until(rest, ";|") < rest.len)
        return refuse_place(uri, "a ';' or '|' does not separate masters: write a comma");
    r = parse_host(&rest, uri);
    if (r != REDLOCK_OK)
        return r;
    if (span_until(rest, "?#") < rest.len)
        return refuse("nothing may follow the database (a '?' belongs to unix:// alone)");
    uri->port = URI_PORT;
    if (rest.len > 0 && rest.p[0] == ':') {
        port = skip(rest, 1);
        port.len = span_until(port, "/");
        number = parse_number(port, 1, 65535);
        if (number < 0)
            return is_port_slip(uri, port) ? refuse(bad_port) : refuse_place(uri, bad_port);
        uri->port = (unsigned)number;
        rest = skip(rest, port.len + 1);
    }
    if (rest.len == 0)
        return REDLOCK_OK;
    if (rest.p[0] != '/')
        return refuse("after a ']' comes ':' and a port, or '/' and a database");
    return rest.len == 1 ? REDLOCK_OK : parse_db(skip(rest, 1), uri);
}

static bool is_plain(struct piece scheme)
{
    return is_word(scheme, "redis") || is_word(scheme, "valkey");
}

static bool is_tls(struct piece scheme)
{
    return is_word(scheme, "rediss") || is_word(scheme, "valkeys");
}

/* Parse the scheme.  Cut it off *rest. */
static int parse_scheme(struct piece *rest, struct uri *uri, bool *ret_unix)
{
    struct piece scheme = *rest;

    scheme.len = 0;
    while (scheme.len < rest->len &&
           (is_alnum(rest->p[scheme.len]) || strchr("+-.", rest->p[scheme.len]) != NULL))
        scheme.len++;
    *ret_unix = false;
    if (!starts_with(skip(*rest, scheme.len), "://")) {
        if ((is_plain(scheme) || is_tls(scheme)) && starts_with(skip(*rest, scheme.len), ":/"))
            return refuse("a slash is missing: write redis:// (a password may begin with %2F)");
        if ((is_plain(scheme) || is_tls(scheme)) && starts_with(skip(*rest, scheme.len), "//"))
            return refuse("a colon is missing: write redis://, or rediss:// with TLS");
        /* "unix:/path" is a unix socket.  With an '@', "unix" is a user. */
        *ret_unix = starts_with(*rest, "unix:/") && span_until(*rest, "@") == rest->len;
        if (*ret_unix)
            *rest = skip(*rest, sizeof "unix:" - 1);
        return REDLOCK_OK;
    }
    *rest = skip(*rest, scheme.len + sizeof "://" - 1);
    if (is_plain(scheme))
        return REDLOCK_OK;
    if (is_word(scheme, "unix")) {
        *ret_unix = true;
        return REDLOCK_OK;
    }
    uri->tls = is_tls(scheme);
    return uri->tls ? REDLOCK_OK
                    : refuse("unknown scheme: only redis://, rediss://, valkey://, valkeys:// and "
                             "unix:// are known");
}

/* Write a path with escapes.  Returns the length, up to 3 * URI_PATH_MAX. */
static size_t escape_path(const char *path, char *ret_text)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = 0;

    for (const char *p = path; *p != '\0'; p++) {
        /* Escape it, because "unix://" would be read as a scheme. */
        bool is_second_slash = *p == '/' && p == path + 1;

        if (!is_second_slash && (is_alnum(*p) || strchr("/-_.~+=:", *p) != NULL)) {
            ret_text[len++] = *p;
            continue;
        }
        ret_text[len++] = '%';
        ret_text[len++] = digits[(unsigned char)*p >> 4];
        ret_text[len++] = digits[(unsigned char)*p & 15];
    }
    return len;
}

/* "#NAME", which ends the URI.  Cut it off *rest. */
static int parse_member(struct piece *rest, struct uri *uri)
{
    static const char others[] = "._:[]-";
    struct piece member = skip(*rest, span_until(*rest, "#"));

    rest->len -= member.len;
    if (member.len == 0)
        return REDLOCK_OK;
    member = skip(member, 1);
    for (size_t i = 0; i < member.len; i++)
        if (!is_alnum(member.p[i]) && strchr(others, member.p[i]) == NULL)
            return refuse(
                "the name behind '#' may have letters, digits, '.', '_', ':', '[', ']' and '-'"
                " only");
    if (member.len < 1 || member.len > URI_MEMBER_MAX)
        return error_set(REDLOCK_E_INVAL, "the name behind '#' must have 1 to %d characters",
                         URI_MEMBER_MAX);
    return copy_piece(member, &uri->member);
}

/* Compose the name, which messages show. */
static int make_name(struct uri *uri)
{
    bool is_unix = uri->path != NULL;
    bool is_ipv6 = !is_unix && strchr(uri->host, ':') != NULL;
    char name[NAME_MAX_LEN];
    size_t len;

    if (is_unix) {
        len = (size_t)snprintf(name, sizeof name, "unix:");
        len += escape_path(uri->path, name + len);
    } else {
        len = (size_t)snprintf(name, sizeof name, "%s%s%s%s:%u", uri->tls ? TLS_SCHEME : "",
                               is_ipv6 ? "[" : "", uri->host, is_ipv6 ? "]" : "", uri->port);
    }
    if (uri->db != 0)
        len += (size_t)snprintf(name + len, sizeof name - len, is_unix ? "?db=%u" : "/%u", uri->db);
    assert(len < sizeof name);
    return copy_piece((struct piece){.p = name, .len = len}, &uri->name);
}

/* Parse into *uri.  The caller frees it even after a failure. */
static int parse(struct piece rest, struct uri *uri)
{
    bool is_unix;
    int r;

    if (rest.len == 0)
        return refuse("empty: there is no address, or a comma too many");
    if (starts_with(rest, "\xef\xbb\xbf"))
        return refuse("begins with a byte order mark (EF BB BF), which some editors write and no "
                      "editor shows: save the file as UTF-8 without it");
    if (rest.p[0] == '"' || rest.p[0] == '\'')
        return refuse("begins with a quote, which belongs to the list: remove it, and that at the "
                      "end");
    for (size_t i = 0; i < rest.len; i++) {
        if ((unsigned char)rest.p[i] <= ' ' || rest.p[i] == 0x7f)
            return refuse("has white space or a control character (write it as %HH)");
    }
    if (rest.p[0] == ':' && (rest.len == 1 || parse_number(skip(rest, 1), 1, 65535) > 0))
        return refuse("no host before the ':' (a blank or a comma before it ends a master)");
    r = parse_scheme(&rest, uri, &is_unix);
    if (r == REDLOCK_OK)
        r = parse_login(&rest, uri);
    if (r == REDLOCK_OK)
        r = parse_member(&rest, uri);
    if (r == REDLOCK_OK)
        r = is_unix ? parse_socket(rest, uri) : parse_endpoint(rest, uri);
    return r == REDLOCK_OK ? make_name(uri) : r;
}

/* ---- Secrets ---- */

/* libsodium's memory is in no core file (MADV_DONTDUMP), is not swapped out if the limits allow
 * that, and is wiped when it is freed.  NULL stays NULL. */
static int copy_secret(const char *secret, char **ret_copy)
{
    size_t size = secret != NULL ? strlen(secret) + 1 : 0;
    int status = size > 0 ? random_start() : REDLOCK_OK;
    char *copy = size > 0 && status == REDLOCK_OK ? sodium_malloc(size) : NULL;

    if (copy != NULL)
        memcpy(copy, secret, size);
    else if (size > 0 && status == REDLOCK_OK)
        status = error_set(REDLOCK_E_NOMEM, "out of memory");
    if (status == REDLOCK_OK)
        *ret_copy = copy;
    return status;
}

int uri_copy_login(struct uri *to, const struct uri *from)
{
    char *user = NULL;
    int r = copy_secret(from->user, &user);

    if (r == REDLOCK_OK)
        r = copy_secret(from->password, &to->password);
    if (r == REDLOCK_OK)
        to->user = user;
    else
        sodium_free(user);
    return r;
}

static void wipe(char *secret)
{
    if (secret != NULL)
        sodium_memzero(secret, strlen(secret));
    free(secret);
}

/* ---- The interface ---- */

int uri_parse(const char *text, size_t text_len, struct uri *ret_uri)
{
    struct uri parsed = {.host = NULL}, uri;
    int r = parse((struct piece){.p = text, .len = text_len}, &parsed);

    uri = parsed;
    uri.user = uri.password = NULL;
    if (r == REDLOCK_OK)
        r = uri_copy_login(&uri, &parsed);
    wipe(parsed.user);
    wipe(parsed.password);
    if (r == REDLOCK_OK)
        *ret_uri = uri;
    else
        uri_done(&uri);
    return r;
}

void uri_done(struct uri *uri)
{
    free(uri->host);
    free(uri->path);
    sodium_free(uri->user);
    sodium_free(uri->password);
    free(uri->name);
    free(uri->member);
    *uri = (struct uri){.host = NULL};
}

bool uri_same_place(const struct uri *a, const struct uri *b)
{
    if (a->path != NULL || b->path != NULL)
        return a->path != NULL && b->path != NULL && strcmp(a->path, b->path) == 0;
    return a->port == b->port && strlen(a->host) == strlen(b->host) &&
           text_same_letters(a->host, b->host, strlen(a->host));
}

/* Where the host begins in the name of a uri. */
static size_t skip_scheme(const char *name)
{
    return strncmp(name, TLS_SCHEME, sizeof TLS_SCHEME - 1) == 0 ? sizeof TLS_SCHEME - 1 : 0;
}

size_t uri_place_len(const struct uri *uri)
{
    size_t scheme = skip_scheme(uri->name);

    return scheme + strcspn(uri->name + scheme, uri->path != NULL ? "?" : "/");
}

/* A numeric address is canonical here. */
size_t uri_loopback_len(const char *name)
{
    const size_t scheme = skip_scheme(name);
    const char *text = name + scheme;
    const struct piece host = {.p = text, .len = strcspn(text, ":")};

    if (strncmp(text, "[::1]:", 6) == 0)
        return scheme + 5;
    if (is_word(host, "localhost") ||
        (starts_with(host, "127.") && strspn(text, "0123456789.") == host.len))
        return scheme + host.len;
    return 0;
}
