/*
 * exam.h - what `redlock doctor` knows of one master.
 *
 * A link of the library closes at the first reason against a master.  The doctor has a connection
 * of its own, and lists all reasons.
 *
 * A probe stores only keys that contain exam->own, which is random, and these keys expire.  So the
 * doctor never writes or deletes a lock.
 */
#ifndef REDLOCK_EXAM_H
#define REDLOCK_EXAM_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/reason.h"
#include "redlock/core/config.h"
#include "redlock/link/handshake.h"
#include "redlock/wire/wire.h"

struct uri;

enum {
    EXAM_FINDINGS_MAX = 64,              /* More than one for each query. */
    EXAM_TEXT_MAX = REASON_TEXT_MAX + 64 /* A sentence, and what doctor puts before it. */
};

/* The findings: a name for C, that for programs, the identifier, and whether the text begins with a
 * verb, so that "each" can be its subject.  Of several with an identifier, a reason is the first.
 * NONE: a reason has the identifier. */
#define FINDINGS(X)                                           \
    X(ACL, "acl", NO_RIGHT, false)                            \
    X(ACL_CLIENT, "acl_client", NO_RIGHT, false)              \
    X(ACL_KEYS, "acl_keys", NO_RIGHT, false)                  \
    X(ACL_MARKER, "acl_marker", NO_RIGHT, false)              \
    X(ACL_NEXT, "acl_next", NO_RIGHT, false)                  \
    X(ACL_PERMITS, "acl_permits", NO_RIGHT, false)            \
    X(ACL_QUEUE, "acl_queue", NO_RIGHT, false)                \
    X(ACL_WAIT, "acl_wait", NO_RIGHT, false)                  \
    X(ACL_WITNESS, "acl_witness", NO_RIGHT, false)            \
    X(AUTH, "auth", WRONG_PASSWORD, false)                    \
    X(BEHIND, "behind", SET_CHANGED, true)                    \
    X(BUSY, "busy", BUSY, true)                               \
    X(CERTIFICATE, "certificate", CERTIFICATE_ENDS, false)    \
    X(CLOCK, "clock", CLOCK, false)                           \
    X(CLOSED, "closed", SET_CLOSED, false)                    \
    X(CLUSTER, "cluster", CLUSTER, true)                      \
    X(COUNTERS, "counters", COUNTERS, false)                  \
    X(EVICTION, "eviction", EVICTION, false)                  \
    X(FOREIGN_KEY, "foreign_key", FOREIGN_KEY, false)         \
    X(FOREIGN_PERMIT, "foreign_permit", FOREIGN_KEY, false)   \
    X(FOREIGN_QUEUE, "foreign_queue", FOREIGN_KEY, false)     \
    X(FORGOTTEN, "forgotten", SET_FORGOTTEN, true)            \
    X(FSYNC, "fsync", PERSISTENCE, false)                     \
    X(LATER_VERSION, "later_version", LATER_VERSION, false)   \
    X(LOADING, "loading", LOADING, false)                     \
    X(MARKER, "marker", BAD_MARKER, false)                    \
    X(MAX_TTL, "max_ttl", MAX_TTL, false)                     \
    X(NUMBER, "number", FEW_MASTERS, false)                   \
    X(OTHER_ADDRESS, "other_address", WRONG_SET, true)        \
    X(OTHER_DATABASE, "other_database", WRONG_SET, true)      \
    X(OTHER_LIST, "other_list", WRONG_SET, true)              \
    X(OTHER_SET, "other_set", WRONG_SET, true)                \
    X(PASSWORD, "password", KNOWN_PASSWORD, false)            \
    X(PERSISTENCE, "persistence", PERSISTENCE, false)         \
    X(PROTECTED_MODE, "protected_mode", PROTECTED_MODE, true) \
    X(REPLICA, "replica", REPLICA, true)                      \
    X(SAME_EPOCH, "same_epoch", SAME_EPOCH, true)             \
    X(SAME_SERVER, "same_server", SAME_SERVER, true)          \
    X(SCRIPT, "script", NOT_REDIS, false)                     \
    X(SELECT, "select", NO_DATABASE, false)                   \
    X(SENTINEL, "sentinel", SENTINEL, true)                   \
    X(SILENT, "silent", NO_ANSWER, false)                     \
    X(SLOW, "slow", SLOW, false)                              \
    X(TOO_MANY, "too_many", TOO_MANY, false)                  \
    X(UNFINISHED, "unfinished", SET_CHANGED, false)           \
    X(VERSION, "version", REDIS_VERSION, false)               \
    X(VERSIONS, "versions", VERSIONS, true)                   \
    X(WARMING, "warming", WARMING, true)                      \
    X(WAS_REPLICA, "was_replica", WAS_REPLICA, true)          \
    X(INFO, "info", NOT_KNOWN, false)                         \
    X(INFO_FORBIDDEN, "info", NO_RIGHT, false)                \
    X(CONFIG, "config", NOT_KNOWN, false)                     \
    X(CONFIG_FORBIDDEN, "config", NOT_KNOWN, false)           \
    X(ERROR, "error", NONE, false)                            \
    X(UNREACHABLE, "unreachable", NONE, false)

#define FINDING_NAME(name, word, message, takes_each) FIND_##name,
enum finding { FINDINGS(FINDING_NAME) FINDINGS_LEN };
#undef FINDING_NAME

struct exam_finding {
    enum finding name;
    enum why why;     /* The kind of its reason.  NONE: doctor found it by itself. */
    enum msg message; /* Its identifier, as messages have one. */
    bool takes_each;
    char text[EXAM_TEXT_MAX];   /* What is wrong, or a risk. */
    char change[EXAM_TEXT_MAX]; /* What to change.  "": nothing. */
};

/* The marker of a master, as the restart guard would see it.  The doctor only reads it. */
struct exam_marker {
    bool known;
    bool ready;                      /* It has an epoch, and may vote.  Otherwise it is warming. */
    bool is_settled;                 /* Ready: a client reads it, and writes nothing. */
    bool fresh;                      /* Warming: the master is new and durable. */
    char epoch[WIRE_NUMBER + 1];     /* Ready: the epoch, in hexadecimal. */
    bool is_found;                   /* Warming: a client has noticed. */
    uint64_t age_ms;                 /* Warming: for how long, by the master's clock. */
    uint32_t max_ttl_ms;             /* The longest lease that clients announced.  0: none. */
    uint64_t set, version;           /* Of the set to which it belongs.  0: none. */
    char name[CONFIG_PLACE_MAX + 1]; /* Its own name.  "": it is no member. */
    /* The configuration of the set to which it belongs, as the master stores it.  "": none. */
    char config[WIRE_CONFIG_MAX + 1];
    int64_t ahead_us; /* Ready: how far the fencing counters are ahead of the clock. */
};

/* Names of locks for which a master is examined. */
struct exam_target {
    const char *name;  /* The name to try.  It contains own, unless is_in_use. */
    bool is_in_use;    /* A lock may have the name, so nothing is written. */
    const char *names; /* The names as a pattern, for rules. */
    const char *lock;  /* The lock whose keys to look at.  NULL: none was named. */
};

struct exam {
    const struct uri *uri;
    struct tls_context *tls;           /* For a URI with TLS. */
    bool is_listed;                    /* It is in the list.  Otherwise only the set names it. */
    uint32_t limit_ms;                 /* The time limit for the whole exam. */
    uint32_t reply_timeout_ms;         /* The reply timeout of the locks. */
    unsigned kinds;                    /* The kinds of locks to examine it for (rights.h). */
    uint32_t max_ttl_ms;               /* The longest lease of this client. */
    bool has_clock_guard;              /* The clock guard is on, so votes need TIME. */
    const char *own;                   /* A random name, which no lock has. */
    bool is_any_name;                  /* The user gave no names of locks. */
    const struct exam_target *targets; /* The first is always there. */
    size_t targets_len;
    const struct exam_target *target; /* The target that is examined now. */

    bool is_member; /* It is a member of the set.  If no set is known: of the list. */

    bool is_open;          /* The user default needs no password. */
    bool is_default_known; /* is_open is known. */

    bool answers; /* The greeting succeeded.  Otherwise the fields below are not known. */
    bool votes;   /* It may vote, judged without the other masters. */
    struct master_info info;
    struct exam_marker marker;
    char fsync[16];       /* The value of appendfsync.  "?": not known. */
    uint32_t greeting_ms; /* How long it took to answer the greeting. */
    bool has_clock;
    int64_t offset_us; /* Its wall clock minus ours: the middle of a range. */
    int64_t error_us;  /* Half of this range, which is half of the round trip. */
    struct exam_finding findings[EXAM_FINDINGS_MAX];
    unsigned findings_len;
};

/* Add a finding.  change is NULL if nothing has to be changed. */
void exam_find(struct exam *exam, enum finding name, const char *change, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Add a finding that is this reason, with what to do about its kind. */
void exam_find_reason(struct exam *exam, enum finding name, const struct reason *why);

/* Add the finding of what refuses the greeting. */
void exam_find_refusal(struct exam *exam, const struct reason *why);

/* The name of a finding, for programs. */
const char *exam_word(enum finding name);

/* True: there is a finding of this name. */
bool exam_has(const struct exam *exam, enum finding name);

/* True: a finding is a reason of this kind. */
bool exam_has_reason(const struct exam *exam, enum why why);

/* Add something else that may help to what helps against this kind. */
void exam_add_cure(struct exam *exam, enum why why, const char *cure);
/* Advise this in place of what a finding advises. */
void exam_advise(struct exam *exam, enum finding name, const char *change);

/* If there is a finding of this name, drop all others, and say only this to do.  False: there is
 * none. */
bool exam_keep_only(struct exam *exam, enum finding name, const char *change);

/* True: a finding says that the ACL lacks a rule. */
bool exam_lacks_rights(const struct exam *exam);

/* Add the finding of a master whose set has no members until a rescue gives it some. */
void exam_find_closed(struct exam *exam);

/* Add a finding for an error that is not about a key.  rule: the ACL rule for the command.  A
 * master that is busy says so to all commands, and one finding is enough. */
void exam_find_error(struct exam *exam, const char *command, const char *rule,
                     const struct reason *why);

/* Add a finding for INFO, or for CONFIG GET with this error: its ACL forbids the command, or
 * rename-command has taken it away. */
void exam_find_no_info(struct exam *exam);
void exam_find_no_config(struct exam *exam, const char *error);

/* True: the locks have the restart guard. */
bool exam_is_guarded(const struct exam *exam);

/* The name of the user of the connection. */
const char *exam_user(const struct exam *exam);

/* The number of findings that ask for a change. */
unsigned exam_changes(const struct exam *exam);

#endif /* REDLOCK_EXAM_H */
