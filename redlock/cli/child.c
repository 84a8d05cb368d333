/*
 * child.c - fork and exec, process groups, and the terminal.
 */
#include "redlock/cli/child.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redlock/cli/cli.h"

/* ---- The terminal ---- */

static bool group_has_tty(pid_t group)
{
    return tcgetpgrp(STDIN_FILENO) == group;
}

bool child_we_have_tty(const struct child *child)
{
    return child->has_tty && group_has_tty(getpgrp());
}

void child_give_tty(const struct child *child)
{
    if (child_we_have_tty(child))
        (void)tcsetpgrp(STDIN_FILENO, child->pid); /* Fails where the child is gone. */
}

void child_take_tty(const struct child *child)
{
    if (child->has_tty && group_has_tty(child->pid))
        (void)tcsetpgrp(STDIN_FILENO, getpgrp()); /* Fails where the terminal is gone. */
}

/* A pipeline's other processes are in our group and need the terminal as well:
 * `redlock run x -- cmd | less`.  There the child gets it when it asks. */
static bool output_is_piped(void)
{
    struct stat info;

    return fstat(STDOUT_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

/* ---- The child's side ---- */

static void write_text(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* There is nowhere else to say it. */
}

/* Between fork and exec only what is safe in a signal handler: another thread
 * may have been looking up a name. */
static void become(const struct child *child, pid_t parent)
{
    (void)setpgid(0, 0);
    if (child->gets_tty)
        (void)tcsetpgrp(STDIN_FILENO, getpid()); /* SIGTTOU is ignored as yet. */
    /* Should `redlock` be killed, nobody renews the lock. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction action;

        if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            (void)signal(i, SIG_DFL);
    }
    (void)sigaction(SIGPIPE, &child->pipe_after, NULL);
    (void)sigaction(SIGTTOU, &child->ttou_after, NULL);
    (void)sigprocmask(SIG_SETMASK, &child->mask, NULL);
    if (getppid() != parent) {
        (void)raise(SIGTERM); /* It was killed before prctl(). */
        _exit(CLI_SIGNAL + SIGTERM);
    }
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

/* ---- Ours ---- */

int child_start(struct child *child)
{
    sigset_t all, before;
    pid_t parent = getpid();
    pid_t pid;

    child->has_tty = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) > 0;
    child->gets_tty = child_we_have_tty(child) && !output_is_piped();
    /* Once the terminal is the child's, a message of ours could stop us (stty
     * tostop), and so could taking it back. */
    (void)sigaction(SIGTTOU, NULL, &child->ttou_after);
    (void)signal(SIGTTOU, SIG_IGN);

    /* A signal must not run our handlers in the child, where it would be lost. */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (pid == 0) {
        become(child, parent);
        complain(child->argv[0], errno);
        _exit(errno == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE);
    }
    if (pid > 0) {
        child->pid = pid;
        (void)setpgid(pid, pid); /* The child does it too: whoever is first. */
        if (child->gets_tty)
            child_give_tty(child);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return pid > 0 ? 0 : -1;
}

static enum child_event stopped_by(const struct child *child, int signal)
{
    switch (signal) {
    case SIGTSTP:
        return child->has_tty && group_has_tty(child->pid) ? CHILD_STOPPED_BY_TTY
                                                           : CHILD_STOPPED_BY_TSTP;
    case SIGTTIN:
    case SIGTTOU:
        return child->has_tty ? CHILD_WANTS_TTY : CHILD_STOPPED;
    default:
        return CHILD_STOPPED;
    }
}

enum child_event child_look(struct child *child, bool last_rites, int *ret_status)
{
    siginfo_t info;
    int status;

    info.si_pid = 0;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
        return CHILD_NOTHING;
    if (last_rites && info.si_code != CLD_STOPPED)
        child_signal(child, SIGKILL);
    if (waitpid(child->pid, &status, WNOHANG | WUNTRACED) != child->pid)
        return CHILD_NOTHING;
    if (WIFSTOPPED(status))
        return stopped_by(child, WSTOPSIG(status));
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_SIGNAL + WTERMSIG(status);
    return CHILD_ENDED;
}

void child_signal(const struct child *child, int signal)
{
    /* Until it is reaped its number is its own; see child_look(). */
    (void)kill(-child->pid, signal);
}
