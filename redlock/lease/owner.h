/*
 * owner.h - which owner holds which lease, for reentrant locks.
 *
 * Masters know tokens, not owners.  So the client itself finds a lock that its owner asks for
 * again, and asks no master.  The owner gets the same lease, whose count grows by one.  Only the
 * last unlock releases the lock.
 *
 * Rules
 * - An inner lock never lasts longer than the outer one.  It fails if the outer lock is over.
 * - An owner is a pointer that the caller chose, or a thread.
 * - A thread is known by a number that no other thread ever has.  An address or a pthread_t could
 *   pass to a later thread, with the locks of an earlier one.
 */
#ifndef REDLOCK_OWNER_H
#define REDLOCK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

struct redlock_lease;

struct owner {
    const void *pointer; /* NULL: the owner is a thread. */
    uint64_t thread;
};

/* A lease that its owner may lock again. */
struct owned {
    struct owned *next; /* The next entry in the same chain. */
    struct redlock_lease *lease;
    const char *name; /* Points into the lease. */
    struct owner owner;
    uint32_t count; /* Locks that are not unlocked yet.  0: the lease is being acquired. */
};

/* All such leases of a client, by name. */
struct owners {
    struct owned **chains;
    uint32_t room, len; /* room is a power of two, or 0. */
    unsigned char key[16];
};

/* The owner that is pointer, or the calling thread if pointer is NULL. */
struct owner owner_make(const void *pointer);
bool owner_is_same(const struct owner *a, const struct owner *b);

/* The lease of this name that the owner has or acquires.  NULL: none. */
struct owned *owner_find(struct owners *owners, const struct owner *owner, const char *name);

/* The entry of a lease.  NULL: the lease may not be locked again. */
struct owned *owner_of(struct owners *owners, const char *name, const struct redlock_lease *lease);

/* An entry of this name that is of another lease.  NULL: none. */
struct owned *owner_other(struct owners *owners, const char *name,
                          const struct redlock_lease *lease);

/* Note that owner acquires this lease.  The name must live as long as the entry.  Returns
 * REDLOCK_OK, REDLOCK_E_NOMEM, or what random_draw() does. */
int owner_add(struct owners *owners, const struct owner *owner, const char *name,
              struct redlock_lease *lease);

/* Remove the entry of a lease, if there is one. */
void owner_drop(struct owners *owners, const char *name, const struct redlock_lease *lease);

/* Free the table.  It must be empty. */
void owner_done(struct owners *owners);

#endif /* REDLOCK_OWNER_H */
