/*
 * witness-check.c - what must be true in every state of witness.c, and how its stories are told.
 *
 *   model-witness                        the scenarios of the test
 *   model-witness bugs                   plants every bug, and shows that each is caught
 *   model-witness [OPTION=VALUE...]      one scenario:
 *
 *   masters=3      up to 5, with the one that forgets
 *   clients=2      that are there at one time, up to 2
 *   forgets=1 lost=1 backs=1  losses of data of m and of witnesses; clocks that are set back
 *   falsified=1    witnesses that say a wrong age because their clock was set forward
 *   lease=2 drift=1 visit=2  ticks: the longest lease; the drift of a clock in a window; from one
 *                  client to the next, in peace
 *   peace=1        0: do not check how long m waits
 *   memory=3000    MB
 *   seconds=600
 *   bug=NAME       first, because it sets the others; the names are below
 *
 * Exit status 0: nothing is wrong.  1: something is, and its story was told.  2: it was given up,
 * so that nothing is known.
 */
#include "models/witness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/states.h"

static struct states_limits limits = {.memory_mb = 3000, .seconds = 600};

static const char *judge(const void *state)
{
    const struct state *s = state;

    if (s->broken)
        return "m votes, and a lease that it granted before it forgot is alive";
    if (s->peace && !s->votes && s->waited > witness_wait_max())
        return "m waits longer than it should";
    return NULL;
}

static void tell_marks(const struct state *s)
{
    printf("  [lease %u;", s->lease);
    for (unsigned k = 0; k < witness_count(); k++) {
        const struct witness *w = &s->witnesses[k];

        if (w->nonce == 0)
            printf(" -");
        else if (w->future)
            printf(" X%u in the future", w->nonce);
        else
            printf(" X%u for %u", w->nonce, w->age);
    }
    printf("]");
}

static void tell(const void *from, const void *to, uint32_t step)
{
    const struct state *a = from, *b = to;
    unsigned i = step >> 8 & 255, k = step & 255;
    int name = 'A' + (int)i;
    bool said = b->clients[i < CLIENTS ? i : 0].old & ~a->clients[i < CLIENTS ? i : 0].old;

    switch ((enum what)(step >> 16)) {
    case COME:
        printf("client %c comes, and sees that m is warming with nonce X%u", name, a->nonce);
        break;
    case VISIT:
        printf("client %c asks witness %u, which says: %s", name, k + 1, said ? "old" : "not old");
        break;
    case INSTALL:
        printf("client %c installs m%s", name, b->votes ? "" : ", and is refused");
        break;
    case LEAVE:
        printf("client %c goes", name);
        break;
    case TICK:
        printf("-- a tick");
        break;
    case FAST:
    case SLOW:
        printf("the clock of witness %u %s a tick", k + 1, step >> 16 == FAST ? "gains" : "loses");
        break;
    case FORGET:
        printf("m forgets; its nonce is X%u from now on", b->nonce);
        break;
    case LOSE:
        printf("witness %u forgets", k + 1);
        break;
    case FORWARD:
        printf("the clock of witness %u is set forward; %s", k + 1,
               i == 0   ? "no client notices"
               : i == 3 ? "both clients notice"
               : i == 1 ? "client A notices"
                        : "client B notices");
        break;
    case BACK:
        printf("the clock of witness %u is set back, to before its mark", k + 1);
        break;
    case PEACE:
        printf("the faults end");
        break;
    case PASS_BY:
        printf("a client comes, asks witnesses");
        for (unsigned w = 0; w < witness_count(); w++)
            if (k & 1u << w)
                printf(" %u", w + 1);
        printf(", %sand goes", b->votes ? "installs m, " : "");
        break;
    }
    tell_marks(b);
}

/* ---- Runs ---- */

static const struct model witness = {
    .size = sizeof(struct state),
    .begin = witness_begin,
    .steps = witness_steps,
    .judge = judge,
    .tell = tell,
};

struct scenario {
    unsigned masters, clients, forgets, falsified, lost, backs, lease, drift, visit, peace;
};

/* Q - 1 wrong ages do no harm.  Chosen: as much as takes ten seconds together. */
static const struct scenario scenarios[] = {
    {3, 1, 1, 1, 1, 1, 2, 1, 2, 1}, {3, 2, 2, 1, 0, 0, 1, 0, 2, 0}, {3, 2, 1, 1, 1, 0, 1, 1, 2, 1},
    {4, 1, 1, 2, 1, 0, 1, 1, 2, 1}, {5, 1, 1, 2, 1, 0, 1, 0, 2, 1},
};

static const struct {
    const char *name, *about;
    struct scenario scenario;
} bugs[BUGS] = {
    [NO_BUG] = {"none", "", {3, 2, 1, 1, 1, 1, 2, 1, 2, 1}},
    [MINORITY] = {"minority", "rule 5: Q - 1 are enough", {5, 1, 1, 2, 0, 0, 2, 1, 2, 0}},
    [ANY_NONCE] = {"any-nonce", "rule 2: a mark of any nonce", {3, 1, 2, 0, 0, 0, 2, 1, 2, 0}},
    [INSTALL_ANY] = {"install-any", "rule 5: no compare", {3, 2, 2, 0, 0, 0, 2, 1, 2, 0}},
    [SHORT_WINDOW] = {"short-window", "rule 6: a tick less", {3, 1, 1, 0, 0, 0, 2, 1, 2, 0}},
    [NO_MARK_IS_OLD] = {"no-mark-is-old", "rule 3: no mark is old", {3, 1, 1, 0, 1, 0, 2, 1, 2, 0}},
    [MANY_STEPS] = {"many-steps", "no bug: Q wrong ages", {3, 1, 1, 2, 0, 0, 2, 1, 2, 0}},
    [KNOWN_COUNTS] = {"known-counts",
                      "rule 4: counts all the same",
                      {3, 1, 1, 0, 0, 0, 2, 1, 2, 0}},
    [NO_REPLACE] = {"no-replace", "rule 4: only does not count", {3, 2, 1, 0, 0, 0, 2, 1, 2, 0}},
    [KEEP_FUTURE] = {"keep-future", "rule 2: keeps the future", {3, 1, 1, 0, 0, 1, 2, 1, 2, 1}},
    [MARK_ANEW] = {"mark-anew", "rule 2: keeps no mark", {3, 1, 1, 0, 0, 0, 2, 1, 2, 1}},
    [SKIP_WARMING] = {"skip-warming", "rule 5: not a warming one", {3, 1, 1, 0, 1, 0, 2, 1, 2, 1}},
};

static void set_scenario(const struct scenario *s)
{
    bounds.masters = s->masters;
    bounds.clients = s->clients;
    bounds.forgets = s->forgets;
    bounds.falsified = s->falsified;
    bounds.lost = s->lost;
    bounds.backs = s->backs;
    bounds.lease = s->lease;
    bounds.drift = s->drift;
    bounds.visit = s->visit;
    bounds.peace = s->peace;
}

/* 0: nothing is wrong.  1: something is; its story is told if asked.  2: given up. */
static int run(bool aloud)
{
    struct states_found found;
    clock_t begun = clock();

    printf("masters=%u clients=%u forgets=%u falsified=%u lost=%u backs=%u lease=%u drift=%u "
           "visit=%u peace=%u:\n",
           bounds.masters, bounds.clients, bounds.forgets, bounds.falsified, bounds.lost,
           bounds.backs, bounds.lease, bounds.drift, bounds.visit, bounds.peace);
    fflush(stdout);
    states_explore(&witness, &limits, &found);
    printf("  %s, %zu states, %zu transitions, depth %u, %.1f s of CPU\n",
           found.wrong      ? "WRONG"
           : found.complete ? "complete, nothing is wrong"
                            : "GIVEN UP, nothing was wrong so far",
           found.states, found.transitions, found.depth,
           (double)(clock() - begun) / CLOCKS_PER_SEC);
    if (found.wrong && aloud)
        states_story(found.at);
    if (found.wrong)
        printf("  => %s\n", found.wrong);
    states_free();
    return found.wrong ? 1 : found.complete ? 0 : 2;
}

static int run_scenarios(void)
{
    int worst = 0;

    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        int status;

        set_scenario(&scenarios[i]);
        status = run(true);
        worst = status > worst ? status : worst;
    }
    return worst;
}

static int run_bugs(void)
{
    int status = 0;

    for (bounds.bug = NO_BUG + 1; bounds.bug < BUGS; bounds.bug++) {
        set_scenario(&bugs[bounds.bug].scenario);
        printf("%s (%s)\n  ", bugs[bounds.bug].name, bugs[bounds.bug].about);
        if (run(false) != 1) {
            printf("  => NOT CAUGHT\n");
            status = 1;
        }
    }
    return status;
}

static bool plant(const char *name)
{
    for (unsigned b = NO_BUG + 1; b < BUGS; b++)
        if (strcmp(bugs[b].name, name) == 0) {
            bounds.bug = (enum bug)b;
            set_scenario(&bugs[b].scenario);
            return true;
        }
    return false;
}

static bool read_option(const char *arg)
{
    unsigned memory_mb = (unsigned)limits.memory_mb;
    const struct states_option numbers[] = {
        {"masters", &bounds.masters}, {"clients", &bounds.clients},
        {"forgets", &bounds.forgets}, {"falsified", &bounds.falsified},
        {"lost", &bounds.lost},       {"backs", &bounds.backs},
        {"lease", &bounds.lease},     {"drift", &bounds.drift},
        {"visit", &bounds.visit},     {"peace", &bounds.peace},
        {"memory", &memory_mb},       {"seconds", &limits.seconds},
    };
    bool is_read = states_read_option(arg, numbers, sizeof numbers / sizeof *numbers);

    limits.memory_mb = memory_mb;
    return is_read || (strncmp(arg, "bug=", 4) == 0 && plant(arg + 4));
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return run_scenarios();
    if (argc == 2 && strcmp(argv[1], "bugs") == 0)
        return run_bugs();
    set_scenario(&bugs[NO_BUG].scenario);
    for (int i = 1; i < argc; i++)
        if (!read_option(argv[i])) {
            fprintf(stderr, "what is %s?\n", argv[i]);
            return 2;
        }
    if (bounds.masters < 2 || bounds.masters > WITNESSES + 1 || bounds.clients > CLIENTS) {
        fprintf(stderr, "too many\n");
        return 2;
    }
    return run(true);
}
