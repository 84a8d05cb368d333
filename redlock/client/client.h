/*
 * client.h - how a public call enters and leaves a client.
 *
 * client.c opens, closes, and passes events on; callback.c runs the program's callbacks; api.c has
 * the public calls, and wanted.c checks what they ask for; blocking.c adds a mutex and a thread;
 * inspect.c shows what the `redlock` command may see.
 */
#ifndef REDLOCK_CLIENT_H
#define REDLOCK_CLIENT_H

#include <stdbool.h>

#include "redlock/client/state.h"

struct waiter;

/* Whether this process is a child of the one that opened it.  Any thread. */
bool client_is_forked(const struct redlock *rl);

/* Begin a call: OK, or E_INVAL or E_STATE with a message; then, and only then, client_leave()
 * must follow. */
int client_enter(struct redlock *rl);
void client_leave(struct redlock *rl);
/* The same for a call that waits; returns its status. */
int client_wait(struct redlock *rl, struct waiter *waiter);

#endif /* REDLOCK_CLIENT_H */
