/*
 * foreign.h - finds keys in place of locks that redlock did not write.
 */
#ifndef REDLOCK_FOREIGN_H
#define REDLOCK_FOREIGN_H

#include <stdbool.h>

#include <ev.h>

#include "redlock/cli/cli.h"

/* One search on all masters. */
struct foreign {
    struct redlock *rl;
    const struct cli_names *names;
    unsigned answers_left;
    bool is_asked, is_told;
    ev_timer timer;
};

/* Begin a search when a lock has been waited for for a while.  Reports what it finds, once. */
void foreign_wait(struct foreign *foreign, struct ev_loop *loop, struct redlock *rl,
                  const struct cli_names *names);

/* Search now, unless a search has begun, and wait for the answers, but at most at_most_ms. */
void foreign_find(struct foreign *foreign, struct ev_loop *loop, uint32_t at_most_ms);

/* End the search. */
void foreign_done(struct foreign *foreign, struct ev_loop *loop);

#endif /* REDLOCK_FOREIGN_H */
