/*
 * test-live-readers.c - shared locks on real masters: readers hold a lock together, a writer
 * holds it alone.  test-live-writers.c tests how they wait.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define NAME "jobs/read"
#define TTL_MS 50000 /* Chosen: no lock runs out, except in tests of expiry. */

static struct cluster five;

static struct redlock_lock_options options(bool shared, uint32_t wait_ms)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.shared = shared;
    opts.wait_ms = wait_ms;
    return opts;
}

static struct redlock_lease *lock(struct pilot *pilot, bool shared)
{
    struct redlock_lock_options opts = options(shared, 0);
    struct redlock_lease *lease = NULL;

    CHECK_INT(redlock_lock(pilot->rl, NAME, &opts, &lease), REDLOCK_OK);
    return lease;
}

static void expect_taken(struct pilot *pilot, bool shared)
{
    struct redlock_lock_options opts = options(shared, 0);
    struct redlock_lease *lease;

    CHECK_INT(redlock_lock(pilot->rl, NAME, &opts, &lease), REDLOCK_CONTENDED);
}

/* Wait until this master stores so many readers. */
static bool has_readers(unsigned m, int readers)
{
    double began_s = cluster_now_s();

    while (server_int(&five.server[m], "ZCARD " NAME) != readers) {
        if (cluster_now_s() > began_s + CLUSTER_WAIT_S)
            return false;
        cluster_nap();
    }
    return true;
}

static void check_readers(int readers)
{
    for (unsigned m = 0; m < 5; m++)
        CHECK(has_readers(m, readers));
}

/* On a majority the key lasts so long. */
static void check_lasts(long long min_ms, long long max_ms)
{
    unsigned so_long = 0;

    for (unsigned m = 0; m < 5; m++) {
        long long left_ms = server_pttl(&five.server[m], NAME);

        so_long += left_ms > min_ms && left_ms <= max_ms;
    }
    CHECK(so_long >= 3);
}

/* How much time this reader has left, by the master's clock.  Below 0: none.  At 0 it may still be
 * extended. */
static long long left_ms(unsigned m, const char *token)
{
    return server_int(&five.server[m], "EVAL %s 1 " NAME " %s",
                      "local ends=redis.call('zscore',KEYS[1],ARGV[1]) "
                      "if not ends then return -1 end "
                      "local last=redis.call('zrange',KEYS[1],-1,-1,'withscores')[2] "
                      "return ends-last+redis.call('pttl',KEYS[1])",
                      token);
}

/* ---- Together, or alone ---- */

TEST(readers_share_it)
{
    struct redlock_lease *readers[3], *writer;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned i = 0; i < 3; i++)
        readers[i] = lock(&pilot, true);
    check_readers(3);
    for (unsigned i = 0; i < 3; i++)
        CHECK(redlock_remaining_ms(readers[i]) > 0);
    expect_taken(&pilot, false);
    CHECK_STR(redlock_errmsg(pilot.rl),
              "acquire " NAME ": another client holds it, or another lease of this one");
    for (unsigned i = 0; i < 3; i++)
        CHECK_INT(redlock_unlock(readers[i]), REDLOCK_OK);
    writer = lock(&pilot, false);
    expect_taken(&pilot, true);
    CHECK_HAS(redlock_errmsg(pilot.rl), ": it writes, or waits until it may write");
    CHECK_INT(redlock_unlock(writer), REDLOCK_OK);
    pilot_close(&pilot);
}

TEST(a_release_leaves_the_others)
{
    struct redlock_lock_options brief = options(true, 0);
    struct redlock_lease *one, *other;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    one = lock(&pilot, true);
    brief.ttl_ms = 10000;
    CHECK_INT(redlock_lock(pilot.rl, NAME, &brief, &other), REDLOCK_OK);
    check_readers(2);
    check_lasts(20000, TTL_MS);
    CHECK_INT(redlock_unlock(one), REDLOCK_OK);
    check_readers(1);
    check_lasts(0, 10000); /* The key lasts as long as the reader that is left. */
    expect_taken(&pilot, false);
    CHECK_INT(redlock_extend(other, 0), REDLOCK_OK);
    CHECK_INT(redlock_unlock(other), REDLOCK_OK);
    check_readers(0);
    CHECK_UINT(cluster_count(&five, NAME, NULL), 0);
    pilot_close(&pilot);
}

/* An extension is for one reader, and never shortens.  The key lasts as long as the longest
 * reader. */
TEST(an_extension_is_of_one)
{
    struct redlock_lock_options brief = options(true, 0);
    struct redlock_lease *one, *other;
    struct pilot pilot;
    unsigned longer = 0;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    brief.ttl_ms = 5000;
    brief.no_renew = true;
    CHECK_INT(redlock_lock(pilot.rl, NAME, &brief, &one), REDLOCK_OK);
    CHECK_INT(redlock_lock(pilot.rl, NAME, &brief, &other), REDLOCK_OK);
    CHECK_INT(redlock_extend(one, TTL_MS), REDLOCK_OK);
    CHECK_INT(redlock_extend(one, 1000), REDLOCK_OK);
    CHECK(redlock_remaining_ms(one) > 20000);
    CHECK(redlock_remaining_ms(other) <= 5000);
    check_lasts(20000, TTL_MS + 1);
    for (unsigned m = 0; m < 5; m++)
        longer += left_ms(m, info_token(one)) > 20000;
    CHECK(longer >= 3);
    CHECK_INT(redlock_unlock(other), REDLOCK_OK);
    CHECK_INT(redlock_unlock(one), REDLOCK_OK);
    pilot_close(&pilot);
}

/* A reader whose time is up has lost the lock, although other readers keep the key. */
TEST(his_time_is_up)
{
    struct redlock_lock_options brief = options(true, 0);
    struct redlock_lease *one, *other, *adopted;
    char token[REDLOCK_TOKEN_MAX + 1];
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    other = lock(&pilot, true);
    brief.ttl_ms = 2000; /* Chosen: longer than it takes to lock on a busy machine. */
    brief.no_renew = true;
    CHECK_INT(redlock_lock(pilot.rl, NAME, &brief, &one), REDLOCK_OK);
    (void)snprintf(token, sizeof token, "%s", info_token(one));
    CHECK_INT(redlock_detach(one), REDLOCK_OK);
    for (unsigned m = 0; m < 5; m++)
        while (left_ms(m, token) >= 0)
            cluster_nap();
    CHECK_INT(redlock_adopt(pilot.rl, NAME, token, &brief, &adopted), REDLOCK_OK);
    CHECK_INT(redlock_extend(adopted, 0), REDLOCK_LOST);
    (void)redlock_unlock(adopted);
    CHECK_INT(redlock_unlock(other), REDLOCK_OK);
    check_readers(0);
    CHECK_INT(redlock_unlock(lock(&pilot, false)), REDLOCK_OK);
    pilot_close(&pilot);
}

/* A token is good only for the kind of lock that it was granted for. */
TEST(a_reader_changes_hands)
{
    struct redlock_lock_options alone = options(false, 0), shared = options(true, 0);
    struct redlock_lease *reader, *adopted;
    char token[REDLOCK_TOKEN_MAX + 1];
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    reader = lock(&pilot, true);
    (void)snprintf(token, sizeof token, "%s", info_token(reader));
    CHECK_INT(redlock_detach(reader), REDLOCK_OK);
    CHECK_INT(redlock_adopt(pilot.rl, NAME, token, &alone, &adopted), REDLOCK_OK);
    CHECK_INT(redlock_extend(adopted, 0), REDLOCK_LOST);
    CHECK_INT(redlock_detach(adopted), REDLOCK_OK);
    CHECK_INT(redlock_adopt(pilot.rl, NAME, token, &shared, &adopted), REDLOCK_OK);
    CHECK_INT(redlock_extend(adopted, 0), REDLOCK_OK);
    CHECK_INT(redlock_unlock(adopted), REDLOCK_OK);

    reader = lock(&pilot, false);
    (void)snprintf(token, sizeof token, "%s", info_token(reader));
    CHECK_INT(redlock_detach(reader), REDLOCK_OK);
    CHECK_INT(redlock_adopt(pilot.rl, NAME, token, &shared, &adopted), REDLOCK_OK);
    CHECK_INT(redlock_extend(adopted, 0), REDLOCK_LOST);
    CHECK_INT(redlock_unlock(adopted), REDLOCK_LOST);
    CHECK(cluster_count(&five, NAME, token) >= 3);
    pilot_close(&pilot);
}

/* A key that no client of the library stored counts as taken, and stays as it is. */
TEST(keys_of_others_are_left_alone)
{
    static const char *const plants[] = {"RPUSH " NAME " x", "ZADD " NAME " 1 x", "SET " NAME " x"};
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned i = 0; i < sizeof plants / sizeof *plants; i++) {
        check_row = plants[i];
        for (unsigned m = 0; m < 5; m++)
            (void)server_int(&five.server[m], plants[i]);
        expect_taken(&pilot, true);
        for (unsigned m = 0; m < 5; m++)
            CHECK_INT((int)server_int(&five.server[m], "DEL " NAME), 1);
    }
    check_row = NULL;
    pilot_close(&pilot);
}

TEST(several_are_alone_with_each)
{
    static const char *const names[] = {"jobs/other", NAME};
    struct redlock_lock_options opts = options(false, 0);
    struct redlock_lease *reader, *many;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    reader = lock(&pilot, true);
    CHECK_INT(redlock_lock_many(pilot.rl, names, 2, &opts, &many), REDLOCK_CONTENDED);
    CHECK_INT(redlock_unlock(reader), REDLOCK_OK);
    CHECK_INT(redlock_lock_many(pilot.rl, names, 2, &opts, &many), REDLOCK_OK);
    expect_taken(&pilot, true);
    CHECK_INT(redlock_unlock(many), REDLOCK_OK);
    pilot_close(&pilot);
}

static void forget_scripts(void)
{
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "SCRIPT FLUSH");
}

TEST(masters_without_the_scripts)
{
    struct redlock_lease *reader;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    forget_scripts();
    reader = lock(&pilot, true);
    forget_scripts();
    CHECK_INT(redlock_extend(reader, 0), REDLOCK_OK);
    forget_scripts();
    CHECK_INT(redlock_unlock(reader), REDLOCK_OK);
    pilot_close(&pilot);
}

/* ---- All at once ---- */

#define THREADS 8
#define ROUNDS 40 /* Rounds of each thread. */

static unsigned counter; /* Writers raise it, not atomically. */
static atomic_int readers_inside, writers_inside;
static atomic_uint overlaps, together, writes;

struct worker {
    pthread_t thread;
    struct redlock *rl;
    unsigned number;
    int status;
};

static void read_it(void)
{
    unsigned before = __atomic_load_n(&counter, __ATOMIC_RELAXED);

    if (atomic_fetch_add(&readers_inside, 1) > 0)
        atomic_fetch_add(&together, 1);
    cluster_nap();
    if (atomic_load(&writers_inside) != 0 || __atomic_load_n(&counter, __ATOMIC_RELAXED) != before)
        atomic_fetch_add(&overlaps, 1);
    atomic_fetch_sub(&readers_inside, 1);
}

static void write_it(void)
{
    unsigned before = __atomic_load_n(&counter, __ATOMIC_RELAXED);

    if (atomic_fetch_add(&writers_inside, 1) > 0 || atomic_load(&readers_inside) > 0)
        atomic_fetch_add(&overlaps, 1);
    cluster_nap();
    __atomic_store_n(&counter, before + 1, __ATOMIC_RELAXED);
    atomic_fetch_add(&writes, 1);
    atomic_fetch_sub(&writers_inside, 1);
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (unsigned round = 0; round < ROUNDS && worker->status == REDLOCK_OK; round++) {
        bool shared = (worker->number + round) % 4 != 0;
        struct redlock_lock_options opts = options(shared, UINT32_MAX);
        struct redlock_lease *lease;

        worker->status = redlock_lock(worker->rl, NAME, &opts, &lease);
        if (worker->status != REDLOCK_OK)
            break;
        if (shared)
            read_it();
        else
            write_it();
        worker->status = redlock_unlock(lease);
    }
    return NULL;
}

/* Half of the threads use another client, as if on another host. */
static void contend(unsigned masters_down)
{
    struct worker workers[THREADS];
    struct pilot pilots[2];

    counter = 0;
    atomic_store(&overlaps, 0);
    atomic_store(&together, 0);
    atomic_store(&writes, 0);
    CHECK(pilot_open_five(&pilots[0], PILOT_BLOCKING, &five));
    pilot_open(&pilots[1], PILOT_BLOCKING, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&pilots[1], 5));
    if (masters_down > 0)
        server_kill(&five.server[2]);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] = (struct worker){.rl = pilots[t % 2].rl, .number = t};
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0)
            cluster_die("no thread");
    }
    for (unsigned t = 0; t < THREADS; t++)
        (void)pthread_join(workers[t].thread, NULL);
    for (unsigned t = 0; t < THREADS; t++)
        CHECK_INT(workers[t].status, REDLOCK_OK);
    CHECK_UINT(atomic_load(&overlaps), 0);
    CHECK_UINT(counter, atomic_load(&writes));
    CHECK_UINT(counter, THREADS * ROUNDS / 4);
    CHECK(atomic_load(&together) > 0);
    pilot_close(&pilots[0]);
    pilot_close(&pilots[1]);
}

TEST(eight_threads_read_and_write)
{
    contend(0);
}

TEST(eight_threads_with_one_master_down)
{
    contend(1);
}

CHECK_MAIN({"readers_share_it", readers_share_it},
           {"a_release_leaves_the_others", a_release_leaves_the_others},
           {"an_extension_is_of_one", an_extension_is_of_one}, {"his_time_is_up", his_time_is_up},
           {"a_reader_changes_hands", a_reader_changes_hands},
           {"keys_of_others_are_left_alone", keys_of_others_are_left_alone},
           {"several_are_alone_with_each", several_are_alone_with_each},
           {"masters_without_the_scripts", masters_without_the_scripts},
           {"eight_threads_read_and_write", eight_threads_read_and_write},
           {"eight_threads_with_one_master_down", eight_threads_with_one_master_down})
