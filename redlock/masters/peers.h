/*
 * peers.h - the masters, as the files of this folder share them: links, masks, and what guards
 * were asked for.
 */
#ifndef REDLOCK_PEERS_H
#define REDLOCK_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/io/env.h"
#include "redlock/link/ask.h"
#include "redlock/link/link.h"
#include "redlock/redlock.h"
#include "redlock/wire/wire.h"

/* What an ask is about (ask.h), besides the commands of the machine, enum quorum_command. */
enum ask_what {
    WHAT_LEAVE = 0xf9, /* A waiter leaves a queue: nobody waits for the answer. */
    WHAT_COUNT = 0xfa, /* The count behind a SET of the same number (proof.h). */
    WHAT_TIME = 0xfb,  /* The master's clock (clocks.h). */
    WHAT_WAIT = 0xfc,  /* A look at a key that is waited for (lines.h). */
    WHAT_PROOF = 0xfd, /* That the master has its data (proof.h). */
    WHAT_LOOK = 0xfe,  /* The marker (standing.h). */
    WHAT_QUERY = 0xff, /* A question of the `redlock` command (inspect.h). */
};

struct peers {
    struct env *env;
    unsigned len;
    quorum_mask up;     /* Masters that may vote and take a command now. */
    quorum_mask coming; /* Masters that may soon, for the first time. */
    quorum_mask dirty;  /* Links with something to flush. */
    struct link *links[QUORUM_MASTERS_MAX];
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
    uint32_t max_ttl_ms;
    struct drift_bound drift;
    drift_span connect_timeout;
    char scratch[WIRE_MAX]; /* For one command while it is written. */
};

/* A warning about one master. */
static inline void peers_warn(const struct peers *peers, unsigned m, const char *text)
{
    env_log(peers->env, REDLOCK_LOG_WARNING, "master %u (%s): %s", m + 1,
            link_name(peers->links[m]), text);
}

#endif /* REDLOCK_PEERS_H */
