/*
 * kind_shared.c - one reader among others.
 *
 * Readers are a sorted set in the place of the token, each with its end as the score; the key
 * ends with the last of them.
 *
 * Rules
 * - On each master there are readers or one writer, and any two majorities share a master: that
 *   is all there is to prove.  A writer is a plain lock: SET NX says no to a key of any type.
 * - Ends are by the master's clock, as those of keys.
 * - A client that waits to write holds new readers off: the wait flag that it leaves tells until
 *   when.  The flag ends by itself, and never refuses a writer, so that no two wait for each other.
 * - Readers wait in lines of their own: to them *free* is what they can come in to.
 */
#include "redlock/lease/kind.h"

const struct kind kind_shared = {
    .shared = true,
    .scripts =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_SHARED,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND_SHARED,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_SHARED,
            [QUORUM_CMD_FENCE] = KIND_NO_SCRIPT,
            [QUORUM_CMD_RAISE] = KIND_NO_SCRIPT,
        },
};
