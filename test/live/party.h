/*
 * party.h - several that want a lock at once, on one loop.
 *
 * A party has a client of its own, or shares that of another party.  All clients run on one
 * loop, which runs only inside of party_until() and where a test runs it.
 */
#ifndef TEST_LIVE_PARTY_H
#define TEST_LIVE_PARTY_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/redlock.h"

struct ev_loop;

struct party {
    struct redlock *rl;
    struct redlock_lease *lease;
    int status;     /* Of the latest call; PILOT_NEVER: it has not ended yet. */
    double at_s;    /* When that call ended, by cluster_now_s(). */
    unsigned place; /* How many calls of all parties had ended by then, with this one. */
};

/* The first party that opens makes it. */
extern struct ev_loop *party_loop;

/* Make a client for this party. */
void party_open(struct party *party, const char *masters, uint32_t reply_timeout_ms);
/* Close the clients of all these parties, also where two share one; count places anew. */
void party_close_all(struct party *parties, unsigned len);

/* Begin to lock: party_on_end() hears how it ends.  The status is that of the call. */
int party_lock(struct party *party, const char *resource, const struct redlock_lock_options *opts);
void party_on_end(struct redlock_lease *lease, int status, void *party);

/* Run the loop until this is so; false if it does not become so in time. */
bool party_until(bool (*is_so)(void *arg), void *arg);
/* Whether the latest call of this party has ended; for party_until(). */
bool party_is_told(void *party);

#endif /* TEST_LIVE_PARTY_H */
