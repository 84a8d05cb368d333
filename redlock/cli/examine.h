/*
 * examine.h - asks one master for everything, for `redlock doctor`.
 */
#ifndef REDLOCK_EXAMINE_H
#define REDLOCK_EXAMINE_H

struct exam;

/* Look at the master, and fill in what struct exam has behind its blank line.  Any thread. */
void examine_master(struct exam *exam);

#endif /* REDLOCK_EXAMINE_H */
