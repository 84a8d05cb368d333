/*
 * child.c - fork, exec, and the wait status.
 */
#include "redlock/cli/child.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redlock/cli/cli.h"

/* ---- The child's side ---- */

static void write_text(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* There is no other place for the message. */
}

/* Between fork and exec: only functions that are safe in a signal handler. */
static void become(const struct child *child, pid_t parent)
{
    (void)setpgid(0, 0);
    if (child->gets_tty)
        (void)tcsetpgrp(STDIN_FILENO, getpid()); /* SIGTTOU is still blocked. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_SIGNAL + SIGKILL); /* The parent died before prctl(). */
    (void)sigaction(SIGCHLD, &child->chld_after, NULL);
    (void)sigprocmask(SIG_SETMASK, &child->mask, NULL);
    (void)execvpe(child->argv[0], child->argv, child->envp);
}

static void complain(const char *command, int error)
{
    const char *text = strerrordesc_np(error);

    write_text("redlock: run: ");
    write_text(command);
    write_text(": ");
    write_text(error == ENOENT ? "command not found" : text != NULL ? text : "cannot be executed");
    write_text("\n");
}

/* ---- The parent's side ---- */

int child_start(struct child *child)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        return -1;
    if (pid == 0) {
        become(child, parent);
        complain(child->argv[0], errno);
        _exit(errno == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE);
    }
    child->pid = pid;
    (void)setpgid(pid, pid); /* The child does the same.  The first call counts. */
    return 0;
}

enum child_event child_look(struct child *child, bool last_rites, int *ret_status)
{
    siginfo_t info;
    int status;

    info.si_pid = 0;
    if (child->pid == 0 ||
        waitid(P_PID, (id_t)child->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
        return CHILD_NOTHING;
    if (last_rites && info.si_code != CLD_STOPPED)
        child_signal(child, SIGKILL);
    if (waitpid(child->pid, &status, WNOHANG | WUNTRACED) != child->pid)
        return CHILD_NOTHING;
    if (WIFSTOPPED(status)) {
        *ret_status = WSTOPSIG(status);
        return CHILD_STOPPED;
    }
    child->pid = 0;
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_SIGNAL + WTERMSIG(status);
    return CHILD_ENDED;
}

void child_signal(const struct child *child, int signal)
{
    if (child->pid != 0)
        (void)kill(-child->pid, signal);
}
