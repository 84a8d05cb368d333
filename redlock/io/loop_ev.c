/*
 * loop_ev.c - the seam, on libev.
 *
 * Deadlines are kept by a descriptor that the kernel makes readable: a timerfd on
 * CLOCK_BOOTTIME, the clock of drift_now().  libev's own timers stand still while the machine
 * is suspended, and would ring too late by that much.  libev's clock decides nothing here.
 *
 * The descriptor is set lazily, since most alarms are turned off before they ring.  It is set
 * only to an instant before the one that it is set to.  If it rings before the instant that
 * is wanted by then, it is set again.
 */
#include "redlock/io/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/base/fork.h"

struct loop {
    const struct loop_events *events;
    void *cookie;
    void (*kick)(void *cookie); /* NULL: no other thread sleeps in the loop. */
    void *kick_cookie;
    unsigned forks; /* How many had happened when it was made. */
    struct ev_loop *ev;
    drift_time wanted; /* When on_timer() is to be called; DRIFT_NEVER: not at all. */
    drift_time set;    /* When the descriptor will ring; DRIFT_NEVER: it has rung. */
    ev_io ring;        /* Of the descriptor. */
    ev_timer at_once;  /* For what is due already: it costs no system call. */
    ev_prepare prepare;
};

static bool is_forked(const struct loop *loop)
{
    return fork_count() != loop->forks;
}

/* A child of a fork shares the descriptor with its parent, for which it must go on ringing. */
static void set_descriptor(struct loop *loop, drift_time at)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / DRIFT_S), .tv_nsec = (long)(at % DRIFT_S)}};

    if (is_forked(loop))
        return;
    loop->set = at;
    /* Fails for times that are no times only. */
    (void)timerfd_settime(loop->ring.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void ring(struct loop *loop)
{
    loop->wanted = DRIFT_NEVER;
    loop->events->on_timer(loop->cookie);
}

static void on_ring(struct ev_loop *ev, ev_io *io, int events)
{
    struct loop *loop = io->data;
    uint64_t times;

    (void)events;
    if (is_forked(loop)) {
        ev_io_stop(ev, io);
        return;
    }
    loop->set = DRIFT_NEVER;
    /* To set it again makes it unreadable.  Reading does so where it stays unset. */
    if (loop->wanted == DRIFT_NEVER)
        (void)!read(io->fd, &times, sizeof times);
    else if (loop->wanted > loop_now(loop))
        set_descriptor(loop, loop->wanted);
    else
        ring(loop);
}

static void on_at_once(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev, (void)events;
    ring(timer->data);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    struct loop *loop = prepare->data;

    (void)ev, (void)events;
    loop->events->before_sleep(loop->cookie);
}

struct loop *loop_new(struct ev_loop *ev, const struct loop_events *events, void *cookie)
{
    struct loop *loop = calloc(1, sizeof *loop);
    int fd;

    if (loop == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        goto fail_descriptor;
    loop->events = events;
    loop->cookie = cookie;
    loop->forks = fork_count();
    loop->ev = ev;
    loop->wanted = loop->set = DRIFT_NEVER;
    ev_io_init(&loop->ring, on_ring, fd, EV_READ);
    ev_timer_init(&loop->at_once, on_at_once, 0, 0);
    /* After a pause of the process answers and timeouts wait side by side:
     * the answers come first, as long as the deadline lets them count. */
    ev_set_priority(&loop->ring, EV_MINPRI);
    ev_set_priority(&loop->at_once, EV_MINPRI);
    ev_prepare_init(&loop->prepare, on_prepare);
    /* After all others of the program, which may begin locks. */
    ev_set_priority(&loop->prepare, EV_MINPRI);
    loop->ring.data = loop->at_once.data = loop->prepare.data = loop;
    ev_io_start(ev, &loop->ring);
    ev_prepare_start(ev, &loop->prepare);
    return loop;

fail_descriptor:
    free(loop);
    return NULL;
}

void loop_free(struct loop *loop)
{
    ev_io_stop(loop->ev, &loop->ring);
    ev_timer_stop(loop->ev, &loop->at_once);
    ev_prepare_stop(loop->ev, &loop->prepare);
    (void)close(loop->ring.fd); /* In a child of a fork the parent's goes on ringing. */
    free(loop);
}

drift_time loop_now(const struct loop *loop)
{
    drift_time now;

    (void)loop;
    return drift_now(&now) == 0 ? now : DRIFT_NEVER;
}

void loop_wake_at(struct loop *loop, drift_time at)
{
    if (at > loop_now(loop)) {
        loop->wanted = at;
        if (at < loop->set)
            set_descriptor(loop, at); /* This wakes a loop that sleeps. */
        return;
    }
    ev_timer_stop(loop->ev, &loop->at_once);
    ev_timer_set(&loop->at_once, 0, 0);
    ev_timer_start(loop->ev, &loop->at_once);
    loop_kick(loop);
}

void loop_on_kick(struct loop *loop, void (*kick)(void *cookie), void *cookie)
{
    loop->kick = kick;
    loop->kick_cookie = cookie;
}

void loop_kick(struct loop *loop)
{
    if (loop->kick != NULL)
        loop->kick(loop->kick_cookie);
}
