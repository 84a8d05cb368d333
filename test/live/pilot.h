/*
 * pilot.h - a client of either kind, steered by one set of calls.
 *
 * A loop client is driven here until the operation's callback has run, so that
 * a test reads the same for both kinds.  Whatever does not come within
 * CLUSTER_WAIT_S gives PILOT_NEVER: nothing waits for ever.
 */
#ifndef TEST_LIVE_PILOT_H
#define TEST_LIVE_PILOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/redlock.h"

struct cluster;
struct ev_loop;

enum pilot_kind { PILOT_LOOP, PILOT_BLOCKING, PILOT_KINDS };

#define PILOT_NEVER 1000 /* No status: the callback did not come. */

/* Far above what a loaded machine needs, where a test is about something else. */
#define PILOT_REPLY_TIMEOUT_MS 10000

struct pilot {
    enum pilot_kind kind;
    struct ev_loop *ev; /* NULL for the blocking kind. */
    struct redlock *rl;
    char message[1024]; /* redlock_errmsg() of the latest call. */
};

/* The option restart_guard of clients that are opened from now on; true unless a
 * test is about what a master without a memory, or an imitation of one, does. */
extern bool pilot_guarded;

const char *pilot_kind_name(enum pilot_kind kind);

/* Open a client on these masters.  tune, which may be NULL, changes its options. */
int pilot_try_open(struct pilot *pilot, enum pilot_kind kind, const char *masters,
                   void (*tune)(struct redlock_options *opts));
/* The same where it must work, with a long reply timeout (0) or this one. */
void pilot_open(struct pilot *pilot, enum pilot_kind kind, const char *masters,
                uint32_t reply_timeout_ms);
/* Make five masters ready, open a client on them, and wait until all of them are up for it; false:
 * they are not in time. */
bool pilot_open_five(struct pilot *pilot, enum pilot_kind kind, struct cluster *five);
void pilot_close(struct pilot *pilot);

/* As in redlock.h, waited for.  The message is in pilot->message. */
int pilot_lock(struct pilot *pilot, const char *resource, const struct redlock_lock_options *opts,
               struct redlock_lease **ret_lease);
int pilot_extend(struct pilot *pilot, struct redlock_lease *lease, uint32_t ttl_ms);
int pilot_unlock(struct pilot *pilot, struct redlock_lease *lease);

/* Lock with a ttl, and with renewal or without, waiting so long for it. */
int pilot_lock_for(struct pilot *pilot, const char *resource, uint32_t ttl_ms, bool renew,
                   uint32_t wait_ms, struct redlock_lease **ret_lease);

/* Let the client work until this is so; false if it does not become so in time. */
bool pilot_until(struct pilot *pilot, bool (*is_so)(void *arg), void *arg);
/* Until so many masters are up, so many links have come up in all, or so few leases are
 * left. */
bool pilot_until_up(struct pilot *pilot, unsigned masters);
bool pilot_until_connects(struct pilot *pilot, uint64_t connects);
bool pilot_until_leases(struct pilot *pilot, unsigned leases);
/* Ask for a lock that too few masters can grant, until it is said why: what is
 * known of a master changes while it is connected to and looked at.  The status of
 * the last attempt, or PILOT_NEVER. */
int pilot_until_told(struct pilot *pilot, const char *resource, const char *why);
/* One turn of the loop that waits a little; a nap for the blocking kind. */
void pilot_turn(struct pilot *pilot);

struct redlock_stats pilot_stats(struct pilot *pilot);

/* What a lost callback was told: pilot_on_lost, with this as its lost_arg; and for pilot_until. */
struct pilot_loss {
    atomic_uint runs;
    uint32_t remaining_ms;
};

void pilot_on_lost(struct redlock_lease *lease, void *arg);
bool pilot_is_lost(void *arg);

#endif /* TEST_LIVE_PILOT_H */
