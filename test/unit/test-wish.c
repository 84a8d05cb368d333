/*
 * test-wish.c - lists that an operator wishes.
 */
#include "redlock/cli/set/wish.h"

#include "test/lib/check.h"

static struct wish wish;
static struct config now, list;
static char why[2000];

static void begin(const char *text)
{
    now = (struct config){.set = 7, .version = 3};
    CHECK(config_parse(text, strlen(text), &now));
    memset(&wish, 0, sizeof wish);
    why[0] = '\0';
}

static void join(const char *name, const char *place)
{
    struct config_member *joiner = &wish.joiners[wish.joiners_len++];

    (void)snprintf(joiner->name, sizeof joiner->name, "%s", name[0] != '\0' ? name : place);
    (void)snprintf(joiner->place, sizeof joiner->place, "%s", place);
}

static void leave(const char *name)
{
    wish.leavers[wish.leavers_len++] = name;
}

static void check_list(const char *want)
{
    char text[CONFIG_TEXT_MAX + 1];

    why[0] = '\0';
    CHECK(wish_make(&wish, &now, &list, why, sizeof why));
    CHECK_STR(why, "");
    (void)config_print(&list, text);
    CHECK_STR(text, want);
}

static void check_why(const char *want)
{
    struct config before = list;

    CHECK(!wish_make(&wish, &now, &list, why, sizeof why));
    CHECK_STR(why, want);
    CHECK(memcmp(&before, &list, sizeof list) == 0);
}

TEST(members_are_added_removed_and_replaced)
{
    begin("a:1 b:1 c:1");
    join("", "d:1");
    join("east", "e:1");
    check_list("a:1 b:1 c:1 d:1 e:1#east");
    begin("a:1 b:1 c:1 d:1 e:1#east");
    leave("east");
    leave("a:1");
    check_list("b:1 c:1 d:1");
    begin("a:1 b:1 e:1#east");
    leave("e:1"); /* Its place. */
    join("", "d:1");
    check_list("a:1 b:1 d:1");
    begin("a:1 b:1 e:1#east"); /* The name moves to another place. */
    leave("east");
    join("west", "f:1");
    check_list("a:1 b:1 f:1#west");
}

TEST(what_is_wrong_is_refused)
{
    begin("a:1 b:1 c:1");
    leave("d:1");
    check_why("no member is called d:1; the members are a:1 b:1 c:1");
    begin("a:1 b:1 c:1");
    join("", "b:1");
    check_why("b:1: it is a member already");
    begin("a:1 b:1 c:1");
    join("", "b:1");
    join("", "b:1");
    check_why("b:1: it is a member already");
    begin("a:1 b:1 c:1");
    join("", "d:1");
    join("", "d:1");
    check_why("d:1 is named twice");
    begin("a:1 b:1 c:1");
    join("c", "c:1");
    check_why("c: a member at this place has another name");
    begin("a:1 b:1 e:1#c");
    join("c", "c:1");
    check_why("c: a member with this name has another place");
    begin("a:1 b:1 c:1");
    join("-", "d:1");
    check_why("-: a name has 1 to 64 letters, digits, '.', '_', ':', '[', ']' and '-'");
    begin("a:1 b:1 c:1");
    leave("a:1");
    leave("a:1");
    check_why("no member is called a:1; the members are a:1 b:1 c:1");
    begin("a:1 b:1 c:1");
    leave("a:1");
    leave("b:1");
    check_why("a set of one master cannot be repaired if that master loses its data");
    begin("a:1 b:1 c:1");
    leave("a:1");
    join("", "a:1");
    check_why("the set has these members already");
    begin("a:1 b:1 e:1#east"); /* In both lists a member has one name and one place. */
    leave("east");
    join("", "e:1");
    check_why("e:1: a member at this place has another name");
}

TEST(an_even_number_must_be_wished)
{
    begin("a:1 b:1 c:1");
    join("", "d:1");
    check_why("an even number of masters tolerates no more failures than one master less: --even "
              "allows it");
    wish.allows_even = true;
    check_list("a:1 b:1 c:1 d:1");
    begin("a:1 b:1");
    wish.allows_even = true;
    leave("b:1");
    check_why("a set of one master cannot be repaired if that master loses its data");
}

TEST(both_lists_have_room_for_fifteen)
{
    char place[8];

    begin("a:1 b:1 c:1");
    for (unsigned i = 0; i < 12; i++) {
        (void)snprintf(place, sizeof place, "x:%u", i + 1);
        join("", place);
    }
    CHECK(wish_make(&wish, &now, &list, why, sizeof why));
    leave("a:1");
    join("", "y:1");
    check_why("y:1: the old and the new list have more than 15 members together");
}

TEST(a_wish_may_be_met)
{
    begin("a:1 b:1 c:1");
    CHECK(wish_is_met(&wish, &now));
    leave("d:1");
    join("", "c:1");
    CHECK(wish_is_met(&wish, &now));
    join("b", "b:1");
    CHECK(!wish_is_met(&wish, &now)); /* It has another name. */
    begin("a:1 b:1 c:1#d");
    leave("d");
    CHECK(!wish_is_met(&wish, &now));
    begin("a:1 b:1 c:1#d");
    leave("c:1");
    CHECK(!wish_is_met(&wish, &now));
    begin("a:1 b:1 c:1#d");
    join("d", "d:1");
    CHECK(!wish_is_met(&wish, &now));
}

TEST(one_list_is_printed)
{
    char text[40];

    begin("a:1 e:1#c > a:1 d:1");
    wish_print(&now, now.from, text, sizeof text);
    CHECK_STR(text, "a:1 e:1#c");
    wish_print(&now, now.to, text, sizeof text);
    CHECK_STR(text, "a:1 d:1");
    wish_print(&now, now.from, text, 9); /* No half of an address is printed. */
    CHECK_STR(text, "2 member");
}

CHECK_MAIN(RUN(members_are_added_removed_and_replaced), RUN(what_is_wrong_is_refused),
           RUN(an_even_number_must_be_wished), RUN(both_lists_have_room_for_fifteen),
           RUN(a_wish_may_be_met), RUN(one_list_is_printed))
