/*
 * leash.h - the end of `redlock run` of what is between it and its guardian (orders.h).
 */
#ifndef REDLOCK_LEASH_H
#define REDLOCK_LEASH_H

#include <stdbool.h>
#include <sys/types.h>

#include "redlock/cli/orders.h"
#include "redlock/redlock.h"

struct cli;

struct leash {
    int socket;
    pid_t pid; /* Of the guardian; 0: it was reaped. */
    struct leash_shared *shared;
    bool had_children; /* This process, from before: we are no subreaper then. */
};

/*
 * Fork the guardian of a command: before there are sockets, threads or secrets.  From
 * here on this process is a child subreaper, which inherits what the guardian leaves.
 * 0, or -1 with errno.
 */
int leash_open(struct leash *leash, struct cli *cli, const char *name, char **argv);

/* Write down the end of the lease, as the library tells it now.  Here as well a guardian that
 * somebody stopped goes on. */
void leash_renew(struct leash *leash, const struct redlock_lease *lease);

/* Send an order.  A guardian that somebody stopped goes on.  0, or -1 with errno. */
int leash_order(const struct leash *leash, const struct leash_order *order);

/* 1: *ret_report is the next report; 0: there is none yet; -1: the guardian is dead. */
int leash_report(const struct leash *leash, struct leash_report *ret_report);

/* Reap the guardian, which is dead, and the orphans that it left. */
void leash_bury(struct leash *leash);

/* End the guardian, whose command has ended or was never started. */
void leash_close(struct leash *leash);

#endif /* REDLOCK_LEASH_H */
