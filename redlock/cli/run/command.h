/*
 * command.h - the command of `redlock run`.  Its guardian starts and ends it.  It gets our signals
 * and the terminal.  All of this runs on the loop of a session.
 */
#ifndef REDLOCK_COMMAND_H
#define REDLOCK_COMMAND_H

#include <signal.h>
#include <stdbool.h>

#include <ev.h>

#include "redlock/cli/run/leash.h"
#include "redlock/cli/common/session.h"
#include "redlock/cli/run/terminal.h"

enum { COMMAND_SIGNALS_LEN = 3 };

struct command {
    struct leash leash;
    struct terminal terminal;
    struct session *session;
    struct redlock_lease *lease; /* The command must end before it does. */
    ev_signal signals[COMMAND_SIGNALS_LEN];
    ev_io reports;           /* Watches for reports of the guardian. */
    ev_timer waking;         /* Rings when the command must end, to continue a stopped guardian. */
    ev_timer patience;       /* Rings if the command has not ended after a signal. */
    ev_timer mourning;       /* Rings after the guardian was killed, to kill its processes. */
    drift_time mourned_at;   /* When mourning rang first.  0: it has not. */
    drift_span ttl;          /* The duration of --ttl. */
    drift_time limit;        /* When --hold-at-most kills the command.  DRIFT_NEVER: never. */
    drift_time asked_at;     /* When the first signal to end came.  0: none has. */
    unsigned signals_sent;   /* How many signals were passed on. */
    bool got[NSIG];          /* Signals that came, and would have ended us. */
    int last_signal;         /* The latest signal in got. */
    unsigned last_sent;      /* The value of signals_sent with last_signal. */
    int late_signal;         /* The latest signal that came after the end.  0: none. */
    bool had_terminal;       /* The command had the terminal when it ended. */
    bool hung_up;            /* The command could not get the terminal, and got SIGHUP. */
    bool started;            /* The guardian has the order to start the command. */
    bool unheard;            /* Reports are not watched for: the kernel refused. */
    bool ended;              /* Nothing is left to wait for. */
    int failed;              /* Why the command could not be started: an errno, or 0. */
    struct leash_report end; /* The last report.  Valid if ended. */
};

/* Fork the guardian.  Call this before anything else: see leash_open().  Returns an exit code,
 * after a message unless CLI_OK. */
int command_open(struct command *command, struct cli *cli, const char *name, char **argv);

/* Run the command while the lock is held.  order has the ttl, margins, limit, token and number.
 * Returns CLI_OK if the command ran and has ended, which command->end describes, or if the lock was
 * lost before it could be started. */
int command_run(struct command *command, struct session *session, struct redlock_lease *lease,
                struct leash_order *order);

/* End the command, if it runs, because the lock is lost or will be.  If it is not started, it never
 * will be. */
void command_end(struct command *command);

/* Print what was done to a command that has ended.  lost: the lock is lost. */
void command_tell(const struct command *command, bool lost);

/* Whole milliseconds.  0 for a negative time. */
uint32_t command_ms(int64_t ns);

/* End the guardian. */
void command_close(struct command *command);

#endif /* REDLOCK_COMMAND_H */
