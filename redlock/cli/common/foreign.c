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
#include "redlock/cli/common/query.h"
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

    return strncmp(text, "a ", 2) == 0 && len < 60 &&
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
    unsigned masters = inspect_client(foreign->rl).masters;

    return mask_count(foreign->found[i]) >= masters - masters / 2;
}

static void tell(struct foreign *foreign, unsigned m, const char *key, const char *type,
                 const char *more)
{
    char shown[CLI_NAMES_SHOWN_MAX];

    foreign->is_told = true;
    cli_say(MSG_FOREIGN_KEY,
            "the key %s on master %u (%s) is %s, which redlock did not write%s on all masters, or "
            "use another name",
            cli_show_name(key, shown), m + 1, inspect_master(foreign->rl, m).name, type, more);
}

/* Each client takes any permit, so all of them must have foreign keys. */
static void take_slots(struct foreign *foreign, unsigned m, const char *text)
{
    const char *type = foreign_slots(text, foreign->slots);
    char key[KEY_MAX];

    if (type == NULL)
        return;
    for (unsigned slot = 0; slot < foreign->slots; slot++)
        if (text[slot] == '1')
            foreign->found[slot] |= mask_of(m);
    for (unsigned slot = 0; slot < foreign->slots; slot++)
        if (!is_everywhere(foreign, slot))
            return;
    (void)snprintf(key, sizeof key, WIRE_PERMIT "%s:%zu", foreign->names->list[0],
                   strcspn(text, "1"));
    tell(foreign, m, key, type,
         foreign->slots == 1 ? ": delete it"
                             : ", and so it is with all other permits: delete these keys");
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
static void tell_holder(const struct foreign *foreign)
{
    const struct inspect_client client = inspect_client(foreign->rl);
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

static void on_answer(void *cookie, unsigned m, uint32_t query, const struct reply *reply)
{
    struct foreign *foreign = cookie;
    unsigned i = query == QUERY_QUEUE ? 1 : query; /* With a queue there is one name. */
    char queue[KEY_MAX];

    if (foreign->answers_left > 0)
        foreign->answers_left--;
    if (foreign->is_told || reply == NULL || reply->type != REPLY_TEXT)
        return;
    if (query == QUERY_SLOTS) {
        take_slots(foreign, m, reply->text);
        return;
    }
    if (reply->text[0] == '=' && query < REDLOCK_NAMES_MAX)
        take_holder(&foreign->holders[query], m, reply->text + 1);
    if (!foreign_is_type(reply->text))
        return;
    foreign->found[i] |= mask_of(m);
    if (!is_everywhere(foreign, i))
        return;
    (void)snprintf(queue, sizeof queue, WIRE_QUEUE "%s", foreign->names->list[0]);
    tell(foreign, m, query == QUERY_QUEUE ? queue : foreign->names->list[query], reply->text,
         ": delete it");
}

/* ---- Asking ---- */

static void ask(struct foreign *foreign, unsigned m, uint32_t query, const char *script,
                const char *key)
{
    char slots[12];

    (void)snprintf(slots, sizeof slots, "%u", foreign->slots);
    foreign->answers_left++;
    query_send(foreign->rl, m, query, (const char *const[]){"EVAL", script, "1", key, slots, NULL});
}

static void ask_master(struct foreign *foreign, unsigned m)
{
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

static void begin(struct foreign *foreign)
{
    const struct inspect_client client = inspect_client(foreign->rl);

    memset(foreign->found, 0, sizeof foreign->found);
    memset(foreign->holders, 0, sizeof foreign->holders);
    inspect_listen(foreign->rl, on_answer, foreign);
    for (unsigned m = 0; m < client.masters; m++)
        if ((client.linked & mask_of(m)) != 0)
            ask_master(foreign, m);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    begin(timer->data);
}

void foreign_wait(struct foreign *foreign, struct ev_loop *loop, struct redlock *rl,
                  const struct cli_names *names, const struct redlock_lock_options *opts)
{
    *foreign =
        (struct foreign){.rl = rl, .names = names, .has_queue = opts->fair, .slots = opts->permits};
    ev_timer_init(&foreign->timer, on_timer, WAIT_S, 0);
    foreign->timer.data = foreign;
    ev_now_update(loop);
    ev_timer_start(loop, &foreign->timer);
}

static bool is_awaited(void *arg)
{
    const struct foreign *foreign = arg;

    return foreign->answers_left > 0;
}

void foreign_find(struct foreign *foreign, struct ev_loop *loop, uint32_t at_most_ms)
{
    if (!foreign->is_told)
        begin(foreign);
    cli_linger(loop, is_awaited, foreign, at_most_ms);
    if (!foreign->is_told)
        tell_holder(foreign);
}

void foreign_done(struct foreign *foreign, struct ev_loop *loop)
{
    ev_timer_stop(loop, &foreign->timer);
    inspect_listen(foreign->rl, NULL, NULL);
}
