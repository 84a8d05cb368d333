/*
 * test-change.c - the operator's machine, by hand: its requests, its times, its ends.
 *
 * test/change visits every order of events in small worlds.  Here are the boundaries, and what ends
 * a change before it begins.
 */
#include "redlock/core/change.h"

#include <stdlib.h>

#include "test/lib/check.h"

#define MAX_TTL_MS 1000
#define PAUSE (64 * DRIFT_MS)
#define BALLOT_LASTS (988 * DRIFT_MS) /* max_ttl, less 1 % and 2 ms. */
#define LOOKS 500

enum { A, B, C, D };

static struct change c;
static struct roster roster;
static struct change_actions act;
static struct change_config config;
static drift_time now;
static uint32_t random_number;

static struct config parse(uint64_t version, const char *text)
{
    struct config parsed = {.set = 5, .version = version};

    CHECK(config_parse(text, strlen(text), &parsed));
    return parsed;
}

static void next(void)
{
    change_next(&c, now, random_number, &act);
}

static void begin(const char *wish)
{
    const char *const places[] = {"a:1", "b:1", "c:1", "d:1"};
    struct config list = parse(0, wish);

    now = 77 * DRIFT_S;
    random_number = 9;
    memset(&roster, 0, sizeof roster);
    for (unsigned i = 0; i < 4; i++)
        CHECK(roster_add(&roster, places[i]));
    change_init(&c, &config, &roster, &list, now);
    next();
    CHECK_UINT(act.look, 0);
    CHECK_UINT(act.wake_at, now + config.timeout);
    for (unsigned i = 0; i < 4; i++)
        change_on_link(&c, i, true);
    next();
    CHECK_UINT(act.look, 15);
}

static void defaults(void)
{
    config = (struct change_config){.max_ttl_ms = MAX_TTL_MS,
                                    .timeout = 2 * DRIFT_S,
                                    .look_every = LOOKS * DRIFT_MS,
                                    .pause_min = PAUSE,
                                    .pause_max = 4 * PAUSE,
                                    .drift = {10000, 2 * DRIFT_MS}};
}

static void look(unsigned master, uint64_t epoch, uint64_t version, const char *text)
{
    struct config told = {.version = 0};
    struct change_look marker = {.ready = epoch != 0,
                                 .epoch = epoch != 0 ? epoch : 99,
                                 .max_ttl_ms = MAX_TTL_MS,
                                 .high = 100 + master};

    if (text != NULL) {
        told = parse(version, text);
        marker.config = &told;
    }
    change_on_look(&c, master, &marker, now);
}

static void reply(unsigned master, enum change_answer answer, change_ballot ballot)
{
    const struct change_reply got = {.answer = answer, .ballot = ballot};

    change_on_reply(&c, master, &got, now);
    next();
}

static void yes(unsigned master)
{
    reply(master, CHANGE_YES, 0);
}

#define ABC "a:1 b:1 c:1"
#define ABD "a:1 b:1 d:1"
#define JOINT ABC " > " ABD

/* All know version 1, and d is new and ready. */
static void begin_simple_with(uint32_t max_ttl_ms)
{
    defaults();
    config.max_ttl_ms = max_ttl_ms;
    begin(ABD);
    look(A, 1, 1, ABC);
    look(B, 2, 1, ABC);
    look(C, 3, 1, ABC);
    next();
    CHECK_INT(c.phase, CHANGE_LEARNING);
    CHECK_UINT(change_missing(&c), 1u << D);
    look(D, 4, 0, NULL);
    next();
}

static void begin_simple(void)
{
    begin_simple_with(MAX_TTL_MS);
}

/* The joint version is stored by a and b, and seen. */
static void begin_waiting(void)
{
    defaults();
    begin(ABD);
    look(A, 1, 2, JOINT);
    look(B, 2, 2, JOINT);
    look(C, 3, 1, ABC);
    look(D, 4, 2, JOINT);
    next();
    CHECK_INT(c.phase, CHANGE_WAITING);
    CHECK_UINT(act.write, 1u << C);
}

/* The set has A, B and C, and D is in none.  c_epoch is the epoch of C; 0: it is warming. */
static void look_at_four(uint64_t c_epoch)
{
    look(A, 1, 1, ABC);
    look(B, 2, 1, ABC);
    look(C, c_epoch, 1, ABC);
    look(D, 4, 0, NULL);
}

TEST(from_simple_to_joint)
{
    struct config value;
    char text[CONFIG_TEXT_MAX + 1];

    begin_simple();
    CHECK_INT(c.phase, CHANGE_CHOOSING);
    CHECK_UINT(act.prepare, 7); /* d is no member yet. */
    CHECK_UINT(c.ballot, UINT64_C(1) << 32 | 9);
    CHECK_UINT(act.wake_at, now + BALLOT_LASTS);
    yes(A);
    CHECK_UINT(act.accept, 0);
    yes(C);
    CHECK_UINT(act.accept, 5);
    change_value(&c, &value);
    config_print(&value, text);
    CHECK_STR(text, JOINT);
    CHECK_UINT(value.version, 2);
    yes(A);
    CHECK_UINT(c.newest.version, 1);
    CHECK_UINT(change_missing(&c), 6);
    yes(C);
    CHECK_UINT(c.newest.version, 2);
    CHECK_INT(c.phase, CHANGE_SEEING);
    CHECK_UINT(act.write, 13); /* b still owes an answer. */
    CHECK_STR(change_name(&c, D), "d:1");
    yes(C);
    CHECK_INT(c.phase, CHANGE_SEEING);
    yes(D);
    CHECK_INT(c.phase, CHANGE_SEEING); /* Of L2 alone. */
    yes(A);
    CHECK_INT(c.phase, CHANGE_WAITING);
}

TEST(a_ballot_ends)
{
    begin_simple();
    yes(A);
    yes(B);
    now += BALLOT_LASTS - 1;
    yes(A);
    yes(B);
    CHECK_UINT(c.newest.version, 2);
    begin_simple();
    yes(A);
    yes(B);
    yes(A);
    now += BALLOT_LASTS;
    yes(B);
    CHECK_UINT(c.newest.version, 1);
    CHECK_INT(c.phase, CHANGE_PAUSING);
}

/* Looks announce what the ballot lasts, and the wait for earlier leases is as long. */
TEST(a_ballot_has_time_to_end)
{
    const uint32_t told[] = {1, CHANGE_TTL_MIN_MS - 1, CHANGE_TTL_MIN_MS, CHANGE_TTL_MIN_MS + 1};
    const uint32_t wanted[] = {CHANGE_TTL_MIN_MS, CHANGE_TTL_MIN_MS, CHANGE_TTL_MIN_MS,
                               CHANGE_TTL_MIN_MS + 1};

    for (unsigned i = 0; i < 4; i++) {
        begin_simple_with(told[i]);
        CHECK_UINT(c.config.max_ttl_ms, wanted[i]);
        CHECK_UINT(act.wake_at, drift_deadline(now, wanted[i] * DRIFT_MS, &config.drift));
        CHECK(act.wake_at > now);
    }
}

TEST(a_late_promise_does_not_count)
{
    begin_simple();
    yes(A);
    now += BALLOT_LASTS;
    yes(B);
    CHECK_INT(c.phase, CHANGE_PAUSING);
    now += PAUSE;
    next();
    CHECK_UINT(act.prepare, 3); /* c still owes an answer to the first. */
    yes(C);
    CHECK_UINT(c.promised, 0);
    CHECK_UINT(act.prepare, 4);
}

/* B lost its data before the ballot began, and nobody has told it since how long ballots last.  If
 * A forgot its promise, it could get an epoch too soon. */
TEST(a_promise_needs_an_epoch_from_before_the_ballot)
{
    for (unsigned is_back = 0; is_back < 2; is_back++) {
        begin_simple();
        yes(A);
        reply(B, CHANGE_CHANGED, 0);
        now += LOOKS * DRIFT_MS;
        change_on_link(&c, C, is_back);
        next();
        CHECK_UINT(act.look, is_back ? 1u << B | 1u << C : 1u << B);
        if (is_back) /* With its data. */
            look(C, 3, 1, ABC);
        look(B, 7, 1, ABC);
        next();
        CHECK_UINT(act.prepare, is_back ? 1u << C : 0);
        CHECK_INT(c.phase, is_back ? CHANGE_CHOOSING : CHANGE_PAUSING);
        if (is_back) {
            yes(C);
            CHECK_UINT(act.accept, 1u << A | 1u << B | 1u << C);
        } else {
            now += PAUSE;
            next();
            CHECK_UINT(act.prepare, 1u << A | 1u << B);
        }
    }
}

TEST(pauses_are_random_and_double)
{
    begin_simple();
    for (unsigned i = 0; i < 5; i++) {
        drift_span pause = PAUSE << (i < 2 ? i : 2);

        now += BALLOT_LASTS;
        random_number = i % 2 ? 0 : 1023;
        next();
        CHECK_INT(c.phase, CHANGE_PAUSING);
        CHECK_UINT(act.wake_at, now + pause / 2 + (i % 2 ? 0 : pause / 2 / 1024 * 1023));
        now = act.wake_at;
        next();
        CHECK_INT(c.phase, CHANGE_CHOOSING);
    }
}

TEST(a_greater_ballot_is_overcome)
{
    begin_simple();
    reply(A, CHANGE_BALLOT, UINT64_C(7) << 32 | 3);
    CHECK_INT(c.phase, CHANGE_CHOOSING);
    reply(B, CHANGE_BALLOT, UINT64_C(4) << 32 | 3);
    CHECK_INT(c.phase, CHANGE_PAUSING);
    now += PAUSE;
    next();
    CHECK_UINT(c.ballot >> 32, 8);
}

TEST(what_was_accepted_is_proposed)
{
    struct config found = parse(2, ABC " > a:1 b:1 e:1");
    struct change_reply got = {.answer = CHANGE_YES, .ballot = 5, .config = &found};

    begin_simple();
    change_on_reply(&c, A, &got, now);
    found = parse(2, ABC " > a:1 b:1 f:1");
    got.ballot = 6;
    change_on_reply(&c, B, &got, now);
    next();
    change_value(&c, &found);
    CHECK_STR(found.members[found.members_len - 1].name, "f:1");
    found = parse(2, "x:1");
    begin_simple();
    change_on_reply(&c, A, &got, now);
    CHECK_INT(c.status, CHANGE_IMPOSSIBLE);
    CHECK_UINT(c.culprit, A);
}

TEST(the_leases_of_before_end)
{
    begin_waiting();
    CHECK_UINT(act.wake_at, now + 1024 * DRIFT_MS);
    now += 1024 * DRIFT_MS - 1;
    next();
    CHECK_INT(c.phase, CHANGE_WAITING);
    now++;
    next();
    CHECK_INT(c.phase, CHANGE_CHECKING);
    CHECK_UINT(act.look, 3);
    look(A, 1, 2, JOINT);
    next();
    CHECK_INT(c.phase, CHANGE_CHECKING);
    look(B, 2, 2, JOINT);
    next();
    CHECK_INT(c.phase, CHANGE_COUNTING);
    CHECK_UINT(c.number, 101);
    CHECK_UINT(act.count, 11);
    yes(A);
    CHECK_INT(c.phase, CHANGE_COUNTING);
    yes(D);
    CHECK_INT(c.phase, CHANGE_CHOOSING);
    CHECK_UINT(act.prepare, 9);
}

TEST(a_longer_lease_is_waited_for)
{
    struct config joint;
    struct change_look marker = {.ready = true, .epoch = 1, .max_ttl_ms = 3000, .config = &joint};

    begin_waiting();
    joint = parse(2, JOINT);
    now += 1024 * DRIFT_MS;
    next();
    change_on_look(&c, A, &marker, now);
    look(B, 2, 2, JOINT);
    next();
    CHECK_INT(c.phase, CHANGE_WAITING);
    CHECK_UINT(act.wake_at, 77 * DRIFT_S + 3064 * DRIFT_MS);
}

TEST(a_member_that_forgot_is_seen_again)
{
    begin_waiting();
    now += 1024 * DRIFT_MS;
    next();
    look(A, 1, 2, JOINT);
    look(B, 7, 2, JOINT);
    next();
    CHECK_INT(c.phase, CHANGE_WAITING); /* From now on. */
    CHECK_UINT(act.wake_at, now + 1024 * DRIFT_MS);
}

TEST(new_members_are_waited_for)
{
    defaults();
    begin(ABD);
    look(A, 1, 1, ABC);
    look(B, 2, 1, ABC);
    look(C, 3, 1, ABC);
    look(D, 0, 0, NULL);
    next();
    CHECK_INT(c.phase, CHANGE_WATCHING);
    CHECK_UINT(change_missing(&c), 1u << D);
    CHECK_UINT(act.wake_at, now + LOOKS * DRIFT_MS);
    now = act.wake_at;
    next();
    CHECK_UINT(act.look, 1u << D);
    look(D, 4, 0, NULL);
    next();
    CHECK_INT(c.phase, CHANGE_CHOOSING);
}

/* Members that forgot get their promises back from others of the new list. */
TEST(a_majority_of_the_new_list_is_waited_for)
{
    defaults();
    config.allows_even = true;
    begin("a:1 c:1");
    look_at_four(0);
    next();
    CHECK_INT(c.phase, CHANGE_WATCHING);
    CHECK_UINT(change_missing(&c), 1u << C);
    now = act.wake_at;
    next();
    look(C, 3, 1, ABC);
    next();
    CHECK_INT(c.phase, CHANGE_CHOOSING);
}

/* The machine ends with this status, after all had the time to answer. */
static void check_end(enum change_status status)
{
    next();
    now += config.timeout;
    next();
    CHECK_INT(c.status, status);
    CHECK_UINT(act.look | act.prepare | act.write, 0);
    CHECK_UINT(act.wake_at, DRIFT_NEVER);
}

TEST(too_few_answer)
{
    defaults();
    begin(ABD);
    look(A, 1, 1, ABC);
    look(D, 4, 0, NULL);
    check_end(CHANGE_TOO_FEW); /* Of the old list. */
    begin("c:1 d:1 e:1 f:1 g:1");
    look_at_four(3);
    check_end(CHANGE_TOO_FEW); /* Of the new list. */
    begin(ABD);
    look(A, 1, 1, ABC);
    look(B, 0, 1, ABC);
    look(D, 4, 0, NULL);
    check_end(CHANGE_TOO_FEW); /* b is warming. */
}

TEST(other_ends)
{
    defaults();
    begin(ABD);
    look(A, 1, 0, NULL);
    check_end(CHANGE_NO_SET);
    begin(ABD);
    look(A, 1, 9, "");
    look(B, 2, 9, "");
    check_end(CHANGE_CLOSED);
    begin(ABD);
    look(A, 1, 2, JOINT);
    look(B, 2, 2, ABC);
    CHECK_INT(c.status, CHANGE_IMPOSSIBLE);
    CHECK_UINT(c.culprit, B);
}

TEST(a_foreign_master)
{
    struct config other = parse(1, "d:1");
    struct change_look marker = {.ready = true, .epoch = 4, .config = &other};

    other.set = 6;
    defaults();
    begin(ABD);
    look(A, 1, 1, ABC);
    look(B, 2, 1, ABC);
    change_on_look(&c, D, &marker, now);
    check_end(CHANGE_OTHER_SET);
    CHECK_UINT(c.culprit, D);
    begin(ABD);
    look(A, 1, 1, ABC);
    look(B, 2, 1, ABC);
    look(D, 4, 0, NULL);
    change_on_look(&c, C, &marker, now); /* The wish removes c. */
    next();
    CHECK_INT(c.phase, CHANGE_CHOOSING);
}

static void refuse(const char *wish, enum config_problem problem)
{
    begin(wish);
    look_at_four(3);
    check_end(CHANGE_REFUSED);
    CHECK_INT(c.problem, problem);
}

TEST(a_wish_is_refused)
{
    defaults();
    refuse("a:1 b:1", CONFIG_EVEN);
    refuse("a:1", CONFIG_ONE);
    config.allows_even = true;
    begin("a:1 b:1");
    look_at_four(3);
    next();
    CHECK_INT(c.phase, CHANGE_CHOOSING);
}

TEST(all_are_told)
{
    defaults();
    begin(ABD);
    look(A, 1, 3, ABD);
    look(B, 2, 2, JOINT);
    look(C, 3, 2, JOINT);
    look(D, 4, 3, ABD);
    next();
    CHECK_INT(c.phase, CHANGE_TELLING);
    CHECK_UINT(act.write, 6);
    CHECK_UINT(change_missing(&c), 6);
    CHECK(change_name(&c, C) == NULL);
    yes(B);
    CHECK_INT(c.status, CHANGE_GOES_ON);
    now += 2 * DRIFT_S - 1;
    next();
    CHECK_INT(c.status, CHANGE_GOES_ON);
    now++;
    next();
    CHECK_INT(c.status, CHANGE_DONE); /* c does not answer. */
    CHECK_UINT(change_missing(&c), 1u << C);
}

TEST(another_change_comes_first)
{
    begin_simple();
    reply(A, CHANGE_CHANGED, 0);
    CHECK_UINT(act.look, 0);
    now += LOOKS * DRIFT_MS;
    next();
    CHECK_UINT(act.look, 1);
    look(A, 1, 2, ABC " > b:1 c:1 e:1");
    next();
    CHECK_INT(c.phase, CHANGE_TELLING);
    CHECK_INT(c.verdict, CHANGE_OVERTAKEN);
}

TEST(a_found_change_is_finished_or_given_up)
{
    for (unsigned gives_up = 0; gives_up < 2; gives_up++) {
        defaults();
        config.gives_up = gives_up;
        begin(ABD);
        look(A, 1, 2, ABC " > b:1 c:1 e:1");
        look(B, 2, 2, ABC " > b:1 c:1 e:1");
        look(C, 3, 2, ABC " > b:1 c:1 e:1");
        look(D, 4, 0, NULL);
        next();
        CHECK_INT(c.phase, CHANGE_LEARNING); /* e is heard of. */
        now += config.timeout;
        next();
        CHECK_INT(c.phase, gives_up ? CHANGE_CHOOSING : CHANGE_WAITING);
    }
}

TEST(a_link_that_breaks)
{
    begin_simple();
    change_on_link(&c, A, false);
    reply(A, CHANGE_YES, 0);
    CHECK_UINT(c.promised, 0);
    change_on_link(&c, A, true);
    next();
    CHECK_UINT(act.look, 1);
    look(A, 1, 1, ABC);
    next();
    CHECK_UINT(act.prepare, 1);
    reply(A, CHANGE_BALLOT, c.ballot); /* It had promised. */
    CHECK_UINT(c.refused, 1);
    change_on_failure(&c, B, now);
    next();
    CHECK_UINT(act.look | act.prepare, 0);
    now += LOOKS * DRIFT_MS;
    next();
    CHECK_UINT(act.look, 2);
}

TEST(the_roster_is_full)
{
    char text[CONFIG_TEXT_MAX + 1];
    size_t len = 0;

    defaults();
    begin(ABD);
    for (unsigned i = 0; i < 15; i++)
        len += (size_t)sprintf(text + len, "%sx%02u:1", i > 0 ? " " : "", i);
    look(A, 1, 1, text);
    CHECK_INT(c.status, CHANGE_GOES_ON);
    for (size_t i = 0; i < len; i++)
        if (text[i] == 'x')
            text[i] = 'y';
    look(B, 1, 2, text);
    CHECK_INT(c.status, CHANGE_NO_ROOM);
}

TEST(all_have_words)
{
    for (enum change_phase i = CHANGE_LEARNING; i < CHANGE_PHASES_LEN; i++)
        CHECK(strlen(change_phase_text(i)) > 5);
    for (enum change_status i = CHANGE_GOES_ON; i <= CHANGE_IMPOSSIBLE; i++)
        CHECK(strlen(change_status_text(i)) > 5);
}

CHECK_MAIN(RUN(from_simple_to_joint), RUN(a_ballot_ends), RUN(a_ballot_has_time_to_end),
           RUN(a_late_promise_does_not_count), RUN(a_promise_needs_an_epoch_from_before_the_ballot),
           RUN(pauses_are_random_and_double), RUN(a_greater_ballot_is_overcome),
           RUN(what_was_accepted_is_proposed), RUN(the_leases_of_before_end),
           RUN(a_longer_lease_is_waited_for), RUN(a_member_that_forgot_is_seen_again),
           RUN(new_members_are_waited_for), RUN(a_majority_of_the_new_list_is_waited_for),
           RUN(too_few_answer), RUN(other_ends), RUN(a_foreign_master), RUN(a_wish_is_refused),
           RUN(all_are_told), RUN(another_change_comes_first),
           RUN(a_found_change_is_finished_or_given_up), RUN(a_link_that_breaks),
           RUN(the_roster_is_full), RUN(all_have_words))
