/*
 * test-guard-members.c - the restart guard, while the set of masters is unknown or changes.
 */
#include "redlock/core/guard.h"

#include "test/lib/watch.h"

/* A list of three, or two lists: masters 1 to 3, and 1, 4, 5. */
static void begin_lists(quorum_mask from, quorum_mask to)
{
    begin(LEN);
    members = (struct members){from, to};
    guard_on_change(&g, 0);
}

TEST(without_a_set_nobody_votes)
{
    begin_lists(0, 0);
    answer_all(0);
    next();
    CHECK_UINT(guard_voters(&g), 0);
    members = members_first(3);
    guard_on_change(&g, 0);
    CHECK_UINT(guard_voters(&g), 0x07);
}

TEST(new_masters_without_a_set_are_installed_by_nobody)
{
    begin_lists(0, 0);
    for (unsigned m = 0; m < LEN; m++)
        answer_warming(m, m + 1, true);
    next();
    CHECK_UINT(act.install, 0);
    CHECK_UINT(guard_hopefuls(&g, 0, now), ALL);
    members = members_first(3);
    guard_on_change(&g, 0);
    next();
    CHECK_UINT(act.install, 0x07);
}

TEST(both_lists_must_know_the_longest_lease)
{
    begin_lists(0x07, 0x19);
    answer_ready(0, 1, MAX_TTL_MS);
    answer_ready(1, 2, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0);
    answer_ready(3, 4, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0x0b);
    members = (struct members){0x07, 0x1c}; /* Master 3 has not answered yet. */
    guard_on_change(&g, 0);
    CHECK_UINT(guard_voters(&g), 0);
}

TEST(who_is_no_member_does_not_vote)
{
    begin_lists(0x07, 0x07);
    answer_all(0);
    CHECK_UINT(guard_voters(&g), 0x07);
    CHECK_UINT(guard_hopefuls(&g, 0, now), 0);
}

/* Rule 2: two of each list, other than the master itself; or all that there are. */
TEST(enough_of_each_list_must_be_ready)
{
    static const struct {
        quorum_mask down, warming, installed;
    } rows[] = {{0, 0x04, 0x04},    {0, 0x01, 0x01}, {0, 0x09, 0x09}, {0x02, 0x08, 0x08},
                {0x02, 0x04, 0x00}, {0x10, 0x08, 0}, {0x04, 0x01, 0}, {0x02, 0x09, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        quorum_mask installed = 0;

        begin_lists(0x07, 0x19);
        for (unsigned m = 0; m < LEN; m++)
            if (rows[i].down & 1u << m)
                guard_on_link(&g, m, false);
        answer_all(rows[i].warming);
        for (drift_time end = now + 2 * WATCH; now < end; now += WATCH / 8) {
            next();
            installed |= act.install;
            answer_all(rows[i].warming);
        }
        CHECK_UINT(installed, rows[i].installed);
    }
}

TEST(a_number_that_another_master_gets_is_forgotten)
{
    begin_lists(0x07, 0x07);
    answer_all(0);
    guard_on_change(&g, 0x04);
    CHECK_UINT(guard_voters(&g), 0x03);
    CHECK(!g.masters[2].linked && g.masters[2].epoch == 0);
    guard_on_link(&g, 2, true);
    next();
    CHECK_UINT(act.look, 0x04);
    answer_ready(2, 9, MAX_TTL_MS);
    CHECK_UINT(guard_voters(&g), 0x07);
}

/* Rule 7: members 1 to 3, of whom 3 has lost its data, and guests 4 and 5. */
static void begin_guests(quorum_mask guests)
{
    begin_lists(0x07, 0x07);
    g.passive = true;
    g.guests = guests;
    answer_all(0x1c);
    since = now;
}

/* A master that warms goes on to do so. */
static quorum_mask install_until(drift_time end)
{
    quorum_mask installed = 0, warming = 0;

    for (unsigned m = 0; m < LEN; m++)
        warming |= g.masters[m].look.ready ? 0 : mask_of(m);

    for (; now < end; now += WATCH / 8) {
        next();
        installed |= act.install;
        answer_all(warming);
    }
    return installed;
}

TEST(guests_get_an_epoch_as_members_do)
{
    begin_guests(0x18);
    run_until(since + WATCH - 1, 0x1c);
    CHECK_UINT(act.install, 0);
    run_until(since + WATCH, 0x1c);
    answer_all(0x1c); /* The members are asked at the end of the wait. */
    next();
    CHECK_UINT(act.install, 0x18);
    CHECK_UINT(guard_voters(&g), 0x03);
}

TEST(a_passive_guard_installs_guests_alone)
{
    begin_guests(0);
    CHECK_UINT(install_until(since + 2 * WATCH), 0);
    begin_guests(0x0c); /* A member is no guest. */
    CHECK_UINT(install_until(since + 2 * WATCH), 0x08);
}

TEST(without_members_no_guest_gets_an_epoch)
{
    begin_guests(0x18);
    members = (struct members){0, 0};
    guard_on_change(&g, 0);
    CHECK_UINT(install_until(since + 2 * WATCH), 0);
}

/* Rule 2: two of three members must be asked, and a guest does not count. */
TEST(members_are_asked_of_a_guest)
{
    begin_guests(0x18);
    guard_on_link(&g, 1, false);
    CHECK_UINT(install_until(since + 2 * WATCH), 0);
    begin_guests(0x18);
    guard_on_link(&g, 4, false); /* The other guest is not asked. */
    CHECK_UINT(install_until(since + 2 * WATCH), 0x08);
    begin_guests(0x18);
    look_again(1);
    answer_warming(1, 9, false); /* One member knows: all members must be asked, and no guest. */
    guard_on_link(&g, 4, false);
    CHECK_UINT(install_until(since + 2 * WATCH), 0x08);
}

TEST(witnesses_tell_of_a_guest)
{
    with_witnesses = true;
    begin_guests(0x08);
    next();
    CHECK_UINT(act.ask[3], 0x07);
    CHECK_UINT(act.ask[4], 0);
    for (unsigned m = 0; m < 2; m++)
        guard_on_age(&g, m, &(struct guard_ask){.master = 3, .nonce = 9}, 2000, now);
    CHECK_UINT(install_until(since + WATCH / 2), 0x08);
    with_witnesses = false;
}

/* ---- Rule 8 ---- */

/* A set of version 2, with masters 1 to 3.  The last has lost its data. */
static void begin_forgotten(uint64_t version)
{
    begin_lists(0x07, 0x07);
    g.version = version;
    told = (struct recall_told){.version = version, .ballot = 50, .accepted = 40};
    answer_all(0x04);
    since = now;
}

/* What is told after the watch counts, and what was told before does not. */
TEST(a_master_that_forgot_gets_its_ballots_back)
{
    begin_forgotten(2);
    told = (struct recall_told){.version = 2, .ballot = 70, .accepted = 60};
    run_until(since + WATCH - 1, 0x04);
    CHECK_UINT(act.install, 0);
    run_until(since + 2 * WATCH, 0x04);
    CHECK_UINT(act.install, 0x04);
    CHECK_UINT(now, since + WATCH);
    CHECK_UINT(act.recalls[2].ballot, 70);
    CHECK_UINT(act.recalls[2].accepted, 60);
    CHECK(act.recalls[2].accepted_by < 2);
}

TEST(a_newer_configuration_is_learned_first)
{
    begin_forgotten(2);
    told.version = 3;
    run_until(since + 2 * WATCH, 0x04);
    CHECK_UINT(act.install, 0);
    g.version = 3;
    members = (struct members){0x07, 0x19};
    guard_on_change(&g, 0);
    run_until(now + WATCH, 0x04);
    CHECK_UINT(act.install, 0x04);
    CHECK_UINT(act.recalls[2].ballot, 50);
}

TEST(with_too_few_a_set_that_was_changed_gets_no_epoch)
{
    for (uint64_t version = 1; version <= 2; version++) {
        begin_lists(0x07, 0x07);
        g.version = told.version = version;
        answer_all(0x06);
        run_until(now + 2 * WATCH, 0x06);
        CHECK_UINT(act.install, version == 1 ? 0x06 : 0);
    }
}

/* While a warming master was away, another client may have given it an epoch. */
TEST(a_master_on_a_new_link_may_remember)
{
    begin_lists(0x07, 0x07);
    g.version = told.version = 2;
    answer_all(0x06);
    CHECK(guard_has_forgotten(&g));
    guard_on_link(&g, 1, false);
    CHECK(!guard_has_forgotten(&g));
    guard_on_link(&g, 1, true);
    next();
    CHECK(!guard_has_forgotten(&g));
    answer_all(0x06);
    CHECK(guard_has_forgotten(&g));
}

TEST(a_guest_may_have_been_a_member)
{
    begin_guests(0x18);
    g.version = 1;
    told.version = 2;
    CHECK_UINT(install_until(since + 2 * WATCH), 0);
    told.version = 1;
    look_again(0);
    look_again(1);
    answer_all(0x1c);
    CHECK_UINT(install_until(now + WATCH), 0x18);
}

TEST(masters_of_a_set_that_was_changed_are_not_new)
{
    for (uint64_t version = 1; version <= 2; version++) {
        begin_lists(0x07, 0x07);
        g.version = version;
        for (unsigned m = 0; m < LEN; m++)
            answer_warming(m, m + 1, true);
        next();
        CHECK_UINT(act.install, version == 1 ? 0x07 : 0);
        CHECK_UINT(guard_hopefuls(&g, 0, now) & 0x07, version == 1 ? 0x07 : 0);
    }
}

CHECK_MAIN(RUN(without_a_set_nobody_votes), RUN(new_masters_without_a_set_are_installed_by_nobody),
           RUN(both_lists_must_know_the_longest_lease), RUN(who_is_no_member_does_not_vote),
           RUN(enough_of_each_list_must_be_ready),
           RUN(a_number_that_another_master_gets_is_forgotten),
           RUN(guests_get_an_epoch_as_members_do), RUN(a_passive_guard_installs_guests_alone),
           RUN(without_members_no_guest_gets_an_epoch), RUN(members_are_asked_of_a_guest),
           RUN(witnesses_tell_of_a_guest), RUN(a_master_that_forgot_gets_its_ballots_back),
           RUN(a_newer_configuration_is_learned_first),
           RUN(with_too_few_a_set_that_was_changed_gets_no_epoch),
           RUN(a_master_on_a_new_link_may_remember), RUN(a_guest_may_have_been_a_member),
           RUN(masters_of_a_set_that_was_changed_are_not_new))
