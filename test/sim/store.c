/*
 * store.c - what a server does with a command: a model of redis, of as much of
 * it as the library uses.
 *
 * Commands are parsed from the very bytes that the library wrote.  The scripts
 * (redlock/lua) are modelled in C.  test-sim-store compares this file with a real server, which
 * runs the scripts: a script that is changed needs its model changed as well.  What is of those
 * in line is in queue.c, of readers in readers.c.
 */
#include "sim.h"

#include "redlock/wire/script.h"
#include "redlock/wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 16 /* 2^53 has so many. */

static const struct answer ok = {REPLY_STATUS, 0, "OK"};
static const struct answer nil = {REPLY_NIL, 0, ""};
static const struct answer one = {REPLY_INTEGER, 1, ""};
static const struct answer zero = {REPLY_INTEGER, 0, ""};
static const struct answer noscript = {REPLY_ERROR, 0,
                                       "NOSCRIPT No matching script. Please use EVAL."};
static const struct answer wrong_type = {
    REPLY_ERROR, 0, "WRONGTYPE Operation against a key holding the wrong kind of value"};
static const struct answer wrong_type_in_script = {
    REPLY_ERROR, 0,
    "ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): "
    "@user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value"};

/* ---- Bytes ---- */

static const char *parse_number(const char *p, const char *end, char sign, size_t *ret_number)
{
    size_t number = 0;

    if (p == end || *p++ != sign)
        world_fail("wire", "no '%c' where there must be one", sign);
    while (p < end && *p >= '0' && *p <= '9')
        number = number * 10 + (size_t)(*p++ - '0');
    if (end - p < 2 || p[0] != '\r' || p[1] != '\n')
        world_fail("wire", "a number that does not end");
    *ret_number = number;
    return p + 2;
}

void store_parse(const char *bytes, size_t len, struct command *ret_command)
{
    const char *end = bytes + len;
    size_t argc;
    const char *p = parse_number(bytes, end, '*', &argc);

    if (argc == 0 || argc > COMMAND_ARGS_MAX)
        world_fail("wire", "%zu arguments", argc);
    for (size_t i = 0; i < argc; i++) {
        size_t arg_len;

        p = parse_number(p, end, '$', &arg_len);
        if ((size_t)(end - p) < arg_len + 2 || p[arg_len] != '\r' || p[arg_len + 1] != '\n')
            world_fail("wire", "an argument that does not end");
        ret_command->argv[i] = p;
        ret_command->lens[i] = arg_len;
        p += arg_len + 2;
    }
    ret_command->argc = (unsigned)argc;
    ret_command->len = (size_t)(p - bytes);
}

bool store_is(const struct command *command, unsigned i, const char *text)
{
    return i < command->argc && command->lens[i] == strlen(text) &&
           memcmp(command->argv[i], text, command->lens[i]) == 0;
}

static bool is_script(const struct command *command, enum script_id script)
{
    const struct script *s = &script_all[script];

    if (command->argc < 2)
        return false;
    return (command->lens[1] == 40 && memcmp(command->argv[1], s->sha1, 40) == 0) ||
           (command->lens[1] == s->text_len && memcmp(command->argv[1], s->text, s->text_len) == 0);
}

/* EVALSHA or EVAL, script, n, n names, token [, ttl] */
static struct parts parts_of_many(const struct command *command, enum quorum_command name)
{
    unsigned names = (unsigned)(command->argv[2][0] - '0');

    if (command->lens[2] != 1 || command->argc != 4 + names + (name != QUORUM_CMD_RELEASE) ||
        names < 2 || names > SIM_RESOURCES_MAX)
        world_fail("wire", "a script of many names with other arguments");
    return (struct parts){false, name, 3, 3 + names, 4 + names, names};
}

struct parts store_parts(const struct command *command)
{
    if (is_script(command, SCRIPT_ACQUIRE_MANY))
        return parts_of_many(command, QUORUM_CMD_SET);
    if (is_script(command, SCRIPT_EXTEND_MANY))
        return parts_of_many(command, QUORUM_CMD_EXTEND);
    if (is_script(command, SCRIPT_RELEASE_MANY))
        return parts_of_many(command, QUORUM_CMD_RELEASE);
    if (is_script(command, SCRIPT_ACQUIRE_PERMIT))
        return (struct parts){false, QUORUM_CMD_SET, 3, 4, 5, 1};
    if (is_script(command, SCRIPT_WAIT_PERMIT))
        return (struct parts){.is_other = true};
    if (is_script(command, SCRIPT_ACQUIRE_FAIR))
        return (struct parts){false, QUORUM_CMD_SET, 3, 4, 5, 1};
    if (is_script(command, SCRIPT_RELEASE_FAIR))
        return (struct parts){false, QUORUM_CMD_RELEASE, 3, 4, 0, 1};
    if (is_script(command, SCRIPT_ACQUIRE_SHARED))
        return (struct parts){false, QUORUM_CMD_SET, 3, 4, 5, 1};
    switch (command->argc) {
    case 1: /* TIME */
    case 2: /* SUBSCRIBE, UNSUBSCRIBE */
    case 3: /* HGET of the marker */
    case 4: /* HMGET, HINCRBY of the same; ZREM of who waits no more */
        return (struct parts){.is_other = true};
    case 5:
        return (struct parts){false, QUORUM_CMD_RELEASE, 3, 4, 0, 1};
    case 6:
        if (command->argv[0][0] == 'S')
            return (struct parts){false, QUORUM_CMD_SET, 1, 2, 5, 1};
        return (struct parts){false, QUORUM_CMD_EXTEND, 3, 4, 5, 1};
    case 8: /* A look by who waits. */
        return (struct parts){.is_other = true};
    case 9:
        return (struct parts){false, QUORUM_CMD_RAISE, 3, 5, 0, 1};
    case 11:
        return (struct parts){.is_other = true};
    default:
        world_fail("wire", "a command of %u arguments", command->argc);
    }
}

#define SEMAPHORE WIRE_PERMIT "s"

/* Resources are named "r0", "r1", ..., or are the slots of a semaphore. */
unsigned store_resource(const struct command *command, unsigned i)
{
    const char *prefix = world.plan.permits ? SEMAPHORE ":" : "r";
    size_t len = strlen(prefix);
    unsigned resource = (unsigned)(command->argv[i][len] - '0');

    if (command->lens[i] != len + 1 || memcmp(command->argv[i], prefix, len) != 0 ||
        resource >= SIM_RESOURCES_MAX)
        world_fail("wire", "a resource that nobody knows");
    return resource;
}

unsigned store_set(const struct command *command)
{
    const struct parts at = store_parts(command);
    unsigned set = 0;

    for (unsigned i = 0; i < at.names; i++) {
        unsigned resource = store_resource(command, at.name + i);

        if (set & 1u << resource)
            world_fail("wire", "one resource twice");
        set |= 1u << resource;
    }
    return set;
}

int store_token(const struct command *command, unsigned i)
{
    return oracle_token(command->argv[i], command->lens[i]);
}

uint64_t store_number(const struct command *command, unsigned i)
{
    uint64_t number = 0;

    if (command->lens[i] == 0 || command->lens[i] > MAX_DIGITS)
        world_fail("wire", "a number of %zu digits", command->lens[i]);
    for (size_t at = 0; at < command->lens[i]; at++) {
        if (command->argv[i][at] < '0' || command->argv[i][at] > '9')
            world_fail("wire", "a number that is none");
        number = number * 10 + (uint64_t)(command->argv[i][at] - '0');
    }
    return number;
}

uint64_t store_ms(const struct command *command, unsigned i)
{
    uint64_t ms = store_number(command, i);

    if (ms == 0)
        world_fail("wire", "a ttl of 0");
    return ms;
}

/* ---- Keys ---- */

uint64_t store_wall_ms(const struct server *server)
{
    return clock_at(&server->clock, world.now) / DRIFT_MS;
}

/* Redis: a key is gone when now > when, both in milliseconds. */
static uint64_t gone_at_ms(const struct server *server, const struct key *key)
{
    return server->ends_early ? key->end_ms : key->end_ms + 1;
}

struct key *store_key(struct server *server, unsigned resource)
{
    struct key *key = &server->keys[resource];

    if (key->exists && store_wall_ms(server) >= gone_at_ms(server, key))
        key->exists = false;
    return key->exists ? key : NULL;
}

sim_time store_key_end(const struct server *server, const struct key *key)
{
    return clock_when(&server->clock, gone_at_ms(server, key) * DRIFT_MS);
}

/* ---- Commands ---- */

const struct answer *store_mood(const struct server *server, bool in_script, bool grows)
{
    static const struct answer oom = {REPLY_ERROR, 0,
                                      "OOM command not allowed when used memory > 'maxmemory'."};
    static const struct answer misconf = {
        REPLY_ERROR, 0, "MISCONF Errors writing to the AOF file: No space left on device"};
    static const struct answer readonly = {REPLY_ERROR, 0,
                                           "READONLY You can't write against a read only replica."};
    static const struct answer old_readonly = {
        REPLY_ERROR, 0,
        "ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): "
        "@user_script:1: @user_script: 1: -READONLY You can't write against a read only slave."};

    switch (server->mood) {
    case MOOD_FINE:
    case MOOD_LOADING:
        return NULL;
    case MOOD_OOM: /* DEL and PEXPIRE need no memory. */
        if (!grows)
            return NULL;
        world_fault(FAULT_OOM);
        return &oom;
    case MOOD_MISCONF:
        world_fault(FAULT_MISCONF);
        return &misconf;
    case MOOD_READONLY:
        world_fault(FAULT_READONLY);
        if (!in_script || !server->old_style)
            return &readonly;
        world_fault(FAULT_OLD_STYLE);
        return &old_readonly;
    }
    return NULL;
}

/* SET name token NX PX ttl */
static struct answer do_set(struct server *server, const struct command *command)
{
    const struct parts at = store_parts(command);
    unsigned resource = store_resource(command, at.name);
    int token = store_token(command, at.token);
    uint64_t ttl_ms = store_ms(command, at.ttl);
    const struct answer *refusal = store_mood(server, false, true);

    if (refusal != NULL)
        return *refusal;
    if (store_key(server, resource) != NULL)
        return nil;
    server->keys[resource] =
        (struct key){.exists = true, .token = token, .end_ms = store_wall_ms(server) + ttl_ms};
    return ok;
}

/* ---- The marker ---- */

static uint64_t hex_arg(const struct command *command, unsigned i)
{
    uint64_t number = 0;

    if (command->lens[i] != 16)
        world_fail("wire", "a number of %zu digits", command->lens[i]);
    for (size_t at = 0; at < 16; at++) {
        char c = command->argv[i][at];

        number = number << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return number;
}

static bool is_marker(const struct command *command, unsigned i)
{
    return store_is(command, i, WIRE_MARKER);
}

/* HGET, marker, "epoch"; or HMGET, marker, "epoch", "max" */
static struct answer do_proof(const struct server *server, const struct command *command)
{
    const struct marker *marker = &server->marker;
    bool with_max = store_is(command, 0, "HMGET");
    const size_t room = 40;
    char *text = memory_take(room);

    if (command->argc != (with_max ? 4 : 3) || !is_marker(command, 1) ||
        !store_is(command, 2, "epoch") || (with_max && !store_is(command, 3, "max")))
        world_fail("wire", "a read of something else");
    if (!marker->exists || marker->epoch == 0) {
        world_fault(FAULT_EPOCH);
        return with_max ? (struct answer){REPLY_ARRAY, 0, " "} : nil;
    }
    (void)snprintf(text, room, with_max ? "%016llx %llu" : "%016llx",
                   (unsigned long long)marker->epoch, (unsigned long long)marker->max_ttl_ms);
    return (struct answer){with_max ? REPLY_ARRAY : REPLY_TEXT, 0, text};
}

/* The counter of which the number is there. */
static uint64_t *counter_arg(struct server *server, const struct command *command, unsigned i)
{
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++) {
        char name[4], digits[8];

        (void)snprintf(name, sizeof name, "r%u", r);
        (void)snprintf(digits, sizeof digits, "%u", wire_counter(name, 2));
        if (store_is(command, i, digits))
            return &server->marker.counters[world.plan.one_counter ? 0 : r];
    }
    world_fail("wire", "a counter of no name");
}

/* Crashes that bring back what was saved are to bring back old counters. */
static struct answer count_to(struct server *server, uint64_t *counter, uint64_t count)
{
    *counter = count;
    if (count % 16 == 0)
        server->saved = server->marker;
    return (struct answer){REPLY_INTEGER, (long long)count, ""};
}

/* HINCRBY, marker, counter, 1 */
static struct answer do_count(struct server *server, const struct command *command)
{
    const struct answer *refusal = store_mood(server, false, true);
    uint64_t *counter = counter_arg(server, command, 2);

    if (command->argc != 4 || !is_marker(command, 1) || !store_is(command, 3, "1"))
        world_fail("wire", "a count with other arguments");
    return refusal != NULL ? *refusal : count_to(server, counter, *counter + 1);
}

#define AHEAD_US (UINT64_C(1) << 40)
#define HIGH_STEP (UINT64_C(1) << 14)

/* EVALSHA or EVAL, script, 2, name, marker, token, number, counter, epoch */
static struct answer do_raise(struct server *server, const struct command *command)
{
    static const struct answer no_epoch = {REPLY_INTEGER, -1, ""};
    static const struct answer ahead = {REPLY_ERROR, 0,
                                        "ERR the fencing counter is days ahead of the clock"};
    struct marker *marker = &server->marker;
    const struct key *key = store_key(server, store_resource(command, 3));
    uint64_t *counter = counter_arg(server, command, 7);
    uint64_t wanted = store_number(command, 6), count = *counter + 1;
    struct answer answer;
    const struct answer *refusal;

    if (command->argc != 9 || !store_is(command, 2, "2") || !is_marker(command, 4))
        world_fail("wire", "a script with other arguments");
    server->has_script[SCRIPT_RAISE] = true;
    if (!marker->exists || marker->epoch != hex_arg(command, 8) || marker->floor == 0) {
        world_fault(FAULT_EPOCH);
        return no_epoch;
    }
    if (key != NULL && key->wrong_type)
        return wrong_type;
    if (key == NULL || key->token != store_token(command, 5))
        return zero;
    if (wanted > marker->floor + count)
        count = wanted - marker->floor;
    if (marker->floor + count > marker->high &&
        marker->floor + count > store_wall_ms(server) * 1000 + AHEAD_US)
        return ahead;
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    world_fault(FAULT_RAISED);
    if (marker->floor + count > marker->high)
        marker->high = marker->floor + (count + HIGH_STEP - 1) / HIGH_STEP * HIGH_STEP;
    answer = count_to(server, counter, count);
    answer.integer += (long long)marker->floor;
    return answer;
}

static struct answer describe(const struct server *server, const struct marker *marker)
{
    const size_t room = 160;
    char *text = memory_take(room);
    unsigned long long age_ms = store_wall_ms(server) - marker->since_ms;
    unsigned long long high = marker->high, now_us = store_wall_ms(server) * 1000;

    if (marker->epoch != 0)
        (void)snprintf(text, room, "ready %016llx %llu %llu %llu %llu",
                       (unsigned long long)marker->epoch, (unsigned long long)marker->max_ttl_ms,
                       (unsigned long long)marker->floor, high, now_us);
    else
        (void)snprintf(text, room, "warming %016llx %llu %d %llu %llu %llu",
                       (unsigned long long)marker->nonce, (unsigned long long)marker->max_ttl_ms,
                       marker->fresh, age_ms, high, now_us);
    return (struct answer){REPLY_TEXT, 0, text};
}

/* The number of the run in an id, as link.c makes them up. */
static unsigned run_arg(const struct command *command, unsigned i)
{
    char digits[21] = "";

    if (command->lens[i] != 40)
        world_fail("wire", "an id of %zu digits", command->lens[i]);
    memcpy(digits, command->argv[i] + 20, 20);
    return (unsigned)strtoul(digits, NULL, 16);
}

/* EVAL, script, 1, marker, id, keeps, max ttl, random, nonce or "", masters, floor */
static struct answer do_look(struct server *server, const struct command *command)
{
    const struct marker before = server->marker;
    struct marker after = before; /* Of one that is gone, nothing but what was counted since. */
    bool keeps = !store_is(command, 5, "0");
    uint64_t max_ttl_ms = store_ms(command, 6), random = hex_arg(command, 7);
    uint64_t floor = store_number(command, 10);
    const struct answer *refusal;

    if (!store_is(command, 2, "1") || !is_marker(command, 3))
        world_fail("wire", "a look with other arguments");
    after.exists = true;
    after.run = run_arg(command, 4);
    if (before.exists && before.run != after.run && !keeps)
        after.epoch = after.nonce = 0;
    if (after.floor == 0)
        after.epoch = 0;
    if (after.epoch == 0 && after.nonce != 0 && command->lens[8] > 0 &&
        hex_arg(command, 8) == after.nonce) {
        after.epoch = random;
        memset(after.counters, 0, sizeof after.counters);
        after.floor = floor > after.high ? floor : after.high;
        after.high = after.floor + HIGH_STEP;
    } else if (after.epoch == 0 && after.nonce == 0) {
        after.nonce = random;
        after.since_ms = store_wall_ms(server);
        after.fresh = !before.exists;
        world_fault(FAULT_AMNESIA);
    }
    if (!store_is(command, 5, "2"))
        after.fresh = false;
    if (after.epoch != 0)
        after.nonce = 0;
    if (after.max_ttl_ms < max_ttl_ms)
        after.max_ttl_ms = max_ttl_ms;
    refusal = memcmp(&before, &after, sizeof before) != 0 ? store_mood(server, true, true) : NULL;
    if (refusal != NULL)
        return *refusal;
    server->marker = after;
    return describe(server, &after);
}

/* ---- Marks ---- */

static bool has_mark(const struct server *server, unsigned mark)
{
    return server->marks_end_ms[mark] > store_wall_ms(server);
}

unsigned store_mark(unsigned resource)
{
    return world.plan.permits ? 0 : resource;
}

const char *store_mark_name(unsigned mark)
{
    static const char *const names[SIM_RESOURCES_MAX] = {"r0", "r1", "r2"};

    return world.plan.permits ? SEMAPHORE : names[mark];
}

/* The number in a mark, which is the channel, too. */
static unsigned mark_arg(const struct command *command, unsigned i)
{
    for (unsigned mark = 0; mark < SIM_RESOURCES_MAX; mark++) {
        const char *name = store_mark_name(mark);

        if (command->lens[i] == WIRE_MARK_LEN + strlen(name) &&
            memcmp(command->argv[i], WIRE_MARK, WIRE_MARK_LEN) == 0 &&
            memcmp(command->argv[i] + WIRE_MARK_LEN, name, strlen(name)) == 0)
            return mark;
    }
    world_fail("wire", "a mark that nobody knows");
}

static const char *make_text(const char *word, unsigned long long number)
{
    const size_t room = 32;
    char *text = memory_take(room);

    (void)snprintf(text, room, "%s %llu", word, number);
    return text;
}

uint64_t store_off_ms(const struct server *server, unsigned mark)
{
    return has_mark(server, mark) ? server->marks_off_ms[mark] : 0;
}

static uint64_t left_of(const struct server *server, const struct key *key)
{
    return key->end_ms > store_wall_ms(server) ? key->end_ms - store_wall_ms(server) : 0;
}

/* Who waits is to be told, and the others that it is held for so long; or taken, says who has
 * it.  value_ms: until when readers are held off, or 1. */
static struct answer leave_mark(struct server *server, const struct command *command,
                                uint64_t left_ms, uint64_t value_ms)
{
    const struct answer *refusal = store_mood(server, true, true);
    unsigned mark = mark_arg(command, 4);
    bool is_new = !has_mark(server, mark), is_taken = store_is(command, 7, "taken");

    if (!is_taken && !store_is(command, 7, "held"))
        world_fail("wire", "a look that tells something else");
    if (refusal != NULL)
        return *refusal;
    if (is_new || (value_ms > 1 && value_ms > server->marks_off_ms[mark])) {
        server->marks_end_ms[mark] = store_wall_ms(server) + store_ms(command, 5);
        server->marks_off_ms[mark] = value_ms;
    }
    if (is_new || is_taken) {
        if (left_ms > 0)
            waits_publish(server, mark, make_text(is_taken ? "taken" : "held", left_ms));
        server->is_teller[mark] = is_taken && left_ms > 0;
        world_outcome(is_taken ? OUTCOME_TOLD_TAKEN : OUTCOME_TOLD_HELD);
    }
    return (struct answer){REPLY_INTEGER, (long long)left_ms, ""};
}

/* EVAL, script, 2, name, mark, ttl, for how long readers are held off, or "", what to tell */
static struct answer do_wait(struct server *server, const struct command *command)
{
    unsigned resource = store_resource(command, 3);
    const struct key *key = store_key(server, resource);
    bool shared = store_is(command, 6, ""), is_read = key != NULL && key->readers > 0;
    uint64_t now_ms = store_wall_ms(server), off_ms = store_off_ms(server, resource);

    if (command->argc != 8 || !store_is(command, 2, "2") || mark_arg(command, 4) != resource)
        world_fail("wire", "a look of who waits with other arguments");
    if (shared && (key == NULL || is_read) && off_ms > now_ms)
        return (struct answer){REPLY_INTEGER, (long long)(off_ms - now_ms), ""};
    if (key == NULL || (shared && is_read))
        return (struct answer){REPLY_INTEGER, -2, ""};
    if (is_read && store_is(command, 7, "taken")) /* It comes late. */
        return (struct answer){REPLY_INTEGER, (long long)left_of(server, key), ""};
    return leave_mark(server, command, left_of(server, key),
                      is_read ? now_ms + store_number(command, 6) : 1);
}

/* EVAL, script, 2, semaphore, mark, ttl, slots, what to tell */
static struct answer do_wait_permit(struct server *server, const struct command *command)
{
    uint64_t left_ms = UINT64_MAX;

    if (command->argc != 8 || !store_is(command, 2, "2") || !store_is(command, 3, SEMAPHORE) ||
        store_number(command, 6) > SIM_RESOURCES_MAX)
        world_fail("wire", "a look of who waits with other arguments");
    for (unsigned slot = 0; slot < store_number(command, 6); slot++) {
        const struct key *key = store_key(server, slot);

        if (key == NULL) {
            (void)leave_mark(server, command, 0, 1);
            return (struct answer){REPLY_INTEGER, -2, ""};
        }
        if (left_of(server, key) < left_ms)
            left_ms = left_of(server, key);
    }
    return leave_mark(server, command, left_ms, 1);
}

/* SUBSCRIBE or UNSUBSCRIBE, channel */
static struct answer do_subscribe(struct conn *conn, const struct command *command, bool on)
{
    unsigned mark = mark_arg(command, 1);
    const size_t room = sizeof "unsubscribe " WIRE_MARK SEMAPHORE;
    char *text = memory_take(room);

    (void)snprintf(text, room, "%s " WIRE_MARK "%s", on ? "subscribe" : "unsubscribe",
                   store_mark_name(mark));
    conn->hears &= ~(1u << mark);
    conn->hears |= (unsigned)on << mark;
    return (struct answer){REPLY_ARRAY, 0, text};
}

void store_tell_free(struct server *server, unsigned mark, bool keeps_mark)
{
    if (!has_mark(server, mark))
        return;
    if (!keeps_mark)
        server->marks_end_ms[mark] = 0;
    waits_publish(server, mark, make_text("free", waits_count(server, mark)));
    world_outcome(OUTCOME_TOLD_FREE);
}

void store_drop_key(struct server *server, unsigned resource)
{
    unsigned mark = store_mark(resource);

    server->keys[resource].exists = false;
    store_tell_free(server, mark, false);
}

static struct answer do_release(struct server *server, unsigned resource, struct key *key,
                                int token)
{
    const struct answer *refusal;

    if (key == NULL || key->token != token)
        return zero;
    refusal = store_mood(server, true, false);
    if (refusal != NULL)
        return *refusal;
    store_drop_key(server, resource);
    return one;
}

static struct answer do_extend(struct server *server, struct key *key, int token, uint64_t ttl_ms)
{
    uint64_t end_ms = store_wall_ms(server) + ttl_ms;
    const struct answer *refusal;

    if (key == NULL || key->token != token)
        return zero;
    if (key->end_ms >= end_ms)
        return one;
    refusal = store_mood(server, true, false);
    if (refusal != NULL)
        return *refusal;
    key->end_ms = end_ms;
    return one;
}

struct answer store_type_error(const struct server *server)
{
    world_fault(FAULT_WRONG_TYPE);
    if (!server->old_style)
        return wrong_type;
    world_fault(FAULT_OLD_STYLE);
    return wrong_type_in_script;
}

static struct answer acquire_many(struct server *server, const struct command *command)
{
    const struct parts at = store_parts(command);
    uint64_t end_ms = store_wall_ms(server) + store_ms(command, at.ttl);
    const struct answer *refusal;

    for (unsigned i = 0; i < at.names; i++)
        if (store_key(server, store_resource(command, at.name + i)) != NULL)
            return (struct answer){REPLY_INTEGER, i + 1, ""};
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    for (unsigned i = 0; i < at.names; i++)
        server->keys[store_resource(command, at.name + i)] =
            (struct key){.exists = true, .token = store_token(command, at.token), .end_ms = end_ms};
    return ok;
}

static struct answer extend_many(struct server *server, const struct command *command)
{
    const struct parts at = store_parts(command);
    int token = store_token(command, at.token);

    for (unsigned i = 0; i < at.names; i++) {
        const struct key *key = store_key(server, store_resource(command, at.name + i));

        if (key != NULL && key->wrong_type)
            return store_type_error(server);
        if (key == NULL || key->token != token)
            return zero;
    }
    for (unsigned i = 0; i < at.names; i++) {
        struct key *key = store_key(server, store_resource(command, at.name + i));
        struct answer answer = do_extend(server, key, token, store_ms(command, at.ttl));

        if (answer.type == REPLY_ERROR)
            return answer;
    }
    return one;
}

static struct answer release_many(struct server *server, const struct command *command)
{
    const struct parts at = store_parts(command);
    int token = store_token(command, at.token);
    struct answer error = one;
    unsigned released = 0;

    for (unsigned i = 0; i < at.names; i++) {
        unsigned resource = store_resource(command, at.name + i);
        struct key *key = store_key(server, resource);
        struct answer answer;

        if (key != NULL && key->wrong_type) {
            error = store_type_error(server);
            continue;
        }
        answer = do_release(server, resource, key, token);
        if (answer.type == REPLY_ERROR)
            error = answer;
        released += answer.integer == 1;
    }
    if (error.type == REPLY_ERROR)
        return error;
    return released == at.names ? one : zero;
}

static struct answer do_many(struct server *server, const struct command *command,
                             enum script_id script)
{
    server->has_script[script] = true;
    if (script == SCRIPT_ACQUIRE_MANY)
        return acquire_many(server, command);
    if (script == SCRIPT_EXTEND_MANY)
        return extend_many(server, command);
    return release_many(server, command);
}

/* EVALSHA or EVAL, script, 1, slot, token, ttl, its number, how many there are */
static struct answer acquire_permit(struct server *server, const struct command *command)
{
    unsigned slot = store_resource(command, 3), slots = (unsigned)store_number(command, 7);
    const struct answer *refusal = store_mood(server, true, true);

    if (command->argc != 8 || !store_is(command, 2, "1") || store_number(command, 6) != slot ||
        slot >= slots || slots > SIM_RESOURCES_MAX)
        world_fail("wire", "a script with other arguments");
    server->has_script[SCRIPT_ACQUIRE_PERMIT] = true;
    if (refusal != NULL)
        return *refusal;
    for (unsigned i = 1; store_key(server, slot) != NULL && i < slots; i++)
        if (store_key(server, (slot + i) % slots) == NULL)
            return (struct answer){REPLY_INTEGER, (slot + i) % slots + 1, ""};
    if (store_key(server, slot) != NULL)
        return zero;
    server->keys[slot] = (struct key){.exists = true,
                                      .token = store_token(command, 4),
                                      .end_ms = store_wall_ms(server) + store_ms(command, 5)};
    return ok;
}

/* EVALSHA or EVAL, script, 1, name, token [, ttl] */
static struct answer do_script(struct server *server, const struct command *command,
                               enum script_id script)
{
    unsigned resource = store_resource(command, 3);
    int token = store_token(command, 4);
    struct key *key = store_key(server, resource);

    if (command->argc != (script == SCRIPT_EXTEND ? 6 : 5) || !store_is(command, 2, "1"))
        world_fail("wire", "a script with other arguments");
    server->has_script[script] = true;
    if (key != NULL && key->wrong_type)
        return store_type_error(server);
    if (script == SCRIPT_EXTEND)
        return do_extend(server, key, token, store_ms(command, 5));
    return do_release(server, resource, key, token);
}

static struct answer do_time(const struct server *server)
{
    const size_t room = 32;
    char *text = memory_take(room);
    unsigned long long us = clock_at(&server->clock, world.now) / SIM_US;

    (void)snprintf(text, room, "%llu %llu", us / 1000000, us % 1000000);
    return (struct answer){REPLY_ARRAY, 0, text};
}

/* ---- The greeting ---- */

/* SCRIPT LOAD, text */
static struct answer do_load(struct server *server, const struct command *command)
{
    for (int i = 0; i < SCRIPT_LEN; i++) {
        if (command->argc != 3 || !store_is(command, 2, script_all[i].text))
            continue;
        server->has_script[i] = true;
        return (struct answer){REPLY_TEXT, 0, script_all[i].sha1};
    }
    world_fail("wire", "a script that nobody knows");
}

/* Other clients have brought the other scripts. */
static struct answer do_info(struct server *server)
{
    const size_t room = 256;
    char *text = memory_take(room);

    server_set_scripts(server, true);
    (void)snprintf(text, room,
                   "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
                   "run_id:%020x%020x\r\nuptime_in_seconds:1\r\nloading:0\r\naof_enabled:1\r\n"
                   "maxmemory:0\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n",
                   server->number + 1, server->runs);
    return (struct answer){REPLY_TEXT, 0, text};
}

/* CONFIG GET, setting */
static struct answer do_config(const struct server *server, const struct command *command)
{
    if (store_is(command, 2, "no-appendfsync-on-rewrite"))
        return (struct answer){REPLY_ARRAY, 0, "no-appendfsync-on-rewrite no"};
    if (!store_is(command, 2, "appendfsync"))
        world_fail("wire", "a setting that nobody knows");
    return (struct answer){REPLY_ARRAY, 0,
                           server->keeps ? "appendfsync always" : "appendfsync everysec"};
}

static struct answer execute(struct conn *conn, const struct command *command)
{
    struct server *server = conn->server;
    static const struct answer loading = {REPLY_ERROR, 0,
                                          "LOADING Redis is loading the dataset in memory"};

    if (server->mood == MOOD_LOADING) {
        world_fault(FAULT_LOADING);
        return loading;
    }
    if (command->argc == 1 && store_is(command, 0, "TIME"))
        return do_time(server);
    if (store_is(command, 0, "SCRIPT"))
        return do_load(server, command);
    if (store_is(command, 0, "INFO"))
        return do_info(server);
    if (store_is(command, 0, "CONFIG"))
        return do_config(server, command);
    if (store_is(command, 0, "SUBSCRIBE") || store_is(command, 0, "UNSUBSCRIBE"))
        return do_subscribe(conn, command, store_is(command, 0, "SUBSCRIBE"));
    if (store_is(command, 0, "SET")) {
        if (command->argc != 6 || !store_is(command, 3, "NX") || !store_is(command, 4, "PX"))
            world_fail("wire", "a SET that is not NX PX");
        return do_set(server, command);
    }
    if (store_is(command, 0, "ZREM"))
        return queue_leave(server, command);
    if (store_is(command, 0, "HGET") || store_is(command, 0, "HMGET"))
        return do_proof(server, command);
    if (store_is(command, 0, "HINCRBY"))
        return do_count(server, command);
    for (int i = 0; i < SCRIPT_LEN; i++) {
        bool by_name = store_is(command, 0, "EVALSHA") && store_is(command, 1, script_all[i].sha1);
        bool by_text = store_is(command, 0, "EVAL") && store_is(command, 1, script_all[i].text);

        if (by_name && !server->has_script[i]) {
            world_fault(FAULT_SCRIPT_FLUSH);
            return noscript;
        }
        if ((by_name || by_text) && i == SCRIPT_RAISE)
            return do_raise(server, command);
        if ((by_name || by_text) && i == SCRIPT_WAIT)
            return do_wait(server, command);
        if ((by_name || by_text) && i == SCRIPT_LOOK)
            return do_look(server, command);
        if ((by_name || by_text) && i >= SCRIPT_ACQUIRE_MANY && i <= SCRIPT_RELEASE_MANY)
            return do_many(server, command, (enum script_id)i);
        if ((by_name || by_text) && i == SCRIPT_ACQUIRE_PERMIT)
            return acquire_permit(server, command);
        if ((by_name || by_text) && i == SCRIPT_WAIT_PERMIT)
            return do_wait_permit(server, command);
        if ((by_name || by_text) && (i == SCRIPT_ACQUIRE_FAIR || i == SCRIPT_RELEASE_FAIR))
            return queue_execute(server, command, (enum script_id)i);
        if ((by_name || by_text) && i >= SCRIPT_ACQUIRE_SHARED && i <= SCRIPT_RELEASE_SHARED)
            return readers_execute(server, command, (enum script_id)i);
        if (by_name || by_text)
            return do_script(server, command, (enum script_id)i);
    }
    world_fail("wire", "a command that nobody knows: %.*s", (int)command->lens[0],
               command->argv[0]);
}

size_t store_execute(struct conn *conn, const struct command *command, struct answer *ret_answer)
{
    *ret_answer = execute(conn, command);
    return command->len;
}
