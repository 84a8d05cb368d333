/*
 * alike.h - find machines that differ, but will behave alike.
 */
#ifndef TEST_ALIKE_H
#define TEST_ALIKE_H

#include "redlock/core/quorum.h"

/*
 * Clear what makes no difference from now on: fields that this state does not use, and
 * past instants.  Instants are only compared with now, so a past one may become now.
 * The exception is sent while an ask is under way: a lease counts from it.
 *
 * The explorer uses this to recognise worlds.  fuzz-events checks it: a twin that
 * forgets must do what the machine does.
 */
void alike_forget(struct quorum *q, drift_time now);
void alike_forget_fence(const struct quorum *q, struct quorum_fence *fence);

#endif /* TEST_ALIKE_H */
