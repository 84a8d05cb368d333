/*
 * session.h - a client on a loop of its own, for one lock of one command.
 *
 * Each call runs the loop until it is done, or until a signal comes that
 * should end the program; the lock is then undone.  Gives exit codes, and has
 * told why unless it is CLI_OK.
 */
#ifndef REDLOCK_SESSION_H
#define REDLOCK_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include <ev.h>

#include "redlock/cli/cli.h"

enum { SESSION_SIGNALS_MAX = 8 };

struct session {
    struct cli *cli;
    struct ev_loop *loop;
    struct redlock *rl;
    ev_signal signals[SESSION_SIGNALS_MAX];
    unsigned signals_len;
    int signal; /* The first that came; 0: none. */
    /* Where not NULL, signals go there, and end nothing by themselves. */
    void (*on_signal)(struct session *session, int signal);
    void *on_signal_arg;
    const char
        *kind;  /* The option of `redlock doctor` for the kind of its lock: " --fair", or "". */
    bool quiet; /* Say nothing about operations that fail. */
    bool done;
    int status; /* Of the operation that is done. */
};

/* Open a client, and connect to as many masters as answer without delay. */
int session_open(struct session *session, struct cli *cli);

/* Wait until every master has been told what is to be undone, but at most the
 * reply timeout; then close all. */
void session_close(struct session *session);

int session_lock(struct session *session, const struct cli_names *names,
                 const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);
int session_adopt(struct session *session, const struct cli_names *names, const char *token,
                  const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);
int session_extend(struct session *session, struct redlock_lease *lease, uint32_t ttl_ms);
int session_unlock(struct session *session, struct redlock_lease *lease);

/* A signal that is watched must be heard: a program may be started with any of them blocked. */
void session_unblock(int signal);

/* The exit code for the signal that ended it, or CLI_OK. */
int session_signal_exit(const struct session *session);

#endif /* REDLOCK_SESSION_H */
