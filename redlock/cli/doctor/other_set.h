/*
 * other_set.h - looks for a set in the other databases of a master that has none in its own.
 */
#ifndef REDLOCK_OTHER_SET_H
#define REDLOCK_OTHER_SET_H

#include "redlock/cli/doctor/exam.h"

struct talk;

/* Do nothing if it has one.  The number in the list may be wrong: then clients of this list would
 * found a second set there. */
void other_set_look(struct exam *exam, struct talk *talk);

#endif /* REDLOCK_OTHER_SET_H */
