/*
 * client.h - how a public call enters and leaves a client.
 *
 * - client.c opens and closes a client, and passes events on.
 * - callback.c runs the program's callbacks.
 * - call.c makes a blocking call.
 * - api.c has the public calls on leases; wanted.c checks their names and options.
 * - blocking.c adds a mutex and a thread.
 * - pollable.c has the descriptor for other event loops.
 * - inspect.c shows the `redlock` command what it may see.
 */
#ifndef REDLOCK_CLIENT_H
#define REDLOCK_CLIENT_H

#include <stdbool.h>

#include "redlock/client/blocking.h"
#include "redlock/client/state.h"

/* Whether this process is a child of the one that opened the client.  Any thread may call it. */
bool client_is_forked(const struct redlock *rl);

/* As redlock_open().  names: NULL stands for those of redlock.h. */
int client_open(const struct redlock_options *opts, const struct option_names *names,
                struct redlock **ret_rl);

/* client_enter() begins a call.  It returns OK, or E_INVAL or E_STATE with a message.
 * client_leave() must follow OK, and only OK. */
int client_enter(struct redlock *rl);
void client_leave(struct redlock *rl);
/* As client_leave(), but wait for the operation and return its status. */
int client_wait(struct redlock *rl, struct waiter *waiter);

/* call.c: make a blocking call: waiter->begin begins it.  doing is the first word of the message of
 * a call that cannot begin.  Returns the status of the call. */
int client_call(struct redlock *rl, struct waiter *waiter, const char *doing);
/* Returns OK, or E_STATE with a message if the client is of the other kind, or if the caller is a
 * callback, which may not wait. */
int client_need(const struct redlock *rl, bool blocking);
/* Under the mutex: begin the call, unless the client is being closed. */
enum begun client_begin(void *rl, struct waiter *waiter);

#endif /* REDLOCK_CLIENT_H */
