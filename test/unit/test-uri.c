/*
 * test-uri.c - which texts are URIs of a master.  No message contains a secret.
 *
 * It is longer than others, because its tables have a row for each mistake that people make.
 */
#include <stdlib.h>

#include "redlock/base/error.h"
#include "redlock/redlock.h"
#include "redlock/link/uri.h"

#include "test/lib/check.h"
#include "test/lib/heap.h"

#define ELEMENTS(array) (sizeof(array) / sizeof(array)[0])

/* A text of len times the same letter.  Four calls later its buffer is reused. */
static const char *repeat(char c, size_t len)
{
    static char texts[4][4096];
    static unsigned next;
    char *text = texts[next++ % 4];

    memset(text, c, len);
    text[len] = '\0';
    return text;
}

static const char *joined(const char *a, const char *b, const char *c)
{
    static char text[4096];

    CHECK((size_t)snprintf(text, sizeof text, "%s%s%s", a, b, c) < sizeof text);
    return text;
}

static struct uri parsed(const char *text)
{
    struct uri uri;

    if (uri_parse(text, strlen(text), &uri) != REDLOCK_OK) {
        printf("%s: %s\n", text, error_message());
        CHECK(!"parses");
    }
    return uri;
}

static const struct {
    const char *text;
    const char *host, *path, *user, *password;
    unsigned port, db;
    const char *name;
} good[] = {
    {"h", "h", NULL, NULL, NULL, 6379, 0, "h:6379"},
    {"h:1", "h", NULL, NULL, NULL, 1, 0, "h:1"},
    {"h:65535", "h", NULL, NULL, NULL, 65535, 0, "h:65535"},
    {"redis://h", "h", NULL, NULL, NULL, 6379, 0, "h:6379"},
    {"redis://h/", "h", NULL, NULL, NULL, 6379, 0, "h:6379"},
    {"redis://h/0", "h", NULL, NULL, NULL, 6379, 0, "h:6379"},
    {"redis://h/65535", "h", NULL, NULL, NULL, 6379, 65535, "h:6379/65535"},
    {"h:7/3", "h", NULL, NULL, NULL, 7, 3, "h:7/3"},
    {"REDIS://Host.Example:7001", "Host.Example", NULL, NULL, NULL, 7001, 0, "Host.Example:7001"},
    {"valkey://me:pw@h:7/1", "h", NULL, "me", "pw", 7, 1, "h:7/1"},
    {"me:p;w@h", "h", NULL, "me", "p;w", 6379, 0, "h:6379"},
    {"me:p|;w/'\"@h", "h", NULL, "me", "p|;w/'\"", 6379, 0, "h:6379"},
    {"me:p%3Bw:x@h", "h", NULL, "me", "p;w:x", 6379, 0, "h:6379"},
    {"unix:/r;s", NULL, "/r;s", NULL, NULL, 0, 0, "unix:/r%3Bs"},
    {"redis", "redis", NULL, NULL, NULL, 6379, 0, "redis:6379"},
    {"redis:7001", "redis", NULL, NULL, NULL, 7001, 0, "redis:7001"},
    {"unix", "unix", NULL, NULL, NULL, 6379, 0, "unix:6379"},
    {"a_b-c.d", "a_b-c.d", NULL, NULL, NULL, 6379, 0, "a_b-c.d:6379"},
    {"127.0.0.1:7001", "127.0.0.1", NULL, NULL, NULL, 7001, 0, "127.0.0.1:7001"},
    {"[::1]", "::1", NULL, NULL, NULL, 6379, 0, "[::1]:6379"},
    {"[::1]:7001/2", "::1", NULL, NULL, NULL, 7001, 2, "[::1]:7001/2"},
    {"[::1]/2", "::1", NULL, NULL, NULL, 6379, 2, "[::1]:6379/2"},
    {"redis://[FE80:0:0::0:1]:1", "fe80::1", NULL, NULL, NULL, 1, 0, "[fe80::1]:1"},
    {"[::ffff:10.0.0.1]", "::ffff:10.0.0.1", NULL, NULL, NULL, 6379, 0, "[::ffff:10.0.0.1]:6379"},
    {"redis://:pw@h", "h", NULL, NULL, "pw", 6379, 0, "h:6379"},
    {"redis://me:pw@h:7/1", "h", NULL, "me", "pw", 7, 1, "h:7/1"},
    {"me:pw@h", "h", NULL, "me", "pw", 6379, 0, "h:6379"},
    {":pw@[::1]:7", "::1", NULL, NULL, "pw", 7, 0, "[::1]:7"},
    {"unix:pw@h", "h", NULL, "unix", "pw", 6379, 0, "h:6379"},
    {"unix:/pw@h", "h", NULL, "unix", "/pw", 6379, 0, "h:6379"},
    {"me:a:b@c/d?e#f@h", "h", NULL, "me", "a:b@c/d?e#f", 6379, 0, "h:6379"},
    {"m%65:%70%77%40%3A%25%0a@h", "h", NULL, "me", "pw@:%\n", 6379, 0, "h:6379"},
    {"me:\xc3\xa9@h", "h", NULL, "me", "\xc3\xa9", 6379, 0, "h:6379"},
    {"unix:///run/r.sock", NULL, "/run/r.sock", NULL, NULL, 0, 0, "unix:/run/r.sock"},
    {"UNIX:///run/r.sock", NULL, "/run/r.sock", NULL, NULL, 0, 0, "unix:/run/r.sock"},
    {"unix:/run/r.sock", NULL, "/run/r.sock", NULL, NULL, 0, 0, "unix:/run/r.sock"},
    {"unix:/", NULL, "/", NULL, NULL, 0, 0, "unix:/"},
    {"unix:////r//s", NULL, "//r//s", NULL, NULL, 0, 0, "unix:/%2Fr//s"},
    {"unix:///r?db=0", NULL, "/r", NULL, NULL, 0, 0, "unix:/r"},
    {"unix:///r?db=9", NULL, "/r", NULL, NULL, 0, 9, "unix:/r?db=9"},
    {"unix://:pw@/r", NULL, "/r", NULL, "pw", 0, 0, "unix:/r"},
    {"unix://me:pw@/r?db=1", NULL, "/r", "me", "pw", 0, 1, "unix:/r?db=1"},
    {"unix:///a%40b%3f%2C%20%5c:\xc3\xa9", NULL, "/a@b?, \\:\xc3\xa9", NULL, NULL, 0, 0,
     "unix:/a%40b%3F%2C%20%5C:%C3%A9"},
};

TEST(good_ones_are_parsed)
{
    for (size_t i = 0; i < ELEMENTS(good); i++) {
        struct uri uri, again;

        check_row = good[i].text;
        uri = parsed(good[i].text);
        CHECK_STR(uri.host, good[i].host);
        CHECK_STR(uri.path, good[i].path);
        CHECK_STR(uri.user, good[i].user);
        CHECK_STR(uri.password, good[i].password);
        CHECK_UINT(uri.port, good[i].port);
        CHECK_UINT(uri.db, good[i].db);
        CHECK_STR(uri.name, good[i].name);

        again = parsed(uri.name);
        CHECK(uri_same_place(&uri, &again));
        CHECK_STR(again.name, uri.name);
        CHECK_UINT(again.db, uri.db);
        uri_done(&again);
        uri_done(&uri);
        CHECK(uri.host == NULL && uri.path == NULL && uri.user == NULL && uri.password == NULL &&
              uri.name == NULL);
    }
}

TEST(a_scheme_asks_for_tls)
{
    static const struct {
        const char *text, *host, *name;
        size_t place_len;
    } rows[] = {
        {"rediss://h", "h", "rediss://h:6379", 15},
        {"REDISS://me:pw@[::1]:7/2", "::1", "rediss://[::1]:7/2", 16},
        {"rediss://redis://h:1", NULL, NULL, 0},
        {"redis://h", "h", "h:6379", 6},
        {"valkeys://h", "h", "rediss://h:6379", 15},
        {"VALKEY://h", "h", "h:6379", 6},
        {"rediss", "rediss", "rediss:6379", 11},
        {"rediss:7", "rediss", "rediss:7", 8},
    };

    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct uri uri, again;

        check_row = rows[i].text;
        if (rows[i].host == NULL) {
            CHECK_INT(uri_parse(rows[i].text, strlen(rows[i].text), &uri), REDLOCK_E_INVAL);
            continue;
        }
        uri = parsed(rows[i].text);
        CHECK_STR(uri.host, rows[i].host);
        CHECK_STR(uri.name, rows[i].name);
        CHECK_UINT(uri.tls, strstr(rows[i].name, "://") != NULL);
        CHECK_UINT(uri_place_len(&uri), rows[i].place_len);
        again = parsed(uri.name);
        CHECK_UINT(again.tls, uri.tls);
        CHECK_STR(again.name, uri.name);
        uri_done(&again);
        uri_done(&uri);
    }
}

/* "#NAME" */
TEST(members_are_named)
{
    static const struct {
        const char *text, *member, *name;
    } rows[] = {
        {"h#a", "a", "h:6379"},
        {"h:7/1#a-b_c.d:1[]", "a-b_c.d:1[]", "h:7/1"},
        {"[::1]:7#x", "x", "[::1]:7"},
        {"redis://me:p#w@h:7#x", "x", "h:7"},
        {"redis://:pw#@h", NULL, "h:6379"},
        {"unix:/r#x", "x", "unix:/r"},
        {"unix://:pw@/r%23y?db=2#x", "x", "unix:/r%23y?db=2"},
    };

    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct uri uri;

        check_row = rows[i].text;
        uri = parsed(rows[i].text);
        CHECK_STR(uri.member, rows[i].member);
        CHECK_STR(uri.name, rows[i].name);
        uri_done(&uri);
        CHECK(uri.member == NULL);
    }
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"h#", "behind '#'"},
    {"h:7#a#b", "behind '#'"},
    {"h#a/b", "behind '#'"},
    {"h#a,b", "behind '#'"},
    {"unix:/r#\xc3\xa9", "behind '#'"},
    {"h#12345678901234567890123456789012345678901234567890123456789012345", "1 to 64"},
    {"#a", "no host"},
    {"", "empty"},
    {"redis://", "no host"},
    {":7001", "no host"},
    {"redis://:7001", "no host"},
    {"redis://:hunter2:6379", "a password ends with '@'"},
    {"redis://:hunter2", "a password ends with '@'"},
    {"redis://:hunter2/0", "a password ends with '@'"},
    {"redis://:hunter2?:6379", "a password ends with '@'"},
    {"redis://me:hunter2:6379", "a password ends with '@'"},
    {"rediss://me:hunter2:10.0.0.1:6379", "a password ends with '@'"},
    {"redis://me:hunter2", "a password ends with '@'"},
    {"me:hunter2h:6379/1", "a password ends with '@'"},
    {"me:654321", "a password ends with '@'"},
    {"redis://:a", "has %2C for a comma"},
    {"redis://:pw@h;redis://:pw@i", "a comma or a blank separates masters"},
    {"redis://:pw@h|:pw@i", "a comma or a blank separates masters"},
    {"h;:pw@i", "a comma or a blank separates masters"},
    {"h:1;me:pw@i:1", "a comma or a blank separates masters"},
    {"redis://:pw@h/redis://:pw@i", "a comma or a blank separates masters"},
    {"redis://h/redis://:pw@i", "a comma or a blank separates masters"},
    {"me:pw@h;i", "write a comma"},
    {"10.0.0.1:1;10.0.0.2:1", "write a comma"},
    {"h|i", "write a comma"},
    {"\xef\xbb\xbfh", "byte order mark"},
    {"\"h:1", "begins with a quote"},
    {"'redis://:pw@h'", "begins with a quote"},
    {"valkey:/h", "a slash is missing"},
    {"/run/r.sock", "write unix://"},
    {"redis:///0", "no host"},
    {"me:pw@", "no host"},
    {"h:", "port"},
    {"h:0", "port"},
    {"h:65536", "port"},
    {"h:99999999999999999999999", "port"},
    {"h:-1", "port"},
    {"h:+1", "port"},
    {"h:7x", "port"},
    {"h:/1", "port"},
    {"h:port", "port"},
    {"h/x", "database"},
    {"h/-1", "database"},
    {"h/65536", "database"},
    {"h/1/", "database"},
    {"h/1/2", "database"},
    {"h//", "database"},
    {"h?db=1", "'?'"},
    {"h/?db=1", "'?'"},
    {"h:7?db=1", "'?'"},
    {"h:7/1?x", "'?'"},
    {"h\x80", "letters"},
    {"h%41", "letters"},
    {"h,i", "letters"},
    {"h]", "letters"},
    {"::1", "[::1]"},
    {"::1:6379", "[::1]"},
    {"redis://fe80::1/0", "[::1]"},
    {"a:1:2", "[::1]"},
    {"[::1", "no ']'"},
    {"[", "no ']'"},
    {"[]", "not an IPv6"},
    {"[127.0.0.1]", "not an IPv6"},
    {"[h]", "not an IPv6"},
    {"[::1]x", "after a ']'"},
    {"[::1]]", "after a ']'"},
    {"[::1]:", "port"},
    {"[fe80::1%eth0]", "zones"},
    {"[fe80::1%25eth0]", "zones"},
    {"[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]", "not an IPv6"},
    {"foo://h", "unknown scheme"},
    {"://h", "unknown scheme"},
    {"redis+tls://h", "unknown scheme"},
    {"http://me:pw@h", "unknown scheme"},
    {"secret://pw@h", "unknown scheme"},
    {"redis:// h", "white space"},
    {" h", "white space"},
    {"h ", "white space"},
    {"h\n", "white space"},
    {"h\t:1", "white space"},
    {"h\x7f", "control"},
    {"\x01h", "control"},
    {"me:p w@h", "white space"},
    {"me@h", "needs a password"},
    {"redis://me@h", "needs a password"},
    {"@h", "needs a password"},
    {"me:@h", "the password is empty"},
    {":@h", "the password is empty"},
    {"unix:///r@s", "needs a password"},
    {"me:p%00w@h", "the password has a NUL"},
    {"m%00e:pw@h", "the user has a NUL"},
    {"me:pw%@h", "the password has a '%'"},
    {"me:pw%4@h", "the password has a '%'"},
    {"me:pw%zz@h", "the password has a '%'"},
    {"me:pw%4z@h", "the password has a '%'"},
    {"m%e:pw@h", "the user has a '%'"},
    {"-", "'-' is no host"},
    {"redis://me:pw@.:6379", "'.' is no host"},
    {"-.-:1", "'-.-' is no host"},
    {"redis:/me:pw@h", "a slash is missing: write redis://"},
    {"Redis:/h", "a slash is missing: write redis://"},
    {"unix://", "must begin with '/'"},
    {"unix://run/r.sock", "must begin with '/'"},
    {"unix://me:pw@run/r.sock", "must begin with '/'"},
    {"unix://:pw@", "must begin with '/'"},
    {"unix://?db=1", "must begin with '/'"},
    {"unix:///r?", "?db=N"},
    {"unix:///r?x=1", "?db=N"},
    {"unix:///r?db", "?db=N"},
    {"unix:///r?db=", "database"},
    {"unix:///r?db=x", "database"},
    {"unix:///r?db=65536", "database"},
    {"unix:///r?db=1&x", "database"},
    {"unix:///r%00", "the path has a NUL"},
    {"unix:///r%", "the path has a '%'"},
};

/* A failed parse does not change the caller's uri. */
static void check_refused(const char *text, size_t text_len, const char *message)
{
    struct uri uri, before;

    memset(&uri, 0x5a, sizeof uri);
    memset(&before, 0x5a, sizeof before);
    error_clear();
    CHECK_INT(uri_parse(text, text_len, &uri), REDLOCK_E_INVAL);
    CHECK_HAS(error_message(), message);
    CHECK(memcmp(&uri, &before, sizeof uri) == 0);
}

TEST(bad_ones_are_refused)
{
    for (size_t i = 0; i < ELEMENTS(bad); i++) {
        check_row = bad[i].text;
        check_refused(bad[i].text, strlen(bad[i].text), bad[i].message);
    }
}

TEST(a_nul_is_refused)
{
    check_refused("h\0", 2, "control");
    check_refused("\0", 1, "control");
    check_refused("me:p\0w@h", 8, "control");
}

/* The text needs no NUL, and no byte after it is read. */
TEST(no_byte_past_the_end_is_read)
{
    static const char text[] = "redis://me:pw@h:70011/15";
    struct uri uri;

    for (size_t len = 0; len < sizeof text; len++) {
        char *exact = malloc(len + 1); /* malloc(0) may return NULL. */

        CHECK(exact != NULL);
        memcpy(exact + 1, text, len);
        memset(&uri, 0, sizeof uri);
        (void)!uri_parse(exact + 1, len, &uri); /* Valgrind and ASan check. */
        uri_done(&uri);
        free(exact);
    }
    CHECK_INT(uri_parse(text, sizeof text - 1 - 4, &uri), REDLOCK_OK);
    CHECK_STR(uri.name, "h:7001");
    uri_done(&uri);
    check_refused("unix:///r%41", 11, "the path has a '%'");
    check_refused("unix:///r%41", 10, "the path has a '%'");
}

static void check_length(const char *before, const char *after, char c, size_t max)
{
    struct uri uri = parsed(joined(before, repeat(c, max), after));
    const char *text;

    uri_done(&uri);
    text = joined(before, repeat(c, max + 1), after);
    check_refused(text, strlen(text), "longer than");
}

TEST(parts_have_a_longest_length)
{
    check_length("", "", 'h', URI_HOST_MAX);
    check_length("redis://", ":65535/65535", 'h', URI_HOST_MAX);
    check_length(":", "@h", 'p', URI_SECRET_MAX);
    check_length("", ":p@h", 'u', URI_SECRET_MAX);
    check_length("unix:///", "", 'r', URI_PATH_MAX - 1);
    /* The longest name has every byte escaped. */
    check_length("unix:///", "?db=65535", '\xe9', URI_PATH_MAX - 1);
    check_refused(joined(":", repeat('p', 3 * URI_SECRET_MAX + 1), "@h"),
                  3 * URI_SECRET_MAX + 1 + 3, "longer than");
}

/* The length counts after unescaping. */
TEST(escapes_do_not_count)
{
    char text[3 * URI_SECRET_MAX + 8] = ":";
    struct uri uri;

    for (unsigned i = 0; i < URI_SECRET_MAX; i++)
        strcat(text, "%7e");
    strcat(text, "@h");
    uri = parsed(text);
    CHECK_UINT(strlen(uri.password), URI_SECRET_MAX);
    uri_done(&uri);
}

TEST(places_are_compared)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"h", "h:6379", true},
        {"h", "H", true},
        {"redis://u:p@Example.ORG:7/3", ":q@example.org:7", true},
        {"h", "i", false},
        {"h", "hh", false},
        {"h:1", "h:2", false},
        {"[::1]", "[0:0:0:0:0:0:0:1]", true},
        {"[FE80::1]", "[fe80:0::1]", true},
        {"[::1]", "[::2]", false},
        {"unix:///a", "unix:/a?db=2", true},
        {"unix:///a", "unix:///%61", true},
        {"unix:///a", "unix:///A", false},
        {"unix:///a", "a", false},
        {"a", "unix:///a", false},
        {"z", "Z", true},
        {"a_", "a-", false},
        {"[::1]", "h", false},
    };

    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct uri a, b;

        check_row = rows[i].a;
        a = parsed(rows[i].a);
        b = parsed(rows[i].b);
        CHECK_INT(uri_same_place(&a, &b), rows[i].same);
        CHECK_INT(uri_same_place(&b, &a), rows[i].same);
        uri_done(&a);
        uri_done(&b);
    }
}

TEST(the_place_is_the_name_without_its_db)
{
    static const char *const rows[][2] = {
        {"h", "h:6379"},
        {"h/2", "h:6379"},
        {"[::1]:7/2", "[::1]:7"},
        {"unix:/a/b", "unix:/a/b"},
        {"unix:/a/b?db=2", "unix:/a/b"},
    };

    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct uri uri = parsed(rows[i][0]);

        uri.name[uri_place_len(&uri)] = '\0';
        CHECK_STR(uri.name, rows[i][1]);
        uri_done(&uri);
    }
}

TEST(loopback_addresses_are_known)
{
    static const struct {
        const char *text;
        size_t len;
    } rows[] = {
        {"127.0.0.1", 9},       {"127.1.2.3:7001/2", 9},  {"[::1]", 5},    {"[0:0::1]:7/2", 5},
        {"localhost", 9},       {"LocalHost:7", 9},       {"10.0.0.1", 0}, {"[::2]", 0},
        {"127.example.com", 0}, {"localhost.example", 0}, {"unix:/r", 0},  {"1.127.0.0", 0},
    };

    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct uri uri = parsed(rows[i].text);

        check_row = rows[i].text;
        CHECK_UINT(uri_loopback_len(uri.name), rows[i].len);
        uri_done(&uri);
    }
}

/* Malformed URIs of every kind, with a secret before the last '@'. */
TEST(messages_have_no_secret)
{
    static const char *const logins[] = {"Us3r:S3cr3t@",    ":S3cr3t@",        "S3cr3t@",
                                         "Us3r:S3cr3t%zz@", "Us3r:S3cr3t%00@", "Us3r:S3cr3t @",
                                         "S3cr3t://S3cr3t@"};
    static const char *const schemes[] = {"", "redis://", "rediss://", "unix://", "foo://"};
    static const char *const places[] = {"",   "h:x",   "h/x",   "[x",   "::1",   "/r?x",
                                         "/r", "h:0/9", "h\x7f", "h?db", "r.sock"};
    unsigned refused = 0;

    for (size_t i = 0; i < ELEMENTS(logins) * ELEMENTS(schemes) * ELEMENTS(places); i++) {
        char text[128];
        struct uri uri;
        int r;

        snprintf(text, sizeof text, "%s%s%s", schemes[i % ELEMENTS(schemes)],
                 logins[i / ELEMENTS(schemes) % ELEMENTS(logins)],
                 places[i / ELEMENTS(schemes) / ELEMENTS(logins)]);
        check_row = text;
        r = uri_parse(text, strlen(text), &uri);
        if (r == REDLOCK_OK) {
            CHECK(strstr(uri.name, "3r") == NULL);
            uri_done(&uri);
            continue;
        }
        refused++;
        CHECK_INT(r, REDLOCK_E_INVAL);
        CHECK(error_message()[0] != '\0');
        CHECK(strstr(error_message(), "3r") == NULL);
        check_row = NULL;
    }
    CHECK(refused > 300);
}

/* If the host is missing, the text may be a secret, and is not quoted. */
TEST(messages_quote_nothing)
{
    static const char *const rows[] = {"Us3r:S3cr3t", "redis://:S3cr3t", "S3cr3t!",      "h/S3cr3t",
                                       "S3cr3t://pw", "[S3cr3t]",        "unix://S3cr3t"};

    for (size_t i = 0; i < ELEMENTS(rows); i++) {
        struct uri uri;

        check_row = rows[i];
        CHECK_INT(uri_parse(rows[i], strlen(rows[i]), &uri), REDLOCK_E_INVAL);
        CHECK(strstr(error_message(), "3r") == NULL);
    }
}

/* True: the page of this address is in no core file (proc(5), smaps: "dd"). */
static bool is_hidden(const void *address)
{
    FILE *smaps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool is_found = false, hidden = false;

    CHECK(smaps != NULL);
    while (!hidden && fgets(line, sizeof line, smaps) != NULL) {
        unsigned long from, until;

        if (sscanf(line, "%lx-%lx ", &from, &until) == 2)
            is_found = (uintptr_t)address >= from && (uintptr_t)address < until;
        else if (is_found && strncmp(line, "VmFlags:", 8) == 0)
            hidden = strstr(line, " dd") != NULL;
    }
    (void)fclose(smaps);
    return hidden;
}

TEST(secrets_are_in_no_core_file)
{
    struct uri uri = parsed("me:pw@h"), other = parsed("h");

    CHECK(is_hidden(uri.user) && is_hidden(uri.password));
    CHECK(!is_hidden(&uri) && !is_hidden(uri.host));
    CHECK_INT(uri_copy_login(&other, &uri), REDLOCK_OK);
    CHECK(is_hidden(other.user) && is_hidden(other.password));
    CHECK_STR(other.user, "me");
    CHECK_STR(other.password, "pw");
    uri_done(&other);
    uri_done(&uri);
}

/* Also on the way to an error. */
TEST(secrets_are_wiped)
{
    static const char *const texts[] = {"redis://S3cr3t:S3cr3t@h:7/1", "rediss://:S3cr3t@h",
                                        "redis://:S3cr3t%zz@h",        "redis://:S3cr3t@h:port",
                                        "redis://:S3cr3t@[::1",        "unix://me:S3cr3t@/r?db=x"};

    (void)heap_watch("S3cr3t");
    for (size_t i = 0; i < ELEMENTS(texts); i++) {
        for (unsigned n = 0; n < 6; n++) {
            struct uri uri;

            heap_fail_after(n);
            if (uri_parse(texts[i], strlen(texts[i]), &uri) == REDLOCK_OK)
                uri_done(&uri);
        }
        heap_reset();
        check_row = texts[i];
        CHECK_UINT(heap_watch("S3cr3t"), 0);
    }
    (void)heap_watch(NULL);
}

TEST(every_allocation_may_fail)
{
    static const char *const texts[] = {"redis://me:pw@h:7/1", "unix://me:pw@/r", "[::1]"};
    static const unsigned needed[] = {4, 4, 2};

    for (size_t i = 0; i < ELEMENTS(texts); i++) {
        struct uri uri, before;

        check_row = texts[i];
        memset(&uri, 0x5a, sizeof uri);
        memset(&before, 0x5a, sizeof before);
        for (unsigned n = 0; n < needed[i]; n++) {
            heap_fail_after(n);
            CHECK_INT(uri_parse(texts[i], strlen(texts[i]), &uri), REDLOCK_E_NOMEM);
            CHECK(heap_has_failed());
            CHECK_STR(error_message(), "out of memory");
            CHECK(memcmp(&uri, &before, sizeof uri) == 0);
        }
        heap_reset();
        CHECK_INT(uri_parse(texts[i], strlen(texts[i]), &uri), REDLOCK_OK);
        CHECK_UINT(heap_allocations(), needed[i]);
        uri_done(&uri);
    }
}

CHECK_MAIN(RUN(a_scheme_asks_for_tls), RUN(good_ones_are_parsed), RUN(members_are_named),
           RUN(bad_ones_are_refused), RUN(a_nul_is_refused), RUN(no_byte_past_the_end_is_read),
           RUN(parts_have_a_longest_length), RUN(escapes_do_not_count), RUN(places_are_compared),
           RUN(the_place_is_the_name_without_its_db), RUN(loopback_addresses_are_known),
           RUN(messages_have_no_secret), RUN(messages_quote_nothing),
           RUN(secrets_are_in_no_core_file), RUN(secrets_are_wiped), RUN(every_allocation_may_fail))
