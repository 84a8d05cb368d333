/*
 * stream.h - the bytes of a link: plain, or through TLS.
 *
 * It has the functions of io/transport.h, with the same contract, and passes them on.  A plain
 * stream adds nothing: its transport calls the owner.  Between a TLS stream and its transport is
 * the filter of io/tls.h.  A stream that should use TLS never sends or hands over a plain byte.
 */
#ifndef REDLOCK_STREAM_H
#define REDLOCK_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "redlock/io/transport.h"

struct filter;
struct loop;
struct tls_context;

struct stream {
    struct transport *transport;
    struct filter *filter; /* NULL: a plain stream. */
    bool has_more;         /* There may be bytes to read, though the transport has none. */
};

/* Make a closed stream.  A stream with TLS whose context is NULL never opens.  Returns 0, or -1 if
 * memory runs out. */
int stream_init(struct stream *stream, struct loop *loop, bool has_tls, struct tls_context *context,
                const struct transport_events *events, void *cookie);
void stream_done(struct stream *stream);

bool stream_open_tls(struct stream *stream, const struct transport_to *to, unsigned turn,
                     struct reason *ret_why);
/* As tls_left_s().  False: also if the stream is plain. */
bool stream_left_s(const struct stream *stream, int64_t *ret_left_s);
enum why stream_silence(const struct stream *stream);
ssize_t stream_read_tls(struct stream *stream, char *buf, size_t room, struct reason *ret_why);
ssize_t stream_write_tls(struct stream *stream, const char *bytes, size_t len,
                         struct reason *ret_why);
void stream_await_space_tls(struct stream *stream, bool on);
void stream_close(struct stream *stream, bool reset);

static inline bool stream_open(struct stream *stream, const struct transport_to *to, unsigned turn,
                               struct reason *ret_why)
{
    return stream->filter != NULL ? stream_open_tls(stream, to, turn, ret_why)
                                  : transport_open(stream->transport, to, turn, ret_why);
}

static inline ssize_t stream_read(struct stream *stream, char *buf, size_t room,
                                  struct reason *ret_why)
{
    return stream->filter != NULL ? stream_read_tls(stream, buf, room, ret_why)
                                  : transport_read(stream->transport, buf, room, ret_why);
}

/* True after on_open() or a read: read before the loop sleeps, because on_bytes() may not come. */
static inline bool stream_has_more(const struct stream *stream)
{
    return stream->has_more;
}

static inline ssize_t stream_write(struct stream *stream, const char *bytes, size_t len,
                                   struct reason *ret_why)
{
    return stream->filter != NULL ? stream_write_tls(stream, bytes, len, ret_why)
                                  : transport_write(stream->transport, bytes, len, ret_why);
}

static inline void stream_await_space(struct stream *stream, bool on)
{
    if (stream->filter != NULL)
        stream_await_space_tls(stream, on);
    else
        transport_await_space(stream->transport, on);
}

static inline void stream_set_timer(struct stream *stream, drift_span in)
{
    transport_set_timer(stream->transport, in);
}

static inline bool stream_has_timer(const struct stream *stream)
{
    return transport_has_timer(stream->transport);
}

#endif /* REDLOCK_STREAM_H */
