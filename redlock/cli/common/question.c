/*
 * question.c - follows the links, counts answers, and gives up masters that do not answer.  Tries a
 * write that cannot change anything, and knows the errors of masters that refuse it, or that forbid
 * it to the user.
 */
#include "redlock/cli/common/question.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "redlock/cli/common/cli.h"
#include "redlock/cli/common/loop.h"
#include "redlock/cli/common/remark.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"

/* Enough for the longest script, and its arguments. */
#define COMMAND_MAX (SCRIPT_TEXT_MAX + REDLOCK_NAME_MAX + 512)

/* ---- The trial ---- */

/* INFO shows disks, memory and replicas, but whether writes are refused also depends on settings
 * and on the version.  So try a SET, which a lock needs.  A master judges whether it takes writes
 * before it reads NX and XX, and no SET with both is carried out: "ERR syntax error", or nil.  No
 * script may ask: up to Redis 6.0.16 and 6.2.6, luaRedisGenericCommand() in scripting.c does not
 * check min-replicas-to-write, as processCommand() does.  There a fair lock is granted that status
 * does not promise, and a plain one is refused. */
static const char *const to_write[] = {"SET", WIRE_MARKER, "", "NX", "XX", NULL};

/* With the restart guard, this follows each vote.  All other rights that a plain lock needs until
 * it is taken are those of a link that comes up, and of the guard's look. */
static const char *const to_prove[] = {"HGET", WIRE_MARKER, "epoch", NULL};

enum { TRY_TO_WRITE = QUESTION_TRIES, TRY_TO_PROVE };

/* A busy machine may be late once.  A lock has several attempts, too. */
#define TRIES_MAX 3 /* Chosen. */

static void try_write(struct question *question, unsigned m)
{
    question->of[m].tries++;
    question->of[m].tried_at = loop_clock();
    question_send(question, m, TRY_TO_WRITE, to_write);
}

/* All conditions in which a master that can be reached refuses writes.  In others its link does not
 * come up: it loads its data (LOADING), runs a script for too long (BUSY), is a replica when the
 * client connects, or has no room for a connection (maxclients). */
static bool takes_no_writes(enum why why)
{
    return why == WHY_ERROR_MEMORY || why == WHY_ERROR_DISK || why == WHY_ERROR_REPLICAS ||
           why == WHY_ERROR_REPLICA;
}

static void take_refusal(struct question_master *one, const struct reply *reply)
{
    char first[REASON_WORDS_MAX], *end;
    struct reason why;

    if (reply->type != REPLY_ERROR)
        return;
    redis_error_reason(&why, reply->text);
    /* An ACL may forbid a SET of the marker alone, which no lock needs. */
    if (why.why == WHY_ERROR_RIGHT && redis_error_right(reply->text) == RIGHT_TO_COMMAND) {
        one->refusal = remark_of("", &why);
        return;
    }
    if (!takes_no_writes(why.why))
        return;
    /* The first sentence tells it; MISCONF has more. */
    (void)snprintf(first, sizeof first, "%s", reply->text);
    end = strstr(first, ". ");
    if (end != NULL)
        *end = '\0';
    redis_error_reason(&why, first);
    one->refusal = remark_of("refuses writes: ", &why);
}

static bool is_late(const struct question *question, unsigned m)
{
    return question_is_late(question->of[m].round_trip, question->cli->reply_timeout_ms);
}

/* An error takes a round trip as well. */
static void take_trial(struct question *question, unsigned m, uint32_t query,
                       const struct reply *reply)
{
    struct question_master *one = &question->of[m];
    const drift_span took = drift_until(one->tried_at, loop_clock());

    take_refusal(one, reply);
    if (query != TRY_TO_WRITE)
        return;
    if (one->tries == 1 || took < one->round_trip)
        one->round_trip = took;
    if (is_late(question, m) && one->tries < TRIES_MAX)
        try_write(question, m);
}

/* ---- Asking ---- */

static void fail(struct question *question, unsigned m, struct reason why)
{
    question->of[m].over = true;
    question->of[m].why = why;
    if (why.why == WHY_NONE)
        reason_set(&question->of[m].why, WHY_SILENT_NOW);
}

static void begin(struct question *question, unsigned m, bool restart_guard)
{
    question->of[m].asked = true;
    if (question->tries)
        try_write(question, m);
    if (question->tries && restart_guard)
        question_send(question, m, TRY_TO_PROVE, to_prove);
    if (question->send != NULL)
        question->send(question->asker, m);
}

/* Ask masters whose links are up, and give up those whose links failed.  False: it is over. */
static bool is_asking(void *arg)
{
    struct question *question = arg;
    const struct inspect_client client = inspect_client(question->rl);
    bool is_any = false;

    question->masters = client.masters;
    for (unsigned m = 0; m < client.masters; m++) {
        struct question_master *one = &question->of[m];

        if (one->over || (question->left_out & mask_of(m)) != 0)
            continue;
        if ((client.unlinked & mask_of(m)) != 0) {
            fail(question, m, inspect_master(question->rl, m).why);
            continue;
        }
        if (!one->asked && (client.linked & mask_of(m)) != 0)
            begin(question, m, client.restart_guard);
        one->over = one->asked && one->owed == 0 &&
                    (question->waits == NULL || !question->waits(question->asker, m));
        is_any |= !one->over;
    }
    return is_any && (question->signal == NULL || *question->signal == 0);
}

static void end_if_over(struct question *question)
{
    if (question->end == NULL || question->ended || is_asking(question))
        return;
    question->ended = true;
    question->end(question->asker);
}

static void on_answer(void *cookie, unsigned m, uint32_t query, const struct reply *reply)
{
    struct question *question = cookie;
    struct question_master *one = &question->of[m];

    if (one->over)
        return;
    one->moved = true;
    one->owed--;
    if (reply == NULL)
        fail(question, m, inspect_master(question->rl, m).why);
    else if (query >= QUESTION_TRIES)
        take_trial(question, m, query, reply);
    else
        question->take(question->asker, m, query, reply);
    end_if_over(question);
}

/* Those that have not answered in this limit, and after the last one all. */
static void give_up_the_silent(struct question *question)
{
    struct reason why;

    reason_set(&why, WHY_LATE);
    question->limits_passed++;
    for (unsigned m = 0; m < question->masters; m++) {
        struct question_master *one = &question->of[m];

        if (!one->over && (question->left_out & mask_of(m)) == 0 &&
            (!one->moved || question->limits_passed >= question->limits))
            fail(question, m, why);
        one->moved = false;
    }
}

void question_begin(struct question *question)
{
    memset(question->of, 0, sizeof question->of);
    question->limits_passed = 0;
    question->ended = false;
    inspect_listen(question->rl, on_answer, question);
    (void)is_asking(question);
}

void question_ask(struct question *question)
{
    const struct cli *cli = question->cli;
    uint32_t limit_ms = question->limit_ms != 0 ? question->limit_ms
                                                : cli->connect_timeout_ms + cli->reply_timeout_ms;

    question_begin(question);
    do {
        cli_linger(question->loop, is_asking, question, limit_ms);
        if (question->signal == NULL || *question->signal == 0)
            give_up_the_silent(question);
    } while (question->limits_passed < question->limits && is_asking(question));
    end_if_over(question);
    inspect_listen(question->rl, NULL, NULL);
}

void question_write(struct question *question, unsigned m, uint32_t query, const char *command,
                    size_t command_len)
{
    question->of[m].owed++;
    inspect_query(question->rl, m, query, command, command_len);
}

void question_send(struct question *question, unsigned m, uint32_t query, const char *const *words)
{
    char command[COMMAND_MAX];
    size_t count = 0, len;

    while (words[count] != NULL)
        count++;
    len = (size_t)snprintf(command, sizeof command, "*%zu\r\n", count);
    for (size_t i = 0; i < count && len < sizeof command; i++)
        len += (size_t)snprintf(command + len, sizeof command - len, "$%zu\r\n%s\r\n",
                                strlen(words[i]), words[i]);
    assert(len < sizeof command);
    question_write(question, m, query, command, len);
}

/* ---- What they said ---- */

struct remark question_why(const struct question *question, unsigned m)
{
    const struct reason *why = &question->of[m].why;
    struct remark remark = {.message = reason_message(why)};

    (void)reason_write(why, inspect_client(question->rl).now, remark.text, sizeof remark.text);
    return remark;
}

quorum_mask question_refusing(const struct question *question)
{
    quorum_mask refusing = 0;

    for (unsigned m = 0; m < question->masters; m++)
        if (question->of[m].refusal.message != MSG_NONE)
            refusing |= mask_of(m);
    return refusing;
}

struct remark question_lateness(const struct question *question, unsigned m)
{
    struct remark remark = {.message = MSG_NO_ANSWER};

    (void)snprintf(remark.text, sizeof remark.text,
                   "answers after %.1f ms, and --reply-timeout is %u ms: make it longer in all "
                   "clients",
                   (double)question->of[m].round_trip / (double)DRIFT_MS,
                   question->cli->reply_timeout_ms);
    return remark;
}

struct remark question_no_vote(const struct question *question, unsigned m)
{
    const struct inspect_master master = inspect_master(question->rl, m);

    if (question->of[m].refusal.message != MSG_NONE)
        return question->of[m].refusal;
    if (is_late(question, m))
        return question_lateness(question, m);
    return master.is_barred ? master.clock : (struct remark){MSG_NONE, ""};
}

/* As founder.h judges. */
bool question_founds_none(const struct question *question)
{
    const struct inspect_client client = inspect_client(question->rl);
    quorum_mask able = (quorum_mask)~question_refusing(question) & client.lists.to;

    for (unsigned m = 0; m < question->masters; m++)
        if (question->of[m].why.why != WHY_NONE || inspect_master(question->rl, m).is_copy)
            able = mask_without(able, m);
    return client.restart_guard && client.set == 0 && !client.is_closed && client.lists.to != able;
}

bool question_finds_no_set(const struct question *question)
{
    const struct inspect_client client = inspect_client(question->rl);
    bool is_told = false;

    for (unsigned m = 0; m < client.masters && client.set == 0; m++)
        is_told = is_told || inspect_master(question->rl, m).look.number != 0;
    return is_told;
}

/* As guard.h judges. */
bool question_finds_new(const struct question *question)
{
    const struct inspect_client client = inspect_client(question->rl);
    bool are_new = client.restart_guard && client.set == 0 && client.masters > 0;

    for (unsigned m = 0; m < client.masters && are_new; m++) {
        const struct inspect_master master = inspect_master(question->rl, m);

        are_new =
            master.is_linked && master.look.number != 0 && master.look.fresh && !master.look.ready;
    }
    return are_new;
}

/* The library knows which trouble decides (core/outlook.h), but not what only the trial shows. */
enum msg question_decides(const struct question *question)
{
    const struct inspect_client client = inspect_client(question->rl);
    int status = redlock_ready(question->rl, NULL);
    enum msg decides = status != REDLOCK_OK ? cli_cause(status) : MSG_NONE;

    for (unsigned m = 0; m < client.masters && decides == MSG_NONE; m++)
        if (members_all(&client.lists) & mask_of(m))
            decides = question_no_vote(question, m).message;
    return decides != MSG_NONE ? decides : MSG_NO_MAJORITY;
}
