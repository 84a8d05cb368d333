/*
 * marker.c - a master's marker, and the commands on it: the epoch for the restart guard, the
 * counters for fencing tokens.
 */
#include "store.h"
#include "world.h"

#include "redlock/wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HGET, marker, "epoch"; or HMGET, marker, "epoch", "max" */
struct answer marker_proof(struct server *server, const struct command *command)
{
    const struct marker *marker = &server->marker;
    bool with_max = args_is(command, 0, "HMGET");
    const size_t room = SETS_STATE_ROOM + 16;
    char *text = memory_take(room), state[SETS_STATE_ROOM];

    if (command->argc != (with_max ? 4 : 3) || !args_is(command, 1, WIRE_MARKER) ||
        !args_is(command, 2, "epoch") || (with_max && !args_is(command, 3, "max")))
        world_fail("wire", "a read of something else");
    if (!marker->exists || marker->epoch == 0) {
        world_fault(FAULT_EPOCH);
        return with_max ? (struct answer){REPLY_ARRAY, 0, " "} : answer_nil;
    }
    if (with_max)
        (void)snprintf(text, room, "%s %llu", sets_state(marker, state),
                       (unsigned long long)marker->max_ttl_ms);
    else
        (void)sets_state(marker, text);
    return (struct answer){with_max ? REPLY_ARRAY : REPLY_TEXT, 0, text};
}

static uint64_t *counter_of(struct server *server, unsigned resource)
{
    return &server->marker.counters[world.plan.one_counter ? 0 : resource];
}

/* The counter whose number is argument i. */
static uint64_t *counter_arg(struct server *server, const struct command *command, unsigned i)
{
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++) {
        const char *prefix = world.plan.permits ? SEMAPHORE ":" : "r";
        char name[sizeof SEMAPHORE + 12], digits[8];

        (void)snprintf(name, sizeof name, "%s%u", prefix, r);
        (void)snprintf(digits, sizeof digits, "%u", wire_counter(name, strlen(name)));
        if (args_is(command, i, digits))
            return counter_of(server, r);
    }
    world_fail("wire", "a counter that belongs to no name");
}

/* The marker is saved now and then, so that a crash brings back old counters. */
static struct answer count_to(struct server *server, uint64_t *counter, uint64_t count)
{
    *counter = count;
    if (count % 16 == 0)
        server->saved = server->marker;
    return (struct answer){REPLY_INTEGER, (long long)count, ""};
}

/* HINCRBY, marker, counter, 1 */
struct answer marker_count(struct server *server, const struct command *command)
{
    const struct answer *refusal = store_mood(server, false, true);
    uint64_t *counter = counter_arg(server, command, 2);

    if (command->argc != 4 || !args_is(command, 1, WIRE_MARKER) || !args_is(command, 3, "1"))
        world_fail("wire", "a count with other arguments");
    return refusal != NULL ? *refusal : count_to(server, counter, *counter + 1);
}

/* The greatest of so many counters. */
static uint64_t greatest(struct server *server, const struct command *command, unsigned first,
                         unsigned len)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < len; i++)
        most = sim_max(most, *counter_arg(server, command, first + i));
    return most;
}

static struct answer count_all_to(struct server *server, const struct command *command,
                                  unsigned first, unsigned len, uint64_t count)
{
    struct answer answer = answer_zero;

    for (unsigned i = 0; i < len; i++)
        answer = count_to(server, counter_arg(server, command, first + i), count);
    return answer;
}

/* EVAL, script, 1, marker, counters */
struct answer marker_count_many(struct server *server, const struct command *command)
{
    const struct answer *refusal = store_mood(server, true, true);
    unsigned len = command->argc - 4;

    if (command->argc < 6 || !args_is(command, 2, "1") || !args_is(command, 3, WIRE_MARKER))
        world_fail("wire", "a count with other arguments");
    if (refusal != NULL)
        return *refusal;
    return count_all_to(server, command, 4, len, greatest(server, command, 4, len) + 1);
}

/* All keys hold the token of the command.  Else: the answer. */
static const struct answer *find_obstacle(struct server *server, const struct command *command,
                                          const struct parts *at)
{
    for (unsigned i = 0; i < at->names; i++) {
        const struct key *key = store_key(server, args_resource(command, at->name + i));

        if (key != NULL && key->wrong_type)
            return &answer_wrong_type;
        if (key == NULL || key->token != args_token(command, at->token))
            return &answer_zero;
    }
    return NULL;
}

static bool is_days_ahead(const struct server *server, uint64_t count)
{
    const struct marker *marker = &server->marker;

    return marker->floor + count > marker->high &&
           marker->floor + count > store_wall_ms(server) * 1000 + WIRE_FENCE_AHEAD_US;
}

/* A counter is to reach this count. */
static void move_mark(struct marker *marker, uint64_t count)
{
    if (marker->floor + count > marker->high)
        marker->high =
            marker->floor + (count + WIRE_FENCE_STEP - 1) / WIRE_FENCE_STEP * WIRE_FENCE_STEP;
}

uint64_t marker_raise_to(struct server *server, unsigned resource, uint64_t least)
{
    uint64_t floor = server->marker.floor, *counter = counter_of(server, resource);
    uint64_t count = sim_max(*counter + 1, least > floor ? least - floor : 0);

    if (is_days_ahead(server, count))
        return 0;
    move_mark(&server->marker, count);
    (void)count_to(server, counter, count);
    return floor + count;
}

/* EVALSHA or EVAL, script, 2, name, marker, token, number, counter, field epoch.  For several names
 * the counters come last. */
struct answer marker_raise(struct server *server, const struct command *command)
{
    static const struct answer no_epoch = {REPLY_INTEGER, -1, ""};
    static const struct answer ahead = {REPLY_ERROR, 0,
                                        "ERR the fencing counter is days ahead of the clock"};
    const struct parts at = args_parts(command);
    bool is_many = args_script(command) == SCRIPT_RAISE_MANY;
    unsigned first = at.token + (is_many ? 3 : 2), epoch = at.token + (is_many ? 2 : 3);
    struct marker *marker = &server->marker;
    uint64_t wanted = args_number(command, at.token + 1);
    uint64_t count = greatest(server, command, first, at.names) + 1;
    struct answer answer;
    const struct answer *refusal;
    char state[SETS_STATE_ROOM];

    if (command->argc != at.token + 3 + at.names || !args_is(command, at.token - 1, WIRE_MARKER))
        world_fail("wire", "a script with other arguments");
    if (marker->epoch == 0 || !args_is(command, epoch, sets_state(marker, state)) ||
        marker->floor == 0) {
        world_fault(FAULT_EPOCH);
        return no_epoch;
    }
    refusal = find_obstacle(server, command, &at);
    if (refusal != NULL)
        return *refusal;
    if (wanted > marker->floor + count)
        count = wanted - marker->floor;
    if (is_days_ahead(server, count))
        return ahead;
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    world_fault(FAULT_RAISED);
    move_mark(marker, count);
    answer = count_all_to(server, command, first, at.names, count);
    answer.integer += (long long)marker->floor;
    return answer;
}

/* "-", or "SET VER NAME", and " CONFIG" behind it if the client does not know it. */
static void describe_set(const struct marker *marker, const struct command *command, char *text,
                         size_t room)
{
    bool is_known = command->lens[9] > 0 && args_hex(command, 9) == marker->set &&
                    marker->ver <= args_number(command, 11);

    if (marker->set == 0)
        (void)snprintf(text, room, "-");
    else
        (void)snprintf(text, room, "%016llx %llu %s%s%s", (unsigned long long)marker->set,
                       (unsigned long long)marker->ver, marker->name != NULL ? marker->name : "-",
                       is_known ? "" : " ", is_known ? "" : marker->config);
}

/* A newline, "BALLOT", and " BALLOT CONFIG" behind it if something was accepted. */
static void describe_ballots(const struct marker *marker, char *text, size_t room)
{
    int len;

    if (marker->epoch == 0 || marker->ballot == 0)
        return;
    len = snprintf(text, room, "\n%016llx", (unsigned long long)marker->ballot);
    if (marker->accepted != NULL)
        (void)snprintf(text + len, room - (size_t)len, " %016llx %s",
                       (unsigned long long)marker->accepted_in, marker->accepted);
}

static struct answer describe(const struct server *server, const struct command *command)
{
    const struct marker *marker = &server->marker;
    const size_t room = 700 + (marker->set != 0 ? strlen(marker->config) : 0) +
                        (marker->accepted != NULL ? strlen(marker->accepted) : 0);
    char *text = memory_take(room), state[SETS_STATE_ROOM];
    unsigned long long age_ms = store_wall_ms(server) - marker->since_ms;
    unsigned long long high = marker->high, now_us = store_wall_ms(server) * 1000;
    int len;

    if (marker->epoch != 0)
        len = snprintf(text, room, "ready %s %llu %llu %llu %llu ", sets_state(marker, state),
                       (unsigned long long)marker->max_ttl_ms, (unsigned long long)marker->floor,
                       high, now_us);
    else
        len = snprintf(text, room, "warming %016llx %llu %d %llu %llu %llu ",
                       (unsigned long long)marker->nonce, (unsigned long long)marker->max_ttl_ms,
                       marker->fresh, age_ms, high, now_us);
    describe_set(marker, command, text + len, room - (size_t)len);
    len = (int)strlen(text);
    describe_ballots(marker, text + len, room - (size_t)len);
    return (struct answer){REPLY_TEXT, 0, text};
}

/* The number of the run in a run id of do_info(). */
static unsigned run_arg(const struct command *command, unsigned i)
{
    if (command->lens[i] != 40)
        world_fail("wire", "an id of %zu digits", command->lens[i]);
    return (unsigned)strtoul(command->argv[i] + 20, NULL, 16);
}

static void write_set(struct marker *marker, const struct command *command)
{
    marker->set = args_hex(command, 9);
    marker->ver = args_number(command, 11);
    marker->told_floor = 0;
    marker->config = sets_text(command->argv[12], command->lens[12]);
    marker->name = command->lens[13] > 0 ? sets_text(command->argv[13], command->lens[13]) : NULL;
}

/* A member that is in no set is told its own, unless another list has claimed it. */
static void tell_set(struct marker *marker, const struct command *command)
{
    if (marker->set != 0 || marker->claim != 0 || command->lens[13] == 0)
        return;
    write_set(marker, command);
    ballots_drop(marker);
}

/* A member that was away while its set changed gets the newest configuration. */
static void tell_version(struct marker *marker, const struct command *command)
{
    if (marker->epoch == 0 || marker->set == 0 || command->lens[9] == 0 ||
        marker->set != args_hex(command, 9) || marker->name == NULL ||
        !args_is(command, 13, marker->name) || marker->ver >= args_number(command, 11))
        return;
    write_set(marker, command);
    ballots_drop(marker);
}

/* The client obeys the set of the master, or one of both belongs to none. */
static bool is_ours(const struct marker *marker, const struct command *command)
{
    if (command->lens[9] == 0)
        return marker->set == 0 || marker->ver == 1;
    return marker->set == 0 || marker->set == args_hex(command, 9);
}

/* What other members know of ballots (redlock/core/recall.c). */
static void take_ballots(struct marker *marker, const struct command *command)
{
    ballots_drop(marker);
    marker->ballot = command->lens[14] > 0 ? args_hex(command, 14) : 0;
    if (command->lens[15] == 0)
        return;
    marker->accepted_in = strtoull(command->argv[15], NULL, 16);
    marker->accepted = sets_text(command->argv[15] + 17, command->lens[15] - 17);
}

/* The nonce becomes an epoch, or a nonce begins. */
static void renew(struct server *server, struct marker *marker, const struct command *command)
{
    if (marker->epoch == 0 && marker->nonce != 0 && command->lens[8] > 0 &&
        args_hex(command, 8) == marker->nonce && is_ours(marker, command)) {
        if (command->lens[9] > 0 && (marker->set != 0 || command->lens[13] > 0)) {
            write_set(marker, command);
            marker->claim = 0;
            marker->claim_list = NULL;
        }
        marker->epoch = args_hex(command, 7);
        marker->told_floor = 0;
        take_ballots(marker, command);
        memset(marker->counters, 0, sizeof marker->counters);
        marker->floor = sim_max(args_number(command, 10), marker->high);
        marker->high = marker->floor + WIRE_FENCE_STEP;
    } else if (marker->epoch == 0 && marker->nonce == 0) {
        marker->nonce = args_hex(command, 7);
        marker->warms_since = world.now;
        marker->since_ms = store_wall_ms(server);
        marker->fresh = !marker->exists;
        world_fault(FAULT_AMNESIA);
    }
    if (!args_is(command, 5, "2"))
        marker->fresh = false;
    if (marker->epoch != 0)
        marker->nonce = 0;
}

/* EVAL, script, 1, marker, id, keeps, max ttl, random, nonce or "", set or "", floor, version,
 * configuration or "", name or "", ballot or "", accepted or "" */
struct answer marker_query(struct server *server, const struct command *command)
{
    const struct marker before = server->marker;
    struct marker after = before; /* If it was lost: only what was written since. */
    unsigned run = run_arg(command, 4);
    const struct answer *refusal;
    bool grows;

    if (command->argc != 16 || !args_is(command, 2, "1") || !args_is(command, 3, WIRE_MARKER))
        world_fail("wire", "a marker query with other arguments");
    if ((!before.exists || before.run != run) && args_is(command, 5, "0")) {
        after.epoch = after.nonce = after.claim = 0;
        after.claim_list = NULL;
        ballots_drop(&after);
    }
    if (after.floor == 0)
        after.epoch = 0;
    tell_set(&after, command);
    tell_version(&after, command);
    renew(server, &after, command);
    after.exists = true;
    after.run = run;
    after.max_ttl_ms = sim_max(after.max_ttl_ms, args_number(command, 6)); /* 0: a passive guard. */
    /* Other changes begin with HDEL.  A script that has written once may go on without memory. */
    grows = before.set != after.set || before.ver != after.ver ||
            (after.epoch != 0 && after.epoch != before.epoch);
    refusal = memcmp(&before, &after, sizeof before) != 0 ? store_mood(server, true, grows) : NULL;
    if (refusal != NULL)
        return *refusal;
    server->marker = after;
    if (after.epoch != 0 && after.epoch != before.epoch)
        stored_on_epoch(server, args_number(command, 11));
    if (before.set != after.set) {
        world_outcome(OUTCOME_SET_TOLD);
        world_say("    master %u is told its set, %llx", server->number,
                  (unsigned long long)after.set);
        moves_on_version(server);
        sets_on_member();
    } else if (before.ver != after.ver && before.epoch == after.epoch) {
        world_outcome(OUTCOME_SET_HELPED);
        world_say("    master %u is told version %llu", server->number,
                  (unsigned long long)after.ver);
        moves_on_version(server);
    }
    stored_on_version(server);
    return describe(server, command);
}
