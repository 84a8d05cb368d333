/*
 * lines.c - channels, lines, turns.
 *
 * A lease is stepped only from the outermost events - something was told, a look was
 * answered, the alarm rang (run) - and never while another one is: what a step changes
 * is noted, and the alarm of its channel is set to ring at once (soon).
 */
#include "redlock/line/lines.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/core/place.h"
#include "redlock/core/wait.h"
#include "redlock/lease/lease.h"
#include "redlock/wire/reply.h"

/* One name that leases wait for, or did a moment ago; readers by themselves. */
struct channel {
    struct lines *lines;
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

/* Of a lease that waits in the masters' queue. */
static struct place *place_of(const struct redlock_lease *lease)
{
    return lease_extra(lease);
}

/* ---- Alarms ---- */

static struct channel *channel_of(struct alarm *alarm)
{
    void *channel = (char *)alarm - offsetof(struct channel, alarm);

    return channel;
}

static void ring_at(struct channel *channel, drift_time at)
{
    struct lines *lines = channel->lines;

    alarm_set(&lines->alarms, &channel->alarm, at);
    alarm_set(&lines->env->alarms, &lines->alarm, alarm_next(&lines->alarms));
}

static void soon(struct channel *channel)
{
    ring_at(channel, 0);
}

static void subscribe(const struct channel *channel, unsigned master, bool on)
{
    struct lines *lines = channel->lines;
    char *scratch = lines->masters->peers.scratch;
    size_t len = wire_subscribe(scratch, on, channel->mark, channel->mark_len);

    lines->env->stats.commands += listener_say(&lines->listener, master, scratch, len);
}

/* ---- Channels ---- */

/* FNV-1a. */
static uint32_t slot_of(const char *name, size_t name_len)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < name_len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash % LINES_TABLE;
}

static struct channel *find(const struct lines *lines, const char *name, size_t name_len,
                            bool shared)
{
    struct channel *channel = lines->table[slot_of(name, name_len)];

    while (channel != NULL &&
           (channel->shared != shared || channel->mark_len != WIRE_MARK_LEN + name_len ||
            memcmp(channel->mark + WIRE_MARK_LEN, name, name_len) != 0))
        channel = channel->next;
    return channel;
}

static struct channel *find_of(const struct lines *lines, const struct redlock_lease *lease)
{
    size_t name_len;
    const char *name = lease_awaited(lease, &name_len);

    return find(lines, name, name_len, lease_kind(lease)->shared);
}

static struct channel *make(struct lines *lines, const char *name, size_t name_len, bool shared)
{
    struct channel *channel;

    if (alarm_reserve(&lines->alarms, lines->channels_len + 1) != 0)
        return NULL;
    channel = calloc(1, sizeof *channel + WIRE_MARK_LEN + name_len);
    if (channel == NULL)
        return NULL;
    channel->lines = lines;
    channel->alarm.pos = ALARM_OFF;
    channel->shared = shared;
    channel->slot = slot_of(name, name_len);
    channel->serial = ++lines->serial;
    channel->over_at = DRIFT_NEVER;
    channel->mark_len = WIRE_MARK_LEN + name_len;
    memcpy(channel->mark, WIRE_MARK, WIRE_MARK_LEN);
    memcpy(channel->mark + WIRE_MARK_LEN, name, name_len);
    wait_init(&channel->wait, lines->masters->peers.len, shared);
    channel->next = lines->table[channel->slot];
    lines->table[channel->slot] = channel;
    lines->channels_len++;
    listener_start(&lines->listener);
    for (unsigned m = 0; m < lines->masters->peers.len; m++)
        subscribe(channel, m, true);
    return channel;
}

static struct channel *make_of(struct lines *lines, const struct redlock_lease *lease)
{
    size_t name_len;
    const char *name = lease_awaited(lease, &name_len);

    return make(lines, name, name_len, lease_kind(lease)->shared);
}

static void take_out(struct channel *channel)
{
    struct lines *lines = channel->lines;
    struct channel **at = &lines->table[channel->slot];

    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    ring_at(channel, DRIFT_NEVER);
    lines->channels_len--;
    free(channel);
}

/* The links stay until lines_tidy(). */
static void end(struct channel *channel)
{
    struct lines *lines = channel->lines;
    const char *name = channel->mark + WIRE_MARK_LEN;
    bool is_needed = find(lines, name, channel->mark_len - WIRE_MARK_LEN, !channel->shared) != NULL;

    for (unsigned m = 0; m < lines->masters->peers.len && !is_needed; m++)
        subscribe(channel, m, false);
    take_out(channel);
}

void lines_tidy(struct lines *lines)
{
    if (lines->channels_len == 0)
        listener_stop(&lines->listener);
}

void lines_done(struct lines *lines)
{
    for (unsigned slot = 0; slot < LINES_TABLE; slot++)
        while (lines->table[slot] != NULL)
            take_out(lines->table[slot]);
    listener_stop(&lines->listener);
    alarm_done(&lines->alarms);
}

/* ---- Lines ---- */

static struct wait_now now_for(const struct channel *channel)
{
    const struct lines *lines = channel->lines;
    struct wait_now now = {.now = env_now(lines->env),
                           .random = env_random(lines->env),
                           .up = lines->masters->peers.up};

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
    const struct lines *lines = channel->lines;
    quorum_mask refused = lines->refused & (quorum_mask)~channel->wait.hears;

    for (unsigned m = 0; m < lines->masters->peers.len; m++)
        if (refused & mask_of(m))
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
    if (place_is_due(place_of(lease), channel->lines->masters->peers.up))
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

static void join(struct lines *lines, struct redlock_lease *lease)
{
    const struct kind *kind = lease_kind(lease);
    struct channel *channel;
    struct redlock_lease **at;

    lease->line = lease->taken;
    channel = find_of(lines, lease);
    if (channel == NULL)
        channel = make_of(lines, lease);
    if (channel == NULL)
        return; /* It tries now and then. */
    if (kind->slots != NULL && kind->slots(lease) > channel->slots)
        channel->slots = kind->slots(lease);
    if (kind->queued) {
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

static void leave(struct lines *lines, struct redlock_lease *lease)
{
    bool queued = lease_kind(lease)->queued;
    struct channel *channel = find_of(lines, lease);
    struct redlock_lease **at = queued ? &channel->fair : &channel->first;
    bool was_first = channel->first == lease;

    while (*at != lease)
        at = &(*at)->next;
    *at = lease->next;
    lease->next = NULL;
    lease->waits = false;
    if (lease->q.state == QUORUM_HELD && !queued)
        on_won(channel, lease);
    if (was_first)
        wait_on_turn(&channel->wait, channel->first != NULL);
    if (channel->first == NULL && channel->fair == NULL && channel->over_at == DRIFT_NEVER)
        channel->over_at = drift_add(env_now(lines->env), LINES_LINGER);
    soon(channel);
}

void lines_forget(struct lines *lines, struct redlock_lease *lease)
{
    if (lease->waits)
        leave(lines, lease);
}

/* Who would stand in a queue is put there by the very round that may come to nothing: its turn
 * may be told while that goes on, or when too few have answered in time. */
static bool is_to_join(const struct lines *lines, const struct redlock_lease *lease)
{
    bool queued = lease_kind(lease)->queued;

    if (lines->env->closing)
        return false;
    if (lease->q.state == QUORUM_PAUSING)
        return lease->q.contended || (queued && place_of(lease)->told != 0);
    return queued && lease_is_waiting(lease) && find_of(lines, lease) != NULL;
}

/* In its first round, of a lock that nobody else may have, and not by turns in a queue. */
static bool has_won(const struct redlock_lease *lease, enum quorum_state before)
{
    return (before == QUORUM_ACQUIRING || before == QUORUM_RAISING) &&
           lease->q.state == QUORUM_HELD && !lease_kind(lease)->queued &&
           !lease_kind(lease)->shared;
}

/* It was held. */
static bool is_over(const struct redlock_lease *lease, enum quorum_state before)
{
    return (before == QUORUM_HELD || before == QUORUM_EXTENDING) && lease->q.state != QUORUM_HELD &&
           lease->q.state != QUORUM_EXTENDING;
}

/* The lease stands in no line. */
static void on_step_outside(struct lines *lines, struct redlock_lease *lease,
                            enum quorum_state before)
{
    struct channel *channel = NULL;

    if (is_to_join(lines, lease)) {
        join(lines, lease);
        return;
    }
    if (has_won(lease, before) || is_over(lease, before))
        channel = find_of(lines, lease);
    if (channel != NULL && lease->q.state == QUORUM_HELD)
        on_won(channel, lease);
    else if (channel != NULL)
        wait_on_over(&channel->wait);
}

static void on_step_in_line(struct lines *lines, struct redlock_lease *lease,
                            enum quorum_state before)
{
    enum quorum_state state = lease->q.state;
    struct channel *channel;

    if (!lease_is_waiting(lease)) {
        leave(lines, lease);
        return;
    }
    if (lease_kind(lease)->queued) {
        if (before == QUORUM_PAUSING && state != before)
            place_on_round(place_of(lease));
        else if (state == QUORUM_PAUSING)
            pause_fair(find_of(lines, lease), lease);
        return;
    }
    if (state == before)
        return;
    if (state == QUORUM_PAUSING && lease->taken != lease->line) { /* It is another that it lacks. */
        leave(lines, lease);
        join(lines, lease);
        return;
    }
    channel = find_of(lines, lease);
    if (state == QUORUM_PAUSING && channel->first == lease) {
        on_lost(channel, lease);
    } else if (state == QUORUM_PAUSING) {
        channel->stirred = true;
        soon(channel);
    } else if (before == QUORUM_PAUSING && channel->first == lease) {
        wait_on_try(&channel->wait, env_now(lines->env));
    }
}

/* Where nobody waits for anything, only a lease that pauses can begin to. */
void lines_on_step(struct lines *lines, struct redlock_lease *lease, enum quorum_state before)
{
    if (lease->waits)
        on_step_in_line(lines, lease, before);
    else if (lines->channels_len > 0 || lease->q.state == QUORUM_PAUSING)
        on_step_outside(lines, lease, before);
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
    drift_time now = env_now(channel->lines->env);

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
            config->pause_min + env_random(channel->lines->env) * UINT64_C(1000) % (range + 1);

        next = lease->next; /* No step takes another one out of line. */
        if (lease->q.state == QUORUM_PAUSING && (!relies || lease->q.timeout < lease->q.give_up))
            wake(lease, relies ? DRIFT_NEVER : drift_add(now, pause));
    }
}

/* Who waits to be alone holds new readers off until he looks again, twice over; who has
 * given up does so no more. */
static uint32_t hold_off_ms(const struct channel *channel)
{
    drift_span span = 2 * channel->lines->listener.config.reply_timeout + DRIFT_MS;

    if (channel->shared)
        return WIRE_READER;
    if (channel->first == NULL)
        return 0;
    span = drift_add(span, 2 * WAIT_PATIENCE * channel->first->q.config.pause_max);
    return span < WIRE_MARK_MS * DRIFT_MS ? drift_to_ms(span) : WIRE_MARK_MS;
}

static void look(struct channel *channel, quorum_mask masters, bool tells)
{
    struct masters *all = channel->lines->masters;
    char *scratch = all->peers.scratch;
    const struct ask ask = {.slot = channel->slot, .serial = channel->serial, .what = WHAT_WAIT};
    struct wire_wait args = {.mark = channel->mark,
                             .mark_len = channel->mark_len,
                             .slots = channel->slots,
                             .off_ms = hold_off_ms(channel),
                             .is_taken = tells};
    size_t len;

    if (masters == 0)
        return;
    len = wire_wait(scratch, &args);
    for (unsigned m = 0; m < all->peers.len; m++)
        if (masters & mask_of(m))
            masters_send(all, m, &ask, scratch, len);
    ask_refused_again(channel);
}

static void write_now(struct lines *lines)
{
    masters_write(lines->masters);
    listener_write(&lines->listener);
}

static void try(struct channel *channel)
{
    struct redlock_lease *lease = channel->first;

    wake(lease, 0);
    write_now(channel->lines); /* It is a race: not after all else that came in this turn. */
    if (channel->first != lease || lease->q.state != QUORUM_PAUSING)
        return;
    wait_on_try(&channel->wait, env_now(channel->lines->env)); /* There was nobody to ask. */
    on_lost(channel, lease);
}

/* Those whose turn it is begin their rounds, at once: others wait for that. */
static void call(struct channel *channel)
{
    struct redlock_lease *lease = channel->fair, *next;
    bool any = false;

    for (; lease != NULL; lease = next) {
        next = lease->next; /* As above. */
        if (lease->q.state != QUORUM_PAUSING ||
            !place_is_due(place_of(lease), channel->lines->masters->peers.up))
            continue;
        place_on_round(place_of(lease));
        wake(lease, 0);
        any = true;
    }
    if (any)
        write_now(channel->lines);
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
    now.up = channel->lines->masters->peers.up;
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

static void ring(struct lines *lines)
{
    drift_time now = env_now(lines->env);
    uint32_t turns = lines->channels_len; /* What is due again at once is for the next turn. */
    struct alarm *alarm;

    while (turns-- > 0 && (alarm = alarm_ring(&lines->alarms, now)) != NULL) {
        struct channel *channel = channel_of(alarm);

        if (channel->first == NULL && channel->fair == NULL && now >= channel->over_at)
            end(channel);
        else
            run(channel);
    }
    alarm_set(&lines->env->alarms, &lines->alarm, alarm_next(&lines->alarms));
}

bool lines_on_alarm(struct lines *lines, const struct alarm *alarm)
{
    if (alarm != &lines->alarm)
        return false;
    ring(lines);
    return true;
}

/* ---- Those in the masters' queue ---- */

/* From now on this master tells them. */
static void on_named_all(struct redlock_lease *list, unsigned master)
{
    for (struct redlock_lease *lease = list; lease != NULL; lease = lease->next)
        place_on_named(place_of(lease), master);
}

/* A master tells whose turn it is. */
static void on_next(struct redlock_lease *list, unsigned master, const char *waiter)
{
    for (struct redlock_lease *lease = list; lease != NULL; lease = lease->next)
        if (strcmp(place_of(lease)->waiter, waiter) == 0)
            place_on_named(place_of(lease), master);
}

/* The key is free, and the client that released it knows of no queue.  Of those here only the
 * first can be the first of all. */
static void on_free(struct redlock_lease *list, unsigned master)
{
    struct place *first = NULL;

    for (struct redlock_lease *lease = list; lease != NULL; lease = lease->next)
        if (first == NULL || place_is_before(place_of(lease), first))
            first = place_of(lease);
    if (first != NULL)
        place_on_named(first, master);
}

/* ---- Events ---- */

static void hears(struct channel *channel, unsigned master, bool on)
{
    wait_on_hears(&channel->wait, master, on);
    if (on)
        on_named_all(channel->fair, master);
    soon(channel);
}

static void on_link(void *cookie, unsigned master, bool up)
{
    struct lines *lines = cookie;

    for (unsigned slot = 0; slot < LINES_TABLE; slot++) {
        struct channel *channel = lines->table[slot];

        for (; channel != NULL; channel = channel->next) {
            if (up)
                subscribe(channel, master, true);
            else
                hears(channel, master, false);
        }
    }
}

void lines_on_break(struct lines *lines, unsigned master)
{
    for (unsigned slot = 0; slot < LINES_TABLE && lines->channels_len > 0; slot++)
        for (struct channel *channel = lines->table[slot]; channel != NULL;
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

    for (unsigned m = 0; m < channel->lines->masters->peers.len; m++)
        if (of & mask_of(m))
            on_free(channel->fair, m);
}

/* What is told by whoever may publish: the worst that it can do is a round in vain, or that who
 * waits sleeps to the next look. */
static void on_message(struct channel *channel, unsigned master, const char *text)
{
    drift_time now = env_now(channel->lines->env);
    uint64_t number;

    if (strncmp(text, "next ", 5) == 0) {
        on_next(channel->fair, master, text + 5);
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
static void on_refusal(struct lines *lines, unsigned master, const char *text)
{
    if (!(lines->refused & mask_of(master)))
        env_log(lines->env, REDLOCK_LOG_WARNING,
                "master %u (%s): does not let us listen for locks that are released: %s",
                master + 1, masters_name(lines->masters, master), text);
    lines->refused |= mask_of(master);
}

static void on_push(void *cookie, unsigned master, const struct reply *reply)
{
    struct lines *lines = cookie;
    bool confirms, ends;
    const char *name;
    size_t name_len;

    if (reply->type == REPLY_ERROR) {
        on_refusal(lines, master, reply->text);
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
            find(lines, name + WIRE_MARK_LEN, name_len - WIRE_MARK_LEN, shared != 0);

        if (channel != NULL && confirms)
            hears(channel, master, true);
        else if (channel != NULL)
            on_message(channel, master, reply->text);
    }
}

void lines_on_look(struct lines *lines, unsigned master, const struct ask *ask,
                   const struct reply *reply)
{
    struct channel *channel = ask->slot < LINES_TABLE ? lines->table[ask->slot] : NULL;
    int64_t pttl_ms = reply->type == REPLY_INTEGER ? reply->integer : WAIT_NO_ANSWER;

    while (channel != NULL && channel->serial != ask->serial)
        channel = channel->next;
    if (channel == NULL)
        return;
    wait_on_look(&channel->wait, master, pttl_ms, env_now(lines->env));
    run(channel);
}

/* ---- Begin ---- */

static void on_done(void *cookie)
{
    struct lines *lines = cookie;

    lines->on_done(lines->cookie);
}

static const struct listener_events listener_events = {
    .on_link = on_link,
    .on_push = on_push,
    .on_done = on_done,
};

int lines_init(struct lines *lines, struct masters *masters, const struct listener_config *config,
               void (*on_quiet)(void *cookie), void *cookie)
{
    lines->env = config->env;
    lines->masters = masters;
    lines->on_done = on_quiet;
    lines->cookie = cookie;
    lines->alarm.pos = ALARM_OFF;
    listener_init(&lines->listener, config, &listener_events, lines);
    return alarm_reserve(&lines->env->alarms, 3); /* This one, and those of the masters. */
}
