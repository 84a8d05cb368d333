/*
 * test-live-talk.c - how the doctor connects to a master.
 *
 * The linker's --wrap redirects socket() to this file.
 */
#include "test/lib/check.h"

#include <errno.h>
#include <sys/socket.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "redlock/cli/common/loop.h"
#include "redlock/cli/doctor/talk.h"
#include "redlock/link/uri.h"
#include "redlock/redlock.h"

#define LIMIT_MS 20000

/* That of the command ends the process if there is no clock. */
drift_time loop_clock(void)
{
    drift_time now = 0;

    CHECK(drift_now(&now) == 0);
    return now;
}

static unsigned sockets, inheritable;

__typeof__(socket) __real_socket, __wrap_socket;

int __wrap_socket(int domain, int type, int protocol)
{
    sockets++;
    inheritable += !(type & SOCK_CLOEXEC);
    return __real_socket(domain, type, protocol);
}

static void open_talk(struct talk *talk, struct uri *uri, const char *host, unsigned port,
                      uint32_t limit_ms)
{
    char masters[64];

    (void)snprintf(masters, sizeof masters, "%s:%u", host, port);
    CHECK_INT(uri_parse(masters, strlen(masters), uri), REDLOCK_OK);
    sockets = inheritable = 0;
    talk_open(talk, uri, NULL, limit_ms);
}

/* A program that is started meanwhile must not inherit the connection. */
TEST(sockets_are_close_on_exec_from_the_start)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    static const char *const info[] = {"INFO", NULL};
    const struct fake_plan plan = {.way = FAKE_GOOD};
    struct fake fake;

    fake_start(&fake, &plan);
    for (unsigned i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        struct uri uri;
        struct talk talk;
        const struct reply *reply;

        check_row = hosts[i];
        open_talk(&talk, &uri, hosts[i], fake.port, LIMIT_MS);
        CHECK(talk.broken.why == WHY_NONE);
        reply = talk_ask(&talk, info);
        CHECK(reply != NULL && reply->type == REPLY_TEXT);
        CHECK(sockets >= 1);
        CHECK_UINT(inheritable, 0);
        talk_close(&talk);
        uri_done(&uri);
    }
    fake_stop(&fake);
}

TEST(it_says_why_there_is_no_connection)
{
    struct uri uri;
    struct talk talk;

    open_talk(&talk, &uri, "127.0.0.1", cluster_closed_port(), LIMIT_MS);
    CHECK_INT(talk.broken.number, ECONNREFUSED);
    talk_close(&talk);
    uri_done(&uri);
}

/* The kernel ignores the attempts, so the time runs out. */
TEST(it_gives_up_in_time)
{
    const struct fake_plan plan = {.way = FAKE_DEAF};
    struct uri uri;
    struct talk talk;
    struct fake fake;

    fake_start(&fake, &plan);
    open_talk(&talk, &uri, "127.0.0.1", fake.port, 100);
    CHECK_INT(talk.broken.number, ETIMEDOUT);
    talk_close(&talk);
    uri_done(&uri);
    fake_stop(&fake);
}

CHECK_MAIN({"sockets_are_close_on_exec_from_the_start", sockets_are_close_on_exec_from_the_start},
           {"it_says_why_there_is_no_connection", it_says_why_there_is_no_connection},
           {"it_gives_up_in_time", it_gives_up_in_time})
