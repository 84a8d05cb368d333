/*
 * vote.h - turns a master's reply into a vote; pure.
 */
#ifndef REDLOCK_VOTE_H
#define REDLOCK_VOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/reason.h"
#include "redlock/core/quorum.h"
#include "redlock/wire/reply.h"

/* Kept small: each answer becomes one, and struct proof stores those that wait. */
struct vote {
    enum quorum_vote vote : 8;
    enum why why : 8; /* The kind of the error.  NONE: it was none. */
    /* The master lacks the script: ask again with the script in full.  The vote is NONE. */
    bool noscript : 1;
    bool outdated : 1;  /* The field epoch of the marker is another one: read the marker again. */
    bool relink : 1;    /* The master differs from what the handshake saw: connect again. */
    bool hints : 1;     /* With a no to a permit: hint is set. */
    bool revoked : 1;   /* EXTEND: a text has revoked the lock at this master. */
    bool is_queued : 1; /* With a no to a waiter in a queue: number is set, not counter. */
    /* The number is above the known high-water mark.  If the master loses its data,
     * no other master may know it: see guard.h. */
    bool unkept;
    /* With a no to several names: the first name found taken, counted from 1; otherwise 0. */
    uint8_t taken;
    uint16_t hint; /* A free slot, counted from 1.  0: no slot is free. */
    union {
        uint64_t counter; /* The number of a yes to RAISE or to a count; 0 with any other yes. */
        uint64_t number;  /* With is_queued: the waiter's place.  0: the queue is full. */
    };
};

/*
 * Turn a reply into a vote.
 *
 * - SET, or a script in its place: +OK is yes, nil is no.
 * - Other scripts: 1 is yes, 0 is no.
 * - RAISE: 1 to QUORUM_FENCE_MAX is yes, 0 is no.  -1 is no vote and sets outdated.
 * - EXTEND: a text that revoked the lock is no, and sets revoked.
 * - -WRONGTYPE is no: the key is there and holds no lock of ours.
 * - Every other error is no vote.  -NOSCRIPT sets noscript.  -READONLY, -NOAUTH, -LOADING and
 *   -MASTERDOWN set relink.  Each error sets why.
 * - A reply of a type that the command cannot have is no vote and sets relink.
 */
struct vote vote_read(enum quorum_command command, const struct reply *reply);

/* Read the reply to the count that follows a SET: a yes with a number, or no vote.  A number out
 * of range does not set relink, because another connection would bring no better number.
 * -WRONGTYPE sets relink, because the marker itself has the wrong type. */
struct vote vote_number(const struct reply *reply);

/* The text that revoked the lock, in the reply to EXTEND.  NULL: it is another reply. */
const char *vote_revoked(const struct reply *reply);

/* Whether the master lacks the script of an EVALSHA. */
bool vote_lacks_script(const struct reply *reply);

#endif /* REDLOCK_VOTE_H */
