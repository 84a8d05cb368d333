/*
 * marker.h - queries of markers, for subcommands that report on them.  The restart guard has
 * queries of its own (guard.h).
 */
#ifndef REDLOCK_MARKER_H
#define REDLOCK_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/guard.h"
#include "redlock/wire/wire.h"

struct master_info;
struct redlock;
struct reply;

/* The answer to a query. */
struct marker {
    struct guard_look look; /* What the guard reads of it. */
    uint64_t age_ms;        /* Warming: for how long, by the master's clock. */
};

/*
 * Write a query of the marker.  Returns its length.  nonce: replace this nonce by an epoch, with
 * fencing counters from floor on; 0: do not.  If the greeting was without the guard, it is not
 * known whether the master is durable, and the query may void its epoch.
 */
size_t marker_look(char buf[WIRE_MAX], const struct master_info *info, uint32_t max_ttl_ms,
                   uint64_t nonce, uint64_t floor);

/* Write a query that replaces this nonce by an epoch, unless the master is in a set, or is claimed
 * by another list than this. */
size_t marker_give(char buf[WIRE_MAX], const struct master_info *info, uint32_t max_ttl_ms,
                   uint64_t nonce, uint64_t floor, const char *list);

/* Write a query that replaces this nonce by an epoch, and makes the master a member. */
size_t marker_install(char buf[WIRE_MAX], const struct master_info *info, uint32_t max_ttl_ms,
                      uint64_t nonce, uint64_t floor, const struct config *config,
                      const char *name);

/* Parse the answer.  False: it is not valid. */
bool marker_parse(const struct reply *reply, struct marker *ret_marker);

/*
 * How much longer a master warms, if since its nonce was written a client has watched it, or the
 * other masters have known the nonce.  After this time it has an epoch, or neither is so.  Then the
 * result is the whole time.
 */
drift_span marker_left(drift_span quarantine, uint64_t age_ms);

/* How much longer a master that told this age is warming, as far as the client knows. */
struct marker_wait {
    drift_span left;
    bool is_witnessed;  /* The other masters know: it may vote after this time. */
    bool has_no_client; /* No client has watched it. */
};

/* False: it is too early to say.  The master may get an epoch soon, or its witnesses have not
 * answered yet. */
bool marker_wait(struct redlock *rl, unsigned m, uint64_t age_ms, struct marker_wait *ret_wait);

#endif /* REDLOCK_MARKER_H */
