/*
 * report.h - what `redlock status` has found, and how it is printed.
 */
#ifndef REDLOCK_REPORT_H
#define REDLOCK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "drift/node.h"
#include "redlock/redlock.h"

struct cli;

/* What one master said. */
struct report {
    bool asked;
    unsigned questions, answers; /* How many of the queries. */
    bool over;                   /* Nothing more is to be expected. */
    bool up;                     /* It may vote, */
    bool warming;                /* or it may not yet. */
    bool barred;                 /* Its clock is not to be trusted. */
    bool has_offset, has_rate;   /* Of its clock: */
    struct drift_range offset;   /* against the median of all, ns, */
    struct drift_range rate_ppm; /* and how much faster than ours it runs. */
    bool fresh;                  /* It says that it is new. */
    uint64_t age_ms;             /* How long it has been warming, by its clock; */
    uint64_t warming_ms;         /* and how long it will, if somebody watches it. */
    bool unwatched;              /* No client has watched it: it would be over by now. */
    drift_time asked_at;
    double round_trip_us;
    char error[160];   /* Why it is down, or cannot tell who holds the lock. */
    char *token;       /* That of the holder; NULL: free, or not known. */
    size_t token_len;  /* It may hold NULs: other programs write what they like. */
    long long ttl_ms;  /* -1: for ever. */
    long long readers; /* If it is shared; then there is no token. */
    bool knows_holder; /* Token, or its absence, is what the master said. */
    long long waiting; /* So many are in its queue (place.h). */
    unsigned of;       /* It is one of so many masters to other clients; 0: not known. */
    unsigned permits;  /* How many of the semaphore with this name it stores: */
    bool is_taken[REDLOCK_PERMITS_MAX]; /* those, by their slots. */
};

struct status {
    struct cli *cli;
    const char *name; /* NULL: only the masters. */
    bool rates;       /* Those of clocks are wanted, which takes a while. */
    struct redlock *rl;
    unsigned masters, up, warming, over;
    struct report reports[REDLOCK_MASTERS_MAX];
};

/* Whether a majority is up. */
bool report_has_majority(const struct status *status);

/* Print all: for people, and for programs. */
void report_text(const struct status *status);
void report_json(const struct status *status);

#endif /* REDLOCK_REPORT_H */
