/*
 * test-deadline.c - when a command is asked to end, and when it is killed.
 */
#include "redlock/cli/common/deadline.h"

#include "test/lib/check.h"

#define END (1000 * DRIFT_S)

static const struct deadline_margins margins = {.ask = 2 * DRIFT_S, .kill = 500 * DRIFT_MS};

TEST(margins_of_a_lease)
{
    static const struct {
        const char *row;
        drift_span ttl, left, ask, kill;
    } rows[] = {
        {"ten seconds", 10 * DRIFT_S, 9800 * DRIFT_MS, 2 * DRIFT_S, 500 * DRIFT_MS},
        {"one second", DRIFT_S, 985 * DRIFT_MS, 200 * DRIFT_MS, 50 * DRIFT_MS},
        {"one day", 86400 * DRIFT_S, 86000 * DRIFT_S, 17280 * DRIFT_S, 500 * DRIFT_MS},
        {"little is left of it", DRIFT_S, 100 * DRIFT_MS, 50 * DRIFT_MS, 12500000},
        {"nothing is left of it", DRIFT_S, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct deadline_margins got = deadline_margins(rows[i].ttl, rows[i].left);

        check_row = rows[i].row;
        CHECK_UINT(got.ask, rows[i].ask);
        CHECK_UINT(got.kill, rows[i].kill);
    }
}

/* What is left is rounded down, so it is 0 in the last millisecond. */
TEST(the_end_of_a_lease)
{
    CHECK_UINT(deadline_end(0, END, 7), END + 7 * DRIFT_MS);
    CHECK_UINT(deadline_end(END, END - DRIFT_S, 7), END - DRIFT_S + 7 * DRIFT_MS);
    CHECK_UINT(deadline_end(END, END + 1, 0), END);
    CHECK_UINT(deadline_end(END, END - DRIFT_MS, 0), END);
    CHECK_UINT(deadline_end(END, END - DRIFT_MS - 1, 0), 0);
    CHECK_UINT(deadline_end(0, END, 0), 0);
}

/* The first lease is short if its masters answered late.  A renewal gives a longer one. */
TEST(margins_grow_with_a_longer_lease)
{
    static const struct deadline_margins small = {.ask = 500 * DRIFT_MS, .kill = 125 * DRIFT_MS};
    static const struct {
        const char *row;
        drift_time end, now;
        drift_span ask, kill;
    } rows[] = {
        {"the first lease", END, END - DRIFT_S, 500 * DRIFT_MS, 125 * DRIFT_MS},
        {"less of it is left", END, END - 1, 500 * DRIFT_MS, 125 * DRIFT_MS},
        {"nothing of it is left", END, END, 500 * DRIFT_MS, 125 * DRIFT_MS},
        {"it is over", END, END + DRIFT_S, 500 * DRIFT_MS, 125 * DRIFT_MS},
        {"it is gone", 0, END, 500 * DRIFT_MS, 125 * DRIFT_MS},
        {"a lease without an end", DRIFT_NEVER, END, 500 * DRIFT_MS, 125 * DRIFT_MS},
        {"a whole lease", END, END - 9800 * DRIFT_MS, 2 * DRIFT_S, 500 * DRIFT_MS},
        {"a longer lease", END, END - 2 * DRIFT_S, DRIFT_S, 250 * DRIFT_MS},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct deadline_margins got = small;

        deadline_grow_margins(&got, 10 * DRIFT_S, rows[i].end, rows[i].now);
        check_row = rows[i].row;
        CHECK_UINT(got.ask, rows[i].ask);
        CHECK_UINT(got.kill, rows[i].kill);
    }
}

TEST(acts_at_its_time_and_not_before)
{
    const struct deadline deadline = deadline_before(END, &margins);
    static const struct {
        drift_time now;
        enum deadline_act act;
        drift_time wake;
    } rows[] = {
        {0, DEADLINE_WAIT, END - 2 * DRIFT_S},
        {END - 2 * DRIFT_S - 1, DEADLINE_WAIT, END - 2 * DRIFT_S},
        {END - 2 * DRIFT_S, DEADLINE_ASK, END - 500 * DRIFT_MS},
        {END - 500 * DRIFT_MS - 1, DEADLINE_ASK, END - 500 * DRIFT_MS},
        {END - 500 * DRIFT_MS, DEADLINE_KILL, DRIFT_NEVER},
        {END, DEADLINE_KILL, DRIFT_NEVER},
        {DRIFT_NEVER - 1, DEADLINE_KILL, DRIFT_NEVER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        drift_time wake = 1;

        CHECK_INT(deadline_due(&deadline, rows[i].now, &wake), rows[i].act);
        CHECK_UINT(wake, rows[i].wake);
    }
}

/* SIGTERM comes earlier by at most its margin, and SIGKILL by all of the lead, but not before
 * SIGTERM. */
TEST(begins_earlier)
{
    static const struct {
        const char *row;
        drift_span lead, ask, kill; /* How long before the end of the lease. */
    } rows[] = {
        {"no lead", 0, 2 * DRIFT_S, 500 * DRIFT_MS},
        {"a lead", DRIFT_S, 3 * DRIFT_S, 1500 * DRIFT_MS},
        {"the longest for SIGTERM", 2 * DRIFT_S, 4 * DRIFT_S, 2500 * DRIFT_MS},
        {"less time after SIGTERM", 3 * DRIFT_S, 4 * DRIFT_S, 3500 * DRIFT_MS},
        {"all of the room", 3500 * DRIFT_MS, 4 * DRIFT_S, 4 * DRIFT_S},
        {"more than the room", 3501 * DRIFT_MS, 4 * DRIFT_S, 4 * DRIFT_S},
        {"without an end", DRIFT_NEVER, 4 * DRIFT_S, 4 * DRIFT_S},
    };
    const struct deadline deadline = deadline_before(END, &margins);
    const struct deadline never = {DRIFT_NEVER, DRIFT_NEVER};

    CHECK_UINT(deadline_room(&margins), 3500 * DRIFT_MS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct deadline got = deadline_earlier(deadline, rows[i].lead, &margins);

        check_row = rows[i].row;
        CHECK_UINT(got.ask, END - rows[i].ask);
        CHECK_UINT(got.kill, END - rows[i].kill);
    }
    check_row = NULL;
    CHECK_UINT(deadline_earlier(deadline_before(0, &margins), DRIFT_S, &margins).kill, 0);
    CHECK_UINT(deadline_earlier(never, DRIFT_S, &margins).ask, DRIFT_NEVER);
    CHECK_UINT(deadline_earlier(never, DRIFT_S, &margins).kill, DRIFT_NEVER);
}

TEST(the_lead_grows_with_the_descendants_and_with_the_search)
{
    static const struct {
        const char *row;
        unsigned descendants;
        drift_span search, lead;
    } rows[] = {
        {"none", 0, 0, 0},
        {"ten", 10, DRIFT_MS, 33 * DRIFT_MS},
        {"many, quickly found", 600, 20 * DRIFT_MS, 1860 * DRIFT_MS},
        {"just as slow as many", 600, 225 * DRIFT_MS, 2475 * DRIFT_MS},
        {"a slow search", 600, 300 * DRIFT_MS, 3300 * DRIFT_MS},
        {"a slow search of a few", 3, 100 * DRIFT_MS, 1100 * DRIFT_MS},
        {"the most", UINT32_MAX, 0, UINT32_MAX * (3 * DRIFT_MS)},
        {"a search without an end", 1, DRIFT_NEVER, DRIFT_NEVER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row = rows[i].row;
        CHECK_UINT(deadline_lead(rows[i].descendants, rows[i].search), rows[i].lead);
    }
}

TEST(a_lease_that_is_gone)
{
    const struct deadline deadline = deadline_before(0, &margins);
    drift_time wake;

    CHECK_INT(deadline_due(&deadline, 0, &wake), DEADLINE_KILL);
}

/* The end of the lease is near zero, because the machine has run for less than the margin. */
TEST(an_end_that_is_nearer_than_its_margin)
{
    const struct deadline deadline = deadline_before(DRIFT_S, &margins);
    drift_time wake;

    CHECK_INT(deadline_due(&deadline, 0, &wake), DEADLINE_ASK);
    CHECK_UINT(wake, 500 * DRIFT_MS);
}

TEST(no_end)
{
    const struct deadline deadline = deadline_before(DRIFT_NEVER, &margins);
    drift_time wake;

    CHECK_INT(deadline_due(&deadline, DRIFT_NEVER - 1, &wake), DEADLINE_WAIT);
    CHECK_UINT(wake, DRIFT_NEVER);
}

/* One deadline has the earlier SIGTERM, and the other the earlier SIGKILL. */
TEST(the_sooner_of_two)
{
    const struct deadline first = {.ask = 10, .kill = 40}, second = {.ask = 20, .kill = 30};
    const struct deadline both = deadline_sooner(first, second);
    const struct deadline same = deadline_sooner(second, first);

    CHECK_UINT(both.ask, 10);
    CHECK_UINT(both.kill, 30);
    CHECK_UINT(same.ask, 10);
    CHECK_UINT(same.kill, 30);
}

TEST(a_poll_ends_when_something_is_due)
{
    static const struct {
        const char *row;
        drift_time wake;
        int ms;
    } rows[] = {
        {"it was due", END - 1, 0},
        {"it is due", END, 0},
        {"soon", END + 1, 1},
        {"in a millisecond", END + DRIFT_MS, 1},
        {"a moment later", END + DRIFT_MS + 1, 2},
        {"just before the most", END + 100 * DRIFT_MS - 1, 100},
        {"the most", END + 100 * DRIFT_MS, 100},
        {"after the most", END + 100 * DRIFT_MS + 1, 100},
        {"never", DRIFT_NEVER, 100},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row = rows[i].row;
        CHECK_INT(deadline_poll_ms(END, rows[i].wake, 100 * DRIFT_MS), rows[i].ms);
    }
}

CHECK_MAIN(RUN(the_end_of_a_lease), RUN(margins_of_a_lease), RUN(margins_grow_with_a_longer_lease),
           RUN(acts_at_its_time_and_not_before), RUN(begins_earlier),
           RUN(the_lead_grows_with_the_descendants_and_with_the_search), RUN(a_lease_that_is_gone),
           RUN(an_end_that_is_nearer_than_its_margin), RUN(no_end), RUN(the_sooner_of_two),
           RUN(a_poll_ends_when_something_is_due))
