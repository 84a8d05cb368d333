/*
 * masters.h - the set of masters: who may be asked, and whose yes counts.
 *
 * It owns the links, sorts the answers, and has the guards carried out: standing.c (the restart
 * guard), clocks.c (the clock guard), and proof.c, which holds a yes back until the master has
 * shown that it has its data.  Leases and lines know this header of the folder, and no other.
 */
#ifndef REDLOCK_MASTERS_H
#define REDLOCK_MASTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/quorum.h"
#include "redlock/masters/clocks.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/proof.h"
#include "redlock/masters/standing.h"
#include "redlock/wire/vote.h"

struct alarm;

/* All but on_done() are called within an event (io/env.h). */
struct masters_events {
    /* An answer to an ask that is none of this folder.  Of reply NULL see ASK_TELL. */
    void (*on_answer)(void *cookie, unsigned m, const struct ask *ask, const struct reply *reply);
    /* A vote that was held back counts now. */
    void (*on_vote)(void *cookie, unsigned m, const struct ask *ask, const struct vote *vote);
    /* What may be asked of this master has changed. */
    void (*on_change)(void *cookie, unsigned m);
    /* A full queue has room again. */
    void (*on_room)(void *cookie, unsigned m);
    /* A link came up or fell: before anything is made of it. */
    void (*on_link)(void *cookie, unsigned m, bool up);
    /* The event is over.  The masters may be gone when this returns. */
    void (*on_done)(void *cookie);
};

struct masters_config {
    struct env *env;
    const struct uri *uris; /* Live as long as the masters. */
    unsigned len;
    drift_span connect_timeout, reply_timeout;
    uint32_t max_ttl_ms;
    struct drift_bound drift;
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
};

struct masters {
    const struct masters_events *events;
    void *cookie;
    struct peers peers;
    struct standing standing;
    struct clocks clocks;
    struct proof proof;
};

/* Make the links, which try nothing yet.  0, or -1 without memory; then masters_done() as well. */
int masters_init(struct masters *masters, const struct masters_config *config,
                 const struct masters_events *events, void *cookie);
void masters_start(struct masters *masters);
/* Between events.  Zeroes are fine. */
void masters_done(struct masters *masters);

/* Send a command to a master that is up, and count it. */
void masters_send(struct masters *masters, unsigned m, const struct ask *ask, const char *command,
                  size_t command_len);
/* These were sent a command whose yes has to be proved. */
void masters_want_proof(struct masters *masters, enum quorum_command command, quorum_mask sent);
/* The answer to a lease's command; true: it is a yes that on_vote() tells when it is proved. */
bool masters_hold(struct masters *masters, unsigned m, const struct ask *ask,
                  const struct vote *vote);
/* Whether a yes to a command counts that was asked for then, as far as the clock goes. */
bool masters_count(struct masters *masters, unsigned m, enum quorum_command command,
                   drift_time sent);
/* A fencing counter was raised to this number. */
void masters_raised(struct masters *masters, unsigned m, uint64_t number);
/* The epoch that a command must name. */
const char *masters_epoch(const struct masters *masters, unsigned m);

/* Between events: write to all masters that need it, and take down the links that are doomed or
 * break over it.  Within an event: write only. */
void masters_flush(struct masters *masters);
void masters_write(struct masters *masters);

/* An alarm rang; false: it is none of the masters'. */
bool masters_on_alarm(struct masters *masters, const struct alarm *alarm);

/* Of one link: see link.h. */
void masters_note(struct masters *masters, unsigned m, const char *error);
void masters_relink(struct masters *masters, unsigned m, const char *reason);
const char *masters_name(const struct masters *masters, unsigned m);
const char *masters_error(const struct masters *masters, unsigned m);
/* Whether the link is up, and not full. */
bool masters_is_linked(const struct masters *masters, unsigned m);

#endif /* REDLOCK_MASTERS_H */
