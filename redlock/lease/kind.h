/*
 * kind.h - kinds of locks, each a table of functions.
 *
 * The machine (core/quorum.h) knows one lock: a SET that a master grants or refuses, an extension,
 * and a release.  A kind says which command or script replaces each of these, and on which keys.
 * The replacement of SET answers as SET does: OK or nil; a number may replace nil.  The
 * replacements of the other two answer 1 or 0.
 *
 * To add a kind: write its file, name it here and in kinds.c, and let kind_choose() find it by an
 * option of redlock.h.  CONTRIBUTING.md, "Add a kind of lock", has the whole list.
 *
 * Fencing is not a kind but a property of a lock: FENCE is SET with a count behind it
 * (write_count).  core/combine.h says what goes together.
 */
#ifndef REDLOCK_KIND_H
#define REDLOCK_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/quorum.h"
#include "redlock/lease/owner.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"
#include "redlock/wire/vote.h"
#include "redlock/wire/wire.h"

struct ask;
struct redlock_lease;

enum kind_id { KIND_PLAIN, KIND_MANY, KIND_PERMIT, KIND_FAIR, KIND_SHARED, KINDS };

#define KIND_COMMANDS (QUORUM_CMD_GIVE + 1)
#define KIND_NO_SCRIPT SCRIPT_LEN /* The command is sent without a script. */

/* A function that is NULL has nothing to do. */
struct kind {
    uint16_t extra; /* Bytes that the kind adds behind the lease: lease_extra(). */
    uint8_t hidden; /* Bytes at the start of the stored name that the caller does not know. */
    bool shared;    /* Several clients may hold the lock.  Its waiters queue apart from writers. */
    bool queued;    /* The lease waits in the masters' queue.  Its extra is a struct place. */
    enum script_id scripts[KIND_COMMANDS];

    /* Write a script.  NULL: wire_script() does it. */
    size_t (*write)(char *buf, enum script_id script, bool in_full, const struct wire_args *args);
    /* Write the count that follows a request for a fencing token.  NULL: wire_count() does it. */
    size_t (*write_count)(char *buf, const struct wire_args *args);
    /* Turn a reply into a vote.  NULL: vote_read() does it. */
    struct vote (*read_vote)(enum quorum_command command, const struct reply *reply);
    /* Set up a new lease, whose extra is zeroed.  token: the adopted token, or NULL. */
    void (*init)(struct redlock_lease *lease, const struct redlock_lock_options *opts,
                 const char *token);
    /* Add the kind's arguments to a command for one master.  key is room for a key. */
    void (*fill)(const struct redlock_lease *lease, unsigned master, char key[WIRE_KEY_MAX],
                 struct wire_args *args);
    /* Write into a new token what differs for each master. */
    void (*stamp)(const struct redlock_lease *lease, unsigned master, char *token);
    /* The machine has made a step; no action of the step is carried out yet. */
    void (*on_step)(struct redlock_lease *lease);
    /* on_ask(): masters are asked for the lock.  on_ask_again(): one master is asked again, with
     * the script in full. */
    void (*on_ask)(struct redlock_lease *lease, const struct quorum_send *send);
    void (*on_ask_again)(struct redlock_lease *lease, unsigned master);
    /* Whether on_step() has a command for this master that waits until it takes commands.  NULL: it
     * never has. */
    bool (*is_due)(const struct redlock_lease *lease, unsigned master);
    /* Masters that lack the token that is held are given it. */
    void (*on_give)(struct redlock_lease *lease, quorum_mask masters);
    /* These numbers belong to other masters from now on. */
    void (*on_left)(struct redlock_lease *lease, quorum_mask left);
    /* The lock that is held is left to whoever has its token. */
    void (*on_detach)(struct redlock_lease *lease);
    /* A master has answered. */
    void (*on_answer)(struct redlock_lease *lease, unsigned master, const struct ask *ask,
                      const struct vote *vote);
    /* Whether the token may wait at a master that did not grant the lock, and be granted later.
     * NULL: it does not. */
    bool (*stands)(const struct redlock_lease *lease, unsigned master);
    /* The name that the lease waits for, or would wait for.  NULL: its own name. */
    const char *(*awaited)(const struct redlock_lease *lease, size_t *ret_len);
    /* The number of slots of a semaphore.  NULL: the kind is no semaphore. */
    unsigned (*slots)(const struct redlock_lease *lease);
    /* Explain to people why the lock is contended, if the kind knows more. */
    enum msg (*explain)(const struct redlock_lease *lease, char *text, size_t size);
};

extern const struct kind kind_plain, kind_many, kind_permit, kind_fair, kind_shared;
extern const struct kind *const kinds[KINDS];

/* Whether the command is a script, which a master may have lost. */
static inline bool kind_is_script(const struct kind *kind, enum quorum_command command)
{
    return kind->scripts[command] != KIND_NO_SCRIPT;
}

/* Write the kind's form of a command.  in_full: write the script's text, for a master that has
 * lost the script.  Returns the bytes written to buf[WIRE_MAX]. */
size_t kind_write(const struct kind *kind, char *buf, enum quorum_command command, bool in_full,
                  const struct wire_args *args);

/* Turn the reply to a command into a vote. */
static inline struct vote kind_read_vote(const struct kind *kind, enum quorum_command command,
                                         const struct reply *reply)
{
    return kind->read_vote != NULL ? kind->read_vote(command, reply) : vote_read(command, reply);
}

/* The slot of a lease of kind_permit, counted from 0. */
unsigned kind_permit_slot(const struct redlock_lease *lease);

/* ---- Which kind is asked for ---- */

/* The names to lock, or the lock to adopt. */
struct wanted {
    const char *const *resources;
    size_t len;
    bool many;         /* The caller gave a list.  A list may have one name. */
    const char *token; /* The token to adopt.  NULL: the client makes its own. */
    /* The calling thread, which owns the lease if the options name no owner. */
    struct owner thread;
};

/* Check that the options fit together.  Returns OK, or E_INVAL with a message. */
int kind_check(const struct wanted *wanted, const struct redlock_lock_options *opts);

/* Choose the kind.  The options passed kind_check(). */
enum kind_id kind_choose(const struct wanted *wanted, const struct redlock_lock_options *opts);

/* Write the name or names of the lease to buf[WIRE_NAMES_MAX + 1], with a NUL between any two.
 * Returns the length. */
size_t kind_names(enum kind_id kind, const struct wanted *wanted, char *buf);

#endif /* REDLOCK_KIND_H */
