/*
 * queue.c - a buffer of bytes, and a ring of asks.
 */
#include "redlock/link/queue.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

/* An empty buffer of at most this size is kept for the next commands, and an empty ring of at most
 * so many asks.  Chosen: 256 locks in flight take half of it.  Larger ones were needed for a slow
 * master, or for a thousand waiters at once, and are freed. */
#define OUT_KEPT_MAX (64u << 10)
#define ASKS_KEPT_MAX 1024

/* ---- Bytes ---- */

bool queue_grow_out(struct queue *queue, size_t len)
{
    size_t room = queue->out_room ? queue->out_room : 4096;
    char *out;

    while (room - queue->out_len < len)
        room *= 2;
    out = realloc(queue->out, room);
    if (out == NULL)
        return false;
    queue->out = out;
    queue->out_room = room;
    return true;
}

static void empty_out(struct queue *queue)
{
    queue->out_sent = queue->out_len = 0;
    if (queue->out_room <= OUT_KEPT_MAX)
        return;
    free(queue->out);
    queue->out = NULL;
    queue->out_room = 0;
}

void queue_drop_sent(struct queue *queue, bool wipe)
{
    if (queue->out_sent == queue->out_len) {
        if (wipe)
            sodium_memzero(queue->out, queue->out_len);
        empty_out(queue);
    } else if (queue->out_sent > queue->out_room / 2) {
        queue->out_len -= queue->out_sent;
        memmove(queue->out, queue->out + queue->out_sent, queue->out_len);
        if (wipe)
            sodium_memzero(queue->out + queue->out_len, queue->out_sent);
        queue->out_sent = 0;
    }
}

void queue_wipe(struct queue *queue)
{
    if (queue->out != NULL)
        sodium_memzero(queue->out, queue->out_len);
    empty_out(queue);
}

/* ---- Asks ---- */

bool queue_grow_asks(struct queue *queue)
{
    uint32_t room = queue->asks_room ? queue->asks_room * 2 : 64;
    struct ask *asks = malloc(room * sizeof *asks);

    if (asks == NULL)
        return false;
    for (uint32_t i = 0; i < queue->asks_len; i++)
        asks[i] = queue->asks[(queue->asks_first + i) % queue->asks_room];
    free(queue->asks);
    queue->asks = asks;
    queue->asks_first = 0;
    queue->asks_room = room;
    return true;
}

void queue_on_answered(struct queue *queue)
{
    if (queue->asks_room <= ASKS_KEPT_MAX)
        return;
    free(queue->asks);
    queue->asks = NULL;
    queue->asks_first = queue->asks_room = 0;
}

void queue_done(struct queue *queue)
{
    free(queue->asks);
    free(queue->out);
}
