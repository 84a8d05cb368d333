/*
 * test-live-owner.c - reentrant locks, whose owner is a thread or a pointer: counts, and what
 * other owners must not do.
 */
#include "test/lib/check.h"

#include <pthread.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define MANY 300 /* Chosen: enough for the table to grow several times. */

static struct cluster three;
static const char me[1], you[1]; /* Owners. */

static void open_three(struct pilot *pilot, enum pilot_kind kind)
{
    check_row = pilot_kind_name(kind);
    CHECK(pilot_open_up(pilot, kind, &three, 3));
}

static struct redlock_lock_options owned_by(const void *owner)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.reentrant = true;
    opts.owner = owner;
    return opts;
}

static int lock_as(struct pilot *pilot, const char *name, const void *owner,
                   struct redlock_lease **ret_lease)
{
    const struct redlock_lock_options opts = owned_by(owner);

    return pilot_lock(pilot, name, &opts, ret_lease);
}

static bool has_no_key(void *arg)
{
    (void)arg;
    return cluster_count(&three, "x", NULL) == 0;
}

static bool is_on_all(void *arg)
{
    const struct redlock_lease *lease = arg;

    return cluster_count(&three, "x", info_token(lease)) == 3;
}

static struct pilot nobody = {.kind = PILOT_BLOCKING}; /* Waits without a client. */

/* ---- The owner ---- */

TEST(the_same_lease_and_no_command)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *again;
        struct pilot pilot;
        uint64_t commands;

        open_three(&pilot, kind);
        CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
        CHECK_UINT(info_holds(lease), 1);
        commands = pilot_stats(&pilot).commands;
        for (unsigned i = 2; i <= 4; i++) {
            CHECK_INT(lock_as(&pilot, "x", me, &again), REDLOCK_OK);
            CHECK(again == lease);
            CHECK_UINT(info_holds(lease), i);
        }
        for (unsigned i = 3; i >= 1; i--) {
            CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
            CHECK_UINT(info_holds(lease), i);
        }
        CHECK_UINT(pilot_stats(&pilot).commands, commands);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK(pilot_until(&pilot, is_on_all, lease));
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK(pilot_until(&pilot, has_no_key, NULL));
        pilot_close(&pilot);
    }
}

TEST(others_have_to_wait)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot pilot;

        open_three(&pilot, kind);
        CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
        CHECK_INT(lock_as(&pilot, "x", you, &other), REDLOCK_CONTENDED);
        CHECK_STR(pilot.message, "acquire x: another lease of this client holds it");
        CHECK_INT(lock_as(&pilot, "x", NULL, &other), REDLOCK_CONTENDED);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &other), REDLOCK_CONTENDED);
        CHECK_STR(pilot.message, "acquire x: another lease of this client holds it");
        CHECK_INT(lock_as(&pilot, "y", you, &other), REDLOCK_OK);
        CHECK(other != lease);
        CHECK_UINT(info_holds(lease), 1);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        /* The failed lock has left nothing that counts as held. */
        CHECK_INT(lock_as(&pilot, "x", you, &lease), REDLOCK_OK);
        CHECK_UINT(info_holds(lease), 1);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, other), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

static bool is_over(void *arg)
{
    return redlock_remaining_ms(arg) == 0;
}

/* The owner of a lost lock cannot lock it again before it has unlocked all its holds. */
TEST(what_is_lost_is_not_locked_again)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lock_options opts = owned_by(me);
        struct redlock_lease *lease, *again;
        struct pilot pilot;

        open_three(&pilot, kind);
        opts.no_renew = true;
        opts.ttl_ms = 2000; /* Chosen: longer than it takes to lock twice. */
        CHECK_INT(pilot_lock(&pilot, "x", &opts, &lease), REDLOCK_OK);
        CHECK_INT(pilot_lock(&pilot, "x", &opts, &again), REDLOCK_OK);
        CHECK(pilot_until(&pilot, is_over, lease));
        CHECK(pilot_until(&pilot, has_no_key, NULL));
        CHECK_INT(pilot_lock(&pilot, "x", &opts, &again), REDLOCK_LOST);
        CHECK_HAS(pilot.message, "acquire: its owner has lost it");
        CHECK_UINT(info_holds(lease), 2);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        CHECK_INT(pilot_lock(&pilot, "x", &opts, &again), REDLOCK_LOST);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        CHECK_INT(lock_as(&pilot, "x", me, &again), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, again), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

TEST(many)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *leases[MANY], *again;
        struct pilot pilot;
        char name[16];

        open_three(&pilot, kind);
        for (unsigned i = 0; i < MANY; i++) {
            (void)snprintf(name, sizeof name, "x%u", i / 2);
            CHECK_INT(lock_as(&pilot, name, i % 2 ? you : me, &leases[i]),
                      i % 2 ? REDLOCK_CONTENDED : REDLOCK_OK);
        }
        for (unsigned i = 0; i < MANY; i += 2) {
            (void)snprintf(name, sizeof name, "x%u", i / 2);
            CHECK_INT(lock_as(&pilot, name, me, &again), REDLOCK_OK);
            CHECK(again == leases[i]);
            CHECK_INT(pilot_unlock(&pilot, again), REDLOCK_OK);
            CHECK_INT(pilot_unlock(&pilot, again), REDLOCK_OK);
        }
        pilot_close(&pilot);
    }
}

TEST(detached_adopted_and_closed)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        const struct redlock_lock_options opts = owned_by(me);
        struct redlock_lease *lease, *other;
        struct pilot pilot;
        char token[REDLOCK_TOKEN_MAX + 1];

        open_three(&pilot, kind);
        CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
        CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
        (void)snprintf(token, sizeof token, "%s", info_token(lease));
        CHECK_INT(redlock_detach(lease), REDLOCK_OK); /* One call is enough for all holds. */
        CHECK_INT(lock_as(&pilot, "x", me, &other), REDLOCK_CONTENDED);
        CHECK_INT(redlock_adopt(pilot.rl, "x", token, &opts, &other), REDLOCK_E_INVAL);
        CHECK_INT(redlock_adopt(pilot.rl, "x", token, NULL, &other), REDLOCK_OK);
        CHECK_UINT(info_holds(other), 0);
        CHECK_INT(pilot_extend(&pilot, other, 0), REDLOCK_OK);
        CHECK_UINT(info_holds(other), 1);
        CHECK_INT(pilot_unlock(&pilot, other), REDLOCK_OK);
        CHECK_UINT(info_holds(NULL), 0);
        CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
        CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
        pilot_close(&pilot); /* This releases the lock, soon. */
        CHECK(pilot_until(&nobody, has_no_key, NULL));
    }
}

/* ---- Threads ---- */

/* What another thread does with a lease that it does not own, and the statuses. */
struct stranger {
    struct pilot *pilot;
    struct redlock_lease *lease;
    int lock, unlock, detach;
    char message[256];
};

static void *meddle(void *arg)
{
    struct redlock_lock_options opts = owned_by(NULL);
    struct stranger *stranger = arg;
    struct redlock_lease *lease;

    stranger->lock = redlock_lock(stranger->pilot->rl, "x", &opts, &lease);
    stranger->detach = redlock_detach(stranger->lease);
    stranger->unlock = redlock_unlock(stranger->lease);
    (void)snprintf(stranger->message, sizeof stranger->message, "%s",
                   redlock_errmsg(stranger->pilot->rl));
    return NULL;
}

static void run_stranger(struct stranger *stranger)
{
    pthread_t thread;

    CHECK_INT(pthread_create(&thread, NULL, meddle, stranger), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
}

TEST(another_thread_may_not)
{
    struct stranger stranger;
    struct redlock_lease *lease;
    struct pilot pilot;

    open_three(&pilot, PILOT_BLOCKING);
    CHECK_INT(lock_as(&pilot, "x", NULL, &lease), REDLOCK_OK);
    for (unsigned holds = 1; holds <= 2; holds++) {
        stranger = (struct stranger){.pilot = &pilot, .lease = lease};
        run_stranger(&stranger);
        CHECK_INT(stranger.lock, REDLOCK_CONTENDED);
        CHECK_INT(stranger.detach, REDLOCK_E_STATE);
        CHECK_INT(stranger.unlock, REDLOCK_E_STATE);
        CHECK_STR(stranger.message, "release: the lock belongs to another thread");
        CHECK_UINT(info_holds(lease), holds);
        CHECK(pilot_until(&nobody, is_on_all, lease));
        if (holds == 1)
            CHECK_INT(lock_as(&pilot, "x", NULL, &lease), REDLOCK_OK);
    }
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

static void *unlock_soon(void *arg)
{
    struct stranger *stranger = arg;

    stranger->unlock = redlock_unlock_async(stranger->lease, NULL, NULL);
    stranger->detach = redlock_detach(stranger->lease);
    return NULL;
}

/* Another thread may run the loop, but the owner of a lock stays the same. */
TEST(nor_may_another_thread_of_a_loop)
{
    struct stranger stranger = {.lease = NULL};
    struct pilot pilot;
    pthread_t thread;

    open_three(&pilot, PILOT_LOOP);
    CHECK_INT(lock_as(&pilot, "x", NULL, &stranger.lease), REDLOCK_OK);
    CHECK_INT(pthread_create(&thread, NULL, unlock_soon, &stranger), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(stranger.unlock, REDLOCK_E_STATE);
    CHECK_INT(stranger.detach, REDLOCK_E_STATE);
    CHECK_INT(pilot_unlock(&pilot, stranger.lease), REDLOCK_OK);
    pilot_close(&pilot);
}

static void *lock_and_go(void *arg)
{
    struct stranger *stranger = arg;

    stranger->lock = lock_as(stranger->pilot, "x", NULL, &stranger->lease);
    return NULL;
}

/* A new thread may have the id and the memory of an earlier one, but not its locks. */
TEST(a_thread_that_is_gone_leaves_no_heir)
{
    struct stranger stranger = {.lease = NULL};
    struct pilot pilot;
    pthread_t thread;

    open_three(&pilot, PILOT_BLOCKING);
    stranger.pilot = &pilot;
    for (unsigned i = 0; i < 10; i++) {
        CHECK_INT(pthread_create(&thread, NULL, lock_and_go, &stranger), 0);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK_INT(stranger.lock, i == 0 ? REDLOCK_OK : REDLOCK_CONTENDED);
    }
    pilot_close(&pilot);
}

static void *lock_up_and_down(void *arg)
{
    struct redlock_lock_options opts = owned_by(NULL);
    struct stranger *stranger = arg;
    struct redlock_lease *lease, *again;

    opts.wait_ms = 60000;
    opts.retry_delay_min_ms = 1;
    opts.retry_delay_max_ms = 5;
    for (unsigned i = 0; i < 20; i++) {
        if (redlock_lock(stranger->pilot->rl, "x", &opts, &lease) != REDLOCK_OK ||
            redlock_lock(stranger->pilot->rl, "x", &opts, &again) != REDLOCK_OK || again != lease ||
            info_holds(lease) != 2)
            stranger->lock++;
        else if (redlock_unlock(lease) != REDLOCK_OK || redlock_unlock(lease) != REDLOCK_OK)
            stranger->unlock++;
    }
    return NULL;
}

TEST(eight_threads)
{
    struct stranger strangers[8] = {{.lease = NULL}};
    struct pilot pilot;
    pthread_t threads[8];

    open_three(&pilot, PILOT_BLOCKING);
    for (unsigned i = 0; i < 8; i++) {
        strangers[i].pilot = &pilot;
        CHECK_INT(pthread_create(&threads[i], NULL, lock_up_and_down, &strangers[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
        CHECK_INT(strangers[i].lock, 0);
        CHECK_INT(strangers[i].unlock, 0);
    }
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

/* ---- On a loop ---- */

static void count_done(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease;
    *(unsigned *)arg += status == REDLOCK_OK ? 1 : 1000;
}

static bool is_one(void *arg)
{
    return *(unsigned *)arg == 1;
}

TEST(on_a_loop_one_thing_at_a_time)
{
    const struct redlock_lock_options opts = owned_by(me);
    unsigned locked = 0, again = 0, unlocked = 0, never = 0;
    struct redlock_lease *lease, *other;
    struct pilot pilot;

    open_three(&pilot, PILOT_LOOP);
    CHECK_INT(redlock_lock_async(pilot.rl, "x", &opts, count_done, &locked, &lease), REDLOCK_OK);
    CHECK_INT(redlock_lock_async(pilot.rl, "x", &opts, count_done, &never, &other),
              REDLOCK_E_STATE);
    CHECK_UINT(info_holds(lease), 0);
    CHECK(pilot_until(&pilot, is_one, &locked));
    CHECK_INT(redlock_lock_async(pilot.rl, "x", &opts, count_done, &again, &other), REDLOCK_OK);
    CHECK(other == lease);
    CHECK_UINT(again, 0); /* A callback never runs before its call returns. */
    CHECK_INT(redlock_unlock_async(lease, count_done, &never), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "release: its owner is locking it again");
    CHECK(pilot_until(&pilot, is_one, &again));
    CHECK_INT(redlock_extend_async(lease, 0, count_done, &locked), REDLOCK_OK);
    CHECK_INT(redlock_unlock_async(lease, count_done, &never), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "release: an extend is under way");
    CHECK_UINT(info_holds(lease), 2);
    locked = 0;
    CHECK(pilot_until(&pilot, is_one, &locked));
    CHECK_INT(lock_as(&pilot, "x", me, &other), REDLOCK_OK);
    /* The next unlock overtakes an inner one, and the outer one overtakes that. */
    CHECK_INT(redlock_unlock_async(lease, count_done, &never), REDLOCK_OK);
    CHECK_INT(redlock_unlock_async(lease, NULL, NULL), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        pilot_turn(&pilot);
    CHECK_UINT(never, 0);
    CHECK_INT(lock_as(&pilot, "x", me, &other), REDLOCK_OK);
    CHECK_INT(redlock_unlock_async(lease, count_done, &never), REDLOCK_OK);
    CHECK_UINT(info_holds(lease), 1);
    CHECK_INT(redlock_unlock_async(lease, count_done, &unlocked), REDLOCK_OK);
    CHECK(pilot_until(&pilot, is_one, &unlocked));
    CHECK_UINT(never, 0);
    CHECK(pilot_until(&pilot, has_no_key, NULL));
    pilot_close(&pilot);
}

TEST(a_cancel_ends_all_of_it)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    open_three(&pilot, PILOT_LOOP);
    CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
    CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
    redlock_cancel(lease);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK_UINT(cluster_count(&three, "x", NULL), 0);
    CHECK_INT(lock_as(&pilot, "x", me, &lease), REDLOCK_OK);
    CHECK_UINT(info_holds(lease), 1);
    pilot_close(&pilot);
}

CHECK_MAIN({"the_same_lease_and_no_command", the_same_lease_and_no_command},
           {"others_have_to_wait", others_have_to_wait},
           {"what_is_lost_is_not_locked_again", what_is_lost_is_not_locked_again}, {"many", many},
           {"detached_adopted_and_closed", detached_adopted_and_closed},
           {"another_thread_may_not", another_thread_may_not},
           {"nor_may_another_thread_of_a_loop", nor_may_another_thread_of_a_loop},
           {"a_thread_that_is_gone_leaves_no_heir", a_thread_that_is_gone_leaves_no_heir},
           {"eight_threads", eight_threads},
           {"on_a_loop_one_thing_at_a_time", on_a_loop_one_thing_at_a_time},
           {"a_cancel_ends_all_of_it", a_cancel_ends_all_of_it})
