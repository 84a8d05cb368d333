/*
 * loop.c - makes an event loop, or says why there is none.
 */
#include "redlock/cli/common/loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "drift/drift.h"
#include "redlock/cli/common/cli.h"
#include "redlock/io/wakeup.h"

/* How long epoll_wait() may fail, the pause before it is called again, and how much later a failure
 * is not the same any more.  Chosen. */
#define FAILS_FOR (2 * DRIFT_S)
#define PAUSE (5 * DRIFT_MS)
#define ANOTHER (500 * DRIFT_MS)

static drift_time read_clock(void)
{
    drift_time now;

    return drift_now(&now) == 0 ? now : DRIFT_NEVER;
}

/* libev calls this where it cannot go on, and tries again when this returns.  Without this it would
 * end the process by abort() at once, though a want of memory may pass.  Where it does not, the
 * guardian ends the command of `run` when this process is gone. */
static void on_failure(const char *what)
{
    static drift_time first, latest;
    const struct timespec pause = {.tv_nsec = (long)PAUSE};
    int error = errno;
    drift_time now = read_clock();

    if (now > drift_add(latest, ANOTHER))
        first = now;
    latest = now;
    if (now >= drift_add(first, FAILS_FOR)) {
        cli_say(MSG_SYSTEM, "the event loop fails: %s: %s; a lock that is held runs out by itself",
                what, strerror(error));
        exit(CLI_INTERNAL);
    }
    (void)nanosleep(&pause, NULL);
}

/* doctor has several threads, and all fail. */
static void end_without_clock(void)
{
    static atomic_flag is_ending = ATOMIC_FLAG_INIT;

    while (atomic_flag_test_and_set(&is_ending))
        (void)pause();
    cli_say(MSG_SYSTEM, "the clock cannot be read (clock_gettime); a lock that is held runs out by "
                        "itself");
    exit(CLI_INTERNAL);
}

drift_time loop_clock(void)
{
    drift_time now = 0;

    if (drift_now(&now) != 0)
        end_without_clock();
    return now;
}

/* libev does not look whether its clock can be read.  Then its timers may never ring. */
static void look_at_clocks(struct ev_loop *loop, ev_prepare *look, int events)
{
    struct timespec now;

    (void)loop, (void)look, (void)events;
    (void)loop_clock();
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        end_without_clock();
}

struct ev_loop *loop_new(void)
{
    static ev_prepare look; /* It has no state, so all loops of the process could share it. */
    struct ev_loop *loop;
    int error = ENOMEM; /* libev does not say why there is no loop. */

    ev_set_syserr_cb(on_failure);
    loop = ev_loop_new(EVFLAG_AUTO);
    if (loop != NULL)
        error = wakeup_take(loop);
    if (error == 0) {
        ev_prepare_init(&look, look_at_clocks);
        ev_prepare_start(loop, &look);
        ev_unref(loop);
        return loop;
    }
    cli_say(MSG_SYSTEM, "cannot make an event loop: %s", strerror(error));
    if (loop != NULL)
        ev_loop_destroy(loop);
    return NULL;
}
