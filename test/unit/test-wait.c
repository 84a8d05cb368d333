/*
 * test-wait.c - who waits: when it looks, and when it tries.
 */
#include "redlock/core/wait.h"

#include "test/lib/check.h"

#define START (1000 * DRIFT_S)
#define PAUSE_MIN (50 * DRIFT_MS)
#define PAUSE_MAX (200 * DRIFT_MS)

static struct wait w;
static struct wait_actions act;
static struct wait_now now;

static void begin(unsigned masters)
{
    wait_init(&w, masters, false);
    now = (struct wait_now){.now = START,
                            .waits = true,
                            .up = (quorum_mask)((1u << masters) - 1),
                            .pause_min = PAUSE_MIN,
                            .pause_max = PAUSE_MAX};
}

static void next(void)
{
    wait_next(&w, &now, &act);
}

/* All are heard, and were looked at: the key lasts for so long. */
static void begin_held(unsigned masters, int64_t pttl_ms)
{
    begin(masters);
    for (unsigned m = 0; m < masters; m++)
        wait_on_hears(&w, m, true);
    next();
    CHECK_UINT(act.look, now.up);
    for (unsigned m = 0; m < masters; m++)
        wait_on_look(&w, m, pttl_ms, now.now);
    next();
}

static void hear_free(unsigned low, unsigned high, unsigned rivals)
{
    for (unsigned m = low; m < high; m++)
        wait_on_free(&w, m, rivals, now.now);
    next();
}

TEST(who_begins_to_listen_looks)
{
    begin(3);
    next();
    CHECK_UINT(act.look, 0);
    CHECK(!act.relies);
    wait_on_hears(&w, 1, true);
    next();
    CHECK_UINT(act.look, 2);
    next();
    CHECK_UINT(act.look, 0); /* It owes an answer. */
    wait_on_link(&w, 1);
    wait_on_hears(&w, 1, true);
    next();
    CHECK_UINT(act.look, 2);
}

TEST(a_master_that_cannot_be_asked_is_looked_at_later)
{
    begin(3);
    now.up = 5;
    wait_on_hears(&w, 1, true);
    next();
    CHECK_UINT(act.look, 0);
    now.up = 7;
    next();
    CHECK_UINT(act.look, 2);
}

TEST(it_relies_on_a_majority_that_is_heard_and_known)
{
    begin(5);
    for (unsigned m = 0; m < 3; m++)
        wait_on_hears(&w, m, true);
    next();
    for (unsigned m = 0; m < 2; m++)
        wait_on_look(&w, m, 5000, now.now);
    next();
    CHECK(!act.relies);
    wait_on_look(&w, 2, 5000, now.now);
    next();
    CHECK(act.relies);
    wait_on_hears(&w, 2, false);
    next();
    CHECK(!act.relies);
}

TEST(a_majority_that_is_free_is_tried_at_once)
{
    begin_held(5, 5000);
    hear_free(0, 2, 1);
    CHECK(act.try_at > now.now);
    hear_free(2, 3, 1);
    CHECK_UINT(act.try_at, now.now);
}

TEST(of_many_few_try_at_once)
{
    unsigned tried = 0;

    for (unsigned i = 0; i < 1600; i++) {
        begin_held(5, 5000);
        now.random = i * UINT32_C(2684354);
        hear_free(0, 5, 16);
        tried += act.try_at == now.now;
        if (act.try_at != now.now) {
            CHECK(act.try_at <= now.now + 16 * 50 * DRIFT_MS / WAIT_TRIERS);
            CHECK(act.wake_at == act.try_at);
        }
    }
    CHECK(tried >= 1600 / 16 * WAIT_TRIERS - 2 && tried <= 1600 / 16 * WAIT_TRIERS + 2);
}

/* Two cannot split an odd number of masters. */
TEST(of_two_both_try_whatever_the_lots)
{
    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 3, 2);
    CHECK_UINT(act.try_at, now.now);
}

TEST(who_does_not_try_does_so_later_if_nobody_did)
{
    drift_time turn;

    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    turn = act.try_at;
    CHECK(turn > now.now && turn < DRIFT_NEVER);
    now.now = turn - 1;
    now.random = 0; /* The lot is drawn. */
    next();
    CHECK_UINT(act.try_at, turn);
    now.now = turn;
    next();
    CHECK_UINT(act.try_at, turn);
}

/* With many rivals, and round trips that are slow, its turn would come after that of who has
 * heard nothing. */
TEST(no_lot_is_later_than_the_next_look_would_be)
{
    begin_held(5, 60000);
    wait_on_try(&w, now.now);
    wait_on_lost(&w, DRIFT_S, &now);
    now.random = UINT32_MAX;
    hear_free(0, 5, 1000);
    CHECK(act.try_at > now.now && act.try_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
}

/* A look was out, or due, when it was released: who sees it free for himself goes. */
TEST(who_waits_for_his_turn_and_sees_a_majority_free_tries)
{
    begin_held(5, 60000);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 31);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    CHECK(act.try_at > now.now);
    for (unsigned m = 0; m < 3; m++)
        wait_on_look(&w, m, -2, now.now);
    next();
    CHECK_UINT(act.try_at, now.now);
}

/* All masters hear of who has it, by one of them, and that one tells of its release. */
static void begin_taken(unsigned masters, unsigned teller)
{
    begin(masters);
    for (unsigned m = 0; m < masters; m++)
        wait_on_hears(&w, m, true);
    next();
    for (unsigned m = 0; m < masters; m++)
        wait_on_look(&w, m, WAIT_NO_ANSWER, now.now);
    wait_on_taken(&w, teller, 5000, now.now);
    next();
}

TEST(what_the_teller_says_is_of_all_masters)
{
    begin_taken(5, 3);
    CHECK(act.relies);
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
    hear_free(3, 4, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* The next is told by another one. */
TEST(only_the_latest_teller_speaks_for_all)
{
    begin_taken(5, 3);
    wait_on_taken(&w, 0, 6000, now.now);
    hear_free(3, 4, 1);
    CHECK(act.try_at >= now.now + 6000 * DRIFT_MS);
    hear_free(0, 1, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* A round that was lost is taken back; who found its key there had that marked. */
TEST(a_master_that_is_no_teller_speaks_for_itself)
{
    begin_taken(5, 3);
    wait_on_held(&w, 1, 9000, now.now);
    hear_free(1, 2, 48);
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
    hear_free(3, 4, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* Those that were looked at tell of the same release. */
TEST(who_drew_when_the_teller_told_does_not_draw_for_the_others)
{
    drift_time turn;

    begin_taken(5, 3);
    now.random = UINT32_MAX;
    hear_free(3, 4, 16);
    turn = act.try_at;
    CHECK(turn > now.now);
    now.random = 0;
    hear_free(0, 3, 16);
    hear_free(4, 5, 16);
    CHECK_UINT(act.try_at, turn);
    wait_on_taken(&w, 2, 5000, now.now);
    next();
    hear_free(2, 3, 16); /* This is the next one. */
    CHECK_UINT(act.try_at, now.now);
}

TEST(who_does_not_hear_the_teller_looks_at_the_others)
{
    begin_taken(5, 3);
    CHECK_UINT(act.look, 0);
    wait_on_hears(&w, 3, false);
    next();
    CHECK_UINT(act.look, 0x17);
    hear_free(3, 4, 1);
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
}

TEST(who_is_not_heard_cannot_be_the_teller)
{
    begin(5);
    for (unsigned m = 0; m < 3; m++)
        wait_on_hears(&w, m, true);
    wait_on_taken(&w, 3, 5000, now.now);
    next();
    CHECK(!act.relies);
    wait_on_taken(&w, 2, 5000, now.now);
    next();
    CHECK(act.relies);
}

/* What was seen free where we do not listen is not so any more. */
TEST(what_is_taken_is_not_free_where_it_was_seen)
{
    begin(5);
    for (unsigned m = 0; m < 3; m++)
        wait_on_hears(&w, m, true);
    next();
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look & 0x18, 0x18);
    wait_on_look(&w, 3, -2, now.now);
    wait_on_look(&w, 4, -2, now.now);
    wait_on_taken(&w, 0, 5000, now.now);
    wait_on_free(&w, 1, 1, now.now);
    next();
    CHECK(act.try_at >= now.now + 5000 * DRIFT_MS);
}

/* Of one release each master tells once: so many lots would be too many who try.  A release
 * of what was taken unheard does not call for another, either: the turn comes soon. */
TEST(of_one_release_lots_are_drawn_once)
{
    drift_time turn;

    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 3, 16);
    turn = act.try_at;
    CHECK(turn > now.now);
    now.random = 0;
    hear_free(3, 5, 16);
    hear_free(0, 5, 16);
    CHECK_UINT(act.try_at, turn);
    for (unsigned m = 0; m < 3; m++)
        wait_on_held(&w, m, 9000, now.now);
    next();
    hear_free(0, 3, 16); /* This is the next one. */
    CHECK_UINT(act.try_at, now.now);
}

/* What was heard to be taken is told to be free as it should be. */
TEST(who_drew_and_heard_of_some_that_are_taken_does_not_draw_for_these)
{
    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    now.random = 0;
    for (unsigned m = 0; m < 2; m++)
        wait_on_held(&w, m, 9000, now.now);
    hear_free(0, 2, 16);
    CHECK(act.try_at > now.now);
}

TEST(who_does_not_try_sleeps_on_if_somebody_did)
{
    begin_held(5, 5000);
    now.random = UINT32_MAX;
    hear_free(0, 5, 16);
    for (unsigned m = 0; m < 3; m++)
        wait_on_held(&w, m, 9000, now.now);
    next();
    CHECK(act.try_at >= now.now + 9000 * DRIFT_MS);
}

TEST(a_lock_that_runs_out_is_tried_for_soon_after)
{
    const drift_time end = START + 5001 * DRIFT_MS; /* Rounded up. */

    begin_held(3, 5000);
    CHECK_UINT(act.try_at, end + WAIT_EXPIRY_MIN);
    now.random = UINT32_MAX;
    begin_held(3, 5000);
    for (unsigned i = 0; i < 100; i++) {
        begin(3);
        now.random = i * UINT32_C(42949672);
        for (unsigned m = 0; m < 3; m++)
            wait_on_hears(&w, m, true);
        next();
        for (unsigned m = 0; m < 3; m++)
            wait_on_look(&w, m, 5000, now.now);
        next();
        CHECK(act.try_at >= end + WAIT_EXPIRY_MIN && act.try_at <= end + WAIT_EXPIRY_MAX);
    }
}

/* The second of three: then a majority is without the key. */
TEST(it_runs_out_when_a_majority_has_dropped_it)
{
    begin_held(3, 5000);
    wait_on_look(&w, 0, 1000, now.now);
    wait_on_look(&w, 1, 2000, now.now);
    next();
    CHECK_UINT(act.try_at, START + 2001 * DRIFT_MS + WAIT_EXPIRY_MIN);
}

/* By lot it was to be later, and so an older plan is void. */
TEST(an_older_plan_does_not_outlive_a_release)
{
    begin_held(5, 5000);
    CHECK(act.try_at != DRIFT_NEVER);
    now.random = UINT32_MAX;
    hear_free(0, 3, 16);
    CHECK(act.try_at > now.now && act.try_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
}

TEST(a_key_without_an_end_is_not_waited_out)
{
    begin_held(3, -1);
    CHECK(act.relies);
    CHECK_UINT(act.try_at, DRIFT_NEVER);
    CHECK(act.wake_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
}

TEST(in_time_it_looks_whatever_was_heard)
{
    begin_held(3, 60000);
    CHECK(act.wake_at >= now.now + WAIT_PATIENCE * PAUSE_MIN);
    CHECK(act.wake_at <= now.now + WAIT_PATIENCE * PAUSE_MAX);
    now.now = act.wake_at - 1;
    next();
    CHECK_UINT(act.look, 0);
    now.now++;
    next();
    CHECK_UINT(act.look, 7);
}

/* Anybody may publish, and a release may be told to none: each hold that is heard of puts the
 * next look off, but not for ever. */
TEST(what_is_heard_again_and_again_does_not_keep_from_looking)
{
    unsigned looks = 0;

    begin_held(5, 60000);
    for (unsigned i = 0; i < 100; i++) {
        now.now += 100 * DRIFT_MS;
        now.random += UINT32_C(0x9e3779b9);
        if (i % 2 == 0)
            wait_on_taken(&w, 0, UINT32_MAX, now.now);
        else
            wait_on_taken(&w, 1, 500, now.now);
        next();
        looks += act.look == 31;
        for (unsigned m = 0; m < 5; m++)
            if (act.look & 1u << m)
                wait_on_look(&w, m, 60000, now.now);
    }
    CHECK(looks >= 100 * 100 / (WAIT_TRUST * WAIT_PATIENCE * 200) - 1);
    CHECK(looks <= 100 * 100 / (WAIT_PATIENCE * 50));
}

/* While masters answer nothing that counts, each lease tries for itself. */
TEST(who_tries_for_itself_goes_on_to_look)
{
    unsigned looks = 0;

    begin_held(3, 60000);
    for (unsigned i = 0; i < 100; i++) {
        now.now += 100 * DRIFT_MS;
        now.random += UINT32_C(0x9e3779b9);
        next();
        looks += act.look != 0;
        for (unsigned m = 0; m < 3; m++)
            if (act.look & 1u << m)
                wait_on_look(&w, m, i < 60 ? WAIT_NO_ANSWER : 60000, now.now);
        next();
        CHECK(i < 40 || i >= 60 || !act.relies);
        if (!act.relies) {
            wait_on_try(&w, now.now);
            wait_on_lost(&w, DRIFT_MS, &now);
        }
    }
    CHECK(act.relies);
    CHECK(looks >= 5);
}

TEST(looks_that_come_to_nothing_are_not_relied_on)
{
    begin_held(3, 60000);
    for (unsigned i = 0; i < 2; i++) {
        now.now = act.wake_at;
        next();
        CHECK(act.relies);
        for (unsigned m = 0; m < 3; m++)
            wait_on_look(&w, m, WAIT_NO_ANSWER, now.now);
        next();
        now.now = act.wake_at;
        next();
        CHECK(!act.relies);
        for (unsigned m = 0; m < 3; m++)
            wait_on_look(&w, m, 60000, now.now);
        next();
        CHECK(act.relies);
    }
}

TEST(what_made_a_round_begin_is_used_up)
{
    begin_held(5, 5000);
    hear_free(0, 5, 1);
    CHECK_UINT(act.try_at, now.now);
    wait_on_try(&w, now.now);
    wait_on_lost(&w, DRIFT_MS, &now);
    next();
    CHECK(act.try_at > now.now);
    hear_free(0, 3, 1); /* But not what is heard since. */
    CHECK_UINT(act.try_at, now.now);
}

TEST(what_is_heard_during_the_first_round_is_not_used_up)
{
    drift_time began;

    begin_held(3, 5000);
    began = now.now++;
    hear_free(0, 3, 1);
    now.now += DRIFT_MS;
    wait_on_try(&w, began);
    wait_on_lost(&w, DRIFT_MS, &now);
    next();
    CHECK_UINT(act.try_at, now.now);
}

TEST(who_lost_looks_soon_and_less_soon_each_time)
{
    drift_span before = 0;

    begin_held(5, 5000);
    for (unsigned i = 0; i < 12; i++) {
        drift_span span;

        hear_free(0, 5, 1);
        wait_on_try(&w, now.now);
        wait_on_lost(&w, DRIFT_MS, &now);
        next();
        span = act.wake_at - now.now;
        CHECK(span >= before && span <= WAIT_PATIENCE * PAUSE_MAX);
        CHECK(i >= 2 || span <= 20 * DRIFT_MS);
        CHECK(i != 11 || span >= WAIT_PATIENCE * PAUSE_MIN);
        before = span;
    }
}

static void lose(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        hear_free(0, 5, 1);
        wait_on_try(&w, now.now);
        wait_on_lost(&w, DRIFT_MS, &now);
    }
}

/* He may have asked for less time than a round takes, and lost them all. */
TEST(the_losses_of_who_has_left_are_his)
{
    begin_held(5, 5000);
    lose(12);
    hear_free(0, 5, 1);
    CHECK(act.try_at > now.now);
    wait_on_turn(&w, true);
    wait_on_try(&w, now.now);
    hear_free(0, 5, 1);
    CHECK_UINT(act.try_at, now.now);
    lose(12);
    wait_on_turn(&w, false);
    next();
    CHECK_UINT(act.look, 0);
    hear_free(0, 5, 1);
    CHECK_UINT(act.try_at, now.now);
}

/* Answers come on another connection than what is told. */
TEST(an_old_look_does_not_overrule_a_release)
{
    begin_held(3, 60000);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 7);
    for (unsigned m = 0; m < 3; m++)
        wait_on_free(&w, m, 1, now.now);
    for (unsigned m = 0; m < 3; m++)
        wait_on_look(&w, m, 60000, now.now);
    next();
    CHECK_UINT(act.try_at, now.now);
}

/* One of those that have it and owe no answer, any of them; nobody of ours needs to wait. */
TEST(who_won_tells_the_others_by_one_master)
{
    unsigned told = 0;

    for (unsigned i = 0; i < 3; i++) {
        begin_held(3, 5000);
        hear_free(0, 3, 4);
        wait_on_try(&w, now.now);
        wait_on_won(&w, 7, false);
        now.waits = false;
        now.random = i;
        next();
        CHECK_UINT((unsigned)__builtin_popcount(act.tell), 1);
        CHECK_UINT(act.look, 0);
        told |= act.tell;
    }
    CHECK_UINT(told, 7);
    for (unsigned i = 0; i < 3; i++) {
        wait_on_won(&w, 7, false);
        next();
    }
    CHECK_UINT(act.tell, 0); /* All owe an answer. */
    wait_on_link(&w, 1);
    wait_on_won(&w, 5, false);
    next();
    CHECK_UINT(act.tell, 0);
    wait_on_won(&w, 6, false);
    next();
    CHECK_UINT(act.tell, 2);
}

/* As for who has had it, and rests. */
TEST(who_waits_no_more_does_not_look)
{
    begin_held(3, 5000);
    wait_on_hears(&w, 0, true);
    now.waits = false;
    now.pause_min = now.pause_max = 0;
    for (unsigned i = 0; i < 10; i++) {
        now.now += DRIFT_S;
        next();
        CHECK_UINT(act.look, 0);
        CHECK_UINT(act.try_at, DRIFT_NEVER);
        CHECK_UINT(act.wake_at, DRIFT_NEVER);
    }
    now.waits = true;
    next();
    CHECK(act.look & 1);
}

TEST(who_won_and_was_alone_tells_nobody)
{
    begin_held(3, 5000);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, false);
    next();
    CHECK_UINT(act.tell, 0);
}

/* Others of ours are as good a reason, and need not look: it is ours. */
TEST(who_won_tells_the_others_of_ours_in_line)
{
    begin_held(3, 5000);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, true);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT((unsigned)__builtin_popcount(act.tell), 1);
    CHECK_UINT(act.look, 0);
}

/* It was had, and given back, in the same moment: to tell of it would be of somebody else's. */
TEST(who_gives_back_does_not_tell_and_looks_for_others_of_ours)
{
    begin_held(3, 5000);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, true);
    wait_on_turn(&w, true);
    wait_on_over(&w);
    next();
    CHECK_UINT(act.tell, 0);
    CHECK_UINT(act.look, 7);
}

/* As when all owe an answer. */
TEST(who_can_have_nobody_tell_looks_for_others_of_ours)
{
    begin_held(3, 60000);
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 7);
    hear_free(0, 3, 1);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, true);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT(act.tell, 0);
    for (unsigned m = 0; m < 3; m++)
        wait_on_link(&w, m);
    next();
    CHECK_UINT(act.look, 7);
}

/* Another of ours comes, and has lost a round meanwhile. */
TEST(who_has_it_tells_whoever_comes)
{
    begin_held(3, 5000);
    hear_free(0, 3, 4);
    wait_on_try(&w, now.now);
    wait_on_won(&w, 7, false);
    wait_on_try(&w, now.now);
    next();
    CHECK_UINT((unsigned)__builtin_popcount(act.tell), 1);
}

/* Its holder is dead, and another one has it, of whom nobody told. */
TEST(the_teller_is_none_when_what_it_told_of_has_run_out)
{
    begin_taken(5, 3);
    CHECK_UINT(wait_speaks_for(&w, 3), 31);
    now.now = START + 6 * DRIFT_S;
    next();
    CHECK_UINT(wait_speaks_for(&w, 3), 8);
}

TEST(readers_draw_no_lots)
{
    begin_held(5, 5000);
    w.shared = true;
    now.random = UINT32_MAX;
    hear_free(0, 3, 16);
    CHECK_UINT(act.try_at, now.now);
}

/* What has let one in lets in the next, who tries at once; and nobody is told. */
TEST(a_reader_lets_in_the_next)
{
    begin_held(5, 5000);
    w.shared = true;
    hear_free(0, 3, 16);
    wait_on_try(&w, now.now);
    now.now += DRIFT_MS;
    wait_on_won(&w, 0x0b, true);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT(act.try_at, now.now);
    CHECK_UINT(act.look & 0x0b, 0);
    wait_on_try(&w, now.now);
    wait_on_lost(&w, DRIFT_MS, &now);
    next();
    CHECK(act.try_at > now.now);
}

TEST(the_next_in_line_looks_at_what_is_not_known)
{
    begin_held(3, 5000);
    hear_free(0, 2, 1);
    wait_on_try(&w, now.now);
    wait_on_turn(&w, true);
    next();
    CHECK_UINT(act.look, 3);
}

TEST(who_is_not_heard_tells_nothing)
{
    begin_held(3, 60000);
    for (unsigned m = 0; m < 3; m++)
        wait_on_hears(&w, m, false);
    hear_free(0, 3, 1);
    CHECK(!act.relies);
    CHECK_UINT(act.try_at, DRIFT_NEVER);
}

/* A key of somebody's on one of those that are heard must not hide that most have none. */
TEST(a_majority_may_be_free_where_it_is_not_heard)
{
    begin(5);
    for (unsigned m = 0; m < 3; m++)
        wait_on_hears(&w, m, true);
    next();
    for (unsigned m = 0; m < 3; m++)
        wait_on_look(&w, m, 60000, now.now);
    next();
    now.now = act.wake_at;
    next();
    CHECK_UINT(act.look, 31);
    wait_on_look(&w, 0, 60000, now.now);
    for (unsigned m = 1; m < 4; m++)
        wait_on_look(&w, m, -2, now.now);
    next();
    CHECK_UINT(act.try_at, now.now);
    wait_on_try(&w, now.now);
    wait_on_look(&w, 4, 60000, now.now); /* But what it will be is not known. */
    next();
    CHECK_UINT(act.try_at, DRIFT_NEVER);
}

TEST(nonsense_is_no_answer)
{
    begin_held(3, 60000);
    for (unsigned m = 0; m < 3; m++)
        wait_on_look(&w, m, INT64_MAX, now.now);
    next();
    CHECK_UINT(act.try_at, DRIFT_NEVER);
    for (unsigned m = 0; m < 3; m++)
        wait_on_look(&w, m, -4, now.now);
    next();
    CHECK_UINT(act.try_at, DRIFT_NEVER);
}

TEST(pauses_of_nothing_do_not_spin)
{
    begin_held(3, 60000);
    now.pause_min = now.pause_max = 0;
    now.now = act.wake_at;
    next();
    CHECK(act.wake_at >= now.now + DRIFT_MS);
}

CHECK_MAIN(
    RUN(who_begins_to_listen_looks), RUN(a_master_that_cannot_be_asked_is_looked_at_later),
    RUN(it_relies_on_a_majority_that_is_heard_and_known),
    RUN(a_majority_that_is_free_is_tried_at_once), RUN(of_many_few_try_at_once),
    RUN(of_two_both_try_whatever_the_lots), RUN(who_does_not_try_does_so_later_if_nobody_did),
    RUN(no_lot_is_later_than_the_next_look_would_be),
    RUN(who_waits_for_his_turn_and_sees_a_majority_free_tries),
    RUN(what_the_teller_says_is_of_all_masters), RUN(only_the_latest_teller_speaks_for_all),
    RUN(a_master_that_is_no_teller_speaks_for_itself),
    RUN(who_drew_when_the_teller_told_does_not_draw_for_the_others),
    RUN(who_does_not_hear_the_teller_looks_at_the_others),
    RUN(who_is_not_heard_cannot_be_the_teller), RUN(what_is_taken_is_not_free_where_it_was_seen),
    RUN(of_one_release_lots_are_drawn_once),
    RUN(who_drew_and_heard_of_some_that_are_taken_does_not_draw_for_these),
    RUN(who_does_not_try_sleeps_on_if_somebody_did),
    RUN(a_lock_that_runs_out_is_tried_for_soon_after),
    RUN(it_runs_out_when_a_majority_has_dropped_it), RUN(an_older_plan_does_not_outlive_a_release),
    RUN(a_key_without_an_end_is_not_waited_out), RUN(in_time_it_looks_whatever_was_heard),
    RUN(what_is_heard_again_and_again_does_not_keep_from_looking),
    RUN(who_tries_for_itself_goes_on_to_look), RUN(looks_that_come_to_nothing_are_not_relied_on),
    RUN(what_made_a_round_begin_is_used_up),
    RUN(what_is_heard_during_the_first_round_is_not_used_up),
    RUN(who_lost_looks_soon_and_less_soon_each_time), RUN(the_losses_of_who_has_left_are_his),
    RUN(an_old_look_does_not_overrule_a_release), RUN(who_won_tells_the_others_by_one_master),
    RUN(who_waits_no_more_does_not_look), RUN(who_won_and_was_alone_tells_nobody),
    RUN(who_won_tells_the_others_of_ours_in_line),
    RUN(who_gives_back_does_not_tell_and_looks_for_others_of_ours),
    RUN(who_can_have_nobody_tell_looks_for_others_of_ours), RUN(who_has_it_tells_whoever_comes),
    RUN(the_teller_is_none_when_what_it_told_of_has_run_out), RUN(readers_draw_no_lots),
    RUN(a_reader_lets_in_the_next), RUN(the_next_in_line_looks_at_what_is_not_known),
    RUN(who_is_not_heard_tells_nothing), RUN(a_majority_may_be_free_where_it_is_not_heard),
    RUN(nonsense_is_no_answer), RUN(pauses_of_nothing_do_not_spin))
