/*
 * test-live-readme.c - compiles and runs the program in README.md as it is printed there.  Only
 * the masters differ, and the timeouts are longer, for a busy machine.
 */
#include "test/lib/check.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

#include "live/cluster.h"
#include "redlock/client/options.h"
#include "redlock/redlock.h"

#define PATIENCE_MS 10000

static struct cluster cluster;
static unsigned named; /* The number of masters that it names; no client connects to them. */
static unsigned worked, committed, counted;

/* The program says so when it would work, and when it would commit. */
static int note(const char *said)
{
    if (strcmp(said, "commit") == 0) {
        committed++;
        return 0;
    }
    CHECK_STR(said, "work");
    worked++;
    counted = cluster_count(&cluster, "jobs/7", NULL);
    return 0;
}

static int open_here(const struct redlock_options *opts, struct redlock **ret_rl)
{
    struct redlock_options here = *opts;
    struct options checked;

    CHECK_INT(options_copy(opts, NULL, &checked), REDLOCK_OK);
    named = checked.masters_len;
    options_done(&checked);
    here.masters = cluster_masters(&cluster);
    here.reply_timeout_ms = here.connect_timeout_ms = PATIENCE_MS;
    return redlock_open(&here, ret_rl);
}

int example(void);
#define main example
#define puts note
#define redlock_open open_here
#include "readme-example.inc" /* Its own #includes find the headers included already. */
#undef redlock_open
#undef puts
#undef main

static void check_example(int status)
{
    named = worked = counted = committed = 0;
    CHECK_INT(example(), status);
}

TEST(one_works)
{
    cluster_ready(&cluster, 3);
    check_example(0);
    CHECK_UINT(named, 3);
    CHECK_UINT(worked, 1);
    CHECK(counted >= 2); /* The program held the lock while it worked. */
    CHECK_UINT(committed, 1);
    CHECK_UINT(cluster_count(&cluster, "jobs/7", NULL), 0); /* It released the lock. */
}

/* Two of three masters store another token, so the third does not matter. */
TEST(others_leave_it)
{
    cluster_ready(&cluster, 3);
    for (unsigned m = 0; m < 2; m++)
        CHECK_STR(server_text(&cluster.server[m], "SET jobs/7 foreign PX 60000"), "OK");
    check_example(1);
    CHECK_UINT(worked, 0);
    CHECK_UINT(committed, 0);
    CHECK_UINT(cluster_count(&cluster, "jobs/7", "foreign"), 2);
}

CHECK_MAIN({"one_works", one_works}, {"others_leave_it", others_leave_it})
