/*
 * test-sim-look.c - is marker.c a model of redlock/lua/look.lua, and sets.c of claim, found and
 * withdraw?
 *
 * The test sends random queries of the marker, and scripts that found a set, to a real server and
 * to the model.  wire.c writes them.  The test compares every answer and every field of the marker.
 * As in test-sim-store, each query stands between two TIMEs.
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

#include "fields.h"
#include "real.h"
#include "redlock/wire/wire.h"

#define COUNT_DEFAULT 5000
#define WORDS_MAX 7 /* Before the set. */
#define WORD_ROOM 40

static redisContext *redis;
static struct server model;
static uint64_t ready, warming, installed, voided, fresh, refused;

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
    struct wire_look look = {
        .id = ids[dice_chance(100)],
        .keeps = dice_chance(700),
        .is_known = dice_chance(500),
        .max_ttl_ms = (uint32_t)dice_range(1000, 1020),
        .random = number_text(draw_number()),
        .nonce = draw_nonce(),
        .floor = dice_range(1, UINT64_C(1) << 52),
    };

    fields_draw_known(&look);
    return wire_look(buf, &look);
}

/* Change the marker as a FLUSHALL, a person with redis-cli, a count, or a change of the set does;
 * or change whether the server has memory. */
static void disturb(void)
{
    unsigned dice = (unsigned)dice_below(6);

    if (dice == 0) {
        real_run("DEL " WIRE_MARKER);
        model.marker = (struct marker){.exists = false};
    } else if (dice == 1) {
        real_run("HDEL " WIRE_MARKER " floor high");
        model.marker.floor = model.marker.high = 0;
    } else if (dice == 2 && model.marker.floor > 0) {
        real_run("HSET " WIRE_MARKER " %u 5", wire_counter("r0", 2));
        model.marker.counters[0] = 5;
    } else if (dice >= 3) {
        fields_disturb(&model.marker);
    }
}

/* Without memory, nothing can be disturbed. */
static void draw_mood(void)
{
    bool is_fine = model.mood != MOOD_FINE;

    real_run("CONFIG SET maxmemory %d", !is_fine);
    model.mood = is_fine ? MOOD_FINE : MOOD_OOM;
}

/* Split an answer.  The set that it tells comes behind the words.  Returns how many words. */
static unsigned split(const char *text, char words[WORDS_MAX][WORD_ROOM], const char **ret_set)
{
    unsigned len = strncmp(text, "warming", 7) == 0 ? WORDS_MAX : WORDS_MAX - 1;

    for (unsigned i = 0; i < len; i++) {
        size_t word_len = strcspn(text, " ");

        if (word_len >= WORD_ROOM || text[word_len] == '\0')
            return 0;
        memcpy(words[i], text, word_len);
        words[i][word_len] = '\0';
        text += word_len + 1;
    }
    *ret_set = text;
    return len;
}

static uint64_t to_number(const char *digits)
{
    return strtoull(digits, NULL, 10);
}

/* The last word, the time, and the age may differ a little. */
static void compare_look(const char *real, const char *text, uint64_t before_us, uint64_t after_us)
{
    char ours[WORDS_MAX][WORD_ROOM], theirs[WORDS_MAX][WORD_ROOM];
    const char *our_set, *their_set;
    unsigned len = split(text, ours, &our_set);

    if (len == 0 || split(real, theirs, &their_set) != len || strcmp(our_set, their_set) != 0)
        real_die("the server says %s, the model %s", real, text);
    for (unsigned i = 0; i + 1 < len; i++)
        if ((len < WORDS_MAX || i != 4) && strcmp(ours[i], theirs[i]) != 0)
            real_die("the server says %s, the model %s", real, text);
    if (to_number(theirs[len - 1]) < before_us || to_number(theirs[len - 1]) > after_us)
        real_die("the server says %s, and the time is %" PRIu64, real, before_us);
    if (len == WORDS_MAX &&
        to_number(theirs[4]) > to_number(ours[4]) + (after_us - before_us) / 1000 + 1)
        real_die("the server says %s, and the age is %s", real, ours[4]);
    ready += len < WORDS_MAX;
    warming += len == WORDS_MAX;
    fresh += len == WORDS_MAX && theirs[3][0] == '1';
}

static void compare_answer(const redisReply *real, const struct answer *answer, bool is_look,
                           uint64_t before_us, uint64_t after_us)
{
    const char *text = real->str != NULL ? real->str : "";

    if (real->type == REDIS_REPLY_STRING && answer->type == REPLY_TEXT && is_look)
        compare_look(text, answer->text, before_us, after_us);
    else if (real->type == REDIS_REPLY_STRING && answer->type == REPLY_TEXT
                 ? strcmp(text, answer->text) != 0
             : real->type == REDIS_REPLY_ERROR && answer->type == REPLY_ERROR
                 ? strncmp(text, answer->text, 4) != 0
                 : real->type != REDIS_REPLY_INTEGER || answer->type != REPLY_INTEGER ||
                       real->integer != answer->integer)
        real_die("the server says %s %lld, the model %s %lld", text, real->integer, answer->text,
                 answer->integer);
    refused += answer->type == REPLY_ERROR;
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
    bool is_ready = marker->epoch != 0, is_warming = marker->nonce != 0;
    redisReply *fields;

    (void)redisAppendCommand(redis, "HMGET " WIRE_MARKER " nonce fresh max floor high %u id",
                             wire_counter("r0", 2));
    fields_append(redis);
    fields = real_reply();
    (void)snprintf(max, sizeof max, "%" PRIu64, marker->max_ttl_ms);
    (void)snprintf(floor, sizeof floor, "%" PRIu64, marker->floor);
    (void)snprintf(high, sizeof high, "%" PRIu64, marker->high);
    compare_field(fields->element[0], "nonce", is_warming ? number_text(marker->nonce) : NULL);
    compare_field(fields->element[1], "fresh", !is_warming ? NULL : marker->fresh ? "1" : "0");
    compare_field(fields->element[2], "max", marker->exists ? max : NULL);
    compare_field(fields->element[3], "floor", marker->floor > 0 ? floor : NULL);
    compare_field(fields->element[4], "high", marker->high > 0 ? high : NULL);
    compare_field(fields->element[5], "counter", marker->counters[0] > 0 ? "5" : NULL);
    if (marker->exists != (fields->element[6]->type == REDIS_REPLY_STRING) ||
        (marker->exists && fields->element[6]->str[39] != (char)('0' + marker->run)))
        real_die("id is %s", fields->element[6]->str);
    if (is_ready && is_warming)
        real_die("an epoch and a nonce");
    freeReplyObject(fields);
    fields = real_reply();
    fields_compare(fields, marker);
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
    char buf[FIELDS_COMMAND_MAX];
    bool is_look = dice_chance(650);
    size_t len = is_look            ? draw_query(buf)
                 : dice_chance(500) ? fields_draw(buf, &model.marker)
                                    : fields_draw_ballot(buf, &model.marker);
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
    compare_answer(real, &answer, is_look, before_us, after_us);
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
        if (dice_chance(model.mood == MOOD_FINE ? 30 : 200))
            draw_mood();
        if (model.mood == MOOD_FINE && dice_chance(250))
            disturb();
        compare();
    }
    printf("%" PRIu64 " ready, %" PRIu64 " warming, %" PRIu64 " of these fresh; %" PRIu64
           " epochs began, %" PRIu64 " ended; %" PRIu64 " refused\n",
           ready, warming, fresh, installed, voided, refused);
    if (count >= COUNT_DEFAULT)
        fields_report(count);
    if (count >= COUNT_DEFAULT &&
        (ready < count / 10 || warming < count / 10 || fresh < count / 200 ||
         installed < count / 100 || voided < count / 100 || refused < count / 200))
        real_die("too little has happened");
    printf("1 passed, 0 failed\n");
    return 0;
}
