/*
 * kind.h - kinds of locks: what is sent for each of the machine's commands; pure.
 *
 * The machine knows one lock: a SET that a master grants or not, an extension and a
 * release of what it granted.  A kind is what stands for these: which command or script,
 * on which keys.  Whatever stands for SET answers as SET does, OK or nil, or a number in
 * place of nil; what stands for the others answers 1 or 0.
 */
#ifndef REDLOCK_KIND_H
#define REDLOCK_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/quorum.h"
#include "redlock/vote.h"
#include "redlock/wire.h"

enum lease_kind {
    LEASE_PLAIN,  /* One name, one owner. */
    LEASE_MANY,   /* Several names, with a NUL between each two: all of them or none. */
    LEASE_PERMIT, /* One of the permits of a semaphore, see permit.h; its name begins with
                   * WIRE_PERMIT. */
    LEASE_FAIR,   /* One name, in the order of a queue: see place.h. */
    LEASE_SHARED, /* One name, as one reader of it: others may be, and nobody has it alone. */
    LEASE_KINDS
};

/* Whether a script stands for it, which a master may have lost. */
bool kind_is_script(enum lease_kind kind, enum quorum_command command);

/* Write what stands for it, the script in_full for a master that has lost it.  Returns the
 * bytes written to buf[WIRE_MAX]. */
size_t kind_write(char *buf, enum lease_kind kind, enum quorum_command command, bool in_full,
                  const struct wire_args *args);

/* What a reply to it says. */
struct vote kind_count(enum lease_kind kind, enum quorum_command command,
                       const struct reply *reply);

#endif /* REDLOCK_KIND_H */
