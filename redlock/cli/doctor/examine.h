/*
 * examine.h - examines one master, for `redlock doctor`.
 */
#ifndef REDLOCK_EXAMINE_H
#define REDLOCK_EXAMINE_H

struct exam;

/* Examine the master, and fill in struct exam below its blank line.  Any thread may call this. */
void examine_master(struct exam *exam);

#endif /* REDLOCK_EXAMINE_H */
