/*
 * wire.h - the commands of the lock, written in the Redis protocol; pure.
 *
 * Written straight into the caller's buffer, because a lock costs ten
 * commands and an allocation for each would cost more than the commands.
 */
#ifndef REDLOCK_WIRE_H
#define REDLOCK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/redlock.h"
#include "redlock/script.h"

/* Room for the longest command: the script in full, name, token, numbers. */
#define WIRE_MAX 2048

/* What a command is about. */
struct wire_args {
    const char *name;
    size_t name_len; /* 1 to REDLOCK_NAME_MAX */
    const char *token;
    size_t token_len; /* 1 to REDLOCK_TOKEN_MAX */
    uint32_t ttl_ms;  /* Not for a release. */
};

/* SET name token NX PX ttl_ms.  Returns the bytes written to buf[WIRE_MAX]. */
size_t wire_set(char *buf, const struct wire_args *args);

/* EVALSHA of a script on name and token (and ttl_ms, for SCRIPT_EXTEND), or
 * EVAL with its text in full, for a master that has lost its scripts. */
size_t wire_script(char *buf, enum script_id script, bool in_full, const struct wire_args *args);

#endif /* REDLOCK_WIRE_H */
