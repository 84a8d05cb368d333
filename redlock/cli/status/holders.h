/*
 * holders.h - the readers of a lock, or the holders of the permits of a semaphore, that a majority
 * stores.
 *
 * A lock with one holder needs no list; report.h has its token.
 */
#ifndef REDLOCK_HOLDERS_H
#define REDLOCK_HOLDERS_H

#include <stdbool.h>

#include "redlock/cli/common/shown.h"
#include "redlock/core/members.h"

/* The holders that a majority stores, by number (0: a reader) and then by token, each once, with
 * the longest time that a majority stores it.  of: what each master told; NULL: it does not count.
 * The texts of *ret_agreed are those of `of`, and shown_free() frees the rest of it.  False: out of
 * memory. */
bool holders_agree(const struct shown *const *of, unsigned masters, const struct members *lists,
                   struct shown *ret_agreed);

#endif /* REDLOCK_HOLDERS_H */
