/*
 * main.c - every order of everything, in small worlds, with the real machine of founder.c.
 *
 *   test-founders [OPTION...] [SCENARIO...]
 *
 *   --list           list the scenarios
 *   --only WORDS     report this violation only (for mutants)
 *   --megabytes N    give up when more memory is needed (3000)
 *
 * What is checked is what test/models/founding-check.c checks, except for locks:
 *  - Two sets that have members share no master, except one that forgot its part in a decision.
 *  - All masters of a member's list carried its number at one time.
 *  - A set that was reported has a majority from then on, except masters that forgot.
 *  - From every world, without more faults, a set can be founded, or a founder says what is in the
 *    way.  With an operator, who starts founders again, a whole set can be founded.
 *
 * Exit status 0: each scenario is clean.  1: one is not.  2: one was given up, and proves nothing.
 */
#include "founder/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEGABYTES 3000
#define SECONDS 600

struct scenario {
    const char *name, *lists, *about;
    unsigned forgets, crashes, delays, changes;
    bool begun; /* Two of three masters are members of a set, and the third is claimed for it. */
    bool loose; /* Do not check what must stay possible. */
    bool large; /* Only if it is named: it takes a minute and 2 GB. */
};

/* Chosen: as much as takes a minute. */
static const struct scenario scenarios[] = {
    {.name = "race", .lists = "123,345", .about = "two lists that share a master"},
    {.name = "race-late", .lists = "123,345", .about = "the same, a late command", .delays = 1},
    {.name = "race-forget",
     .lists = "123,345",
     .about = "the same, a master forgets",
     .forgets = 1},
    {.name = "race-dies", .lists = "123,345", .about = "the same, a founder dies", .crashes = 1},
    {.name = "same", .lists = "123,123", .about = "two founders of a list, one dies", .crashes = 1},
    {.name = "three", .lists = "12,12,23", .about = "two founders of a list, one of another"},
    {
        .name = "three-dies",
        .lists = "12,12,23",
        .about = "the same, a founder dies",
        .crashes = 1,
        .loose = true,
    },
    {
        .name = "three-late",
        .lists = "12,12,23",
        .about = "the same, a late command",
        .delays = 1,
        .loose = true,
        .large = true,
    },
    {
        .name = "four",
        .lists = "12,12,1,2",
        .about = "two founders of a list, and two of parts of it",
        .loose = true,
    },
    {.name = "circle", .lists = "12,23,13", .about = "three lists, any two share a master"},
    {
        .name = "version",
        .lists = "123,34",
        .about = "a set that is not wholly founded gets another version",
        .changes = 2,
        .begun = true,
        .loose = true,
    },
    {
        .name = "half",
        .lists = "123,2,3",
        .about = "a set that is not wholly founded, and a master that forgets",
        .forgets = 1,
        .begun = true,
        .loose = true,
    },
};

#define SCENARIOS_LEN (sizeof scenarios / sizeof scenarios[0])

/* ---- What must stay possible ---- */

static bool is_founded_wholly(const void *world)
{
    return world_is_founded(world, true);
}

static bool is_founded_or_told(const void *world)
{
    const struct world *w = world;

    for (unsigned i = 0; i < bounds.founders; i++)
        if (w->actors[i].machine.phase == FOUNDER_REFUSED)
            return true;
    return world_is_founded(w, false);
}

static bool is_plain(struct move move)
{
    return move.c == PLAIN;
}

static bool is_no_fault(struct move move)
{
    return move.c != FAULT;
}

static bool is_sought(const char *words)
{
    return world_sought == NULL || strcmp(world_sought, words) == 0;
}

static void find_stuck(struct outcome *outcome)
{
    static const char *const nothing = "nothing can be founded any more, and nobody says why";
    static const char *const not_whole = "not even an operator can found a whole set any more";

    if (is_sought(nothing) && explorer_stuck(is_plain, is_founded_or_told) > 0)
        outcome->broken = nothing;
    else if (is_sought(not_whole) && explorer_stuck(is_no_fault, is_founded_wholly) > 0)
        outcome->broken = not_whole;
}

/* ---- Stories ---- */

static void tell_master(const struct world *w, unsigned k)
{
    static const char *const has[] = {"nothing", "a claim of", "a set of"};
    const struct master *m = &w->masters[k];

    printf("%u has %s", k + 1, has[m->has]);
    if (m->has != HAS_NOTHING)
        printf(" %s, number %u", world_list_text(m->list), m->number);
    if (m->ver > 1)
        printf(", version %u", m->ver);
    printf("\n");
}

static void tell_founder(const struct world *w, unsigned i, const char *what)
{
    static const char *const phases[] = {
        [FOUNDER_IDLE] = "is idle",        [FOUNDER_WAITING] = "waits",
        [FOUNDER_CLAIMING] = "claims",     [FOUNDER_LOOKING] = "looks",
        [FOUNDER_WRITING] = "writes",      [FOUNDER_WITHDRAWING] = "withdraws",
        [FOUNDER_FOUNDED] = "has FOUNDED", [FOUNDER_REFUSED] = "is REFUSED",
        [FOUNDER_STOPPED] = "is stopped",
    };

    printf("%c %s, and %s", 'A' + (int)i, what, phases[w->actors[i].machine.phase]);
}

static void tell(const void *before, const void *after, struct move move)
{
    static const char *const commands[] = {"", "claim", "look", "write", "withdraw"};
    const struct world *w = before, *next = after;
    unsigned m = (unsigned)__builtin_popcount(bounds.lists[move.a] & ((1u << move.b) - 1));
    const char *command = commands[w->actors[move.a].machine.asked[m]];
    char what[40];

    switch ((enum what)move.kind) {
    case DO_EXECUTE:
        snprintf(what, sizeof what, "sends %s", command);
        tell_founder(next, move.a, what);
        printf("; ");
        tell_master(next, move.b);
        return;
    case DO_ARRIVE:
        printf("the late %s arrives; ", commands[w->mail.command]);
        tell_master(next, move.b);
        return;
    case DO_FORGET:
    case DO_CHANGE:
        tell_master(next, move.b);
        return;
    case DO_DELAY:
        snprintf(what, sizeof what, "does not wait for the %s of %u", command, move.b + 1);
        tell_founder(next, move.a, what);
        break;
    case DO_BEGIN:
        tell_founder(next, move.a, "begins");
        break;
    case DO_STOP:
        tell_founder(next, move.a, "is stopped");
        break;
    case DO_DIE:
        tell_founder(next, move.a, "dies");
        break;
    case DO_REVIVE:
        tell_founder(next, move.a, "starts again");
        break;
    }
    printf("\n");
}

/* ---- Runs ---- */

static void set_bounds(const struct scenario *scenario)
{
    unsigned n = 0;

    memset(&bounds, 0, sizeof bounds);
    for (const char *p = scenario->lists; *p != '\0'; p++) {
        unsigned k = (unsigned)(*p - '1');

        if (*p == ',') {
            n++;
            continue;
        }
        bounds.lists[n] |= (uint8_t)(1u << k);
        bounds.masters = k >= bounds.masters ? k + 1 : bounds.masters;
    }
    bounds.founders = n + 1;
    bounds.forgets = scenario->forgets;
    bounds.crashes = scenario->crashes;
    bounds.delays = scenario->delays;
    bounds.changes = scenario->changes;
    bounds.begun = scenario->begun;
}

static int explore(const struct scenario *scenario, unsigned megabytes)
{
    static const struct model model = {
        .words = sizeof(struct world) / 4,
        .used = (UINT64_C(1) << sizeof(struct world) / 4) - 1,
        .begin = world_begin,
        .steps = world_steps,
        .tell = tell,
    };
    const struct limits limits = {.megabytes = megabytes, .seconds = SECONDS};
    static struct outcome outcome;
    const char *broken;

    set_bounds(scenario);
    explorer_run(&model, &limits, &outcome);
    if (outcome.broken == NULL && outcome.complete && !scenario->loose)
        find_stuck(&outcome);
    printf("%-12s %9zu worlds, %10zu moves, %3u deep, %5.1f s: %s\n", scenario->name,
           outcome.states, outcome.transitions, outcome.depth, outcome.cpu_s,
           outcome.broken     ? "WRONG"
           : outcome.complete ? "nothing wrong"
                              : "CUT SHORT");
    fflush(stdout);
    if (outcome.broken == NULL)
        return outcome.complete ? 0 : 2;
    printf("%s: %s, after %u moves:\n", scenario->name, outcome.broken, outcome.trace_len);
    explorer_replay(&model, outcome.trace, outcome.trace_len, true, &broken);
    return 1;
}

static bool is_chosen(const char *name, bool is_large, int argc, char **argv, int at)
{
    for (int i = at; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return at == argc && !is_large;
}

int main(int argc, char **argv)
{
    unsigned megabytes = MEGABYTES;
    unsigned explored = 0;
    int at = 1, worst = 0;
    bool list = false;

    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--list") == 0)
            list = true;
        else if (strcmp(argv[at], "--only") == 0 && at + 1 < argc)
            world_sought = argv[++at];
        else if (strcmp(argv[at], "--megabytes") == 0 && at + 1 < argc)
            megabytes = (unsigned)strtoul(argv[++at], NULL, 10);
        else
            return fprintf(stderr, "what is %s?\n", argv[at]), 2;
    }
    for (size_t i = 0; i < SCENARIOS_LEN; i++) {
        int status = 0;

        if (!is_chosen(scenarios[i].name, scenarios[i].large && !list, argc, argv, at))
            continue;
        explored++;
        if (list)
            printf("%-12s %-9s %s\n", scenarios[i].name, scenarios[i].lists, scenarios[i].about);
        else
            status = explore(&scenarios[i], megabytes);
        worst = status > worst ? status : worst;
    }
    return explored > 0 ? worst : 2;
}
