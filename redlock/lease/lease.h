/*
 * lease.h - one lease: feeds its machine, carries out the actions, and queues the callbacks.
 */
#ifndef REDLOCK_LEASE_H
#define REDLOCK_LEASE_H

#include <stddef.h>

#include "redlock/lease/state.h"

struct lease_wanted {
    enum kind_id kind;
    const char *name; /* One name, or several with a NUL between any two. */
    size_t name_len;
    const char *token; /* The token to adopt.  NULL: the client makes its own. */
    const struct redlock_lock_options *opts;
    const struct quorum_config *config;
};

/* Make a lease in a slot of its own, owned by the caller.  NULL: memory ran out. */
struct redlock_lease *lease_new(struct leases *leases, const struct lease_wanted *wanted);

/* The name that the lease waits for, or would wait for.  A lease of several names waits for one
 * that was taken. */
const char *lease_awaited(const struct redlock_lease *lease, size_t *ret_len);

/* The entry by which the owner may lock the lease again.  NULL: there is none. */
struct owned *lease_owned(const struct redlock_lease *lease);

/* Feed the machine, carry out its actions, and note which callbacks are due.  The caller sets
 * event->type and the fields of that type; lease_step() fills in the rest. */
void lease_step(struct redlock_lease *lease, struct quorum_event *event);

/* Let a lease that pauses begin its round at this time.  0: now.  DRIFT_NEVER: when it is woken
 * again.  The lease may be gone afterwards. */
void lease_wake(struct redlock_lease *lease, drift_time until);

/* The lease's alarm rang. */
void lease_on_alarm(struct redlock_lease *lease, drift_time now);

/* End the caller's ownership. */
void lease_disown(struct redlock_lease *lease);
/* End the caller's ownership and drop its lost callback.  The lease is freed now, or when every
 * master that must release it has answered. */
void lease_let_go(struct redlock_lease *lease);

/*
 * A lease with pins is not freed.  A thread that will use the lease pins it before it runs a
 * callback or gives up the mutex.  Afterwards the thread unpins the lease and reaps it.  Exception:
 * if a callback of a loop client closes the client, its pin ends with the lease.
 */
void lease_pin(struct redlock_lease *lease);
void lease_unpin(struct redlock_lease *lease);

/* Free the lease if nothing needs it. */
void lease_reap(struct redlock_lease *lease);
/* Free the lease in any case, because the client closes. */
void lease_free(struct redlock_lease *lease);

/* Returns OK if the lease is the caller's.  Otherwise returns E_INVAL or E_STATE with a message. */
int lease_check(const struct redlock_lease *lease);

/* ---- Events of the masters, for all leases ---- */

void leases_on_answer(struct leases *leases, unsigned master, const struct ask *ask,
                      const struct reply *reply);
void leases_on_vote(struct leases *leases, unsigned master, const struct ask *ask,
                    const struct vote *vote);
/* A master may take commands now and could not before, or the other way round. */
void leases_on_change(struct leases *leases, unsigned master);
/* The set of masters has changed.  joined: members that were none before.  left: numbers that
 * belong to other masters from now on. */
void leases_on_set(struct leases *leases, quorum_mask joined, quorum_mask left);
/* A full queue has room again: send the releases that did not fit, and leave queues. */
void leases_on_room(struct leases *leases, unsigned master);

#endif /* REDLOCK_LEASE_H */
