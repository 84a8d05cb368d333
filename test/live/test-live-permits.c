/*
 * test-live-permits.c - semaphores, on real masters.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define PERMITS 3
#define THREADS 8
#define ROUNDS 20 /* Rounds of each thread. */

static struct cluster five;

static struct redlock_lock_options options(uint32_t permits, uint32_t wait_ms)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.permits = permits;
    opts.wait_ms = wait_ms;
    return opts;
}

static unsigned count_slot(unsigned permit, const char *token)
{
    char key[64];

    (void)snprintf(key, sizeof key, "redlock:permit:disk:%u", permit - 1);
    return cluster_count(&five, key, token);
}

static bool has_no_locks(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 5; i++)
        if (server_locks(&five.server[i]) != 0)
            return false;
    return true;
}

/* ---- One at a time ---- */

/* A client that does not wait finds the last free permit, wherever its search begins. */
TEST(as_many_as_there_are)
{
    struct redlock_lock_options opts = options(PERMITS, 0), plain = options(0, 0);
    struct redlock_lease *leases[PERMITS], *one;
    struct pilot pilot;
    unsigned seen = 0;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned i = 0; i < PERMITS; i++) {
        CHECK_INT(redlock_lock(pilot.rl, "disk", &opts, &leases[i]), REDLOCK_OK);
        CHECK_STR(info_resource(leases[i]), "disk");
        CHECK(info_permit(leases[i]) >= 1 && info_permit(leases[i]) <= PERMITS);
        CHECK(count_slot(info_permit(leases[i]), info_token(leases[i])) >= 3);
        seen |= 1u << info_permit(leases[i]);
    }
    CHECK_UINT(seen, 14);
    CHECK_INT(redlock_lock(pilot.rl, "disk", &opts, &one), REDLOCK_CONTENDED);
    CHECK_STR(redlock_errmsg(pilot.rl), "acquire disk: all 3 permits are taken");
    CHECK_INT(redlock_lock(pilot.rl, "disk", &plain, &one), REDLOCK_OK); /* A separate lock. */
    CHECK_UINT(info_permit(one), 0);
    CHECK_INT(redlock_unlock(one), REDLOCK_OK);
    for (unsigned i = 0; i < 20; i++) { /* In turn, each permit is the only free one. */
        unsigned place = i % PERMITS;
        uint32_t permit = info_permit(leases[place]);

        CHECK_INT(redlock_unlock(leases[place]), REDLOCK_OK);
        CHECK_INT(redlock_lock(pilot.rl, "disk", &opts, &leases[place]), REDLOCK_OK);
        CHECK_UINT(info_permit(leases[place]), permit);
    }
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_INT(redlock_unlock(leases[i]), REDLOCK_OK);
    CHECK(pilot_until(&pilot, has_no_locks, NULL));
    pilot_close(&pilot);
}

/* Without rivals, a client finds the last free permit in two rounds at most. */
TEST(the_last_is_found_in_the_second_round)
{
    struct redlock_lock_options opts = options(100, 0);
    struct redlock_lease *one;
    struct pilot pilot;
    uint64_t rounds;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned m = 0; m < 5; m++)
        for (unsigned slot = 0; slot < 100; slot++)
            if (slot != 41)
                (void)server_int(&five.server[m], "SET redlock:permit:disk:%u x", slot);
    for (unsigned i = 0; i < 10; i++) {
        rounds = pilot_stats(&pilot).rounds;
        CHECK_INT(redlock_lock(pilot.rl, "disk", &opts, &one), REDLOCK_OK);
        CHECK_UINT(info_permit(one), 42);
        CHECK(pilot_stats(&pilot).rounds - rounds <= 2);
        CHECK_INT(redlock_unlock(one), REDLOCK_OK);
    }
    pilot_close(&pilot);
}

TEST(a_permit_changes_hands_by_its_token)
{
    struct redlock_lock_options opts = options(PERMITS, 0), fewer = options(1, 0);
    struct redlock_lease *lease, *adopted;
    struct pilot pilot;
    char token[REDLOCK_TOKEN_MAX + 1];
    uint32_t permit = 1;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    while (permit == 1) {
        CHECK_INT(redlock_lock(pilot.rl, "disk", &opts, &lease), REDLOCK_OK);
        permit = info_permit(lease);
        (void)snprintf(token, sizeof token, "%s", info_token(lease));
        CHECK_INT(redlock_detach(lease), REDLOCK_OK);
        if (permit == 1) {
            CHECK_INT(redlock_adopt(pilot.rl, "disk", token, &opts, &adopted), REDLOCK_OK);
            CHECK_INT(redlock_unlock(adopted), REDLOCK_OK);
        }
    }
    CHECK_INT(redlock_adopt(pilot.rl, "disk", token, &fewer, &adopted), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "adopt: the token belongs to none of 1 permits");
    CHECK_INT(redlock_adopt(pilot.rl, "disk", token, &opts, &adopted), REDLOCK_OK);
    CHECK_UINT(info_permit(adopted), permit);
    CHECK_INT(redlock_extend(adopted, 30000), REDLOCK_OK);
    CHECK(count_slot(permit, token) >= 3);
    CHECK_INT(redlock_unlock(adopted), REDLOCK_OK);
    CHECK(pilot_until(&pilot, has_no_locks, NULL));
    pilot_close(&pilot);
}

/* The longest name and the last slot, on masters that lack the scripts. */
TEST(the_longest_name)
{
    struct redlock_lock_options opts = options(REDLOCK_PERMITS_MAX, 0);
    struct redlock_lease *lease;
    struct pilot pilot;
    char name[REDLOCK_NAME_MAX + 1];

    memset(name, 'n', REDLOCK_NAME_MAX);
    name[REDLOCK_NAME_MAX] = '\0';
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned m = 0; m < 5; m++)
        for (unsigned slot = 0; slot < REDLOCK_PERMITS_MAX - 1; slot++)
            (void)server_int(&five.server[m], "SET redlock:permit:%s:%u x", name, slot);
    for (unsigned step = 0; step < 3; step++) {
        for (unsigned m = 0; m < 5; m++)
            (void)server_text(&five.server[m], "SCRIPT FLUSH");
        if (step == 0)
            CHECK_INT(redlock_lock(pilot.rl, name, &opts, &lease), REDLOCK_OK);
        else if (step == 1)
            CHECK_INT(redlock_extend(lease, 0), REDLOCK_OK);
    }
    CHECK_UINT(info_permit(lease), REDLOCK_PERMITS_MAX);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* ---- Waiting ---- */

static bool is_marked(void)
{
    unsigned marked = 0;

    for (unsigned m = 0; m < 5; m++)
        marked += server_int(&five.server[m], "EXISTS redlock:wait:redlock:permit:disk") == 1;
    return marked >= 3;
}

static void *wait_for_one(void *arg)
{
    struct redlock *rl = arg;
    struct redlock_lock_options opts = options(PERMITS, UINT32_MAX);
    struct redlock_lease *lease;

    /* It polls, or begins a round, once an hour.  So it must be notified. */
    opts.retry_delay_min_ms = opts.retry_delay_max_ms = 3600000;
    CHECK_INT(redlock_lock(rl, "disk", &opts, &lease), REDLOCK_OK);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    return NULL;
}

/* The release of any permit wakes the waiter. */
TEST(who_waits_is_woken)
{
    struct redlock_lock_options opts = options(PERMITS, 0);
    struct redlock_lease *leases[PERMITS];
    struct pilot pilot;
    pthread_t thread;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_INT(redlock_lock(pilot.rl, "disk", &opts, &leases[i]), REDLOCK_OK);
    for (unsigned i = 0; i < PERMITS; i++) {
        double began_s = cluster_now_s();

        CHECK_INT(pthread_create(&thread, NULL, wait_for_one, pilot.rl), 0);
        while (!is_marked() && cluster_now_s() - began_s < CLUSTER_WAIT_S)
            cluster_nap();
        CHECK(is_marked());
        CHECK_INT(redlock_unlock(leases[i]), REDLOCK_OK);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK_INT(redlock_lock(pilot.rl, "disk", &opts, &leases[i]), REDLOCK_OK);
    }
    for (unsigned i = 0; i < PERMITS; i++)
        CHECK_INT(redlock_unlock(leases[i]), REDLOCK_OK);
    pilot_close(&pilot);
}

/* ---- Many at once ---- */

static atomic_uint inside, most, seats[PERMITS + 1], doubles;

static void *take_turns(void *arg)
{
    struct redlock *rl = arg;
    struct redlock_lock_options opts = options(PERMITS, UINT32_MAX);

    opts.retry_delay_min_ms = 5;
    opts.retry_delay_max_ms = 20;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct redlock_lease *lease;
        unsigned now, before;

        CHECK_INT(redlock_lock(rl, "disk", &opts, &lease), REDLOCK_OK);
        now = atomic_fetch_add(&inside, 1) + 1;
        before = atomic_load(&most);
        while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
            continue;
        if (atomic_fetch_add(&seats[info_permit(lease)], 1) != 0)
            (void)atomic_fetch_add(&doubles, 1);
        cluster_nap();
        (void)atomic_fetch_sub(&seats[info_permit(lease)], 1);
        (void)atomic_fetch_sub(&inside, 1);
        CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    }
    return NULL;
}

/* The threads use two clients, so that the masters enforce the limit. */
TEST(many_who_want_few)
{
    struct pilot pilots[2];
    pthread_t threads[THREADS];

    CHECK(pilot_open_five(&pilots[0], PILOT_BLOCKING, &five));
    pilot_open(&pilots[1], PILOT_BLOCKING, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&pilots[1], 5));
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, take_turns, pilots[i % 2].rl), 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK_UINT(atomic_load(&most), PERMITS); /* Not fewer: all permits can be held at once. */
    CHECK_UINT(atomic_load(&doubles), 0);
    pilot_close(&pilots[1]);
    pilot_close(&pilots[0]);
}

CHECK_MAIN({"as_many_as_there_are", as_many_as_there_are},
           {"the_last_is_found_in_the_second_round", the_last_is_found_in_the_second_round},
           {"a_permit_changes_hands_by_its_token", a_permit_changes_hands_by_its_token},
           {"the_longest_name", the_longest_name}, {"who_waits_is_woken", who_waits_is_woken},
           {"many_who_want_few", many_who_want_few})
