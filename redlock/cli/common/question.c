/*
 * question.c - follows the links, counts answers, and gives up masters that do not answer.
 */
#include "redlock/cli/common/question.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "redlock/cli/common/cli.h"

#define COMMAND_MAX 4096 /* Enough for the longest script, of `redlock list`, and two keys. */

static void fail(struct question *question, unsigned m, struct reason why)
{
    question->of[m].over = true;
    question->of[m].why = why;
    if (why.why == WHY_NONE)
        reason_set(&question->of[m].why, WHY_SILENT_NOW);
}

static void begin(struct question *question, unsigned m, bool restart_guard)
{
    struct question_master *one = &question->of[m];

    one->asked = true;
    if (question->tries)
        question_send(question, m, TRIAL_WRITE, trial_begin(&one->trial));
    if (question->tries && restart_guard)
        question_send(question, m, TRIAL_PROVE, trial_to_prove);
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
    else if (!trial_is_query(query))
        question->take(question->asker, m, query, reply);
    else if (trial_take(&one->trial, query, reply, question->cli->reply_timeout_ms))
        question_send(question, m, TRIAL_WRITE, trial_begin(&one->trial));
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
        if (question->of[m].trial.refusal.message != MSG_NONE)
            refusing |= mask_of(m);
    return refusing;
}

struct remark question_no_vote(const struct question *question, unsigned m)
{
    const struct inspect_master master = inspect_master(question->rl, m);
    const struct trial *trial = &question->of[m].trial;
    struct remark remark = trial->refusal;

    if (remark.message == MSG_NONE &&
        trial_is_late(trial->round_trip, question->cli->reply_timeout_ms))
        remark = trial_lateness(trial, question->cli->reply_timeout_ms);
    return remark.message == MSG_NONE && master.is_barred ? master.clock : remark;
}
