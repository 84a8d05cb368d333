/*
 * foreign.h - finds keys in place of locks that redlock did not write.
 */
#ifndef REDLOCK_FOREIGN_H
#define REDLOCK_FOREIGN_H

#include <stdbool.h>

#include <ev.h>

#include "redlock/base/mask.h"
#include "redlock/cli/common/cli.h"
#include "redlock/cli/common/question.h"
#include "redlock/cli/common/shown.h"

#define FOREIGN_SAID_MAX (CLI_NAMES_SHOWN_MAX + CLI_MASTERS_SHOWN_MAX + 200)

/* The token and note that masters store for a name. */
struct foreign_holder {
    char stored[REDLOCK_TOKEN_MAX + 1];
    quorum_mask masters; /* Masters that store it.  0: none is known. */
};

/* One search on all masters. */
struct foreign {
    struct question question;
    const struct cli_names *names;
    bool has_queue;
    unsigned slots; /* The slots of a semaphore.  0: it is a lock. */
    /* For each name and then the queue, or for each slot: masters that have another key. */
    quorum_mask found[REDLOCK_PERMITS_MAX];
    char types[REDLOCK_PERMITS_MAX][SHOWN_FOREIGN_MAX]; /* What this key is. */
    struct foreign_holder holders[REDLOCK_NAMES_MAX];   /* The holder of each name. */
    bool keeps;   /* The latest search has found one that keeps the lock from all clients. */
    bool is_told; /* It was reported. */
    char said[FOREIGN_SAID_MAX]; /* The report. */
    ev_timer timer;
};

/* Begin a search when a lock has been waited for for a while.  A foreign key is reported once, if
 * so many masters have it that the others are no majority.  Otherwise a client may hold the lock on
 * the others. */
void foreign_wait(struct foreign *foreign, const struct cli *cli, struct ev_loop *loop,
                  struct redlock *rl, const struct cli_names *names,
                  const struct redlock_lock_options *opts);

/* The call has ended.  Search once more, and wait for the answers, but at most the reply timeout.
 * True: a foreign key keeps the lock from all clients now, and this was reported: foreign->said. */
bool foreign_find(struct foreign *foreign);

/* After that: if a majority stores one holder with a note, report this note. */
void foreign_tell_holder(const struct foreign *foreign);

/* End the search. */
void foreign_done(struct foreign *foreign);

#endif /* REDLOCK_FOREIGN_H */
