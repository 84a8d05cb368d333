/*
 * test-live-order.c - three hundred waiters of two processes get a fair lock in the order of its
 * queue, also while masters fail and come back.
 */
#include "test/lib/check.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#define WAITERS 300
#define PROCESSES 2
#define NAME "line"

static struct cluster five;

/* The memory that all processes share. */
struct arena {
    atomic_uint may_join; /* Waiters with a lower number may join. */
    atomic_uint granted, inside, overlaps, failures;
    unsigned order[WAITERS];
};

struct one {
    struct arena *arena;
    unsigned number;
};

struct crowd {
    struct arena *arena;
    struct redlock_lock_options opts;
    unsigned process;
};

static void on_granted(struct redlock_lease *lease, int status, void *arg)
{
    const struct one *one = arg;
    struct arena *arena = one->arena;
    unsigned place = atomic_fetch_add(&arena->granted, 1);

    if (status != REDLOCK_OK) {
        atomic_fetch_add(&arena->failures, 1);
        return;
    }
    if (atomic_fetch_add(&arena->inside, 1) != 0)
        atomic_fetch_add(&arena->overlaps, 1);
    if (place < WAITERS)
        arena->order[place] = one->number;
    atomic_fetch_sub(&arena->inside, 1);
    (void)redlock_unlock_async(lease, NULL, NULL);
}

/* Start every second waiter as soon as it may join.  Each is a lease of one client. */
static int crowd_in(void *arg)
{
    struct crowd *crowd = arg;
    struct arena *arena = crowd->arena;
    static struct one all[WAITERS];
    unsigned next = crowd->process;
    double began_s = cluster_now_s();
    struct pilot pilot;

    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&five), 0);
    while (atomic_load(&arena->granted) < WAITERS || pilot_stats(&pilot).leases > 0) {
        if (cluster_now_s() > began_s + 4 * CLUSTER_WAIT_S)
            return 1;
        if (next < WAITERS && next < atomic_load(&arena->may_join)) {
            all[next] = (struct one){arena, next};
            if (redlock_lock_async(pilot.rl, NAME, &crowd->opts, on_granted, &all[next], NULL) !=
                REDLOCK_OK)
                return 2;
            next += PROCESSES;
        }
        pilot_turn(&pilot);
    }
    pilot_close(&pilot);
    return 0;
}

static struct arena *make_arena(void)
{
    struct arena *arena =
        mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (arena == MAP_FAILED)
        cluster_die("no memory");
    return arena;
}

static void check_order(const struct arena *arena)
{
    CHECK_UINT(atomic_load(&arena->failures), 0);
    CHECK_UINT(atomic_load(&arena->granted), WAITERS);
    CHECK_UINT(atomic_load(&arena->overlaps), 0);
    for (unsigned i = 0; i < WAITERS; i++)
        CHECK_UINT(arena->order[i], i);
}

/* Let waiters of the two processes join in turn, each when the one before is in the queue on so
 * many masters. */
static void join_all(struct arena *arena, unsigned upto, unsigned masters)
{
    for (unsigned i = atomic_load(&arena->may_join); i < upto; i++) {
        atomic_store(&arena->may_join, i + 1);
        CHECK(cluster_until_queued(&five, NAME, i + 1, masters));
    }
}

/* delay_ms: a quarter of the time between heartbeats.  disturb: called when half of the waiters
 * are in the queue. */
static void run_crowd(uint32_t delay_ms, void (*disturb)(struct arena *arena))
{
    struct redlock_lock_options opts;
    struct arena *arena = make_arena();
    struct crowd crowds[PROCESSES];
    struct redlock_lease *lease;
    pid_t pids[PROCESSES];
    struct pilot pilot;

    redlock_lock_options_init(&opts);
    opts.fair = true;
    opts.wait_ms = UINT32_MAX;
    opts.ttl_ms = 30000;
    opts.retry_delay_min_ms = delay_ms / 2;
    opts.retry_delay_max_ms = delay_ms;
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    CHECK_INT(redlock_lock(pilot.rl, NAME, &opts, &lease), REDLOCK_OK);
    for (unsigned p = 0; p < PROCESSES; p++) {
        crowds[p] = (struct crowd){arena, opts, p};
        pids[p] = cluster_spawn(crowd_in, &crowds[p]);
    }
    join_all(arena, WAITERS / 2, 5);
    disturb(arena);
    CHECK_UINT(atomic_load(&arena->granted), 0);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    for (unsigned p = 0; p < PROCESSES; p++)
        CHECK_INT(cluster_join(pids[p]), 0);
    check_order(arena);
    pilot_close(&pilot);
    (void)munmap(arena, sizeof *arena);
}

static void join_the_rest(struct arena *arena)
{
    join_all(arena, WAITERS, 5);
}

TEST(three_hundred_in_order)
{
    run_crowd(4000, join_the_rest);
}

/* One master is down while the second half joins, and comes back empty.  When it has learned the
 * whole queue, another master is killed, so that the first is needed. */
static void lose_a_master(struct arena *arena)
{
    server_kill(&five.server[1]);
    join_all(arena, WAITERS, 4);
    server_restart(&five.server[1]);
    server_season(&five.server[1]);
    CHECK(cluster_until_queued(&five, NAME, WAITERS, 5));
    server_kill(&five.server[3]);
}

TEST(three_hundred_in_order_while_masters_go)
{
    run_crowd(1500, lose_a_master);
}

CHECK_MAIN({"three_hundred_in_order", three_hundred_in_order},
           {"three_hundred_in_order_while_masters_go", three_hundred_in_order_while_masters_go})
