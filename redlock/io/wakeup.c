/*
 * wakeup.c - makes libev's eventfd while it can still be refused.
 */
#include "redlock/io/wakeup.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ev.h>

static void on_wake(struct ev_loop *ev, ev_async *wake, int events)
{
    (void)ev, (void)wake, (void)events;
}

/* The only event that may be pending is the refusal to watch the eventfd. */
static void note_refusal(struct ev_loop *ev)
{
    int *error = ev_userdata(ev);

    if (ev_pending_count(ev) > 0)
        *error = errno;
    ev_invoke_pending(ev);
}

static int take_eventfd(struct ev_loop *ev)
{
    int probe = eventfd(0, EFD_CLOEXEC); /* libev ends the process if it gets none. */
    ev_async wake;

    if (probe < 0)
        return errno;
    (void)close(probe);
    ev_async_init(&wake, on_wake);
    ev_async_start(ev, &wake);
    ev_async_stop(ev, &wake);
    return 0;
}

int wakeup_take(struct ev_loop *ev)
{
    int error = take_eventfd(ev);

    if (error != 0)
        return error;
    ev_set_userdata(ev, &error);
    ev_set_invoke_pending_cb(ev, note_refusal);
    ev_run(ev, EVRUN_NOWAIT);
    ev_set_invoke_pending_cb(ev, ev_invoke_pending);
    ev_set_userdata(ev, NULL);
    if (error != 0)
        (void)take_eventfd(ev); /* ev_loop_destroy() closes it only if libev watches it. */
    return error;
}
