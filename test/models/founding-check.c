/*
 * founding-check.c - what must be true in every state of founding.c, and how its stories are told.
 *
 *   model-founding                        the scenarios of the test
 *   model-founding bugs                   plants every bug, and shows that each is caught
 *   model-founding [OPTION=VALUE...]      one scenario:
 *
 *   lists=123,345  one process for each list, up to four; masters 1 to 5
 *   forgets=0 crashes=0 delays=0  so many faults at most
 *   locks=1        0: nobody asks for a lock, which leaves fewer states
 *   stuck=1        0: do not check what must stay possible, which takes less memory
 *   alike=1        0: states differ also if only the names of masters or processes do
 *   harm=1         look for two clients that hold the lock, and for nothing else
 *   memory=3000    MB
 *   seconds=600
 *   bug=NAME       first, because it sets the others; the names are below
 *
 * Exit status 0: nothing is wrong.  1: something is, and its story was told.  2: it was given up,
 * so that nothing is known.
 */
#include "models/founding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/states.h"

struct scenario {
    const char *lists;
    unsigned forgets, crashes, delays, locks;
};

/* Chosen: as much as takes ten seconds together. */
static const struct scenario scenarios[] = {
    {"123,345", 1, 0, 0, 1},  {"123,345", 0, 0, 1, 0},  {"123,123", 0, 1, 0, 1},
    {"12,12,23", 0, 0, 0, 1}, {"12,23,13", 1, 0, 0, 0},
};

static const struct {
    const char *name, *about;
    struct scenario scenario;
} bugs[BUGS] = {
    [NO_BUG] = {"none", "", {"123,345", 0, 0, 0, 1}},
    [NO_SECOND_LOOK] = {"no-second-look", "rule 3 is left out", {"123,123,14", 0, 0, 0, 1}},
    [LOOK_AT_LIST] = {"look-at-list", "rule 3 compares the list alone", {"12,12,23", 0, 0, 0, 0}},
    [LOOK_AT_OWN] = {"look-at-own", "rule 5 looks at its claims alone", {"12,12,1,2", 0, 0, 0, 0}},
    [TAKE_ANY] = {"take-any", "rule 2 takes a claim of any list", {"123,345", 0, 0, 0, 1}},
    [SAME_NUMBER] = {"same-number", "rule 2 uses a number it finds", {"12,12,23", 0, 0, 0, 0}},
    [CLAIM_AGAIN] = {"claim-again", "rule 1: a claim is sent twice", {"12,12,23", 0, 0, 1, 0}},
    [MAJORITY] = {"majority", "rule 3 is content with a majority", {"123,345", 0, 0, 0, 1}},
    [FOUND_ANY] = {"found-any", "rule 4 compares the list alone", {"12,12,23", 0, 0, 0, 0}},
    [WITHDRAW_ANY] = {"withdraw-any", "rule 5 does not compare", {"12,12,23", 0, 0, 0, 0}},
    [WITHDRAW_TOOK] = {"withdraw-took", "rule 5 before all were visited", {"12,12,23", 0, 0, 0, 0}},
    [WITHDRAW_VISITED] = {"withdraw-visited", "rule 5 without its look", {"12,12,23", 0, 0, 0, 0}},
    [WITHDRAW_MET] = {"withdraw-met", "rule 5 where a member was met", {"12,12,23", 0, 0, 0, 0}},
    [REPORT_EARLY] = {"report-early", "reports after the first master", {"123,345", 0, 0, 0, 1}},
    [KEEP_VER] = {"keep-ver", "a master forgets its locks alone", {"123,123", 1, 0, 0, 1}},
    [NO_GUARD] = {"no-guard", "rule 9: an epoch at once", {"123,123", 1, 0, 0, 1}},
    [NO_FINISH] = {"no-finish", "rule 6 is left out", {"12,12", 0, 1, 0, 1}},
    [NO_WITHDRAW] = {"no-withdraw", "rule 5 is left out", {"12,23,13", 0, 0, 0, 0}},
};

static struct states_limits limits = {.memory_mb = 3000, .seconds = 600, .stuck = true};

static unsigned only_harm, alike = 1;

/* ---- What must be true ---- */

static unsigned excused(const struct state *s)
{
    unsigned mask = 0;

    for (unsigned k = 0; k < bounds.masters; k++)
        mask |= s->masters[k].excused ? 1u << k : 0;
    return mask;
}

/* Two sets that share a master which may not be shared. */
static bool clash(const struct state *s, unsigned list, unsigned number, unsigned other_list,
                  unsigned other_number)
{
    if (list == other_list && number == other_number)
        return false;
    return (list & other_list & ~excused(s)) != 0;
}

static bool sets_clash(const struct state *s)
{
    for (unsigned k = 0; k < bounds.masters; k++)
        for (unsigned j = 0; j < k; j++) {
            const struct master *a = &s->masters[k], *b = &s->masters[j];

            if (a->has == MEMBER && b->has == MEMBER &&
                clash(s, a->list, a->number, b->list, b->number))
                return true;
        }
    return false;
}

static bool holders_clash(const struct state *s)
{
    for (unsigned i = 0; i < bounds.processes; i++)
        for (unsigned j = 0; j < i; j++) {
            const struct process *p = &s->processes[i], *q = &s->processes[j];

            if (founding_holds(p) && founding_holds(q) &&
                (p->number == q->number || clash(s, p->list, p->number, q->list, q->number)))
                return true;
        }
    return false;
}

static bool is_undecided_member(const struct state *s)
{
    for (unsigned k = 0; k < bounds.masters; k++)
        if (s->masters[k].has == MEMBER && !founding_is_decided(s, s->masters[k].number))
            return true;
    return false;
}

static bool report_was_wrong(const struct state *s)
{
    for (unsigned i = 0; i < bounds.processes; i++) {
        const struct process *p = &s->processes[i];
        unsigned members = founding_members(s, p->list, p->number);

        for (unsigned k = 0; k < bounds.masters; k++)
            members |= s->masters[k].forgot ? 1u << k : 0;
        if (p->phase == USES && p->told && !founding_is_majority(p->list, members))
            return true;
    }
    return false;
}

static const char *judge(const void *state)
{
    const struct state *s = state;

    if (holders_clash(s))
        return "two clients hold the lock";
    if (only_harm)
        return NULL;
    if (sets_clash(s))
        return "two sets share a master";
    if (is_undecided_member(s))
        return "a member of a set that not all its masters carried at one time";
    if (report_was_wrong(s))
        return "a set was reported, and no majority has it";
    return NULL;
}

/* ---- What must stay possible ---- */

static bool is_founded(const struct state *s, bool wholly)
{
    for (unsigned k = 0; k < bounds.masters; k++) {
        const struct master *m = &s->masters[k];
        unsigned members = founding_members(s, m->list, m->number);

        if (m->has == MEMBER &&
            (wholly ? members == m->list : founding_is_majority(m->list, members)))
            return true;
    }
    return false;
}

static bool is_founded_wholly(const void *state)
{
    return is_founded(state, true);
}

static bool is_founded_or_told(const void *state)
{
    const struct state *s = state;

    for (unsigned i = 0; i < bounds.processes; i++)
        if (s->processes[i].phase == IDLE && s->processes[i].told)
            return true;
    return is_founded(s, false);
}

/* Two sets share a master that forgot. */
static bool is_excused(const void *state)
{
    struct state s = *(const struct state *)state;

    for (unsigned k = 0; k < MASTERS; k++)
        s.masters[k].excused = 0;
    return sets_clash(&s);
}

/* ---- Stories ---- */

static const char *list_text(unsigned list)
{
    static char texts[4][MASTERS + 1];
    static unsigned next;
    char *text = texts[next++ % 4], *at = text;

    for (unsigned k = 0; k < MASTERS; k++)
        if (list & 1u << k)
            *at++ = (char)('1' + k);
    *at = '\0';
    return text;
}

static void tell_claim(const struct state *a, const struct state *b, unsigned i, unsigned k)
{
    const struct master *was = &a->masters[k];
    const struct process *p = &b->processes[i];

    printf("%c claims %u for %s: ", 'A' + i, k + 1, list_text(p->list));
    if (!(p->own & 1u << k) && was->has == MEMBER && was->list == p->list)
        printf("it is a member of this set");
    else if (!(p->own & 1u << k))
        printf("refused, it is %s of %s", was->has == MEMBER ? "a member" : "claimed as one",
               list_text(was->list));
    else if (was->has == CLAIM)
        printf("taken over from an attempt at %s", list_text(was->list));
    else
        printf("claimed");
}

static void tell_look(const struct state *b, unsigned i, unsigned k)
{
    printf("%c looks at %u again: %s", 'A' + i, k + 1,
           b->processes[i].phase == LOOKS ? "as before" : "not as before; the attempt is over");
}

static void tell_found(const struct state *b, unsigned i, unsigned k)
{
    const struct process *p = &b->processes[i];

    printf("%c writes set and ver to %u: %s", 'A' + i, k + 1,
           p->own & 1u << k ? "written" : "refused, the claim is gone");
}

static void tell_delay(const struct state *b, unsigned i, unsigned k)
{
    static const char *const names[] = {
        [NO_MAIL] = "",
        [MAIL_CLAIM] = "a claim",
        [MAIL_FOUND] = "set and ver",
        [MAIL_WITHDRAW] = "a withdrawal",
    };

    printf("%s of %c for %u is on its way, and %c does not wait for it", names[b->mail.what],
           'A' + i, k + 1, 'A' + i);
}

static void tell(const void *from, const void *to, uint32_t step)
{
    const struct state *a = from, *b = to;
    unsigned what = step >> 8, i = step >> 4 & 15, k = step & 15;
    const struct process *p = &b->processes[i < PROCESSES ? i : 0];
    int name = 'A' + (int)i;

    switch ((enum what)what) {
    case BEGIN:
        printf("%c wants to found %s, or to finish it", name, list_text(p->list));
        break;
    case FOLLOW:
        printf("%c finds that %u is a member of %s, and uses this set", name, k + 1,
               list_text(p->list));
        break;
    case DO_CLAIM:
        tell_claim(a, b, i, k);
        break;
    case ALL_CLAIMED:
        printf("%c has visited all", name);
        break;
    case DO_LOOK:
        tell_look(b, i, k);
        break;
    case DECIDE:
        printf("%c found all as it was: %s is decided", name, list_text(p->list));
        break;
    case GIVE_UP:
        printf("%c gives up, and withdraws from %s", name, p->own ? list_text(p->own) : "none");
        break;
    case DO_FOUND:
        tell_found(b, i, k);
        break;
    case REPORT:
        printf("%c reports that %s is founded", name, list_text(p->list));
        break;
    case NOT_FOUNDED:
        printf("%c has founded nothing, and begins anew", name);
        break;
    case DO_WITHDRAW:
        printf("%c withdraws from %u: %s", name, k + 1,
               b->masters[k].has != a->masters[k].has ? "the claim is deleted" : "not its claim");
        break;
    case WITHDRAWN:
        printf("%c ends%s", name, p->told ? ", and names both lists" : "");
        break;
    case DO_RESTORE:
        printf("%c gives %u its set %s back", name, k + 1, list_text(p->list));
        break;
    case VOTE:
        printf("%c gets the vote of %u%s", name, k + 1, founding_holds(p) ? ": it HOLDS" : "");
        break;
    case RELEASE:
        printf("%c releases", name);
        break;
    case FORGET:
        printf("%u forgets", k + 1);
        break;
    case INSTALL:
        printf("%u gets an epoch", k + 1);
        break;
    case DELAY:
        tell_delay(b, i, k);
        break;
    case ARRIVE:
        printf("the message arrives at %u", k + 1);
        break;
    case CRASH:
        printf("%c dies", name);
        break;
    case REVIVE:
        printf("an operator starts %c again", name);
        break;
    }
}

/* ---- Runs ---- */

static const struct model founding = {
    .size = sizeof(struct state),
    .begin = founding_begin,
    .steps = founding_steps,
    .judge = judge,
    .tell = tell,
};

static bool read_lists(const char *text)
{
    unsigned n = 0;

    bounds.masters = 0;
    memset(bounds.lists, 0, sizeof bounds.lists);
    for (; *text != '\0' && n < PROCESSES; text++) {
        unsigned k = (unsigned)(*text - '1');

        if (*text == ',') {
            n++;
            continue;
        }
        if (k >= MASTERS)
            return false;
        bounds.lists[n] |= (uint8_t)(1u << k);
        if (k >= bounds.masters)
            bounds.masters = k + 1;
    }
    bounds.processes = n + 1;
    return n < PROCESSES;
}

static void set_scenario(const struct scenario *scenario)
{
    read_lists(scenario->lists);
    bounds.forgets = scenario->forgets;
    bounds.crashes = scenario->crashes;
    bounds.delays = scenario->delays;
    bounds.locks = scenario->locks;
}

static const char *lists_text(void)
{
    static char text[PROCESSES * (MASTERS + 1) + 1];

    text[0] = '\0';
    for (unsigned i = 0; i < bounds.processes; i++) {
        strcat(text, i == 0 ? "" : ",");
        strcat(text, list_text(bounds.lists[i]));
    }
    return text;
}

/* What is stuck, or NULL. */
static const char *find_stuck(size_t *ret_at)
{
    if (states_stuck(STEP_PLAIN, is_founded_or_told, ret_at) > 0)
        return "nothing can be founded any more, and no message is due";
    if (states_stuck(STEP_PLAIN | STEP_OPERATOR, is_founded_wholly, ret_at) > 0)
        return "not even an operator can have a whole set founded any more";
    return NULL;
}

static int explore(bool aloud)
{
    struct states_found found;
    clock_t begun = clock();
    const char *wrong;
    size_t at;

    states_explore(&founding, &limits, &found);
    wrong = found.wrong;
    at = found.at;
    if (!wrong && found.complete && limits.stuck)
        wrong = find_stuck(&at);
    printf("  %s, %zu states, %zu transitions, depth %u, %zu excused, %.1f s of CPU\n",
           wrong            ? "WRONG"
           : found.complete ? "complete, nothing is wrong"
                            : "GIVEN UP, nothing was wrong so far",
           found.states, found.transitions, found.depth, states_count(is_excused),
           (double)(clock() - begun) / CLOCKS_PER_SEC);
    if (wrong && aloud)
        states_story(at);
    if (wrong)
        printf("  => %s\n", wrong);
    states_free();
    return wrong ? 1 : found.complete ? 0 : 2;
}

/* 0: nothing is wrong.  1: something is; its story is told if asked.  2: given up.  In a story
 * masters and processes must not change places. */
static int run(bool aloud)
{
    int status;

    printf("%s forgets=%u crashes=%u delays=%u locks=%u:\n", lists_text(), bounds.forgets,
           bounds.crashes, bounds.delays, bounds.locks);
    fflush(stdout);
    bounds.alike = alike;
    status = explore(aloud && !alike);
    if (status != 1 || !aloud || !alike)
        return status;
    bounds.alike = 0;
    return explore(true);
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
    unsigned memory_mb = (unsigned)limits.memory_mb, stuck = limits.stuck;
    const struct states_option numbers[] = {
        {"forgets", &bounds.forgets},
        {"crashes", &bounds.crashes},
        {"delays", &bounds.delays},
        {"locks", &bounds.locks},
        {"memory", &memory_mb},
        {"seconds", &limits.seconds},
        {"stuck", &stuck},
        {"harm", &only_harm},
        {"alike", &alike},
    };
    bool is_read = states_read_option(arg, numbers, sizeof numbers / sizeof *numbers);

    limits.memory_mb = memory_mb;
    limits.stuck = stuck != 0;
    if (strncmp(arg, "lists=", 6) == 0)
        return read_lists(arg + 6);
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
    return run(true);
}
