/*
 * test-clocks.c - which clocks of masters count as stepped for the restart guard (standing.h).
 *
 * The functions of links, and the clocks, are those below.
 */
#include "redlock/masters/clocks.h"

#include <stdio.h>
#include <string.h>

#include "redlock/io/loop.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/standing.h"
#include "redlock/wire/reply.h"
#include "test/lib/check.h"

#define LEN 5
#define FAR_S 100 /* Far enough off the others to be an outlier. */

static struct env env;
static struct peers peers;
static struct standing standing;
static struct clocks clocks;
static char links[LEN];
static drift_time now;
static double offsets_s[LEN]; /* How far the clocks of the masters are ahead. */
static struct ask asks[LEN];
static quorum_mask stepped; /* What standing.c was told. */
static unsigned warnings;

/* ---- What the clock guard calls ---- */

static drift_time read_now(const struct loop *loop)
{
    (void)loop;
    return now;
}

static const struct loop_ops ops = {.now = read_now};
static struct loop loop = {.ops = &ops};

void env_log(const struct env *e, enum redlock_level level, enum msg message, const char *format,
             ...)
{
    (void)e, (void)message, (void)format;
    warnings += level == REDLOCK_LOG_WARNING;
}

const char *link_name(const struct link *link)
{
    (void)link;
    return "master";
}

void link_note(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
}

void link_relink(struct link *link, const struct reason *why)
{
    (void)link, (void)why;
    CHECK(false);
}

void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len)
{
    CHECK(ask->what == WHAT_TIME && command_len == strlen(command));
    asks[(char *)link - links] = *ask;
}

void standing_on_step(struct standing *s, unsigned master)
{
    CHECK(s == &standing);
    stepped |= mask_of(master);
}

/* ---- Steps of the tests ---- */

static void begin(enum redlock_clock_guard guard)
{
    const struct guard_config config = {&peers.members, 1000, {10000, 2 * DRIFT_MS}, true};

    memset(&clocks, 0, sizeof clocks);
    memset(offsets_s, 0, sizeof offsets_s);
    alarm_done(&env.alarms);
    env = (struct env){.loop = &loop};
    peers = (struct peers){.env = &env,
                           .len = LEN,
                           .members = members_first(LEN),
                           .clock_guard = guard,
                           .drift = config.drift};
    for (unsigned m = 0; m < LEN; m++)
        peers.links[m] = (struct link *)&links[m];
    guard_init(&standing.guard, &config);
    standing.linked = (1u << LEN) - 1;
    now = 1000 * DRIFT_S;
    stepped = 0;
    warnings = 0;
    CHECK_INT(clocks_init(&clocks, &peers, &standing), 0);
}

/* The master answers the TIME that was sent to it last. */
static void answer(unsigned m)
{
    uint64_t us = (uint64_t)((double)now / 1e3 + offsets_s[m] * 1e6);
    char seconds[24], micros[24];
    struct reply reply;

    (void)snprintf(seconds, sizeof seconds, "%llu", (unsigned long long)(us / 1000000));
    (void)snprintf(micros, sizeof micros, "%llu", (unsigned long long)(us % 1000000));
    reply = (struct reply){.type = REPLY_ARRAY,
                           .before = seconds,
                           .before_len = strlen(seconds),
                           .text = micros,
                           .text_len = strlen(micros)};
    CHECK(!clocks_on_time(&clocks, m, &asks[m], &reply));
}

static void link_all(bool up)
{
    for (unsigned m = 0; m < LEN; m++)
        clocks_on_link(&clocks, m, up);
}

/* All answer, this one first. */
static void answer_all(unsigned first)
{
    for (unsigned i = 0; i < LEN; i++)
        answer((first + i) % LEN);
}

static void begin_known(void)
{
    begin(REDLOCK_CLOCK_GUARD_PERIODIC);
    link_all(true);
    answer_all(0);
}

static void wait_and_ask(drift_span span)
{
    now += span;
    clocks_on_alarm(&clocks);
    answer_all(0);
}

/* Whichever answers come first, and so whatever the median is then. */
TEST(a_clock_that_was_always_far_off_was_not_stepped)
{
    struct reason why;

    for (unsigned first = 0; first < LEN; first++) {
        begin(REDLOCK_CLOCK_GUARD_PERIODIC);
        offsets_s[1] = FAR_S;
        offsets_s[2] = FAR_S;
        link_all(true);
        answer_all(first);
        for (unsigned i = 0; i < 3; i++)
            wait_and_ask(DRIFT_S);
        CHECK(!clocks_explain(&clocks, 0, now, &why));
        CHECK(clocks_explain(&clocks, 1, now, &why));
        CHECK_INT(why.why, WHY_CLOCK_OFF);
        CHECK_UINT(stepped, 0);
    }
}

/* The time until it may vote begins anew while the clock is off, and is told as it is. */
TEST(a_clock_that_is_off_is_told_from_one_that_was)
{
    char text[REASON_TEXT_MAX];
    struct reason why;

    begin(REDLOCK_CLOCK_GUARD_PERIODIC);
    offsets_s[1] = FAR_S;
    link_all(true);
    answer_all(0);
    for (unsigned i = 0; i < 5; i++)
        wait_and_ask(DRIFT_S);
    CHECK(clocks_explain(&clocks, 1, now, &why));
    (void)reason_write(&why, now, text, sizeof text);
    CHECK(strstr(text, " s off those of the others, and it may vote ") != NULL);
    CHECK(strstr(text, " s after it was set right") != NULL);
    offsets_s[1] = 0;
    wait_and_ask(DRIFT_S);
    wait_and_ask(DRIFT_S);
    CHECK(clocks_explain(&clocks, 1, now, &why));
    (void)reason_write(&why, now, text, sizeof text);
    CHECK(strstr(text, ", and it may not vote for ") != NULL);
}

TEST(a_step_is_told)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        begin_known();
        wait_and_ask(DRIFT_S);
        CHECK_UINT(stepped, 0);
        offsets_s[2] += sign * 0.3;
        wait_and_ask(DRIFT_S);
        CHECK_UINT(stepped, 4);
        stepped = 0;
        wait_and_ask(DRIFT_S);
        CHECK_UINT(stepped, 0);
    }
}

TEST(a_step_is_logged_once_and_a_step_the_other_way_too)
{
    begin(REDLOCK_CLOCK_GUARD_PERIODIC);
    clocks_on_link(&clocks, 0, true);
    answer(0);
    for (int sign = 1; sign >= -1; sign -= 2) {
        unsigned before = warnings;

        offsets_s[0] += sign * 0.3;
        for (unsigned i = 0; i < 2; i++) {
            now += DRIFT_S / 2; /* The vote is away for a second. */
            clocks_on_alarm(&clocks);
            answer(0);
        }
        CHECK_UINT(warnings, before + 1);
    }
}

/* After a minute a clock may be off by what the drift allows, 1 %, and the tolerance. */
TEST(a_step_is_told_also_if_nothing_was_heard_for_long)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        begin_known();
        link_all(false);
        now += 60 * DRIFT_S;
        offsets_s[1] += sign * 0.69;
        offsets_s[2] += sign * 0.71;
        offsets_s[3] += sign * FAR_S;
        link_all(true);
        answer_all(0);
        CHECK_UINT(stepped, 0x0c);
    }
}

/* Then the samples so far are forgotten, but for the last one. */
TEST(a_step_is_told_also_when_a_longer_lease_is_heard_of)
{
    begin_known();
    guard_on_max(&standing.guard, 60000);
    offsets_s[2] += 1;
    wait_and_ask(DRIFT_S);
    CHECK_UINT(stepped, 4);
}

/* The masters whose clocks let them vote, after those of far were set far ahead. */
static quorum_mask voters(struct members members, quorum_mask far)
{
    quorum_mask may = 0;
    struct reason why;

    begin_known();
    peers.members = members;
    for (unsigned m = 0; m < LEN; m++)
        if (far & mask_of(m))
            offsets_s[m] = FAR_S;
    for (unsigned i = 0; i < 4; i++)
        wait_and_ask(DRIFT_S);
    for (unsigned m = 0; m < LEN; m++)
        if (!clocks_explain(&clocks, m, now, &why))
            may |= mask_of(m);
    return may;
}

/*
 * A master that left the set keeps its link, and its clock is still read.  It must not help to
 * outvote the clocks of most members: their votes would never count again.  While the set changes,
 * both lists count.  Before a set is known, no master counts more than others.
 */
TEST(clocks_are_compared_with_those_of_members_only)
{
    CHECK_UINT(voters((struct members){0x15, 0x15}, 0x05), 0x05);
    CHECK_UINT(voters((struct members){0x1f, 0x15}, 0x05), 0x1a);
    CHECK_UINT(voters((struct members){0, 0}, 0x08), 0x17);
}

/* It never answers in time, so there is no instant from which it counts. */
TEST(a_clock_that_cannot_be_read_has_no_time_left)
{
    begin(REDLOCK_CLOCK_GUARD_PER_VOTE);
    link_all(true);
    CHECK_UINT(clocks_left(&clocks, 0, now), DRIFT_NEVER);
    begin(REDLOCK_CLOCK_GUARD_OFF);
    CHECK_UINT(clocks_left(&clocks, 0, now), 0);
}

CHECK_MAIN(RUN(a_clock_that_was_always_far_off_was_not_stepped),
           RUN(a_clock_that_is_off_is_told_from_one_that_was), RUN(a_step_is_told),
           RUN(a_step_is_logged_once_and_a_step_the_other_way_too),
           RUN(a_step_is_told_also_if_nothing_was_heard_for_long),
           RUN(a_step_is_told_also_when_a_longer_lease_is_heard_of),
           RUN(clocks_are_compared_with_those_of_members_only),
           RUN(a_clock_that_cannot_be_read_has_no_time_left))
