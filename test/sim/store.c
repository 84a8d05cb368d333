/*
 * store.c - what a server does with a command: a model of the part of redis that the library uses.
 *
 * The scripts (redlock/lua) are modelled in C, here and in readers.c, queue.c, many.c, permits.c,
 * flags.c, marker.c, sets.c, ballots.c and witness.c.  If you change a script, change its model,
 * too: test-sim-store compares the model with a real server, which runs the scripts.
 */
#include "net.h"
#include "store.h"
#include "world.h"

#include <stdio.h>

const struct answer answer_ok = {REPLY_STATUS, 0, "OK"};
const struct answer answer_nil = {REPLY_NIL, 0, ""};
const struct answer answer_one = {REPLY_INTEGER, 1, ""};
const struct answer answer_zero = {REPLY_INTEGER, 0, ""};
const struct answer answer_wrong_type = {
    REPLY_ERROR, 0, "WRONGTYPE Operation against a key holding the wrong kind of value"};

/* ---- Keys ---- */

uint64_t store_wall_ms(const struct server *server)
{
    return clock_at(&server->clock, world.now) / DRIFT_MS;
}

/* In redis a key is gone when now > when, both in milliseconds. */
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

struct answer store_put(struct server *server, unsigned resource, int token, uint64_t ttl_ms)
{
    server->keys[resource] =
        (struct key){.exists = true, .token = token, .end_ms = store_wall_ms(server) + ttl_ms};
    return answer_ok;
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
    const struct parts at = args_parts(command);
    unsigned resource = args_resource(command, at.name);
    int token = args_token(command, at.token);
    uint64_t ttl_ms = args_ms(command, at.ttl);
    const struct answer *refusal = store_mood(server, false, true);

    if (!args_is(command, 3, "NX") || !args_is(command, 4, "PX"))
        world_fail("wire", "a SET that is not NX PX");
    if (refusal != NULL)
        return *refusal;
    if (store_key(server, resource) != NULL)
        return answer_nil;
    return store_put(server, resource, token, ttl_ms);
}

void store_drop_key(struct server *server, unsigned resource, int token)
{
    server->keys[resource].exists = false;
    flags_announce_free(server, flags_of(resource), false, token);
}

struct answer store_release(struct server *server, unsigned resource, struct key *key, int token)
{
    const struct answer *refusal;

    if (key == NULL || key->token != token)
        return answer_zero;
    refusal = store_mood(server, true, false);
    if (refusal != NULL)
        return *refusal;
    store_drop_key(server, resource, token);
    return answer_one;
}

struct answer store_extend(struct server *server, struct key *key, int token, uint64_t ttl_ms)
{
    uint64_t end_ms = store_wall_ms(server) + ttl_ms;
    const struct answer *refusal;

    if (key == NULL)
        return answer_zero;
    if (key->token != token)
        return revokes_refuse(key, &answer_zero);
    if (key->end_ms >= end_ms)
        return answer_one;
    refusal = store_mood(server, true, false);
    if (refusal != NULL)
        return *refusal;
    key->end_ms = end_ms;
    return answer_one;
}

struct answer store_type_error(const struct server *server)
{
    static const struct answer old_style = {
        REPLY_ERROR, 0,
        "ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): "
        "@user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value"};

    world_fault(FAULT_WRONG_TYPE);
    if (!server->old_style)
        return answer_wrong_type;
    world_fault(FAULT_OLD_STYLE);
    return old_style;
}

/* EVALSHA or EVAL, script, 1, name, token [, ttl] */
static struct answer do_script(struct server *server, const struct command *command)
{
    bool extends = args_parts(command).command == QUORUM_CMD_EXTEND;
    unsigned resource = args_resource(command, 3);
    int token = args_token(command, 4);
    struct key *key = store_key(server, resource);

    if (command->argc != (extends ? 6 : 5) || !args_is(command, 2, "1"))
        world_fail("wire", "a script with other arguments");
    if (key != NULL && key->wrong_type)
        return store_type_error(server);
    if (extends)
        return store_extend(server, key, token, args_ms(command, 5));
    return store_release(server, resource, key, token);
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
        if (command->argc != 3 || !args_is(command, 2, script_all[i].text))
            continue;
        server->has_script[i] = true;
        return (struct answer){REPLY_TEXT, 0, script_all[i].sha1};
    }
    world_fail("wire", "an unknown script");
}

/* Assume that other clients have loaded all scripts. */
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
    if (args_is(command, 2, "no-appendfsync-on-rewrite"))
        return (struct answer){REPLY_ARRAY, 0, "no-appendfsync-on-rewrite no"};
    if (!args_is(command, 2, "appendfsync"))
        world_fail("wire", "an unknown setting");
    return (struct answer){REPLY_ARRAY, 0,
                           server->keeps ? "appendfsync always" : "appendfsync everysec"};
}

/* ---- Commands by name ---- */

static store_answer *const scripts[SCRIPT_LEN] = {
    [SCRIPT_RELEASE] = do_script,
    [SCRIPT_EXTEND] = do_script,
    [SCRIPT_RAISE] = marker_raise,
    [SCRIPT_LOOK] = marker_query,
    [SCRIPT_WITNESS] = witness_execute,
    [SCRIPT_WAIT] = flags_query,
    [SCRIPT_ACQUIRE_MANY] = many_acquire,
    [SCRIPT_EXTEND_MANY] = many_extend,
    [SCRIPT_RELEASE_MANY] = many_release,
    [SCRIPT_COUNT_MANY] = marker_count_many,
    [SCRIPT_RAISE_MANY] = marker_raise,
    [SCRIPT_ACQUIRE_PERMIT] = permits_acquire,
    [SCRIPT_RELEASE_PERMIT] = do_script,
    [SCRIPT_WAIT_PERMIT] = permits_query,
    [SCRIPT_ACQUIRE_FAIR] = queue_acquire,
    [SCRIPT_EXTEND_FAIR] = queue_extend,
    [SCRIPT_RELEASE_FAIR] = queue_release,
    [SCRIPT_ACQUIRE_SHARED] = readers_execute,
    [SCRIPT_EXTEND_SHARED] = readers_execute,
    [SCRIPT_RELEASE_SHARED] = readers_execute,
    [SCRIPT_CLAIM] = sets_claim,
    [SCRIPT_FOUND] = sets_found,
    [SCRIPT_WITHDRAW] = sets_withdraw,
    [SCRIPT_PREPARE] = ballots_prepare,
    [SCRIPT_ACCEPT] = ballots_accept,
    [SCRIPT_WRITE] = ballots_write,
    [SCRIPT_COUNT_ON] = ballots_count_on,
};

struct answer store_execute(struct conn *conn, const struct command *command)
{
    static const struct answer loading = {REPLY_ERROR, 0,
                                          "LOADING Redis is loading the dataset in memory"};
    static const struct answer noscript = {REPLY_ERROR, 0,
                                           "NOSCRIPT No matching script. Please use EVAL."};
    struct server *server = conn->server;
    enum script_id script = args_script(command);

    server->obeys_late = conn->client == NULL;
    if (server->mood == MOOD_LOADING) {
        world_fault(FAULT_LOADING);
        return loading;
    }
    if (script != SCRIPT_LEN && args_is(command, 0, "EVALSHA") && !server->has_script[script]) {
        world_fault(FAULT_SCRIPT_FLUSH);
        return noscript;
    }
    if (script != SCRIPT_LEN && scripts[script] == NULL)
        world_fail("wire", "a script that no client runs");
    if (script != SCRIPT_LEN) {
        bool was_ready = server->marker.epoch != 0;
        struct answer answer = scripts[script](server, command);

        server->has_script[script] = true;
        if (!was_ready && server->marker.epoch != 0)
            witness_on_install(conn);
        return answer;
    }
    if (command->argc == 1 && args_is(command, 0, "TIME"))
        return do_time(server);
    if (args_is(command, 0, "SCRIPT"))
        return do_load(server, command);
    if (args_is(command, 0, "INFO"))
        return do_info(server);
    if (args_is(command, 0, "CONFIG"))
        return do_config(server, command);
    if (args_is(command, 0, "SUBSCRIBE") || args_is(command, 0, "UNSUBSCRIBE"))
        return flags_subscribe(conn, command);
    if (command->argc == 6 && args_is(command, 0, "SET"))
        return do_set(server, command);
    if (args_is(command, 0, "ZREM"))
        return queue_leave(server, command);
    if (args_is(command, 0, "HGET") || args_is(command, 0, "HMGET"))
        return marker_proof(server, command);
    if (args_is(command, 0, "HINCRBY"))
        return marker_count(server, command);
    world_fail("wire", "an unknown command: %.*s", (int)command->lens[0], command->argv[0]);
}
