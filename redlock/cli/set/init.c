/*
 * init.c - `redlock init`: wait until every master may vote.
 *
 * A master without an epoch gets one when a client, or the other masters, have seen it without one
 * for long enough (guard.h).  init waits until then.  With --new the user says that no lock can
 * be held, so there is nothing to wait for.  The file is longer than others, because both ask the
 * masters by the same functions.
 */
#include "redlock/cli/common/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock/cli/set/marker.h"
#include "redlock/cli/common/remark.h"
#include "redlock/cli/common/question.h"
#include "redlock/cli/common/refusal.h"
#include "redlock/cli/common/session.h"
#include "redlock/client/inspect.h"
#include "redlock/core/config.h"
#include "redlock/link/uri.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/reply.h"

#define LINE_MAX_LEN 160

/* A founder pauses for up to 2 s between two attempts, and several clients may be in each other's
 * way.  Chosen. */
#define ALL_ANSWER (5 * DRIFT_S)
enum { SET_WHY_MAX = 600 };

enum query { QUERY_USED, QUERY_SET, QUERY_LOOK, QUERY_GIVE };

/* What a master answered with --new. */
struct said {
    bool is_used;
    bool is_claimed;
    struct remark belongs;  /* Which set or claim it belongs to, for a message. */
    struct guard_look look; /* The marker, if it has no epoch. */
    struct remark remark;
};

struct init {
    struct session session;
    struct redlock *rl;
    unsigned masters;
    struct question question;
    enum query query;    /* Of the question. */
    quorum_mask told;    /* Masters that were reported as warming. */
    quorum_mask no_vote; /* Masters that give no vote, as question_no_vote() says. */
    drift_time stuck;    /* Since when there is nothing to wait for.  0: there is something. */
    bool shows_progress;
    struct said said[REDLOCK_MASTERS_MAX];
    char list[CONFIG_TEXT_MAX + 1]; /* With --new: what a claim of this list says. */
};

static struct inspect_master master_of(const struct init *init, unsigned m)
{
    return inspect_master(init->rl, m);
}

static bool may_vote(const struct init *init, unsigned m)
{
    const struct inspect_master master = master_of(init, m);

    return master.is_linked && master.look.number != 0 && master.look.ready && !master.is_copy &&
           !inspect_client(init->rl).is_closed && (init->no_vote & mask_of(m)) == 0 &&
           (inspect_client(init->rl).members & mask_of(m)) != 0;
}

static bool is_warming(const struct init *init, unsigned m)
{
    const struct inspect_master master = master_of(init, m);

    return master.is_linked && master.look.number != 0 && !master.look.ready;
}

/* No time helps. */
static bool needs_rescue(const struct init *init)
{
    return inspect_client(init->rl).has_forgotten || inspect_client(init->rl).is_closed;
}

/* Another list or another set is in the way.  "": none is. */
static void why_refused(const struct init *init, char why[SET_WHY_MAX])
{
    char members[2];

    (void)inspect_set(init->rl, members, sizeof members, why, SET_WHY_MAX);
}

static bool is_refused(const struct init *init)
{
    char why[SET_WHY_MAX];

    why_refused(init, why);
    return why[0] != '\0';
}

/* Masters that are to vote: the members, and all others of the list, if it is wrong or no set is
 * known. */
static quorum_mask voters_of(const struct init *init)
{
    const struct inspect_client client = inspect_client(init->rl);
    quorum_mask voters = 0, members = members_all(&client.lists);
    bool has_set = client.set != 0 && members != 0 && !is_refused(init);

    for (unsigned m = 0; m < init->masters; m++)
        voters |= master_of(init, m).is_elsewhere ? 0 : mask_of(m);
    return has_set ? voters & members : voters;
}

static unsigned count_linked(const struct init *init)
{
    return mask_count(inspect_client(init->rl).linked & voters_of(init));
}

static bool is_connecting(const struct init *init)
{
    const struct inspect_client client = inspect_client(init->rl);

    return (client.linked | client.unlinked) != members_first(client.masters).to;
}

static drift_time now_of(const struct init *init)
{
    return inspect_client(init->rl).now;
}

static double seconds_left(const struct init *init, unsigned m)
{
    return (double)master_of(init, m).warming_left / (double)DRIFT_S;
}

static void say_of(const struct init *init, unsigned m, struct remark remark)
{
    cli_say(remark.message, "master %u (%s): %s", m + 1, master_of(init, m).name, remark.text);
}

/* What is in the way of the list is said later, once, unless the set is closed. */
static void say_who_is_down(const struct init *init)
{
    const struct inspect_client client = inspect_client(init->rl);

    for (unsigned m = 0; m < init->masters; m++) {
        const struct inspect_master master = master_of(init, m);

        if (!master.is_linked && master.name[0] != '\0' &&
            (client.is_closed || m != client.refuser))
            say_of(init, m, master.remark);
    }
}

/* Once for all such members: each has its own port, but the hosts are alike. */
static void warn_of_loopback(const struct init *init)
{
    const char *place = NULL;
    unsigned count = 0;

    for (unsigned m = 0; m < init->masters; m++) {
        if ((inspect_client(init->rl).members & mask_of(m)) == 0 ||
            uri_loopback_len(master_of(init, m).name) == 0)
            continue;
        place = count++ == 0 ? master_of(init, m).name : place;
    }
    if (place != NULL && inspect_client(init->rl).has_founded)
        cli_warn_of_loopback(place, count > 1);
}

static int tell_end(const struct init *init, unsigned voters)
{
    if (init->session.cli->json) {
        (void)printf("{\"masters\":%u,\"masters_voting\":%u}\n", mask_count(voters_of(init)),
                     voters);
    } else {
        (void)printf("%u of %u masters may vote\n", voters, mask_count(voters_of(init)));
        cli_print_clock_guard(init->rl);
        cli_tell_founded(init->rl);
        warn_of_loopback(init);
    }
    return cli_flush_output();
}

/* ---- Waiting ---- */

/* A clock that is wrong is not waited for: it may stay so. */
static unsigned count_voters(const struct init *init)
{
    unsigned voters = 0;

    for (unsigned m = 0; m < init->masters; m++)
        voters += (voters_of(init) & mask_of(m)) != 0 && may_vote(init, m) &&
                  !master_of(init, m).is_barred;
    return voters;
}

static void show_progress(const struct init *init)
{
    char line[LINE_MAX_LEN];
    size_t len = (size_t)snprintf(line, sizeof line, "%u of %u masters may vote",
                                  count_voters(init), mask_count(voters_of(init)));

    for (unsigned m = 0; m < init->masters && len < sizeof line; m++)
        if (is_warming(init, m) && !needs_rescue(init))
            len += (size_t)snprintf(line + len, sizeof line - len, ", master %u in %.0f s", m + 1,
                                    seconds_left(init, m));
    (void)fprintf(stderr, "\r\033[K%s", line); /* Wipe the line: ECMA-48, EL. */
}

/* Report each warming master once, when witnesses have reported for how long it is warming, and
 * unless it may get an epoch at once. */
static void tell_of_warming(struct init *init)
{
    for (unsigned m = 0; m < init->masters; m++) {
        bool is_known = !master_of(init, m).is_looked_at && !master_of(init, m).is_asked_about &&
                        inspect_client(init->rl).coming == 0;

        if (!is_warming(init, m) || (init->told & mask_of(m)) != 0 || !is_known ||
            needs_rescue(init))
            continue;
        init->told |= mask_of(m);
        cli_say(MSG_WARMING, "master %u (%s) is warming up, and may vote in at most %.1f s", m + 1,
                master_of(init, m).name, seconds_left(init, m));
    }
}

/* True: all masters that answer have an epoch. */
static bool is_done(struct init *init)
{
    init->masters = inspect_client(init->rl).masters; /* The set may name more than the list. */
    if (is_connecting(init))
        return false;
    for (unsigned m = 0; m < init->masters; m++)
        if (master_of(init, m).is_linked && !may_vote(init, m))
            return false;
    return true;
}

/*
 * True: masters that were watched for long enough get no epoch, because masters that do not answer
 * may know of a longer lease, or because they refuse writes.  Or too few remember the set.  Or the
 * masters cannot become a set, for one refuses writes, or is of another list.  This must last for
 * the connect timeout, since links may be coming up; if all answer, for longer.
 */
static bool is_stuck(struct init *init)
{
    drift_time now = now_of(init);
    bool has_set = inspect_client(init->rl).set != 0;
    bool all = count_linked(init) == mask_count(voters_of(init)) && !needs_rescue(init) &&
               (has_set || !is_refused(init));
    drift_span lasts = inspect_client(init->rl).connect_timeout + (all ? ALL_ANSWER : 0);
    bool waits = is_connecting(init);

    for (unsigned m = 0; m < init->masters && !waits && has_set && !needs_rescue(init); m++)
        waits = master_of(init, m).is_linked &&
                (master_of(init, m).look.number == 0 || seconds_left(init, m) > 0);
    if (waits)
        init->stuck = 0;
    else if (init->stuck == 0)
        init->stuck = now;
    return !waits && now >= drift_add(init->stuck, lasts);
}

static void say_why_no_set(const struct init *init)
{
    char members[2], why[SET_WHY_MAX];

    (void)inspect_set(init->rl, members, sizeof members, why, sizeof why);
    if (inspect_client(init->rl).is_closed)
        cli_say(MSG_SET_CLOSED, "the set is closed: it needs `redlock members rescue`");
    else if (why[0] != '\0')
        cli_say_reason(MSG_NO_SET, MSG_WRONG_SET, "%s", why);
    else if (members[0] == '\0' && question_finds_no_set(&init->question))
        cli_say(MSG_NO_SET, "the masters are no set yet: all of them must answer once");
}

/* ---- Asking ---- */

/* A claim of our own list is of a client that is about to found this set. */
static bool take_set(const struct init *init, struct said *said, const struct reply *reply)
{
    struct founder_answer answer;
    bool is_claim;

    if (!answer_claim(reply, &answer))
        return false;
    is_claim = answer.word == FOUNDER_SAYS_CLAIM &&
               (answer.text_len != strlen(init->list) || strcmp(answer.text, init->list) != 0);
    if (!is_claim && answer.word != FOUNDER_SAYS_MEMBER)
        return true;
    said->belongs.message = MSG_WRONG_SET;
    said->is_claimed = is_claim;
    (void)snprintf(said->belongs.text, sizeof said->belongs.text, "%s %.*s",
                   is_claim ? "is claimed by the list" : "belongs to the set of",
                   (int)answer.text_len, answer.text);
    return true;
}

static void take(void *asker, unsigned master, uint32_t query, const struct reply *reply)
{
    struct init *init = asker;
    struct said *said = &init->said[master];
    struct marker marker;

    if (reply->type != REPLY_ERROR && (enum query)query == QUERY_USED)
        said->is_used = reply->type != REPLY_NIL;
    else if ((enum query)query == QUERY_SET ? !take_set(init, said, reply)
                                            : !marker_parse(reply, &marker))
        said->remark = remark_of_reply("", reply);
    else if ((enum query)query == QUERY_SET)
        return;
    else if (marker.look.ready)
        said->is_used = true;
    else
        said->look = marker.look;
}

/* The floor of the fencing counters that the guard would choose. */
static uint64_t find_floor(const struct init *init)
{
    const struct members members = members_first(init->masters);
    const struct guard_config config = {.members = &members};
    drift_time now = now_of(init);
    struct guard_actions actions;
    struct guard guard;

    guard_init(&guard, &config);
    for (unsigned m = 0; m < init->masters; m++)
        guard_on_link(&guard, m, true);
    guard_next(&guard, now, &actions);
    for (unsigned m = 0; m < init->masters; m++)
        guard_on_look(&guard, m, &init->said[m].look, now);
    return guard_floor(&guard);
}

static size_t write_query(const struct init *init, unsigned m, enum query query, char buf[WIRE_MAX])
{
    const struct master_info info = master_of(init, m).info;
    const struct wire_founding reading = {.list = init->list, .list_len = strlen(init->list)};
    uint32_t max_ttl_ms = inspect_client(init->rl).max_ttl_ms;

    switch (query) {
    case QUERY_USED:
        /* A master has this field from its first epoch on, also when the epoch is gone. */
        return (size_t)snprintf(buf, WIRE_MAX,
                                "*3\r\n$4\r\nHGET\r\n$14\r\n" WIRE_MARKER "\r\n$4\r\nhigh\r\n");
    case QUERY_SET:
        return wire_founding(buf, SCRIPT_CLAIM, &reading);
    case QUERY_LOOK:
        return marker_look(buf, &info, max_ttl_ms, 0, 0);
    case QUERY_GIVE:
        break;
    }
    return marker_give(buf, &info, max_ttl_ms, init->said[m].look.number, find_floor(init),
                       init->list);
}

static void ask(void *asker, unsigned m)
{
    struct init *init = asker;
    char command[WIRE_MAX];

    question_write(&init->question, m, init->query, command,
                   write_query(init, m, init->query, command));
}

/* Returns CLI_OK if all answered without an error. */
static int ask_all(struct init *init, enum query query)
{
    int code = CLI_OK;

    init->query = query;
    question_ask(&init->question);
    if (init->session.signal != 0)
        return session_signal_exit(&init->session);
    for (unsigned m = 0; m < init->masters; m++) {
        const struct remark why = question_why(&init->question, m);
        const struct remark *said = why.message != MSG_NONE ? &why : &init->said[m].remark;

        if (said->message == MSG_NONE)
            continue;
        say_of(init, m, *said);
        code = CLI_UNREACHABLE;
    }
    return code;
}

/* The masters are said to be new, but may have kept fencing counters. */
static int check_floor(const struct init *init)
{
    if (find_floor(init) != 0)
        return CLI_OK;
    cli_say(MSG_COUNTERS,
            "the fencing counters of some of these masters are days ahead of the clocks: set the "
            "clocks, or delete the key " WIRE_MARKER " on these masters");
    return CLI_CHANGE;
}

/* Report masters that have or had an epoch: they are not new.  Returns CLI_CHANGE if there are any.
 */
static int refuse_old(const struct init *init)
{
    int code = CLI_OK;

    for (unsigned m = 0; m < init->masters; m++) {
        if (!init->said[m].is_used)
            continue;
        cli_say(MSG_NOT_NEW, "master %u (%s) is not new: clients have used it", m + 1,
                master_of(init, m).name);
        code = CLI_CHANGE;
    }
    if (code == CLI_OK)
        return CLI_OK;
    cli_hint("a master that was used may hold locks, so it is not new: use `redlock init` without "
             "--new");
    cli_hint("if no client runs and no lock is held, DEL " WIRE_MARKER " on each makes them new");
    return code;
}

/* Report masters that are in a set, or are claimed: they may get no epoch from us, since locks may
 * be held there.  Returns CLI_CHANGE if there are any. */
static int refuse_belonging(const struct init *init)
{
    int code = CLI_OK;

    for (unsigned m = 0; m < init->masters; m++) {
        unsigned first = 0;

        if (init->said[m].belongs.message == MSG_NONE)
            continue;
        while (strcmp(init->said[first].belongs.text, init->said[m].belongs.text) != 0)
            first++;
        say_of(init, m,
               first == m ? init->said[m].belongs
               : init->said[m].is_claimed
                   ? (struct remark){MSG_WRONG_SET, "is claimed by the same list"}
                   : (struct remark){MSG_WRONG_SET, "belongs to the same set"});
        code = CLI_CHANGE;
    }
    if (code != CLI_OK)
        cli_say(
            MSG_NOT_NEW,
            "a master of a set is not new, and nothing was changed: use `redlock init` with the "
            "list of its set, and without --new");
    return code;
}

/* The library has checked the list, so that nothing is refused here. */
static void write_list(struct init *init)
{
    struct config config = {.version = 1};

    for (unsigned m = 0; m < init->masters; m++) {
        struct config_member member;

        if (inspect_place(master_of(init, m).uri, &member))
            (void)config_add(&config, member.name, member.place);
    }
    (void)config_print(&config, init->list);
}

static int connect_all(struct init *init)
{
    while (is_connecting(init) && init->session.signal == 0)
        session_turn(&init->session, DRIFT_NEVER);
    if (init->session.signal != 0)
        return session_signal_exit(&init->session);
    for (unsigned m = 0; m < init->masters; m++) {
        const struct inspect_master master = master_of(init, m);
        struct reason why;

        reason_set(&why, handshake_refuses(&master.info));
        if (!master.is_linked || why.why == WHY_NONE)
            continue;
        say_of(init, m, remark_of("", &why));
        return CLI_UNREACHABLE;
    }
    say_who_is_down(init);
    return count_linked(init) == init->masters ? CLI_OK : CLI_UNREACHABLE;
}

/* The first two queries change nothing.  The third changes only masters without an epoch, and the
 * last only those that are still in no set. */
static int give_at_once(struct init *init)
{
    int code = connect_all(init);

    write_list(init);
    if (code == CLI_OK)
        code = ask_all(init, QUERY_USED);
    if (code == CLI_OK)
        code = refuse_old(init);
    if (code == CLI_OK)
        code = ask_all(init, QUERY_SET);
    if (code == CLI_OK)
        code = refuse_belonging(init);
    if (code == CLI_OK)
        code = ask_all(init, QUERY_LOOK);
    if (code == CLI_OK)
        code = refuse_old(init);
    if (code == CLI_OK)
        code = check_floor(init);
    if (code == CLI_OK)
        code = ask_all(init, QUERY_GIVE);
    for (unsigned m = 0; m < init->masters && code == CLI_OK; m++) {
        if (init->said[m].is_used)
            continue;
        say_of(
            init, m,
            (struct remark){MSG_WARMING, "lost its data in the meantime, or belongs to a set now"});
        code = CLI_UNREACHABLE;
    }
    return code;
}

/* ---- At the end ---- */

static int wait_for_all(struct init *init)
{
    struct session *session = &init->session;
    bool all;

    while (session->signal == 0 && !is_done(init) && !is_stuck(init)) {
        if (init->shows_progress)
            show_progress(init);
        else
            tell_of_warming(init);
        session_turn(session, DRIFT_NEVER);
    }
    if (init->shows_progress)
        (void)fputs("\r\033[K", stderr);
    if (session->signal != 0)
        return session_signal_exit(session);
    init->question.tries = true;
    init->question.send = NULL;
    question_ask(&init->question);
    for (unsigned m = 0; m < init->masters; m++) {
        const struct remark why = question_no_vote(&init->question, m);

        if (why.message == MSG_NONE ||
            !(may_vote(init, m) || (question_refusing(&init->question) & mask_of(m)) != 0))
            continue;
        say_of(init, m, why);
        init->no_vote |= mask_of(m);
    }
    all = count_voters(init) == mask_count(voters_of(init));
    for (unsigned m = 0; m < init->masters; m++)
        if (master_of(init, m).is_linked && !may_vote(init, m) &&
            (needs_rescue(init) || master_of(init, m).is_copy))
            say_of(init, m, master_of(init, m).remark);
    if (!all) {
        say_who_is_down(init);
        say_why_no_set(init);
        refusal_tell(session->cli, init->rl, false, NULL, "", false);
    }
    if (tell_end(init, count_voters(init)) != CLI_OK)
        return CLI_INTERNAL;
    if (redlock_ready(init->rl, NULL) == REDLOCK_E_WRONG_SET)
        return CLI_CHANGE;
    return all ? CLI_OK : CLI_UNREACHABLE;
}

/* ---- The command ---- */

/* With --new, this runs first without the restart guard, which would install epochs before our
 * queries.  Then the masters become a set.  The list is wiped when a client is opened. */
static int run(struct init *init, struct cli *cli, bool at_once)
{
    const char *guard = cli->restart_guard;
    char *list = at_once && cli->masters != NULL ? strdup(cli->masters) : NULL;
    int code;

    cli->restart_guard = at_once ? "off" : guard;
    code = session_open(&init->session, cli);
    cli->restart_guard = guard;
    cli_forget_masters(cli); /* Without a loop, no client was opened. */
    cli->masters = list;
    if (code != CLI_OK)
        return code;
    init->rl = init->session.rl;
    init->masters = inspect_client(init->rl).masters;
    init->question = (struct question){
        .rl = init->rl,
        .loop = init->session.loop,
        .cli = cli,
        .signal = &init->session.signal,
        .asker = init,
        .send = ask,
        .take = take,
    };
    init->shows_progress = isatty(STDERR_FILENO) != 0 && !cli->verbose;
    code = at_once ? give_at_once(init) : wait_for_all(init);
    session_close(&init->session);
    return code;
}

static int init_main(struct cli *cli, int argc, char **argv)
{
    struct init init = {.told = 0};
    bool at_once = false;
    int code = CLI_OK;

    while (cli_getopt(cli, argc, argv, false) != -1)
        at_once = true;
    cli_need_arguments(cli, argc, argv, 0, "none");
    if (!cli_is_guarded(cli))
        cli_usage_error(cli, "the restart guard is off, and without it every master may vote");
    if (at_once)
        code = run(&init, cli, true);
    if (code == CLI_OK)
        code = run(&init, cli, false);
    cli_forget_masters(cli);
    return code;
}

const struct cli_command cli_init = {
    .name = "init",
    .options = OPTIONS_INIT,
    .run = init_main,
    .usage = "init [--new]",
    .help = "Make the masters of the list a set, if they are none yet: from then on clients that\n"
            "list other masters are refused.  All must answer once for this.  Then wait until\n"
            "every master may vote, and watch those that may not yet.  A master that was\n"
            "restarted without its data, or flushed, may vote when somewhat more than the\n"
            "longest lease (--max-ttl) has passed since a client noticed the loss.\n",
    .more = "Example: redlock init\n"
            "Exit: 0 all may vote, 64 usage, 69 not all answer, 78 clients refuse the list of\n"
            "masters; with --new: they are not new.\n",
};
