/*
 * test-live-renew.c - leases that are renewed, and leases that run out.  Each test runs both kinds
 * of client at once, to save time.
 */
#include "test/lib/check.h"

#include <stdatomic.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define TTL_MS 4000

static struct cluster five;

/* A lease of each kind of client, and the number of its lost notices. */
struct pair {
    struct pilot pilots[PILOT_KINDS];
    struct redlock_lease *leases[PILOT_KINDS];
    atomic_uint losses[PILOT_KINDS];
    uint64_t renewals_wanted;
    bool gap; /* One of the leases was not held at some time. */
};

static void on_lost(struct redlock_lease *lease, void *arg)
{
    (void)lease;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void lock_both(struct pair *pair, const struct redlock_lock_options *model)
{
    *pair = (struct pair){.gap = false};
    cluster_ready(&five, 5);
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lock_options opts = *model;

        opts.ttl_ms = TTL_MS;
        opts.lost = on_lost;
        opts.lost_arg = &pair->losses[kind];
        pilot_open(&pair->pilots[kind], kind, cluster_masters(&five), 3000);
        CHECK(pilot_until_up(&pair->pilots[kind], 5));
        CHECK_INT(
            pilot_lock(&pair->pilots[kind], pilot_kind_name(kind), &opts, &pair->leases[kind]),
            REDLOCK_OK);
    }
}

static bool are_renewed(void *arg)
{
    struct pair *pair = arg;
    bool renewed = true;

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        renewed &= pilot_stats(&pair->pilots[kind]).extended >= pair->renewals_wanted;
        pair->gap |= redlock_remaining_ms(pair->leases[kind]) == 0;
    }
    return renewed || pair->gap;
}

static void check_renewed(struct pair *pair, uint64_t renewals)
{
    pair->renewals_wanted = renewals;
    CHECK(pilot_until(&pair->pilots[PILOT_LOOP], are_renewed, pair));
    CHECK(!pair->gap);
}

/* A lease is renewed when a third of it is spent, so nine renewals take three times its length. */
TEST(kept_over_several_leases)
{
    struct redlock_lock_options opts;
    struct redlock_lease *rival;
    struct pair pair;

    redlock_lock_options_init(&opts);
    lock_both(&pair, &opts);
    check_renewed(&pair, 4);
    server_kill(&five.server[1]); /* Renewal must go on with two masters down. */
    server_pause(&five.server[3]);
    check_renewed(&pair, 9);
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        check_row = pilot_kind_name(kind);
        CHECK(cluster_count(&five, check_row, info_token(pair.leases[kind])) == 3);
        CHECK_INT(pilot_lock(&pair.pilots[!kind], check_row, NULL, &rival), REDLOCK_CONTENDED);
        CHECK_UINT(atomic_load(&pair.losses[kind]), 0);
        CHECK_INT(pilot_unlock(&pair.pilots[kind], pair.leases[kind]), REDLOCK_OK);
    }
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++)
        pilot_close(&pair.pilots[kind]);
}

static bool are_lost(void *arg)
{
    struct pair *pair = arg;

    return atomic_load(&pair->losses[PILOT_LOOP]) > 0 &&
           atomic_load(&pair->losses[PILOT_BLOCKING]) > 0;
}

static bool are_over(void *arg)
{
    struct pair *pair = arg;

    return redlock_remaining_ms(pair->leases[PILOT_LOOP]) == 0 &&
           redlock_remaining_ms(pair->leases[PILOT_BLOCKING]) == 0;
}

static void check_run_out(struct pair *pair, bool renewed)
{
    CHECK(pilot_until(&pair->pilots[PILOT_LOOP], are_lost, pair));
    CHECK(pilot_until(&pair->pilots[PILOT_LOOP], are_over, pair));
    cluster_nap(); /* 0 is rounded down: up to a millisecond may be left. */
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot *pilot = &pair->pilots[kind];

        check_row = pilot_kind_name(kind);
        CHECK_INT((pilot_stats(pilot).extended > 0), renewed);
        CHECK_INT(pilot_extend(pilot, pair->leases[kind], 0), REDLOCK_LOST);
        CHECK_INT(pilot_unlock(pilot, pair->leases[kind]), REDLOCK_LOST);
        CHECK_UINT(atomic_load(&pair->losses[kind]), 1);
        CHECK_UINT(pilot_stats(pilot).lost, 1);
        pilot_close(pilot);
    }
}

TEST(not_renewed_it_runs_out)
{
    struct redlock_lock_options opts;
    struct pair pair;

    redlock_lock_options_init(&opts);
    opts.no_renew = true;
    lock_both(&pair, &opts);
    check_run_out(&pair, false);
}

TEST(renewed_for_so_long_only)
{
    struct redlock_lock_options opts;
    struct pair pair;

    redlock_lock_options_init(&opts);
    opts.max_hold_ms = 3500; /* The first renewal comes after 1.3 s, the second after 2.7 s. */
    lock_both(&pair, &opts);
    check_run_out(&pair, true);
}

/* An adopted lease is renewed from its first extension on, and not before. */
TEST(adopted_and_renewed)
{
    struct redlock_lock_options opts;
    struct redlock_lease *adopted;
    struct pair pair;

    redlock_lock_options_init(&opts);
    lock_both(&pair, &opts);
    opts.ttl_ms = TTL_MS;
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot *pilot = &pair.pilots[kind];
        char token[REDLOCK_TOKEN_MAX + 1];

        (void)snprintf(token, sizeof token, "%s", info_token(pair.leases[kind]));
        CHECK_INT(redlock_detach(pair.leases[kind]), REDLOCK_OK);
        CHECK_INT(redlock_adopt(pilot->rl, pilot_kind_name(kind), token, &opts, &adopted),
                  REDLOCK_OK);
        CHECK_INT(pilot_extend(pilot, adopted, 0), REDLOCK_OK);
        pair.leases[kind] = adopted;
    }
    check_renewed(&pair, 4);
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        CHECK_INT(pilot_unlock(&pair.pilots[kind], pair.leases[kind]), REDLOCK_OK);
        pilot_close(&pair.pilots[kind]);
    }
}

CHECK_MAIN({"kept_over_several_leases", kept_over_several_leases},
           {"not_renewed_it_runs_out", not_renewed_it_runs_out},
           {"renewed_for_so_long_only", renewed_for_so_long_only},
           {"adopted_and_renewed", adopted_and_renewed})
