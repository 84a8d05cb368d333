/*
 * requests.h - calls that threads hand to the thread that runs the loop, without a mutex.
 *
 * A stack that is taken as a whole (Treiber: Systems Programming: Coping with Parallelism, 1986).
 * Nothing is taken from it singly, so the ABA problem does not arise.
 *
 * The stack is open only while a thread is bound to take what is handed in.  Closing it and taking
 * what it holds is one step, so no request is left behind.
 */
#ifndef REDLOCK_REQUESTS_H
#define REDLOCK_REQUESTS_H

#include <stdatomic.h>
#include <stdbool.h>

/* The first field of what is handed in.  Its owner keeps it until it was taken. */
struct request {
    struct request *next;
};

struct requests {
    _Atomic(struct request *) newest;
};

/* A new stack is closed. */
void requests_init(struct requests *requests);
/* Open a closed stack.  An open one stays as it is. */
void requests_open(struct requests *requests);

/* Hand in a request, from any thread.  Returns false if the stack is closed. */
bool requests_push(struct requests *requests, struct request *request);

/* Take all requests, the oldest first.  NULL: there is none. */
struct request *requests_take(struct requests *requests);
/* The same, and close the stack. */
struct request *requests_close(struct requests *requests);

#endif /* REDLOCK_REQUESTS_H */
