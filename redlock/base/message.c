/*
 * message.c - the identifiers of messages.
 */
#include "redlock/base/message.h"

#include <assert.h>

#include "redlock/redlock.h"

const char *message_id(enum msg message)
{
#define MESSAGE_ID(name, id) [MSG_##name] = id,
    static const char *const ids[MESSAGES_LEN] = {[MSG_NONE] = "", MESSAGES(MESSAGE_ID)};
#undef MESSAGE_ID

    assert(message < MESSAGES_LEN);
    return ids[message];
}

enum msg message_of_status(int status)
{
    switch (status) {
    case REDLOCK_CONTENDED:
        return MSG_HELD;
    case REDLOCK_UNREACHABLE:
        return MSG_NO_MAJORITY;
    case REDLOCK_TOO_LATE:
        return MSG_TOO_LATE;
    case REDLOCK_LOST:
        return MSG_LOST;
    case REDLOCK_INTERRUPTED:
        return MSG_INTERRUPTED;
    case REDLOCK_NOT_READY:
        return MSG_WARMING;
    case REDLOCK_E_INVAL:
        return MSG_WRONG_ARGUMENT;
    case REDLOCK_E_NOMEM:
        return MSG_NO_MEMORY;
    case REDLOCK_E_STATE:
        return MSG_WRONG_STATE;
    case REDLOCK_E_SYSTEM:
        return MSG_SYSTEM;
    case REDLOCK_E_FORBIDDEN:
        return MSG_NO_RIGHT;
    case REDLOCK_E_WRONG_SET:
        return MSG_WRONG_SET;
    default:
        return MSG_NONE;
    }
}
