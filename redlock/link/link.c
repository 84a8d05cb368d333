/*
 * link.c - connects, greets, sends, receives, and goes down again.
 *
 * It is longer than others: a connection is one machine, and each of its states is left in several
 * ways.
 */
#include "redlock/link/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <sodium.h>

#include "redlock/io/env.h"
#include "redlock/link/queue.h"
#include "redlock/link/reader.h"
#include "redlock/link/stream.h"

/* The pause between two attempts doubles from the first to the last.  Up to a half is taken off at
 * random, so that clients that lost a master together come back at different times.  Chosen:
 * redis-server restarts in about 100 ms, and one SYN in two seconds is no load. */
#define RETRY_FIRST (50 * DRIFT_MS)
#define RETRY_LAST (2 * DRIFT_S)

/* A link that owes answers is checked each second, or each reply timeout if that is longer.  After
 * this many checks in a row without an answer, the next one takes it down.  A host that vanished
 * sends no reset, and the kernel would wait longer. */
#define SILENT_LOOKS 3

/* A server that is listed twice votes through its first link.  If that link breaks, another link
 * may take its place only after this many failures in a row, the break included.  The pauses
 * between them take 0.375 s or more.  A sooner change would lose the leases that were asked for
 * through it. */
#define CLAIM_ATTEMPTS 5

#define READ_MAX (16u << 10) /* The most bytes of one event.  Chosen. */

enum link_state { LINK_DOWN, LINK_CONNECTING, LINK_GREETING, LINK_UP };

struct link {
    struct link_config config;
    const struct link_events *events;
    void *cookie;
    enum link_state state;
    drift_time begun; /* The latest attempt to connect. */
    struct stream stream;
    struct redisReader *parser; /* NULL before the greeting. */
    struct reply reply;
    struct handshake handshake;
    unsigned attempts; /* Failures in a row, since the link last worked. */

    struct queue queue;
    bool full;             /* The queue takes no more commands for now. */
    bool doomed;           /* The link goes down; why says why.  Until then it does no I/O. */
    bool mute;             /* The master does not answer: closing drops unsent bytes. */
    bool refused;          /* The failure of the greeting was news already. */
    bool served;           /* The latest completed greeting brought the link up. */
    bool works;            /* The master answered more than a sign of life (ask.h). */
    uint64_t answers;      /* Answers on this connection that show life (ask.h). */
    uint64_t answers_seen; /* The value of answers at the latest check for silence. */
    unsigned silent_looks;

    struct master_info info;
    struct reason why;
};

static void mark_dirty(struct link *link)
{
    *link->config.dirty |= mask_of(link->config.number);
}

/* link->why says why. */
static void doom(struct link *link)
{
    link->doomed = true;
    mark_dirty(link);
}

static void doom_for(struct link *link, enum why why)
{
    reason_set(&link->why, why);
    doom(link);
}

/* The stream has failed.  What the master has complained of may be why. */
static void break_off(struct link *link, const struct reason *why)
{
    if (link->state != LINK_GREETING || !link->handshake.complains)
        link->why = *why;
    if (link->state == LINK_GREETING && link->why.at == AT_ANYTHING &&
        handshake_may_be_tls(&link->handshake))
        link->why.at = AT_GREETING;
    doom(link);
}

/* ---- Down ---- */

static void close_link(struct link *link)
{
    stream_close(&link->stream, link->mute);
    stream_set_timer(&link->stream, DRIFT_NEVER);
    if (link->parser != NULL)
        redisReaderFree(link->parser);
    link->parser = NULL;
    link->state = LINK_DOWN;
    queue_wipe(&link->queue); /* The bytes may hold a password. */
    link->full = link->doomed = link->mute = false;
}

static drift_span retry_in(struct link *link)
{
    drift_span span = RETRY_FIRST;

    for (unsigned i = 0; i < link->attempts && span < RETRY_LAST; i++)
        span *= 2;
    if (span > RETRY_LAST)
        span = RETRY_LAST;
    return span / 2 + span / 2 * env_random(link->config.env) / UINT32_MAX;
}

static void drop_asks(struct link *link)
{
    while (link->queue.asks_len > 0) {
        const struct ask ask = queue_take_ask(&link->queue);

        if (ask.flags & ASK_TELL)
            link->events->on_reply(link->cookie, link->config.number, &ask, NULL);
    }
}

/* Take the link down, or end its attempt; link->why says why.  No caller up the stack uses the
 * link. */
static void go_down(struct link *link)
{
    bool was_up = link->state == LINK_UP, greeted = link->state == LINK_GREETING;
    struct link_fall fall;

    assert(!link->config.env->in_event);
    if (link->works) /* Failures from now on are counted anew. */
        link->attempts = 0;
    link->works = false;
    fall.retry_in = retry_in(link);
    /* A greeting that fails, as that of a replica, is news even after other failed attempts. */
    fall.is_news = was_up || link->attempts == 0 || (greeted && !link->refused);
    link->refused = !was_up && (link->refused || greeted);
    link->attempts++;
    close_link(link);
    env_begin_event(link->config.env);
    link->events->on_link(link->cookie, link->config.number, &fall);
    drop_asks(link);
    env_end_event(link->config.env);
    stream_set_timer(&link->stream, fall.retry_in);
}

/* ---- Appending ---- */

static void append(struct link *link, const char *bytes, size_t len)
{
    if (queue_append(&link->queue, bytes, len))
        mark_dirty(link);
    else
        doom_for(link, WHY_NO_MEMORY);
}

static bool has_room(const struct link *link)
{
    /* Three are left for a count, and for the two reads of a proof. */
    return link->queue.asks_len < link->config.env->asks_max - 3 &&
           queue_unsent_len(&link->queue) < LINK_UNSENT_MAX;
}

static void look_again(struct link *link)
{
    drift_span reply_timeout = link->config.reply_timeout;

    stream_set_timer(&link->stream, reply_timeout > DRIFT_S ? reply_timeout : DRIFT_S);
}

void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len)
{
    assert(link->state == LINK_UP);
    if (link->doomed)
        return;
    if (!queue_append_ask(&link->queue, ask, command, command_len)) {
        doom_for(link, WHY_NO_MEMORY);
        return;
    }
    mark_dirty(link);
    if (!has_room(link)) {
        link->full = true;
        link->events->on_room(link->cookie, link->config.number, false);
    }
    if (!stream_has_timer(&link->stream))
        look_again(link);
}

void link_say(struct link *link, const char *command, size_t command_len)
{
    if (link->state != LINK_UP || link->doomed)
        return; /* When the link comes up, the owner sends all again. */
    if (has_room(link))
        append(link, command, command_len);
    else
        doom_for(link, WHY_DEAF);
}

/* ---- Writing ---- */

/* There is room again when half of the queue is free.  It is not reported sooner, because the owner
 * then visits all leases. */
static void look_if_full(struct link *link)
{
    if (!link->full || link->doomed || link->queue.asks_len > link->config.env->asks_max / 2 ||
        queue_unsent_len(&link->queue) > LINK_UNSENT_MAX / 2)
        return;
    link->full = false;
    link->events->on_room(link->cookie, link->config.number, true);
}

static void write_out(struct link *link)
{
    struct queue *queue = &link->queue;
    struct reason why;
    ssize_t n = 1;

    while (queue_unsent_len(queue) > 0 && n > 0) {
        n = stream_write(&link->stream, queue_unsent(queue), queue_unsent_len(queue), &why);
        if (n < 0) {
            break_off(link, &why);
            return;
        }
        queue->out_sent += (size_t)n;
    }
    queue_drop_sent(queue, link->state == LINK_GREETING);
    stream_await_space(&link->stream, queue_unsent_len(queue) > 0);
}

void link_write(struct link *link)
{
    bool is_open = link->state == LINK_UP || link->state == LINK_GREETING;

    if (is_open && !link->doomed)
        write_out(link);
    if (link->doomed)
        mark_dirty(link); /* For the flush that takes it down. */
}

void link_flush(struct link *link)
{
    link_write(link);
    if (link->doomed) {
        go_down(link);
        return;
    }
    env_begin_event(link->config.env);
    look_if_full(link);
    env_end_event(link->config.env);
}

/* ---- Greeting ---- */

static void come_up(struct link *link)
{
    const bool guarded = !link->config.listens && link->config.guarded;

    link->state = LINK_UP;
    reason_set(&link->why, guarded ? WHY_UNCHECKED : WHY_NONE);
    if (guarded) /* So long a first lock waits for the guard to read the marker. */
        link->why.number = (int)drift_to_ms(link->config.connect_timeout);
    stream_set_timer(&link->stream, DRIFT_NEVER);
    link->events->on_link(link->cookie, link->config.number, NULL);
}

static void say_greeting(struct link *link)
{
    const struct link_config *config = &link->config;
    char *bytes;
    size_t len = config->listens
                     ? handshake_begin_listening(&link->handshake, config->uri, &bytes)
                     : handshake_begin(&link->handshake, config->uri, config->guarded, &bytes);

    if (link->attempts == 0)
        reason_set(&link->why, WHY_UNANSWERED);
    if (len == 0) {
        doom_for(link, WHY_NO_MEMORY);
        return;
    }
    append(link, bytes, len);
    sodium_memzero(bytes, len);
    free(bytes);
}

static void greet(struct link *link)
{
    link->state = LINK_GREETING;
    link->answers = link->answers_seen = 0;
    link->silent_looks = 0;
    link->parser = reader_new(&link->reply);
    if (link->parser == NULL)
        doom_for(link, WHY_NO_MEMORY);
    else if (link->config.listens && link->config.uri->password == NULL)
        come_up(link);
    else
        say_greeting(link);
}

/* True if the parser has bytes that belong to no reply yet.  Check this before a call of the
 * parser: one that finds no bytes costs a third of a reply. */
static bool has_bytes(const struct redisReader *parser)
{
    return parser->pos < parser->len;
}

static void on_greeting(struct link *link)
{
    switch (handshake_on_reply(&link->handshake, &link->reply, &link->info, &link->why)) {
    case HANDSHAKE_GOES_ON:
        return;
    case HANDSHAKE_FAILED:
        doom(link);
        return;
    case HANDSHAKE_DONE:
        break;
    }
    if (has_bytes(link->parser)) {
        doom_for(link, WHY_UNASKED);
        return;
    }
    link->served = link->config.listens ||
                   link->events->may_serve(link->cookie, link->config.number, &link->why);
    if (link->served)
        come_up(link);
    else
        doom(link);
}

/* ---- Receiving ---- */

static void on_answer(struct link *link)
{
    struct ask ask;

    if (link->config.listens) {
        link->works |= link->reply.type != REPLY_ERROR;
        link->events->on_reply(link->cookie, link->config.number, NULL, &link->reply);
        return;
    }
    if (link->queue.asks_len == 0) {
        doom_for(link, WHY_UNASKED);
        return;
    }
    ask = queue_take_ask(&link->queue);
    link->answers += !(ask.flags & ASK_LOOK);
    link->works |= !(ask.flags & (ASK_LOOK | ASK_LIFE));
    link->events->on_reply(link->cookie, link->config.number, &ask, &link->reply);
}

static void take_replies(struct link *link)
{
    void *reply;

    while (!link->doomed && has_bytes(link->parser)) {
        if (redisReaderGetReply(link->parser, &reply) != REDIS_OK) {
            reader_explain(link->parser, &link->why);
            doom(link);
            return;
        }
        if (reply == NULL) {
            if (reader_overflows(link->parser))
                doom_for(link, WHY_TOO_LONG);
            return;
        }
        if (link->reply.type == REPLY_ERROR)
            reader_hide(&link->reply, link->config.uri->password);
        if (link->state == LINK_UP)
            on_answer(link);
        else
            on_greeting(link);
    }
}

static void read_bytes(struct link *link)
{
    char bytes[READ_MAX];
    struct reason why;
    ssize_t n = stream_read(&link->stream, bytes, sizeof bytes, &why);

    if (n < 0)
        break_off(link, &why);
    else if (n > 0 && redisReaderFeed(link->parser, bytes, (size_t)n) != REDIS_OK)
        doom_for(link, WHY_NO_MEMORY);
    else
        take_replies(link);
}

static void read_answers(struct link *link)
{
    do
        read_bytes(link);
    while (!link->doomed && stream_has_more(&link->stream));
    look_if_full(link);
}

/* ---- Events ----
 *
 * An event of another link may have doomed this one a moment ago: a round that begins there writes
 * to all links.  Then any event here only takes the link down, for the reason that it has. */

static void attempt(struct link *link)
{
    const struct uri *uri = link->config.uri;
    const struct transport_to to = {.host = uri->host, .path = uri->path, .port = uri->port};
    struct reason why;

    assert(link->state == LINK_DOWN);
    stream_set_timer(&link->stream, link->config.connect_timeout);
    link->begun = env_now(link->config.env);
    link->state = LINK_CONNECTING;
    if (!stream_open(&link->stream, &to, link->attempts, &why))
        link_relink(link, &why);
}

static void look_for_silence(struct link *link)
{
    if (link->queue.asks_len == 0) {
        link->silent_looks = 0;
        return; /* The next command starts the timer again. */
    }
    if (link->answers != link->answers_seen)
        link->silent_looks = 0;
    link->answers_seen = link->answers;
    if (++link->silent_looks <= SILENT_LOOKS) {
        look_again(link);
        return;
    }
    link->mute = true;
    doom_for(link, WHY_HANGS);
}

static void time_out(struct link *link)
{
    switch (link->state) {
    case LINK_DOWN:
        attempt(link);
        break;
    case LINK_CONNECTING:
        doom_for(link, stream_silence(&link->stream));
        break;
    case LINK_GREETING:
        if (link->handshake.complains)
            doom(link);
        else
            doom_for(link, WHY_SILENT);
        break;
    case LINK_UP:
        look_for_silence(link);
        break;
    }
}

static void end(struct link *link)
{
    env_end_event(link->config.env);
    if (link->doomed)
        go_down(link);
    link->events->on_done(link->cookie); /* This comes last: it may free the link. */
}

static void on_open(void *cookie, const struct reason *why)
{
    struct link *link = cookie;

    env_begin_event(link->config.env);
    if (why != NULL)
        link_relink(link, why);
    else
        greet(link);
    link_write(link);
    if (!link->doomed && stream_has_more(&link->stream))
        read_answers(link);
    end(link);
}

static void on_bytes(void *cookie)
{
    struct link *link = cookie;

    env_begin_event(link->config.env);
    if (!link->doomed)
        read_answers(link);
    end(link);
}

static void on_space(void *cookie)
{
    struct link *link = cookie;

    env_begin_event(link->config.env);
    link_write(link);
    look_if_full(link);
    end(link);
}

static void on_timer(void *cookie)
{
    struct link *link = cookie;

    env_begin_event(link->config.env);
    if (!link->doomed)
        time_out(link);
    end(link);
}

static const struct transport_events transport_events = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_space = on_space,
    .on_timer = on_timer,
};

/* ---- The interface ---- */

struct link *link_new(const struct link_config *config, const struct link_events *events,
                      void *cookie)
{
    struct link *link = calloc(1, sizeof *link);

    if (link == NULL)
        return NULL;
    if (stream_init(&link->stream, config->env->loop, config->uri->tls, config->env->tls,
                    &transport_events, link) != 0) {
        free(link);
        return NULL;
    }
    link->config = *config;
    link->events = events;
    link->cookie = cookie;
    reason_set(&link->why, WHY_NOT_CONNECTED);
    return link;
}

void link_free(struct link *link)
{
    assert(!link->config.env->in_event);
    close_link(link);
    stream_done(&link->stream);
    reader_forget(&link->reply);
    queue_done(&link->queue);
    free(link);
}

/* The loop makes the first attempt.  A unix socket may refuse at once, and the owner hears of that
 * only from the loop. */
void link_start(struct link *link)
{
    stream_set_timer(&link->stream, 0);
}

void link_relink(struct link *link, const struct reason *why)
{
    link->why = *why;
    doom(link);
}

void link_note(struct link *link, const struct reason *why)
{
    if (link->doomed || (why == NULL && link->why.why == WHY_NONE)) /* Nearly always. */
        return;
    if (why == NULL)
        reason_set(&link->why, WHY_NONE);
    else
        link->why = *why;
}

bool link_is_up(const struct link *link)
{
    return link->state == LINK_UP;
}

bool link_is_given_up(const struct link *link)
{
    return link->state == LINK_DOWN && link->attempts >= 2;
}

const char *link_name(const struct link *link)
{
    return link->config.uri->name;
}

/* The first attempts of all links begin together, and a call may fail when the first of them time
 * out.  The others have lasted for as long by then, but for a moment. */
static bool hangs(const struct link *link)
{
    const drift_span timeout = link->config.connect_timeout;

    return drift_until(link->begun, env_now(link->config.env)) >= timeout - timeout / 16;
}

const struct reason *link_reason(struct link *link)
{
    if (link->state == LINK_CONNECTING && link->why.why == WHY_NOT_CONNECTED && hangs(link))
        reason_set(&link->why, stream_silence(&link->stream));
    return &link->why;
}

const struct master_info *link_info(const struct link *link)
{
    return &link->info;
}

bool link_left_s(const struct link *link, int64_t *ret_left_s)
{
    return stream_left_s(&link->stream, ret_left_s);
}

bool link_claims(const struct link *link)
{
    return link->state == LINK_UP || (link->served && link->attempts < CLAIM_ATTEMPTS);
}
