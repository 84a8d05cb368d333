/*
 * test-founder.c - the rules of the founder, one by one, on three masters.
 *
 * The test feeds the machine by hand.  test/founder shows that the rules suffice.
 */
#include "redlock/core/founder.h"

#include "test/lib/check.h"

#define LEN 3
#define ALL 7
#define LIST "a b c"
#define SET 6
#define OTHER_LIST "c d e"
#define PAUSE (100 * DRIFT_MS)
#define PAUSE_MAX (300 * DRIFT_MS)

static struct founder f;
static struct founder_actions act;
static drift_time now;
static uint64_t number; /* Of the latest call.  An attempt that begins has it. */

static void next(void)
{
    number++;
    founder_next(&f, now, number, &act);
}

static void check_actions(quorum_mask claim, quorum_mask look, quorum_mask write,
                          quorum_mask withdraw)
{
    CHECK_UINT(act.claim, claim);
    CHECK_UINT(act.look, look);
    CHECK_UINT(act.write, write);
    CHECK_UINT(act.withdraw, withdraw);
}

static bool answer(unsigned master, enum founder_word word, uint64_t of, uint64_t ver,
                   const char *text)
{
    const struct founder_answer a = {word, of, ver, text, strlen(text)};
    bool is_other = founder_on_answer(&f, master, &a);

    next();
    return is_other;
}

static void say(unsigned master, enum founder_word word)
{
    CHECK(!answer(master, word, 0, 0, ""));
}

static bool says_claim(unsigned master, uint64_t of, const char *list)
{
    return answer(master, FOUNDER_SAYS_CLAIM, of, 0, list);
}

static bool says_member(unsigned master, uint64_t set, uint64_t ver, const char *text)
{
    return answer(master, FOUNDER_SAYS_MEMBER, set, ver, text);
}

static void silence(unsigned master)
{
    founder_on_silence(&f, master);
    next();
}

/* The attempt has claimed all masters, but has no answers. */
static void begin(void)
{
    const struct founder_config config = {LEN, LIST, strlen(LIST), SET, PAUSE, PAUSE_MAX};

    founder_init(&f, &config);
    now = 77 * DRIFT_S;
    number = 1000;
    next();
    check_actions(0, 0, 0, 0);
    founder_begin(&f, now);
    for (unsigned m = 0; m < LEN; m++) {
        next();
        check_actions(0, 0, 0, 0); /* Not before all are linked. */
        CHECK(act.wake_at == DRIFT_NEVER);
        founder_on_link(&f, m, true);
    }
    next();
    check_actions(ALL, 0, 0, 0);
    CHECK_UINT(f.number, number);
}

/* All masters were new, and are looked at again. */
static void begin_look(void)
{
    begin();
    for (unsigned m = 0; m < LEN; m++) {
        check_actions(m == 0 ? ALL : 0, 0, 0, 0);
        say(m, FOUNDER_SAYS_NEW);
    }
    check_actions(0, ALL, 0, 0);
}

static void begin_write(void)
{
    begin_look();
    for (unsigned m = 0; m < LEN; m++) {
        CHECK_UINT(act.write, 0);
        CHECK(!says_claim(m, f.number, LIST));
    }
    check_actions(0, 0, ALL, 0);
    CHECK_UINT(f.set, SET);
}

/* The next attempt begins after a pause of half of this to all of it. */
static void check_pause(drift_span pause)
{
    CHECK_INT(f.phase, FOUNDER_WAITING);
    CHECK(act.wake_at >= now + pause / 2 && act.wake_at <= now + pause);
    now = act.wake_at - 1;
    next();
    check_actions(0, 0, 0, 0);
    now++;
    next();
    check_actions(ALL, 0, 0, 0);
    CHECK_UINT(f.number, number); /* Rule 1: another number. */
}

TEST(founds_a_set)
{
    begin_write();
    say(0, FOUNDER_SAYS_YES);
    say(1, FOUNDER_SAYS_YES);
    CHECK(!founder_has_ended(&f));
    say(2, FOUNDER_SAYS_YES);
    CHECK_INT(f.phase, FOUNDER_FOUNDED);
    CHECK_UINT(f.own, ALL);
    check_actions(0, 0, 0, 0);
}

TEST(a_majority_is_enough_at_the_end)
{
    begin_write();
    say(0, FOUNDER_SAYS_YES);
    founder_on_link(&f, 2, false);
    next();
    say(1, FOUNDER_SAYS_YES);
    CHECK_INT(f.phase, FOUNDER_FOUNDED);
    CHECK_UINT(f.own, 3);
    founder_begin(&f, now); /* Finish it, when all are linked. */
    next();
    check_actions(0, 0, 0, 0);
    founder_on_link(&f, 2, true);
    next();
    check_actions(ALL, 0, 0, 0);
}

TEST(a_minority_is_not)
{
    begin_write();
    say(0, FOUNDER_SAYS_YES);
    say(1, FOUNDER_SAYS_NO);
    silence(2);
    check_actions(0, 0, 0, 0); /* Rule 4: nothing is withdrawn. */
    check_pause(PAUSE);
}

TEST(pauses_double_up_to_their_limit)
{
    static const drift_span pauses[] = {PAUSE, 2 * PAUSE, PAUSE_MAX, PAUSE_MAX};

    begin();
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        for (unsigned m = 0; m < LEN; m++)
            silence(m);
        check_pause(pauses[i]);
    }
}

TEST(an_answer_that_stays_away_ends_the_attempt)
{
    begin();
    say(0, FOUNDER_SAYS_NEW);
    silence(1);
    check_actions(0, 0, 0, 1);
    say(2, FOUNDER_SAYS_NEW); /* Its claim was on its way. */
    check_actions(0, 0, 0, 4);
    say(0, FOUNDER_SAYS_YES);
    CHECK_INT(f.phase, FOUNDER_WITHDRAWING);
    say(2, FOUNDER_SAYS_NO);
    check_pause(PAUSE);
}

TEST(a_link_that_breaks_ends_the_attempt)
{
    begin();
    say(0, FOUNDER_SAYS_NEW);
    say(1, FOUNDER_SAYS_NEW);
    founder_on_link(&f, 1, false); /* It had answered. */
    next();
    check_actions(0, 0, 0, 1);
    say(2, FOUNDER_SAYS_NEW);
    silence(0);
    say(2, FOUNDER_SAYS_YES);
    CHECK(act.wake_at == DRIFT_NEVER);
    founder_on_link(&f, 1, true);
    next();
    check_pause(PAUSE);
}

TEST(a_silent_look_ends_the_attempt)
{
    begin_look();
    CHECK(!says_claim(0, f.number, LIST));
    silence(1);
    check_actions(0, 0, 0, 3);
    CHECK(!says_claim(2, f.number, LIST));
    check_actions(0, 0, 0, 4); /* Not before it has answered. */
}

/* Rule 3. */
TEST(the_second_look_must_find_the_own_claim)
{
    static const struct {
        const char *name, *list;
        enum founder_word word;
        uint64_t add; /* To the number of the attempt. */
    } rows[] = {
        {"another number", LIST, FOUNDER_SAYS_CLAIM, 1},
        {"another list", OTHER_LIST, FOUNDER_SAYS_CLAIM, 0},
        {"nothing", "", FOUNDER_SAYS_NOTHING, 0},
        {"a set of the list", LIST, FOUNDER_SAYS_MEMBER, 0},
        {"another set", OTHER_LIST, FOUNDER_SAYS_MEMBER, 0},
        {"nonsense", "", FOUNDER_SAYS_NEW, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].name;
        begin_look();
        CHECK(!answer(1, rows[i].word, f.number + rows[i].add, 1, rows[i].list));
        check_actions(0, 0, 0, 2);
        CHECK(!says_claim(0, f.number, LIST));
        CHECK(!says_claim(2, f.number, LIST));
        for (unsigned m = 0; m < LEN; m++)
            say(m, FOUNDER_SAYS_YES);
        check_pause(PAUSE);
    }
}

/* Rule 5. */
TEST(what_was_taken_over_is_left)
{
    begin();
    say(0, FOUNDER_SAYS_TOOK);
    say(1, FOUNDER_SAYS_NEW);
    silence(2);
    check_actions(0, 0, 0, 2);
    begin();
    silence(0); /* The answers of the others come late. */
    say(1, FOUNDER_SAYS_TOOK);
    say(2, FOUNDER_SAYS_NEW);
    check_actions(0, 0, 0, 4);
}

/* Master 0 was taken over, 1 is new, 2 is claimed by another list, and 2 has not been looked at. */
static void begin_refusal(void)
{
    begin();
    say(0, FOUNDER_SAYS_TOOK);
    say(1, FOUNDER_SAYS_NEW);
    CHECK(says_claim(2, 9, OTHER_LIST));
    check_actions(0, ALL, 0, 0);
    CHECK(!says_claim(0, f.number, LIST));
    CHECK(!says_claim(1, f.number, LIST));
}

TEST(what_was_taken_over_is_withdrawn_after_a_second_look)
{
    begin_refusal();
    CHECK(!says_claim(2, 8, OTHER_LIST)); /* Still in the way, of whatever attempt. */
    check_actions(0, 0, 0, 3);
    say(0, FOUNDER_SAYS_YES);
    say(1, FOUNDER_SAYS_YES);
    CHECK_INT(f.phase, FOUNDER_REFUSED);
}

TEST(but_not_if_what_was_in_the_way_is_gone)
{
    begin_refusal();
    say(2, FOUNDER_SAYS_NOTHING);
    check_actions(0, 0, 0, 2);
}

TEST(but_not_if_a_member_was_met)
{
    begin();
    say(0, FOUNDER_SAYS_TOOK);
    CHECK(!says_member(1, 5, 1, LIST));
    CHECK(says_claim(2, 9, OTHER_LIST));
    CHECK(!says_claim(0, f.number, LIST));
    CHECK(!says_member(1, 5, 1, LIST));
    CHECK(!says_claim(2, 9, OTHER_LIST));
    check_actions(0, 0, 0, 0);
    CHECK_INT(f.phase, FOUNDER_REFUSED);
}

/* The set may have been founded with this list. */
TEST(but_not_if_a_member_has_a_later_version)
{
    begin();
    say(0, FOUNDER_SAYS_TOOK);
    CHECK(says_member(1, 5, 2, OTHER_LIST));
    CHECK(!says_member(2, 5, 2, OTHER_LIST));
    CHECK(!says_claim(0, f.number, LIST));
    CHECK(!says_member(1, 5, 2, OTHER_LIST));
    CHECK(!says_member(2, 5, 2, OTHER_LIST));
    check_actions(0, 0, 0, 0);
    CHECK_INT(f.phase, FOUNDER_REFUSED);
}

/* Rule 6. */
TEST(finishes_the_set_of_another_founder)
{
    begin();
    say(0, FOUNDER_SAYS_TOOK);
    CHECK(!says_member(1, 5, 1, LIST));
    say(2, FOUNDER_SAYS_NEW);
    CHECK(!says_claim(0, f.number, LIST));
    CHECK(!says_member(1, 5, 1, LIST));
    CHECK(!says_claim(2, f.number, LIST));
    check_actions(0, 0, ALL, 0);
    CHECK_UINT(f.set, 5);
    CHECK(f.number != 5);
}

TEST(a_member_must_stay_one)
{
    begin();
    say(0, FOUNDER_SAYS_NEW);
    CHECK(!says_member(1, 5, 1, LIST));
    say(2, FOUNDER_SAYS_NEW);
    CHECK(!says_member(1, 6, 1, LIST));
    CHECK_INT(f.phase, FOUNDER_WITHDRAWING);
}

TEST(finds_that_a_set_is_founded)
{
    begin();
    for (unsigned m = 0; m < LEN; m++)
        CHECK(!says_member(m, 5, 1, LIST));
    for (unsigned m = 0; m < LEN; m++)
        CHECK(!says_member(m, 5, 1, LIST));
    check_actions(0, 0, ALL, 0);
    for (unsigned m = 0; m < LEN; m++)
        say(m, FOUNDER_SAYS_YES);
    CHECK_INT(f.phase, FOUNDER_FOUNDED);
    CHECK_UINT(f.set, 5);
}

/* Rule 7. */
TEST(says_what_is_in_the_way)
{
    static const struct {
        const char *name, *text;
        enum founder_word word;
        uint64_t ver;
    } rows[] = {
        {"a claim", OTHER_LIST, FOUNDER_SAYS_CLAIM, 0},
        {"a set of another list", OTHER_LIST, FOUNDER_SAYS_MEMBER, 1},
        {"a later version", LIST, FOUNDER_SAYS_MEMBER, 2},
        {"a list that begins like ours", LIST " d", FOUNDER_SAYS_CLAIM, 0},
        {"a list that ours begins with", "a b", FOUNDER_SAYS_MEMBER, 1},
        {"no members", "", FOUNDER_SAYS_MEMBER, 7},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].name;
        begin();
        CHECK(answer(1, rows[i].word, 9, rows[i].ver, rows[i].text));
        CHECK_INT(f.other.word, rows[i].word);
        CHECK_UINT(f.other.master, 1);
        CHECK_UINT(f.other.number, 9);
        CHECK_UINT(f.other.ver, rows[i].ver);
        say(0, FOUNDER_SAYS_NEW);
        silence(2);
        check_actions(0, 0, 0, 1);
        silence(0);
        CHECK_INT(f.phase, FOUNDER_REFUSED);
        CHECK_UINT(f.other.master, 1);
    }
}

TEST(names_a_set_rather_than_a_claim)
{
    begin();
    CHECK(says_claim(0, 9, OTHER_LIST));
    CHECK(!says_claim(1, 8, OTHER_LIST));
    CHECK(says_member(2, 7, 1, OTHER_LIST));
    CHECK_UINT(f.other.master, 2);
    begin();
    CHECK(says_member(2, 7, 1, OTHER_LIST));
    CHECK(!says_claim(0, 9, OTHER_LIST));
    CHECK_UINT(f.other.master, 2);
    begin(); /* Two sets of one list. */
    CHECK(!says_member(0, 5, 1, LIST));
    CHECK(says_member(1, 6, 1, LIST));
    CHECK_UINT(f.other.master, 1);
}

TEST(begins_again_after_a_refusal)
{
    begin();
    CHECK(says_claim(0, 9, OTHER_LIST));
    silence(1);
    silence(2);
    CHECK_INT(f.phase, FOUNDER_REFUSED);
    founder_begin(&f, now);
    next();
    check_actions(ALL, 0, 0, 0);
    CHECK_INT(f.other.word, FOUNDER_SAYS_NOTHING);
}

TEST(a_stop_withdraws_first)
{
    begin();
    say(0, FOUNDER_SAYS_NEW);
    founder_stop(&f);
    next();
    check_actions(0, 0, 0, 1);
    silence(1);
    silence(2);
    CHECK(!founder_has_ended(&f));
    say(0, FOUNDER_SAYS_YES);
    CHECK_INT(f.phase, FOUNDER_STOPPED);
    begin();
    for (unsigned m = 0; m < LEN; m++)
        silence(m);
    founder_stop(&f); /* It ends a pause. */
    CHECK_INT(f.phase, FOUNDER_STOPPED);
}

TEST(a_stop_does_not_end_what_is_decided)
{
    begin_write();
    founder_stop(&f);
    next();
    check_actions(0, 0, 0, 0);
    say(0, FOUNDER_SAYS_YES);
    say(1, FOUNDER_SAYS_NO);
    say(2, FOUNDER_SAYS_YES);
    CHECK_INT(f.phase, FOUNDER_FOUNDED);
    begin_write();
    founder_stop(&f);
    for (unsigned m = 0; m < LEN; m++)
        silence(m);
    CHECK_INT(f.phase, FOUNDER_STOPPED);
}

/* A master that answers what it cannot answer counts as silent. */
TEST(nonsense_ends_the_attempt)
{
    static const enum founder_word words[] = {FOUNDER_SAYS_NOTHING, FOUNDER_SAYS_YES,
                                              FOUNDER_SAYS_NO};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        begin();
        say(1, words[i]);
        CHECK_INT(f.phase, FOUNDER_WITHDRAWING);
    }
    begin();
    CHECK(!says_claim(1, 9, LIST)); /* It would have been taken over. */
    CHECK_INT(f.phase, FOUNDER_WITHDRAWING);
}

TEST(an_answer_that_nobody_asked_for_changes_nothing)
{
    struct founder before;

    begin();
    say(0, FOUNDER_SAYS_NEW);
    before = f;
    CHECK(!says_claim(0, 9, OTHER_LIST));
    silence(0);
    CHECK(f.phase == before.phase && f.linked == before.linked && f.own == before.own);
    CHECK(f.took == before.took && f.number == before.number && f.set == before.set);
    CHECK(f.at == before.at && memcmp(f.asked, before.asked, sizeof f.asked) == 0);
}

/* ---- Any events, also of masters that lie ---- */

static uint32_t dice;

static unsigned roll(unsigned sides)
{
    dice = dice * 1103515245 + 12345; /* As in the C standard's example of rand(). */
    return (dice >> 16) % sides;
}

static void any_event(void)
{
    static const char *const texts[] = {LIST, OTHER_LIST, ""};
    unsigned m = roll(LEN), event = roll(20);

    if (event == 0)
        founder_on_link(&f, m, roll(8) > 0);
    else if (event == 1)
        founder_on_silence(&f, m);
    else if (event == 2)
        founder_stop(&f);
    else if (event == 3)
        now += PAUSE;
    else {
        const char *text = texts[roll(40) < 2 ? 1 + roll(2) : 0];
        enum founder_word good = f.phase == FOUNDER_LOOKING ? FOUNDER_SAYS_CLAIM : FOUNDER_SAYS_NEW;
        const struct founder_answer a = {
            .word = roll(20) > 0 ? good : (enum founder_word)roll(FOUNDER_SAYS_NO + 1),
            .number = roll(20) > 0 ? f.number : roll(3),
            .ver = roll(3),
            .text = text,
            .text_len = strlen(text),
        };

        founder_on_answer(&f, m, &a);
    }
    if (founder_has_ended(&f) && roll(4) == 0)
        founder_begin(&f, now);
}

/* Whatever happens, a master that owes an answer gets no command, a number is used once, and
 * nothing is written unless the second look found all as it was. */
TEST(any_events_keep_the_rules)
{
    quorum_mask owing = ALL, looked = 0;
    uint64_t claimed = 0;
    unsigned writes = 0;

    begin();
    dice = 4711;
    for (unsigned n = 0; n < 300000; n++) {
        struct founder before = f;
        quorum_mask asked;

        any_event();
        next();
        for (unsigned m = 0; m < LEN; m++)
            if (before.asked[m] != FOUNDER_CMD_NONE && f.asked[m] != before.asked[m]) {
                owing = mask_without(owing, m);
                looked |= before.asked[m] == FOUNDER_CMD_LOOK ? mask_of(m) : 0;
            }
        asked = act.claim | act.look | act.write | act.withdraw;
        CHECK((asked & (owing | (quorum_mask)~f.linked)) == 0);
        owing = 0;
        for (unsigned m = 0; m < LEN; m++)
            owing |= f.asked[m] != FOUNDER_CMD_NONE ? mask_of(m) : 0;
        if (act.claim != 0) {
            CHECK(act.claim == ALL && f.number > claimed);
            claimed = f.number;
            looked = 0;
        }
        if (act.write != 0) {
            CHECK(act.write == ALL && looked == ALL && before.phase == FOUNDER_LOOKING);
            CHECK(f.set != 0 && f.other.word == FOUNDER_SAYS_NOTHING);
            writes++;
        }
    }
    CHECK(writes > 100);
}

TEST(one_master_and_fifteen)
{
    for (unsigned len = 1; len <= QUORUM_MASTERS_MAX; len += QUORUM_MASTERS_MAX - 1) {
        const struct founder_config config = {len, LIST, strlen(LIST), SET, PAUSE, PAUSE_MAX};

        founder_init(&f, &config);
        founder_begin(&f, now);
        for (unsigned m = 0; m < len; m++)
            founder_on_link(&f, m, true);
        next();
        CHECK_UINT(act.claim, (1u << len) - 1);
        for (unsigned m = 0; m < len; m++)
            say(m, FOUNDER_SAYS_NEW);
        for (unsigned m = 0; m < len; m++)
            CHECK(!says_claim(m, f.number, LIST));
        for (unsigned m = 0; m < len; m++)
            say(m, m <= len / 2 ? FOUNDER_SAYS_YES : FOUNDER_SAYS_NO);
        CHECK_INT(f.phase, FOUNDER_FOUNDED);
    }
}

CHECK_MAIN(RUN(founds_a_set), RUN(a_majority_is_enough_at_the_end), RUN(a_minority_is_not),
           RUN(pauses_double_up_to_their_limit), RUN(an_answer_that_stays_away_ends_the_attempt),
           RUN(a_link_that_breaks_ends_the_attempt), RUN(a_silent_look_ends_the_attempt),
           RUN(the_second_look_must_find_the_own_claim), RUN(what_was_taken_over_is_left),
           RUN(what_was_taken_over_is_withdrawn_after_a_second_look),
           RUN(but_not_if_what_was_in_the_way_is_gone), RUN(but_not_if_a_member_was_met),
           RUN(but_not_if_a_member_has_a_later_version), RUN(finishes_the_set_of_another_founder),
           RUN(a_member_must_stay_one), RUN(finds_that_a_set_is_founded),
           RUN(says_what_is_in_the_way), RUN(names_a_set_rather_than_a_claim),
           RUN(begins_again_after_a_refusal), RUN(a_stop_withdraws_first),
           RUN(a_stop_does_not_end_what_is_decided), RUN(nonsense_ends_the_attempt),
           RUN(an_answer_that_nobody_asked_for_changes_nothing), RUN(any_events_keep_the_rules),
           RUN(one_master_and_fifteen))
