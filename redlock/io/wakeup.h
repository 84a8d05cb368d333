/*
 * wakeup.h - the eventfd by which signals and other threads wake a loop of libev.
 */
#ifndef REDLOCK_WAKEUP_H
#define REDLOCK_WAKEUP_H

struct ev_loop;

/* Let a new loop make its eventfd and watch it now.  Later, libev ends the process if it gets no
 * eventfd, and does not report a refusal to watch it.  Returns 0, or an errno: destroy the loop. */
int wakeup_take(struct ev_loop *ev);

#endif /* REDLOCK_WAKEUP_H */
