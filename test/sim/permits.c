/*
 * permits.c - the scripts of a semaphore.
 */
#include "store.h"

/* EVALSHA or EVAL, script, 1, slot, token, ttl, number of the slot, number of slots */
struct answer permits_acquire(struct server *server, const struct command *command)
{
    unsigned slot = args_resource(command, 3), slots = (unsigned)args_number(command, 7);
    const struct answer *refusal = store_mood(server, true, true);

    if (command->argc != 8 || !args_is(command, 2, "1") || args_number(command, 6) != slot ||
        slot >= slots || slots > SIM_RESOURCES_MAX)
        world_fail("wire", "a script with other arguments");
    if (refusal != NULL)
        return *refusal;
    for (unsigned i = 1; store_key(server, slot) != NULL && i < slots; i++)
        if (store_key(server, (slot + i) % slots) == NULL)
            return (struct answer){REPLY_INTEGER, (slot + i) % slots + 1, ""};
    if (store_key(server, slot) != NULL)
        return answer_zero;
    return store_put(server, slot, args_token(command, 4), args_ms(command, 5));
}

/* EVAL, script, 2, semaphore, flag, ttl, slots, what to announce [, groups] */
struct answer permits_query(struct server *server, const struct command *command)
{
    uint64_t left_ms = UINT64_MAX;

    if (!flags_is_query(command) || !args_is(command, 2, "2") || !args_is(command, 3, SEMAPHORE) ||
        args_number(command, 6) > SIM_RESOURCES_MAX)
        world_fail("wire", "a query with other arguments");
    for (unsigned slot = 0; slot < args_number(command, 6); slot++) {
        const struct key *key = store_key(server, slot);

        if (key == NULL) {
            (void)flags_leave(server, command, 0, 1);
            return (struct answer){REPLY_INTEGER, -2, ""};
        }
        left_ms = sim_min(left_ms, flags_left_ms(server, key));
    }
    return flags_leave(server, command, left_ms, 1);
}
