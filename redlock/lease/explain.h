/*
 * explain.h - explains to people why an operation on a lease ended as it did.
 */
#ifndef REDLOCK_EXPLAIN_H
#define REDLOCK_EXPLAIN_H

#include "redlock/lease/state.h"

/* Set the thread's message: why op ended with status. */
void explain_end(const struct redlock_lease *lease, enum lease_op op, int status);

#endif /* REDLOCK_EXPLAIN_H */
