/*
 * child.c - fork, exec, and the wait status.
 */
#include "redlock/cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redlock/cli/common/cli.h"

/* How much of the command's name a message shows.  Chosen: the reason after it fits in the line. */
#define NAME_SHOWN_MAX 1024

#define DESCRIPTORS_MAX 65536 /* Closed one by one if the kernel cannot close a range. */

/* ---- The child's side ---- */

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

/* Print why the command cannot be executed, if standard error takes the line at once.  The lock is
 * held meanwhile.  The guardian has no threads, so its child may call any function. */
static void complain(const char *command, int error)
{
    const char *text = error == ENOENT ? "command not found" : strerrordesc_np(error);

    (void)signal(SIGPIPE, SIG_IGN); /* A message must not change the exit status. */
    (void)signal(SIGXFSZ, SIG_IGN);
    cli_never_wait();
    cli_say(MSG_NOT_STARTED, "run: %.*s: %s", NAME_SHOWN_MAX, command,
            text != NULL ? text : "cannot be executed");
}

/* ---- The parent's side ---- */

int child_start(struct child *child)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    int error;

    if (pid < 0)
        return -1;
    if (pid == 0) {
        become(child, parent);
        error = errno;
        complain(child->argv[0], error);
        _exit(error == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE);
    }
    child->pid = pid;
    (void)setpgid(pid, pid); /* The child does the same.  The first call counts. */
    return 0;
}

static bool is_among(int fd, const int *kept, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (kept[i] == fd)
            return true;
    return false;
}

void child_drop_descriptors(const int *kept, size_t len)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int last = STDERR_FILENO;

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (null < 0 || dup2(null, fd) < 0)
            (void)close(fd);
    for (size_t i = 0; i < len; i++)
        last = kept[i] > last ? kept[i] : last;
    if (close_range((unsigned)last + 1, ~0U, 0) != 0) /* Linux before 5.9. */
        last = DESCRIPTORS_MAX;
    for (int fd = STDERR_FILENO + 1; fd < last; fd++)
        if (!is_among(fd, kept, len))
            (void)close(fd);
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
    child->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_SIGNAL + WTERMSIG(status);
    return CHILD_ENDED;
}

bool child_runs(const struct child *child)
{
    siginfo_t info;

    info.si_pid = 0;
    return child->pid != 0 &&
           waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

void child_signal(const struct child *child, int signal)
{
    if (child->pid != 0)
        (void)kill(-child->pid, signal);
}
