/*
 * loop_ev.c - the seam, on libev.
 *
 * libev's clock is cached, and real time in places: it may wake us, it never
 * decides anything.
 */
#include "redlock/loop.h"

#include <stdlib.h>

#include <ev.h>

#include "redlock/blocking.h"
#include "redlock/client.h"

struct loop {
    struct redlock *rl;
    struct ev_loop *ev;
    ev_timer timer;
    ev_prepare prepare;
};

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events)
{
    struct loop *loop = timer->data;

    (void)ev, (void)events;
    client_on_timer(loop->rl);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    struct loop *loop = prepare->data;

    (void)ev, (void)events;
    client_flush(loop->rl);
    client_arm(loop->rl);
}

struct loop *loop_new(struct redlock *rl, struct ev_loop *ev)
{
    struct loop *loop = calloc(1, sizeof *loop);

    if (loop == NULL)
        return NULL;
    loop->rl = rl;
    loop->ev = ev;
    ev_timer_init(&loop->timer, on_timer, 0, 0);
    /* After a pause of the process answers and timeouts wait side by side:
     * the answers come first, as long as the deadline lets them count. */
    ev_set_priority(&loop->timer, EV_MINPRI);
    loop->timer.data = loop;
    ev_prepare_init(&loop->prepare, on_prepare);
    /* After all others of the program, which may begin locks. */
    ev_set_priority(&loop->prepare, EV_MINPRI);
    loop->prepare.data = loop;
    ev_prepare_start(ev, &loop->prepare);
    return loop;
}

void loop_free(struct loop *loop)
{
    ev_timer_stop(loop->ev, &loop->timer);
    ev_prepare_stop(loop->ev, &loop->prepare);
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
    double seconds = (double)drift_until(loop_now(loop), at) / (double)DRIFT_S;

    ev_timer_stop(loop->ev, &loop->timer);
    ev_timer_set(&loop->timer, seconds, 0);
    ev_timer_start(loop->ev, &loop->timer);
    loop_kick(loop);
}

void loop_kick(struct loop *loop)
{
    if (loop->rl->blocking != NULL)
        blocking_kick(loop->rl->blocking);
}
