/*
 * loop.c - makes an event loop, or says why there is none.
 */
#include "redlock/cli/common/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/cli/common/cli.h"

static void on_wake(struct ev_loop *loop, ev_async *wake, int events)
{
    (void)loop, (void)wake, (void)events;
}

/* libev ends the process if it gets no eventfd for the first signal or thread that it is to hear
 * of.  So the loop gets it now, while nothing else takes descriptors, and keeps it. */
static int take_eventfd(struct ev_loop *loop)
{
    int probe = eventfd(0, EFD_CLOEXEC);
    ev_async wake;

    if (probe < 0)
        return errno;
    (void)close(probe);
    ev_async_init(&wake, on_wake);
    ev_async_start(loop, &wake);
    ev_async_stop(loop, &wake);
    return 0;
}

struct ev_loop *loop_new(void)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    int error = loop != NULL ? take_eventfd(loop) : ENOMEM; /* libev does not say why. */

    if (error == 0)
        return loop;
    cli_say(MSG_SYSTEM, "cannot make an event loop: %s", strerror(error));
    if (loop != NULL)
        ev_loop_destroy(loop);
    return NULL;
}
