/*
 * deadline.c - the rule by which commands end.
 */
#include "redlock/cli/common/deadline.h"

/* A command gets SIGTERM when a fifth of the ttl is left.  It gets SIGKILL when a quarter of that
 * is left, but no earlier than half a second before the end.  With 10 s it has 1.5 s to clean up,
 * and is killed 0.5 s before the end.  Chosen, not measured: renewals begin when a third of the
 * lease is spent, so they have about half of it.  With DEADLINE_TTL_MIN it is killed 25 ms before
 * the end.  Chosen, not measured: on a busy machine a process may wait that long until it runs. */
#define ASK_SHARE 5
#define KILL_SHARE 4
#define KILL_MAX (500 * DRIFT_MS)

/* What it takes to end descendants: to find and stop them, to look for new ones, to kill them, and
 * until they are dead.  Measured on two processors with a load of 5 to 20: 0.1 ms for each of 600
 * descendants, and 1.1 ms in a chain of forks, each a child of the one before.  With 30 processes a
 * processor that wanted to run: 0.2 to 0.75 ms for each of 100 to 1500, 2 to 8 times the last
 * search, 1.5 ms in a chain of 600, and 2.6 ms in one of 800.  A zombie took 0.02 to 0.1 ms with a
 * load of 22, and counts as much, because commands with 800 to 2000 zombies ended up to 1.3 s late
 * on a busier machine.  So 3 ms are more than all that was seen, but no bound.  The first searches
 * of the end, for SIGTERM and for SIGKILL, come on top, on a machine that may be busier then. */
#define WORK_EACH (3 * DRIFT_MS)
#define WORK_SEARCHES 8
#define LEAD_SEARCHES 3

struct deadline_margins deadline_margins(drift_span ttl, drift_span left)
{
    struct deadline_margins margins = {.ask = ttl / ASK_SHARE};

    /* The library gives the lost notice in the second half of a lease, not before. */
    if (margins.ask > left / 2)
        margins.ask = left / 2;
    margins.kill = margins.ask / KILL_SHARE;
    if (margins.kill > KILL_MAX)
        margins.kill = KILL_MAX;
    return margins;
}

void deadline_grow_margins(struct deadline_margins *margins, drift_span ttl, drift_time end,
                           drift_time now)
{
    struct deadline_margins longer;

    if (end <= now || end == DRIFT_NEVER)
        return;
    longer = deadline_margins(ttl, end - now);
    if (longer.ask > margins->ask)
        *margins = longer;
}

/* left_ms is rounded down.  If it is 0, the end known before still holds if it is at most a
 * millisecond away.  Otherwise the lease has ended. */
drift_time deadline_end(drift_time before, drift_time now, uint32_t left_ms)
{
    if (left_ms > 0)
        return now + left_ms * DRIFT_MS;
    return before <= now + DRIFT_MS ? before : 0;
}

struct deadline deadline_before(drift_time end, const struct deadline_margins *margins)
{
    if (end == DRIFT_NEVER)
        return (struct deadline){DRIFT_NEVER, DRIFT_NEVER};
    return (struct deadline){
        .ask = drift_until(margins->ask, end), /* end - margin, or 0. */
        .kill = drift_until(margins->kill, end),
    };
}

drift_span deadline_lead(unsigned descendants, drift_span search)
{
    drift_span work = descendants * WORK_EACH;

    if (search > DRIFT_NEVER / (WORK_SEARCHES + LEAD_SEARCHES))
        return DRIFT_NEVER;
    if (work < WORK_SEARCHES * search)
        work = WORK_SEARCHES * search;
    return work + LEAD_SEARCHES * search;
}

drift_span deadline_room(const struct deadline_margins *margins)
{
    return 2 * margins->ask - margins->kill;
}

/* Renewals need the rest of the lease, so SIGTERM is at most twice its margin before the end. */
struct deadline deadline_earlier(struct deadline deadline, drift_span lead,
                                 const struct deadline_margins *margins)
{
    if (deadline.ask != DRIFT_NEVER)
        deadline.ask = drift_until(lead < margins->ask ? lead : margins->ask, deadline.ask);
    if (deadline.kill != DRIFT_NEVER)
        deadline.kill = drift_until(lead, deadline.kill);
    if (deadline.kill < deadline.ask)
        deadline.kill = deadline.ask;
    return deadline;
}

struct deadline deadline_sooner(struct deadline a, struct deadline b)
{
    return (struct deadline){
        .ask = a.ask < b.ask ? a.ask : b.ask,
        .kill = a.kill < b.kill ? a.kill : b.kill,
    };
}

enum deadline_act deadline_due(const struct deadline *deadline, drift_time now,
                               drift_time *ret_wake)
{
    if (now >= deadline->kill) {
        *ret_wake = DRIFT_NEVER;
        return DEADLINE_KILL;
    }
    if (now >= deadline->ask) {
        *ret_wake = deadline->kill;
        return DEADLINE_ASK;
    }
    *ret_wake = deadline->ask;
    return DEADLINE_WAIT;
}

int deadline_poll_ms(drift_time now, drift_time wake, drift_span max)
{
    drift_span left = drift_until(now, wake);

    return (int)(left < max ? drift_to_ms_up(left) : drift_to_ms(max));
}
