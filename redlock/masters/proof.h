/*
 * proof.h - a yes counts when the master has shown that it still has its
 * memory: holds it back until then.
 *
 * A master that has forgotten its locks says yes to anybody.  So behind the
 * SETs and extensions that go to it in one write goes one read of the epoch in
 * its marker (guard.h).  A connection answers in order: the epoch that we know,
 * read after a SET, was there when that was done.  One small read for all the
 * locks of a turn of the loop costs less than a script around each SET, which
 * would have to name the epoch.
 *
 * Of a lock with a fencing token a second command goes behind the SET, which counts;
 * both make one vote, and the read proves both.  The counter goes up where the key was
 * there already, too: numbers are left out, and none is given twice.
 *
 * An extension has to be proved as well: the key that it finds may have been
 * set after the loss, by a SET whose own proof was lost with its connection, or
 * with the process that has handed on the token.
 *
 * Only a yes waits.  A no can do no harm, and nor can a release.
 *
 * With the clock guard for every vote a second read goes behind that one, TIME, and
 * a yes waits for it as well.  An extension, too: what is extended by a clock that is
 * back for a while ends when it is put right (clocks.h).  And the first read then also
 * tells the longest lease: whoever was granted one by this master had told it before, so
 * that the time looked back to is never too short for what a step may have dropped there.
 */
#ifndef REDLOCK_PROOF_H
#define REDLOCK_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/mask.h"
#include "redlock/core/quorum.h"
#include "redlock/link/ask.h"

struct clocks;
struct peers;
struct reply;
struct standing;
struct vote;

/* What a master said yes to, and has not proved. */
struct yes {
    struct ask ask;
    uint64_t counter; /* Of FENCE: the number that was counted to, 0: none; of RAISE, likewise. */
    bool unkept;
};
struct held {
    struct yes *yes;
    uint32_t len, room;
};

struct proof {
    struct peers *peers;
    struct standing *standing;
    struct clocks *clocks;
    /* A vote that was held back counts now. */
    void (*on_vote)(void *cookie, unsigned master, const struct ask *ask, const struct vote *vote);
    void *cookie;
    quorum_mask wanted; /* Masters that were sent such a command, and no read after it. */
    struct held held[QUORUM_MASTERS_MAX];
};

void proof_done(struct proof *proof);

/* These were sent a command; before what was sent to master is written; its link
 * came up or went down, or it has another epoch. */
void proof_want(struct proof *proof, enum quorum_command command, quorum_mask masters);
void proof_ask(struct proof *proof, unsigned master);
void proof_forget(struct proof *proof, unsigned master);

/* The answer to a lease's command; true: it is a yes that comes again when it is proved. */
bool proof_hold(struct proof *proof, unsigned master, const struct ask *ask,
                const struct vote *vote);

/* The answer to the count that went behind the SET of this ask. */
void proof_on_count(struct proof *proof, unsigned master, const struct ask *ask,
                    const struct reply *reply);

/* The answer to a read of the epoch; a TIME was answered, and learned from. */
void proof_on_answer(struct proof *proof, unsigned master, const struct reply *reply);
void proof_on_time(struct proof *proof, unsigned master);

#endif /* REDLOCK_PROOF_H */
