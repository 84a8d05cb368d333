/*
 * loop.h - an event loop for a subcommand.
 */
#ifndef REDLOCK_CLI_LOOP_H
#define REDLOCK_CLI_LOOP_H

struct ev_loop;

/* NULL, after a message: memory or a descriptor is missing.  The caller destroys it. */
struct ev_loop *loop_new(void);

#endif /* REDLOCK_CLI_LOOP_H */
