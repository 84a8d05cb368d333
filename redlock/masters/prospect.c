/*
 * prospect.c - finds the trouble of each master.
 */
#include "redlock/masters/prospect.h"

#include "redlock/masters/clocks.h"
#include "redlock/masters/founding.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/set.h"
#include "redlock/masters/standing.h"

/* A master from which news is awaited without a known time counts as ready after this.  Chosen: the
 * guard reads the marker of a warming master as often. */
#define SOON (500 * DRIFT_MS)

static enum outlook warms(struct outlook_view *view, unsigned m, drift_span left)
{
    view->left[m] = left > 0 ? left : SOON;
    return OUTLOOK_WARMING;
}

/* No set is known yet, so the masters of the list are to found one. */
static bool founds(const struct prospect *p)
{
    return p->peers->restart_guard && !set_is_known(p->set);
}

/* Until a master says that it is in none, the set may be there, and a majority is enough. */
bool prospect_founds(const struct prospect *p)
{
    return founds(p) && p->set->none != 0;
}

static bool is_foreign(const struct prospect *p, unsigned m)
{
    const struct founding *founding = p->founding;

    if (!p->peers->restart_guard)
        return false;
    return p->set->refused || set_is_wrong(p->set, m) ||
           (founds(p) && founding->refused && founding->founder.other.master == m);
}

/* The link, or the guard, may not ask it. */
static bool is_forbidden(const struct prospect *p, unsigned m)
{
    return p->peers->links[m] != NULL && reason_refuses_user(link_reason(p->peers->links[m])->why);
}

/* What is to be judged. */
struct question {
    drift_time now;
    quorum_mask hopes;    /* Masters that have not had their first chance. */
    quorum_mask suspects; /* Masters whose clocks and refusals count. */
    quorum_mask failed;   /* Masters that were asked, and gave no vote. */
    quorum_mask refused;  /* Masters that refused the lease. */
};

/* A master that does not answer, or not yet. */
static enum outlook judge_silence(const struct prospect *p, unsigned m, const struct question *q,
                                  struct outlook_view *view)
{
    if (q->hopes & mask_of(m))
        return warms(view, m, drift_until(q->now, p->standing->hope_until));
    return is_forbidden(p, m) ? OUTLOOK_FORBIDDEN : OUTLOOK_ABSENT;
}

/* Its marker, and what it says of its set.  WELL: these let it vote. */
static enum outlook judge_marker(const struct prospect *p, unsigned m, const struct question *q,
                                 struct outlook_view *view)
{
    const struct guard *guard = &p->standing->guard;
    const struct guard_look *look = &guard->masters[m].look;
    quorum_mask belongs = view->founds ? p->set->none : p->set->told;

    if (guard_twin(guard, m) != QUORUM_MASTERS_MAX)
        return OUTLOOK_ABSENT;
    if (look->number == 0 || (q->hopes & mask_of(m)) != 0)
        return judge_silence(p, m, q, view);
    if (set_is_closed(p->set) || (!look->ready && guard_has_forgotten(guard)))
        return OUTLOOK_FORGOTTEN;
    if (!look->ready)
        return warms(view, m, guard_left(guard, m, q->now));
    return belongs & mask_of(m) ? OUTLOOK_WELL : warms(view, m, 0);
}

static enum outlook judge_vote(const struct prospect *p, unsigned m, const struct question *q,
                               struct outlook_view *view)
{
    drift_span left = clocks_left(p->clocks, m, q->now);

    if (left == DRIFT_NEVER || (left > 0 && clocks_is_off(p->clocks, m)))
        return OUTLOOK_ABSENT;
    if (left > 0)
        return warms(view, m, left);
    if (q->refused & mask_of(m))
        return OUTLOOK_FORBIDDEN;
    return q->failed & mask_of(m) ? OUTLOOK_ABSENT : OUTLOOK_WELL;
}

static enum outlook judge(const struct prospect *p, unsigned m, const struct question *q,
                          struct outlook_view *view)
{
    enum outlook outlook = OUTLOOK_WELL;

    if (is_foreign(p, m))
        return OUTLOOK_FOREIGN;
    if (!(p->standing->linked & mask_of(m)))
        return judge_silence(p, m, q, view);
    if (p->peers->restart_guard)
        outlook = judge_marker(p, m, q, view);
    if (outlook == OUTLOOK_WELL && (q->suspects & mask_of(m)) != 0)
        outlook = judge_vote(p, m, q, view);
    return outlook;
}

/* The masters that count.  A closed set has no members: then it is the list that is wrong. */
static struct members members_of(const struct prospect *p)
{
    return members_all(&p->peers->members) != 0 ? p->peers->members : members_first(p->peers->len);
}

static void judge_all(const struct prospect *p, const struct question *q,
                      struct outlook_view *ret_view)
{
    *ret_view = (struct outlook_view){
        .members = members_of(p),
        .founds = prospect_founds(p),
        .wrong = p->set->refused ? seats_wrong(&p->set->seats) : 0,
    };
    for (unsigned m = 0; m < p->peers->len; m++)
        if (members_all(&ret_view->members) & mask_of(m))
            ret_view->masters[m] = judge(p, m, q, ret_view);
}

void prospect_of_all(const struct prospect *p, quorum_mask refused, drift_time now,
                     struct outlook_view *ret_view)
{
    const struct question q = {
        .now = now,
        .hopes = p->peers->coming,
        .suspects = members_all(&p->peers->members),
        .refused = refused,
    };

    judge_all(p, &q, ret_view);
}

void prospect_of_failed(const struct prospect *p, quorum_mask failed, quorum_mask refused,
                        drift_time now, struct outlook_view *ret_view)
{
    const struct question q = {
        .now = now, .suspects = failed, .failed = failed, .refused = refused};

    judge_all(p, &q, ret_view);
}
