/*
 * alarm.h - many alarms, one timer: a binary heap of instants; pure.
 *
 * Every lease has an alarm, so that a client with 100 000 leases keeps one
 * timer in the loop.  A lease's alarm is moved forward at once but backward
 * only when it rings: most timeouts never happen, and a lock that is acquired
 * and released within its reply timeout costs one insertion and one removal.
 */
#ifndef REDLOCK_ALARM_H
#define REDLOCK_ALARM_H

#include <stdint.h>

#include "drift/drift.h"

#define ALARM_OFF UINT32_MAX

struct alarm {
    drift_time at;
    uint32_t pos; /* In the heap; ALARM_OFF: not set. */
};

struct alarms {
    struct alarm **heap;
    uint32_t len, room;
};

/* Make sure that count alarms fit, so that alarm_set() cannot fail.  0, or -1
 * without memory. */
int alarm_reserve(struct alarms *alarms, uint32_t count);

/* Set an alarm (its pos was ALARM_OFF, or it is set already) to ring at at;
 * DRIFT_NEVER turns it off. */
void alarm_set(struct alarms *alarms, struct alarm *alarm, drift_time at);

/* When the first rings; DRIFT_NEVER if none is set. */
drift_time alarm_next(const struct alarms *alarms);

/* Take out the first alarm if it is due; NULL if none is. */
struct alarm *alarm_ring(struct alarms *alarms, drift_time now);

/* Free the heap; the alarms belong to others. */
void alarm_done(struct alarms *alarms);

#endif /* REDLOCK_ALARM_H */
