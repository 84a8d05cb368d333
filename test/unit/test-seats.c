/*
 * test-seats.c - which master of a client is which member.
 */
#include "redlock/core/seats.h"

#include <string.h>

#include "test/lib/check.h"

#define SET 7
#define LASTS (60 * DRIFT_S)
#define NOW (1000 * DRIFT_S)

static struct seats seats;
static struct seats_change change;
static struct config config;

/* Places are letters: seat 0 has "a", and so on. */
static void begin(const char *list)
{
    memset(&seats, 0, sizeof seats);
    for (unsigned i = 0; list[i] != '\0'; i++)
        seats_list(&seats, i, (char[]){list[i], '\0'}, "");
}

static const struct config *make(uint64_t set, uint64_t version, const char *text)
{
    config = (struct config){.set = set, .version = version};
    CHECK(config_parse(text, strlen(text), &config));
    return &config;
}

static void tell(unsigned seat, uint64_t set, uint64_t version, const char *text, const char *name)
{
    struct seat_look look = {.set = set, .version = version, .name = name};

    if (text != NULL)
        look.config = make(set, version, text);
    change = (struct seats_change){.config = false};
    seats_on_look(&seats, seat, &look, NOW, LASTS, &change);
}

static void check_change(quorum_mask joined, quorum_mask opened, quorum_mask closed)
{
    CHECK_UINT(change.joined, joined);
    CHECK_UINT(change.opened, opened);
    CHECK_UINT(change.closed, closed);
}

static void check_members(quorum_mask from, quorum_mask to)
{
    CHECK_UINT(seats.members.from, from);
    CHECK_UINT(seats.members.to, to);
}

TEST(a_list_is_new_when_all_say_so)
{
    begin("abc");
    CHECK(!seats_are_new(&seats));
    tell(0, 0, 0, NULL, "");
    tell(1, 0, 0, NULL, "");
    CHECK(!seats_are_new(&seats));
    CHECK_INT(seats_state(&seats, 2), SEAT_UNKNOWN);
    tell(2, 0, 0, NULL, "");
    CHECK(seats_are_new(&seats));
    check_members(0, 0);
    seats_take(&seats, make(SET, 1, "a b c"), NOW, LASTS, &change);
    CHECK(!seats_are_new(&seats));
    check_members(7, 7);
    check_change(7, 0, 0);
}

TEST(one_member_tells_of_the_others)
{
    begin("b");
    tell(0, SET, 3, "a b c", "b");
    CHECK(change.config);
    check_change(7, 6, 0);
    check_members(7, 7);
    CHECK_STR(seats.seats[1].place, "a");
    CHECK_STR(seats.seats[2].place, "c");
    CHECK_UINT(seats_of(&seats, 0), 1);
    CHECK_UINT(seats_of(&seats, 1), 0);
    CHECK_UINT(seats_wrong(&seats), 0);
    CHECK(!seats.seats[1].listed);
}

TEST(only_a_greater_version_is_taken)
{
    begin("abc");
    tell(0, SET, 3, "a b c", "a");
    tell(1, SET, 2, "a b d", "b");
    CHECK(!change.config);
    check_members(7, 7);
    tell(1, SET, 3, "a b d", "b");
    CHECK(!change.config);
    tell(1, SET, 4, "a b c > a b d", "b");
    CHECK(change.config);
    check_change(8, 8, 0);
    check_members(7, 11);
}

TEST(a_member_that_is_removed_keeps_its_seat_for_a_while)
{
    begin("abc");
    tell(0, SET, 4, "a b c > a b d", "a");
    tell(0, SET, 5, "a b d", "a");
    check_change(0, 0, 0);
    check_members(11, 11);
    CHECK_INT(seats_state(&seats, 2), SEAT_REMOVED);
    CHECK_UINT(seats_wrong(&seats), 0);
    CHECK_UINT(seats_tidy(&seats, NOW, &change), NOW + LASTS);
    check_change(0, 0, 0);
    CHECK_UINT(seats_tidy(&seats, NOW + LASTS, &change), DRIFT_NEVER);
    check_change(0, 0, 4);
    CHECK_INT(seats_state(&seats, 2), SEAT_FREE);
    tell(0, SET, 6, "a b d > a b e", "a");
    check_change(4, 4, 0);
    check_members(11, 7);
}

/* Without its seats a client would hear of the next configuration from nobody. */
TEST(a_closed_set_keeps_its_seats)
{
    begin("ab");
    tell(0, SET, 3, "a b c", "a");
    tell(0, SET, 4, "", "a");
    check_change(0, 0, 0);
    check_members(0, 0);
    CHECK_UINT(seats_tidy(&seats, NOW, &change), DRIFT_NEVER);
    CHECK_UINT(seats_tidy(&seats, NOW + 2 * LASTS, &change), DRIFT_NEVER);
    check_change(0, 0, 0);
    CHECK_UINT(seats_leaving(&seats), 7);
    tell(2, SET, 5, "c d e", "c");
    check_change(28, 24, 0);
    check_members(28, 28);
    CHECK_UINT(seats_tidy(&seats, NOW + LASTS - 1, &change), NOW + LASTS);
    check_change(28, 24, 0);
    CHECK_UINT(seats_tidy(&seats, NOW + LASTS, &change), DRIFT_NEVER);
    check_change(28, 24, 3);
}

TEST(who_comes_back_is_a_member_again)
{
    begin("abc");
    tell(0, SET, 4, "a b c > a b d", "a");
    tell(0, SET, 5, "a b c", "a");
    check_members(7, 7);
    CHECK_INT(seats_state(&seats, 3), SEAT_REMOVED);
    tell(0, SET, 6, "a b c > a b d", "a");
    check_change(8, 0, 0);
    check_members(7, 11);
    CHECK_UINT(seats_tidy(&seats, NOW + LASTS, &change), DRIFT_NEVER);
}

TEST(a_full_table_gives_the_seat_of_a_removed_member)
{
    begin("abcdefgh");
    tell(0, SET, 2, "a b c d e f g h > i j k l m n o", "a");
    tell(0, SET, 3, "i j k l m n o", "a");
    check_members(0x7f00, 0x7f00);
    tell(8, SET, 4, "i j k l m n o > i j k l m n o p", "i");
    check_change(1, 1, 1);
    CHECK_STR(seats.seats[0].place, "p");
    CHECK(!seats.seats[0].listed && seats.seats[0].was_member);
    check_members(0x7f00, 0x7f01);
    CHECK(!seats.seats[0].has_told);
}

/* It tells the configuration that takes its own seat. */
TEST(who_loses_its_seat_by_what_it_says_is_forgotten)
{
    begin("abcdefgh");
    tell(0, SET, 2, "a b c d e f g h > i j k l m n o", "a");
    tell(0, SET, 3, "i j k l m n o", "a");
    tell(0, SET, 4, "i j k l m n o > i j k l m n o p", "");
    check_change(1, 1, 1);
    CHECK_STR(seats.seats[0].place, "p");
    CHECK(!seats.seats[0].has_told);
}

TEST(a_list_that_names_a_stranger_is_wrong)
{
    begin("abx");
    tell(2, 0, 0, NULL, "");
    tell(0, SET, 1, "a b c", "a");
    CHECK_INT(seats_state(&seats, 2), SEAT_STRANGER);
    CHECK_UINT(seats_wrong(&seats), mask_of(2));
    check_members(11, 11);
    seats_take(&seats, make(SET, 2, "a b c x"), NOW, LASTS, &change);
    CHECK_UINT(seats_wrong(&seats), 0);
}

TEST(the_same_members_may_be_another_set)
{
    begin("abc");
    tell(0, SET, 1, "a b c", "a");
    CHECK(seats_same(&seats, make(SET + 1, 1, "a b c")));
    CHECK(!seats_same(&seats, make(SET + 1, 1, "a b")));
    CHECK(!seats_same(&seats, make(SET + 1, 1, "a b c d")));
    CHECK(!seats_same(&seats, make(SET + 1, 1, "a b c > a b")));
    tell(0, SET, 2, "a b c > a b", "a");
    CHECK(!seats_same(&seats, make(SET + 1, 1, "a b c")));
    tell(0, SET, 3, "", "a"); /* It is closed. */
    CHECK(!seats_same(&seats, make(SET + 1, 1, "x y z")));
}

/* A foreign master is worse than a stranger. */
TEST(a_master_of_another_set_is_shown_first)
{
    begin("axy");
    tell(0, SET, 1, "a b c", "a");
    tell(1, 0, 0, NULL, "");
    CHECK_UINT(seats_wrong(&seats), mask_of(1));
    tell(2, SET + 1, 1, "y z", "y");
    CHECK_UINT(seats_wrong(&seats), mask_of(2));
}

TEST(a_removed_member_leaves_until_its_seat_is_given_up)
{
    begin("abc");
    tell(0, SET, 1, "a b c", "a");
    CHECK_UINT(seats_leaving(&seats), 0);
    tell(0, SET, 3, "a b d", "a");
    CHECK_UINT(seats_leaving(&seats), 4);
    (void)seats_tidy(&seats, NOW + LASTS, &change);
    CHECK_UINT(seats_leaving(&seats), 0);
}

TEST(a_list_of_two_sets_is_wrong)
{
    begin("ax");
    tell(0, SET, 1, "a b c", "a");
    tell(1, SET + 1, 9, "x y z", "x");
    CHECK(!change.config);
    CHECK_INT(seats_state(&seats, 1), SEAT_OTHER);
    CHECK_UINT(seats_wrong(&seats), mask_of(1));
    check_members(seats.members.from, seats.members.from);
}

/* Also if it was not told that it was removed, and whichever answers first. */
TEST(a_list_may_name_a_removed_member)
{
    for (unsigned order = 0; order < 4; order++) {
        uint64_t version = order & 1 ? 3 : 5;

        begin("ad");
        if (order & 2)
            tell(1, SET, version, version == 5 ? "a b c" : "a d", version == 5 ? "" : "d");
        tell(0, SET, 5, order == 2 ? NULL : "a b c", "a");
        CHECK_UINT(seats_wrong(&seats), 0);
        tell(1, SET, version, NULL, version == 5 ? "" : "d");
        CHECK_INT(seats_state(&seats, 1), SEAT_REMOVED);
        CHECK_UINT(seats_wrong(&seats), 0);
        CHECK_UINT(mask_count(seats.members.from), 3);
        tell(1, 0, 0, NULL, ""); /* It was emptied. */
        CHECK_UINT(seats_wrong(&seats), order == 3 ? 0 : mask_of(1));
    }
}

TEST(a_list_of_a_closed_set_is_wrong)
{
    begin("ad");
    tell(0, SET, 5, "", "");
    CHECK_UINT(seats_wrong(&seats), mask_of(0));
}

TEST(a_member_that_lost_its_data_stays_a_member)
{
    begin("abc");
    tell(0, SET, 1, "a b c", "a");
    tell(1, 0, 0, NULL, "");
    CHECK_INT(seats_state(&seats, 1), SEAT_MEMBER);
    CHECK_UINT(seats_wrong(&seats), 0);
}

TEST(a_member_that_joined_another_set_is_none_of_ours)
{
    begin("abc");
    tell(0, SET, 1, "a b c", "a");
    tell(1, SET + 1, 9, "b y z", "b");
    CHECK_INT(seats_state(&seats, 1), SEAT_OTHER);
    check_members(7, 7);
}

/* A copy of a member's data tells its name, too. */
TEST(a_member_is_known_by_its_place)
{
    begin("xa");
    tell(1, SET, 1, "a b c", "a");
    CHECK_UINT(seats_of(&seats, 1), 2);
    tell(0, SET, 1, NULL, "b");
    CHECK_INT(seats_state(&seats, 0), SEAT_FREE);
    check_change(0, 0, 1);
    CHECK_UINT(change.alias, 1);
    check_members(14, 14);
}

TEST(a_list_may_name_a_member_that_it_reaches_elsewhere)
{
    begin("");
    seats_list(&seats, 0, "x", "b");
    seats_list(&seats, 1, "c", "");
    tell(0, SET, 1, "a b c", "b");
    CHECK_UINT(seats_of(&seats, 0), 2);
    CHECK_UINT(seats_of(&seats, 1), 0);
    CHECK_UINT(seats_of(&seats, 2), 1);
    check_change(7, 4, 0);
}

static void begin_named(void)
{
    begin("");
    seats_list(&seats, 0, "x", "b");
    seats_list(&seats, 1, "c", "");
}

/* The name is in the list only.  Another client would not ask this master. */
TEST(a_master_that_is_called_a_member_must_say_so)
{
    begin_named();
    tell(1, SET, 1, "a b c", "c");
    CHECK_UINT(seats_denied(&seats), 1);
    tell(0, 0, 0, NULL, "");
    CHECK_UINT(seats_denied(&seats), 1);
    CHECK_INT(seats_state(&seats, 0), SEAT_STRANGER);
    tell(0, SET, 1, NULL, "");
    CHECK_INT(seats_state(&seats, 0), SEAT_REMOVED);
    tell(0, SET, 1, NULL, "b");
    CHECK_UINT(seats_denied(&seats), 0);
    CHECK_INT(seats_state(&seats, 0), SEAT_MEMBER);
}

TEST(a_name_may_belong_to_another_master_now)
{
    begin_named();
    tell(0, SET, 1, "a b c", "b");
    tell(1, SET, 3, "a k#b c", "c");
    CHECK_UINT(seats_denied(&seats), 1);
    tell(0, SET, 1, NULL, "b"); /* It was not told that it was removed. */
    CHECK_UINT(seats_denied(&seats), 1);
    tell(0, SET, 3, NULL, "b");
    CHECK_UINT(seats_denied(&seats), 0);
}

TEST(a_change_of_others_does_not_matter_to_a_name)
{
    begin_named();
    tell(0, SET, 1, "a b c", "b");
    tell(1, SET, 3, "b c d", "c");
    CHECK_UINT(seats_denied(&seats), 0);
}

TEST(a_named_member_may_move)
{
    begin("a");
    tell(0, SET, 1, "a k#b", "a");
    CHECK_STR(seats.seats[1].place, "k");
    CHECK_UINT(seats_of(&seats, 1), 1);
}

/* The list reaches b at x.  Members have one vote: neither has way before the other. */
TEST(a_members_own_link_has_way)
{
    begin("xa");
    CHECK(!seats_has_way(&seats, 0, 1) && !seats_has_way(&seats, 1, 0)); /* No set is known. */
    tell(1, SET, 1, "a b c", "a");
    CHECK_STR(seats.seats[2].place, "b");
    CHECK(seats_has_way(&seats, 2, 0));
    CHECK(!seats_has_way(&seats, 0, 2));
    CHECK(!seats_has_way(&seats, 2, 1));
    CHECK(!seats_has_way(&seats, 1, 2));
}

CHECK_MAIN(
    RUN(a_list_is_new_when_all_say_so), RUN(one_member_tells_of_the_others),
    RUN(only_a_greater_version_is_taken), RUN(a_member_that_is_removed_keeps_its_seat_for_a_while),
    RUN(a_closed_set_keeps_its_seats), RUN(who_comes_back_is_a_member_again),
    RUN(a_full_table_gives_the_seat_of_a_removed_member),
    RUN(who_loses_its_seat_by_what_it_says_is_forgotten),
    RUN(a_list_that_names_a_stranger_is_wrong), RUN(a_list_of_two_sets_is_wrong),
    RUN(the_same_members_may_be_another_set), RUN(a_master_of_another_set_is_shown_first),
    RUN(a_removed_member_leaves_until_its_seat_is_given_up), RUN(a_list_may_name_a_removed_member),
    RUN(a_list_of_a_closed_set_is_wrong), RUN(a_member_that_lost_its_data_stays_a_member),
    RUN(a_member_that_joined_another_set_is_none_of_ours), RUN(a_member_is_known_by_its_place),
    RUN(a_list_may_name_a_member_that_it_reaches_elsewhere),
    RUN(a_master_that_is_called_a_member_must_say_so), RUN(a_name_may_belong_to_another_master_now),
    RUN(a_change_of_others_does_not_matter_to_a_name), RUN(a_named_member_may_move),
    RUN(a_members_own_link_has_way))
