/*
 * explain.h - explains to people why an operation on a lease ended as it did.
 */
#ifndef REDLOCK_EXPLAIN_H
#define REDLOCK_EXPLAIN_H

#include "redlock/lease/state.h"

/* Set the thread's message: why op ended with status. */
void explain_end(const struct redlock_lease *lease, enum lease_op op, int status);

/* Set the thread's message: why too few masters may vote. */
void explain_ready(const struct leases *leases, int status);

/* Set the thread's message: which masters keep the lock from being acquired.  Returns false, and
 * sets none, if no master is at fault: another client has the lock, or no round is over yet. */
bool explain_wait(const struct redlock_lease *lease);

/* A master has answered that an operator revoked the lock, with this text.  The first such answer
 * goes to the log.  The text then explains the loss, unless another lease is revoked before that.
 */
void explain_revoked(const struct redlock_lease *lease, unsigned master, const char *text);

/* What was wrong with masters when the lease was last renewed, or could not be.  "": nothing. True:
 * it was revoked, and the text is that of explain_revoked(). */
bool explain_loss(const struct redlock_lease *lease, char *buf, size_t size);

#endif /* REDLOCK_EXPLAIN_H */
