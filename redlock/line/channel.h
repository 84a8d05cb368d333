/*
 * channel.h - a name that leases of this client wait for, and the table of all such names.
 *
 * Each channel is subscribed to at all masters, by the listener.  Each has an alarm.  A channel
 * keeps the leases that wait for its name, but lines.c alone adds, removes and steps them.
 * The readers of a name have a channel of their own.
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

struct channel;
struct env;
struct masters;
struct redlock_lease;

/* All channels of a client.  Zeroes but for env, masters, listener, alarm.pos and key. */
struct channels {
    struct env *env;
    struct masters *masters;
    struct listener listener;
    quorum_mask refused;    /* Masters that forbid to listen; each is logged once. */
    struct channel **table; /* By hash of the name; chained. */
    uint32_t room;          /* Chains in the table: a power of two, or 0. */
    uint32_t len, serial;
    unsigned char key[TOKEN_SUBKEY]; /* Of the hash. */
    struct alarms alarms;            /* One for each channel. */
    struct alarm alarm;              /* One of the client's; it rings with the first of these. */
};

struct channel {
    struct channels *all;
    struct channel *next; /* In the table. */
    struct alarm alarm;
    struct wait wait;
    uint32_t slot;               /* The hash of its name, which gives its chain. */
    uint32_t serial;             /* No two channels have the same, even one after the other. */
    struct redlock_lease *first; /* The line: leases in the order in which they came, by next. */
    struct redlock_lease *last;  /* The last in line; means nothing if there is no first. */
    struct redlock_lease *fair;  /* Leases in the queue of the masters (place.h), in any order. */
    bool shared;                 /* It is for readers. */
    bool relies;                 /* Leases in line sleep until they are woken. */
    bool stirred;                /* The line has changed since relies was last applied to it. */
    drift_time over_at;          /* When a channel for which no lease waits ends. */
    unsigned slots;              /* Of a semaphore; 0: it is none. */
    size_t mark_len;
    char mark[]; /* WIRE_MARK and the name. */
};

/* The channel of a name, or of the name that a lease waits for; NULL: there is none. */
struct channel *channel_find(const struct channels *channels, const char *name, size_t name_len,
                             bool shared);
struct channel *channel_find_of(const struct channels *channels, const struct redlock_lease *lease);

/* Find the channel by the numbers of an ask; NULL: it is gone. */
struct channel *channel_find_asker(const struct channels *channels, uint32_t slot, uint32_t serial);

/* The channel of the name that a lease waits for.  It is made if there is none; NULL: there is no
 * memory. */
struct channel *channel_get(struct channels *channels, const struct redlock_lease *lease);

/* Unsubscribe from a channel for which no lease waits, and free it.  The links stay. */
void channel_end(struct channel *channel);

/* Free all channels and close all links, between events. */
void channel_end_all(struct channels *channels);

/* Subscribe at one master, or unsubscribe. */
void channel_subscribe(const struct channel *channel, unsigned master, bool on);

/* A master refused to let us listen, to one name or to all.  It is logged once for each master. */
void channel_refused(struct channels *channels, unsigned master, const char *text);

/* Subscribe again at the masters that refused it.  They may allow it by now. */
void channel_subscribe_refused(const struct channel *channel);

/* Set the channel's alarm. */
void channel_ring_at(struct channel *channel, drift_time at);

/* Set the channel's alarm to ring at once, from the loop. */
void channel_ring_soon(struct channel *channel);

/* Take out the alarm of a channel that is due; NULL: none is.  After the last one,
 * channel_set_alarm() must follow. */
struct channel *channel_rings(struct channels *channels, drift_time now);

/* Set the alarm that all channels share by the first of theirs. */
void channel_set_alarm(struct channels *channels);

#endif /* REDLOCK_CHANNEL_H */
