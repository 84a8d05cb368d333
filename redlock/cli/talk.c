/*
 * talk.c - resolve, connect, send, receive, and give up in time.
 */
#include "redlock/cli/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "redlock/reply.h"
#include "redlock/resolve.h"
#include "redlock/uri.h"

/* ---- Connecting ---- */

void talk_give_time(struct talk *talk)
{
    drift_time now = 0;

    (void)drift_now(&now); /* redlock_open() has found that there is this clock. */
    talk->until = drift_add(now, talk->timeout_ms * DRIFT_MS);
}

static int time_left_ms(const struct talk *talk)
{
    drift_time now = 0;

    (void)drift_now(&now);
    return (int)((drift_until(now, talk->until) + DRIFT_MS - 1) / DRIFT_MS);
}

/* False: the time is over. */
static bool wait_for(const struct talk *talk, int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready;

    do
        ready = poll(&wait, 1, time_left_ms(talk));
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static void break_off(struct talk *talk, const char *why)
{
    if (talk->broken[0] == 0)
        (void)snprintf(talk->broken, sizeof talk->broken, "%s", why);
}

static struct timeval to_timeval(int ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

/* False: there is no connection; why, if it is known. */
static bool connect_to(struct talk *talk, const char *address, char *why, size_t why_size)
{
    const struct uri *uri = talk->uri;
    int left_ms = time_left_ms(talk);
    struct timeval left = to_timeval(left_ms > 0 ? left_ms : 1);

    talk->context = uri->path != NULL ? redisConnectUnixWithTimeout(uri->path, left)
                                      : redisConnectWithTimeout(address, (int)uri->port, left);
    if (talk->context != NULL && talk->context->err == 0)
        return true;
    (void)snprintf(why, why_size, "%s",
                   talk->context != NULL ? talk->context->errstr : "out of memory");
    if (talk->context != NULL)
        redisFree(talk->context);
    talk->context = NULL;
    return false;
}

/* By name: whichever of its addresses lets us. */
static void connect_by_name(struct talk *talk, char *why, size_t why_size)
{
    struct resolve *resolve = resolve_start(talk->uri->host);
    char address[RESOLVE_ADDRESS_MAX];
    unsigned turn = 0;
    uint64_t done;

    if (resolve == NULL) {
        (void)snprintf(why, why_size, "cannot start to resolve the name");
        return;
    }
    if (!wait_for(talk, resolve_fd(resolve))) {
        (void)snprintf(why, why_size, "timeout while resolving the name");
        resolve_free(resolve);
        return;
    }
    if (read(resolve_fd(resolve), &done, sizeof done) != (ssize_t)sizeof done) {
        /* Nothing is in it for us; but what the thread wrote before it is ours to
         * read only then, by the rules of C. */
    }
    do {
        const char *error = resolve_take(resolve, turn++, address);

        if (error != NULL) {
            (void)snprintf(why, why_size, "cannot resolve the name: %s", error);
            break;
        }
    } while (!connect_to(talk, address, why, why_size) && turn < resolve_len(resolve) &&
             time_left_ms(talk) > 0);
    resolve_free(resolve);
}

void talk_open(struct talk *talk, const struct uri *uri, uint32_t timeout_ms)
{
    char why[160] = "";

    *talk = (struct talk){.uri = uri, .timeout_ms = timeout_ms};
    talk_give_time(talk);
    if (uri->path != NULL || resolve_is_address(uri->host))
        (void)connect_to(talk, uri->host, why, sizeof why);
    else
        connect_by_name(talk, why, sizeof why);
    if (talk->context == NULL)
        break_off(talk, why);
}

void talk_close(struct talk *talk)
{
    if (talk->context != NULL)
        redisFree(talk->context);
    talk->context = NULL;
}

/* ---- Talking ---- */

void talk_send(struct talk *talk, const char *bytes, size_t len)
{
    while (len > 0 && talk->broken[0] == 0) {
        ssize_t n = send(talk->context->fd, bytes, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            break_off(talk, strerror(errno));
            return;
        }
        bytes += n;
        len -= (size_t)n;
    }
}

static void read_more(struct talk *talk)
{
    char bytes[16384];
    ssize_t n;

    if (reply_overflows(talk->reader)) {
        break_off(talk, "answers without end");
        return;
    }
    if (!wait_for(talk, talk->context->fd)) {
        break_off(talk,
                  talk->greeted ? "does not answer any more" : "connected, but does not answer");
        return;
    }
    n = recv(talk->context->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0)
        break_off(talk, n == 0 ? "Server closed the connection" : strerror(errno));
    else
        (void)redisReaderFeed(talk->reader, bytes, (size_t)n); /* Its error comes with the next. */
}

/* NULL: broken off. */
void *talk_reply(struct talk *talk)
{
    void *reply = NULL;

    while (talk->broken[0] == 0 && reply == NULL) {
        if (redisReaderGetReply(talk->reader, &reply) != REDIS_OK)
            break_off(talk, "answered with garbage");
        else if (reply == NULL)
            read_more(talk);
    }
    return reply;
}

redisReply *talk_ask(struct talk *talk, const char *const *words)
{
    const char *argv[TALK_WORDS_MAX];
    char *command;
    int argc = 0, len;

    while (argc < TALK_WORDS_MAX && words[argc] != NULL) {
        argv[argc] = words[argc];
        argc++;
    }
    if (talk->broken[0] != 0)
        return NULL;
    len = (int)redisFormatCommandArgv(&command, argc, argv, NULL);
    if (len < 0) {
        break_off(talk, "out of memory");
        return NULL;
    }
    talk_give_time(talk);
    talk_send(talk, command, (size_t)len);
    redisFreeCommand(command);
    return talk_reply(talk);
}
