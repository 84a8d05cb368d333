/*
 * client.h - what a client is made of.  Only the files of this folder know it.
 *
 * client.c opens, closes, and passes events on; callback.c runs the program's callbacks; api.c has
 * the public calls on leases, and wanted.c checks what they want; blocking.c adds a mutex and a
 * thread; inspect.c shows what the `redlock` command may see.
 */
#ifndef REDLOCK_CLIENT_H
#define REDLOCK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/client/options.h"
#include "redlock/io/env.h"
#include "redlock/lease/state.h"
#include "redlock/line/lines.h"
#include "redlock/masters/masters.h"
#include "redlock/redlock.h"

struct blocking;
struct reply;
struct waiter;

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
struct redlock *client_of(const struct redlock_lease *lease);

/* Whether this process is a child of the one that opened it.  Any thread. */
bool client_is_forked(const struct redlock *rl);

/* Begin a call: OK, or E_INVAL or E_STATE with a message; then, and only then, client_leave()
 * must follow. */
int client_enter(struct redlock *rl);
void client_leave(struct redlock *rl);
/* The same for a call that waits; returns its status. */
int client_wait(struct redlock *rl, struct waiter *waiter);

#endif /* REDLOCK_CLIENT_H */
