/*
 * test-guard-witness.c - rule 6 of the restart guard: the other masters say how old the nonce of a
 * warming master is.
 */
#include "redlock/core/guard.h"

#include "test/lib/watch.h"

#define WATCH_MS ((int64_t)(WATCH / ONE_MS))

/* An answer to the latest request. */
static void tell(unsigned witness, unsigned master, int64_t age_ms)
{
    const struct guard_ask ask = {master, g.masters[master].look.number, g.masters[witness].steps};

    guard_on_age(&g, witness, &ask, age_ms, now);
}

/* Master 5 is warming, and the others were asked how old its nonce is. */
static void begin_asked(void)
{
    with_witnesses = true;
    begin_warming(0x10);
    next();
    CHECK_UINT(act.ask[4], 0x0f);
    CHECK_UINT(act.anew[4], 0);
}

TEST(each_witness_is_asked_once_on_a_link)
{
    begin_asked();
    for (unsigned m = 0; m < 4; m++)
        CHECK_UINT(act.ask[m], 0);
    next();
    CHECK_UINT(act.ask[4], 0);
    tell(1, 4, WATCH_MS);
    tell(2, 4, WATCH_MS);
    look_again(1);
    CHECK_UINT(act.ask[4], 2);
    tell(3, 4, WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), 0); /* What a witness told stays true. */
    look_again(4);
    CHECK_UINT(act.ask[4], 0);
    guard_on_link(&g, 2, false);
    next();
    CHECK_UINT(act.ask[4], 0);
}

TEST(a_majority_says_how_old_a_nonce_is)
{
    begin_asked();
    tell(0, 4, WATCH_MS);
    tell(1, 4, 5 * WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    next();
    CHECK_UINT(act.install, 0);
    tell(2, 4, WATCH_MS - 1);
    CHECK_UINT(guard_left(&g, 4, now), ONE_MS);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(act.wake_at, now + ONE_MS);
    tell(3, 4, WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), 0);
    next();
    CHECK_UINT(act.install, 0x10);
}

/* Rule 2 holds as it does for a client that has watched the master itself. */
TEST(others_are_read_when_witnesses_say_that_it_is_due)
{
    begin_asked();
    now += ONE_MS;
    for (unsigned k = 0; k < 4; k++)
        tell(k, 4, WATCH_MS);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(act.look, 0x0f);
    answer_ready(0, 1, MAX_TTL_MS);
    answer_ready(1, 2, 2 * MAX_TTL_MS);
    answer_ready(2, 3, MAX_TTL_MS);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(guard_left(&g, 4, now), 2 * MAX_TTL_MS * ONE_MS + 44 * ONE_MS - WATCH);
}

TEST(a_watch_of_its_own_counts_if_it_is_longer)
{
    begin_asked();
    now += WATCH / 2;
    for (unsigned k = 0; k < 4; k++)
        tell(k, 4, 0);
    CHECK_UINT(guard_left(&g, 4, now), WATCH / 2);
}

/* The witnesses' clocks are fast by the allowed rate.  So by their ages the wait was over before
 * the others were read, though the master lost its data after that. */
TEST(others_are_read_again_if_the_nonce_was_seen_later)
{
    with_witnesses = true;
    begin(LEN);
    guard_on_link(&g, 4, false);
    for (unsigned m = 0; m < 4; m++)
        answer_ready(m, 1 + m, MAX_TTL_MS);
    next();
    now += 10 * WATCH;
    guard_on_link(&g, 4, true);
    next();
    CHECK_UINT(act.look, 1 << 4);
    answer_warming(4, 99, false);
    next();
    for (unsigned m = 0; m < 3; m++)
        tell(m, 4, 1000 * MAX_TTL_MS);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(act.look, 0x0f);
    answer_ready(0, 1, 3600 * MAX_TTL_MS); /* It knows a longer lease. */
    for (unsigned m = 1; m < 4; m++)
        answer_ready(m, 1 + m, MAX_TTL_MS);
    next();
    CHECK_UINT(act.install, 0);
}

TEST(a_warming_master_is_a_witness)
{
    with_witnesses = true;
    begin_warming(ALL);
    next();
    for (unsigned m = 0; m < LEN; m++) {
        CHECK_UINT(act.ask[m], ALL & ~(1u << m));
        CHECK_UINT(guard_left(&g, m, now), WATCH);
        for (unsigned k = 0; k < LEN; k++)
            if (k != m)
                tell(k, m, WATCH_MS);
        CHECK_UINT(guard_left(&g, m, now), 0);
    }
    next();
    CHECK_UINT(act.install, ALL);
}

TEST(no_master_is_a_witness_of_its_own)
{
    begin_asked();
    tell(0, 4, WATCH_MS);
    tell(1, 4, WATCH_MS);
    tell(4, 4, WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    with_witnesses = true;
    begin(2); /* Here a majority is both, so there are too few. */
    answer_all(1);
    next();
    CHECK_UINT(act.ask[0], 2);
    tell(1, 0, WATCH_MS);
    CHECK_UINT(guard_left(&g, 0, now), WATCH);
}

TEST(an_age_of_another_nonce_does_not_count)
{
    const struct guard_ask old = {4, 9, 0};

    begin_asked();
    tell(0, 4, WATCH_MS);
    tell(1, 4, WATCH_MS);
    look_again(4);
    answer_warming(4, 10, false);
    next();
    CHECK_UINT(act.ask[4], 0x0f);
    guard_on_age(&g, 2, &old, WATCH_MS, now);
    guard_on_age(&g, 3, &old, WATCH_MS, now);
    tell(2, 4, WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    tell(3, 4, WATCH_MS);
    tell(0, 4, WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), 0);
    look_again(4);
    answer_ready(4, 5, MAX_TTL_MS);
    tell(0, 4, WATCH_MS);
    next();
    CHECK_UINT(act.ask[4], 0);
}

TEST(a_witness_whose_clock_was_stepped_begins_anew)
{
    const struct guard_ask old = {4, 9, 0}, older = {4, 9, 1};

    begin_asked();
    for (unsigned k = 0; k < 3; k++)
        tell(k, 4, WATCH_MS);
    guard_on_step(&g, 1);
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    next();
    CHECK_UINT(act.ask[4], 2);
    CHECK_UINT(act.anew[4], 2);
    guard_on_age(&g, 1, &old, WATCH_MS, now); /* Sent before the step was noticed. */
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    guard_on_step(&g, 1);
    next();
    CHECK_UINT(act.anew[4], 2);
    guard_on_age(&g, 1, &older, WATCH_MS, now);
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    tell(1, 4, 0);
    now += WATCH / 4;
    look_again(1);
    CHECK_UINT(act.ask[4], 2);
    CHECK_UINT(act.anew[4], 0); /* Once is enough. */
    tell(1, 4, WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), 0);
}

TEST(a_mark_is_made_anew_also_if_the_link_broke_before_the_answer)
{
    begin_asked();
    guard_on_step(&g, 1);
    next();
    CHECK_UINT(act.anew[4], 2);
    look_again(1);
    CHECK_UINT(act.ask[4], 2);
    CHECK_UINT(act.anew[4], 2);
}

/* Another client may have had the mark made before the step. */
TEST(a_step_counts_for_a_nonce_that_is_found_later)
{
    with_witnesses = true;
    begin(LEN);
    answer_all(0);
    guard_on_step(&g, 1);
    look_again(4);
    answer_warming(4, 9, false);
    next();
    CHECK_UINT(act.ask[4], 0x0f);
    CHECK_UINT(act.anew[4], 2);
}

TEST(a_witness_that_refuses_is_left_out)
{
    begin_asked();
    for (unsigned k = 0; k < 4; k++)
        tell(k, 4, -1);
    next();
    CHECK_UINT(act.ask[4], 0);
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    run_until(since + 2 * WATCH, 0x10);
    CHECK_UINT(act.install, 0x10);
    CHECK_UINT(now, since + WATCH);
}

TEST(a_nonce_may_be_older_than_our_clock)
{
    begin_asked();
    guard_on_max(&g, 100 * 1000); /* The clock shows 77 s. */
    for (unsigned k = 0; k < 3; k++)
        tell(k, 4, 90 * 1000);
    CHECK_UINT(guard_left(&g, 4, now), 12 * DRIFT_S + 4 * ONE_MS);
    for (unsigned k = 0; k < 3; k++)
        tell(k, 4, INT64_MAX);
    CHECK_UINT(guard_left(&g, 4, now), 0);
}

TEST(without_witnesses_none_is_asked)
{
    with_witnesses = false;
    begin_warming(ALL);
    next();
    for (unsigned m = 0; m < LEN; m++)
        CHECK_UINT(act.ask[m], 0);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
}

TEST(who_looks_on_asks_and_gives_no_epochs)
{
    begin_asked();
    g.passive = true;
    for (unsigned k = 0; k < 4; k++)
        tell(k, 4, WATCH_MS);
    CHECK_UINT(guard_left(&g, 4, now), 0);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
    next();
    CHECK_UINT(act.install, 0);
    guard_on_step(&g, 1); /* It cannot have the mark made anew. */
    next();
    CHECK_UINT(act.ask[4], 0);
}

/* Both lists must agree. */
TEST(witnesses_of_both_lists_are_needed)
{
    with_witnesses = true;
    begin(LEN);
    members = (struct members){0x07, 0x19};
    guard_on_change(&g, 0);
    answer_all(1);
    next();
    CHECK_UINT(act.ask[0], 0x1e);
    tell(1, 0, WATCH_MS);
    tell(2, 0, WATCH_MS);
    tell(3, 0, WATCH_MS);
    CHECK_UINT(guard_left(&g, 0, now), WATCH);
    tell(4, 0, WATCH_MS);
    CHECK_UINT(guard_left(&g, 0, now), 0);
    guard_on_change(&g, 0x02); /* Number 2 belongs to another master now. */
    CHECK_UINT(guard_left(&g, 0, now), WATCH);
    members = (struct members){0x1d, 0x1d};
    guard_on_change(&g, 0);
    CHECK_UINT(guard_left(&g, 0, now), 0);
}

/* ---- Clients that try once ---- */

TEST(masters_may_be_hoped_for_while_witnesses_are_asked)
{
    with_witnesses = true;
    begin_warming(ALL);
    next();
    CHECK_UINT(guard_hopefuls(&g, 0, now), ALL);
    tell(0, 4, 0);
    CHECK_UINT(guard_hopefuls(&g, 0, now), ALL);
    tell(1, 4, 0); /* Now two witnesses are left, and three are needed. */
    CHECK_UINT(guard_hopefuls(&g, 0, now), ALL & ~0x10u);
    for (unsigned m = 0; m < 4; m++)
        for (unsigned k = 0; k < LEN; k++)
            if (k != m)
                tell(k, m, WATCH_MS - 1);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
    now += ONE_MS;
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0x0f); /* These are due. */
    next();
    CHECK_UINT(guard_hopefuls(&g, 0, now), ALL); /* All are asked, and they are installed then. */
}

/* Witnesses that we are connecting to may help, but not those that are down. */
TEST(witnesses_that_are_coming_are_hoped_for)
{
    with_witnesses = true;
    begin(LEN);
    for (unsigned m = 2; m < LEN; m++)
        guard_on_link(&g, m, false);
    answer_all(0x03);
    next();
    tell(1, 0, WATCH_MS);
    tell(0, 1, WATCH_MS);
    CHECK_UINT(guard_hopefuls(&g, 0x1c, now), 0x03);
    CHECK_UINT(guard_hopefuls(&g, 0x0c, now), 0); /* All four others must be read. */
    tell(0, 1, 0);
    CHECK_UINT(guard_hopefuls(&g, 0x1c, now), 0x03);
    guard_on_link(&g, 2, true);
    next();
    answer_ready(2, 3, MAX_TTL_MS);
    next();
    tell(2, 1, 0);
    CHECK_UINT(guard_hopefuls(&g, 0x18, now), 0x05);
}

CHECK_MAIN(RUN(each_witness_is_asked_once_on_a_link), RUN(a_majority_says_how_old_a_nonce_is),
           RUN(others_are_read_when_witnesses_say_that_it_is_due),
           RUN(others_are_read_again_if_the_nonce_was_seen_later),
           RUN(a_watch_of_its_own_counts_if_it_is_longer), RUN(a_warming_master_is_a_witness),
           RUN(no_master_is_a_witness_of_its_own), RUN(an_age_of_another_nonce_does_not_count),
           RUN(a_witness_whose_clock_was_stepped_begins_anew),
           RUN(a_mark_is_made_anew_also_if_the_link_broke_before_the_answer),
           RUN(a_step_counts_for_a_nonce_that_is_found_later),
           RUN(a_witness_that_refuses_is_left_out), RUN(a_nonce_may_be_older_than_our_clock),
           RUN(without_witnesses_none_is_asked), RUN(who_looks_on_asks_and_gives_no_epochs),
           RUN(witnesses_of_both_lists_are_needed),
           RUN(masters_may_be_hoped_for_while_witnesses_are_asked),
           RUN(witnesses_that_are_coming_are_hoped_for))
