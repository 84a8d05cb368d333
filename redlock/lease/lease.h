/*
 * lease.h - one lease: the machine, its actions carried out, its callbacks lined up.
 */
#ifndef REDLOCK_LEASE_H
#define REDLOCK_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "redlock/lease/state.h"

struct lease_wanted {
    enum kind_id kind;
    const char *name; /* Or several, with a NUL between each two. */
    size_t name_len;
    const char *token; /* That is adopted; NULL: a lease of our own. */
    const struct redlock_lock_options *opts;
    const struct quorum_config *config;
};

/* A new lease in a slot of its own, owned.  NULL without memory. */
struct redlock_lease *lease_new(struct leases *leases, const struct lease_wanted *wanted);

/* The name for which it waits, or would; of several, one that was taken. */
const char *lease_awaited(const struct redlock_lease *lease, size_t *ret_len);

/* What its owner may lock again; NULL: nothing. */
struct owned *lease_owned(const struct redlock_lease *lease);

/* Feed the machine (event->type and what goes with it set; the rest is filled in here), carry out
 * its actions, and note what callbacks are due. */
void lease_step(struct redlock_lease *lease, struct quorum_event *event);

/* What a master answered, and what is wrong with that master, or "". */
void lease_on_vote(struct redlock_lease *lease, unsigned master, const struct ask *ask,
                   const struct vote *vote, const char *error);

/* The alarm rang. */
void lease_on_alarm(struct redlock_lease *lease, drift_time now);

/* It is not the caller's any more. */
void lease_disown(struct redlock_lease *lease);
/* Likewise, and lost is not called: free it now, or when all masters have been told. */
void lease_let_go(struct redlock_lease *lease);

/*
 * A thread that will use the lease pins it before it runs a callback or gives up the mutex, and
 * unpins it afterwards: a lease with pins is not freed.  The thread that unpins it reaps it
 * then.  The exception is a callback of a loop client that closes the client: its pin goes with
 * the lease.
 */
void lease_pin(struct redlock_lease *lease);
void lease_unpin(struct redlock_lease *lease);

/* Free it if nobody needs it. */
void lease_reap(struct redlock_lease *lease);
/* Free it whoever needs it: the client closes. */
void lease_free(struct redlock_lease *lease);

/* OK if it is the caller's, else E_INVAL or E_STATE with a message. */
int lease_check(const struct redlock_lease *lease);

/* ---- Events of the masters, for all leases ---- */

void leases_on_answer(struct leases *leases, unsigned master, const struct ask *ask,
                      const struct reply *reply);
void leases_on_vote(struct leases *leases, unsigned master, const struct ask *ask,
                    const struct vote *vote);
/* What may be asked of a master has changed. */
void leases_on_change(struct leases *leases, unsigned master);
/* A full queue has room again: what could not be released there is. */
void leases_on_room(struct leases *leases, unsigned master);

#endif /* REDLOCK_LEASE_H */
