/*
 * test-sim-store.c - is store.c a model of redis?
 *
 * Sends random commands, written by the library's own wire.c, to a real server
 * and to the model, and compares every answer, every key, and who is told what.  The model's clock
 * is the server's TIME: each command stands between two of them, and where it
 * matters which of the two instants it was - a key ends in between - the answer
 * may be that of either.  Keys end after milliseconds, so many do.  What is told is
 * compared where both are in one millisecond.
 *
 * test-sim-store [COUNT [SEED]]; COUNT is 50000.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "real.h"
#include "redlock/wire/wire.h"

#define COUNT_DEFAULT 50000
#define TOKENS 3
#define KEYS 2        /* r0 and r1, of which most commands are about the first; or two slots. */
#define SAVE_MAX_S 60 /* Until a save has failed. */

#define TOLD_MAX 512

static redisContext *redis, *listener;
static char told[TOLD_MAX]; /* What the model tells: channels and messages, a line each. */
static struct server model;
static bool may_end_early;
static bool has_script[SCRIPT_LEN]; /* The model's, after the command; */
static bool has_mark[KEYS];         /* likewise, at the later instant; */
static bool had_mark[KEYS];         /* and at the earlier one. */
static uint64_t offs_ms[KEYS];      /* Until when readers are held off. */
static uint64_t compared, uncertain, errors, yes, raised, marks, many, second_taken, permits,
    elsewhere, shared, beside, offs;
static uint64_t fair, queued, places; /* Granted, not granted, and seen in queues. */
static uint64_t heard, called;        /* Something was told; by who is not the first in line. */

#define EPOCH "0123456789abcdef"

/* ---- The server ---- */

/* Redis 8.0 was seen to take away a key in the very millisecond in which it ends,
 * once in some thousand times; Redis 7.0 does so in the next one. */
static void ask_version(void)
{
    const char *version;
    redisReply *info = redisCommand(redis, "INFO server");

    version = info != NULL && info->str != NULL ? strstr(info->str, "redis_version:") : NULL;
    if (version == NULL)
        real_die("a server without a version");
    may_end_early = atoi(strchr(version, ':') + 1) >= 8;
    freeReplyObject(info);
}

static void add_told(char *all, const char *mark, const char *text)
{
    size_t len = strlen(all);

    if ((size_t)snprintf(all + len, TOLD_MAX - len, "%s %s\n", mark, text) >= TOLD_MAX - len)
        real_die("so much is told: %s", all);
}

/* By patterns, so that a server does not count who listens, as the model does not. */
static void listen_to_all(void)
{
    listener = redisConnectUnix(redis->unix_sock.path);
    if (listener == NULL || listener->err != 0)
        real_die("no second connection");
    (void)redisAppendCommand(listener, "PSUBSCRIBE " WIRE_MARK "*");
    freeReplyObject(real_reply_of(listener));
}

/* All that was told up to now. */
static void take_told(char *ret_told)
{
    bool is_over = false;

    ret_told[0] = '\0';
    (void)redisAppendCommand(listener, "PING");
    while (!is_over) {
        redisReply *got = real_reply_of(listener);

        is_over = got->elements != 4;
        if (!is_over)
            add_told(ret_told, got->element[2]->str + WIRE_MARK_LEN, got->element[3]->str);
        freeReplyObject(got);
    }
}

/* ---- The model ---- */

/* The linker puts it in the place of that of waits.c. */
void __wrap_waits_publish(struct server *server, unsigned mark, const char *text);

void __wrap_waits_publish(struct server *server, unsigned mark, const char *text)
{
    (void)server;
    add_told(told, flags_name(mark), text);
}

static void execute(const char *bytes, size_t len, uint64_t now_us, bool ends_early,
                    struct answer *ret_answer, struct marker *ret_marker, struct key *ret_keys,
                    struct line *ret_lines)
{
    struct server copy = model;
    struct conn conn = {.server = &copy};
    struct command command;

    copy.clock.origin = now_us * 1000;
    copy.ends_early = ends_early;
    world.began = world.now = 1;
    told[0] = '\0';
    if (resp_command(bytes, len, &command) != len)
        real_die("the model does not take %zu bytes as a command", len);
    *ret_answer = store_execute(&conn, &command);
    memcpy(has_script, copy.has_script, sizeof has_script);
    memcpy(ret_lines, copy.lines, KEYS * sizeof *ret_lines);
    *ret_marker = copy.marker;
    for (unsigned k = 0; k < KEYS; k++) {
        (void)store_key(&copy, k);
        has_mark[k] = copy.marks_end_ms[k] > now_us / 1000;
        offs_ms[k] = has_mark[k] ? copy.marks_off_ms[k] : 0;
        ret_keys[k] = copy.keys[k];
    }
}

static bool is_same_answer(const redisReply *real, const struct answer *answer)
{
    switch (answer->type) {
    case REPLY_STATUS:
        return real->type == REDIS_REPLY_STATUS && strcmp(real->str, answer->text) == 0;
    case REPLY_INTEGER:
        return real->type == REDIS_REPLY_INTEGER && real->integer == answer->integer;
    case REPLY_NIL:
        return real->type == REDIS_REPLY_NIL;
    case REPLY_ERROR: /* The code is what counts. */
        return real->type == REDIS_REPLY_ERROR &&
               strncmp(real->str, answer->text, strcspn(answer->text, " ")) == 0;
    case REPLY_TEXT:
    case REPLY_ARRAY:
    case REPLY_OTHER:
        break;
    }
    return false;
}

/* What is left of a key, when it is not certain when that was asked. */
static bool is_between(const redisReply *real, const struct answer *early,
                       const struct answer *late)
{
    return real->type == REDIS_REPLY_INTEGER && early->type == REPLY_INTEGER &&
           late->type == REPLY_INTEGER && (early->integer > 1 || late->integer < 0) &&
           real->integer <= early->integer && real->integer >= late->integer;
}

/* Both keys end in between, and at the server's instant one has: the first of two, or of
 * permits that which was not asked for. */
static bool is_half_way(const redisReply *real, const struct answer *early,
                        const struct answer *late)
{
    if (world.plan.permits)
        return real->type == REDIS_REPLY_INTEGER && real->integer > 0 &&
               early->type == REPLY_INTEGER && early->integer == 0 && late->type == REPLY_STATUS;
    return real->type == REDIS_REPLY_INTEGER && real->integer == 2 &&
           early->type == REPLY_INTEGER && early->integer == 1 && late->type == REPLY_STATUS;
}

/* ---- One command ---- */

static const char *token_text(unsigned i)
{
    static const char *const texts[TOKENS] = {"one", "two", "three"};

    return texts[i];
}

static const char *const slot_names[KEYS] = {WIRE_PERMIT "s:0", WIRE_PERMIT "s:1"};

static const char *key_name(unsigned k)
{
    static const char *const names[KEYS] = {"r0", "r1"};

    return world.plan.permits ? slot_names[k] : names[k];
}

/* Of a semaphore of as many permits as there are keys. */
static size_t draw_look(char *buf, const char *mark, unsigned slots, uint32_t off_ms)
{
    const struct wire_wait wait = {.mark = mark,
                                   .mark_len = strlen(mark),
                                   .slots = slots,
                                   .off_ms = off_ms,
                                   .is_taken = dice_chance(300)};

    return wire_wait(buf, &wait);
}

static size_t draw_permit(char *buf, struct wire_args *args)
{
    unsigned dice = (unsigned)dice_below(100);

    args->slot = (unsigned)dice_below(KEYS);
    args->slots = KEYS;
    args->name = slot_names[args->slot];
    args->name_len = strlen(args->name);
    if (dice < 40)
        return wire_permit(buf, dice_chance(300), args);
    if (dice < 60)
        return draw_look(buf, WIRE_MARK WIRE_PERMIT "s", KEYS, 0);
    return wire_script(buf, dice < 80 ? SCRIPT_RELEASE_PERMIT : SCRIPT_EXTEND, dice_chance(300),
                       args);
}

/* Of one, or of two in either order. */
static size_t draw_many(char *buf, struct wire_args *args)
{
    static const char *const lists[] = {"r0\0r1", "r1\0r0"};
    unsigned dice = (unsigned)dice_below(3);

    args->name = lists[dice_below(2)];
    args->name_len = 5;
    return wire_many(buf,
                     dice == 0   ? SCRIPT_ACQUIRE_MANY
                     : dice == 1 ? SCRIPT_EXTEND_MANY
                                 : SCRIPT_RELEASE_MANY,
                     dice_chance(300), args);
}

static uint32_t drawn_patience_ms; /* That of the command, if it is one of a fair lock. */

/* Few tickets and short patience, so that they are passed, and die. */
static size_t draw_fair(char *buf, struct wire_args *args)
{
    static const char *const waiters[] = {"1111111111111111111111111111111111111111",
                                          "2222222222222222222222222222222222222222",
                                          "3333333333333333333333333333333333333333"};
    unsigned dice = (unsigned)dice_below(100);

    args->waiter = waiters[dice_below(3)];
    args->ticket = dice_chance(500) ? 0 : dice_range(1, 4);
    args->patience_ms = (uint32_t)(dice_chance(700) ? dice_range(1, 6) : 60000);
    drawn_patience_ms = args->patience_ms;
    if (dice_chance(200))
        args->name = "r1";
    if (dice < 20)
        return wire_leave(buf, args);
    return wire_fair(buf, dice < 70 ? SCRIPT_ACQUIRE_FAIR : SCRIPT_RELEASE_FAIR, dice_chance(300),
                     args);
}

static size_t draw_shared(char *buf, struct wire_args *args)
{
    unsigned dice = (unsigned)dice_below(4);

    args->name = dice_chance(900) ? "r0" : "r1";
    if (dice_chance(980)) /* One of many that lasts keeps all others out. */
        args->ttl_ms = 1;
    return wire_script(buf,
                       dice <= 1   ? SCRIPT_ACQUIRE_SHARED
                       : dice == 2 ? SCRIPT_EXTEND_SHARED
                                   : SCRIPT_RELEASE_SHARED,
                       dice_chance(300), args);
}

/* By a reader, by who holds readers off, and by who only looks. */
static size_t draw_wait(char *buf)
{
    uint32_t off_ms = dice_chance(400)   ? WIRE_READER
                      : dice_chance(700) ? (uint32_t)dice_range(1, 4)
                                         : 0;

    return draw_look(buf, dice_chance(700) ? WIRE_MARK "r0" : WIRE_MARK "r1", 0, off_ms);
}

static size_t draw_command(char *buf)
{
    const char *token = token_text((unsigned)dice_below(TOKENS));
    struct wire_args args = {
        .name = "r0",
        .name_len = 2,
        .token = token,
        .token_len = strlen(token),
        .ttl_ms = (uint32_t)(dice_chance(950) ? dice_range(1, 3) : 60000),
        .epoch = dice_chance(950) ? EPOCH : "000000000000000a",
        .counter = model.marker.floor + model.marker.counters[0] + dice_below(5) - dice_below(2),
    };
    unsigned dice = (unsigned)dice_below(100);

    drawn_patience_ms = UINT32_MAX;
    if (world.plan.permits)
        return draw_permit(buf, &args);
    if (dice_chance(280))
        return draw_many(buf, &args);
    if (dice_chance(220))
        return draw_fair(buf, &args);
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

/* Its fencing counter and the greatest of all. */
static bool is_same_marker(const struct marker *marker, const redisReply *counts)
{
    const char *counter = counts->element[0]->str, *high = counts->element[1]->str;

    return strtoull(counter != NULL ? counter : "0", NULL, 10) == marker->counters[0] &&
           strtoull(high, NULL, 10) == marker->high;
}

/* The key as it is: text NULL, none; "" it is no string. */
static void compare_key(const struct key *key, const char *text, uint64_t end_ms, uint64_t low_ms,
                        uint64_t high_ms)
{
    if (!key->exists || text == NULL) {
        if (key->exists != (text != NULL))
            real_die("the key %s, and the model says otherwise",
                     text != NULL ? "exists" : "is gone");
        return;
    }
    if (key->wrong_type)
        return;
    if (key->token != oracle_token(text, strlen(text)))
        real_die("the key is %s, the model says %s", text, oracle_token_of(key->token)->text);
    if (end_ms < low_ms || end_ms > high_ms)
        real_die("the key ends at %llu, the model says %llu to %llu", (unsigned long long)end_ms,
                 (unsigned long long)low_ms, (unsigned long long)high_ms);
}

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The readers that are stored, also those whose time is up; by the times of both models. */
static void compare_readers(const struct key *early, const struct key *late,
                            const redisReply *members, const char *bytes, size_t len)
{
    size_t stored = members->type == REDIS_REPLY_ARRAY ? members->elements / 2 : 0;
    unsigned readers = early->exists ? early->readers : 0;

    if (stored != readers)
        real_die("%.*s: %zu readers, and the model has %u", (int)len, bytes, stored, readers);
    for (size_t i = 0; i < stored; i++) {
        const redisReply *member = members->element[2 * i];
        uint64_t end_ms = strtoull(members->element[2 * i + 1]->str, NULL, 10);
        int token = oracle_token(member->str, member->len);
        unsigned at = 0;

        while (at < early->readers && early->reader[at].token != token)
            at++;
        if (at == early->readers)
            real_die("a reader that the model does not have: %s", member->str);
        if (end_ms < min64(early->reader[at].end_ms, late->reader[at].end_ms) ||
            end_ms > max64(early->reader[at].end_ms, late->reader[at].end_ms))
            real_die("%.*s: the reader %s ends at %llu, the model says %llu to %llu", (int)len,
                     bytes, member->str, (unsigned long long)end_ms,
                     (unsigned long long)early->reader[at].end_ms,
                     (unsigned long long)late->reader[at].end_ms);
    }
}

static bool is_same_key(const struct key *a, const struct key *b)
{
    if (a->exists != b->exists)
        return false;
    for (unsigned i = 0; a->exists && i < a->readers; i++)
        if (a->readers != b->readers || a->reader[i].token != b->reader[i].token)
            return false;
    return !a->exists ||
           (a->token == b->token && a->wrong_type == b->wrong_type && a->readers == b->readers);
}

/* What was there when it was asked for is gone when its readers are. */
static bool has_lost_readers(const redisReply *get, const redisReply *members)
{
    return get->type == REDIS_REPLY_ERROR && members->type == REDIS_REPLY_ARRAY &&
           members->elements == 0;
}

/* Adopt what the server has, so that both go on from the same. */
static void follow_counts(const redisReply *counts)
{
    if (counts->element[0]->str != NULL)
        model.marker.counters[0] = strtoull(counts->element[0]->str, NULL, 10);
    model.marker.high = strtoull(counts->element[1]->str, NULL, 10);
}

static void follow(struct key *key, const redisReply *get, const redisReply *end,
                   const redisReply *members)
{
    /* It may have ended between the two questions. */
    key->exists =
        get->type != REDIS_REPLY_NIL && end->integer != -2 && !has_lost_readers(get, members);
    key->wrong_type = get->type == REDIS_REPLY_ERROR;
    if (key->exists && !key->wrong_type)
        key->token = oracle_token(get->str, get->len);
    else if (key->exists)
        key->token = oracle_token("a list", 6);
    key->end_ms = end->integer > 0 ? (uint64_t)end->integer : UINT64_MAX / DRIFT_S;
    key->readers = 0;
    if (!key->exists || members->type != REDIS_REPLY_ARRAY || members->elements == 0)
        return;
    key->token = -1;
    key->readers = (unsigned)members->elements / 2;
    for (unsigned i = 0; i < key->readers; i++) {
        const redisReply *member = members->element[(size_t)2 * i];

        key->reader[i].token = oracle_token(member->str, member->len);
        key->reader[i].end_ms = strtoull(members->element[(size_t)2 * i + 1]->str, NULL, 10);
    }
}

/* One command, what is there after it, and the time on both sides. */
struct exchange {
    uint64_t before_us, after_us;
    redisReply *answer, *counts;
    struct key_replies {
        redisReply *get, *end, *mark, *off, *members, *line, *line_end;
    } keys[KEYS];
};

static void append_questions(void)
{
    for (unsigned k = 0; k < KEYS; k++) {
        const char *mark = world.plan.permits && k == 0 ? WIRE_PERMIT "s" : key_name(k);

        (void)redisAppendCommand(redis, "GET %s", key_name(k));
        (void)redisAppendCommand(redis, "PEXPIRETIME %s", key_name(k));
        (void)redisAppendCommand(redis, "PEXPIRETIME " WIRE_MARK "%s", mark);
        (void)redisAppendCommand(redis, "GET " WIRE_MARK "%s", mark);
        (void)redisAppendCommand(redis, "ZRANGE %s 0 -1 WITHSCORES", key_name(k));
        (void)redisAppendCommand(redis, "ZRANGE " WIRE_QUEUE "r%u 0 -1 WITHSCORES", k);
        (void)redisAppendCommand(redis, "PEXPIRETIME " WIRE_QUEUE "r%u", k);
    }
    (void)redisAppendCommand(redis, "HMGET " WIRE_MARKER " %u high", wire_counter("r0", 2));
}

static void take_replies(struct exchange *x)
{
    for (unsigned k = 0; k < KEYS; k++) {
        x->keys[k].get = real_reply();
        x->keys[k].end = real_reply();
        x->keys[k].mark = real_reply();
        x->keys[k].off = real_reply();
        x->keys[k].members = real_reply();
        x->keys[k].line = real_reply();
        x->keys[k].line_end = real_reply();
    }
    x->counts = real_reply();
}

/* Two entries for each: his name and ticket, and "-" with it and when he dies, negative. */
static void follow_line(struct line *line, const redisReply *real)
{
    line->len = 0;
    for (size_t i = 0; i + 1 < real->elements; i += 2) {
        const redisReply *name = real->element[i];
        double score = strtod(real->element[i + 1]->str, NULL);
        bool is_end = name->str[0] == '-';
        int waiter = oracle_token(name->str + is_end, name->len - is_end);
        struct line_place *place = line_find(line, waiter);

        if (is_end == (score >= 0))
            real_die("the queue has %s with %f", name->str, score);
        if (place == NULL) /* The end comes first. */
            line->places[line->len++] = (struct line_place){.waiter = waiter};
        place = line_find(line, waiter);
        if (is_end)
            place->end_ms = (uint64_t)-score;
        else
            place->ticket = (uint64_t)score;
    }
}

static uint64_t number_of(const redisReply *text)
{
    return text->type == REDIS_REPLY_STRING ? strtoull(text->str, NULL, 10) : 0;
}

/* And free the replies. */
static void follow_all(struct exchange *x)
{
    for (unsigned k = 0; k < KEYS; k++) {
        const struct key_replies *replies = &x->keys[k];

        follow(&model.keys[k], replies->get, replies->end, replies->members);
        model.marks_end_ms[k] = replies->mark->integer > 0 ? (uint64_t)replies->mark->integer : 0;
        model.marks_off_ms[k] = number_of(replies->off);
        freeReplyObject(replies->get);
        freeReplyObject(replies->end);
        freeReplyObject(replies->mark);
        follow_line(&model.lines[k], replies->line);
        model.lines[k].ends_ms =
            (uint64_t)(replies->line_end->integer > 0 ? replies->line_end->integer : 0);
        freeReplyObject(replies->line);
        freeReplyObject(replies->line_end);
        freeReplyObject(replies->off);
        freeReplyObject(replies->members);
    }
    follow_counts(x->counts);
    freeReplyObject(x->counts);
}

static struct exchange ask(const char *bytes, size_t len)
{
    struct exchange exchange;

    (void)redisAppendCommand(redis, "TIME");
    (void)redisAppendFormattedCommand(redis, bytes, len);
    append_questions();
    (void)redisAppendCommand(redis, "TIME");
    exchange.before_us = real_time_us();
    exchange.answer = real_reply();
    take_replies(&exchange);
    exchange.after_us = real_time_us();
    return exchange;
}

/* Where a key ended meanwhile, nothing can be said of it. */
static bool is_certain(const struct exchange *x, unsigned k, const struct key *early,
                       const struct key *late)
{
    const redisReply *get = x->keys[k].get;

    if (get->type != REDIS_REPLY_NIL && x->keys[k].end->integer == -2)
        return false; /* It ended between the two questions. */
    if (has_lost_readers(get, x->keys[k].members))
        return false;
    if (x->before_us / 1000 == x->after_us / 1000)
        return is_same_key(early, late);
    return is_same_key(early, late) && early->exists && get->type != REDIS_REPLY_NIL;
}

static const char *text_of(const redisReply *get)
{
    if (get->type == REDIS_REPLY_NIL)
        return NULL;
    return get->type == REDIS_REPLY_STRING ? get->str : "";
}

/* Where one of two ended meanwhile, nothing can be said of the other. */
static bool are_certain(const struct exchange *x, const struct key *early, const struct key *late)
{
    bool certain = true;

    for (unsigned k = 0; k < KEYS; k++) {
        bool never = !model.keys[k].exists && !early[k].exists && !late[k].exists;

        certain = certain && (never || is_certain(x, k, &early[k], &late[k]));
    }
    return certain;
}

static void compare_keys(const struct exchange *x, const struct key *early, const struct key *late,
                         const uint64_t *early_offs_ms, const char *bytes, size_t len)
{
    for (unsigned k = 0; k < KEYS; k++) {
        const struct key_replies *replies = &x->keys[k];

        compare_key(&early[k], text_of(replies->get), (uint64_t)replies->end->integer,
                    early[k].end_ms, late[k].end_ms);
        if (has_mark[k] == had_mark[k] && has_mark[k] != (replies->mark->integer > 0))
            real_die("%.*s: the mark %s, and the model says otherwise", (int)len, bytes,
                     replies->mark->integer > 0 ? "exists" : "is gone");
        if (has_mark[k] &&
            (number_of(replies->off) < early_offs_ms[k] || number_of(replies->off) > offs_ms[k]))
            real_die("%.*s: readers are held off until %llu, the model says %llu to %llu", (int)len,
                     bytes, (unsigned long long)number_of(replies->off),
                     (unsigned long long)early_offs_ms[k], (unsigned long long)offs_ms[k]);
        compare_readers(&early[k], &late[k], replies->members, bytes, len);
        marks += has_mark[k];
        offs += has_mark[k] && offs_ms[k] > 1;
        beside += early[k].readers > 1;
    }
}

/* But for those who died meanwhile. */
static void compare_lines(const struct exchange *x, unsigned k, struct line *early,
                          struct line *late, const char *bytes, size_t len)
{
    uint64_t after_ms = x->after_us / 1000;
    struct line real;

    follow_line(&real, x->keys[k].line);
    for (unsigned i = 0; i < late->len; i++) {
        const struct line_place *b = &late->places[i], *a = line_find(early, b->waiter);
        const struct line_place *there = line_find(&real, b->waiter);

        if (a == NULL || a->end_ms <= after_ms)
            continue;
        if (there == NULL || there->ticket != b->ticket || a->ticket != b->ticket ||
            there->end_ms < a->end_ms || there->end_ms > b->end_ms)
            real_die("%.*s: somebody is in another place than the model says", (int)len, bytes);
        places++;
    }
    for (unsigned i = 0; i < real.len; i++)
        if (real.places[i].end_ms > after_ms && line_find(late, real.places[i].waiter) == NULL)
            real_die("%.*s: somebody is in line whom the model does not know", (int)len, bytes);
}

/* Nobody's patience was over between the two instants, nor a whole queue; nor could the command's
 * own: PEXPIRE deletes a key at once if a millisecond ends within it. */
static bool is_steady(const struct exchange *x)
{
    if (x->after_us / 1000 - x->before_us / 1000 >= drawn_patience_ms)
        return false;
    for (unsigned k = 0; k < KEYS; k++)
        if (model.lines[k].ends_ms + 1 >= x->before_us / 1000 &&
            model.lines[k].ends_ms <= x->after_us / 1000)
            return false;
    for (unsigned k = 0; k < KEYS; k++)
        for (unsigned i = 0; i < model.lines[k].len; i++)
            if (model.lines[k].places[i].end_ms > x->before_us / 1000 &&
                model.lines[k].places[i].end_ms <= x->after_us / 1000)
                return false;
    return true;
}

static void count(const char *bytes, const struct exchange *x)
{
    bool acquires = strstr(bytes, script_all[SCRIPT_ACQUIRE_MANY].sha1) != NULL;
    bool takes = strstr(bytes, script_all[SCRIPT_ACQUIRE_PERMIT].sha1) != NULL;

    compared++;
    errors += x->answer->type == REDIS_REPLY_ERROR;
    yes += x->answer->type == REDIS_REPLY_STATUS || x->answer->integer >= 1;
    raised += strstr(bytes, script_all[SCRIPT_RAISE].sha1) != NULL && x->answer->integer >= 1;
    many += acquires && x->answer->type == REDIS_REPLY_STATUS;
    shared += strstr(bytes, script_all[SCRIPT_ACQUIRE_SHARED].sha1) != NULL &&
              x->answer->type == REDIS_REPLY_STATUS;
    second_taken += acquires && x->answer->integer == 2;
    permits += takes && x->answer->type == REDIS_REPLY_STATUS;
    elsewhere += takes && x->answer->integer >= 1;
    acquires = strstr(bytes, script_all[SCRIPT_ACQUIRE_FAIR].sha1) != NULL;
    fair += acquires && x->answer->type == REDIS_REPLY_STATUS;
    queued += acquires && x->answer->integer >= 1;
}

static void compare_told(const struct exchange *x, const char *early_told, const char *bytes,
                         size_t len)
{
    char real[TOLD_MAX];

    take_told(real);
    if (x->before_us / 1000 != x->after_us / 1000 || strcmp(early_told, told) != 0)
        return;
    if (strcmp(real, told) != 0)
        real_die("%.*s: the server tells %s, the model %s", (int)len, bytes, real, told);
    heard += told[0] != '\0';
    called += strstr(told, " next ") != NULL &&
              strstr(bytes, script_all[SCRIPT_ACQUIRE_FAIR].sha1) != NULL;
}

static void compare(void)
{
    char buf[WIRE_MAX + 1];
    size_t len = draw_command(buf);
    struct exchange x = ask(buf, len);
    struct answer early_answer, late_answer;
    struct marker early_marker, late_marker;
    struct key early[KEYS], late[KEYS];
    struct line early_lines[KEYS], late_lines[KEYS];
    bool steady = is_steady(&x);
    uint64_t early_offs_ms[KEYS];
    char early_told[TOLD_MAX];

    buf[len] = '\0';
    execute(buf, len, x.before_us, false, &early_answer, &early_marker, early, early_lines);
    memcpy(had_mark, has_mark, sizeof had_mark);
    memcpy(early_offs_ms, offs_ms, sizeof offs_ms);
    memcpy(early_told, told, sizeof told);
    execute(buf, len, x.after_us, may_end_early, &late_answer, &late_marker, late, late_lines);
    if (steady && !is_same_answer(x.answer, &early_answer) &&
        !is_same_answer(x.answer, &late_answer) &&
        !is_between(x.answer, &early_answer, &late_answer) &&
        !is_half_way(x.answer, &early_answer, &late_answer))
        real_die("%.*s: the server says %d %s %lld, the model %d %s %lld", (int)len, buf,
                 x.answer->type, x.answer->str != NULL ? x.answer->str : "", x.answer->integer,
                 (int)early_answer.type, early_answer.text, early_answer.integer);
    if (!is_same_marker(&early_marker, x.counts) && !is_same_marker(&late_marker, x.counts))
        real_die("%.*s: the server has counted to %s, the model to %llu", (int)len, buf,
                 x.counts->element[0]->str, (unsigned long long)early_marker.counters[0]);
    if (steady && are_certain(&x, early, late))
        compare_keys(&x, early, late, early_offs_ms, buf, len);
    else
        uncertain++;
    for (unsigned k = 0; k < KEYS && steady; k++)
        compare_lines(&x, k, &early_lines[k], &late_lines[k], buf, len);
    compare_told(&x, early_told, buf, len);
    count(buf, &x);
    memcpy(model.has_script, has_script, sizeof has_script);
    follow_all(&x);
    freeReplyObject(x.answer);
}

/* ---- What happens to a server ---- */

/* After a save that failed it refuses to write, if it is told to save at all. */
static void spoil_save(void)
{
    (void)rmdir(real_home());
    real_run("BGSAVE");
    for (unsigned i = 0; i < SAVE_MAX_S * 100; i++) {
        redisReply *info;
        bool failed;

        (void)redisAppendCommand(redis, "INFO persistence");
        info = real_reply();
        failed = strstr(info->str, "rdb_last_bgsave_status:err") != NULL;
        freeReplyObject(info);
        if (failed)
            return;
        (void)usleep(10000);
    }
    real_die("a save does not fail");
}

static void look_around(void)
{
    struct exchange x;

    append_questions();
    take_replies(&x);
    follow_all(&x);
}

/* A list where a lock should be, for a while. */
static void plant_list(void)
{
    real_run(
        "EVAL %s 1 %s",
        "redis.call('del',KEYS[1]) redis.call('rpush',KEYS[1],'x') redis.call('pexpire',KEYS[1],2)",
        key_name((unsigned)dice_below(KEYS)));
    look_around();
}

/* From locks to permits, or back. */
static void change_kind(void)
{
    world.plan.permits = dice_chance(350);
    look_around();
}

/* That both are free at once is rare, and the faster machines are the rarer it is. */
static void free_all(void)
{
    real_run("DEL %s %s", key_name(0), key_name(1));
    look_around();
}

static void cheer_up(void)
{
    real_run("CONFIG SET maxmemory 0");
    real_run("REPLICAOF NO ONE");
    real_run("CONFIG SET save %s", "");
    model.mood = MOOD_FINE;
}

static void spoil_mood(void)
{
    unsigned dice = (unsigned)dice_below(3);

    if (dice == 0)
        real_run("CONFIG SET maxmemory 1");
    else if (dice == 1)
        real_run("REPLICAOF 127.0.0.1 1");
    else
        real_run("CONFIG SET save %s", "900 1");
    model.mood = dice == 0 ? MOOD_OOM : dice == 1 ? MOOD_READONLY : MOOD_MISCONF;
}

static void disturb(void)
{
    unsigned dice = (unsigned)dice_below(100);

    if (dice < 30) {
        real_run("SCRIPT FLUSH");
        server_set_scripts(&model, false);
    } else if (model.mood != MOOD_FINE) {
        cheer_up();
    } else if (dice < 50) {
        spoil_mood();
    } else if (dice < 70) {
        change_kind();
    } else {
        plant_list();
    }
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : COUNT_DEFAULT;

    world_begin(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, false);
    oracle_reset();
    model.alive = true;
    redis = real_start();
    listen_to_all();
    ask_version();
    spoil_save();
    cheer_up();
    /* A number of as many digits as they have, which Lua would round if it could. */
    real_run("HSET " WIRE_MARKER " epoch " EPOCH " floor %s high %s", "1750000000123456",
             "1750000000139840");
    model.marker = (struct marker){.exists = true,
                                   .epoch = UINT64_C(0x0123456789abcdef),
                                   .floor = UINT64_C(1750000000123456),
                                   .high = UINT64_C(1750000000139840)};
    for (unsigned long i = 0; i < count; i++) {
        if (dice_chance(model.mood == MOOD_FINE ? 20 : 100))
            disturb();
        if (model.mood == MOOD_FINE && dice_chance(50))
            free_all();
        compare();
    }
    printf("%llu commands, %llu yes, %llu errors; %llu times keys ended meanwhile; %llu told, "
           "%llu whose turn it is\n",
           (unsigned long long)compared, (unsigned long long)yes, (unsigned long long)errors,
           (unsigned long long)uncertain, (unsigned long long)heard, (unsigned long long)called);
    /* A third or less of what there is on a quiet machine: on a busy one keys end sooner. */
    if (count >= COUNT_DEFAULT &&
        (yes < count / 10 || errors < count / 100 || raised < count / 500 || marks < count / 100 ||
         many < count / 500 || second_taken < count / 2000 || permits < count / 500 ||
         elsewhere < count / 500 || fair < count / 1000 || queued < count / 200 ||
         places < count / 20 || shared < count / 500 || beside < count / 500 ||
         offs < count / 1000 || heard < count / 500 || called < count / 5000))
        real_die("too little has happened");
    printf("1 passed, 0 failed\n");
    return 0;
}
