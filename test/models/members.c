/*
 * members.c - checks the models of members.h and fencing.h.
 *
 *   model-members                         the runs of runs.c: every world keeps all invariants
 *   model-members --traps [by-hand]       every planted bug leads to a broken world
 *   model-members --stories               the named stories are told, and are refused by the rules
 *   model-members --list                  what there is
 *   model-members [RUN] [OPTION=N...]     one run, with other bounds
 *
 *   bug=NAME                   plants a bug; the shortest story of a broken world is told
 *   lists=abc,abd              members of version 1, and of later simple versions; of a to f
 *   clients=2 admins=1 ttl=1   how many, and max_ttl in ticks (up to 3)
 *   versions=3                 the greatest version (up to 5)
 *   paxos=0 ballots=2          paxos=1: a version is chosen by Paxos
 *   choices=1 give_up=0        choices=2: list i may be followed by list i+2 also
 *   forgets=0 at_once=1        how often masters lose their data
 *   chosen=1                   2: version 2 is chosen at the start, and not written
 *   split=1                    0: a proof is read in one step with the key that is set
 *   laggards=0 keep=0          1: votes at smaller versions count; votes outlive a version
 *   lose=bc rescue=aef returns=0   a quorum is lost, and some of it come back
 *   numbers=0                  above 0: fencing, with numbers up to this
 *   rivals=0 again=0 overlap=0 kills=0 clock_steps=0   see members.h, struct bounds
 *   mb=3000 seconds=600        limits of the search: memory and processor time
 *   walks=0 steps=300 seed=1   random walks in place of the search
 *   rename=1                   0: worlds that differ in names alone are searched, too
 *
 * Exit status 0: all is as it must be; 1: it is not; 2: unknown argument, or no memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/bugs.h"
#include "models/fencing.h"
#include "models/runs.h"

static struct limits limits;
static unsigned long renames;

/* ---- Options ---- */

static set read_masters(const char *text)
{
    set masters = 0;

    for (; *text >= 'a' && *text < 'a' + MASTERS_MAX; text++)
        masters |= bit_of((unsigned)(*text - 'a'));
    return masters;
}

static void read_lists(const char *text)
{
    bounds.lists_len = 0;
    while (bounds.lists_len < LISTS_MAX) {
        bounds.lists[bounds.lists_len++] = read_masters(text);
        text = strchr(text, ',');
        if (text == NULL)
            return;
        text++;
    }
}

static bool read_bug(const char *name)
{
    for (unsigned i = 0; i < BUGS_LEN; i++)
        if (strcmp(name, bug_texts[i].name) == 0) {
            planted = (enum bug)i;
            return true;
        }
    return false;
}

static bool read_limit(const char *name, unsigned long value)
{
    if (strcmp(name, "mb") == 0)
        limits.megabytes = value;
    else if (strcmp(name, "seconds") == 0)
        limits.seconds = (long)value;
    else if (strcmp(name, "walks") == 0)
        limits.walks = (long)value;
    else if (strcmp(name, "steps") == 0)
        limits.walk_steps = (unsigned)value;
    else if (strcmp(name, "seed") == 0)
        limits.seed = value;
    else if (strcmp(name, "rename") == 0)
        renames = value;
    else
        return false;
    return true;
}

static bool read_bound(const char *name, unsigned long value)
{
    static const struct {
        const char *name;
        unsigned *bound, most;
    } table[] = {
        {"clients", &bounds.clients, CLIENTS_MAX},
        {"admins", &bounds.admins, ADMINS_MAX},
        {"ttl", &bounds.ttl, TTL_MAX},
        {"versions", &bounds.versions, CHOSEN_MAX},
        {"ballots", &bounds.ballots, BALLOTS_MAX},
        {"paxos", &bounds.paxos, 1},
        {"choices", &bounds.choices, 2},
        {"give_up", &bounds.give_up, 1},
        {"forgets", &bounds.forgets, 3},
        {"at_once", &bounds.forgets_at_once, MASTERS_MAX},
        {"chosen", &bounds.chosen, 2},
        {"split", &bounds.split, 1},
        {"laggards", &bounds.laggards, 1},
        {"keep", &bounds.keep, 1},
        {"returns", &bounds.returns, MASTERS_MAX},
        {"numbers", &bounds.numbers, 14},
        {"rivals", &bounds.rivals, 14},
        {"again", &bounds.again, 1},
        {"overlap", &bounds.overlap, 1},
        {"kills", &bounds.kills, 1},
        {"clock_steps", &bounds.clock_steps, 1},
    };

    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(name, table[i].name) == 0 && value <= table[i].most) {
            *table[i].bound = (unsigned)value;
            return true;
        }
    return false;
}

static bool read_option(const char *option)
{
    const char *equals = strchr(option, '=');
    char name[16] = "";

    if (equals == NULL || equals - option >= (long)sizeof name)
        return false;
    memcpy(name, option, (size_t)(equals - option));
    if (strcmp(name, "bug") == 0)
        return read_bug(equals + 1);
    if (strcmp(name, "lists") == 0)
        read_lists(equals + 1);
    else if (strcmp(name, "lose") == 0)
        bounds.lose = read_masters(equals + 1);
    else if (strcmp(name, "rescue") == 0)
        bounds.rescue_list = read_masters(equals + 1);
    else
        return read_limit(name, strtoul(equals + 1, NULL, 10)) ||
               read_bound(name, strtoul(equals + 1, NULL, 10));
    return true;
}

static void must_read(const char *option)
{
    if (read_option(option))
        return;
    fprintf(stderr, "what is %s?\n", option);
    exit(2);
}

/* The defaults, and then the options of a table. */
static void set_options(const char *options)
{
    char copy[512], *rest = copy;

    planted = NO_BUG;
    renames = 1;
    limits = (struct limits){.megabytes = 3000, .seconds = 600, .walk_steps = 300, .seed = 1};
    memset(&bounds, 0, sizeof bounds);
    bounds.clients = 2;
    bounds.admins = 1;
    bounds.ttl = 1;
    bounds.versions = 3;
    bounds.ballots = 2;
    bounds.choices = 1;
    bounds.forgets_at_once = 1;
    bounds.chosen = 1;
    bounds.split = 1;
    read_lists("abc,abd");
    snprintf(copy, sizeof copy, "%s", options);
    for (char *option; (option = strsep(&rest, " ")) != NULL;)
        if (*option != '\0')
            must_read(option);
}

/* ---- One run ---- */

static unsigned weigh_step(struct move move)
{
    return strchr("FKRGbVLB", move.kind) != NULL ? 1 : 4;
}

static struct model build_model(void)
{
    struct model locks = {
        sizeof(struct world) / 4,      world_words_used(), world_begin, world_steps,
        renames ? world_rename : NULL, world_tell,         weigh_step};
    struct model fencing = {
        sizeof(struct fencing_world) / 4, fencing_words_used(), fencing_begin, fencing_steps,
        renames ? fencing_rename : NULL,  fencing_tell,         weigh_step};
    set all = bounds.rescue_list;

    for (unsigned i = 0; i < bounds.lists_len; i++)
        all |= bounds.lists[i];
    for (bounds.masters = 0; all >> bounds.masters != 0;)
        bounds.masters++;
    locks.used = world_words_used();
    fencing.used = fencing_words_used();
    return bounds.numbers > 0 ? fencing : locks;
}

static struct outcome outcome;

static void print_outcome(const char *name)
{
    const char *end = "within its bounds, complete";

    if (outcome.broken != NULL)
        end = outcome.broken;
    else if (limits.walks > 0)
        end = "random walks, nothing found";
    else if (!outcome.complete)
        end = "NOT COMPLETE";
    printf("%-22s %9zu states %10zu transitions %5.1f s  depth %2u  %s\n", name, outcome.states,
           outcome.transitions, outcome.cpu_s, outcome.depth, end);
    fflush(stdout);
}

static void search(const char *name)
{
    struct model model = build_model();

    explorer_run(&model, &limits, &outcome);
    print_outcome(name);
}

static void tell_outcome(void)
{
    struct model model = build_model();
    const char *broken;

    if (outcome.broken != NULL)
        explorer_replay(&model, outcome.trace, outcome.trace_len, true, &broken);
}

/* ---- The tables ---- */

static int check_runs(void)
{
    int failed = 0;

    for (unsigned i = 0; i < runs_len; i++) {
        if (runs[i].by_hand)
            continue;
        set_options(runs[i].options);
        printf("# %s\n", runs[i].about);
        search(runs[i].name);
        tell_outcome();
        failed |= outcome.broken != NULL || !outcome.complete;
    }
    return failed;
}

/* Every bug has a trap or a story. */
static bool all_are_trapped(void)
{
    bool all = true;

    for (unsigned bug = 1; bug < BUGS_LEN; bug++) {
        bool trapped = false;

        for (unsigned i = 0; i < traps_len; i++)
            trapped |= traps[i].bug == (enum bug)bug;
        for (unsigned i = 0; i < stories_len; i++)
            trapped |= stories[i].bug == (enum bug)bug;
        if (!trapped)
            printf("%s: NO TRAP\n", bug_texts[bug].name);
        all &= trapped;
    }
    return all;
}

static int check_traps(bool by_hand)
{
    int failed = 0;

    for (unsigned i = 0; i < traps_len; i++) {
        const struct trap *t = &traps[i];

        if (t->by_hand != by_hand)
            continue;
        set_options(t->options);
        planted = t->bug;
        printf("# %s\n", t->bug == NO_BUG ? t->about : bug_texts[t->bug].about);
        search(t->bug == NO_BUG ? "no promise" : bug_texts[t->bug].name);
        tell_outcome();
        if (outcome.broken == NULL)
            printf("NOT CAUGHT\n");
        failed |= outcome.broken == NULL;
    }
    return failed | !all_are_trapped();
}

/* With its bug the story ends in a broken world.  By the rules it does not. */
static bool check_story(const struct story *s)
{
    struct move trace[TRACE_MAX];
    unsigned len = 0;
    struct model model;
    const char *broken;

    for (const char *at = s->trace; *at != '\0'; at += strspn(at, " "), len++) {
        trace[len] = explorer_read_move(at);
        at += 4;
    }
    set_options(s->options);
    model = build_model();
    planted = s->bug;
    printf("# Story %s, with %s: %s\n", s->name, bug_texts[s->bug].name, s->about);
    if (explorer_replay(&model, trace, len, true, &broken) != len || broken == NULL)
        return false;
    planted = NO_BUG;
    explorer_replay(&model, trace, len, false, &broken);
    return broken == NULL;
}

static int check_stories(void)
{
    int failed = 0;

    for (unsigned i = 0; i < stories_len; i++)
        if (!check_story(&stories[i])) {
            printf("NOT AS IT MUST BE\n");
            failed = 1;
        }
    return failed;
}

static int print_list(void)
{
    for (unsigned i = 0; i < runs_len; i++)
        printf("run %-22s %s%s\n", runs[i].name, runs[i].about,
               runs[i].by_hand ? " (by hand)" : "");
    for (unsigned i = 1; i < BUGS_LEN; i++)
        printf("bug %-22s %s: %s\n", bug_texts[i].name, bug_texts[i].rule, bug_texts[i].about);
    for (unsigned i = 0; i < stories_len; i++)
        printf("story %-20s %s\n", stories[i].name, stories[i].about);
    return 0;
}

/* A run by its name, or the defaults. */
static int run_one(int argc, char **argv)
{
    int first = 1;

    set_options("");
    for (unsigned i = 0; i < runs_len; i++)
        if (strcmp(argv[1], runs[i].name) == 0) {
            set_options(runs[i].options);
            first = 2;
        }
    for (int i = first; i < argc; i++)
        must_read(argv[i]);
    search(first == 2 ? argv[1] : "run");
    tell_outcome();
    return outcome.broken != NULL;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return check_runs();
    if (strcmp(argv[1], "--traps") == 0)
        return check_traps(argc > 2 && strcmp(argv[2], "by-hand") == 0);
    if (strcmp(argv[1], "--stories") == 0)
        return check_stories();
    if (strcmp(argv[1], "--list") == 0)
        return print_list();
    return run_one(argc, argv);
}
