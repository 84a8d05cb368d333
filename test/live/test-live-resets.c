/*
 * test-live-resets.c - links that break at a bad moment: the client reads an answer, and writes
 * the next command to a connection that was reset.
 */
#include "test/lib/check.h"

#include <ev.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

/* Chosen: one is enough to show a link that is used after it went down.  The others are for fakes
 * that are late. */
#define CUTS 6

#define FAKES 3

static struct fake fakes[FAKES];

static const char *start(unsigned len, enum fake_way way)
{
    const struct fake_plan plan = {.way = way};
    static char masters[FAKES * 24];
    size_t at = 0;

    pilot_guarded = false; /* All fakes have one epoch. */
    for (unsigned i = 0; i < len; i++) {
        fake_start(&fakes[i], &plan);
        at += (size_t)snprintf(masters + at, sizeof masters - at, "%s127.0.0.1:%u",
                               i > 0 ? "," : "", fakes[i].port);
    }
    return masters;
}

static unsigned stop(unsigned len)
{
    unsigned cuts = 0;

    for (unsigned i = 0; i < len; i++) {
        cuts += atomic_load(&fakes[i].seen->cuts);
        fake_stop(&fakes[i]);
    }
    return cuts;
}

static bool is_cut_often(void *arg)
{
    const unsigned *len = arg;
    unsigned cuts = 0;

    for (unsigned i = 0; i < *len; i++)
        cuts += atomic_load(&fakes[i].seen->cuts);
    return cuts >= CUTS;
}

/* Run the loop once, and then give the fakes time to answer and to reset.  The next turn meets both
 * together. */
static void turn(struct pilot *pilot)
{
    ev_run(pilot->ev, EVRUN_NOWAIT);
    cluster_nap();
}

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    int *ret_status = arg;

    (void)lease;
    *ret_status = status;
}

static struct redlock_lease *begin_to_wait(struct pilot *pilot, const char *name, int *status)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.wait_ms = UINT32_MAX;
    *status = PILOT_NEVER;
    CHECK_INT(redlock_lock_async(pilot->rl, name, &opts, on_done, status, &lease), REDLOCK_OK);
    return lease;
}

/* The answer says that the key is gone, so the client tries at once, on the same link. */
TEST(reset_behind_the_answer_to_a_query)
{
    unsigned len = FAKES;
    struct pilot pilot;
    int status;

    pilot_open(&pilot, PILOT_LOOP, start(len, FAKE_RESETS_QUERY), 0);
    (void)begin_to_wait(&pilot, "x", &status);
    for (double end_s = cluster_now_s() + CLUSTER_WAIT_S; !is_cut_often(&len);) {
        CHECK(cluster_now_s() < end_s);
        turn(&pilot);
    }
    CHECK_INT(status, PILOT_NEVER);
    pilot_close(&pilot);
    CHECK(stop(len) >= CUTS);
}

/* The same with blocking calls. */
TEST(reset_where_calls_block)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct pilot pilot;
    unsigned len = FAKES;

    pilot_open(&pilot, PILOT_BLOCKING, start(len, FAKE_RESETS_QUERY), 0);
    redlock_lock_options_init(&opts);
    opts.wait_ms = 500;
    for (double end_s = cluster_now_s() + CLUSTER_WAIT_S; !is_cut_often(&len);) {
        int status = redlock_lock(pilot.rl, "x", &opts, &lease);

        CHECK(status == REDLOCK_CONTENDED || status == REDLOCK_UNREACHABLE);
        CHECK(cluster_now_s() < end_s);
    }
    pilot_close(&pilot);
    CHECK(stop(len) >= CUTS);
}

/* A message says that one lock is free.  The client tries at once, while a new subscription waits
 * to be written to the link of the message. */
TEST(reset_behind_a_message)
{
    struct redlock_lease *other = NULL;
    struct pilot pilot;
    unsigned len = 1, names = 0;
    int status, other_status;

    pilot_open(&pilot, PILOT_LOOP, start(len, FAKE_RESETS_SUBSCRIBER), 0);
    (void)begin_to_wait(&pilot, FAKE_AWAITED, &status);
    for (double end_s = cluster_now_s() + CLUSTER_WAIT_S; !is_cut_often(&len);) {
        char name[16];

        (void)snprintf(name, sizeof name, "x%u", names++);
        CHECK(cluster_now_s() < end_s);
        for (unsigned i = 0; i < 20; i++)
            turn(&pilot);
        redlock_cancel(other);
        other = begin_to_wait(&pilot, name, &other_status);
    }
    CHECK_INT(status, PILOT_NEVER);
    pilot_close(&pilot);
    CHECK(stop(len) >= CUTS);
}

CHECK_MAIN({"reset_behind_the_answer_to_a_query", reset_behind_the_answer_to_a_query},
           {"reset_where_calls_block", reset_where_calls_block},
           {"reset_behind_a_message", reset_behind_a_message})
