/*
 * child.h - runs a command as a child of this process, in a process group of its own.
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
    struct sigaction chld_after; /* The action of SIGCHLD in the command. */
    bool gets_tty;               /* Standard input is the terminal, and the command gets it. */
    pid_t pid;                   /* Also its process group.  0: not started, or reaped. */
    int signal;                  /* The signal that it died of.  0: none. */
};

enum child_event {
    CHILD_NOTHING,
    CHILD_ENDED,   /* *ret_status is its exit code, as a shell reports it. */
    CHILD_STOPPED, /* *ret_status is the signal that stopped it. */
};

/* Start the command.  Every signal must be blocked.  Returns 0, or -1 with errno.  If the command
 * cannot be executed, the child prints a message and ends with 126 or 127.  The command gets
 * SIGKILL when this process dies. */
int child_start(struct child *child);

/* Close the descriptors that the command got, but for those kept, above 2.  The reader of a pipe
 * waits until all writers closed it. */
void child_drop_descriptors(const int *kept, size_t len);

/* Return what happened to the command.  Call this until it returns CHILD_NOTHING.  last_rites: kill
 * the rest of its process group before reaping it.  Until then no other group gets the number. */
enum child_event child_look(struct child *child, bool last_rites, int *ret_status);

/* True: the command has been started, and has not ended. */
bool child_runs(const struct child *child);

/* True: it runs, and may not be signalled: it is set-user-ID, or has changed its user. */
bool child_is_immune(const struct child *child);

/* Send a signal to the process group of the command, unless the command has been reaped. */
void child_signal(const struct child *child, int signal);

#endif /* REDLOCK_CHILD_H */
