/*
 * requests.c - see requests.h.
 */
#include "redlock/client/requests.h"

#include <stddef.h>

/* Its address marks a closed stack. */
static struct request closed;

void requests_init(struct requests *requests)
{
    atomic_init(&requests->newest, &closed);
}

void requests_open(struct requests *requests)
{
    struct request *expected = &closed;

    (void)atomic_compare_exchange_strong(&requests->newest, &expected, NULL);
}

bool requests_push(struct requests *requests, struct request *request)
{
    struct request *newest = atomic_load(&requests->newest);

    do {
        if (newest == &closed)
            return false;
        request->next = newest;
    } while (!atomic_compare_exchange_weak(&requests->newest, &newest, request));
    return true;
}

/* Turn a list round. */
static struct request *oldest_first(struct request *newest)
{
    struct request *oldest = NULL;

    while (newest != NULL) {
        struct request *before = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = before;
    }
    return oldest;
}

struct request *requests_take(struct requests *requests)
{
    struct request *newest = atomic_load(&requests->newest);

    /* A load is cheaper than an exchange, and only this thread closes the stack. */
    if (newest == NULL || newest == &closed)
        return NULL;
    return oldest_first(atomic_exchange(&requests->newest, NULL));
}

struct request *requests_close(struct requests *requests)
{
    struct request *newest = atomic_exchange(&requests->newest, &closed);

    return newest == &closed ? NULL : oldest_first(newest);
}
