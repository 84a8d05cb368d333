/*
 * test-troubles.c - masters with the same reason become one group of a message.
 */
#include "redlock/lease/troubles.h"

#include "redlock/redlock.h"

#include "test/lib/check.h"

/* Errors with this text decide. */
#define DECIDES "refuses "
#define WARMING "is warming up, and may vote in at most "

static const struct {
    const char *name;
    const char *errors[8]; /* Of the masters. */
    const char *list;
} rows[] = {
    {"none", {"", "", ""}, ""},
    {"one", {"", "down", ""}, "master 2 (b:2): down"},
    {"all",
     {"down", "down", "down", "down", "down"},
     "masters 1 to 5 (a:1, b:2, c:3, d:4, e:5): down"},
    {"two", {"down", "down", ""}, "masters 1 and 2 (a:1, b:2): down"},
    {"not in a row", {"down", "", "down"}, "masters 1 and 3 (a:1, c:3): down"},
    {"two rows",
     {"down", "down", "down", "", "down", "down", "down"},
     "masters 1 to 3 and 5 to 7 (a:1, b:2, c:3, e:5, f:6, g:7): down"},
    {"rows of two are no ranges",
     {"down", "down", "", "down", "down", ""},
     "masters 1, 2, 4 and 5 (a:1, b:2, d:4, e:5): down"},
    {"a row and others",
     {"down", "", "down", "down", "down", "", "down"},
     "masters 1, 3 to 5 and 7 (a:1, c:3, d:4, e:5, g:7): down"},
    {"two reasons",
     {"down", "hangs", "down", "hangs", ""},
     "masters 1 and 3 (a:1, c:3): down; masters 2 and 4 (b:2, d:4): hangs"},
    {"a group and one",
     {"down", "down", "hangs"},
     "masters 1 and 2 (a:1, b:2): down; master 3 (c:3): hangs"},
    {"one and a group",
     {"hangs", "down", "down"},
     "masters 2 and 3 (b:2, c:3): down; master 1 (a:1): hangs"},
    {"the larger group of several",
     {"hangs", "down", "refused", "down", "refused", "down", "hangs"},
     "masters 2, 4 and 6 (b:2, d:4, f:6): down; masters 1 and 7 (a:1, g:7): hangs; masters 3 and 5 "
     "(c:3, e:5): refused"},
    {"what decides comes before a larger group",
     {"down", DECIDES "b", "down", DECIDES "a", DECIDES "a"},
     "masters 4 and 5 (d:4, e:5): " DECIDES "a; master 2 (b:2): " DECIDES
     "b; masters 1 and 3 (a:1, c:3): down"},
    {"the longest time",
     {WARMING "57.3 s", WARMING "61.2 s", WARMING "9.9 s"},
     "masters 1 to 3 (a:1, b:2, c:3): each " WARMING "61.2 s"},
    {"a program that writes a decimal comma",
     {WARMING "57,3 s", WARMING "61,2 s"},
     "masters 1 and 2 (a:1, b:2): each " WARMING "61,2 s"},
    {"a time, and none",
     {WARMING "57.3 s", WARMING, WARMING "57.3 s and"},
     "master 1 (a:1): " WARMING "57.3 s; master 2 (b:2): " WARMING "; master 3 (c:3): " WARMING
     "57.3 s and"},
    {"a number before the time",
     {"its clock was stepped by 1 s, for 2 s", "its clock was stepped by 2 s, for 2 s"},
     "master 1 (a:1): its clock was stepped by 1 s, for 2 s; "
     "master 2 (b:2): its clock was stepped by 2 s, for 2 s"},
    {"one is a prefix", {"down", "down again"}, "master 1 (a:1): down; master 2 (b:2): down again"},
    {"words end in s",
     {"has s", "has s", " s"},
     "masters 1 and 2 (a:1, b:2): each has s; master 3 (c:3):  s"},
    {"each is the subject",
     {"its clock is off", "its clock is off", "has no id", "has no id"},
     "masters 1 and 2 (a:1, b:2), each: its clock is off; masters 3 and 4 (c:3, d:4): each has no "
     "id"},
    {"each takes",
     {"takes no commands", "takes no commands"},
     "masters 1 and 2 (a:1, b:2): each takes no commands"},
    {"no Redis",
     {"garbage: Protocol error, got x", "garbage: Protocol error, got x"},
     "masters 1 and 2 (a:1, b:2): garbage: Protocol error, got x (not a Redis server?)"},
};

static const char *const names[] = {"a:1", "b:2", "c:3", "d:4", "e:5", "f:6", "g:7"};

static const char *list(const char *const *errors, char *buf, size_t size)
{
    struct trouble troubles[8];
    unsigned len = 0;

    for (; errors[len] != NULL; len++)
        troubles[len] = (struct trouble){names[len], errors[len],
                                         strncmp(errors[len], DECIDES, strlen(DECIDES)) == 0};
    troubles_list(troubles, len, buf, size);
    return buf;
}

TEST(equal_reasons_are_one_group)
{
    char buf[512];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].name;
        CHECK_STR(list(rows[i].errors, buf, sizeof buf), rows[i].list);
    }
}

/* Whatever the size, the list is a part of the whole one, or that and dots. */
TEST(what_does_not_fit_becomes_dots)
{
    const char *errors[] = {"first", "second", "first", "", "third", NULL};
    static const char whole[] =
        "masters 1 and 3 (a:1, c:3): first; master 2 (b:2): second; master 5 (e:5): third";
    static const char plain[] = "masters 1 and 3: first; master 2 (b:2): second";
    char buf[sizeof whole + 9];

    for (size_t size = 16; size <= sizeof buf; size++) {
        memset(buf, '#', sizeof buf);
        (void)list(errors, buf, size);
        CHECK(strlen(buf) < size);
        for (size_t i = size; i < sizeof buf; i++)
            CHECK(buf[i] == '#');
        if (strcmp(buf, whole) == 0)
            continue;
        CHECK_STR(buf + strlen(buf) - strlen("; ..."), "; ...");
        CHECK(strncmp(buf, whole, strlen(buf) - strlen("; ...")) == 0 ||
              strncmp(buf, plain, strlen(buf) - strlen("; ...")) == 0);
    }
    CHECK_STR(list(errors, buf, sizeof whole + 6), whole);
    CHECK_STR(list(errors, buf, sizeof whole + 5),
              "masters 1 and 3 (a:1, c:3): first; master 2 (b:2): second; ...");
    CHECK_STR(list(errors, buf, sizeof "masters 1 and 3: first" + 6),
              "masters 1 and 3: first; ...");
}

/* Five places of the longest kind fit.  More end in dots. */
TEST(places_are_bounded)
{
    struct trouble troubles[15];
    char places[15][32], buf[1024];

    for (unsigned m = 0; m < 15; m++) {
        (void)snprintf(places[m], sizeof places[m], "200.100.100.1%02u:26379", m);
        troubles[m] = (struct trouble){places[m], m < 5 ? "down" : "", false};
    }
    troubles_list(troubles, 15, buf, sizeof buf);
    CHECK_STR(buf, "masters 1 to 5 (200.100.100.100:26379, 200.100.100.101:26379, "
                   "200.100.100.102:26379, 200.100.100.103:26379, 200.100.100.104:26379): down");
    for (unsigned m = 5; m < 15; m++)
        troubles[m].error = "down";
    troubles_list(troubles, 15, buf, sizeof buf);
    CHECK_STR(buf, "masters 1 to 15 (200.100.100.100:26379, 200.100.100.101:26379, "
                   "200.100.100.102:26379, 200.100.100.103:26379, 200.100.100.104:26379, "
                   "...): down");
}

/* ---- Weight ---- */

#define NOT_YET "connected, but has not answered yet"
#define REFUSED "AUTH: WRONGPASS invalid username-password pair or user is disabled"

static const struct {
    const char *name;
    int status;
    unsigned members;      /* How many of the first masters. */
    const char *errors[6]; /* Of the masters. */
    const char *list;
} weights[] = {
    {"three refuse, and one may answer",
     REDLOCK_E_FORBIDDEN,
     5,
     {NOT_YET, "down", REFUSED, REFUSED, REFUSED},
     "masters 3 to 5 (c:3, d:4, e:5): " REFUSED "; master 2 (b:2): down"},
    {"two refuse, and the one that may answer is needed",
     REDLOCK_E_FORBIDDEN,
     5,
     {NOT_YET, "", "", REFUSED, REFUSED},
     "masters 4 and 5 (d:4, e:5): " REFUSED "; master 1 (a:1): " NOT_YET},
    {"those that are down decide, not the larger group",
     REDLOCK_UNREACHABLE,
     5,
     {REFUSED, REFUSED, "down", "", ""},
     "master 3 (c:3): down; masters 1 and 2 (a:1, b:2): " REFUSED},
    {"warming",
     REDLOCK_NOT_READY,
     3,
     {"down", "is warming up, and may vote in at most 9.1 s", ""},
     "master 2 (b:2): is warming up, and may vote in at most 9.1 s; master 1 (a:1): down"},
    {"a clock",
     REDLOCK_NOT_READY,
     3,
     {"down", "its wall clock was stepped", ""},
     "master 2 (b:2): its wall clock was stepped; master 1 (a:1): down"},
    {"another set",
     REDLOCK_E_WRONG_SET,
     3,
     {"down", "is no member of the set", "its set is closed"},
     "master 2 (b:2): is no member of the set; master 3 (c:3): its set is closed; "
     "master 1 (a:1): down"},
    {"to found a set, all are needed",
     REDLOCK_UNREACHABLE,
     0,
     {"down", "down", NOT_YET},
     "masters 1 and 2 (a:1, b:2): down; master 3 (c:3): " NOT_YET},
};

TEST(what_decides_comes_first)
{
    char buf[512];

    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        const struct members members = members_first(weights[i].members);
        struct trouble troubles[8];
        unsigned len = 0;

        check_row = weights[i].name;
        for (; weights[i].errors[len] != NULL; len++)
            troubles[len] = (struct trouble){names[len], weights[i].errors[len], false};
        troubles_weigh(troubles, len, &members, weights[i].status);
        troubles_list(troubles, len, buf, sizeof buf);
        CHECK_STR(buf, weights[i].list);
    }
}

CHECK_MAIN(RUN(equal_reasons_are_one_group), RUN(what_does_not_fit_becomes_dots),
           RUN(places_are_bounded), RUN(what_decides_comes_first))
