/*
 * channel.h - a name that leases of this client wait for, and the table of all such names.
 *
 * The listener subscribes to each channel at all masters.  Each channel has an alarm.  It keeps the
 * leases that wait for its name, but only lines.c and turns.c add, remove and step them.  The
 * readers of a name have a channel of their own.
 *
 * A crowd is more clients than WIRE_CROWD that listen to a name.  Each belongs to a group by
 * chance, and a release notifies some groups only.  So a client must listen to its group only while
 * it waits.  Otherwise a release might notify nobody who waits.  See lines.c.
 *
 * Masters tell whose turn it is in their queues on a channel that the client has for all its
 * waiters. The client subscribes to it when the first fair lease waits, once on each listening
 * link.
 */
#ifndef REDLOCK_CHANNEL_H
#define REDLOCK_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/base/alarm.h"
#include "redlock/base/mask.h"
#include "redlock/base/token.h"
#include "redlock/core/wait.h"
#include "redlock/line/listener.h"
#include "redlock/wire/keys.h"

struct channel;
struct env;
struct masters;
struct redlock_lease;

/* All channels of a client.  It begins as zeroes, but env, masters, listener, alarm.pos and key. */
struct channels {
    struct env *env;
    struct masters *masters;
    struct listener listener;
    quorum_mask refused; /* Masters that refused a subscription.  Each is logged once. */
    /* The channel of the client itself.  "": no fair lease has waited since the links were opened.
     */
    char own[WIRE_CLIENT_LEN + WIRE_CLIENT_DIGITS + 1];
    quorum_mask hears_own; /* Masters that confirmed the subscription to it. */
    bool gathers;          /* A heartbeat has begun, and takes others along when channels ring. */
    bool is_behind;        /* The set has changed: there may be masters without a listening link. */
    struct channel **table; /* Chains, by the hash of the name. */
    uint32_t room;          /* The number of chains: a power of two, or 0. */
    uint32_t len, serial;
    unsigned char key[TOKEN_SUBKEY]; /* The key of the hash. */
    struct alarms alarms;            /* One for each channel. */
    struct alarm alarm;              /* The client's alarm.  It rings with the first of alarms. */
};

struct channel {
    struct channels *all;
    struct channel *next; /* The next channel in the chain. */
    struct alarm alarm;
    struct wait wait;
    uint32_t slot;               /* The hash of the name, which gives the chain. */
    uint32_t serial;             /* No two channels have the same, even one after the other. */
    struct redlock_lease *first; /* The client's queue: leases in order of arrival, by next. */
    struct redlock_lease *last;  /* The last lease in that queue, if there is a first. */
    struct redlock_lease *fair;  /* Leases in the masters' queue (place.h), in any order. */
    bool shared;                 /* The channel is for readers. */
    bool relies;                 /* Leases in the client's queue sleep until they are woken. */
    bool stirred;                /* The client's queue has changed since relies was last applied. */
    bool is_grouped;             /* The client listens to its group of a crowd, too. */
    quorum_mask hears_group;     /* Masters that confirmed the subscription to the group. */
    bool is_for_all;             /* The latest release told all: there is no crowd. */
    char next_group;             /* The digit of the group that the release of this client's latest
                                  * holder notifies.  At first that of the client's own group. */
    drift_time over_at;          /* When the channel ends, if no lease waits for it. */
    unsigned slots;              /* The slots of a semaphore.  0: the lock is no semaphore. */
    size_t mark_len;
    char mark[]; /* WIRE_MARK and the name.  With the next WIRE_GROUP_LEN bytes it is the channel of
                  * the client's group. */
};

/* Find the channel of a name, or of the name that a lease waits for.  NULL: there is none. */
struct channel *channel_find(const struct channels *channels, const char *name, size_t name_len,
                             bool shared);
struct channel *channel_find_of(const struct channels *channels, const struct redlock_lease *lease);

/* Find the channel by the numbers of an ask.  NULL: it is gone. */
struct channel *channel_find_asker(const struct channels *channels, uint32_t slot, uint32_t serial);

/* Find or make the channel of the name that a lease waits for.  NULL: memory ran out. */
struct channel *channel_get(struct channels *channels, const struct redlock_lease *lease);

/* Unsubscribe from a channel for which no lease waits, and free it.  The links stay. */
void channel_end(struct channel *channel);

/* Free all channels and close all links, between events. */
void channel_end_all(struct channels *channels);

/* Between events: close all links.  There are no channels. */
void channel_stop(struct channels *channels);

/* Within an event: write to all masters what is due. */
void channel_write(struct channels *channels);

/* False: all that wait for the name are notified of a release.  So it is with permits: a waiter may
 * have lost many rounds because masters disagreed on which permit is free, and then pauses for long
 * (rule 5 of wait.c).  If few were notified, all of these might pause. */
bool channel_has_groups(const struct channel *channel);

/* The digit of the client's group among those that wait for the name; r: it waits to read. */
char channel_group(const struct channel *channel);

/* Listen to the client's group at all masters, or do not. */
void channel_set_grouped(struct channel *channel, bool is_grouped);

/* Subscribe at one master, or unsubscribe. */
void channel_subscribe(const struct channel *channel, unsigned master, bool on);

/* Listen to the client's own channel, whose name ends in these digits, until the links are closed.
 */
void channel_want_own(struct channels *channels, const char *digits);

/* Subscribe at one master to all channels. */
void channel_subscribe_all(struct channels *channels, unsigned master);

/* A master has confirmed that we hear the client's own channel, or we no longer hear it. */
void channel_hears_own(struct channels *channels, unsigned master, bool hears);

/* A master refused a subscription, to one name or to all.  Its first refusal is logged. */
void channel_refused(struct channels *channels, unsigned master, const char *text);

/* Subscribe again at the masters that refused it.  They may allow it by now. */
void channel_subscribe_refused(const struct channel *channel);

/* Within an event: the set of masters has changed.  These numbers belong to other masters from now
 * on. */
void channel_on_left(struct channels *channels, quorum_mask left);

/* Between events: listen to new members, if there are channels. */
void channel_catch_up(struct channels *channels);

/* Set the channel's alarm. */
void channel_ring_at(struct channel *channel, drift_time at);

/* Set the channel's alarm to ring at once, from the loop. */
void channel_ring_soon(struct channel *channel);

/* Take out the alarm that is due first, and return its channel.  NULL: none is due.  Call
 * channel_set_alarm() after the last one. */
struct channel *channel_rings(struct channels *channels, drift_time now);

/* Set the client's alarm to the first alarm of the channels. */
void channel_set_alarm(struct channels *channels);

#endif /* REDLOCK_CHANNEL_H */
