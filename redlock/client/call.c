/*
 * call.c - how a blocking call begins: in the thread that runs the loop for a crowd, or else in the
 * caller's own.
 */
#include "redlock/base/error.h"
#include "redlock/client/blocking.h"
#include "redlock/client/client.h"

int client_need(const struct redlock *rl, bool blocking)
{
    if (!blocking && rl->blocking != NULL)
        return error_set(REDLOCK_E_STATE, "an asynchronous call on a blocking client");
    if (blocking && rl->blocking == NULL)
        return error_set(REDLOCK_E_STATE, "a blocking call on a client with a loop");
    if (blocking && blocking_is_self(rl->blocking))
        return error_set(REDLOCK_E_STATE, "a blocking call from a callback");
    return REDLOCK_OK;
}

/* Explain why the client, which may be NULL, takes no blocking call from this thread. */
static int refuse(struct redlock *rl, const char *doing)
{
    int status = client_enter(rl);

    if (status == REDLOCK_OK) {
        status = client_need(rl, true);
        client_leave(rl);
    }
    return error_wrap(status, "%s", doing);
}

int client_call(struct redlock *rl, struct waiter *waiter, const char *doing)
{
    enum begun begun;
    int status;

    if (rl == NULL || rl->blocking == NULL || client_is_forked(rl))
        return refuse(rl, doing);
    waiter->doing = doing;
    waiter_init(waiter);
    if (blocking_hand_in(rl->blocking, waiter, &status))
        return status;
    if (blocking_is_self(rl->blocking)) {
        blocking_unlock(rl->blocking);
        return refuse(rl, doing);
    }
    begun = client_begin(rl, waiter);
    if (begun == BEGUN_WAITS)
        return client_wait(rl, waiter);
    status = waiter->status;
    if (begun == BEGUN_OVER)
        client_leave(rl);
    return status;
}
