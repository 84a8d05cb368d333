/*
 * many.c - the scripts for several names.
 */
#include "store.h"

struct answer many_acquire(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    const struct answer *refusal;

    for (unsigned i = 0; i < at.names; i++)
        if (store_key(server, args_resource(command, at.name + i)) != NULL)
            return (struct answer){REPLY_INTEGER, i + 1, ""};
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    for (unsigned i = 0; i < at.names; i++)
        (void)store_put(server, args_resource(command, at.name + i), args_token(command, at.token),
                        args_ms(command, at.ttl));
    return answer_ok;
}

struct answer many_extend(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    int token = args_token(command, at.token);

    for (unsigned i = 0; i < at.names; i++) {
        const struct key *key = store_key(server, args_resource(command, at.name + i));

        if (key == NULL || key->wrong_type)
            return answer_zero;
        if (key->token != token)
            return revokes_refuse(key, &answer_zero);
    }
    for (unsigned i = 0; i < at.names; i++) {
        struct key *key = store_key(server, args_resource(command, at.name + i));
        struct answer answer = store_extend(server, key, token, args_ms(command, at.ttl));

        if (answer.type == REPLY_ERROR)
            return answer;
    }
    return answer_one;
}

struct answer many_release(struct server *server, const struct command *command)
{
    const struct parts at = args_parts(command);
    int token = args_token(command, at.token);
    unsigned released = 0;

    for (unsigned i = 0; i < at.names; i++) {
        unsigned resource = args_resource(command, at.name + i);
        struct key *key = store_key(server, resource);
        struct answer answer;

        if (key != NULL && key->wrong_type)
            continue;
        answer = store_release(server, resource, key, token);
        if (answer.type == REPLY_ERROR)
            return answer;
        released += answer.integer == 1;
    }
    return released == at.names ? answer_one : answer_zero;
}
