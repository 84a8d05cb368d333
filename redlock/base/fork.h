/*
 * fork.h - forks, counted.
 *
 * Asking the kernel for our pid at every call would cost a tenth of a lock.
 */
#ifndef REDLOCK_FORK_H
#define REDLOCK_FORK_H

/* Begin to count.  May be called again, from any thread. */
void fork_watch(void);

/* How many forks lie between this process and the first one that counted. */
unsigned fork_count(void);

#endif /* REDLOCK_FORK_H */
