/*
 * revokes.c - locks that an operator revoked: what redlock/lua/revoke.lua leaves, and what an
 * extension answers then (redlock/lua/parts/revoked.lua).
 *
 * The operator is a fault (nemesis.c).  It reaches most masters, and a later one perhaps the rest.
 *
 * What must always be true (the property "revoked", oracle.c): when a majority is revoked, no
 * extension that is sent later makes the lease longer, also when the texts have ended.  The key
 * keeps its end, so that the properties "deadline" and "exclusion" hold for the holder as before.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <string.h>

static const char text[] = WIRE_REVOKED "nemesis";

void server_revoke(struct server *server, unsigned resource)
{
    struct key *key = store_key(server, resource);

    if (key == NULL)
        return;
    world_fault(FAULT_REVOKED);
    world_note("revoke: master, resource", server->number, resource, 0);
    key->was = key->token;
    key->was_readers = key->readers;
    key->token = oracle_token(text, sizeof text - 1);
    key->readers = 0;
    key->wrong_type = false;
    key->revoked_at = world.now;
    oracle_on_revoked();
}

struct answer revokes_refuse(const struct key *key, const struct answer *otherwise)
{
    const char *stored = oracle_token_of(key->token)->text;

    if (strncmp(stored, WIRE_REVOKED, WIRE_REVOKED_LEN) != 0)
        return *otherwise;
    world_fault(FAULT_REVOKE_HEARD);
    return (struct answer){REPLY_TEXT, 0, stored};
}

bool revokes_was(const struct key *key, int token)
{
    if (key->revoked_at == 0 || token < 0)
        return false;
    for (unsigned i = 0; i < key->was_readers; i++)
        if (key->reader[i].token == token)
            return true;
    return key->was == token;
}
