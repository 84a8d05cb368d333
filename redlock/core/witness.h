/*
 * witness.h - what the other masters say of the age of a warming master's nonce; pure.
 *
 * The others are the *witnesses*.  Each stores a *mark*: the nonce, and the time by its own clock
 * at which a client first showed it the nonce (redlock/lua/witness.lua).  So the nonce existed at
 * that time, and a client that comes later need not have watched the master since then.
 *
 * A witness's clock may be wrong.  guard.c therefore believes a majority only.  A client that
 * noticed a step of a witness's clock has the mark made anew, before it believes the witness again.
 */
#ifndef REDLOCK_WITNESS_H
#define REDLOCK_WITNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/core/members.h"

/* The witnesses of one warming master's present nonce.  Zeroed: none was asked. */
struct witnesses {
    quorum_mask asked; /* Witnesses that were asked on their present link. */
    quorum_mask out;   /* The subset of asked that has not answered yet. */
    quorum_mask heard; /* Witnesses that reported an age. */
    quorum_mask anew;  /* Witnesses that must make a new mark, because their clock was stepped. */
    /* A time at which the nonce existed already, by our clock, in ns.  It may be before our clock
     * began. */
    int64_t since[QUORUM_MASTERS_MAX];
};

/* The master has another nonce now, or an epoch. */
void witness_on_nonce(struct witnesses *w);
/* A witness has a new link, or none. */
void witness_on_link(struct witnesses *w, unsigned k);
/* A step of a witness's clock was noticed. */
void witness_on_step(struct witnesses *w, unsigned k);
/* A witness reported the age of its mark, in ms.  Below 0: it reported none. */
void witness_on_age(struct witnesses *w, unsigned k, int64_t age_ms, drift_time now);
/* The number of a witness belongs to another master now. */
void witness_on_change(struct witnesses *w, quorum_mask left);

/* The end of a span that began at since. */
drift_time witness_after(int64_t since, drift_span span);

/* The earliest time at which so many witnesses say that the nonce is as old as span that they can
 * decide (members_decide).  Other masters do not count.  DRIFT_NEVER: too few reported an age. */
drift_time witness_due_at(const struct witnesses *w, const struct members *members,
                          quorum_mask witnesses, drift_span span);

/* True: the nonce would be old enough now if the witnesses of unknown said so, too. */
bool witness_may_be_due(const struct witnesses *w, const struct members *members,
                        quorum_mask witnesses, quorum_mask unknown, drift_span span,
                        drift_time now);

#endif /* REDLOCK_WITNESS_H */
