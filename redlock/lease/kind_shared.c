/*
 * kind_shared.c - a lock that several readers hold.
 *
 * A sorted set takes the place of the token.  It holds the readers, with the end of each as its
 * score.  The key expires with the last reader.
 *
 * Rules
 * - Each master has readers or one writer, and any two majorities share a master.  Safety follows
 *   from this alone.  A writer is a plain lock: SET NX refuses a key of any type.
 * - The ends are times of the master's clock, as those of keys are.
 * - A waiting writer keeps new readers out: its wait flag says until when.  The flag expires by
 *   itself and never refuses a writer.  So no two clients wait for each other.
 * - Readers queue apart from writers.  To a reader the lock is free if the reader can join.
 */
#include "redlock/lease/kind.h"

#include <stdio.h>

/* Masters refuse a reader in one way for both. */
static enum msg explain(const struct redlock_lease *lease, char *text, size_t size)
{
    (void)lease;
    (void)snprintf(text, size, "it writes, or waits until it may write");
    return MSG_HELD;
}

const struct kind kind_shared = {
    .shared = true,
    .explain = explain,
    .scripts =
        {
            [QUORUM_CMD_SET] = SCRIPT_ACQUIRE_SHARED,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND_SHARED,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE_SHARED,
            [QUORUM_CMD_FENCE] = KIND_NO_SCRIPT,
            [QUORUM_CMD_RAISE] = KIND_NO_SCRIPT,
            [QUORUM_CMD_GIVE] = SCRIPT_ACQUIRE_SHARED,
        },
};
