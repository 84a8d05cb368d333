/*
 * test-live-threads.c - many threads on one blocking client.  Only servers are forked, so that
 * ThreadSanitizer can follow.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "live/cluster.h"
#include "live/contend.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define THREADS 16

static struct cluster five;

static struct pilot nobody = {.kind = PILOT_BLOCKING}; /* Waits without a client. */

/* A thread and its arguments. */
struct worker {
    pthread_t thread;
    unsigned number;
    struct redlock *rl;
    const char *masters;
    atomic_uint *losses;
    atomic_bool *stop;
    atomic_uint failures;
};

static void start(struct worker *workers, unsigned len, void *(*run)(void *arg),
                  const struct worker *model)
{
    for (unsigned i = 0; i < len; i++) {
        workers[i].number = i;
        workers[i].rl = model->rl;
        workers[i].masters = model->masters;
        workers[i].losses = model->losses;
        workers[i].stop = model->stop;
        atomic_init(&workers[i].failures, 0);
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0)
            cluster_die("no thread");
    }
}

/* Wait for all threads.  Returns the sum of their failures. */
static unsigned join(struct worker *workers, unsigned len)
{
    unsigned failures = 0;

    for (unsigned i = 0; i < len; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        failures += atomic_load(&workers[i].failures);
    }
    return failures;
}

static bool is_reached(void *arg)
{
    atomic_uint *level = arg;

    return atomic_load(level) >= THREADS;
}

/* ---- Contention ---- */

TEST(sixteen_threads_contend)
{
    struct contend_plan plan = {.threads = THREADS, .rounds = 8};
    struct contend_report report;

    cluster_ready(&five, 5);
    plan.masters = cluster_masters(&five);
    contend(&plan, &report);
    CHECK_STR(report.failure, "");
    CHECK_UINT(report.overlaps, 0);
    CHECK_UINT(report.counter, report.holds_wanted);
    CHECK_UINT(report.log_bad, 0);
}

/* ---- All calls at once ---- */

static void count_loss(struct redlock_lease *lease, void *arg)
{
    if (redlock_remaining_ms(lease) <= 60000) /* Always.  It may be called here. */
        atomic_fetch_add((atomic_uint *)arg, 1);
}

static void *use_everything(void *arg)
{
    struct worker *worker = arg;
    struct redlock_stats stats = {.size = sizeof stats};
    char name[32], token[64];
    struct redlock_lease *lease, *adopted;

    (void)snprintf(name, sizeof name, "worker %u", worker->number);
    for (unsigned i = 0; i < 20; i++) {
        bool bad = redlock_lock(worker->rl, name, NULL, &lease) != REDLOCK_OK;

        if (bad) {
            atomic_fetch_add(&worker->failures, 1);
            break;
        }
        (void)snprintf(token, sizeof token, "%s", info_token(lease));
        bad |= redlock_remaining_ms(lease) == 0;
        bad |= redlock_extend(lease, 20000) != REDLOCK_OK;
        bad |= redlock_detach(lease) != REDLOCK_OK;
        bad |= redlock_adopt(worker->rl, name, token, NULL, &adopted) != REDLOCK_OK;
        bad |= redlock_extend(adopted, 0) != REDLOCK_OK;
        bad |= redlock_stats(worker->rl, &stats) != REDLOCK_OK;
        bad |= redlock_unlock(adopted) != REDLOCK_OK;
        bad |= redlock_errmsg(worker->rl)[0] != 0;
        atomic_fetch_add(&worker->failures, bad);
    }
    return NULL;
}

TEST(all_calls_at_once)
{
    struct worker workers[THREADS], model = {.number = 0};
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    model.rl = pilot.rl;
    start(workers, THREADS, use_everything, &model);
    CHECK_UINT(join(workers, THREADS), 0);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK_UINT(pilot_stats(&pilot).acquired, THREADS * 20);
    CHECK_UINT(pilot_stats(&pilot).connects, 5);
    pilot_close(&pilot);
}

/* ---- Lost ---- */

static void *hold_until_lost(void *arg)
{
    struct worker *worker = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    char name[32];

    (void)snprintf(name, sizeof name, "worker %u", worker->number);
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 6000;
    opts.lost_margin_ms = 2000;
    opts.lost = count_loss;
    opts.lost_arg = worker->losses;
    if (redlock_lock(worker->rl, name, &opts, &lease) != REDLOCK_OK) {
        atomic_fetch_add(&worker->failures, 1);
        return NULL;
    }
    while (!atomic_load(worker->stop)) {
        /* Any thread may call this at any time. */
        atomic_fetch_add(&worker->failures, redlock_remaining_ms(lease) > opts.ttl_ms);
        cluster_nap();
    }
    if (redlock_unlock(lease) == REDLOCK_OK)
        atomic_fetch_add(&worker->failures, 1);
    return NULL;
}

static bool has_acquired_all(void *arg)
{
    return pilot_stats(arg).acquired >= THREADS;
}

TEST(lost_is_called_while_threads_look)
{
    struct worker workers[THREADS];
    atomic_uint losses = 0;
    atomic_bool stop = false;
    struct worker model = {.losses = &losses, .stop = &stop};
    struct pilot pilot;

    cluster_ready(&five, 5);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 3000);
    CHECK(pilot_until_up(&pilot, 5));
    model.rl = pilot.rl;
    start(workers, THREADS, hold_until_lost, &model);
    CHECK(pilot_until(&pilot, has_acquired_all, &pilot));
    for (unsigned i = 0; i < 3; i++)
        server_kill(&five.server[i]);
    CHECK(pilot_until(&pilot, is_reached, &losses));
    atomic_store(&stop, true);
    CHECK_UINT(join(workers, THREADS), 0);
    CHECK_UINT(atomic_load(&losses), THREADS);
    pilot_close(&pilot);
}

/* ---- Close ---- */

static void *wait_for_ever(void *arg)
{
    struct worker *worker = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.wait_ms = UINT32_MAX;
    opts.retry_delay_min_ms = 1;
    opts.retry_delay_max_ms = 5;
    if (redlock_lock(worker->rl, "held", &opts, &lease) != REDLOCK_E_STATE)
        atomic_fetch_add(&worker->failures, 1);
    return NULL;
}

static bool has_all_leases(void *arg)
{
    return pilot_stats(arg).leases >= THREADS;
}

TEST(close_while_threads_wait)
{
    struct worker workers[THREADS], model = {.number = 0};
    struct redlock_lease *held;
    struct pilot holder, pilot;

    CHECK(pilot_open_five(&holder, PILOT_BLOCKING, &five));
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 0);
    CHECK_INT(pilot_lock(&holder, "held", NULL, &held), REDLOCK_OK);
    model.rl = pilot.rl;
    start(workers, THREADS, wait_for_ever, &model);
    CHECK(pilot_until(&pilot, has_all_leases, &pilot));
    pilot_close(&pilot);
    CHECK_UINT(join(workers, THREADS), 0);
    CHECK_INT(pilot_unlock(&holder, held), REDLOCK_OK);
    pilot_close(&holder);
}

/* ---- Many clients ---- */

static void *open_lock_close(void *arg)
{
    struct worker *worker = arg;
    char name[32];

    (void)snprintf(name, sizeof name, "worker %u", worker->number);
    for (unsigned i = 0; i < 10; i++) {
        struct redlock_options opts;
        struct redlock_lease *lease;
        struct redlock *rl;

        redlock_options_init(&opts);
        opts.masters = worker->masters;
        opts.reply_timeout_ms = opts.connect_timeout_ms = PILOT_REPLY_TIMEOUT_MS;
        if (redlock_open(&opts, &rl) != REDLOCK_OK ||
            redlock_lock(rl, name, NULL, &lease) != REDLOCK_OK) {
            atomic_fetch_add(&worker->failures, 1);
            return NULL;
        }
        if (i % 2 == 0 && redlock_unlock(lease) != REDLOCK_OK)
            atomic_fetch_add(&worker->failures, 1);
        (void)redlock_close(rl); /* Every second time the lock is still held. */
    }
    return NULL;
}

TEST(clients_come_and_go)
{
    struct worker workers[8], model = {.number = 0};

    cluster_ready(&five, 5);
    model.masters = cluster_masters(&five);
    start(workers, 8, open_lock_close, &model);
    CHECK_UINT(join(workers, 8), 0);
    CHECK(pilot_until(&nobody, cluster_has_no_locks, &five));
}

/* ---- Masters that break ---- */

static void *lock_until_stopped(void *arg)
{
    struct worker *worker = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    char name[32];

    redlock_lock_options_init(&opts);
    opts.wait_ms = CLUSTER_WAIT_S * 1000;
    (void)snprintf(name, sizeof name, "worker %u", worker->number);
    while (!atomic_load(worker->stop)) {
        if (redlock_lock(worker->rl, name, &opts, &lease) != REDLOCK_OK) {
            atomic_fetch_add(&worker->failures, 1);
            return NULL;
        }
        (void)redlock_unlock(lease); /* Links break, so too few masters may confirm it. */
    }
    return NULL;
}

TEST(links_break_while_threads_lock)
{
    struct worker workers[8];
    atomic_bool stop = false;
    struct worker model = {.stop = &stop};
    struct pilot pilot;
    bool ok = true;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    model.rl = pilot.rl;
    start(workers, 8, lock_until_stopped, &model);
    for (unsigned i = 0; i < 40 && ok; i++) {
        uint64_t wanted = pilot_stats(&pilot).connects + 1;

        (void)server_int(&five.server[i % 5], "CLIENT KILL TYPE normal");
        ok = pilot_until_connects(&pilot, wanted);
    }
    atomic_store(&stop, true);
    CHECK_UINT(join(workers, 8), 0);
    CHECK(ok);
    CHECK_UINT(pilot_stats(&pilot).connects, 45);
    pilot_close(&pilot);
}

CHECK_MAIN({"sixteen_threads_contend", sixteen_threads_contend},
           {"all_calls_at_once", all_calls_at_once},
           {"lost_is_called_while_threads_look", lost_is_called_while_threads_look},
           {"close_while_threads_wait", close_while_threads_wait},
           {"clients_come_and_go", clients_come_and_go},
           {"links_break_while_threads_lock", links_break_while_threads_lock})
