/*
 * pollable.c - a client for any event loop: one descriptor to wait for.
 */
#include "redlock/redlock.h"

#include "redlock/base/error.h"
#include "redlock/client/client.h"
#include "redlock/io/loop.h"

/* Whether the client has a descriptor, and this process may use it. */
static int check(const struct redlock *rl)
{
    error_clear();
    if (rl == NULL)
        return error_set(REDLOCK_E_INVAL, "the client is NULL");
    if (client_is_forked(rl))
        return error_set(REDLOCK_E_STATE, "the client belongs to the process before the fork");
    if (!rl->options.pollable)
        return error_set(REDLOCK_E_STATE, "the client was opened without pollable");
    return REDLOCK_OK;
}

int redlock_fd(const struct redlock *rl)
{
    int status = check(rl);

    return status == REDLOCK_OK ? loop_poll_fd(rl->env.loop) : error_wrap(status, "fd");
}

/* A callback may close the client, so nothing is touched afterwards. */
int redlock_dispatch(struct redlock *rl)
{
    int status = check(rl);

    if (status != REDLOCK_OK)
        return error_wrap(status, "dispatch");
    loop_poll_dispatch(rl->env.loop);
    return REDLOCK_OK;
}
