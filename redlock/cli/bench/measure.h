/*
 * measure.h - `redlock bench` without --contend: locks without contention.
 */
#ifndef REDLOCK_MEASURE_H
#define REDLOCK_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/redlock.h"

struct cli;

/* Without a lock for so long, and for a lease more, bench gives up: masters may answer and never
 * vote.  Chosen: longer than an outage that a measurement should outlast. */
#define MEASURE_GIVE_UP_S 10

struct measure {
    struct cli *cli;
    bool blocking;          /* Use threads of a blocking client, not slots on a loop. */
    uint32_t cycles;        /* The sum of all workers. */
    uint32_t workers_len;   /* Slots or threads. */
    uint32_t resources_len; /* Names in each lease. */
    struct redlock_lock_options opts;
};

/* CLI_OK if a majority of the masters may vote, and else CLI_UNREACHABLE, after messages. */
int measure_check_links(const struct cli *cli, struct redlock *rl);

/* Measure, print one line of figures, and return an exit code. */
int measure_run(const struct measure *measure);

#endif /* REDLOCK_MEASURE_H */
