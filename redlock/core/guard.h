/*
 * guard.h - which masters may vote: the restart guard.  The machine decides and
 * never acts; pure.
 *
 * A master that lost its data, by a restart or a flush, does not know the locks
 * that it granted.  If it voted at once, it could help a second holder to a
 * majority.  So it must not vote until every lease that it may have granted has
 * expired.  Until then it is *warming*.
 *
 * How a loss of data is detected.  Each master stores a *marker*, a key like any
 * other, which is lost together with the locks.  The marker holds the id of the
 * server that wrote it, and an *epoch*, a random number.  Without an epoch no vote
 * counts (proof.h).  A master has lost data if its epoch is missing.  The same
 * holds if the epoch is from another run of the server that did not keep all its
 * writes.
 *
 * How long a master warms.  A client that finds no epoch writes a *nonce* there.
 * When the nonce is as old as the longest lease lasts, a client may write a new
 * epoch.  The client has watched the nonce for that time by its own clock, or a
 * majority of the masters says so (witness.h).  The next loss of data would also
 * lose the nonce, so neither needs a lasting connection.  The epoch is only
 * written where the nonce is still stored, so a client that was suspended
 * meanwhile does no harm.
 */
#ifndef REDLOCK_GUARD_H
#define REDLOCK_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/members.h"
#include "redlock/core/quorum.h"
#include "redlock/core/recall.h"
#include "redlock/core/witness.h"

/* A fencing counter begins with the time in microseconds, and each attempt adds one.  Counting
 * cannot reach a number farther ahead of the time than this, 12 days. */
#define GUARD_AHEAD_US (UINT64_C(1) << 40)

/* The high-water mark of a master's counters is above their floor by a multiple of this.  A master
 * that lost its counters begins with the greatest mark known, so it moves ahead by this at most, 16
 * ms.  It was watched for as long as the longest lease before, so counters do not overtake the
 * clocks if leases last longer. */
#define GUARD_HIGH_STEP (UINT64_C(1) << 14)

/* What a master's marker says when it is queried. */
struct guard_look {
    bool ready;          /* The master has an epoch, so it may vote.  Otherwise it is warming. */
    bool fresh;          /* Warming: it never had an epoch, and it keeps what is written to it. */
    uint64_t number;     /* The epoch, or the nonce. */
    uint32_t max_ttl_ms; /* The longest lease that any client has reported to it. */
    uint64_t floor;      /* With an epoch: floor plus a counter of the master is a fencing token. */
    uint64_t high;       /* It issued no greater token than this.  Known even while warming.
                          * 0: unknown. */
    uint64_t time_us;    /* The time on its clock. */
    struct recall_told told; /* With an epoch: what it reports of the set (rule 8). */
};

struct guard_config {
    /* The caller owns it, and keeps it up to date.  Empty lists: the set is unknown, and no master
     * votes. */
    const struct members *members;
    uint32_t max_ttl_ms; /* The longest lease of this client. */
    struct drift_bound drift;
    bool witnesses; /* True: the other masters are asked how old a nonce is (rule 6). */
};

/* One master, as this client knows it. */
struct guard_master {
    bool linked;
    bool asked;       /* A query is out. */
    bool asked_known; /* The latest query said that an epoch was seen on some master. */
    drift_time asked_at;
    drift_time look_at;         /* When the next routine query is due. */
    drift_time install_at;      /* Before this it is given no epoch. */
    struct guard_look look;     /* The latest answer.  A number of 0: none yet. */
    uint64_t epoch;             /* The epoch that the master had when it was last queried, on any
                                 * link. */
    drift_time looked;          /* When that query was sent.  0: it was on an earlier link. */
    drift_time since;           /* Since when the master has been seen warming with this nonce. */
    struct witnesses witnesses; /* What the others say of this nonce. */
    uint16_t steps;             /* Steps of its clock that were noticed. */
};

/* Visible so that it can be embedded and hashed.  Only guard.c writes it. */
struct guard {
    struct guard_config config;
    bool passive;       /* Only watch: install epochs on guests only. */
    quorum_mask guests; /* Rule 7.  The owner sets it. */
    uint64_t version; /* The version of the members' configuration (rule 8).  The owner sets it. */
    uint32_t longest_ms; /* The longest lease that any master has ever reported, or our own. */
    quorum_mask told;    /* Masters with an epoch that know our longest lease. */
    bool open;           /* The masters in told were a majority at some time. */
    bool seen_epoch;     /* One of these masters had an epoch, so they are not new. */
    struct guard_master masters[QUORUM_MASTERS_MAX];
};

struct guard_actions {
    quorum_mask look;    /* Masters to query. */
    quorum_mask install; /* The subset of look that is to get a new epoch, if it still has that
                          * nonce. */
    uint64_t floor;      /* The number with which their fencing counters begin. */
    struct recall recalls[QUORUM_MASTERS_MAX]; /* What each of install gets back (rule 8). */
    /* For each master, whom to ask how old its nonce is.  anew: a subset that must make its mark
     * anew. */
    quorum_mask ask[QUORUM_MASTERS_MAX], anew[QUORUM_MASTERS_MAX];
    drift_time wake_at; /* DRIFT_NEVER: no timer. */
};

void guard_init(struct guard *g, const struct guard_config *config);

/*
 * Events.  After each, guard_next() says what to do.  A marker never has a number
 * of 0 (asserted).
 */
void guard_on_link(struct guard *g, unsigned master, bool up);
void guard_on_look(struct guard *g, unsigned master, const struct guard_look *look, drift_time now);
/* What was asked of a witness: the nonce of a warming master, after so many steps of the witness's
 * clock. */
struct guard_ask {
    unsigned master;
    uint64_t nonce;
    uint16_t steps;
};
/* A witness answers.  age_ms below 0: it reports no age. */
void guard_on_age(struct guard *g, unsigned witness, const struct guard_ask *ask, int64_t age_ms,
                  drift_time now);
/* A step of a master's clock was noticed. */
void guard_on_step(struct guard *g, unsigned master);
/* A master with an epoch reports, without a query, the longest lease that it knows. */
void guard_on_max(struct guard *g, uint32_t max_ttl_ms);
/* Query this master anew as soon as it is linked. */
void guard_look_again(struct guard *g, unsigned master);
/* The members have changed.  left: numbers that have lost their masters, and may get others. */
void guard_on_change(struct guard *g, quorum_mask left);
/* What is due now.  Call it after each event and when the timer fires.  The guard takes the
 * actions as done. */
void guard_next(struct guard *g, drift_time now, struct guard_actions *ret_actions);

/* Masters that may be asked for locks. */
quorum_mask guard_voters(const struct guard *g);

/* Another master with the same epoch, now or when we last saw it.  One of the two has a copy of
 * the other's data.  Returns QUORUM_MASTERS_MAX if there is none. */
unsigned guard_twin(const struct guard *g, unsigned master);

/* Masters that are not voters but may become voters soon.  A query of them is out or due, they
 * have an epoch, all masters are new, or witnesses may say that their time is over.  coming:
 * masters that we are connecting to. */
quorum_mask guard_hopefuls(const struct guard *g, quorum_mask coming, drift_time now);

/*
 * The number with which fencing counters must begin on a master that lost them.  It
 * is computed from what the members reported.  0: nothing is known, or the numbers are
 * 12 days ahead of the clocks, so one of both is wrong.
 */
uint64_t guard_floor(const struct guard *g);

/*
 * The fencing number of a counter that has counted this far from the floor.  0: no
 * counter can have reached it.  *ret_unkept: the number is above the high-water
 * mark that we know.  If this master then loses its data, perhaps no master would
 * know how far its counters must begin.
 */
uint64_t guard_number(const struct guard *g, unsigned master, uint64_t count, bool *ret_unkept);

/* The master was told to count to this number, and has raised its high-water mark accordingly. */
void guard_on_raised(struct guard *g, unsigned master, uint64_t number);

/* How old a nonce must be before its master may vote again. */
drift_span guard_quarantine(const struct guard *g);

/* A majority of all masters reported the age of a warming master's nonce. */
bool guard_is_witnessed(const struct guard *g, unsigned master);

/* Too few members that answer remember the set, so no warming master gets an epoch (recall.h). */
bool guard_has_forgotten(const struct guard *g);

/* The least time that is left of the quarantine of a warming master, else 0. */
drift_span guard_left(const struct guard *g, unsigned master, drift_time now);

#endif /* REDLOCK_GUARD_H */
