/*
 * wait.h - what one client knows of one lock that somebody of it waits for, as
 * a machine that decides and never acts; pure.
 *
 * A client waits once for each resource, however many of its leases do: they
 * stand in line, and only the first of them tries (listen.c).
 *
 * Words.  A waiter leaves a *mark* beside the key on every master, when it
 * *looks*: whoever releases a marked key deletes the mark too, and tells all who
 * listen that the key is *free*; so a release that nobody waits for costs
 * nothing.  Whoever looks and finds a key without a mark tells all others for how
 * long it is *held*.  Both are heard from one master at a time, and are of that one.
 *
 * But who has waited, and has the lock now, looks at one master only, the *teller*, and
 * says that it is *taken*.  That is of all masters, since he has a majority of them; and so
 * is it when the teller says that it is free.  Sixteen who wait would read so much from
 * three masters that the next of them came twice as late.
 *
 * The lock can be had from the instant at which a majority of masters are without
 * the key.  When that was heard, all who wait would try at once, and split the
 * votes; so each draws lots: WAIT_TRIERS of them, on average, try at once, and the
 * others one after the other, if they do not hear that somebody has it by then.
 *
 * Readers are no rivals of each other: they wait by a machine of their own, to which
 * *free* is what a reader may come in to, and all of them try at once.
 *
 * Nothing depends on what is heard but how soon a round begins: a round decides by
 * votes, as always.  What is not heard costs the time up to the next look.
 */
#ifndef REDLOCK_WAIT_H
#define REDLOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/quorum.h"

/* Two that try at once cannot split an odd number of masters; of fewer than one nothing
 * would come, of more most is in vain. */
#define WAIT_TRIERS 2

/* Looks are so much rarer than rounds would be without wake-ups.  No source: two to eight
 * times a second and client, by default. */
#define WAIT_PATIENCE 4

/* What is heard puts off a look for so many of the longest times between two.  No source: of 17
 * who take turns each hears of a new holder 150 times a second, and looks every three. */
#define WAIT_TRUST 4

/* A lock that runs out is tried for so much later at the least, since a master drops a key
 * when its millisecond is over, and at the most, by lot: it is nobody's turn.  Sixteen who
 * wait are a round trip or more apart then. */
#define WAIT_EXPIRY_MIN (2 * DRIFT_MS)
#define WAIT_EXPIRY_MAX (22 * DRIFT_MS)

struct wait {
    unsigned masters;
    bool shared;         /* Who waits wants to read. */
    quorum_mask hears;   /* Masters that we listen to. */
    quorum_mask known;   /* Of these: free_at tells; or of others, as long as they are */
    quorum_mask seen;    /* masters where we have looked, and the key was not there. */
    quorum_mask looking; /* Masters that owe the answer to a look. */
    quorum_mask to_look; /* Masters that are to be looked at as soon as may be. */
    quorum_mask doubted; /* Of these: the key was released meanwhile, or before. */
    bool sure;           /* Looks are answered: what is heard is enough to rely on. */
    bool asked;          /* All were looked at since the latest round. */
    quorum_mask to_tell; /* Masters that have granted it, by one of which others are to be told. */
    quorum_mask teller;  /* What it tells next is of all masters.  None: we know of none. */
    unsigned rivals;     /* Clients that listen, this one included; 0: not known. */
    unsigned losses;     /* Rounds in a row that were lost, and nobody seen to have won. */
    drift_span trip;     /* How long the latest round took. */
    drift_time lost_at;  /* When it was lost. */
    drift_time free_at[QUORUM_MASTERS_MAX]; /* DRIFT_NEVER: the key has no end. */
    drift_time expected; /* When a majority is free, as try_at was drawn for it. */
    drift_time try_at;   /* The next round; DRIFT_NEVER: not known. */
    drift_time look_at;  /* The next look at all of them; DRIFT_NEVER: not planned. */
    drift_time known_at; /* The latest one, or the latest round: what is known of ourselves. */
};

/* What goes with every question of what to do now. */
struct wait_now {
    drift_time now;
    uint32_t random;
    bool waits;                      /* Somebody does; else there is only to be told what is. */
    quorum_mask up;                  /* Masters that may be asked. */
    drift_span pause_min, pause_max; /* Of the lease whose turn it is. */
};

struct wait_actions {
    quorum_mask look;  /* Masters to be looked at; */
    quorum_mask tell;  /* likewise, and told that it is taken. */
    bool relies;       /* Nobody needs to try but at try_at; else each as often as it likes. */
    drift_time try_at; /* When the first in line is to try; DRIFT_NEVER: not now. */
    drift_time wake_at;
};

void wait_init(struct wait *w, unsigned masters, bool shared);

/* ---- What happened ---- */

/* A master has confirmed that we hear what it tells; or it is not heard any more. */
void wait_on_hears(struct wait *w, unsigned master, bool hears);

/* It will not answer a look that is out. */
void wait_on_link(struct wait *w, unsigned master);

/* It tells that the key was released, to so many. */
void wait_on_free(struct wait *w, unsigned master, unsigned rivals, drift_time now);

/* It tells that the key lasts so much longer. */
void wait_on_held(struct wait *w, unsigned master, uint32_t left_ms, drift_time now);

/* It tells that a majority of masters have the key for so much longer, and is the teller now. */
void wait_on_taken(struct wait *w, unsigned master, uint32_t left_ms, drift_time now);

/* The answer to a look: what PTTL says - ms that are left, -2 if there is no key, or a reader
 * may come in, -1 if it has no end - or WAIT_NO_ANSWER. */
#define WAIT_NO_ANSWER (-3)
void wait_on_look(struct wait *w, unsigned master, int64_t pttl_ms, drift_time now);

/* A round of the first in line begins, or began then; and was lost.  One of anybody's was won, by
 * these, while others of ours wait or do not. */
void wait_on_try(struct wait *w, drift_time now);
void wait_on_lost(struct wait *w, drift_span trip, const struct wait_now *now);
void wait_on_won(struct wait *w, quorum_mask granted, bool others);

/* Of which masters it is what this one tells: of all, if it is the teller. */
quorum_mask wait_speaks_for(const struct wait *w, unsigned master);

/* What was won is given back, or lost. */
void wait_on_over(struct wait *w);

/* The first in line has left, and its losses are its own: it may have asked for what cannot be
 * had.  If there is any, it is the turn of another of ours. */
void wait_on_turn(struct wait *w, bool any);

/* ---- What to do ---- */

/* To be asked after each of these, and when wake_at has come. */
void wait_next(struct wait *w, const struct wait_now *now, struct wait_actions *ret_actions);

#endif /* REDLOCK_WAIT_H */
