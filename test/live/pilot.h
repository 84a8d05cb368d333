/*
 * pilot.h - one set of calls for both kinds of client, loop and blocking.
 *
 * For a loop client, a call runs the loop until the operation's callback has run.  So a test
 * reads the same for both kinds.  If the callback does not run within CLUSTER_WAIT_S, the call
 * returns PILOT_NEVER.
 *
 * If PILOT is "pollable" in the environment, loop clients are pollable ones, whose
 * descriptor the loop watches.  So the same tests run with both loops of the library.
 */
#ifndef TEST_LIVE_PILOT_H
#define TEST_LIVE_PILOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/redlock.h"

struct cluster;
struct ev_io;
struct ev_loop;

enum pilot_kind { PILOT_LOOP, PILOT_BLOCKING, PILOT_KINDS };

#define PILOT_NEVER 1000 /* Stands for a status: the callback did not run. */

/* Chosen: far above what a loaded machine needs, for tests that are not about this timeout. */
#define PILOT_REPLY_TIMEOUT_MS 10000

struct pilot {
    enum pilot_kind kind;
    struct ev_loop *ev; /* NULL for the blocking kind. */
    struct ev_io *io;   /* Watches the descriptor of a pollable client. */
    struct redlock *rl;
    char message[1024]; /* redlock_errmsg() of the latest call. */
};

/* The option restart_guard of clients that are opened from now on.  It is true unless a test
 * uses masters that lose their data, or fakes. */
extern bool pilot_guarded;

/* Before it opens a client, a pilot makes the list the set of its masters (cluster_found_list). */
extern bool pilot_founds;

const char *pilot_kind_name(enum pilot_kind kind);

/* True: loop clients are pollable ones. */
bool pilot_is_pollable(void);
/* Let ev run the loop client of these options: as the client's own loop, or by its descriptor. */
void pilot_set_loop(struct redlock_options *opts, struct ev_loop *ev);
/* Watch the descriptor of a client that was opened so, until *rl is NULL.  NULL: it has none. */
struct ev_io *pilot_watch(struct redlock **rl, struct ev_loop *ev);
void pilot_unwatch(struct ev_loop *ev, struct ev_io *io);

/* Open a client on these masters.  tune, which may be NULL, changes its options. */
int pilot_try_open(struct pilot *pilot, enum pilot_kind kind, const char *masters,
                   void (*tune)(struct redlock_options *opts));
/* The same, with this reply timeout (0: a long one).  A failure ends the program. */
void pilot_open(struct pilot *pilot, enum pilot_kind kind, const char *masters,
                uint32_t reply_timeout_ms);
/* Make five masters ready, open a client on them, and wait until it has all of them up; false:
 * not in time. */
bool pilot_open_five(struct pilot *pilot, enum pilot_kind kind, struct cluster *five);
/* The same on so many masters. */
bool pilot_open_up(struct pilot *pilot, enum pilot_kind kind, struct cluster *cluster,
                   unsigned masters);
void pilot_close(struct pilot *pilot);

/* Like the calls of redlock.h; each waits for the outcome.  The message is in pilot->message. */
int pilot_lock(struct pilot *pilot, const char *resource, const struct redlock_lock_options *opts,
               struct redlock_lease **ret_lease);
int pilot_extend(struct pilot *pilot, struct redlock_lease *lease, uint32_t ttl_ms);
int pilot_unlock(struct pilot *pilot, struct redlock_lease *lease);

/* Lock with these options. */
int pilot_lock_for(struct pilot *pilot, const char *resource, uint32_t ttl_ms, bool renew,
                   uint32_t wait_ms, struct redlock_lease **ret_lease);

/* Let the client work until the condition holds; false: not in time. */
bool pilot_until(struct pilot *pilot, bool (*is_so)(void *arg), void *arg);
/* The same until so many masters are up; until at least so many links have come up in total; until
 * at most so many leases are left. */
bool pilot_until_up(struct pilot *pilot, unsigned masters);
bool pilot_until_connects(struct pilot *pilot, uint64_t connects);
bool pilot_until_leases(struct pilot *pilot, unsigned leases);
/* True: the message of a lock says that too few masters could vote, and names first one of these
 * masters (bit 0: the first of the list), alone or with others. */
bool pilot_blames(const struct pilot *pilot, unsigned masters);

/* True: the status says why too few masters voted. */
bool pilot_lacks_votes(int status);

/* Ask for a lock that too few masters can grant, until the message contains why.  The message
 * changes while the client connects to a master and queries it.  Returns the status of the last
 * attempt, or PILOT_NEVER. */
int pilot_until_told(struct pilot *pilot, const char *resource, const char *why);
/* Run the loop once, for at most 10 ms; for the blocking kind, sleep. */
void pilot_turn(struct pilot *pilot);

struct redlock_stats pilot_stats(struct pilot *pilot);

/* What the lost callback pilot_on_lost() records; pass it as lost_arg. */
struct pilot_loss {
    atomic_uint runs;
    uint32_t remaining_ms;
};

void pilot_on_lost(struct redlock_lease *lease, void *arg);
/* A condition for pilot_until(): the callback has run. */
bool pilot_is_lost(void *arg);

#endif /* TEST_LIVE_PILOT_H */
