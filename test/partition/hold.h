/*
 * hold.h - one operation of a client: one attempt to lock, and what comes of it.
 *
 * Plans it, tells the history of it, and works under the lock; on a loop and
 * in threads alike.  It locks nothing itself: whoever does tells how it ended.
 *
 * Before each write it asks redlock_remaining_ms(), and with nothing left it
 * neither writes nor claims.  Half of the operations stop when they are told
 * that the lock will be lost, and half use it up to the deadline, as they may.
 */
#ifndef PARTITION_HOLD_H
#define PARTITION_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partition/claim.h"
#include "partition/holder.h"
#include "redlock/redlock.h"

/* Before the next attempt when one has failed.  Histories consist of failures
 * otherwise; who waits within the library tries more often. */
#define HOLD_AFTER_FAIL_MIN_MS 20
#define HOLD_AFTER_FAIL_MAX_MS 400

struct hold {
    struct worker *worker;
    struct redlock *rl;
    struct redlock_lease *lease;
    enum holder_kind kind; /* KIND_PLAIN, KIND_EXTENDED, KIND_BLOCKING or KIND_RUN. */
    char id[RECORD_WORD_MAX + 1];
    const struct resource *resource;
    unsigned permit; /* Its number, from 1; 0: it has none, or none yet. */
    bool reads;      /* Together with others who do, of a MODE_SHARED. */
    uint32_t ttl_ms, wait_ms, hold_ms, max_hold_ms;
    bool renew;
    bool fenced;                          /* Draws a fencing token. */
    bool extends;                         /* By asking for it. */
    bool stubborn;                        /* Goes on when it was told that it will be lost. */
    uint64_t end_ns, write_ns, extend_ns; /* When to release, to write, and to extend. */
    struct claim claim;
    uint64_t over_ns;              /* When it was seen that nothing is left; 0: not. */
    _Atomic uint64_t told_ns;      /* When lost was called; 0: not yet. */
    _Atomic uint32_t told_left_ms; /* What was left then. */
};

/* A new operation of this kind (for KIND_LOOP: of any of the first three). */
void hold_plan(struct hold *hold, struct worker *worker, struct redlock *rl);

/* For the lock that was planned; with the callback lost. */
void hold_options(struct hold *hold, struct redlock_lock_options *ret_opts);

/* Its names, split by commas as redlock(1) has it.  It has to be freed. */
char *hold_names(const struct hold *hold);

/* Before lock is called. */
void hold_invoke(struct hold *hold);

/* The lock was not got: why is the status, or a word. */
void hold_failed(struct hold *hold, int status);
void hold_failed_as(struct hold *hold, const char *why);

/* What an ok tells of a fencing token, and of a permit; nothing, if there is none. */
#define HOLD_NUMBERS_MAX 64
const char *hold_numbers(char text[HOLD_NUMBERS_MAX], uint64_t fence, unsigned permit);

/* Have the store write what the hold is of: of several names, one or another. */
void hold_write(struct hold *hold, uint64_t deadline_ns);

/* Lock gave OK.  False: of what it gave nothing is left by now, so that it has
 * been told as failed; the lease has to be unlocked nevertheless. */
bool hold_begin(struct hold *hold, struct redlock_lease *lease);

enum hold_next {
    HOLD_ON,      /* Nap for hold_nap_ms(), and work again. */
    HOLD_EXTEND,  /* The same, but extend it to ttl_ms meanwhile. */
    HOLD_RELEASE, /* Done: hold_releases(), unlock, hold_released(). */
    HOLD_LEAVE,   /* Told in time: hold_lost(), unlock. */
    HOLD_OVER,    /* Nothing is left: wait until told, hold_lost(), unlock. */
};

/* A step of work under the lock. */
enum hold_next hold_work(struct hold *hold);
uint32_t hold_nap_ms(struct hold *hold);

/* Before unlock is called, and after. */
void hold_releases(struct hold *hold);
void hold_released(struct hold *hold, int status);
void hold_released_as(struct hold *hold, const char *result);

bool hold_was_told(struct hold *hold);
void hold_lost(struct hold *hold);

/* What a history calls them: as redlock.h does, and "ok". */
const char *hold_word(int status);
const char *hold_kind_word(enum holder_kind kind);

#endif /* PARTITION_HOLD_H */
