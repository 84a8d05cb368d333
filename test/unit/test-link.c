/*
 * test-link.c - a link that is doomed does no more I/O, and falls for its first reason.
 *
 * Another link's event may doom a link: a round that begins there writes to all links.  The loop
 * may then still bring an event of the doomed link in the same turn.
 */
#include "redlock/link/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "redlock/io/env.h"
#include "redlock/io/transport.h"
#include "redlock/link/uri.h"
#include "test/lib/check.h"

/* ---- The transport ---- */

struct transport {
    const struct transport_events *events;
    void *cookie;
    const char *says; /* To the next read.  NULL: it has closed. */
    unsigned reads, writes, closes;
    bool has_timer, is_broken;
};

#include "test/lib/words.h"
#include "test/lib/made_up_transport.h"

void transport_free(struct transport *transport)
{
    (void)transport;
}

bool transport_open(struct transport *transport, const struct transport_to *to, unsigned turn,
                    struct reason *ret_why)
{
    (void)transport, (void)to, (void)turn, (void)ret_why;
    return true;
}

void transport_close(struct transport *transport, bool reset)
{
    (void)reset;
    transport->closes++;
}

ssize_t transport_read(struct transport *transport, char *buf, size_t room, struct reason *ret_why)
{
    const char *says = transport->says;

    transport->reads++;
    transport->says = NULL;
    if (says != NULL)
        return snprintf(buf, room, "%s", says);
    reason_set(ret_why, WHY_CLOSED);
    return -1;
}

ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        struct reason *ret_why)
{
    (void)bytes;
    transport->writes++;
    if (!transport->is_broken)
        return (ssize_t)len;
    reason_of_errno(ret_why, EPIPE);
    return -1;
}

void transport_await_space(struct transport *transport, bool on)
{
    (void)transport, (void)on;
}

void transport_set_timer(struct transport *transport, drift_span in)
{
    transport->has_timer = in != DRIFT_NEVER;
}

bool transport_has_timer(const struct transport *transport)
{
    return transport->has_timer;
}

/* ---- The owner ---- */

static struct env env;
static quorum_mask dirty;
static unsigned falls;

static void on_link(void *cookie, unsigned number, const struct link_fall *fall)
{
    (void)cookie, (void)number;
    falls += fall != NULL;
}

static void on_done(void *cookie)
{
    (void)cookie;
}

static const struct link_events events = {.on_link = on_link, .on_done = on_done};

static void ring(void)
{
    the_transport.events->on_timer(the_transport.cookie);
}

static struct link *open_link(const struct uri *uri, bool listens)
{
    const struct link_config config = {
        .env = &env, .uri = uri, .dirty = &dirty, .listens = listens};
    struct link *link;

    the_transport = (struct transport){.reads = 0};
    link = link_new(&config, &events, NULL);
    CHECK(link != NULL);
    env.asks_max = LINK_ASKS_MAX;
    env.loop = &made_up_loop;
    falls = 0;
    ring();
    the_transport.events->on_open(the_transport.cookie, NULL);
    return link;
}

/* A listening link without a password is up at once. */
static struct link *up_link(void)
{
    static char host[] = "10.0.0.1", name[] = "10.0.0.1:6379";
    static const struct uri uri = {.host = host, .name = name, .port = URI_PORT};
    struct link *link = open_link(&uri, true);

    CHECK(link_is_up(link));
    return link;
}

/* Write within an event of another link. */
static void write_bytes(struct link *link)
{
    env_begin_event(&env);
    link_say(link, "PING\r\n", 6);
    link_write(link);
    env_end_event(&env);
    CHECK_UINT(falls, 0);
}

static void doom(struct link *link)
{
    the_transport.is_broken = true;
    the_transport.writes = 0;
    write_bytes(link);
}

static void check_fallen(struct link *link)
{
    CHECK_UINT(the_transport.reads, 0);
    CHECK_UINT(the_transport.writes, 1);
    CHECK_UINT(the_transport.closes, 1);
    CHECK_UINT(falls, 1);
    CHECK(!link_is_up(link));
    CHECK_STR(words_of(link_reason(link)), "Broken pipe");
    link_free(link);
}

TEST(reads_no_more_after_a_write_that_failed)
{
    struct link *link = up_link();

    doom(link);
    the_transport.events->on_bytes(the_transport.cookie);
    check_fallen(link);
}

TEST(writes_no_more_after_a_write_that_failed)
{
    struct link *link = up_link();

    doom(link);
    the_transport.events->on_space(the_transport.cookie);
    check_fallen(link);
}

/* After so many seconds without an answer the link is taken down for its silence. */
#define SILENCE 3

TEST(silence_is_not_the_reason_after_a_write_that_failed)
{
    const struct ask ask = {.number = 1};
    struct link *link = up_link();

    env_begin_event(&env);
    link_send(link, &ask, "PING\r\n", 6);
    env_end_event(&env);
    for (unsigned i = 0; i < SILENCE; i++)
        ring();
    doom(link);
    ring();
    check_fallen(link);
}

/* A Redis whose port has TLS closes a connection without it, and says nothing. */
TEST(a_break_before_the_first_answer_hints_at_tls)
{
    static char host[] = "10.0.0.1", name[] = "x", path[] = "/run/r.sock", password[] = "secret";
    static const struct {
        struct uri uri;
        bool hints;
    } rows[] = {
        {{.host = host, .name = name, .port = URI_PORT, .password = password}, true},
        {{.path = path, .name = name, .password = password}, false},
        {{.host = host, .name = name, .port = URI_PORT}, false}, /* It is up, and says nothing. */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct link *link = open_link(&rows[i].uri, true);

        the_transport.events->on_bytes(the_transport.cookie);
        CHECK(strncmp(words_of(link_reason(link)), "Server closed the connection", 28) == 0);
        CHECK((strstr(words_of(link_reason(link)), "rediss://") != NULL) == rows[i].hints);
        link_free(link);
    }
}

/* After an error it may close, or say nothing more: the error is the reason. */
TEST(what_a_master_complains_of_stays_the_reason)
{
    static const struct {
        const char *says, *why;
    } rows[] = {
        {"-WRONGPASS no\r\n", "AUTH: WRONGPASS no"},
        {"+OK\r\n-ERR max number of clients reached\r\n", "ERR max number of clients reached"},
    };
    static char host[] = "10.0.0.1", name[] = "x", password[] = "secret";
    static const struct uri uri = {
        .host = host, .name = name, .port = URI_PORT, .password = password};

    for (unsigned i = 0; i < 4; i++) {
        struct link *link = open_link(&uri, false);

        the_transport.says = rows[i % 2].says;
        the_transport.events->on_bytes(the_transport.cookie);
        CHECK_UINT(falls, 0);
        if (i < 2)
            ring();
        else
            the_transport.events->on_bytes(the_transport.cookie);
        CHECK_UINT(falls, 1);
        CHECK_STR(words_of(link_reason(link)), rows[i % 2].why);
        link_free(link);
    }
}

CHECK_MAIN(RUN(reads_no_more_after_a_write_that_failed),
           RUN(writes_no_more_after_a_write_that_failed),
           RUN(silence_is_not_the_reason_after_a_write_that_failed),
           RUN(a_break_before_the_first_answer_hints_at_tls),
           RUN(what_a_master_complains_of_stays_the_reason))
