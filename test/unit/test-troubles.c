/*
 * test-troubles.c - masters with the same reason become one group of a message.
 */
#include "redlock/lease/troubles.h"

#include "test/lib/check.h"

/* Reasons that a row may name.  Another text is an error of the master. */
static const struct {
    const char *name;
    struct reason why;
} known[] = {
    {"LOADING", {.why = WHY_LOADING}},
    {"CLOSED", {.why = WHY_SET_CLOSED}},
    {"SLOW", {.why = WHY_CLOCK_SLOW}},
    {"HANGS", {.why = WHY_HANGS}},
    {"STRANGER", {.why = WHY_STRANGER, .words = "a:1"}},
    {"NOT YET", {.why = WHY_UNANSWERED}},
    {"NOT CHECKED", {.why = WHY_UNCHECKED, .number = 500}},
    {"NOT CONNECTED", {.why = WHY_NOT_CONNECTED}},
    {"REFUSED", {.why = WHY_ERROR_LOGIN, .at = AT_LOGIN, .words = "WRONGPASS no"}},
    {"NO REDIS", {.why = WHY_NO_PROTOCOL, .words = "Protocol error, got x"}},
    {"WARMING 9.9", {.why = WHY_WARMING_NEW, .over_at = 9900 * DRIFT_MS}},
    {"WARMING 57.3", {.why = WHY_WARMING_NEW, .over_at = 57300 * DRIFT_MS}},
    {"WARMING 61.2", {.why = WHY_WARMING_NEW, .over_at = 61200 * DRIFT_MS}},
    {"STEPPED 1", {.why = WHY_CLOCK_STEPPED, .amount = 1000, .over_at = 2 * DRIFT_S}},
    {"STEPPED 2", {.why = WHY_CLOCK_STEPPED, .amount = 2000, .over_at = 2 * DRIFT_S}},
};

#define IS_WARMING "is warming up: it is new or lost its data, and may vote in at most "

/* Errors with this text decide. */
#define DECIDES "refuses "

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
     {"WARMING 57.3", "WARMING 61.2", "WARMING 9.9"},
     "masters 1 to 3 (a:1, b:2, c:3): each " IS_WARMING "61.2 s"},
    {"a number before the time",
     {"STEPPED 1", "STEPPED 2"},
     "master 1 (a:1): its wall clock was stepped by +1.000 s, and it may not vote for 2.0 s; "
     "master 2 (b:2): its wall clock was stepped by +2.000 s, and it may not vote for 2.0 s"},
    {"one is a prefix", {"down", "down again"}, "master 1 (a:1): down; master 2 (b:2): down again"},
    {"each is the subject",
     {"SLOW", "SLOW", "LOADING", "LOADING"},
     "masters 1 and 2 (a:1, b:2), each: its wall clock cannot be read well enough: it answers "
     "slowly; masters 3 and 4 (c:3, d:4): each is still loading its data"},
    {"each takes",
     {"HANGS", "HANGS"},
     "masters 1 and 2 (a:1, b:2): each takes commands and does not answer"},
    {"no Redis",
     {"NO REDIS", "NO REDIS"},
     "masters 1 and 2 (a:1, b:2): answered with garbage: Protocol error, got x (not a Redis "
     "server?)"},
    {"words before it", {"REFUSED", "REFUSED"}, "masters 1 and 2 (a:1, b:2): AUTH: WRONGPASS no"},
};

static const char *const names[] = {"a:1", "b:2", "c:3", "d:4", "e:5", "f:6", "g:7"};

static struct trouble trouble(unsigned m, const char *name)
{
    struct trouble trouble = {.name = names[m]};

    reason_quote(&trouble.why, name[0] != '\0' ? WHY_ERROR : WHY_NONE, name, NULL);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            trouble.why = known[i].why;
    return trouble;
}

static struct error_parts parts; /* Of the latest list. */

static const char *list(const char *const *errors, char *buf, size_t size)
{
    struct trouble troubles[8];
    unsigned len = 0;

    for (; errors[len] != NULL; len++) {
        troubles[len] = trouble(len, errors[len]);
        troubles[len].decides = strncmp(errors[len], DECIDES, strlen(DECIDES)) == 0;
    }
    troubles_list(troubles, len, 0, buf, size, &parts);
    return buf;
}

/* Each group begins with "master", behind "; " but for the first. */
static bool parts_fit(const char *buf)
{
    for (unsigned i = 0; i < parts.len; i++) {
        size_t at = parts.list[i].at;

        if (at >= strlen(buf) || strncmp(buf + at, "master", 6) != 0 ||
            (i == 0 ? at != 0 : strncmp(buf + at - 2, "; ", 2) != 0))
            return false;
    }
    return true;
}

TEST(each_group_has_a_part)
{
    /* What the reasons quote, and what follows a cut, is no part. */
    static const char *const errors[] = {"x; master 3 (c:3): y", "x; master 3 (c:3): y", "LOADING",
                                         "down", NULL};
    static const enum msg kinds[] = {MSG_MASTER_ERROR, MSG_LOADING, MSG_MASTER_ERROR};
    char buf[512];

    for (size_t size = 16; size <= sizeof buf; size++) {
        (void)list(errors, buf, size);
        CHECK(parts.len > 0 && parts.len <= 3 && (parts_fit(buf) || parts.len == 1));
        for (unsigned i = 0; i < parts.len; i++)
            CHECK_UINT(parts.list[i].message, kinds[i]);
    }
    CHECK_UINT(parts.len, 3);
    (void)list((const char *const[]){"", NULL}, buf, sizeof buf);
    CHECK_UINT(parts.len, 0);
}

TEST(equal_reasons_are_one_group)
{
    char buf[512];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].name;
        CHECK_STR(list(rows[i].errors, buf, sizeof buf), rows[i].list);
        CHECK(parts_fit(buf));
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
        troubles[m] = trouble(0, m < 5 ? "down" : "");
        troubles[m].name = places[m];
    }
    troubles_list(troubles, 15, 0, buf, sizeof buf, &parts);
    CHECK_STR(buf, "masters 1 to 5 (200.100.100.100:26379, 200.100.100.101:26379, "
                   "200.100.100.102:26379, 200.100.100.103:26379, 200.100.100.104:26379): down");
    for (unsigned m = 5; m < 15; m++)
        troubles[m].why = trouble(0, "down").why;
    troubles_list(troubles, 15, 0, buf, sizeof buf, &parts);
    CHECK_STR(buf, "masters 1 to 15 (200.100.100.100:26379, 200.100.100.101:26379, "
                   "200.100.100.102:26379, 200.100.100.103:26379, 200.100.100.104:26379, "
                   "...): down");
}

/* ---- Weight ---- */

#define IS_OPEN "connected, but has not answered yet"
#define IS_REFUSED "AUTH: WRONGPASS no"

static const struct {
    const char *name;
    quorum_mask deciding;
    unsigned members;      /* How many of the first masters. */
    const char *errors[6]; /* Of the masters. */
    const char *list;
} weights[] = {
    {"three refuse, and one may answer",
     0x1c,
     5,
     {"NOT YET", "down", "REFUSED", "REFUSED", "REFUSED"},
     "masters 3 to 5 (c:3, d:4, e:5): " IS_REFUSED "; master 2 (b:2): down"},
    {"three refuse, and two others may soon be there",
     0x1c,
     5,
     {"NOT CHECKED", "NOT CONNECTED", "REFUSED", "REFUSED", "REFUSED"},
     "masters 3 to 5 (c:3, d:4, e:5): " IS_REFUSED},
    {"two refuse, and one may soon be there",
     0x18,
     5,
     {"NOT CONNECTED", "", "", "REFUSED", "REFUSED"},
     "masters 4 and 5 (d:4, e:5): " IS_REFUSED "; master 1 (a:1): not connected yet"},
    {"no answer helps a list with a stranger",
     0x04,
     2,
     {"NOT YET", "NOT CHECKED", "STRANGER"},
     "master 3 (c:3): is no member of the set: take it off the list, or add it (redlock members); "
     "the members are a:1"},
    {"two refuse, and the one that may answer is needed",
     0x18,
     5,
     {"NOT YET", "", "", "REFUSED", "REFUSED"},
     "masters 4 and 5 (d:4, e:5): " IS_REFUSED "; master 1 (a:1): " IS_OPEN},
    {"those that are down decide, not the larger group",
     0x04,
     5,
     {"REFUSED", "REFUSED", "down", "", ""},
     "master 3 (c:3): down; masters 1 and 2 (a:1, b:2): " IS_REFUSED},
    {"warming",
     0x02,
     3,
     {"down", "WARMING 9.9", ""},
     "master 2 (b:2): " IS_WARMING "9.9 s; master 1 (a:1): down"},
    {"a clock",
     0x02,
     3,
     {"down", "SLOW", ""},
     "master 2 (b:2): its wall clock cannot be read well enough: it answers slowly; master 1 "
     "(a:1): down"},
    {"another set",
     0x06,
     3,
     {"down", "STRANGER", "CLOSED"},
     "master 2 (b:2): is no member of the set: take it off the list, or add it (redlock members); "
     "the members are a:1; master 3 (c:3): its set is closed: it needs `redlock members rescue`; "
     "master 1 (a:1): down"},
    {"a group decides if one of it does",
     0x02,
     5,
     {"down", "down", "REFUSED", "REFUSED", "REFUSED"},
     "masters 1 and 2 (a:1, b:2): down; masters 3 to 5 (c:3, d:4, e:5): " IS_REFUSED},
    {"one that has no trouble any more decides nothing",
     0x02,
     3,
     {"down", "", "REFUSED"},
     "master 1 (a:1): down; master 3 (c:3): " IS_REFUSED},
    {"to found a set, all are needed",
     0x07,
     0,
     {"down", "down", "NOT YET"},
     "masters 1 and 2 (a:1, b:2): down; master 3 (c:3): " IS_OPEN},
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
            troubles[len] = trouble(len, weights[i].errors[len]);
        troubles_weigh(troubles, len, &members, weights[i].deciding);
        troubles_list(troubles, len, 0, buf, sizeof buf, &parts);
        CHECK_STR(buf, weights[i].list);
    }
}

CHECK_MAIN(RUN(each_group_has_a_part), RUN(equal_reasons_are_one_group),
           RUN(what_does_not_fit_becomes_dots), RUN(places_are_bounded),
           RUN(what_decides_comes_first))
