/*
 * waiter.h - one waiter, and what the tests of wait.c do to it.
 *
 * The test is the clock and the dice, and calls wait_on_*() for the masters.  Masters are
 * counted from 0.
 */
#ifndef TEST_WAITER_H
#define TEST_WAITER_H

#include "redlock/core/wait.h"

#include "test/lib/check.h"
#include "test/lib/some.h"

#define START (1000 * DRIFT_S)
#define PAUSE_MIN (50 * DRIFT_MS)
#define PAUSE_MAX (200 * DRIFT_MS)

static struct wait w;
static struct wait_actions act;
static struct wait_now now;

__attribute__((unused)) static void begin(unsigned masters)
{
    wait_init(&w, some_masters(masters), false);
    now = (struct wait_now){.now = START,
                            .waits = true,
                            .up = (quorum_mask)((1u << masters) - 1),
                            .pause_min = PAUSE_MIN,
                            .pause_max = PAUSE_MAX};
}

__attribute__((unused)) static void next(void)
{
    wait_next(&w, &now, &act);
}

/* The waiter listens to the first so many masters. */
__attribute__((unused)) static void hear(unsigned masters)
{
    for (unsigned m = 0; m < masters; m++)
        wait_on_hears(&w, m, true);
    next();
}

/* The first so many masters answer a query. */
__attribute__((unused)) static void answer_look(unsigned masters, int64_t pttl_ms)
{
    for (unsigned m = 0; m < masters; m++)
        wait_on_look(&w, m, pttl_ms, now.now);
    next();
}

/* A round begins, and is lost. */
__attribute__((unused)) static void lose_round(void)
{
    wait_on_try(&w, now.now);
    wait_on_lost(&w, DRIFT_MS, &now);
}

/* The waiter listens to all masters, and each answered that the key lasts for so long. */
__attribute__((unused)) static void begin_held(unsigned masters, int64_t pttl_ms)
{
    begin(masters);
    hear(masters);
    CHECK_UINT(act.look, now.up);
    answer_look(masters, pttl_ms);
}

/* Masters from low to before high announce that the key is free. */
__attribute__((unused)) static void hear_free(unsigned low, unsigned high, unsigned rivals)
{
    for (unsigned m = low; m < high; m++)
        wait_on_free(&w, m, rivals, now.now);
    next();
}

#endif /* TEST_WAITER_H */
