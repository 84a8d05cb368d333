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

enum holder_kind {
    KIND_PLAIN,
    KIND_EXTENDED,
    KIND_BLOCKING,
    KIND_RUN,
    KIND_LOOP,
    KIND_CROWD,
    KIND_FENCER,
    KINDS_LEN
};

/* How a resource is held. */
enum resource_mode {
    MODE_ALONE,   /* A lock, fenced or not. */
    MODE_SEVERAL, /* Several names in one lease. */
    MODE_FAIR,    /* A fair lock, in the order of a queue. */
    MODE_PERMIT,  /* One permit of a semaphore. */
    MODE_SHARED,  /* Held by readers together, or by a writer. */
};

/* text is NAME[+NAME...][=fair|shared|PERMITS]. */
struct resource {
    char *text; /* The text without "=" and the rest: the name in a history. */
    char *names[RESOURCE_NAMES_MAX];
    unsigned names_len;
    enum resource_mode mode;
    uint32_t permits;
};

struct redlock;

struct holder {
    const char *masters, *store, *history, *redlock;
    const char *masters_file; /* The list of the commands of KIND_RUN.  NULL: masters. */
    char program[4096];       /* The path of this program. */
    struct resource locks[HOLDER_LOCKS_MAX];
    unsigned locks_len;
    unsigned crowds_len;         /* The last of them are for the crowds, and for nobody else. */
    unsigned workers[KINDS_LEN]; /* The number of workers of each kind. */
    uint32_t ttl_ms, reply_timeout_ms;
    const char *restart_guard; /* "on" or "off". */
    const char *clock_guard;   /* A value of the command's --clock-guard. */
    unsigned long_percent;     /* The part of all holds that last as long as they can. */
    uint64_t seed, seconds;
    struct record record;
    struct redlock *rl;   /* The blocking client that all threads share. */
    atomic_uint op;       /* The number of the latest operation. */
    atomic_bool stopping; /* Workers begin nothing new, and end their operations. */
};

/* The state of one worker: a thread, or one of the workers on the loop. */
struct worker {
    struct holder *holder;
    enum holder_kind kind;
    struct dice dice;
    struct storelink store;
    bool has_thread; /* Of the workers on a loop, the first has it. */
    pthread_t thread;
};

/* Sleep this long, or until stopping. */
void holder_nap(const struct holder *holder, uint32_t nap_ms);

/* The threads: KIND_PLAIN, KIND_EXTENDED and KIND_BLOCKING; KIND_RUN; all of KIND_LOOP, or of
 * KIND_CROWD. */
void *blocker_thread(void *worker);
void *runner_thread(void *worker);
void *looper_thread(void *workers); /* The first of its kind in a row. */
void *fencer_thread(void *worker);  /* KIND_FENCER; see fencer.c. */

/* The options restart_guard and clock_guard of all clients. */
bool holder_is_guarded(const struct holder *holder);
enum redlock_clock_guard holder_clock_guard(const struct holder *holder);
/* The log of a client, to standard error: it says why there was no lock. */
void holder_log(void *arg, enum redlock_level level, const char *message);

/* The command that `redlock run` runs for a runner; plan: see command.h. */
int command_main(const char *plan);

#endif /* PARTITION_HOLDER_H */
