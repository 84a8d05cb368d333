/*
 * command.h - what a runner and the command that it has `redlock run` run say
 * to each other, over a socket that keeps messages apart.
 *
 * `redlock run` promises that the command is dead before the lock runs out, by
 * a quarter of the fifth of the lease that is left when it gives up (redlock(1),
 * THE CONTRACT OF RUN).  So a command that runs, while `redlock` does, has so much
 * time for what it begins; it relies on half of that, and calls that its trust.
 * It cannot ask for more, and a pause of `redlock` it cannot see; but whoever
 * is paused with it, as a nemesis does, it can: then time has passed between
 * two steps.  It gives up when that is more than its trust.
 *
 * Each message is answered before the command goes on.  The runner alone tells
 * the history, and passes writes on, so that it knows how far a command came
 * that is killed; when the runner is, `redlock` and the command end with it.
 */
#ifndef PARTITION_COMMAND_H
#define PARTITION_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* Of a ttl; see above.  With 2 s it is 50 ms. */
#define COMMAND_TRUST_SHARE 40
/* At first it relies on more: the lock is new.  No source: a quarter of a ttl is
 * more than it takes to start a process, and far less than a new lease lasts. */
#define COMMAND_START_SHARE 4

#define COMMAND_TOKEN_MAX 127

enum command_what {
    COMMAND_BEGINS,  /* It runs, with this token, and this fencing token. */
    COMMAND_LATE,    /* It runs, but began too long ago to claim anything. */
    COMMAND_STEPS,   /* It goes on. */
    COMMAND_WRITES,  /* It goes on, and writes. */
    COMMAND_ENDS,    /* It is done: the end of the hold. */
    COMMAND_TOLD,    /* It was asked to end, since the lock will be lost: likewise. */
    COMMAND_STOPPED, /* It was paused: likewise. */
};

struct command_message {
    enum command_what what;
    uint64_t t_ns;   /* CLOCK_MONOTONIC, when it was so. */
    uint64_t fence;  /* 0: it has none. */
    unsigned permit; /* Likewise. */
    char token[COMMAND_TOKEN_MAX + 1];
};

struct command_answer {
    bool finish; /* End as soon as you can. */
};

/* What it is to do, as an argument: the descriptor of the socket, how long the
 * lease is, how long to work, whether to go on when it is told to end, the seed. */
#define COMMAND_OPTION "command"

#endif /* PARTITION_COMMAND_H */
