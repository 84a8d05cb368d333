/*
 * outlook.h - what keeps a majority from voting, and for how long; pure.
 *
 * The masters that may vote are counted first.  If they cannot decide, the masters with the least
 * trouble are added, then those with the next trouble, until the counted masters could decide.  The
 * trouble that was added last must end, because the masters without it are too few.  So this is the
 * trouble to report to the user.
 */
#ifndef REDLOCK_OUTLOOK_H
#define REDLOCK_OUTLOOK_H

#include <stdbool.h>

#include "drift/drift.h"
#include "redlock/core/members.h"

/* The troubles of a master, from the least to the worst. */
enum outlook {
    OUTLOOK_WELL,      /* It may vote. */
    OUTLOOK_WARMING,   /* It may vote later, without a change by anybody. */
    OUTLOOK_ABSENT,    /* It does not answer, or is not fit to vote. */
    OUTLOOK_FORGOTTEN, /* No time helps it: too few that answer remember its set, or it is closed.
                        */
    OUTLOOK_FORBIDDEN, /* It refuses this user. */
    OUTLOOK_FOREIGN,   /* It says that it belongs to another set of masters. */
    OUTLOOK_TROUBLES
};

struct outlook_view {
    struct members members;
    bool founds; /* No set is known: all masters of the list are needed to found it. */
    /* Masters for which the list is refused, members or not: all members are FOREIGN then. */
    quorum_mask wrong;
    enum outlook masters[QUORUM_MASTERS_MAX]; /* Only members count. */
    drift_span left[QUORUM_MASTERS_MAX];      /* WARMING: the time until it may vote. */
};

/* The trouble that must end before a majority may vote.  WELL: none.  Without members: ABSENT. */
enum outlook outlook_judge(const struct outlook_view *view);

/* The status of a call that the trouble ended, with too few votes. */
int outlook_status(enum outlook outlook);

/* Masters whose trouble alone would end a call with this status. */
quorum_mask outlook_deciding(const struct outlook_view *view, int status);

/* True for each of these statuses. */
bool outlook_is_status(int status);

/* How long the trouble lasts if it is WARMING.  0: there is none.  DRIFT_NEVER: a worse one. */
drift_span outlook_left(const struct outlook_view *view);

#endif /* REDLOCK_OUTLOOK_H */
