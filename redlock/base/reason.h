/*
 * reason.h - why a master does not vote: a value, which is made where that is seen; pure.
 *
 * It travels up as it is.  What it means for a call is asked of its kind, and reason.c alone makes
 * words of it, where people read.  No code searches these words for a meaning.  A text from outside
 * (of Redis, of OpenSSL, of the system) gets its kind once, where it arrives, and is only quoted
 * from then on.
 */
#ifndef REDLOCK_REASON_H
#define REDLOCK_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/message.h"

/* The longest text that is quoted, with its NUL.  Chosen: an answer of Redis fits, and two lists of
 * members. */
#define REASON_WORDS_MAX 240

/* What to do about several kinds. */
#define CURE_NAME "correct the name in its URI, or the name server of this machine"
#define CURE_CA                                                                        \
    "give the CA that has signed it (--tls-ca, REDLOCK_TLS_CA), or give the master a " \
    "certificate of your CA"
#define CURE_OUR_CERTIFICATE                                                                     \
    "give a valid certificate of a CA that the master knows (--tls-cert and --tls-key), or set " \
    "tls-auth-clients no there"
#define CURE_OUR_CLOCK "set the clock of this machine right"
#define CURE_TLS "see its log: it needs TLS 1.2 or later (tls-protocols)"
#define CURE_SILENCE "see whether it hangs, and what its log says"
#define CURE_HOST "see the limits, the rights and the routes of this machine"
#define CURE_NOT_REDIS "correct the address or port in its URI"

/*
 * The kinds: a name, the message that people look up, what joins several masters with the sentence,
 * the sentence, and what else the kind means (kinds in reason.c).  In a sentence stand
 *
 *   %w the words, up to a newline      %v the words behind it     %m the other master, from 1
 *   %d the number                      %e the error of the system
 *   %a the amount in seconds, signed   %t the seconds until it may be over
 *
 * Before ITS stands ", each: ", as in "masters 1 and 2, each: its wall clock ..."; before VERB
 * ": each ", as in ": each is a replica"; before TEXT ": ".
 */
#define REASONS(X)                                                                                 \
    /* The way to the master. */                                                                   \
    X(NOT_CONNECTED, NO_CONNECTION, TEXT, "not connected yet")                                     \
    X(UNREACHED, NO_CONNECTION, TEXT, "%e")                                                        \
    X(OWN_SYSTEM, SYSTEM, TEXT, "an error of this host: %e", .cure = CURE_HOST)                    \
    X(CLOSED, NO_CONNECTION, TEXT, "Server closed the connection")                                 \
    X(CONNECT_TIMEOUT, NO_CONNECTION, TEXT, "timeout while connecting")                            \
    X(UNWATCHED, SYSTEM, TEXT,                                                                     \
      "epoll_ctl fails here: memory, or fs.epoll.max_user_watches, is used up", .cure = CURE_HOST) \
    X(NO_MEMORY, NO_MEMORY, TEXT, "out of memory")                                                 \
    X(NO_FAMILY, NO_ADDRESS, TEXT, "the address is neither IPv4 nor IPv6", .cure = CURE_NAME)      \
    X(NO_ADDRESS, NO_ADDRESS, VERB, "cannot resolve the name: the name has no address",            \
      .cure = CURE_NAME)                                                                           \
    X(NO_NAME, NO_ADDRESS, VERB, "cannot resolve the name: %w", .cure = CURE_NAME)                 \
    X(NAME_SYSTEM, NO_ADDRESS, VERB, "cannot resolve the name: %e", .cure = CURE_NAME)             \
    X(NAME_START, SYSTEM, VERB, "cannot start to resolve the name: %e")                            \
    X(NAME_TIMEOUT, NO_ADDRESS, TEXT, "timeout while resolving the name", .cure = CURE_NAME)       \
    X(TLS_UNSET, TLS_FAILED, TEXT, "TLS is not set up", .cure = CURE_TLS)                          \
    X(TLS_PLAIN, TLS_FAILED, TEXT, "TLS: the server does not speak TLS at this port",              \
      .hint = " (if that is right, write redis://)",                                               \
      .cure = "write redis:// in its URI, or give the port that has TLS")                          \
    X(TLS_CERTIFICATE, TLS_CERTIFICATE, TEXT, "TLS: the server's certificate is refused: %w",      \
      .cure = CURE_CA)                                                                             \
    X(TLS_EXPIRED, CERTIFICATE_ENDS, TEXT, "TLS: the server's certificate is refused: %w",         \
      .cure = "give it a certificate that is valid (CONFIG SET tls-cert-file FILE tls-key-file "   \
              "FILE, and in redis.conf)")                                                          \
    X(TLS_EARLY, TLS_CERTIFICATE, TEXT, "TLS: the server's certificate is refused: %w",            \
      .cure = CURE_OUR_CLOCK ", or give the master another certificate")                           \
    X(TLS_CA, TLS_CERTIFICATE, TEXT, "TLS: the server's certificate is refused: %w",               \
      .hint = " (its CA is not in tls_ca; redlock: --tls-ca)", .cure = CURE_CA)                    \
    X(TLS_NAME, TLS_CERTIFICATE, TEXT,                                                             \
      "TLS: the server's certificate is refused: %w: it is not for %v",                            \
      .cure = "write a name of its certificate into the URI, or give --tls-server-name, or make "  \
              "a certificate with this name")                                                      \
    X(TLS_REFUSED, TLS_FAILED, TEXT, "TLS: the server refuses: %w", .cure = CURE_TLS)              \
    X(TLS_BAD_US, TLS_FAILED, TEXT, "TLS: the server refuses: %w", .cure = CURE_OUR_CERTIFICATE)   \
    X(TLS_UNKNOWN_US, TLS_FAILED, TEXT, "TLS: the server refuses: %w",                             \
      .hint = " (give tls_cert and tls_key; redlock: --tls-cert and --tls-key)",                   \
      .cure = CURE_OUR_CERTIFICATE)                                                                \
    X(TLS_ERROR, TLS_FAILED, TEXT, "TLS: %w", .cure = CURE_TLS)                                    \
    X(TLS_UNREAD, TLS_FAILED, TEXT, "TLS: the server does not read the answers that it wants",     \
      .cure = CURE_TLS)                                                                            \
    X(TLS_SILENT, NO_ANSWER, TEXT,                                                                 \
      "connected, but does not answer the TLS handshake (if this port is without TLS, write "      \
      "redis://)",                                                                                 \
      .cure = CURE_SILENCE)                                                                        \
    X(TLS_HALT, NO_ANSWER, TEXT,                                                                   \
      "connected, but does not answer: the TLS handshake came to a halt", .cure = CURE_SILENCE)    \
    /* What answers there. */                                                                      \
    X(UNANSWERED, NO_ANSWER, TEXT, "connected, but has not answered yet", .cure = CURE_SILENCE)    \
    X(SILENT, NO_ANSWER, TEXT, "connected, but does not answer", .cure = CURE_SILENCE)             \
    X(SILENT_NOW, NO_ANSWER, VERB, "does not answer any more", .cure = CURE_SILENCE)               \
    X(HANGS, NO_ANSWER, VERB, "takes commands and does not answer", .cure = CURE_SILENCE)          \
    X(DEAF, NO_ANSWER, VERB, "takes no commands", .cure = CURE_SILENCE)                            \
    X(LATE, NO_ANSWER, VERB, "does not answer in time", .cure = CURE_SILENCE)                      \
    X(UNCHECKED, NO_ANSWER, TEXT,                                                                  \
      "the restart guard has not checked it yet; the connect timeout is %d ms",                    \
      .cure = CURE_SILENCE)                                                                        \
    X(UNASKED, NOT_REDIS, TEXT, "sent a reply without a request", .cure = CURE_NOT_REDIS)          \
    X(TOO_LONG, MASTER_ERROR, TEXT, "sent an answer that is too long or too deep")                 \
    X(GARBAGE, NOT_REDIS, TEXT, "answered with garbage", .cure = CURE_NOT_REDIS)                   \
    X(NO_PROTOCOL, NOT_REDIS, TEXT, "answered with garbage: %w (not a Redis server?)",             \
      .cure = CURE_NOT_REDIS)                                                                      \
    X(BAD_PROTOCOL, NOT_REDIS, TEXT, "answered with garbage: %w", .cure = CURE_NOT_REDIS)          \
    X(BAD_FIELD, BAD_MARKER, TEXT, "answered with garbage: the field %w of %v")                    \
    X(DIGEST, NOT_REDIS, TEXT, "gave another digest than ours: not a Redis?",                      \
      .cure = CURE_NOT_REDIS)                                                                      \
    X(REPLICA, REPLICA, VERB, "is a replica, not a master",                                        \
      .cure = "give the address of a master, or make it one (REPLICAOF NO ONE, and no replicaof "  \
              "in redis.conf)")                                                                    \
    X(CLUSTER, CLUSTER, VERB, "is a node of a Redis Cluster, not a master by itself",              \
      .cure = "set cluster-enabled no in redis.conf, or give another server")                      \
    X(SENTINEL, SENTINEL, VERB, "is a Sentinel, not a master",                                     \
      .hint = ": give the servers themselves",                                                     \
      .cure = "give the addresses of Redis masters themselves")                                    \
    X(LOADING, LOADING, VERB, "is still loading its data", .cure = "wait, and run doctor again")   \
    X(TWIN, SAME_SERVER, VERB, "is the same server as master %m (%w)")                             \
    X(NO_RUN_ID, NO_COMMAND, TEXT, "INFO reports no run_id, which the restart guard needs",        \
      .hint = " (is INFO renamed, or is it a proxy?)")                                             \
    X(NO_INFO, NO_RIGHT, TEXT, "the ACL forbids INFO, which the restart guard needs: NOPERM",      \
      .refuses_user = true)                                                                        \
    X(NO_LOGIN, WRONG_PASSWORD, VERB,                                                              \
      "needs a password in the list of masters, as in redis://:PASSWORD@HOST:PORT: %w",            \
      .refuses_user = true,                                                                        \
      .cure = "put a password into its URI, in the list of masters (redis://:PASSWORD@HOST:PORT)") \
    X(NO_LOGIN_TLS, WRONG_PASSWORD, VERB,                                                          \
      "needs a password in the list of masters, as in rediss://:PASSWORD@HOST:PORT: %w",           \
      .refuses_user = true,                                                                        \
      .cure =                                                                                      \
          "put a password into its URI, in the list of masters (rediss://:PASSWORD@HOST:PORT)")    \
    /* Errors of Redis, from first to last (wire/redis_error.h). */                                \
    X(ERROR_LOGIN, WRONG_PASSWORD, TEXT, "%w", .refuses_user = true,                               \
      .unquoted = "the password is refused: NOAUTH or WRONGPASS")                                  \
    X(ERROR_RIGHT, NO_RIGHT, TEXT, "%w", .refuses_user = true,                                     \
      .unquoted = "the ACL forbids it: NOPERM")                                                    \
    X(ERROR_COMMAND, NO_COMMAND, TEXT, "%w", .unquoted = "unknown command",                        \
      .cure = "make this command available: no rename-command, and Redis 6 or later")              \
    X(ERROR_REPLICA, REPLICA, TEXT, "%w", .unquoted = "it is a replica: READONLY",                 \
      .is_of_server = true, .cure = "make it a master again (REPLICAOF NO ONE)")                   \
    X(ERROR_CLUSTER, CLUSTER, TEXT, "%w",                                                          \
      .unquoted = "it is a node of a Redis Cluster: MOVED or CLUSTERDOWN")                         \
    X(ERROR_LOADING, LOADING, TEXT, "%w", .unquoted = "it is still loading its data: LOADING",     \
      .is_of_server = true)                                                                        \
    X(ERROR_MEMORY, FULL, TEXT, "%w", .unquoted = "its memory is full: OOM", .is_of_server = true, \
      .cure = "give it memory: a larger maxmemory, or fewer keys")                                 \
    X(ERROR_DISK, FULL, TEXT, "%w", .unquoted = "it cannot write to its disk: MISCONF",            \
      .is_of_server = true,                                                                        \
      .cure =                                                                                      \
          "see its log, and make room on its disk; if only its snapshots fail, which no lock "     \
          "needs: "                                                                                \
          "CONFIG SET save '' or CONFIG SET stop-writes-on-bgsave-error no, and in redis.conf")    \
    X(ERROR_BUSY, BUSY, VERB, "is busy with a script of another program",                          \
      .hint = ": SCRIPT KILL, or wait",                                                            \
      .cure = "wait until this script ends, or end it (SCRIPT KILL, or FUNCTION KILL)")            \
    X(ERROR_PROTECTED, PROTECTED_MODE, VERB, "is in protected mode, which refuses other hosts",    \
      .hint = ": set a password there (production.md, section 4), and write it into the list of "  \
              "masters",                                                                           \
      .cure = "make users with passwords there (production.md, 4), and write them into the list; " \
              "or, where no stranger reaches it, CONFIG SET protected-mode no, and in redis.conf") \
    X(ERROR_REPLICAS, FEW_REPLICAS, TEXT, "%w", .unquoted = "it has too few replicas: NOREPLICAS", \
      .is_of_server = true,                                                                        \
      .cure = "set min-replicas-to-write 0: masters of a lock need no replicas")                   \
    X(ERROR_TYPE, FOREIGN_KEY, TEXT, "%w", .unquoted = "the key holds no lock: WRONGTYPE")         \
    X(ERROR_DATABASE, NO_DATABASE, TEXT, "%w", .unquoted = "it has no such database")              \
    X(ERROR_MASTER_DOWN, MASTER_ERROR, TEXT, "%w",                                                 \
      .unquoted = "its own master is down: MASTERDOWN", .is_of_server = true)                      \
    X(ERROR_SCRIPT, MASTER_ERROR, TEXT, "%w", .unquoted = "it lacks a script: NOSCRIPT")           \
    X(ERROR_CLIENTS, MASTER_ERROR, TEXT, "%w", .unquoted = "max number of clients reached",        \
      .cure = "raise maxclients (CONFIG SET maxclients, and in redis.conf), or close connections") \
    X(ERROR, MASTER_ERROR, TEXT, "%w", .unquoted = "it answered with an error")                    \
    /* Its marker. */                                                                              \
    X(WARMING_KNOWN, WARMING, VERB,                                                                \
      "is warming up: it may have lost its data, and may vote in at most %t s")                    \
    X(WARMING_NEW, WARMING, VERB,                                                                  \
      "is warming up: it is new or lost its data, and may vote in at most %t s")                   \
    X(WATCHED_KNOWN, WARMING, VERB,                                                                \
      "is warming up: it may have lost its data, and may vote when one client has watched it for " \
      "at most %t s")                                                                              \
    X(WATCHED_NEW, WARMING, VERB,                                                                  \
      "is warming up: it is new or lost its data, and may vote when one client has watched it "    \
      "for at most %t s")                                                                          \
    X(COUNTERS_KNOWN, COUNTERS, VERB,                                                              \
      "is warming up: it may have lost its data, and the fencing counters of the others are days " \
      "ahead of the clocks")                                                                       \
    X(COUNTERS_NEW, COUNTERS, VERB,                                                                \
      "is warming up: it is new or lost its data, and the fencing counters of the others are "     \
      "days ahead of the clocks")                                                                  \
    X(ALONE_KNOWN, WARMING, VERB,                                                                  \
      "is warming up: it may have lost its data, and too few of the others can be asked whether "  \
      "it may vote")                                                                               \
    X(ALONE_NEW, WARMING, VERB,                                                                    \
      "is warming up: it is new or lost its data, and too few of the others can be asked whether " \
      "it may vote")                                                                               \
    /* A member that does not answer may know a newer set, in which enough remember. */            \
    X(FORGOTTEN, SET_FORGOTTEN, VERB,                                                              \
      "lost its data, and too few members that answer remember the set: locks stay refused until " \
      "others come back, or `redlock members rescue`",                                             \
      .cure = "bring back members that do not answer, or else run redlock members "                \
              "--i-know-what-is-lost - rescue with the whole list: redlock help set-forgotten")    \
    X(LOST_DATA, WARMING, VERB, "has lost its data")                                               \
    X(COPY, SAME_EPOCH, VERB,                                                                      \
      "has the same epoch as master %m: the data of one are a copy, and must be emptied (redlock " \
      "doctor)")                                                                                   \
    X(COUNTER, COUNTERS, TEXT, "the fencing counter is days ahead of the clock, or below zero")    \
    /* Its set. */                                                                                 \
    X(UNTOLD, NO_SET, VERB,                                                                        \
      "is in no set of masters yet: this client records there that it is a member")                \
    X(UNFOUNDED, NO_SET, VERB,                                                                     \
      "is in no set of masters yet: all masters of the list must answer, and none may be of "      \
      "another list")                                                                              \
    X(OTHER_SET, WRONG_SET, VERB, "is a member of the set of %w, and not of %v")                   \
    X(CLAIMED, WRONG_SET, VERB, "is claimed by a list of %w, and not of %v")                       \
    X(OTHER_ID, WRONG_SET, VERB,                                                                   \
      "belongs to another set of the same masters than the masters that answered before: the "     \
      "data of a minority are a copy or an old state (redlock doctor)")                            \
    X(MINORITY, WRONG_SET, VERB, "belongs to another set than most masters of the list")           \
    X(SET_CLOSED, SET_CLOSED, ITS, "its set is closed: it needs `redlock members rescue`")         \
    X(REMOVED, WRONG_SET, VERB,                                                                    \
      "was removed from the set: take it off the list; the members are %w")                        \
    X(STRANGER, WRONG_SET, VERB,                                                                   \
      "is no member of the set: take it off the list, or add it (redlock members); the members "   \
      "are %w")                                                                                    \
    X(MISNAMED, WRONG_SET, VERB,                                                                   \
      "does not say that it is the member %w: a list must have masters of one set (redlock "       \
      "members, redlock(1) MASTERS)")                                                              \
    X(LEFT, WRONG_SET, VERB, "is no member any more")                                              \
    /* Its clock. */                                                                               \
    X(CLOCK_SLOW, CLOCK, ITS, "its wall clock cannot be read well enough: it answers slowly")      \
    X(CLOCK_NEW, CLOCK, ITS,                                                                       \
      "its wall clock has not been watched for long enough, and it may not vote for %t s")         \
    X(CLOCK_STEPPED, CLOCK, ITS,                                                                   \
      "its wall clock was stepped by %a s, and it may not vote for %t s")                          \
    X(CLOCK_FAST, CLOCK, ITS,                                                                      \
      "its wall clock runs faster than the drift allows, and it may not vote for %t s")            \
    X(CLOCK_OFF, CLOCK, ITS,                                                                       \
      "its wall clock is %a s off those of the others, and it may vote %t s after it was set "     \
      "right")                                                                                     \
    X(CLOCK_CORRECTED, CLOCK, ITS,                                                                 \
      "its wall clock was %a s off those of the others, and it may not vote for %t s")             \
    /* What a lease saw. */                                                                        \
    X(NO_ANSWER, NO_ANSWER, TEXT, "no answer within %d ms", .cure = CURE_SILENCE)                  \
    X(NOT_STORED, NOT_STORED, VERB, "does not store it")                                           \
    X(NOT_STORED_NOW, NOT_STORED, VERB, "does not store it any more")                              \
    X(QUEUE_FULL, OVERLOADED, ITS, "its queue of commands is full")                                \
    /* Said in the log alone: with these it votes. */                                              \
    X(CLOCK_FAR, CLOCK, ITS, "its wall clock is %a s off those of the others")                     \
    X(CLOCK_FAR_OFF, CLOCK, ITS,                                                                   \
      "its wall clock is %a s off those of the others, and it may not vote")                       \
    X(NO_WITNESS, NO_WITNESS, VERB, "cannot report how long other masters have been warming: %w")  \
    X(EVICTS, EVICTION, TEXT,                                                                      \
      "maxmemory-policy is %w: when its memory is full it drops locks that are held; set "         \
      "noeviction")                                                                                \
    X(FORGETS, PERSISTENCE, TEXT, "appendonly is no: it loses its locks when it restarts")

#define REASON_NAME(name, ...) WHY_##name,
enum why { WHY_NONE, REASONS(REASON_NAME) WHYS_LEN };
#undef REASON_NAME

/* What the words answer, or when it broke.  It stands before the sentence, or behind it. */
enum reason_at {
    AT_ANYTHING,
    AT_LOGIN, /* AUTH. */
    AT_SELECT,
    AT_SCRIPT,    /* SCRIPT LOAD. */
    AT_MARKER,    /* The restart guard reads it. */
    AT_TIME,      /* The clock guard. */
    AT_GREETING,  /* The first command of a plain connection, which the master may have as TLS. */
    AT_TLS,       /* The handshake of TLS. */
    AT_AFTER_TLS, /* Its first bytes behind that. */
    REASON_ATS_LEN
};

struct reason {
    enum why why : 8;
    enum reason_at at : 8;
    uint8_t other;                /* The number of the other master, from 0. */
    int number;                   /* errno, or milliseconds. */
    drift_time over_at;           /* When it may be over.  DRIFT_NEVER: not known. */
    int64_t amount;               /* In ms. */
    char words[REASON_WORDS_MAX]; /* Clean: printable, and valid UTF-8. */
};

/* Make a reason without anything else.  Makers of others begin with it. */
void reason_set(struct reason *ret_reason, enum why why);
/* With words from outside, which are cleaned and may be cut.  second: what stands for %v, or NULL.
 * A sentence without %w drops them. */
void reason_quote(struct reason *ret_reason, enum why why, const char *words, const char *second);
/* Say what the words answer.  A sentence whose subject is the master does not need that. */
void reason_answers(struct reason *reason, enum reason_at at);
/* The reason of an errno of a socket: is it the way to the master, or this host? */
void reason_of_errno(struct reason *ret_reason, int error);

/* The identifier that people look up.  MSG_NONE: nothing is wrong. */
enum msg reason_message(const struct reason *reason);

/* True: the master refuses this user, who has not logged in, or has no right.  All other kinds
 * leave it to the state of the masters why a call fails (core/outlook.h). */
bool reason_refuses_user(enum why why);

/* True: an error of Redis that is about the server, whichever command met it first. */
bool reason_is_of_server(enum why why);

/* What to do about it, in one line.  NULL: nothing is known that helps. */
const char *reason_cure(const struct reason *reason);

/* True: the same reason, but for the time until it may be over. */
bool reason_is_same(const struct reason *a, const struct reason *b);

/* True: the sentence begins with a verb, so that "each" can be its subject. */
bool reason_takes_each(const struct reason *reason);

/* What joins several masters with the sentence: ": ", ": each " or ", each: ". */
const char *reason_joint(const struct reason *reason);

/* The longest sentence, with a NUL (test-error). */
#define REASON_TEXT_MAX (REASON_WORDS_MAX + 220)

/* Write the sentence.  Returns as snprintf().  NONE: "". */
size_t reason_write(const struct reason *reason, drift_time now, char *buf, size_t size);

/* The same for a reader who also gets reason_cure(): without the hint. */
size_t reason_write_bare(const struct reason *reason, char *buf, size_t size);

#endif /* REDLOCK_REASON_H */
