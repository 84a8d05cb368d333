/*
 * witness-check.c - what must be true in every state of witness.c, and how its stories are told.
 *
 *   masters=3      up to 5, with the one that forgets
 *   clients=2      that are there at one time, up to 2
 *   forgets=1 lost=1 backs=1  losses of data of m and of witnesses; clocks that are set back
 *   falsified=1    witnesses that say a wrong age because their clock was set forward
 *   lease=2 drift=1 visit=2  ticks: the longest lease; the drift of a clock in a window; from one
 *                  client to the next, in peace
 *   peace=1        0: do not check how long m waits
 */
#include "models/witness.h"

#include <stdbool.h>
#include <stdio.h>

const char *witness_judge(const struct state *s)
{
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
    printf("]\n");
}

static void tell(const void *from, const void *to, struct move move)
{
    const struct state *a = from, *b = to;
    unsigned i = move.a, k = move.b;
    int name = 'A' + (int)i;
    bool said = b->clients[i < CLIENTS ? i : 0].old & ~a->clients[i < CLIENTS ? i : 0].old;

    switch ((enum what)move.kind) {
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
        printf("the clock of witness %u %s a tick", k + 1, move.kind == FAST ? "gains" : "loses");
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

static const struct option options[] = {
    {"masters", &bounds.masters, 2, WITNESSES + 1},
    {"clients", &bounds.clients, 0, CLIENTS},
    {"forgets", &bounds.forgets, 0, 255},
    {"falsified", &bounds.falsified, 0, 255},
    {"lost", &bounds.lost, 0, 255},
    {"backs", &bounds.backs, 0, 255},
    {"lease", &bounds.lease, 0, 255},
    {"drift", &bounds.drift, 0, 255},
    {"visit", &bounds.visit, 0, 255},
    {"peace", &bounds.peace, 0, 1},
    {0},
};

#define CALM "clients=1 falsified=0 lost=0 backs=0"

/* Q - 1 wrong ages do no harm.  Chosen: as much as takes ten seconds together. */
static const struct run runs[] = {
    {"alone", "three masters, one client at a time, every fault", "clients=1", false},
    {"twice", "m forgets twice, and no clock drifts",
     "forgets=2 lost=0 backs=0 lease=1 drift=0 peace=0", false},
    {"pair", "two clients, clocks drift, a witness forgets", "backs=0 lease=1", false},
    {"four", "four masters", CALM " masters=4 falsified=2 lost=1 lease=1", false},
    {"five", "five masters", CALM " masters=5 falsified=2 lost=1 lease=1 drift=0", false},
    {0},
};

static const struct trap traps[BUGS_LEN + 1] = {
    [MINORITY] = {"minority", "rule 5: Q - 1 are enough", CALM " masters=5 falsified=2 peace=0",
                  false},
    [ANY_NONCE] = {"any-nonce", "rule 2: a mark of any nonce", CALM " forgets=2 peace=0", false},
    [INSTALL_ANY] = {"install-any", "rule 5: no compare", CALM " clients=2 forgets=2 peace=0",
                     false},
    [SHORT_WINDOW] = {"short-window", "rule 6: a tick less", CALM " peace=0", false},
    [NO_MARK_IS_OLD] = {"no-mark-is-old", "rule 3: no mark is old", CALM " lost=1 peace=0", false},
    [MANY_STEPS] = {"many-steps", "no bug: Q wrong ages", CALM " falsified=2 peace=0", false},
    [KNOWN_COUNTS] = {"known-counts", "rule 4: counts all the same", CALM " peace=0", false},
    [NO_REPLACE] = {"no-replace", "rule 4: only does not count", CALM " clients=2 peace=0", false},
    [KEEP_FUTURE] = {"keep-future", "rule 2: keeps the future", CALM " backs=1", false},
    [MARK_ANEW] = {"mark-anew", "rule 2: keeps no mark", CALM, false},
    [SKIP_WARMING] = {"skip-warming", "rule 5: not a warming one", CALM " lost=1", false},
};

static struct model build(void)
{
    return (struct model){
        .words = sizeof(struct state) / sizeof(uint32_t),
        .used = (1u << sizeof(struct state) / sizeof(uint32_t)) - 1,
        .begin = witness_begin,
        .steps = witness_steps,
        .tell = tell,
    };
}

int main(int argc, char **argv)
{
    static const struct check check = {
        .defaults = "masters=3 clients=2 forgets=1 falsified=1 lost=1 backs=1 lease=2 drift=1 "
                    "visit=2 peace=1",
        .options = options,
        .runs = runs,
        .traps = traps,
        .build = build,
    };

    return check_main(&check, argc, argv);
}
