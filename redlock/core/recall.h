/*
 * recall.h - what a master that lost its data gets back of the set of masters; pure.
 *
 * A member promises ballots for the next version of the configuration, and accepts a value for it
 * (redlock/lua/prepare.lua, accept.lua).  If it forgot that, a second value could be chosen.  So it
 * gets back what the other members know, together with its new epoch.
 */
#ifndef REDLOCK_RECALL_H
#define REDLOCK_RECALL_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/members.h"

/* What a master with an epoch reports.  A ballot of 0: none. */
struct recall_told {
    bool is_foreign;   /* It belongs to another set. */
    uint64_t version;  /* 0: it belongs to no set yet, or is foreign. */
    uint64_t ballot;   /* The greatest ballot that it promised for the next version. */
    uint64_t accepted; /* The ballot in which it accepted a value for the next version. */
};

/* What a master gets back, besides the configuration. */
struct recall {
    uint64_t ballot;      /* The greatest ballot that it may have promised. */
    uint64_t accepted;    /* The ballot in which it may have accepted a value. */
    unsigned accepted_by; /* The master that reports that value. */
};

/*
 * Collect what a master gets back.  version and lists: of the newest configuration that is known.
 * version 0: masters are in no set.  tellers: the masters with epochs whose answers count.  The
 * master itself is none of them.  are_all: all other members have answered, with an epoch or
 * without.
 *
 * Returns false if the master must not get an epoch.
 */
bool recall_collect(const struct recall_told told[QUORUM_MASTERS_MAX], quorum_mask tellers,
                    bool are_all, uint64_t version, const struct members *lists,
                    struct recall *ret_recall);

/*
 * True: members lost their data, and so few are left that remember the set that nobody gives the
 * others an epoch, however long they wait.  remember: members with an epoch.  absent: members that
 * cannot be asked now, so that they may remember it, too.  If all that could remember it are
 * absent, it is false: clients that are opened now learn of no set, and all are to say the same.
 */
bool recall_is_forgotten(uint64_t version, const struct members *lists, quorum_mask remember,
                         quorum_mask absent);

#endif /* REDLOCK_RECALL_H */
