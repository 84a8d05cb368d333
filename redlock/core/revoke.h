/*
 * revoke.h - takes a lock from its holder for an operator: who holds it, and whether it worked;
 * pure.
 *
 * The operator reads what all masters store (revoke_on_read), finds the holder (revoke_choose), and
 * sends each master a text that replaces the holder's token.  The key keeps its end.  So nobody
 * else gets the lock before the holder's time is over, whether all masters, some or none have the
 * text.
 *
 * Rules
 *  1. The lock is revoked when a majority stores the text in place of the token, of each list while
 *     the set changes.  An extension needs a majority.  A master that lacks the token does not
 *     count: the holder's request may be late, and still set it there.  Nor does one whose text may
 *     have ended by now: the holder may have given itself the key again (rule 14 of quorum.c).
 *  2. Only members count that showed an epoch, with the known version of the set or an older one.
 *     One with a newer version ends the attempt: a majority may be of other masters by now.
 *  3. The holder is the token that most masters store, if it may be a majority together with
 *     masters that did not answer.  Otherwise nobody holds the lock.
 *  4. Fencing tokens of later holders are greater than the number, and those of the holder and all
 *     before it are smaller.  It is the greatest to which a master counted in the step that stored
 *     the text.  A majority did so, and the others of it count on to the number while they store
 *     the text.  What was read before is not used: the holder may have counted on since.
 *     docs/safety.md has the proof.
 *  5. The name is free for others when it is free on a majority.
 */
#ifndef REDLOCK_REVOKE_H
#define REDLOCK_REVOKE_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/members.h"
#include "redlock/core/quorum.h"
#include "redlock/redlock.h"

enum revoke_what {
    REVOKE_FREE,
    REVOKE_TOKEN,
    REVOKE_READERS,
    REVOKE_REVOKED, /* The text of an operator, in place of a token. */
    REVOKE_FOREIGN, /* Redlock did not write this key, or it has no end. */
};

/* What a master stores. */
struct revoke_seen {
    enum revoke_what what;
    uint64_t version; /* Of its configuration.  0: it has no epoch, or no marker was read. */
    uint32_t left_ms; /* Until the key ends. */
    char text[REDLOCK_TOKEN_MAX + 1]; /* TOKEN, REVOKED. */
};

/* What a master did. */
struct revoke_done {
    bool is_revoked;  /* It stores the text now.  Otherwise it did not store the holder. */
    uint32_t left_ms; /* Until the key ends. */
    uint64_t number;  /* To which its fencing counter counted with the text.  0: it did not. */
};

enum revoke_status {
    REVOKE_OK,
    REVOKE_TOO_FEW,   /* No majority answered with an epoch, or stores the text for long enough. */
    REVOKE_OVERTAKEN, /* culprit has a newer version of the set. */
    REVOKE_NOBODY,    /* Nobody holds it.  After the attempt: the holder was gone by itself. */
    REVOKE_ALREADY,   /* It was revoked before: text. */
    REVOKE_NO_LOCK,   /* Nobody holds it, and foreign store a key that Redlock did not write. */
};

struct revoke {
    struct members lists;
    bool is_guarded;  /* Masters have markers, so that versions and counters are known. */
    uint64_t version; /* Of the set. */
    quorum_mask read, done;
    struct revoke_seen seen[QUORUM_MASTERS_MAX];
    struct revoke_done did[QUORUM_MASTERS_MAX];
    /* Of revoke_choose(). */
    quorum_mask holders;
    bool has_readers;                 /* The holders are readers. */
    char text[REDLOCK_TOKEN_MAX + 1]; /* The token, or of what revoked it. */
    uint32_t ago_ms;                  /* Since the masters were asked to revoke it. */
    uint64_t number;                  /* The greatest that was counted to.  0: none. */
    unsigned culprit;
    quorum_mask foreign;
};

void revoke_init(struct revoke *r, const struct members *lists, bool is_guarded, uint64_t version);

/* Answers.  A master that does not answer is left out. */
void revoke_on_read(struct revoke *r, unsigned master, const struct revoke_seen *seen);
void revoke_on_done(struct revoke *r, unsigned master, const struct revoke_done *done);
/* The master counted on to this number while it stored the text. */
void revoke_on_raised(struct revoke *r, unsigned master, uint64_t number);

/* All have answered that will.  Find the holder.  OK: there is one. */
enum revoke_status revoke_choose(struct revoke *r);

/* The masters were asked to revoke it, so long ago.  OK: it is revoked. */
enum revoke_status revoke_judge(struct revoke *r, uint32_t ago_ms);

/* The masters that store the text of this attempt. */
quorum_mask revoke_masters(const struct revoke *r);

/* It is revoked.  The masters that have to count on to r->number. */
quorum_mask revoke_behind(const struct revoke *r);

/* The number that a majority has counted to.  0: there is none. */
uint64_t revoke_number(const struct revoke *r);

/* When the name is free for others at the latest, from the latest answers on. */
uint32_t revoke_left_ms(const struct revoke *r);

#endif /* REDLOCK_REVOKE_H */
