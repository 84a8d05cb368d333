/*
 * foreign.c - asks the masters what the keys of a lock are, and reports a foreign one.
 *
 * A lock is a string, readers are a sorted set, and both expire.  Any other key keeps the name from
 * all clients until somebody deletes it.
 */
#include "redlock/cli/foreign.h"

#include <stdio.h>
#include <string.h>

#include "redlock/client/inspect.h"
#include "redlock/wire/reply.h"

#define WAIT_S 1 /* Before a search.  Chosen: longer than most locks are held by others. */

/* What the key is if it can be no lock, or nil. */
#define FIND_FOREIGN                                                                \
    "local t=redis.call('type',KEYS[1]).ok if t=='none' then return false end "     \
    "if redis.call('pttl',KEYS[1])==-1 then return 'a '..t..' without an end' end " \
    "if t~='string' and t~='zset' then return 'a '..t end return false"

#define COMMAND_MAX (REDLOCK_NAME_MAX + 384)

/* The answer of a master that lies may be any text. */
static bool is_type(const char *text)
{
    size_t len = strlen(text);

    return strncmp(text, "a ", 2) == 0 && len < 60 &&
           strspn(text + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ") ==
               len - 2;
}

/* The number of the query is that of the name. */
static void on_answer(void *cookie, unsigned m, uint32_t query, const struct reply *reply)
{
    struct foreign *foreign = cookie;
    unsigned masters = inspect_client(foreign->rl).masters;
    char shown[CLI_NAMES_SHOWN_MAX];

    if (foreign->answers_left > 0)
        foreign->answers_left--;
    if (foreign->is_told || reply == NULL || reply->type != REPLY_TEXT || !is_type(reply->text))
        return;
    foreign->found[query] |= mask_of(m);
    if (mask_count(foreign->found[query]) < masters - masters / 2)
        return; /* The others may make a majority. */
    foreign->is_told = true;
    cli_say("the key %s on master %u (%s) is %s, which redlock did not write: delete it on all "
            "masters, or use another name",
            cli_show_name(foreign->names->list[query], shown), m + 1,
            inspect_master(foreign->rl, m).name, reply->text);
}

static void ask(struct foreign *foreign, unsigned m, uint32_t i)
{
    const char *name = foreign->names->list[i];
    char command[COMMAND_MAX];
    int len = snprintf(command, sizeof command,
                       "*4\r\n$4\r\nEVAL\r\n$%zu\r\n" FIND_FOREIGN "\r\n$1\r\n1\r\n$%zu\r\n%s\r\n",
                       sizeof FIND_FOREIGN - 1, strlen(name), name);

    foreign->answers_left++;
    inspect_query(foreign->rl, m, i, command, (size_t)len);
}

static void begin(struct foreign *foreign)
{
    const struct inspect_client client = inspect_client(foreign->rl);

    memset(foreign->found, 0, sizeof foreign->found);
    inspect_listen(foreign->rl, on_answer, foreign);
    for (unsigned m = 0; m < client.masters; m++)
        for (uint32_t i = 0; i < foreign->names->len && (client.linked & mask_of(m)) != 0; i++)
            ask(foreign, m, i);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    begin(timer->data);
}

void foreign_wait(struct foreign *foreign, struct ev_loop *loop, struct redlock *rl,
                  const struct cli_names *names)
{
    *foreign = (struct foreign){.rl = rl, .names = names};
    ev_timer_init(&foreign->timer, on_timer, WAIT_S, 0);
    foreign->timer.data = foreign;
    ev_now_update(loop);
    ev_timer_start(loop, &foreign->timer);
}

static bool is_awaited(const void *arg)
{
    const struct foreign *foreign = arg;

    return foreign->answers_left > 0;
}

void foreign_find(struct foreign *foreign, struct ev_loop *loop, uint32_t at_most_ms)
{
    if (!foreign->is_told)
        begin(foreign);
    cli_linger(loop, is_awaited, foreign, at_most_ms);
}

void foreign_done(struct foreign *foreign, struct ev_loop *loop)
{
    ev_timer_stop(loop, &foreign->timer);
    inspect_listen(foreign->rl, NULL, NULL);
}
