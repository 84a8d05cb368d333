/*
 * test-config.c - texts of configurations, wishes, and what may follow.
 */
#include "redlock/core/config.h"

#include "test/lib/check.h"

static struct config parse(const char *text)
{
    struct config config = {.set = 7, .version = 3};

    check_row = text;
    CHECK(config_parse(text, strlen(text), &config));
    check_row = NULL;
    return config;
}

static void check_text(const struct config *config, const char *want)
{
    char text[CONFIG_TEXT_MAX + 1];
    size_t len = config_print(config, text);

    CHECK_STR(text, want);
    CHECK_UINT(len, strlen(want));
}

TEST(a_text_is_printed_as_it_was)
{
    static const char *const texts[] = {
        "",
        "10.0.0.1:6379",
        "10.0.0.1:6379 10.0.0.2:6379 10.0.0.9:6379#berlin",
        "[::1]:7001/2 unix:/run/r.sock?db=3",
        "unix:/a%20b a:1#z",
        "a:1 b:1 c:1 > a:1 b:1 d:1",
        "b:1#a a:1#b > c:1",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct config config = parse(texts[i]);

        CHECK_UINT(config.set, 7);
        CHECK_UINT(config.version, 3);
        check_text(&config, texts[i]);
    }
}

TEST(members_have_names_and_lists)
{
    struct config config = parse("b:1 a:1#c > b:1 z:1#d");

    CHECK_UINT(config.members_len, 3);
    CHECK_STR(config.members[1].name, "c");
    CHECK_STR(config.members[1].place, "a:1");
    CHECK_UINT(config.from, 3);
    CHECK_UINT(config.to, 5);
    CHECK(config_is_joint(&config) && !config_is_closed(&config));
    CHECK_UINT(config_find(&config, "d"), 2);
    CHECK_UINT(config_find(&config, "a:1"), 3);
    config = parse("");
    CHECK(config_is_closed(&config) && !config_is_joint(&config));
}

TEST(other_texts_are_refused)
{
    static const char *const texts[] = {
        " a:1",
        "a:1 ",
        "a:1  b:1",
        "b:1 a:1",
        "a:1 a:1",
        "a:1 > a:1",
        "a:1 >",
        "> a:1",
        "a:1>b:1",
        "a:1 > b:1 > c:1",
        ">",
        " ",
        "a:1#",
        "#a",
        "a:1#a:1",
        "a:1#x b:1#x",
        "a:1 b:1#a:1",
        "a:1 > a:1#x",
        "a:1#x > b:1#x",
        "a:1#x/y",
        "a@b:1",
        "a,b",
        "a:1\n",
        "a:1\tb:1",
        "a:1#x#y",
        "\xc3\xa4:1",
        "a:1#\xc3",
        "a:1 b:1 > b:1 a:1",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct config config = {.version = 9};

        check_row = texts[i];
        CHECK(!config_parse(texts[i], strlen(texts[i]), &config));
        CHECK_UINT(config.version, 9);
        CHECK_UINT(config.members_len, 0);
    }
}

/* n members, with names of this length. */
static size_t make_text(char *text, unsigned n, unsigned name_len)
{
    size_t len = 0;

    for (unsigned i = 0; i < n; i++)
        len += (size_t)sprintf(
            text + len, "%sh%02u:1#%.*s%02u", i > 0 ? " " : "", i, (int)name_len - 2,
            "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", i);
    return len;
}

TEST(limits)
{
    char text[2 * CONFIG_TEXT_MAX];
    struct config config = {.version = 1};
    size_t len = make_text(text, 15, 64);

    CHECK(config_parse(text, len, &config));
    CHECK_UINT(config.members_len, 15);
    CHECK(!config_parse(text, make_text(text, 16, 64), &config));
    CHECK(!config_parse(text, make_text(text, 3, 65), &config));
    len = (size_t)sprintf(text, "%0*d:1", CONFIG_PLACE_MAX - 2, 7);
    CHECK(config_parse(text, len, &config));
    len = (size_t)sprintf(text, "%0*d:1", CONFIG_PLACE_MAX - 1, 7);
    CHECK(!config_parse(text, len, &config));
    memset(text, 'a', sizeof text);
    CHECK(!config_parse(text, sizeof text, &config));
    CHECK(!config_parse("a:1\0b", 5, &config));
}

static void check_list(const char *text, bool has_places, size_t size, const char *want)
{
    struct config config = parse(text);
    char buf[200];

    check_row = want;
    memset(buf, 'x', sizeof buf);
    CHECK_UINT(config_list(&config, config.from, has_places, buf, size), strlen(want));
    CHECK_STR(buf, want);
    CHECK(buf[size] == 'x');
}

/* A list for people is cut between two members. */
TEST(a_list_is_shortened)
{
    static const char five[] = "host-1:6379 host-2:6379 host-3:6379 host-4:6379 host-5:6379#x";

    check_list(five, false, 100, "host-1:6379 host-2:6379 host-3:6379 host-4:6379 x");
    check_list(five, true, 100, five);
    check_list(five, true, sizeof five, five);
    check_list(five, true, sizeof five - 1,
               "host-1:6379 host-2:6379 host-3:6379 host-4:6379 and 1 more");
    check_list(five, true, 60, "host-1:6379 host-2:6379 host-3:6379 host-4:6379 and 1 more");
    check_list(five, true, 59, "host-1:6379 host-2:6379 host-3:6379 and 2 more");
    check_list(five, true, 24, "host-1:6379 and 4 more");
    check_list(five, true, 23, "5 members");
    check_list("host-1:6379", true, 13, "host-1:6379");
    check_list("", true, 13, "");
}

TEST(a_wish_is_made)
{
    struct config wish = parse("b:1 a:1#c");

    CHECK_INT(config_add(&wish, "", "b:1"), CONFIG_ALREADY);
    CHECK_INT(config_add(&wish, "c", "b:2"), CONFIG_OTHER_PLACE);
    CHECK_INT(config_add(&wish, "b:1", "a:1"), CONFIG_OTHER_PLACE);
    CHECK_INT(config_add(&wish, "d", "a:1"), CONFIG_OTHER_NAME);
    CHECK_INT(config_add(&wish, "d e", "d:1"), CONFIG_BAD_NAME);
    CHECK_INT(config_add(&wish, "d", "d@e:1"), CONFIG_BAD_PLACE);
    CHECK_INT(config_add(&wish, "d", ""), CONFIG_BAD_PLACE);
    CHECK_INT(config_remove(&wish, "a:1"), CONFIG_UNKNOWN);
    check_text(&wish, "b:1 a:1#c");
    CHECK_INT(config_add(&wish, "", "a:0"), CONFIG_OK);
    check_text(&wish, "a:0 b:1 a:1#c");
    CHECK_INT(config_remove(&wish, "b:1"), CONFIG_OK);
    check_text(&wish, "a:0 a:1#c");
    CHECK_UINT(wish.from, 3);
    CHECK_UINT(wish.to, 3);
    for (unsigned i = 2; i < 15; i++) {
        char place[] = {'p', ':', (char)('a' + i), '\0'};

        CHECK_INT(config_add(&wish, "", place), CONFIG_OK);
    }
    CHECK_INT(config_add(&wish, "", "q:1"), CONFIG_MANY);
}

static void check_wish(const char *now, const char *wish, enum config_problem problem,
                       const char *name)
{
    struct config a = parse(now), b = parse(wish);
    const char *got;

    check_row = wish;
    CHECK_INT(config_check(&a, &b, &got), problem);
    CHECK_STR(got, name);
    check_row = NULL;
}

/* Six places, together of this length. */
static void make_list(char *text, char first, unsigned len)
{
    unsigned at = 0;

    for (unsigned i = 0; i < 6; i++) {
        unsigned place = i < 5 ? 332 : len - at - 1;

        at += (unsigned)sprintf(text + at, "%s%c%u%0*u:1", i > 0 ? " " : "", first, i,
                                (int)place - 4, 0);
    }
    text[at] = '\0';
    CHECK_UINT(at, len);
}

TEST(a_wish_is_judged)
{
    char now[CONFIG_TEXT_MAX + 1], wish[CONFIG_TEXT_MAX + 1];

    check_wish("a:1 b:1 c:1", "a:1 b:1 d:1", CONFIG_OK, "");
    check_wish("a:1 b:1 c:1", "a:1 b:1 c:1", CONFIG_NOTHING, "");
    check_wish("a:1 b:1 c:1", "a:1 b:1", CONFIG_EVEN, "");
    check_wish("a:1 b:1 c:1", "a:1", CONFIG_ONE, "");
    check_wish("a:1 b:1 c:1", "", CONFIG_ONE, "");
    check_wish("a:1#x b:1#y", "b:2#y c:1#z", CONFIG_OTHER_PLACE, "y");
    check_wish("a:1#x b:1#y", "a:1#v b:1#y", CONFIG_OTHER_NAME, "v");
    make_text(now, 13, 8);
    check_wish(now, "a:1#a b:1#b", CONFIG_EVEN, "");
    check_wish(now, "a:1#a b:1#b c:1#c", CONFIG_MANY, "c");
    sprintf(now, "1%0350d:1 b:1", 1);
    for (unsigned i = 0, len = 0; i < 13; i++)
        len += (unsigned)sprintf(wish + len, "%s2%0290d:%02u", i > 0 ? " " : "", 1, i);
    check_wish(now, wish, CONFIG_LONG, "");
}

/* Any list may follow any other. */
TEST(a_list_leaves_room_for_another)
{
    char now[CONFIG_TEXT_MAX + 1], wish[CONFIG_TEXT_MAX + 1];
    struct config list;

    CHECK_UINT(CONFIG_LIST_MAX, 1998);
    make_list(now, 'a', CONFIG_LIST_MAX);
    make_list(wish, 'b', CONFIG_LIST_MAX);
    list = parse(now);
    CHECK(!config_is_long(&list));
    check_wish(now, wish, CONFIG_EVEN, "");
    make_list(wish, 'b', CONFIG_LIST_MAX + 1);
    list = parse(wish);
    CHECK(config_is_long(&list));
    check_wish("a:1 b:1", wish, CONFIG_LONG, "");
}

TEST(what_follows)
{
    struct config now = parse("a:1 b:1 c:1"), wish = parse("e:1#0 b:1 c:1 d:1"), joint, next;

    config_join(&now, &wish, &joint);
    check_text(&joint, "a:1 b:1 c:1 > e:1#0 b:1 c:1 d:1");
    CHECK_UINT(joint.version, 4);
    CHECK_UINT(joint.set, 7);
    config_finish(&joint, &next);
    check_text(&next, "e:1#0 b:1 c:1 d:1");
    CHECK_UINT(next.version, 5);
    CHECK(config_same_lists(&next, &wish));
    CHECK(!config_same_lists(&next, &now));
    CHECK(!config_same_lists(&joint, &now));
    config_give_up(&joint, &next);
    check_text(&next, "a:1 b:1 c:1");
    CHECK(config_same_lists(&next, &now));
    CHECK_UINT(next.version, 5);
    CHECK_UINT(next.members_len, 3);
}

TEST(every_problem_has_words)
{
    for (enum config_problem i = CONFIG_OK; i < CONFIG_PROBLEMS_LEN; i++)
        CHECK(strlen(config_problem_text(i)) > 10);
}

CHECK_MAIN(RUN(a_text_is_printed_as_it_was), RUN(members_have_names_and_lists),
           RUN(other_texts_are_refused), RUN(limits), RUN(a_list_is_shortened), RUN(a_wish_is_made),
           RUN(a_wish_is_judged), RUN(a_list_leaves_room_for_another), RUN(what_follows),
           RUN(every_problem_has_words))
