/*
 * state.h - the parts of a client.  Only the files of this folder include it.
 */
#ifndef REDLOCK_CLIENT_STATE_H
#define REDLOCK_CLIENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/client/options.h"
#include "redlock/io/env.h"
#include "redlock/lease/state.h"
#include "redlock/line/lines.h"
#include "redlock/masters/masters.h"
#include "redlock/redlock.h"

struct blocking;
struct reply;

struct redlock {
    struct options options;
    struct env env;
    struct blocking *blocking; /* NULL: the client runs on the caller's loop. */
    struct masters masters;
    struct leases leases;
    struct lines lines;
    drift_time armed; /* The time for which the loop's timer is set. */
    unsigned forks;   /* fork_count() when the client was opened. */
    /* Points to a flag of the running callback; set when that callback closes the client. */
    bool *gone;
    /* Receives the answers to inspect_query().  NULL: they are dropped. */
    void (*on_query)(void *cookie, unsigned m, uint32_t query, const struct reply *reply);
    void *on_query_cookie;
    uint32_t
        listeners; /* How many there have been: answers to queries of an earlier one are dropped. */
};

/* The client of a lease. */
static inline struct redlock *client_of(const struct redlock_lease *lease)
{
    void *leases = lease->leases;

    return (void *)((char *)leases - offsetof(struct redlock, leases));
}

#endif /* REDLOCK_CLIENT_STATE_H */
