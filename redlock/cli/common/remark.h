/*
 * remark.h - what the command says of a master: the reason of the library, or a sentence of its
 * own.
 */
#ifndef REDLOCK_REMARK_H
#define REDLOCK_REMARK_H

#include <stdio.h>

#include "redlock/client/inspect.h"
#include "redlock/wire/redis_error.h"

/* before: what stands before the reason, or "".  The reason has no time until it may be over. */
static inline struct remark remark_of(const char *before, const struct reason *why)
{
    struct remark remark = {.message = reason_message(why)};
    size_t len = (size_t)snprintf(remark.text, sizeof remark.text, "%s", before);

    (void)reason_write(why, 0, remark.text + len, sizeof remark.text - len);
    return remark;
}

/* The reply is an error, or none that was to be expected. */
static inline struct remark remark_of_reply(const char *before, const struct reply *reply)
{
    struct reason why;

    reply_reason(reply, &why);
    return remark_of(before, &why);
}

#endif /* REDLOCK_REMARK_H */
