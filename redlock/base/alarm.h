/*
 * alarm.h - many alarms on one timer: a binary heap of instants; pure.
 *
 * Every lease has an alarm, so a client with 100 000 leases keeps one timer in the loop.  A lease's
 * alarm moves to an earlier time at once, but to a later one only when it rings.  Most timeouts
 * never happen: a lock that is acquired and released within its reply timeout costs one insertion
 * and one removal.
 */
#ifndef REDLOCK_ALARM_H
#define REDLOCK_ALARM_H

#include <stdint.h>

#include "drift/drift.h"

#define ALARM_OFF UINT32_MAX

struct alarm {
    drift_time at;
    uint32_t pos; /* The position in the heap.  ALARM_OFF: the alarm is not set. */
};

struct alarms {
    struct alarm **heap;
    uint32_t len, room;
};

/* Make room for count alarms, so that alarm_set() cannot fail.  Returns 0, or -1 if memory runs
 * out. */
int alarm_reserve(struct alarms *alarms, uint32_t count);

/* Set an alarm to ring at at.  DRIFT_NEVER turns it off.  Set pos to ALARM_OFF before the first
 * call. */
void alarm_set(struct alarms *alarms, struct alarm *alarm, drift_time at);

/* When the first alarm rings.  DRIFT_NEVER: none is set. */
drift_time alarm_next(const struct alarms *alarms);

/* Take out the first alarm if it is due.  Returns NULL if none is due. */
struct alarm *alarm_ring(struct alarms *alarms, drift_time now);

/* Free the heap.  The alarms belong to their users. */
void alarm_done(struct alarms *alarms);

#endif /* REDLOCK_ALARM_H */
