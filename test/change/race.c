/*
 * race.c - two machines at once, which pause between ballots: at last one of them wins.
 *
 * Masters answer in random order, and sometimes late.
 */
#include <stdio.h>
#include <string.h>

#include "change/machines.h"

#define STEPS_MAX 20000 /* Chosen: a run takes some two hundred. */
#define ROUNDS_MAX 60   /* A ballot of more rounds is not told by 8 bits. */

static uint32_t seed;

/* xorshift32 (Marsaglia). */
static uint32_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

/* One of the requests that are out.  Returns false if there is none. */
static bool answer_one(struct world *w)
{
    unsigned first = draw() % (MACHINES * MASTERS);
    struct answer answer;

    for (unsigned k = 0; k < MACHINES * MASTERS; k++) {
        unsigned at = (first + k) % (MACHINES * MASTERS), i = at / MASTERS, m = at % MASTERS;

        if (w->machines[i] == 0 || w->out[i][m].kind == CHANGE_ASK_NOTHING)
            continue;
        master_do(w, m, &w->out[i][m], &answer);
        (void)machine_give(w, i, m, &answer);
        return true;
    }
    return false;
}

static void pass_tick(struct world *w)
{
    struct change c;

    world_age_masters(w);
    for (unsigned i = 0; i < MACHINES; i++) {
        machine_age(w, i);
        if (machine_load(w, i, &c).wake_at <= NOW)
            (void)machine_go_on(w, i, &c);
    }
}

/* Returns the number of machines that got their wish, or -1: there is no end. */
static int run(struct world *w)
{
    for (unsigned step = 0; step < STEPS_MAX; step++) {
        struct change a, b;

        machine_load(w, 0, &a);
        machine_load(w, 1, &b);
        if (a.round > ROUNDS_MAX || b.round > ROUNDS_MAX)
            return -1;
        if (a.status != CHANGE_GOES_ON && b.status != CHANGE_GOES_ON)
            return (a.status == CHANGE_DONE) + (b.status == CHANGE_DONE);
        machines_random = draw() % 1024;
        if (draw() % 16 == 0 || !answer_one(w))
            pass_tick(w);
    }
    return -1;
}

unsigned race(unsigned runs)
{
    unsigned lost = 0;

    machines_unbounded = true;
    machines_pause = 2;
    for (unsigned i = 1; i <= runs; i++) {
        struct world w;
        int winners;

        memset(&w, 0, sizeof w);
        seed = i;
        world_begin(&w);
        winners = run(&w);
        if (winners >= 1 && w.history.wrong == NOTHING_WRONG)
            continue;
        if (lost++ == 0)
            printf("race %u: %d winners, %s\n", i, winners,
                   w.history.wrong != NOTHING_WRONG ? wrongs[w.history.wrong] : "nothing wrong");
    }
    machines_unbounded = false;
    machines_pause = 0;
    return lost;
}
