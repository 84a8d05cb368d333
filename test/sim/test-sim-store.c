/*
 * test-sim-store.c - is store.c a model of redis?
 *
 * The test sends random commands (commands.c) to a real server (exchange.c) and to the model.  It
 * compares every answer, every key, and every announcement.  The model's clock is the server's
 * TIME: each command stands between two of them.  If a key expires in between, the answer may be
 * that of either instant.  Announcements are compared if both are in one millisecond.
 *
 * test-sim-store [COUNT [SEED]]; COUNT is 50000.
 */
#include "exchange.h"
#include "fields.h"
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock/wire/wire.h"

#define COUNT_DEFAULT 50000
#define SAVE_MAX_S 60 /* Chosen: a save must fail within this time. */

static redisContext *redis;
static struct server model;
static bool may_end_early;
static uint64_t compared, uncertain, errors, yes, raised, marks, many, second_taken, permits,
    elsewhere, shared, beside, offs;
static uint64_t fair, queued, places; /* Fair locks granted and not granted; places compared. */
static uint64_t tokens, passed;       /* Tokens that wait, compared; locks passed on. */
static uint64_t heard, called; /* Announcements; of those, turns that a heartbeat announces. */

/* ---- The server ---- */

/* Redis 8.0 deletes a key in the millisecond of its end, once in some thousand times (seen in
 * tests).  Redis 7.0 deletes it in the next millisecond. */
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

/* ---- The model ---- */

/* The model after a command that ran at one of the two instants. */
struct result {
    struct answer answer;
    struct server server;
    char told[TOLD_MAX]; /* What it announces. */
};
static struct result *executing;

/* The linker's --wrap puts it in the place of waits_publish(). */
void __wrap_waits_publish(struct server *server, unsigned mark, const char *text);

void __wrap_waits_publish(struct server *server, unsigned mark, const char *text)
{
    (void)server;
    exchange_add_told(executing->told, flags_name(mark), text);
}

void __wrap_waits_publish_own(struct server *server, const char *waiter, const char *text);

void __wrap_waits_publish_own(struct server *server, const char *waiter, const char *text)
{
    char name[sizeof WIRE_CLIENT + WIRE_CLIENT_DIGITS];

    (void)server;
    (void)snprintf(name, sizeof name, WIRE_CLIENT "%s", waiter);
    exchange_add_told(executing->told, name, text);
}

static void execute(const char *bytes, size_t len, uint64_t now_us, bool ends_early,
                    struct result *ret)
{
    struct conn conn = {.server = &ret->server};
    struct command command;

    ret->server = model;
    ret->server.clock.origin = now_us * 1000;
    ret->server.ends_early = ends_early;
    ret->told[0] = '\0';
    world.began = world.now = 1;
    executing = ret;
    if (resp_command(bytes, len, &command) != len)
        real_die("the model does not take %zu bytes as a command", len);
    ret->answer = store_execute(&conn, &command);
    for (unsigned k = 0; k < KEYS; k++)
        (void)store_key(&ret->server, k);
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
    case REPLY_ERROR: /* Only the code counts. */
        return real->type == REDIS_REPLY_ERROR &&
               strncmp(real->str, answer->text, strcspn(answer->text, " ")) == 0;
    case REPLY_TEXT:
        return real->type == REDIS_REPLY_STRING && strcmp(real->str, answer->text) == 0;
    case REPLY_ARRAY:
    case REPLY_OTHER:
        break;
    }
    return false;
}

/* A time to live between those at the two instants. */
static bool is_between(const redisReply *real, const struct answer *early,
                       const struct answer *late)
{
    return real->type == REDIS_REPLY_INTEGER && early->type == REPLY_INTEGER &&
           late->type == REPLY_INTEGER && (early->integer > 1 || late->integer < 0) &&
           real->integer <= early->integer && real->integer >= late->integer;
}

/* Both keys expire in between, and at the server's instant one has: the first of two names, or
 * the slot that was not asked for. */
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

/* Compare the fencing counter and the high-water mark. */
static bool is_same_marker(const struct marker *marker, const redisReply *counts)
{
    return exchange_number(counts->element[0]) == marker->counters[0] &&
           exchange_number(counts->element[1]) == marker->counters[1] &&
           exchange_number(counts->element[2]) == marker->high;
}

/* Compare a key.  text: its value; NULL: there is no key; "": it is no string. */
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

/* Compare all stored readers, even if their time is up, with the models at both instants.  The end
 * of the key may be moved late_ms after the time was read, and the ends of all readers with it. */
static void compare_readers(const struct key *early, const struct key *late,
                            redisReply *const replies[ASKS], uint64_t late_ms, const char *bytes)
{
    const redisReply *members = replies[ASK_READERS];
    size_t stored = members->type == REDIS_REPLY_ARRAY ? members->elements / 2 : 0;
    unsigned readers = early->exists ? early->readers : 0;

    if (stored != readers)
        real_die("%s: %zu readers, and the model has %u", bytes, stored, readers);
    for (size_t i = 0; i < stored; i++) {
        const redisReply *member = members->element[2 * i];
        uint64_t end_ms = exchange_reader_end(replies, i);
        int token = oracle_token(member->str, member->len);
        unsigned at = 0;

        while (at < early->readers && early->reader[at].token != token)
            at++;
        if (at == early->readers)
            real_die("a reader that the model does not have: %s", member->str);
        if (end_ms < sim_min(early->reader[at].end_ms, late->reader[at].end_ms) ||
            end_ms > sim_max(early->reader[at].end_ms, late->reader[at].end_ms) + late_ms)
            real_die("%s: the reader %s ends at %llu, the model says %llu to %llu", bytes,
                     member->str, (unsigned long long)end_ms,
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

/* A key that expired meanwhile cannot be compared. */
static bool is_certain(const struct exchange *x, unsigned k, const struct key *early,
                       const struct key *late)
{
    const redisReply *get = x->keys[k][ASK_KEY];

    if (get->type != REDIS_REPLY_NIL && x->keys[k][ASK_END]->integer == -2)
        return false; /* It expired between the two queries. */
    if (exchange_lost_readers(x->keys[k]))
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

/* If one of the keys expired meanwhile, the others cannot be compared. */
static bool are_certain(const struct exchange *x, const struct key *early, const struct key *late)
{
    bool certain = true;

    for (unsigned k = 0; k < KEYS; k++) {
        bool never = !model.keys[k].exists && !early[k].exists && !late[k].exists;

        certain = certain && (never || is_certain(x, k, &early[k], &late[k]));
    }
    return certain;
}

static void compare_mark(const struct exchange *x, unsigned k, const struct result *early,
                         const struct result *late, const char *bytes)
{
    bool exists = x->keys[k][ASK_MARK_END]->integer > 0,
         is_marked = flags_are_set(&late->server, k);
    uint64_t low_ms = flags_off_ms(&early->server, k), high_ms = flags_off_ms(&late->server, k);
    uint64_t off_ms = exchange_number(x->keys[k][ASK_MARK]);

    if (is_marked == flags_are_set(&early->server, k) && is_marked != exists)
        real_die("%s: the wait flag %s, and the model says otherwise", bytes,
                 exists ? "exists" : "is gone");
    if (is_marked && (off_ms < low_ms || off_ms > high_ms))
        real_die("%s: readers are held off until %llu, the model says %llu to %llu", bytes,
                 (unsigned long long)off_ms, (unsigned long long)low_ms,
                 (unsigned long long)high_ms);
    marks += is_marked;
    offs += is_marked && high_ms > 1;
}

static void compare_keys(const struct exchange *x, const struct result *early,
                         const struct result *late, const char *bytes)
{
    for (unsigned k = 0; k < KEYS; k++) {
        const struct key *a = &early->server.keys[k], *b = &late->server.keys[k];

        compare_key(a, text_of(x->keys[k][ASK_KEY]), (uint64_t)x->keys[k][ASK_END]->integer,
                    a->end_ms, b->end_ms);
        compare_mark(x, k, early, late, bytes);
        compare_readers(a, b, x->keys[k], x->after_us / 1000 - x->before_us / 1000, bytes);
        beside += a->readers > 1;
    }
}

/* Compare a queue, except for waiters that died meanwhile.  A script that fails by the type of the
 * key leaves the queue alone.  If the key ended meanwhile, the script may have found it or not, so
 * a waiter of the queue before the end may still be there.  (Redis 8.0 found it more often.) */
static void compare_lines(const struct exchange *x, unsigned k, struct line *early,
                          struct line *late, const char *bytes)
{
    uint64_t after_ms = x->after_us / 1000;
    struct line real;

    exchange_line(x->keys[k][ASK_QUEUE], &real);
    for (unsigned i = 0; i < late->len; i++) {
        const struct line_place *b = &late->places[i], *a = line_find(early, b->waiter);
        const struct line_place *there = line_find(&real, b->waiter);

        if (a == NULL || a->end_ms <= after_ms)
            continue;
        if (there == NULL || there->ticket != b->ticket || a->ticket != b->ticket ||
            there->end_ms < a->end_ms || there->end_ms > b->end_ms)
            real_die("%s: a waiter is in another place than in the model", bytes);
        places++;
    }
    for (unsigned i = 0; i < real.len; i++)
        if (real.places[i].end_ms > after_ms && line_find(late, real.places[i].waiter) == NULL &&
            line_find(early, real.places[i].waiter) == NULL)
            real_die("%s: a waiter is queued that the model does not know", bytes);
}

/* Compare the tokens that wait.  Those of waiters that died meanwhile are gone. */
static void compare_tokens(const struct exchange *x, unsigned k, struct line *early,
                           struct line *late, const char *bytes)
{
    struct line real;

    exchange_tokens(x->keys[k][ASK_TOKENS], &real);
    if (early->waiting_ends_ms <= x->after_us / 1000) /* The model forgets them when asked. */
        return;
    for (unsigned i = 0; i < late->waiting_len; i++) {
        const struct line_waiting *b = &late->waiting[i], *there = line_waiting(&real, b->waiter);

        if (line_waiting(early, b->waiter) == NULL)
            continue;
        if (there == NULL || there->token != b->token || there->ttl_ms != b->ttl_ms ||
            there->sent != b->sent)
            real_die("%s: another token waits than in the model", bytes);
        tokens++;
    }
    for (unsigned i = 0; i < real.waiting_len; i++)
        if (line_waiting(early, real.waiting[i].waiter) == NULL)
            real_die("%s: a token waits that the model does not know", bytes);
}

/* True if a key that ends then may be gone, or not, between the two instants. */
static bool ends_within(uint64_t end_ms, const struct exchange *x)
{
    return end_ms + 1 >= x->before_us / 1000 && end_ms <= x->after_us / 1000;
}

/* True if no waiter and no queue expired between the two instants, and the command's own patience
 * could not: PEXPIRE deletes a key at once if a millisecond ends within it. */
static bool is_steady(const struct exchange *x, uint32_t patience_ms)
{
    if (x->after_us / 1000 - x->before_us / 1000 >= patience_ms)
        return false;
    for (unsigned k = 0; k < KEYS; k++)
        if (ends_within(model.lines[k].ends_ms, x) ||
            ends_within(model.lines[k].waiting_ends_ms, x))
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

static void compare_told(const struct exchange *x, const struct result *early,
                         const struct result *late, const char *bytes)
{
    const char *told = late->told;
    char real[TOLD_MAX];

    exchange_told(real);
    if (x->before_us / 1000 != x->after_us / 1000 || strcmp(early->told, told) != 0)
        return;
    if (strcmp(real, told) != 0)
        real_die("%s: the server announces %s, the model %s", bytes, real, told);
    heard += told[0] != '\0';
    passed += strstr(told, " granted ") != NULL;
    called += strstr(told, " next ") != NULL &&
              strstr(bytes, script_all[SCRIPT_ACQUIRE_FAIR].sha1) != NULL;
}

static void compare(void)
{
    char buf[FIELDS_COMMAND_MAX + 1];
    uint32_t patience_ms;
    size_t len = commands_draw(&model, buf, &patience_ms);
    struct exchange x = exchange_ask(buf, len);
    struct result early, late;
    bool steady = is_steady(&x, patience_ms);

    execute(buf, len, x.before_us, false, &early);
    execute(buf, len, x.after_us, may_end_early, &late);
    if (steady && !is_same_answer(x.answer, &early.answer) &&
        !is_same_answer(x.answer, &late.answer) &&
        !is_between(x.answer, &early.answer, &late.answer) &&
        !is_half_way(x.answer, &early.answer, &late.answer))
        real_die("%s: the server says %d %s %lld, the model %d %s %lld", buf, x.answer->type,
                 x.answer->str != NULL ? x.answer->str : "", x.answer->integer,
                 (int)early.answer.type, early.answer.text, early.answer.integer);
    if (!is_same_marker(&early.server.marker, x.counts) &&
        !is_same_marker(&late.server.marker, x.counts))
        real_die("%s: the server has counted to %s, the model to %llu", buf,
                 x.counts->element[0]->str, (unsigned long long)early.server.marker.counters[0]);
    fields_compare(x.fields, &late.server.marker);
    if (steady && are_certain(&x, early.server.keys, late.server.keys))
        compare_keys(&x, &early, &late, buf);
    else
        uncertain++;
    for (unsigned k = 0; k < KEYS && steady; k++)
        compare_lines(&x, k, &early.server.lines[k], &late.server.lines[k], buf);
    for (unsigned k = 0; k < KEYS && steady; k++)
        compare_tokens(&x, k, &early.server.lines[k], &late.server.lines[k], buf);
    compare_told(&x, &early, &late, buf);
    count(buf, &x);
    memcpy(model.has_script, late.server.has_script, sizeof model.has_script);
    model.marker = late.server.marker;
    exchange_follow(&x, &model);
}

/* ---- Disturbances of the server ---- */

/* After a failed save, a server that is configured to save refuses to write. */
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

/* Set a list in the place of a lock, for a while. */
static void plant_list(void)
{
    real_run(
        "EVAL %s 1 %s",
        "redis.call('del',KEYS[1]) redis.call('rpush',KEYS[1],'x') redis.call('pexpire',KEYS[1],2)",
        commands_key((unsigned)dice_below(KEYS)));
    exchange_catch_up(&model);
}

/* Change from locks to permits, or back. */
static void change_kind(void)
{
    world.plan.permits = dice_chance(350);
    exchange_catch_up(&model);
}

/* Free both keys.  On fast machines both are rarely free at once. */
static void free_all(void)
{
    real_run("DEL %s %s", commands_key(0), commands_key(1));
    exchange_catch_up(&model);
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
    exchange_begin(redis);
    ask_version();
    spoil_save();
    cheer_up();
    /* Numbers with as many digits as real ones: Lua must not round them. */
    real_run("HSET " WIRE_MARKER " epoch " EPOCH ".0 floor %s high %s", "1750000000123456",
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
        if (model.mood == MOOD_FINE && dice_chance(20))
            fields_disturb(&model.marker);
        compare();
    }
    printf("%llu commands, %llu yes, %llu errors; %llu times keys expired meanwhile; "
           "%llu announcements, %llu of turns; %llu tokens that wait, %llu locks passed on\n",
           (unsigned long long)compared, (unsigned long long)yes, (unsigned long long)errors,
           (unsigned long long)uncertain, (unsigned long long)heard, (unsigned long long)called,
           (unsigned long long)tokens, (unsigned long long)passed);
    if (count >= COUNT_DEFAULT)
        fields_report(count);
    /* Chosen: a third or less of what a quiet machine gives.  On a busy one keys expire sooner. */
    if (count >= COUNT_DEFAULT &&
        (yes < count / 10 || errors < count / 100 || raised < count / 500 || marks < count / 100 ||
         many < count / 500 || second_taken < count / 2000 || permits < count / 500 ||
         elsewhere < count / 500 || fair < count / 1000 || queued < count / 200 ||
         places < count / 20 || shared < count / 500 || beside < count / 500 ||
         offs < count / 1000 || heard < count / 500 || called < count / 5000 ||
         tokens < count / 100 || passed < count / 10000))
        real_die("too little has happened");
    printf("1 passed, 0 failed\n");
    return 0;
}
