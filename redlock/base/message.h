/*
 * message.h - every kind of message has an identifier; pure.
 *
 * MESSAGES is the one table of them: a name for C, and the identifier.  The command ends a line of
 * standard error with the identifiers, as in "[no-majority, no-connection]", and so do lines of the
 * log.  docs/troubleshooting.md says of each what happened and what to do, which
 * `redlock help IDENTIFIER` prints (cli/embed-pages).  test/tree/test-messages compares both.
 *
 * An identifier is never changed or given another meaning: users search for it.
 */
#ifndef REDLOCK_MESSAGE_H
#define REDLOCK_MESSAGE_H

/* In the order of docs/troubleshooting.md: a call's end, masters, sets, `run`, the command itself.
 */
#define MESSAGES(X)                           \
    X(HELD, "held")                           \
    X(NO_MAJORITY, "no-majority")             \
    X(WARMING, "warming")                     \
    X(NO_RIGHT, "no-right")                   \
    X(WRONG_SET, "wrong-set")                 \
    X(TOO_LATE, "too-late")                   \
    X(LOST, "lost")                           \
    X(REVOKED, "revoked")                     \
    X(INTERRUPTED, "interrupted")             \
    X(WRONG_ARGUMENT, "wrong-argument")       \
    X(BLANK_IN_NAME, "blank-in-name")         \
    X(WRONG_STATE, "wrong-state")             \
    X(NO_MEMORY, "no-memory")                 \
    X(SYSTEM, "system")                       \
    X(FOREIGN_KEY, "foreign-key")             \
    X(QUEUE_FULL, "queue-full")               \
    X(OVERLOADED, "overloaded")               \
    X(NO_CONNECTION, "no-connection")         \
    X(NO_ANSWER, "no-answer")                 \
    X(NO_ADDRESS, "no-address")               \
    X(TLS_CERTIFICATE, "tls-certificate")     \
    X(CERTIFICATE_ENDS, "certificate-ends")   \
    X(TLS_FAILED, "tls-failed")               \
    X(TLS_UNVERIFIED, "tls-unverified")       \
    X(WRONG_PASSWORD, "wrong-password")       \
    X(PASSWORD_NOT_SENT, "password-not-sent") \
    X(NO_COMMAND, "no-command")               \
    X(NO_DATABASE, "no-database")             \
    X(REDIS_VERSION, "redis-version")         \
    X(NOT_KNOWN, "not-known")                 \
    X(SLOW, "slow")                           \
    X(KNOWN_PASSWORD, "known-password")       \
    X(WAS_REPLICA, "was-replica")             \
    X(LATER_VERSION, "later-version")         \
    X(MAX_TTL, "max-ttl")                     \
    X(TOO_MANY, "too-many")                   \
    X(REPLICA, "replica")                     \
    X(CLUSTER, "cluster")                     \
    X(SENTINEL, "sentinel")                   \
    X(LOADING, "loading")                     \
    X(NOT_REDIS, "not-redis")                 \
    X(MASTER_ERROR, "master-error")           \
    X(BUSY, "busy")                           \
    X(PROTECTED_MODE, "protected-mode")       \
    X(FEW_REPLICAS, "few-replicas")           \
    X(FULL, "full")                           \
    X(EVICTION, "eviction")                   \
    X(PERSISTENCE, "persistence")             \
    X(FEW_MASTERS, "few-masters")             \
    X(SAME_SERVER, "same-server")             \
    X(SAME_EPOCH, "same-epoch")               \
    X(COUNTERS, "counters")                   \
    X(CLOCK, "clock")                         \
    X(NOT_STORED, "not-stored")               \
    X(NO_WITNESS, "no-witness")               \
    X(NO_PUBLISH, "no-publish")               \
    X(UP, "up")                               \
    X(NO_SET, "no-set")                       \
    X(SET_FOUNDED, "set-founded")             \
    X(SET_CHANGED, "set-changed")             \
    X(SET_CLOSED, "set-closed")               \
    X(SET_FORGOTTEN, "set-forgotten")         \
    X(LOOPBACK, "loopback")                   \
    X(BAD_MARKER, "bad-marker")               \
    X(CANNOT_JOIN, "cannot-join")             \
    X(CHANGE_REFUSED, "change-refused")       \
    X(CHANGE_OVERTAKEN, "change-overtaken")   \
    X(NOT_TOLD, "not-told")                   \
    X(NOT_NEW, "not-new")                     \
    X(VERSIONS, "versions")                   \
    X(NOT_SCANNED, "not-scanned")             \
    X(NOT_REVOKED, "not-revoked")             \
    X(TWO_HOLDERS, "two-holders")             \
    X(GUARDIAN_KILLED, "guardian-killed")     \
    X(NOT_ENDED, "not-ended")                 \
    X(COMMAND_KILLED, "command-killed")       \
    X(CROWD, "crowd")                         \
    X(LEFT_RUNNING, "left-running")           \
    X(AT_MOST, "at-most")                     \
    X(AT_LEAST, "at-least")                   \
    X(NOT_STARTED, "not-started")             \
    X(MAY_BE_HELD, "may-be-held")             \
    X(NO_OUTPUT, "no-output")                 \
    X(GAVE_UP, "gave-up")

#define MESSAGE_NAME(name, id) MSG_##name,
enum msg { MSG_NONE, MESSAGES(MESSAGE_NAME) MESSAGES_LEN };
#undef MESSAGE_NAME

/* The identifier.  MSG_NONE: "". */
const char *message_id(enum msg message);

#endif /* REDLOCK_MESSAGE_H */
