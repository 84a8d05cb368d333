/*
 * orders.h - what `redlock run` and its guardian (guardian.h) exchange: orders and reports through
 * a socket, and the end of the lease in memory that both share.
 */
#ifndef REDLOCK_ORDERS_H
#define REDLOCK_ORDERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "redlock/cli/common/deadline.h"
#include "redlock/redlock.h"

enum leash_order_type {
    LEASH_START,  /* Start the command. */
    LEASH_SIGNAL, /* Signal its process group.  SIGKILL goes to all descendants. */
    LEASH_END     /* End the command: SIGTERM now, SIGKILL at the deadline. */
};

struct leash_order {
    enum leash_order_type type;
    int signal; /* LEASH_SIGNAL: the signal. */
    /* The rest is for LEASH_START. */
    bool gets_tty;                   /* The command gets the terminal. */
    drift_span ttl;                  /* The duration of --ttl. */
    struct deadline_margins margins; /* The margins of the first lease. */
    struct deadline limit;           /* The deadline of --hold-at-most. */
    char token[REDLOCK_TOKEN_MAX + 1];
    char fence[40], permit[24]; /* "REDLOCK_FENCE=N" and "REDLOCK_PERMIT=N", or empty. */
};

enum leash_report_type {
    LEASH_STARTED, /* The command runs. */
    LEASH_FAILED,  /* The command could not be started. */
    LEASH_STOPPED, /* The command was stopped. */
    LEASH_IMMUNE,  /* The command may not be signalled. */
    LEASH_CROWD,   /* There may be no time to end so many descendants before the lease ends. */
    LEASH_ENDED    /* The command has ended, and the guardian is done with its descendants. */
};

/* Why the guardian asked the command to end. */
enum leash_why { LEASH_BY_ITSELF, LEASH_TOLD, LEASH_AT_LIMIT, LEASH_AT_DEADLINE, LEASH_NO_CLOCK };

struct leash_report {
    enum leash_report_type type;
    pid_t pid;             /* LEASH_STARTED: the process. */
    int error;             /* LEASH_FAILED: the errno. */
    int signal;            /* LEASH_STOPPED: the signal.  LEASH_ENDED: the one it died of, or 0. */
    unsigned descendants;  /* LEASH_CROWD: how many there are, at least. */
    unsigned dead;         /* LEASH_CROWD: how many of them are zombies. */
    drift_span lead, room; /* LEASH_CROWD: how long it may take to end them, and the time for it. */
    /* The rest is for LEASH_ENDED. */
    int code;           /* The exit code of the command, as a shell reports it. */
    unsigned signals;   /* How many orders LEASH_SIGNAL came before the command had ended. */
    enum leash_why why; /* Also of LEASH_IMMUNE. */
    bool killed;        /* The guardian sent SIGKILL to the command, and was allowed to. */
    bool cleared;       /* The guardian ended processes that an ended command left. */
    unsigned survivors; /* Descendants that could not be killed. */
    bool hidden;        /* There may be more, which could not be seen. */
    int64_t asked_ns;   /* The end of the lease minus the time of SIGTERM, or LEASH_GONE. */
    int64_t ended_ns;   /* The end of the lease minus the time when all were dead, or LEASH_GONE. */
};
#define LEASH_GONE INT64_MIN /* The end of the lease is not known. */

/* The end of the lease: an instant of drift_now(), never later than the library's.  0: the lock is
 * lost, since an unknown instant. */
struct leash_shared {
    _Atomic drift_time end;
};

#endif /* REDLOCK_ORDERS_H */
