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

static uint64_t hex_arg(const struct command *command, unsigned i)
{
    if (command->lens[i] != 16)
        world_fail("wire", "a number of %zu digits", command->lens[i]);
    return strtoull(command->argv[i], NULL, 16);
}

/* HGET, marker, "epoch"; or HMGET, marker, "epoch", "max" */
struct answer marker_proof(struct server *server, const struct command *command)
{
    const struct marker *marker = &server->marker;
    bool with_max = args_is(command, 0, "HMGET");
    const size_t room = 40;
    char *text = memory_take(room);

    if (command->argc != (with_max ? 4 : 3) || !args_is(command, 1, WIRE_MARKER) ||
        !args_is(command, 2, "epoch") || (with_max && !args_is(command, 3, "max")))
        world_fail("wire", "a read of something else");
    if (!marker->exists || marker->epoch == 0) {
        world_fault(FAULT_EPOCH);
        return with_max ? (struct answer){REPLY_ARRAY, 0, " "} : answer_nil;
    }
    (void)snprintf(text, room, with_max ? "%016llx %llu" : "%016llx",
                   (unsigned long long)marker->epoch, (unsigned long long)marker->max_ttl_ms);
    return (struct answer){with_max ? REPLY_ARRAY : REPLY_TEXT, 0, text};
}

/* The counter whose number is argument i. */
static uint64_t *counter_arg(struct server *server, const struct command *command, unsigned i)
{
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++) {
        char name[4], digits[8];

        (void)snprintf(name, sizeof name, "r%u", r);
        (void)snprintf(digits, sizeof digits, "%u", wire_counter(name, 2));
        if (args_is(command, i, digits))
            return &server->marker.counters[world.plan.one_counter ? 0 : r];
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

/* EVALSHA or EVAL, script, 2, name, marker, token, number, counter, epoch */
struct answer marker_raise(struct server *server, const struct command *command)
{
    static const struct answer no_epoch = {REPLY_INTEGER, -1, ""};
    static const struct answer ahead = {REPLY_ERROR, 0,
                                        "ERR the fencing counter is days ahead of the clock"};
    struct marker *marker = &server->marker;
    const struct key *key = store_key(server, args_resource(command, 3));
    uint64_t *counter = counter_arg(server, command, 7);
    uint64_t wanted = args_number(command, 6), count = *counter + 1;
    struct answer answer;
    const struct answer *refusal;

    if (command->argc != 9 || !args_is(command, 2, "2") || !args_is(command, 4, WIRE_MARKER))
        world_fail("wire", "a script with other arguments");
    if (!marker->exists || marker->epoch != hex_arg(command, 8) || marker->floor == 0) {
        world_fault(FAULT_EPOCH);
        return no_epoch;
    }
    if (key != NULL && key->wrong_type)
        return answer_wrong_type;
    if (key == NULL || key->token != args_token(command, 5))
        return answer_zero;
    if (wanted > marker->floor + count)
        count = wanted - marker->floor;
    if (marker->floor + count > marker->high &&
        marker->floor + count > store_wall_ms(server) * 1000 + WIRE_FENCE_AHEAD_US)
        return ahead;
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    world_fault(FAULT_RAISED);
    if (marker->floor + count > marker->high)
        marker->high =
            marker->floor + (count + WIRE_FENCE_STEP - 1) / WIRE_FENCE_STEP * WIRE_FENCE_STEP;
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

/* The number of the run in a run id of do_info(). */
static unsigned run_arg(const struct command *command, unsigned i)
{
    if (command->lens[i] != 40)
        world_fail("wire", "an id of %zu digits", command->lens[i]);
    return (unsigned)strtoul(command->argv[i] + 20, NULL, 16);
}

/* EVAL, script, 1, marker, id, keeps, max ttl, random, nonce or "", masters, floor */
struct answer marker_look(struct server *server, const struct command *command)
{
    const struct marker before = server->marker;
    struct marker after = before; /* If it was lost: only what was counted since. */
    bool keeps = !args_is(command, 5, "0");
    uint64_t max_ttl_ms = args_ms(command, 6), random = hex_arg(command, 7);
    uint64_t floor = args_number(command, 10);
    const struct answer *refusal;

    if (!args_is(command, 2, "1") || !args_is(command, 3, WIRE_MARKER))
        world_fail("wire", "a marker query with other arguments");
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
        after.floor = sim_max(floor, after.high);
        after.high = after.floor + WIRE_FENCE_STEP;
    } else if (after.epoch == 0 && after.nonce == 0) {
        after.nonce = random;
        after.since_ms = store_wall_ms(server);
        after.fresh = !before.exists;
        world_fault(FAULT_AMNESIA);
    }
    if (!args_is(command, 5, "2"))
        after.fresh = false;
    if (after.epoch != 0)
        after.nonce = 0;
    after.max_ttl_ms = sim_max(after.max_ttl_ms, max_ttl_ms);
    refusal = memcmp(&before, &after, sizeof before) != 0 ? store_mood(server, true, true) : NULL;
    if (refusal != NULL)
        return *refusal;
    server->marker = after;
    return describe(server, &after);
}
