/*
 * vote.h - from a master's reply to a vote; pure.
 */
#ifndef REDLOCK_VOTE_H
#define REDLOCK_VOTE_H

#include <stdbool.h>

#include "redlock/core/quorum.h"
#include "redlock/wire/reply.h"

struct vote {
    enum quorum_vote vote;
    bool noscript;    /* If it was a script: ask again with it in full; vote is NONE. */
    bool relink;      /* The master is not what the handshake saw: link anew. */
    uint64_t counter; /* Of a yes to RAISE, or to a count; else 0. */
    bool unkept;      /* Nobody may know of that number if the master forgets: see guard.h. */
    unsigned taken;   /* Of a no to several names: the number of one that is taken, from 1. */
    bool hints;       /* Of a no to a permit: it tells a slot that is free, */
    unsigned hint;    /* from 1; 0: none is. */
    bool is_queued;   /* Of a no to who waits in a queue: */
    uint64_t number;  /* where he was put; 0: there is no room. */
};

/*
 * SET, or a script in its place: +OK is yes, nil is no.  Scripts: 1 is yes, 0 is no.  RAISE: any
 * number up to QUORUM_FENCE_MAX is yes, 0 is no, and -1 is no vote and sets relink: the epoch is
 * gone.  -WRONGTYPE is no (the key is there and is not ours).  Every other error is no vote;
 * -NOSCRIPT sets noscript; -READONLY, -NOAUTH, -LOADING and -MASTERDOWN set relink; so does a
 * reply of a type that the command cannot have.
 */
struct vote vote_count(enum quorum_command command, const struct reply *reply);

/* What a reply to the count behind a SET says: yes and a number, or no vote.  A number that
 * none may be is no reason to link anew, as the next one is no better; -WRONGTYPE is, as it
 * tells of the marker. */
struct vote vote_number(const struct reply *reply);

/* What is wrong with the master that answered so; "": nothing. */
const char *vote_error(const struct vote *vote, const struct reply *reply);

#endif /* REDLOCK_VOTE_H */
