/*
 * test-live-readme.c - compiles and runs the program in README.md as it is printed there.  Only
 * the masters differ, and the timeouts are longer, for a busy machine.
 */
#include "test/lib/check.h"

#include <err.h>

#include "live/cluster.h"
#include "redlock/client/options.h"
#include "redlock/redlock.h"

#define PATIENCE_MS 10000

static struct cluster cluster;
static unsigned named; /* The number of masters that it names; no client connects to them. */
static unsigned worked, committed, counted;

static void work(void)
{
    worked++;
    counted = cluster_count(&cluster, "jobs/7", NULL);
}

static void commit(void)
{
    committed++;
}

static int open_here(const struct redlock_options *opts, struct redlock **ret_rl)
{
    struct redlock_options here = *opts;
    struct options checked;

    CHECK_INT(options_copy(opts, &checked), REDLOCK_OK);
    named = checked.masters_len;
    options_done(&checked);
    here.masters = cluster_masters(&cluster);
    here.reply_timeout_ms = here.connect_timeout_ms = PATIENCE_MS;
    return redlock_open(&here, ret_rl);
}

#define redlock_open open_here
static void example(void)
{
    named = worked = counted = committed = 0;
#include "readme-example.inc" /* Its own #include finds the header included already. */
}
#undef redlock_open

TEST(one_works)
{
    cluster_ready(&cluster, 3);
    example();
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
    example();
    CHECK_UINT(worked, 0);
    CHECK_UINT(committed, 0);
    CHECK_UINT(cluster_count(&cluster, "jobs/7", "foreign"), 2);
}

CHECK_MAIN({"one_works", one_works}, {"others_leave_it", others_leave_it})
