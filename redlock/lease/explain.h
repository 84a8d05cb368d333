/*
 * explain.h - explains to people why an operation on a lease ended as it did.
 */
#ifndef REDLOCK_EXPLAIN_H
#define REDLOCK_EXPLAIN_H

#include "redlock/base/error.h"
#include "redlock/lease/state.h"

/* Set the thread's message, and whom it blames: why op ended with status. */
void explain_end(const struct redlock_lease *lease, enum lease_op op, int status);

/* Log why an unlock ended UNREACHABLE.  A caller whose work is done may not look at its status, as
 * at the end of a scope in C++. */
void explain_unconfirmed(const struct redlock_lease *lease);

/* Set the thread's message, and whom it blames: why too few masters may vote.  deciding: masters
 * whose trouble alone would give this status. */
void explain_ready(const struct leases *leases, int status, quorum_mask deciding);

/* Set the thread's message: which masters keep the lock from being acquired.  Returns the status
 * that the call would end with.  REDLOCK_OK, and no message: no master is at fault.  Another client
 * has the lock, or no round is over yet. */
int explain_wait(const struct redlock_lease *lease);

/* A master has answered that an operator revoked the lock, with this text.  The first such answer
 * goes to the log.  The text then explains the loss, unless another lease is revoked before that.
 */
void explain_revoked(const struct redlock_lease *lease, unsigned master, const char *text);

/*
 * Write why the lease is lost, or will be: how many masters renewed it, and what is wrong with the
 * others.  Returns
 *   MSG_REVOKED      An operator revoked it.  The text is that of explain_revoked(), and no more.
 *   MSG_NOT_STORED   Most masters do not store it any more.
 *   MSG_NO_MAJORITY  Too few masters renewed it.
 *   MSG_NONE         No master is at fault, and the text is "".
 * size must be at least 128.
 */
enum msg explain_loss(const struct redlock_lease *lease, size_t size, struct error *ret_list);

/* Set the thread's message, and whom it blames: the same, or none. */
void explain_lost(const struct redlock_lease *lease);

#endif /* REDLOCK_EXPLAIN_H */
