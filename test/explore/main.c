/*
 * main.c - every order of everything, in a small world, with the real machine.
 *
 *   test-explore [--list] [--worlds N] [SCENARIO...]
 *
 * Exit status 0: nothing is wrong; 1: something is; 2: the exploration was cut
 * short by --worlds, so that nothing is known.
 */
#include "explore/explore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As much as fits into a minute together.  What may happen in each, and how often,
 * is in model.h; the mutants say what each is good for. */
static const struct scenario scenarios[] = {
    {.name = "contend",
     .about = "two clients try once each, and give back",
     .clients = 2,
     .ticks = 8,
     .lease = 5,
     .allowance = 2,
     .timeout = 2,
     .releases = true,
     .hangs = 2,
     .dawdles = 1},
    {.name = "retry",
     .about = "two clients try again and again",
     .clients = 2,
     .ticks = 7,
     .lease = 5,
     .allowance = 2,
     .timeout = 1,
     .wait = 3,
     .releases = true,
     .hangs = 1,
     .dawdles = 1},
    {.name = "renew",
     .about = "two clients, and who has the lock renews it",
     .clients = 2,
     .ticks = 9,
     .lease = 6,
     .allowance = 1,
     .timeout = 2,
     .renew = true,
     .hangs = 2,
     .dawdles = 1},
    {.name = "break",
     .about = "one client, and a link that breaks",
     .clients = 1,
     .ticks = 9,
     .lease = 6,
     .allowance = 2,
     .timeout = 1,
     .slow = true,
     .wait = 3,
     .renew = true,
     .releases = true,
     .hangs = 2,
     .breaks = 1},
    {.name = "cancel",
     .about = "one client that thinks better of it",
     .clients = 1,
     .ticks = 9,
     .lease = 5,
     .allowance = 2,
     .timeout = 2,
     .slow = true,
     .wait = 3,
     .cancels = true,
     .hangs = 1,
     .dawdles = 1,
     .breaks = 1},
    {.name = "steal",
     .about = "two clients, and a link that breaks",
     .clients = 2,
     .ticks = 7,
     .lease = 5,
     .allowance = 2,
     .timeout = 1,
     .wait = 0,
     .releases = true,
     .hangs = 1,
     .breaks = 1},
    {.name = "forget",
     .about = "one client, and masters that lose their memory",
     .clients = 1,
     .ticks = 11,
     .lease = 6,
     .allowance = 2,
     .timeout = 2,
     .renew = true,
     .releases = true,
     .hangs = 1,
     .dawdles = 1,
     .forgets = 2},
};

static double seconds(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int explore_scenario(const struct scenario *scenario, uint32_t worlds_max)
{
    struct explored all;
    double since = seconds();
    int status;

    status = explore(scenario, worlds_max, &all);
    printf("%-12s %9" PRIu32 " worlds, %10" PRIu64 " moves, %3u deep, %5.1f s: %s\n",
           scenario->name, all.worlds, all.moves, all.depth, seconds() - since,
           status == 0   ? "nothing wrong"
           : status == 1 ? "WRONG"
                         : "CUT SHORT");
    return status;
}

static void list_scenario(const struct scenario *scenario)
{
    printf("%s: %s\n", scenario->name, scenario->about);
    printf("    %u clients, %u masters, %u ticks; lease %u, allowance %u (clocks of the masters "
           "%s), reply timeout %u, wait %u\n",
           scenario->clients, MASTERS, scenario->ticks, scenario->lease, scenario->allowance,
           scenario->slow ? "slow" : "fast", scenario->timeout, scenario->wait);
    printf("    at most: %u hangs, %u turns dawdled, %u links broken, %u memories lost\n",
           scenario->hangs, scenario->dawdles, scenario->breaks, scenario->forgets);
    printf("    at any time: acquire%s%s; renewal: %s\n", scenario->releases ? ", release" : "",
           scenario->cancels ? ", cancel" : "", scenario->renew ? "yes" : "no");
}

static bool is_picked(const struct scenario *scenario, int names_len, char **names)
{
    for (int i = 0; i < names_len; i++)
        if (strcmp(names[i], scenario->name) == 0)
            return true;
    return names_len == 0;
}

/* What is asked for: --list, --worlds, and from *ret_at on the names; false: nonsense. */
static bool parse(int argc, char **argv, bool *ret_list, uint32_t *ret_worlds_max, int *ret_at)
{
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--list") == 0)
            *ret_list = true;
        else if (strcmp(argv[at], "--worlds") == 0 && at + 1 < argc)
            *ret_worlds_max = (uint32_t)strtoul(argv[++at], NULL, 10);
        else
            return false;
    }
    *ret_at = at;
    return true;
}

int main(int argc, char **argv)
{
    uint32_t worlds_max = UINT32_MAX - 1;
    bool list = false;
    int status = 0, ran = 0, at = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (parse(argc, argv, &list, &worlds_max, &at)) {
        for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0] && status == 0; i++) {
            if (!is_picked(&scenarios[i], argc - at, argv + at))
                continue;
            ran++;
            if (list)
                list_scenario(&scenarios[i]);
            else
                status = explore_scenario(&scenarios[i], worlds_max);
        }
    }
    if (ran > 0)
        return status;
    fprintf(stderr, "usage: explore [--list] [--worlds N] [SCENARIO...]\n");
    return 64;
}
