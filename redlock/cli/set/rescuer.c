/*
 * rescuer.c - sends the requests of the machine, and tells it of answers, errors and broken links.
 */
#include "redlock/cli/set/rescuer.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "redlock/cli/set/marker.h"
#include "redlock/core/rescue.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/ballot.h"
#include "redlock/wire/reply.h"

#define LOOK_EVERY (500 * DRIFT_MS)
#define PATIENCE (5 * DRIFT_S) /* Of a phase, until it is said who is waited for.  Chosen. */

struct rescuer {
    struct survey *survey;
    struct rescue rescue;
    struct config closed, founded;
    uint32_t query[REDLOCK_MASTERS_MAX]; /* The number of the request that is out. */
    uint32_t queries;
    /* The progress that was printed. */
    bool has_told, has_blamed;
    enum rescue_phase phase;
    drift_time since;
};

static drift_time now_of(const struct rescuer *op)
{
    return inspect_client(op->survey->rl).now;
}

/* ---- Requests ---- */

static const char *name_of(const struct rescuer *op, unsigned m)
{
    for (unsigned i = 0; i < op->founded.members_len; i++)
        if (survey_find(op->survey, &op->founded.members[i]) == m)
            return op->founded.members[i].name;
    return NULL;
}

/* The other requests are queries. */
static enum change_request ballot_of(enum rescue_request request)
{
    switch (request) {
    case RESCUE_ASK_CLOSE:
    case RESCUE_ASK_FOUND:
        return CHANGE_ASK_WRITE;
    case RESCUE_ASK_NOTE:
        return CHANGE_ASK_ACCEPT;
    case RESCUE_ASK_COUNT:
        return CHANGE_ASK_COUNT;
    case RESCUE_ASK_LOOK:
    case RESCUE_ASK_INSTALL:
        return CHANGE_ASK_LOOK;
    case RESCUE_ASK_NOTHING:
        break;
    }
    return CHANGE_ASK_NOTHING;
}

static size_t write_ballot(const struct rescuer *op, unsigned m, char *buf)
{
    const struct rescue_master *master = &op->rescue.masters[m];
    bool closes = master->asked == RESCUE_ASK_CLOSE;
    const struct ballot_args args = {
        .epoch = master->look.number,
        .version = master->look.told.version,
        .set = op->founded.set,
        .ballot = RESCUE_BALLOT,
        .config = closes ? &op->closed : &op->founded,
        .name = closes ? NULL : name_of(op, m),
        .number = op->rescue.number,
    };

    return ballot_write(buf, ballot_of(master->asked), &args);
}

static void send(struct rescuer *op, unsigned m)
{
    const struct inspect_master seen = inspect_master(op->survey->rl, m);
    const struct rescue_master *master = &op->rescue.masters[m];
    uint32_t max_ttl_ms = op->rescue.config.max_ttl_ms;
    char look[WIRE_MAX], ballot[BALLOT_MAX];

    op->queries += op->queries == UINT32_MAX ? 2 : 1; /* 0 is none. */
    op->query[m] = op->queries;
    if (master->asked == RESCUE_ASK_LOOK)
        inspect_query(op->survey->rl, m, op->query[m], look,
                      marker_look(look, &seen.info, max_ttl_ms, 0, 0));
    else if (master->asked == RESCUE_ASK_INSTALL)
        inspect_query(op->survey->rl, m, op->query[m], look,
                      marker_install(look, &seen.info, max_ttl_ms, master->look.number,
                                     op->rescue.number, &op->founded, name_of(op, m)));
    else
        inspect_query(op->survey->rl, m, op->query[m], ballot, write_ballot(op, m, ballot));
}

static void send_all(struct rescuer *op, const struct rescue_actions *actions)
{
    quorum_mask all = actions->look | actions->close | actions->note | actions->count |
                      actions->found | actions->install;

    for (unsigned m = 0; m < op->survey->masters; m++)
        if (all & mask_of(m))
            send(op, m);
}

/* ---- Answers ---- */

static bool take_look(struct rescuer *op, unsigned m, const struct reply *reply)
{
    struct guard_look look;
    struct answer_set set;

    if (!answer_look(reply, &look, &set))
        return false;
    if (set.set != op->founded.set)
        look.told = (struct recall_told){.is_foreign = set.set != 0};
    rescue_on_look(&op->rescue, m, &look, now_of(op));
    return true;
}

static bool is_done(const struct rescuer *op, unsigned m, const struct reply *reply)
{
    const enum change_request request = ballot_of(op->rescue.masters[m].asked);
    struct config config;
    struct change_reply answer;

    return ballot_read(request, 0, reply, &config, &answer) && answer.answer == CHANGE_YES;
}

/* An answer that comes after its link broke is of an earlier request. */
static void on_answer(void *cookie, unsigned m, uint32_t query, const struct reply *reply)
{
    struct rescuer *op = cookie;
    enum rescue_request asked = op->rescue.masters[m].asked;

    if (query != op->query[m])
        return;
    op->query[m] = 0;
    if (reply == NULL)
        rescue_on_link(&op->rescue, m, false);
    else if (ballot_of(asked) != CHANGE_ASK_LOOK)
        rescue_on_reply(&op->rescue, m, is_done(op, m, reply), now_of(op));
    else if (!take_look(op, m, reply))
        rescue_on_reply(&op->rescue, m, false, now_of(op));
}

static void look_at_links(struct rescuer *op)
{
    const struct inspect_client client = inspect_client(op->survey->rl);

    for (unsigned m = 0; m < op->survey->masters; m++) {
        bool up = (client.linked & mask_of(m)) != 0;

        if (up == op->rescue.masters[m].linked)
            continue;
        op->query[m] = 0;
        rescue_on_link(&op->rescue, m, up);
    }
}

/* ---- Progress ---- */

/* A phase that takes long for no known reason: say once which masters it waits for. */
static void tell_missing(struct rescuer *op)
{
    quorum_mask missing = rescue_missing(&op->rescue);

    if (op->has_blamed || missing == 0 || now_of(op) < drift_add(op->since, PATIENCE))
        return;
    op->has_blamed = true;
    cli_hint("still waiting:");
    for (unsigned m = 0; m < op->survey->masters; m++) {
        const struct inspect_master master = inspect_master(op->survey->rl, m);
        const char *place = op->survey->of[m].member.place;

        if (!(missing & mask_of(m)))
            continue;
        if (master.why.why == WHY_NONE)
            cli_say(MSG_NO_ANSWER, "%s: is watched, or has not answered yet", place);
        else
            cli_say(master.remark.message, "%s: %s", place, master.remark.text);
    }
}

static void tell(struct rescuer *op)
{
    drift_time now = now_of(op), due = rescue_due_at(&op->rescue);
    char at_most[40] = "";

    if (op->has_told && op->phase == op->rescue.phase) {
        tell_missing(op);
        return;
    }
    op->has_told = true;
    op->has_blamed = false;
    op->phase = op->rescue.phase;
    op->since = now;
    if (op->phase == RESCUE_WAITING)
        (void)snprintf(at_most, sizeof at_most, ", at most %.1f s",
                       (double)drift_until(now, due) / (double)DRIFT_S);
    cli_hint("%s%s", rescue_phase_text(op->phase), at_most);
}

/* ---- The loop ---- */

static enum msg message_of(enum rescue_status status)
{
    if (status == RESCUE_AHEAD)
        return MSG_COUNTERS;
    return status == RESCUE_STRANGER ? MSG_WRONG_SET : MSG_CHANGE_OVERTAKEN;
}

static int end(const struct rescuer *op)
{
    enum rescue_status status = op->rescue.status;

    if (status == RESCUE_DONE)
        return CLI_OK;
    if (status == RESCUE_AHEAD)
        cli_say(message_of(status), "%s", rescue_status_text(status));
    else
        cli_say(message_of(status), "%s: %s", rescue_status_text(status),
                op->survey->of[op->rescue.culprit].member.place);
    return CLI_CHANGE;
}

static int loop(struct rescuer *op)
{
    struct session *session = &op->survey->session;
    struct rescue_actions actions;

    while (session->signal == 0) {
        drift_time now;

        look_at_links(op);
        now = now_of(op);
        rescue_next(&op->rescue, now, &actions);
        if (op->rescue.status != RESCUE_GOES_ON)
            return end(op);
        send_all(op, &actions);
        tell(op);
        session_turn(session, actions.wake_at);
    }
    cli_say(
        MSG_INTERRUPTED,
        "interrupted: nobody gets a lock before the set is founded anew: run the command again");
    return session_signal_exit(session);
}

static quorum_mask masters_of(const struct survey *survey, const struct config *list)
{
    quorum_mask masters = 0;

    for (unsigned i = 0; i < list->members_len; i++)
        masters |= mask_of(survey_find(survey, &list->members[i]));
    return masters;
}

int rescuer_run(struct survey *survey, struct config *list)
{
    const struct cli *cli = survey->session.cli;
    struct rescuer op = {.survey = survey};
    struct rescue_config config = {
        .masters = masters_of(survey, list),
        .list = masters_of(survey, list),
        .closed = rescue_version(list->version, randombytes_random()),
        .max_ttl_ms = cli->max_ttl_ms,
        .look_every = LOOK_EVERY,
    };
    struct redlock_options defaults;
    int code;

    for (unsigned m = 0; m < survey->masters; m++)
        if (survey->of[m].answered && survey->of[m].set == list->set)
            config.masters |= mask_of(m);
    config.founded = config.closed + 1;
    if (config.founded > CONFIG_VERSION_MAX) {
        cli_say(MSG_CHANGE_REFUSED, "no greater version is left");
        return CLI_CHANGE;
    }
    redlock_options_init(&defaults);
    config.drift.ppm = defaults.drift_ppm;
    config.drift.fixed = defaults.drift_fixed_ms * DRIFT_MS;
    list->version = config.founded;
    op.founded = *list;
    op.closed = (struct config){.set = list->set, .version = config.closed};
    rescue_init(&op.rescue, &config);
    inspect_listen(survey->rl, on_answer, &op);
    code = loop(&op);
    inspect_listen(survey->rl, NULL, NULL);
    return code;
}
