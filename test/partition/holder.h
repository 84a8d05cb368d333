/*
 * holder.h - what the parts of a client of a partition run share.
 */
#ifndef PARTITION_HOLDER_H
#define PARTITION_HOLDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partition/record.h"
#include "partition/storelink.h"
#include "partition/tool.h"
#include "redlock/redlock.h"

#define HOLDER_LOCKS_MAX 64
#define RESOURCE_NAMES_MAX 4
#define HOLDER_WORKERS_MAX 64

enum holder_kind { KIND_PLAIN, KIND_EXTENDED, KIND_BLOCKING, KIND_RUN, KIND_LOOP, KINDS_LEN };

/* What can be had of a resource. */
enum resource_mode {
    MODE_ALONE,   /* A lock, fenced or not. */
    MODE_SEVERAL, /* Several names in one lease. */
    MODE_FAIR,    /* In the order of a queue. */
    MODE_PERMIT,  /* One of so many permits. */
    MODE_SHARED,  /* By readers together, or by a writer. */
};

/* text is NAME[+NAME...][=fair|shared|PERMITS]. */
struct resource {
    char *text; /* Without what is behind the "=": as a history calls it. */
    char *names[RESOURCE_NAMES_MAX];
    unsigned names_len;
    enum resource_mode mode;
    uint32_t permits;
};

struct redlock;

struct holder {
    const char *masters, *store, *history, *redlock;
    char program[4096]; /* Our own, by its path. */
    struct resource locks[HOLDER_LOCKS_MAX];
    unsigned locks_len;
    unsigned workers[KINDS_LEN]; /* How many of each kind. */
    uint32_t ttl_ms, reply_timeout_ms;
    const char *restart_guard; /* "on" or "off". */
    const char *clock_guard;   /* As the command has it. */
    unsigned long_percent;     /* Of all holds, those that last. */
    uint64_t seed, seconds;
    struct record record;
    struct redlock *rl;   /* The blocking client that all threads share. */
    atomic_uint op;       /* Number of the latest operation. */
    atomic_bool stopping; /* Begin nothing any more, and end what goes on. */
};

/* One thread, or one of those on the loop: what it needs for itself. */
struct worker {
    struct holder *holder;
    enum holder_kind kind;
    struct dice dice;
    struct storelink store;
    pthread_t thread;
};

/* Sleep this long, or until stopping. */
void holder_nap(const struct holder *holder, uint32_t nap_ms);

/* The threads: KIND_PLAIN, KIND_EXTENDED and KIND_BLOCKING; KIND_RUN; all of KIND_LOOP. */
void *blocker_thread(void *worker);
void *runner_thread(void *worker);
void *looper_thread(void *workers); /* The first of holder->workers[KIND_LOOP] in a row. */

/* The options restart_guard and clock_guard of all clients. */
bool holder_is_guarded(const struct holder *holder);
enum redlock_clock_guard holder_clock_guard(const struct holder *holder);

/* The command that `redlock run` runs for a runner; plan: see command.h. */
int command_main(const char *plan);

#endif /* PARTITION_HOLDER_H */
