/*
 * waiter.h - a thread in a blocking call, and the list of the calls under way.
 */
#ifndef REDLOCK_CLIENT_WAITER_H
#define REDLOCK_CLIENT_WAITER_H

#include <semaphore.h>
#include <stdbool.h>

#include "redlock/base/error.h"
#include "redlock/client/requests.h"

/* What became of a call when it began. */
enum begun {
    BEGUN_OVER,  /* It is over, with waiter->status and the thread's message. */
    BEGUN_WAITS, /* blocking_begin_wait() was called. */
    BEGUN_LEFT   /* It is over, and gave up the mutex.  A call that is handed in never does. */
};

/* One thread in a blocking call. */
struct waiter {
    struct request request; /* The first field. */
    /* Set by the client: begins the call, under the mutex.  It may run in the client's thread. */
    enum begun (*begin)(struct waiter *waiter);
    const char *doing;             /* The first word of the message of a call that cannot begin. */
    struct waiter *before, *after; /* The neighbours in the order in which the calls began. */
    struct waiter *next_woken;
    sem_t woken;  /* Posted once at most, for one of the next two reasons. */
    bool serves;  /* The thread must run the loop. */
    bool is_done; /* The operation is over. */
    bool is_handed_in;
    bool is_interrupted; /* An interrupt came after it was handed in, or just before. */
    int status;
    struct error error;
};

/* The calls under way, in the order in which they began. */
struct waiters {
    struct waiter *oldest, *newest;
    unsigned len;
};

void waiters_add(struct waiters *waiters, struct waiter *waiter);
void waiters_remove(struct waiters *waiters, struct waiter *waiter);

/* Prepare a waiter, whose begin is set already. */
void waiter_init(struct waiter *waiter);
/* The call is over, with this status and the thread's message and blame.  Does not wake its thread.
 */
void waiter_end(struct waiter *waiter, int status);
/* In the caller's own thread: take over the message and the blame.  Returns the status. */
int waiter_done(struct waiter *waiter);

/* Wake the threads of a list that is linked by next_woken. */
void waiters_post(struct waiter *next);

#endif /* REDLOCK_CLIENT_WAITER_H */
