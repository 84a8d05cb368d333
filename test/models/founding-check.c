/*
 * founding-check.c - what must be true in every state of founding.c, and how its stories are told.
 *
 *   lists=123,345  one process for each list, up to four; masters 1 to 5
 *   forgets=0 crashes=0 delays=0  so many faults at most
 *   locks=1        0: nobody asks for a lock, which leaves fewer states
 *   stuck=1        0: do not check what must stay possible, which takes less time
 *   alike=1        0: states differ also if only the names of masters or processes do
 *   harm=0         1: look for two clients that hold the lock, and for nothing else
 */
#include "models/founding.h"

#include <stdio.h>
#include <string.h>

static unsigned only_harm, checks_stuck;

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

const char *founding_judge(const struct state *s)
{
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

static void tell(const void *from, const void *to, struct move move)
{
    const struct state *a = from, *b = to;
    unsigned i = move.a, k = move.b;
    const struct process *p = &b->processes[i < PROCESSES ? i : 0];
    int name = 'A' + (int)i;

    switch ((enum what)move.kind) {
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
    printf("\n");
}

/* ---- Runs ---- */

static const struct option options[] = {
    {"forgets", &bounds.forgets, 0, 255}, {"crashes", &bounds.crashes, 0, 255},
    {"delays", &bounds.delays, 0, 255},   {"locks", &bounds.locks, 0, 1},
    {"stuck", &checks_stuck, 0, 1},       {"harm", &only_harm, 0, 1},
    {"alike", &bounds.alike, 0, 1},       {0},
};

/* Chosen: as much as takes ten seconds together. */
static const struct run runs[] = {
    {"forget", "two lists share a master, and one master loses its data", "lists=123,345 forgets=1",
     false},
    {"delay", "two lists share a master, and a message is late", "lists=123,345 delays=1 locks=0",
     false},
    {"crash", "two processes with one list, and one dies", "lists=123,123 crashes=1", false},
    {"three", "two processes with one list, and one with another", "lists=12,12,23", false},
    {"circle", "three lists in a circle, and one master loses its data",
     "lists=12,23,13 forgets=1 locks=0", false},
    {0},
};

static const struct trap traps[BUGS_LEN + 1] = {
    [NO_SECOND_LOOK] = {"no-second-look", "rule 3 is left out", "lists=123,123,14", false},
    [LOOK_AT_LIST] = {"look-at-list", "rule 3 compares the list alone", "lists=12,12,23 locks=0",
                      false},
    [LOOK_AT_OWN] = {"look-at-own", "rule 5 looks at its claims alone", "lists=12,12,1,2 locks=0",
                     false},
    [TAKE_ANY] = {"take-any", "rule 2 takes a claim of any list", "lists=123,345", false},
    [SAME_NUMBER] = {"same-number", "rule 2 uses a number it finds", "lists=12,12,23 locks=0",
                     false},
    [CLAIM_AGAIN] = {"claim-again", "rule 1: a claim is sent twice",
                     "lists=12,12,23 delays=1 locks=0", false},
    [MAJORITY] = {"majority", "rule 3 is content with a majority", "lists=123,345", false},
    [FOUND_ANY] = {"found-any", "rule 4 compares the list alone", "lists=12,12,23 locks=0", false},
    [WITHDRAW_ANY] = {"withdraw-any", "rule 5 does not compare", "lists=12,12,23 locks=0", false},
    [WITHDRAW_TOOK] = {"withdraw-took", "rule 5 before all were visited", "lists=12,12,23 locks=0",
                       false},
    [WITHDRAW_VISITED] = {"withdraw-visited", "rule 5 without its look", "lists=12,12,23 locks=0",
                          false},
    [WITHDRAW_MET] = {"withdraw-met", "rule 5 where a member was met", "lists=12,12,23 locks=0",
                      false},
    [REPORT_EARLY] = {"report-early", "reports after the first master", "lists=123,345", false},
    [KEEP_VER] = {"keep-ver", "a master forgets its locks alone", "lists=123,123 forgets=1", false},
    [NO_GUARD] = {"no-guard", "rule 9: an epoch at once", "lists=123,123 forgets=1", false},
    [NO_FINISH] = {"no-finish", "rule 6 is left out", "lists=12,12 crashes=1", false},
    [NO_WITHDRAW] = {"no-withdraw", "rule 5 is left out", "lists=12,23,13 locks=0", false},
};

static bool read_lists(const char *name, const char *value)
{
    if (strcmp(name, "lists") == 0)
        bounds.processes = check_read_lists(value, '1', MASTERS, bounds.lists, PROCESSES);
    return strcmp(name, "lists") == 0 && bounds.processes > 0;
}

static struct model build(void)
{
    unsigned all = 0;

    for (unsigned i = 0; i < bounds.processes; i++)
        all |= bounds.lists[i];
    for (bounds.masters = 0; all >> bounds.masters != 0;)
        bounds.masters++;
    return (struct model){
        .words = sizeof(struct state) / sizeof(uint32_t),
        .used = (1u << sizeof(struct state) / sizeof(uint32_t)) - 1,
        .begin = founding_begin,
        .steps = founding_steps,
        .tell = tell,
    };
}

static bool is_plain(struct move move)
{
    return move.c == PLAIN;
}

static bool is_no_fault(struct move move)
{
    return move.c != FAULT;
}

static void judge_all(struct outcome *outcome)
{
    printf("%zu states are excused\n", explorer_count(is_excused));
    if (outcome->broken != NULL || !outcome->complete || !checks_stuck)
        return;
    if (explorer_stuck(is_plain, is_founded_or_told) > 0)
        outcome->broken = "nothing can be founded any more, and no message is due";
    else if (explorer_stuck(is_no_fault, is_founded_wholly) > 0)
        outcome->broken = "not even an operator can have a whole set founded any more";
}

static bool keep_names(void)
{
    bool had_changed = bounds.alike;

    bounds.alike = 0;
    return had_changed;
}

int main(int argc, char **argv)
{
    static const struct check check = {
        .defaults = "lists=123,345 forgets=0 crashes=0 delays=0 locks=1 stuck=1 harm=0 alike=1",
        .options = options,
        .read = read_lists,
        .runs = runs,
        .traps = traps,
        .build = build,
        .judge_all = judge_all,
        .keep_names = keep_names,
    };

    return check_main(&check, argc, argv);
}
