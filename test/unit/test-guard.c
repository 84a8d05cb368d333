/*
 * test-guard.c - the rules of the restart guard, one by one, on five masters.
 *
 * The test feeds the machine by hand: a link comes up, a master answers a query, time
 * passes.  The simulator shows that the rules suffice.
 */
#include "redlock/core/guard.h"

#include "test/lib/watch.h"

TEST(votes_when_a_majority_is_ready)
{
    begin(LEN);
    answer_ready(0, 1, MAX_TTL_MS);
    answer_ready(1, 2, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0); /* Rule 3. */
    CHECK_UINT(guard_hopefuls(&g, 0, now), ALL);
    answer_ready(3, 4, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0x0b);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0x14);
    guard_on_link(&g, 0, false);
    guard_on_link(&g, 1, false);
    CHECK_UINT(guard_voters(&g), 0x08); /* A majority has known our longest lease. */
}

TEST(a_new_link_is_looked_at)
{
    begin(LEN);
    answer_all(0);
    CHECK_UINT(guard_voters(&g), ALL);
    guard_on_link(&g, 2, false);
    guard_on_link(&g, 2, true);
    CHECK_UINT(guard_voters(&g), ALL & ~4u);
    next();
    CHECK_UINT(act.look, 4);
    answer_all(0);
    CHECK_UINT(guard_voters(&g), ALL);
    next();
    CHECK_UINT(act.look, 0);
    CHECK_UINT(act.wake_at, DRIFT_NEVER); /* No work is left, so it never wakes. */
}

TEST(who_forgot_is_watched_for_the_longest_lease)
{
    begin_warming(0x10);
    CHECK_UINT(guard_voters(&g), 0x0f);
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    CHECK_UINT(guard_left(&g, 0, now), 0);
    run_until(since + WATCH - 1, 0x10);
    CHECK_UINT(act.install, 0);
    CHECK_UINT(guard_left(&g, 4, now), 1);
    run_until(since + 2 * WATCH, 0x10);
    CHECK_UINT(act.install, 0x10);
    CHECK_UINT(now, since + WATCH);
    answer_ready(4, 5, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), ALL);
}

TEST(a_new_nonce_begins_anew)
{
    begin_warming(0x10);
    run_until(now + WATCH / 2, 0x10);
    g.masters[4].look_at = 0; /* Now. */
    next();
    answer_warming(4, 10, false);
    since = now;
    CHECK_UINT(guard_left(&g, 4, now), WATCH);
    while (now < since + WATCH - 1) {
        next();
        CHECK_UINT(act.install, 0);
        for (unsigned m = 0; m < LEN; m++)
            if (g.masters[m].asked)
                m == 4 ? answer_warming(m, 10, false) : answer_ready(m, m + 1, MAX_TTL_MS);
        now += WATCH / 10 < since + WATCH - 1 - now ? WATCH / 10 : since + WATCH - 1 - now;
    }
}

TEST(a_watch_survives_its_link)
{
    begin_warming(0x10);
    guard_on_link(&g, 4, false);
    now += WATCH / 2;
    CHECK_UINT(guard_left(&g, 4, now), WATCH / 2);
    guard_on_link(&g, 4, true);
    run_until(since + 2 * WATCH, 0x10);
    CHECK_UINT(act.install, 0x10);
    CHECK_UINT(now, since + WATCH);
}

/* Rule 2: queries of the other masters count only after the epoch is due. */
TEST(others_are_read_after_it_was_due)
{
    begin_warming(0x10);
    now += WATCH;
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(act.look, 0x1f);
    answer_ready(0, 1, MAX_TTL_MS);
    answer_ready(1, 2, MAX_TTL_MS);
    answer_warming(4, 9, false);
    next();
    CHECK_UINT(act.install, 0); /* Two other masters do not meet every majority; three do. */
    answer_ready(2, 3, MAX_TTL_MS);
    next();
    CHECK_UINT(act.install, 0x10);
}

TEST(a_longer_lease_is_waited_for)
{
    begin_warming(0x10);
    now += WATCH;
    next();
    answer_ready(0, 1, MAX_TTL_MS);
    answer_ready(1, 2, 3 * MAX_TTL_MS); /* A client with longer leases has come. */
    answer_ready(2, 3, MAX_TTL_MS);
    answer_warming(4, 9, false);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(g.longest_ms, 3 * MAX_TTL_MS);
    CHECK_UINT(guard_left(&g, 4, since), 3 * MAX_TTL_MS * ONE_MS + 64 * ONE_MS);
    run_until(since + 10 * WATCH, 0x10);
    CHECK_UINT(act.install, 0x10);
    CHECK_UINT(now, since + 3 * MAX_TTL_MS * ONE_MS + 64 * ONE_MS);
}

TEST(a_longer_lease_is_heard_of_without_a_look)
{
    begin_warming(0x10);
    guard_on_max(&g, 3 * MAX_TTL_MS);
    guard_on_max(&g, MAX_TTL_MS);
    CHECK_UINT(g.longest_ms, 3 * MAX_TTL_MS);
    CHECK_UINT(guard_left(&g, 4, now), 3 * MAX_TTL_MS * ONE_MS + 64 * ONE_MS);
}

/* Then no master can report the longest lease. */
TEST(a_longer_lease_is_remembered_when_all_forget)
{
    begin(LEN);
    for (unsigned m = 0; m < LEN; m++)
        answer_ready(m, m + 1, 3 * MAX_TTL_MS);
    for (unsigned m = 0; m < LEN; m++)
        look_again(m);
    since = now;
    run_until(since + 10 * WATCH, ALL);
    CHECK_UINT(act.install & ALL, act.install);
    CHECK(act.install != 0);
    CHECK_UINT(now, since + 3 * MAX_TTL_MS * ONE_MS + 64 * ONE_MS);
}

/* If two are ready, one is down and two forgot, the longest lease cannot be known. */
TEST(too_few_others_are_no_proof)
{
    begin(LEN);
    guard_on_link(&g, 0, false);
    answer_all(0x18);
    run_until(now + 10 * WATCH, 0x18);
    CHECK_UINT(act.install, 0);
    guard_on_link(&g, 0, true);
    run_until(now + 10 * WATCH, 0x18);
    CHECK_UINT(act.install & 0x18, act.install);
    CHECK(act.install != 0);
}

TEST(all_that_forgot_together_warm_together)
{
    begin_warming(ALL);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
    run_until(since + 2 * WATCH, ALL);
    CHECK_UINT(now, since + WATCH);
    CHECK_UINT(act.install, ALL);
    for (unsigned m = 0; m < LEN; m++)
        answer_ready(m, 5 + m, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), ALL);
}

/* Rule 4. */
TEST(new_masters_vote_at_once)
{
    begin(LEN);
    for (unsigned m = 0; m < LEN; m++) {
        next();
        CHECK_UINT(act.install, 0); /* All masters must be new. */
        CHECK_UINT(guard_hopefuls(&g, 0, now), ALL);
        answer_warming(m, m + 1, true);
    }
    next();
    CHECK_UINT(act.install, ALL);
    for (unsigned m = 0; m < LEN; m++)
        answer_ready(m, 5 + m, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), ALL);
}

/* Rule 5. */
TEST(two_with_the_same_epoch_do_not_vote)
{
    begin(LEN);
    for (unsigned m = 0; m < LEN; m++)
        answer_ready(m, m < 4 ? m + 1 : 3, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0x0b);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
    CHECK_UINT(guard_twin(&g, 2), 4);
    CHECK_UINT(guard_twin(&g, 4), 2);
    CHECK_UINT(guard_twin(&g, 0), QUORUM_MASTERS_MAX);
    next();
    CHECK_UINT(act.look, 0);
    now = act.wake_at; /* The guard queries both again, because an operator may empty one. */
    next();
    CHECK_UINT(act.look, 0x14);
    answer_ready(2, 3, MAX_TTL_MS);
    answer_warming(4, 9, false);
    CHECK_UINT(guard_voters(&g), 0x0f);
    now = act.wake_at;
    next();
    CHECK_UINT(act.look & 4, 4); /* One more query was planned, and then none. */
    answer_ready(2, 3, MAX_TTL_MS);
    now += 10 * DRIFT_S;
    next();
    CHECK_UINT(act.look & 4, 0);
}

/* m4 has the data of m5, which is down and may come back. */
TEST(nor_does_one_with_the_epoch_of_one_that_is_down)
{
    begin(LEN);
    answer_all(0);
    guard_on_link(&g, 4, false);
    look_again(3);
    answer_ready(3, 5, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0x07);
    look_again(3);
    answer_ready(3, 5, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0x07);
    look_again(4);
    answer_ready(4, 6, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), ALL);
}

/* Any three other masters know the greatest number drawn; two and a copy of one may not. */
TEST(what_a_copy_tells_is_no_proof)
{
    begin_warming(1);
    CHECK_UINT(guard_floor(&g), high);
    look_again(4);
    guard_on_link(&g, 1, false);
    answer_ready(4, 4, MAX_TTL_MS);
    CHECK_UINT(guard_floor(&g), time_us);
    now += 2 * WATCH;
    next();
    CHECK_UINT(act.look, 0x1d);
    answer_warming(0, 9, false);
    for (unsigned m = 2; m < LEN; m++)
        answer_ready(m, m < 4 ? m + 1 : 4, MAX_TTL_MS);
    next();
    CHECK_UINT(act.install, 0);
    run_until(now + WATCH, 1); /* Then m5 reports its own epoch. */
    CHECK_UINT(act.install, 1);
}

/* Found by the simulator (seed 3059315).  Masters 1 and 2 were new when this client was cut off
 * from them.  Meanwhile they vote, and master 3 lost its data. */
TEST(what_was_new_may_vote_by_now)
{
    begin(3);
    answer_warming(0, 1, true);
    answer_warming(1, 2, true);
    guard_on_link(&g, 0, false);
    guard_on_link(&g, 1, false);
    now += DRIFT_S;
    guard_on_link(&g, 0, true);
    guard_on_link(&g, 1, true);
    next();
    now += ONE_MS;
    answer_warming(2, 3, true);
    next();
    CHECK_UINT(act.install, 0);
    now += ONE_MS;
    answer_ready(0, 4, MAX_TTL_MS);
    answer_ready(1, 5, MAX_TTL_MS);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(guard_left(&g, 2, now), WATCH - ONE_MS);
}

/* Each master has one more query when all nonces are known. */
TEST(all_say_once_more_that_they_are_new)
{
    begin(3);
    for (unsigned m = 0; m < 3; m++) {
        now += ONE_MS;
        answer_warming(m, m + 1, true);
        next();
        CHECK_UINT(act.install, 0);
    }
    CHECK_UINT(act.look, 7);
    now += ONE_MS;
    answer_warming(0, 1, true);
    answer_warming(1, 2, true);
    next();
    CHECK_UINT(act.install, 0);
    answer_warming(2, 9, true); /* It lost its data just now. */
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(act.look, 7);
    now += ONE_MS;
    answer_warming(0, 1, true);
    answer_warming(1, 2, true);
    answer_warming(2, 9, true);
    next();
    CHECK_UINT(act.install, 7);
}

TEST(some_new_masters_do_not)
{
    begin(LEN);
    answer_ready(0, 1, MAX_TTL_MS);
    for (unsigned m = 1; m < LEN; m++)
        answer_warming(m, m + 1, true);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(act.look, 0x1e); /* They are told that they are not. */
    for (unsigned m = 1; m < LEN; m++)
        answer_warming(m, m + 1, false);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 1);
}

TEST(one_that_does_not_keep_makes_none_new)
{
    begin(LEN);
    for (unsigned m = 0; m < LEN; m++)
        answer_warming(m, m + 1, m != 2);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
}

TEST(masters_once_seen_are_not_new)
{
    begin(LEN);
    answer_all(0);
    for (unsigned m = 0; m < LEN; m++) {
        guard_on_link(&g, m, false);
        guard_on_link(&g, m, true);
    }
    next();
    for (unsigned m = 0; m < LEN; m++)
        answer_warming(m, m + 1, true);
    next();
    CHECK_UINT(act.install, 0);
}

TEST(one_master_is_a_cluster_too)
{
    begin(1);
    answer_warming(0, 9, false);
    since = now;
    run_until(since + 2 * WATCH, 1);
    CHECK_UINT(act.install, 1);
    CHECK_UINT(now, since + WATCH);
    answer_ready(0, 5, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 1);
}

/* `redlock status` may know only some of the masters. */
TEST(who_looks_on_gives_no_epochs)
{
    begin(LEN);
    g.passive = true;
    for (unsigned m = 0; m < LEN; m++)
        answer_warming(m, m + 1, true);
    next();
    CHECK_UINT(act.look, 0);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
    run_until(now + 3 * WATCH, ALL);
    CHECK_UINT(act.install, 0);
}

/* An answer without a question, or from an old link, does not count. */
TEST(answers_must_be_asked_for)
{
    begin(LEN);
    answer_all(0);
    answer_warming(1, 9, false);
    CHECK_UINT(guard_voters(&g), ALL);
    guard_on_link(&g, 1, false);
    answer_ready(1, 2, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), ALL & ~2u);
}

/* Rule 2: the greatest number of all masters counts, and the clocks do not. */
TEST(counters_begin_with_the_greatest_of_others)
{
    begin(LEN);
    for (unsigned m = 0; m < 4; m++) {
        high = 1000 + 10 * (m % 3);
        answer_ready(m, m + 1, MAX_TTL_MS);
    }
    time_us = 9000;
    answer_warming(4, 9, false);
    CHECK_UINT(guard_floor(&g), 1020);
    high = 1030; /* The counters go on meanwhile. */
    run_until(now + 2 * WATCH, 0x10);
    CHECK_UINT(act.install, 0x10);
    CHECK_UINT(act.floor, 1030);
}

/* Numbers read before the epoch is due are too old: a fencing token may be drawn after that
 * with the help of the forgotten vote. */
TEST(counters_are_read_after_it_was_due)
{
    begin_warming(0x10);
    now += WATCH;
    next();
    CHECK_UINT(act.install, 0);
    high = 1001;
    answer_ready(0, 1, MAX_TTL_MS);
    high = 1000;
    answer_ready(1, 2, MAX_TTL_MS);
    answer_warming(4, 9, false);
    next();
    CHECK_UINT(act.install, 0);
    high = 1002;
    answer_ready(2, 3, MAX_TTL_MS);
    next();
    CHECK_UINT(act.install, 0x10);
    CHECK_UINT(act.floor, 1002);
}

/* Three masters forgot.  Some majorities share no master with the other two. */
TEST(where_counters_were_lost_they_begin_with_the_time)
{
    begin(LEN);
    for (unsigned m = 0; m < LEN; m++) {
        time_us = 5000 + 100 * m;
        if (m < 2)
            answer_ready(m, m + 1, MAX_TTL_MS);
        else
            answer_warming(m, 9, false);
    }
    CHECK_UINT(guard_floor(&g), 5200);
    high = 5300; /* A greater number counts instead of the time. */
    look_again(0);
    answer_ready(0, 1, MAX_TTL_MS);
    CHECK_UINT(guard_floor(&g), 5300);
}

/* A master may have lost its epoch and kept its high-water mark. */
TEST(a_number_that_was_kept_counts)
{
    const struct guard_look look = {false, false, 9, MAX_TTL_MS, 0, 7777, 5000, {false, 0, 0, 0}};

    begin(LEN);
    for (unsigned m = 0; m < 4; m++)
        answer_ready(m, m + 1, MAX_TTL_MS);
    guard_on_look(&g, 4, &look, now);
    CHECK_UINT(guard_floor(&g), 7777);
}

/* New masters agree on the time, however wrong some of their clocks are. */
TEST(new_masters_begin_with_the_middle_of_the_clocks)
{
    static const uint64_t times[LEN] = {9, 5003, UINT64_C(1) << 52, 5001, 5002};

    begin(LEN);
    for (unsigned m = 0; m < LEN; m++) {
        time_us = times[m];
        answer_warming(m, m + 1, true);
    }
    next();
    CHECK_UINT(act.install, ALL);
    CHECK_UINT(act.floor, 5002);
}

/* Else a wrong number would spread to all masters. */
TEST(a_number_far_ahead_of_the_clocks_is_not_handed_on)
{
    begin(LEN);
    high = time_us + (UINT64_C(1) << 40);
    answer_all(0x10);
    CHECK_UINT(guard_floor(&g), high);
    high++;
    look_again(2);
    answer_ready(2, 3, MAX_TTL_MS);
    CHECK_UINT(guard_floor(&g), 0);
    run_until(now + 3 * WATCH, 0x10);
    CHECK_UINT(act.install, 0);
    next();
    CHECK(act.wake_at > now); /* The guard does not spin. */
    high = 1000;              /* An operator has corrected the number. */
    run_until(now + WATCH, 0x10);
    CHECK_UINT(act.install, 0x10);
    CHECK_UINT(act.floor, 1000);
}

static uint64_t unkept_from; /* The first number that is unkept; 0: none. */

static uint64_t number_of(unsigned master, uint64_t count)
{
    bool unkept;
    uint64_t number = guard_number(&g, master, count, &unkept);

    if (unkept && unkept_from == 0)
        unkept_from = number;
    return number;
}

TEST(a_number_that_may_be_forgotten_is_raised)
{
    begin(LEN);
    floor_us = 5000;
    high = floor_us + (1 << 14);
    answer_all(0);
    unkept_from = 0;
    CHECK_UINT(number_of(2, 1), 5001);
    CHECK_UINT(number_of(2, 1 << 14), high);
    CHECK_UINT(unkept_from, 0);
    CHECK_UINT(number_of(2, (1 << 14) + 1), high + 1);
    CHECK_UINT(unkept_from, high + 1);
    guard_on_raised(&g, 2, high); /* The guard knew this. */
    guard_on_raised(&g, 3, high + 1);
    unkept_from = 0;
    CHECK_UINT(number_of(2, (1 << 14) + 1), high + 1);
    CHECK_UINT(unkept_from, high + 1);
    guard_on_raised(&g, 2, high + 1); /* The mark goes up by a whole step. */
    unkept_from = 0;
    CHECK_UINT(number_of(2, 2 << 14), high + (1 << 14));
    CHECK_UINT(unkept_from, 0);
    CHECK_UINT(number_of(2, (2 << 14) + 1), high + (1 << 14) + 1);
    CHECK_UINT(unkept_from, high + (1 << 14) + 1);
}

TEST(a_number_that_no_counter_can_have_is_none)
{
    begin(LEN);
    floor_us = 5000;
    answer_all(0x10);
    CHECK_UINT(number_of(0, UINT64_C(1) << 40), 5000 + (UINT64_C(1) << 40));
    CHECK_UINT(number_of(0, (UINT64_C(1) << 40) + 1), 0);
    CHECK_UINT(number_of(0, QUORUM_FENCE_MAX - 4999), 0);
    CHECK_UINT(number_of(4, 1), 0); /* m5 has lost its floor. */
    guard_on_raised(&g, 4, 7000);
    guard_on_link(&g, 0, false);
    CHECK_UINT(number_of(0, 1), 0);
}

CHECK_MAIN(RUN(a_number_that_may_be_forgotten_is_raised),
           RUN(a_number_that_no_counter_can_have_is_none),
           RUN(counters_begin_with_the_greatest_of_others), RUN(counters_are_read_after_it_was_due),
           RUN(where_counters_were_lost_they_begin_with_the_time),
           RUN(a_number_that_was_kept_counts), RUN(new_masters_begin_with_the_middle_of_the_clocks),
           RUN(a_number_far_ahead_of_the_clocks_is_not_handed_on),
           RUN(votes_when_a_majority_is_ready), RUN(a_new_link_is_looked_at),
           RUN(who_forgot_is_watched_for_the_longest_lease), RUN(a_new_nonce_begins_anew),
           RUN(a_watch_survives_its_link), RUN(a_longer_lease_is_remembered_when_all_forget),
           RUN(others_are_read_after_it_was_due), RUN(a_longer_lease_is_waited_for),
           RUN(a_longer_lease_is_heard_of_without_a_look), RUN(too_few_others_are_no_proof),
           RUN(all_that_forgot_together_warm_together), RUN(new_masters_vote_at_once),
           RUN(two_with_the_same_epoch_do_not_vote),
           RUN(nor_does_one_with_the_epoch_of_one_that_is_down), RUN(what_a_copy_tells_is_no_proof),
           RUN(what_was_new_may_vote_by_now), RUN(all_say_once_more_that_they_are_new),
           RUN(some_new_masters_do_not), RUN(one_that_does_not_keep_makes_none_new),
           RUN(masters_once_seen_are_not_new), RUN(one_master_is_a_cluster_too),
           RUN(who_looks_on_gives_no_epochs), RUN(answers_must_be_asked_for))
