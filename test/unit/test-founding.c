/*
 * test-founding.c - the shell of a founding: what it sends, and which answers it passes on.
 * The functions of links, and the clock, are those below.
 */
#include "redlock/masters/founding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/io/loop.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/set.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/reply.h"
#include "test/lib/words.h"
#include "test/lib/check.h"

#define LEN 3
#define TIMEOUT (50 * DRIFT_MS)
#define LIST "a:1 b:1 c:1"
#define SET UINT64_C(0x5555555555555555)

/* What a master was sent last. */
struct sent {
    enum script_id script; /* SCRIPT_LEN: nothing since the last forget(). */
    struct ask ask;
    char number[WIRE_NUMBER + 1]; /* Of the claim; "": it only reads. */
    char list[100];
};

static struct env env;
static struct peers peers;
static struct set set;
static struct founding founding;
static struct sent sent[LEN];
static struct uri uris[LEN];
static struct seats_change change; /* By the latest look. */
static uint64_t version;           /* That masters tell. */
static char hosts[LEN][2], names[LEN][4], links[LEN];
static drift_time now;
static unsigned founded, refused;
static quorum_mask relinked;

/* ---- What the shell calls ---- */

static drift_time read_now(const struct loop *loop)
{
    (void)loop;
    return now;
}

static const struct loop_ops ops = {.now = read_now};
static struct loop loop = {.ops = &ops};

void env_log(const struct env *e, enum redlock_level level, enum msg kind, const char *format, ...)
{
    (void)e, (void)level, (void)kind, (void)format;
}

uint32_t env_random(struct env *e)
{
    e->dice = e->dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(e->dice >> 32);
}

const char *link_name(const struct link *link)
{
    return names[(const char *)link - links];
}

void link_relink(struct link *link, const struct reason *why)
{
    (void)why;
    relinked |= mask_of((unsigned)((const char *)link - links));
}

void link_relink_for(struct link *link, enum why why)
{
    (void)why;
    link_relink(link, NULL);
}

void link_note(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
}

/* Take the arguments out of "$16\r\n0123456789abcdef\r\n". */
static const char *take(const char *p, char *text, size_t size)
{
    size_t len = strtoul(p + 1, NULL, 10);

    p = strchr(p, '\n') + 1;
    (void)snprintf(text, size, "%.*s", (int)len, p);
    return p + len + 2;
}

void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len)
{
    struct sent *to = &sent[(char *)link - links];
    char text[SCRIPT_TEXT_MAX + 1], skipped[40];
    const char *p = strchr(command, '$');

    CHECK(command_len > 0 && ask->what == WHAT_FOUND);
    p = take(take(p, skipped, sizeof skipped), text, sizeof text);
    p = take(take(p, skipped, sizeof skipped), skipped, sizeof skipped);
    p = take(p, to->number, sizeof to->number);
    (void)take(p, to->list, sizeof to->list);
    to->ask = *ask;
    for (unsigned i = 0; i < SCRIPT_LEN; i++)
        if (strcmp(script_all[i].text, text) == 0)
            to->script = (enum script_id)i;
}

/* ---- Steps of the tests ---- */

static void on_founded(void *cookie, const struct seats_change *c)
{
    (void)cookie, (void)c;
    founded++;
}

static void on_refused(void *cookie, unsigned master)
{
    (void)cookie, (void)master;
    refused++;
}

static void forget(void)
{
    for (unsigned m = 0; m < LEN; m++)
        sent[m].script = SCRIPT_LEN;
}

static void begin(void)
{
    static const struct founding_events events = {on_founded, on_refused};

    alarm_done(&env.alarms);
    memset(&env, 0, sizeof env);
    env.loop = &loop;
    memset(&peers, 0, sizeof peers);
    memset(&set, 0, sizeof set);
    memset(&founding, 0, sizeof founding);
    founded = refused = 0;
    version = 1;
    now = 1000 * DRIFT_S;
    forget();
    for (unsigned m = 0; m < LEN; m++) {
        (void)snprintf(hosts[m], sizeof hosts[m], "%c", 'a' + (char)m);
        (void)snprintf(names[m], sizeof names[m], "%c:1", m == 1 ? 'B' : 'a' + (char)m);
        uris[m] = (struct uri){.host = hosts[m], .name = names[m], .port = 1};
        peers.links[m] = (struct link *)&links[m];
    }
    peers.env = &env;
    peers.len = LEN;
    peers.connect_timeout = TIMEOUT;
    set_init(&set, &peers, uris, LEN);
    CHECK_INT(founding_init(&founding, &peers, &set, TIMEOUT, &events, NULL), 0);
}

/* The name by which a master is a member, or "". */
static const char *own_name(unsigned m, const char *config)
{
    static char place[] = "?:1";

    place[0] = 'a' + (char)m;
    if (m < LEN && uris[m].member != NULL)
        return uris[m].member;
    if (config != NULL)
        return strstr(config, place) != NULL ? place : "";
    return config_find(&set.seats.now, place) < set.seats.now.members_len ? place : "";
}

/* A master says to which set it belongs.  config NULL: not told.  of 0: to none. */
static bool look(unsigned m, uint64_t of, const char *config)
{
    struct answer_set answer = {.set = of, .version = of != 0 ? version : 0, .name = ""};
    struct reason why;

    if (of != 0)
        answer.name = own_name(m, config);
    answer.name_len = strlen(answer.name);
    if (config != NULL) {
        answer.config = config;
        answer.config_len = strlen(config);
    }
    if (!set_on_look(&set, m, &answer, &why, &change))
        return false;
    founding_on_look(&founding, m);
    return true;
}

static void look_all_none(void)
{
    for (unsigned m = 0; m < LEN; m++)
        CHECK(look(m, 0, NULL));
}

static void answer_as(unsigned m, const struct ask *ask, const char *text)
{
    char copy[200];
    struct reply reply = {.type = REPLY_TEXT, .text = copy, .text_len = strlen(text)};

    memcpy(copy, text, reply.text_len + 1);
    if (text[0] == ':') {
        reply.type = REPLY_INTEGER;
        reply.integer = text[1] - '0';
    }
    founding_on_answer(&founding, m, ask, &reply);
}

/* Answer what was sent last.  "": as a master does that carries the claim. */
static void answer(unsigned m, const char *text)
{
    const struct ask ask = sent[m].ask;
    char claim[200];

    (void)snprintf(claim, sizeof claim, "claim %016" PRIx64 " %s", founding.founder.number,
                   sent[m].list);
    sent[m].script = SCRIPT_LEN;
    answer_as(m, &ask, text[0] != '\0' ? text : claim);
}

static void answer_all(const char *text)
{
    for (unsigned m = 0; m < LEN; m++)
        answer(m, text);
}

static void check_sent(enum script_id a, enum script_id b, enum script_id c)
{
    CHECK_INT(sent[0].script, a);
    CHECK_INT(sent[1].script, b);
    CHECK_INT(sent[2].script, c);
}

static void check_all_sent(enum script_id script)
{
    check_sent(script, script, script);
}

/* Ring the alarm. */
static void ring(void)
{
    CHECK(founding.alarm.pos != ALARM_OFF);
    now = founding.alarm.at;
    CHECK(alarm_ring(&env.alarms, now) == &founding.alarm);
    founding_on_alarm(&founding);
}

/* ---- Tests ---- */

TEST(a_list_becomes_a_set)
{
    begin();
    CHECK(look(0, 0, NULL) && look(2, 0, NULL));
    check_all_sent(SCRIPT_LEN);
    CHECK(look(1, 0, NULL));
    check_all_sent(SCRIPT_CLAIM);
    CHECK_STR(sent[0].list, LIST); /* In order, the host in small letters. */
    CHECK_UINT(strlen(sent[0].number), WIRE_NUMBER);
    answer_all("new");
    check_all_sent(SCRIPT_CLAIM);
    CHECK_STR(sent[0].number, ""); /* The second look. */
    answer_all("");
    check_all_sent(SCRIPT_FOUND);
    CHECK(!set_is_known(&set));
    answer_all(":1");
    CHECK_UINT(founded, 1);
    CHECK(set_is_known(&set));
    CHECK_UINT(set.seats.now.set, UINT64_C(0x468046124a05a540)); /* Of the BLAKE2b hash of LIST. */
    CHECK_UINT(peers.members.from, 7);
    CHECK_UINT(peers.members.to, 7);
    check_all_sent(SCRIPT_LEN);
    CHECK(founding.alarm.pos == ALARM_OFF);
}

/* 1 ns before the timeout an answer counts. */
TEST(a_late_answer_is_not_passed_on)
{
    struct ask late;
    uint64_t number;

    begin();
    look_all_none();
    number = founding.founder.number;
    late = sent[2].ask;
    answer(0, "new");
    now += TIMEOUT - 1;
    founding_on_alarm(&founding);
    answer(1, "new");
    check_sent(SCRIPT_LEN, SCRIPT_LEN, SCRIPT_CLAIM);
    ring(); /* Silence of the third. */
    check_sent(SCRIPT_WITHDRAW, SCRIPT_WITHDRAW, SCRIPT_CLAIM);
    answer(0, ":1");
    answer(1, ":1");
    forget();
    ring(); /* The end of the pause. */
    check_all_sent(SCRIPT_CLAIM);
    CHECK(founding.founder.number != number);
    answer(0, "new");
    answer(1, "new");
    answer_as(2, &late, "new"); /* Of the first attempt. */
    check_sent(SCRIPT_LEN, SCRIPT_LEN, SCRIPT_CLAIM);
    answer(2, "took");
    check_all_sent(SCRIPT_CLAIM);
    CHECK_STR(sent[0].number, "");
}

TEST(an_error_ends_the_attempt)
{
    begin();
    look_all_none();
    answer(0, "new");
    answer(1, "garbage");
    check_sent(SCRIPT_WITHDRAW, SCRIPT_LEN, SCRIPT_CLAIM);
    answer(2, "new");
    check_sent(SCRIPT_WITHDRAW, SCRIPT_LEN, SCRIPT_WITHDRAW);
}

TEST(a_broken_link_ends_the_attempt)
{
    struct ask old;

    begin();
    look_all_none();
    old = sent[2].ask;
    answer(0, "new");
    answer(1, "new");
    set_on_link(&set, 2);
    founding_on_break(&founding, 2);
    answer_as(2, &old, "new");
    check_sent(SCRIPT_WITHDRAW, SCRIPT_WITHDRAW, SCRIPT_CLAIM);
    answer(0, ":1");
    answer(1, ":1");
    forget();
    now += 10 * DRIFT_S;
    founding_on_alarm(&founding);
    check_all_sent(SCRIPT_LEN); /* The third is not there. */
    CHECK(look(2, 0, NULL));
    check_all_sent(SCRIPT_CLAIM);
}

TEST(another_list_is_in_the_way)
{
    begin();
    look_all_none();
    answer(0, "new");
    answer(1, "new");
    answer(2, "claim 1111111111111111 c:1 d:1");
    check_all_sent(SCRIPT_CLAIM);
    answer(0, "");
    answer(1, "");
    answer(2, "claim 1111111111111111 c:1 d:1");
    check_sent(SCRIPT_WITHDRAW, SCRIPT_WITHDRAW, SCRIPT_LEN);
    CHECK_UINT(refused, 0);
    answer(0, ":1");
    answer(1, ":1");
    CHECK_UINT(refused, 1);
    CHECK(founding.refused);
    CHECK_STR(words_of(&founding.why), "is claimed by a list of c:1 d:1, and not of " LIST);
    CHECK_HAS(
        set.why,
        "master 3 (c:1) is claimed by a list of c:1 d:1, and the masters of this list are " LIST);
    CHECK_HAS(set.why, "HDEL " WIRE_MARKER " claim");
    CHECK(founding.alarm.at >= now + DRIFT_S && founding.alarm.at < now + 2 * DRIFT_S);
    ring();
    check_all_sent(SCRIPT_CLAIM);
    CHECK(!founding.refused);
}

TEST(another_client_was_faster)
{
    begin();
    look_all_none();
    answer(0, "new");
    answer(1, "garbage");
    answer(2, "new");
    answer(0, ":1");
    answer(2, ":1");
    CHECK(founding.alarm.pos != ALARM_OFF);
    CHECK(look(1, SET, LIST));
    CHECK(founder_has_ended(&founding.founder));
    CHECK(founding.alarm.pos == ALARM_OFF);
    CHECK_UINT(set.seats.now.set, SET);
    CHECK_UINT(peers.members.from, 7);
}

/* The third was claimed, and its founder is gone. */
TEST(a_founding_is_finished)
{
    begin();
    CHECK(look(0, SET, LIST) && look(1, SET, LIST));
    CHECK(look(2, 0, NULL));
    check_all_sent(SCRIPT_LEN); /* It is told the set first. */
    set.gave = 4;
    CHECK(look(2, 0, NULL));
    check_all_sent(SCRIPT_CLAIM);
    answer(0, "member 5555555555555555 1 " LIST);
    answer(1, "member 5555555555555555 1 " LIST);
    answer(2, "took");
    answer(0, "member 5555555555555555 1 " LIST);
    answer(1, "member 5555555555555555 1 " LIST);
    answer(2, "");
    check_all_sent(SCRIPT_FOUND);
    answer_all(":1");
    CHECK_UINT(founded, 1);
    CHECK_UINT(set.seats.now.set, SET);
}

/* ---- What masters say of their set ---- */

/* A list says where to look.  The set may have more members, or fewer. */
TEST(members_outside_the_list_get_seats)
{
    begin();
    CHECK(look(0, SET, "a:1 b:1 c:1 d:1"));
    CHECK_UINT(change.opened, 8);
    CHECK_UINT(change.joined, 15);
    CHECK_UINT(peers.members.to, 15);
    CHECK(look(1, SET, NULL) && look(2, SET, NULL) && look(3, SET, NULL));
    CHECK_UINT(set.told, 15);
    CHECK(!set.refused);
    CHECK_STR(set.why, "");
}

/* The set changes while its founding is finished. */
TEST(members_that_join_meanwhile_are_not_founded)
{
    begin();
    look_all_none();
    answer_all("new");
    check_all_sent(SCRIPT_CLAIM);
    founding_on_look(&founding, LEN);
    founding_on_break(&founding, LEN);
    answer_all("");
    check_all_sent(SCRIPT_FOUND);
}

TEST(a_newer_configuration_is_taken_over)
{
    begin();
    CHECK(look(0, SET, LIST));
    version = 2;
    CHECK(look(1, SET, "a:1 b:1 c:1 > a:1 b:1 d:1"));
    CHECK_UINT(change.joined, 8);
    CHECK_UINT(peers.members.from, 7);
    CHECK_UINT(peers.members.to, 11);
    version = 3;
    CHECK(look(2, SET, "a:1 b:1 d:1"));
    CHECK_UINT(peers.members.from, 11);
    CHECK(look(2, SET, NULL)); /* It was a member while we ran. */
    CHECK(!set.refused);
    version = 2;
    CHECK(look(1, SET, "a:1 b:1 c:1 > a:1 b:1 d:1")); /* It is late. */
    CHECK_UINT(set.seats.now.version, 3);
}

TEST(a_list_with_a_stranger_is_refused)
{
    for (unsigned order = 0; order < 2; order++) {
        begin();
        CHECK(order == 0 || look(2, 0, NULL)); /* Nobody knows yet. */
        CHECK(look(0, SET, "a:1 b:1"));
        CHECK(!look(2, 0, NULL));
        CHECK(set.refused);
        CHECK_HAS(set.why, "master 3 (c:1) is no member of the set: take it off the list");
        CHECK_HAS(set.why, "the members are a:1 b:1");
        version = 2;
        CHECK(look(1, SET, "a:1 b:1 > a:1 b:1 c:1"));
        CHECK(look(2, 0, NULL));
        CHECK(!set.refused);
        CHECK_STR(set.why, "");
    }
}

TEST(a_removed_member_is_refused_alone)
{
    begin();
    version = 3;
    CHECK(look(0, SET, "a:1 b:1 d:1"));
    CHECK(!look(2, SET, NULL));
    CHECK(set_is_wrong(&set, 2));
    CHECK(!set.refused);
}

/* A host that was removed long ago and comes back must not stop all clients. */
TEST(a_list_is_judged_when_the_client_begins)
{
    begin();
    CHECK(look(0, SET, "a:1 b:1"));
    now += TIMEOUT - 1;
    CHECK(!look(2, 0, NULL));
    CHECK(set.refused);
    begin();
    CHECK(look(0, SET, "a:1 b:1"));
    now += TIMEOUT;
    CHECK(!look(2, 0, NULL));
    CHECK(!set.refused);
    CHECK(!look(2, SET + 1, "c:1 e:1")); /* But the list must not be of two sets. */
    CHECK(set.refused);
    CHECK_HAS(set.why, "master 3 (c:1) is a member of the set of c:1 e:1");
    CHECK_HAS(set.why, "others are of the set of a:1 b:1");
}

TEST(a_member_of_another_set_is_refused)
{
    begin();
    CHECK(look(0, SET, LIST));
    CHECK(!look(1, SET + 1, LIST));
    CHECK_HAS(set.why, "master 2 (B:1) belongs to another set");
    CHECK(!look(2, SET + 1, "c:1 d:1"));
    CHECK_UINT(set.told, 1);
    CHECK(!look(1, SET, "a:1  b:1 c:1"));
    set_on_link(&set, 0);
    CHECK_UINT(set.told, 0);
    CHECK(look(0, SET, NULL));
    CHECK_UINT(set.told, 1);
}

/* What the first master said was an old state. */
TEST(a_set_that_nobody_tells_any_more_is_replaced)
{
    begin();
    CHECK(look(0, SET, LIST));
    CHECK(!look(1, SET + 1, LIST));
    set_on_link(&set, 0);
    CHECK(!look(1, SET + 1, "b:1 c:1 d:1"));
    CHECK_UINT(set.seats.now.set, SET);
    CHECK(look(1, SET + 1, LIST));
    CHECK_UINT(set.seats.now.set, SET + 1);
    CHECK_UINT(peers.members.from, 7);
    CHECK_UINT(set.told, 2);
    CHECK(!look(0, SET, LIST));
    CHECK(look(2, SET + 1, NULL));
}

TEST(a_set_that_a_minority_tells_is_replaced)
{
    begin();
    relinked = 0;
    CHECK(look(0, SET, "a:1 b:1 c:1"));
    CHECK(!look(1, SET + 1, "a:1 b:1 c:1"));
    CHECK_UINT(set.seats.now.set, SET);
    CHECK(look(2, SET + 1, "a:1 b:1 c:1"));
    CHECK_UINT(set.seats.now.set, SET + 1);
    CHECK_UINT(set.told, 4);
    CHECK_UINT(relinked, 1);
    CHECK(look(1, SET + 1, "a:1 b:1 c:1"));
    CHECK(!look(0, SET, "a:1 b:1 c:1"));
    CHECK_UINT(set.told, 6);
}

/* Those that say so must be a majority together. */
TEST(masters_of_three_sets_replace_none)
{
    begin();
    CHECK(look(0, SET, "a:1 b:1 c:1"));
    CHECK(!look(1, SET + 1, "a:1 b:1 c:1"));
    CHECK(!look(2, SET + 2, "a:1 b:1 c:1"));
    CHECK(!look(1, SET + 1, "a:1 b:1 c:1"));
    CHECK_UINT(set.seats.now.set, SET);
}

TEST(a_list_may_name_its_members)
{
    begin();
    memset(&set, 0, sizeof set);
    uris[0].member = (char[]){"x:7"};
    set_init(&set, &peers, uris, LEN);
    CHECK(look(1, SET, "b:1 c:1 x:7"));
    CHECK_UINT(change.opened, 0);
    CHECK_UINT(set.seats.now.members_len, 3);
    CHECK_UINT(set_member(&set, 0), 2);
    set.gave = 4;
    CHECK(look(0, SET, NULL) && look(2, 0, NULL)); /* The third is claimed: finish it. */
    check_all_sent(SCRIPT_CLAIM);
    CHECK_STR(sent[0].list, "b:1 c:1 x:7");
    uris[0].member = NULL;
}

TEST(a_short_text_has_room_for_a_part_of_two_lists)
{
    struct config config = {.version = 2};
    char text[64];

    CHECK(config_parse("a:1 b:1 c:1 > d:1", 17, &config));
    for (size_t size = 1; size < sizeof text; size++) {
        text[size] = '~';
        set_print(&config, text, size);
        CHECK(strlen(text) < size && text[size] == '~');
    }
}

CHECK_MAIN(RUN(a_list_becomes_a_set), RUN(a_late_answer_is_not_passed_on),
           RUN(an_error_ends_the_attempt), RUN(a_broken_link_ends_the_attempt),
           RUN(another_list_is_in_the_way), RUN(another_client_was_faster),
           RUN(a_founding_is_finished), RUN(members_outside_the_list_get_seats),
           RUN(members_that_join_meanwhile_are_not_founded),
           RUN(a_newer_configuration_is_taken_over), RUN(a_list_with_a_stranger_is_refused),
           RUN(a_removed_member_is_refused_alone), RUN(a_list_is_judged_when_the_client_begins),
           RUN(a_member_of_another_set_is_refused),
           RUN(a_set_that_nobody_tells_any_more_is_replaced),
           RUN(a_set_that_a_minority_tells_is_replaced), RUN(masters_of_three_sets_replace_none),
           RUN(a_list_may_name_its_members), RUN(a_short_text_has_room_for_a_part_of_two_lists))
