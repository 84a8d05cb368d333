/*
 * orders.h - what goes between `redlock run` and its guardian: orders and reports by a socket,
 * and the end of the lease in memory that both share.  See guardian.h for what the guardian does.
 */
#ifndef REDLOCK_ORDERS_H
#define REDLOCK_ORDERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "redlock/cli/deadline.h"
#include "redlock/redlock.h"

enum leash_order_type {
    LEASH_START,  /* Start the command. */
    LEASH_SIGNAL, /* Send a signal to its process group; SIGKILL to all descendants. */
    LEASH_END     /* The lock will be lost: SIGTERM now, SIGKILL at the deadline. */
};

struct leash_order {
    enum leash_order_type type;
    int signal;                      /* Of LEASH_SIGNAL.  What follows is of LEASH_START: */
    bool gets_tty;                   /* The terminal is handed over to the command. */
    struct deadline_margins margins; /* Of the lease. */
    struct deadline limit; /* How long the command may take, however long the lock lasts. */
    char token[REDLOCK_TOKEN_MAX + 1];
    char number[40]; /* "REDLOCK_FENCE=N" or "REDLOCK_PERMIT=N", or empty. */
};

enum leash_report_type {
    LEASH_STARTED, /* The command runs. */
    LEASH_FAILED,  /* It could not be started. */
    LEASH_STOPPED, /* It was stopped. */
    LEASH_ENDED    /* It has ended, and all is done that had to be done then. */
};

/* Why the guardian asked the command to end. */
enum leash_why { LEASH_BY_ITSELF, LEASH_TOLD, LEASH_AT_LIMIT, LEASH_AT_DEADLINE };

struct leash_report {
    enum leash_report_type type;
    pid_t pid;  /* Of LEASH_STARTED. */
    int error;  /* Of LEASH_FAILED: an errno. */
    int signal; /* Of LEASH_STOPPED.  What follows is of LEASH_ENDED: */
    int code;   /* The exit code of the command, as a shell would have it. */
    enum leash_why why;
    bool killed;        /* The guardian sent SIGKILL to the command. */
    bool cleared;       /* It ended what a command that had ended left running. */
    unsigned survivors; /* Descendants that it could not kill. */
    bool hidden;        /* There may be more, which it could not see. */
    int64_t asked_ns;   /* The end of the lease, minus when the command was asked to end; or */
    int64_t ended_ns;   /* minus when all were dead.  LEASH_GONE: nobody knows. */
};
#define LEASH_GONE INT64_MIN

/* The end of the lease: an instant of drift_now().  It is never later than what the library
 * believes.  0: the lock is gone, and nobody knows since when. */
struct leash_shared {
    _Atomic drift_time end;
};

#endif /* REDLOCK_ORDERS_H */
