/*
 * queries.h - sends queries of markers, and asks witnesses; carries out what guard.c decides.
 *
 * Between the answers and the installation of an epoch it remembers what masters accepted for the
 * next configuration of the set, as text (guard.c, rule 8).
 */
#ifndef REDLOCK_QUERIES_H
#define REDLOCK_QUERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/reason.h"
#include "redlock/core/guard.h"
#include "redlock/wire/wire.h"

struct answer_set;
struct ask;
struct peers;
struct set;

/* The first three are the owner's. */
struct queries {
    struct peers *peers;
    struct set *set;
    const struct guard *guard;
    /* What each master reported last as accepted: "BALLOT CONFIG", or "".  NULL: it never reported
     * any.  Masters report it only while the set changes, and a text has room for two lists, so it
     * is allocated then. */
    char *accepted[QUORUM_MASTERS_MAX];
};

void queries_done(struct queries *queries);

/* Query the marker. */
void queries_look(struct queries *queries, unsigned master);

/* Query the marker, and give the master an epoch, and what it gets back.  It gets them only if it
 * still has the nonce that the last query saw. */
void queries_install(struct queries *queries, unsigned master, uint64_t floor,
                     const struct recall *recall);

/* The marker was read.  Returns NONE, or why the answer cannot be used. */
enum why queries_check(struct queries *queries, unsigned master, const struct answer_set *set);
/* The answer is used: the guard takes it over as well.  Of an answer that is not used neither keeps
 * anything, or a master would get back the ballot of one answer with the text of another. */
void queries_on_look(struct queries *queries, unsigned master, const struct answer_set *set);

/* Ask a master how old the nonce of a warming master is.  anew: it makes its mark anew. */
void queries_witness(struct queries *queries, unsigned master, unsigned warming, bool anew);

/* What was asked of the witness. */
struct guard_ask queries_asked(const struct ask *ask);

#endif /* REDLOCK_QUERIES_H */
