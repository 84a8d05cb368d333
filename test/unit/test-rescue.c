/*
 * test-rescue.c - the rules of a rescue, one by one.
 *
 * Master 0 is left of a set of three.  Master 1 lost its data.  Master 2 is new, and warms up.  All
 * three are the new list.  Master 3 is left, too, and is to be no member.
 */
#include "redlock/core/rescue.h"

#include "test/lib/check.h"

enum { MAX_TTL_MS = 1000, LIST = 0x07, ALL = 0x0f };
#define OLD 4
#define CLOSED (UINT64_C(1) << 32)
#define FOUNDED (CLOSED + 1)
/* The lease, and twice its allowance of 1 % and 2 ms. */
#define SPAN (1024 * DRIFT_MS)

static struct rescue r;
static struct rescue_actions act;
static drift_time now;
static uint64_t nonces[QUORUM_MASTERS_MAX], high, time_us;
static uint32_t max_ttl_ms;
static quorum_mask warming;

static void next(void)
{
    rescue_next(&r, now, &act);
}

static void show_ready(unsigned m, uint64_t version)
{
    const struct guard_look look = {
        .ready = true,
        .number = m + 1,
        .max_ttl_ms = max_ttl_ms,
        .high = high,
        .time_us = time_us,
        .told = {.version = version, .accepted = version == CLOSED ? RESCUE_BALLOT : 0}};

    rescue_on_look(&r, m, &look, now);
}

static void show_warming(unsigned m)
{
    const struct guard_look look = {.number = nonces[m], .max_ttl_ms = 1, .time_us = time_us};

    rescue_on_look(&r, m, &look, now);
}

/* Answer all looks. */
static void answer(uint64_t version)
{
    for (unsigned m = 0; m < 4; m++) {
        if (r.masters[m].asked != RESCUE_ASK_LOOK)
            continue;
        if (warming & mask_of(m))
            show_warming(m);
        else
            show_ready(m, version);
    }
    next();
}

static void begin(void)
{
    const struct rescue_config config = {
        .masters = ALL,
        .list = LIST,
        .closed = CLOSED,
        .founded = FOUNDED,
        .max_ttl_ms = MAX_TTL_MS,
        .look_every = 500 * DRIFT_MS,
        .drift = {10000, 2 * DRIFT_MS},
    };

    now = 77 * DRIFT_S;
    high = 900;
    time_us = 5000;
    max_ttl_ms = 1;
    warming = 0x06;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        nonces[m] = 10 + m;
    rescue_init(&r, &config);
    for (unsigned m = 0; m < 4; m++)
        rescue_on_link(&r, m, true);
    next();
    CHECK_UINT(act.look, ALL);
}

/* Master m does what it was asked to do, and then accepts the list. */
static void close_one(unsigned m)
{
    CHECK_INT(r.masters[m].asked, RESCUE_ASK_CLOSE);
    rescue_on_reply(&r, m, true, now);
    next();
    CHECK_UINT(act.note, mask_of(m));
    rescue_on_reply(&r, m, true, now);
}

static void begin_closed(void)
{
    begin();
    answer(OLD);
    CHECK_UINT(act.close, 0x09);
    close_one(0);
    close_one(3);
    next();
    CHECK_INT(r.phase, RESCUE_WAITING);
}

/* Until this time, or until something else than a look is to be sent. */
static void run_until(drift_time end)
{
    while (next(), !(act.close | act.count | act.found | act.install) && now < end) {
        answer(CLOSED);
        if (act.close | act.count | act.found | act.install)
            return;
        now = act.wake_at < end ? act.wake_at : end;
    }
    answer(CLOSED);
}

static void begin_founding(void)
{
    begin_closed();
    run_until(now + SPAN);
    CHECK_INT(r.phase, RESCUE_FOUNDING);
}

TEST(all_that_are_left_are_closed_first)
{
    begin();
    answer(OLD);
    CHECK_UINT(act.close, 0x09);
    CHECK_UINT(rescue_missing(&r), 0x09);
    close_one(0);
    now += 10 * DRIFT_S;
    answer(OLD);
    CHECK_INT(r.phase, RESCUE_CLOSING);
    close_one(3);
    next();
    CHECK_INT(r.phase, RESCUE_WAITING);
    CHECK_UINT(rescue_due_at(&r), now + SPAN); /* From the last one on. */
}

/* So another rescue knows whom this one may have given the new version. */
TEST(all_note_the_list_before_one_stores_it)
{
    begin();
    answer(OLD);
    close_one(0);
    rescue_on_reply(&r, 3, true, now);
    next();
    CHECK_UINT(act.note, 0x08);
    rescue_on_reply(&r, 3, false, now);
    now += 500 * DRIFT_MS;
    next();
    CHECK_INT(r.phase, RESCUE_CLOSING);
    CHECK_UINT(rescue_missing(&r), 0x08);
    rescue_on_look(
        &r, 3, &(struct guard_look){.ready = true, .number = 4, .told = {.version = CLOSED}}, now);
    next();
    CHECK_UINT(act.note, 0x08);
    rescue_on_reply(&r, 3, true, now);
    next();
    CHECK_INT(r.phase, RESCUE_WAITING);
}

/* Another rescue has closed it since the survey, and has the smaller version.  Masters that this
 * one does not know may have the list of that one, and vote. */
TEST(one_that_another_rescue_has_closed_meanwhile_ends_it)
{
    begin();
    r.config.closed += 8;
    r.config.founded += 8;
    rescue_on_link(&r, 0, false);
    answer(OLD);
    rescue_on_link(&r, 0, true);
    next();
    show_ready(0, CLOSED);
    next();
    CHECK_INT(r.status, RESCUE_OVERTAKEN);
    CHECK_UINT(r.culprit, 0);
    CHECK_UINT(act.close, 0);
}

TEST(one_that_was_not_reached_is_waited_for)
{
    begin();
    rescue_on_link(&r, 3, false);
    answer(OLD);
    close_one(0);
    now += 10 * DRIFT_S;
    answer(CLOSED);
    CHECK_INT(r.phase, RESCUE_CLOSING);
    CHECK_UINT(rescue_missing(&r), 0x08);
}

TEST(leases_end_before_the_set_is_founded)
{
    begin_closed();
    run_until(now + SPAN - 1);
    CHECK_INT(r.phase, RESCUE_WAITING);
    CHECK_UINT(act.count | act.found | act.install, 0);
    run_until(now + 1);
    CHECK_UINT(act.count, 0x01);
    CHECK_UINT(act.install, 0x06);
}

TEST(a_longer_lease_is_waited_for)
{
    begin();
    max_ttl_ms = 2000;
    answer(OLD);
    close_one(0);
    close_one(3);
    next();
    CHECK_UINT(rescue_due_at(&r), now + 2 * SPAN - 4 * DRIFT_MS);
}

/* Somebody gave it an epoch meanwhile, at the old version. */
TEST(one_that_opens_again_is_closed_and_the_wait_begins_anew)
{
    drift_time before;

    begin_closed();
    before = rescue_due_at(&r);
    run_until(now + SPAN / 2);
    r.masters[1].look_at = 0; /* Now. */
    next();
    show_ready(1, OLD);
    next();
    CHECK_UINT(act.close, 0x02);
    close_one(1);
    next();
    CHECK(rescue_due_at(&r) > before);
    CHECK_UINT(rescue_due_at(&r), now + SPAN);
}

TEST(one_that_forgets_is_watched_anew)
{
    begin_closed();
    run_until(now + SPAN / 2);
    nonces[2]++;
    r.masters[2].look_at = 0;
    next();
    answer(CLOSED);
    run_until(rescue_due_at(&r));
    CHECK_UINT(act.install, 0x02);
    CHECK_UINT(rescue_watched_at(&r, 2), r.closed_at + SPAN / 2 + SPAN);
}

TEST(counters_are_raised_first)
{
    begin_founding();
    CHECK_UINT(r.number, 5000); /* The clocks. */
    CHECK_UINT(act.count, 0x01);
    CHECK_UINT(act.found, 0);
    rescue_on_reply(&r, 0, true, now);
    show_ready(1, FOUNDED);
    next();
    CHECK_UINT(act.found, 0x01);
}

/* A client that reads the new version at one master counts votes of the others. */
TEST(a_majority_is_raised_before_the_set_is_founded)
{
    begin_founding();
    for (unsigned m = 1; m < 3; m++) {
        rescue_on_link(&r, m, false);
        rescue_on_link(&r, m, true);
    }
    next();
    show_ready(1, CLOSED);
    show_ready(2, CLOSED);
    next();
    CHECK_UINT(act.count, 0x06);
    rescue_on_reply(&r, 0, true, now);
    next();
    CHECK_UINT(act.found, 0);
    rescue_on_reply(&r, 1, true, now);
    next();
    CHECK_UINT(act.found, 0x03);
}

/* Master m has lost its data again. */
static void forget(unsigned m)
{
    nonces[m]++;
    r.masters[m].look_at = 0;
    next();
    answer(CLOSED);
}

TEST(enough_can_remember_the_set_before_it_is_founded)
{
    begin_closed();
    run_until(now + SPAN / 4);
    forget(2);
    run_until(now + SPAN / 4);
    forget(1);
    run_until(rescue_due_at(&r));
    CHECK_UINT(act.count, 0x01);
    rescue_on_reply(&r, 0, true, now);
    run_until(rescue_watched_at(&r, 2) - 1);
    CHECK_UINT(act.found | act.install, 0);
    now++;
    next();
    CHECK_UINT(act.install, 0x04);
    CHECK_UINT(act.found, 0);
    show_ready(2, FOUNDED);
    next();
    CHECK_UINT(act.found, 0x01);
    CHECK_UINT(act.install, 0);
}

/* All of the list have lost their data. */
TEST(enough_get_epochs_together)
{
    begin();
    warming = LIST;
    answer(CLOSED);
    CHECK_INT(r.phase, RESCUE_WAITING);
    for (unsigned m = 1; m < 3; m++) {
        run_until(now + SPAN / 4);
        forget(m);
    }
    run_until(rescue_watched_at(&r, 1) - 1);
    CHECK_INT(r.phase, RESCUE_FOUNDING);
    CHECK_UINT(act.install, 0);
    now++;
    next();
    CHECK_UINT(act.install, 0x03);
}

TEST(the_greatest_number_that_is_known)
{
    begin_closed();
    high = 7777;
    run_until(now + SPAN);
    CHECK_UINT(r.number, 7777);
    begin_closed();
    high = 5000 + GUARD_AHEAD_US + 1;
    run_until(now + SPAN);
    CHECK_INT(r.status, RESCUE_AHEAD);
}

TEST(all_of_the_list_are_founded)
{
    begin_founding();
    rescue_on_reply(&r, 0, true, now);
    show_ready(1, FOUNDED);
    next();
    rescue_on_reply(&r, 0, true, now);
    next();
    CHECK_INT(r.status, RESCUE_GOES_ON);
    CHECK_UINT(rescue_missing(&r), 0x04);
    show_ready(2, FOUNDED);
    next();
    CHECK_INT(r.status, RESCUE_DONE);
}

TEST(a_request_that_failed_is_sent_again_after_a_look)
{
    begin();
    answer(OLD);
    rescue_on_reply(&r, 0, false, now);
    next();
    CHECK_UINT(act.close, 0);
    now += 500 * DRIFT_MS;
    next();
    CHECK(act.look & 0x01);
    show_ready(0, OLD + 1);
    next();
    CHECK_UINT(act.close, 0x01);
}

TEST(others_are_in_the_way)
{
    const struct guard_look foreign = {.ready = true, .number = 9, .told = {.is_foreign = true}};

    begin();
    rescue_on_look(&r, 0, &foreign, now);
    next();
    CHECK_INT(r.status, RESCUE_STRANGER);
    begin();
    show_ready(3, FOUNDED + 1);
    next();
    CHECK_INT(r.status, RESCUE_OVERTAKEN);
    CHECK_UINT(r.culprit, 3);
}

TEST(versions_jump)
{
    CHECK_UINT(rescue_version(1, 0), CLOSED);
    CHECK_UINT(rescue_version(CLOSED - 1, 7), CLOSED + 6);
    CHECK_UINT(rescue_version(FOUNDED, 0), 2 * CLOSED);
}

CHECK_MAIN(RUN(all_that_are_left_are_closed_first), RUN(all_note_the_list_before_one_stores_it),
           RUN(one_that_another_rescue_has_closed_meanwhile_ends_it),
           RUN(one_that_was_not_reached_is_waited_for), RUN(leases_end_before_the_set_is_founded),
           RUN(a_longer_lease_is_waited_for),
           RUN(one_that_opens_again_is_closed_and_the_wait_begins_anew),
           RUN(one_that_forgets_is_watched_anew), RUN(counters_are_raised_first),
           RUN(a_majority_is_raised_before_the_set_is_founded),
           RUN(enough_can_remember_the_set_before_it_is_founded), RUN(enough_get_epochs_together),
           RUN(the_greatest_number_that_is_known), RUN(all_of_the_list_are_founded),
           RUN(a_request_that_failed_is_sent_again_after_a_look), RUN(others_are_in_the_way),
           RUN(versions_jump))
