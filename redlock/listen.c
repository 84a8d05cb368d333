/*
 * listen.c - links that listen, channels, lines.
 *
 * A lease is stepped only from the outermost events - something was told, a look was
 * answered, the alarm rang (run) - and never while another one is: what a step changes
 * is noted, and the alarm of its channel is set to ring at once (soon).
 */
#include "redlock/listen.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/client.h"
#include "redlock/fair.h"
#include "redlock/loop.h"
#include "redlock/place.h"
#include "redlock/wait.h"

/* One name that leases wait for, or did a moment ago; readers by themselves. */
struct channel {
    struct redlock *rl;
    struct channel *next; /* In the table. */
    struct alarm alarm;
    struct wait wait;
    uint32_t slot, serial;       /* Where in the table; never the same twice. */
    struct redlock_lease *first; /* In line, in the order in which they came, by next. */
    struct redlock_lease *fair;  /* Those in the queue of the masters (place.h), in any order. */
    bool shared;                 /* Readers. */
    bool relies;                 /* Those in line sleep until they are woken; */
    bool stirred;                /* but some who do not yet are to. */
    drift_time over_at;          /* Nobody waits: then it goes. */
    unsigned slots;              /* Of a semaphore; 0: it is none. */
    size_t mark_len;
    char mark[]; /* WIRE_MARK and the name. */
};

static quorum_mask bit(unsigned master)
{
    return (quorum_mask)(1u << master);
}

int listen_init(struct redlock *rl, struct ev_loop *ev)
{
    rl->listen.ev = ev;
    rl->listen.alarm.pos = ALARM_OFF;
    return alarm_reserve(&rl->alarms, 2); /* The guard's, and this one. */
}

/* ---- Alarms ---- */

static struct channel *channel_of(struct alarm *alarm)
{
    void *channel = (char *)alarm - offsetof(struct channel, alarm);

    return channel;
}

static void ring_at(struct channel *channel, drift_time at)
{
    struct listen *listen = &channel->rl->listen;

    alarm_set(&listen->alarms, &channel->alarm, at);
    alarm_set(&channel->rl->alarms, &listen->alarm, alarm_next(&listen->alarms));
}

static void soon(struct channel *channel)
{
    ring_at(channel, 0);
}

/* ---- Links ---- */

static void start_links(struct redlock *rl)
{
    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        struct master **link = &rl->listen.links[m];

        if (*link != NULL)
            continue;
        *link = master_new_listener(rl, m, &rl->options.masters[m], rl->listen.ev);
        if (*link != NULL) /* Else this master is not listened to. */
            master_start(*link);
    }
}

static void stop_links(struct redlock *rl)
{
    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        if (rl->listen.links[m] != NULL)
            master_free(rl->listen.links[m]);
        rl->listen.links[m] = NULL;
    }
    rl->listen.linked = rl->listen.dirty = 0;
}

static void subscribe(const struct channel *channel, unsigned master, bool on)
{
    struct redlock *rl = channel->rl;
    size_t len = wire_subscribe(rl->scratch, on, channel->mark, channel->mark_len);

    if (!(rl->listen.linked & bit(master)))
        return;
    master_say(rl->listen.links[master], rl->scratch, len);
    rl->stats.commands++;
}

/* ---- Channels ---- */

/* FNV-1a. */
static uint32_t slot_of(const char *name, size_t name_len)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name_len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash % LISTEN_TABLE;
}

static struct channel *find(const struct redlock *rl, const char *name, size_t name_len,
                            bool shared)
{
    struct channel *channel = rl->listen.table[slot_of(name, name_len)];

    while (channel != NULL &&
           (channel->shared != shared || channel->mark_len != WIRE_MARK_LEN + name_len ||
            memcmp(channel->mark + WIRE_MARK_LEN, name, name_len) != 0))
        channel = channel->next;
    return channel;
}

static struct channel *find_of(const struct redlock_lease *lease)
{
    size_t name_len;
    const char *name = lease_awaited(lease, &name_len);

    return find(lease->rl, name, name_len, lease->kind == LEASE_SHARED);
}

static struct channel *make(struct redlock *rl, const char *name, size_t name_len, bool shared)
{
    struct listen *listen = &rl->listen;
    struct channel *channel;

    if (alarm_reserve(&listen->alarms, listen->channels_len + 1) != 0)
        return NULL;
    channel = calloc(1, sizeof *channel + WIRE_MARK_LEN + name_len);
    if (channel == NULL)
        return NULL;
    channel->rl = rl;
    channel->alarm.pos = ALARM_OFF;
    channel->shared = shared;
    channel->slot = slot_of(name, name_len);
    channel->serial = ++listen->serial;
    channel->over_at = DRIFT_NEVER;
    channel->mark_len = WIRE_MARK_LEN + name_len;
    memcpy(channel->mark, WIRE_MARK, WIRE_MARK_LEN);
    memcpy(channel->mark + WIRE_MARK_LEN, name, name_len);
    wait_init(&channel->wait, rl->options.masters_len, shared);
    channel->next = listen->table[channel->slot];
    listen->table[channel->slot] = channel;
    listen->channels_len++;
    start_links(rl);
    for (unsigned m = 0; m < rl->options.masters_len; m++)
        subscribe(channel, m, true);
    return channel;
}

static struct channel *make_of(const struct redlock_lease *lease)
{
    size_t name_len;
    const char *name = lease_awaited(lease, &name_len);

    return make(lease->rl, name, name_len, lease->kind == LEASE_SHARED);
}

static void take_out(struct channel *channel)
{
    struct listen *listen = &channel->rl->listen;
    struct channel **at = &listen->table[channel->slot];

    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    ring_at(channel, DRIFT_NEVER);
    listen->channels_len--;
    free(channel);
}

/* The links stay until listen_tidy(). */
static void end(struct channel *channel)
{
    struct redlock *rl = channel->rl;
    const char *name = channel->mark + WIRE_MARK_LEN;
    bool is_needed = find(rl, name, channel->mark_len - WIRE_MARK_LEN, !channel->shared) != NULL;

    for (unsigned m = 0; m < rl->options.masters_len && !is_needed; m++)
        subscribe(channel, m, false);
    take_out(channel);
}

void listen_tidy(struct redlock *rl)
{
    if (rl->listen.channels_len == 0)
        stop_links(rl);
}

void listen_done(struct redlock *rl)
{
    for (unsigned slot = 0; slot < LISTEN_TABLE; slot++)
        while (rl->listen.table[slot] != NULL)
            take_out(rl->listen.table[slot]);
    stop_links(rl);
    alarm_done(&rl->listen.alarms);
}

/* ---- Lines ---- */

static struct wait_now now_for(const struct channel *channel)
{
    struct redlock *rl = channel->rl;
    struct wait_now now = {.now = loop_now(rl->loop), .random = client_random(rl), .up = rl->up};

    now.waits = channel->first != NULL;
    if (now.waits) {
        now.pause_min = channel->first->q.config.pause_min;
        now.pause_max = channel->first->q.config.pause_max;
    }
    return now;
}

/* With each look, lost round, and heartbeat: who did not let us listen may do so by now. */
static void ask_refused_again(const struct channel *channel)
{
    const struct redlock *rl = channel->rl;
    quorum_mask refused = rl->listen.refused & (quorum_mask)~channel->wait.hears;

    for (unsigned m = 0; m < rl->options.masters_len; m++)
        if (refused & bit(m))
            subscribe(channel, m, true);
}

static void on_lost(struct channel *channel, const struct redlock_lease *lease)
{
    const struct wait_now now = now_for(channel);

    wait_on_lost(&channel->wait, drift_until(lease->q.sent, now.now), &now);
    ask_refused_again(channel);
    channel->stirred = true;
    soon(channel);
}

/* It pauses: the channel stays as long as it does. */
static void pause_fair(struct channel *channel, const struct redlock_lease *lease)
{
    channel->over_at = DRIFT_NEVER;
    ask_refused_again(channel);
    if (place_is_due(lease_place(lease), channel->rl->up))
        soon(channel);
}

/* It sends heartbeats by itself, and only listens for its turn. */
static void join_fair(struct channel *channel, struct redlock_lease *lease)
{
    lease->next = channel->fair;
    channel->fair = lease;
    lease->waits = true;
    if (lease->q.state == QUORUM_PAUSING)
        pause_fair(channel, lease);
}

static void join(struct redlock_lease *lease)
{
    const struct permit *permit = lease_permit(lease);
    struct channel *channel;
    struct redlock_lease **at;

    lease->line = lease->taken;
    channel = find_of(lease);
    if (channel == NULL)
        channel = make_of(lease);
    if (channel == NULL)
        return; /* It tries now and then. */
    if (permit != NULL && permit->slots > channel->slots)
        channel->slots = permit->slots;
    if (lease->kind == LEASE_FAIR) {
        join_fair(channel, lease);
        return;
    }
    for (at = &channel->first; *at != NULL; at = &(*at)->next)
        continue;
    *at = lease;
    lease->next = NULL;
    lease->waits = true;
    channel->stirred = true;
    channel->over_at = DRIFT_NEVER;
    if (channel->first == lease) {
        wait_on_try(&channel->wait, lease->q.sent);
        on_lost(channel, lease);
    }
    soon(channel);
}

/* It is ours.  Who listens is told, and by who has not waited, too: others may have come. */
static void on_won(struct channel *channel, const struct redlock_lease *lease)
{
    wait_on_won(&channel->wait, lease->q.may_hold & lease->q.live & (quorum_mask)~lease->q.owing,
                channel->first != NULL);
    soon(channel);
}

static void leave(struct redlock_lease *lease)
{
    struct channel *channel = find_of(lease);
    struct redlock_lease **at = lease->kind == LEASE_FAIR ? &channel->fair : &channel->first;
    bool was_first = channel->first == lease;

    while (*at != lease)
        at = &(*at)->next;
    *at = lease->next;
    lease->next = NULL;
    lease->waits = false;
    if (lease->q.state == QUORUM_HELD && lease->kind != LEASE_FAIR)
        on_won(channel, lease);
    if (was_first)
        wait_on_turn(&channel->wait, channel->first != NULL);
    if (channel->first == NULL && channel->fair == NULL && channel->over_at == DRIFT_NEVER)
        channel->over_at = drift_add(loop_now(channel->rl->loop), LISTEN_LINGER);
    soon(channel);
}

void listen_forget(struct redlock_lease *lease)
{
    if (lease->waits)
        leave(lease);
}

/* Who would stand in a queue is put there by the very round that may come to nothing: its turn
 * may be told while that goes on, or when too few have answered in time. */
static bool is_to_join(const struct redlock_lease *lease)
{
    if (lease->rl->closing)
        return false;
    if (lease->q.state == QUORUM_PAUSING)
        return lease->q.contended || (lease->kind == LEASE_FAIR && lease_place(lease)->told != 0);
    return lease->kind == LEASE_FAIR && lease_is_waiting(lease) && find_of(lease) != NULL;
}

/* In its first round, of a lock that nobody else may have, and not by turns in a queue. */
static bool has_won(const struct redlock_lease *lease, enum quorum_state before)
{
    return (before == QUORUM_ACQUIRING || before == QUORUM_RAISING) &&
           lease->q.state == QUORUM_HELD && lease->kind != LEASE_FAIR &&
           lease->kind != LEASE_SHARED;
}

/* It was held. */
static bool is_over(const struct redlock_lease *lease, enum quorum_state before)
{
    return (before == QUORUM_HELD || before == QUORUM_EXTENDING) && lease->q.state != QUORUM_HELD &&
           lease->q.state != QUORUM_EXTENDING;
}

void listen_on_step(struct redlock_lease *lease, enum quorum_state before)
{
    enum quorum_state state = lease->q.state;
    struct channel *channel;

    if (!lease->waits) {
        if (is_to_join(lease)) {
            join(lease);
            return;
        }
        if (lease->rl->listen.channels_len == 0)
            return;
        channel = has_won(lease, before) || is_over(lease, before) ? find_of(lease) : NULL;
        if (channel != NULL && state == QUORUM_HELD)
            on_won(channel, lease);
        else if (channel != NULL)
            wait_on_over(&channel->wait);
        return;
    }
    if (!lease_is_waiting(lease)) {
        leave(lease);
        return;
    }
    if (lease->kind == LEASE_FAIR) {
        if (before == QUORUM_PAUSING && state != before)
            place_on_round(lease_place(lease));
        else if (state == QUORUM_PAUSING)
            pause_fair(find_of(lease), lease);
        return;
    }
    if (state == before)
        return;
    if (state == QUORUM_PAUSING && lease->taken != lease->line) { /* It is another that it lacks. */
        leave(lease);
        join(lease);
        return;
    }
    channel = find_of(lease);
    if (state == QUORUM_PAUSING && channel->first == lease) {
        on_lost(channel, lease);
    } else if (state == QUORUM_PAUSING) {
        channel->stirred = true;
        soon(channel);
    } else if (before == QUORUM_PAUSING && channel->first == lease) {
        wait_on_try(&channel->wait, loop_now(lease->rl->loop));
    }
}

/* ---- What to do ---- */

static void wake(struct redlock_lease *lease, drift_time until)
{
    struct quorum_event event = {.type = QUORUM_EV_WAKE, .until = until};

    lease_step(lease, &event);
    lease_reap(lease);
}

/* Those in line sleep until they are woken, or try as often as they like: all, if that has
 * changed, or who has come, or tried. */
static void settle_line(struct channel *channel, bool relies)
{
    struct redlock_lease *lease = channel->first, *next;
    drift_time now = loop_now(channel->rl->loop);

    if (relies == channel->relies && !channel->stirred)
        return;
    if (!relies && !channel->relies) { /* They do. */
        channel->stirred = false;
        return;
    }
    channel->relies = relies;
    channel->stirred = false;
    for (; lease != NULL; lease = next) {
        const struct quorum_config *config = &lease->q.config;
        drift_span range = config->pause_max - config->pause_min;
        drift_span pause =
            config->pause_min + client_random(channel->rl) * UINT64_C(1000) % (range + 1);

        next = lease->next; /* No step takes another one out of line. */
        if (lease->q.state == QUORUM_PAUSING && (!relies || lease->q.timeout < lease->q.give_up))
            wake(lease, relies ? DRIFT_NEVER : drift_add(now, pause));
    }
}

/* Who waits to be alone holds new readers off until he looks again, twice over; who has
 * given up does so no more. */
static uint32_t hold_off_ms(const struct channel *channel)
{
    const struct redlock *rl = channel->rl;
    drift_span span = 2 * rl->options.reply_timeout + DRIFT_MS;

    if (channel->shared)
        return WIRE_READER;
    if (channel->first == NULL)
        return 0;
    span = drift_add(span, 2 * WAIT_PATIENCE * channel->first->q.config.pause_max);
    return span < WIRE_MARK_MS * DRIFT_MS ? drift_to_ms(span) : WIRE_MARK_MS;
}

static void look(struct channel *channel, quorum_mask masters, bool tells)
{
    struct redlock *rl = channel->rl;
    struct master_ask ask = {
        .slot = channel->slot, .serial = channel->serial, .command = MASTER_WAIT};
    struct wire_wait args = {.mark = channel->mark,
                             .mark_len = channel->mark_len,
                             .slots = channel->slots,
                             .off_ms = hold_off_ms(channel),
                             .is_taken = tells};
    size_t len;

    if (masters == 0)
        return;
    len = wire_wait(rl->scratch, &args);
    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        if (!(masters & bit(m)))
            continue;
        master_send(rl->masters[m], &ask, rl->scratch, len);
        rl->stats.commands++;
    }
    ask_refused_again(channel);
}

static void try(struct channel *channel)
{
    struct redlock_lease *lease = channel->first;

    wake(lease, 0);
    client_write(channel->rl); /* It is a race: not after all else that came in this turn. */
    if (channel->first != lease || lease->q.state != QUORUM_PAUSING)
        return;
    wait_on_try(&channel->wait, loop_now(channel->rl->loop)); /* There was nobody to ask. */
    on_lost(channel, lease);
}

/* Those whose turn it is begin their rounds, at once: others wait for that. */
static void call(struct channel *channel)
{
    struct redlock_lease *lease = channel->fair, *next;
    bool any = false;

    for (; lease != NULL; lease = next) {
        next = lease->next; /* As above. */
        if (lease->q.state != QUORUM_PAUSING || !place_is_due(lease_place(lease), channel->rl->up))
            continue;
        place_on_round(lease_place(lease));
        wake(lease, 0);
        any = true;
    }
    if (any)
        client_write(channel->rl);
}

/* From an outermost event only. */
static void run(struct channel *channel)
{
    struct wait_now now = now_for(channel);
    struct wait_actions actions;

    if (now.now == DRIFT_NEVER)
        return; /* Without a clock nothing ends. */
    ring_at(channel, DRIFT_NEVER);
    call(channel);
    now.up = channel->rl->up;
    if (channel->first != NULL && channel->first->q.state != QUORUM_PAUSING)
        return; /* Until its round is over. */
    wait_next(&channel->wait, &now, &actions);
    look(channel, actions.tell, true);
    look(channel, actions.look, false);
    if (channel->first == NULL) {
        if (channel->fair == NULL) /* Else these look by themselves. */
            ring_at(channel, channel->over_at);
        return;
    }
    settle_line(channel, actions.relies);
    if (channel->alarm.pos != ALARM_OFF)
        return; /* Somebody has left the line meanwhile: see soon(). */
    if (actions.try_at <= now.now)
        try(channel);
    else
        ring_at(channel, actions.wake_at);
}

void listen_on_alarm(struct redlock *rl)
{
    drift_time now = loop_now(rl->loop);
    uint32_t turns = rl->listen.channels_len; /* What is due again at once is for the next turn. */
    struct alarm *alarm;

    while (turns-- > 0 && (alarm = alarm_ring(&rl->listen.alarms, now)) != NULL) {
        struct channel *channel = channel_of(alarm);

        if (channel->first == NULL && channel->fair == NULL && now >= channel->over_at)
            end(channel);
        else
            run(channel);
    }
    alarm_set(&rl->alarms, &rl->listen.alarm, alarm_next(&rl->listen.alarms));
}

/* ---- Events ---- */

static void hears(struct channel *channel, unsigned master, bool on)
{
    wait_on_hears(&channel->wait, master, on);
    if (on)
        fair_on_hears(channel->fair, master);
    soon(channel);
}

void listen_on_link(struct redlock *rl, unsigned master, bool up)
{
    rl->listen.linked &= (quorum_mask)~bit(master);
    rl->listen.linked |= up ? bit(master) : 0;
    for (unsigned slot = 0; slot < LISTEN_TABLE; slot++) {
        struct channel *channel = rl->listen.table[slot];

        for (; channel != NULL; channel = channel->next) {
            if (up)
                subscribe(channel, master, true);
            else
                hears(channel, master, false);
        }
    }
}

void listen_on_break(struct redlock *rl, unsigned master)
{
    for (unsigned slot = 0; slot < LISTEN_TABLE && rl->listen.channels_len > 0; slot++)
        for (struct channel *channel = rl->listen.table[slot]; channel != NULL;
             channel = channel->next) {
            wait_on_link(&channel->wait, master);
            soon(channel);
        }
}

/* A word, a space, and a number, and nothing else. */
static bool parse(const char *text, const char *word, uint64_t max, uint64_t *ret_number)
{
    size_t len = strlen(word), digits;

    if (strncmp(text, word, len) != 0)
        return false;
    digits = strspn(text + len, "0123456789");
    if (digits == 0 || digits > 10 || text[len + digits] != '\0')
        return false;
    *ret_number = strtoull(text + len, NULL, 10);
    return *ret_number <= max;
}

/* Who waits in a queue has the same teller as who does not. */
static void free_fair(struct channel *channel, unsigned master)
{
    quorum_mask of = wait_speaks_for(&channel->wait, master);

    for (unsigned m = 0; m < channel->rl->options.masters_len; m++)
        if (of & bit(m))
            fair_on_free(channel->fair, m);
}

/* What is told by whoever may publish: the worst that it can do is a round in vain, or that who
 * waits sleeps to the next look. */
static void on_message(struct channel *channel, unsigned master, const char *text)
{
    drift_time now = loop_now(channel->rl->loop);
    uint64_t number;

    if (strncmp(text, "next ", 5) == 0) {
        fair_on_next(channel->fair, master, text + 5);
        call(channel);
        return;
    }
    if (parse(text, "free ", UINT32_MAX, &number)) {
        free_fair(channel, master);
        wait_on_free(&channel->wait, master, (unsigned)number, now);
    } else if (parse(text, "held ", UINT32_MAX, &number)) {
        wait_on_held(&channel->wait, master, (uint32_t)number, now);
    } else if (parse(text, "taken ", UINT32_MAX, &number)) {
        wait_on_taken(&channel->wait, master, (uint32_t)number, now);
    } else {
        return;
    }
    run(channel);
}

/* It does not let us listen to one name or to all; so for that it is not heard. */
static void on_refusal(struct redlock *rl, unsigned master, const char *text)
{
    if (!(rl->listen.refused & bit(master)))
        client_log(rl, REDLOCK_LOG_WARNING,
                   "master %u (%s): does not let us listen for locks that are released: %s",
                   master + 1, master_name(rl->listen.links[master]), text);
    rl->listen.refused |= bit(master);
}

void listen_on_push(struct redlock *rl, unsigned master, const struct reply *reply)
{
    bool confirms, ends;
    const char *name;
    size_t name_len;

    if (reply->type == REPLY_ERROR) {
        on_refusal(rl, master, reply->text);
        return;
    }
    if (reply->type != REPLY_ARRAY || reply->before == NULL)
        return;
    confirms = strcmp(reply->before, "subscribe") == 0;
    ends = strcmp(reply->before, "unsubscribe") == 0;
    name = confirms || ends ? reply->text : reply->before;
    name_len = confirms || ends ? reply->text_len : reply->before_len;
    if (name_len <= WIRE_MARK_LEN || memcmp(name, WIRE_MARK, WIRE_MARK_LEN) != 0)
        return;
    for (unsigned shared = 0; shared <= 1 && !ends; shared++) {
        struct channel *channel =
            find(rl, name + WIRE_MARK_LEN, name_len - WIRE_MARK_LEN, shared != 0);

        if (channel != NULL && confirms)
            hears(channel, master, true);
        else if (channel != NULL)
            on_message(channel, master, reply->text);
    }
}

void listen_flush(struct redlock *rl)
{
    while (rl->listen.dirty != 0) {
        unsigned m = (unsigned)__builtin_ctz(rl->listen.dirty);

        rl->listen.dirty &= (quorum_mask)~bit(m);
        master_flush(rl->listen.links[m]);
    }
}

void listen_write(struct redlock *rl)
{
    quorum_mask left = rl->listen.dirty;

    while (left != 0) {
        unsigned m = (unsigned)__builtin_ctz(left);

        left &= (quorum_mask)(left - 1);
        rl->listen.dirty &= (quorum_mask)~bit(m);
        master_write(rl->listen.links[m]);
    }
}

void listen_on_look(struct redlock *rl, unsigned master, uint32_t slot, uint32_t serial,
                    const struct reply *reply)
{
    struct channel *channel = slot < LISTEN_TABLE ? rl->listen.table[slot] : NULL;
    int64_t pttl_ms = reply->type == REPLY_INTEGER ? reply->integer : WAIT_NO_ANSWER;

    while (channel != NULL && channel->serial != serial)
        channel = channel->next;
    if (channel == NULL)
        return;
    wait_on_look(&channel->wait, master, pttl_ms, loop_now(rl->loop));
    run(channel);
}
