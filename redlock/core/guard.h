/*
 * guard.h - which masters may vote: the restart guard, as a machine that
 * decides and never acts; pure.
 *
 * A master that was restarted without its memory (or flushed) does not know
 * the locks that it granted.  Were it asked at once, it could help a second
 * owner to a majority.  So it is kept from voting until every lease that it
 * may have granted before is over by its own account: it is *warming*.
 *
 * How a loss of memory is seen.  Each master stores a *marker*, a key like any
 * other, that is lost with the locks.  It holds the id of the server that wrote
 * it, and an *epoch*, a random number, without which no vote counts (proof.h).
 * No epoch, or one that was written by another run of the server which did not
 * keep all it was told: it has forgotten.
 *
 * How long it warms.  Whoever finds a master without an epoch leaves a *nonce*
 * there, and may write a new epoch when it has seen the same nonce for as long
 * as the longest lease lasts, on its own clock.  The nonce would be lost by the
 * next loss of memory, so that a watch needs no connection that lasts; and the
 * epoch is only written where the nonce is still there, so that a watcher that
 * was stopped meanwhile does no harm.
 */
#ifndef REDLOCK_GUARD_H
#define REDLOCK_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/quorum.h"

/* Fencing counters begin with the time in microseconds, and each attempt adds one.  A number that
 * is farther ahead of the time than this, 12 days, was not reached by counting. */
#define GUARD_AHEAD_US (UINT64_C(1) << 40)

/* The high-water mark of a master's counters is above their floor by a multiple of this.  Each
 * repair takes counters ahead by no more.  In microseconds it is far less than any repair takes,
 * so that they do not overtake the clocks. */
#define GUARD_HIGH_STEP (UINT64_C(1) << 14)

/* What a master's marker says, when it is looked at. */
struct guard_look {
    bool ready;          /* It has an epoch, so it may vote; else it is warming. */
    bool fresh;          /* Warming: it never had an epoch, and keeps what it is told. */
    uint64_t number;     /* The epoch, or the nonce. */
    uint32_t max_ttl_ms; /* The longest lease that any client has told it of. */
    uint64_t floor;      /* With an epoch: what its fencing counters count from; */
    uint64_t high;       /* and what no token has gone beyond; 0: it never had one. */
    uint64_t time_us;    /* What its clock shows. */
};

struct guard_config {
    unsigned masters;
    uint32_t max_ttl_ms; /* The longest lease of this client. */
    struct drift_bound drift;
};

/* One master, as this client knows it. */
struct guard_master {
    bool linked;
    bool asked; /* A look is on its way. */
    drift_time asked_at;
    drift_time look_at;     /* When it is looked at again without any reason. */
    struct guard_look look; /* The latest; a number of 0: none yet. */
    uint64_t epoch;         /* That it had when it was last looked at, by whatever link. */
    drift_time looked;      /* When that was asked for. */
    drift_time since;       /* Since when it has been seen to be warming with this nonce. */
};

/* Visible so that it can be embedded and hashed; to be written by guard.c only. */
struct guard {
    struct guard_config config;
    bool passive;        /* Looks on, and gives nobody an epoch. */
    uint32_t longest_ms; /* The longest lease that any master has ever told, or our own. */
    quorum_mask told;    /* Masters with an epoch that know our longest lease, */
    bool open;           /* which have been a majority. */
    bool seen_epoch;     /* These masters are not new: one of them had an epoch. */
    struct guard_master masters[QUORUM_MASTERS_MAX];
};

struct guard_actions {
    quorum_mask look; /* Masters to be looked at, */
    quorum_mask
        install;        /* and of these the ones to be given a new epoch if they have that nonce. */
    uint64_t floor;     /* What their fencing counters begin with. */
    drift_time wake_at; /* DRIFT_NEVER: no timer. */
};

void guard_init(struct guard *g, const struct guard_config *config);

/*
 * Events.  After each, guard_next() tells what is to be done.  A number of 0
 * is none that a marker may have (asserted).
 */
void guard_on_link(struct guard *g, unsigned master, bool up);
void guard_on_look(struct guard *g, unsigned master, const struct guard_look *look, drift_time now);
/* A master with an epoch tells, without being looked at, the longest lease it was told of. */
void guard_on_max(struct guard *g, uint32_t max_ttl_ms);
/* What is due now; also the event of a timer.  What it says to do is taken as done. */
void guard_next(struct guard *g, drift_time now, struct guard_actions *ret_actions);

/* Masters that may be asked for locks. */
quorum_mask guard_voters(const struct guard *g);

/* Another master that has its epoch, or had it when we last saw that: one of the two has the
 * other's data.  The number of masters: there is none. */
unsigned guard_twin(const struct guard *g, unsigned master);

/* Masters that may become voters before long although they are none: a look at
 * them is out, or all of them are new.  coming: masters that are being
 * connected to. */
quorum_mask guard_hopefuls(const struct guard *g, quorum_mask coming);

/*
 * What fencing counters must begin with on a master that has lost them, by what is
 * known of the others, or 0: what they tell of theirs is days ahead of the clocks, and
 * wrong.
 */
uint64_t guard_floor(const struct guard *g);

/*
 * Its counter has counted so far from the floor: what number that is.  0: none that a
 * counter can have.  *ret_unkept: it is above the high-water mark, as far as we know that, and
 * if this master forgets it, nobody might know how far its counters must begin.
 */
uint64_t guard_number(const struct guard *g, unsigned master, uint64_t count, bool *ret_unkept);

/* It was told to count to this number, and has seen to its high-water mark. */
void guard_on_raised(struct guard *g, unsigned master, uint64_t number);

/* The longest lease that may be alive anywhere, as far as is known. */
uint32_t guard_max_ttl_ms(const struct guard *g);

/* How long a master must be watched before it may vote again. */
drift_span guard_quarantine(const struct guard *g);

/* What is left of that, at the least, for a master that is warming; else 0. */
drift_span guard_left(const struct guard *g, unsigned master, drift_time now);

#endif /* REDLOCK_GUARD_H */
