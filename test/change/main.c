/*
 * main.c - every order of events in which two machines change a set of masters.
 *
 *   test-change-orders [OPTION...] [SCENARIO...]
 *
 *   --list           list the scenarios
 *   --only WORDS     report this violation only (for mutants)
 *   --seconds N      give up after this time (300)
 *   --megabytes N    give up when more memory is needed (1500)
 *
 * world.h says what a world is.  Exit status 0: every scenario is clean and complete, or shows its
 * known limit; 1: something is wrong; 2: a scenario was given up, and proves nothing.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/machines.h"

enum { AB = 3, ABC = 7, ABD = 11, ABCD = 15, ADE = 25, CDE = 28, ABCDE = 31 };
enum { C = 4, BC = 6, D = 8, DE = 24 };

/* Lists of the first version, and wishes.  Bounds are chosen: all together take three minutes. */
static const struct scenario scenarios[] = {
    {
        .name = "break",
        .about = "one machine, links that break, and an answer that is slow",
        .first = ABC,
        .wishes = {{ABD, 0}, {0, 0}},
        .rounds = 2,
        .budget = {.hangs = 1, .breaks = 1, .slows = 1},
    },
    {
        .name = "slow",
        .about = "one machine, and masters that are slow",
        .first = ABC,
        .wishes = {{ABD, 0}, {0, 0}},
        .rounds = 2,
        .budget = {.hangs = 2, .ticks = 4},
    },
    {
        .name = "die",
        .about = "a machine dies, another finishes its work, and dies as well",
        .first = ABC,
        .wishes = {{ABD, ABD}, {0, 0}},
        .rounds = 3,
        .budget = {.hangs = 1, .kills = 2, .lates = 1},
    },
    {
        .name = "back",
        .about = "a machine dies, and another gives its work up",
        .first = ABC,
        .wishes = {{ABD, ABC}, {0, 0}},
        .gives_up = {{false, true}, {false, false}},
        .rounds = 3,
        .budget = {.hangs = 1, .kills = 2, .lates = 1},
    },
    {
        .name = "disjoint",
        .about = "two of three masters are replaced, by a machine that dies",
        .first = ABC,
        .wishes = {{ADE, ADE}, {0, 0}},
        .rounds = 3,
        .budget = {.hangs = 2, .kills = 1, .lates = 1},
    },
    {
        .name = "rivals",
        .about = "two machines with one wish",
        .first = ABC,
        .wishes = {{ABD, 0}, {ABD, 0}},
        .rounds = 2,
        .races = 1000,
        .budget = {.hangs = 1},
    },
    {
        .name = "opposed",
        .about = "two machines with two wishes",
        .first = ABC,
        .wishes = {{ABD, 0}, {ADE, 0}},
        .rounds = 2,
        .races = 1000,
        .budget = {.hangs = 1},
    },
    {
        .name = "forget",
        .about = "a machine dies, and a master loses its data",
        .first = ABC,
        .wishes = {{ABD, ABD}, {0, 0}},
        .rounds = 3,
        .budget = {.hangs = 1, .kills = 1, .forgets = 1},
    },
    {
        .name = "ballots",
        .about = "two machines agree on version 2, and a master loses its data",
        .first = ABC,
        .wishes = {{ABD, 0}, {ABCD, 0}},
        .rounds = 2,
        .last = 2,
        .budget = {.ticks = 3, .forgets = 1},
    },
    {
        .name = "empty",
        .about = "the master that joins is empty at first, and a machine dies",
        .first = ABC,
        .empty = D,
        .wishes = {{ABD, ABD}, {0, 0}},
        .rounds = 2,
        .budget = {.hangs = 1, .kills = 1, .ticks = 1},
    },
    {
        .name = "shrink",
        .about = "most masters of the new list have lost their data, and a machine dies",
        .first = ABCDE,
        .empty = DE,
        .wishes = {{CDE, CDE}, {0, 0}},
        .rounds = 2,
        .budget = {.hangs = 1, .kills = 1, .ticks = 1},
    },
    {
        .name = "together",
        .about =
            "the known limit of rule 4 (core/recall.c): all members forget in the first change",
        .first = ABC,
        .wishes = {{ABD, 0}, {ADE, 0}},
        .together = true,
        .limit = "two values are chosen for one version",
        .rounds = 2,
        .last = 2,
        .budget = {.ticks = 3, .forgets = 1},
    },
    {
        .name = "tokens",
        .about = "clients draw tokens while a machine works, whose links break",
        .first = ABC,
        .wishes = {{ABD, 0}, {0, 0}},
        .rounds = 2,
        .budget = {.breaks = 2, .draws = 3},
    },
    {
        .name = "floors",
        .about = "the same, with a machine that dies, and a master that loses its data",
        .first = ABC,
        .wishes = {{ABD, ABD}, {0, 0}},
        .rounds = 2,
        .budget = {.kills = 1, .forgets = 1, .draws = 2},
    },
    {
        .name = "count",
        .about = "a client draws a token step by step, with a query between any two of its steps",
        .first = ABC,
        .wishes = {{ABD, 0}, {0, 0}},
        .rounds = 1,
        .budget = {.locks = 1, .looks = 1},
    },
    {
        .name = "count-twice",
        .about = "the same, twice, while a master is removed",
        .first = ABC,
        .unreached = C,
        .wishes = {{AB, 0}, {0, 0}},
        .rounds = 1,
        .budget = {.locks = 2, .looks = 1},
    },
    {
        .name = "count-cut",
        .about = "the same, once, and links of the client and of the operator break",
        .first = ABC,
        .unreached = C,
        .wishes = {{AB, 0}, {0, 0}},
        .rounds = 1,
        .budget = {.locks = 1, .looks = 1, .cuts = 1, .breaks = 1},
    },
    {
        .name = "count-back",
        .about = "the same, and the operator dies, and another gives its work up",
        .first = ABC,
        .unreached = C,
        .wishes = {{AB, ABC}, {0, 0}},
        .gives_up = {{false, true}, {false, false}},
        .rounds = 2,
        .budget = {.locks = 1, .looks = 1, .kills = 1},
    },
    {
        .name = "count-rescue",
        .about = "the same, twice, while a set is rescued that has lost two of three masters",
        .first = ABC,
        .unreached = BC,
        .rescued = ADE,
        .budget = {.locks = 2, .looks = 2, .cuts = 1},
    },
    {
        .name = "help",
        .about = "clients write what was chosen",
        .first = ABC,
        .wishes = {{ABD, ABD}, {0, 0}},
        .rounds = 2,
        .budget = {.hangs = 1, .kills = 1, .helps = 2},
    },
};

static struct limits limits = {.megabytes = 1500, .seconds = 300};

static struct model model = {
    .words = sizeof(struct world) / 4,
    .begin = world_begin,
    .steps = world_steps,
    .tell = world_tell,
};

/* Returns the exit status. */
static int run(const struct scenario *which)
{
    static struct outcome found;
    size_t used;
    bool complete;

    scenario = which;
    used = which->budget.locks > 0 ? sizeof(struct world) : offsetof(struct world, drawer) + 3;
    model.used = (UINT64_C(1) << used / 4) - 1;
    explorer_run(&model, &limits, &found);
    complete = found.complete;
    if (which->limit != NULL && found.broken != NULL && strcmp(found.broken, which->limit) == 0) {
        printf("%s: %s, a known limit\n", which->name, found.broken);
        machines_free();
        return 0;
    }
    if (found.broken != NULL) {
        const char *broken;

        printf("%s: %s, after %u moves:\n", which->name, found.broken, found.trace_len);
        explorer_replay(&model, found.trace, found.trace_len, true, &broken);
    } else {
        printf("%s: %zu states, %zu steps, %u deep, %u machines%s\n", which->name, found.states,
               found.transitions, found.depth, machines_count(),
               complete ? "" : ": GIVEN UP, proves nothing");
    }
    fflush(stdout);
    if (which->races > 0 && world_only == NULL) {
        unsigned lost = race(which->races);

        printf("%s: %u races, %u without a winner\n", which->name, which->races, lost);
        complete = complete && lost == 0;
    }
    machines_free();
    return found.broken != NULL || which->limit != NULL ? 1 : complete ? 0 : 2;
}

static bool read_option(int argc, char **argv, int *i)
{
    if (strcmp(argv[*i], "--only") == 0 && *i + 1 < argc)
        world_only = argv[++*i];
    else if (strcmp(argv[*i], "--seconds") == 0 && *i + 1 < argc)
        limits.seconds = (unsigned)strtoul(argv[++*i], NULL, 10);
    else if (strcmp(argv[*i], "--megabytes") == 0 && *i + 1 < argc)
        limits.megabytes = (unsigned)strtoul(argv[++*i], NULL, 10);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    int status = 0, picked = 0;

    for (int i = 1; i < argc; i++) {
        bool known = read_option(argc, argv, &i);

        for (size_t s = 0; s < sizeof scenarios / sizeof scenarios[0]; s++) {
            if (strcmp(argv[i], "--list") == 0)
                printf("%-10s %s\n", scenarios[s].name, scenarios[s].about);
            else if (known || strcmp(argv[i], scenarios[s].name) != 0)
                continue;
            else
                status |= run(&scenarios[s]);
            known = true;
            picked++;
        }
        if (!known) {
            fprintf(stderr, "%s: what is it?\n", argv[i]);
            return 2;
        }
    }
    for (size_t s = 0; picked == 0 && s < sizeof scenarios / sizeof scenarios[0]; s++)
        status |= run(&scenarios[s]);
    return status & 1 ? 1 : status;
}
