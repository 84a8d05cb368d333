/*
 * loop_poll.c - loop.h on one descriptor, which any event loop can watch.
 *
 * The descriptor is that of an epoll instance.  It is readable while one of the descriptors in it
 * is ready.  A timerfd on CLOCK_BOOTTIME, the clock of drift_now(), is one of them.  It rings for
 * the earliest of all timers, and at once if there is something to write.
 *
 * The program runs before_sleep() only by loop_poll_dispatch().  So what changes between two
 * dispatches sets the timerfd; what changes during one sets it once, at the end.
 */
#include "redlock/io/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "redlock/base/alarm.h"
#include "redlock/base/fork.h"

#define READY_MAX 32 /* Chosen: two links to each of 15 masters, and the timerfd. */
#define AT_ONCE 1 /* An instant in the past: 1 ns after the start of the machine.  0 means off. */

struct timer {
    struct alarm alarm;
    void (*ring)(void *owner);
    void *owner;
};

struct loop_poll {
    struct loop loop; /* The first field, because of_loop() casts. */
    const struct loop_events *events;
    void *cookie;
    unsigned forks; /* fork_count() when the loop was made. */
    int fd;         /* The epoll instance. */
    int timerfd;
    int restless;   /* An eventfd that is always readable; -1: none.  See be_restless(). */
    drift_time set; /* When the timerfd will ring.  DRIFT_NEVER: it is not set, or has rung. */
    bool has_rung;  /* The timerfd is readable until it is set again. */
    unsigned depth; /* Dispatches under way. */
    bool *freed;    /* A flag of the innermost dispatch; set when the loop is freed. */
    uint32_t room;  /* Timers that there is room for. */
    struct alarms alarms;
    struct timer wake; /* For loop_wake_at(). */
    /* What epoll_wait() found, and the next of it to hand out. */
    struct epoll_event ready[READY_MAX];
    int ready_len, ready_next;
};

struct watch {
    struct loop_poll *loop;
    const struct watch_events *events;
    void *cookie;
    int fd;        /* -1: none. */
    unsigned what; /* LOOP_READ, LOOP_WRITE, or both. */
    bool is_added; /* The descriptor is in the epoll instance. */
    struct timer timer;
    struct timer again; /* Set while the system refuses to watch the descriptor. */
};

static struct loop_poll *of_loop(struct loop *loop)
{
    return (struct loop_poll *)(void *)loop;
}

/* A forked child shares the epoll instance and the timerfd with its parent, so it must not change
 * them. */
static bool is_forked(const struct loop_poll *loop)
{
    return fork_count() != loop->forks;
}

static drift_time now(const struct loop *loop)
{
    drift_time time;

    (void)loop;
    return drift_now(&time) == 0 ? time : DRIFT_NEVER;
}

static int add(const struct loop_poll *loop, int fd, void *owner)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = owner};

    return epoll_ctl(loop->fd, EPOLL_CTL_ADD, fd, &event);
}

/* ---- The timerfd ---- */

/* Make the loop's descriptor readable for good, because a filter of system calls refused
 * timerfd_settime().  The program then dispatches without a pause, but no deadline is missed. */
static void be_restless(struct loop_poll *loop)
{
    if (loop->restless >= 0)
        return;
    loop->restless = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->restless >= 0 && add(loop, loop->restless, NULL) != 0) {
        (void)close(loop->restless);
        loop->restless = -1;
    }
}

/* A child of a fork may have a copy, so to close the descriptor would not take it out. */
static void be_calm(struct loop_poll *loop)
{
    if (loop->restless < 0)
        return;
    (void)epoll_ctl(loop->fd, EPOLL_CTL_DEL, loop->restless, NULL);
    (void)close(loop->restless);
    loop->restless = -1;
}

/* Let the timerfd ring at this instant.  DRIFT_NEVER turns it off.  Either takes back a ring. */
static void set_descriptor(struct loop_poll *loop, drift_time at)
{
    struct itimerspec when = {.it_value = {0}};

    if (is_forked(loop))
        return;
    if (at < AT_ONCE)
        at = AT_ONCE;
    if (at != DRIFT_NEVER)
        when.it_value =
            (struct timespec){.tv_sec = (time_t)(at / DRIFT_S), .tv_nsec = (long)(at % DRIFT_S)};
    if (timerfd_settime(loop->timerfd, TFD_TIMER_ABSTIME, &when, NULL) != 0) {
        loop->set = DRIFT_NEVER; /* So the next change tries again. */
        be_restless(loop);
        return;
    }
    be_calm(loop);
    loop->set = at;
    loop->has_rung = false;
}

/* Let the timerfd ring in time for the first timer.  It is set for an earlier instant at once, and
 * for a later one when it has rung, because most timers are turned off before they ring. */
static void settle(struct loop_poll *loop)
{
    drift_time first = alarm_next(&loop->alarms);

    if (first < loop->set || loop->has_rung)
        set_descriptor(loop, first);
}

static void set_timer(struct loop_poll *loop, struct timer *timer, drift_time at)
{
    alarm_set(&loop->alarms, &timer->alarm, at);
    if (loop->depth == 0)
        settle(loop);
}

static struct timer make_timer(void (*ring)(void *owner), void *owner)
{
    return (struct timer){.alarm.pos = ALARM_OFF, .ring = ring, .owner = owner};
}

static void wake_at(struct loop *any, drift_time at)
{
    struct loop_poll *loop = of_loop(any);

    set_timer(loop, &loop->wake, at);
}

static void flush_soon(struct loop *any)
{
    struct loop_poll *loop = of_loop(any);

    if (loop->depth == 0 && loop->set > AT_ONCE)
        set_descriptor(loop, AT_ONCE);
}

static void ring_wake(void *owner)
{
    struct loop_poll *loop = owner;

    loop->events->on_timer(loop->cookie);
}

/* ---- Watches ---- */

static void ring_watch(void *owner)
{
    struct watch *watch = owner;

    watch->events->on_timer(watch->cookie);
}

/* Tell the kernel what to watch.  If it refuses, for example because memory is short, try again
 * soon. */
static void update(struct watch *watch)
{
    struct loop_poll *loop = watch->loop;
    struct epoll_event event = {
        .events =
            (watch->what & LOOP_READ ? EPOLLIN : 0u) | (watch->what & LOOP_WRITE ? EPOLLOUT : 0u),
        .data.ptr = watch,
    };
    int op = watch->is_added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    drift_time again = DRIFT_NEVER;

    if (watch->fd >= 0 && !is_forked(loop)) {
        if (epoll_ctl(loop->fd, op, watch->fd, &event) == 0)
            watch->is_added = true;
        else
            again = drift_add(now(&loop->loop), LOOP_AGAIN);
    }
    if (again != DRIFT_NEVER || watch->again.alarm.pos != ALARM_OFF)
        set_timer(loop, &watch->again, again);
}

static bool is_watch_refused(const struct watch *watch)
{
    return watch->again.alarm.pos != ALARM_OFF;
}

static void ring_again(void *owner)
{
    update(owner);
}

/* What epoll_wait() found of the watch does not hold any more. */
static void forget_ready(struct watch *watch)
{
    struct loop_poll *loop = watch->loop;

    for (int i = loop->ready_next; i < loop->ready_len; i++)
        if (loop->ready[i].data.ptr == watch)
            loop->ready[i].data.ptr = NULL;
}

/* A descriptor is taken out before its owner closes it: if a child of a fork has a copy, to close
 * it would leave it in. */
static void let_go(struct watch *watch)
{
    forget_ready(watch);
    if (watch->is_added && !is_forked(watch->loop))
        (void)epoll_ctl(watch->loop->fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->is_added = false;
}

static void set_watch_fd(struct watch *watch, int fd, unsigned what)
{
    if (what == 0)
        fd = -1;
    if (fd == watch->fd && what == watch->what)
        return;
    if (fd != watch->fd)
        let_go(watch);
    watch->fd = fd;
    watch->what = what;
    update(watch);
}

static void set_watch_timer(struct watch *watch, drift_span in)
{
    set_timer(watch->loop, &watch->timer,
              in == DRIFT_NEVER ? DRIFT_NEVER : drift_add(now(&watch->loop->loop), in));
}

static struct watch *new_watch(struct loop *any, const struct watch_events *events, void *cookie)
{
    struct loop_poll *loop = of_loop(any);
    struct watch *watch = calloc(1, sizeof *watch);

    if (watch == NULL)
        return NULL;
    if (alarm_reserve(&loop->alarms, loop->room + 2) != 0) {
        free(watch);
        return NULL;
    }
    loop->room += 2;
    watch->loop = loop;
    watch->events = events;
    watch->cookie = cookie;
    watch->fd = -1;
    watch->timer = make_timer(ring_watch, watch);
    watch->again = make_timer(ring_again, watch);
    return watch;
}

static void free_watch(struct watch *watch)
{
    struct loop_poll *loop = watch->loop;

    let_go(watch);
    alarm_set(&loop->alarms, &watch->timer.alarm, DRIFT_NEVER);
    alarm_set(&loop->alarms, &watch->again.alarm, DRIFT_NEVER);
    loop->room -= 2;
    free(watch);
}

/* ---- Dispatch ---- */

/* An error or a hang-up shows as readiness, so the owner's next call finds it. */
static unsigned what_of(const struct epoll_event *event)
{
    unsigned what = 0;

    if (event->events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        what |= LOOP_READ;
    if (event->events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        what |= LOOP_WRITE;
    return what;
}

static void hand_out_one(struct loop_poll *loop, const struct epoll_event *event)
{
    struct watch *watch = event->data.ptr;
    unsigned what;

    if (event->data.ptr == loop) {
        loop->set = DRIFT_NEVER;
        loop->has_rung = true;
        return;
    }
    if (watch == NULL)
        return;
    what = what_of(event) & watch->what;
    if (what != 0)
        watch->events->on_ready(watch->cookie, what);
}

/* A callback may free the loop.  It may also fork and return in the child, which must leave the
 * sockets alone. */
static bool goes_on(const struct loop_poll *loop, const bool *freed)
{
    return !*freed && !is_forked(loop);
}

/* A dispatch within a callback takes over: what it leaves is found again by the next one. */
static void hand_out(struct loop_poll *loop, const bool *freed)
{
    int len = epoll_wait(loop->fd, loop->ready, READY_MAX, 0);

    loop->ready_len = len > 0 ? len : 0;
    loop->ready_next = 0;
    while (goes_on(loop, freed) && loop->ready_next < loop->ready_len)
        hand_out_one(loop, &loop->ready[loop->ready_next++]);
}

/* The clock says what is due, not the timerfd, so this also works if epoll_wait() fails.  At most
 * as many timers ring as are set now: one that is set again and again would not let this end. */
static void ring_due(struct loop_poll *loop, const bool *freed)
{
    drift_time until = now(&loop->loop);

    for (uint32_t left = loop->alarms.len; left > 0 && goes_on(loop, freed); left--) {
        struct alarm *alarm = alarm_ring(&loop->alarms, until);
        struct timer *timer;

        if (alarm == NULL)
            return;
        timer = (struct timer *)(void *)((char *)alarm - offsetof(struct timer, alarm));
        timer->ring(timer->owner);
    }
}

/* After a pause of the process, answers and timeouts are due together.  Answers come first: they
 * still count if the deadline has not passed. */
void loop_poll_dispatch(struct loop *any)
{
    struct loop_poll *loop = of_loop(any);
    bool freed = false, *outer = loop->freed;

    loop->freed = &freed;
    loop->depth++;
    hand_out(loop, &freed);
    if (goes_on(loop, &freed))
        ring_due(loop, &freed);
    if (goes_on(loop, &freed))
        loop->events->before_sleep(loop->cookie);
    if (freed) {
        if (outer != NULL)
            *outer = true;
        return;
    }
    loop->freed = outer;
    loop->depth--;
    settle(loop);
}

int loop_poll_fd(const struct loop *loop)
{
    return ((const struct loop_poll *)(const void *)loop)->fd;
}

/* ---- The loop ---- */

/* The child of a fork may have closed it, and have another file of this number.  All files of the
 * kinds that a loop has share one inode, so the child cannot tell, and closes none. */
static void close_descriptor(const struct loop_poll *loop, int fd)
{
    if (fd >= 0 && !is_forked(loop))
        (void)close(fd);
}

static void free_loop(struct loop *any)
{
    struct loop_poll *loop = of_loop(any);

    if (loop->freed != NULL)
        *loop->freed = true;
    close_descriptor(loop, loop->restless);
    close_descriptor(loop, loop->timerfd);
    close_descriptor(loop, loop->fd);
    alarm_done(&loop->alarms);
    free(loop);
}

static const struct loop_ops ops = {
    .free = free_loop,
    .now = now,
    .wake_at = wake_at,
    .flush_soon = flush_soon,
    .watch_new = new_watch,
    .watch_free = free_watch,
    .watch_fd = set_watch_fd,
    .watch_is_refused = is_watch_refused,
    .watch_timer = set_watch_timer,
};

/* Returns 0, or -1 with errno. */
static int make_parts(struct loop_poll *loop)
{
    if (alarm_reserve(&loop->alarms, loop->room) != 0) {
        errno = ENOMEM;
        return -1;
    }
    loop->fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->fd < 0)
        return -1;
    loop->timerfd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->timerfd < 0)
        return -1;
    return add(loop, loop->timerfd, loop);
}

struct loop *loop_poll_new(const struct loop_events *events, void *cookie)
{
    struct loop_poll *loop = calloc(1, sizeof *loop);
    int error;

    if (loop == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    loop->loop.ops = &ops;
    loop->events = events;
    loop->cookie = cookie;
    loop->forks = fork_count();
    loop->fd = loop->timerfd = loop->restless = -1;
    loop->set = DRIFT_NEVER;
    loop->wake = make_timer(ring_wake, loop);
    loop->room = 1;
    if (make_parts(loop) != 0)
        goto fail_parts;
    return &loop->loop;

fail_parts:
    error = errno;
    free_loop(&loop->loop);
    errno = error;
    return NULL;
}
