/*
 * fencing.h - a model of fencing tokens while the set of masters changes: rule M8 of members.h.
 *
 * Each master has a counter.  A round sets the key and counts on every master that it asks,
 * whether the key was set or not.  The token is a number to which a quorum counted for this
 * round (docs/protocol.md, section 14).  Locks and configurations are as in members.h, but a
 * version is chosen in one step, and a lease is not extended.
 *
 * Two tokens are compared, so each of two clients has one round (with bounds.again, any number).
 * All others only count: any counter may go up by one at any time, as by a refused rival.
 *
 *  F1. A number counts only with a proof of epoch and version behind it, as a vote does (M1).  A
 *      raise compares both.  A client that takes a version over drops its numbers (take_over).
 *  F2. While joint, Q(L1) and Q(L2) agree on the same number (find_token).
 *  F3. Before simple(L2) is proposed, and after M5 (1), the numbers of N - Q + 1 members of L1
 *      are read.  Each shows the joint version in the same answer (read_number).
 *      Reason: two members that show the old version may still agree on a greater number.
 *  F4. The counters of Q(L2) are raised to the greatest number read (raise_counter).
 *      Reason: N - Q + 1 are fewer if N is even; one of these that loses its data may then get its
 *      floor from others that were not raised.
 *      A joint version that is given up needs neither F3 nor F4, nor M5 (choose_first): each
 *      token under it was agreed by Q(L1), too.
 *  F5. A warming master counts on from the greatest number that N - Q + 1 others of each list
 *      tell after the watch (install).  While joint these include N - Q + 1 of L1.  So a master
 *      that was raised and then lost its data needs no second look.
 *
 * Invariants: no two locks have the same token; a token is greater than those of all locks that
 * were granted when its round began; without clock steps, it is greater than all earlier ones.
 */
#ifndef REDLOCK_TEST_MODELS_FENCING_H
#define REDLOCK_TEST_MODELS_FENCING_H

#include "models/members.h"

struct fencing_master {
    unsigned memory : 1;
    unsigned watch : 2;
    unsigned version : 3;
    unsigned owner : 2;
    unsigned left : 2;
    unsigned counter : 4; /* While warming: the greatest number told. */
    unsigned told : 6;
};

enum round { NO_ROUND, ASKING, RAISING, HOLDING };

struct fencing_client {
    unsigned version : 3;
    unsigned round : 2; /* enum round. */
    unsigned age : 2;
    unsigned left : 2;
    unsigned asked : 6;  /* Masters that were asked, or that were raised while RAISING. */
    unsigned stored : 6; /* The key was set, and the proof is not read yet. */
    unsigned good : 6;   /* The number counts. */
    unsigned over : 1;   /* It had its round. */
    unsigned : 0;
    unsigned numbers : 24; /* 4 bits for each master: to what it counted, or 0. */
    unsigned greatest : 4; /* The greatest number told in this round, also by refusals. */
    unsigned begun : 4;    /* Clock steps: the greatest token granted when the round began. */
};

struct fencing_admin {
    unsigned seen : 6;
    unsigned read : 6;
    unsigned raised : 6;
    unsigned greatest : 4;
    unsigned wait : 2;
    unsigned waiting : 1; /* M5 (1) is done. */
    unsigned spoilt : 1;  /* A master that was seen lost its data. */
};

struct fencing_world {
    struct {
        unsigned newest : 3; /* The newest version chosen. */
        unsigned forgotten : 2;
        unsigned last : 4;     /* The greatest token granted. */
        unsigned granted : 16; /* Clock steps: bit n: token n was granted. */
        unsigned back : 2;     /* Bit n: joint version 2 n + 2 was given up. */
    } history;
    struct fencing_admin admin;
    struct fencing_master masters[MASTERS_MAX];
    struct fencing_client clients[2];
};

void fencing_begin(void *world);
void fencing_steps(const void *world);
void fencing_rename(void *world);
void fencing_tell(const void *before, const void *after, struct move move);
uint32_t fencing_words_used(void);

#endif
