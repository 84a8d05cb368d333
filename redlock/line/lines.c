/*
 * lines.c - which lease of the client's queue begins its round, and when.
 *
 * Only three events step a lease here: an announcement, the answer to a query, and the alarm of a
 * channel (run).  None of them happens within the step of another lease.  A step only notes changes
 * in the channel, and makes the channel's alarm ring at once (channel_ring_soon).
 */
#include "redlock/line/lines.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/core/wait.h"
#include "redlock/lease/lease.h"
#include "redlock/line/turns.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/vote.h"

/* ---- The client's queue ---- */

/* wait_on_lost() reads no more than this.  run() adds the masters. */
static struct wait_now now_for(const struct channel *channel)
{
    struct env *env = channel->all->env;
    struct wait_now now = {.now = env_now(env), .random = env_random(env)};

    now.waits = channel->first != NULL;
    if (now.waits) {
        now.pause_min = channel->first->q.config.pause_min;
        now.pause_max = channel->first->q.config.pause_max;
    }
    return now;
}

static void on_lost(struct channel *channel, const struct redlock_lease *lease)
{
    const struct wait_now now = now_for(channel);

    wait_on_lost(&channel->wait, drift_until(lease->q.sent, now.now), &now);
    channel_subscribe_refused(channel);
    channel->stirred = true;
    channel_ring_soon(channel);
}

/* losses: rounds that the lease lost in a row while it waited for another name. */
static void join(struct lines *lines, struct redlock_lease *lease, unsigned losses)
{
    const struct kind *kind = lease_kind(lease);
    struct channel *channel;

    lease->line = lease->taken;
    channel = channel_get(&lines->channels, lease);
    if (channel == NULL)
        return; /* Memory ran out.  The lease tries by itself. */
    if (kind->slots != NULL && kind->slots(lease) > channel->slots)
        channel->slots = kind->slots(lease);
    channel->wait.permits = channel->slots > 0;
    if (kind->queued) {
        turns_join(channel, lease);
        return;
    }
    if (channel->first == NULL)
        channel->first = lease;
    else
        channel->last->next = lease;
    channel->last = lease;
    lease->next = NULL;
    lease->waits = true;
    channel->stirred = true;
    channel->over_at = DRIFT_NEVER;
    channel_set_grouped(channel, channel_has_groups(channel));
    if (channel->first == lease) {
        wait_on_try(&channel->wait, lease->q.sent);
        wait_on_moved(&channel->wait, losses);
        on_lost(channel, lease);
    }
    channel_ring_soon(channel);
}

/* A lease has won.  Waiters are notified even if it did not wait: others may wait by now. */
static void on_won(struct channel *channel, const struct redlock_lease *lease)
{
    channel->next_group = lease_token(lease)[2];
    wait_on_won(&channel->wait, lease->q.may_hold & lease->q.live & (quorum_mask)~lease->q.owing,
                channel->first != NULL);
    channel_ring_soon(channel);
}

static void leave(struct lines *lines, struct redlock_lease *lease)
{
    bool queued = lease_kind(lease)->queued;
    struct channel *channel = channel_find_of(&lines->channels, lease);
    struct redlock_lease **at = queued ? &channel->fair : &channel->first;
    struct redlock_lease *before = NULL;
    bool was_first = channel->first == lease;

    for (; *at != lease; at = &before->next) /* Mostly the first leaves. */
        before = *at;
    *at = lease->next;
    if (channel->last == lease)
        channel->last = before;
    lease->next = NULL;
    lease->waits = false;
    if (lease->q.state == QUORUM_HELD && !queued)
        on_won(channel, lease);
    if (channel->first == NULL && !channel->is_for_all)
        channel_set_grouped(channel, false);
    if (was_first)
        wait_on_turn(&channel->wait, channel->first != NULL);
    if (channel->first == NULL && channel->fair == NULL && channel->over_at == DRIFT_NEVER)
        channel->over_at = drift_add(env_now(lines->channels.env), LINES_LINGER);
    channel_ring_soon(channel);
}

void lines_forget(struct lines *lines, struct redlock_lease *lease)
{
    if (lease->waits)
        leave(lines, lease);
}

/* True if the lease is to wait for a message from now on.  A fair lease enters the queues of the
 * masters by its first round.  So its turn may be announced before that round is over, or although
 * no answer of the round has come. */
static bool is_to_join(const struct lines *lines, const struct redlock_lease *lease)
{
    bool queued = lease_kind(lease)->queued;

    if (lines->channels.env->closing)
        return false;
    if (lease->q.state == QUORUM_PAUSING)
        return lease->q.contended || (queued && turns_may_be_queued(lease));
    return queued && lease_is_waiting(lease) && channel_find_of(&lines->channels, lease) != NULL;
}

/* True if a lease has won its first round.  Fair leases and readers do not count. */
static bool has_won(const struct redlock_lease *lease, enum quorum_state before)
{
    return (before == QUORUM_ACQUIRING || before == QUORUM_RAISING) &&
           lease->q.state == QUORUM_HELD && !lease_kind(lease)->queued &&
           !lease_kind(lease)->shared;
}

/* True if a lease was held until this step. */
static bool is_over(const struct redlock_lease *lease, enum quorum_state before)
{
    return (before == QUORUM_HELD || before == QUORUM_EXTENDING) && lease->q.state != QUORUM_HELD &&
           lease->q.state != QUORUM_EXTENDING;
}

/* A step of a lease that waits in no channel. */
static void on_step_outside(struct lines *lines, struct redlock_lease *lease,
                            enum quorum_state before)
{
    struct channel *channel = NULL;

    if (is_to_join(lines, lease)) {
        join(lines, lease, 0);
        return;
    }
    if (has_won(lease, before) || is_over(lease, before))
        channel = channel_find_of(&lines->channels, lease);
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
            turns_on_round(&lines->channels, lease);
        else if (state == QUORUM_PAUSING)
            turns_on_pause(channel_find_of(&lines->channels, lease), lease);
        return;
    }
    if (state == before)
        return;
    channel = channel_find_of(&lines->channels, lease);
    if (state == QUORUM_PAUSING && lease->taken != lease->line) { /* It waits for another name. */
        unsigned losses = channel->first == lease ? channel->wait.losses : 0;

        leave(lines, lease);
        join(lines, lease, losses);
        return;
    }
    if (state == QUORUM_PAUSING && channel->first == lease) {
        on_lost(channel, lease);
    } else if (state == QUORUM_PAUSING) {
        channel->stirred = true;
        channel_ring_soon(channel);
    } else if (before == QUORUM_PAUSING && channel->first == lease) {
        wait_on_try(&channel->wait, env_now(lines->channels.env));
    }
}

void lines_on_step(struct lines *lines, struct redlock_lease *lease, enum quorum_state before)
{
    if (lease->waits)
        on_step_in_line(lines, lease, before);
    else
        on_step_outside(lines, lease, before);
}

/* ---- What to do ---- */

/* Let the leases in the client's queue sleep until they are woken (relies), or let each try after
 * a pause.  Nothing is due if relies and the queue are as before. */
static void settle_line(struct channel *channel, bool relies)
{
    struct redlock_lease *lease = channel->first, *next;
    drift_time now = env_now(channel->all->env);

    if (relies == channel->relies && !channel->stirred)
        return;
    if (!relies && !channel->relies) { /* They try already. */
        channel->stirred = false;
        return;
    }
    channel->relies = relies;
    channel->stirred = false;
    for (; lease != NULL; lease = next) {
        const struct quorum_config *config = &lease->q.config;
        drift_span range = config->pause_max - config->pause_min;
        drift_span pause =
            config->pause_min + env_random(channel->all->env) * UINT64_C(1000) % (range + 1);

        next = lease->next; /* A step takes out no other lease. */
        if (lease->q.state == QUORUM_PAUSING &&
            (!relies || lease->q.timeout < quorum_give_up(&lease->q)))
            lease_wake(lease, relies ? DRIFT_NEVER : drift_add(now, pause));
    }
}

/* For how long a query of a writer holds new readers off: twice the time to its next query.  A
 * client of which no lease waits any more holds none off. */
static uint32_t hold_off_ms(const struct channel *channel)
{
    drift_span span = 2 * channel->all->listener.config.reply_timeout + DRIFT_MS;

    if (channel->shared)
        return WIRE_READER;
    if (channel->first == NULL)
        return 0;
    span = drift_add(span, 2 * WAIT_PATIENCE * channel->first->q.config.pause_max);
    return span < WIRE_MARK_MS * DRIFT_MS ? drift_to_ms(span) : WIRE_MARK_MS;
}

/* tells: a lease of this client has just got the lock, and the masters announce it. */
static void query(const struct channel *channel, quorum_mask to, bool tells, bool in_full)
{
    struct masters *all = channel->all->masters;
    char *scratch = all->peers.scratch;
    const struct ask ask = {
        .slot = channel->slot,
        .serial = channel->serial,
        .number = tells,
        .what = WHAT_WAIT,
        .flags = in_full ? ASK_IN_FULL : 0,
    };
    struct wire_wait args = {.mark = channel->mark,
                             .mark_len = channel->mark_len,
                             .slots = channel->slots,
                             .off_ms = hold_off_ms(channel),
                             .is_taken = tells};
    size_t len;

    if (!channel->is_for_all && channel_has_groups(channel)) {
        args.groups[0] = channel_group(channel);
        args.groups[1] = channel->next_group;
    }
    len = wire_wait(scratch, in_full, &args);
    for (unsigned m = 0; m < all->peers.len; m++)
        if (to & mask_of(m))
            masters_send(all, m, &ask, scratch, len);
}

static void look(const struct channel *channel, quorum_mask masters, bool tells)
{
    if (masters == 0)
        return;
    query(channel, masters, tells, false);
    channel_subscribe_refused(channel);
}

static void try(struct channel *channel)
{
    struct redlock_lease *lease = channel->first;

    lease_wake(lease, 0);
    channel_write(channel->all); /* Other clients compete: do not wait for the end of the turn. */
    if (channel->first != lease || lease->q.state != QUORUM_PAUSING)
        return;
    wait_on_try(&channel->wait, env_now(channel->all->env)); /* The round failed at once. */
    on_lost(channel, lease);
}

/* This steps leases, so it must not be called within the step of a lease. */
static void run(struct channel *channel)
{
    struct wait_now now = now_for(channel);
    struct wait_actions actions;

    if (now.now == DRIFT_NEVER)
        return; /* Without a clock nothing is due. */
    channel_ring_at(channel, DRIFT_NEVER);
    turns_call(channel, now.now);
    if (channel->first != NULL && channel->first->q.state != QUORUM_PAUSING)
        return; /* The first lease is in a round. */
    now.up = channel->all->masters->peers.up;
    if (now.waits)
        now.barred = masters_barred(channel->all->masters);
    wait_next(&channel->wait, &now, &actions);
    look(channel, actions.tell, true);
    look(channel, actions.look, false);
    if (channel->first == NULL) {
        if (channel->fair == NULL) /* Otherwise fair leases still wait. */
            channel_ring_at(channel, channel->over_at);
        return;
    }
    settle_line(channel, actions.relies);
    if (channel->alarm.pos != ALARM_OFF)
        return; /* A step above has made it ring soon. */
    if (actions.try_at <= now.now)
        try(channel);
    else
        channel_ring_at(channel, actions.wake_at);
}

static void ring(struct lines *lines)
{
    struct channels *channels = &lines->channels;
    drift_time now = env_now(channels->env);
    uint32_t turns = channels->len; /* A channel that is due again waits for the next turn. */
    struct channel *channel;

    while (turns-- > 0 && (channel = channel_rings(channels, now)) != NULL) {
        if (channel->first == NULL && channel->fair == NULL && now >= channel->over_at)
            channel_end(channel);
        else
            run(channel);
    }
    channels->gathers = false;
    channel_set_alarm(channels);
}

bool lines_on_alarm(struct lines *lines, const struct alarm *alarm)
{
    if (alarm != &lines->channels.alarm)
        return false;
    ring(lines);
    return true;
}

/* ---- Events ---- */

static void hears(struct channel *channel, unsigned master, bool on)
{
    wait_on_hears(&channel->wait, master, on);
    if (!on)
        channel->hears_group = mask_without(channel->hears_group, master);
    if (on)
        turns_on_hears(channel, master);
    channel_ring_soon(channel);
}

static void on_link(void *cookie, unsigned master, bool up)
{
    struct lines *lines = cookie;

    if (up) {
        channel_subscribe_all(&lines->channels, master);
        return;
    }
    channel_hears_own(&lines->channels, master, false);
    for (uint32_t i = 0; i < lines->channels.room; i++)
        for (struct channel *channel = lines->channels.table[i]; channel != NULL;
             channel = channel->next)
            hears(channel, master, false);
}

void lines_on_break(struct lines *lines, unsigned master)
{
    for (uint32_t i = 0; i < lines->channels.room && lines->channels.len > 0; i++)
        for (struct channel *channel = lines->channels.table[i]; channel != NULL;
             channel = channel->next) {
            wait_on_link(&channel->wait, master);
            channel_ring_soon(channel);
        }
}

/* Parse a word, which ends in a space, and a number behind it. */
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

/* Any client that may publish can forge an announcement.  At worst a round is tried in vain, or a
 * waiter sleeps until the next query. */
static void on_message(struct channel *channel, unsigned master, const char *text)
{
    drift_time now = env_now(channel->all->env);
    uint64_t number;

    if (parse(text, "free ", UINT32_MAX, &number)) {
        turns_on_free(channel, master);
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

/* A message to the client's group.  If no lease waits, the client must not be counted there any
 * more: a master notifies no other groups if enough clients hear it.  In a crowd a client leaves
 * its group together with its last waiter.  Without a crowd it stays, which saves two commands each
 * time. */
static void on_group(const struct lines *lines, unsigned master, const char *name, size_t name_len,
                     const struct reply *reply, bool confirms)
{
    bool shared = name[name_len + WIRE_GROUP_LEN - 1] == 'r';
    struct channel *channel = channel_find(&lines->channels, name, name_len, shared);

    if (channel == NULL)
        return;
    if (confirms) {
        channel->hears_group |= channel->is_grouped ? mask_of(master) : 0;
        return;
    }
    channel->is_for_all = false;
    if (channel->first == NULL)
        channel_set_grouped(channel, false);
    on_message(channel, master, reply->text);
}

static void on_push(void *cookie, unsigned master, const struct reply *reply)
{
    struct lines *lines = cookie;
    bool confirms, ends;
    const char *name;
    size_t name_len;

    if (reply->type == REPLY_ERROR) {
        channel_refused(&lines->channels, master, reply->text);
        return;
    }
    if (reply->type != REPLY_ARRAY || reply->before == NULL)
        return;
    confirms = strcmp(reply->before, "subscribe") == 0;
    ends = strcmp(reply->before, "unsubscribe") == 0;
    name = confirms || ends ? reply->text : reply->before;
    name_len = confirms || ends ? reply->text_len : reply->before_len;
    if (lines->channels.own[0] != '\0' && strcmp(name, lines->channels.own) == 0) {
        if (confirms)
            turns_on_hears_own(&lines->channels, master);
        else if (!ends)
            turns_on_message(&lines->channels, lines->leases, master, reply->text);
        return;
    }
    if (name_len <= WIRE_MARK_LEN || memcmp(name, WIRE_MARK, WIRE_MARK_LEN) != 0)
        return;
    name += WIRE_MARK_LEN;
    name_len -= WIRE_MARK_LEN;
    if (name_len > WIRE_GROUP_LEN && name[name_len - WIRE_GROUP_LEN] == '\0') {
        if (!ends)
            on_group(lines, master, name, name_len - WIRE_GROUP_LEN, reply, confirms);
        return;
    }
    for (unsigned shared = 0; shared <= 1 && !ends; shared++) {
        struct channel *channel = channel_find(&lines->channels, name, name_len, shared != 0);

        if (channel != NULL && confirms) {
            hears(channel, master, true);
        } else if (channel != NULL) {
            /* Of a crowd, a release tells groups alone. */
            channel->is_for_all |= strncmp(reply->text, "free ", 5) == 0;
            on_message(channel, master, reply->text);
        }
    }
}

void lines_on_look(struct lines *lines, unsigned master, const struct ask *ask,
                   const struct reply *reply)
{
    struct channel *channel = channel_find_asker(&lines->channels, ask->slot, ask->serial);
    int64_t pttl_ms = reply->type == REPLY_INTEGER ? reply->integer : WAIT_NO_ANSWER;

    if (channel == NULL)
        return;
    if (vote_lacks_script(reply) && !(ask->flags & ASK_IN_FULL) &&
        channel->all->masters->peers.up & mask_of(master)) {
        query(channel, mask_of(master), ask->number != 0, true);
        return;
    }
    wait_on_look(&channel->wait, master, pttl_ms, env_now(lines->channels.env));
    run(channel);
}

/* ---- Begin and end ---- */

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

int lines_init(struct lines *lines, const struct leases *leases, struct masters *masters,
               const struct masters_config *config, void (*on_quiet)(void *cookie), void *cookie)
{
    struct channels *channels = &lines->channels;

    lines->leases = leases;
    channels->env = config->env;
    channels->masters = masters;
    channels->alarm.pos = ALARM_OFF;
    lines->on_done = on_quiet;
    lines->cookie = cookie;
    listener_init(&channels->listener, &masters->peers, config, &listener_events, lines);
    return alarm_reserve(&channels->env->alarms, 5); /* This alarm, and four of the masters. */
}

void lines_flush(struct lines *lines)
{
    channel_catch_up(&lines->channels);
    listener_flush(&lines->channels.listener);
}

void lines_tidy(struct lines *lines)
{
    if (lines->channels.len == 0)
        channel_stop(&lines->channels);
}

void lines_done(struct lines *lines)
{
    channel_end_all(&lines->channels);
}
