/*
 * guardian.h - the parent of the command of `redlock run`.  It kills the command and all
 * descendants before another client can have the lock.
 *
 * The guardian is a process of its own, so that it works when `redlock` is killed or stopped.  It
 * keeps no descriptor of the command, and blocks every signal.  It sleeps until the command ends,
 * an order comes, or something is due.
 */
#ifndef REDLOCK_GUARDIAN_H
#define REDLOCK_GUARDIAN_H

#include <signal.h>

#include "redlock/cli/run/orders.h"

struct cli;

struct guardian_job {
    struct cli *cli; /* Its list of masters may hold passwords, and is wiped in the guardian. */
    int socket;      /* Carries orders and reports. */
    const struct leash_shared *shared;
    const char *name; /* The argument NAME of `redlock run`. */
    char **argv;      /* The command. */
    sigset_t mask;    /* The signals that were blocked when `redlock` started. */
};

/* Run the guardian, in a process that was forked for it.  Every signal must be blocked. */
void guardian_main(const struct guardian_job *job) __attribute__((noreturn));

#endif /* REDLOCK_GUARDIAN_H */
