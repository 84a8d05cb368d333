/*
 * test-live-blocking.c - the loop of a blocking client also runs when no call waits: between
 * calls that fail at once, and for the releases of a call that ends.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster three;

static void open_three(struct pilot *pilot)
{
    CHECK(pilot_open_up(pilot, PILOT_BLOCKING, &three, 3));
}

/* A thread that asks for a lock without a pause until it gets one, and its last status. */
struct hammer {
    pthread_t thread;
    struct redlock *rl;
    struct redlock_lease *lease;
    int status;
};

static void *hammer(void *arg)
{
    struct hammer *self = arg;
    double end_s = cluster_now_s() + CLUSTER_WAIT_S / 2.0;

    do
        self->status = redlock_lock(self->rl, "x", NULL, &self->lease);
    while ((self->status == REDLOCK_UNREACHABLE || self->status == REDLOCK_NOT_READY) &&
           cluster_now_s() < end_s);
    return NULL;
}

/* The calls follow each other without a gap, and none waits, so none runs the loop.  The client's
 * thread must run it, or no link would come up again. */
TEST(calls_that_fail_at_once_do_not_keep_links_down)
{
    struct hammer self;
    struct pilot pilot;

    open_three(&pilot);
    self.rl = pilot.rl;
    for (unsigned i = 0; i < 3; i++)
        server_kill(&three.server[i]);
    CHECK(pilot_until_up(&pilot, 0));
    CHECK_INT(pthread_create(&self.thread, NULL, hammer, &self), 0);
    for (unsigned i = 0; i < 3; i++) {
        server_restart(&three.server[i]);
        server_season(&three.server[i]);
    }
    (void)pthread_join(self.thread, NULL);
    CHECK_INT(self.status, REDLOCK_OK);
    (void)pilot_unlock(&pilot, self.lease); /* One link may still be down. */
    pilot_close(&pilot);
}

/* Two masters store the lock of another client.  The third grants it. */
static int fail_and_die(void *arg)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct pilot pilot;

    (void)arg;
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&three), 0);
    if (!pilot_until_up(&pilot, 3))
        return 1;
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 60000;
    if (redlock_lock(pilot.rl, "x", &opts, &lease) != REDLOCK_CONTENDED)
        return 2;
    _exit(0);
}

/* When a lock call fails, it has sent a release to every master that may store the token.  It
 * sends them before it returns, not later. */
TEST(a_call_that_fails_has_sent_its_releases)
{
    double end_s;

    cluster_ready(&three, 3);
    for (unsigned i = 0; i < 2; i++)
        CHECK_INT(server_int(&three.server[i], "SET x other"), 2);
    CHECK_INT(cluster_join(cluster_spawn(fail_and_die, NULL)), 0);
    end_s = cluster_now_s() + CLUSTER_WAIT_S / 2.0;
    while (server_get(&three.server[2], "x") != NULL && cluster_now_s() < end_s)
        cluster_nap();
    CHECK_STR(server_get(&three.server[2], "x"), NULL);
}

CHECK_MAIN({"calls_that_fail_at_once_do_not_keep_links_down",
            calls_that_fail_at_once_do_not_keep_links_down},
           {"a_call_that_fails_has_sent_its_releases", a_call_that_fails_has_sent_its_releases})
