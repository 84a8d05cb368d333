/*
 * kind.h - kinds of locks, each a table of functions.
 *
 * The machine (core/quorum.h) knows one lock: a SET that a master grants or not, an extension and
 * a release of what it granted.  A kind says what stands for these: which command or script, on
 * which keys.  What stands for SET answers as SET does, OK or nil, or a number in place of nil;
 * what stands for the others answers 1 or 0.
 *
 * To add a kind: write its file, name it here and in kinds.c, and have kind_choose() find it by
 * an option of redlock.h.
 *
 * Fencing is no kind but a trait: a kind that names a counter may have it.
 */
#ifndef REDLOCK_KIND_H
#define REDLOCK_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/quorum.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"
#include "redlock/wire/vote.h"
#include "redlock/wire/wire.h"

struct ask;
struct redlock_lease;

enum kind_id { KIND_PLAIN, KIND_MANY, KIND_PERMIT, KIND_FAIR, KIND_SHARED, KINDS };

#define KIND_COMMANDS (QUORUM_CMD_RAISE + 1)
#define KIND_NO_SCRIPT SCRIPT_LEN /* SET, as it is. */

/* Of a function that is NULL: there is nothing to do. */
struct kind {
    uint16_t extra; /* Bytes behind the lease: lease_extra(). */
    uint8_t hidden; /* Bytes of the name that the caller does not know. */
    bool shared;    /* Others may hold it, too: they wait in lines of their own. */
    bool queued;    /* It waits in the masters' queue; its extra is a struct place. */
    bool counts;    /* It may have a fencing token, drawn from the counter of its name. */
    enum script_id scripts[KIND_COMMANDS];

    /* Write a script.  NULL: wire_script() does. */
    size_t (*write)(char *buf, enum script_id script, bool in_full, const struct wire_args *args);
    /* What a reply says.  NULL: vote_count() does. */
    struct vote (*count)(enum quorum_command command, const struct reply *reply);
    /* A new lease; its extra is all zeroes.  token: that is adopted, or NULL. */
    void (*init)(struct redlock_lease *lease, const struct redlock_lock_options *opts,
                 const char *token);
    /* What its commands to one master say besides; key is room for a key. */
    void (*fill)(const struct redlock_lease *lease, unsigned master, char key[WIRE_KEY_MAX],
                 struct wire_args *args);
    /* Mark a new token for one master. */
    void (*mark)(const struct redlock_lease *lease, unsigned master, char *token);
    /* The machine has made a step, and nothing of it is carried out yet. */
    void (*on_step)(struct redlock_lease *lease);
    /* Masters are asked for the lock; or one is asked again, with the script in full. */
    void (*on_ask)(struct redlock_lease *lease, const struct quorum_send *send);
    void (*on_ask_again)(struct redlock_lease *lease, unsigned master);
    /* A master has answered. */
    void (*on_answer)(struct redlock_lease *lease, unsigned master, const struct ask *ask,
                      const struct vote *vote);
    /* The name for which it waits, or would.  NULL: its name. */
    const char *(*awaited)(const struct redlock_lease *lease, size_t *ret_len);
    /* How many slots a semaphore has.  NULL: it is none. */
    unsigned (*slots)(const struct redlock_lease *lease);
    /* Why an operation ended so, for people, where the kind knows more. */
    void (*explain)(const struct redlock_lease *lease, int status, char *text, size_t size);
};

extern const struct kind kind_plain, kind_many, kind_permit, kind_fair, kind_shared;
extern const struct kind *const kinds[KINDS];

/* Whether a script stands for it, which a master may have lost. */
static inline bool kind_is_script(const struct kind *kind, enum quorum_command command)
{
    return kind->scripts[command] != KIND_NO_SCRIPT;
}

/* Write what stands for a command, the script in_full for a master that has lost it.  Returns the
 * bytes written to buf[WIRE_MAX]. */
size_t kind_write(const struct kind *kind, char *buf, enum quorum_command command, bool in_full,
                  const struct wire_args *args);

/* What a reply to it says. */
static inline struct vote kind_count(const struct kind *kind, enum quorum_command command,
                                     const struct reply *reply)
{
    return kind->count != NULL ? kind->count(command, reply) : vote_count(command, reply);
}

/* The slot that a lease of kind_permit has, from 0. */
unsigned kind_permit_slot(const struct redlock_lease *lease);

/* ---- Which kind is asked for ---- */

/* What is to be locked. */
struct wanted {
    const char *const *resources;
    size_t len;
    bool many;         /* A list was asked for, which may be of one. */
    const char *token; /* That is adopted; NULL: a lock of our own. */
};

/* OK, or E_INVAL with a message: options that do not go together. */
int kind_check(const struct wanted *wanted, const struct redlock_lock_options *opts);

/* Which kind it is. */
enum kind_id kind_choose(const struct wanted *wanted, const struct redlock_lock_options *opts);

/* The name of the lease, or its names with a NUL between each two, into buf[WIRE_NAMES_MAX + 1];
 * returns the length. */
size_t kind_names(enum kind_id kind, const struct wanted *wanted, char *buf);

#endif /* REDLOCK_KIND_H */
