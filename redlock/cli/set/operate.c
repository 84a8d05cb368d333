/*
 * operate.c - sends the requests of the machine, and tells it of answers, errors and broken links.
 *
 * Links are compared with the machine's in each step.  No break is missed: a new link needs answers
 * of the server, so the old one is down for a turn of the loop.  The client runs look.lua first on
 * each link: if the server may have forgotten, its epoch is void before we ask.
 */
#include "redlock/cli/set/operate.h"

#include <stdio.h>
#include <string.h>

#include "redlock/cli/set/marker.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/ballot.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"

#define NOBODY ROSTER_MAX

static drift_time now_of(const struct operate *op)
{
    return inspect_client(op->survey->rl).now;
}

/* ---- Masters and the roster ---- */

static unsigned entry_of(const struct operate *op, unsigned m)
{
    for (unsigned i = 0; i < op->roster.len; i++)
        if (op->master[i] == m)
            return i;
    return NOBODY;
}

/* Two entries never have one link: the first keeps it. */
static void find_links(struct operate *op)
{
    for (unsigned i = 0; i < ROSTER_MAX; i++)
        op->master[i] = op->survey->masters;
    for (unsigned i = 0; i < op->roster.len; i++) {
        unsigned m = survey_find(op->survey, &op->roster.masters[i].member);

        if (m < op->survey->masters && entry_of(op, m) == NOBODY)
            op->master[i] = m;
    }
}

static bool add_masters(struct operate *op)
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

quorum_mask operate_masters(const struct operate *op, roster_mask entries)
{
    quorum_mask masters = 0;

    for (unsigned i = 0; i < op->roster.len; i++)
        if ((entries & roster_bit(i)) != 0 && op->master[i] < op->survey->masters)
            masters |= mask_of(op->master[i]);
    return masters;
}

/* ---- Links ---- */

static void look_at_links(struct operate *op)
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
static void look_at_news(struct operate *op)
{
    for (unsigned i = 0; i < op->roster.len; i++) {
        unsigned m = op->master[i];

        if (m < op->survey->masters &&
            inspect_master(op->survey->rl, m).look.told.version > op->change.newest.version)
            change_look_again(&op->change, i, now_of(op));
    }
}

/* New members are watched (M6).  Members of the newest lists are asked about them. */
static void watch(struct operate *op)
{
    const struct roster_lists *newest = &op->change.newest;
    quorum_mask guests = operate_masters(op, op->change.wish & ~roster_members(newest));
    struct config config;

    if (newest->version == 0 || (guests == op->guests && newest->version == op->watched.version))
        return;
    op->guests = guests;
    op->watched = *newest;
    change_newest(&op->change, &config);
    inspect_watch(op->survey->rl, &config, operate_masters(op, newest->from),
                  operate_masters(op, newest->to), guests);
}

/* ---- Requests ---- */

static void send_look(struct operate *op, unsigned m)
{
    const struct inspect_master seen = inspect_master(op->survey->rl, m);
    char look[WIRE_MAX];

    inspect_query(op->survey->rl, m, op->query[m], look,
                  marker_look(look, &seen.info, op->change.config.max_ttl_ms, 0, 0));
}

static void send_ballot(struct operate *op, unsigned i, enum change_request request)
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

static void send_all(struct operate *op, const struct change_actions *actions)
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

static bool take_look(struct operate *op, unsigned i, const struct reply *reply)
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

static bool take_reply(struct operate *op, unsigned i, const struct reply *reply)
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
    struct operate *op = cookie;
    unsigned i = entry_of(op, m);
    bool is_read;

    if (i == NOBODY || query != op->query[m])
        return;
    op->query[m] = 0;
    op->why[m].why = WHY_NONE;
    if (reply == NULL) {
        change_on_link(&op->change, i, false);
        return;
    }
    is_read = op->change.masters[i].asked == CHANGE_ASK_LOOK ? take_look(op, i, reply)
                                                             : take_reply(op, i, reply);
    if (!is_read) {
        reply_reason(reply, &op->why[m]);
        change_on_failure(&op->change, i, now_of(op));
    }
}

/* ---- The operator ---- */

/* The survey did not see a configuration that was there before the machine began. */
static bool is_out_of_date(const struct operate *op)
{
    return op->change.phase == CHANGE_LEARNING && op->change.newest.version > op->surveyed;
}

/* It may be that this client has no link to the members of the other operator's list. */
static bool is_late_to_tell(const struct operate *op, drift_time now)
{
    return op->change.phase == CHANGE_TELLING && op->change.verdict == CHANGE_OVERTAKEN &&
           now >= op->change.until;
}

bool operate_begin(struct operate *op, struct survey *survey, const struct config *list,
                   const struct change_config *config)
{
    memset(op, 0, sizeof *op);
    op->survey = survey;
    op->surveyed = survey->newest.version;
    if (!add_masters(op))
        return false;
    change_init(&op->change, config, &op->roster, list, now_of(op));
    inspect_listen(survey->rl, on_answer, op);
    return true;
}

enum operate_state operate_step(struct operate *op, uint32_t random, drift_time *ret_wake_at)
{
    struct change_actions actions;
    drift_time now;

    find_links(op);
    look_at_links(op);
    look_at_news(op);
    if (is_out_of_date(op))
        return OPERATE_AGAIN;
    now = now_of(op);
    change_next(&op->change, now, random, &actions);
    if (op->change.status != CHANGE_GOES_ON)
        return OPERATE_ENDED;
    if (is_late_to_tell(op, now))
        return OPERATE_OVERTAKEN;
    find_links(op);
    send_all(op, &actions);
    watch(op);
    *ret_wake_at = actions.wake_at;
    return OPERATE_GOES_ON;
}

void operate_end(struct operate *op)
{
    inspect_listen(op->survey->rl, NULL, NULL);
}
