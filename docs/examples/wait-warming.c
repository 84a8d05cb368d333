/*
 * wait-warming.c - takes a lock, and waits for as long as masters that lost their data warm up.
 *
 * A master that was started again without its data has no vote until every lease that it may have
 * granted is over.  A job that runs rarely may be the first to find it so.  It can wait: the
 * library says for how long.
 *
 *   wait-warming NAME [MAX_TTL_MS]
 *
 * MAX_TTL_MS: as in all other clients of these masters.
 */
#include <redlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ATTEMPTS = 20, UNKNOWN_MS = 500 };

/* The longest time that a master still warms up, as far as it is known. */
static uint32_t warms_for_ms(struct redlock *rl)
{
    struct redlock_reason why = {.size = sizeof why};
    uint32_t longest_ms = 0;

    for (unsigned i = 0; redlock_reason(rl, i, &why) == REDLOCK_OK; i++) {
        fprintf(stderr, "master %u (%s): [%s]\n", why.master, why.address, why.id);
        if (strcmp(why.id, "warming") == 0 && why.over_ms != UINT32_MAX && why.over_ms > longest_ms)
            longest_ms = why.over_ms;
    }
    return longest_ms > 0 ? longest_ms : UNKNOWN_MS;
}

static void sleep_ms(uint32_t ms)
{
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&span, NULL);
}

int main(int argc, char **argv)
{
    struct redlock_options opts;
    struct redlock_lock_options how;
    struct redlock_lease *lease;
    struct redlock *rl;
    int status;

    if (argc < 2)
        return 64;
    redlock_options_init(&opts);
    redlock_lock_options_init(&how);
    if (argc > 2)
        opts.max_ttl_ms = (uint32_t)atoi(argv[2]);
    if (how.ttl_ms > opts.max_ttl_ms)
        how.ttl_ms = opts.max_ttl_ms;
    status = redlock_open(&opts, &rl);
    for (int i = 0; i < ATTEMPTS && status == REDLOCK_OK; i++) {
        status = redlock_lock(rl, argv[1], &how, &lease);
        if (status != REDLOCK_NOT_READY)
            break;
        sleep_ms(warms_for_ms(rl));
        status = i + 1 < ATTEMPTS ? REDLOCK_OK : status;
    }
    if (status != REDLOCK_OK) {
        fprintf(stderr, "%s\n", redlock_errmsg(NULL));
        return 1;
    }
    puts("work");
    redlock_unlock(lease);
    redlock_close(rl);
    return 0;
}
