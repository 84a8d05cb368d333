/*
 * driver.c - sends the requests of the machine, and tells it of answers, errors and broken links.
 *
 * Links are compared with the machine's after each turn of the loop.  No break is missed: a new
 * link needs answers of the server, so the old one is down for a turn.  The client runs look.lua
 * first on each link: if the server may have forgotten, its epoch is void before we ask.
 */
#include "redlock/cli/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "redlock/base/text.h"
#include "redlock/cli/marker.h"
#include "redlock/cli/set_report.h"
#include "redlock/cli/wish.h"
#include "redlock/core/change.h"
#include "redlock/core/roster.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/ballot.h"
#include "redlock/wire/reply.h"

#define TICK_S 0.1 /* The loop turns at least so often.  Chosen. */
#define NOBODY ROSTER_MAX

/* Chosen: an attempt takes milliseconds, and two operators get out of step soon. */
#define LOOK_EVERY (200 * DRIFT_MS)
#define PAUSE_MIN (50 * DRIFT_MS)
#define PAUSE_MAX (2 * DRIFT_S)
#define PATIENCE (5 * DRIFT_S) /* Of a phase, until it is said who is waited for.  Chosen. */

enum { LIST_MAX = CONFIG_TEXT_MAX + 1 };

struct driver {
    struct survey *survey;
    struct change change;
    struct roster roster;
    uint64_t surveyed;                   /* The version that the wish was computed from. */
    unsigned master[ROSTER_MAX];         /* Of the client.  survey->masters: it has no link. */
    uint32_t query[REDLOCK_MASTERS_MAX]; /* The number of the request that is out. */
    char error[REDLOCK_MASTERS_MAX][SURVEY_ERROR_MAX]; /* The latest error of a master. */
    uint32_t queries;
    quorum_mask guests; /* As the client was told. */
    struct roster_lists watched;
    /* The progress that was printed. */
    bool has_told;
    enum change_phase phase;
    uint64_t version;
    drift_time since;
    bool has_blamed;
};

static drift_time now_of(const struct driver *op)
{
    return inspect_client(op->survey->rl).now;
}

/* ---- Masters and the roster ---- */

static unsigned entry_of(const struct driver *op, unsigned m)
{
    for (unsigned i = 0; i < op->roster.len; i++)
        if (op->master[i] == m)
            return i;
    return NOBODY;
}

/* Two entries never have one link: the first keeps it. */
static void find_links(struct driver *op)
{
    for (unsigned i = 0; i < ROSTER_MAX; i++)
        op->master[i] = op->survey->masters;
    for (unsigned i = 0; i < op->roster.len; i++) {
        unsigned m = survey_find(op->survey, &op->roster.masters[i].member);

        if (m < op->survey->masters && entry_of(op, m) == NOBODY)
            op->master[i] = m;
    }
}

static bool add_masters(struct driver *op)
{
    struct roster_lists lists;
    bool has_room = roster_read(&op->roster, &op->survey->newest, &lists);

    for (unsigned m = 0; m < op->survey->masters && has_room; m++) {
        find_links(op);
        if (entry_of(op, m) == NOBODY)
            has_room = roster_add(&op->roster, op->survey->of[m].member.place);
    }
    find_links(op);
    return has_room;
}

static quorum_mask masters_of(const struct driver *op, roster_mask entries)
{
    quorum_mask masters = 0;

    for (unsigned i = 0; i < op->roster.len; i++)
        if ((entries & roster_bit(i)) != 0 && op->master[i] < op->survey->masters)
            masters |= mask_of(op->master[i]);
    return masters;
}

/* ---- Links ---- */

static void look_at_links(struct driver *op)
{
    const struct inspect_client client = inspect_client(op->survey->rl);

    for (unsigned i = 0; i < op->roster.len; i++) {
        unsigned m = op->master[i];
        bool up = m < op->survey->masters && (client.linked & mask_of(m)) != 0;

        if (up == op->change.masters[i].linked)
            continue;
        if (m < op->survey->masters)
            op->query[m] = 0;
        change_on_link(&op->change, i, up);
    }
}

/* While new members are watched, the machine asks the members nothing.  If one tells the client a
 * newer version, no new member gets an epoch until the machine knows it (guard.c, rule 8). */
static void look_at_news(struct driver *op)
{
    for (unsigned i = 0; i < op->roster.len; i++) {
        unsigned m = op->master[i];

        if (m < op->survey->masters &&
            inspect_master(op->survey->rl, m).look.told.version > op->change.newest.version)
            change_look_again(&op->change, i, now_of(op));
    }
}

/* New members are watched (M6).  Members of the newest lists are asked about them. */
static void watch(struct driver *op)
{
    const struct roster_lists *newest = &op->change.newest;
    quorum_mask guests = masters_of(op, op->change.wish & ~roster_members(newest));
    struct config config;

    if (newest->version == 0 || (guests == op->guests && newest->version == op->watched.version))
        return;
    op->guests = guests;
    op->watched = *newest;
    change_newest(&op->change, &config);
    inspect_watch(op->survey->rl, &config, masters_of(op, newest->from), masters_of(op, newest->to),
                  guests);
}

/* ---- Requests ---- */

static void send_look(struct driver *op, unsigned m)
{
    const struct inspect_master seen = inspect_master(op->survey->rl, m);
    char look[WIRE_MAX];

    inspect_query(op->survey->rl, m, op->query[m], look,
                  marker_look(look, &seen.info, op->change.config.max_ttl_ms, 0, 0));
}

static void send_ballot(struct driver *op, unsigned i, enum change_request request)
{
    const struct change_master *master = &op->change.masters[i];
    struct config config;
    struct ballot_args args = {
        .epoch = master->epoch,
        .version = master->version,
        .set = op->change.config.set,
        .ballot = op->change.ballot,
        .config = &config,
        .name = change_name(&op->change, i),
        .number = op->change.number,
    };
    char command[BALLOT_MAX];

    if (request == CHANGE_ASK_ACCEPT)
        change_value(&op->change, &config);
    else
        change_newest(&op->change, &config);
    inspect_query(op->survey->rl, op->master[i], op->query[op->master[i]], command,
                  ballot_write(command, request, &args));
}

static void send_all(struct driver *op, const struct change_actions *actions)
{
    roster_mask all =
        actions->look | actions->prepare | actions->accept | actions->write | actions->count;

    for (unsigned i = 0; i < op->roster.len; i++) {
        unsigned m = op->master[i];

        if (!(all & roster_bit(i)))
            continue;
        op->queries += op->queries == UINT32_MAX ? 2 : 1; /* 0 is none. */
        op->query[m] = op->queries;
        if (actions->look & roster_bit(i))
            send_look(op, m);
        else
            send_ballot(op, i, op->change.masters[i].asked);
    }
}

/* ---- Answers ---- */

static bool take_look(struct driver *op, unsigned i, const struct reply *reply)
{
    struct guard_look look;
    struct answer_set set;
    struct config config;
    struct change_look change_look;

    if (!answer_look(reply, &look, &set))
        return false;
    config = (struct config){.set = set.set, .version = set.version};
    if (set.set != 0 && (set.config == NULL || !config_parse(set.config, set.config_len, &config)))
        return false;
    change_look = (struct change_look){
        .ready = look.ready,
        .epoch = look.number,
        .max_ttl_ms = look.max_ttl_ms,
        .high = look.high,
        .config = set.set != 0 ? &config : NULL,
    };
    change_on_look(&op->change, i, &change_look, now_of(op));
    return true;
}

static bool take_reply(struct driver *op, unsigned i, const struct reply *reply)
{
    const struct change_master *master = &op->change.masters[i];
    struct config config = {.set = op->change.config.set};
    struct change_reply change_reply;

    if (!ballot_read(master->asked, master->version, reply, &config, &change_reply))
        return false;
    change_on_reply(&op->change, i, &change_reply, now_of(op));
    return true;
}

/* An answer that comes after its link broke is of an earlier request. */
static void on_answer(void *cookie, unsigned m, uint32_t query, const struct reply *reply)
{
    struct driver *op = cookie;
    unsigned i = entry_of(op, m);
    bool is_read;

    if (i == NOBODY || query != op->query[m])
        return;
    op->query[m] = 0;
    op->error[m][0] = '\0';
    if (reply == NULL) {
        change_on_link(&op->change, i, false);
        return;
    }
    if (reply->type == REPLY_ERROR) {
        (void)snprintf(op->error[m], sizeof op->error[m], "%s", reply->text);
        (void)text_end_error(op->error[m]);
    }
    is_read = op->change.masters[i].asked == CHANGE_ASK_LOOK ? take_look(op, i, reply)
                                                             : take_reply(op, i, reply);
    if (!is_read)
        change_on_failure(&op->change, i, now_of(op));
}

/* ---- Progress ---- */

/* How long the phase lasts at most.  0: this is not known. */
static drift_span span_of(const struct driver *op)
{
    quorum_mask missing = masters_of(op, change_missing(&op->change));
    drift_span longest = 0;

    if (op->change.phase == CHANGE_WAITING)
        return drift_until(now_of(op), op->change.until);
    for (unsigned m = 0; m < op->survey->masters; m++) {
        const struct inspect_master master = inspect_master(op->survey->rl, m);

        if (op->change.phase == CHANGE_WATCHING && (missing & mask_of(m)) != 0 &&
            master.warming_left > longest)
            longest = master.warming_left;
    }
    return longest;
}

static void say_why_missing(const struct driver *op, unsigned i)
{
    unsigned m = op->master[i];
    const char *name = op->roster.masters[i].member.name;

    if (m == op->survey->masters) {
        cli_say("%s: there is no link to it", name);
        return;
    }
    if (op->error[m][0] != '\0')
        cli_say("%s: %s", name, op->error[m]);
    else
        cli_say("%s: %s", name,
                inspect_master(op->survey->rl, m).error[0] != '\0'
                    ? inspect_master(op->survey->rl, m).error
                    : "has not answered yet");
}

/* A phase that takes long for no known reason: say once who is waited for. */
static void tell_missing(struct driver *op)
{
    roster_mask missing = change_missing(&op->change);

    if (op->has_blamed || missing == 0 || now_of(op) < drift_add(op->since, PATIENCE))
        return;
    op->has_blamed = true;
    cli_say("still waiting:");
    for (unsigned i = 0; i < op->roster.len; i++)
        if (missing & roster_bit(i))
            say_why_missing(op, i);
}

static void tell(struct driver *op)
{
    const struct change *change = &op->change;
    drift_span span;
    char at_most[40] = "";

    if (op->has_told && op->phase == change->phase && op->version == change->newest.version) {
        tell_missing(op);
        return;
    }
    op->has_told = true;
    op->phase = change->phase;
    op->version = change->newest.version;
    op->since = now_of(op);
    op->has_blamed = false;
    span = span_of(op);
    if (span > 0)
        (void)snprintf(at_most, sizeof at_most, ", at most %.1f s", (double)span / (double)DRIFT_S);
    if (op->version == 0)
        cli_say("%s", change_phase_text(op->phase));
    else
        cli_say("version %" PRIu64 ": %s%s", op->version, change_phase_text(op->phase), at_most);
}

/* ---- The end ---- */

static int exit_of(enum change_status status)
{
    switch (status) {
    case CHANGE_DONE:
        return CLI_OK;
    case CHANGE_TOO_FEW:
    case CHANGE_NO_SET:
        return CLI_UNREACHABLE;
    case CHANGE_GOES_ON:
    case CHANGE_OVERTAKEN:
    case CHANGE_OTHER_SET:
    case CHANGE_CLOSED:
    case CHANGE_REFUSED:
    case CHANGE_NO_ROOM:
    case CHANGE_IMPOSSIBLE:
        break;
    }
    return CLI_CHANGE;
}

static void say_overtaken(const struct driver *op)
{
    char text[LIST_MAX];
    struct config newest;

    change_newest(&op->change, &newest);
    wish_print(&newest, newest.to, text, sizeof text);
    cli_say("%s: version %" PRIu64 " %s %s", change_status_text(CHANGE_OVERTAKEN), newest.version,
            config_is_joint(&newest) ? "leads to" : "is", text);
}

/* Members of the lists before and after that do not store the last version. */
static void say_who_was_not_told(const struct driver *op)
{
    const struct config *before = &op->survey->newest;

    for (unsigned i = 0; i < op->roster.len; i++) {
        const struct change_master *master = &op->change.masters[i];
        const char *name = op->roster.masters[i].member.name;
        bool is_member = (roster_members(&op->change.newest) & roster_bit(i)) != 0;
        bool was_member = config_find(before, name) < before->members_len;
        bool is_told = master->known && master->ready && master->ours &&
                       master->version >= op->change.newest.version;

        if (!is_told && (is_member || was_member))
            cli_say("%s was not told%s", name, is_member ? "" : " that it is no member any more");
    }
}

static int end(const struct driver *op, enum change_status status, struct config *ret_list)
{
    const struct change *change = &op->change;

    if (status == CHANGE_DONE) {
        say_who_was_not_told(op);
        change_newest(change, ret_list);
    } else if (status == CHANGE_OVERTAKEN) {
        say_overtaken(op);
    } else if (status == CHANGE_REFUSED) {
        cli_say("%s: %s", change_status_text(status), config_problem_text(change->problem));
    } else if (status == CHANGE_OTHER_SET || status == CHANGE_IMPOSSIBLE) {
        cli_say("%s: %s", change_status_text(status),
                op->roster.masters[change->culprit].member.name);
    } else {
        cli_say("%s", change_status_text(status));
    }
    return exit_of(status);
}

/* ---- The loop ---- */

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events;
}

/* The survey did not see a configuration that was there before the machine began. */
static bool is_out_of_date(const struct driver *op)
{
    return op->change.phase == CHANGE_LEARNING && op->change.newest.version > op->surveyed;
}

/* It may be that this client has no link to the members of the other operator's list. */
static bool is_late_to_tell(const struct driver *op)
{
    return op->change.phase == CHANGE_TELLING && op->change.verdict == CHANGE_OVERTAKEN &&
           now_of(op) >= op->change.until;
}

static int loop(struct driver *op, ev_timer *tick, struct config *ret_list)
{
    struct session *session = &op->survey->session;
    struct change_actions actions;

    while (session->signal == 0) {
        drift_time now;

        find_links(op);
        look_at_links(op);
        look_at_news(op);
        if (is_out_of_date(op))
            return DRIVER_AGAIN;
        now = now_of(op);
        change_next(&op->change, now, randombytes_random(), &actions);
        if (op->change.status != CHANGE_GOES_ON)
            return end(op, op->change.status, ret_list);
        if (is_late_to_tell(op))
            return end(op, CHANGE_OVERTAKEN, ret_list);
        find_links(op);
        send_all(op, &actions);
        watch(op);
        tell(op);
        tick->repeat = TICK_S;
        if (actions.wake_at > now && (double)(actions.wake_at - now) < TICK_S * (double)DRIFT_S)
            tick->repeat = (double)(actions.wake_at - now) / (double)DRIFT_S + 1e-4;
        ev_now_update(session->loop);
        ev_timer_again(session->loop, tick);
        ev_run(session->loop, EVRUN_ONCE);
    }
    cli_say("interrupted: the change may be unfinished; run the command again, and it goes on");
    return session_signal_exit(session);
}

int driver_run(struct survey *survey, const struct config *list, bool allows_even,
               struct config *ret_list)
{
    const struct cli *cli = survey->session.cli;
    struct redlock_options defaults;
    struct config wish = *list;
    struct driver op = {.survey = survey, .surveyed = survey->newest.version};
    struct change_config config = {
        .set = survey->newest.set,
        .max_ttl_ms = cli->max_ttl_ms,
        .allows_even = allows_even,
        .timeout = (cli->connect_timeout_ms + cli->reply_timeout_ms) * DRIFT_MS,
        .look_every = LOOK_EVERY,
        .pause_min = PAUSE_MIN,
        .pause_max = PAUSE_MAX,
    };
    ev_timer tick;
    int code;

    redlock_options_init(&defaults);
    config.drift.ppm = defaults.drift_ppm;
    config.drift.fixed = defaults.drift_fixed_ms * DRIFT_MS;
    if (!add_masters(&op))
        return end(&op, CHANGE_NO_ROOM, ret_list);
    change_init(&op.change, &config, &op.roster, &wish, now_of(&op));
    inspect_listen(survey->rl, on_answer, &op);
    ev_timer_init(&tick, on_tick, 0, TICK_S);
    code = loop(&op, &tick, ret_list);
    ev_timer_stop(survey->session.loop, &tick);
    inspect_listen(survey->rl, NULL, NULL);
    return code;
}
