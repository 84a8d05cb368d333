/*
 * granted.h - the message by which a master says that it has passed a lock on; pure.
 *
 * redlock/lua/parts/pass_on.lua writes it: "granted WAITER SENT STATE TOKEN".  It is the only
 * message that is a vote, so it has to show what a vote shows: the token that is waited with, the
 * data of the master, and the time from which the lease counts.
 */
#ifndef REDLOCK_GRANTED_H
#define REDLOCK_GRANTED_H

#include <stdbool.h>

#include "drift/drift.h"
#include "redlock/base/token.h"
#include "redlock/wire/wire.h"

struct granted {
    drift_time sent; /* The client's clock before the heartbeat was sent that is granted. */
    char waiter[TOKEN_LEN + 1];
    char state[WIRE_STATE_MAX + 1]; /* The field epoch of the marker at the grant, or "-". */
    const char *token;              /* The rest of the text. */
};

/* Returns false if the text is none. */
bool granted_parse(const char *text, struct granted *ret_granted);

/* True if the vote is for this token, the master had its data, and the time can be true.  state:
 * the field epoch as the client knows it; NULL: without the restart guard. */
bool granted_is_good(const struct granted *granted, const char *token, const char *state,
                     drift_time now);

#endif /* REDLOCK_GRANTED_H */
