/*
 * ballot.h - the requests that change the set of masters, and their answers; pure.
 */
#ifndef REDLOCK_BALLOT_H
#define REDLOCK_BALLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/change.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/reply.h"

/* Room for the longest request: a script in full, two texts of the machine, and numbers. */
#define BALLOT_MAX (SCRIPT_TEXT_MAX + CONFIG_TEXT_MAX + CONFIG_PLACE_MAX + 400)

struct ballot_args {
    uint64_t epoch, version; /* What the master was seen to have. */
    uint64_t set;
    change_ballot ballot;        /* PREPARE, ACCEPT. */
    const struct config *config; /* ACCEPT, WRITE: the configuration, with its version. */
    const char *name;            /* WRITE: change_name().  NULL: the master is no member. */
    uint64_t number;             /* COUNT: at most QUORUM_FENCE_MAX. */
};

/* Write EVAL of the script that belongs to PREPARE, ACCEPT, WRITE or COUNT.  Returns the bytes
 * written to buf[BALLOT_MAX]. */
size_t ballot_write(char *buf, enum change_request request, const struct ballot_args *args);

/*
 * Read the answer to such a request.  version: the version that the master was seen to have.  If
 * a promise reports an accepted configuration, it is parsed into *ret_config, and ret_reply->config
 * points there.
 * Returns false if the answer is malformed: such a link is closed.
 */
bool ballot_read(enum change_request request, uint64_t version, const struct reply *reply,
                 struct config *ret_config, struct change_reply *ret_reply);

#endif /* REDLOCK_BALLOT_H */
