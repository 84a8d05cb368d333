/*
 * alike.h - when two machines that differ will do alike all the same.
 */
#ifndef TEST_ALIKE_H
#define TEST_ALIKE_H

#include "redlock/core/quorum.h"

/*
 * Forget what makes no difference from now on: what is of no use in this state, and
 * when things in the past were.  Instants are only ever compared with now, so that
 * of one that has come it does not matter when it came; but for the sent of an ask
 * that is under way, from which a lease counts.
 *
 * The explorer relies on that where it knows worlds again, and so fuzz-events
 * checks it: there a twin that forgets has to do what the machine does.
 */
void alike_forget(struct quorum *q, drift_time now);
void alike_forget_fence(const struct quorum *q, struct quorum_fence *fence);

#endif /* TEST_ALIKE_H */
