/*
 * loop.h - an event loop and a clock for a subcommand.
 */
#ifndef REDLOCK_CLI_LOOP_H
#define REDLOCK_CLI_LOOP_H

#include "drift/drift.h"

struct ev_loop;

/* The time, or the end of the process: without a clock nothing ends by itself. */
drift_time loop_clock(void);

/* A loop that ends the process if a clock fails.  NULL, after a message: memory or a descriptor is
 * missing.  The caller destroys it. */
struct ev_loop *loop_new(void);

#endif /* REDLOCK_CLI_LOOP_H */
