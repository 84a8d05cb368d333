/*
 * test-sim-look.c - is marker.c a model of redlock/lua/look.lua?
 *
 * The test sends random queries of the marker, written by wire.c, to a real server and to the
 * model.  It compares every answer and every field of the marker.  As in test-sim-store, each
 * query stands between two TIMEs.
 *
 * test-sim-look [COUNT [SEED]]; COUNT is 5000.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real.h"
#include "redlock/wire/wire.h"

#define COUNT_DEFAULT 5000
#define WORDS_MAX 7

static redisContext *redis;
static struct server model;
static uint64_t ready, warming, installed, voided, fresh;

/* The fourth call from now overwrites the text. */
static const char *number_text(uint64_t number)
{
    static char texts[4][WIRE_NUMBER + 1];
    static unsigned next;
    char *text = texts[next++ % 4];

    (void)snprintf(text, sizeof texts[0], "%016" PRIx64, number);
    return text;
}

static uint64_t draw_number(void)
{
    return dice_range(1, UINT64_C(1) << 62);
}

/* The nonce of the marker, another one, or none. */
static const char *draw_nonce(void)
{
    if (dice_chance(300))
        return "";
    if (dice_chance(200) || model.marker.nonce == 0)
        return number_text(draw_number());
    return number_text(model.marker.nonce);
}

static size_t draw_query(char *buf)
{
    static const char *const ids[] = {"0000000000000000000000000000000000000001",
                                      "0000000000000000000000000000000000000002"};
    const struct wire_look look = {
        .id = ids[dice_chance(100)],
        .keeps = dice_chance(700),
        .is_known = dice_chance(500),
        .max_ttl_ms = (uint32_t)dice_range(1000, 1020),
        .random = number_text(draw_number()),
        .nonce = draw_nonce(),
        .floor = dice_range(1, UINT64_C(1) << 52),
    };

    return wire_look(buf, &look);
}

/* Change the marker as a FLUSHALL, a person with redis-cli, or a count does. */
static void disturb(void)
{
    unsigned dice = (unsigned)dice_below(3);

    if (dice == 0) {
        real_run("DEL " WIRE_MARKER);
        model.marker = (struct marker){.exists = false};
    } else if (dice == 1 && model.marker.exists) {
        real_run("HDEL " WIRE_MARKER " floor high");
        model.marker.floor = model.marker.high = 0;
    } else if (model.marker.floor > 0) {
        real_run("HSET " WIRE_MARKER " %u 5", wire_counter("r0", 2));
        model.marker.counters[0] = 5;
    }
}

static unsigned split(const char *text, char words[WORDS_MAX][24])
{
    int len = sscanf(text, "%23s %23s %23s %23s %23s %23s %23s", words[0], words[1], words[2],
                     words[3], words[4], words[5], words[6]);

    return len > 0 ? (unsigned)len : 0;
}

static uint64_t to_number(const char *digits)
{
    return strtoull(digits, NULL, 10);
}

/* Compare the words of an answer.  The last one, the time, and the age may differ a little. */
static void compare_answer(const redisReply *real, const struct answer *answer, uint64_t before_us,
                           uint64_t after_us)
{
    char ours[WORDS_MAX][24], theirs[WORDS_MAX][24];
    unsigned len = split(answer->text, ours);

    if (real->type != REDIS_REPLY_STRING || split(real->str, theirs) != len)
        real_die("the server says %s, the model %s", real->str, answer->text);
    for (unsigned i = 0; i + 1 < len; i++)
        if ((len < WORDS_MAX || i != 4) && strcmp(ours[i], theirs[i]) != 0)
            real_die("the server says %s, the model %s", real->str, answer->text);
    if (to_number(theirs[len - 1]) < before_us || to_number(theirs[len - 1]) > after_us)
        real_die("the server says %s, and the time is %" PRIu64, real->str, before_us);
    if (len == WORDS_MAX &&
        to_number(theirs[4]) > to_number(ours[4]) + (after_us - before_us) / 1000 + 1)
        real_die("the server says %s, and the age is %s", real->str, ours[4]);
    ready += len < WORDS_MAX;
    warming += len == WORDS_MAX;
    fresh += len == WORDS_MAX && theirs[3][0] == '1';
}

static void compare_field(const redisReply *field, const char *name, const char *wanted)
{
    if (wanted == NULL ? field->type != REDIS_REPLY_NIL
                       : field->type != REDIS_REPLY_STRING || strcmp(field->str, wanted) != 0)
        real_die("%s is %s, and in the model %s", name, field->str, wanted);
}

static void compare_fields(const struct marker *marker)
{
    char max[24], floor[24], high[24];
    bool is_ready = marker->epoch != 0;
    redisReply *fields;

    (void)redisAppendCommand(redis, "HMGET " WIRE_MARKER " epoch nonce fresh max floor high %u id",
                             wire_counter("r0", 2));
    fields = real_reply();
    (void)snprintf(max, sizeof max, "%" PRIu64, marker->max_ttl_ms);
    (void)snprintf(floor, sizeof floor, "%" PRIu64, marker->floor);
    (void)snprintf(high, sizeof high, "%" PRIu64, marker->high);
    compare_field(fields->element[0], "epoch", is_ready ? number_text(marker->epoch) : NULL);
    compare_field(fields->element[1], "nonce", is_ready ? NULL : number_text(marker->nonce));
    compare_field(fields->element[2], "fresh", is_ready ? NULL : marker->fresh ? "1" : "0");
    compare_field(fields->element[3], "max", max);
    compare_field(fields->element[4], "floor", marker->floor > 0 ? floor : NULL);
    compare_field(fields->element[5], "high", marker->high > 0 ? high : NULL);
    compare_field(fields->element[6], "counter", marker->counters[0] > 0 ? "5" : NULL);
    if (fields->element[7]->str[39] != (char)('0' + marker->run))
        real_die("id is %s", fields->element[7]->str);
    freeReplyObject(fields);
}

/* Copy the server's time, because the model's clock is a little behind. */
static void follow_since(void)
{
    redisReply *since;

    (void)redisAppendCommand(redis, "HGET " WIRE_MARKER " since");
    since = real_reply();
    if (since->type == REDIS_REPLY_STRING)
        model.marker.since_ms = to_number(since->str);
    freeReplyObject(since);
}

static void compare(void)
{
    char buf[WIRE_MAX];
    size_t len = draw_query(buf);
    struct conn conn = {.server = &model};
    const uint64_t epoch = model.marker.epoch;
    uint64_t before_us, after_us;
    struct command command;
    struct answer answer;
    redisReply *real;

    (void)redisAppendCommand(redis, "TIME");
    (void)redisAppendFormattedCommand(redis, buf, len);
    (void)redisAppendCommand(redis, "TIME");
    before_us = real_time_us();
    real = real_reply();
    after_us = real_time_us();
    model.clock.origin = before_us * 1000;
    world.began = world.now = 1;
    (void)resp_command(buf, len, &command);
    answer = store_execute(&conn, &command);
    compare_answer(real, &answer, before_us, after_us);
    compare_fields(&model.marker);
    installed += epoch == 0 && model.marker.epoch != 0;
    voided += epoch != 0 && model.marker.epoch == 0;
    follow_since();
    freeReplyObject(real);
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : COUNT_DEFAULT;

    world_begin(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, false);
    oracle_reset();
    model.alive = true;
    redis = real_start();
    for (unsigned long i = 0; i < count; i++) {
        if (dice_chance(50))
            disturb();
        compare();
    }
    printf("%" PRIu64 " ready, %" PRIu64 " warming, %" PRIu64 " of these fresh; %" PRIu64
           " epochs began, %" PRIu64 " ended\n",
           ready, warming, fresh, installed, voided);
    if (count >= COUNT_DEFAULT &&
        (ready < count / 10 || warming < count / 10 || fresh < count / 200 ||
         installed < count / 50 || voided < count / 50))
        real_die("too little has happened");
    printf("1 passed, 0 failed\n");
    return 0;
}
