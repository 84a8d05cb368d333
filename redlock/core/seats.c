/*
 * seats.c - seats and configurations; pure.
 *
 * Rules
 * - A configuration replaces one of the same set with a smaller version, and no other.
 * - A member has one seat: that which the list names so, else that of its place, else a new one.
 * - A master that a list reaches by the name of a member, at another place than the member's, is no
 *   member until it says so itself, with this name and the newest version.  The name may have been
 *   given to another master (judge_place).  No client tells such a master that it is a member.
 * - A master of the list that turns out to be a member under another place loses its seat: one
 *   server has one vote, and the member's own seat shall have it.
 * - A member that was removed keeps its seat for as long as a lease may be stored on it, so that
 *   it is sent releases.  If there is no free number, its seat is taken at once.
 * - A closed set (a configuration without members) keeps all seats: a rescue gives the set other
 *   members, and the masters that were members are the only ones that may tell of them.
 */
#include "redlock/core/seats.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- The seat of a member ---- */

static bool is_named(const struct seat *seat, const struct config_member *member)
{
    return seat->used && seat->name[0] != '\0' && strcmp(seat->name, member->name) == 0;
}

static bool is_at(const struct seat *seat, const struct config_member *member)
{
    return seat->used && seat->name[0] == '\0' && strcmp(seat->place, member->place) == 0;
}

static unsigned find(const struct seats *s, const struct config_member *member)
{
    unsigned found = QUORUM_MASTERS_MAX;

    for (unsigned i = QUORUM_MASTERS_MAX; i-- > 0;)
        if (is_at(&s->seats[i], member))
            found = i;
    for (unsigned i = QUORUM_MASTERS_MAX; i-- > 0;)
        if (is_named(&s->seats[i], member))
            found = i;
    return found;
}

unsigned seats_of(const struct seats *s, unsigned member)
{
    return find(s, &s->now.members[member]);
}

/* ---- Taking a configuration over ---- */

static void free_seat(struct seats *s, unsigned seat, struct seats_change *change)
{
    memset(&s->seats[seat], 0, sizeof s->seats[seat]);
    change->closed |= mask_of(seat);
}

/* A number for a new master: a free one, else one that is no member.  There are as many numbers as
 * a configuration may have members. */
static unsigned choose(const struct seats *s, quorum_mask taken)
{
    unsigned found = QUORUM_MASTERS_MAX;

    for (unsigned i = QUORUM_MASTERS_MAX; i-- > 0;) {
        if (!(taken & mask_of(i)) &&
            (!s->seats[i].used || found == QUORUM_MASTERS_MAX || s->seats[found].used))
            found = i;
    }
    assert(found < QUORUM_MASTERS_MAX);
    return found;
}

static void open_seat(struct seats *s, unsigned seat, const struct config_member *member,
                      struct seats_change *change)
{
    if (s->seats[seat].used)
        free_seat(s, seat, change);
    s->seats[seat].used = true;
    (void)snprintf(s->seats[seat].place, sizeof s->seats[seat].place, "%s", member->place);
    change->opened |= mask_of(seat);
}

/* A list may reach the member elsewhere, unless the member has another place now: then the name is
 * another master's, until the master of this seat says that it is this member. */
static void judge_place(struct seats *s, unsigned seat, const struct config_member *member)
{
    unsigned old = config_find(&s->now, member->name);

    if (old == s->now.members_len || strcmp(s->now.members[old].place, member->place) != 0)
        s->seats[seat].denies = strcmp(s->seats[seat].place, member->place) != 0;
}

void seats_take(struct seats *s, const struct config *config, drift_time now, drift_span lasts,
                struct seats_change *ret_change)
{
    quorum_mask before = members_all(&s->members), taken = 0;
    struct members members = {0, 0};

    assert(s->now.version == 0 || s->now.set == config->set);
    if (config->version <= s->now.version)
        return;
    for (unsigned i = 0; i < config->members_len; i++) {
        unsigned seat = find(s, &config->members[i]);

        taken |= seat < QUORUM_MASTERS_MAX ? mask_of(seat) : 0;
    }
    for (unsigned i = 0; i < config->members_len; i++) {
        unsigned seat = find(s, &config->members[i]);

        if (seat == QUORUM_MASTERS_MAX) {
            seat = choose(s, taken);
            open_seat(s, seat, &config->members[i], ret_change);
            before &= (quorum_mask)~mask_of(seat);
        }
        taken |= mask_of(seat);
        judge_place(s, seat, &config->members[i]);
        s->seats[seat].was_member = true;
        members.from |= config->from & mask_of(i) ? mask_of(seat) : 0;
        members.to |= config->to & mask_of(i) ? mask_of(seat) : 0;
    }
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        if (before & (quorum_mask)~taken & mask_of(i))
            s->seats[i].ends_at = drift_add(now, lasts);
    s->now = *config;
    s->members = members;
    ret_change->config = true;
    ret_change->joined |= members_all(&members) & (quorum_mask)~before;
}

drift_time seats_tidy(struct seats *s, drift_time now, struct seats_change *ret_change)
{
    drift_time at = DRIFT_NEVER;

    if (config_is_closed(&s->now))
        return DRIFT_NEVER;
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        const struct seat *seat = &s->seats[i];

        if (!seat->was_member || (members_all(&s->members) & mask_of(i)) != 0)
            continue;
        if (now >= seat->ends_at)
            free_seat(s, i, ret_change);
        else if (seat->ends_at < at)
            at = seat->ends_at;
    }
    return at;
}

/* ---- What masters say ---- */

void seats_list(struct seats *s, unsigned seat, const char *place, const char *name)
{
    assert(s->now.version == 0 && seat < QUORUM_MASTERS_MAX);
    s->seats[seat].used = s->seats[seat].listed = true;
    (void)snprintf(s->seats[seat].place, sizeof s->seats[seat].place, "%s", place);
    (void)snprintf(s->seats[seat].name, sizeof s->seats[seat].name, "%s", name);
}

enum seat_state seats_state(const struct seats *s, unsigned seat)
{
    const struct seat *it = &s->seats[seat];
    bool is_member = (members_all(&s->members) & mask_of(seat)) != 0;
    bool is_other = it->has_told && it->set != 0 && it->set != s->now.set;

    if (!it->used)
        return SEAT_FREE;
    if (is_member && !it->denies) /* Also if it lost its data. */
        return is_other ? SEAT_OTHER : SEAT_MEMBER;
    if (is_member)
        return it->set == 0 ? SEAT_STRANGER : SEAT_REMOVED;
    if (it->was_member)
        return SEAT_REMOVED;
    if (!it->has_told)
        return SEAT_UNKNOWN;
    if (it->set == 0)
        return s->now.version == 0 ? SEAT_NEW : SEAT_STRANGER;
    if (is_other)
        return SEAT_OTHER;
    return it->is_alias ? SEAT_ALIAS : SEAT_REMOVED;
}

/* The member that has this seat, or NULL. */
static const struct config_member *member_at(const struct seats *s, unsigned seat)
{
    for (unsigned i = 0; i < s->now.members_len; i++)
        if (find(s, &s->now.members[i]) == seat)
            return &s->now.members[i];
    return NULL;
}

/* A master that is reached at the member's own place may be behind, or have lost its data.  If it
 * has the name of another member, it is a copy, or listed twice: others judge that (guard.c,
 * masters.c).
 */
static bool denies(const struct seats *s, unsigned seat, const struct seat_look *look)
{
    const struct config_member *member = member_at(s, seat);
    bool is_new = look->set != 0 && look->version >= s->now.version;

    if (member == NULL || (look->set != 0 && look->set != s->now.set))
        return false;
    if (strcmp(s->seats[seat].place, member->place) == 0)
        return is_new && look->name[0] == '\0';
    return !is_new || strcmp(look->name, member->name) != 0;
}

void seats_on_look(struct seats *s, unsigned seat, const struct seat_look *look, drift_time now,
                   drift_span lasts, struct seats_change *ret_change)
{
    struct seat *it = &s->seats[seat];

    assert(seat < QUORUM_MASTERS_MAX && it->used);
    it->has_told = true;
    it->set = look->set;
    if (look->config != NULL && (s->now.version == 0 || s->now.set == look->set))
        seats_take(s, look->config, now, lasts, ret_change);
    if (ret_change->closed & mask_of(seat))
        return; /* Another master has the number now. */
    it->denies = denies(s, seat, look);
    it->is_alias = config_find(&s->now, look->name) < s->now.members_len;
    if (seats_state(s, seat) != SEAT_ALIAS)
        return;
    free_seat(s, seat, ret_change);
    ret_change->alias |= mask_of(seat);
}

void seats_forget(struct seats *s)
{
    memset(&s->now, 0, sizeof s->now);
    s->members = (struct members){0, 0};
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        s->seats[i].was_member = s->seats[i].has_told = s->seats[i].denies = false;
        s->seats[i].set = 0;
    }
}

bool seats_are_new(const struct seats *s)
{
    bool any = false;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++) {
        if (s->seats[i].listed && seats_state(s, i) != SEAT_NEW)
            return false;
        any = any || s->seats[i].listed;
    }
    return any && s->now.version == 0;
}

/* The seats of these members.  0: one has none, or two have the same. */
static quorum_mask find_all(const struct seats *s, const struct config *config)
{
    quorum_mask found = 0;

    for (unsigned i = 0; i < config->members_len; i++) {
        unsigned seat = find(s, &config->members[i]);

        if (seat == QUORUM_MASTERS_MAX || (found & mask_of(seat)) != 0)
            return 0;
        found |= mask_of(seat);
    }
    return found;
}

bool seats_same(const struct seats *s, const struct config *config)
{
    const quorum_mask members = members_all(&s->members);

    /* A closed set has none, and is like no other. */
    return members != 0 && !config_is_joint(&s->now) && !config_is_joint(config) &&
           find_all(s, config) == members;
}

static bool is_wrong(const struct seats *s, unsigned seat, enum seat_state why)
{
    return s->seats[seat].listed && !s->seats[seat].was_member && seats_state(s, seat) == why;
}

/* A closed set has removed all. */
quorum_mask seats_wrong(const struct seats *s)
{
    static const enum seat_state wrong[] = {SEAT_OTHER, SEAT_STRANGER, SEAT_REMOVED};
    size_t wrong_len = config_is_closed(&s->now) ? 3 : 2;
    quorum_mask found = 0;

    for (size_t why = 0; why < wrong_len && found == 0; why++)
        for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
            found |= is_wrong(s, i, wrong[why]) ? mask_of(i) : 0;
    return found;
}

quorum_mask seats_denied(const struct seats *s)
{
    quorum_mask denied = 0;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        denied |= s->seats[i].denies ? mask_of(i) : 0;
    return denied;
}

quorum_mask seats_leaving(const struct seats *s)
{
    quorum_mask leaving = 0;

    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        leaving |= s->seats[i].was_member ? mask_of(i) : 0;
    return leaving & (quorum_mask)~members_all(&s->members);
}

bool seats_has_way(const struct seats *s, unsigned seat, unsigned other)
{
    const quorum_mask members = members_all(&s->members);

    return s->now.version != 0 && (members & mask_of(seat)) != 0 && (members & mask_of(other)) == 0;
}
