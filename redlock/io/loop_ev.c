/*
 * loop_ev.c - loop.h on libev.
 *
 * Alarms use a timerfd on CLOCK_BOOTTIME, the clock of drift_now().  libev's own timers stop while
 * the machine is suspended, and would ring too late by that much.  libev's clock decides nothing.
 *
 * The alarm is set again at once only for an earlier instant, because most are turned off before
 * they ring.  If it rings before the instant wanted by then, it is set to that one.
 *
 * A forked child shares the epoll set of the loop with its parent, and libev takes a descriptor out
 * of that set for a watcher that has stopped.  So whatever may change the set asks is_forked()
 * first, which lets libev make a set of the child's own.  There no watcher starts, and those of
 * descriptors and timers stop when they ring.
 *
 * The kernel may refuse to watch a descriptor, for example because memory or
 * fs.epoll.max_user_watches is used up.  libev then stops the watcher, and calls it with
 * EV_ERROR, but only after it has polled.  So a timer of 0 s keeps the loop from sleeping in a turn
 * that starts a watcher.
 */
#include "redlock/io/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/base/fork.h"

struct loop_ev {
    struct loop loop; /* The first field, because of_loop() casts. */
    const struct loop_events *events;
    void *cookie;
    unsigned forks; /* fork_count() when the loop was made. */
    unsigned known; /* fork_count() when libev last heard of a fork. */
    struct ev_loop *ev;
    drift_time wanted; /* When to call on_timer().  DRIFT_NEVER: not at all. */
    drift_time set;    /* When the timerfd will ring.  DRIFT_NEVER: it is not set. */
    bool is_heard;     /* The timerfd has rung, so it is watched. */
    ev_io ring;        /* The watcher of the timerfd. */
    ev_timer beside;   /* Rings when the timerfd does, or at once, without a system call. */
    ev_prepare prepare;
};

static struct loop_ev *of_loop(struct loop *loop)
{
    return (struct loop_ev *)(void *)loop;
}

/* Tell libev of a fork before it changes the epoll set.  It does that at the earliest after the
 * prepare watchers, one of which is ours. */
static bool is_forked(struct loop_ev *loop)
{
    unsigned forks = fork_count();

    if (forks != loop->known) {
        loop->known = forks;
        ev_loop_fork(loop->ev);
    }
    return forks != loop->forks;
}

static drift_time now(const struct loop *loop)
{
    drift_time time;

    (void)loop;
    return drift_now(&time) == 0 ? time : DRIFT_NEVER;
}

/* Set the timerfd, and libev's timer beside it.  The latter rings in time unless the machine is
 * suspended.  A filter of system calls may refuse timerfd_settime(), and the kernel to watch the
 * timerfd. */
static void set_alarm(struct loop_ev *loop, drift_time at)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / DRIFT_S), .tv_nsec = (long)(at % DRIFT_S)}};
    bool is_set = timerfd_settime(loop->ring.fd, TFD_TIMER_ABSTIME, &when, NULL) == 0;

    loop->set = is_set ? at : DRIFT_NEVER;
    ev_now_update(loop->ev);
    ev_timer_stop(loop->ev, &loop->beside);
    ev_timer_set(&loop->beside, (double)drift_until(now(&loop->loop), at) / (double)DRIFT_S, 0);
    ev_timer_start(loop->ev, &loop->beside);
    if (!is_set || !loop->is_heard)
        loop_kick(&loop->loop);
}

static void ring(struct loop_ev *loop)
{
    loop->set = DRIFT_NEVER;
    ev_timer_stop(loop->ev, &loop->beside);
    if (loop->wanted == DRIFT_NEVER)
        return;
    if (loop->wanted > now(&loop->loop)) {
        set_alarm(loop, loop->wanted);
        return;
    }
    loop->wanted = DRIFT_NEVER;
    loop->events->on_timer(loop->cookie);
}

/* Without ev_io_set(), libev takes the descriptor for one that the kernel watches. */
static void watch_again(struct ev_loop *ev, ev_io *io)
{
    ev_io_set(io, io->fd, io->events & (EV_READ | EV_WRITE));
    ev_io_start(ev, io);
}

static void on_ring(struct ev_loop *ev, ev_io *io, int events)
{
    struct loop_ev *loop = io->data;
    uint64_t times;

    if (is_forked(loop)) {
        ev_io_stop(ev, io);
        return;
    }
    loop->is_heard = !(events & EV_ERROR);
    if (events & EV_ERROR)
        watch_again(ev, io);
    else if (loop->wanted == DRIFT_NEVER) /* It stays readable until it is set again or read. */
        (void)!read(io->fd, &times, sizeof times);
    ring(loop);
}

static void on_beside(struct ev_loop *ev, ev_timer *timer, int events)
{
    (void)ev, (void)events;
    if (!is_forked(timer->data))
        ring(timer->data);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    struct loop_ev *loop = prepare->data;

    (void)ev, (void)events;
    if (!is_forked(loop))
        loop->events->before_sleep(loop->cookie);
}

static void wake_at(struct loop *any, drift_time at)
{
    struct loop_ev *loop = of_loop(any);

    if (is_forked(loop))
        return;
    loop->wanted = at;
    if (at > now(any)) {
        if (at < loop->set)
            set_alarm(loop, at); /* This wakes a loop that sleeps. */
        return;
    }
    ev_timer_stop(loop->ev, &loop->beside);
    ev_timer_set(&loop->beside, 0, 0);
    ev_timer_start(loop->ev, &loop->beside);
    loop_kick(any);
}

static void free_loop(struct loop *any)
{
    struct loop_ev *loop = of_loop(any);
    bool is_child = is_forked(loop);

    ev_io_stop(loop->ev, &loop->ring);
    ev_timer_stop(loop->ev, &loop->beside);
    ev_prepare_stop(loop->ev, &loop->prepare);
    if (!is_child) /* The child may have closed it, and have another file of this number. */
        (void)close(loop->ring.fd);
    free(loop);
}

/* ---- Watches ---- */

struct watch {
    struct loop_ev *loop;
    const struct watch_events *events;
    void *cookie;
    ev_io io;
    ev_timer timer;
    ev_timer again; /* Rings soon after the descriptor is watched, or was refused. */
    bool is_refused;
};

static void set_again(struct watch *watch, drift_span in)
{
    ev_timer_stop(watch->loop->ev, &watch->again);
    ev_timer_set(&watch->again, (double)in / (double)DRIFT_S, 0);
    ev_timer_start(watch->loop->ev, &watch->again);
}

static void start_io(struct watch *watch)
{
    watch_again(watch->loop->ev, &watch->io);
    set_again(watch, 0); /* So libev does not sleep before it tells of a refusal. */
}

static void on_io(struct ev_loop *ev, ev_io *io, int events)
{
    struct watch *watch = io->data;
    unsigned what = (events & EV_READ ? LOOP_READ : 0) | (events & EV_WRITE ? LOOP_WRITE : 0);

    if (is_forked(watch->loop)) {
        ev_io_stop(ev, io);
        return;
    }
    watch->is_refused = events & EV_ERROR;
    if (watch->is_refused)
        set_again(watch, LOOP_AGAIN);
    else
        watch->events->on_ready(watch->cookie, what);
}

/* A refusal may pass, so try again. */
static void on_again(struct ev_loop *ev, ev_timer *timer, int events)
{
    struct watch *watch = timer->data;

    (void)ev, (void)events;
    if (!is_forked(watch->loop) && !ev_is_active(&watch->io))
        start_io(watch);
}

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events)
{
    struct watch *watch = timer->data;

    (void)ev, (void)events;
    if (!is_forked(watch->loop))
        watch->events->on_timer(watch->cookie);
}

static struct watch *new_watch(struct loop *loop, const struct watch_events *events, void *cookie)
{
    struct watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL)
        return NULL;
    watch->loop = of_loop(loop);
    watch->events = events;
    watch->cookie = cookie;
    ev_io_init(&watch->io, on_io, -1, 0);
    ev_timer_init(&watch->timer, on_timer, 0, 0);
    ev_timer_init(&watch->again, on_again, 0, 0);
    ev_set_priority(&watch->timer, EV_MINPRI); /* As in loop_ev_new(). */
    ev_set_priority(&watch->again, EV_MINPRI); /* After on_io(). */
    watch->io.data = watch->timer.data = watch->again.data = watch;
    return watch;
}

static void free_watch(struct watch *watch)
{
    (void)is_forked(watch->loop); /* Before libev hears of the watchers. */
    ev_io_stop(watch->loop->ev, &watch->io);
    ev_timer_stop(watch->loop->ev, &watch->timer);
    ev_timer_stop(watch->loop->ev, &watch->again);
    free(watch);
}

static void set_watch_fd(struct watch *watch, int fd, unsigned what)
{
    int events = (what & LOOP_READ ? EV_READ : 0) | (what & LOOP_WRITE ? EV_WRITE : 0);
    bool is_child = is_forked(watch->loop);

    ev_io_stop(watch->loop->ev, &watch->io);
    ev_timer_stop(watch->loop->ev, &watch->again);
    watch->is_refused = false;
    if (events == 0 || is_child)
        return;
    ev_io_set(&watch->io, fd, events);
    start_io(watch);
    loop_kick(&watch->loop->loop);
}

static bool is_watch_refused(const struct watch *watch)
{
    return watch->is_refused;
}

static void set_watch_timer(struct watch *watch, drift_span in)
{
    ev_timer_stop(watch->loop->ev, &watch->timer);
    if (in == DRIFT_NEVER || is_forked(watch->loop))
        return;
    ev_timer_set(&watch->timer, (double)in / (double)DRIFT_S, 0);
    ev_timer_start(watch->loop->ev, &watch->timer);
    loop_kick(&watch->loop->loop);
}

/* ---- The loop ---- */

static const struct loop_ops ops = {
    .free = free_loop,
    .now = now,
    .wake_at = wake_at,
    .watch_new = new_watch,
    .watch_free = free_watch,
    .watch_fd = set_watch_fd,
    .watch_is_refused = is_watch_refused,
    .watch_timer = set_watch_timer,
};

struct loop *loop_ev_new(struct ev_loop *ev, const struct loop_events *events, void *cookie)
{
    struct loop_ev *loop = calloc(1, sizeof *loop);
    int fd;

    if (loop == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0)
        goto fail_descriptor;
    loop->loop.ops = &ops;
    loop->events = events;
    loop->cookie = cookie;
    loop->forks = loop->known = fork_count();
    loop->ev = ev;
    loop->wanted = loop->set = DRIFT_NEVER;
    ev_io_init(&loop->ring, on_ring, fd, EV_READ);
    ev_timer_init(&loop->beside, on_beside, 0, 0);
    /* After a pause of the process, answers and timeouts are due together.  Answers come first:
     * they still count if the deadline has not passed. */
    ev_set_priority(&loop->ring, EV_MINPRI);
    ev_set_priority(&loop->beside, EV_MINPRI);
    ev_prepare_init(&loop->prepare, on_prepare);
    /* Run after the program's own prepare watchers, which may begin locks. */
    ev_set_priority(&loop->prepare, EV_MINPRI);
    loop->ring.data = loop->beside.data = loop->prepare.data = loop;
    ev_io_start(ev, &loop->ring);
    ev_prepare_start(ev, &loop->prepare);
    return &loop->loop;

fail_descriptor:
    free(loop);
    return NULL;
}
