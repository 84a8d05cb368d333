/*
 * revoke.h - `redlock unlock --force`: takes a lock from its holder.
 */
#ifndef REDLOCK_CLI_REVOKE_H
#define REDLOCK_CLI_REVOKE_H

#include <stdbool.h>

#include "redlock/cli/common/cli.h"

struct revoke_wanted {
    const char *reason; /* NULL: none. */
    unsigned permit;    /* Of a semaphore, from 1.  0: the lock is none. */
    bool now;           /* Delete the key as well. */
    bool yes;           /* Do not ask. */
};

/* Revoke the lock of this name.  Returns an exit code. */
int revoke_run(struct cli *cli, const char *name, const struct revoke_wanted *wanted);

#endif /* REDLOCK_CLI_REVOKE_H */
