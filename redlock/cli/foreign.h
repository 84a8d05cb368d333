/*
 * foreign.h - finds keys in place of locks that redlock did not write.
 */
#ifndef REDLOCK_FOREIGN_H
#define REDLOCK_FOREIGN_H

#include <stdbool.h>

#include <ev.h>

#include "redlock/base/mask.h"
#include "redlock/cli/cli.h"

/* One search on all masters. */
struct foreign {
    struct redlock *rl;
    const struct cli_names *names;
    unsigned answers_left;
    quorum_mask found[REDLOCK_NAMES_MAX]; /* For each name: masters that have another key. */
    bool is_told;
    ev_timer timer;
};

/* Begin a search when a lock has been waited for for a while.  Reports once what it finds on so
 * many masters that no majority can grant the lock.  On fewer, a client may hold the lock on the
 * others.
 */
void foreign_wait(struct foreign *foreign, struct ev_loop *loop, struct redlock *rl,
                  const struct cli_names *names);

/* Search once more, and wait for the answers, but at most at_most_ms. */
void foreign_find(struct foreign *foreign, struct ev_loop *loop, uint32_t at_most_ms);

/* End the search. */
void foreign_done(struct foreign *foreign, struct ev_loop *loop);

#endif /* REDLOCK_FOREIGN_H */
