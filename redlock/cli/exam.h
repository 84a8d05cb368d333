/*
 * exam.h - one master looked at closely, for `redlock doctor`.
 *
 * The library's links tell whether a master may vote, and drop it at the first
 * reason why not.  Here it is asked for everything, by a connection of its own,
 * so that one look finds all there is to change.
 *
 * A probe writes to no key but those that are made of exam->own, which is random
 * and expires: no name that anybody has given to a lock is ever written or deleted.
 */
#ifndef REDLOCK_EXAM_H
#define REDLOCK_EXAM_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/link/handshake.h"
#include "redlock/wire/wire.h"

struct uri;

enum {
    EXAM_FINDINGS_MAX = 64, /* More than there are questions. */
    EXAM_TEXT_MAX = 240
};

struct exam_finding {
    const char *name;           /* Constant; for programs. */
    char text[EXAM_TEXT_MAX];   /* What is the matter. */
    char change[EXAM_TEXT_MAX]; /* What to do about it; "": it is worth knowing, no more. */
};

/* Its marker, as the restart guard will see it; it is only read. */
struct exam_marker {
    bool known;
    bool ready;                  /* It has an epoch, and may vote; else it is warming. */
    bool fresh;                  /* Warming: it never had one, and keeps what it is told. */
    char epoch[WIRE_NUMBER + 1]; /* Ready. */
    uint64_t age_ms;             /* Warming: since when, by its own clock; 0: from now on. */
    uint32_t max_ttl_ms;         /* The longest lease that it was told of; 0: none. */
    unsigned of;      /* How many masters there are, as clients have told it; 0: not known. */
    int64_t ahead_us; /* Ready: its fencing counters, of its clock. */
};

struct exam {
    const struct uri *uri;
    uint32_t limit_ms;         /* For all that is asked of it. */
    uint32_t reply_timeout_ms; /* Of the locks that are to be. */
    unsigned kinds;            /* Of locks that it is examined for (rights.h). */
    const char *own;           /* A random name, which no lock has. */
    const char *name;          /* What is locked to try it: a name with own in it, unless */
    bool is_in_use;            /* a lock may have the name.  Then nothing is written. */

    bool answers; /* It let us in, and greeted; what follows is known only then. */
    bool votes;   /* It may vote, as far as can be seen from it alone. */
    struct master_info info;
    struct exam_marker marker;
    char fsync[16]; /* appendfsync; "?": not known. */
    bool has_clock;
    int64_t offset_us; /* Its wall clock less ours, */
    int64_t error_us;  /* give or take so much: half of the way there and back. */
    struct exam_finding findings[EXAM_FINDINGS_MAX];
    unsigned findings_len;
};

/* Note a finding; change is NULL where there is nothing to be done. */
void exam_find(struct exam *exam, const char *name, const char *change, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Whether there is one of this name. */
bool exam_has(const struct exam *exam, const char *name);

/* A command was answered with this error, which is not about a key; rule: what would
 * allow it. */
void exam_find_error(struct exam *exam, const char *command, const char *rule, const char *error);

/* The user of the connection, for an ACL. */
const char *exam_user(const struct exam *exam);

/* "NOPERM", of "NOPERM this user ...". */
bool exam_has_code(const char *error, const char *code);

/* How many of the findings ask for a change. */
unsigned exam_changes(const struct exam *exam);

#endif /* REDLOCK_EXAM_H */
