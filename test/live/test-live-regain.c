/*
 * test-live-regain.c - a lock that is held gets its votes back from masters that were away, or lost
 * its key.
 */
#include "test/lib/check.h"

#include <stdatomic.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define LONG_MS 60000
#define SHORT_MS 6000 /* Expiry is the matter. */

static struct cluster five;

/* ---- One lease of each kind ---- */

enum { PLAIN, FENCED, FAIR, SHARED, PERMIT, MANY, KINDS_LEN };

static const char *const names[] = {"plain", "fenced", "fair", "shared", "permit"};
static const char *const many[] = {"one", "two"};

/* How many votes each master has given. */
struct votes {
    struct redlock *rl;
    uint64_t yes[5];
};

static uint64_t votes_of(struct redlock *rl, unsigned m)
{
    struct redlock_master_stats stats = {.size = sizeof stats};

    CHECK_INT(redlock_master_stats(rl, m + 1, &stats), REDLOCK_OK);
    return stats.yes;
}

static struct votes count_votes(struct redlock *rl)
{
    struct votes votes = {.rl = rl};

    for (unsigned m = 0; m < 5; m++)
        votes.yes[m] = votes_of(rl, m);
    return votes;
}

static bool all_have_voted(void *arg)
{
    const struct votes *before = arg;

    for (unsigned m = 0; m < 5; m++)
        if (votes_of(before->rl, m) == before->yes[m])
            return false;
    return true;
}

/* A master whose link breaks before it has answered the request for a lock never gets that lock's
 * token again (rule 14 of quorum.c).  So this waits for the answers of all. */
static void lock_all(struct pilot *pilot, struct redlock_lease *leases[KINDS_LEN])
{
    struct redlock_lock_options opts;
    struct votes votes;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = LONG_MS;
    opts.wait_ms = CLUSTER_WAIT_S * 1000;
    opts.no_renew = true;
    for (unsigned i = 0; i < MANY; i++) {
        struct redlock_lock_options these = opts;

        these.fence = i == FENCED;
        these.fair = i == FAIR;
        these.shared = i == SHARED;
        these.permits = i == PERMIT ? 3 : 0;
        votes = count_votes(pilot->rl);
        CHECK_INT(pilot_lock(pilot, names[i], &these, &leases[i]), REDLOCK_OK);
        CHECK(pilot_until(pilot, all_have_voted, &votes));
    }
    votes = count_votes(pilot->rl);
    CHECK_INT(redlock_lock_many(pilot->rl, many, 2, &opts, &leases[MANY]), REDLOCK_OK);
    CHECK(pilot_until(pilot, all_have_voted, &votes));
}

/* How many of the seven keys this master stores. */
static long long keys_of(unsigned m, struct redlock_lease *const leases[KINDS_LEN])
{
    return server_int(&five.server[m],
                      "EXISTS plain fenced fair shared one two redlock:permit:permit:%u",
                      info_permit(leases[PERMIT]) - 1);
}

/* Extend all until this master stores all of their keys. */
static bool regains(struct pilot *pilot, struct redlock_lease *leases[KINDS_LEN], unsigned m)
{
    double until = cluster_now_s() + CLUSTER_WAIT_S;

    while (keys_of(m, leases) < 7 && cluster_now_s() < until) {
        for (unsigned i = 0; i < KINDS_LEN; i++)
            if (pilot_extend(pilot, leases[i], 0) != REDLOCK_OK)
                return false;
        cluster_nap();
    }
    return keys_of(m, leases) == 7;
}

/* The masters lose the keys one after the other.  Without the votes that came back, the locks
 * would be lost with the third. */
TEST(each_kind_survives_the_loss_of_its_keys_on_all_masters_in_turn)
{
    struct redlock_lease *leases[KINDS_LEN];
    struct pilot pilot;
    uint64_t fence;

    cluster_ready_durable(&five, 5);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&pilot, 5));
    lock_all(&pilot, leases);
    fence = info_fence(leases[FENCED]);
    for (unsigned m = 0; m < 5; m++) {
        server_kill(&five.server[m]);
        server_restart(&five.server[m]);
        server_forget_locks(&five.server[m]); /* As if they had expired. */
        CHECK(regains(&pilot, leases, m));
    }
    CHECK_UINT(info_fence(leases[FENCED]), fence);
    for (unsigned i = 0; i < KINDS_LEN; i++)
        CHECK_INT(pilot_unlock(&pilot, leases[i]), REDLOCK_OK);
    CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
    pilot_close(&pilot);
}

/* ---- A rolling restart ---- */

struct hold {
    struct pilot *pilot;
    struct redlock_lease *lease;
    uint64_t renewals;
};

static bool is_renewed(void *arg)
{
    const struct hold *hold = arg;

    return pilot_stats(hold->pilot).extended >= hold->renewals ||
           redlock_remaining_ms(hold->lease) == 0;
}

static bool is_everywhere(void *arg)
{
    const struct hold *hold = arg;

    return cluster_count(&five, "x", info_token(hold->lease)) == 5 ||
           redlock_remaining_ms(hold->lease) == 0;
}

/* Each master is away until its key has ended. */
TEST(a_renewed_lock_survives_the_restart_of_all_masters_in_turn)
{
    struct redlock_lease *rival;
    struct pilot_loss loss = {0};
    struct redlock_lock_options opts;
    struct pilot pilot;
    struct hold hold = {.pilot = &pilot};

    cluster_ready_durable(&five, 5);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&pilot, 5));
    redlock_lock_options_init(&opts);
    opts.ttl_ms = SHORT_MS;
    opts.lost = pilot_on_lost;
    opts.lost_arg = &loss;
    CHECK_INT(pilot_lock(&pilot, "x", &opts, &hold.lease), REDLOCK_OK);
    for (unsigned m = 0; m < 3; m++) {
        CHECK(pilot_until(&pilot, is_everywhere, &hold));
        server_kill(&five.server[m]);
        hold.renewals = pilot_stats(&pilot).extended + 5; /* One third of the lease each. */
        CHECK(pilot_until(&pilot, is_renewed, &hold));
        server_restart(&five.server[m]);
        CHECK(server_get(&five.server[m], "x") == NULL);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &rival), REDLOCK_CONTENDED);
    }
    CHECK(pilot_until(&pilot, is_everywhere, &hold));
    CHECK_UINT(atomic_load(&loss.runs), 0);
    CHECK(redlock_remaining_ms(hold.lease) > 0);
    CHECK_INT(pilot_unlock(&pilot, hold.lease), REDLOCK_OK);
    CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
    pilot_close(&pilot);
}

CHECK_MAIN({"each_kind_survives_the_loss_of_its_keys_on_all_masters_in_turn",
            each_kind_survives_the_loss_of_its_keys_on_all_masters_in_turn},
           {"a_renewed_lock_survives_the_restart_of_all_masters_in_turn",
            a_renewed_lock_survives_the_restart_of_all_masters_in_turn})
