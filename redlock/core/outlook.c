/*
 * outlook.c - counts masters from the least trouble to the worst, until they are enough.
 */
#include "redlock/core/outlook.h"

static bool are_enough(const struct outlook_view *view, quorum_mask masters)
{
    quorum_mask all = members_all(&view->members);

    if (view->founds)
        return all != 0 && (masters & all) == all;
    return members_decide(&view->members, masters);
}

/* Masters whose trouble is no worse than this one. */
static quorum_mask up_to(const struct outlook_view *view, enum outlook worst)
{
    quorum_mask masters = 0;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (view->masters[m] <= worst)
            masters |= mask_of(m);
    return masters;
}

enum outlook outlook_judge(const struct outlook_view *view)
{
    for (unsigned worst = OUTLOOK_WELL; worst < OUTLOOK_TROUBLES; worst++)
        if (are_enough(view, up_to(view, (enum outlook)worst)))
            return (enum outlook)worst;
    return OUTLOOK_ABSENT; /* There are no members. */
}

/* If none has trouble any more, they had it when they were asked. */
int outlook_status(enum outlook outlook)
{
    switch (outlook) {
    case OUTLOOK_WARMING:
        return REDLOCK_NOT_READY;
    case OUTLOOK_FORBIDDEN:
        return REDLOCK_E_FORBIDDEN;
    case OUTLOOK_FOREIGN:
        return REDLOCK_E_WRONG_SET;
    case OUTLOOK_WELL:
    case OUTLOOK_ABSENT:
    case OUTLOOK_FORGOTTEN:
    case OUTLOOK_TROUBLES:
        break;
    }
    return REDLOCK_UNREACHABLE;
}

quorum_mask outlook_deciding(const struct outlook_view *view, int status)
{
    quorum_mask masters = 0;

    if (status == REDLOCK_E_WRONG_SET && view->wrong != 0)
        return view->wrong;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (view->masters[m] != OUTLOOK_WELL && outlook_status(view->masters[m]) == status)
            masters |= mask_of(m);
    return masters;
}

bool outlook_is_status(int status)
{
    return status == REDLOCK_UNREACHABLE || status == REDLOCK_NOT_READY ||
           status == REDLOCK_E_FORBIDDEN || status == REDLOCK_E_WRONG_SET;
}

/* Masters that may vote by then. */
static quorum_mask ready_in(const struct outlook_view *view, drift_span span)
{
    quorum_mask masters = up_to(view, OUTLOOK_WELL);

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (view->masters[m] == OUTLOOK_WARMING && view->left[m] <= span)
            masters |= mask_of(m);
    return masters;
}

/* The time is that of some master: the shortest that is enough. */
drift_span outlook_left(const struct outlook_view *view)
{
    drift_span least = DRIFT_NEVER;

    if (are_enough(view, up_to(view, OUTLOOK_WELL)))
        return 0;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (view->masters[m] == OUTLOOK_WARMING && view->left[m] < least &&
            are_enough(view, ready_in(view, view->left[m])))
            least = view->left[m];
    return least;
}
