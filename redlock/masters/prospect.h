/*
 * prospect.h - what keeps each master from voting now, for outlook.h.
 *
 * It reads what the guards, the set and the links know, and changes nothing.
 */
#ifndef REDLOCK_PROSPECT_H
#define REDLOCK_PROSPECT_H

#include <stdbool.h>

#include "drift/drift.h"
#include "redlock/core/outlook.h"

struct clocks;
struct founding;
struct peers;
struct set;
struct standing;

/* The owner (masters.c) sets all fields. */
struct prospect {
    const struct peers *peers;
    const struct set *set;
    const struct founding *founding;
    const struct standing *standing;
    const struct clocks *clocks;
};

/* All masters of the list are needed, to found its set. */
bool prospect_founds(const struct prospect *p);

/* What each master may do.  Its clock counts, too.  refused: masters whose latest answer to a lease
 * was that they refuse this user; a link is shared by leases, and does not know it.  0: no lease.
 */
void prospect_of_all(const struct prospect *p, quorum_mask refused, drift_time now,
                     struct outlook_view *ret_view);

/* The same for an operation that failed.  failed: masters that were asked, and gave no vote.  If
 * no trouble of such a master is known, it is absent.  A clock and a refusal count only there: the
 * others have voted. */
void prospect_of_failed(const struct prospect *p, quorum_mask failed, quorum_mask refused,
                        drift_time now, struct outlook_view *ret_view);

#endif /* REDLOCK_PROSPECT_H */
