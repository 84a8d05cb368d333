/*
 * test-live-lost.c - the lost callback of a blocking client, which runs in parallel with other
 * threads: which calls wait for it, which do not, and what it must not do.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

/* Chosen: far longer than a call that does not wait for the callback. */
#define LINGER_MS 300

/* The length of leases that run out during a test.  Chosen: longer than a lock takes. */
#define TTL_MS 2000

static struct cluster three;
static struct pilot nobody = {.kind = PILOT_BLOCKING}; /* Waits without a client. */

static void open_three(struct pilot *pilot)
{
    CHECK(pilot_open_up(pilot, PILOT_BLOCKING, &three, 3));
}

/* The state that the callback, the test and other threads share. */
struct scene {
    atomic_bool began, ended;
    atomic_bool returned; /* The call in another thread has returned. */
    bool in_time;
    int status;
    struct redlock *rl, *closed;
    struct redlock_lease *lease;
    char message[256];
};

static bool is_set(void *arg)
{
    return atomic_load((atomic_bool *)arg);
}

/* Take a lease of this length, whose lost callback runs in the middle of it. */
static void lock_to_lose(struct pilot *pilot, struct scene *scene, uint32_t ttl_ms,
                         void (*lost)(struct redlock_lease *lease, void *arg))
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = ttl_ms;
    opts.no_renew = true;
    opts.lost_margin_ms = ttl_ms / 2;
    opts.lost = lost;
    opts.lost_arg = scene;
    scene->rl = pilot->rl;
    CHECK_INT(pilot_lock(pilot, "x", &opts, &scene->lease), REDLOCK_OK);
}

/* ---- Calls that wait ---- */

static void linger(void)
{
    const struct timespec nap = {.tv_nsec = LINGER_MS * 1000000};

    (void)nanosleep(&nap, NULL);
}

static void lose_slowly(struct redlock_lease *lease, void *arg)
{
    struct scene *scene = arg;

    (void)lease;
    atomic_store(&scene->began, true);
    linger();
    atomic_store(&scene->ended, true);
}

/* After detach, the caller may free what the callback uses. */
TEST(detach_waits_for_lost)
{
    struct scene scene = {.status = 0};
    struct pilot pilot;

    open_three(&pilot);
    lock_to_lose(&pilot, &scene, TTL_MS, lose_slowly);
    CHECK(pilot_until(&nobody, is_set, &scene.began));
    scene.status = redlock_detach(scene.lease);
    scene.in_time = atomic_load(&scene.ended);
    CHECK(pilot_until(&nobody, is_set, &scene.ended)); /* It must not outlive the scene. */
    CHECK_INT(scene.status, REDLOCK_OK);
    CHECK(scene.in_time);
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

static void lose_past_the_end(struct redlock_lease *lease, void *arg)
{
    struct scene *scene = arg;

    atomic_store(&scene->began, true);
    while (redlock_remaining_ms(lease) > 0)
        cluster_nap();
    linger();
    atomic_store(&scene->ended, true);
}

/* Unlock waits too, even for an expired lease, about which it asks no master. */
TEST(unlock_waits_for_lost)
{
    struct scene scene = {.status = 0};
    struct pilot pilot;

    open_three(&pilot);
    lock_to_lose(&pilot, &scene, TTL_MS, lose_past_the_end);
    CHECK(pilot_until(&nobody, is_set, &scene.began));
    while (redlock_remaining_ms(scene.lease) > 0)
        cluster_nap();
    cluster_nap(); /* 0 is rounded down: up to a millisecond may be left. */
    scene.status = redlock_unlock(scene.lease);
    scene.in_time = atomic_load(&scene.ended);
    CHECK(pilot_until(&nobody, is_set, &scene.ended));
    CHECK_INT(scene.status, REDLOCK_LOST);
    CHECK(scene.in_time);
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

/* ---- Calls that do not wait ---- */

static void lose_when_returned(struct redlock_lease *lease, void *arg)
{
    struct scene *scene = arg;
    double end_s = cluster_now_s() + CLUSTER_WAIT_S / 4.0;

    (void)lease;
    atomic_store(&scene->began, true);
    while (!atomic_load(&scene->returned) && cluster_now_s() < end_s)
        cluster_nap();
    scene->in_time = atomic_load(&scene->returned);
    atomic_store(&scene->ended, true);
}

static void *extend(void *arg)
{
    struct scene *scene = arg;

    scene->status = redlock_extend(scene->lease, 0);
    atomic_store(&scene->returned, true);
    return NULL;
}

/* ---- What the callback may ask ---- */

static void ask_what_is_lost(struct redlock_lease *lease, void *arg)
{
    struct redlock_lease_info info = {.size = sizeof info};
    struct scene *scene = arg;

    scene->status = redlock_lease_info(lease, &info);
    scene->in_time = scene->status == REDLOCK_OK && strcmp(info.resource, "x") == 0 &&
                     info.token[0] != '\0' && info.holds <= 1;
    atomic_store(&scene->ended, true);
}

TEST(lost_may_ask_which_lease_it_is)
{
    struct redlock_lease_info info = {.size = sizeof info};
    struct scene scene = {.status = -1};
    struct pilot pilot;

    open_three(&pilot);
    lock_to_lose(&pilot, &scene, TTL_MS, ask_what_is_lost);
    CHECK(pilot_until(&nobody, is_set, &scene.ended));
    CHECK_INT(scene.status, REDLOCK_OK);
    CHECK(scene.in_time);
    (void)redlock_unlock(scene.lease);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK_INT(redlock_lease_info(scene.lease, &info), REDLOCK_E_STATE); /* Its memory is kept. */
    CHECK_STR(redlock_errmsg(NULL), "lease info: the lease has been unlocked or given up already");
    pilot_close(&pilot);
}

/* ---- Calls that do not wait ---- */

/* An extension that fails because the lease is lost returns while the callback runs.  The callback
 * may wait for that thread to stop its work. */
TEST(an_extension_returns_while_lost_runs)
{
    struct scene scene = {.status = 0};
    struct pilot pilot;
    pthread_t thread;

    open_three(&pilot);
    lock_to_lose(&pilot, &scene, TTL_MS, lose_when_returned);
    for (unsigned i = 0; i < 3; i++)
        server_pause(&three.server[i]);
    CHECK_INT(pthread_create(&thread, NULL, extend, &scene), 0);
    CHECK(pilot_until(&nobody, is_set, &scene.ended));
    (void)pthread_join(thread, NULL);
    CHECK_INT(scene.status, REDLOCK_LOST);
    CHECK(scene.in_time);
    for (unsigned i = 0; i < 3; i++)
        server_resume(&three.server[i]);
    (void)pilot_unlock(&pilot, scene.lease); /* The lease may have expired. */
    pilot_close(&pilot);
}

/* A call that waits runs the client's loop, but no callback.  Callbacks run in the client's thread,
 * and other calls go on meanwhile. */
TEST(a_call_neither_runs_lost_nor_waits_for_it)
{
    struct scene scene = {.status = 0};
    struct redlock_lease *lease, *none;
    struct pilot pilot;

    open_three(&pilot);
    CHECK_INT(pilot_lock_for(&pilot, "y", 30000, true, 0, &lease), REDLOCK_OK);
    lock_to_lose(&pilot, &scene, TTL_MS, lose_when_returned);
    while (!atomic_load(&scene.began)) /* The callback begins during one of these calls. */
        CHECK_INT(pilot_lock_for(&pilot, "y", 1000, false, 100, &none), REDLOCK_CONTENDED);
    CHECK_INT(pilot_lock_for(&pilot, "y", 1000, false, 100, &none), REDLOCK_CONTENDED);
    atomic_store(&scene.returned, true);
    CHECK(pilot_until(&nobody, is_set, &scene.ended));
    CHECK(scene.in_time);
    (void)pilot_unlock(&pilot, scene.lease); /* The lease may have expired. */
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

static void lose_when_told(struct redlock_lease *lease, void *arg)
{
    struct scene *scene = arg;

    (void)lease;
    atomic_store(&scene->began, true);
    (void)pilot_until(&nobody, is_set, &scene->returned);
    atomic_store(&scene->ended, true);
}

/* ---- Calls that wait while the client is closed ---- */

/* Chosen: more than the finished leases that the client keeps in memory (lease.h). */
#define BURIED 300

static atomic_bool held_up, let_go;

static void hold_up(int number)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    (void)number;
    atomic_store(&held_up, true);
    while (!atomic_load(&let_go))
        (void)nanosleep(&nap, NULL);
}

static void *unlock(void *arg)
{
    struct scene *scene = arg;

    scene->status = redlock_unlock(scene->lease);
    return NULL;
}

static void *detach(void *arg)
{
    struct scene *scene = arg;

    scene->status = redlock_detach(scene->lease);
    return NULL;
}

static void *close_client(void *arg)
{
    struct scene *scene = arg;

    scene->closed = redlock_close(scene->rl);
    return NULL;
}

static bool has_given_up_all(void *arg)
{
    unsigned locks = 0;

    (void)arg;
    for (unsigned i = 0; i < 3; i++)
        locks += server_locks(&three.server[i]);
    return locks == 0;
}

static bool is_disowned(void *arg)
{
    return info_holds(arg) == 0;
}

static bool is_closing(void *arg)
{
    struct redlock_stats stats = {.size = sizeof stats};

    return redlock_stats(arg, &stats) == REDLOCK_E_STATE;
}

/* A signal handler delays the end of the call until more leases have finished than the client
 * keeps.  The client must not free the lease that the call uses. */
static void check_close_while_waiting(void *(*end)(void *arg))
{
    const struct sigaction action = {.sa_handler = hold_up};
    const struct timespec answers = {.tv_nsec = 100000000};
    struct scene scene = {.status = 0};
    struct redlock_lease *lease;
    pthread_t ender, closer;
    struct pilot pilot;
    char name[16];

    open_three(&pilot);
    atomic_store(&held_up, false);
    atomic_store(&let_go, false);
    CHECK_INT(sigaction(SIGUSR1, &action, NULL), 0);
    lock_to_lose(&pilot, &scene, TTL_MS, lose_when_told); /* Its lease is the first to finish. */
    for (unsigned i = 0; i < BURIED; i++) {
        (void)snprintf(name, sizeof name, "u%u", i);
        CHECK_INT(pilot_lock_for(&pilot, name, 30000, true, 0, &lease), REDLOCK_OK);
    }
    CHECK(pilot_until(&nobody, is_set, &scene.began));
    CHECK_INT(pthread_create(&ender, NULL, end, &scene), 0);
    CHECK(pilot_until(&nobody, is_disowned, scene.lease));
    CHECK_INT(pthread_create(&closer, NULL, close_client, &scene), 0);
    CHECK(pilot_until(&nobody, is_closing, scene.rl));
    CHECK_INT(pthread_kill(ender, SIGUSR1), 0);
    CHECK(pilot_until(&nobody, is_set, &held_up));
    atomic_store(&scene.returned, true);
    CHECK(pilot_until(&nobody, has_given_up_all, NULL));
    (void)nanosleep(&answers, NULL); /* No event shows that the client has read the answers. */
    atomic_store(&let_go, true);
    (void)pthread_join(ender, NULL);
    (void)pthread_join(closer, NULL);
    CHECK_INT(scene.status, REDLOCK_E_STATE);
    CHECK(scene.closed == NULL);
}

TEST(close_keeps_the_lease_of_an_unlock_that_waits)
{
    check_close_while_waiting(unlock);
}

TEST(close_keeps_the_lease_of_a_detach_that_waits)
{
    check_close_while_waiting(detach);
}

/* ---- What the callback must not do ---- */

static void close_on_lost(struct redlock_lease *lease, void *arg)
{
    struct scene *scene = arg;

    (void)lease;
    scene->closed = redlock_close(scene->rl);
    (void)snprintf(scene->message, sizeof scene->message, "%s", redlock_errmsg(NULL));
    atomic_store(&scene->ended, true);
}

/* The thread of the callback cannot wait for its own end, so close does nothing there. */
TEST(close_from_lost_is_told)
{
    struct scene scene = {.status = 0};
    struct redlock_lease *lease;
    struct pilot pilot;

    open_three(&pilot);
    lock_to_lose(&pilot, &scene, 8000, close_on_lost); /* The callback runs after half of it. */
    CHECK(pilot_until(&nobody, is_set, &scene.ended));
    CHECK(scene.closed == scene.rl);
    CHECK_STR(scene.message, "close: from a callback of a blocking client");
    CHECK_INT(pilot_unlock(&pilot, scene.lease), REDLOCK_OK);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

CHECK_MAIN({"detach_waits_for_lost", detach_waits_for_lost},
           {"unlock_waits_for_lost", unlock_waits_for_lost},
           {"lost_may_ask_which_lease_it_is", lost_may_ask_which_lease_it_is},
           {"an_extension_returns_while_lost_runs", an_extension_returns_while_lost_runs},
           {"a_call_neither_runs_lost_nor_waits_for_it", a_call_neither_runs_lost_nor_waits_for_it},
           {"close_keeps_the_lease_of_an_unlock_that_waits",
            close_keeps_the_lease_of_an_unlock_that_waits},
           {"close_keeps_the_lease_of_a_detach_that_waits",
            close_keeps_the_lease_of_a_detach_that_waits},
           {"close_from_lost_is_told", close_from_lost_is_told})
