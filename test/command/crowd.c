/*
 * crowd.c - a command with many descendants that note the time.
 *
 * crowd FILE                       notes when it starts
 * crowd FILE flat|chain N SPINNING starts N descendants, each in a session of its own, that ignore
 *                                  SIGTERM
 *
 * FILE, which exists, is mapped, and is a struct crowd.  Each process notes the time again and
 * again: those that spin all the time, the others after each nap.  "flat": all are children of the
 * first.  "chain": each is a child of the one before.  In a chain of more than 600 each 100th
 * starts this program again, with its number as the last argument: each fork since then makes the
 * next one slower.  A process ends by itself when FILE says so, or after two minutes: none gets
 * SIGKILL when its parent dies, because that would do the work of the guardian.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CROWD_MAX 4000
#define END_AFTER_S 120

/* A nap takes a second until all have started, and then 100 ms, or longer if there are more than
 * 600: so they leave time for other work.  family.py knows this. */
#define NAP_MS(len) ((len) > 600 ? (len) / 6 : 100)

struct crowd {
    _Atomic uint64_t over;            /* Not 0: all end. */
    _Atomic uint64_t there;           /* How many descendants have started. */
    _Atomic uint64_t holds_at;        /* When `crowd FILE` started, in ns of CLOCK_BOOTTIME. */
    _Atomic uint64_t last[CROWD_MAX]; /* When each process last ran. */
};

static struct crowd *crowd;
static unsigned len;

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__attribute__((noreturn)) static void live(unsigned number, int spins)
{
    const struct timespec first = {.tv_sec = 1}, later = {.tv_nsec = NAP_MS(len) * 1000000L};

    (void)alarm(END_AFTER_S);
    crowd->there++;
    while (crowd->over == 0) {
        crowd->last[number] = now_ns();
        if (!spins)
            (void)nanosleep(crowd->there <= len ? &first : &later, NULL);
    }
    _exit(0);
}

static void start_again(char **argv, unsigned number)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", number);
    (void)execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], argv[4], text, (char *)NULL);
    _exit(3);
}

int main(int argc, char **argv)
{
    int fd = argc > 1 ? open(argv[1], O_RDWR) : -1;
    unsigned from, spinning;
    int is_chain;

    crowd = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (crowd == MAP_FAILED || (argc != 2 && argc != 5 && argc != 6))
        return 2;
    if (argc == 2) {
        crowd->holds_at = now_ns();
        return 0;
    }
    len = (unsigned)atoi(argv[3]);
    spinning = (unsigned)atoi(argv[4]);
    from = argc == 6 ? (unsigned)atoi(argv[5]) : 0;
    if (len >= CROWD_MAX)
        return 2;
    is_chain = strcmp(argv[2], "chain") == 0;
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    for (unsigned number = from + 1; number <= len; number++) {
        pid_t pid = fork();

        if (pid < 0)
            return 3;
        if (pid == 0)
            (void)setsid();
        if (pid == 0 && is_chain && len > 600 && number % 100 == 0)
            start_again(argv, number);
        if (pid == 0 ? !is_chain : is_chain)
            live(pid == 0 ? number : number - 1, number <= spinning);
    }
    live(is_chain ? len : 0, 0);
}
