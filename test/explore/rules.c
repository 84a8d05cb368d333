/*
 * rules.c - the rules: what no step of a machine may do, and what no world may contain.
 */
#include "explore/model.h"

#include <string.h>

bool rules_believes(const struct world *world, unsigned c)
{
    return quorum_remaining(&world->clients[c].q, model_now(world)) > 0;
}

/* ---- Rules of a step ---- */

/* Rules of a step that do not depend on the world. */
static const char *check_step(struct client *client, const struct quorum *before,
                              const struct quorum_event *event, const struct quorum_actions *act)
{
    const struct quorum *q = &client->q;
    bool was_held = quorum_remaining(before, event->now) > 0;
    bool is_held = quorum_remaining(q, event->now) > 0;

    if (act->lost && client->told)
        return "the lost notice is given twice";
    client->told |= act->lost;
    if (q->state == QUORUM_LOST && !client->told && client->adopted == NOT_ADOPTED)
        return "a lock is lost without a notice";
    if (event->type == QUORUM_EV_TIMER && act->wake_at <= event->now &&
        memcmp(before, q, sizeof *q) == 0)
        return "an alarm rings for ever";
    if (act->ended && !client->busy)
        return "an operation ends that was not asked for";
    client->busy &= !act->ended;
    if (client->busy && act->wake_at == DRIFT_NEVER)
        return "an operation never ends";
    if (was_held && is_held && q->deadline < before->deadline)
        return "the deadline has become earlier";
    if (act->ended && act->status == REDLOCK_OK && q->state == QUORUM_HELD && !is_held)
        return "a lock is won after its deadline";
    return NULL;
}

/* Masters that store the token of that round, of several names under one of them at least. */
static unsigned keys_of(const struct world *world, unsigned c, unsigned round)
{
    unsigned keys = 0;

    for (unsigned m = 0; m < world->masters; m++)
        if (world->keys[m].owner == c + 1 && world->keys[m].round == round)
            keys |= 1u << m;
    return keys;
}

/* Those that store it under all names. */
static unsigned whole_of(const struct world *world, unsigned c, unsigned round)
{
    unsigned keys = keys_of(world, c, round);

    for (unsigned m = 0; m < world->masters; m++)
        if (world->keys[m].partial)
            keys &= ~(1u << m);
    return keys;
}

static unsigned excused(const struct world *world)
{
    unsigned masters = 0;

    for (unsigned m = 0; m < world->masters; m++)
        masters |= (unsigned)world->keys[m].excused << m;
    return masters;
}

/* Rules of a step that depend on the world. */
static const char *check_outcome(const struct scenario *scenario, const struct world *world,
                                 unsigned c, const struct quorum_actions *act)
{
    const struct client *client = &world->clients[c];
    /* No rare event has happened, and answers come in time: they take one tick. */
    bool is_calm = memcmp(world->left, scenario->at_most, sizeof world->left) == 0 &&
                   scenario->timeout > 1 && scenario->versions_len == 0;
    bool was_won = client->held || client->over;
    /* With one list of one master, a command of a broken link may be all that is left behind. */
    unsigned left = keys_of(world, c, client->given_back) &
                    (scenario->versions_len == 0 ? ~0u : ~excused(world));
    bool is_alone = c == 0 && !world->clients[1].begun;

    if (is_calm && scenario->renew && scenario->margin == 0 && act->lost)
        return "a lock is lost although nothing has gone wrong";
    if (is_calm && is_alone && !was_won && act->ended && act->status != REDLOCK_OK)
        return "a lock is not won although nothing has gone wrong";
    if (act->ended && act->status == REDLOCK_OK && client->given_back != 0 &&
        !change_is_quorum(scenario, client->version, ~left))
        return "released, but a majority stores it";
    return NULL;
}

/* The greatest token that was drawn, or 0. */
static uint8_t latest_fence(const struct world *world)
{
    return world->drawn != 0 ? (uint8_t)(63 - __builtin_clzll(world->drawn)) : 0;
}

static const char *check_fence(const struct scenario *scenario, struct world *world, unsigned c,
                               const struct quorum *before)
{
    struct client *client = &world->clients[c];
    bool was_asked = before->state == QUORUM_ACQUIRING || before->state == QUORUM_RAISING;
    uint64_t token = client->fence.token;
    uint8_t latest = latest_fence(world);

    if (!scenario->fence)
        return NULL;
    if (client->q.round != before->round && client->q.round != 0)
        client->fence_after = latest;
    if (!was_asked || client->q.state != QUORUM_HELD)
        return NULL;
    model_must(token < 64, "too much to count in this world");
    if (token == 0)
        return "held without a fencing token";
    if (world->drawn >> token & 1)
        return "two holds have one fencing token";
    if (token < client->fence_after)
        return "a fencing token is smaller than one drawn before the lock was asked for";
    if (!scenario->stepped && token < latest)
        return "a fencing token is smaller than that of an earlier hold";
    world->drawn |= UINT64_C(1) << token;
    return NULL;
}

/* The round may have ended in the same step, after the command. */
static const char *check_sends(const struct world *world, unsigned c, const struct quorum *before,
                               const struct quorum_actions *act)
{
    const struct quorum *q = &world->clients[c].q;

    for (unsigned i = 0; i < act->send_len; i++)
        for (unsigned m = 0; m < world->masters; m++)
            if ((act->send[i].to & 1u << m) && act->send[i].command == QUORUM_CMD_EXTEND &&
                q->round_of[m] != q->round && q->round_of[m] != before->round)
                return "a dead token is extended";
    return NULL;
}

/* Rules of a client whose set of masters changes, or whose token came from another process. */
static const char *check_change(const struct scenario *scenario, struct world *world, unsigned c,
                                const struct quorum *before, const struct quorum_event *event,
                                const struct quorum_actions *act)
{
    struct client *client = &world->clients[c];
    const struct quorum *q = &client->q;
    bool is_held = quorum_remaining(q, event->now) > 0;
    unsigned left = whole_of(world, c, before->round) | client->fresh;

    if (scenario->versions_len == 0)
        return NULL;
    if (act->lost && event->now < before->lost_at &&
        change_is_quorum(scenario, client->version, left))
        return "a lock is given up that could be extended";
    if (act->lost && event->now < before->lost_at && scenario->at_most[RARE_FORGET] == 0)
        return "a hold is lost before its deadline";
    if (is_held && client->adopted == ADOPTED_DEAD)
        return "a token that was lost is held again";
    if (!is_held)
        return NULL;
    client->adopted = NOT_ADOPTED;
    if (before->state == QUORUM_ACQUIRING || before->state == QUORUM_RAISING ||
        before->state == QUORUM_PROVING || q->deadline != before->deadline)
        client->confirmed = client->version;
    return NULL;
}

const char *rules_of_step(const struct scenario *scenario, struct world *world, unsigned c,
                          const struct quorum *before, const struct quorum_event *event,
                          const struct quorum_actions *act)
{
    const char *wrong = check_step(&world->clients[c], before, event, act);

    if (wrong == NULL)
        wrong = check_outcome(scenario, world, c, act);
    if (wrong == NULL)
        wrong = check_fence(scenario, world, c, before);
    if (wrong == NULL)
        wrong = check_change(scenario, world, c, before, event, act);
    return wrong != NULL ? wrong : check_sends(world, c, before, act);
}

/* ---- Rules of a world ---- */

static const char *check_beliefs(const struct scenario *scenario, struct world *world)
{
    unsigned holders = 0;

    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *client = &world->clients[c];
        bool held = rules_believes(world, c);

        holders += held;
        client->over |= client->held && !held;
        client->held = held;
        if (held && client->over)
            return "a lock that was lost came back";
        if (held && client->confirmed == client->version &&
            !change_is_quorum(scenario, client->version, ~(unsigned)client->gone))
            return "held although a majority answered that it is gone";
    }
    if (scenario->stepped)
        return NULL;
    if (holders > 1)
        return "two clients hold the lock";
    for (unsigned c = 0; c < CLIENTS; c++)
        if (world->clients[c].held &&
            !change_is_quorum(scenario, world->clients[c].confirmed,
                              keys_of(world, c, world->clients[c].q.round) |
                                  world->clients[c].robbed))
            return "held, but a majority does not store it";
    return NULL;
}

/* What is left of an adopted token stays until its caller releases it. */
static bool is_anothers(const struct quorum *q)
{
    return q->adopted && q->state != QUORUM_IDLE && q->state != QUORUM_RELEASING;
}

/* A master whose link is up and that owes no answer stores no token of a dead round. */
static const char *check_leaks(const struct world *world)
{
    for (unsigned m = 0; m < world->masters; m++) {
        const struct key *key = &world->keys[m];
        const struct link *link;

        if (key->owner == 0 || key->excused)
            continue;
        link = &world->links[key->owner - 1][m];
        if (link->up && !link->mute && link->items_len == 0 &&
            !is_anothers(&world->clients[key->owner - 1].q) &&
            world->clients[key->owner - 1].q.round != key->round)
            return "a dead token is left behind";
    }
    return NULL;
}

/* Likewise, no token of a dead round waits there: a release would grant it the key. */
static const char *check_waiting(const struct world *world)
{
    for (unsigned m = 0; m < world->masters; m++)
        for (unsigned c = 0; c < CLIENTS; c++) {
            const struct waiting *waiting = &world->waiting[c][m];
            const struct link *link = &world->links[c][m];

            if (waiting->round != 0 && !waiting->excused && link->up && !link->mute &&
                link->items_len == 0 && world->clients[c].q.round != waiting->round)
                return "a dead token goes on waiting";
        }
    return NULL;
}

/* An adopted token that a majority does not store, of any list so far, is dead for good. */
static void note_dead(const struct scenario *scenario, struct world *world, unsigned c)
{
    struct client *client = &world->clients[c];
    unsigned keys = whole_of(world, c, client->q.round);

    for (unsigned v = 0; v <= world->operator.chosen; v++) {
        struct members lists = change_lists(scenario, v);

        if (members_is_majority(lists.from, (quorum_mask)keys) ||
            members_is_majority(lists.to, (quorum_mask)keys))
            return;
    }
    client->adopted = ADOPTED_DEAD;
}

const char *rules_of_world(const struct scenario *scenario, struct world *world)
{
    const char *wrong = check_beliefs(scenario, world);

    for (unsigned c = 0; c < scenario->clients; c++)
        if (world->clients[c].adopted == ADOPTED)
            note_dead(scenario, world, c);

    if (wrong == NULL)
        wrong = check_leaks(world);
    return wrong != NULL ? wrong : check_waiting(world);
}

/* A client whose alarm rings in time gets the lost notice a margin before the deadline. */
const char *rules_of_pass(const struct scenario *scenario, const struct world *world, unsigned c)
{
    const struct quorum *q = &world->clients[c].q;

    if (rules_believes(world, c) && !q->told &&
        q->deadline - model_now(world) <= scenario->margin * TICK)
        return "the lost notice comes too late";
    return NULL;
}
