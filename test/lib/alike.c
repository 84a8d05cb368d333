/*
 * alike.c - clear what cannot change what a machine does.
 */
#include "test/lib/alike.h"

static void forget(drift_time *t, drift_time now)
{
    if (*t < now)
        *t = now;
}

/* When to give up may have passed, or be never; the machine reads nothing else of it. */
static void forget_since(struct quorum *q, drift_time now)
{
    drift_time give_up = quorum_give_up(q);

    if (give_up == DRIFT_NEVER)
        q->since = 0;
    else if (give_up < now)
        q->since += now - give_up;
}

/* ask_of is used only while the master owes an answer, round_of only while it may store a token. */
static void forget_masters(struct quorum *q)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        if (!(q->owing & 1u << m))
            q->ask_of[m] = 0;
        if (!(q->may_hold & 1u << m))
            q->round_of[m] = 0;
    }
}

/* Nothing is held, and nothing will be. */
static void forget_hold(struct quorum *q)
{
    q->told = false;
    q->sent = q->deadline = q->since = q->lost_at = 0;
    q->lease = 0;
}

static void forget_by_state(struct quorum *q)
{
    if (q->state != QUORUM_ACQUIRING)
        q->detours = 0; /* The next round starts with the full number. */
    if (q->state != QUORUM_CONNECTING)
        q->wanted = QUORUM_EV_ACQUIRE;
    q->relied &= q->config.many && q->round != 0 ? q->may_hold : 0;
    switch (q->state) {
    case QUORUM_ACQUIRING:
    case QUORUM_RAISING:
    case QUORUM_PROVING:
    case QUORUM_EXTENDING:
        break;
    case QUORUM_HELD:
        q->sent = 0;
        break;
    case QUORUM_ADOPTED:
        q->sent = q->timeout = 0;
        break;
    case QUORUM_CONNECTING:
        q->timeout = 0;
        if (q->yes == 0) /* Else votes of a token that waits count from then. */
            q->sent = 0;
        break;
    case QUORUM_PAUSING:
        if (q->round == 0) /* Else the token waits, and may be granted. */
            q->sent = q->lease = 0;
        break;
    case QUORUM_RELEASING:
        forget_hold(q);
        break;
    case QUORUM_IDLE:
    case QUORUM_LOST:
        forget_hold(q);
        q->timeout = 0;
        if (q->may_hold == 0)
            q->settle_by = 0;
        break;
    }
}

/* The machine never reads a token that it has drawn. */
void alike_forget_fence(const struct quorum *q, struct quorum_fence *fence)
{
    bool counts = q->state == QUORUM_ACQUIRING || q->state == QUORUM_RAISING;

    fence->token = 0;
    if (!counts)
        fence->counter = 0;
    if (q->state != QUORUM_RAISING)
        fence->raises = 0;
    if (q->state != QUORUM_ACQUIRING)
        fence->stale = 0;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (!counts || !(q->yes & 1u << m))
            fence->behind[m] = 0;
}

void alike_forget(struct quorum *q, drift_time now)
{
    forget(&q->timeout, now);
    forget(&q->deadline, now);
    forget(&q->lost_at, now);
    forget_since(q, now);
    forget(&q->settle_by, now);
    forget_by_state(q);
    forget_masters(q);
}
