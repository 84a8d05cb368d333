/*
 * turns.h - fair leases, which wait in the masters' queues (kind_fair.c), and hear of their turns.
 *
 * A fair lease sends heartbeats by itself.  A master that frees its lock tells the client of the
 * first waiter alone, on that client's own channel.  A release that knows no queue tells all on the
 * channel of the lock; so a fair lease has a struct channel, too.
 */
#ifndef REDLOCK_TURNS_H
#define REDLOCK_TURNS_H

#include <stdbool.h>

#include "redlock/line/channel.h"

struct leases;
struct redlock_lease;

/* The lease begins to wait.  It is in no list. */
void turns_join(struct channel *channel, struct redlock_lease *lease);

/* The lease pauses between two rounds, or begins one. */
void turns_on_pause(struct channel *channel, const struct redlock_lease *lease);
void turns_on_round(struct channels *channels, struct redlock_lease *lease);

/* True: a master may have the lease in its queue.  One that has not answered may, too. */
bool turns_may_be_queued(const struct redlock_lease *lease);

/* We hear this master's announcements from now on: of one lock, or of turns. */
void turns_on_hears(struct channel *channel, unsigned master);
void turns_on_hears_own(struct channels *channels, unsigned master);

/* A master announced that the key is free. */
void turns_on_free(struct channel *channel, unsigned master);

/* A master sent a message to the client's own channel.  This steps a lease. */
void turns_on_message(struct channels *channels, const struct leases *leases, unsigned master,
                      const char *text);

/* Begin the rounds that are due.  This steps leases. */
void turns_call(struct channel *channel, drift_time now);

#endif /* REDLOCK_TURNS_H */
