/*
 * measure.c - locks and unlocks again and again, and prints how long it took.
 *
 * Each of K slots (on a loop) or T threads (of a blocking client) has one or several names of its
 * own.  Between two calls of the library it only reads the clock and stores a number, because
 * cpu_us_per_cycle is compared with programs that use no library (test/bench).
 */
#include "redlock/cli/bench/measure.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/cli/common/cli.h"
#include "redlock/cli/common/loop.h"
#include "redlock/cli/common/refusal.h"
#include "redlock/cli/common/samples.h"
#include "redlock/base/error.h"
#include "redlock/client/inspect.h"

#define NAME_ROOM 48
#define PROGRESS_S 0.2 /* Between two updates.  Chosen: too rare to change the figures. */

struct bench;

/* A slot or a thread. */
struct worker {
    struct bench *bench;
    pthread_t thread;
    uint64_t began_ns;    /* When the operation under way began. */
    uint32_t cycles;      /* How many it has to do. */
    uint32_t *acquire_ns; /* One sample for each cycle that succeeded. */
    uint32_t *unlock_ns;
    uint32_t samples_len;
    uint32_t errors;
    uint64_t failing_ns;   /* When its first cycle failed after the last that succeeded; 0: none. */
    _Atomic uint32_t done; /* Cycles done.  The main thread reads it for the progress. */
    char name[40];
    const char **resources; /* The names of each lease.  NULL: name alone. */
};

struct bench {
    struct measure wanted;
    struct worker *workers;
    char (*names)[NAME_ROOM];         /* The names of all workers, if each lease has several. */
    const char **resources;           /* Pointers to names. */
    uint32_t *acquire_ns, *unlock_ns; /* The samples of all workers. */
    uint32_t samples_len;             /* Set by gather(). */
    uint64_t errors;
    uint64_t elapsed_ns, cpu_ns;
    struct redlock *rl;
    struct ev_loop *loop;
    uint32_t active; /* Slots that have not finished. */
    atomic_bool has_error;
    atomic_bool is_refused;        /* The masters refuse the list: no cycle can succeed. */
    atomic_bool gave_up;           /* The cycles of a worker have failed for too long. */
    char error[ERROR_MESSAGE_MAX]; /* The message of the first cycle that failed. */
    enum msg cause;                /* Its identifier. */
};

/* Set by a signal: finish the cycles under way, and print. */
static volatile sig_atomic_t stopped;

static void on_signal(int signum)
{
    (void)signum;
    stopped = 1;
}

/* A second signal has its default action. */
static void watch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        (void)sigaction(signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
    }
}

/* ---- Measuring ---- */

/* A lock whose release was lost keeps its name until its lease is over. */
static uint64_t give_up_ns(const struct bench *bench)
{
    return (MEASURE_GIVE_UP_S * UINT64_C(1000) + bench->wanted.opts.ttl_ms) * 1000000;
}

static void count_error(struct worker *worker, int status)
{
    struct bench *bench = worker->bench;
    char why[REFUSAL_TEXT_MAX];

    worker->errors++;
    if (!atomic_exchange(&bench->has_error, true)) {
        bench->cause = cli_cause(status);
        (void)snprintf(bench->error, sizeof bench->error, "%s", redlock_errmsg(bench->rl));
    }
    if (refusal_of_list(bench->rl, why, sizeof why)) /* A stranger may answer after the members. */
        atomic_store(&bench->is_refused, true);
    if (worker->failing_ns == 0)
        worker->failing_ns = samples_now_ns();
    else if (samples_now_ns() - worker->failing_ns >= give_up_ns(bench))
        atomic_store(&bench->gave_up, true);
}

static void count_cycle(struct worker *worker, int status)
{
    if (status == REDLOCK_OK) {
        worker->samples_len++;
        worker->failing_ns = 0;
    } else {
        count_error(worker, status);
    }
    /* Only this thread writes it. */
    atomic_store_explicit(&worker->done, worker->samples_len + worker->errors,
                          memory_order_relaxed);
}

static bool has_cycles_left(const struct worker *worker)
{
    return worker->samples_len + worker->errors < worker->cycles && !stopped &&
           !atomic_load_explicit(&worker->bench->is_refused, memory_order_relaxed) &&
           !atomic_load_explicit(&worker->bench->gave_up, memory_order_relaxed);
}

static void show_progress(const struct bench *bench)
{
    uint64_t done = 0;

    for (uint32_t i = 0; i < bench->wanted.workers_len; i++)
        done += atomic_load_explicit(&bench->workers[i].done, memory_order_relaxed);
    (void)fprintf(stderr, "\r%u of %u cycles, %u%%", (unsigned)done, bench->wanted.cycles,
                  (unsigned)(done * 100 / bench->wanted.cycles));
}

static void clear_progress(void)
{
    (void)fputs("\r\033[K", stderr); /* To the start of the line, and wipe it: ECMA-48, EL. */
}

/* ---- On a loop ---- */

static void on_locked(struct redlock_lease *lease, int status, void *arg);

static int lock_async(struct worker *slot)
{
    const struct bench *bench = slot->bench;

    if (slot->resources == NULL)
        return redlock_lock_async(bench->rl, slot->name, &bench->wanted.opts, on_locked, slot,
                                  NULL);
    return redlock_lock_many_async(bench->rl, slot->resources, bench->wanted.resources_len,
                                   &bench->wanted.opts, on_locked, slot, NULL);
}

static void start_cycle(struct worker *slot, uint64_t now)
{
    struct bench *bench = slot->bench;
    int status;

    while (has_cycles_left(slot)) {
        slot->began_ns = now;
        status = lock_async(slot);
        if (status == REDLOCK_OK)
            return;
        count_cycle(slot, status);
    }
    if (--bench->active == 0)
        ev_break(bench->loop, EVBREAK_ALL);
}

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct worker *slot = arg;
    uint64_t now = samples_now_ns();

    (void)lease;
    slot->unlock_ns[slot->samples_len] = samples_of(now - slot->began_ns);
    count_cycle(slot, status);
    start_cycle(slot, now);
}

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct worker *slot = arg;
    uint64_t now = samples_now_ns();

    if (status != REDLOCK_OK) {
        count_cycle(slot, status);
        start_cycle(slot, now);
        return;
    }
    slot->acquire_ns[slot->samples_len] = samples_of(now - slot->began_ns);
    slot->began_ns = now;
    (void)redlock_unlock_async(lease, on_unlocked, slot); /* Cannot fail: it is held. */
}

static void on_progress(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    show_progress(timer->data);
}

#define AWAIT_CLOCKS_MS 3000 /* For links, and for one more sample of each clock.  Chosen. */

static bool links_are_coming(void *arg)
{
    const struct bench *bench = arg;

    return inspect_client(bench->rl).coming != 0 && !stopped;
}

static bool leases_are_left(void *arg)
{
    const struct bench *bench = arg;

    return inspect_client(bench->rl).leases > 0;
}

static void run_loop(struct bench *bench)
{
    ev_timer progress;
    bool shown = isatty(STDERR_FILENO);
    uint64_t now = samples_now_ns();

    ev_timer_init(&progress, on_progress, PROGRESS_S, PROGRESS_S);
    progress.data = bench;
    if (shown)
        ev_timer_start(bench->loop, &progress);
    bench->active = bench->wanted.workers_len;
    for (uint32_t i = 0; i < bench->wanted.workers_len; i++)
        start_cycle(&bench->workers[i], now);
    if (bench->active > 0)
        ev_run(bench->loop, 0);
    ev_timer_stop(bench->loop, &progress);
    if (shown)
        clear_progress();
}

/* ---- Threads ---- */

static int lock(const struct worker *worker, struct redlock_lease **ret_lease)
{
    const struct bench *bench = worker->bench;

    if (worker->resources == NULL)
        return redlock_lock(bench->rl, worker->name, &bench->wanted.opts, ret_lease);
    return redlock_lock_many(bench->rl, worker->resources, bench->wanted.resources_len,
                             &bench->wanted.opts, ret_lease);
}

static void *run_thread(void *arg)
{
    struct worker *worker = arg;
    struct redlock_lease *lease;
    uint64_t began = samples_now_ns(), now;
    int status;

    while (has_cycles_left(worker)) {
        status = lock(worker, &lease);
        now = samples_now_ns();
        if (status == REDLOCK_OK) {
            worker->acquire_ns[worker->samples_len] = samples_of(now - began);
            began = now;
            status = redlock_unlock(lease);
            now = samples_now_ns();
            worker->unlock_ns[worker->samples_len] = samples_of(now - began);
        }
        began = now;
        count_cycle(worker, status);
    }
    return NULL;
}

static void sleep_a_little(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&pause, NULL);
}

static void await_links_of_threads(struct bench *bench)
{
    struct redlock_stats stats = {.size = sizeof stats};
    uint64_t until_ns =
        samples_now_ns() + bench->wanted.cli->connect_timeout_ms * UINT64_C(1000000);

    do {
        sleep_a_little(1);
        if (redlock_stats(bench->rl, &stats) != REDLOCK_OK)
            return;
    } while (stats.masters_up < stats.masters && samples_now_ns() < until_ns && !stopped);
}

/* Join all threads.  On a terminal, show the progress. */
static void join_threads(struct bench *bench, uint32_t threads_len)
{
    bool shown = isatty(STDERR_FILENO);

    for (uint32_t i = 0; i < threads_len; i++) {
        while (shown && pthread_tryjoin_np(bench->workers[i].thread, NULL) == EBUSY) {
            show_progress(bench);
            sleep_a_little((long)(PROGRESS_S * 1000));
        }
        if (!shown)
            (void)pthread_join(bench->workers[i].thread, NULL);
    }
    if (shown)
        clear_progress();
}

static int run_threads(struct bench *bench)
{
    int error = 0;
    uint32_t i;

    for (i = 0; i < bench->wanted.workers_len && error == 0; i++) {
        struct worker *worker = &bench->workers[i];

        error = pthread_create(&worker->thread, NULL, run_thread, worker);
    }
    if (error != 0) {
        stopped = 1;
        cli_say(MSG_SYSTEM, "cannot start thread %u: %s", i, strerror(error));
        i--;
    }
    join_threads(bench, i);
    return error == 0 ? CLI_OK : CLI_INTERNAL;
}

/* ---- Figures ---- */

/* Close the gaps that failed cycles left, and sort. */
static void gather(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->wanted.workers_len; i++) {
        const struct worker *worker = &bench->workers[i];
        size_t size = worker->samples_len * sizeof *worker->acquire_ns;

        memmove(bench->acquire_ns + bench->samples_len, worker->acquire_ns, size);
        memmove(bench->unlock_ns + bench->samples_len, worker->unlock_ns, size);
        bench->samples_len += worker->samples_len;
        bench->errors += worker->errors;
    }
    samples_sort(bench->acquire_ns, bench->samples_len);
    samples_sort(bench->unlock_ns, bench->samples_len);
}

static void print_figures(const struct bench *bench)
{
    const char *format = bench->wanted.cli->json
                             ? "{\"cycles_per_s\":%.0f,\"acquire_p50_us\":%.1f,"
                               "\"acquire_p99_us\":%.1f,\"unlock_p50_us\":%.1f,"
                               "\"unlock_p99_us\":%.1f,\"cpu_us_per_cycle\":%.2f,\"errors\":%llu}\n"
                             : "cycles_per_s=%.0f acquire_p50_us=%.1f acquire_p99_us=%.1f "
                               "unlock_p50_us=%.1f unlock_p99_us=%.1f cpu_us_per_cycle=%.2f "
                               "errors=%llu\n";
    uint32_t len = bench->samples_len;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)printf(format, len / ((double)bench->elapsed_ns / 1e9),
                 samples_percentile_us(bench->acquire_ns, len, 50),
                 samples_percentile_us(bench->acquire_ns, len, 99),
                 samples_percentile_us(bench->unlock_ns, len, 50),
                 samples_percentile_us(bench->unlock_ns, len, 99),
                 len > 0 ? (double)bench->cpu_ns / 1e3 / len : 0.0,
                 (unsigned long long)bench->errors);
#pragma GCC diagnostic pop
}

/* ---- The whole ---- */

static uint32_t *make_samples(size_t len)
{
    uint32_t *samples = malloc(len * sizeof *samples);

    if (samples != NULL)
        memset(samples, 0xff, len * sizeof *samples); /* Page faults are no part of a cycle. */
    return samples;
}

/* Make names for leases of several names. */
static bool make_names(struct bench *bench)
{
    size_t len = (size_t)bench->wanted.workers_len * bench->wanted.resources_len;

    if (bench->wanted.resources_len == 1)
        return true;
    bench->names = calloc(len, sizeof *bench->names);
    bench->resources = calloc(len, sizeof *bench->resources);
    if (bench->names == NULL || bench->resources == NULL)
        return false;
    for (size_t i = 0; i < len; i++) {
        bench->resources[i] = bench->names[i];
        (void)snprintf(bench->names[i], NAME_ROOM, "bench/%d/%zu/%zu", (int)getpid(),
                       i / bench->wanted.resources_len, i % bench->wanted.resources_len);
    }
    for (uint32_t i = 0; i < bench->wanted.workers_len; i++)
        bench->workers[i].resources = bench->resources + (size_t)i * bench->wanted.resources_len;
    return true;
}

/* Allocate all, and give each worker its share of the cycles. */
static int make_workers(struct bench *bench)
{
    uint32_t given = 0;

    bench->workers = calloc(bench->wanted.workers_len, sizeof *bench->workers);
    bench->acquire_ns = make_samples(bench->wanted.cycles);
    bench->unlock_ns = make_samples(bench->wanted.cycles);
    if (bench->workers == NULL || bench->acquire_ns == NULL || bench->unlock_ns == NULL ||
        !make_names(bench)) {
        cli_say(MSG_NO_MEMORY, "out of memory");
        return CLI_INTERNAL;
    }
    for (uint32_t i = 0; i < bench->wanted.workers_len; i++) {
        struct worker *worker = &bench->workers[i];

        worker->bench = bench;
        worker->cycles = bench->wanted.cycles / bench->wanted.workers_len +
                         (i < bench->wanted.cycles % bench->wanted.workers_len);
        worker->acquire_ns = bench->acquire_ns + given;
        worker->unlock_ns = bench->unlock_ns + given;
        given += worker->cycles;
        (void)snprintf(worker->name, sizeof worker->name, "bench/%d/%u", (int)getpid(), i);
    }
    return CLI_OK;
}

/* Count the masters that may vote, and the warming ones. */
static void count_masters(struct redlock *rl, unsigned *ret_up, unsigned *ret_warming)
{
    const struct inspect_client client = inspect_client(rl);

    *ret_up = *ret_warming = 0;
    for (unsigned m = 0; m < client.masters; m++) {
        const struct inspect_master master = inspect_master(rl, m);

        if (!master.is_linked)
            continue;
        *ret_up += !client.restart_guard || (master.look.number != 0 && master.look.ready);
        *ret_warming += client.restart_guard && master.look.number != 0 && !master.look.ready;
    }
}

int measure_check_links(const struct cli *cli, struct redlock *rl)
{
    const struct inspect_client client = inspect_client(rl);
    unsigned masters = mask_count(members_all(&client.lists)), up, warming;
    char why[REFUSAL_TEXT_MAX];
    bool is_refused = refusal_of_list(rl, why, sizeof why);

    count_masters(rl, &up, &warming);
    if (up > masters / 2 && !is_refused)
        return CLI_OK;
    if (is_refused)
        cli_say(MSG_WRONG_SET, "no master may vote for this list of masters");
    else if (warming == 0 || client.has_forgotten)
        cli_say(MSG_NO_MAJORITY, "%u of %u masters are up; see `redlock status`", up, masters);
    else
        cli_say(
            MSG_WARMING,
            "%u of %u masters may vote, and %u are warming up: run `redlock init%s` first, or use "
            "--restart-guard off if no other client uses these masters",
            up, masters, warming, cli->masters_option);
    refusal_tell(cli, rl, true, &(struct blame){.masters = 0}, " bench/", false);
    return CLI_UNREACHABLE;
}

/* True: with per_vote, some clock must be watched for longer before its master counts. */
static bool clocks_are_watched(void *arg)
{
    const struct bench *bench = arg;
    unsigned masters = inspect_client(bench->rl).masters;

    for (unsigned m = 0; m < masters && !stopped; m++) {
        const struct inspect_master master = inspect_master(bench->rl, m);

        if (master.is_linked && master.clock_why != WHY_NONE)
            return true;
    }
    return false;
}

static void await_clocks(struct bench *bench)
{
    const struct inspect_client client = inspect_client(bench->rl);
    uint32_t at_most_ms = drift_to_ms(client.clock_window) + AWAIT_CLOCKS_MS;
    uint64_t until_ns = samples_now_ns() + at_most_ms * UINT64_C(1000000);
    bool is_over = false;

    if (client.clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE)
        return;
    if (!bench->wanted.blocking)
        cli_linger(bench->loop, clocks_are_watched, bench, at_most_ms);
    while (bench->wanted.blocking && !is_over) {
        is_over = !clocks_are_watched(bench) || samples_now_ns() >= until_ns;
        sleep_a_little(1);
    }
}

static int measure_all(struct bench *bench)
{
    int code = CLI_OK;

    /* The time to connect is no part of a cycle. */
    if (bench->wanted.blocking)
        await_links_of_threads(bench);
    else
        cli_linger(bench->loop, links_are_coming, bench, bench->wanted.cli->connect_timeout_ms);
    code = measure_check_links(bench->wanted.cli, bench->rl);
    if (code != CLI_OK)
        return code;
    await_clocks(bench);
    bench->cpu_ns = samples_cpu_ns();
    bench->elapsed_ns = samples_now_ns();
    if (bench->wanted.blocking)
        code = run_threads(bench);
    else
        run_loop(bench);
    bench->elapsed_ns = samples_now_ns() - bench->elapsed_ns;
    bench->cpu_ns = samples_cpu_ns() - bench->cpu_ns;
    if (code != CLI_OK)
        return code;
    /* Wait until slower masters have answered the last releases.  A blocking client waits for them
     * when it is closed. */
    if (!bench->wanted.blocking)
        cli_linger(bench->loop, leases_are_left, bench, bench->wanted.cli->reply_timeout_ms);
    gather(bench);
    if (bench->is_refused)
        return measure_check_links(bench->wanted.cli, bench->rl);
    if (bench->errors > 0)
        cli_say(bench->cause, "the first of %llu errors: %s", (unsigned long long)bench->errors,
                bench->error);
    if (bench->gave_up)
        cli_say(MSG_GAVE_UP, "no lock succeeded for %.0f seconds, so bench gave up",
                give_up_ns(bench) / 1e9);
    print_figures(bench);
    code = cli_flush_output();
    return code == CLI_OK && (bench->samples_len == 0 || bench->gave_up) ? CLI_UNREACHABLE : code;
}

int measure_run(const struct measure *measure)
{
    struct bench bench = {.wanted = *measure};
    int code = make_workers(&bench);

    if (code == CLI_OK && !bench.wanted.blocking) {
        bench.loop = loop_new();
        code = bench.loop != NULL ? CLI_OK : CLI_INTERNAL;
    }
    if (code == CLI_OK)
        code = cli_open(bench.wanted.cli, bench.loop, &bench.rl);
    if (code == CLI_OK) {
        watch_signals();
        code = measure_all(&bench);
    }
    (void)redlock_close(bench.rl);
    if (bench.loop != NULL)
        ev_loop_destroy(bench.loop);
    free(bench.workers);
    free(bench.names);
    free(bench.resources);
    free(bench.acquire_ns);
    free(bench.unlock_ns);
    return code;
}
