/*
 * hold.h - one operation of a client: one attempt to lock, and the hold.
 *
 * Plans the operation, writes its history, and works under the lock, on a loop or in a thread.
 * The caller locks and unlocks, and reports the results.
 *
 * Before each write it calls redlock_remaining_ms(); with nothing left it neither writes nor
 * claims.  Half of the operations stop when lost is called, and half work up to the deadline, as
 * the library allows.
 */
#ifndef PARTITION_HOLD_H
#define PARTITION_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partition/claim.h"
#include "partition/holder.h"
#include "redlock/redlock.h"

/* The pause after a failed attempt.  Without it, histories would mostly consist of failures.
 * Waiters within the library try more often. */
#define HOLD_AFTER_FAIL_MIN_MS 20
#define HOLD_AFTER_FAIL_MAX_MS 400

struct hold {
    struct worker *worker;
    struct redlock *rl;
    struct redlock_lease *lease;
    enum holder_kind kind; /* KIND_PLAIN, KIND_EXTENDED, KIND_BLOCKING or KIND_RUN. */
    char id[RECORD_WORD_MAX + 1];
    const struct resource *resource;
    unsigned permit; /* The number of its permit, from 1; 0: none, or none yet. */
    bool reads;      /* It is a reader, of a MODE_SHARED. */
    uint32_t ttl_ms, wait_ms, hold_ms, max_hold_ms;
    bool renew;
    bool fenced;                          /* It draws a fencing token. */
    bool extends;                         /* It calls redlock_extend(). */
    bool stubborn;                        /* It goes on after lost was called. */
    uint64_t end_ns, write_ns, extend_ns; /* When to release, to write, and to extend. */
    struct claim claim;
    uint64_t over_ns;              /* When a look first found nothing left; 0: not yet. */
    _Atomic uint64_t told_ns;      /* When lost was called; 0: not yet. */
    _Atomic uint32_t told_left_ms; /* What was left when lost was called. */
};

/* Plan a new operation of the worker's kind (for KIND_LOOP: of any of the first three). */
void hold_plan(struct hold *hold, struct worker *worker, struct redlock *rl);

/* The options of the planned lock, with the callback lost. */
void hold_options(struct hold *hold, struct redlock_lock_options *ret_opts);

/* Its names, split by commas as in redlock(1).  The caller frees the text. */
char *hold_names(const struct hold *hold);

/* Call this before lock. */
void hold_invoke(struct hold *hold);

/* The attempt failed; the reason is a status, or a word. */
void hold_failed(struct hold *hold, int status);
void hold_failed_as(struct hold *hold, const char *why);

/* The fields of an ok for a fencing token and a permit; empty if there is none. */
#define HOLD_NUMBERS_MAX 64
const char *hold_numbers(char text[HOLD_NUMBERS_MAX], uint64_t fence, unsigned permit);

/* Let the store write to the lock of the hold; of several names, to any one. */
void hold_write(struct hold *hold, uint64_t deadline_ns);

/* The lock was taken.  False: nothing is left of the lease by now, so the attempt is recorded as
 * failed; the caller must unlock the lease nevertheless. */
bool hold_begin(struct hold *hold, struct redlock_lease *lease);

enum hold_next {
    HOLD_ON,      /* Nap for hold_nap_ms(), and work again. */
    HOLD_EXTEND,  /* The same, and extend the lease to ttl_ms. */
    HOLD_RELEASE, /* Work is done: hold_releases(), unlock, hold_released(). */
    HOLD_LEAVE,   /* lost was called in time: hold_lost(), unlock. */
    HOLD_OVER,    /* Nothing is left: wait until lost is called, hold_lost(), unlock. */
};

/* A step of work under the lock. */
enum hold_next hold_work(struct hold *hold);
uint32_t hold_nap_ms(struct hold *hold);

/* Call these before unlock, and after it. */
void hold_releases(struct hold *hold);
void hold_released(struct hold *hold, int status);
void hold_released_as(struct hold *hold, const char *result);

bool hold_was_told(struct hold *hold);
void hold_lost(struct hold *hold);

/* The word of a status in a history: its name in redlock.h, or "ok". */
const char *hold_word(int status);
const char *hold_kind_word(enum holder_kind kind);

#endif /* PARTITION_HOLD_H */
