/*
 * test-sim-witness.c - is witness.c a model of redlock/lua/witness.lua?
 *
 * The test sends random requests to witnesses, written by wire.c, to a real server and to the
 * model.  It compares every answer, and which marks there are then.  As in test-sim-look, each
 * request stands between two TIMEs.
 *
 * test-sim-witness [COUNT [SEED]]; COUNT is 5000.
 */
#include "net.h"
#include "store.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "redlock/wire/wire.h"

#define COUNT_DEFAULT 5000
#define NONCES 4
#define NAMES (WIRE_WITNESS_MAX + 40)

static redisContext *redis;
static struct server model;
static uint64_t made, kept, none, emptied;

/* Few names are in use for most of the time, so that most marks are kept. */
static uint64_t draw_name(void)
{
    return dice_chance(750) ? dice_below(4) : dice_below(NAMES);
}

/* Most of the time a master has the same nonce. */
static uint64_t draw_nonce(void)
{
    return 1 + (dice_chance(900) ? 0 : dice_below(NONCES));
}

static const char *draw_id(void)
{
    return dice_chance(900) ? "0000000000000000000000000000000000000001" : "2";
}

/* Delete the marks, or put the time of one into the past or the future, by seconds: the model's
 * clock is a little behind. */
static void disturb(const char *name, const char *text, uint64_t now_ms)
{
    struct mark *mark = witness_find(&model.marks, name, strlen(name));
    char value[96];

    if (dice_chance(8)) {
        real_run("DEL " WIRE_WITNESS);
        model.marks.len = 0;
    } else if (mark != NULL) {
        mark->at_ms = dice_chance(300)   ? now_ms + dice_range(100000, 200000)
                      : dice_chance(200) ? now_ms - WIRE_WITNESS_MS - dice_range(100, 100000)
                                         : now_ms - dice_range(100, 100000);
        (void)snprintf(value, sizeof value, "%" PRIu64 " %s", mark->at_ms, text);
        real_run("HSET " WIRE_WITNESS " %s %s", name, value);
    }
}

/* The server's time of the mark of this master, and how many there are. */
static uint64_t read_marks(const char *name)
{
    redisReply *len, *at;
    uint64_t at_ms;

    (void)redisAppendCommand(redis, "HLEN " WIRE_WITNESS);
    (void)redisAppendCommand(redis, "HGET " WIRE_WITNESS " %s", name);
    len = real_reply();
    at = real_reply();
    if (len->integer != (long long)model.marks.len)
        real_die("the server has %lld marks, the model %u", len->integer, model.marks.len);
    at_ms = at->type == REDIS_REPLY_STRING ? strtoull(at->str, NULL, 10) : 0;
    freeReplyObject(len);
    freeReplyObject(at);
    return at_ms;
}

/* The mark was made now, or kept.  The model's clock is a little behind. */
static void follow(const char *name, uint64_t before_ms, uint64_t after_ms)
{
    struct mark *mark = witness_find(&model.marks, name, strlen(name));
    uint64_t at_ms = read_marks(name);

    if ((mark == NULL) != (at_ms == 0))
        real_die("only one of both has the mark");
    if (mark == NULL || mark->at_ms == at_ms)
        return;
    if (mark->at_ms < before_ms || at_ms < before_ms || at_ms > after_ms + 1)
        real_die("a mark was made at %" PRIu64 ", and the time is %" PRIu64, at_ms, before_ms);
    mark->at_ms = at_ms;
}

static void compare(void)
{
    const unsigned marks_len = model.marks.len;
    char buf[WIRE_MAX], name[16], mark[64];
    uint64_t nonce = draw_nonce(), before_us, after_us;
    const char *id = draw_id();
    size_t len;
    struct conn conn = {.server = &model};
    struct command command;
    struct answer answer;
    redisReply *real;

    (void)snprintf(name, sizeof name, "m%" PRIu64, draw_name());
    (void)snprintf(mark, sizeof mark, "%016" PRIx64 "%s", nonce, id);
    len = wire_witness(buf, (enum wire_witness)dice_below(3), name, nonce, id);
    (void)redisAppendCommand(redis, "TIME");
    (void)redisAppendFormattedCommand(redis, buf, len);
    (void)redisAppendCommand(redis, "TIME");
    before_us = real_time_us();
    real = real_reply();
    after_us = real_time_us();
    model.clock.origin = before_us * 1000;
    world.began = world.now = 1;
    buf[len] = '\0';
    (void)resp_command(buf, len, &command);
    answer = store_execute(&conn, &command);
    if (real->type != REDIS_REPLY_INTEGER || real->integer < answer.integer ||
        (answer.integer < 0 && real->integer >= 0) ||
        real->integer > answer.integer + (long long)(after_us - before_us) / 1000 + 1)
        real_die("the server says %lld, the model %lld", real->integer, answer.integer);
    none += real->integer < 0;
    made += real->integer == 0;
    kept += real->integer > 0;
    emptied += marks_len == WIRE_WITNESS_MAX && model.marks.len == 1;
    follow(name, before_us / 1000, after_us / 1000);
    freeReplyObject(real);
    if (answer.integer >= 0 && dice_chance(300)) /* So the mark has this text. */
        disturb(name, mark, after_us / 1000);
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : COUNT_DEFAULT;

    world_begin(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, false);
    model.alive = true;
    redis = real_start();
    for (unsigned long i = 0; i < count; i++)
        compare();
    printf("%" PRIu64 " marks made, %" PRIu64 " kept, %" PRIu64 " not found, %" PRIu64
           " times emptied\n",
           made, kept, none, emptied);
    if (count >= COUNT_DEFAULT &&
        (made < count / 4 || kept < count / 10 || none < count / 50 || emptied < 2))
        real_die("too little has happened");
    printf("1 passed, 0 failed\n");
    return 0;
}
