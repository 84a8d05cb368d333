/*
 * members.h - which masters count, and how many of them decide; pure.
 *
 * The set of masters is one list, or two while it changes (a *joint* configuration).  Any majority
 * shares a master with any other of the same list.  While there are two lists, a decision needs a
 * majority of each.  So it shares a master with every decision that knew only one of the lists
 * (docs/protocol.md).
 */
#ifndef REDLOCK_MEMBERS_H
#define REDLOCK_MEMBERS_H

#include <stdbool.h>

#include "redlock/base/mask.h"

/* Equal if there is one list.  Both are empty if no set is known; then nothing can be decided. */
struct members {
    quorum_mask from, to;
};

/* One list, of the first masters. */
static inline struct members members_first(unsigned len)
{
    quorum_mask list = (quorum_mask)((1u << len) - 1);

    return (struct members){list, list};
}

/* The masters of both lists. */
static inline quorum_mask members_all(const struct members *members)
{
    return members->from | members->to;
}

static inline bool members_is_majority(quorum_mask list, quorum_mask votes)
{
    return 2 * mask_count(votes & list) > mask_count(list);
}

/* True if these masters can decide.  A master in both lists counts in both. */
static inline bool members_decide(const struct members *members, quorum_mask votes)
{
    return members_is_majority(members->from, votes) &&
           (members->to == members->from || members_is_majority(members->to, votes));
}

/* True if these masters decide, and without some one of them they would not. */
static inline bool members_barely_decide(const struct members *members, quorum_mask votes)
{
    return members_decide(members, votes) &&
           (mask_count(votes & members->from) == mask_count(members->from) / 2 + 1 ||
            mask_count(votes & members->to) == mask_count(members->to) / 2 + 1);
}

/* True if these masters share one with everything that can decide: they are N - Q + 1 of the N
 * masters of each list, where Q is a majority. */
static inline bool members_meet_all(const struct members *members, quorum_mask masters)
{
    return members_all(members) != 0 &&
           2 * mask_count(masters & members->from) >= mask_count(members->from) &&
           2 * mask_count(masters & members->to) >= mask_count(members->to);
}

/* The greatest number that enough masters reach to decide.  of: the number of each master, and 0 of
 * those that do not count.  0: there is none. */
static inline long long members_reach(const struct members *members,
                                      const long long of[QUORUM_MASTERS_MAX])
{
    long long most = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        quorum_mask reach = 0;

        for (unsigned other = 0; other < QUORUM_MASTERS_MAX; other++)
            reach |= of[other] >= of[m] ? mask_of(other) : 0;
        if (of[m] > most && members_decide(members, reach))
            most = of[m];
    }
    return most;
}

#endif /* REDLOCK_MEMBERS_H */
