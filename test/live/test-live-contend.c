/*
 * test-live-contend.c - 16 threads and 8 processes contend for one lock on five real masters,
 * with and without faults.
 */
#include "test/lib/check.h"
#include "live/cluster.h"
#include "live/contend.h"

static struct cluster five;

/* No witness may see an overlap. */
static void check_report(const struct contend_report *report)
{
    CHECK_STR(report->failure, "");
    CHECK_UINT(report->failures, 0);
    CHECK_UINT(report->overlaps, 0);
    CHECK_UINT(report->counter, report->holds_wanted);
    CHECK_UINT(report->log_bad, 0);
    CHECK_UINT(report->log_lines, 2 * report->holds_wanted);
}

static void check_plan(struct contend_plan *plan)
{
    struct contend_report report;

    plan->masters = cluster_masters(&five);
    contend(plan, &report);
    check_report(&report);
}

TEST(sixteen_threads)
{
    struct contend_plan plan = {.threads = 16, .rounds = 12};

    cluster_ready(&five, 5);
    check_plan(&plan);
}

TEST(eight_processes)
{
    struct contend_plan plan = {.threads = 1, .processes = 8, .rounds = 20};

    cluster_ready(&five, 5);
    check_plan(&plan);
}

TEST(four_processes_of_four_threads)
{
    struct contend_plan plan = {.threads = 4, .processes = 4, .rounds = 8};

    cluster_ready(&five, 5);
    check_plan(&plan);
}

/* Pause one master after the other, for some turns each. */
static void pause_in_turn(void *arg)
{
    unsigned *turn = arg;
    struct server *server = &five.server[*turn / 50 % five.len];

    if (*turn % 50 == 0)
        server_pause(server);
    else if (*turn % 50 == 49)
        server_resume(server);
    ++*turn;
}

TEST(eight_processes_while_masters_pause)
{
    unsigned turn = 0;
    struct contend_plan plan = {
        .threads = 1,
        .processes = 8,
        .rounds = 15,
        .disturb = pause_in_turn,
        .disturb_arg = &turn,
    };

    cluster_ready(&five, 5);
    check_plan(&plan);
    CHECK(turn > 0);
}

/* The masters are durable.  Otherwise restarts would break exclusion (docs/design.md). */
static void restart_in_turn(void *arg)
{
    unsigned *turn = arg;

    if (*turn % 20 == 10)
        server_restart(&five.server[*turn / 20 % five.len]);
    ++*turn;
}

TEST(sixteen_threads_while_masters_restart)
{
    unsigned turn = 0;
    struct contend_plan plan = {
        .threads = 16,
        .rounds = 10,
        .disturb = restart_in_turn,
        .disturb_arg = &turn,
        .unlock_may_be_unheard = true,
    };

    for (unsigned i = 0; i < five.len; i++)
        server_kill(&five.server[i]);
    cluster_ready_durable(&five, 5);
    check_plan(&plan);
    CHECK(turn > 10);
}

/* The witnesses notice broken exclusion: half of the processes lock on another master. */
TEST(witnesses_see_what_they_should)
{
    struct contend_plan plan = {.threads = 1, .processes = 4, .rounds = 25, .linger_us = 2000};
    struct contend_report report;
    static char elsewhere[32];

    cluster_ready(&five, 5);
    (void)snprintf(elsewhere, sizeof elsewhere, "127.0.0.1:%u", five.server[4].port);
    five.len = 3;
    plan.masters = cluster_masters(&five);
    five.len = 5;
    plan.wrong_masters = elsewhere;
    contend(&plan, &report);
    CHECK_STR(report.failure, "");
    CHECK(report.overlaps > 0);
    CHECK(report.log_bad > 0);
    CHECK(report.counter < report.holds_wanted);
}

CHECK_MAIN({"sixteen_threads", sixteen_threads}, {"eight_processes", eight_processes},
           {"four_processes_of_four_threads", four_processes_of_four_threads},
           {"eight_processes_while_masters_pause", eight_processes_while_masters_pause},
           {"sixteen_threads_while_masters_restart", sixteen_threads_while_masters_restart},
           {"witnesses_see_what_they_should", witnesses_see_what_they_should})
