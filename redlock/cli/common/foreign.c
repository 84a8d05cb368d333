/*
 * foreign.c - asks the masters what the keys of a lock are, and reports a foreign one.
 *
 * A lock is a string, readers are a sorted set, and both expire.  A permit is a string that
 * expires.  A queue is a sorted set with two entries for each waiter (parts/queue.lua).  Any other
 * key keeps the name from all clients until somebody deletes it.
 */
#include "redlock/cli/common/foreign.h"

#include <stdio.h>
#include <string.h>

#include "redlock/base/note.h"
#include "redlock/client/inspect.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/reply.h"

#define WAIT_S 1 /* Before a search.  Chosen: longer than most locks are held by others. */

#define KEY_MAX (REDLOCK_NAME_MAX + 64) /* Enough for a name with a prefix. */

/* As FOREIGN_NAME.  The answer for a lock is '=' and what it stores: a token and its note. */
#define FOREIGN_OR_HOLDER                                 \
    FOREIGN_KEY                                           \
    "local v=t=='string' and redis.pcall('get',KEYS[1]) " \
    "if type(v)=='string' and #v<=128 then return '='..v end return false"
_Static_assert(REDLOCK_TOKEN_MAX == 128, "what FOREIGN_OR_HOLDER reads");

/* The number of a query is that of the name, or one of these. */
enum { QUERY_QUEUE = REDLOCK_NAMES_MAX, QUERY_SLOTS };

/* The answer of a master that lies may be any text. */
bool foreign_is_type(const char *text)
{
    size_t len = strlen(text);

    return strncmp(text, "a ", 2) == 0 && len < FOREIGN_TYPE_MAX &&
           strspn(text + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ") ==
               len - 2;
}

const char *foreign_slots(const char *text, unsigned slots)
{
    if (strspn(text, "01") != slots || strchr(text, '1') == NULL || !foreign_is_type(text + slots))
        return NULL;
    return text + slots;
}

/* ---- Judging ---- */

/* True: too few masters are without the key to be a majority, so no client can get the lock.
 * Otherwise a client may hold it on those masters. */
static bool is_everywhere(const struct foreign *foreign, unsigned i)
{
    const struct members lists = inspect_client(foreign->question.rl).lists;

    return !members_decide(&lists, members_all(&lists) & (quorum_mask)~foreign->found[i]);
}

static void tell(struct foreign *foreign, unsigned i, const char *key, const char *more)
{
    char shown[CLI_NAMES_SHOWN_MAX], masters[CLI_MASTERS_SHOWN_MAX];

    foreign->keeps = true;
    (void)snprintf(foreign->said, sizeof foreign->said,
                   "the key %s on %s is %s, which redlock did not write%s there, or use another "
                   "name",
                   cli_show_name(key, shown),
                   cli_show_masters(foreign->question.rl, foreign->found[i], masters),
                   foreign->types[i], more);
    if (!foreign->is_told)
        cli_say(MSG_FOREIGN_KEY, "%s", foreign->said);
    foreign->is_told = true;
}

/* Each client takes any permit, so all of them must have foreign keys. */
static void judge_slots(struct foreign *foreign)
{
    char key[KEY_MAX];

    for (unsigned slot = 0; slot < foreign->slots; slot++)
        if (!is_everywhere(foreign, slot))
            return;
    (void)snprintf(key, sizeof key, WIRE_PERMIT "%s:0", foreign->names->list[0]);
    tell(foreign, 0, key,
         foreign->slots == 1 ? ": delete it"
                             : ", and so it is with all other permits: delete these keys");
}

/* All have answered that will: then all masters with the key are named. */
static void judge(void *asker)
{
    struct foreign *foreign = asker;
    const struct cli_names *names = foreign->names;
    char queue[KEY_MAX];

    if (foreign->slots > 0) {
        judge_slots(foreign);
        return;
    }
    for (unsigned i = 0; i < names->len + foreign->has_queue && !foreign->keeps; i++)
        if (is_everywhere(foreign, i)) {
            (void)snprintf(queue, sizeof queue, WIRE_QUEUE "%s", names->list[0]);
            tell(foreign, i, i < names->len ? names->list[i] : queue, ": delete it");
        }
}

/* The script says of the first slot that has a foreign key what it is. */
static void take_slots(struct foreign *foreign, unsigned m, const char *text)
{
    const char *type = foreign_slots(text, foreign->slots);

    if (type == NULL)
        return;
    for (unsigned slot = 0; slot < foreign->slots; slot++)
        if (text[slot] == '1')
            foreign->found[slot] |= mask_of(m);
    if (text[0] == '1')
        (void)snprintf(foreign->types[0], sizeof foreign->types[0], "%s", type);
}

/* The first answer is compared with the others: a holder has a majority. */
static void take_holder(struct foreign_holder *holder, unsigned m, const char *stored)
{
    if (holder->masters == 0)
        (void)snprintf(holder->stored, sizeof holder->stored, "%s", stored);
    if (strcmp(holder->stored, stored) == 0)
        holder->masters |= mask_of(m);
}

/* Only the first name that is held is of interest: the lock waits for it. */
void foreign_tell_holder(const struct foreign *foreign)
{
    const struct inspect_client client = inspect_client(foreign->question.rl);
    char name[CLI_NAMES_SHOWN_MAX], shown[CLI_NAMES_SHOWN_MAX];

    for (size_t i = 0; i < foreign->names->len; i++) {
        const struct foreign_holder *holder = &foreign->holders[i];
        size_t len;
        const char *note = note_find(holder->stored, strlen(holder->stored), &len);

        if (note == NULL || !members_decide(&client.lists, holder->masters))
            continue;
        cli_say(MSG_HELD, "%s is held by %s", cli_show_name(foreign->names->list[i], name),
                cli_show_text(note, shown));
        return;
    }
}

static void take(void *asker, unsigned m, uint32_t query, const struct reply *reply)
{
    struct foreign *foreign = asker;
    const char *text = reply->type == REPLY_TEXT ? reply->text : "";
    unsigned i = query == QUERY_QUEUE ? 1 : query; /* With a queue there is one name. */

    if (query == QUERY_SLOTS) {
        take_slots(foreign, m, text);
        return;
    }
    if (text[0] == '=' && query < REDLOCK_NAMES_MAX)
        take_holder(&foreign->holders[query], m, text + 1);
    if (!foreign_is_type(text))
        return;
    foreign->found[i] |= mask_of(m);
    (void)snprintf(foreign->types[i], sizeof foreign->types[i], "%s", text);
}

/* ---- Asking ---- */

static void ask(struct foreign *foreign, unsigned m, uint32_t query, const char *script,
                const char *key)
{
    char slots[12];

    (void)snprintf(slots, sizeof slots, "%u", foreign->slots);
    question_send(&foreign->question, m, query,
                  (const char *const[]){"EVAL", script, "1", key, slots, NULL});
}

static void ask_master(void *asker, unsigned m)
{
    struct foreign *foreign = asker;
    const struct cli_names *names = foreign->names;
    char key[KEY_MAX];

    if (foreign->slots > 0) {
        (void)snprintf(key, sizeof key, WIRE_PERMIT "%s:", names->list[0]);
        ask(foreign, m, QUERY_SLOTS, FOREIGN_SLOTS, key);
        return;
    }
    for (uint32_t i = 0; i < names->len; i++)
        ask(foreign, m, i, FOREIGN_OR_HOLDER, names->list[i]);
    if (foreign->has_queue) {
        (void)snprintf(key, sizeof key, WIRE_QUEUE "%s", names->list[0]);
        ask(foreign, m, QUERY_QUEUE, FOREIGN_QUEUE, key);
    }
}

/* Only masters whose links are up now are asked. */
static void begin(struct foreign *foreign, void (*ask_now)(struct question *question))
{
    memset(foreign->found, 0, sizeof foreign->found);
    memset(foreign->holders, 0, sizeof foreign->holders);
    foreign->keeps = false;
    foreign->question.left_out = (quorum_mask)~inspect_client(foreign->question.rl).linked;
    ask_now(&foreign->question);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    begin(timer->data, question_begin);
}

void foreign_wait(struct foreign *foreign, const struct cli *cli, struct ev_loop *loop,
                  struct redlock *rl, const struct cli_names *names,
                  const struct redlock_lock_options *opts)
{
    *foreign = (struct foreign){
        .question = {.rl = rl,
                     .loop = loop,
                     .cli = cli,
                     .limit_ms = cli->reply_timeout_ms,
                     .asker = foreign,
                     .send = ask_master,
                     .take = take,
                     .end = judge},
        .names = names,
        .has_queue = opts->fair,
        .slots = opts->permits,
    };
    ev_timer_init(&foreign->timer, on_timer, WAIT_S, 0);
    foreign->timer.data = foreign;
    ev_now_update(loop);
    ev_timer_start(loop, &foreign->timer);
}

bool foreign_find(struct foreign *foreign)
{
    ev_timer_stop(foreign->question.loop, &foreign->timer);
    begin(foreign, question_ask); /* What was found while the lock was waited for may be gone. */
    return foreign->keeps;
}

void foreign_done(struct foreign *foreign)
{
    ev_timer_stop(foreign->question.loop, &foreign->timer);
    inspect_listen(foreign->question.rl, NULL, NULL);
}
