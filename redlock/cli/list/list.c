/*
 * list.c - `redlock list`: show the locks that a majority of the masters stores.
 *
 * Each master is scanned step by step (SCAN), as soon as its link is up, so no step takes it long.
 * A scan sees every key that is there from its begin to its end, and perhaps others.
 */
#include "redlock/cli/common/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "redlock/cli/common/loop.h"
#include "redlock/cli/list/page.h"
#include "redlock/client/inspect.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/script.h"

#define KEYS_PER_STEP "200" /* A step takes a master about 0.1 ms; not measured. */
#define LIMITS 60           /* Chosen: then a minute has passed, with the usual timeouts. */

struct list {
    struct question question;
    char cursors[REDLOCK_MASTERS_MAX][LOCKS_CURSOR_MAX + 1];
    struct page page;
};

/* ---- Scanning ---- */

static void ask(void *asker, unsigned m)
{
    struct list *list = asker;
    const char *const words[] = {"EVAL",        script_all[SCRIPT_SCAN].text, "0", list->cursors[m],
                                 KEYS_PER_STEP, list->page.all ? "1" : "0",   NULL};

    question_send(&list->question, m, 0, words);
}

static void take(void *asker, unsigned m, uint32_t query, const struct reply *reply)
{
    struct list *list = asker;

    (void)query;
    switch (locks_take(&list->page.now.locks, m, list->page.pattern, reply, list->cursors[m])) {
    case LOCKS_MORE:
        ask(list, m);
        break;
    case LOCKS_DONE:
        break;
    case LOCKS_FULL:
        list->page.errors[m] = (struct remark){
            MSG_NOT_SCANNED, "stores more locks than redlock lists: choose by a PATTERN"};
        break;
    case LOCKS_ODD:
        list->page.errors[m] = remark_of_reply("", reply);
        list->page.failed |= mask_of(m);
        break;
    }
}

/* True: the master has yet to say whether it may vote.  It is waited for in the first limit only.
 */
static bool is_silent(void *asker, unsigned m)
{
    const struct question *question = &((struct list *)asker)->question;

    return question->limits_passed == 0 && inspect_client(question->rl).restart_guard &&
           inspect_master(question->rl, m).is_linked &&
           inspect_master(question->rl, m).look.number == 0;
}

static void scan_all(struct list *list)
{
    page_turn(&list->page);
    for (unsigned m = 0; m < REDLOCK_MASTERS_MAX; m++)
        (void)snprintf(list->cursors[m], sizeof list->cursors[m], "0");
    question_ask(&list->question);
    for (unsigned m = 0; m < list->question.masters; m++) {
        if (list->question.of[m].why.why == WHY_NONE)
            continue;
        list->page.errors[m] = question_why(&list->question, m);
        list->page.failed |= mask_of(m);
    }
}

/* ---- The command ---- */

static bool is_always(void *arg)
{
    (void)arg;
    return true;
}

static int scan_and_print(struct list *list)
{
    int code;

    for (;;) {
        scan_all(list);
        code = page_print(&list->page);
        if (!list->page.watch || (code != CLI_OK && code != CLI_UNREACHABLE))
            return code;
        cli_linger(list->question.loop, is_always, NULL, 1000);
    }
}

static int list_main(struct cli *cli, int argc, char **argv)
{
    struct list list = {.page.question = &list.question};
    struct question *question = &list.question;
    char *pattern = NULL;
    int option, code;

    while ((option = cli_getopt(cli, argc, argv, false)) != -1)
        *(option == OPTION_LIST_ALL ? &list.page.all : &list.page.watch) = true;
    if (optind < argc) {
        cli_need_arguments(cli, argc, argv, 1, "[PATTERN]");
        list.page.pattern = pattern = cli_pattern(cli, argv[optind]);
    }
    list.page.json = cli->json;
    *question = (struct question){
        .loop = loop_new(),
        .cli = cli,
        .limits = LIMITS,
        .tries = true,
        .asker = &list,
        .send = ask,
        .take = take,
        .waits = is_silent,
    };
    if (question->loop == NULL)
        return CLI_INTERNAL;
    code = cli_open(cli, question->loop, &question->rl);
    if (code == CLI_OK) {
        inspect_look_only(question->rl); /* A list with a mistake must not change markers. */
        code = scan_and_print(&list);
    }
    (void)redlock_close(question->rl);
    page_done(&list.page);
    free(pattern);
    ev_loop_destroy(question->loop);
    return code;
}

const struct cli_command cli_list = {
    .name = "list",
    .options = OPTIONS_LIST,
    .run = list_main,
    .usage = "list [--all] [--watch] [PATTERN]",
    .help =
        "Print the locks that a majority of the masters stores: name, holder, how many masters\n"
        "store it, how much longer it lasts if it is not renewed, and how many clients wait.\n"
        "Names that nobody holds, and that clients wait for, are shown as free.  A star marks a\n"
        "lock that has no vote to spare.  PATTERN chooses names: * stands for any bytes, ? for\n"
        "one.\n",
    .more =
        "It reads all keys of the masters, 200 at a time.  The user needs the right to SCAN, and\n"
        "to read the keys; what it may not read is left out.\n"
        "\n"
        "Example: redlock list --watch 'jobs/*'\n"
        "Exit: 0 a majority is up, 64 usage, 69 no majority is up, 78 clients refuse the\n"
        "list of masters.\n",
};
