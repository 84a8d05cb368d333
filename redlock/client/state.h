/*
 * state.h - what a client is made of.  Only the files of this folder know it.
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
    struct blocking *blocking; /* NULL: a client on the caller's loop. */
    struct masters masters;
    struct leases leases;
    struct lines lines;
    drift_time armed; /* What the loop was told last. */
    unsigned forks;   /* How many forks had happened when it was opened. */
    bool *gone;       /* Set when a callback of its own closes the client. */
    /* Where answers to inspect_query() go; NULL: nowhere. */
    void (*on_query)(void *cookie, unsigned m, uint32_t query, const struct reply *reply);
    void *on_query_cookie;
};

/* The client of a lease. */
static inline struct redlock *client_of(const struct redlock_lease *lease)
{
    void *leases = lease->leases;

    return (void *)((char *)leases - offsetof(struct redlock, leases));
}

#endif /* REDLOCK_CLIENT_STATE_H */
