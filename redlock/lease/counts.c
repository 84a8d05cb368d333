/*
 * counts.c - counts operations, and masters that did not answer in time.
 */
#include "redlock/lease/counts.h"

#include "redlock/wire/redis_error.h"

void counts_on_end(const struct redlock_lease *lease, int status, drift_time since, drift_time sent,
                   drift_time now)
{
    struct redlock_stats *stats = &lease->leases->env->stats;

    if (lease->op == LEASE_OP_UNLOCK) {
        stats->released += status == REDLOCK_OK;
        stats->unconfirmed += status == REDLOCK_UNREACHABLE;
    }
    if (lease->op != LEASE_OP_LOCK)
        return;
    if (status == REDLOCK_OK) {
        stats->acquired++;
        stats->fenced += lease->q.config.fence;
        histogram_add(&stats->wait, since, now);
        histogram_add(&stats->acquire, sent, now);
        return;
    }
    stats->contended += status == REDLOCK_CONTENDED;
    stats->unreachable += outlook_is_status(status);
    stats->too_late += status == REDLOCK_TOO_LATE;
}

void counts_on_refusal(const struct redlock_lease *lease, unsigned master, const struct vote *vote,
                       bool has_reason)
{
    struct peer_counts *counts = &lease->leases->masters->peers.counts[master];

    if (reason_refuses_user(vote->why))
        counts->forbidden++;
    else if (vote->vote == QUORUM_VOTE_VOID || vote->outdated || !has_reason)
        counts->void_state++;
    else
        counts->errors++;
}

/* A round may end before reply_timeout, because other masters have decided it (quorum.c, rule 9).
 * Then a master that is silent is slow, but not out of time. */
void counts_on_timeout(const struct redlock_lease *lease, drift_time sent, quorum_mask owing,
                       drift_time now)
{
    struct peers *peers = &lease->leases->masters->peers;

    if (drift_until(sent, now) < lease->leases->reply_timeout)
        return;
    for (; owing != 0; owing &= (quorum_mask)(owing - 1))
        peers->counts[__builtin_ctz(owing)].timeouts++;
}
