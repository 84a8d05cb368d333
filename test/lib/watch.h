/*
 * watch.h - one guard, and what the tests of guard.c do to it.
 *
 * The test is the clock, and answers the queries.  Masters are counted from 0.
 */
#ifndef TEST_WATCH_H
#define TEST_WATCH_H

#include "redlock/core/guard.h"

#include "test/lib/check.h"

#define LEN 5
#define ALL 0x1f
#define MAX_TTL_MS 1000
#define ONE_MS DRIFT_MS
/* The lease, and twice its allowance of 1 % and 2 ms. */
#define WATCH (1024 * ONE_MS)

__attribute__((unused)) static struct guard g;
__attribute__((unused)) static struct members members;
__attribute__((unused)) static struct guard_actions act;
__attribute__((unused)) static bool with_witnesses;
__attribute__((unused)) static drift_time now;
__attribute__((unused)) static drift_time since; /* When the first masters began to warm. */
__attribute__((unused)) static uint64_t floor_us, high, time_us; /* The next query reports these. */
__attribute__((unused)) static struct recall_told told;

__attribute__((unused)) static void next(void)
{
    guard_next(&g, now, &act);
}

__attribute__((unused)) static void begin(unsigned masters)
{
    const struct guard_config config = {&members, MAX_TTL_MS, {10000, 2 * ONE_MS}, with_witnesses};

    members = members_first(masters);
    guard_init(&g, &config);
    now = 77 * DRIFT_S;
    floor_us = 900;
    high = 1000;
    time_us = 5000;
    told = (struct recall_told){.version = 0};
    next();
    CHECK_UINT(act.look, 0);
    for (unsigned m = 0; m < masters; m++)
        guard_on_link(&g, m, true);
    next();
    CHECK_UINT(act.look, (1u << masters) - 1); /* No master votes before its first query. */
    CHECK_UINT(act.install, 0);
    CHECK_UINT(guard_voters(&g), 0);
}

__attribute__((unused)) static void answer_ready(unsigned master, uint64_t epoch,
                                                 uint32_t max_ttl_ms)
{
    const struct guard_look look = {true, false, epoch, max_ttl_ms, floor_us, high, time_us, told};

    guard_on_look(&g, master, &look, now);
}

__attribute__((unused)) static void answer_warming(unsigned master, uint64_t nonce, bool fresh)
{
    const struct guard_look look = {false, fresh, nonce,   MAX_TTL_MS,
                                    0,     0,     time_us, {false, 0, 0, 0}};

    guard_on_look(&g, master, &look, now);
}

/* The master has a new link, and the next query may find something else. */
__attribute__((unused)) static void look_again(unsigned master)
{
    guard_on_link(&g, master, false);
    guard_on_link(&g, master, true);
    next();
}

/* Answer all queries.  Masters in warming answer with a nonce of 9. */
__attribute__((unused)) static void answer_all(quorum_mask warming)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        if (!g.masters[m].asked)
            continue;
        if (warming & 1u << m)
            answer_warming(m, 9, false);
        else
            answer_ready(m, m + 1, MAX_TTL_MS);
    }
}

/* Five masters.  Those in warming have lost their data. */
__attribute__((unused)) static void begin_warming(quorum_mask warming)
{
    begin(LEN);
    answer_all(warming);
    since = now;
}

/* Run until the machine installs an epoch, but not past end.  Wake it when it asks. */
__attribute__((unused)) static void run_until(drift_time end, quorum_mask warming)
{
    while (next(), act.install == 0 && now < end) {
        answer_all(warming);
        next();
        if (act.install != 0)
            break;
        now = act.wake_at < end ? act.wake_at : end;
    }
}

#endif /* TEST_WATCH_H */
