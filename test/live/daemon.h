/*
 * daemon.h - children of a fork: one that closes all descriptors, as daemonizing does, and opens
 * files of its own before it cleans up the client that it inherited, and one in another PID
 * namespace.
 */
#ifndef TEST_DAEMON_H
#define TEST_DAEMON_H

#include "test/lib/check.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int daemon_cleans_up(int fd, void (*clean_up)(void))
{
    char path[] = "/tmp/redlock-test-XXXXXX";
    int file = mkstemp(path);
    struct stat before, after;

    (void)unlink(path);
    if (file < 0 || dup2(file, fd) != fd || fstat(fd, &before) != 0)
        return 1;
    clean_up();
    return fstat(fd, &after) == 0 && after.st_ino == before.st_ino ? 0 : 2;
}

/* The number fd is that of one of its files when the child calls clean_up(), and the file stays. */
static void check_daemon_keeps_file(int fd, void (*clean_up)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(daemon_cleans_up(fd, clean_up));
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

/* As fork().  The child does not see its parent: it is the first of a PID namespace. */
static pid_t fork_into_namespace(void)
{
    long child = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

    if (child < 0) /* A plain user. */
        child = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (child < 0)
        (void)printf("no PID namespace can be had here: with fork() in its place\n");
    return child < 0 ? fork() : (pid_t)child;
}

#endif /* TEST_DAEMON_H */
