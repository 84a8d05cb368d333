/*
 * blocking.c - a thread that runs the loop while others wait.
 */
#include "redlock/blocking.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/client.h"
#include "redlock/error.h"

/* Measured: with fewer calls than this under way, five sends by the caller
 * cost less than the wait for another thread to do them. */
#define CROWD 3

struct blocking {
    struct redlock *rl;
    struct ev_loop *ev;
    ev_async stop;
    pthread_mutex_t mutex;
    unsigned waiting;     /* Calls under way. */
    int cancel_state;     /* To go back to, of the thread that has the mutex. */
    struct waiter *woken; /* By the I/O thread, to be let run when it sleeps. */
    pthread_cond_t idle;
    pthread_t thread;
    bool started, stopping;
};

/* ---- The thread ---- */

static void on_stop(struct ev_loop *ev, ev_async *stop, int events)
{
    (void)stop, (void)events;
    ev_break(ev, EVBREAK_ALL);
}

/* libev calls these around its sleep. */
static void before_sleep(struct ev_loop *ev)
{
    struct blocking *blocking = ev_userdata(ev);

    blocking_unlock(blocking);
}

static void after_sleep(struct ev_loop *ev)
{
    struct blocking *blocking = ev_userdata(ev);

    blocking_lock(blocking);
}

static void *run(void *arg)
{
    struct blocking *blocking = arg;

    blocking_lock(blocking);
    if (!blocking->stopping)
        ev_run(blocking->ev, 0);
    blocking_unlock(blocking);
    return NULL;
}

/* It is held for microseconds: where the C library can, spin a little before
 * going to sleep over it. */
static void make_mutex(struct blocking *blocking)
{
    pthread_mutexattr_t attr;

    (void)pthread_mutexattr_init(&attr);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    (void)pthread_mutex_init(&blocking->mutex, &attr);
    (void)pthread_mutexattr_destroy(&attr);
}

struct blocking *blocking_new(struct redlock *rl)
{
    struct blocking *blocking = calloc(1, sizeof *blocking);
    pthread_condattr_t attr;
    int probe;

    if (blocking == NULL)
        return NULL;
    blocking->rl = rl;
    blocking->ev = ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV);
    if (blocking->ev == NULL)
        goto fail_loop;
    probe = eventfd(0, EFD_CLOEXEC); /* libev aborts if it gets none. */
    if (probe < 0)
        goto fail_probe;
    (void)close(probe);
    ev_set_userdata(blocking->ev, blocking);
    ev_set_loop_release_cb(blocking->ev, before_sleep, after_sleep);
    ev_async_init(&blocking->stop, on_stop);
    ev_async_start(blocking->ev, &blocking->stop);
    make_mutex(blocking);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&blocking->idle, &attr);
    (void)pthread_condattr_destroy(&attr);
    return blocking;

fail_probe:
    ev_loop_destroy(blocking->ev);
fail_loop:
    free(blocking);
    return NULL;
}

/* Signals are for the program's own threads. */
int blocking_start(struct blocking *blocking)
{
    sigset_t all, before;
    int error;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    blocking_lock(blocking); /* The thread begins when it may know who it is. */
    error = pthread_create(&blocking->thread, NULL, run, blocking);
    blocking->started = error == 0;
    blocking_unlock(blocking);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return error_set(REDLOCK_E_SYSTEM, "open: cannot start a thread: %s", strerror(error));
    return REDLOCK_OK;
}

void blocking_stop(struct blocking *blocking)
{
    if (!blocking->started)
        return;
    blocking_lock(blocking);
    blocking->stopping = true;
    ev_async_send(blocking->ev, &blocking->stop);
    blocking_unlock(blocking);
    (void)pthread_join(blocking->thread, NULL);
    blocking->started = false;
}

void blocking_free(struct blocking *blocking)
{
    ev_async_stop(blocking->ev, &blocking->stop);
    ev_loop_destroy(blocking->ev);
    (void)pthread_mutex_destroy(&blocking->mutex);
    (void)pthread_cond_destroy(&blocking->idle);
    free(blocking);
}

bool blocking_was_idle(struct blocking *blocking)
{
    if (pthread_mutex_trylock(&blocking->mutex) != 0)
        return false;
    (void)pthread_mutex_unlock(&blocking->mutex);
    return true;
}

struct ev_loop *blocking_loop(struct blocking *blocking)
{
    return blocking->ev;
}

/* A thread cannot be cancelled while it has the mutex: send() under it is a
 * place to be cancelled at. */
void blocking_lock(struct blocking *blocking)
{
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_mutex_lock(&blocking->mutex);
    blocking->cancel_state = before;
}

bool blocking_is_crowded(const struct blocking *blocking)
{
    return blocking->waiting >= CROWD;
}

void blocking_unlock(struct blocking *blocking)
{
    struct waiter *waiter, *next = blocking->woken;
    int before = blocking->cancel_state;

    blocking->woken = NULL;
    (void)pthread_mutex_unlock(&blocking->mutex);
    while ((waiter = next) != NULL) {
        next = waiter->next; /* It is on the stack of a thread that now goes on. */
        (void)sem_post(&waiter->done);
    }
    (void)pthread_setcancelstate(before, NULL);
}

void blocking_wait_change(struct blocking *blocking)
{
    (void)pthread_cond_wait(&blocking->idle, &blocking->mutex);
}

bool blocking_is_self(const struct blocking *blocking)
{
    return blocking->started && pthread_equal(pthread_self(), blocking->thread);
}

/* ---- Waiting ---- */

void blocking_begin_wait(struct blocking *blocking, struct waiter *waiter)
{
    (void)sem_init(&waiter->done, 0, 0);
    waiter->message[0] = 0;
    blocking->waiting++;
}

int blocking_end_wait(struct waiter *waiter)
{
    int before;

    /* The waiter is on this thread's stack: it cannot be cancelled away. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    while (sem_wait(&waiter->done) != 0 && errno == EINTR)
        ;
    (void)pthread_setcancelstate(before, NULL);
    (void)sem_destroy(&waiter->done);
    /* An empty one, too: the thread may have one from the beginning of the call. */
    return error_set(waiter->status, "%s", waiter->message);
}

void blocking_wake(struct blocking *blocking, struct waiter *waiter, int status)
{
    blocking->waiting--;
    waiter->status = status;
    (void)memccpy(waiter->message, error_message(), 0, sizeof waiter->message);
    if (blocking_is_self(blocking)) {
        waiter->next = blocking->woken;
        blocking->woken = waiter;
    } else {
        (void)sem_post(&waiter->done);
    }
}

void blocking_idle(struct blocking *blocking)
{
    (void)pthread_cond_broadcast(&blocking->idle);
}

void blocking_wait_idle(struct blocking *blocking, drift_span at_most)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(at_most / DRIFT_S);
    until.tv_nsec += (long)(at_most % DRIFT_S);
    if (until.tv_nsec >= (long)DRIFT_S) {
        until.tv_nsec -= (long)DRIFT_S;
        until.tv_sec++;
    }
    while (blocking->rl->stats.leases > 0)
        if (pthread_cond_timedwait(&blocking->idle, &blocking->mutex, &until) == ETIMEDOUT)
            return;
}
