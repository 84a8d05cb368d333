/*
 * child.c - fork, exec, and the wait status.
 */
#include "redlock/cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Open the file of a command as execvpe() finds it.  -1: there is none that can be read. */
static int open_command(const char *command)
{
    const char *dirs = getenv("PATH");
    char path[PATH_MAX];
    int fd = -1;

    if (strchr(command, '/') != NULL)
        return open(command, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (dirs != NULL && fd < 0) {
        size_t len = strcspn(dirs, ":");

        (void)snprintf(path, sizeof path, "%.*s%s%s", (int)len, dirs, len > 0 ? "/" : "", command);
        if (access(path, X_OK) == 0)
            fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        dirs = dirs[len] == ':' ? dirs + len + 1 : NULL;
    }
    return fd;
}

/* Write why exec finds nothing.  It says the same of a file whose interpreter is missing: that of
 * its first line, or the loader of a program. */
static void explain_absence(const char *command, char *buf, size_t size)
{
    int fd = open_command(command);
    char line[256];
    ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
    char *name = line + 2;

    if (fd >= 0)
        (void)close(fd);
    (void)snprintf(buf, size, fd < 0 ? "command not found" : "the loader that it needs is missing");
    if (n < 2 || line[0] != '#' || line[1] != '!')
        return;
    line[n] = '\0';
    name += strspn(name, " \t");
    name[strcspn(name, " \t\n")] = '\0';
    n = (ssize_t)strcspn(name, "\r");
    (void)snprintf(buf, size, "its interpreter %.*s is missing%s", (int)n, name,
                   name[n] != '\0' ? ": its first line ends with a carriage return, as those of "
                                     "Windows do"
                                   : "");
}

/* Print why the command cannot be executed, if standard error takes the line at once.  The lock is
 * held meanwhile.  The guardian has no threads, so its child may call any function. */
static void complain(const char *command, int error)
{
    const char *text = strerrordesc_np(error);
    char why[400];

    if (error == ENOENT) {
        explain_absence(command, why, sizeof why);
        text = why;
    }
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

bool child_is_immune(const struct child *child)
{
    return child_runs(child) && kill(child->pid, 0) != 0 && errno == EPERM;
}

void child_signal(const struct child *child, int signal)
{
    if (child->pid != 0)
        (void)kill(-child->pid, signal);
}
