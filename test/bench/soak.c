/*
 * soak.c - uses locks of every kind for a long time, while scripts/soak watches it.
 *
 * usage: soak MASTERS SECONDS [memory|descriptors]
 *
 * All threads share one client: two threads for each kind of lock, which lock and unlock.  They
 * hold every 64th lock so long that it is renewed.  Another thread opens and closes clients.  With
 * a third argument the program leaks memory or descriptors with each lock.  A test then checks that
 * scripts/soak notices.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "redlock/redlock.h"

#define TTL_MS 1500
#define LEAK_SIZE 65536
#define NAP_NS 2000000L      /* A pause between two locks, to leave the machine usable. */
#define HOLD_NS 900000000L   /* Longer than half of a lease, so that it is renewed. */
#define CLOSED_NS 300000000L /* Chosen: the client that comes and goes is mostly closed. */

enum kind { PLAIN, FENCE, FAIR, SHARED, PERMITS, MANY, KINDS };

struct worker {
    struct redlock *rl;
    enum kind kind;
    pthread_t thread;
};

static const char *masters, *leak;
static atomic_bool stopped;
static atomic_ulong locks, refusals, clients;

static void nap(long ns)
{
    const struct timespec span = {.tv_nsec = ns};

    (void)nanosleep(&span, NULL);
}

static void lose(void)
{
    char *volatile lost; /* Otherwise the compiler may drop memory that is never read. */

    if (leak == NULL)
        return;
    if (strcmp(leak, "memory") == 0 && (lost = malloc(LEAK_SIZE)) != NULL)
        memset(lost, 1, LEAK_SIZE);
    else
        (void)!dup(STDIN_FILENO);
}

static struct redlock *open_client(void)
{
    struct redlock_options opts;
    struct redlock *rl;

    redlock_options_init(&opts);
    opts.masters = masters;
    if (redlock_open(&opts, &rl) != REDLOCK_OK) {
        (void)fprintf(stderr, "soak: %s\n", redlock_errmsg(NULL));
        exit(1);
    }
    return rl;
}

static int lock(struct redlock *rl, enum kind kind, struct redlock_lease **ret_lease)
{
    static const char *const names[KINDS] = {"soak/plain",  "soak/fence",   "soak/fair",
                                             "soak/shared", "soak/permits", "soak/many"};
    static const char *const many[] = {"soak/many/1", "soak/many/2"};
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.wait_ms = 2 * TTL_MS;
    opts.fence = kind == FENCE;
    opts.fair = kind == FAIR;
    opts.shared = kind == SHARED;
    opts.permits = kind == PERMITS ? 2 : 0;
    if (kind == MANY)
        return redlock_lock_many(rl, many, 2, &opts, ret_lease);
    return redlock_lock(rl, names[kind], &opts, ret_lease);
}

/* scripts/soak kills connections meanwhile, so locks may fail. */
static void *work(void *arg)
{
    const struct worker *worker = arg;

    for (unsigned turn = 0; !atomic_load(&stopped); turn++) {
        struct redlock_lease *lease;

        if (lock(worker->rl, worker->kind, &lease) != REDLOCK_OK) {
            atomic_fetch_add(&refusals, 1);
            nap(NAP_NS);
            continue;
        }
        atomic_fetch_add(&locks, 1);
        lose();
        nap(turn % 64 == 63 ? HOLD_NS : NAP_NS);
        (void)redlock_unlock(lease); /* A lock that cannot be released expires. */
    }
    return NULL;
}

static void *come_and_go(void *arg)
{
    (void)arg;
    while (!atomic_load(&stopped)) {
        struct redlock *rl = open_client();
        struct redlock_lease *lease;

        if (redlock_lock(rl, "soak/guest", NULL, &lease) == REDLOCK_OK)
            (void)redlock_unlock(lease);
        (void)redlock_close(rl);
        atomic_fetch_add(&clients, 1);
        nap(CLOSED_NS);
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    if (pthread_create(thread, NULL, run, arg) == 0)
        return;
    (void)fprintf(stderr, "soak: cannot start a thread\n");
    exit(1);
}

int main(int argc, char **argv)
{
    struct redlock_stats stats = {.size = sizeof stats};
    struct worker workers[2 * KINDS];
    pthread_t guest;
    struct redlock *rl;

    if (argc < 3)
        return 64;
    masters = argv[1];
    leak = argc > 3 ? argv[3] : NULL;
    rl = open_client();
    for (unsigned i = 0; i < 2 * KINDS; i++) {
        workers[i] = (struct worker){.rl = rl, .kind = (enum kind)(i % KINDS)};
        start(&workers[i].thread, work, &workers[i]);
    }
    start(&guest, come_and_go, NULL);
    (void)sleep((unsigned)atoi(argv[2]));
    atomic_store(&stopped, true);
    for (unsigned i = 0; i < 2 * KINDS; i++)
        (void)pthread_join(workers[i].thread, NULL);
    (void)pthread_join(guest, NULL);
    if (redlock_stats(rl, &stats) != REDLOCK_OK)
        return 1;
    (void)redlock_close(rl);
    (void)printf("%lu locks, %lu refused; %" PRIu64 " links came up; %lu clients came and went\n",
                 atomic_load(&locks), atomic_load(&refusals), stats.connects,
                 atomic_load(&clients));
    return atomic_load(&locks) > 0 ? 0 : 1;
}
