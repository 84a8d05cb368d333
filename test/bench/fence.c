/*
 * fence.c - how often a fencing token needs a second round trip.
 *
 *   fence [SECONDS]
 *
 * Starts five masters, and prints a line for each of these cases:
 *  - one client alone;
 *  - 16 clients that contend for one lock for so many seconds (10), with the library's pauses
 *    between two rounds, and with short ones;
 *  - one client again; while and after a master is stopped; and after one lost its data.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#define CONTENDERS 16
#define LOCKS 1000
#define SHORT_MS 1000 /* The longest lease; a master that lost its data votes again after that. */

static struct cluster five;
static double until_s;
static uint32_t pause_max_ms = 200;

struct sums {
    uint64_t fenced, raised, rounds;
};

static struct redlock *open_client(void)
{
    struct redlock_options opts;
    struct redlock *rl;

    redlock_options_init(&opts);
    opts.masters = cluster_masters(&five);
    opts.max_ttl_ms = SHORT_MS;
    opts.reply_timeout_ms = 500;
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        cluster_die("%s", redlock_errmsg(NULL));
    return rl;
}

static void lock_once(struct redlock *rl)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = SHORT_MS;
    opts.wait_ms = UINT32_MAX;
    opts.retry_delay_min_ms = pause_max_ms / 4;
    opts.retry_delay_max_ms = pause_max_ms;
    opts.fence = true;
    if (redlock_lock(rl, "hot", &opts, &lease) != REDLOCK_OK)
        cluster_die("%s", redlock_errmsg(rl));
    (void)redlock_unlock(lease);
}

static struct sums sums_of(struct redlock *rl)
{
    struct redlock_stats stats = {.size = sizeof stats};

    if (redlock_stats(rl, &stats) != REDLOCK_OK)
        cluster_die("no stats");
    return (struct sums){stats.fenced, stats.raised, stats.rounds};
}

static void tell(const char *when, const struct sums *before, const struct sums *after)
{
    uint64_t fenced = after->fenced - before->fenced, raised = after->raised - before->raised;

    printf("%-34s %8" PRIu64 " locks, %6" PRIu64 " with a second round trip: fast %.2f %%\n", when,
           fenced, raised, fenced > 0 ? 100 - 100.0 * (double)raised / (double)fenced : 0);
    (void)fflush(stdout);
}

static void run_alone(struct redlock *rl, const char *when, unsigned locks)
{
    struct sums before = sums_of(rl), after;

    for (unsigned i = 0; i < locks; i++)
        lock_once(rl);
    after = sums_of(rl);
    tell(when, &before, &after);
}

static void *contend(void *arg)
{
    struct redlock *rl = open_client();

    while (cluster_now_s() < until_s)
        lock_once(rl);
    *(struct sums *)arg = sums_of(rl);
    redlock_close(rl);
    return NULL;
}

static void run_contenders(const char *when, double seconds)
{
    struct sums sums[CONTENDERS], none = {0}, all = {0};
    pthread_t threads[CONTENDERS];

    until_s = cluster_now_s() + seconds;
    for (unsigned i = 0; i < CONTENDERS; i++)
        if (pthread_create(&threads[i], NULL, contend, &sums[i]) != 0)
            cluster_die("no thread");
    for (unsigned i = 0; i < CONTENDERS; i++) {
        (void)pthread_join(threads[i], NULL);
        all.fenced += sums[i].fenced;
        all.raised += sums[i].raised;
        all.rounds += sums[i].rounds;
    }
    tell(when, &none, &all);
    printf("%-34s %8.1f rounds a lock\n", "", (double)all.rounds / (double)all.fenced);
}

static void wait_until_up(struct redlock *rl, unsigned masters)
{
    struct redlock_stats stats = {.size = sizeof stats};

    for (double end_s = cluster_now_s() + CLUSTER_WAIT_S; cluster_now_s() < end_s; cluster_nap())
        if (redlock_stats(rl, &stats) == REDLOCK_OK && stats.masters_up == masters)
            return;
    cluster_die("not %u masters are up", masters);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    struct redlock *rl;

    cluster_ready(&five, 5);
    rl = open_client();
    lock_once(rl); /* Load the script on the masters. */
    run_alone(rl, "alone", LOCKS);
    run_contenders("16 contenders", seconds);
    pause_max_ms = 4;
    run_contenders("the same, pauses of 1 to 4 ms", seconds);
    run_alone(rl, "alone after that, the first", 10);
    run_alone(rl, "and the next", LOCKS);
    server_pause(&five.server[0]);
    run_alone(rl, "one master stopped", LOCKS);
    server_resume(&five.server[0]);
    wait_until_up(rl, 5);
    run_alone(rl, "after it went on, the first", 10);
    run_alone(rl, "and the next", LOCKS);
    (void)server_text(&five.server[0], "FLUSHALL");
    run_alone(rl, "one has lost its data", LOCKS);
    wait_until_up(rl, 5);
    run_alone(rl, "after it may vote again, the first", 10);
    run_alone(rl, "and the next", LOCKS);
    redlock_close(rl);
    return 0;
}
