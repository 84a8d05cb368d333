/*
 * fail.c - LD_PRELOAD for a program whose system calls fail.
 *
 * FAIL is "WHO CALL ERRNO FIRST TIMES".  In a process named WHO, as `ps` shows it, TIMES calls of
 * the function CALL fail with this error, from number FIRST on (the first call is 1).  The file
 * FAIL_MARK is made when a call has failed.  The CALL "rearm" stands for an epoll instance that
 * libev gives up, as it does after an event that it cannot explain, while the new one may watch
 * nothing.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
    char who[32], call[32];
    int error;
    unsigned first, times, count;
} plan;

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FAIL");

    if (text != NULL && sscanf(text, "%31[^ ] %31s %d %u %u", plan.who, plan.call, &plan.error,
                               &plan.first, &plan.times) != 5)
        _exit(125);
}

static bool refuses; /* epoll_ctl() fails until the next epoll_wait(). */

typedef long (*syscall_function)(long number, ...);

static syscall_function real_syscall(void)
{
    static syscall_function real;

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real;
}

static bool fails(const char *call)
{
    char name[16] = "";
    const char *mark;

    if (strcmp(call, plan.call) != 0)
        return false;
    (void)real_syscall()(SYS_prctl, PR_GET_NAME, name);
    if (strcmp(name, plan.who) != 0)
        return false;
    plan.count++;
    if (plan.count < plan.first || plan.count - plan.first >= plan.times)
        return false;
    mark = getenv("FAIL_MARK");
    if (mark != NULL)
        (void)real_syscall()(SYS_close, real_syscall()(SYS_open, mark, O_CREAT | O_WRONLY, 0600));
    errno = plan.error;
    return true;
}

pid_t fork(void)
{
    static pid_t (*real)(void);

    if (fails("fork"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "fork");
    return real();
}

int socketpair(int family, int type, int protocol, int pair[2])
{
    static int (*real)(int family, int type, int protocol, int pair[2]);

    if (fails("socketpair"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "socketpair");
    return real(family, type, protocol, pair);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    static void *(*real)(void *at, size_t len, int prot, int flags, int fd, off_t offset);

    if (fails("mmap"))
        return MAP_FAILED;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    return real(at, len, prot, flags, fd, offset);
}

int timerfd_create(int clock, int flags)
{
    static int (*real)(int clock, int flags);

    if (fails("timerfd_create"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "timerfd_create");
    return real(clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
                    struct itimerspec *old_value)
{
    static int (*real)(int fd, int flags, const struct itimerspec *new_value,
                       struct itimerspec *old_value);

    if (fails("timerfd_settime"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "timerfd_settime");
    return real(fd, flags, new_value, old_value);
}

int eventfd(unsigned value, int flags)
{
    static int (*real)(unsigned value, int flags);

    if (fails("eventfd"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "eventfd");
    return real(value, flags);
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    static int (*real)(int epoll, int op, int fd, struct epoll_event *event);

    if (fails("epoll_ctl"))
        return -1;
    if (refuses) {
        errno = plan.error;
        return -1;
    }
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
    return real(epoll, op, fd, event);
}

int epoll_wait(int epoll, struct epoll_event *events, int room, int timeout_ms)
{
    static int (*real)(int epoll, struct epoll_event *events, int room, int timeout_ms);
    int len;

    if (fails("epoll_wait"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
    len = real(epoll, events, room, timeout_ms);
    refuses = len > 0 && fails("rearm");
    if (refuses)
        events[0].data.u64 ^= UINT64_C(1)
                              << 32; /* libev's count of how often the number was used. */
    return len;
}

int signalfd(int fd, const sigset_t *mask, int flags)
{
    static int (*real)(int fd, const sigset_t *mask, int flags);

    if (fails("signalfd"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "signalfd");
    return real(fd, mask, flags);
}

int poll(struct pollfd *fds, nfds_t len, int timeout_ms)
{
    static int (*real)(struct pollfd * fds, nfds_t len, int timeout_ms);

    if (fails("poll"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "poll");
    return real(fds, len, timeout_ms);
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    static int (*real)(idtype_t type, id_t id, siginfo_t * info, int options);

    if (fails("waitid"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "waitid");
    return real(type, id, info, options);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    static pid_t (*real)(pid_t pid, int *status, int options);

    if (fails("waitpid"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "waitpid");
    return real(pid, status, options);
}

int execvpe(const char *file, char *const argv[], char *const envp[])
{
    static int (*real)(const char *file, char *const argv[], char *const envp[]);

    if (fails("execvpe"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "execvpe");
    return real(file, argv, envp);
}

int kill(pid_t pid, int number)
{
    static int (*real)(pid_t pid, int number);

    if (fails("kill"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "kill");
    return real(pid, number);
}

int setpgid(pid_t pid, pid_t group)
{
    static int (*real)(pid_t pid, pid_t group);

    if (fails("setpgid"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "setpgid");
    return real(pid, group);
}

int tcsetpgrp(int fd, pid_t group)
{
    static int (*real)(int fd, pid_t group);

    if (fails("tcsetpgrp"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "tcsetpgrp");
    return real(fd, group);
}

DIR *opendir(const char *path)
{
    static DIR *(*real)(const char *path);

    if (fails("opendir"))
        return NULL;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "opendir");
    return real(path);
}

ssize_t readlink(const char *path, char *text, size_t size)
{
    static ssize_t (*real)(const char *path, char *text, size_t size);

    if (fails("readlink"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "readlink");
    return real(path, text, size);
}

ssize_t read(int fd, void *bytes, size_t len)
{
    static ssize_t (*real)(int fd, void *bytes, size_t len);

    if (fails("read"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    return real(fd, bytes, len);
}

/* redlock and its guardian have a socket of this type. */
static bool is_leash(int fd)
{
    socklen_t len = sizeof(int);
    int type;

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    static ssize_t (*real)(int fd, const void *bytes, size_t len, int flags);

    if (fails("send") || (is_leash(fd) && fails("order")))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "send");
    return real(fd, bytes, len, flags);
}

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    static ssize_t (*real)(int fd, void *bytes, size_t len, int flags);

    if (fails("recv"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "recv");
    return real(fd, bytes, len, flags);
}

int socket(int family, int type, int protocol)
{
    static int (*real)(int family, int type, int protocol);

    if (fails("socket"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "socket");
    return real(family, type, protocol);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t len)
{
    static int (*real)(int fd, __CONST_SOCKADDR_ARG address, socklen_t len);

    if (fails("connect"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "connect");
    return real(fd, address, len);
}

int dup2(int from, int to)
{
    static int (*real)(int from, int to);

    if (fails("dup2"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "dup2");
    return real(from, to);
}

int close_range(unsigned first, unsigned last, int flags)
{
    static int (*real)(unsigned first, unsigned last, int flags);

    if (fails("close_range"))
        return -1;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "close_range");
    return real(first, last, flags);
}

int prctl(int option, ...)
{
    unsigned long given[4];
    va_list args;

    va_start(args, option);
    for (unsigned i = 0; i < 4; i++)
        given[i] = va_arg(args, unsigned long);
    va_end(args);
    if (fails("prctl"))
        return -1;
    return (int)real_syscall()(SYS_prctl, option, given[0], given[1], given[2], given[3]);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    int mode;

    va_start(args, flags);
    mode = va_arg(args, int);
    va_end(args);
    return fails("open") ? -1 : (int)real_syscall()(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Two calls without a function in libc can fail, too. */
long syscall(long number, ...)
{
    unsigned long given[6];
    va_list args;

    va_start(args, number);
    for (unsigned i = 0; i < 6; i++)
        given[i] = va_arg(args, unsigned long);
    va_end(args);
    if (number == SYS_pidfd_open && fails("pidfd_open"))
        return -1;
    if (number == SYS_pidfd_send_signal && fails("pidfd_send_signal"))
        return -1;
    return real_syscall()(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    return fails("clock_gettime") ? -1 : (int)real_syscall()(SYS_clock_gettime, clock, time);
}

ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    return fails("getrandom") ? -1 : (ssize_t)real_syscall()(SYS_getrandom, buf, len, flags);
}
