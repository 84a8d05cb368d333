/*
 * holders.h - the readers of a lock, or the holders of the permits of a semaphore: what one master
 * reports, and what a majority stores.
 *
 * A lock with one holder needs no list; report.h has its token.
 */
#ifndef REDLOCK_HOLDERS_H
#define REDLOCK_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/core/members.h"
#include "redlock/redlock.h"
#include "redlock/wire/reply.h"

/* What a master reports at most.  Of readers these are the ones that end last.  Chosen. */
#define HOLDERS_MAX 64

/* The query, a script: KEYS[1] is the name, KEYS[2] the prefix of its permits, ARGV[1] the greatest
 * number of a permit.  It reads at most one byte more than the longest token, and control
 * characters come as `?`.  What the user may not read is left out. */
extern const char holders_script[];

struct holder {
    unsigned number;  /* Of the permit, from 1.  0: a reader. */
    long long ttl_ms; /* How long the master stores it. */
    char token[REDLOCK_TOKEN_MAX + 1];
};

struct holders {
    struct holder *list; /* Each token and number once. */
    unsigned len;
};

/* Read an answer.  Anything else than a list is an empty one.  False: out of memory. */
bool holders_take(struct holders *holders, const struct reply *reply);
void holders_free(struct holders *holders);

/* The holders that a majority stores, by number and then by token, each with the longest time that
 * a majority stores it.  of: those of each master; NULL: this master does not count.  False: out of
 * memory. */
bool holders_agree(const struct holders *const *of, unsigned masters, const struct members *lists,
                   struct holders *ret_agreed);

#endif /* REDLOCK_HOLDERS_H */
