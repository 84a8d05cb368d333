/*
 * child.h - the command that `redlock run` runs: a process group of its own,
 * with the terminal where we have it.  It knows nothing of locks.
 */
#ifndef REDLOCK_CHILD_H
#define REDLOCK_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct child {
    char **argv;
    char **envp;
    sigset_t mask;               /* To be set in the command. */
    struct sigaction pipe_after; /* SIGPIPE, likewise. */
    struct sigaction ttou_after; /* SIGTTOU; ours is ignored from child_start() on. */
    pid_t pid;                   /* Also its process group; 0: not started. */
    bool has_tty;                /* Our standard input is our terminal. */
    bool gets_tty;               /* It is to be the child's from the start. */
};

enum child_event {
    CHILD_NOTHING,
    CHILD_ENDED,           /* *ret_status is its exit code, as a shell would have it. */
    CHILD_STOPPED,         /* By somebody who will let it go on. */
    CHILD_STOPPED_BY_TTY,  /* It had the terminal, and ^Z was typed. */
    CHILD_STOPPED_BY_TSTP, /* SIGTSTP from elsewhere. */
    CHILD_WANTS_TTY,       /* It used the terminal without having it. */
};

/* Look at the terminal; then start the command.  0, or -1 with errno.  A
 * command that cannot be executed says so itself, and ends with 126 or 127. */
int child_start(struct child *child);

/* What has happened to it, after a SIGCHLD; to be asked until CHILD_NOTHING.
 * last_rites: kill what is left of its process group before it is reaped, as
 * long as the group's number cannot be anybody else's. */
enum child_event child_look(struct child *child, bool last_rites, int *ret_status);

/* Send a signal to its process group. */
void child_signal(const struct child *child, int signal);

/* Whether our own process group has the terminal. */
bool child_we_have_tty(const struct child *child);

/* Hand the terminal over, if we have it; take it back, if the child has it. */
void child_give_tty(const struct child *child);
void child_take_tty(const struct child *child);

#endif /* REDLOCK_CHILD_H */
