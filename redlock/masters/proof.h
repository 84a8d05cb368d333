/*
 * proof.h - holds a yes back until the master has shown that it still has its data.
 *
 * A master that lost its data says yes to every client.  So each write of SETs and extensions ends
 * with one read of the epoch in the master's marker (guard.h).  A connection answers in order: if
 * the read returns the known epoch, the epoch was there when the SET ran.  One small read serves
 * all locks of a turn of the loop.  It costs less than a script around each SET, which would have
 * to name the epoch.
 *
 * A lock with a fencing token sends a second command after the SET, which counts.  Both make one
 * vote, and the read proves both.  The counter also grows if the key was there already.  So numbers
 * are skipped, but no number is given twice.
 *
 * An extension needs proof, too.  The key that it finds may have been set after the loss, by a SET
 * that was never proved.  Its proof may have been lost with the connection, or with the process
 * that handed on the token.
 *
 * A yes waits, and so does a place in a queue (place.h): a waiter that slept over a change of the
 * set asks former members, too, whose queues are empty.  Other answers do no harm.
 *
 * The field that is read also has the version of the configuration of the set (look.lua).  A vote
 * counts if the master has no newer version than this client.  Otherwise the client reads the
 * marker on the same link, and holds the vote back until that is answered.  If it then has the
 * version that the proof showed, the vote counts by the lists of that version.  Otherwise the vote
 * is void.  A count of a fencing counter is void in both cases: its floor may have been another.  A
 * master that proved nothing for a second is asked for a proof without a vote.  So a client that
 * only holds or waits learns of a change as well.  A client that has no majority asks every master
 * with an epoch.
 *
 * A number is a floor plus a count, so it is good only with the floor that stood at the master when
 * it counted.  The proof shows the floor that stands later.  So if a query shows another text of
 * the field than before, all numbers that are held for that master are void (proof_on_state): they
 * were computed with the floor of the text before, and the proof would agree with the new text.
 *
 * If the clock guard is per_vote, a second read follows, TIME, and each yes waits for both answers.
 * So does an extension: a lock that is extended while the master's clock is set back ends too early
 * when the clock is corrected (clocks.h).  With this guard the first read also returns the longest
 * lease of all clients, which each of them has announced to the master before it gets a lock there.
 * So the guard looks back for at least as long as any lock lasts that a step may have expired.
 */
#ifndef REDLOCK_PROOF_H
#define REDLOCK_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/alarm.h"
#include "redlock/base/mask.h"
#include "redlock/core/quorum.h"
#include "redlock/link/ask.h"
#include "redlock/wire/vote.h"

struct clocks;
struct peers;
struct reply;
struct standing;

/* A yes, or a place in a queue, that the master has not proved. */
struct yes {
    struct ask ask;
    struct vote vote; /* That of FENCE is VOID until its count is answered with a number. */
};
struct held {
    struct yes *yes;
    uint32_t len, room;
    uint32_t proven; /* The first so many wait for a read of the marker. */
    uint64_t shown;  /* The version that their proof showed. */
};

struct proof {
    struct peers *peers;
    struct standing *standing;
    struct clocks *clocks;
    /* A vote that was held back counts now. */
    void (*on_vote)(void *cookie, unsigned master, const struct ask *ask, const struct vote *vote);
    void *cookie;
    /* Masters that were sent a command that needs proof, and no read after it. */
    quorum_mask wanted;
    quorum_mask shown; /* Masters that were asked for a proof since the alarm rang. */
    struct alarm alarm;
    struct held held[QUORUM_MASTERS_MAX];
};

/* Returns 0, or -1 if memory runs out. */
int proof_init(struct proof *proof);
void proof_done(struct proof *proof);

/* Masters may take commands now that could not before, or the other way round. */
void proof_on_change(struct proof *proof);

/* A second is over. */
void proof_on_alarm(struct proof *proof);

/* proof_want(): these masters were sent a command.  proof_ask(): call it before the commands to
 * this master are written.  proof_forget(): the link went up or down, or the epoch changed. */
void proof_want(struct proof *proof, enum quorum_command command, quorum_mask masters);
void proof_ask(struct proof *proof, unsigned master);
void proof_forget(struct proof *proof, unsigned master);

/* A query shows another text of the field epoch than the one before.  Numbers that are held are
 * void, because their floor may have been another.  Call it before the known text is replaced. */
void proof_on_state(struct proof *proof, unsigned master);

/* The marker was read, and this client obeys what it says. */
void proof_on_look(struct proof *proof, unsigned master);

/* Pass in the answer to a lease's command.  Returns true if it is a yes that needs proof:
 * on_vote() reports it later. */
bool proof_hold(struct proof *proof, unsigned master, const struct ask *ask,
                const struct vote *vote);

/* The answer to the count that followed the SET of this ask. */
void proof_on_count(struct proof *proof, unsigned master, const struct ask *ask,
                    const struct reply *reply);

/* proof_on_answer(): the answer to a read of the epoch.  proof_on_time(): a TIME was answered,
 * and the clock guard has processed it. */
void proof_on_answer(struct proof *proof, unsigned master, const struct reply *reply);
void proof_on_time(struct proof *proof, unsigned master);

#endif /* REDLOCK_PROOF_H */
