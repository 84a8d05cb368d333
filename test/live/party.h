/*
 * party.h - several parties that contend for a lock, on one loop.
 *
 * A party has a client of its own, or shares that of another party.  All clients are on one
 * loop.  It runs only inside party_until(), and where a test runs it.
 */
#ifndef TEST_LIVE_PARTY_H
#define TEST_LIVE_PARTY_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/redlock.h"

struct ev_io;
struct ev_loop;

struct party {
    struct redlock *rl;
    struct ev_io *io; /* As of a pilot. */
    struct redlock_lease *lease;
    int status;     /* The status of the latest call; PILOT_NEVER: it has not ended yet. */
    double at_s;    /* When the latest call ended, by cluster_now_s(). */
    unsigned place; /* The latest call was the place-th of all parties to end, from 1. */
};

/* The loop; the first party_open() makes it. */
extern struct ev_loop *party_loop;

/* Make a client for this party. */
void party_open(struct party *party, const char *masters, uint32_t reply_timeout_ms);
/* Close the clients of these parties, each once even if shared; restart the count of places. */
void party_close_all(struct party *parties, unsigned len);

/* Begin to lock.  Returns the status of the call; party_on_end() gets the outcome. */
int party_lock(struct party *party, const char *resource, const struct redlock_lock_options *opts);
void party_on_end(struct redlock_lease *lease, int status, void *party);

/* Run the loop until the condition holds; false: not in time. */
bool party_until(bool (*is_so)(void *arg), void *arg);
/* A condition for party_until(): the latest call of this party has ended. */
bool party_is_told(void *party);

#endif /* TEST_LIVE_PARTY_H */
