/*
 * foreign.c - asks the masters what the keys of a lock are, and reports a foreign one.
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

static void take_key(struct foreign *foreign, unsigned m, unsigned i, const struct shown_row *row)
{
    char type[SHOWN_FOREIGN_MAX];

    if (shown_foreign(row, type) == NULL)
        return;
    foreign->found[i] |= mask_of(m);
    (void)snprintf(foreign->types[i], sizeof foreign->types[i], "%s", type);
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

/* Of a semaphore only the permits matter.  With a queue there is one name. */
static void take_shown(struct foreign *foreign, unsigned m, unsigned i, const struct shown *shown)
{
    const struct shown_row *name = shown_find(shown, SHOWN_NAME, 0);

    for (unsigned slot = 0; slot < foreign->slots; slot++)
        take_key(foreign, m, slot, shown_find(shown, SHOWN_PERMIT, slot + 1));
    if (foreign->slots > 0)
        return;
    take_key(foreign, m, i, name);
    if (foreign->has_queue)
        take_key(foreign, m, 1, shown_find(shown, SHOWN_QUEUE, 0));
    if (shown_is(name, "string") && name->left_ms != -1 && name->text_len <= REDLOCK_TOKEN_MAX)
        take_holder(&foreign->holders[i], m, name->text);
}

/* The number of a query is that of the name. */
static void take(void *asker, unsigned m, uint32_t query, const struct reply *reply)
{
    struct shown shown;

    if (!shown_read(&shown, reply))
        return;
    take_shown(asker, m, query, &shown);
    shown_free(&shown);
}

/* ---- Asking ---- */

static void ask_master(void *asker, unsigned m)
{
    struct foreign *foreign = asker;
    size_t len = foreign->slots > 0 ? 1 : foreign->names->len;
    char slots[12];

    (void)snprintf(slots, sizeof slots, "%u", foreign->slots);
    for (uint32_t i = 0; i < len; i++) {
        const char *words[] = SHOWN_WORDS(foreign->names->list[i], slots, foreign->has_queue);

        question_send(&foreign->question, m, i, words);
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
