/*
 * witness.c - keeps the ages that witnesses reported, and finds what a majority of them says.
 */
#include "redlock/core/witness.h"

#include <assert.h>

/* Greater ages are cut to this.  Chosen: longer than any lease, and its nanoseconds fit. */
#define AGE_MAX_MS (INT64_C(1) << 40)

void witness_on_nonce(struct witnesses *w)
{
    w->asked = w->out = w->heard = 0;
}

/* The age that a witness reported stays true when its link breaks.  It is asked once on each link,
 * because it may have lost the mark, and other clients need it. */
void witness_on_link(struct witnesses *w, unsigned k)
{
    w->asked = mask_without(w->asked, k);
    w->out = mask_without(w->out, k);
}

void witness_on_step(struct witnesses *w, unsigned k)
{
    witness_on_link(w, k);
    w->heard = mask_without(w->heard, k);
    w->anew |= mask_of(k);
}

/* The mark was made before the answer came, at least so long before. */
void witness_on_age(struct witnesses *w, unsigned k, int64_t age_ms, drift_time now)
{
    assert(k < QUORUM_MASTERS_MAX);
    w->out = mask_without(w->out, k);
    if (age_ms < 0 || now > INT64_MAX)
        return;
    if (age_ms > AGE_MAX_MS)
        age_ms = AGE_MAX_MS;
    w->anew = mask_without(w->anew, k);
    w->heard |= mask_of(k);
    w->since[k] = (int64_t)now - age_ms * (int64_t)DRIFT_MS;
}

void witness_on_change(struct witnesses *w, quorum_mask left)
{
    w->asked &= (quorum_mask)~left;
    w->out &= (quorum_mask)~left;
    w->heard &= (quorum_mask)~left;
    w->anew &= (quorum_mask)~left;
}

drift_time witness_after(int64_t since, drift_span span)
{
    if (since >= 0)
        return drift_add((drift_time)since, span);
    return drift_until((drift_time)-since, span);
}

/* Witnesses by which the span is over at that time. */
static quorum_mask agreeing(const struct witnesses *w, quorum_mask witnesses, drift_span span,
                            drift_time at)
{
    quorum_mask agree = 0, heard = w->heard & witnesses;

    for (unsigned k = 0; heard >> k != 0; k++)
        if ((heard & mask_of(k)) != 0 && witness_after(w->since[k], span) <= at)
            agree |= mask_of(k);
    return agree;
}

drift_time witness_due_at(const struct witnesses *w, const struct members *members,
                          quorum_mask witnesses, drift_span span)
{
    quorum_mask heard = w->heard & witnesses;
    drift_time due = DRIFT_NEVER;

    for (unsigned k = 0; heard >> k != 0; k++) {
        drift_time at = witness_after(w->since[k], span);

        if ((heard & mask_of(k)) != 0 && at < due &&
            members_decide(members, agreeing(w, witnesses, span, at)))
            due = at;
    }
    return due;
}

bool witness_may_be_due(const struct witnesses *w, const struct members *members,
                        quorum_mask witnesses, quorum_mask unknown, drift_span span, drift_time now)
{
    return members_decide(members, (unknown & witnesses) | agreeing(w, witnesses, span, now));
}
