/*
 * leash.h - the side of `redlock run` of its exchange with the guardian (orders.h).
 */
#ifndef REDLOCK_LEASH_H
#define REDLOCK_LEASH_H

#include <stdbool.h>
#include <sys/types.h>

#include "redlock/cli/run/orders.h"
#include "redlock/redlock.h"

struct cli;

struct leash {
    int socket;
    pid_t pid;  /* The guardian.  0: it was reaped. */
    int status; /* What waitpid() told of the reaped guardian. */
    struct leash_shared *shared;
    bool had_children; /* This process had children from the start, so it is no subreaper. */
};

/*
 * Fork the guardian of a command.  Call this before there are sockets, threads or secrets.  From
 * here on this process is a child subreaper, which inherits the orphans of the guardian.  Returns
 * 0, or -1 with errno.
 */
int leash_open(struct leash *leash, struct cli *cli, const char *name, char **argv);

/* Write the present end of the lease to the shared memory, and continue a stopped guardian. */
void leash_renew(struct leash *leash, const struct redlock_lease *lease);

/* Send an order, and continue a stopped guardian.  Returns 0, or -1 with errno. */
int leash_order(const struct leash *leash, const struct leash_order *order);

/* Returns 1 and the next report, 0 if there is none yet, or -1 if the guardian is dead. */
int leash_report(const struct leash *leash, struct leash_report *ret_report);

/* Reap the dead guardian, and orphans that it left: a number of them at a time. */
void leash_bury(struct leash *leash);

/* End the guardian, whose command has ended or was never started. */
void leash_close(struct leash *leash);

#endif /* REDLOCK_LEASH_H */
