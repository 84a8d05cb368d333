/*
 * peers.h - what the files of this folder share: the links, masks of masters, and the settings of
 * the guards.
 */
#ifndef REDLOCK_PEERS_H
#define REDLOCK_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/core/members.h"
#include "redlock/core/quorum.h"
#include "redlock/io/env.h"
#include "redlock/link/ask.h"
#include "redlock/link/link.h"
#include "redlock/redlock.h"
#include "redlock/wire/wire.h"

/* What an ask is about (ask.h), in addition to enum quorum_command. */
enum ask_what {
    WHAT_FOUND = 0xf7,   /* A step of a founding (founding.h). */
    WHAT_WITNESS = 0xf8, /* How old a warming master's nonce is (standing.h). */
    WHAT_LEAVE = 0xf9,   /* A waiter leaves a queue.  The answer is ignored. */
    WHAT_COUNT = 0xfa,   /* The count that follows a SET of the same number (proof.h). */
    WHAT_TIME = 0xfb,    /* The master's clock (clocks.h). */
    WHAT_WAIT = 0xfc,    /* A query for a key that is waited for (lines.h). */
    WHAT_PROOF = 0xfd,   /* Proof that the master still has its data (proof.h). */
    WHAT_LOOK = 0xfe,    /* A read of the marker (standing.h). */
    WHAT_QUERY = 0xff,   /* A query of the `redlock` command (inspect.h). */
};

/* What struct redlock_master_stats reports of one master. */
struct peer_counts {
    struct redlock_histogram round_trip;
    uint64_t votes[QUORUM_VOTES]; /* By enum quorum_vote. */
    uint64_t late, void_clock, void_state, forbidden, errors, timeouts, connects, breaks;
};

struct peers {
    struct env *env;
    unsigned len; /* All numbers are below this.  Some may have no master. */
    /* Which masters count.  While the set is not known: all of the list, and none is up. */
    struct members members;
    quorum_mask up;     /* Masters that may vote and take a command now. */
    quorum_mask coming; /* Masters that may vote soon, for the first time. */
    quorum_mask full;   /* Masters whose links are up and have no room for a command. */
    quorum_mask dirty;  /* Links with data to flush. */
    struct link *links[QUORUM_MASTERS_MAX];     /* NULL: no master has this number yet. */
    const struct uri *uris[QUORUM_MASTERS_MAX]; /* The URIs of the links. */
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
    uint32_t max_ttl_ms;
    struct drift_bound drift;
    drift_span connect_timeout;
    struct peer_counts counts[QUORUM_MASTERS_MAX];
    char scratch[WIRE_MAX]; /* Room for one command while it is written. */
};

/* Log a warning about one master. */
static inline void peers_warn(const struct peers *peers, unsigned m, const struct reason *why)
{
    char text[REASON_TEXT_MAX];

    (void)reason_write(why, env_now(peers->env), text, sizeof text);
    env_log(peers->env, REDLOCK_LOG_WARNING, reason_message(why), "master %u (%s): %s", m + 1,
            link_name(peers->links[m]), text);
}

#endif /* REDLOCK_PEERS_H */
