/*
 * status.c - `redlock status`: show the state of the masters, and the holder of a lock.
 *
 * Each master is queried as soon as its link is up.  One timeout bounds all of it.  Masters that a
 * guard keeps from voting are queried as well, and shown as warming or barred.
 */
#include "redlock/cli/common/cli.h"

#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "drift/drift.h"
#include "redlock/cli/common/foreign.h"
#include "redlock/cli/common/loop.h"
#include "redlock/cli/common/remark.h"
#include "redlock/cli/set/marker.h"
#include "redlock/cli/status/report.h"
#include "redlock/client/inspect.h"
#include "redlock/wire/name.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/wire.h"

#define KEY_MAX (REDLOCK_NAME_MAX + 64) /* Enough for a name with two prefixes. */

/* Read the token.  A text of another program may have any length, so this reads at most one byte
 * more than the longest token.  GETRANGE gives one answer for an empty key and a missing one,
 * and the user may lack the right to it. */
#define GET_TOKEN                               \
    "local s=redis.pcall('get',KEYS[1]) "       \
    "if type(s)=='string' then s=s:sub(1,129) " \
    "end return s"
_Static_assert(REDLOCK_TOKEN_MAX + 1 == 129, "what GET_TOKEN asks for");

/* Count the readers, without those whose time is over, which may still be stored.  The key ends
 * with the reader of the greatest score (acquire_shared.lua). */
#define COUNT_READERS                                                \
    "local last=redis.call('zrange',KEYS[1],-1,-1,'withscores')[2] " \
    "local now=(last or 0)-redis.call('pttl',KEYS[1]) "              \
    "return redis.call('zcount',KEYS[1],string.format('%.0f',now),'inf')"

/* The permits of a semaphore that are stored, as a text: 0 is free, 1 is taken, and 2 is a key that
 * redlock did not write.  Masters do not store K, so all possible permits are read.  This takes a
 * master about 0.1 ms, not measured. */
#define FIND_PERMITS                                                  \
    "local s={} for i=1,tonumber(ARGV[1]) do local k=KEYS[1]..(i-1) " \
    "local p=redis.call('pttl',k) s[i]=p==-2 and '0' or "             \
    "(p==-1 or redis.call('type',k).ok~='string') and '2' or '1' end return table.concat(s)"

enum query {
    QUERY_LOOK,
    QUERY_GET,
    QUERY_PTTL,
    QUERY_QUEUE,
    QUERY_FOREIGN_QUEUE,
    QUERY_READERS,
    QUERY_PERMITS,
    QUERY_HOLDERS
};

/* ---- Asking ---- */

static void ask_one(struct status *status, unsigned master, enum query query, const char **words)
{
    question_send(&status->question, master, query, words);
}

static bool is_permit(const char *name)
{
    return strncmp(name, WIRE_PERMIT, WIRE_PERMIT_LEN) == 0;
}

static void ask_holder(struct status *status, unsigned master)
{
    const char *name = status->name;
    char queue[KEY_MAX], permits[KEY_MAX], slots[12];

    (void)snprintf(queue, sizeof queue, WIRE_QUEUE "%s", name);
    (void)snprintf(permits, sizeof permits, WIRE_PERMIT "%s:", name);
    (void)snprintf(slots, sizeof slots, "%u", REDLOCK_PERMITS_MAX);
    ask_one(status, master, QUERY_GET, (const char *[]){"EVAL", GET_TOKEN, "1", name, NULL});
    ask_one(status, master, QUERY_PTTL, (const char *[]){"PTTL", name, NULL});
    ask_one(status, master, QUERY_QUEUE, (const char *[]){"ZCOUNT", queue, "0", "inf", NULL});
    ask_one(status, master, QUERY_FOREIGN_QUEUE,
            (const char *[]){"EVAL", FOREIGN_QUEUE, "1", queue, NULL});
    ask_one(status, master, QUERY_READERS,
            (const char *[]){"EVAL", COUNT_READERS, "1", name, NULL});
    status->reports[master].knows_permits = is_permit(name); /* It has none. */
    if (!is_permit(name))
        ask_one(status, master, QUERY_PERMITS,
                (const char *[]){"EVAL", FIND_PERMITS, "1", permits, slots, NULL});
    ask_one(status, master, QUERY_HOLDERS,
            (const char *[]){"EVAL", holders_script, "2", name, permits, slots, NULL});
}

static void ask(void *asker, unsigned master)
{
    struct status *status = asker;
    const struct inspect_master seen = inspect_master(status->rl, master);
    char look[WIRE_MAX];

    if (inspect_client(status->rl).restart_guard)
        question_write(&status->question, master, QUERY_LOOK, look,
                       marker_look(look, &seen.info, 0, 0, 0));
    if (status->name != NULL)
        ask_holder(status, master);
}

static void take_token(struct report *report, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR) { /* A key of another type, or no permission. */
        report->error = remark_of_reply("", reply);
        return;
    }
    report->knows_holder = true;
    if (reply->type != REPLY_TEXT)
        return;
    report->token = malloc(reply->text_len + sizeof "...");
    if (report->token == NULL) {
        report->knows_holder = false;
        return;
    }
    memcpy(report->token, reply->text, reply->text_len + 1);
    report->token_len = reply->text_len;
    if (report->token_len <= REDLOCK_TOKEN_MAX)
        return;
    memcpy(report->token + REDLOCK_TOKEN_MAX, "...", sizeof "...");
    report->token_len = REDLOCK_TOKEN_MAX + sizeof "..." - 1;
}

/* Readers are a sorted set, which GET_TOKEN cannot read. */
static void take_readers(struct report *report, const struct reply *reply)
{
    const struct remark remark = remark_of_reply("may have readers: ", reply);

    if (reply->type == REPLY_ERROR && remark.message != MSG_FOREIGN_KEY &&
        report->error.message == MSG_FOREIGN_KEY)
        report->error = remark;
    if (reply->type != REPLY_INTEGER || (reply->integer == 0 && report->knows_holder))
        return;
    report->readers = reply->integer; /* 0: the time of all of them is over. */
    report->knows_holder = true;
    report->error = (struct remark){MSG_NONE, ""};
}

/* The query may be forbidden. */
static void take_permits(struct report *report, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR)
        report->permits_error = remark_of_reply("", reply);
    if (reply->type != REPLY_TEXT || reply->text_len != REDLOCK_PERMITS_MAX)
        return;
    report->knows_permits = true;
    for (unsigned slot = 0; slot < REDLOCK_PERMITS_MAX; slot++) {
        report->is_taken[slot] = reply->text[slot] != '0';
        report->is_foreign[slot] = reply->text[slot] == '2';
        report->permits += report->is_taken[slot];
    }
}

static void take_look(struct report *report, const struct reply *reply)
{
    struct marker marker;

    if (!marker_parse(reply, &marker))
        return; /* The guard rejects it as well. */
    report->age_ms = marker.age_ms;
}

static void take(void *asker, unsigned master, uint32_t query, const struct reply *reply)
{
    struct status *status = asker;
    struct report *report = &status->reports[master];

    switch ((enum query)query) {
    case QUERY_LOOK:
        take_look(report, reply);
        break;
    case QUERY_GET:
        take_token(report, reply);
        break;
    case QUERY_PTTL:
        report->ttl_ms = reply->type == REPLY_INTEGER ? reply->integer : 0;
        break;
    case QUERY_QUEUE: /* If it is forbidden, no queue is shown. */
        report->waiting = reply->type == REPLY_INTEGER ? reply->integer : 0;
        break;
    case QUERY_FOREIGN_QUEUE:
        report->has_foreign_queue = reply->type == REPLY_TEXT;
        break;
    case QUERY_READERS:
        take_readers(report, reply);
        break;
    case QUERY_PERMITS:
        take_permits(report, reply);
        break;
    case QUERY_HOLDERS: /* If it is forbidden, or memory is exhausted, none are listed. */
        (void)holders_take(&report->holders, reply);
        break;
    }
}

/* All answers are here.  True: it is too early to say whether the master may vote. */
static bool waits(void *asker, unsigned m)
{
    struct status *status = asker;
    struct report *report = &status->reports[m];
    const struct inspect_master master = inspect_master(status->rl, m);
    struct marker_wait wait;

    report->has_epoch =
        !inspect_client(status->rl).restart_guard || (master.look.number != 0 && master.look.ready);
    if (report->has_epoch)
        return false;
    if (!marker_wait(status->rl, m, report->age_ms, &wait))
        return true;
    report->warming_ms = drift_to_ms(wait.left);
    report->witnessed = wait.is_witnessed;
    report->unwatched = wait.has_no_client;
    return false;
}

static void settle(struct status *status, unsigned m)
{
    struct report *report = &status->reports[m];
    const struct question_master *asked = &status->question.of[m];

    report->round_trip_us = (double)asked->round_trip / 1e3;
    if (asked->why.why != WHY_NONE) {
        report->error = question_why(&status->question, m);
    } else if (asked->refusal.message != MSG_NONE) { /* A warming master takes no epoch then. */
        report->refuses = report->has_epoch;
        report->error = asked->refusal;
    } else if (report->has_epoch) {
        report->up = true;
    } else {
        report->warming = true;
        report->error = (struct remark){MSG_WARMING, "is warming up"};
    }
    status->up += report->up;
    status->warming += report->warming;
}

static void ask_all(struct status *status, struct ev_loop *loop)
{
    status->question = (struct question){
        .rl = status->rl,
        .loop = loop,
        .cli = status->cli,
        .tries = true,
        .asker = status,
        .send = ask,
        .take = take,
        .waits = waits,
    };
    question_ask(&status->question);
    status->masters = status->question.masters;
    for (unsigned m = 0; m < status->masters; m++)
        settle(status, m);
}

/* ---- Clocks ---- */

/* A rate needs samples that are a second apart, and there is one sample each second.  Chosen. */
#define RATES_MAX_MS 4000

static bool lacks_rates(void *arg)
{
    const struct status *status = arg;

    for (unsigned m = 0; m < status->masters; m++) {
        const struct inspect_master master = inspect_master(status->rl, m);

        if (master.is_linked && !master.has_rate)
            return true;
    }
    return false;
}

/* A new client does not know the clocks yet.  That alone does not bar a master. */
static void look_at_clock(struct status *status, unsigned m)
{
    const struct inspect_master master = inspect_master(status->rl, m);
    struct report *report = &status->reports[m];

    if (!report->up && !report->warming && !report->late)
        return;
    report->has_certificate = master.has_certificate;
    report->certificate_left_s = master.certificate_left_s;
    report->has_offset = master.has_offset;
    report->offset = master.offset;
    report->has_rate = status->rates && master.has_rate;
    report->rate_ppm = master.rate_ppm;
    if (!report->up || !master.is_barred)
        return;
    report->up = false;
    report->barred = true;
    status->up--;
    report->error = master.clock;
}

static void look_at_clocks(struct status *status, struct ev_loop *loop)
{
    if (inspect_client(status->rl).clock_guard == REDLOCK_CLOCK_GUARD_OFF)
        return;
    if (status->rates)
        cli_linger(loop, lacks_rates, status, RATES_MAX_MS);
    for (unsigned m = 0; m < status->masters; m++)
        look_at_clock(status, m);
}

/* ---- The command ---- */

/* A master of the list that turned out to be a member under another place is shown there alone. */
static void skip_the_gone(struct status *status)
{
    for (unsigned m = 0; m < status->masters; m++) {
        status->reports[m].gone = inspect_master(status->rl, m).is_elsewhere;
        status->shown += !status->reports[m].gone;
    }
}

/* A master that is no member does not count, whatever it says. */
static void skip_strangers(struct status *status)
{
    const quorum_mask members = members_all(&status->lists);

    status->counted = status->shown;
    status->noun = "masters";
    if (inspect_client(status->rl).set == 0 || members == 0) /* A closed set has no members. */
        return;
    status->noun = "members";
    for (unsigned m = 0; m < status->masters; m++) {
        struct report *report = &status->reports[m];

        if (report->gone || (members & mask_of(m)) != 0)
            continue;
        report->stranger = true;
        status->counted--;
        status->up -= report->up;
        status->warming -= report->warming;
        report->up = report->refuses = report->warming = false;
        if (report->error.message == MSG_NONE)
            report->error = (struct remark){MSG_WRONG_SET, "is no member of the set"};
    }
}

/* Only the answers of all show that two masters have one epoch. */
static void skip_copies(struct status *status)
{
    for (unsigned m = 0; m < status->masters; m++) {
        const struct inspect_master master = inspect_master(status->rl, m);
        struct report *report = &status->reports[m];

        if (!master.is_copy || !report_tells(report))
            continue;
        status->up -= report->up;
        report->up = report->refuses = false;
        report->error = master.remark;
    }
}

/* No time helps members without an epoch if too few of the others remember the set, and no master
 * of a closed set. */
static void give_up_the_forgotten(struct status *status)
{
    const struct inspect_client client = inspect_client(status->rl);

    status->needs_rescue = client.has_forgotten || client.is_closed;
    for (unsigned m = 0; m < status->masters && status->needs_rescue; m++) {
        struct report *report = &status->reports[m];

        if (!report->warming && !(client.is_closed && report_tells(report)))
            continue;
        status->warming -= report->warming;
        status->up -= report->up;
        report->warming = report->up = report->refuses = false;
        report->error = inspect_master(status->rl, m).remark;
    }
}

/* Without a set, a majority alone grants nothing. */
static void look_at_founding(struct status *status)
{
    status->founds_none = question_founds_none(&status->question);
    if (status->founds_none || !question_finds_new(&status->question))
        return;
    for (unsigned m = 0; m < status->masters; m++) {
        status->reports[m].warming = false;
        status->reports[m].up = true;
        status->reports[m].error = (struct remark){MSG_NONE, ""};
    }
    status->up = status->masters;
    status->warming = 0;
}

/* Its answers come too late for a lock. */
static void skip_late(struct status *status)
{
    for (unsigned m = 0; m < status->masters; m++) {
        struct report *report = &status->reports[m];

        if (!report->up ||
            !question_is_late(status->question.of[m].round_trip, status->cli->reply_timeout_ms))
            continue;
        status->up--;
        report->up = false;
        report->late = true;
        report->error = question_lateness(&status->question, m);
    }
}

static int ask_and_print(struct status *status, struct ev_loop *loop)
{
    int code;

    ask_all(status, loop);
    status->lists = inspect_client(status->rl).lists;
    status->refused = redlock_ready(status->rl, NULL) == REDLOCK_E_WRONG_SET;
    skip_the_gone(status);
    skip_strangers(status);
    skip_copies(status);
    give_up_the_forgotten(status);
    look_at_founding(status);
    skip_late(status);
    look_at_clocks(status, loop);
    if (status->cli->json)
        report_json(status);
    else if (status->metrics)
        report_metrics(status);
    else
        report_text(status);
    code = cli_flush_output();
    if (code != CLI_OK)
        return code;
    if (status->refused)
        return CLI_CHANGE;
    return report_has_majority(status) ? CLI_OK : CLI_UNREACHABLE;
}

/* A permit is a lock as well.  No other lock may have a name with its prefix. */
static int check_name(const char *name)
{
    return name_check(is_permit(name) ? name + WIRE_PERMIT_LEN : name);
}

/* Take the name as `redlock run` would.  There a comma separates names. */
static void take_name(struct status *status, const char *argument, struct cli_names *ret_names)
{
    char shown[CLI_NAMES_SHOWN_MAX];

    cli_names(status->cli, argument, ret_names);
    if (ret_names->len > 1)
        cli_usage_error(status->cli,
                        "'%s' is %zu names, separated by commas, but status shows one lock: ask "
                        "for each of them, and write \\, for a comma in a name",
                        cli_show_names(ret_names, shown), ret_names->len);
    status->name = ret_names->list[0];
    if (check_name(status->name) != REDLOCK_OK)
        cli_usage_error(status->cli, "%s", redlock_errmsg(NULL));
}

static int status_main(struct cli *cli, int argc, char **argv)
{
    struct status status = {.cli = cli};
    struct cli_names names = {.len = 0};
    struct ev_loop *loop;
    int option, code;

    while ((option = cli_getopt(cli, argc, argv, false)) != -1)
        *(option == OPTION_CLOCKS ? &status.rates : &status.metrics) = true;
    if (cli->json && status.metrics)
        cli_usage_error(cli, "--json and --prometheus do not go together");
    if (optind < argc) {
        cli_need_arguments(cli, argc, argv, 1, "[NAME]");
        take_name(&status, argv[optind], &names);
    }
    loop = loop_new();
    if (loop == NULL)
        return CLI_INTERNAL;
    code = cli_open(cli, loop, &status.rl);
    if (code == CLI_OK) {
        inspect_look_only(status.rl); /* A list with a mistake must not change markers. */
        code = ask_and_print(&status, loop);
    }
    (void)redlock_close(status.rl);
    for (unsigned m = 0; m < REDLOCK_MASTERS_MAX; m++) {
        free(status.reports[m].token);
        holders_free(&status.reports[m].holders);
    }
    cli_names_done(&names);
    ev_loop_destroy(loop);
    return code;
}

const struct cli_command cli_status = {
    .name = "status",
    .options = OPTIONS_STATUS,
    .run = status_main,
    .usage = "status [--clocks] [--prometheus] [NAME]",
    .help = "Print one line for each master: its address, whether it is up or why not, its\n"
            "version, role, round trip, uptime, and how far its wall clock is off the median of\n"
            "all.  With NAME also print who holds this lock there, for how long, whether a\n"
            "majority agrees, and how many clients wait in its queue (run --fair).  A master\n"
            "that lost its data is warming, and counts as down: see `redlock init`.  A master\n"
            "whose clock is wrong is barred, and counts as down, and so does one that is late: it\n"
            "never answers within --reply-timeout.\n",
    .more = "Example: redlock status backup\n"
            "Exit: 0 a majority is up, 64 usage, 69 no majority is up, 78 clients refuse the\n"
            "list of masters.\n",
};
