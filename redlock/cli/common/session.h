/*
 * session.h - a client on a loop of its own, for one lock of one command.
 *
 * Each call runs the loop until it is done, or until a signal comes that should end the program.
 * The signal cancels the call.  Calls return exit codes, after a message if they failed.
 */
#ifndef REDLOCK_SESSION_H
#define REDLOCK_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include <ev.h>

#include "drift/drift.h"
#include "redlock/cli/common/cli.h"

enum { SESSION_SIGNALS_MAX = 8 };

struct session {
    struct cli *cli;
    struct ev_loop *loop;
    struct redlock *rl;
    ev_signal signals[SESSION_SIGNALS_MAX];
    unsigned signals_len;
    int signal; /* The first signal that came.  0: none. */
    /* If not NULL, it gets the signals, which then cancel nothing. */
    void (*on_signal)(struct session *session, int signal);
    void *on_signal_arg;
    const struct cli_names *names;         /* Of the lock.  The caller keeps them. */
    char name[CLI_NAMES_SHOWN_MAX];        /* The first name, for a shell. */
    char doctor[CLI_NAMES_SHOWN_MAX + 24]; /* The arguments of `redlock doctor` for this lock. */
    bool has_more_names;                   /* Of its names, only the first is in doctor. */
    bool is_adopted;                       /* The token was given. */
    bool may_lack_kind;           /* The token was given without --permits and without --shared. */
    struct redlock_lease *wanted; /* The lock that is waited for. */
    ev_timer patience;            /* Reports why it is not held yet. */
    bool quiet;                   /* Do not report operations that fail. */
    bool is_locking;              /* The operation takes a lock. */
    struct error held;            /* What a lock that another client has ended with. */
    bool is_foreign;              /* A foreign key keeps the lock from all clients. */
    bool done;                    /* The operation is done. */
    int status;                   /* Its status. */
};

/* Open a client, and wait until all links are up, but at most the reply timeout. */
int session_open(struct session *session, struct cli *cli);

/* Wait until all masters that are not down have answered the releases, but at most the reply
 * timeout.  Then close all. */
void session_close(struct session *session);

/* Run the loop once: until wake_at, but at most a tick, and less if something happens. */
void session_turn(struct session *session, drift_time wake_at);

int session_lock(struct session *session, const struct cli_names *names,
                 const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);
int session_adopt(struct session *session, const struct cli_names *names, const char *token,
                  const struct redlock_lock_options *opts, struct redlock_lease **ret_lease);
int session_extend(struct session *session, struct redlock_lease *lease, uint32_t ttl_ms);
int session_unlock(struct session *session, struct redlock_lease *lease);

/* Unblock a signal that is watched.  A program may be started with any signal blocked. */
void session_unblock(int signal);

/* The exit code for the signal that came, or CLI_OK.  If the program ends with this code, it dies
 * of the signal (main.c). */
int session_signal_exit(const struct session *session);

#endif /* REDLOCK_SESSION_H */
