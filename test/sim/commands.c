/*
 * commands.c - random commands for test-sim-store, written by the library's own wire.c.
 *
 * Keys live for milliseconds, so that many expire.
 */
#include "exchange.h"
#include "fields.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <string.h>

#include "redlock/wire/wire.h"

static uint32_t patience_ms;

const char *commands_key(unsigned k)
{
    static const char *const names[KEYS] = {"r0", "r1"};
    static const char *const slots[KEYS] = {WIRE_PERMIT "s:0", WIRE_PERMIT "s:1"};

    return world.plan.permits ? slots[k] : names[k];
}

static size_t draw_query(char *buf, const char *mark, unsigned slots, uint32_t off_ms)
{
    struct wire_wait wait = {.mark = mark,
                             .mark_len = strlen(mark),
                             .slots = slots,
                             .off_ms = off_ms,
                             .is_taken = dice_chance(300)};

    if (dice_chance(500)) {
        wait.groups[0] = flags_digit((unsigned)dice_below(17));
        wait.groups[1] = flags_digit((unsigned)dice_below(16));
    }
    return wire_wait(buf, dice_chance(300), &wait);
}

/* The semaphore has as many permits as there are keys. */
static size_t draw_permit(char *buf, struct wire_args *args)
{
    unsigned dice = (unsigned)dice_below(100);

    args->slot = (unsigned)dice_below(KEYS);
    args->slots = KEYS;
    args->name = commands_key(args->slot);
    args->name_len = strlen(args->name);
    if (dice < 40)
        return wire_permit(buf, dice_chance(300), args);
    if (dice < 60)
        return draw_query(buf, WIRE_MARK WIRE_PERMIT "s", KEYS, 0);
    return wire_script(buf, dice < 80 ? SCRIPT_RELEASE_PERMIT : SCRIPT_EXTEND, dice_chance(300),
                       args);
}

/* Two names in either order. */
static size_t draw_many(char *buf, struct wire_args *args)
{
    static const char *const lists[] = {"r0\0r1", "r1\0r0"};
    unsigned dice = (unsigned)dice_below(5);

    args->name = lists[dice_below(2)];
    args->name_len = 5;
    if (dice == 4)
        return wire_count_many(buf, args);
    return wire_many(buf,
                     dice == 0   ? SCRIPT_ACQUIRE_MANY
                     : dice == 1 ? SCRIPT_EXTEND_MANY
                     : dice == 2 ? SCRIPT_RAISE_MANY
                                 : SCRIPT_RELEASE_MANY,
                     dice_chance(300), args);
}

/* Few tickets and short patience, so that waiters overtake each other and expire. */
static size_t draw_fair(const struct server *model, char *buf, struct wire_args *args)
{
    static const char *const waiters[] = {"1111111111111111111111111111111111111111",
                                          "2222222222222222222222222222222222222222",
                                          "3333333333333333333333333333333333333333"};
    const struct key *key = &model->keys[0];
    unsigned dice = (unsigned)dice_below(100);

    if (key->exists && key->token >= 0 && dice_chance(300)) {
        args->token = oracle_token_of(key->token)->text;
        args->token_len = strlen(args->token);
    }
    args->waiter = waiters[dice_below(3)];
    args->ticket = dice_chance(500) ? 0 : dice_range(1, 4);
    args->sent = dice_chance(600) ? 0 : dice_range(1, 3);
    args->how = dice_chance(600) ? WIRE_RELEASE_PASS : (enum wire_release)dice_below(4);
    if (dice_chance(300))
        args->ttl_ms = 20;
    args->patience_ms = (uint32_t)(dice_chance(700) ? dice_range(1, 6) : 60000);
    patience_ms = args->patience_ms;
    if (dice_chance(200))
        args->name = "r1";
    if (dice < 20)
        return wire_leave(buf, args);
    return wire_fair(buf,
                     dice < 64   ? SCRIPT_ACQUIRE_FAIR
                     : dice < 70 ? SCRIPT_EXTEND_FAIR
                                 : SCRIPT_RELEASE_FAIR,
                     dice_chance(300), args);
}

static size_t draw_shared(char *buf, struct wire_args *args)
{
    unsigned dice = (unsigned)dice_below(4);

    args->name = dice_chance(900) ? "r0" : "r1";
    if (dice_chance(980)) /* A reader with a long ttl keeps all writers out. */
        args->ttl_ms = 1;
    return wire_script(buf,
                       dice <= 1   ? SCRIPT_ACQUIRE_SHARED
                       : dice == 2 ? SCRIPT_EXTEND_SHARED
                                   : SCRIPT_RELEASE_SHARED,
                       dice_chance(300), args);
}

/* A query by a reader, by a writer that holds readers off, or by a writer that does not. */
static size_t draw_wait(char *buf)
{
    uint32_t off_ms = dice_chance(400)   ? WIRE_READER
                      : dice_chance(700) ? (uint32_t)dice_range(1, 4)
                                         : 0;

    return draw_query(buf, dice_chance(700) ? WIRE_MARK "r0" : WIRE_MARK "r1", 0, off_ms);
}

/* The field epoch, or nearly. */
static const char *draw_state(const struct server *model)
{
    static char text[SETS_STATE_ROOM];

    if (dice_chance(950))
        return sets_state(&model->marker, text);
    return dice_chance(300) ? "000000000000000a.0" : dice_chance(500) ? EPOCH ".1" : EPOCH;
}

static size_t draw(const struct server *model, char *buf)
{
    static const char *const tokens[] = {"one", "two", "three", WIRE_REVOKED "me"};
    const char *token = tokens[dice_below(4)];
    struct wire_args args = {
        .name = "r0",
        .name_len = 2,
        .token = token,
        .token_len = strlen(token),
        .ttl_ms = (uint32_t)(dice_chance(950) ? dice_range(1, 3) : 60000),
        .epoch = draw_state(model),
        .counter = model->marker.floor + model->marker.counters[0] + dice_below(5) - dice_below(2),
    };
    unsigned dice = (unsigned)dice_below(100);

    patience_ms = UINT32_MAX;
    if (dice_chance(60))
        return fields_draw(buf, &model->marker);
    if (dice_chance(60))
        return fields_draw_ballot(buf, &model->marker);
    if (world.plan.permits)
        return draw_permit(buf, &args);
    if (dice_chance(280))
        return draw_many(buf, &args);
    if (dice_chance(220))
        return draw_fair(model, buf, &args);
    if (dice_chance(200))
        return draw_shared(buf, &args);
    if (dice < 20 && dice_chance(250))
        args.name = "r1";
    if (dice < 20)
        return wire_set(buf, &args);
    if (dice < 26)
        return draw_wait(buf);
    if (dice < 34)
        return wire_count(buf, &args);
    if (dice < 72)
        return wire_script(buf, SCRIPT_RAISE, dice_chance(300), &args);
    return wire_script(buf, dice < 86 ? SCRIPT_RELEASE : SCRIPT_EXTEND, dice_chance(300), &args);
}

size_t commands_draw(const struct server *model, char *buf, uint32_t *ret_patience_ms)
{
    size_t len = draw(model, buf);

    buf[len] = '\0';
    *ret_patience_ms = patience_ms;
    return len;
}
