/*
 * skew.c - LD_PRELOAD for a program: its wall clock is off by what a file says.
 *
 * SKEW_FILE begins with a native 64-bit number, in nanoseconds, and is mapped: a write in place
 * steps the clock at once.  A second number, if there is one, is added to CLOCK_BOOTTIME, as if the
 * machine had slept.  CLOCK_MONOTONIC is not changed.  The clock is read by a system call, not by
 * the vDSO or libc.
 *
 * Allocates nothing, and works before the constructor has run, because an allocator may read the
 * time.  Without the file, the program does not start.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(time_t) == sizeof(long), "the kernel's timespec is not libc's");

static const int64_t *offset_ns; /* NULL: not mapped yet. */
static const int64_t *slept_ns;  /* NULL: not mapped yet, or there is no second number. */

__attribute__((noreturn)) static void refuse(void)
{
    static const char text[] = "skew: SKEW_FILE must name a file of 8 bytes or more\n";

    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(126);
    _exit(127);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("SKEW_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct stat info;
    void *map;

    if (fd < 0 || fstat(fd, &info) != 0 || info.st_size < (off_t)sizeof *offset_ns)
        refuse();
    map = mmap(NULL, 2 * sizeof *offset_ns, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        refuse();
    (void)close(fd);
    offset_ns = map;
    if (info.st_size >= (off_t)(2 * sizeof *offset_ns))
        slept_ns = offset_ns + 1;
}

/* The offset of this clock; NULL: none. */
static const int64_t *offset_of(clockid_t clock)
{
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        return offset_ns;
    return clock == CLOCK_BOOTTIME ? slept_ns : NULL;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    const int64_t *offset = offset_of(clock);
    int64_t skewed;

    if (syscall(SYS_clock_gettime, clock, ts) != 0)
        return -1;
    if (offset == NULL)
        return 0;
    skewed =
        (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec + __atomic_load_n(offset, __ATOMIC_RELAXED);
    ts->tv_sec = skewed / 1000000000;
    ts->tv_nsec = skewed % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;

    if (zone != NULL)
        *(struct timezone *)zone = (struct timezone){0};
    if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
        return -1;
    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_now)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
        return (time_t)-1;
    if (ret_now != NULL)
        *ret_now = ts.tv_sec;
    return ts.tv_sec;
}
