/*
 * readers.c - the readers of a shared lock, as a server keeps them, and the scripts on them.
 *
 * A key of readers is a sorted set; a command that takes it for a string is answered with
 * WRONGTYPE.  A server keeps their ends on a scale of the key's own (acquire_shared.lua), and the
 * model on the server's clock.  Only the scripts move the end of the key, so both are the same.
 */
#include "store.h"

/* A reader ends as a key does (store.c). */
static uint64_t gone_at_ms(const struct server *server, const struct reader *reader)
{
    return reader->end_ms + !server->ends_early;
}

/* A reader whose time is up stays in the set, but does not count. */
static bool is_one(const struct server *server, const struct reader *reader)
{
    return store_wall_ms(server) < gone_at_ms(server, reader);
}

static struct reader *find(struct key *key, int token)
{
    for (unsigned i = 0; i < key->readers; i++)
        if (key->reader[i].token == token)
            return &key->reader[i];
    return NULL;
}

struct reader *store_reader(const struct server *server, struct key *key, int token)
{
    struct reader *reader = find(key, token);

    return reader != NULL && is_one(server, reader) ? reader : NULL;
}

sim_time store_reader_end(const struct server *server, const struct reader *reader)
{
    return clock_when(&server->clock, gone_at_ms(server, reader) * DRIFT_MS);
}

/* Remove readers whose time is up, and the key with the last of them. */
static void purge(const struct server *server, struct key *key)
{
    unsigned left = 0;

    for (unsigned i = 0; i < key->readers; i++)
        if (is_one(server, &key->reader[i]))
            key->reader[left++] = key->reader[i];
    key->readers = left;
    if (left == 0)
        key->exists = false;
}

static uint64_t last_end_ms(const struct key *key)
{
    uint64_t last_ms = 0;

    for (unsigned i = 0; i < key->readers; i++)
        last_ms = sim_max(last_ms, key->reader[i].end_ms);
    return last_ms;
}

static struct answer acquire(struct server *server, unsigned resource, int token, uint64_t ttl_ms)
{
    struct key *key = &server->keys[resource];
    const struct answer *refusal;
    uint64_t own_ms = store_wall_ms(server) + ttl_ms;
    struct reader *reader;

    if (store_key(server, resource) != NULL && key->readers == 0)
        return answer_nil;
    if (flags_off_ms(server, resource) > store_wall_ms(server)) {
        world_outcome(OUTCOME_HELD_OFF);
        return answer_nil;
    }
    refusal = store_mood(server, true, !key->exists);
    if (refusal != NULL)
        return *refusal;
    if (key->exists)
        purge(server, key);
    if (!key->exists)
        *key = (struct key){.exists = true, .wrong_type = true, .token = -1};
    reader = store_reader(server, key, token);
    if (reader == NULL && key->readers == SIM_READERS_MAX)
        world_fail("simulator", "too many readers");
    if (reader == NULL) {
        reader = &key->reader[key->readers++];
        reader->end_ms = 0;
    }
    *reader = (struct reader){token, sim_max(own_ms, reader->end_ms)};
    key->end_ms = sim_max(key->end_ms, own_ms);
    return answer_ok;
}

static struct answer extend(struct server *server, struct key *key, struct reader *reader,
                            uint64_t ttl_ms)
{
    uint64_t end_ms = store_wall_ms(server) + ttl_ms;
    const struct answer *refusal;

    if (reader->end_ms >= end_ms)
        return answer_one;
    refusal = store_mood(server, true, false);
    if (refusal != NULL)
        return *refusal;
    key->end_ms = sim_max(end_ms, last_end_ms(key));
    reader->end_ms = end_ms;
    return answer_one;
}

/* The key ends with the last reader that stays.  PEXPIRE of 0 would delete it, so it lasts until
 * the next millisecond, and all readers with it. */
static void end_with_last(const struct server *server, struct key *key)
{
    uint64_t last_ms = last_end_ms(key);

    key->end_ms = sim_max(last_ms, store_wall_ms(server) + 1);
    for (unsigned i = 0; i < key->readers; i++)
        key->reader[i].end_ms += key->end_ms - last_ms;
}

static struct answer release(struct server *server, unsigned resource, struct key *key,
                             struct reader *reader)
{
    const struct answer *refusal = store_mood(server, true, false);
    const struct reader gone = *reader;

    if (refusal != NULL)
        return *refusal;
    *reader = key->reader[--key->readers];
    if (gone.end_ms <= last_end_ms(key))
        return is_one(server, &gone) ? answer_one : answer_zero;
    if (last_end_ms(key) >= store_wall_ms(server)) {
        end_with_last(server, key);
        return answer_one;
    }
    key->exists = false;
    flags_announce_free(server, resource, flags_off_ms(server, resource) > store_wall_ms(server),
                        gone.token);
    return answer_one;
}

/* EVALSHA or EVAL, script, 1, name, token [, ttl] */
struct answer readers_execute(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    unsigned resource = args_resource(command, at.name);
    int token = args_token(command, at.token);
    struct key *key = store_key(server, resource);
    struct reader *reader;

    if (at.command == QUORUM_CMD_SET)
        return acquire(server, resource, token, args_number(command, at.ttl));
    if (key == NULL)
        return answer_zero;
    if (key->readers == 0 && at.command == QUORUM_CMD_EXTEND && !key->wrong_type) {
        const struct answer wrong_type = store_type_error(server);

        return revokes_refuse(key, &wrong_type);
    }
    if (key->readers == 0)
        return store_type_error(server);
    reader = find(key, token);
    if (reader == NULL)
        return answer_zero;
    if (at.command == QUORUM_CMD_RELEASE)
        return release(server, resource, key, reader);
    if (!is_one(server, reader))
        return answer_zero;
    return extend(server, key, reader, args_number(command, at.ttl));
}
