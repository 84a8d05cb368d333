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
#include "redlock/cli/common/loop.h"
#include "redlock/cli/common/remark.h"
#include "redlock/cli/set/marker.h"
#include "redlock/cli/status/report.h"
#include "redlock/client/inspect.h"
#include "redlock/wire/name.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/wire.h"

enum query { QUERY_LOOK, QUERY_SHOW };

/* ---- Asking ---- */

static bool is_permit(const char *name)
{
    return strncmp(name, WIRE_PERMIT, WIRE_PERMIT_LEN) == 0;
}

/* Masters do not store how many permits there are, so all possible ones are looked for.  A permit
 * has none.  This takes a master about 0.1 ms, not measured. */
static void ask_holder(struct status *status, unsigned master)
{
    const char *permits = is_permit(status->name) ? "0" : "256";
    const char *words[] = SHOWN_WORDS(status->name, permits, true);

    question_send(&status->question, master, QUERY_SHOW, words);
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

static struct remark remark_of_row(const char *before, const struct shown_row *row)
{
    struct reason why;

    redis_error_reason(&why, row->text);
    return remark_of(before, &why);
}

/* The holder, or why it is not known: the key is of another type, or there is no permission. */
static void take_holder(struct report *report)
{
    const struct shown_row *name = shown_find(&report->shown, SHOWN_NAME, 0);
    bool is_readers = shown_is(name, "zset");

    report->ttl_ms = name->left_ms;
    report->knows_holder =
        shown_is(name, "none") || shown_is(name, "string") || (is_readers && name->count >= 0);
    if (!report->knows_holder)
        report->error = remark_of_row(is_readers ? "may have readers: " : "", name);
    else if (is_readers)
        report->readers = name->count;
    else if (shown_is(name, "string"))
        report->token = name->text;
    report->token_len = name->text_len;
}

/* A queue or a permit that the user may not look at is not shown. */
static void take_shown(struct report *report, const struct reply *reply)
{
    const struct shown_row *queue, *permit;

    if (!shown_read(&report->shown, reply)) {
        report->error = report->permits_error = remark_of_reply("", reply);
        return;
    }
    take_holder(report);
    queue = shown_find(&report->shown, SHOWN_QUEUE, 0);
    report->waiting = queue != NULL ? queue->count : 0;
    permit = shown_find(&report->shown, SHOWN_PERMIT, 0);
    report->knows_permits = permit == NULL;
    if (permit != NULL)
        report->permits_error = remark_of_row("", permit);
    for (unsigned slot = 0; slot < REDLOCK_PERMITS_MAX; slot++)
        report->permits += report_permit(report, slot) != NULL;
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
    case QUERY_SHOW:
        take_shown(report, reply);
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
    for (unsigned m = 0; m < REDLOCK_MASTERS_MAX; m++)
        shown_free(&status.reports[m].shown);
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
