/*
 * test-live-queue.c - a master hangs until the client's queue for it is full, and then goes on.
 * Releases that found no room are sent when there is some.
 */
#include "test/lib/check.h"

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/client/state.h"
#include "redlock/link/link.h"
#include "redlock/redlock.h"

#define IN_FLIGHT 128
#define HELD 500
#define TTL_MS 600000 /* Chosen: longer than this test, so that keys do not expire. */

static struct cluster three;

/* The reply timeout is so long that no link is given up for its silence. */
static void set_times(struct redlock_options *opts)
{
    opts->max_ttl_ms = TTL_MS;
    opts->reply_timeout_ms = CLUSTER_WAIT_S * 1000;
}

/* ---- Locks in flight ---- */

struct flights {
    struct pilot *pilot;
    bool keep;      /* Keep each lock; else unlock it and begin another. */
    unsigned begun; /* Locks begun so far, each with a name of its own. */
    unsigned under_way, failed;
    unsigned leases_len;
    struct redlock_lease *leases[HELD];
};

static void begin_one(struct flights *flights);

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct flights *flights = arg;

    (void)lease;
    flights->failed += status != REDLOCK_OK;
    flights->under_way--;
    if (pilot_stats(flights->pilot).masters_up == 3)
        begin_one(flights);
}

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct flights *flights = arg;

    if (status != REDLOCK_OK) {
        flights->failed++;
        flights->under_way--;
    } else if (flights->keep) {
        flights->leases[flights->leases_len++] = lease;
        flights->under_way--;
    } else if (redlock_unlock_async(lease, on_unlocked, flights) != REDLOCK_OK) {
        cluster_die("unlock: %s", redlock_errmsg(NULL));
    }
}

static void begin_one(struct flights *flights)
{
    struct redlock_lock_options opts;
    char name[32];

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.no_renew = true;
    (void)snprintf(name, sizeof name, "flight %u", flights->begun++);
    flights->under_way++;
    if (redlock_lock_async(flights->pilot->rl, name, &opts, on_locked, flights, NULL) != REDLOCK_OK)
        cluster_die("lock: %s", redlock_errmsg(NULL));
}

static void begin(struct flights *flights, unsigned len)
{
    for (unsigned i = 0; i < len; i++)
        begin_one(flights);
}

static bool is_over(void *arg)
{
    const struct flights *flights = arg;

    return flights->under_way == 0;
}

/*
 * The first master is stopped.  The client asks for HELD locks, which the others grant, and for
 * more until the queue for the first is full.  Then it unlocks all, and cannot send these releases
 * to the first.  When that goes on, it grants all, and must get the releases.
 */
TEST(what_found_no_room_is_released_when_there_is_some)
{
    static struct flights flights;
    struct pilot pilot;

    cluster_ready(&three, 3);
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, cluster_masters(&three), set_times), REDLOCK_OK);
    CHECK(pilot_until_up(&pilot, 3));
    server_pause(&three.server[0]);

    flights = (struct flights){.pilot = &pilot, .keep = true};
    begin(&flights, HELD);
    CHECK(pilot_until(&pilot, is_over, &flights));
    CHECK_UINT(flights.leases_len, HELD);
    flights.keep = false;
    begin(&flights, IN_FLIGHT);
    CHECK(pilot_until(&pilot, is_over, &flights));
    CHECK_UINT(flights.failed, 0);
    CHECK_UINT(pilot_stats(&pilot).masters_up, 2);
    /* Each lock needs at most three commands: a lock, a proof, and a release. */
    CHECK(flights.begun > LINK_ASKS_MAX / 3 - HELD);
    for (unsigned i = 0; i < HELD; i++)
        CHECK_INT(redlock_unlock_async(flights.leases[i], NULL, NULL), REDLOCK_OK);

    server_resume(&three.server[0]);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK(pilot_until(&pilot, cluster_has_no_locks, &three));
    CHECK_UINT(pilot_stats(&pilot).connects, 3); /* No link was replaced. */
    CHECK_UINT(pilot_stats(&pilot).masters_up, 3);
    pilot_close(&pilot);
}

static bool is_full(void *arg)
{
    return pilot_stats(arg).masters_up == 0;
}

/* While the queue is full, the message says so. */
TEST(a_full_queue_is_told_of)
{
    static struct flights flights;
    struct redlock_lease *lease;
    struct pilot pilot;
    char master[32];

    cluster_ready(&three, 3);
    (void)snprintf(master, sizeof master, "127.0.0.1:%u", three.server[0].port);
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, master, set_times), REDLOCK_OK);
    CHECK(pilot_until_up(&pilot, 1));
    server_pause(&three.server[0]);
    flights = (struct flights){.pilot = &pilot, .keep = true};
    begin(&flights, LINK_ASKS_MAX);
    CHECK(pilot_until(&pilot, is_full, &pilot));
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    CHECK_HAS(pilot.message, "its queue of commands is full");
    pilot_close(&pilot);
    server_resume(&three.server[0]);
}

/* Each master answers NOSCRIPT while the queue is full of other releases. */
TEST(a_release_without_its_script_is_repeated_though_the_queue_is_full)
{
    struct pilot pilot;
    struct redlock_lock_options opts;
    struct redlock_lease *leases[64];

    cluster_ready(&three, 3);
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, cluster_masters(&three), set_times), REDLOCK_OK);
    CHECK(pilot_until_up(&pilot, 3));
    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.shared = true;
    for (unsigned i = 0; i < 64; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "reader/%u", i);
        CHECK_INT(pilot_lock(&pilot, name, &opts, &leases[i]), REDLOCK_OK);
    }
    for (unsigned m = 0; m < 3; m++)
        (void)server_text(&three.server[m], "SCRIPT FLUSH");
    pilot.rl->env.asks_max = 16;
    for (unsigned i = 0; i < 64; i++)
        CHECK_INT(redlock_unlock_async(leases[i], NULL, NULL), REDLOCK_OK);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK(pilot_until(&pilot, cluster_has_no_locks, &three));
    pilot_close(&pilot);
}

CHECK_MAIN({"a_full_queue_is_told_of", a_full_queue_is_told_of},
           {"a_release_without_its_script_is_repeated_though_the_queue_is_full",
            a_release_without_its_script_is_repeated_though_the_queue_is_full},
           {"what_found_no_room_is_released_when_there_is_some",
            what_found_no_room_is_released_when_there_is_some})
