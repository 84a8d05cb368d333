/*
 * alike.c - what machines may forget.
 */
#include "alike.h"

static void forget(drift_time *t, drift_time now)
{
    if (*t < now)
        *t = now;
}

void alike_forget(struct quorum *q, drift_time now)
{
    forget(&q->timeout, now);
    forget(&q->deadline, now);
    forget(&q->renew_at, now);
    forget(&q->lost_at, now);
    forget(&q->give_up, now);
    forget(&q->settle_by, now);
    switch (q->state) {
    case QUORUM_ACQUIRING:
    case QUORUM_EXTENDING:
    case QUORUM_PROVING:
        break;
    case QUORUM_IDLE:
    case QUORUM_CONNECTING:
    case QUORUM_PAUSING:
    case QUORUM_HELD:
    case QUORUM_ADOPTED:
    case QUORUM_RELEASING:
    case QUORUM_LOST:
        q->sent = 0;
        break;
    }
}
