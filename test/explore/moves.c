/*
 * moves.c - the moves that are possible in a world.
 */
#include "explore/model.h"

static bool has_won(const struct world *world, unsigned c)
{
    enum quorum_state state = world->clients[c].q.state;

    return state == QUORUM_HELD || state == QUORUM_EXTENDING || state == QUORUM_LOST ||
           state == QUORUM_ADOPTED;
}

static void add(struct move *moves, size_t *len, enum move_kind kind, unsigned c, unsigned m)
{
    moves[(*len)++] = (struct move){(uint8_t)kind, (uint8_t)c, (uint8_t)m};
}

static bool is_sent(const struct link *link)
{
    return link->items_len > link->obeyed && !(link->cut & CUT_COMMANDS);
}

static bool is_answered(const struct link *link)
{
    return link->obeyed > 0 && !(link->cut & CUT_ANSWERS);
}

static void add_link(const struct world *world, unsigned c, unsigned m, struct move *moves,
                     size_t *len)
{
    const struct link *link = &world->links[c][m];

    if (!link->up) {
        add(moves, len, MOVE_CONNECT, c, m);
        return;
    }
    if (is_answered(link))
        add(moves, len, MOVE_HEAR, c, m);
    if (world->notices[c][m].round != 0)
        add(moves, len, MOVE_GRANT, c, m);
    if (world->left[RARE_BREAK] > 0 && link->ghosts_len == 0)
        add(moves, len, MOVE_BREAK, c, m);
    if (link->mute || world->left[RARE_MUTE] > 0)
        add(moves, len, MOVE_MUTE, c, m);
    if (link->cut == 0 && world->left[RARE_CUT] > 0) {
        add(moves, len, MOVE_CUT_COMMANDS, c, m);
        add(moves, len, MOVE_CUT_ANSWERS, c, m);
    } else if (link->cut != 0) {
        add(moves, len, MOVE_HEAL, c, m);
    }
}

/* Moves in the client's turn. */
static void add_client(const struct scenario *scenario, const struct world *world, unsigned c,
                       struct move *moves, size_t *len)
{
    const struct client *client = &world->clients[c];

    change_add_client(scenario, world, c, moves, len);
    if (!client->begun) {
        if (c == 0 || world->clients[c - 1].begun) /* The first to begin is A. */
            for (unsigned v = 0; v <= change_newest(world); v++)
                add(moves, len, MOVE_ACQUIRE, c, v);
        return;
    }
    if (client->wake_at <= model_now(world))
        add(moves, len, MOVE_TIMER, c, 0);
    if (!scenario->keeps && has_won(world, c))
        add(moves, len, MOVE_RELEASE, c, 0);
    if (scenario->cancels && client->q.state != QUORUM_IDLE)
        add(moves, len, MOVE_CANCEL, c, 0);
    if (world->left[RARE_EXTEND] > 0 && !client->busy && has_won(world, c))
        add(moves, len, MOVE_EXTEND, c, 0);
    if (world->left[RARE_WAKE] > 0 && client->q.state == QUORUM_PAUSING)
        add(moves, len, MOVE_WAKE, c, 0);
    for (unsigned m = 0; m < world->masters; m++)
        add_link(world, c, m, moves, len);
}

/* Moves in the master's turn. */
static void add_master(const struct scenario *scenario, const struct world *world, unsigned m,
                       struct move *moves, size_t *len)
{
    const struct key *key = &world->keys[m];

    for (unsigned c = 0; c < CLIENTS; c++) {
        const struct link *link = &world->links[c][m];

        if (is_sent(link)) {
            add(moves, len, MOVE_OBEY, c, m);
            if (world->left[RARE_ERROR] > 0)
                add(moves, len, MOVE_REFUSE, c, m);
        }
        if (link->ghosts_len > 0)
            add(moves, len, MOVE_GHOST, c, m);
    }
    if (world->left[RARE_FORGET] > 0 && !key->partial &&
        (key->owner != 0 || (scenario->versions_len > 0 && !scenario->many)))
        add(moves, len, MOVE_FORGET, 0, m);
    change_add_master(scenario, world, m, moves, len);
}

size_t moves_of_turn(const struct scenario *scenario, const struct world *world, struct move *moves)
{
    size_t len = 0;

    if (world->turn < world->masters)
        add_master(scenario, world, world->turn, moves, &len);
    else
        add_client(scenario, world, world->turn - world->masters, moves, &len);
    return len;
}

bool moves_is_awaited(const struct world *world)
{
    unsigned m = world->turn, c = world->turn - world->masters;

    if (world->turn < world->masters) {
        for (c = 0; c < CLIENTS; c++)
            if (is_sent(&world->links[c][m]))
                return true;
        return false;
    }
    for (m = 0; m < world->masters; m++)
        if (is_answered(&world->links[c][m]))
            return true;
    return world->clients[c].begun && world->clients[c].wake_at <= model_now(world);
}

static bool may_pass(const struct world *world)
{
    if (!moves_is_awaited(world))
        return true;
    if (world->moved)
        return world->left[RARE_DAWDLE] > 0;
    return world->left[RARE_HANG] > 0 || world->hanging >> world->turn & 1;
}

size_t model_moves(const struct scenario *scenario, const struct world *world,
                   struct move moves[MOVES_MAX])
{
    size_t len;

    if (world->tick == scenario->ticks)
        return 0;
    len = moves_of_turn(scenario, world, moves);
    if (may_pass(world))
        add(moves, &len, MOVE_PASS, 0, 0);
    return len;
}
