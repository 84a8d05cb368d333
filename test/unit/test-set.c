/*
 * test-set.c - which members are to be told the newest configuration of their set.
 *
 * The functions of links and the clock are those below.  test-founding has the rest of set.c.
 */
#include "redlock/masters/set.h"

#include <stdio.h>
#include <string.h>

#include "redlock/masters/peers.h"
#include "redlock/wire/answer.h"
#include "test/lib/check.h"

#define LEN 3
#define SET UINT64_C(0x5555555555555555)
#define OLD "a:1 b:1 c:1"
#define NEW "a:1 b:1 d:1"

static struct env env;
static struct peers peers;
static struct set set;
static struct seats_change change; /* By the latest look. */
static struct uri uris[LEN];
static drift_time now;

/* ---- What the shell calls ---- */

static drift_time read_now(const struct loop *loop)
{
    (void)loop;
    return now;
}

static const struct loop_ops ops = {.now = read_now};
static struct loop loop = {.ops = &ops};

const char *link_name(const struct link *link)
{
    (void)link;
    return "a master";
}

void link_relink(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
    CHECK(false);
}

void link_relink_for(struct link *link, enum why why)
{
    (void)why;
    link_relink(link, NULL);
}

/* ---- Steps of the tests ---- */

static void begin(void)
{
    static char hosts[LEN][2] = {"a", "b", "c"}, names[LEN][4] = {"a:1", "b:1", "c:1"};

    memset(&peers, 0, sizeof peers);
    memset(&set, 0, sizeof set);
    env.loop = &loop;
    now = 1000 * DRIFT_S;
    peers.env = &env;
    peers.len = LEN;
    peers.connect_timeout = DRIFT_S;
    for (unsigned m = 0; m < LEN; m++)
        uris[m] = (struct uri){.host = hosts[m], .name = names[m], .port = 1};
}

/* A master answers a query.  config: NULL if it is not told.  Returns false if it is refused. */
static bool look(unsigned m, uint64_t version, const char *name, const char *config, bool ready)
{
    struct answer_set answer = {.set = version != 0 ? SET : 0, .version = version, .name = name};
    struct reason why;

    answer.name_len = strlen(name);
    answer.config = config;
    answer.config_len = config != NULL ? strlen(config) : 0;
    answer.state = ready ? "" : NULL;
    return set_on_look(&set, m, &answer, &why, &change);
}

/* Masters a and b are members of version 3, and a has said so. */
static void follow(void)
{
    begin();
    set_init(&set, &peers, uris, LEN);
    CHECK(look(0, 3, "a:1", NEW, true));
    CHECK_UINT(set_uninformed(&set), 0);
}

TEST(a_member_with_a_smaller_version_is_told)
{
    for (uint64_t version = 1; version <= 4; version++) {
        follow();
        CHECK(look(1, version, "b:1", version > 3 ? NEW : NULL, true));
        CHECK_UINT(set_uninformed(&set), version < 3 ? mask_of(1) : 0);
    }
}

TEST(so_is_one_that_is_in_no_set)
{
    for (unsigned ready = 0; ready < 2; ready++) {
        follow();
        CHECK(look(1, 0, "", NULL, ready != 0));
        CHECK_UINT(set_uninformed(&set), mask_of(1));
    }
}

/* It gets all of it with its epoch. */
TEST(a_warming_member_is_not_told_a_version)
{
    follow();
    CHECK(look(1, 1, "b:1", NULL, false));
    CHECK_UINT(set_uninformed(&set), 0);
}

TEST(each_version_is_told_once)
{
    follow();
    CHECK(look(1, 1, "b:1", NULL, true));
    set.gave = mask_of(1); /* By the query. */
    CHECK(look(1, 1, "b:1", NULL, true));
    CHECK_UINT(set_uninformed(&set), 0);
    set.gave = mask_of(1);
    CHECK(look(0, 5, "a:1", OLD, true)); /* While that query is out. */
    CHECK(look(1, 1, "b:1", NULL, true));
    CHECK_UINT(set_uninformed(&set), mask_of(1));
    set_on_link(&set, 1);
    CHECK_UINT(set_uninformed(&set), 0);
}

/* Its link stays for releases. */
TEST(a_member_that_was_removed_is_not_told)
{
    begin();
    set_init(&set, &peers, uris, LEN);
    CHECK(look(0, 1, "a:1", OLD, true));
    CHECK(look(0, 3, "a:1", NEW, true));
    CHECK(look(2, 1, "c:1", NULL, true));
    CHECK_UINT(set_uninformed(&set), 0);
}

/* The list reaches b elsewhere: what is there may be another master. */
static void reach_b_elsewhere(void)
{
    static char member[] = "b:1", name[] = "x:1";

    begin();
    uris[1].name = name;
    uris[1].member = member;
    set_init(&set, &peers, uris, LEN);
    CHECK(look(0, 3, "a:1", NEW, true));
    CHECK(!look(1, 1, "b:1", NULL, true));
}

TEST(a_member_that_is_reached_elsewhere_is_not_told)
{
    reach_b_elsewhere();
    CHECK_UINT(set_uninformed(&set), 0);
    CHECK(look(1, 3, "b:1", NULL, true));
}

/* A refusal dooms the link.  It stands until an attempt to connect has failed for another reason.
 */
TEST(a_refusal_stands_until_the_link_falls_again)
{
    reach_b_elsewhere();
    CHECK(set_is_wrong(&set, 1));
    set_on_fall(&set, 1);
    CHECK(set_is_wrong(&set, 1));
    set_on_fall(&set, 1);
    CHECK(!set_is_wrong(&set, 1));
}

CHECK_MAIN(RUN(a_member_with_a_smaller_version_is_told), RUN(so_is_one_that_is_in_no_set),
           RUN(a_warming_member_is_not_told_a_version), RUN(each_version_is_told_once),
           RUN(a_member_that_was_removed_is_not_told),
           RUN(a_member_that_is_reached_elsewhere_is_not_told),
           RUN(a_refusal_stands_until_the_link_falls_again))
