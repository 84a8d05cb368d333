/*
 * inspect.h - what the `redlock` command may see and do beyond redlock.h.  Private: not installed.
 *
 * All is given by value, as it is now.  Any thread may ask, as for all calls of redlock.h; a
 * client that is being closed has zeroes.
 */
#ifndef REDLOCK_INSPECT_H
#define REDLOCK_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "drift/node.h"
#include "redlock/base/mask.h"
#include "redlock/core/guard.h"
#include "redlock/link/handshake.h"
#include "redlock/redlock.h"

struct reply;
struct uri;

#define INSPECT_TEXT_MAX 160
#define INSPECT_IN_FLIGHT_MAX 16384 /* Locks: a link takes twice as many commands. */

struct inspect_client {
    drift_time now;
    unsigned masters;
    quorum_mask up;         /* Masters that may vote. */
    quorum_mask coming;     /* Masters that may soon, for the first time. */
    quorum_mask linked;     /* Masters whose links are up. */
    quorum_mask connecting; /* Masters whose first attempt to connect goes on. */
    uint32_t max_ttl_ms;
    drift_span connect_timeout;
    drift_span quarantine;   /* For so long a master without its data is watched. */
    drift_span clock_window; /* For so long a clock is watched before it counts. */
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
    uint32_t leases; /* In memory. */
    uint64_t commands;
};
struct inspect_client inspect_client(struct redlock *rl);

struct inspect_master {
    const struct uri *uri; /* Lives as long as the client. */
    const char *name;      /* Likewise: "host:port". */
    char error[INSPECT_TEXT_MAX];
    struct master_info info;
    bool is_linked;
    struct guard_look look;  /* The latest look at its marker; a number of 0: none yet. */
    bool is_looked_at;       /* A look is on its way. */
    drift_span warming_left; /* How long it must be watched yet. */
    bool has_offset, has_rate;
    struct drift_range offset;    /* Of its clock against the median of all. */
    struct drift_range rate_ppm;  /* Of its clock against ours. */
    bool is_barred;               /* Something is known against its clock. */
    char clock[INSPECT_TEXT_MAX]; /* Why its votes do not count by its clock; "": they do. */
};
struct inspect_master inspect_master(struct redlock *rl, unsigned m);

/* How long a master without an epoch must be watched, if leases last so long. */
drift_span inspect_quarantine(struct redlock *rl, uint32_t max_ttl_ms);

/* Look at markers, and install no epoch: the client may know some of the masters only. */
void inspect_look_only(struct redlock *rl);

struct inspect_events {
    /* The answer to a query; reply NULL: the link broke.  The reply is valid until this returns. */
    void (*on_answer)(void *cookie, unsigned m, uint32_t query, const struct reply *reply);
};

/* From now on answers go there; events NULL: nowhere. */
void inspect_listen(struct redlock *rl, const struct inspect_events *events, void *cookie);

/* Send a command of one's own to a master that is linked. */
void inspect_query(struct redlock *rl, unsigned m, uint32_t query, const char *command,
                   size_t command_len);

#endif /* REDLOCK_INSPECT_H */
