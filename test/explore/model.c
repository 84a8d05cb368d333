/*
 * model.c - what each move does in a world.
 */
#include "explore/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/story.h"

void model_must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "explore: %s\n", what);
    abort();
}

void model_begin(const struct scenario *scenario, struct world *world)
{
    struct quorum_config config;

    memset(world, 0, sizeof *world);
    world->masters = (uint8_t)(scenario->masters != 0 ? scenario->masters : 3);
    change_tick(scenario, world);
    memset(&config, 0, sizeof config);
    config.renew = scenario->renew;
    config.fence = scenario->fence;
    config.stands = scenario->stands;
    config.many = scenario->many;
    config.lease = scenario->lease * TICK;
    config.reply_timeout = scenario->timeout * TICK;
    config.wait = scenario->wait * TICK;
    config.pause_min = config.pause_max = TICK;
    config.lost_margin = scenario->margin * TICK;
    config.hold_max = DRIFT_NEVER;
    config.drift.fixed = scenario->allowance * TICK;
    for (unsigned c = 0; c < scenario->clients; c++) {
        quorum_init(&world->clients[c].q, &config);
        world->clients[c].wake_at = DRIFT_NEVER;
        for (unsigned m = 0; m < world->masters; m++)
            world->links[c][m].up = true;
    }
    memcpy(world->left, scenario->at_most, sizeof world->left);
    memcpy(world->counters, scenario->counters, sizeof world->counters);
}

/* ---- Clients ---- */

/* Masters that take a command; mute: also those that may not vote. */
static quorum_mask up_of(const struct scenario *scenario, const struct world *world, unsigned c,
                         bool mute)
{
    quorum_mask up = 0;

    for (unsigned m = 0; m < world->masters; m++) {
        const struct link *link = &world->links[c][m];

        if (link->up && (mute || !link->mute) && link->items_len + QUORUM_SENDS_EACH <= ITEMS_MAX &&
            change_is_known(scenario, world, c, m))
            up |= mask_of(change_number(scenario, m));
    }
    return up;
}

/* kind_fair.c says it for all releases of a lease: also for tokens that died before. */
static enum how how_to_release(const struct client *client)
{
    switch (client->q.state) {
    case QUORUM_CONNECTING:
    case QUORUM_ACQUIRING:
    case QUORUM_RAISING:
    case QUORUM_PAUSING:
        return HOW_BACK;
    case QUORUM_IDLE:
    case QUORUM_HELD:
    case QUORUM_EXTENDING:
    case QUORUM_ADOPTED:
    case QUORUM_PROVING:
    case QUORUM_RELEASING:
    case QUORUM_LOST:
        break;
    }
    return client->won ? HOW_PASS : HOW_LEAVE;
}

static struct item item_of(const struct scenario *scenario, const struct world *world,
                           const struct client *client, const struct quorum_send *send,
                           unsigned number)
{
    const struct quorum *q = &client->q;
    enum quorum_command command = send->command;
    struct item item = {
        .command = (uint8_t)command,
        .ask = (uint8_t)send->ask,
        .round = (uint8_t)q->round_of[number],
    };

    if (send->command == QUORUM_CMD_RAISE) {
        model_must(client->fence.counter < 64, "too much to count in this world");
        item.counter = (uint8_t)client->fence.counter;
        item.version = client->version;
    } else if (send->command != QUORUM_CMD_RELEASE) {
        item.lease = (uint8_t)((quorum_span(q, command, model_now(world)) + TICK - 1) / TICK);
        item.sent = world->tick;
    }
    if (scenario->stands && send->command == QUORUM_CMD_SET)
        item.round_sent = (uint8_t)((q->sent - START) / TICK);
    if (scenario->stands && send->command == QUORUM_CMD_RELEASE)
        item.how = (uint8_t)how_to_release(client);
    return item;
}

static void note_sends(const struct scenario *scenario, struct world *world, unsigned c,
                       const struct quorum_actions *act)
{
    const struct quorum *q = &world->clients[c].q;

    for (unsigned i = 0; i < act->send_len; i++) {
        for (unsigned m = 0; m < world->masters; m++) {
            struct link *link = &world->links[c][m];
            unsigned number = change_number(scenario, m);

            if (!(act->send[i].to >> number & 1) || !change_is_known(scenario, world, c, m))
                continue;
            model_must(link->items_len < ITEMS_MAX && q->ask < 256, "too much for this world");
            if (act->send[i].command == QUORUM_CMD_GIVE && q->state == QUORUM_HELD)
                world->clients[c].gone &= (uint8_t) ~(1u << m); /* Rule 14: it may have it again. */
            link->items[link->items_len++] =
                item_of(scenario, world, &world->clients[c], &act->send[i], number);
        }
    }
}

const char *model_step(const struct scenario *scenario, struct world *world, unsigned c,
                       struct quorum_event *event, char *told, size_t told_size)
{
    struct client *client = &world->clients[c];
    struct quorum before;
    drift_time wake_before = client->wake_at;
    struct quorum_actions act;
    char what[32], did[160];
    const struct link *link = &world->links[c][event->master];
    bool is_up = link->up && !link->mute;
    const char *wrong;

    memcpy(&before, &client->q, sizeof before); /* Padding too. */
    event->now = model_now(world);
    event->members = change_members(scenario, client->version);
    event->up = up_of(scenario, world, c, false);
    event->linked = up_of(scenario, world, c, true);
    event->fence = scenario->fence ? &client->fence : NULL;
    quorum_step(&client->q, event, &act);
    client->wake_at = act.wake_at;
    client->won |= client->q.state == QUORUM_HELD || client->q.state == QUORUM_EXTENDING;
    note_sends(scenario, world, c, &act);
    if (told != NULL)
        (void)snprintf(told, told_size, "%c  %-18s -> %s", 'A' + (int)c,
                       story_event(event, is_up, what, sizeof what),
                       story_tell(&before, &client->q, &act, wake_before, START, did, sizeof did));
    if (client->q.round != before.round)
        client->gone = client->robbed = 0;
    wrong = rules_of_step(scenario, world, c, &before, event, &act);
    if (client->q.round != before.round)
        client->fresh = 0;
    if (act.ended)
        client->given_back = 0;
    return wrong;
}

static void drop_first(struct item *items, uint8_t *len)
{
    --*len;
    memmove(items, items + 1, *len * sizeof *items);
    memset(&items[*len], 0, sizeof *items);
}

/* The vote, if the proof behind it shows a greater version, or no epoch.  Only a yes to these
 * commands needs a proof; a raise compares the version itself. */
static enum quorum_vote unproven_vote(const struct item *item)
{
    if (item->vote != QUORUM_VOTE_YES)
        return (enum quorum_vote)item->vote;
    switch ((enum quorum_command)item->command) {
    case QUORUM_CMD_SET:
    case QUORUM_CMD_GIVE:
    case QUORUM_CMD_FENCE:
        return QUORUM_VOTE_VOID;
    case QUORUM_CMD_EXTEND:
        return QUORUM_VOTE_NONE;
    case QUORUM_CMD_RELEASE:
    case QUORUM_CMD_RAISE:
        break;
    }
    return QUORUM_VOTE_YES;
}

static void note_answer(struct client *client, unsigned m, const struct item *item,
                        enum quorum_vote vote, bool is_last)
{
    uint8_t on = (uint8_t)(1u << m);

    if (item->round != client->q.round)
        return;
    if (item->command != QUORUM_CMD_RELEASE && vote == QUORUM_VOTE_YES) {
        client->fresh &= (uint8_t)~on;
        if (item->command == QUORUM_CMD_GIVE)
            client->gone &= (uint8_t)~on;
    }
    if ((item->command == QUORUM_CMD_EXTEND || item->command == QUORUM_CMD_GIVE) &&
        vote == QUORUM_VOTE_NO && is_last && !(client->fresh & on)) {
        client->gone |= on;
    }
}

static const char *hear(const struct scenario *scenario, struct world *world, unsigned c,
                        unsigned m, char *told, size_t told_size)
{
    struct link *link = &world->links[c][m];
    struct client *client = &world->clients[c];
    struct item item = link->items[0];
    bool is_newer = item.version > client->version;
    struct quorum_event event = {
        .type = QUORUM_EV_REPLY,
        .master = change_number(scenario, m),
        .ask = item.ask,
        .command = (enum quorum_command)item.command,
        .vote = (enum quorum_vote)item.vote,
        .counter = item.counter,
        .stands = scenario->stands && item.command == QUORUM_CMD_SET,
    };
    const char *wrong;

    link->obeyed--;
    drop_first(link->items, &link->items_len);
    if (item.is_unproven || (is_newer && scenario->left_out != NO_VOID))
        event.vote = unproven_vote(&item);
    note_answer(client, m, &item, event.vote, link->items_len == 0);
    wrong = model_step(scenario, world, c, &event, told, told_size);
    if (wrong != NULL || !is_newer)
        return wrong;
    return change_take_over(scenario, world, c, item.version, told, told_size);
}

void model_end_link(struct link *link)
{
    if (link->items_len > link->obeyed) {
        link->ghosts_len = (uint8_t)(link->items_len - link->obeyed);
        memcpy(link->ghosts, link->items + link->obeyed, link->ghosts_len * sizeof(struct item));
    }
    memset(link->items, 0, sizeof link->items);
    link->items_len = link->obeyed = link->cut = 0;
    link->mute = false;
}

static const char *change_link(const struct scenario *scenario, struct world *world, unsigned c,
                               unsigned m, enum move_kind kind, char *told, size_t told_size)
{
    struct link *link = &world->links[c][m];
    struct quorum_event event = {.type = QUORUM_EV_LINK, .master = change_number(scenario, m)};
    bool cares =
        change_is_known(scenario, world, c, m) && quorum_cares(&world->clients[c].q, event.master);

    if (kind == MOVE_BREAK)
        masters_excuse(world, c, m);
    if (kind == MOVE_MUTE) {
        link->mute = !link->mute;
        world->left[RARE_MUTE] -= link->mute;
    } else {
        model_end_link(link);
        link->up = kind == MOVE_CONNECT;
    }
    if (cares)
        return model_step(scenario, world, c, &event, told, told_size);
    if (told != NULL)
        (void)snprintf(told, told_size, "%c  m%u %s", 'A' + (int)c, m + 1,
                       link->up && !link->mute ? "up" : "down");
    return NULL;
}

/* The client compares the token before it hands the vote over (wire/granted.c). */
static const char *read_notice(const struct scenario *scenario, struct world *world, unsigned c,
                               unsigned m, char *told, size_t told_size)
{
    struct notice *notice = &world->notices[c][m];
    struct quorum_event event = {
        .type = QUORUM_EV_GRANT,
        .master = m,
        .sent = START + notice->sent * TICK,
    };
    bool is_ours = notice->round == world->clients[c].q.round;

    memset(notice, 0, sizeof *notice);
    return is_ours ? model_step(scenario, world, c, &event, told, told_size) : NULL;
}

/* ---- Doing a move ---- */

static const char *answer(const struct scenario *scenario, struct world *world, struct move move,
                          struct item *item)
{
    if (move.kind != MOVE_REFUSE)
        return masters_obey(scenario, world, move.client, move.master, item);
    world->left[RARE_ERROR]--;
    item->vote = item->is_half ? QUORUM_VOTE_VOID : QUORUM_VOTE_NONE; /* VOID: set, not counted. */
    item->is_half = false;
    if (item->command == QUORUM_CMD_RELEASE &&
        masters_have(&world->keys[move.master], move.client, item))
        world->keys[move.master].excused = true; /* The release is not repeated. */
    if (item->command == QUORUM_CMD_RELEASE)
        world->waiting[move.client][move.master].excused = true;
    return NULL;
}

static const char *do_obey(const struct scenario *scenario, struct world *world, struct move move,
                           char *told, size_t told_size)
{
    struct link *link = &world->links[move.client][move.master];
    bool is_ghost = move.kind == MOVE_GHOST;
    struct item *at = is_ghost ? &link->ghosts[0] : &link->items[link->obeyed];
    struct item item = *at;
    const char *wrong = answer(scenario, world, move, &item);
    bool counts = at->is_half;
    struct quorum_event event = {
        .type = QUORUM_EV_REPLY,
        .master = move.master,
        .command = (enum quorum_command)item.command,
        .vote = (enum quorum_vote)item.vote,
    };
    char what[32];

    if (told != NULL)
        (void)snprintf(told, told_size, "   (%s%s, %c's%s)",
                       story_event(&event, true, what, sizeof what), counts ? ", counted" : "",
                       'A' + move.client, is_ghost ? ", of the link that broke" : "");
    if (is_ghost && item.vote == QUORUM_VOTE_YES && item.command != QUORUM_CMD_RELEASE && !counts)
        world->keys[move.master].excused = true; /* No client learns of it. */
    if (is_ghost && item.command == QUORUM_CMD_SET)
        world->waiting[move.client][move.master].excused = true;
    *at = item;
    if (item.is_half)
        return wrong;
    if (!is_ghost) {
        item.lease = item.sent = item.round_sent = item.how = 0; /* An answer does not need them. */
        link->items[link->obeyed++] = item;
        return wrong;
    }
    drop_first(link->ghosts, &link->ghosts_len);
    return wrong;
}

static void forget(const struct scenario *scenario, struct world *world, unsigned m, char *told,
                   size_t told_size)
{
    struct key *key = &world->keys[m];

    world->left[RARE_FORGET]--;
    key->partial = scenario->many;
    if (key->partial) {
        if (told != NULL)
            (void)snprintf(told, told_size, "   (m%u loses one name)", m + 1);
        return;
    }
    if (key->owner != 0 && key->round == world->clients[key->owner - 1].q.round)
        world->clients[key->owner - 1].robbed |= (uint8_t)(1u << m);
    masters_free(key);
    change_forget(scenario, world, m);
    if (told != NULL)
        (void)snprintf(told, told_size, "   (m%u loses its data)", m + 1);
}

static void change_cut(struct world *world, struct move move, char *told, size_t told_size)
{
    struct link *link = &world->links[move.client][move.master];

    if (move.kind == MOVE_HEAL) {
        link->cut = 0;
    } else {
        world->left[RARE_CUT]--;
        link->cut = move.kind == MOVE_CUT_COMMANDS ? CUT_COMMANDS : CUT_ANSWERS;
    }
    if (told != NULL)
        (void)snprintf(told, told_size, "   (%c-m%u: %s)", 'A' + move.client, move.master + 1,
                       move.kind == MOVE_HEAL           ? "everything gets through again"
                       : move.kind == MOVE_CUT_COMMANDS ? "commands do not get through"
                                                        : "answers do not get through");
}

static void do_tick(const struct scenario *scenario, struct world *world, char *told,
                    size_t told_size)
{
    quorum_mask expired;
    char masters[32];

    world->tick++;
    expired = masters_tick(world);
    change_tick(scenario, world);
    if (told != NULL && expired != 0)
        (void)snprintf(told, told_size, "   (expired: %s)",
                       story_masters(expired, masters, sizeof masters));
}

static void note_hanging(struct world *world)
{
    uint8_t bit = (uint8_t)(1u << world->turn);
    bool hangs = moves_is_awaited(world) && !world->moved;

    if (hangs && !(world->hanging & bit))
        world->left[RARE_HANG]--;
    if (moves_is_awaited(world) && world->moved)
        world->left[RARE_DAWDLE]--;
    world->hanging &= (uint8_t)~bit;
    if (hangs)
        world->hanging |= bit;
    world->moved = false;
}

/* The turn goes to the next that has a move besides MOVE_PASS, or to the first of the next tick. */
static void do_pass(const struct scenario *scenario, struct world *world, char *told,
                    size_t told_size)
{
    struct move moves[MOVES_MAX];

    do {
        note_hanging(world);
        if (++world->turn < world->masters + scenario->clients)
            continue;
        world->turn = 0;
        do_tick(scenario, world, told, told_size);
        return;
    } while (moves_of_turn(scenario, world, moves) == 0);
}

/* Requests of the owner, the alarm, and wake-ups. */
static const char *do_simple(const struct scenario *scenario, struct world *world, struct move move,
                             char *told, size_t told_size)
{
    static const enum quorum_event_type types[] = {
        [MOVE_ACQUIRE] = QUORUM_EV_ACQUIRE, [MOVE_TIMER] = QUORUM_EV_TIMER,
        [MOVE_RELEASE] = QUORUM_EV_RELEASE, [MOVE_CANCEL] = QUORUM_EV_CANCEL,
        [MOVE_EXTEND] = QUORUM_EV_EXTEND,   [MOVE_WAKE] = QUORUM_EV_WAKE,
    };
    struct quorum_event event = {.type = types[move.kind]};
    struct client *client = &world->clients[move.client];

    client->begun = true;
    if (move.kind == MOVE_ACQUIRE)
        client->version = move.master; /* That it reads first. */
    if (move.kind == MOVE_EXTEND) {
        world->left[RARE_EXTEND]--;
        event.lease = scenario->extension * TICK;
    }
    if (move.kind == MOVE_WAKE)
        world->left[RARE_WAKE]--; /* event.until is 0: the round begins at once. */
    if (move.kind != MOVE_TIMER && move.kind != MOVE_WAKE)
        client->busy = move.kind != MOVE_CANCEL;
    if (move.kind == MOVE_RELEASE)
        client->given_back = (uint8_t)client->q.round;
    return model_step(scenario, world, move.client, &event, told, told_size);
}

static const char *do_move(const struct scenario *scenario, struct world *world, struct move move,
                           char *told, size_t told_size)
{
    unsigned c = move.client, m = move.master;
    const char *wrong = NULL;

    switch ((enum move_kind)move.kind) {
    case MOVE_ACQUIRE:
    case MOVE_TIMER:
    case MOVE_RELEASE:
    case MOVE_CANCEL:
    case MOVE_EXTEND:
    case MOVE_WAKE:
        return do_simple(scenario, world, move, told, told_size);
    case MOVE_OBEY:
    case MOVE_REFUSE:
    case MOVE_GHOST:
        return do_obey(scenario, world, move, told, told_size);
    case MOVE_HEAR:
        return hear(scenario, world, c, m, told, told_size);
    case MOVE_GRANT:
        return read_notice(scenario, world, c, m, told, told_size);
    case MOVE_CUT_COMMANDS:
    case MOVE_CUT_ANSWERS:
    case MOVE_HEAL:
        change_cut(world, move, told, told_size);
        return NULL;
    case MOVE_BREAK:
        world->left[RARE_BREAK]--;
        return change_link(scenario, world, c, m, MOVE_BREAK, told, told_size);
    case MOVE_CONNECT:
    case MOVE_MUTE:
        return change_link(scenario, world, c, m, (enum move_kind)move.kind, told, told_size);
    case MOVE_FORGET:
        forget(scenario, world, m, told, told_size);
        return NULL;
    case MOVE_WRITE:
    case MOVE_READ:
    case MOVE_RAISE:
    case MOVE_LOOK:
    case MOVE_ADOPT:
        return change_do(scenario, world, move, told, told_size);
    case MOVE_PASS:
        if (world->turn >= world->masters && !moves_is_awaited(world))
            wrong = rules_of_pass(scenario, world, world->turn - world->masters);
        do_pass(scenario, world, told, told_size);
        return wrong;
    }
    return NULL;
}

const char *model_do(const struct scenario *scenario, struct world *world, struct move move,
                     char *told, size_t told_size)
{
    const char *wrong;

    if (told != NULL)
        told[0] = '\0';
    world->moved |= move.kind == MOVE_OBEY || move.kind == MOVE_REFUSE || move.kind == MOVE_HEAR ||
                    move.kind == MOVE_TIMER;
    wrong = do_move(scenario, world, move, told, told_size);
    return wrong != NULL ? wrong : rules_of_world(scenario, world);
}
