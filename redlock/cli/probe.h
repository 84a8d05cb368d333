/*
 * probe.h - whether a master lets its user do all that the locks need.
 */
#ifndef REDLOCK_PROBE_H
#define REDLOCK_PROBE_H

struct exam;
struct talk;

/* Try each row of rights.h that exam->kinds has, and note what is forbidden.  Nothing
 * else can be asked on this connection afterwards. */
void probe_all(struct exam *exam, struct talk *talk);

#endif /* REDLOCK_PROBE_H */
