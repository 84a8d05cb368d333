/*
 * owner.h - who holds what, for locks that their owner may lock again.
 *
 * Masters know tokens, not owners.  So a lock that is asked for again by the
 * owner who has it is found here, and no master is asked: it gets the same
 * lease, whose count is one more, and only the last unlock releases.
 *
 * Rules.  An inner lock is never longer than the outer one: where that is
 * over, it fails.  An owner is a pointer that the caller chose, or a thread,
 * by a number that no other thread ever has: an address or a pthread_t would
 * be given to the next thread once this one is gone, with its locks.
 */
#ifndef REDLOCK_OWNER_H
#define REDLOCK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

struct redlock_lease;

struct owner {
    const void *pointer; /* NULL: a thread. */
    uint64_t thread;
};

/* A lease that its owner may lock again. */
struct owned {
    struct owned *next; /* In its chain. */
    struct redlock_lease *lease;
    const char *name; /* The lease's own copy. */
    struct owner owner;
    uint32_t count; /* Of locks that were not unlocked; 0: it is being acquired. */
};

/* A table of them, by name. */
struct owners {
    struct owned **chains;
    uint32_t room, len; /* room is a power of two, or 0. */
    unsigned char key[16];
};

/* pointer, or if that is NULL the calling thread. */
struct owner owner_make(const void *pointer);
bool owner_is_same(const struct owner *a, const struct owner *b);

/* What owner has, or is acquiring, by this name; NULL: nothing. */
struct owned *owner_find(struct owners *owners, const struct owner *owner, const char *name);

/* What is known of a lease; NULL: it may not be locked again. */
struct owned *owner_of(struct owners *owners, const char *name, const struct redlock_lease *lease);

/* Note that owner acquires this lease.  The name lives as long as the entry.  0, or -1 without
 * memory. */
int owner_add(struct owners *owners, const struct owner *owner, const char *name,
              struct redlock_lease *lease);

/* Forget a lease, if it is known. */
void owner_drop(struct owners *owners, const char *name, const struct redlock_lease *lease);

/* Free the table, which is empty. */
void owner_done(struct owners *owners);

#endif /* REDLOCK_OWNER_H */
