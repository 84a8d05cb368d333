/*
 * command.h - the command that `redlock run` runs, from the loop of a session: it is started
 * and ended by way of its guardian, it gets our signals, and it has the terminal.
 */
#ifndef REDLOCK_COMMAND_H
#define REDLOCK_COMMAND_H

#include <stdbool.h>

#include <ev.h>

#include "redlock/cli/leash.h"
#include "redlock/cli/session.h"
#include "redlock/cli/terminal.h"

enum { COMMAND_SIGNALS_LEN = 3 };

struct command {
    struct leash leash;
    struct terminal terminal;
    struct session *session;
    struct redlock_lease *lease; /* Which it must not outlive. */
    ev_signal signals[COMMAND_SIGNALS_LEN];
    ev_io reports;           /* Of the guardian. */
    ev_timer mourning;       /* While what a killed guardian has left is being killed. */
    unsigned mourn_looks;    /* So often it was looked for. */
    drift_time asked_at;     /* When the first signal to end came; 0: none has. */
    bool hung_up;            /* It could not have the terminal, and has got SIGHUP. */
    bool started;            /* The guardian has the order to start it. */
    bool ended;              /* Nothing is left to wait for. */
    int failed;              /* Why it could not be started: an errno. */
    struct leash_report end; /* Valid if ended. */
};

/* Fork the guardian: first of all, see leash_open().  An exit code, and has told why unless
 * it is CLI_OK. */
int command_open(struct command *command, struct cli *cli, const char *name, char **argv);

/* Run the command, with the lock.  order: margins, limit, token and number are set.  CLI_OK
 * when it has ended, however; command->end says how. */
int command_run(struct command *command, struct session *session, struct redlock_lease *lease,
                struct leash_order *order);

/* The lock will be lost, or is: end the command, if it runs. */
void command_end(struct command *command);

/* Say what was done to a command that has ended.  lost: so is the lock. */
void command_tell(const struct command *command, bool lost);

/* Whole milliseconds; 0 of what is negative. */
uint32_t command_ms(int64_t ns);

/* End the guardian. */
void command_close(struct command *command);

#endif /* REDLOCK_COMMAND_H */
