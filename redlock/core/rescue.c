/*
 * rescue.c - queries, closes, waits, and founds a set anew; pure.
 *
 * The rules, each next to the code that keeps it.  R2 to R4 are those of test/models/members.h. The
 * operator keeps R1: the lost masters are gone, and answer nobody from now on.
 *
 *  R2. Every master that is left, and stores an older version, gets a version without members
 *      (is_open, find_request).  No vote counts there from then on, for any client.
 *      It then accepts the list for the next version (RESCUE_ASK_NOTE).  So a later rescue knows
 *      which other masters this one may have given a version, if it is interrupted.
 *  R3. When all have it, the longest lease that any of them reported must pass (rescue_due_at).  If
 *      one shows an older version again, the time begins anew (check).
 *  R4. Then the masters of the list get the new configuration, with a greater version.  Both
 *      versions are far above those that are known (rescue_version).
 *
 *  R6. A master of the list without an epoch must have been watched for the time of R3, as
 *      after any loss of data.  Then it gets an epoch and the configuration together
 *      (find_request).  Nobody knows what it promised, but promises for older versions do not
 *      matter any more.
 *
 *  R7. The fencing counters of the list are raised above all numbers that its masters reported, and
 *      above the median of the clocks: the lost masters may have counted further (find_number).
 *      A majority has been raised, or is to begin with that number, before any master stores the
 *      new version (is_raised): a client that reads it there counts votes of masters that are
 *      closed.
 *
 *  R8. Before any master stores the new version, N - Q + 1 of the N masters of the list have
 * epochs, or get them at the same time (can_remember).  So, wherever the rescue ends, clients
 * finish it: enough remember the set for all others to get an epoch.
 */
#include "redlock/core/rescue.h"

#include <assert.h>
#include <string.h>

/* Versions jump to the next multiple of this, and by a random number below.  Chosen: no set is
 * changed so often while some of its masters do not hear of it. */
#define JUMP (UINT64_C(1) << 32)

uint64_t rescue_version(uint64_t newest, uint32_t random)
{
    return (newest / JUMP + 1) * JUMP + (random & ~UINT32_C(1));
}

/* Another rescue that began with the same set, or what followed it.  Masters that only that one
 * knows may have its list, and vote. */
static bool is_of_another(const struct rescue *r, uint64_t version)
{
    return version >= JUMP && version / JUMP == r->config.closed / JUMP &&
           version != r->config.closed && version != r->config.founded;
}

static void end(struct rescue *r, enum rescue_status status, unsigned culprit)
{
    if (r->status != RESCUE_GOES_ON)
        return;
    r->status = status;
    r->culprit = culprit;
}

static bool is_in(quorum_mask masters, unsigned m)
{
    return (masters & mask_of(m)) != 0;
}

/* R2.  A master without an epoch grants nothing.  One that has an epoch and no set yet is closed,
 * too, because its counters can be raised only in the set (R7). */
static bool is_open(const struct rescue *r, const struct rescue_master *m)
{
    return m->look.ready && m->look.told.version < r->config.closed;
}

/* R2. */
static bool has_to_note(const struct rescue *r, const struct rescue_master *m)
{
    return m->look.ready && m->look.told.version == r->config.closed && m->look.told.accepted == 0;
}

static bool has_founded(const struct rescue *r, unsigned m)
{
    return r->masters[m].look.ready && r->masters[m].look.told.version == r->config.founded;
}

/* R3.  Twice the drift, as for a master that forgot (guard_quarantine). */
static drift_span span_of(const struct rescue *r)
{
    drift_span lease = r->longest_ms * DRIFT_MS;

    return drift_add(lease, 2 * drift_allowance(lease, &r->config.drift));
}

drift_time rescue_due_at(const struct rescue *r)
{
    return drift_add(r->closed_at, span_of(r));
}

drift_time rescue_watched_at(const struct rescue *r, unsigned master)
{
    return drift_add(r->masters[master].since, span_of(r));
}

/* ---- Phases ---- */

/* The median of the clocks, as they were when looked at.  Of an even number, the later of the
 * middle two. */
static uint64_t median_us(const struct rescue *r)
{
    uint64_t times[QUORUM_MASTERS_MAX];
    unsigned len = 0;

    for (unsigned i = 0; r->config.list >> i != 0; i++) {
        unsigned at = len;

        if (!is_in(r->config.list, i))
            continue;
        for (; at > 0 && times[at - 1] > r->masters[i].look.time_us; at--)
            times[at] = times[at - 1];
        times[at] = r->masters[i].look.time_us;
        len++;
    }
    return len > 0 ? times[len / 2] : 0;
}

/* R7. */
static void find_number(struct rescue *r)
{
    uint64_t median = median_us(r);

    r->number = median;
    for (unsigned i = 0; r->config.masters >> i != 0; i++)
        if (r->masters[i].look.high > r->number)
            r->number = r->masters[i].look.high;
    if (r->number > median + GUARD_AHEAD_US || r->number >= QUORUM_FENCE_MAX)
        end(r, RESCUE_AHEAD, 0);
}

/* Returns true if another phase began.  A master that is no member of the list need not answer
 * again: it is closed. */
static bool check(struct rescue *r)
{
    for (unsigned i = 0; r->config.masters >> i != 0; i++) {
        const struct rescue_master *m = &r->masters[i];
        bool is_looked = m->known && m->looked >= r->checked_from;

        if (is_in(r->config.masters, i) && (is_open(r, m) || has_to_note(r, m))) {
            r->phase = RESCUE_CLOSING;
            return true;
        }
        if (is_in(r->config.list, i) && !is_looked)
            return false;
    }
    find_number(r);
    r->phase = RESCUE_FOUNDING;
    return true;
}

/* Returns true if another phase began. */
static bool step(struct rescue *r, drift_time now)
{
    quorum_mask founded = 0;

    switch (r->phase) {
    case RESCUE_CLOSING:
        if (r->config.masters & ~r->closed)
            return false;
        r->closed_at = now;
        r->phase = RESCUE_WAITING;
        return true;
    case RESCUE_WAITING:
        if (r->config.masters & ~r->closed) {
            r->phase = RESCUE_CLOSING;
            return true;
        }
        if (now < rescue_due_at(r))
            return false;
        r->checked_from = now;
        r->phase = RESCUE_CHECKING;
        return true;
    case RESCUE_CHECKING:
        if (now < rescue_due_at(r)) { /* A master reported a longer lease. */
            r->phase = RESCUE_WAITING;
            return true;
        }
        return check(r);
    case RESCUE_FOUNDING:
        for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
            founded |= has_founded(r, i) ? mask_of(i) : 0;
        if (!(r->config.list & ~founded))
            end(r, RESCUE_DONE, 0);
        return false;
    }
    assert(!"a phase");
    return false;
}

/* ---- Requests ---- */

/* R6. */
static bool is_watched(const struct rescue *r, unsigned master, drift_time now)
{
    const struct rescue_master *m = &r->masters[master];

    return m->linked && m->known && !m->look.ready && now >= rescue_watched_at(r, master);
}

/* R7. */
static bool is_raised(const struct rescue *r)
{
    quorum_mask raised = r->counted;

    for (unsigned i = 0; r->config.list >> i != 0; i++)
        raised |= !r->masters[i].look.ready || has_founded(r, i) ? mask_of(i) : 0;
    return members_is_majority(r->config.list, raised);
}

/* R8.  watched: masters without an epoch that may get one count, too. */
static bool can_remember(const struct rescue *r, bool watched, drift_time now)
{
    const struct members list = {r->config.list, r->config.list};
    quorum_mask can = 0;

    for (unsigned i = 0; r->config.list >> i != 0; i++)
        if (r->masters[i].look.ready || (watched && is_watched(r, i, now)))
            can |= mask_of(i);
    return members_meet_all(&list, can);
}

static enum rescue_request find_request(const struct rescue *r, unsigned master, drift_time now)
{
    const struct rescue_master *m = &r->masters[master];

    if (!m->linked || m->asked != RESCUE_ASK_NOTHING || !is_in(r->config.masters, master))
        return RESCUE_ASK_NOTHING;
    if (now >= m->look_at || (r->phase == RESCUE_CHECKING && m->looked < r->checked_from))
        return RESCUE_ASK_LOOK;
    if (!m->known)
        return RESCUE_ASK_NOTHING;
    if (is_open(r, m))
        return RESCUE_ASK_CLOSE;
    if (has_to_note(r, m))
        return RESCUE_ASK_NOTE;
    if (r->phase != RESCUE_FOUNDING || !is_in(r->config.list, master) || has_founded(r, master))
        return RESCUE_ASK_NOTHING;
    if (m->look.ready && !is_in(r->counted, master))
        return RESCUE_ASK_COUNT;
    if (!is_raised(r))
        return RESCUE_ASK_NOTHING;
    if (!can_remember(r, !m->look.ready, now))
        return RESCUE_ASK_NOTHING;
    if (m->look.ready)
        return RESCUE_ASK_FOUND;
    return is_watched(r, master, now) ? RESCUE_ASK_INSTALL : RESCUE_ASK_NOTHING;
}

static void send_requests(struct rescue *r, drift_time now, struct rescue_actions *act)
{
    for (unsigned i = 0; r->config.masters >> i != 0; i++) {
        enum rescue_request request = find_request(r, i, now);

        if (request == RESCUE_ASK_NOTHING)
            continue;
        r->masters[i].asked = request;
        r->masters[i].asked_at = now;
        act->look |= request == RESCUE_ASK_LOOK ? mask_of(i) : 0;
        act->close |= request == RESCUE_ASK_CLOSE ? mask_of(i) : 0;
        act->note |= request == RESCUE_ASK_NOTE ? mask_of(i) : 0;
        act->count |= request == RESCUE_ASK_COUNT ? mask_of(i) : 0;
        act->found |= request == RESCUE_ASK_FOUND ? mask_of(i) : 0;
        act->install |= request == RESCUE_ASK_INSTALL ? mask_of(i) : 0;
    }
}

static drift_time earlier(drift_time a, drift_time b)
{
    return a < b ? a : b;
}

static drift_time wake_at(const struct rescue *r, drift_time now)
{
    drift_time at = r->phase == RESCUE_WAITING ? rescue_due_at(r) : DRIFT_NEVER;

    for (unsigned i = 0; r->config.masters >> i != 0; i++) {
        const struct rescue_master *m = &r->masters[i];

        if (!m->linked || m->asked != RESCUE_ASK_NOTHING)
            continue;
        at = earlier(at, m->look_at);
        if (m->known && !m->look.ready && rescue_watched_at(r, i) > now)
            at = earlier(at, rescue_watched_at(r, i));
    }
    return at;
}

void rescue_next(struct rescue *r, drift_time now, struct rescue_actions *ret_actions)
{
    *ret_actions = (struct rescue_actions){.wake_at = DRIFT_NEVER};
    for (unsigned i = 0; i < 8 && r->status == RESCUE_GOES_ON; i++) /* Twice the phases. */
        if (!step(r, now))
            break;
    if (r->status != RESCUE_GOES_ON)
        return;
    send_requests(r, now, ret_actions);
    ret_actions->wake_at = wake_at(r, now);
}

/* ---- Events ---- */

void rescue_init(struct rescue *r, const struct rescue_config *config)
{
    assert(config->list != 0 && !(config->list & ~config->masters));
    assert(config->founded > config->closed);
    memset(r, 0, sizeof *r);
    r->config = *config;
    r->longest_ms = config->max_ttl_ms;
    for (unsigned i = 0; i < QUORUM_MASTERS_MAX; i++)
        r->masters[i].look_at = DRIFT_NEVER;
}

void rescue_on_link(struct rescue *r, unsigned master, bool up)
{
    struct rescue_master *m = &r->masters[master];

    assert(master < QUORUM_MASTERS_MAX);
    m->linked = up;
    m->known = false;
    m->asked = RESCUE_ASK_NOTHING;
    m->look_at = up ? 0 : DRIFT_NEVER;
}

static void judge(struct rescue *r, unsigned master)
{
    const struct guard_look *look = &r->masters[master].look;
    uint64_t version = look->told.version;

    if (look->told.is_foreign)
        end(r, RESCUE_STRANGER, master);
    else if (look->ready && (is_of_another(r, version) ||
                             (version > r->config.closed && version != r->config.founded)))
        end(r, RESCUE_OVERTAKEN, master);
    if (is_open(r, &r->masters[master]) || has_to_note(r, &r->masters[master]))
        r->closed = mask_without(r->closed, master);
    else
        r->closed |= mask_of(master);
}

void rescue_on_look(struct rescue *r, unsigned master, const struct guard_look *look,
                    drift_time now)
{
    struct rescue_master *m = &r->masters[master];
    bool is_same = !look->ready && !m->look.ready && m->look.number == look->number;

    assert(master < QUORUM_MASTERS_MAX && look->number != 0);
    if (!m->linked || (m->asked != RESCUE_ASK_LOOK && m->asked != RESCUE_ASK_INSTALL))
        return;
    m->asked = RESCUE_ASK_NOTHING;
    m->known = true;
    m->looked = m->asked_at;
    m->since = is_same ? m->since : now;
    m->look = *look;
    m->look_at = look->ready ? DRIFT_NEVER : drift_add(now, r->config.look_every);
    if (look->max_ttl_ms > r->longest_ms)
        r->longest_ms = look->max_ttl_ms;
    judge(r, master);
}

void rescue_on_reply(struct rescue *r, unsigned master, bool done, drift_time now)
{
    struct rescue_master *m = &r->masters[master];
    enum rescue_request asked = m->asked;

    if (!m->linked || asked == RESCUE_ASK_NOTHING)
        return;
    m->asked = RESCUE_ASK_NOTHING;
    if (done && asked == RESCUE_ASK_COUNT) {
        r->counted |= mask_of(master);
    } else if (done && asked == RESCUE_ASK_CLOSE) {
        m->look.told = (struct recall_told){.version = r->config.closed};
    } else if (done && asked == RESCUE_ASK_NOTE) {
        m->look.told.accepted = RESCUE_BALLOT;
        r->closed |= mask_of(master);
    } else if (done && asked == RESCUE_ASK_FOUND) {
        m->look.told.version = r->config.founded;
    } else {
        m->known = false;
        m->look_at = drift_add(now, r->config.look_every);
    }
}

/* ---- Questions ---- */

quorum_mask rescue_missing(const struct rescue *r)
{
    quorum_mask missing = 0;

    for (unsigned i = 0; r->config.list >> i != 0; i++) {
        const struct rescue_master *m = &r->masters[i];
        bool is_here = r->phase == RESCUE_FOUNDING ? has_founded(r, i)
                                                   : m->known && m->looked >= r->checked_from;

        missing |= is_in(r->config.list, i) && !is_here ? mask_of(i) : 0;
    }
    if (r->phase == RESCUE_WAITING)
        return 0;
    return r->phase == RESCUE_CLOSING ? r->config.masters & (quorum_mask)~r->closed : missing;
}

const char *rescue_phase_text(enum rescue_phase phase)
{
    switch (phase) {
    case RESCUE_CLOSING:
        return "closing the set";
    case RESCUE_WAITING:
        return "waiting until all earlier locks have ended";
    case RESCUE_CHECKING:
        return "asking all masters again";
    case RESCUE_FOUNDING:
        return "founding the set anew";
    }
    return "";
}

const char *rescue_status_text(enum rescue_status status)
{
    switch (status) {
    case RESCUE_GOES_ON:
        break;
    case RESCUE_DONE:
        return "the set is founded anew";
    case RESCUE_STRANGER:
        return "a master belongs to another set";
    case RESCUE_OVERTAKEN:
        return "another rescue is under way, or the set was changed meanwhile";
    case RESCUE_AHEAD:
        return "the fencing counters are days ahead of the clocks: set the clocks first";
    }
    return "";
}
