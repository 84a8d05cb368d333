/*
 * check.c - reads the options of a model, runs its tables, and prints what was found.
 */
#include "models/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned planted;

static const struct check *check;
static struct limits limits;
static struct model model;
static struct outcome outcome;

/* ---- Options ---- */

static bool read_bug(const char *name)
{
    for (unsigned bug = 1; check->traps[bug].name != NULL; bug++)
        if (strcmp(name, check->traps[bug].name) == 0) {
            planted = bug;
            return true;
        }
    return false;
}

static bool read_number(const struct option *options, const char *name, const char *text)
{
    unsigned long value = strtoul(text, NULL, 10);

    for (; options->name != NULL; options++)
        if (strcmp(name, options->name) == 0 && value >= options->least && value <= options->most) {
            *options->value = (unsigned)value;
            return true;
        }
    return false;
}

static bool read_option(const char *option)
{
    static const struct option of_all[] = {
        {"mb", &limits.megabytes, 1, UINT32_MAX},     {"seconds", &limits.seconds, 0, UINT32_MAX},
        {"walks", &limits.walks, 0, UINT32_MAX},      {"seed", &limits.seed, 0, UINT32_MAX},
        {"steps", &limits.walk_steps, 0, UINT32_MAX}, {0},
    };
    const char *equals = strchr(option, '=');
    char name[16] = "";

    if (equals == NULL || equals - option >= (long)sizeof name)
        return false;
    memcpy(name, option, (size_t)(equals - option));
    if (strcmp(name, "bug") == 0)
        return read_bug(equals + 1);
    return read_number(of_all, name, equals + 1) || read_number(check->options, name, equals + 1) ||
           (check->read != NULL && check->read(name, equals + 1));
}

static void must_read(const char *option)
{
    if (read_option(option))
        return;
    fprintf(stderr, "what is %s?\n", option);
    exit(2);
}

static void read_options(const char *options)
{
    char copy[512], *rest = copy;

    snprintf(copy, sizeof copy, "%s", options);
    for (char *option; (option = strsep(&rest, " ")) != NULL;)
        if (*option != '\0')
            must_read(option);
}

/* The defaults, and then the options of a table. */
static void set_options(const char *options)
{
    planted = 0;
    limits = (struct limits){.megabytes = 3000, .seconds = 600, .walk_steps = 300, .seed = 1};
    read_options(check->defaults);
    read_options(options);
}

unsigned check_read_lists(const char *text, char first, unsigned masters_max, unsigned *ret_lists,
                          unsigned lists_max)
{
    unsigned at = 0;

    memset(ret_lists, 0, lists_max * sizeof *ret_lists);
    for (; *text != '\0'; text++) {
        unsigned master = (unsigned)(*text - first);

        if (*text == ',' ? ++at == lists_max : master >= masters_max)
            return 0;
        if (*text != ',')
            ret_lists[at] |= 1u << master;
    }
    return at + 1;
}

/* ---- One run ---- */

static void search(const char *name)
{
    const char *end = "within its bounds, complete";

    model = check->build();
    explorer_run(&model, &limits, &outcome);
    if (check->judge_all != NULL && limits.walks == 0)
        check->judge_all(&outcome);
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

/* Searches, and tells how a broken world is reached.  0: nothing is wrong.  1: something is.
 * 2: the search reached a limit. */
static int run(const char *name)
{
    const char *broken;

    search(name);
    if (outcome.broken == NULL)
        return limits.walks > 0 || outcome.complete ? 0 : 2;
    if (check->keep_names != NULL && check->keep_names())
        search(name);
    explorer_replay(&model, outcome.trace, outcome.trace_len, true, &broken);
    if (broken == NULL && outcome.broken != NULL)
        printf("        => %s\n", outcome.broken);
    return 1;
}

/* ---- The tables ---- */

static int check_runs(void)
{
    int worst = 0;

    for (const struct run *r = check->runs; r->name != NULL; r++) {
        int status;

        if (r->by_hand)
            continue;
        set_options(r->options);
        printf("# %s\n", r->about);
        status = run(r->name);
        worst = status > worst ? status : worst;
    }
    return worst;
}

static bool has_story(unsigned bug)
{
    for (const struct story *s = check->stories; s != NULL && s->name != NULL; s++)
        if (s->bug == bug)
            return true;
    return false;
}

static int check_traps(bool by_hand)
{
    int failed = 0;

    for (unsigned bug = 1; check->traps[bug].name != NULL; bug++) {
        const struct trap *t = &check->traps[bug];
        bool is_caught = t->options != NULL || has_story(bug);

        if (t->options != NULL && t->by_hand == by_hand) {
            set_options(t->options);
            planted = bug;
            printf("# %s\n", t->about);
            is_caught = run(t->name) == 1;
        }
        if (!is_caught)
            printf("%s: NOT CAUGHT\n", t->name);
        failed |= !is_caught;
    }
    return failed;
}

/* With its bug the story ends in a broken world.  By the rules it does not. */
static bool check_story(const struct story *s)
{
    struct move trace[TRACE_MAX];
    unsigned len = 0;
    const char *broken;

    for (const char *at = s->trace; *at != '\0'; at += strspn(at, " "), len++) {
        trace[len] = explorer_read_move(at);
        at += 4;
    }
    set_options(s->options);
    model = check->build();
    planted = s->bug;
    printf("# Story %s, with %s: %s\n", s->name, check->traps[s->bug].name, s->about);
    if (explorer_replay(&model, trace, len, true, &broken) != len || broken == NULL)
        return false;
    planted = 0;
    explorer_replay(&model, trace, len, false, &broken);
    return broken == NULL;
}

static int check_stories(void)
{
    int failed = 0;

    for (const struct story *s = check->stories; s != NULL && s->name != NULL; s++)
        if (!check_story(s)) {
            printf("NOT AS IT MUST BE\n");
            failed = 1;
        }
    return failed;
}

static int print_list(void)
{
    for (const struct run *r = check->runs; r->name != NULL; r++)
        printf("run %-22s %s%s\n", r->name, r->about, r->by_hand ? " (by hand)" : "");
    for (const struct trap *t = check->traps + 1; t->name != NULL; t++)
        printf("bug %-22s %s%s\n", t->name, t->about, t->by_hand ? " (by hand)" : "");
    for (const struct story *s = check->stories; s != NULL && s->name != NULL; s++)
        printf("story %-20s %s\n", s->name, s->about);
    return 0;
}

/* A run or a bug by its name, or the defaults. */
static int run_one(int argc, char **argv)
{
    const char *options = NULL;
    unsigned bug = 0;

    for (const struct run *r = check->runs; r->name != NULL; r++)
        if (strcmp(argv[1], r->name) == 0)
            options = r->options;
    if (options == NULL && read_bug(argv[1])) {
        bug = planted;
        options = check->traps[bug].options;
    }
    set_options(options != NULL ? options : "");
    planted = bug;
    for (int i = options != NULL ? 2 : 1; i < argc; i++)
        must_read(argv[i]);
    return run(options != NULL ? argv[1] : "run");
}

int check_main(const struct check *c, int argc, char **argv)
{
    check = c;
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
