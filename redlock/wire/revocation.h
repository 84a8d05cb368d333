/*
 * revocation.h - the requests that revoke a lock, and their answers; pure.
 */
#ifndef REDLOCK_REVOCATION_H
#define REDLOCK_REVOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/revoke.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/wire.h"

/* The request is SCRIPT_REVOKE, in full.  text "": only read. */
struct revocation {
    const char *key; /* Of the lock, or of a permit. */
    size_t key_len;
    const char *token; /* "": readers, or only read. */
    const char *text;  /* WIRE_REVOKED and more. */
    const char *state; /* The field epoch.  Only read: any text.  "": no guard. */
};

/* Returns the bytes written to buf[WIRE_MAX]. */
size_t revocation_write(char *buf, const struct revocation *revocation);

/* Read the answer to a request that only reads.  Writes the field epoch to state.  Returns false if
 * the answer is an error, or malformed. */
bool revocation_read(const struct reply *reply, char state[WIRE_STATE_MAX + 1],
                     struct revoke_seen *ret_seen);

/* Read the answer to another.  Returns false if nothing was done. */
bool revocation_done(const struct reply *reply, struct revoke_done *ret_done);

#endif /* REDLOCK_REVOCATION_H */
