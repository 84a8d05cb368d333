/*
 * test-live-sizes.c - clusters of 1 to 15 masters: how many may be down, and split votes.
 */
#include "test/lib/check.h"

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

static struct cluster cluster;

static const unsigned sizes[] = {1, 2, 3, 4, 5, 15};

#define SIZES_LEN (sizeof sizes / sizeof *sizes)

static unsigned majority(unsigned size)
{
    return size / 2 + 1;
}

static void open_all(struct pilot *pilot, enum pilot_kind kind, unsigned size)
{
    static char row[32];

    (void)snprintf(row, sizeof row, "%u, %s", size, pilot_kind_name(kind));
    check_row = row;
    cluster_ready(&cluster, size);
    pilot_open(pilot, kind, cluster_masters(&cluster), 0);
    CHECK(pilot_until_up(pilot, size));
}

static void with_all(void (*try)(struct pilot *pilot, unsigned size))
{
    for (size_t i = 0; i < SIZES_LEN; i++) {
        for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
            struct pilot pilot;

            open_all(&pilot, kind, sizes[i]);
            try(&pilot, sizes[i]);
            pilot_close(&pilot);
        }
    }
}

static bool is_stored_by_all(void *arg)
{
    return cluster_count(&cluster, "x", arg) == cluster.len;
}

static bool is_stored_by_none(void *arg)
{
    (void)arg;
    return cluster_count(&cluster, "x", NULL) == 0;
}

static void lock_all(struct pilot *pilot, unsigned size)
{
    struct redlock_lease *lease, *other;
    char token[REDLOCK_TOKEN_MAX + 1];

    (void)size;
    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_OK);
    (void)snprintf(token, sizeof token, "%s", info_token(lease));
    CHECK(pilot_until(pilot, is_stored_by_all, token));
    CHECK_INT(pilot_lock(pilot, "x", NULL, &other), REDLOCK_CONTENDED);
    CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    CHECK(pilot_until(pilot, is_stored_by_none, NULL));
}

TEST(all_well)
{
    with_all(lock_all);
}

/* A bare majority of masters is enough; one less is not. */
static void lock_with_some_down(struct pilot *pilot, unsigned size)
{
    unsigned spare = size - majority(size);
    struct redlock_lease *lease;

    for (unsigned i = 0; i < spare; i++)
        server_kill(&cluster.server[i]);
    CHECK(pilot_until_up(pilot, size - spare));
    for (unsigned i = 0; i < 3; i++) {
        CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_OK);
        CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_OK);
        CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    }
    server_kill(&cluster.server[spare]);
    CHECK(pilot_until_up(pilot, size - spare - 1));
    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    CHECK_INT(pilot_lock_for(pilot, "x", 10000, true, 300, &lease), REDLOCK_UNREACHABLE);
}

TEST(a_minority_down)
{
    with_all(lock_with_some_down);
}

/* Another client holds so many keys that no majority is left.  The round ends with CONTENDED, and
 * leaves no keys.  With one key less, the lock is granted. */
static void lock_against_others(struct pilot *pilot, unsigned size)
{
    unsigned too_many = size - majority(size) + 1;
    struct redlock_lease *lease;

    for (unsigned i = 0; i < too_many; i++)
        (void)server_int(&cluster.server[i], "SET x other");
    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_CONTENDED);
    CHECK_INT(pilot_lock_for(pilot, "x", 10000, true, 300, &lease), REDLOCK_CONTENDED);
    CHECK_HAS(pilot->message, "acquire x: another client holds it");
    CHECK(pilot_until_leases(pilot, 0));
    CHECK_UINT(cluster_count(&cluster, "x", NULL), too_many);

    (void)server_int(&cluster.server[0], "DEL x");
    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_UINT(cluster_count(&cluster, "x", "other"), too_many - 1);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

/* Two of 4 masters, or one of 2, is an even split. */
TEST(votes_are_split)
{
    with_all(lock_against_others);
}

/* Clients that each have half of the votes must release them and try again. */
TEST(rivals_of_an_even_number)
{
    struct pilot loop, blocking;

    cluster_ready(&cluster, 4);
    pilot_open(&loop, PILOT_LOOP, cluster_masters(&cluster), 0);
    pilot_open(&blocking, PILOT_BLOCKING, cluster_masters(&cluster), 0);
    for (unsigned i = 0; i < 2; i++)
        (void)server_int(&cluster.server[i], "SET x other PX 500");
    for (unsigned i = 0; i < 10; i++) {
        struct pilot *pilot = i % 2 ? &loop : &blocking;
        struct redlock_lease *lease;

        CHECK_INT(pilot_lock_for(pilot, "x", 30000, true, 30000, &lease), REDLOCK_OK);
        CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    }
    pilot_close(&loop);
    pilot_close(&blocking);
}

/* Half of the masters are down, and the others store another token.  The status is UNREACHABLE,
 * because they do not prove that another client holds the lock. */
TEST(half_down_and_half_taken)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    open_all(&pilot, PILOT_LOOP, 4);
    server_kill(&cluster.server[0]);
    server_kill(&cluster.server[1]);
    CHECK(pilot_until_up(&pilot, 2));
    (void)server_int(&cluster.server[2], "SET x other");
    (void)server_int(&cluster.server[3], "SET x other");
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    pilot_close(&pilot);
}

CHECK_MAIN({"all_well", all_well}, {"a_minority_down", a_minority_down},
           {"votes_are_split", votes_are_split},
           {"rivals_of_an_even_number", rivals_of_an_even_number},
           {"half_down_and_half_taken", half_down_and_half_taken})
