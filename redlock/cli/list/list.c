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
#include "redlock/cli/common/query.h"
#include "redlock/cli/common/writes.h"
#include "redlock/cli/list/page.h"
#include "redlock/client/inspect.h"
#include "redlock/wire/reply.h"

#define KEYS_PER_STEP "200" /* A step takes a master about 0.1 ms; not measured. */
#define TICKS_MAX 60        /* Chosen: then a minute has passed, with the usual timeouts. */

enum query { QUERY_SCAN, QUERY_WRITES };

struct scan {
    bool asked; /* A step is under way. */
    bool over;  /* No more steps follow. */
    bool moved; /* A step was answered since the last tick. */
    char cursor[LOCKS_CURSOR_MAX + 1];
};

struct list {
    struct cli *cli;
    struct redlock *rl;
    struct ev_loop *loop;
    unsigned ticks;
    struct scan scans[REDLOCK_MASTERS_MAX];
    struct page page;
};

/* ---- Scanning ---- */

/* MSG_NONE: the scan is complete. */
static void finish(struct list *list, unsigned m, struct remark remark)
{
    list->scans[m].over = true;
    list->page.failed |= remark.message != MSG_NONE ? mask_of(m) : 0;
    list->page.errors[m] = remark;
}

static void ask(struct list *list, unsigned m)
{
    const char *const words[] = {
        "EVAL", locks_script, "0", list->scans[m].cursor, KEYS_PER_STEP, list->page.all ? "1" : "0",
        NULL};

    list->scans[m].asked = true;
    query_send(list->rl, m, QUERY_SCAN, words);
}

static void on_answer(void *cookie, unsigned m, uint32_t query, const struct reply *reply)
{
    struct list *list = cookie;
    struct scan *scan = &list->scans[m];

    if (scan->over)
        return;
    if (query == QUERY_WRITES && reply != NULL) {
        (void)writes_are_refused(reply, &list->page.refusals[m]);
        return;
    }
    scan->asked = false;
    scan->moved = true;
    if (reply == NULL) {
        finish(list, m, inspect_master(list->rl, m).remark);
        return;
    }
    switch (locks_take(&list->page.now.locks, m, list->page.pattern, reply, scan->cursor)) {
    case LOCKS_MORE:
        ask(list, m);
        break;
    case LOCKS_DONE:
        finish(list, m, (struct remark){MSG_NONE, ""});
        break;
    case LOCKS_FULL:
        finish(list, m,
               (struct remark){MSG_NOT_SCANNED,
                               "stores more locks than redlock lists: choose by a PATTERN"});
        list->page.failed = mask_without(list->page.failed, m);
        break;
    case LOCKS_ODD:
        finish(list, m, remark_of_reply("", reply));
        break;
    }
}

/* Scan masters whose links are up, and give up masters whose links failed. */
static void follow_links(struct list *list, const struct inspect_client *client)
{
    list->page.masters = client->masters; /* Members that the list does not name come later. */
    for (unsigned m = 0; m < client->masters; m++) {
        const struct scan *scan = &list->scans[m];

        if (!scan->over && (client->unlinked & mask_of(m)) != 0) {
            finish(list, m, inspect_master(list->rl, m).remark);
        } else if (!scan->over && !scan->asked && (client->linked & mask_of(m)) != 0) {
            writes_ask(list->rl, m, QUERY_WRITES);
            ask(list, m);
        }
    }
}

/* True: the master has yet to say whether it may vote.  After the first tick nobody waits for it.
 */
static bool is_silent(const struct list *list, const struct inspect_client *client, unsigned m)
{
    return list->ticks == 0 && client->restart_guard && (client->linked & mask_of(m)) != 0 &&
           inspect_master(list->rl, m).look.number == 0;
}

static bool is_scanning(void *arg)
{
    struct list *list = arg;
    const struct inspect_client client = inspect_client(list->rl);

    follow_links(list, &client);
    for (unsigned m = 0; m < client.masters; m++)
        if (!list->scans[m].over || is_silent(list, &client, m))
            return true;
    return false;
}

/* Give up masters that have not answered since the last tick, and at last all. */
static void give_up_the_late(struct list *list)
{
    list->ticks++;
    for (unsigned m = 0; m < list->page.masters; m++) {
        if (!list->scans[m].over && (!list->scans[m].moved || list->ticks == TICKS_MAX))
            finish(list, m, (struct remark){MSG_NO_ANSWER, "does not answer in time"});
        list->scans[m].moved = false;
    }
}

static void scan_all(struct list *list)
{
    page_turn(&list->page);
    list->ticks = 0;
    for (unsigned m = 0; m < REDLOCK_MASTERS_MAX; m++)
        list->scans[m] = (struct scan){.cursor = "0"};
    inspect_listen(list->rl, on_answer, list);
    while (is_scanning(list)) {
        cli_linger(list->loop, is_scanning, list,
                   list->cli->connect_timeout_ms + list->cli->reply_timeout_ms);
        give_up_the_late(list);
    }
    inspect_listen(list->rl, NULL, NULL);
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
        code = page_print(&list->page, list->rl);
        if (!list->page.watch || (code != CLI_OK && code != CLI_UNREACHABLE))
            return code;
        cli_linger(list->loop, is_always, NULL, 1000);
    }
}

static int list_main(struct cli *cli, int argc, char **argv)
{
    struct list list = {.cli = cli};
    char *pattern = NULL;
    int option, code;

    while ((option = cli_getopt(cli, argc, argv, false)) != -1)
        *(option == OPTION_LIST_ALL ? &list.page.all : &list.page.watch) = true;
    if (optind < argc) {
        cli_need_arguments(cli, argc, argv, 1, "[PATTERN]");
        list.page.pattern = pattern = cli_pattern(cli, argv[optind]);
    }
    list.page.json = cli->json;
    list.loop = loop_new();
    if (list.loop == NULL)
        return CLI_INTERNAL;
    code = cli_open(cli, list.loop, &list.rl);
    if (code == CLI_OK) {
        inspect_look_only(list.rl); /* A list with a mistake must not change markers. */
        code = scan_and_print(&list);
    }
    (void)redlock_close(list.rl);
    page_done(&list.page);
    free(pattern);
    ev_loop_destroy(list.loop);
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
