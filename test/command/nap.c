/*
 * nap.c - LD_PRELOAD for a program whose machine seems to have slept.
 *
 * NAP_FILE is mapped, and holds two native 64-bit numbers, in nanoseconds.  The first is added to
 * CLOCK_BOOTTIME, both when the program reads it and when it polls a timer of that clock.  It may
 * have one such timer.  The second is added to the wall clock, and is 0 if the file ends before it.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

_Static_assert(sizeof(time_t) == sizeof(long), "the kernel's timespec is not libc's");

#define NS_PER_S INT64_C(1000000000)
#define LOOK_EVERY_MS 10

static const int64_t *slept_ns;
static int timer = -1;     /* The timer that was set last. */
static int64_t due_ns = 0; /* When the timer rings; 0: it is off. */

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("NAP_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map =
        fd >= 0 ? mmap(NULL, 2 * sizeof *slept_ns, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (map == MAP_FAILED)
        _exit(127);
    (void)close(fd);
    slept_ns = map;
}

static int64_t offset_ns(bool wall)
{
    return slept_ns != NULL ? __atomic_load_n(slept_ns + wall, __ATOMIC_RELAXED) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int64_t now;

    if (syscall(SYS_clock_gettime, clock, ts) != 0)
        return -1;
    if (clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME)
        return 0;
    now = (int64_t)ts->tv_sec * NS_PER_S + ts->tv_nsec + offset_ns(clock == CLOCK_REALTIME);
    ts->tv_sec = now / NS_PER_S;
    ts->tv_nsec = now % NS_PER_S;
    return 0;
}

/* libev makes the system call itself. */
double ev_time(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_REALTIME, &now) == 0 ? (double)now.tv_sec + (double)now.tv_nsec / 1e9
                                                    : 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
                    struct itimerspec *old_value)
{
    static const struct itimerspec off;

    if ((flags & TFD_TIMER_ABSTIME) == 0)
        return (int)syscall(SYS_timerfd_settime, fd, flags, new_value, old_value);
    timer = fd;
    due_ns = (int64_t)new_value->it_value.tv_sec * NS_PER_S + new_value->it_value.tv_nsec;
    return (int)syscall(SYS_timerfd_settime, fd, flags, &off, old_value);
}

static bool has_rung(void)
{
    struct timespec now;

    if (due_ns == 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return false;
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec >= due_ns;
}

int poll(struct pollfd *fds, nfds_t len, int timeout_ms)
{
    const struct timespec slice = {0, LOOK_EVERY_MS * 1000000};
    struct pollfd *found_at = NULL;

    for (struct pollfd *one = fds; one != NULL && one < fds + len && timer >= 0; one++)
        if (one->fd == timer)
            found_at = one;
    if (found_at == NULL || timeout_ms >= 0) { /* No timer, or a wait of another kind. */
        struct timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};

        return (int)syscall(SYS_ppoll, fds, len, timeout_ms < 0 ? NULL : &limit, NULL, 0);
    }
    for (;;) {
        struct timespec left = slice; /* The kernel writes what was not slept. */
        int found = (int)syscall(SYS_ppoll, fds, len, &left, NULL, 0);

        if (has_rung() && found >= 0) {
            found_at->revents = POLLIN;
            return found + 1;
        }
        if (found != 0)
            return found;
    }
}
