/*
 * test-answer.c - answers to queries of the marker, of witnesses, and to the scripts that found a
 * set of masters; also from hostile masters.
 */
#include "redlock/wire/answer.h"

#include "redlock/wire/wire.h"
#include "test/lib/words.h"
#include "test/lib/check.h"

#define N "0123456789abcdef"
#define NUMBER UINT64_C(0x0123456789abcdef)
#define VER_MAX "9007199254740991"

static struct reply reply_of(enum reply_type type, const char *text, size_t len, long long integer)
{
    static char copy[WIRE_CONFIG_MAX + 100];

    CHECK(len < sizeof copy);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return (struct reply){.type = type, .text = copy, .text_len = len, .integer = integer};
}

static bool read_claim(const char *text, struct founder_answer *ret_answer)
{
    struct reply reply = reply_of(REPLY_TEXT, text, strlen(text), 0);

    return answer_claim(&reply, ret_answer);
}

TEST(claims_are_read)
{
    static const struct {
        const char *reply, *text;
        enum founder_word word;
        uint64_t number, ver;
    } rows[] = {
        {"nothing", "", FOUNDER_SAYS_NOTHING, 0, 0},
        {"new", "", FOUNDER_SAYS_NEW, 0, 0},
        {"took", "", FOUNDER_SAYS_TOOK, 0, 0},
        {"claim " N " a b", "a b", FOUNDER_SAYS_CLAIM, NUMBER, 0},
        {"claim " N " ~", "~", FOUNDER_SAYS_CLAIM, NUMBER, 0},
        {"member " N " 1 a", "a", FOUNDER_SAYS_MEMBER, NUMBER, 1},
        {"member " N " 12 a > b", "a > b", FOUNDER_SAYS_MEMBER, NUMBER, 12},
        {"member " N " " VER_MAX " ", "", FOUNDER_SAYS_MEMBER, NUMBER, (UINT64_C(1) << 53) - 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct founder_answer answer;

        check_row = rows[i].reply;
        CHECK(read_claim(rows[i].reply, &answer));
        CHECK_INT(answer.word, rows[i].word);
        CHECK_UINT(answer.number, rows[i].number);
        CHECK_UINT(answer.ver, rows[i].ver);
        CHECK_STR(answer.text, rows[i].text);
        CHECK_UINT(answer.text_len, strlen(rows[i].text));
    }
}

TEST(other_texts_are_refused)
{
    static const char *const texts[] = {
        "",
        " ",
        "ne",
        "new ",
        "News",
        "claim",
        "claim ",
        "claim " N,
        "claim " N " ",
        "claim " N "0 a",
        "claim 0123456789abcde a",
        "claim 0123456789ABCDEF a",
        "claim 0000000000000000 a",
        "claim  " N " a",
        "claim " N " a\n",
        "claim " N " a\x7f",
        "claim " N " \xc3\xa9",
        "claim " N " \x1b[2J",
        "member " N,
        "member " N " a",
        "member " N " 1",
        "member " N " 0 a",
        "member " N " -1 a",
        "member " N " 1.5 a",
        "member " N "  a",
        "member " N " 9007199254740992 a",
        "member " N " 18446744073709551617 a",
        "member " N " 1 a\r",
        "members " N " 1 a",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct founder_answer answer = {.number = 4711};

        check_row = texts[i];
        CHECK(!read_claim(texts[i], &answer));
        CHECK_UINT(answer.number, 4711);
    }
}

/* The longest texts, and one byte more. */
TEST(texts_have_a_limit)
{
    static const struct {
        const char *head;
        size_t max;
    } rows[] = {{"claim " N " ", WIRE_LIST_MAX}, {"member " N " 1 ", WIRE_CONFIG_MAX}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static char text[WIRE_CONFIG_MAX + 60];
        struct founder_answer answer;
        size_t head_len = strlen(rows[i].head);

        memset(text, 'a', sizeof text);
        memcpy(text, rows[i].head, head_len);
        text[head_len + rows[i].max] = '\0';
        CHECK(read_claim(text, &answer));
        CHECK_UINT(answer.text_len, rows[i].max);
        text[head_len + rows[i].max] = 'a';
        text[head_len + rows[i].max + 1] = '\0';
        CHECK(!read_claim(text, &answer));
    }
}

TEST(a_nul_ends_no_text)
{
    static const char text[] = "claim " N " a\0b", word[] = "new\0";
    struct founder_answer answer;
    struct reply reply = reply_of(REPLY_TEXT, text, sizeof text - 1, 0);

    CHECK(!answer_claim(&reply, &answer));
    reply = reply_of(REPLY_TEXT, word, sizeof word - 1, 0);
    CHECK(!answer_claim(&reply, &answer));
}

TEST(only_texts_are_claims_and_only_integers_are_done)
{
    for (int type = REPLY_STATUS; type <= REPLY_OTHER; type++)
        for (long long integer = -1; integer <= 2; integer++) {
            struct reply reply = reply_of((enum reply_type)type, "new", 3, integer);
            struct founder_answer answer;
            bool is_done = type == REPLY_INTEGER && (integer == 0 || integer == 1);

            CHECK_INT(answer_claim(&reply, &answer), type == REPLY_TEXT);
            CHECK_INT(answer_done(&reply, &answer), is_done);
            if (is_done)
                CHECK_INT(answer.word, integer == 1 ? FOUNDER_SAYS_YES : FOUNDER_SAYS_NO);
        }
}

TEST(ages_are_integers)
{
    static const long long integers[] = {-1, 0, 61200, INT64_MAX, -2, INT64_MIN};

    for (int type = REPLY_STATUS; type <= REPLY_OTHER; type++)
        for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
            struct reply reply = reply_of((enum reply_type)type, "1", 1, integers[i]);
            int64_t age_ms = 4711;
            bool is_age = type == REPLY_INTEGER && integers[i] >= -1;

            CHECK_INT(answer_witness(&reply, &age_ms), is_age);
            CHECK_INT(age_ms, is_age ? integers[i] : 4711);
        }
}

/* What was read, written again. */
static void write_again(const struct founder_answer *answer, char *buf, size_t size)
{
    static const char *const words[] = {"nothing", "new", "took"};

    if (answer->word == FOUNDER_SAYS_CLAIM)
        snprintf(buf, size, "claim %016" PRIx64 " %s", answer->number, answer->text);
    else if (answer->word == FOUNDER_SAYS_MEMBER)
        snprintf(buf, size, "member %016" PRIx64 " %" PRIu64 " %s", answer->number, answer->ver,
                 answer->text);
    else
        snprintf(buf, size, "%s", words[answer->word]);
}

/* Good answers with any bytes changed, cut off, or put in. */
TEST(any_bytes)
{
    static const char *const texts[] = {"nothing", "new", "took", "claim " N " a b",
                                        "member " N " 12 a b > c"};
    uint32_t dice = 4711;
    unsigned good = 0;

    for (unsigned n = 0; n < 200000; n++) {
        char text[64], again[128];
        struct reply reply;
        struct founder_answer answer;
        size_t len = strlen(texts[n % 5]);

        memcpy(text, texts[n % 5], len);
        for (unsigned k = n / 5 % 4; k > 0; k--) {
            size_t at;

            dice = dice * 1103515245 + 12345; /* As in the C standard's example of rand(). */
            at = (dice >> 16) % (len + 1);
            if (dice >> 9 & 1)
                text[at] = (char)(dice >> 24);
            else if (dice >> 10 & 1)
                text[at] = " 0aZ"[dice >> 12 & 3];
            else
                len = at;
            len += at == len && (dice >> 11 & 1) ? 1 : 0;
            if (at == len - 1 && text[at] == 0)
                text[at] = 'x';
        }
        reply = reply_of(REPLY_TEXT, text, len, 0);
        if (!answer_claim(&reply, &answer))
            continue;
        good++;
        CHECK_UINT(answer.text_len, strlen(answer.text));
        write_again(&answer, again, sizeof again);
        if (answer.word != FOUNDER_SAYS_MEMBER || strstr(reply.text, " 0") == NULL)
            CHECK_STR(again, reply.text); /* Zeros before a version are no harm. */
    }
    CHECK(good > 50000);
}

/* ---- Queries of the marker ---- */

#define LOOK_MAX (WIRE_CONFIG_MAX + WIRE_ACCEPTED_MAX + CONFIG_PLACE_MAX + 200)

static bool read_look(const char *text, struct guard_look *ret_look, struct answer_set *ret_set)
{
    static char copy[LOOK_MAX];
    struct reply reply = {.type = REPLY_TEXT, .text = copy, .text_len = strlen(text)};

    CHECK(reply.text_len < sizeof copy);
    memcpy(copy, text, reply.text_len + 1);
    return answer_look(&reply, ret_look, ret_set);
}

static bool has_text(const char *text, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(text, wanted, len) == 0;
}

TEST(looks_are_read)
{
    static const struct {
        const char *reply, *state, *name, *config;
        uint64_t set, version, floor;
    } rows[] = {
        {"ready " N ".0 60000 6 7 8 -", N ".0", "", NULL, 0, 0, 6},
        {"ready " N ".1 60000 6 7 8 " N " 1 a", N ".1", "a", NULL, NUMBER, 1, 6},
        {"ready " N ".1.6 60000 6 7 8 " N " 1 a", N ".1.6", "a", NULL, NUMBER, 1, 6},
        {"ready " N ".12 60000 6 7 8 " N " 12 - b c", N ".12", "", "b c", NUMBER, 12, 6},
        {"ready " N ".12 60000 6 7 8 " N " 12 - ", N ".12", "", "", NUMBER, 12, 6},
        {"warming " N " 60000 1 5 7 8 -", NULL, "", NULL, 0, 0, 0},
        {"warming " N " 60000 1 5 7 8 " N " 3 [::1]:7/2", NULL, "[::1]:7/2", NULL, NUMBER, 3, 0},
        {"warming " N " 60000 1 5 7 8 " N " 3 a b > c", NULL, "a", "b > c", NUMBER, 3, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct guard_look look;
        struct answer_set set;

        check_row = rows[i].reply;
        CHECK(read_look(rows[i].reply, &look, &set));
        CHECK_UINT(look.number, NUMBER);
        CHECK_UINT(look.max_ttl_ms, 60000);
        CHECK_UINT(look.high, 7);
        CHECK_UINT(look.time_us, 8);
        CHECK_UINT(look.floor, rows[i].floor);
        CHECK(look.ready == (rows[i].state != NULL) && look.fresh == !look.ready);
        CHECK_UINT(set.set, rows[i].set);
        CHECK_UINT(set.version, rows[i].version);
        CHECK(has_text(set.name, set.name_len, rows[i].name));
        CHECK((set.config == NULL) == (rows[i].config == NULL));
        CHECK(set.config == NULL || has_text(set.config, set.config_len, rows[i].config));
        CHECK((set.state == NULL) == (rows[i].state == NULL));
        CHECK(set.state == NULL || has_text(set.state, set.state_len, rows[i].state));
        CHECK_UINT(look.told.version, look.ready ? set.version : 0);
        CHECK(look.told.ballot == 0 && look.told.accepted == 0 && set.accepted == NULL);
    }
}

/* Behind a newline: the ballot that was promised, and what was accepted. */
TEST(ballots_are_read)
{
    static const struct {
        const char *behind, *accepted;
        uint64_t ballot, accepted_in;
    } rows[] = {
        {"\n0000000200000003", NULL, UINT64_C(0x200000003), 0},
        {"\n0000000200000003 0000000100000004 a > b", "0000000100000004 a > b",
         UINT64_C(0x200000003), UINT64_C(0x100000004)},
        {"\n0000000200000003 0000000200000003 ", "0000000200000003 ", UINT64_C(0x200000003),
         UINT64_C(0x200000003)},
    };
    static const char *const heads[] = {"ready " N ".1 60000 6 7 8 " N " 1 a",
                                        "ready " N ".1 60000 6 7 8 " N " 1 - b c"};

    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct guard_look look;
        struct answer_set set;
        char text[200];

        check_row = rows[i / 2].behind;
        (void)snprintf(text, sizeof text, "%s%s", heads[i % 2], rows[i / 2].behind);
        CHECK(read_look(text, &look, &set));
        CHECK_UINT(look.told.version, 1);
        CHECK_UINT(look.told.ballot, rows[i / 2].ballot);
        CHECK_UINT(look.told.accepted, rows[i / 2].accepted_in);
        CHECK((set.accepted == NULL) == (rows[i / 2].accepted == NULL));
        CHECK(set.accepted == NULL ||
              has_text(set.accepted, set.accepted_len, rows[i / 2].accepted));
        CHECK((set.config == NULL) == (i % 2 == 0));
        CHECK(set.config == NULL || has_text(set.config, set.config_len, "b c"));
    }
}

TEST(other_looks_are_refused)
{
    static const char *const texts[] = {
        "",
        "ready",
        "ready " N ".0 60000 6 7 8",
        "ready " N ".0 60000 6 7 8 ",
        "ready " N ".0 60000 6 7 8 - ",
        "ready " N ".0 60000 6 7 8 --",
        "ready " N ".0 60000 6 7 -",
        "ready " N " 60000 6 7 8 -",
        "ready " N ". 60000 6 7 8 -",
        "ready " N ".0. 60000 6 7 8 -",
        "ready " N ".0.6. 60000 6 7 8 -",
        "ready " N ".x 60000 6 7 8 -",
        "ready 0000000000000000.0 60000 6 7 8 -",
        "ready " N "0.0 60000 6 7 8 -",
        "ready " N ".9007199254740992 60000 6 7 8 " N " 9007199254740992 a",
        "ready " N ".1 60000 6 7 8 -",
        "ready " N ".0 60000 6 7 8 " N " 1 a",
        "ready " N ".2 60000 6 7 8 " N " 1 a",
        "ready " N ".0 60000 6 7 8 " N " 0 a",
        "ready " N ".1 60000 6 7 8 " N " 1",
        "ready " N ".1 60000 6 7 8 " N " 1 ",
        "ready " N ".1 60000 6 7 8 " N " 1  a",
        "ready " N ".1 60000 6 7 8 " N " 1 a\tb",
        "ready " N ".1 60000 6 7 8 0000000000000000 1 a",
        "ready " N ".1 60000 6 7 8 x 1 a",
        "warming " N " 60000 1 5 7 8",
        "warming " N ".1 60000 1 5 7 8 -",
        "warming " N " 60000 2 5 7 8 -",
        "warming " N " 86400001 1 5 7 8 -",
        "ready " N ".1 60000 6 7 8 " N " 1 a\n",
        "ready " N ".1 60000 6 7 8 " N " 1 a\n" N " ",
        "ready " N ".1 60000 6 7 8 " N " 1 a\n" N "\n",
        "ready " N ".1 60000 6 7 8 " N " 1 a\n" N " " N,
        "ready " N ".1 60000 6 7 8 " N " 1 a\n" N "  " N " b",
        "ready " N ".1 60000 6 7 8 " N " 1 a\n0000000000000000",
        "ready " N ".1 60000 6 7 8 " N " 1 a\n0000000100000000 0000000100000001 b",
        "ready " N ".1 60000 6 7 8 " N " 1\n" N,
        "warming " N " 60000 1 5 7 8 " N " 3 a\n" N,
        "other 3",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct guard_look look = {.number = 4711};
        struct answer_set set;

        check_row = texts[i];
        CHECK(!read_look(texts[i], &look, &set));
        CHECK_UINT(look.number, 4711);
    }
}

TEST(looks_have_a_limit)
{
    static char text[LOOK_MAX];
    const char *head = "warming " N " 60000 1 5 7 8 " N " 3 ";
    size_t len = strlen(head);
    struct answer_set set;
    struct guard_look look;

    memset(text, 'a', sizeof text);
    memcpy(text, head, len);
    text[len + CONFIG_PLACE_MAX] = ' ';
    text[len + CONFIG_PLACE_MAX + 1 + CONFIG_TEXT_MAX] = '\0';
    CHECK(read_look(text, &look, &set));
    CHECK_UINT(set.name_len, CONFIG_PLACE_MAX);
    CHECK_UINT(set.config_len, CONFIG_TEXT_MAX);
    text[len + CONFIG_PLACE_MAX + 1 + CONFIG_TEXT_MAX] = 'a';
    text[len + CONFIG_PLACE_MAX + 2 + CONFIG_TEXT_MAX] = '\0';
    CHECK(!read_look(text, &look, &set));
    text[len + CONFIG_PLACE_MAX] = 'a';
    text[len + CONFIG_PLACE_MAX + 1] = '\0';
    CHECK(!read_look(text, &look, &set));
}

TEST(states_are_read)
{
    static const struct {
        const char *text;
        uint64_t version, floor;
    } rows[] = {
        {N ".0", 0, 0},
        {N ".1", 1, 0},
        {N ".9007199254740991.9007199254740991", CONFIG_VERSION_MAX, QUORUM_FENCE_MAX},
    };
    static const char *const bad[] = {"",
                                      ".",
                                      ".1",
                                      N,
                                      N ".",
                                      N " 1",
                                      N ".1 ",
                                      N ".1.",
                                      N ".1.1.1",
                                      N ".-1",
                                      N ".1x",
                                      "0123456789ABCDEF.1",
                                      N ".9007199254740992",
                                      N ".1.9007199254740992",
                                      N ".0000000000000001.00000000000000001"};
    struct answer_state state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_row = rows[i].text;
        CHECK(answer_state(rows[i].text, strlen(rows[i].text), &state));
        CHECK_UINT(state.epoch, NUMBER);
        CHECK_UINT(state.version, rows[i].version);
        CHECK_UINT(state.floor, rows[i].floor);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_row = bad[i];
        CHECK(!answer_state(bad[i], strlen(bad[i]), &state));
    }
    CHECK(!answer_state(N ".1\0", WIRE_NUMBER + 3, &state));
}

#define FAULT(field) "answered with garbage: the field " field " of redlock:master"

TEST(the_first_bad_field_is_named)
{
    static const struct {
        const char *reply, *fault;
    } rows[] = {
        {"ready " N ". 6 6 7 8 -", FAULT("ver or epoch")},
        {"ready x.1 60000 6 7 8 -", FAULT("epoch")},
        {"ready " N ".0 -1 6 7 8 -", FAULT("max")},
        {"ready " N ".0 86400001 6 7 8 -", FAULT("max")},
        {"ready " N ".0 60000 x 7 8 -", FAULT("floor")},
        {"ready " N ".0 60000 6 x 8 -", FAULT("high")},
        {"ready " N ".1 60000 6 7 8 " N " 0 a", FAULT("set, ver, config or name")},
        {"ready " N ".2 60000 6 7 8 " N " 1 a", FAULT("ver or epoch")},
        {"ready " N ".1 60000 6 7 8 " N " 1 a ~", FAULT("config")},
        {"ready " N ".1 60000 6 7 8 " N " 1 a\nx", FAULT("ballot or accepted")},
        {"warming x 60000 1 5 7 8 -", FAULT("nonce")},
        {"warming " N " 60000 2 5 7 8 -", FAULT("fresh")},
        {"warming " N " 60000 1 x 7 8 -", FAULT("since")},
        {"other", "answered with garbage"},
    };
    struct reason why;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reply reply = reply_of(REPLY_TEXT, rows[i].reply, strlen(rows[i].reply), 0);

        check_row = rows[i].reply;
        answer_look_fault(&reply, &why);
        CHECK_STR(words_of(&why), rows[i].fault);
    }
}

CHECK_MAIN(RUN(claims_are_read), RUN(other_texts_are_refused), RUN(texts_have_a_limit),
           RUN(a_nul_ends_no_text), RUN(only_texts_are_claims_and_only_integers_are_done),
           RUN(ages_are_integers), RUN(any_bytes), RUN(looks_are_read), RUN(ballots_are_read),
           RUN(other_looks_are_refused), RUN(the_first_bad_field_is_named), RUN(looks_have_a_limit),
           RUN(states_are_read))
