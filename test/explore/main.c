/*
 * main.c - every order of everything, in small worlds, with the real machine.
 *
 *   test-explore [OPTION...] [SCENARIO...]
 *
 *   --list           list the scenarios
 *   --tell           print the story of an expected violation, too
 *   --only WORDS     report this violation only (for mutants)
 *   --ticks N        end all worlds after N ticks at the latest
 *   --twice          explore again, with worlds recognised by all their bytes.  At the
 *                    starts of ticks, both searches must find the same number of worlds
 *                    that differ by model_hash().  (Within a tick, the order of the
 *                    masters' turns matters.)
 *   --megabytes N    give up when more memory is needed (1000)
 *
 * model.h says what a world is, and what is not tried.  Exit status 0: each scenario
 * ended as expected; 1: one did not; 2: one was given up, and proves nothing.
 */
#include "explore/explore.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MEGABYTES 1000

/* The number of clients, and these spans in ticks: the world, a lease, the allowance in it, the
 * reply timeout, and how long a client keeps trying. */
#define SIZES(clients_, ticks_, lease_, allowance_, timeout_, wait_)                \
    .clients = clients_, .ticks = ticks_, .lease = lease_, .allowance = allowance_, \
    .timeout = timeout_, .wait = wait_

/* The number of masters, and the configurations, as bits of masters: from a list to a list. */
#define CHANGE(masters_, versions_len_, ...) \
    .masters = masters_, .versions_len = versions_len_, .versions = {__VA_ARGS__}

/* Chosen: all together take a minute.  test/mutants/mutants.txt says what each catches. */
static const struct scenario scenarios[] = {
    {
        .name = "contend",
        .about = "two clients try once each, and release",
        SIZES(2, 8, 5, 2, 2, 0),
        .at_most = {[RARE_HANG] = 2, [RARE_DAWDLE] = 1},
    },
    {
        .name = "retry",
        .about = "two clients try again and again",
        SIZES(2, 7, 5, 2, 1, 3),
        .at_most = {[RARE_HANG] = 1, [RARE_DAWDLE] = 1},
    },
    {
        .name = "wake",
        .about = "two clients; an announcement may begin a round at any time",
        SIZES(2, 6, 5, 2, 1, 3),
        .at_most = {[RARE_HANG] = 1, [RARE_WAKE] = 2},
    },
    {
        .name = "pass",
        .about = "two clients whose tokens wait; a release passes the key on",
        SIZES(2, 6, 3, 0, 1, 3),
        .stands = true,
        .at_most = {[RARE_HANG] = 2},
    },
    {
        .name = "pass-break",
        .about = "the same, and a link that breaks",
        SIZES(2, 5, 4, 1, 1, 3),
        .stands = true,
        .slow = true,
        .at_most = {[RARE_BREAK] = 1},
    },
    {
        .name = "pass-mute",
        .about = "a client whose token waits; a master may not vote for a while",
        SIZES(1, 5, 4, 1, 1, 4),
        .stands = true,
        .at_most = {[RARE_HANG] = 3, [RARE_DAWDLE] = 1, [RARE_MUTE] = 1},
    },
    {
        .name = "pass-error",
        .about = "the same, and a command that fails",
        SIZES(2, 6, 4, 1, 1, 3),
        .stands = true,
        .at_most = {[RARE_ERROR] = 1},
    },
    {
        .name = "renew",
        .about = "two clients; the holder renews the lock",
        SIZES(2, 9, 6, 1, 2, 0),
        .keeps = true,
        .renew = true,
        .at_most = {[RARE_HANG] = 2, [RARE_DAWDLE] = 1},
    },
    {
        .name = "break",
        .about = "one client, and a link that breaks",
        SIZES(1, 9, 6, 2, 1, 3),
        .slow = true,
        .renew = true,
        .at_most = {[RARE_HANG] = 2, [RARE_BREAK] = 1},
    },
    {
        .name = "cancel",
        .about = "one client that may cancel at any time",
        SIZES(1, 9, 5, 2, 2, 3),
        .keeps = true,
        .slow = true,
        .cancels = true,
        .at_most = {[RARE_HANG] = 1, [RARE_DAWDLE] = 1, [RARE_BREAK] = 1},
    },
    {
        .name = "steal",
        .about = "two clients, and a link that breaks",
        SIZES(2, 7, 5, 2, 1, 0),
        .at_most = {[RARE_HANG] = 1, [RARE_BREAK] = 1},
    },
    {
        .name = "silence",
        .about = "two clients, and links that are cut in one direction, and may break later",
        SIZES(2, 7, 5, 2, 1, 0),
        .at_most = {[RARE_CUT] = 1, [RARE_BREAK] = 1},
    },
    {
        .name = "errors",
        .about = "two clients, masters that answer with errors, and an unreliable link",
        SIZES(2, 8, 6, 1, 2, 2),
        .renew = true,
        .at_most = {[RARE_ERROR] = 2, [RARE_CUT] = 1},
    },
    {
        .name = "extend",
        .about = "the owner extends by less than is left",
        SIZES(1, 11, 6, 2, 2, 0),
        .extension = 4,
        .margin = 1,
        .renew = true,
        .at_most = {[RARE_EXTEND] = 2, [RARE_HANG] = 1, [RARE_DAWDLE] = 1},
    },
    {
        .name = "forget",
        .about = "one client, and masters that lose their data",
        SIZES(1, 11, 6, 2, 2, 0),
        .margin = 1,
        .renew = true,
        .at_most = {[RARE_HANG] = 1, [RARE_DAWDLE] = 1, [RARE_FORGET] = 2},
    },
    {
        .name = "regain",
        .about = "two clients; the holder gives the key back to a master that lost it",
        SIZES(2, 9, 4, 1, 1, 0),
        .renew = true,
        .at_most = {[RARE_BREAK] = 1},
    },
    {
        .name = "regain-many",
        .about = "one client; a master loses one of several names, and a link breaks",
        SIZES(1, 9, 6, 1, 1, 0),
        .renew = true,
        .many = true,
        .at_most = {[RARE_FORGET] = 1, [RARE_BREAK] = 1},
    },
    {
        .name = "regain-forget",
        .about = "one client; each master loses its data once",
        SIZES(1, 12, 6, 2, 2, 0),
        .renew = true,
        .at_most = {[RARE_HANG] = 1, [RARE_FORGET] = 3},
    },
    {
        .name = "fence",
        .about = "two clients that draw fencing tokens, and masters with different counters",
        SIZES(2, 9, 6, 1, 2, 0),
        .fence = true,
        .counters = {1, 2, 3},
        .at_most = {[RARE_HANG] = 1, [RARE_DAWDLE] = 1},
    },
    {
        .name = "fence-error",
        .about = "the same in fewer ticks, and a command that fails",
        SIZES(2, 4, 6, 1, 2, 0),
        .fence = true,
        .counters = {3, 1, 2},
        .at_most = {[RARE_HANG] = 2, [RARE_ERROR] = 1},
    },
    {
        .name = "fence-break",
        .about = "the same, and a link that breaks",
        SIZES(2, 4, 6, 1, 2, 0),
        .fence = true,
        .counters = {3, 1, 2},
        .at_most = {[RARE_HANG] = 1, [RARE_BREAK] = 1},
    },
    {
        .name = "fence-late",
        .about = "two clients that draw fencing tokens, and keys that expire before the count",
        SIZES(2, 8, 4, 1, 4, 0),
        .keeps = true,
        .fence = true,
        .counters = {1, 1, 1},
        .at_most = {[RARE_HANG] = 1, [RARE_DAWDLE] = 2},
    },
    {
        .name = "fence-step",
        .about = "two clients that draw fencing tokens, and masters whose clocks are stepped",
        SIZES(2, 7, 6, 1, 2, 2),
        .fence = true,
        .counters = {1, 1, 2},
        .stepped = true,
        .at_most = {[RARE_FORGET] = 2},
    },
    {
        .name = "move",
        .about = "{a} becomes {b}; the owner extends, with either list",
        SIZES(2, 7, 3, 0, 2, 0),
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
        .at_most = {[RARE_EXTEND] = 2, [RARE_LOOK] = 1},
    },
    {
        .name = "move-extend",
        .about = "one client; {a} becomes {a, b, c}; the owner extends by less than is left",
        SIZES(1, 9, 6, 0, 2, 0),
        .extension = 1,
        .if_named = true,
        CHANGE(3, 3, {1, 1}, {1, 7}, {7, 7}),
        .at_most = {[RARE_EXTEND] = 3, [RARE_LOOK] = 1},
    },
    {
        .name = "move-grow",
        .about = "{a} becomes {a, b, c}",
        SIZES(2, 6, 3, 0, 2, 0),
        .if_named = true,
        CHANGE(3, 3, {1, 1}, {1, 7}, {7, 7}),
        .at_most = {[RARE_EXTEND] = 1, [RARE_LOOK] = 1},
    },
    {
        .name = "move-three",
        .about = "{a, b, c} becomes {a, b, d}",
        SIZES(2, 6, 3, 0, 2, 0),
        .keeps = true,
        .if_named = true,
        CHANGE(4, 3, {7, 7}, {7, 11}, {11, 11}),
    },
    {
        .name = "move-adopt",
        .about = "{a} becomes {b}; another process adopts the token",
        SIZES(2, 7, 3, 0, 2, 0),
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
        .at_most = {[RARE_EXTEND] = 1, [RARE_LOOK] = 1, [RARE_ADOPT] = 1},
    },
    {
        .name = "move-fence",
        .about = "{a} becomes {b}; the clients draw fencing tokens",
        SIZES(2, 7, 3, 0, 3, 0),
        .fence = true,
        .counters = {5, 1},
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
        .at_most = {[RARE_LOOK] = 1},
    },
    {
        .name = "move-forget",
        .about = "{a, b} becomes {b, c}; a master loses its data",
        SIZES(2, 6, 3, 0, 2, 0),
        .keeps = true,
        .if_named = true,
        CHANGE(3, 3, {3, 3}, {3, 6}, {6, 6}),
        .at_most = {[RARE_FORGET] = 1},
    },
    {
        .name = "move-many",
        .about = "one client; {a} becomes {a, b, c}; a master loses one of several names",
        SIZES(1, 9, 6, 0, 2, 0),
        .extension = 2,
        .many = true,
        .if_named = true,
        CHANGE(3, 3, {1, 1}, {1, 7}, {7, 7}),
        .at_most = {[RARE_FORGET] = 1, [RARE_EXTEND] = 2, [RARE_LOOK] = 1},
    },
    {
        .name = "move-numbers",
        .about = "{a} becomes {b}, and that {c}, which has the number of a",
        SIZES(1, 7, 3, 0, 5, 0),
        .renumbered = true,
        .numbers = {0, 1, 0},
        .if_named = true,
        CHANGE(3, 5, {1, 1}, {1, 2}, {2, 2}, {2, 4}, {4, 4}),
        .at_most = {[RARE_HANG] = 1, [RARE_LOOK] = 2, [RARE_EXTEND] = 1},
    },
    {
        .name = "move-break",
        .about = "one client; {a} becomes {b}, and a link breaks",
        SIZES(1, 7, 3, 0, 2, 0),
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
        .at_most = {[RARE_EXTEND] = 2, [RARE_LOOK] = 1, [RARE_BREAK] = 1},
    },
    {
        .name = "move-lose",
        .about = "one client; {a} becomes {b}, and a master loses its data",
        SIZES(1, 8, 3, 0, 2, 0),
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
        .at_most = {[RARE_EXTEND] = 2, [RARE_LOOK] = 1, [RARE_FORGET] = 1},
    },
    {
        .name = "move-back",
        .about = "one client; {a} is to become {b}, which is given up, and tried again",
        SIZES(1, 6, 5, 0, 2, 2),
        .if_named = true,
        CHANGE(2, 4, {1, 1}, {1, 2}, {1, 1}, {1, 2}),
        .at_most = {[RARE_EXTEND] = 1, [RARE_BREAK] = 1, [RARE_LOOK] = 2},
    },
    {
        .name = "move-wide",
        .about = "the same as move, and one hangs",
        SIZES(2, 7, 3, 0, 2, 0),
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
        .at_most = {[RARE_EXTEND] = 1, [RARE_LOOK] = 1, [RARE_HANG] = 1},
    },
    {
        .name = "move-apart",
        .about = "{a, b, c} becomes {a, d, e}",
        SIZES(2, 5, 3, 0, 2, 0),
        .keeps = true,
        .if_named = true,
        CHANGE(5, 3, {7, 7}, {7, 25}, {25, 25}),
    },
    {
        .name = "move-no-wait",
        .about = "the operator does not wait for the longest lease (M5)",
        .expected = "two clients hold the lock",
        SIZES(2, 7, 3, 0, 2, 0),
        .left_out = NO_WAIT,
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
    },
    {
        .name = "move-no-void",
        .about = "votes of masters that show a greater version count (M1)",
        .expected = "two clients hold the lock",
        SIZES(2, 7, 3, 0, 2, 0),
        .left_out = NO_VOID,
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
    },
    {
        .name = "move-no-raise",
        .about = "counters are not raised (F4)",
        .expected = "a fencing token is smaller than one drawn before the lock was asked for",
        SIZES(2, 7, 3, 0, 3, 0),
        .fence = true,
        .counters = {5, 1},
        .left_out = NO_RAISE,
        .if_named = true,
        CHANGE(2, 3, {1, 1}, {1, 2}, {2, 2}),
    },
    {
        .name = "move-no-watch",
        .about = "a master that lost its data is not watched (M7)",
        .expected = "two clients hold the lock",
        SIZES(2, 6, 3, 0, 2, 0),
        .keeps = true,
        .left_out = NO_WATCH,
        .if_named = true,
        CHANGE(4, 3, {7, 7}, {7, 11}, {11, 11}),
        .at_most = {[RARE_FORGET] = 1},
    },
    {
        .name = "amnesia",
        .about = "what the published algorithm cannot survive: a master that loses its data",
        .expected = "two clients hold the lock",
        SIZES(2, 8, 5, 2, 2, 0),
        .keeps = true,
        .at_most = {[RARE_FORGET] = 1},
    },
};

#define SCENARIOS_LEN (sizeof scenarios / sizeof scenarios[0])

/* Processor time, because other programs may keep the machine busy. */
static double seconds(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct options {
    bool list, twice;
    unsigned ticks;
    struct sought sought;
};

struct total {
    uint64_t worlds, moves;
    double seconds;
};

static const char *verdict(const struct scenario *scenario, int status)
{
    if (status == EXPLORE_CUT_SHORT)
        return "CUT SHORT";
    if (scenario->expected != NULL)
        return status == EXPLORE_EXPECTED ? "wrong, as expected" : "WRONG: other than expected";
    return status == EXPLORE_FINE ? "nothing wrong" : "WRONG";
}

/* Returns the exit status. */
static int explore_scenario(const struct scenario *scenario, const struct sought *sought,
                            struct total *total, struct explored *ret)
{
    double since = seconds(), took;
    int status = explore(scenario, sought, ret);

    took = seconds() - since;
    printf("%-12s %9zu worlds, %10" PRIu64 " moves, %3u deep, %5.1f s: %s\n", scenario->name,
           ret->worlds, ret->moves, ret->depth, took, verdict(scenario, status));
    total->worlds += ret->worlds;
    total->moves += ret->moves;
    total->seconds += took;
    if (status == EXPLORE_CUT_SHORT)
        return 2;
    return status == (scenario->expected != NULL ? EXPLORE_EXPECTED : EXPLORE_FINE) ? 0 : 1;
}

static int explore_twice(const struct scenario *scenario, struct sought sought, struct total *total)
{
    struct explored all[2];

    sought.starts = true;
    for (unsigned i = 0; i < 2; i++) {
        int status;

        sought.plain = i == 1;
        status = explore_scenario(scenario, &sought, total, &all[i]);
        if (status != 0)
            return status;
    }
    printf("%-12s %9zu and %zu start a tick\n", "", all[0].starts, all[1].starts);
    return all[0].starts == all[1].starts || scenario->expected != NULL ? 0 : 1;
}

static int explore_so(struct scenario scenario, const struct options *options, struct total *total)
{
    struct explored all;

    if (options->ticks < scenario.ticks)
        scenario.ticks = options->ticks;
    return options->twice ? explore_twice(&scenario, options->sought, total)
                          : explore_scenario(&scenario, &options->sought, total, &all);
}

static void list_scenario(const struct scenario *scenario)
{
    static const char *const names[RARE_LEN] = {
        [RARE_HANG] = "hangs",
        [RARE_DAWDLE] = "turns dawdled",
        [RARE_CUT] = "links cut",
        [RARE_BREAK] = "links broken",
        [RARE_MUTE] = "masters that may not vote",
        [RARE_ERROR] = "errors",
        [RARE_FORGET] = "data lost",
        [RARE_EXTEND] = "extensions",
        [RARE_WAKE] = "wake-ups",
        [RARE_ADOPT] = "adoptions",
        [RARE_LOOK] = "versions looked up",
    };

    printf("%s: %s\n", scenario->name, scenario->about);
    printf("    %u clients, %u masters, %u ticks; lease %u, allowance %u (clocks of the masters "
           "%s), reply timeout %u, wait %u, margin %u\n",
           scenario->clients, scenario->masters != 0 ? scenario->masters : 3, scenario->ticks,
           scenario->lease, scenario->allowance, scenario->slow ? "slow" : "fast",
           scenario->timeout, scenario->wait, scenario->margin);
    printf("    at most:");
    for (unsigned i = 0; i < RARE_LEN; i++)
        if (scenario->at_most[i] > 0)
            printf(" %s: %u;", names[i], scenario->at_most[i]);
    printf("\n    at any time: acquire%s%s; renewal: %s\n", scenario->keeps ? "" : ", release",
           scenario->cancels ? ", cancel" : "", scenario->renew ? "yes" : "no");
    if (scenario->expected != NULL)
        printf("    expected: %s\n", scenario->expected);
}

static bool is_picked(const struct scenario *scenario, int names_len, char **names)
{
    for (int i = 0; i < names_len; i++)
        if (strcmp(names[i], scenario->name) == 0)
            return true;
    return names_len == 0 && !scenario->if_named;
}

static bool is_known(char *name)
{
    for (size_t i = 0; i < SCENARIOS_LEN; i++)
        if (is_picked(&scenarios[i], 1, &name))
            return true;
    return false;
}

/* The value of an option, if argv[*at] is that option.  *at moves to the value. */
static const char *value(int argc, char **argv, int *at, const char *name)
{
    if (strcmp(argv[*at], name) != 0 || *at + 1 >= argc)
        return NULL;
    return argv[++*at];
}

static bool parse_option(int argc, char **argv, int *at, struct options *options)
{
    const char *text;

    if (strcmp(argv[*at], "--list") == 0)
        options->list = true;
    else if (strcmp(argv[*at], "--tell") == 0)
        options->sought.tell = true;
    else if (strcmp(argv[*at], "--twice") == 0)
        options->twice = true;
    else if ((text = value(argc, argv, at, "--only")) != NULL)
        options->sought.only = text;
    else if ((text = value(argc, argv, at, "--ticks")) != NULL)
        options->ticks = (unsigned)strtoul(text, NULL, 10);
    else if ((text = value(argc, argv, at, "--megabytes")) != NULL)
        options->sought.memory_max = strtoul(text, NULL, 10) << 20;
    else
        return false;
    return true;
}

/* The names of scenarios begin at *ret_at.  Returns false if the arguments are wrong. */
static bool parse(int argc, char **argv, struct options *options, int *ret_at)
{
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++)
        if (!parse_option(argc, argv, &at, options))
            return false;
    *ret_at = at;
    for (; at < argc; at++)
        if (!is_known(argv[at]))
            return false;
    return true;
}

static void tell_total(const struct total *total)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%-12s %9" PRIu64 " worlds, %10" PRIu64 " moves, %14.1f s, %ld MB\n", "together",
           total->worlds, total->moves, total->seconds, usage.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
    struct options options = {.ticks = UINT_MAX, .sought = {.memory_max = (size_t)MEGABYTES << 20}};
    struct total total = {0};
    int status = 0, at = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse(argc, argv, &options, &at)) {
        fprintf(stderr, "usage: test-explore [--list] [--tell] [--only WORDS] [--ticks N] "
                        "[--twice] [--megabytes N] [SCENARIO...]\n");
        return 64;
    }
    for (size_t i = 0; i < SCENARIOS_LEN && status == 0; i++) {
        if (!is_picked(&scenarios[i], argc - at, argv + at))
            continue;
        if (options.list)
            list_scenario(&scenarios[i]);
        else
            status = explore_so(scenarios[i], &options, &total);
    }
    if (!options.list)
        tell_total(&total);
    return status;
}
