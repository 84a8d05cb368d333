/*
 * command.h - the messages between a runner and its command, which `redlock run` starts, over a
 * SOCK_SEQPACKET socket.
 *
 * `redlock run` promises that the command is dead before the lock expires, by a quarter of the
 * fifth of the lease that is left when it gives up (redlock(1), THE CONTRACT OF RUN).  So while
 * both run, the command has that much time for what it begins.  It relies on half of it,
 * its trust.  It cannot see a pause of `redlock` alone.  But a nemesis pauses the command, too, and
 * then time passes between two steps.  The command gives up if that is more than its trust.
 *
 * The runner answers each message before the command goes on.  Only the runner writes the history
 * and passes on writes, so it knows how far a killed command came.  If the runner is killed,
 * `redlock` and the command end with it.
 */
#ifndef PARTITION_COMMAND_H
#define PARTITION_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* The trust is this part of a ttl: 50 ms of 2 s. */
#define COMMAND_TRUST_SHARE 40
/* At its start the command relies on more, because the lock is new.  Chosen: a quarter of a ttl is
 * more than the start of a process takes, and far less than a new lease lasts. */
#define COMMAND_START_SHARE 4

#define COMMAND_TOKEN_MAX 127

enum command_what {
    COMMAND_BEGINS,  /* The command runs, with this token and this fencing token. */
    COMMAND_LATE,    /* The command runs, but began too long ago to claim the lock. */
    COMMAND_STEPS,   /* The command goes on. */
    COMMAND_WRITES,  /* The command goes on, and writes. */
    COMMAND_ENDS,    /* The hold ends: the command is done. */
    COMMAND_TOLD,    /* The hold ends: the command was asked to end, as the lock will be lost. */
    COMMAND_STOPPED, /* The hold ends: the command was paused. */
};

struct command_message {
    enum command_what what;
    uint64_t t_ns;   /* The time of the event, CLOCK_MONOTONIC. */
    uint64_t fence;  /* The fencing token; 0: none. */
    unsigned permit; /* The number of the permit; 0: none. */
    char token[COMMAND_TOKEN_MAX + 1];
};

struct command_answer {
    bool finish; /* The command must end as soon as possible. */
};

/* The plan of the command, an argument: the descriptor of the socket, the length of the lease, how
 * long to work, whether to go on when it is told to end, the seed. */
#define COMMAND_OPTION "command"

#endif /* PARTITION_COMMAND_H */
