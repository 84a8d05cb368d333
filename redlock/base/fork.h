/*
 * fork.h - counts forks.
 *
 * Comparing getpid() at every call instead would add a tenth to the cost of a lock.
 */
#ifndef REDLOCK_FORK_H
#define REDLOCK_FORK_H

/* Start to count.  Any thread may call it, also more than once. */
void fork_watch(void);

/* The number of forks between the first process that counted and this one. */
unsigned fork_count(void);

#endif /* REDLOCK_FORK_H */
