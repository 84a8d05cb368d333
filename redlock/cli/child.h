/*
 * child.h - the command that `redlock run` runs: a child of this process, in a process
 * group of its own.  It knows nothing of locks.
 */
#ifndef REDLOCK_CHILD_H
#define REDLOCK_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct child {
    char **argv;
    char **envp;
    sigset_t mask;               /* The signals that are blocked in the command. */
    struct sigaction chld_after; /* SIGCHLD in the command.  Others are as they are here. */
    bool gets_tty;               /* Standard input is the terminal, and becomes the command's. */
    pid_t pid;                   /* Also its process group; 0: not started, or reaped. */
};

enum child_event {
    CHILD_NOTHING,
    CHILD_ENDED,   /* *ret_status is its exit code, as a shell would have it. */
    CHILD_STOPPED, /* *ret_status is the signal. */
};

/* Start the command; every signal must be blocked.  0, or -1 with errno.  A command that
 * cannot be executed says so itself, and ends with 126 or 127.  The command gets SIGKILL
 * when this process dies. */
int child_start(struct child *child);

/* What has happened to it; to be asked until CHILD_NOTHING.  last_rites: kill what is left
 * of its process group before it is reaped: until then the group's number is its own. */
enum child_event child_look(struct child *child, bool last_rites, int *ret_status);

/* Send a signal to its process group, unless it has been reaped. */
void child_signal(const struct child *child, int signal);

#endif /* REDLOCK_CHILD_H */
