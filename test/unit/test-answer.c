/*
 * test-answer.c - answers of witnesses, and to the scripts that found a set of masters, also from
 * hostile masters.
 */
#include "redlock/wire/answer.h"

#include "redlock/wire/wire.h"
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

CHECK_MAIN(RUN(claims_are_read), RUN(other_texts_are_refused), RUN(texts_have_a_limit),
           RUN(a_nul_ends_no_text), RUN(only_texts_are_claims_and_only_integers_are_done),
           RUN(ages_are_integers), RUN(any_bytes))
