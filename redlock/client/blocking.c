/*
 * blocking.c - the loop, which a thread runs while other calls wait.
 */
#include "redlock/client/blocking.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "redlock/base/error.h"
#include "redlock/base/fork.h"
#include "redlock/base/text.h"
#include "redlock/base/thread.h"
#include "redlock/client/mutex.h"
#include "redlock/io/wakeup.h"

/* With fewer calls under way, the caller writes its commands itself.  Measured: five sends then
 * cost less than the wait for another thread to do them. */
#define CROWD 3

/* The client's thread runs the loop for a crowd, and goes on for so many turns without one. Chosen:
 * large enough that a crowd that gathers again finds it there. */
#define CROWD_TURNS 64

/* The client's thread runs the loop again when there was no call for this long.  An answer that
 * no call waits for may be read this late.  Chosen: calls in a row are less than this apart, and
 * a thread that wakes a thousand times a second has no visible cost. */
#define LULL DRIFT_MS

struct blocking {
    const struct blocking_events *events;
    void *cookie;
    struct ev_loop *ev;
    ev_async kick;
    ev_prepare prepare;
    struct requests requests; /* Open while the client's thread runs the loop for a crowd. */
    pthread_mutex_t mutex;
    atomic_uint entering; /* Threads that are about to take the mutex, or to hand a call in. */
    /* An interrupt that has not ended a call yet.  Set without the mutex, cleared under it. */
    atomic_bool interrupted;
    /* The cancel state that the thread with the mutex goes back to. */
    int cancel_state;
    /* How many calls had to wait so far.  A call that need not wait leaves the loop to the client's
     * thread. */
    uint64_t calls;
    unsigned forks;         /* fork_count() when the loop was made. */
    struct blocking *left;  /* The next one in the list of those that a child left behind. */
    unsigned watching;      /* Calls that wait for a callback to return. */
    struct waiters waiters; /* The calls under way. */
    struct waiter *woken;   /* Waiters to post when the mutex is given up. */
    bool served;            /* A thread runs the loop, or is about to. */
    /* The call that runs the loop.  NULL: the client's thread does, or no thread. */
    struct waiter *server;
    bool asleep;           /* The loop sleeps, without the mutex. */
    bool napping;          /* The client's thread sleeps until it is called. */
    bool resting;          /* The client's thread sleeps outside the loop, for however long. */
    bool takes_over;       /* The client's thread must run the loop, for a crowd. */
    unsigned turns;        /* Turns of the loop that the client's thread still runs for a crowd. */
    pthread_cond_t called; /* Signalled to wake the client's thread. */
    pthread_cond_t idle;
    pthread_t thread;
    bool started, stopping;
};

static bool take_interrupt(struct blocking *blocking)
{
    /* Nearly always there is none, and a load is cheaper than an exchange. */
    return atomic_load(&blocking->interrupted) && atomic_exchange(&blocking->interrupted, false);
}

/* An interrupt that a call takes is for all calls under way. */
bool blocking_is_interrupted(struct blocking *blocking, const struct waiter *waiter)
{
    if (waiter->is_handed_in || !take_interrupt(blocking))
        return waiter->is_interrupted;
    (void)blocking->events->interrupt(blocking->cookie);
    return true;
}

/* Wake the waiter's thread when the mutex is given up. */
static void wake_later(struct blocking *blocking, struct waiter *waiter)
{
    waiter->next_woken = blocking->woken;
    blocking->woken = waiter;
}

/* An interrupt may wait for long for a call.  Until then, no turn of the loop looks at all leases.
 */
static bool any_is_ended(struct blocking *blocking)
{
    return blocking->waiters.oldest != NULL && blocking->events->interrupt(blocking->cookie);
}

/* Begin the calls that were handed in.  An interrupt is taken first: it ends those of them that
 * lock, and all calls under way that lock.  If it finds none, it is kept for the next call that
 * locks, which cannot begin meanwhile: this thread has the mutex. */
static void begin_calls(struct blocking *blocking, struct request *(*take)(struct requests *))
{
    bool interrupted = take_interrupt(blocking), any = false;
    struct request *request = take(&blocking->requests);

    while (request != NULL) {
        struct waiter *waiter = (struct waiter *)(void *)request;
        enum begun begun;

        waiter->is_interrupted = interrupted;
        begun = blocking->events->begin(blocking->cookie, waiter);
        request = request->next; /* The call may be over, but its thread sleeps still. */
        blocking->calls += begun == BEGUN_WAITS;
        if (begun == BEGUN_WAITS)
            continue;
        any |= waiter->status == REDLOCK_INTERRUPTED;
        waiter_end(waiter, waiter->status);
        wake_later(blocking, waiter);
    }
    if (interrupted && !any_is_ended(blocking) && !any)
        atomic_store(&blocking->interrupted, true);
}

/* Before each sleep of the loop, and before the client writes. */
static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    struct blocking *blocking = ev_userdata(ev);

    (void)prepare, (void)events;
    /* Let the callers of a crowd go on before the loop sleeps: their next calls go out together,
     * and need not wake the loop.  Write first, for the reason that hand_over() has. */
    if (blocking->turns > 0 && blocking->woken != NULL) {
        blocking->events->flush(blocking->cookie);
        blocking_unlock(blocking);
        (void)sched_yield();
        blocking_lock(blocking);
    }
    begin_calls(blocking, requests_take);
    if (blocking->turns > 0)
        blocking->turns = blocking_is_crowded(blocking) ? CROWD_TURNS : blocking->turns - 1;
}

/* A kick only has to wake the loop. */
static void on_kick(struct ev_loop *ev, ev_async *kick, int events)
{
    (void)ev, (void)kick, (void)events;
}

/* A signal handler may run this in a thread that has the mutex, or that runs the loop.  So it only
 * stores a flag and writes to the loop's eventfd.  libev allows ev_async_send() in a handler. */
void blocking_interrupt(struct blocking *blocking)
{
    atomic_store(&blocking->interrupted, true);
    ev_async_send(blocking->ev, &blocking->kick);
}

void blocking_kick(void *cookie)
{
    struct blocking *blocking = cookie;

    if (blocking->asleep)
        ev_async_send(blocking->ev, &blocking->kick);
}

static bool has_callbacks(const struct blocking *blocking)
{
    return blocking->events->has_callbacks(blocking->cookie);
}

/* libev calls these around its sleep. */
static void before_sleep(struct ev_loop *ev)
{
    struct blocking *blocking = ev_userdata(ev);

    blocking->asleep = true;
    /* The last write may break a link.  The broken link may end the call that waits. */
    if (blocking->server != NULL ? blocking->server->is_done
                                 : blocking->stopping || has_callbacks(blocking))
        blocking_kick(blocking);
    blocking_unlock(blocking);
}

static void after_sleep(struct ev_loop *ev)
{
    struct blocking *blocking = ev_userdata(ev);

    blocking_lock(blocking);
    blocking->asleep = false;
}

/* Give up the mutex until cond is signalled.  DRIFT_NEVER: without a time limit.  Returns false
 * if the time passed without a signal. */
static bool wait_for(struct blocking *blocking, pthread_cond_t *cond, drift_span at_most)
{
    int before = blocking->cancel_state;
    bool signalled;

    waiters_post(blocking->woken);
    blocking->woken = NULL;
    signalled = mutex_wait(&blocking->mutex, cond, at_most);
    blocking->cancel_state = before;
    return signalled;
}

/* ---- The thread that runs the loop ---- */

/* The thread that ran the loop stops.  In a crowd the client's thread runs it next, because each
 * change of threads delays all calls.  Otherwise the call that has waited longest does.  Without
 * one, the client's thread does so after a lull.  Everything is written first, because a failed
 * call must have sent its releases when it returns. */
static void hand_over(struct blocking *blocking)
{
    struct waiter *next;

    blocking->events->flush(blocking->cookie);
    /* Read it after the flush: a link that breaks there may end some calls. */
    blocking->takes_over = blocking_is_crowded(blocking) && blocking->resting &&
                           !blocking->stopping && !has_callbacks(blocking);
    next = blocking->takes_over ? NULL : blocking->waiters.oldest;
    blocking->server = next;
    blocking->served = next != NULL || blocking->takes_over;
    if (next != NULL) {
        next->serves = true;
        wake_later(blocking, next);
    } else if (blocking->napping || blocking->takes_over) {
        (void)pthread_cond_signal(&blocking->called);
    }
    if (blocking->stopping)
        blocking_idle(blocking);
}

/* The client's thread runs the loop while there is no call or a crowd, and no callback is due. */
static void serve_many(struct blocking *blocking)
{
    uint64_t calls = blocking->calls;

    blocking->served = true;
    blocking->turns = blocking->takes_over ? CROWD_TURNS : 0;
    blocking->takes_over = false;
    if (blocking->turns > 0)
        requests_open(&blocking->requests);
    while (!blocking->stopping && (blocking->turns > 0 || blocking->calls == calls) &&
           !has_callbacks(blocking))
        ev_run(blocking->ev, EVRUN_ONCE);
    blocking->turns = 0;
    begin_calls(blocking, requests_close);
    hand_over(blocking);
}

/* Run callbacks until the thread must run the loop: for a crowd, or because there was no call for a
 * while and no thread runs it. */
static void await_lull(struct blocking *blocking)
{
    bool quiet = false;

    while (!blocking->stopping && !blocking->takes_over) {
        drift_span alarm = blocking->events->alarm_in(blocking->cookie);
        uint64_t calls = blocking->calls;

        blocking->events->run_callbacks(blocking->cookie);
        if (has_callbacks(blocking))
            continue;
        if (quiet && !blocking->served)
            return;
        /* If quiet, a call that waits for long runs the loop.  Sleep until no call runs it. */
        blocking->napping = quiet;
        if (quiet)
            alarm = DRIFT_NEVER;
        else if (blocking->served || alarm > LULL)
            alarm = LULL;
        blocking->resting = true;
        (void)wait_for(blocking, &blocking->called, alarm);
        blocking->napping = blocking->resting = false;
        quiet = blocking->calls == calls;
    }
}

static void *run(void *arg)
{
    struct blocking *blocking = arg;

    blocking_lock(blocking);
    while (!blocking->stopping) {
        if (blocking->takes_over || !blocking->served)
            serve_many(blocking);
        await_lull(blocking);
    }
    blocking_unlock(blocking);
    return NULL;
}

void blocking_call_thread(struct blocking *blocking)
{
    if (blocking->server == NULL)
        blocking_kick(blocking);
    (void)pthread_cond_signal(&blocking->called);
}

/* ---- The thread ---- */

static void make_conditions(struct blocking *blocking)
{
    mutex_make_condition(&blocking->called);
    mutex_make_condition(&blocking->idle);
}

struct blocking *blocking_new(const struct blocking_events *events, void *cookie)
{
    struct blocking *blocking = calloc(1, sizeof *blocking);
    int error = ENOMEM; /* libev does not say why there is no loop. */

    if (blocking == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    blocking->events = events;
    blocking->cookie = cookie;
    blocking->forks = fork_count();
    blocking->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (blocking->ev == NULL)
        goto fail_loop;
    error = wakeup_take(blocking->ev);
    if (error != 0)
        goto fail_eventfd;
    ev_set_userdata(blocking->ev, blocking);
    ev_set_loop_release_cb(blocking->ev, before_sleep, after_sleep);
    ev_async_init(&blocking->kick, on_kick);
    ev_async_start(blocking->ev, &blocking->kick);
    requests_init(&blocking->requests);
    ev_prepare_init(&blocking->prepare, on_prepare); /* Runs before the client's, which writes. */
    ev_prepare_start(blocking->ev, &blocking->prepare);
    mutex_make(&blocking->mutex);
    make_conditions(blocking);
    return blocking;

fail_eventfd:
    ev_loop_destroy(blocking->ev);
fail_loop:
    free(blocking);
    errno = error;
    return NULL;
}

int blocking_start(struct blocking *blocking)
{
    int error;

    blocking_lock(blocking); /* The thread begins only after blocking->thread is set. */
    error = thread_start(&blocking->thread, run, blocking);
    blocking->started = error == 0;
    blocking_unlock(blocking);
    if (error != 0)
        return error_set(REDLOCK_E_SYSTEM, "open: cannot start a thread: %s", text_of_errno(error));
    return REDLOCK_OK;
}

/* Wait for calls that began before the client closed.  They see the close when they have the
 * mutex.  It sleeps, because a thread of real-time priority that only yields keeps others out. */
static void await_entering(struct blocking *blocking)
{
    const struct timespec nap = {.tv_nsec = (long)DRIFT_MS};
    bool some = true;

    (void)sched_yield();
    while (some) {
        blocking_lock(blocking);
        some = atomic_load(&blocking->entering) > 0;
        blocking_unlock(blocking);
        if (some)
            (void)nanosleep(&nap, NULL);
    }
}

void blocking_stop(struct blocking *blocking)
{
    if (!blocking->started)
        return;
    blocking_lock(blocking);
    blocking->stopping = true;
    blocking_call_thread(blocking);
    /* Wait for calls that have ended, but have not yet left the loop or been woken. */
    while (blocking->server != NULL || blocking->watching > 0)
        (void)wait_for(blocking, &blocking->idle, DRIFT_NEVER);
    blocking_unlock(blocking);
    (void)pthread_join(blocking->thread, NULL);
    blocking->started = false;
    await_entering(blocking);
}

/* libev would close its descriptors by number.  The child of a fork may have closed them, and have
 * files of its own there.  So the child keeps the loop, where tools find that it is not lost. */
static void leave_behind(struct blocking *blocking)
{
    static _Atomic(struct blocking *) all;

    blocking->left = atomic_exchange(&all, blocking);
}

void blocking_free(struct blocking *blocking)
{
    if (fork_count() != blocking->forks) {
        leave_behind(blocking);
        return;
    }
    ev_prepare_stop(blocking->ev, &blocking->prepare);
    ev_async_stop(blocking->ev, &blocking->kick);
    ev_loop_destroy(blocking->ev);
    (void)pthread_mutex_destroy(&blocking->mutex);
    (void)pthread_cond_destroy(&blocking->called);
    (void)pthread_cond_destroy(&blocking->idle);
    free(blocking);
}

bool blocking_was_idle(struct blocking *blocking)
{
    if (pthread_mutex_trylock(&blocking->mutex) != 0)
        return false;
    (void)pthread_mutex_unlock(&blocking->mutex);
    /* Make new conditions.  The threads that waited are not in this process, but glibc would wait
     * for them to destroy a condition. */
    make_conditions(blocking);
    return true;
}

struct ev_loop *blocking_loop(struct blocking *blocking)
{
    return blocking->ev;
}

/* A thread cannot be cancelled while it has the mutex, because send() is a cancellation point. */
static int begin_entering(struct blocking *blocking)
{
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    atomic_fetch_add(&blocking->entering, 1);
    return before;
}

static void enter(struct blocking *blocking, int before)
{
    (void)pthread_mutex_lock(&blocking->mutex);
    atomic_fetch_sub(&blocking->entering, 1);
    blocking->cancel_state = before;
}

void blocking_lock(struct blocking *blocking)
{
    enter(blocking, begin_entering(blocking));
}

bool blocking_is_crowded(const struct blocking *blocking)
{
    return blocking->waiters.len >= CROWD;
}

void blocking_unlock(struct blocking *blocking)
{
    struct waiter *woken = blocking->woken;
    int before = blocking->cancel_state;

    blocking->woken = NULL;
    (void)pthread_mutex_unlock(&blocking->mutex);
    waiters_post(woken);
    (void)pthread_setcancelstate(before, NULL);
}

void blocking_wait_change(struct blocking *blocking)
{
    blocking->watching++;
    (void)wait_for(blocking, &blocking->idle, DRIFT_NEVER);
    blocking->watching--;
    if (blocking->stopping)
        blocking_idle(blocking);
}

bool blocking_is_self(const struct blocking *blocking)
{
    return blocking->started && pthread_equal(pthread_self(), blocking->thread);
}

/* ---- Waiting ---- */

void blocking_begin_wait(struct blocking *blocking, struct waiter *waiter)
{
    waiters_add(&blocking->waiters, waiter);
}

/* Run the loop until the operation of this call is over. */
static void serve(struct blocking *blocking, struct waiter *waiter)
{
    int before = blocking->cancel_state;

    /* The thread cannot be cancelled in the loop's sleep either. */
    blocking->cancel_state = PTHREAD_CANCEL_DISABLE;
    while (!waiter->is_done)
        ev_run(blocking->ev, EVRUN_ONCE);
    blocking->cancel_state = before;
    hand_over(blocking);
}

/* Sleep until the call is over, or until this thread must run the loop. */
static void sleep_until_woken(struct blocking *blocking, struct waiter *waiter)
{
    while (sem_wait(&waiter->woken) != 0 && errno == EINTR)
        ;
    if (waiter->serves) {
        blocking_lock(blocking);
        serve(blocking, waiter);
        blocking_unlock(blocking);
    }
}

/* The waiter is on this thread's stack, so this thread must not be cancelled.  The thread counts as
 * entering until it has handed its call in or has the mutex, so that the client is not freed. */
bool blocking_hand_in(struct blocking *blocking, struct waiter *waiter, int *ret_status)
{
    int before = begin_entering(blocking);

    waiter->is_handed_in = true;
    if (!requests_push(&blocking->requests, &waiter->request)) {
        waiter->is_handed_in = false;
        enter(blocking, before);
        return false;
    }
    ev_async_send(blocking->ev, &blocking->kick); /* It writes only if the loop sleeps. */
    atomic_fetch_sub(&blocking->entering, 1);
    sleep_until_woken(blocking, waiter);
    *ret_status = waiter_done(waiter);
    (void)pthread_setcancelstate(before, NULL);
    return true;
}

int blocking_wait(struct blocking *blocking, struct waiter *waiter)
{
    int before = blocking->cancel_state;

    blocking->calls += !waiter->is_done;
    if (waiter->is_done) {
        blocking_unlock(blocking);
    } else if (!blocking->served) {
        blocking->served = true;
        blocking->server = waiter;
        serve(blocking, waiter);
        blocking_unlock(blocking);
    } else {
        /* The waiter is on this thread's stack, so this thread must not be cancelled. */
        blocking->cancel_state = PTHREAD_CANCEL_DISABLE;
        blocking_unlock(blocking);
        sleep_until_woken(blocking, waiter);
        (void)pthread_setcancelstate(before, NULL);
    }
    return waiter_done(waiter);
}

void blocking_wake(struct blocking *blocking, struct waiter *waiter, int status)
{
    waiters_remove(&blocking->waiters, waiter);
    waiter_end(waiter, status);
    if (blocking->server == waiter) {
        blocking_kick(blocking); /* The server sees is_done by itself. */
        return;
    }
    wake_later(blocking, waiter);
}

void blocking_idle(struct blocking *blocking)
{
    (void)pthread_cond_broadcast(&blocking->idle);
}

static drift_time now_or_never(void)
{
    drift_time now;

    return drift_now(&now) == 0 ? now : DRIFT_NEVER;
}

void blocking_wait_idle(struct blocking *blocking, drift_span at_most)
{
    drift_time now = now_or_never(), until = drift_add(now, at_most);

    while (blocking->events->has_leases(blocking->cookie)) {
        if (!wait_for(blocking, &blocking->idle, drift_until(now, until)))
            return;
        now = now_or_never();
    }
}
