/*
 * queue.h - what a link has to send, and which answers it awaits.
 *
 * A queue holds two lists, in the order of sending: the bytes that were not sent yet, and the asks
 * that were not answered yet.  Only a lack of memory makes it fail.
 */
#ifndef REDLOCK_QUEUE_H
#define REDLOCK_QUEUE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "redlock/link/ask.h"

/* Zeroes are an empty queue. */
struct queue {
    struct ask *asks; /* A ring.  Its room is a power of two. */
    uint32_t asks_first, asks_len, asks_room;
    char *out; /* The bytes from out_sent to out_len are not sent yet. */
    size_t out_sent, out_len, out_room;
};

/* Make room for so many bytes; for one more ask.  Return false if memory runs out. */
bool queue_grow_out(struct queue *queue, size_t len);
bool queue_grow_asks(struct queue *queue);

/* Append bytes whose answers no ask awaits.  Returns false if memory runs out. */
static inline bool queue_append(struct queue *queue, const char *bytes, size_t len)
{
    if (queue->out_room - queue->out_len < len && !queue_grow_out(queue, len))
        return false;
    memcpy(queue->out + queue->out_len, bytes, len);
    queue->out_len += len;
    return true;
}

/* Append an ask and its command.  Returns false, and appends neither, if memory runs out. */
static inline bool queue_append_ask(struct queue *queue, const struct ask *ask, const char *command,
                                    size_t len)
{
    if (queue->asks_len == queue->asks_room && !queue_grow_asks(queue))
        return false;
    if (!queue_append(queue, command, len))
        return false;
    queue->asks[(queue->asks_first + queue->asks_len++) & (queue->asks_room - 1)] = *ask;
    return true;
}

/* All asks are answered: free the ring if it is large. */
void queue_on_answered(struct queue *queue);

/* Take the first ask out.  There must be one. */
static inline struct ask queue_take_ask(struct queue *queue)
{
    struct ask ask;

    assert(queue->asks_len > 0);
    ask = queue->asks[queue->asks_first];
    queue->asks_first = (queue->asks_first + 1) & (queue->asks_room - 1);
    if (--queue->asks_len == 0)
        queue_on_answered(queue);
    return ask;
}

/* The bytes to send next. */
static inline const char *queue_unsent(const struct queue *queue)
{
    return queue->out + queue->out_sent;
}

static inline size_t queue_unsent_len(const struct queue *queue)
{
    return queue->out_len - queue->out_sent;
}

/* Drop the bytes that were sent.  wipe: overwrite them with zeroes when all were sent. */
void queue_drop_sent(struct queue *queue, bool wipe);

/* Overwrite all bytes with zeroes, and drop them.  The asks stay. */
void queue_wipe(struct queue *queue);

/* Free the queue's memory.  It wipes nothing. */
void queue_done(struct queue *queue);

#endif /* REDLOCK_QUEUE_H */
