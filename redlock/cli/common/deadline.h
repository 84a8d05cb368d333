/*
 * deadline.h - when a command is asked to end, and when it is killed.
 *
 * Pure: no clock and no process.  Instants are of drift_now().
 */
#ifndef REDLOCK_DEADLINE_H
#define REDLOCK_DEADLINE_H

#include <stdint.h>

#include "drift/drift.h"

/* The shortest ttl of a command, 500 ms: see deadline.c. */
#define DEADLINE_TTL_MIN (500 * DRIFT_MS)

/* How long before the end of a lease a command gets SIGTERM, and SIGKILL. */
struct deadline_margins {
    drift_span ask, kill; /* kill <= ask. */
};

struct deadline {
    drift_time ask;  /* From here on SIGTERM is due. */
    drift_time kill; /* From here on SIGKILL is due. */
};

enum deadline_act { DEADLINE_WAIT, DEADLINE_ASK, DEADLINE_KILL };

/* The margins of a lease of this ttl.  left: the validity of the new lease. */
struct deadline_margins deadline_margins(drift_span ttl, drift_span left);

/* Make the margins longer if more is left of the lease than before.  A renewal may give a longer
 * lease than a slow acquisition. */
void deadline_grow_margins(struct deadline_margins *margins, drift_span ttl, drift_time end,
                           drift_time now);

/* The end of a lease of which left_ms are left, rounded down.  before: the last result.  Returns 0
 * if the lease has ended early. */
drift_time deadline_end(drift_time before, drift_time now, uint32_t left_ms);

/* The deadline of a lease that ends at end.  If end is DRIFT_NEVER, so is the deadline. */
struct deadline deadline_before(drift_time end, const struct deadline_margins *margins);

/* How much earlier to begin, because it takes time to end so many descendants.  search: how long it
 * took to find them. */
drift_span deadline_lead(unsigned descendants, drift_span search);

/* The longest lead for which there is time.  It leaves no time between SIGTERM and SIGKILL. */
drift_span deadline_room(const struct deadline_margins *margins);

/* The deadline, earlier by lead.  SIGTERM comes earlier by at most its margin.  SIGKILL comes
 * earlier by all of it, but not before SIGTERM. */
struct deadline deadline_earlier(struct deadline deadline, drift_span lead,
                                 const struct deadline_margins *margins);

/* The earlier instant of each kind. */
struct deadline deadline_sooner(struct deadline a, struct deadline b);

/* What is due now.  *ret_wake is when to call this again: DRIFT_NEVER after DEADLINE_KILL. */
enum deadline_act deadline_due(const struct deadline *deadline, drift_time now,
                               drift_time *ret_wake);

/* The timeout in ms of a poll() that ends at wake, or after max if that is sooner.  It is rounded
 * up: a poll() that ends too early would be repeated at once. */
int deadline_poll_ms(drift_time now, drift_time wake, drift_span max);

#endif /* REDLOCK_DEADLINE_H */
