/*
 * guardian.h - the parent of the command of `redlock run`: it sees to it that the command
 * and what it started are dead before somebody else can have the lock.
 *
 * The guardian is a process of its own, so that it works when `redlock` is killed or
 * stopped.  It keeps no descriptor of the command, blocks every signal, and sleeps until
 * the command ends, an order comes, or a deadline does.
 */
#ifndef REDLOCK_GUARDIAN_H
#define REDLOCK_GUARDIAN_H

#include <signal.h>

#include "redlock/cli/orders.h"

struct cli;

struct guardian_job {
    struct cli *cli; /* Its list of masters may hold passwords, and is wiped in the guardian. */
    int socket;      /* Of orders and reports. */
    const struct leash_shared *shared;
    const char *name; /* Of the lock, as it was written. */
    char **argv;      /* The command. */
    sigset_t mask;    /* The signals that were blocked when `redlock` started. */
};

/* Be the guardian, in a process that was forked for that with every signal blocked. */
void guardian_main(const struct guardian_job *job) __attribute__((noreturn));

#endif /* REDLOCK_GUARDIAN_H */
