/*
 * failing.c - wrappers of the calls, put in by the linker's --wrap.  libev's calls of epoll_ctl()
 * find the one that is here.
 */
#include "live/failing.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

const char *const failing_names[CALLS] = {"none",
                                          "socket",
                                          "connect",
                                          "send",
                                          "recv",
                                          "setsockopt",
                                          "getsockopt",
                                          "SO_ERROR",
                                          "close",
                                          "eventfd",
                                          "timerfd_create",
                                          "timerfd_settime",
                                          "read",
                                          "write",
                                          "pthread_create",
                                          "getaddrinfo",
                                          "epoll_create1",
                                          "epoll_ctl",
                                          "epoll_ctl of the timer",
                                          "epoll_wait",
                                          "libev's epoll_ctl",
                                          "libev's epoll_ctl of the timer",
                                          "libev's epoll_ctl of its eventfd"};

static _Atomic enum call failing_call; /* NONE: no call fails. */
static atomic_int failing_error;
static atomic_uint failing_moment; /* The number of the call that fails; ALWAYS: all fail. */
static atomic_uint moments;        /* The number of calls so far. */
static atomic_bool has_failed;
static atomic_uint clock_reads = ALWAYS; /* So many succeed. */

void failing_start(enum call call, int error, unsigned moment)
{
    atomic_store(&moments, 0);
    atomic_store(&has_failed, false);
    atomic_store(&failing_error, error);
    atomic_store(&failing_moment, moment);
    atomic_store(&failing_call, call);
}

void failing_stop(void)
{
    atomic_store(&failing_call, NONE);
}

bool failing_happened(void)
{
    return atomic_load(&has_failed);
}

void failing_clock(unsigned after)
{
    atomic_store(&clock_reads, after);
}

static bool must_fail(enum call call)
{
    unsigned moment;

    if (call == NONE || atomic_load(&failing_call) != call)
        return false;
    moment = atomic_fetch_add(&moments, 1);
    if (moment != atomic_load(&failing_moment) && atomic_load(&failing_moment) != ALWAYS)
        return false;
    atomic_store(&has_failed, true);
    errno = atomic_load(&failing_error);
    return true;
}

int __real_socket(int family, int type, int protocol);
int __real_connect(int fd, const struct sockaddr *address, socklen_t len);
ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t len, int flags);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __real_close(int fd);
int __real_eventfd(unsigned count, int flags);
int __real_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
                           struct itimerspec *old_value);
ssize_t __real_read(int fd, void *bytes, size_t len);
ssize_t __real_write(int fd, const void *bytes, size_t len);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __real_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_all);
int __real_epoll_create1(int flags);
int __real_epoll_wait(int epoll, struct epoll_event *events, int room, int timeout_ms);
int __real_clock_gettime(clockid_t clock, struct timespec *ret_time);
__typeof__(__real_socket) __wrap_socket;
__typeof__(__real_connect) __wrap_connect;
__typeof__(__real_send) __wrap_send;
__typeof__(__real_recv) __wrap_recv;
__typeof__(__real_setsockopt) __wrap_setsockopt;
__typeof__(__real_getsockopt) __wrap_getsockopt;
__typeof__(__real_close) __wrap_close;
__typeof__(__real_eventfd) __wrap_eventfd;
__typeof__(__real_timerfd_create) __wrap_timerfd_create;
__typeof__(__real_timerfd_settime) __wrap_timerfd_settime;
__typeof__(__real_read) __wrap_read;
__typeof__(__real_write) __wrap_write;
__typeof__(__real_pthread_create) __wrap_pthread_create;
__typeof__(__real_getaddrinfo) __wrap_getaddrinfo;
__typeof__(__real_epoll_create1) __wrap_epoll_create1;
__typeof__(epoll_ctl) __wrap_epoll_ctl;
__typeof__(__real_epoll_wait) __wrap_epoll_wait;
__typeof__(__real_clock_gettime) __wrap_clock_gettime;

int __wrap_socket(int family, int type, int protocol)
{
    return must_fail(SOCKET) ? -1 : __real_socket(family, type, protocol);
}

/* After EINTR and EINPROGRESS the connection is made in the background. */
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
    int error = atomic_load(&failing_error);

    if (!must_fail(CONNECT))
        return __real_connect(fd, address, len);
    if (error == EINTR || error == EINPROGRESS)
        (void)__real_connect(fd, address, len);
    errno = error;
    return -1;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
    return must_fail(SEND) ? -1 : __real_send(fd, bytes, len, flags);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t len, int flags)
{
    return must_fail(RECV) ? -1 : __real_recv(fd, bytes, len, flags);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    return must_fail(SETSOCKOPT) ? -1 : __real_setsockopt(fd, level, name, value, len);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    if (must_fail(GETSOCKOPT))
        return -1;
    if (!must_fail(SO_ERROR_OF))
        return __real_getsockopt(fd, level, name, value, len);
    *(int *)value = atomic_load(&failing_error);
    return 0;
}

/* Linux closes the descriptor whatever close() returns (close(2)). */
int __wrap_close(int fd)
{
    (void)__real_close(fd);
    return must_fail(CLOSE) ? -1 : 0;
}

int __wrap_eventfd(unsigned count, int flags)
{
    return must_fail(EVENTFD) ? -1 : __real_eventfd(count, flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
    return must_fail(TIMERFD_CREATE) ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
                           struct itimerspec *old_value)
{
    return must_fail(TIMERFD_SETTIME) ? -1
                                      : __real_timerfd_settime(fd, flags, new_value, old_value);
}

ssize_t __wrap_read(int fd, void *bytes, size_t len)
{
    return must_fail(READ) ? -1 : __real_read(fd, bytes, len);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    return must_fail(WRITE) ? -1 : __real_write(fd, bytes, len);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    return must_fail(PTHREAD_CREATE) ? errno : __real_pthread_create(thread, attr, run, arg);
}

/* EAI_* are negative.  A positive error is an errno, and is reported with EAI_SYSTEM. */
int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **ret_all)
{
    int error = atomic_load(&failing_error);

    if (!must_fail(GETADDRINFO))
        return __real_getaddrinfo(host, service, hints, ret_all);
    return error > 0 ? EAI_SYSTEM : error;
}

int __wrap_epoll_create1(int flags)
{
    return must_fail(EPOLL_CREATE1) ? -1 : __real_epoll_create1(flags);
}

static bool is_socket(int fd)
{
    int type;
    socklen_t len = sizeof type;

    return __real_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

static int epoll_ctl_unless(enum call call, int epoll, int op, int fd, struct epoll_event *event)
{
    return must_fail(call) ? -1 : (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    return epoll_ctl_unless(is_socket(fd) ? EPOLL_CTL : EPOLL_CTL_TIMER, epoll, op, fd, event);
}

/* libev tells the kernel of a timer only by its descriptor, which has the name of its kind. */
static enum call call_of_libev(int fd)
{
    char path[32], file[32];
    ssize_t len;

    if (is_socket(fd))
        return EV_EPOLL_CTL;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    len = readlink(path, file, sizeof file - 1);
    file[len > 0 ? len : 0] = '\0';
    if (strcmp(file, "anon_inode:[timerfd]") == 0)
        return EV_EPOLL_CTL_TIMER;
    return strcmp(file, "anon_inode:[eventfd]") == 0 ? EV_EPOLL_CTL_WAKE : NONE;
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    return epoll_ctl_unless(call_of_libev(fd), epoll, op, fd, event);
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int room, int timeout_ms)
{
    return must_fail(EPOLL_WAIT) ? -1 : __real_epoll_wait(epoll, events, room, timeout_ms);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    if (clock != CLOCK_BOOTTIME || atomic_load(&clock_reads) == ALWAYS)
        return __real_clock_gettime(clock, ret_time);
    if (atomic_load(&clock_reads) > 0) {
        atomic_fetch_sub(&clock_reads, 1);
        return __real_clock_gettime(clock, ret_time);
    }
    errno = EINVAL;
    return -1;
}
