/*
 * message.c - the identifiers of messages.
 */
#include "redlock/base/message.h"

#include <assert.h>

const char *message_id(enum msg message)
{
#define MESSAGE_ID(name, id) [MSG_##name] = id,
    static const char *const ids[MESSAGES_LEN] = {[MSG_NONE] = "", MESSAGES(MESSAGE_ID)};
#undef MESSAGE_ID

    assert(message < MESSAGES_LEN);
    return ids[message];
}
