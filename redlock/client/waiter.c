/*
 * waiter.c - see waiter.h.
 */
#include "redlock/client/waiter.h"

#include <stddef.h>

void waiters_add(struct waiters *waiters, struct waiter *waiter)
{
    waiter->before = waiters->newest;
    waiter->after = NULL;
    if (waiters->newest != NULL)
        waiters->newest->after = waiter;
    else
        waiters->oldest = waiter;
    waiters->newest = waiter;
    waiters->len++;
}

void waiters_remove(struct waiters *waiters, struct waiter *waiter)
{
    if (waiter->before != NULL)
        waiter->before->after = waiter->after;
    else
        waiters->oldest = waiter->after;
    if (waiter->after != NULL)
        waiter->after->before = waiter->before;
    else
        waiters->newest = waiter->before;
    waiters->len--;
}

void waiter_init(struct waiter *waiter)
{
    (void)sem_init(&waiter->woken, 0, 0);
    waiter->serves = waiter->is_done = false;
    waiter->is_handed_in = waiter->is_interrupted = false;
    waiter->error.text[0] = '\0';
    waiter->error.parts.len = 0;
}

void waiter_end(struct waiter *waiter, int status)
{
    waiter->status = status;
    error_save(&waiter->error);
    waiter->is_done = true;
}

/* Set an empty message as well: the thread may have one from the beginning of the call. */
int waiter_done(struct waiter *waiter)
{
    (void)sem_destroy(&waiter->woken);
    return error_pass_on(waiter->status, &waiter->error);
}

void waiters_post(struct waiter *next)
{
    struct waiter *waiter;

    while ((waiter = next) != NULL) {
        /* Read it before the post: the waiter is on the stack of a thread that then goes on. */
        next = waiter->next_woken;
        (void)sem_post(&waiter->woken);
    }
}
