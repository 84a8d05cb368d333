/*
 * test-place.c - a place in a queue: which number is the ticket, and when it is a lease's turn.
 */
#include "redlock/core/place.h"

#include "test/lib/check.h"
#include "test/lib/some.h"

#define ALL 0x1fu /* All of five masters. */

static struct place p;

static void begin(unsigned masters)
{
    place_init(&p, some_masters(masters), 800 * DRIFT_MS);
}

/* The masters give their numbers one after the other, from the first. */
static void tell(const uint64_t *numbers, unsigned len)
{
    for (unsigned m = 0; m < len; m++)
        place_on_number(&p, m, numbers[m]);
}

/* Whether the waiter has its place: a majority stores its ticket. */
static bool has_place(void)
{
    return p.ticket != 0 && members_decide(p.members, p.stored);
}

TEST(the_greatest_of_a_majority_is_the_ticket)
{
    static const uint64_t numbers[] = {3, 7, 5, 9, 9};

    begin(5);
    tell(numbers, 2);
    CHECK_UINT(p.ticket, 0);
    tell(numbers, 3);
    CHECK_UINT(p.ticket, 7);
    tell(numbers, 5);
    CHECK_UINT(p.ticket, 7); /* The ticket does not change. */
}

/* One master counts once, however often it answers. */
TEST(one_master_is_no_majority)
{
    begin(3);
    for (uint64_t number = 1; number < 5; number++)
        place_on_number(&p, 1, number);
    CHECK_UINT(p.ticket, 0);
    place_on_number(&p, 2, 2);
    CHECK_UINT(p.ticket, 4);
}

TEST(of_four_masters_three_are_a_majority)
{
    static const uint64_t numbers[] = {1, 1, 1};

    begin(4);
    tell(numbers, 2);
    CHECK_UINT(p.ticket, 0);
    tell(numbers, 3);
    CHECK_UINT(p.ticket, 1);
    CHECK(has_place());
}

/* The waiter has a ticket, and all masters know it. */
static void begin_in_line(void)
{
    static const uint64_t numbers[] = {1, 1, 1, 1, 1};

    begin(5);
    tell(numbers, 5);
    place_on_round(&p);
}

/* A heartbeat brings the ticket to the other masters at once.  If all agree, it can wait. */
TEST(who_has_a_ticket_hurries_to_say_so)
{
    static const uint64_t same[] = {4, 4, 4}, different[] = {4, 5, 5}, other[] = {4, 4, 5};

    begin(5);
    tell(same, 3);
    CHECK(has_place() && !place_is_due(&p, ALL));
    begin(5);
    tell(different, 3);
    CHECK(!has_place() && place_is_due(&p, ALL));
    place_on_round(&p);
    CHECK(!place_is_due(&p, ALL));
    place_on_number(&p, 0, 4); /* m1 does not know the ticket yet. */
    CHECK(!has_place() && !place_is_due(&p, ALL));
    place_on_number(&p, 0, 5);
    CHECK(has_place());
    begin(5);
    tell(other, 3);
    CHECK(!has_place() && place_is_due(&p, ALL));
}

/* One master lost the waiter, and gave it another number. */
TEST(a_place_is_lost_and_found)
{
    static const uint64_t same[] = {4, 4, 4};

    begin(5);
    tell(same, 3);
    place_on_number(&p, 2, 1);
    CHECK(!has_place());
    CHECK_UINT(p.ticket, 4);
    place_on_number(&p, 4, 4);
    CHECK(has_place());
}

/* A master grants a join only if its queue is empty. */
TEST(a_join_that_is_granted_is_number_one)
{
    begin(3);
    place_on_grant(&p, 0);
    CHECK_UINT(p.ticket, 0);
    place_on_number(&p, 1, 2);
    CHECK_UINT(p.ticket, 2);
    place_on_grant(&p, 2);
    CHECK_UINT(p.ticket, 2);
    begin(3);
    place_on_grant(&p, 0);
    place_on_grant(&p, 2);
    CHECK_UINT(p.ticket, 1);
}

TEST(a_majority_says_whose_turn_it_is)
{
    begin_in_line();
    place_on_named(&p, 0);
    place_on_named(&p, 0);
    place_on_named(&p, 3);
    CHECK(!place_is_due(&p, ALL));
    place_on_named(&p, 4);
    CHECK(place_is_due(&p, ALL));
    place_on_ask(&p, 1 << 3); /* The answer will say whose turn it is. */
    CHECK(!place_is_due(&p, ALL));
    place_on_named(&p, 1);
    CHECK(place_is_due(&p, ALL));
    place_on_round(&p);
    CHECK(!place_is_due(&p, ALL));
}

/* Two masters grant the lock.  Others were asked too early, and announce the turn later. */
TEST(who_was_granted_it_was_first_there)
{
    begin(5);
    place_on_round(&p);
    place_on_grant(&p, 1);
    place_on_grant(&p, 4);
    place_on_number(&p, 0, 1);
    place_on_number(&p, 2, 1);
    place_on_number(&p, 3, 1);
    CHECK(!place_is_due(&p, ALL));
    place_on_named(&p, 2);
    CHECK(place_is_due(&p, ALL));
    place_on_ask(&p, 1u << 1);
    CHECK(!place_is_due(&p, ALL));
    place_on_grant(&p, 1);
    CHECK(place_is_due(&p, ALL));
    place_on_round(&p);
    for (unsigned m = 0; m < 3; m++)
        place_on_grant(&p, m);
    CHECK(!place_is_due(&p, ALL)); /* If these come too late, it waits as always. */
}

/* An earlier announcement of a master counts until that master is asked again. */
TEST(who_could_not_be_asked_has_told_all_the_same)
{
    begin_in_line();
    for (unsigned m = 0; m < 3; m++)
        place_on_named(&p, m);
    place_on_round(&p);
    place_on_ask(&p, 0x1e);
    CHECK(!place_is_due(&p, ALL));
    place_on_named(&p, 3);
    CHECK(!place_is_due(&p, ALL));
    place_on_named(&p, 4);
    CHECK(place_is_due(&p, ALL));
}

/* Two masters answer with errors and one with a number, so the round is lost.  The waiter releases,
 * and its turn is announced.  Without a ticket the next request is still a join: none grants it. */
TEST(who_has_no_ticket_yet_has_not_had_its_turn)
{
    begin(5);
    place_on_ask(&p, ALL);
    place_on_number(&p, 0, 3);
    for (unsigned m = 0; m < 3; m++)
        place_on_named(&p, m);
    CHECK(place_is_due(&p, ALL));
    place_on_round(&p);
    place_on_ask(&p, 0x1a);
    CHECK(!place_is_due(&p, ALL));
    place_on_number(&p, 1, 3);
    CHECK(!place_is_due(&p, ALL)); /* The next request would still be a join. */
    place_on_number(&p, 2, 3);     /* The answer to an earlier request. */
    CHECK(has_place() && place_is_due(&p, ALL));
    place_on_round(&p);
    place_on_ask(&p, ALL);
    CHECK(!place_is_due(&p, ALL));
    place_on_number(&p, 0, 3);
    CHECK(!place_is_due(&p, ALL));
}

/* On m1 the waiter was alone, and is number 1.  Its lost round keeps it from sending its ticket
 * there.  Until it does, waiters with lower tickets wait behind it on m1. */
TEST(who_is_first_by_an_old_number_says_his_ticket)
{
    begin(5);
    place_on_ask(&p, 0x1f);
    place_on_grant(&p, 0);
    place_on_number(&p, 1, 2);
    place_on_number(&p, 2, 2);
    CHECK(place_is_due(&p, ALL));
    place_on_round(&p);
    place_on_ask(&p, 0x1e);
    for (unsigned m = 1; m < 4; m++)
        place_on_number(&p, m, 2);
    CHECK(has_place() && !place_is_due(&p, ALL));
    place_on_answer(&p, 0); /* The answer to the release. */
    CHECK(place_is_due(&p, ALL));
    place_on_round(&p);
    CHECK(!place_is_due(&p, ALL));
    place_on_ask(&p, 1);
    place_on_grant(&p, 0);
    place_on_answer(&p, 0);
    CHECK(!place_is_due(&p, ALL));
}

/* One master announces its turn by an old number; the others have another number. */
TEST(who_is_called_by_an_old_number_says_his_ticket)
{
    static const uint64_t numbers[] = {2, 2, 2, 1};

    begin(5);
    tell(numbers, 4);
    CHECK(has_place() && !place_is_due(&p, ALL));
    place_on_named(&p, 2);
    CHECK(!place_is_due(&p, ALL));
    place_on_named(&p, 3);
    CHECK(place_is_due(&p, ALL));
    CHECK(!place_is_due(&p, ALL & ~(1u << 3))); /* m4 cannot be asked. */
}

/* m4 owed an answer, so the round with the ticket could not ask it. */
TEST(who_could_not_be_told_the_ticket_is_told_when_it_answers)
{
    static const uint64_t numbers[] = {2, 2, 2, 1};

    begin(5);
    tell(numbers, 4);
    place_on_named(&p, 3);
    CHECK(place_is_due(&p, ALL));
    place_on_round(&p);
    place_on_ask(&p, ALL & ~(1u << 3));
    place_on_answer(&p, 0);
    CHECK(!place_is_due(&p, ALL));
    place_on_answer(&p, 3); /* The answer to the release. */
    CHECK(place_is_due(&p, ALL));
    place_on_round(&p);
    place_on_ask(&p, ALL);
    place_on_answer(&p, 3); /* For example, an error. */
    CHECK(!place_is_due(&p, ALL));
}

TEST(a_queue_is_full)
{
    static const uint64_t none[] = {0, 0, 0};

    begin(5);
    tell(none, 2);
    CHECK(!place_is_full(&p));
    tell(none, 3);
    CHECK(place_is_full(&p));
    CHECK_UINT(p.ticket, 0);
    place_on_number(&p, 1, 1024);
    CHECK(!place_is_full(&p));
}

TEST(one_place_is_before_another)
{
    struct place a = {.ticket = 3, .waiter = "b"}, b = {.ticket = 4, .waiter = "a"};

    CHECK(place_is_before(&a, &b) && !place_is_before(&b, &a));
    b.ticket = 3;
    CHECK(place_is_before(&b, &a) && !place_is_before(&a, &b));
    CHECK(!place_is_before(&a, &a));
    b.ticket = 0;
    CHECK(place_is_before(&a, &b) && !place_is_before(&b, &a));
}

TEST(patience_is_some_heartbeats)
{
    place_init(&p, some_masters(5), 850 * DRIFT_MS);
    CHECK_UINT(p.patience_ms, 4 * 851);
    place_init(&p, some_masters(5), 0);
    CHECK_UINT(p.patience_ms, 1000);
    place_init(&p, some_masters(5), DRIFT_NEVER);
    CHECK_UINT(p.patience_ms, 86400000);
}

/* What the master of before said is not true of the next one. */
TEST(a_number_that_another_master_gets_is_forgotten)
{
    static const uint64_t numbers[] = {1, 1, 1};

    begin(3);
    tell(numbers, 3);
    place_on_named(&p, 1);
    CHECK(has_place());
    place_on_left(&p, 6);
    CHECK(!has_place());
    CHECK_UINT(p.told | p.stored | p.said | p.named | p.granted | p.full, 1);
    CHECK_UINT(p.ticket, 1);
}

/* Members that come back later do not have the waiter any more. */
TEST(a_waiter_leaves_removed_masters_once_and_soon)
{
    struct members members = members_first(5);

    begin(5);
    p.members = &members;
    place_on_ask(&p, 0xf);
    for (unsigned m = 0; m < 4; m++)
        place_on_number(&p, m, 1);
    place_on_named(&p, 3);
    CHECK_UINT(place_leave_removed(&p, ALL), 0);
    members = (struct members){0x15, 7};
    CHECK_UINT(place_leave_removed(&p, 7), 0); /* It is away. */
    CHECK_UINT(place_leave_removed(&p, ALL), 8);
    CHECK_UINT(place_leave_removed(&p, ALL), 0);
    CHECK_UINT(p.asked | p.told | p.stored, 7);
    CHECK_UINT(p.named, 0);
    place_on_left(&p, 6);
    members = (struct members){0x10, 0x10};
    CHECK_UINT(place_leave_removed(&p, ALL), 1);
}

/* ---- Heartbeats ---- */

/* They are as long as before, on average, but for half the spread. */
TEST(pauses_between_heartbeats_differ_little)
{
    drift_span min = 200 * DRIFT_MS, max = 800 * DRIFT_MS;

    place_pauses(&min, &max);
    CHECK_UINT(min, 500 * DRIFT_MS);
    CHECK_UINT(max, 600 * DRIFT_MS);
    min = max = 800 * DRIFT_MS;
    place_pauses(&min, &max);
    CHECK_UINT(min, 800 * DRIFT_MS);
    CHECK_UINT(max, 800 * DRIFT_MS);
    min = 700 * DRIFT_MS;
    place_pauses(&min, &max);
    CHECK_UINT(min, 750 * DRIFT_MS);
    CHECK_UINT(max, 800 * DRIFT_MS);
    min = max = 0;
    place_pauses(&min, &max);
    CHECK_UINT(max, 0);
}

TEST(heartbeats_of_one_client_go_together)
{
    const drift_span spread = 100 * DRIFT_MS;
    const drift_time now = 5 * DRIFT_S;

    CHECK(place_joins(0, now, spread));
    CHECK(place_joins(now, now, spread));
    CHECK(place_joins(now + spread, now, spread));
    CHECK(!place_joins(now + spread + 1, now, spread));
    CHECK(!place_joins(DRIFT_NEVER, now, spread));
    CHECK(place_joins(now, now, 0));
}

/* ---- The waiter's name ---- */

#define CLIENT "0123456789abcdef01234567"

TEST(a_name_says_which_lease_of_which_client_waits)
{
    static const uint32_t numbers[][2] = {{0, 1}, {7, 0x1234}, {UINT32_MAX, UINT32_MAX}};
    static const char *const texts[] = {"0000000000000001", "0000000700001234", "ffffffffffffffff"};

    for (unsigned i = 0; i < 3; i++) {
        uint32_t slot = 1, serial = 2;

        begin(3);
        place_name(&p, CLIENT "and more", numbers[i][0], numbers[i][1]);
        CHECK_UINT(strlen(p.waiter), TOKEN_LEN);
        CHECK(strncmp(p.waiter, CLIENT, PLACE_CLIENT) == 0);
        CHECK_STR(p.waiter + PLACE_CLIENT, texts[i]);
        CHECK(place_read_name(p.waiter, CLIENT, &slot, &serial));
        CHECK_UINT(slot, numbers[i][0]);
        CHECK_UINT(serial, numbers[i][1]);
    }
}

TEST(a_name_of_another_client_is_none)
{
    static const char *const others[] = {
        "",
        CLIENT,
        CLIENT "000000010000000",
        CLIENT "00000001000000010",
        CLIENT "0000000100000O01",
        CLIENT "00000001 0000001",
        CLIENT "00000001000000A1",
        "0123456789abcdef012345680000000100000001",
        "1123456789abcdef012345670000000100000001",
    };
    uint32_t slot = 3, serial = 4;

    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!place_read_name(others[i], CLIENT, &slot, &serial));
    CHECK_UINT(slot, 3);
    CHECK_UINT(serial, 4);
    CHECK(place_read_name(CLIENT "0000000100000002", CLIENT, &slot, &serial));
}

CHECK_MAIN(RUN(a_name_says_which_lease_of_which_client_waits),
           RUN(a_name_of_another_client_is_none), RUN(heartbeats_of_one_client_go_together),
           RUN(a_waiter_leaves_removed_masters_once_and_soon),
           RUN(pauses_between_heartbeats_differ_little),
           RUN(a_number_that_another_master_gets_is_forgotten),
           RUN(the_greatest_of_a_majority_is_the_ticket), RUN(one_master_is_no_majority),
           RUN(of_four_masters_three_are_a_majority), RUN(who_has_a_ticket_hurries_to_say_so),
           RUN(a_place_is_lost_and_found), RUN(a_join_that_is_granted_is_number_one),
           RUN(a_majority_says_whose_turn_it_is), RUN(who_was_granted_it_was_first_there),
           RUN(who_could_not_be_asked_has_told_all_the_same),
           RUN(who_has_no_ticket_yet_has_not_had_its_turn),
           RUN(who_is_first_by_an_old_number_says_his_ticket),
           RUN(who_is_called_by_an_old_number_says_his_ticket),
           RUN(who_could_not_be_told_the_ticket_is_told_when_it_answers), RUN(a_queue_is_full),
           RUN(one_place_is_before_another), RUN(patience_is_some_heartbeats))
