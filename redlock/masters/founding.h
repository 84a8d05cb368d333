/*
 * founding.h - founds the set of the client's list: carries out what founder.c decides.
 *
 * It relates to founder.c as standing.c relates to guard.c.  It sends the scripts, and passes on
 * the answers that come within the reply timeout, on the link on which they were asked for.  A
 * client founds as soon as all masters of its list have said that they are in no set.  It also
 * finishes a founding whose founder is gone.  If another list is in the way, it tries again later:
 * the claims of that list may be withdrawn.
 */
#ifndef REDLOCK_FOUNDING_H
#define REDLOCK_FOUNDING_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/reason.h"
#include "redlock/base/alarm.h"
#include "redlock/core/founder.h"
#include "redlock/core/config.h"
#include "redlock/masters/set.h"

struct ask;
struct peers;
struct reply;
struct seats_change;
struct set;

/* Both are called within an event. */
struct founding_events {
    /* The set is founded, or all its masters are members now. */
    void (*on_founded)(void *cookie, const struct seats_change *change);
    /* Another list or another set is in the way, as this master shows. */
    void (*on_refused)(void *cookie, unsigned master);
};

struct founding {
    struct peers *peers;
    struct set *set;
    const struct founding_events *events;
    void *cookie;
    struct founder founder;
    struct alarm alarm;
    quorum_mask linked;  /* Masters whose markers were read on this link. */
    drift_time begin_at; /* After a refusal: when to begin again. */
    bool refused;        /* The latest attempt met another list or set: why says which. */
    struct reason why;
    uint32_t asks;                    /* The number of the latest command. */
    uint32_t ask[QUORUM_MASTERS_MAX]; /* The command whose answer counts.  0: none. */
    drift_time due[QUORUM_MASTERS_MAX];
    drift_span reply_timeout;
    char list[CONFIG_TEXT_MAX + 1];  /* What the founder claims. */
    char other[CONFIG_TEXT_MAX + 1]; /* The list or the set that is in its way. */
};

/* Returns 0, or -1 if memory runs out. */
int founding_init(struct founding *founding, struct peers *peers, struct set *set,
                  drift_span reply_timeout, const struct founding_events *events, void *cookie);

/* Events: the marker of a master was read, and set.h knows the answer; its link went down; a
 * command was answered; the alarm rang. */
void founding_on_look(struct founding *founding, unsigned master);
void founding_on_break(struct founding *founding, unsigned master);
void founding_on_answer(struct founding *founding, unsigned master, const struct ask *ask,
                        const struct reply *reply);
void founding_on_alarm(struct founding *founding);

#endif /* REDLOCK_FOUNDING_H */
