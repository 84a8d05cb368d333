/*
 * fair.h - leases that wait in a queue: carries out what place.c knows.
 *
 * Called by lease.c for every lease, and does nothing for those of other kinds.  That a
 * round begins when it is a lease's turn is the part of listen.c.
 */
#ifndef REDLOCK_FAIR_H
#define REDLOCK_FAIR_H

#include "redlock/quorum.h"

struct redlock_lease;
struct vote;
struct wire_args;

/* A new lease: it has a name of its own in queues. */
void fair_init(struct redlock_lease *lease);

/* What its commands say besides. */
void fair_fill(const struct redlock_lease *lease, struct wire_args *args);

/* The machine has made a step, and nothing of it is carried out yet: where it waits no more
 * the masters are told so, before all else, so that a release tells the next in line. */
void fair_on_step(struct redlock_lease *lease);

/* The machine asks these masters for the lock; one of them is asked again, in full. */
void fair_on_ask(struct redlock_lease *lease, quorum_mask masters);
void fair_on_ask_again(struct redlock_lease *lease, unsigned master);

/* What one of them answered, to this or any other command. */
void fair_on_answer(struct redlock_lease *lease, unsigned master, enum quorum_command command,
                    const struct vote *vote);

/* From now on those who listen, a list, are told by this master: */
void fair_on_hears(struct redlock_lease *list, unsigned master);

/* A master tells those who listen, a list, whose turn it is; or that the key is free, where
 * who released it knows of no queue. */
void fair_on_next(struct redlock_lease *list, unsigned master, const char *waiter);
void fair_on_free(struct redlock_lease *list, unsigned master);

#endif /* REDLOCK_FAIR_H */
