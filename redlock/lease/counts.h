/*
 * counts.h - counts what leases do, for redlock_stats() and redlock_master_stats().  It decides
 * nothing.
 *
 * lease.c calls it at each step of a lease.  A step may begin the next request, so an answer is
 * counted before it, and an operation with the instants from before it.
 */
#ifndef REDLOCK_COUNTS_H
#define REDLOCK_COUNTS_H

#include "redlock/base/histogram.h"
#include "redlock/lease/state.h"
#include "redlock/wire/vote.h"

/* Before the step: a master has answered.  Releases are not timed: nobody waits for most of them.
 */
static inline void counts_on_answer(const struct redlock_lease *lease,
                                    const struct quorum_event *reply)
{
    struct peer_counts *counts = &lease->leases->masters->peers.counts[reply->master];

    counts->votes[reply->vote]++;
    if (reply->command == QUORUM_CMD_RELEASE)
        return;
    if (reply->ask == lease->q.ask)
        histogram_add(&counts->round_trip, lease->q.sent, reply->now);
    else
        counts->late++;
}

/* After the step: a held lease has got a later deadline, or is not held any more. */
static inline void counts_on_hold(const struct redlock_lease *lease, drift_time now, bool held)
{
    struct redlock_stats *stats = &lease->leases->env->stats;

    histogram_add(held ? &stats->extend : &stats->hold, held ? lease->q.sent : lease->q.since, now);
}

/* The operation under way has ended.  since, sent: those of the machine before the step. */
void counts_on_end(const struct redlock_lease *lease, int status, drift_time since, drift_time sent,
                   drift_time now);

/* An answer is NONE or VOID.  error: what is wrong with the master, or "". */
void counts_on_refusal(const struct redlock_lease *lease, unsigned master, const struct vote *vote,
                       bool has_reason);

/* The time for the answers to what was sent is over.  owing: masters that have not answered. */
void counts_on_timeout(const struct redlock_lease *lease, drift_time sent, quorum_mask owing,
                       drift_time now);

#endif /* REDLOCK_COUNTS_H */
