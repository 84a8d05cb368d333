/*
 * wakeup.h - the eventfd by which signals and other threads wake a loop of libev.
 */
#ifndef REDLOCK_WAKEUP_H
#define REDLOCK_WAKEUP_H

struct ev_loop;

/* Let a new loop take its eventfd and watch it.  Later, libev would end the process without one,
 * and a refusal to watch it would show nowhere.  Returns 0, or an errno: destroy the loop. */
int wakeup_take(struct ev_loop *ev);

#endif /* REDLOCK_WAKEUP_H */
