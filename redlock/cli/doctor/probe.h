/*
 * probe.h - checks that a master allows its user all that locks need.
 */
#ifndef REDLOCK_PROBE_H
#define REDLOCK_PROBE_H

struct exam;
struct talk;

/* Try each row of rights.h that exam->kinds has, and note what is forbidden.  The connection takes
 * no other query afterwards. */
void probe_all(struct exam *exam, struct talk *talk);

#endif /* REDLOCK_PROBE_H */
