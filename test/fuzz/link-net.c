/*
 * link-net.c - transport.h and loop.h in virtual time, without I/O.  It checks what they demand.
 *
 * The library must keep the contract of transport.h.  It also checks:
 *
 *  - a link is not opened again sooner than the shortest pause after it was closed;
 *  - a connection that ended is closed by the end of that turn of the loop;
 *  - a link waits for room only if a write was cut;
 *  - what one link has queued stays bounded;
 *  - the loop comes to rest at every instant.
 */
#include "link.h"

#include <errno.h>
#include <string.h>

#include "redlock/io/loop.h"
#include "redlock/io/transport.h"

#define IN_MAX (64u << 10)
#define START (77 * DRIFT_S)
#define TRANSPORTS_MAX 8
#define BACKOFF_MIN (25 * DRIFT_MS)           /* Half of RETRY_FIRST in redlock/link/link.c. */
#define UNSENT_MAX ((8u << 20) + (64u << 10)) /* The limit of a link, and a command or two. */
#define IDLE_TURNS_MAX 1000                   /* Turns in a row in which only timers ring. */
#define TURNS_MAX 3000 /* Turns of one input.  Chosen: about 0.1 s of work; not measured. */

enum state { CLOSED, CONNECTING, OPEN };
enum verdict { NONE_YET, ACCEPTED, REFUSED };

struct transport {
    const struct transport_events *events;
    void *cookie;
    unsigned place;
    enum state state;
    enum verdict verdict;
    bool is_auto;
    bool ended;        /* The master closed it; earlier bytes can still be read. */
    bool writes_fail;  /* The kernel knows that it ended, and writes fail. */
    bool told_of_end;  /* The library knows that it ended. */
    bool awaits_space; /* The library wants on_space(). */
    bool is_cut;       /* The latest write found too little room. */
    bool must_go;      /* Its owner closed it though it was good, so needs it no more. */
    drift_time timer, closed_at;
    size_t room, piece, in_len;
    struct peer peer;
    char in[IN_MAX];
};

struct net_loop {
    struct loop loop;
    const struct loop_events *events; /* NULL: no client is open. */
    void *cookie;
    drift_time wake_at;
};

struct net_settings net_settings;
static struct net_loop the_loop;
static struct transport *transports[TRANSPORTS_MAX];
static drift_time now;
static unsigned turns, idle_turns;
static bool no_closing, clock_fails;

void net_begin(void)
{
    memset(&net_settings, 0, sizeof net_settings);
    memset(&the_loop, 0, sizeof the_loop);
    memset(transports, 0, sizeof transports);
    now = START;
    turns = idle_turns = 0;
    no_closing = clock_fails = false;
    peer_reset_all();
}

drift_time net_now(void)
{
    return now;
}

void net_progress(void)
{
    idle_turns = 0;
}

bool net_has_clock(void)
{
    return !clock_fails;
}

bool net_is_tired(void)
{
    return turns >= TURNS_MAX;
}

void net_forbid_closing(bool forbid)
{
    no_closing = forbid;
}

/* ---- loop.h ---- */

static void free_loop(struct loop *loop)
{
    MUST(loop == &the_loop.loop && the_loop.events != NULL);
    the_loop.events = NULL;
}

static drift_time read_clock(const struct loop *loop)
{
    MUST(loop == &the_loop.loop);
    now += net_settings.tick;
    return clock_fails ? DRIFT_NEVER : now;
}

static void wake_at(struct loop *loop, drift_time at)
{
    MUST(loop == &the_loop.loop);
    the_loop.wake_at = clock_fails ? now : at; /* Like drift_until() in loop_ev.c. */
}

static const struct loop_ops ops = {.free = free_loop, .now = read_clock, .wake_at = wake_at};

struct loop *loop_ev_new(struct ev_loop *ev, const struct loop_events *events, void *cookie)
{
    (void)ev;
    MUST(the_loop.events == NULL);
    the_loop = (struct net_loop){
        .loop.ops = &ops, .events = events, .cookie = cookie, .wake_at = DRIFT_NEVER};
    return &the_loop.loop;
}

/* ---- transport.h ---- */

struct transport *transport_new(struct loop *loop, const struct transport_events *events,
                                void *cookie)
{
    struct transport *transport = calloc(1, sizeof *transport);
    unsigned place = 0;

    MUST(loop == &the_loop.loop && transport != NULL);
    MUST(events->on_open != NULL && events->on_bytes != NULL);
    MUST(events->on_space != NULL && events->on_timer != NULL);
    while (transports[place] != NULL)
        MUST(++place < TRANSPORTS_MAX);
    transport->events = events;
    transport->cookie = cookie;
    transport->place = place;
    transport->timer = DRIFT_NEVER;
    transports[place] = transport;
    return transport;
}

static void hang_up(struct transport *transport)
{
    if (transport->state != CLOSED)
        transport->closed_at = now;
    transport->state = CLOSED;
    transport->ended = transport->told_of_end = transport->writes_fail = false;
    transport->awaits_space = transport->is_cut = false;
    transport->in_len = 0;
}

void transport_free(struct transport *transport)
{
    if (transport == NULL)
        return;
    MUST(transports[transport->place] == transport);
    hang_up(transport);
    transports[transport->place] = NULL;
    free(transport);
}

bool transport_open(struct transport *transport, const struct transport_to *to, unsigned turn,
                    struct reason *ret_why)
{
    const char *at = to->path != NULL ? to->path : to->host;

    (void)turn;
    MUST(transport->state == CLOSED && !transport->must_go);
    MUST(transport->closed_at == 0 || now - transport->closed_at >= BACKOFF_MIN);
    peer_begin(&transport->peer, (unsigned)(at[strlen(at) - 1] - '1'));
    transport->room = SIZE_MAX;
    transport->piece = SIZE_MAX;
    transport->verdict = NONE_YET;
    transport->is_auto = net_settings.is_auto;
    transport->closed_at = now;
    tell("open: transport %u, master %u", transport->place, transport->peer.master + 1);
    if (net_settings.refuses_at_once && to->path != NULL) {
        reason_of_errno(ret_why, ECONNREFUSED);
        return false;
    }
    transport->state = CONNECTING;
    return true;
}

enum why transport_silence(const struct transport *transport)
{
    MUST(transport->state == CONNECTING);
    return WHY_CONNECT_TIMEOUT;
}

void transport_close(struct transport *transport, bool reset)
{
    bool is_good = transport->state == OPEN && transport->is_auto && !transport->ended;

    (void)reset;
    tell("close: transport %u", transport->place);
    /* A link that listens ends some time after the last waiter. */
    MUST(!no_closing || !is_good || transport->peer.listens);
    transport->must_go |= no_closing && is_good;
    hang_up(transport);
}

ssize_t transport_read(struct transport *transport, char *buf, size_t room, struct reason *ret_why)
{
    size_t len = transport->in_len < transport->piece ? transport->in_len : transport->piece;

    MUST(transport->state == OPEN && room > 0 && !transport->told_of_end);
    len = len < room ? len : room;
    memcpy(buf, transport->in, len);
    memmove(transport->in, transport->in + len, transport->in_len - len);
    transport->in_len -= len;
    if (len > 0 || !transport->ended)
        return (ssize_t)len;
    transport->told_of_end = true;
    reason_set(ret_why, WHY_CLOSED);
    return -1;
}

ssize_t transport_write(struct transport *transport, const char *bytes, size_t len,
                        struct reason *ret_why)
{
    size_t room = transport->room < len ? transport->room : len;

    MUST(transport->state == OPEN && len > 0 && !transport->told_of_end);
    MUST(len <= UNSENT_MAX);
    if (transport->writes_fail) {
        transport->told_of_end = true;
        reason_of_errno(ret_why, EPIPE);
        return -1;
    }
    transport->is_cut = room < len;
    if (transport->room != SIZE_MAX)
        transport->room -= room;
    if (room > 0)
        net_progress();
    peer_on_bytes(&transport->peer, bytes, room);
    return (ssize_t)room;
}

void transport_await_space(struct transport *transport, bool on)
{
    MUST(transport->state == OPEN);
    transport->awaits_space = on;
}

void transport_set_timer(struct transport *transport, drift_span in)
{
    transport->timer = in == DRIFT_NEVER ? DRIFT_NEVER : drift_add(now, in);
}

bool transport_has_timer(const struct transport *transport)
{
    return transport->timer != DRIFT_NEVER;
}

/* ---- What the input decides ---- */

struct transport *net_pick(unsigned n)
{
    for (unsigned i = 0; i < TRANSPORTS_MAX; i++)
        if (transports[(n + i) % TRANSPORTS_MAX] != NULL)
            return transports[(n + i) % TRANSPORTS_MAX];
    return NULL;
}

void net_accept(struct transport *transport, bool accept)
{
    if (transport->state == CONNECTING)
        transport->verdict = accept ? ACCEPTED : REFUSED;
}

void net_feed(struct transport *transport, const char *bytes, size_t len)
{
    if (transport->state != OPEN || transport->ended || len > IN_MAX - transport->in_len)
        return;
    memcpy(transport->in + transport->in_len, bytes, len);
    transport->in_len += len;
}

void net_answer(struct transport *transport, unsigned variant)
{
    char buf[ANSWER_MAX];

    if (transport->state == OPEN && !transport->ended)
        net_feed(transport, buf, peer_answer(&transport->peer, variant, buf));
}

void net_end(struct transport *transport, bool writes_fail)
{
    if (transport->state != OPEN)
        return;
    transport->ended = true;
    transport->writes_fail = writes_fail;
}

void net_set_room(struct transport *transport, size_t room)
{
    transport->room = room;
}

void net_set_piece(struct transport *transport, size_t piece)
{
    transport->piece = piece;
}

void net_set_auto(struct transport *transport, bool is_auto)
{
    transport->is_auto = is_auto;
}

void net_reset_all(void)
{
    net_settings.is_auto = true;
    net_settings.refuses_at_once = false;
    for (unsigned i = 0; i < TRANSPORTS_MAX; i++) {
        if (transports[i] == NULL)
            continue;
        net_end(transports[i], true);
        net_accept(transports[i], false);
    }
}

/* ---- Turns of the loop ---- */

static bool has_space(const struct transport *transport)
{
    return transport->state == OPEN && transport->awaits_space &&
           (transport->room > 0 || transport->writes_fail);
}

static bool answers_itself(const struct transport *transport)
{
    return transport->is_auto && !transport->ended && transport->peer.len > 0 &&
           transport->in_len < IN_MAX / 2;
}

static bool has_io(const struct transport *transport)
{
    if (transport->state == CONNECTING)
        return transport->verdict != NONE_YET || transport->is_auto;
    return transport->state == OPEN && (transport->in_len > 0 || transport->ended ||
                                        has_space(transport) || answers_itself(transport));
}

static void end_attempt(struct transport *transport)
{
    bool is_open =
        transport->verdict == ACCEPTED || (transport->verdict == NONE_YET && transport->is_auto);
    struct reason why;

    if (is_open)
        transport->state = OPEN;
    else
        hang_up(transport);
    reason_of_errno(&why, ECONNREFUSED);
    transport->events->on_open(transport->cookie, is_open ? NULL : &why);
}

/* The transport may be gone after each callback. */
static void on_io(unsigned place)
{
    struct transport *transport = transports[place];

    if (transport == NULL || !has_io(transport))
        return;
    net_progress();
    if (transport->state == CONNECTING) {
        end_attempt(transport);
        return;
    }
    while (answers_itself(transport))
        net_answer(transport, 0);
    if (transport->in_len > 0 || transport->ended)
        transport->events->on_bytes(transport->cookie);
    if (transports[place] == transport && has_space(transport))
        transport->events->on_space(transport->cookie);
}

static void on_timers(void)
{
    for (unsigned i = 0; i < TRANSPORTS_MAX; i++) {
        if (transports[i] == NULL || transports[i]->timer > now)
            continue;
        transports[i]->timer = DRIFT_NEVER;
        transports[i]->events->on_timer(transports[i]->cookie);
    }
    if (the_loop.events != NULL && the_loop.wake_at <= now) {
        the_loop.wake_at = DRIFT_NEVER;
        the_loop.events->on_timer(the_loop.cookie);
    }
}

static void check_transports(void)
{
    for (unsigned i = 0; i < TRANSPORTS_MAX; i++) {
        if (transports[i] == NULL || transports[i]->state != OPEN)
            continue;
        MUST(!transports[i]->told_of_end);
        MUST(transports[i]->awaits_space == transports[i]->is_cut);
    }
}

void net_turn(void)
{
    if (net_is_tired())
        return;
    turns++;
    MUST(++idle_turns < IDLE_TURNS_MAX);
    for (unsigned i = 0; i < TRANSPORTS_MAX; i++)
        on_io(i);
    on_timers();
    if (the_loop.events == NULL)
        return;
    the_loop.events->before_sleep(the_loop.cookie);
    check_transports();
}

static drift_time next_timer(void)
{
    drift_time next = the_loop.events != NULL ? the_loop.wake_at : DRIFT_NEVER;

    for (unsigned i = 0; i < TRANSPORTS_MAX; i++)
        if (transports[i] != NULL && transports[i]->timer < next)
            next = transports[i]->timer;
    return next;
}

static bool is_due(void)
{
    for (unsigned i = 0; i < TRANSPORTS_MAX; i++)
        if (transports[i] != NULL && has_io(transports[i]))
            return true;
    return next_timer() <= now;
}

void net_settle(void)
{
    do
        net_turn();
    while (is_due() && !net_is_tired());
    if (!net_is_tired() && !clock_fails)
        calls_on_settled();
}

/* The loop may ring its own timer a little early. */
static void ring_early(void)
{
    drift_span left = drift_until(now, the_loop.wake_at);

    if (net_settings.rings_early && the_loop.events != NULL && left > DRIFT_MS && left < DRIFT_S)
        the_loop.wake_at -= left / 64;
}

void net_pass(drift_span span)
{
    drift_time until = now + span, next;

    for (;;) {
        net_settle();
        ring_early();
        next = next_timer();
        if (net_is_tired() || next > until)
            break;
        net_progress();
        now = next > now ? next : now;
    }
    now = now < until ? until : now;
}

void net_break_clock(void)
{
    tell("the clock fails");
    clock_fails = true;
}

void net_stall(drift_span span)
{
    now += span;
}

void net_check_gone(void)
{
    MUST(the_loop.events == NULL);
    for (unsigned i = 0; i < TRANSPORTS_MAX; i++)
        MUST(transports[i] == NULL);
}
