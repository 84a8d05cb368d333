/*
 * wait.h - what one client knows of one lock that it waits for.  The machine
 * decides and never acts; pure.
 *
 * A client waits once for each resource, however many of its leases wait.  The
 * leases queue inside the client, and only the first of them tries (lines.c).
 *
 * A waiter *queries* each master for the key, and sets a *wait flag* beside it.  A
 * client that releases a flagged key deletes the flag too, and the master announces
 * that the key is *free*.  A release that nobody waits for thus announces nothing
 * and costs nothing.  A query that finds a key without a wait flag announces for
 * how long the key is *held*.  Both announcements come from one master at a time,
 * and speak for that master only.
 *
 * A holder that has waited queries one master only, the *announcer*.  That query
 * announces that the lock is *taken*.  This speaks for all masters, because the
 * holder has a majority.  When the announcer later says that the key is free, that
 * speaks for all masters too.  Without an announcer, sixteen waiters read so many
 * messages from three masters that the next holder came twice as late.
 *
 * The lock is free from the instant at which a majority of masters are without the
 * key.  If all waiters tried when they heard this, they would split the votes.  So
 * each draws a random delay: on average, WAIT_TRIERS waiters try at once, and as
 * many in each turn after that.  A waiter does not try when it hears first
 * that the lock is taken.
 *
 * Readers do not compete with each other.  They wait by a machine of their own, and
 * all of them try at once.  To that machine, *free* means that a reader may have
 * the lock.
 *
 * Announcements only decide how soon a round begins.  The round itself is decided
 * by votes, as always.  A lost announcement costs the time up to the next query.
 */
#ifndef REDLOCK_WAIT_H
#define REDLOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/members.h"

/* If two clients try at once, they cannot split an odd number of masters.  With fewer than one
 * on average, often nobody would try.  With more, most would try in vain. */
#define WAIT_TRIERS 2

/* Queries are this much rarer than rounds would be without announcements.  Chosen: by
 * default a client queries all masters about twice a second. */
#define WAIT_PATIENCE 4

/* Announcements may put off a query, but for no more than this many of the longest intervals
 * between queries.  Chosen: of 17 clients that take turns, each hears of a new holder 150 times
 * a second, and queries every three seconds. */
#define WAIT_TRUST 4

/* After a lease expires, a waiter delays its try by a random time between these two.  The
 * minimum is needed because a master drops a key when its last millisecond is over.  The random
 * part is needed because no waiter is first in turn.  Sixteen waiters are then a round trip or
 * more apart. */
#define WAIT_EXPIRY_MIN (2 * DRIFT_MS)
#define WAIT_EXPIRY_MAX (22 * DRIFT_MS)

struct wait {
    const struct members *members; /* The members now.  The caller owns and changes it. */
    bool shared;                   /* The waiters want a read lock. */
    bool permits;                  /* They want a permit.  Set by the caller. */
    quorum_mask barred;            /* As in the latest struct wait_now. */
    quorum_mask hears;             /* Masters whose announcements we hear. */
    quorum_mask known;   /* Masters for which free_at is valid.  They are in hears or in seen. */
    quorum_mask seen;    /* Masters where our query found no key. */
    quorum_mask looking; /* Masters that have not answered our query yet. */
    quorum_mask to_look; /* Masters to query as soon as possible. */
    quorum_mask doubted; /* Masters in looking that announced a release after our query.  The key
                          * that the query found may be gone. */
    bool sure;           /* Masters answer queries, so announcements are enough to rely on. */
    bool asked;          /* All masters were queried since the latest round. */
    bool chased;         /* Those that may complete a majority were, likewise. */
    quorum_mask to_tell; /* Masters that granted us the lock.  One of them is to announce that it
                          * is taken. */
    quorum_mask teller;  /* The announcer: its next announcement speaks for all masters.  0: none
                          * is known. */
    unsigned rivals;     /* Clients that listen, this one included; 0: not known. */
    unsigned losses;     /* Rounds lost in a row without news of a winner (rule 5). */
    drift_span trip;     /* How long the latest round took. */
    drift_time lost_at;  /* When the latest round was lost. */
    drift_time free_at[QUORUM_MASTERS_MAX]; /* DRIFT_NEVER: the key never expires. */
    drift_time expected; /* When a majority will be free.  find_free() computed it for try_at. */
    drift_time try_at;   /* When to begin the next round; DRIFT_NEVER: not known. */
    drift_time look_at;  /* When to query all masters next; DRIFT_NEVER: not planned. */
    drift_time rest_at;  /* When to query the masters that may complete a majority of free ones;
                          * DRIFT_NEVER: no need. */
    drift_time known_at; /* When this client last learned something itself: by the latest query of
                          * all masters, or the latest round. */
};

/* The input of every decision. */
struct wait_now {
    drift_time now;
    uint32_t random;
    bool waits;                      /* A lease of this client waits.  Otherwise the only work is
                                      * to announce that the lock is taken. */
    quorum_mask up;                  /* Masters that can be sent a command. */
    quorum_mask barred;              /* Masters whose votes would not count, because of their
                                      * clocks. */
    drift_span pause_min, pause_max; /* The pauses of the first lease in the queue. */
};

struct wait_actions {
    quorum_mask look;  /* Masters to query. */
    quorum_mask tell;  /* Masters to query with a request to announce that the lock is taken. */
    bool relies;       /* No lease needs to try except at try_at.  Otherwise each tries as often
                        * as it likes. */
    drift_time try_at; /* When the first lease in the queue is to try; DRIFT_NEVER: not now. */
    drift_time wake_at;
};

void wait_init(struct wait *w, const struct members *members, bool shared);

/* ---- What happened ---- */

/* A master has confirmed that we hear its announcements, or we no longer hear them. */
void wait_on_hears(struct wait *w, unsigned master, bool hears);

/* The master will not answer a query that is out. */
void wait_on_link(struct wait *w, unsigned master);

/* These numbers belong to other masters from now on. */
void wait_on_left(struct wait *w, quorum_mask left);

/* The master announced to this many clients that the key was released. */
void wait_on_free(struct wait *w, unsigned master, unsigned rivals, drift_time now);

/* The master announced that the key lasts this much longer. */
void wait_on_held(struct wait *w, unsigned master, uint32_t left_ms, drift_time now);

/* The master announced that a majority has the key for this much longer.  It is the announcer
 * now. */
void wait_on_taken(struct wait *w, unsigned master, uint32_t left_ms, drift_time now);

/* The answer to a query. pttl_ms is what PTTL returns, or WAIT_NO_ANSWER.  A value of 0 or more:
 * the milliseconds left. -1: the key never expires. -2: there is no key, or a reader may have
 * the lock. */
#define WAIT_NO_ANSWER (-3)
void wait_on_look(struct wait *w, unsigned master, int64_t pttl_ms, drift_time now);

/* Three events of rounds.  Try: a round of the first lease in the queue begins, or began at now.
 * Lost: that round was lost.  Won: any lease of this client won a round.  The masters in granted
 * granted it. others: more of our leases wait. */
void wait_on_try(struct wait *w, drift_time now);
void wait_on_lost(struct wait *w, drift_span trip, const struct wait_now *now);
void wait_on_won(struct wait *w, quorum_mask granted, bool others);

/* The masters for which this master's announcements speak: all that we hear if it is the
 * announcer, else itself. */
quorum_mask wait_speaks_for(const struct wait *w, unsigned master);

/* The lock that we won is released or lost. */
void wait_on_over(struct wait *w);

/* The first lease of another queue, which lost so many rounds in a row, is the first of this one
 * now: of several names another one was taken. */
void wait_on_moved(struct wait *w, unsigned losses);

/* The first lease has left the queue.  Its losses are forgotten, because it may have asked for
 * something that it cannot have.  If any is set, another lease of ours is in the queue, and is
 * first now. */
void wait_on_turn(struct wait *w, bool any);

/* ---- What to do ---- */

/* Call this after each event above, and when wake_at has come. */
void wait_next(struct wait *w, const struct wait_now *now, struct wait_actions *ret_actions);

#endif /* REDLOCK_WAIT_H */
