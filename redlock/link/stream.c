/*
 * stream.c - carries bytes between a link, the filter of TLS, and a transport.
 *
 * The filter keeps what the transport does not take yet.  While it has any, the stream takes
 * nothing more of its owner, and awaits space for itself.
 */
#include "redlock/link/stream.h"

#include <assert.h>
#include <stdlib.h>

#include "redlock/io/tls.h"

/* The most bytes that one read takes from the transport.  They and a record that began earlier are
 * at most two records, so an owner reads three times at most.  Chosen: as a link does. */
#define READ_MAX (16u << 10)

/* The most bytes that the filter has to send: a record of the owner, and what TLS itself answers.
 * A server that makes TLS answer again and again, and reads nothing, would fill the memory. Chosen:
 * three records. */
#define UNSENT_MAX (3 * READ_MAX)

struct filter {
    struct stream *stream;
    struct transport *transport; /* The stream's. */
    struct tls_context *context;
    const struct transport_events *events;
    void *cookie;
    const char *host;
    struct tls *tls; /* NULL: the transport is not open. */
    bool is_open;    /* The handshake is done. */
    bool is_broken;  /* why says why.  The next read or write reports it. */
    bool lost;       /* The transport has failed. */
    bool heard;      /* The server said something after the handshake. */
    bool wants_space;
    struct reason why;
};

static void set_broken(struct filter *filter, const struct reason *why)
{
    if (!filter->is_broken)
        filter->why = *why;
    filter->is_broken = true;
}

static void set_broken_by(struct filter *filter, enum why kind)
{
    struct reason why;

    reason_set(&why, kind);
    set_broken(filter, &why);
}

/* The transport failed.  A server that wants a certificate closes after the handshake of TLS 1.3.
 * Its alert may be lost, because it does not read what we sent. */
static void set_lost(struct filter *filter, struct reason *why)
{
    filter->lost = true;
    why->at = !filter->is_open ? AT_TLS : filter->heard ? AT_ANYTHING : AT_AFTER_TLS;
    set_broken(filter, why);
}

static bool has_unsent(const struct filter *filter)
{
    const char *bytes;

    return tls_unsent(filter->tls, &bytes) > 0;
}

/* Send what the filter has.  False: the transport failed. */
static bool send_unsent(struct filter *filter)
{
    const char *bytes;
    struct reason why;
    size_t len;
    ssize_t n = 1;

    while (n > 0 && (len = tls_unsent(filter->tls, &bytes)) > 0) {
        n = transport_write(filter->transport, bytes, len, &why);
        if (n > 0)
            tls_sent(filter->tls, (size_t)n);
    }
    filter->lost = false;
    if (n < 0)
        set_lost(filter, &why);
    else
        transport_await_space(filter->transport, filter->wants_space || has_unsent(filter));
    return n >= 0;
}

/* After a failure of the transport, nothing is written. */
static void send_if_any(struct filter *filter)
{
    if (!filter->lost && has_unsent(filter))
        (void)send_unsent(filter);
}

/* Feed the filter what the transport has.  Returns the number of bytes, or -1. */
static ssize_t take_bytes(struct filter *filter)
{
    char bytes[READ_MAX];
    struct reason why;
    ssize_t n = transport_read(filter->transport, bytes, sizeof bytes, &why);

    filter->lost = false;
    if (n < 0)
        set_lost(filter, &why);
    else if (n > 0 && !tls_feed(filter->tls, bytes, (size_t)n))
        set_broken_by(filter, WHY_NO_MEMORY);
    return filter->is_broken ? -1 : n;
}

/* ---- The handshake ---- */

/* This comes last: the owner may free the stream. */
static void fail(struct filter *filter)
{
    stream_close(filter->stream, false);
    filter->events->on_open(filter->cookie, &filter->why);
}

static void shake(struct filter *filter)
{
    int r = tls_shake(filter->tls);

    if (r < 0)
        set_broken(filter, tls_error(filter->tls));
    send_if_any(filter); /* After a failure, the server is told. */
    if (filter->is_broken) {
        fail(filter);
    } else if (r > 0) {
        filter->is_open = true;
        filter->stream->has_more = true; /* The server may have said something with it. */
        filter->events->on_open(filter->cookie, NULL);
    }
}

/* ---- Events of the transport ---- */

static void on_open(void *cookie, const struct reason *why)
{
    struct filter *filter = cookie;

    if (why != NULL) {
        filter->events->on_open(filter->cookie, why);
        return;
    }
    filter->tls = tls_new(filter->context, filter->host);
    if (filter->tls == NULL) {
        set_broken_by(filter, WHY_NO_MEMORY);
        fail(filter);
        return;
    }
    shake(filter);
}

static void on_bytes(void *cookie)
{
    struct filter *filter = cookie;

    if (filter->is_open)
        filter->events->on_bytes(filter->cookie);
    else if (take_bytes(filter) < 0)
        fail(filter);
    else
        shake(filter);
}

/* An owner that has nothing to write reads, and so learns that the stream is broken. */
static void on_space(void *cookie)
{
    struct filter *filter = cookie;

    if (filter->is_broken || !send_unsent(filter)) {
        if (filter->is_open)
            filter->events->on_bytes(filter->cookie);
        else
            fail(filter);
        return;
    }
    if (filter->wants_space && !has_unsent(filter))
        filter->events->on_space(filter->cookie);
}

static void on_timer(void *cookie)
{
    struct filter *filter = cookie;

    filter->events->on_timer(filter->cookie);
}

static const struct transport_events filter_events = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_space = on_space,
    .on_timer = on_timer,
};

/* ---- Calls of the owner ---- */

int stream_init(struct stream *stream, struct loop *loop, bool has_tls, struct tls_context *context,
                const struct transport_events *events, void *cookie)
{
    struct filter *filter;

    *stream = (struct stream){.transport = NULL};
    if (!has_tls) {
        stream->transport = transport_new(loop, events, cookie);
        return stream->transport != NULL ? 0 : -1;
    }
    filter = calloc(1, sizeof *filter);
    if (filter == NULL)
        return -1;
    stream->transport = transport_new(loop, &filter_events, filter);
    if (stream->transport == NULL) {
        free(filter);
        return -1;
    }
    filter->stream = stream;
    filter->transport = stream->transport;
    filter->context = context;
    filter->events = events;
    filter->cookie = cookie;
    stream->filter = filter;
    return 0;
}

void stream_done(struct stream *stream)
{
    if (stream->filter != NULL)
        tls_free(stream->filter->tls);
    transport_free(stream->transport);
    free(stream->filter);
}

bool stream_open_tls(struct stream *stream, const struct transport_to *to, unsigned turn,
                     struct reason *ret_why)
{
    struct filter *filter = stream->filter;

    assert(filter->tls == NULL && to->host != NULL);
    if (filter->context == NULL) { /* Never plain instead. */
        reason_set(ret_why, WHY_TLS_UNSET);
        return false;
    }
    filter->host = to->host;
    filter->is_broken = filter->lost = filter->heard = false;
    return transport_open(stream->transport, to, turn, ret_why);
}

enum why stream_silence(const struct stream *stream)
{
    const struct filter *filter = stream->filter;

    return filter != NULL && filter->tls != NULL && !filter->is_open
               ? tls_silence(filter->tls)
               : transport_silence(stream->transport);
}

bool stream_left_s(const struct stream *stream, int64_t *ret_left_s)
{
    const struct filter *filter = stream->filter;

    return filter != NULL && filter->tls != NULL && tls_left_s(filter->tls, ret_left_s);
}

void stream_close(struct stream *stream, bool reset)
{
    struct filter *filter = stream->filter;

    stream->has_more = false;
    if (filter != NULL) {
        tls_free(filter->tls);
        filter->tls = NULL;
        filter->is_open = filter->wants_space = false;
    }
    transport_close(stream->transport, reset);
}

static ssize_t report(const struct filter *filter, struct reason *ret_why)
{
    *ret_why = filter->why;
    return -1;
}

/* A record may ask for an answer, which is sent at once. */
ssize_t stream_read_tls(struct stream *stream, char *buf, size_t room, struct reason *ret_why)
{
    struct filter *filter = stream->filter;
    const char *unsent;
    size_t len = 0;
    ssize_t n = 1;

    assert(filter->is_open);
    if (!filter->is_broken && !stream->has_more && take_bytes(filter) == 0)
        return 0;
    stream->has_more = false;
    if (filter->is_broken)
        return report(filter, ret_why);
    while (len < room && n > 0) {
        n = tls_read(filter->tls, buf + len, room - len);
        if (n > 0)
            len += (size_t)n;
    }
    filter->heard = filter->heard || len > 0;
    if (n < 0)
        set_broken(filter, tls_error(filter->tls));
    send_if_any(filter);
    if (tls_unsent(filter->tls, &unsent) > UNSENT_MAX)
        set_broken_by(filter, WHY_TLS_UNREAD);
    if (filter->is_broken && len == 0)
        return report(filter, ret_why);
    stream->has_more = len == room || filter->is_broken;
    return (ssize_t)len;
}

ssize_t stream_write_tls(struct stream *stream, const char *bytes, size_t len,
                         struct reason *ret_why)
{
    struct filter *filter = stream->filter;
    ssize_t n = 0;

    assert(filter->is_open);
    send_if_any(filter);
    if (!filter->is_broken && !has_unsent(filter)) {
        n = tls_write(filter->tls, bytes, len);
        if (n < 0)
            set_broken(filter, tls_error(filter->tls));
        send_if_any(filter);
    }
    return filter->is_broken ? report(filter, ret_why) : n;
}

void stream_await_space_tls(struct stream *stream, bool on)
{
    struct filter *filter = stream->filter;

    filter->wants_space = on;
    transport_await_space(stream->transport, on || has_unsent(filter));
}
