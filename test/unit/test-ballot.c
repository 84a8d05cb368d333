/*
 * test-ballot.c - requests have the bytes of hiredis' formatter; every kind of answer, in a table.
 */
#include "redlock/wire/ballot.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

#include "redlock/wire/script.h"
#include "test/lib/check.h"

#define STATE "00000000000000ab.3"
#define SET "5555555555555555"
#define BALLOT "0000000200000009"
#define JOINT "a:1 b:1 c:1 > a:1 b:1 d:1"

static struct config joint = {.version = 4};

static void check_request(enum change_request request, enum script_id script,
                          const struct ballot_args *args, int more, const char *const *words)
{
    const char *argv[10] = {"EVAL", script_all[script].text, "1", "redlock:master", STATE, SET};
    char buf[BALLOT_MAX + 1], *want;
    size_t len;
    int want_len;

    for (int i = 0; i < more; i++)
        argv[6 + i] = words[i];
    want_len = (int)redisFormatCommandArgv(&want, 6 + more, argv, NULL);
    memset(buf, '#', sizeof buf);
    len = ballot_write(buf, request, args);
    CHECK_INT((int)len, want_len);
    CHECK(memcmp(buf, want, len) == 0);
    CHECK_INT(buf[len], '#');
    redisFreeCommand(want);
}

TEST(requests)
{
    struct ballot_args args = {.epoch = 0xab,
                               .version = 3,
                               .set = 0x5555555555555555,
                               .ballot = UINT64_C(2) << 32 | 9,
                               .config = &joint,
                               .name = "d:1",
                               .number = 4711};

    CHECK(config_parse(JOINT, strlen(JOINT), &joint));
    check_request(CHANGE_ASK_PREPARE, SCRIPT_PREPARE, &args, 1, (const char *[]){BALLOT});
    check_request(CHANGE_ASK_ACCEPT, SCRIPT_ACCEPT, &args, 2, (const char *[]){BALLOT, JOINT});
    check_request(CHANGE_ASK_WRITE, SCRIPT_WRITE, &args, 3, (const char *[]){"4", JOINT, "d:1"});
    args.name = NULL;
    check_request(CHANGE_ASK_WRITE, SCRIPT_WRITE, &args, 3, (const char *[]){"4", JOINT, ""});
    check_request(CHANGE_ASK_COUNT, SCRIPT_COUNT_ON, &args, 1, (const char *[]){"4711"});
}

/* The longest texts and numbers stay within the buffer: ballot_write() asserts it. */
TEST(the_longest_request)
{
    static struct config config = {.version = CONFIG_VERSION_MAX};
    char text[CONFIG_TEXT_MAX + 1], buf[BALLOT_MAX];
    struct ballot_args args = {.epoch = UINT64_MAX,
                               .version = CONFIG_VERSION_MAX - 1,
                               .set = UINT64_MAX,
                               .ballot = UINT64_MAX,
                               .config = &config};
    size_t len = 0;

    for (unsigned i = 0; i < 15 && len < 3600; i++)
        len += (size_t)sprintf(text + len, "%s1%0348d:%02u", i > 0 ? " " : "", 1, i);
    CHECK(config_parse(text, len, &config));
    args.name = config.members[0].name;
    CHECK(ballot_write(buf, CHANGE_ASK_WRITE, &args) <= sizeof buf);
    CHECK(ballot_write(buf, CHANGE_ASK_ACCEPT, &args) <= sizeof buf);
}

enum { BAD = -1, YES = CHANGE_YES, OTHER = CHANGE_BALLOT, CHANGED = CHANGE_CHANGED };

static const struct {
    const char *text;
    int prepare, accept, write, count;
} rows[] = {
    {"promise", YES, BAD, BAD, BAD},
    {"promise " BALLOT " " JOINT, YES, BAD, BAD, BAD},
    {"promise " BALLOT " ", YES, BAD, BAD, BAD}, /* Closed: no sound master accepts it. */
    {"promise ", BAD, BAD, BAD, BAD},
    {"promised", BAD, BAD, BAD, BAD},
    {"promise " BALLOT, BAD, BAD, BAD, BAD},
    {"promise " BALLOT " b:1 a:1", BAD, BAD, BAD, BAD},
    {"promise 0000000000000000 " JOINT, BAD, BAD, BAD, BAD},
    {"promise 000000020000000 " JOINT, BAD, BAD, BAD, BAD},
    {"ballot " BALLOT, OTHER, OTHER, BAD, BAD},
    {"ballot " BALLOT " ", BAD, BAD, BAD, BAD},
    {"ballot " BALLOT "0", BAD, BAD, BAD, BAD},
    {"ballot 000000020000000A", BAD, BAD, BAD, BAD},
    {"ballot", BAD, BAD, BAD, BAD},
    {"ver", CHANGED, CHANGED, CHANGED, CHANGED},
    {"vers", BAD, BAD, BAD, BAD},
    {"accepted", BAD, YES, BAD, BAD},
    {"written", BAD, BAD, YES, BAD},
    {"counted", BAD, BAD, BAD, YES},
    {"", BAD, BAD, BAD, BAD},
};

static void check_answer(enum change_request request, struct reply *reply, int want)
{
    struct config config = {.version = 77};
    struct change_reply answer = {.answer = CHANGE_FAILED};
    bool good = ballot_read(request, 3, reply, &config, &answer);

    CHECK_INT(good, want != BAD);
    if (!good)
        CHECK_UINT(config.version, 77);
    else
        CHECK_INT(answer.answer, want);
    CHECK(answer.config == NULL || (answer.config == &config && config.version == 4));
}

TEST(answers)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        struct reply reply = {.type = REPLY_TEXT, .text = text, .text_len = strlen(rows[i].text)};

        strcpy(text, rows[i].text);
        check_row = text;
        check_answer(CHANGE_ASK_PREPARE, &reply, rows[i].prepare);
        check_answer(CHANGE_ASK_ACCEPT, &reply, rows[i].accept);
        check_answer(CHANGE_ASK_WRITE, &reply, rows[i].write);
        check_answer(CHANGE_ASK_COUNT, &reply, rows[i].count);
        reply.type = REPLY_STATUS;
        check_answer(CHANGE_ASK_PREPARE, &reply, BAD);
        reply.type = REPLY_ERROR;
        check_answer(CHANGE_ASK_ACCEPT, &reply, CHANGE_FAILED);
    }
}

TEST(what_was_accepted)
{
    char text[] = "promise " BALLOT " " JOINT;
    struct reply reply = {.type = REPLY_TEXT, .text = text, .text_len = sizeof text - 1};
    struct change_reply answer;
    struct config config;

    CHECK(ballot_read(CHANGE_ASK_PREPARE, 3, &reply, &config, &answer));
    CHECK_UINT(answer.ballot, UINT64_C(2) << 32 | 9);
    CHECK(config_same_lists(answer.config, &joint));
    text[7] = '\0'; /* A NUL within the text. */
    CHECK(!ballot_read(CHANGE_ASK_PREPARE, 3, &reply, &config, &answer));
}

CHECK_MAIN(RUN(requests), RUN(the_longest_request), RUN(answers), RUN(what_was_accepted))
