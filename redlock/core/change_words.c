/*
 * change_words.c - what a change of the set is about, for the requests and for people; pure.
 */
#include "redlock/core/change.h"

#include <assert.h>

void change_newest(const struct change *c, struct config *ret_config)
{
    roster_write(c->roster, &c->newest, c->config.set, ret_config);
}

void change_value(const struct change *c, struct config *ret_config)
{
    roster_write(c->roster, &c->value, c->config.set, ret_config);
}

const char *change_name(const struct change *c, unsigned master)
{
    assert(master < c->roster->len);
    if (!(roster_members(&c->newest) & roster_bit(master)))
        return NULL;
    return c->roster->masters[master].member.name;
}

static bool is_missing(const struct change *c, unsigned master)
{
    const struct change_master *m = &c->masters[master];
    roster_mask bit = roster_bit(master), members = roster_members(&c->newest);
    bool is_up_to_date = m->ready && m->ours && m->version >= c->newest.version;

    switch (c->phase) {
    case CHANGE_LEARNING:
        return !m->known;
    case CHANGE_WATCHING:
        return change_awaited(c) & bit;
    case CHANGE_CHOOSING:
        return members & bit & ~(c->accepting ? c->accepted : c->promised);
    case CHANGE_SEEING:
        return (c->newest.from & bit) && !is_up_to_date;
    case CHANGE_CHECKING:
        return (c->seen & bit) && !(m->known && m->looked >= c->checked_from);
    case CHANGE_COUNTING:
        return c->newest.to & bit & ~c->counted;
    case CHANGE_TELLING:
        return ((members & bit) || m->ours) && !is_up_to_date;
    case CHANGE_PAUSING:
    case CHANGE_WAITING:
    case CHANGE_PHASES_LEN:
        break;
    }
    return false;
}

roster_mask change_missing(const struct change *c)
{
    roster_mask missing = 0;

    for (unsigned i = 0; i < c->roster->len; i++)
        missing |= is_missing(c, i) ? roster_bit(i) : 0;
    return missing;
}

const char *change_phase_text(enum change_phase phase)
{
    static const char *const texts[CHANGE_PHASES_LEN] = {
        [CHANGE_LEARNING] = "asking the masters for the newest configuration",
        [CHANGE_WATCHING] =
            "watching empty masters until all locks that they may have forgotten have ended",
        [CHANGE_CHOOSING] = "agreeing on the next configuration",
        [CHANGE_PAUSING] = "waiting because another change is under way",
        [CHANGE_SEEING] = "waiting until a majority of the old masters knows the change",
        [CHANGE_WAITING] = "waiting until all earlier locks have ended",
        [CHANGE_CHECKING] = "asking the same masters again",
        [CHANGE_COUNTING] = "raising the fencing counters of the new masters",
        [CHANGE_TELLING] = "telling all masters",
    };

    assert(phase < CHANGE_PHASES_LEN);
    return texts[phase];
}

const char *change_status_text(enum change_status status)
{
    switch (status) {
    case CHANGE_GOES_ON:
        return "the change goes on";
    case CHANGE_DONE:
        return "the set has the new members";
    case CHANGE_OVERTAKEN:
        return "somebody else has changed the set meanwhile";
    case CHANGE_TOO_FEW:
        return "too few masters of the old or the new list answer, so nothing was changed";
    case CHANGE_NO_SET:
        return "no master that answers belongs to a set";
    case CHANGE_OTHER_SET:
        return "a master belongs to another set";
    case CHANGE_CLOSED:
        return "the set is closed and needs a rescue";
    case CHANGE_REFUSED:
        return "this change is not allowed";
    case CHANGE_NO_ROOM:
        return "there are too many masters";
    case CHANGE_IMPOSSIBLE:
        return "a master told what cannot be true";
    }
    return "";
}
