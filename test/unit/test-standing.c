/*
 * test-standing.c - what is kept of the answers to queries.
 *
 * The functions of links, of the handshake and of the founding, and the clock, are those below.
 */
#include "redlock/masters/standing.h"

#include <stdio.h>
#include <string.h>

#include "redlock/io/loop.h"
#include "redlock/masters/founding.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/set.h"
#include "redlock/wire/reply.h"
#include "test/lib/check.h"

#define LEN 3
#define LIST "a:1 b:1 c:1"
#define NEXT LIST " > a:1 b:1 d:1"
#define SET "5555555555555555"
#define OTHER_SET "6666666666666666"

static struct env env;
static struct peers peers;
static struct set set;
static struct founding founding;
static struct standing standing;
static char links[LEN], names[LEN][4];
static struct uri uris[LEN];
static drift_time now;
static quorum_mask looks, relinked;
static enum why noted[LEN];          /* Why it has no vote. */
static char sent[LEN][WIRE_MAX + 1]; /* The latest query. */
static char state_before[WIRE_STATE_MAX + 1];
static unsigned states;

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
    return (uint32_t)++e->dice;
}

static unsigned number_of(const struct link *link)
{
    return (unsigned)((const char *)link - links);
}

const char *link_name(const struct link *link)
{
    return names[number_of(link)];
}

const struct master_info *link_info(const struct link *link)
{
    static const struct master_info info = {.run_id = "run"};

    (void)link;
    return &info;
}

void link_relink(struct link *link, const struct reason *why)
{
    (void)why;
    relinked |= mask_of(number_of(link));
}

void link_note(struct link *link, const struct reason *why)
{
    noted[number_of(link)] = why->why;
}

void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len)
{
    CHECK_INT(ask->what, WHAT_LOOK);
    looks |= mask_of(number_of(link));
    (void)snprintf(sent[number_of(link)], sizeof sent[0], "%.*s", (int)command_len, command);
}

bool handshake_keeps(const struct master_info *info)
{
    (void)info;
    return false;
}

enum why handshake_refuses(const struct master_info *info)
{
    (void)info;
    return WHY_NONE;
}

void founding_on_look(struct founding *f, unsigned master)
{
    (void)f, (void)master;
}

void founding_on_break(struct founding *f, unsigned master)
{
    (void)f, (void)master;
}

/* ---- Steps of the tests ---- */

static void on_new_state(void *cookie, unsigned master)
{
    (void)cookie;
    states++;
    memcpy(state_before, standing.states[master], sizeof state_before);
}

static void on_master(void *cookie, unsigned master)
{
    (void)cookie, (void)master;
}

static void on_set(void *cookie, const struct seats_change *change)
{
    (void)cookie, (void)change;
}

static void answer(unsigned m, const char *marker)
{
    char text[400];
    struct reply reply = {.type = REPLY_TEXT, .text = text, .text_len = strlen(marker)};

    CHECK(looks & mask_of(m));
    looks = mask_without(looks, m);
    memcpy(text, marker, reply.text_len + 1);
    standing_on_look(&standing, m, &reply);
}

/* The first has accepted a value for the next version, the second has not, and the third lost its
 * data. */
#define SAME "00000000000000aa.1 1000 0 100"
#define RAISED "00000000000000aa.1.500 1000 500 600"
#define FIRST(state, set) "ready " state " 1000 " set " 1 a:1 " LIST
#define ACCEPTED FIRST(SAME, SET) "\n0000000000000009 0000000000000008 "
#define SECOND "ready 00000000000000bb.1 1000 0 100 1000 " SET " 1 b:1"
#define THIRD "warming 00000000000000cc 1000 0 0 100 1000 -"

/* The epoch of the third is due when the second has answered. */
static void begin(void)
{
    static const struct standing_events events = {on_master, on_new_state, on_master, on_master,
                                                  on_set};

    alarm_done(&env.alarms);
    queries_done(&standing.queries);
    memset(&env, 0, sizeof env);
    memset(&peers, 0, sizeof peers);
    memset(&set, 0, sizeof set);
    memset(&standing, 0, sizeof standing);
    env.loop = &loop;
    peers.env = &env;
    peers.len = LEN;
    peers.restart_guard = true;
    peers.clock_guard = REDLOCK_CLOCK_GUARD_PER_VOTE; /* It asks no witnesses. */
    peers.max_ttl_ms = 1000;
    peers.members = members_first(LEN);
    now = 1000 * DRIFT_S;
    looks = relinked = 0;
    states = 0;
    for (unsigned m = 0; m < LEN; m++) {
        (void)snprintf(names[m], sizeof names[m], "%c:1", 'a' + (char)m);
        uris[m] = (struct uri){.name = names[m]};
        peers.links[m] = (struct link *)&links[m];
    }
    set_init(&set, &peers, uris, LEN);
    CHECK_INT(standing_init(&standing, &peers, &set, &founding, &events, NULL), 0);
    for (unsigned m = 0; m < LEN; m++)
        standing_on_link(&standing, m, true);
    answer(0, ACCEPTED NEXT);
    answer(1, SECOND);
    answer(2, THIRD);
    now += 10 * DRIFT_S;
    standing_on_alarm(&standing);
    CHECK_UINT(looks & 3, 3);
    if (looks & 4)
        answer(2, THIRD);
    answer(0, ACCEPTED NEXT);
    CHECK(set_is_known(&set) && relinked == 0);
    sent[2][0] = '\0';
}

/* ---- Tests ---- */

#define CLOSED "ready 00000000000000aa.2 1000 0 100 1000 " SET " 2 -"
#define OPEN "ready 00000000000000aa.3 1000 0 100 1000 " SET " 3 a:1 a:1 b:1"

/* Nobody else tells a client of the members that a rescue gives to a closed set. */
TEST(a_closed_set_is_asked_again_until_it_is_open)
{
    begin();
    standing_look_again(&standing, 0);
    answer(0, CLOSED " ");
    CHECK_UINT(members_all(&set.seats.members), 0);
    answer(2, THIRD);
    CHECK_INT(noted[2], WHY_SET_CLOSED); /* No time helps it. */
    now += DRIFT_S;
    standing_on_alarm(&standing);
    answer(2, "warming 00000000000000cc 1000 0 0 100 1000 " SET " 1 c:1");
    CHECK_INT(noted[2], WHY_SET_CLOSED);
    CHECK(looks & 1);
    answer(0, CLOSED);
    for (unsigned i = 0; i < 100; i++) {
        now += DRIFT_S;
        standing_on_alarm(&standing);
        CHECK(looks & 1);
        answer(0, CLOSED);
    }
    CHECK_UINT(relinked, 0);
    now += DRIFT_S;
    standing_on_alarm(&standing);
    answer(0, OPEN);
    CHECK_UINT(members_all(&set.seats.members), 3);
}

/* Both are those of the latest answer that was used. */
TEST(a_master_gets_back_the_ballot_and_the_value_of_one_answer)
{
    for (unsigned i = 0; i < 3; i++) {
        begin();
        standing_look_again(&standing, 0);
        if (i == 0)
            answer(0, ACCEPTED "z:1 a:1"); /* Not in order. */
        else if (i == 1)
            answer(0, FIRST(SAME, OTHER_SET));
        else
            answer(0, FIRST(SAME, SET));
        CHECK_UINT(relinked, i < 2);
        answer(1, SECOND);
        CHECK_UINT(strstr(sent[2], "0000000000000009") != NULL, i < 2);
        CHECK_UINT(strstr(sent[2], "0000000000000008 " NEXT) != NULL, i < 2);
        CHECK(strstr(sent[2], "z:1") == NULL);
        CHECK(strstr(sent[2], "00000000000000cc") != NULL);
    }
}

/* proof.c judges numbers by the text that it knew when they were counted. */
TEST(another_text_is_told_before_it_is_taken_over)
{
    begin();
    states = 0;
    standing_look_again(&standing, 0);
    answer(0, FIRST(SAME, SET));
    CHECK_UINT(states, 0);
    standing_look_again(&standing, 0);
    answer(0, FIRST(RAISED, SET));
    CHECK_UINT(states, 1);
    CHECK_STR(state_before, "00000000000000aa.1");
    CHECK_STR(standing.states[0], "00000000000000aa.1.500");
    CHECK_UINT(standing.guard.masters[0].look.floor, 500);
}

/* A floor goes with its text. */
TEST(the_text_of_an_answer_that_is_not_used_is_not_kept)
{
    begin();
    states = 0;
    standing_look_again(&standing, 0);
    answer(0, FIRST(RAISED, OTHER_SET));
    CHECK_UINT(relinked, 1);
    CHECK_UINT(states, 0);
    CHECK_STR(standing.states[0], "00000000000000aa.1");
    CHECK_UINT(standing.guard.masters[0].look.floor, 0);
}

CHECK_MAIN(RUN(a_closed_set_is_asked_again_until_it_is_open),
           RUN(a_master_gets_back_the_ballot_and_the_value_of_one_answer),
           RUN(another_text_is_told_before_it_is_taken_over),
           RUN(the_text_of_an_answer_that_is_not_used_is_not_kept))
