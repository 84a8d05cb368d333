/*
 * driver.c - turns the loop for an operator, and prints how far it is.
 */
#include "redlock/cli/set/driver.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "redlock/cli/set/operate.h"
#include "redlock/cli/set/wish.h"

/* Chosen: an attempt takes milliseconds, and two operators get out of step soon. */
#define LOOK_EVERY (200 * DRIFT_MS)
#define PAUSE_MIN (50 * DRIFT_MS)
#define PAUSE_MAX (2 * DRIFT_S)
#define SILENCE (10 * DRIFT_S) /* While the end of a phase is known.  Chosen. */
#define PATIENCE (5 * DRIFT_S) /* Of a phase, until it is said who is waited for.  Chosen. */

enum { LIST_MAX = CONFIG_TEXT_MAX + 1 };

struct driver {
    struct operate op;
    /* The progress that was printed. */
    bool has_told;
    enum change_phase phase;
    uint64_t version;
    drift_time since, said; /* The phase began; its last line was printed. */
    bool has_blamed;
};

static drift_time now_of(const struct operate *op)
{
    return inspect_client(op->survey->rl).now;
}

/* ---- Progress ---- */

/* How long the phase lasts at most.  0: this is not known. */
static drift_span span_of(const struct operate *op)
{
    quorum_mask missing = operate_masters(op, change_missing(&op->change));
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

static void say_why_missing(const struct operate *op, unsigned i)
{
    unsigned m = op->master[i];
    const char *name = op->roster.masters[i].member.name;
    char text[REASON_TEXT_MAX];
    struct reason why;

    if (m == op->survey->masters) {
        cli_say(MSG_NO_CONNECTION, "%s: there is no link to it", name);
        return;
    }
    why = op->why[m].why != WHY_NONE ? op->why[m] : inspect_master(op->survey->rl, m).why;
    if (why.why == WHY_NONE) {
        cli_say(MSG_NO_ANSWER, "%s: has not answered yet", name);
        return;
    }
    (void)reason_write(&why, now_of(op), text, sizeof text);
    cli_say(reason_message(&why), "%s: %s", name, text);
}

/* A phase that takes long for no known reason: say once which masters it waits for. */
static void tell_missing(struct driver *driver)
{
    const struct operate *op = &driver->op;
    roster_mask missing = change_missing(&op->change);

    if (driver->has_blamed || missing == 0 || now_of(op) < drift_add(driver->since, PATIENCE))
        return;
    driver->has_blamed = true;
    cli_hint("still waiting:");
    for (unsigned i = 0; i < op->roster.len; i++)
        if (missing & roster_bit(i))
            say_why_missing(op, i);
}

/* A phase that takes a minute is not silent for so long. */
static void tell_more(struct driver *driver)
{
    drift_span span = span_of(&driver->op);

    if (span <= 0 || now_of(&driver->op) < drift_add(driver->said, SILENCE))
        return;
    driver->said = now_of(&driver->op);
    cli_hint("still %s, at most %.1f s more", change_phase_text(driver->phase),
             (double)span / (double)DRIFT_S);
}

static void tell(struct driver *driver)
{
    const struct operate *op = &driver->op;
    const struct change *change = &op->change;
    drift_span span;
    char at_most[40] = "";

    if (driver->has_told && driver->phase == change->phase &&
        driver->version == change->newest.version) {
        tell_missing(driver);
        tell_more(driver);
        return;
    }
    driver->has_told = true;
    driver->phase = change->phase;
    driver->version = change->newest.version;
    driver->since = driver->said = now_of(op);
    driver->has_blamed = false;
    span = span_of(op);
    if (span > 0)
        (void)snprintf(at_most, sizeof at_most, ", at most %.1f s", (double)span / (double)DRIFT_S);
    if (driver->version == 0)
        cli_hint("%s", change_phase_text(driver->phase));
    else
        cli_hint("version %" PRIu64 ": %s%s", driver->version, change_phase_text(driver->phase),
                 at_most);
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

static enum msg message_of(enum change_status status)
{
    switch (status) {
    case CHANGE_TOO_FEW:
        return MSG_NO_MAJORITY;
    case CHANGE_NO_SET:
        return MSG_NO_SET;
    case CHANGE_OTHER_SET:
        return MSG_WRONG_SET;
    case CHANGE_CLOSED:
        return MSG_SET_CLOSED;
    case CHANGE_OVERTAKEN:
        return MSG_CHANGE_OVERTAKEN;
    case CHANGE_IMPOSSIBLE:
        return MSG_BAD_MARKER;
    case CHANGE_DONE:
    case CHANGE_GOES_ON:
    case CHANGE_REFUSED:
    case CHANGE_NO_ROOM:
        break;
    }
    return MSG_CHANGE_REFUSED;
}

static void say_overtaken(const struct operate *op)
{
    char text[LIST_MAX];
    struct config newest;

    change_newest(&op->change, &newest);
    wish_print(&newest, newest.to, text, sizeof text);
    cli_say(MSG_CHANGE_OVERTAKEN, "%s: version %" PRIu64 " %s %s",
            change_status_text(CHANGE_OVERTAKEN), newest.version,
            config_is_joint(&newest) ? "leads to" : "is", text);
}

/* Members of the lists before and after that do not store the last version. */
static void say_who_was_not_told(const struct operate *op)
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
            cli_say(MSG_NOT_TOLD, "%s was not told%s", name,
                    is_member ? "" : " that it is no member any more");
    }
}

static int end(const struct operate *op, enum change_status status, struct config *ret_list)
{
    const struct change *change = &op->change;

    if (status == CHANGE_DONE) {
        say_who_was_not_told(op);
        change_newest(change, ret_list);
    } else if (status == CHANGE_OVERTAKEN) {
        say_overtaken(op);
    } else if (status == CHANGE_REFUSED) {
        cli_say(MSG_CHANGE_REFUSED, "%s: %s", change_status_text(status),
                config_problem_text(change->problem));
    } else if (status == CHANGE_OTHER_SET || status == CHANGE_IMPOSSIBLE) {
        cli_say(message_of(status), "%s: %s", change_status_text(status),
                op->roster.masters[change->culprit].member.name);
    } else {
        cli_say(message_of(status), "%s", change_status_text(status));
    }
    return exit_of(status);
}

/* What an interruption leaves behind. */
static const char *state_of(const struct change *change)
{
    if (change->newest.from != change->newest.to)
        return "the change is not finished, and until it is, a lock needs a majority of both lists";
    switch (change->phase) {
    case CHANGE_LEARNING:
    case CHANGE_WATCHING:
        return "the set was not changed";
    case CHANGE_CHOOSING:
    case CHANGE_PAUSING:
        return "it is not known whether the change has begun";
    case CHANGE_TELLING:
        return "the set has its new list, but some masters may not have been told";
    case CHANGE_SEEING:
    case CHANGE_WAITING:
    case CHANGE_CHECKING:
    case CHANGE_COUNTING:
    case CHANGE_PHASES_LEN:
        break; /* The newest configuration is a joint one. */
    }
    return "the change is not finished";
}

/* ---- The loop ---- */

static int loop(struct driver *driver, struct config *ret_list)
{
    struct session *session = &driver->op.survey->session;
    drift_time wake_at;

    while (session->signal == 0) {
        switch (operate_step(&driver->op, randombytes_random(), &wake_at)) {
        case OPERATE_GOES_ON:
            break;
        case OPERATE_AGAIN:
            return DRIVER_AGAIN;
        case OPERATE_ENDED:
            return end(&driver->op, driver->op.change.status, ret_list);
        case OPERATE_OVERTAKEN:
            return end(&driver->op, CHANGE_OVERTAKEN, ret_list);
        }
        tell(driver);
        session_turn(session, wake_at);
    }
    cli_say(MSG_INTERRUPTED, "interrupted: %s: run the command again, and it goes on",
            state_of(&driver->op.change));
    return session_signal_exit(session);
}

int driver_run(struct survey *survey, const struct config *list, bool allows_even,
               struct config *ret_list)
{
    const struct cli *cli = survey->session.cli;
    struct redlock_options defaults;
    struct config wish = *list;
    struct driver driver = {.has_told = false};
    struct change_config config = {
        .set = survey->newest.set,
        .max_ttl_ms = cli->max_ttl_ms,
        .allows_even = allows_even,
        .timeout = (cli->connect_timeout_ms + cli->reply_timeout_ms) * DRIFT_MS,
        .look_every = LOOK_EVERY,
        .pause_min = PAUSE_MIN,
        .pause_max = PAUSE_MAX,
    };
    int code;

    redlock_options_init(&defaults);
    config.drift.ppm = defaults.drift_ppm;
    config.drift.fixed = defaults.drift_fixed_ms * DRIFT_MS;
    if (!operate_begin(&driver.op, survey, &wish, &config))
        return end(&driver.op, CHANGE_NO_ROOM, ret_list);
    code = loop(&driver, ret_list);
    operate_end(&driver.op);
    return code;
}
