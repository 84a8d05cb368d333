/*
 * outage.c - how long a connected client takes to report that too few masters answer.
 *
 *   outage [--masters LIST]
 *
 * Prints "ready" when it is connected to all masters and has had a lock.  The caller then breaks
 * masters.  For each line on standard input, the program tries once to lock, and prints a line of
 * key=value.  Ends with 1 if the first lock fails, or if a later one does not end as UNREACHABLE.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "redlock/redlock.h"

static double now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Wait until all links are up; then lock and unlock. */
static int get_ready(struct redlock *client)
{
    const struct timespec nap = {.tv_nsec = 10000000};
    struct redlock_stats stats = {.size = sizeof stats};
    struct redlock_lease *lease;

    for (unsigned i = 0; i < 500; i++) {
        if (redlock_stats(client, &stats) == REDLOCK_OK && stats.masters_up == stats.masters)
            break;
        (void)nanosleep(&nap, NULL);
    }
    if (redlock_lock(client, "bench/outage", NULL, &lease) != REDLOCK_OK)
        return -1;
    return redlock_unlock(lease);
}

static int try_once(struct redlock *client)
{
    struct redlock_lease *lease;
    double began_ms = now_ms();
    int status = redlock_lock(client, "bench/outage", NULL, &lease);

    (void)printf("took_ms=%.3f unreachable=%d\n", now_ms() - began_ms,
                 status == REDLOCK_UNREACHABLE);
    (void)fflush(stdout);
    if (status == REDLOCK_OK)
        (void)redlock_unlock(lease);
    return status == REDLOCK_UNREACHABLE ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct redlock_options options;
    struct redlock *client;
    int result = 0;

    redlock_options_init(&options);
    if (argc == 3 && strcmp(argv[1], "--masters") == 0)
        options.masters = argv[2];
    if (redlock_open(&options, &client) != REDLOCK_OK || get_ready(client) != REDLOCK_OK) {
        (void)fprintf(stderr, "outage: %s\n", redlock_errmsg(NULL));
        return 1;
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    for (int c; (c = getchar()) != EOF;)
        if (c == '\n' && try_once(client) != 0)
            result = 1;
    (void)redlock_close(client);
    return result;
}
