/*
 * turns.c - locks and unlocks on a loop, for test/bench/cost to count what a cycle costs on each.
 *
 *   turns ev|poll CYCLES IN_FLIGHT
 *
 * ev is a client on a loop of libev, poll a pollable one with poll(2).  Nothing else differs.  The
 * masters come from REDLOCK_MASTERS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "redlock/adapters/poll.h"

static struct redlock *client;
static unsigned to_begin, under_way;

static void die(const char *what)
{
    (void)fprintf(stderr, "turns: %s: %s\n", what, redlock_errmsg(client));
    exit(EXIT_FAILURE);
}

static void begin(char *name);

static void on_unlocked(struct redlock_lease *lease, int status, void *name)
{
    (void)lease;
    if (status != REDLOCK_OK)
        die("unlock");
    under_way--;
    if (to_begin > 0)
        begin(name);
    else if (under_way == 0)
        ev_break(EV_DEFAULT, EVBREAK_ALL);
}

static void on_locked(struct redlock_lease *lease, int status, void *name)
{
    if (status != REDLOCK_OK || redlock_unlock_async(lease, on_unlocked, name) != REDLOCK_OK)
        die("lock");
}

static void begin(char *name)
{
    to_begin--;
    under_way++;
    if (redlock_lock_async(client, name, NULL, on_locked, name, NULL) != REDLOCK_OK)
        die("lock");
}

int main(int argc, char **argv)
{
    bool is_pollable = argc == 4 && strcmp(argv[1], "poll") == 0;
    static char names[256][32];
    struct redlock_options opts;

    if (argc != 4 || (!is_pollable && strcmp(argv[1], "ev") != 0))
        return 64;
    to_begin = (unsigned)atoi(argv[2]);
    redlock_options_init(&opts);
    opts.reply_timeout_ms = opts.connect_timeout_ms = 60000; /* Valgrind is slow. */
    opts.clock_guard = REDLOCK_CLOCK_GUARD_OFF;
    opts.restart_guard = false;
    opts.pollable = is_pollable;
    opts.loop = is_pollable ? NULL : EV_DEFAULT;
    if (redlock_open(&opts, &client) != REDLOCK_OK)
        die("open");
    for (int i = 0; i < atoi(argv[3]) && i < 256 && to_begin > 0; i++) {
        (void)snprintf(names[i], sizeof names[i], "turns/%d", i);
        begin(names[i]);
    }
    if (!is_pollable)
        (void)ev_run(EV_DEFAULT, 0);
    while (under_way > 0 && redlock_poll_tick(client, -1) == REDLOCK_OK) {
    }
    (void)redlock_close(client);
    return under_way == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
