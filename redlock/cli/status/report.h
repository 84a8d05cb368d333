/*
 * report.h - what `redlock status` found out, and prints.
 */
#ifndef REDLOCK_REPORT_H
#define REDLOCK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "drift/node.h"
#include "redlock/cli/common/question.h"
#include "redlock/cli/status/holders.h"
#include "redlock/client/inspect.h"
#include "redlock/core/members.h"
#include "redlock/redlock.h"

struct cli;

/* The answers of one master. */
struct report {
    bool gone;                   /* Its number has lost its master. */
    bool stranger;               /* It is no member of the set, and does not count. */
    bool up;                     /* It may vote, and takes writes. */
    bool refuses;                /* It may vote, but refuses writes now. */
    bool warming;                /* It is warming. */
    bool late;                   /* It may vote, but no answer came within the reply timeout. */
    bool barred;                 /* Its clock is known to be wrong. */
    bool has_offset, has_rate;   /* The next two fields are valid. */
    struct drift_range offset;   /* The offset of its clock from the median of all, ns. */
    struct drift_range rate_ppm; /* How much faster than ours its clock runs. */
    bool has_certificate;        /* The next field is valid: its link has TLS. */
    int64_t certificate_left_s;  /* Until a certificate of its chain ends. */
    bool has_epoch;              /* It is not warming. */
    uint64_t age_ms;             /* Warming: for how long, by its clock. */
    uint64_t warming_ms;         /* Warming: how much longer, if a client watches it. */
    bool witnessed;              /* Warming: other masters reported for how long. */
    bool unwatched;              /* Warming: the time has passed, but no client watched. */
    double round_trip_us;        /* The shortest. */
    struct remark error;         /* Why it is down, or cannot report the holder. */
    const char *token;           /* The token of the holder.  NULL: free, or not known. */
    size_t token_len;            /* A token of another program may contain NULs. */
    long long ttl_ms;            /* How long the master stores the holder.  -1: for ever. */
    long long readers;           /* The number of readers.  If > 0, there is no token. */
    bool knows_holder;           /* The master reported the holder, or that there is none. */
    long long waiting;           /* The number of clients in its queue (place.h). */
    bool knows_permits;          /* The master reported which permits of this name it stores. */
    struct remark permits_error; /* Why knows_permits is false. */
    unsigned permits;            /* The number of permits of this name that it stores. */
    struct shown shown;          /* All that it told, of which token is a part. */
};

struct status {
    struct cli *cli;
    const char *name; /* The lock to show.  NULL: none, only the masters. */
    bool rates;       /* Also show the rates of clocks, which takes a while. */
    bool metrics;     /* Print OpenMetrics. */
    struct redlock *rl;
    struct question question;
    unsigned masters, up, warming;
    unsigned shown;       /* How many masters are not gone. */
    unsigned counted;     /* How many of these are members.  If no set is known: all of them. */
    const char *noun;     /* What counted counts: "members" or "masters". */
    bool refused;         /* Clients refuse the list. */
    bool founds_none;     /* They are no set, and clients cannot make them one now. */
    bool needs_rescue;    /* Too few members that answer remember the set, or it is closed. */
    struct members lists; /* Which masters decide. */
    struct report reports[REDLOCK_MASTERS_MAX];
};

/* True: the master has forgotten nothing, so what it says of the lock counts. */
static inline bool report_tells(const struct report *report)
{
    return report->up || report->refuses || report->late;
}

/* What the master stores of this permit.  NULL: nothing, or it is not known. */
static inline const struct shown_row *report_permit(const struct report *report, unsigned slot)
{
    return shown_find(&report->shown, SHOWN_PERMIT, slot + 1);
}

/* True: a majority is up. */
bool report_has_majority(const struct status *status);

/* Print all: as text, as JSON, or as OpenMetrics (report_metrics.c). */
void report_text(const struct status *status);
void report_json(const struct status *status);
void report_metrics(const struct status *status);

/* What a majority of the masters agrees on about the lock. */
struct report_lock {
    const char *state; /* "held", "revoked", "shared", "foreign", "permits", "free", "unknown". */
    const struct report *holder; /* A master that stores the holder.  NULL: there is none. */
    unsigned agreeing;           /* Masters that agree. */
    unsigned votes;              /* Masters that store the token that most of them store. */
    long long ttl_ms;            /* How long it is held.  0: it is not held. */
    long long waiting;           /* Clients in its queue. */
    unsigned permits;            /* How many permits are taken. */
    const char *reason;          /* Why it is unknown, or NULL. */
};
struct report_lock report_lock(const struct status *status);

/* Print their part about the set of masters (report_set.c). */
void report_set_text(const struct status *status);
void report_set_json(const struct status *status);

/* Print how many votes the token has that most masters store, and how many it needs. */
void report_votes_text(const struct status *status, quorum_mask votes);

/* Print the readers, and the holders of permits (report_holders.c). */
void report_holders_text(const struct status *status);
void report_holders_json(const struct status *status);

#endif /* REDLOCK_REPORT_H */
