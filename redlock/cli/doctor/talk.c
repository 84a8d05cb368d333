/*
 * talk.c - resolves, connects, sends, receives, and gives up in time.
 */
#include "redlock/cli/doctor/talk.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "redlock/cli/common/loop.h"
#include "redlock/io/connect.h"
#include "redlock/io/resolve.h"
#include "redlock/io/tls.h"
#include "redlock/link/reader.h"
#include "redlock/link/uri.h"

/* ---- Connecting ---- */

bool talk_certificate_left_s(const struct talk *talk, int64_t *ret_left_s)
{
    return talk->tls != NULL && tls_left_s(talk->tls, ret_left_s);
}

uint32_t talk_left_ms(const struct talk *talk)
{
    return drift_to_ms_up(drift_until(loop_clock(), talk->until));
}

static bool is_whole(const struct talk *talk)
{
    return talk->broken.why == WHY_NONE;
}

static void break_off_why(struct talk *talk, const struct reason *why)
{
    if (is_whole(talk))
        talk->broken = *why;
}

static void break_off_for(struct talk *talk, enum why kind)
{
    struct reason why;

    reason_set(&why, kind);
    break_off_why(talk, &why);
}

static void fall_silent(struct talk *talk)
{
    if (talk->is_shaking)
        break_off_for(talk, tls_silence(talk->tls));
    else
        break_off_for(talk, talk->greeted ? WHY_SILENT_NOW : WHY_SILENT);
}

/* Wait for one of so many parts of the time that is left.  False: it is over. */
static bool wait_for(struct talk *talk, int fd, short events, unsigned parts)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int ready;

    do
        ready = poll(&wait, 1, (int)(talk_left_ms(talk) / parts));
    while (ready < 0 && errno == EINTR);
    if (ready < 0) {
        struct reason why;

        reason_of_errno(&why, errno);
        break_off_why(talk, &why);
    }
    return ready > 0 && talk_left_ms(talk) > 0; /* The limit also ends a drip of bytes. */
}

/* False: there is no connection, and *ret_why says why.  It may be silent, so others get a part of
 * the time. */
static bool connect_to(struct talk *talk, const char *address, unsigned others,
                       struct reason *ret_why)
{
    const struct uri *uri = talk->uri;
    int fd = connect_begin(address, uri->path, uri->port, ret_why), error;

    if (fd < 0)
        return false;
    error = wait_for(talk, fd, POLLOUT, others + 1) ? connect_error(fd) : ETIMEDOUT;
    if (error == 0) {
        talk->fd = fd;
        return true;
    }
    reason_of_errno(ret_why, error);
    (void)close(fd);
    return false;
}

/* Try the addresses of the name, until one accepts. */
static void connect_by_name(struct talk *talk, struct reason *ret_why)
{
    struct resolve *resolve = resolve_start(talk->uri->host);
    char address[RESOLVE_ADDRESS_MAX];
    unsigned turn = 0, len;

    if (resolve == NULL) {
        reason_set(ret_why, WHY_NAME_START);
        ret_why->number = errno;
        return;
    }
    if (!wait_for(talk, resolve_fd(resolve), POLLIN, 1)) {
        reason_set(ret_why, WHY_NAME_TIMEOUT);
        resolve_free(resolve);
        return;
    }
    len = resolve_len(resolve);
    do {
        if (!resolve_take(resolve, turn++, address, ret_why))
            break;
    } while (!connect_to(talk, address, len - turn, ret_why) && turn < len &&
             talk_left_ms(talk) > 0);
    resolve_free(resolve);
}

/* ---- TLS ---- */

/* The connection failed.  Of TLS, the moment is a hint, as in link/stream.c. */
static void break_off_by(struct talk *talk, struct reason *why)
{
    if (talk->is_shaking)
        why->at = AT_TLS;
    else if (talk->tls != NULL && !talk->greeted)
        why->at = AT_AFTER_TLS;
    else if (talk->tls == NULL && !talk->heard && talk->uri->path == NULL)
        why->at = AT_GREETING;
    break_off_why(talk, why);
}

static void send_bytes(struct talk *talk, const char *bytes, size_t len)
{
    struct reason why;

    while (len > 0 && is_whole(talk)) {
        ssize_t n = send(talk->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (!wait_for(talk, talk->fd, POLLOUT, 1))
                fall_silent(talk);
        } else if (errno != EINTR) {
            reason_of_errno(&why, errno);
            break_off_by(talk, &why);
        }
    }
}

/* Send what the filter has. */
static void send_sealed(struct talk *talk)
{
    const char *bytes;
    size_t len = tls_unsent(talk->tls, &bytes);

    send_bytes(talk, bytes, len);
    tls_sent(talk->tls, len);
}

/* Wait for bytes of the server.  Returns their number; 0: there were none, or the conversation
 * failed. */
static size_t wait_for_bytes(struct talk *talk, char *bytes, size_t room)
{
    struct reason why;
    ssize_t n;

    if (!wait_for(talk, talk->fd, POLLIN, 1)) {
        fall_silent(talk);
        return 0;
    }
    n = recv(talk->fd, bytes, room, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n == 0)
        reason_set(&why, WHY_CLOSED);
    else if (n < 0)
        reason_of_errno(&why, errno);
    if (n <= 0)
        break_off_by(talk, &why);
    talk->heard = talk->heard || n > 0;
    return n > 0 ? (size_t)n : 0;
}

static void shake_hands(struct talk *talk)
{
    int done = 0;

    while (done == 0 && is_whole(talk)) {
        char bytes[4096];
        size_t len;

        done = tls_shake(talk->tls);
        send_sealed(talk);
        if (done < 0)
            break_off_why(talk, tls_error(talk->tls));
        if (done != 0)
            return;
        len = wait_for_bytes(talk, bytes, sizeof bytes);
        if (!tls_feed(talk->tls, bytes, len))
            break_off_for(talk, WHY_NO_MEMORY);
    }
}

/* Hand bytes of the server to the parser, whose next reply has its error. */
static void take_bytes(struct talk *talk, const char *bytes, size_t len)
{
    char plain[4096];
    ssize_t n;

    if (talk->tls == NULL) {
        (void)redisReaderFeed(talk->reader, bytes, len);
        return;
    }
    if (!tls_feed(talk->tls, bytes, len))
        break_off_for(talk, WHY_NO_MEMORY);
    while ((n = tls_read(talk->tls, plain, sizeof plain)) > 0)
        (void)redisReaderFeed(talk->reader, plain, (size_t)n);
    if (n < 0)
        break_off_why(talk, tls_error(talk->tls));
    send_sealed(talk);
}

static void begin_tls(struct talk *talk, struct tls_context *context)
{
    talk->is_shaking = true;
    talk->tls = context != NULL ? tls_new(context, talk->uri->host) : NULL;
    if (talk->tls != NULL)
        shake_hands(talk);
    else
        break_off_for(talk, context != NULL ? WHY_NO_MEMORY : WHY_TLS_UNSET);
    talk->is_shaking = false;
    if (is_whole(talk))
        take_bytes(talk, "", 0); /* The server may have said something with the handshake. */
}

/* ---- Opening and closing ---- */

void talk_open(struct talk *talk, const struct uri *uri, struct tls_context *context,
               uint32_t limit_ms)
{
    struct reason why;

    memset(talk, 0, sizeof *talk);
    talk->uri = uri;
    talk->fd = -1;
    talk->until = drift_add(loop_clock(), limit_ms * DRIFT_MS);
    talk->reader = reader_new(&talk->reply);
    if (talk->reader == NULL)
        break_off_for(talk, WHY_NO_MEMORY);
    else if (uri->path != NULL || resolve_is_address(uri->host))
        (void)connect_to(talk, uri->host, 0, &why);
    else
        connect_by_name(talk, &why);
    if (talk->fd < 0)
        break_off_why(talk, &why);
    else if (uri->tls)
        begin_tls(talk, context);
}

void talk_close(struct talk *talk)
{
    tls_free(talk->tls);
    if (talk->fd >= 0)
        (void)close(talk->fd);
    if (talk->reader != NULL)
        redisReaderFree(talk->reader);
    reader_forget(&talk->reply);
    talk->fd = -1;
    talk->tls = NULL;
    talk->reader = NULL;
}

/* ---- Talking ---- */

void talk_send(struct talk *talk, const char *bytes, size_t len)
{
    while (len > 0 && talk->tls != NULL && is_whole(talk)) {
        ssize_t n = tls_write(talk->tls, bytes, len);

        if (n < 0)
            break_off_why(talk, tls_error(talk->tls));
        send_sealed(talk);
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    if (talk->tls == NULL)
        send_bytes(talk, bytes, len);
}

static void read_more(struct talk *talk)
{
    char bytes[16384];
    size_t len;

    if (reader_overflows(talk->reader)) {
        break_off_for(talk, WHY_TOO_LONG);
        return;
    }
    len = wait_for_bytes(talk, bytes, sizeof bytes);
    if (len > 0)
        take_bytes(talk, bytes, len);
}

static void send_unsent(struct talk *talk)
{
    size_t len = talk->unsent_len;

    talk->unsent_len = 0;
    talk_send(talk, talk->unsent, len);
}

const struct reply *talk_reply(struct talk *talk)
{
    struct reason why;
    void *reply = NULL;

    send_unsent(talk);
    while (is_whole(talk) && reply == NULL) {
        if (redisReaderGetReply(talk->reader, &reply) != REDIS_OK) {
            reader_explain(talk->reader, &why);
            break_off_why(talk, &why);
        } else if (reply == NULL) {
            read_more(talk);
        }
    }
    reader_hide(&talk->reply, talk->uri->password);
    return reply;
}

void talk_say(struct talk *talk, const char *const *words)
{
    const char *argv[TALK_WORDS_MAX];
    char *command;
    int argc = 0, len;

    while (argc < TALK_WORDS_MAX && words[argc] != NULL) {
        argv[argc] = words[argc];
        argc++;
    }
    len = (int)redisFormatCommandArgv(&command, argc, argv, NULL);
    if (len < 0) {
        break_off_for(talk, WHY_NO_MEMORY);
        return;
    }
    if (talk->unsent_len + (size_t)len > sizeof talk->unsent)
        send_unsent(talk);
    assert((size_t)len <= sizeof talk->unsent); /* No word is longer than a tenth of it. */
    memcpy(talk->unsent + talk->unsent_len, command, (size_t)len);
    talk->unsent_len += (size_t)len;
    redisFreeCommand(command);
}

const struct reply *talk_ask(struct talk *talk, const char *const *words)
{
    talk_say(talk, words);
    return talk_reply(talk);
}
