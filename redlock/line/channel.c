/*
 * channel.c - the table of channels, their subscriptions and their alarms.
 */
#include "redlock/line/channel.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "redlock/io/env.h"
#include "redlock/lease/lease.h"
#include "redlock/masters/masters.h"
#include "redlock/wire/wire.h"

/* ---- Alarms ---- */

void channel_set_alarm(struct channels *channels)
{
    alarm_set(&channels->env->alarms, &channels->alarm, alarm_next(&channels->alarms));
}

void channel_ring_at(struct channel *channel, drift_time at)
{
    alarm_set(&channel->all->alarms, &channel->alarm, at);
    channel_set_alarm(channel->all);
}

void channel_ring_soon(struct channel *channel)
{
    channel_ring_at(channel, 0);
}

static struct channel *channel_of(struct alarm *alarm)
{
    void *channel = (char *)alarm - offsetof(struct channel, alarm);

    return channel;
}

struct channel *channel_rings(struct channels *channels, drift_time now)
{
    struct alarm *alarm = alarm_ring(&channels->alarms, now);

    return alarm != NULL ? channel_of(alarm) : NULL;
}

/* ---- Subscriptions ---- */

static void subscribe(struct channels *all, unsigned master, bool on, const char *name,
                      size_t name_len)
{
    char *scratch = all->masters->peers.scratch;
    size_t len = wire_subscribe(scratch, on, name, name_len);

    all->env->stats.commands += listener_say(&all->listener, master, scratch, len);
}

void channel_subscribe(const struct channel *channel, unsigned master, bool on)
{
    subscribe(channel->all, master, on, channel->mark, channel->mark_len);
}

bool channel_has_groups(const struct channel *channel)
{
    return channel->slots == 0;
}

char channel_group(const struct channel *channel)
{
    return channel->mark[channel->mark_len + WIRE_GROUP_LEN - 1];
}

static void subscribe_group(const struct channel *channel, unsigned master, bool on)
{
    subscribe(channel->all, master, on, channel->mark, channel->mark_len + WIRE_GROUP_LEN);
}

void channel_set_grouped(struct channel *channel, bool is_grouped)
{
    if (channel->is_grouped == is_grouped)
        return;
    channel->is_grouped = is_grouped;
    channel->hears_group = 0;
    for (unsigned m = 0; m < channel->all->masters->peers.len; m++)
        subscribe_group(channel, m, is_grouped);
}

static void subscribe_own(struct channels *all, unsigned master)
{
    if (all->own[0] != '\0')
        subscribe(all, master, true, all->own, strlen(all->own));
}

void channel_want_own(struct channels *channels, const char *digits)
{
    if (channels->own[0] != '\0')
        return;
    memcpy(channels->own, WIRE_CLIENT, WIRE_CLIENT_LEN);
    memcpy(channels->own + WIRE_CLIENT_LEN, digits, WIRE_CLIENT_DIGITS);
    for (unsigned m = 0; m < channels->masters->peers.len; m++)
        subscribe_own(channels, m);
}

void channel_hears_own(struct channels *channels, unsigned master, bool hears)
{
    channels->hears_own = mask_without(channels->hears_own, master);
    channels->hears_own |= hears ? mask_of(master) : 0;
}

void channel_subscribe_all(struct channels *channels, unsigned master)
{
    subscribe_own(channels, master);
    for (uint32_t i = 0; i < channels->room; i++)
        for (const struct channel *channel = channels->table[i]; channel != NULL;
             channel = channel->next) {
            if (channel->is_grouped) /* First: the client queries when the other is confirmed. */
                subscribe_group(channel, master, true);
            channel_subscribe(channel, master, true);
        }
}

void channel_subscribe_refused(const struct channel *channel)
{
    struct channels *all = channel->all;

    for (unsigned m = 0; m < all->masters->peers.len; m++) {
        if (channel->is_grouped && all->refused & mask_of(m) & (quorum_mask)~channel->hears_group)
            subscribe_group(channel, m, true);
        if (all->refused & mask_of(m) & (quorum_mask)~channel->wait.hears)
            channel_subscribe(channel, m, true);
        if (all->refused & mask_of(m) & (quorum_mask)~all->hears_own)
            subscribe_own(all, m);
    }
}

void channel_refused(struct channels *channels, unsigned master, const char *text)
{
    if (!(channels->refused & mask_of(master)))
        env_log(channels->env, REDLOCK_LOG_WARNING, MSG_NO_PUBLISH,
                "master %u (%s): refuses to announce released locks: %s", master + 1,
                masters_name(channels->masters, master), text);
    channels->refused |= mask_of(master);
}

/* ---- Changes of the set ---- */

void channel_on_left(struct channels *channels, quorum_mask left)
{
    channels->refused &= (quorum_mask)~left;
    channels->hears_own &= (quorum_mask)~left;
    channels->is_behind = true;
    listener_on_left(&channels->listener, left);
    for (uint32_t i = 0; i < channels->room && channels->len > 0; i++)
        for (struct channel *channel = channels->table[i]; channel != NULL;
             channel = channel->next) {
            wait_on_left(&channel->wait, left);
            channel->hears_group &= (quorum_mask)~left;
            channel_ring_soon(channel);
        }
}

void channel_catch_up(struct channels *channels)
{
    if (channels->is_behind && channels->len > 0)
        listener_start(&channels->listener);
    channels->is_behind = false;
}

/* ---- The table ---- */

#define ROOM_FIRST 16

_Static_assert(sizeof((struct channels *)0)->key == crypto_shorthash_KEYBYTES,
               "the key of the hash");

/* The hash has a key, because strangers may choose names, and must not crowd one chain. */
static uint32_t slot_of(const struct channels *channels, const char *name, size_t name_len)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint32_t slot;

    (void)crypto_shorthash(hash, (const unsigned char *)name, name_len, channels->key);
    memcpy(&slot, hash, sizeof slot);
    return slot;
}

static struct channel **chain_of(const struct channels *channels, uint32_t slot)
{
    return &channels->table[slot & (channels->room - 1)];
}

static void put(struct channel *channel)
{
    struct channel **chain = chain_of(channel->all, channel->slot);

    channel->next = *chain;
    *chain = channel;
}

/* If memory runs out, the old table stays, and its chains get longer. */
static void grow(struct channels *all)
{
    struct channel **before = all->table, *channel, *next;
    uint32_t room_before = all->room;
    uint32_t room = room_before > 0 ? 2 * room_before : ROOM_FIRST;
    struct channel **table = calloc(room, sizeof(struct channel *));

    if (table == NULL)
        return;
    all->table = table;
    all->room = room;
    for (uint32_t i = 0; i < room_before; i++)
        for (channel = before[i]; channel != NULL; channel = next) {
            next = channel->next;
            put(channel);
        }
    free(before);
}

struct channel *channel_find(const struct channels *channels, const char *name, size_t name_len,
                             bool shared)
{
    struct channel *channel = NULL;

    if (channels->room > 0)
        channel = *chain_of(channels, slot_of(channels, name, name_len));
    while (channel != NULL &&
           (channel->shared != shared || channel->mark_len != WIRE_MARK_LEN + name_len ||
            memcmp(channel->mark + WIRE_MARK_LEN, name, name_len) != 0))
        channel = channel->next;
    return channel;
}

struct channel *channel_find_of(const struct channels *channels, const struct redlock_lease *lease)
{
    size_t name_len;
    const char *name = lease_awaited(lease, &name_len);

    return channel_find(channels, name, name_len, lease_kind(lease)->shared);
}

struct channel *channel_find_asker(const struct channels *channels, uint32_t slot, uint32_t serial)
{
    struct channel *channel = channels->room > 0 ? *chain_of(channels, slot) : NULL;

    while (channel != NULL && channel->serial != serial)
        channel = channel->next;
    return channel;
}

/* ---- Begin and end ---- */

static struct channel *make(struct channels *all, const char *name, size_t name_len, bool shared)
{
    struct channel *channel;

    if (all->len == all->room)
        grow(all);
    if (all->room == 0 || alarm_reserve(&all->alarms, all->len + 1) != 0)
        return NULL;
    channel = calloc(1, sizeof *channel + WIRE_MARK_LEN + name_len + WIRE_GROUP_LEN);
    if (channel == NULL)
        return NULL;
    channel->all = all;
    channel->alarm.pos = ALARM_OFF;
    channel->shared = shared;
    channel->slot = slot_of(all, name, name_len);
    channel->serial = ++all->serial;
    channel->over_at = DRIFT_NEVER;
    channel->mark_len = WIRE_MARK_LEN + name_len;
    memcpy(channel->mark, WIRE_MARK, WIRE_MARK_LEN);
    memcpy(channel->mark + WIRE_MARK_LEN, name, name_len);
    /* The hash has a key of the client.  So clients are in groups by chance. */
    channel->mark[channel->mark_len + 1] = shared ? 'r' : "0123456789abcdef"[channel->slot >> 28];
    channel->next_group = channel_group(channel);
    wait_init(&channel->wait, &all->masters->peers.members, shared);
    put(channel);
    all->len++;
    listener_start(&all->listener);
    for (unsigned m = 0; m < all->masters->peers.len; m++)
        channel_subscribe(channel, m, true);
    return channel;
}

struct channel *channel_get(struct channels *channels, const struct redlock_lease *lease)
{
    struct channel *channel = channel_find_of(channels, lease);
    size_t name_len;
    const char *name = lease_awaited(lease, &name_len);

    return channel != NULL ? channel : make(channels, name, name_len, lease_kind(lease)->shared);
}

static void take_out(struct channel *channel)
{
    struct channels *all = channel->all;
    struct channel **at = chain_of(all, channel->slot);

    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    channel_ring_at(channel, DRIFT_NEVER);
    all->len--;
    free(channel);
}

void channel_end(struct channel *channel)
{
    struct channels *all = channel->all;
    const char *name = channel->mark + WIRE_MARK_LEN;
    size_t name_len = channel->mark_len - WIRE_MARK_LEN;
    /* Readers and writers of one name share the subscription. */
    bool is_needed = channel_find(all, name, name_len, !channel->shared) != NULL;

    channel_set_grouped(channel, false);
    for (unsigned m = 0; m < all->masters->peers.len && !is_needed; m++)
        channel_subscribe(channel, m, false);
    take_out(channel);
}

void channel_end_all(struct channels *channels)
{
    for (uint32_t i = 0; i < channels->room; i++)
        while (channels->table[i] != NULL)
            take_out(channels->table[i]);
    free(channels->table);
    channels->table = NULL;
    channels->room = 0;
    channel_stop(channels);
    alarm_done(&channels->alarms);
}

void channel_stop(struct channels *channels)
{
    listener_stop(&channels->listener);
    channels->own[0] = '\0';
    channels->hears_own = 0;
}

void channel_write(struct channels *channels)
{
    masters_write(channels->masters);
    listener_write(&channels->listener);
}
