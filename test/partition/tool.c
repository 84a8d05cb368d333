/*
 * tool.c - see tool.h.
 */
#include "partition/tool.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void tool_die(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

uint64_t tool_now_ns(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        tool_die("no clock: %s", strerror(errno));
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void tool_nap_ms(uint32_t nap_ms)
{
    const struct timespec nap = {nap_ms / 1000, (long)(nap_ms % 1000) * (long)NS_PER_MS};

    (void)nanosleep(&nap, NULL);
}

uint64_t dice_next(struct dice *dice)
{
    uint64_t z = (dice->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t dice_range(struct dice *dice, uint32_t low, uint32_t high)
{
    return low + (uint32_t)(dice_next(dice) % ((uint64_t)high - low + 1));
}

bool dice_chance(struct dice *dice, unsigned permille)
{
    return dice_next(dice) % 1000 < permille;
}

bool tool_is_word(const char *text, size_t max)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("-_.:", text[i]) == NULL)
            return false;
    return len > 0 && len <= max;
}

uint64_t tool_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    uint64_t number;

    errno = 0;
    number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != 0 || errno != 0 || number < least ||
        number > most)
        tool_die("%s must be a number from %llu to %llu, and is \"%s\"", option,
                 (unsigned long long)least, (unsigned long long)most, text);
    return number;
}

const volatile void *tool_map(const char *path, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    void *map;

    if (fd < 0 || fstat(fd, &info) != 0)
        tool_die("%s: %s", path, strerror(errno));
    if (info.st_size < (off_t)size)
        tool_die("%s: shorter than %zu bytes", path, size);
    map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        tool_die("%s: %s", path, strerror(errno));
    (void)close(fd);
    return map;
}
