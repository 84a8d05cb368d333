/*
 * contend.c - threads and processes, contending.
 */
#include "live/contend.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "live/cluster.h"
#include "redlock/redlock.h"

#define THREADS_MAX 32
#define PROCESSES_MAX 16

/* The memory that all processes share. */
struct arena {
    unsigned counter; /* Plain on purpose: the lock alone protects it. */
    atomic_uint inside, overlaps, failures, done;
    atomic_uint met;   /* The number of holds that have begun; see meet(). */
    char failure[600]; /* The message of the first failure. */
    char resource[64];
    int log;
    const struct contend_plan *plan;
};

struct contender {
    struct arena *arena;
    struct redlock *rl;
    unsigned id;
};

/* ---- One hold ---- */

static void note_failure(struct arena *arena, const char *what, int status, const char *message)
{
    if (atomic_fetch_add(&arena->failures, 1) == 0)
        (void)snprintf(arena->failure, sizeof arena->failure, "%s: status %d: %s", what, status,
                       message);
}

static void log_line(struct arena *arena, char sign, unsigned id)
{
    char line[16];
    int len = snprintf(line, sizeof line, "%c%u\n", sign, id);

    if (write(arena->log, line, (size_t)len) != len)
        note_failure(arena, "log", errno, strerror(errno));
}

static void linger(unsigned linger_us)
{
    const struct timespec span = {.tv_nsec = (long)linger_us * 1000};

    (void)sched_yield();
    if (linger_us > 0)
        (void)nanosleep(&span, NULL);
}

/* Hold the lock until another contender holds it too.  Only where exclusion is broken: there one
 * process may end before the next begins, and no overlap would occur. */
static void meet(struct arena *arena)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S / 2.0;

    atomic_fetch_add(&arena->met, 1);
    while (atomic_load(&arena->met) < 2 && cluster_now_s() < end_s)
        cluster_nap();
}

static void be_inside(struct arena *arena, unsigned id)
{
    unsigned counter;

    if (atomic_fetch_add(&arena->inside, 1) != 0)
        atomic_fetch_add(&arena->overlaps, 1);
    log_line(arena, '+', id);
    counter = arena->counter;
    if (arena->plan->wrong_masters != NULL)
        meet(arena);
    linger(arena->plan->linger_us); /* The longer the hold, the likelier an overlap is noticed. */
    arena->counter = counter + 1;
    log_line(arena, '-', id);
    atomic_fetch_sub(&arena->inside, 1);
}

static bool hold_once(struct contender *contender, const struct redlock_lock_options *opts)
{
    struct arena *arena = contender->arena;
    struct redlock_lease *lease;
    int status = redlock_lock(contender->rl, arena->resource, opts, &lease);

    if (status != REDLOCK_OK) {
        note_failure(arena, "lock", status, redlock_errmsg(contender->rl));
        return false;
    }
    be_inside(arena, contender->id);
    status = redlock_unlock(lease);
    if (status == REDLOCK_UNREACHABLE && arena->plan->unlock_may_be_unheard)
        return true;
    if (status != REDLOCK_OK)
        note_failure(arena, "unlock", status, redlock_errmsg(contender->rl));
    return true;
}

static void *run_thread(void *arg)
{
    struct contender *contender = arg;
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = 30000;
    opts.wait_ms = CLUSTER_WAIT_S * 1000;
    opts.retry_delay_min_ms = 1;
    opts.retry_delay_max_ms = 25;
    for (unsigned i = 0; i < contender->arena->plan->rounds; i++) {
        if (!hold_once(contender, &opts))
            break;
    }
    atomic_fetch_add(&contender->arena->done, 1);
    return NULL;
}

/* ---- Threads and processes ---- */

static void disturb(struct arena *arena, unsigned done_wanted)
{
    const struct contend_plan *plan = arena->plan;
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;

    if (plan->disturb == NULL)
        return;
    while (atomic_load(&arena->done) < done_wanted && cluster_now_s() < end_s) {
        plan->disturb(plan->disturb_arg);
        cluster_nap();
    }
}

static void run_threads(struct arena *arena, const char *masters, unsigned first_id)
{
    unsigned threads = arena->plan->threads;
    struct contender contenders[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    struct redlock_options opts;
    struct redlock *rl;

    redlock_options_init(&opts);
    opts.masters = masters;
    /* With the guard, the masters would refuse the wrong list. */
    opts.restart_guard = arena->plan->wrong_masters == NULL;
    opts.reply_timeout_ms = 5000;
    opts.connect_timeout_ms = 10000;
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        cluster_die("contend: %s", redlock_errmsg(NULL));
    for (unsigned i = 0; i < threads; i++) {
        contenders[i] = (struct contender){arena, rl, first_id + i};
        if (pthread_create(&ids[i], NULL, run_thread, &contenders[i]) != 0)
            cluster_die("contend: no thread");
    }
    if (arena->plan->processes == 0)
        disturb(arena, threads);
    for (unsigned i = 0; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
    (void)redlock_close(rl);
}

struct process {
    struct arena *arena;
    unsigned number;
};

static int run_process(void *arg)
{
    struct process *process = arg;
    const struct contend_plan *plan = process->arena->plan;
    bool wrong = plan->wrong_masters != NULL && process->number % 2 == 1;

    run_threads(process->arena, wrong ? plan->wrong_masters : plan->masters,
                process->number * plan->threads);
    return 0;
}

static void run_processes(struct arena *arena)
{
    const struct contend_plan *plan = arena->plan;
    struct process processes[PROCESSES_MAX];
    pid_t pids[PROCESSES_MAX];

    for (unsigned i = 0; i < plan->processes; i++) {
        processes[i] = (struct process){arena, i};
        pids[i] = cluster_spawn(run_process, &processes[i]);
    }
    disturb(arena, plan->processes * plan->threads);
    for (unsigned i = 0; i < plan->processes; i++) {
        if (cluster_join(pids[i]) != 0)
            note_failure(arena, "process", (int)i, "did not end well");
    }
}

/* ---- The witnesses ---- */

/* Lines pair up if each "+id" is followed by its own "-id". */
static void read_log(const char *path, struct contend_report *report)
{
    FILE *file = fopen(path, "r");
    char line[32], expected[32] = "";

    if (file == NULL)
        cluster_die("contend: %s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file) != NULL) {
        report->log_lines++;
        if (expected[0] == 0 ? line[0] != '+' : strcmp(line, expected) != 0)
            report->log_bad++;
        if (line[0] == '+')
            (void)snprintf(expected, sizeof expected, "-%.20s", line + 1);
        else
            expected[0] = 0;
    }
    report->log_bad += expected[0] != 0;
    (void)fclose(file);
}

static struct arena *make_arena(const struct contend_plan *plan, char *log_path)
{
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (arena == MAP_FAILED)
        cluster_die("contend: no memory");
    arena->plan = plan;
    arena->log = mkostemp(log_path, O_APPEND | O_CLOEXEC);
    if (arena->log < 0)
        cluster_die("contend: %s: %s", log_path, strerror(errno));
    (void)snprintf(arena->resource, sizeof arena->resource, "test:contend:%d", (int)getpid());
    return arena;
}

void contend(const struct contend_plan *plan, struct contend_report *ret_report)
{
    char log_path[] = "/tmp/redlock-contend-XXXXXX";
    struct arena *arena = make_arena(plan, log_path);
    unsigned processes = plan->processes > 0 ? plan->processes : 1;

    if (plan->threads > THREADS_MAX || processes > PROCESSES_MAX)
        cluster_die("contend: too many contenders");
    if (plan->processes > 0)
        run_processes(arena);
    else
        run_threads(arena, plan->masters, 0);
    *ret_report = (struct contend_report){
        .holds_wanted = processes * plan->threads * plan->rounds,
        .counter = arena->counter,
        .overlaps = atomic_load(&arena->overlaps),
        .failures = atomic_load(&arena->failures),
    };
    memcpy(ret_report->failure, arena->failure, sizeof arena->failure);
    read_log(log_path, ret_report);
    (void)close(arena->log);
    (void)unlink(log_path);
    (void)munmap(arena, sizeof *arena);
}
