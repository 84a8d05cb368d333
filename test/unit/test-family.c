/*
 * test-family.c - the descendants of this process are found and signalled, whatever fails.
 */
#include "redlock/cli/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/check.h"

/* ---- The kernel's answers, or errors in their place ---- */

static unsigned opened;             /* The number of files and folders. */
static int open_error, pidfd_error; /* 0: the kernel decides. */
static bool lists_no_children;      /* Like a kernel without CONFIG_PROC_CHILDREN. */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

int __wrap_open(const char *path, int flags, ...)
{
    opened++;
    if (open_error == 0)
        return __real_open(path, flags);
    errno = open_error;
    return -1;
}

/* Programs that support large files call open() by this name. */
int __wrap_open64(const char *path, int flags, ...)
{
    return __wrap_open(path, flags);
}

DIR *__wrap_opendir(const char *path)
{
    opened++;
    if (open_error == 0)
        return __real_opendir(path);
    errno = open_error;
    return NULL;
}

int __wrap_access(const char *path, int mode)
{
    if (!lists_no_children)
        return __real_access(path, mode);
    errno = ENOENT;
    return -1;
}

long __wrap_syscall(long number, ...)
{
    long args[4];
    va_list list;

    va_start(list, number);
    for (unsigned i = 0; i < 4; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (pidfd_error == 0 || number != SYS_pidfd_open)
        return __real_syscall(number, args[0], args[1], args[2], args[3]);
    errno = pidfd_error;
    return -1;
}

/* ---- A family ---- */

#define LIVE_S 100 /* Chosen: longer than a test.  It ends the family if a test fails. */

/* A child in its own process group has two children.  One is in the same group.  The other has its
 * own session, and a child with its own group. */
struct kin {
    pid_t child;
    int alive; /* A pipe that ends when all are dead. */
};

__attribute__((noreturn)) static void live(int fd)
{
    (void)alarm(LIVE_S);
    if (write(fd, ".", 1) < 0)
        (void)close(fd);
    for (;;)
        pause();
}

__attribute__((noreturn)) static void be_kin(int fd)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)setpgid(0, 0);
    if (fork() == 0)
        live(fd);
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0) {
            (void)setpgid(0, 0);
            live(fd);
        }
        live(fd);
    }
    live(fd);
}

#define KIN_LEN 4
#define STRANGERS 100 /* Chosen: more than the files that this family needs. */

/* Returns when all processes run. */
static struct kin begin(void)
{
    struct kin kin;
    char byte;
    int pair[2];

    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    CHECK_INT(pipe(pair), 0);
    kin.child = fork();
    if (kin.child == 0) {
        (void)close(pair[0]);
        be_kin(pair[1]);
    }
    (void)setpgid(kin.child, kin.child);
    (void)close(pair[1]);
    kin.alive = pair[0];
    for (unsigned i = 0; i < KIN_LEN; i++)
        CHECK_INT(read(kin.alive, &byte, 1), 1);
    return kin;
}

/* Waits until all processes have ended. */
static void end(struct kin *kin)
{
    char byte;

    CHECK_INT(read(kin->alive, &byte, 1), 0);
    (void)close(kin->alive);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    opened = 0;
    open_error = pidfd_error = 0;
    lists_no_children = false;
}

/* ---- Tests ---- */

TEST(finds_all_whatever_groups_they_have)
{
    for (unsigned i = 0; i < 2; i++) {
        struct kin kin = begin();

        lists_no_children = i == 1;
        CHECK_UINT(family_signal(0, 0).alive, KIN_LEN);
        CHECK_UINT(family_signal(0, kin.child).alive, 2);
        CHECK_UINT(family_signal(0, -kin.child).alive, 2);
        CHECK_UINT(family_signal(0, 0).hidden, false);
        CHECK_UINT(family_kill().alive, KIN_LEN);
        end(&kin);
    }
    CHECK_UINT(family_signal(SIGKILL, 0).alive, 0);
}

/* Called in a process of its own, which ends with its family. */
static int count_opened(void)
{
    (void)begin();
    opened = 0;
    (void)family_signal(SIGKILL, 0);
    return opened < STRANGERS ? (int)opened : STRANGERS;
}

/* Other processes of the machine are not examined. */
TEST(costs_go_with_the_number_of_descendants)
{
    pid_t strangers[STRANGERS], counter;
    int status = 0;

    for (unsigned i = 0; i < STRANGERS; i++) {
        strangers[i] = fork();
        if (strangers[i] == 0)
            live(-1);
    }
    counter = fork();
    if (counter == 0)
        _exit(count_opened());
    CHECK_INT(waitpid(counter, &status, 0), counter);
    for (unsigned i = 0; i < STRANGERS; i++)
        (void)kill(strangers[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) > 0);
    CHECK(WEXITSTATUS(status) <= 10 * KIN_LEN);
}

TEST(signals_without_descriptors_of_processes)
{
    static const int errors[] = {EPERM, ENOSYS, EMFILE, ENFILE, ENOMEM};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct kin kin = begin();

        pidfd_error = errors[i];
        CHECK_UINT(family_signal(SIGKILL, 0).alive, KIN_LEN);
        end(&kin);
    }
}

/* If no process can be seen, some may still run, so the group is killed. */
TEST(fails_to_the_safe_side)
{
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, EACCES};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct kin kin = begin();
        struct family_count count;

        open_error = errors[i];
        CHECK(family_signal(0, 0).hidden);
        count = family_signal(SIGKILL, kin.child);
        CHECK(count.hidden && count.alive > 0);
        CHECK(family_kill().hidden);
        open_error = 0;
        CHECK_UINT(family_kill().hidden, false);
        end(&kin);
    }
}

CHECK_MAIN(RUN(finds_all_whatever_groups_they_have), RUN(costs_go_with_the_number_of_descendants),
           RUN(signals_without_descriptors_of_processes), RUN(fails_to_the_safe_side))
