/*
 * message.c - the identifiers of messages, and the words by which a reason is known.
 */
#include "redlock/base/message.h"

#include <assert.h>
#include <string.h>

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

/* The first row whose words are in a reason decides.  So what is certain stands before what may be
 * quoted in another text.  test-messages looks for reasons of the source that no row knows. */
static const struct {
    const char *words;
    enum msg message;
} rows[] = {
    {"cannot report how long other masters", MSG_NO_WITNESS},
    {"NOPERM", MSG_NO_RIGHT},
    {"The user executing the script can't", MSG_NO_RIGHT},
    {"ACL failure in script", MSG_NO_RIGHT},
    {"the ACL forbids", MSG_NO_RIGHT},
    {"an error of this host", MSG_SYSTEM},
    {"cannot start to resolve the name", MSG_SYSTEM},
    {"is in protected mode", MSG_PROTECTED_MODE},
    {"is busy with a script", MSG_BUSY},
    {"BUSY ", MSG_BUSY},
    {"NOREPLICAS", MSG_FEW_REPLICAS},
    {"AUTH: ", MSG_WRONG_PASSWORD},
    {"needs a password", MSG_WRONG_PASSWORD},
    {"NOAUTH", MSG_WRONG_PASSWORD},
    {"WRONGPASS", MSG_WRONG_PASSWORD},
    {"unknown command", MSG_NO_COMMAND},
    {"reports no run_id", MSG_NO_COMMAND},
    {"does not answer", MSG_NO_ANSWER}, /* Also a TLS handshake. */
    {"before it answered", MSG_NO_CONNECTION},
    {"certificate is refused", MSG_TLS_CERTIFICATE},
    {"NOT VERIFIED", MSG_TLS_UNVERIFIED},
    {"TLS", MSG_TLS_FAILED},
    {"is a replica", MSG_REPLICA},
    {"READONLY", MSG_REPLICA},
    {"is a node of a Redis Cluster", MSG_CLUSTER},
    {"is a Sentinel", MSG_SENTINEL},
    {"MOVED ", MSG_CLUSTER},
    {"CLUSTERDOWN", MSG_CLUSTER},
    {"still loading", MSG_LOADING},
    {"LOADING ", MSG_LOADING},
    {"the same server as", MSG_SAME_SERVER},
    {"has the same epoch", MSG_SAME_EPOCH},
    {"its set is closed", MSG_SET_CLOSED},
    {"too few members that answer remember the set", MSG_SET_FORGOTTEN},
    {"fencing counter", MSG_COUNTERS},
    {"warming up", MSG_WARMING},
    {"the restart guard has not checked it yet", MSG_NO_ANSWER}, /* It was asked a moment ago. */
    {"lost its data", MSG_WARMING},
    {"is in no set", MSG_NO_SET},
    {"are no set yet", MSG_NO_SET},
    {"of the set of", MSG_WRONG_SET},
    {"is claimed by a list of", MSG_WRONG_SET},
    {"belongs to another set", MSG_WRONG_SET},
    {"is no member", MSG_WRONG_SET},
    {"was removed from the set", MSG_WRONG_SET},
    {"does not say that it is the member", MSG_WRONG_SET},
    {"its epoch, or its set, has just changed", MSG_SET_CHANGED},
    {": the field ", MSG_BAD_MARKER},
    {"its wall clock", MSG_CLOCK},
    {"maxmemory-policy is", MSG_EVICTION},
    {"appendonly is no", MSG_PERSISTENCE},
    {"OOM ", MSG_FULL},
    {"MISCONF", MSG_FULL},
    {"WRONGTYPE", MSG_FOREIGN_KEY},
    {"its queue of commands is full", MSG_OVERLOADED},
    {"its queue is full", MSG_QUEUE_FULL},
    {"does not store", MSG_NOT_STORED},
    {" was taken", MSG_HELD},
    {"it writes, or waits until it may write", MSG_HELD},
    {"garbage", MSG_NOT_REDIS},
    {"Protocol error", MSG_NOT_REDIS},
    {"not a Redis", MSG_NOT_REDIS},
    {"a reply without a request", MSG_NOT_REDIS},
    {"takes no commands", MSG_NO_ANSWER},
    {"has not answered yet", MSG_NO_ANSWER},
    {"no answer", MSG_NO_ANSWER},
    {"resolv", MSG_NO_ADDRESS},
    {"the name has no address", MSG_NO_ADDRESS},
    {"the address is neither IPv4 nor IPv6", MSG_NO_ADDRESS},
    {"out of memory", MSG_NO_MEMORY},
    {"epoll_ctl fails", MSG_SYSTEM},
    {"timeout while ", MSG_NO_CONNECTION},
    {"not connected yet", MSG_NO_CONNECTION},
    {"there is no link to it", MSG_NO_CONNECTION},
    {"connection", MSG_NO_CONNECTION},
    {"Connection", MSG_NO_CONNECTION}, /* As the texts below it, of strerror(). */
    {"No route to host", MSG_NO_CONNECTION},
    {"is unreachable", MSG_NO_CONNECTION},
    {"No such file or directory", MSG_NO_CONNECTION},
    {"Broken pipe", MSG_NO_CONNECTION},
    {"no validity left", MSG_TOO_LATE}, /* As a whole message of the library, in `bench`. */
    {"too few masters", MSG_NO_MAJORITY},
};

enum msg message_of_reason(const char *reason)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(reason, rows[i].words) != NULL)
            return rows[i].message;
    return MSG_MASTER_ERROR;
}
