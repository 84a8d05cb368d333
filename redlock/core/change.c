/*
 * change.c - queries, ballots and writes until the set of masters has the wished list; pure.
 *
 * It is longer than others, because it is one machine.
 *
 * The rules are those of test/models/members.h and fencing.h, which are model-checked.  Here they
 * stand next to the code that keeps them.  Q(L) is a majority of list L.
 *
 *  M3. The next version is chosen by Paxos among the members of the newest one, with Q(L) of each
 *      list (begin_ballot, on_promise, on_accepted).  A simple configuration becomes a joint one. A
 *      joint one becomes simple with either list (find_wanted, is_next).  A ballot ends max_ttl,
 *      less the drift, after its first prepare was sent.  Later answers do not count
 *      (is_in_time).  Before the ballot, queries announced max_ttl to Q(L) of each list
 *      (find_able), so a member that forgets its promise gets no epoch before the ballot ends.
 *      One that lost its data unnoticed, and has another epoch since, may have forgotten that.  So
 *      a promise counts only under an epoch that was known before the ballot (voters).  All who
 *      promised have heard the announcement then, and still know it.
 *      A max_ttl that is too short for a ballot is raised, in queries, too (change_init).  A
 *      chosen version is written to all members of it and of the one before, and to masters that
 *      show an older version of our set (find_recipients).
 *  M5. A joint configuration becomes simple(L2) only after (1) Q(L1) members were seen to store it
 *      (see_joint), (2) the longest lease that any master reported has passed since then (due_at),
 *      (3) Q(L1) of the same members show the same epochs again (check_again).
 *  M6. A joint configuration is proposed when all new members and Q(L2) have an epoch
 *      (change_awaited).  Q(L2) is needed because members of L2 that forgot get their promises back
 *      from N - Q + 1 others of L2.  If fewer were left, they would never vote again.
 *  M8. Between (3) and the proposal, the counters of Q(L2) are raised to the greatest number that
 *      the answers of (3) reported (count_on).  They come from Q(L1) members, which is at
 *      least N - Q + 1.
 *  M9. A chosen version is also written to masters that it removes: see M3.
 *
 * What the machine gives way to:
 *
 *  - It takes over any newer configuration that a master reports (take_over).
 *  - The wish is a change of one configuration, the base.  If anything else follows the base than
 *    what the wish asks for, the machine ends (is_overtaken).  So two operators do not undo each
 *    other's work in turn.
 *  - A joint configuration that is found at the beginning is finished or given up, as the wish or
 *    the caller says (goes_back).
 */
#include "redlock/core/change.h"

#include <assert.h>
#include <string.h>

#define STEPS_MAX 16 /* Phases that may pass in one call.  Chosen: twice as many as there are. */
#define DOUBLINGS_MAX 16

static void end(struct change *c, enum change_status status)
{
    if (c->status == CHANGE_GOES_ON)
        c->status = status;
}

static void blame(struct change *c, enum change_status status, unsigned master)
{
    if (c->status == CHANGE_GOES_ON)
        c->culprit = master;
    end(c, status);
}

static bool read_lists(struct change *c, const struct config *config,
                       struct roster_lists *ret_lists)
{
    if (roster_read(c->roster, config, ret_lists))
        return true;
    end(c, CHANGE_NO_ROOM);
    return false;
}

/* ---- Masters ---- */

static bool has_epoch(const struct change_master *m)
{
    return m->known && m->ready;
}

/* Members that a ballot may ask.  A query announced max_ttl to them. */
static roster_mask find_able(const struct change *c)
{
    roster_mask able = 0;

    for (unsigned i = 0; i < c->roster->len; i++) {
        const struct change_master *m = &c->masters[i];

        if (has_epoch(m) && m->ours && m->version == c->newest.version)
            able |= roster_bit(i);
    }
    return able & roster_members(&c->newest);
}

static roster_mask find_ours(const struct change *c)
{
    roster_mask ours = 0;

    for (unsigned i = 0; i < c->roster->len; i++)
        ours |= c->masters[i].ours ? roster_bit(i) : 0;
    return ours;
}

/* M3, M9: masters that are to store the newest version. */
static roster_mask find_recipients(const struct change *c)
{
    return roster_members(&c->newest) | find_ours(c);
}

static roster_mask find_told(const struct change *c)
{
    roster_mask told = 0;

    for (unsigned i = 0; i < c->roster->len; i++) {
        const struct change_master *m = &c->masters[i];

        if (m->ours && m->ready && m->version >= c->newest.version)
            told |= roster_bit(i);
    }
    return told;
}

static roster_mask find_ready(const struct change *c)
{
    roster_mask ready = 0;

    for (unsigned i = 0; i < c->roster->len; i++)
        ready |= has_epoch(&c->masters[i]) ? roster_bit(i) : 0;
    return ready;
}

static roster_mask find_known(const struct change *c)
{
    roster_mask known = 0;

    for (unsigned i = 0; i < c->roster->len; i++)
        known |= c->masters[i].known ? roster_bit(i) : 0;
    return known;
}

/* ---- Where the machine goes ---- */

/* Whether a joint configuration is to become simple with its first list. */
static bool goes_back(const struct change *c)
{
    return c->wish == c->newest.from || (c->wish != c->newest.to && c->config.gives_up);
}

/* M3: what this machine proposes if it finds nothing accepted. */
static struct roster_lists find_wanted(const struct change *c)
{
    struct roster_lists wanted = {.version = c->newest.version + 1};

    wanted.from = c->newest.from;
    wanted.to = roster_is_joint(&c->newest) ? wanted.from : c->wish;
    if (roster_is_joint(&c->newest) && !goes_back(c)) {
        assert(c->settled); /* M5, M8. */
        wanted.from = wanted.to = c->newest.to;
    }
    return wanted;
}

/* M3: whether a value may follow the newest configuration. */
static bool is_next(const struct change *c, const struct roster_lists *value)
{
    if (value->version != c->newest.version + 1)
        return false;
    if (!roster_is_joint(&c->newest))
        return roster_is_joint(value) && value->from == c->newest.from;
    return roster_is_simple(value, c->newest.from) || roster_is_simple(value, c->newest.to);
}

/* The newest configuration is not the wished list. */
static bool is_overtaken(const struct change *c)
{
    const struct roster_lists *base = &c->base, *newest = &c->newest;
    bool is_following = newest->version == base->version + 1;

    if (base->version == 0 || newest->version == base->version)
        return false;
    if (!roster_is_joint(base))
        return !(is_following && newest->from == base->from && newest->to == c->wish);
    return !is_following || c->wish == base->from || c->wish == base->to;
}

static bool is_wish_allowed(struct change *c)
{
    const struct roster_lists wished = {.from = c->wish, .to = c->wish};
    struct config now, wish;
    const char *name;

    roster_write(c->roster, &c->newest, c->config.set, &now);
    roster_write(c->roster, &wished, c->config.set, &wish);
    c->problem = config_check(&now, &wish, &name);
    return c->problem == CONFIG_OK || (c->problem == CONFIG_EVEN && c->config.allows_even);
}

/* The machine ends when a quorum stores what it knows.  It may be the only one that knows: the next
 * would find the same value accepted, be overtaken by it, and so on. */
static void begin_telling(struct change *c, enum change_status verdict, drift_time now)
{
    c->phase = CHANGE_TELLING;
    c->verdict = verdict;
    c->until = drift_add(now, c->config.timeout);
}

/* Choose the phase by the newest configuration. */
static void choose_phase(struct change *c, drift_time now)
{
    if (roster_members(&c->newest) == 0) {
        end(c, CHANGE_CLOSED);
    } else if (roster_is_simple(&c->newest, c->wish)) {
        begin_telling(c, CHANGE_DONE, now);
    } else if (is_overtaken(c)) {
        begin_telling(c, CHANGE_OVERTAKEN, now);
    } else if (roster_is_joint(&c->newest)) {
        if (c->base.version == 0)
            c->base = c->newest;
        c->phase = goes_back(c) ? CHANGE_CHOOSING : CHANGE_SEEING;
    } else {
        c->base = c->newest;
        c->phase = CHANGE_WATCHING;
        if (!is_wish_allowed(c))
            end(c, CHANGE_REFUSED);
    }
}

static void take_over(struct change *c, const struct roster_lists *lists, drift_time now)
{
    c->newest = *lists;
    c->ballot = 0;
    c->round = 0;
    c->ballots = 0;
    c->seen = c->counted = 0;
    c->number = 0;
    c->settled = false;
    if (c->phase != CHANGE_LEARNING)
        choose_phase(c, now);
}

/* ---- Learning ---- */

/* A foreign master at the place of a member that the wish removes counts as a member that does
 * not answer. */
static void find_foreign(struct change *c)
{
    roster_mask may_be = roster_members(&c->newest) & ~c->wish;

    for (unsigned i = 0; i < c->roster->len; i++)
        if (c->masters[i].foreign && !(may_be & roster_bit(i)))
            blame(c, CHANGE_OTHER_SET, i);
}

/* All masters answered, or had the time to do so. */
static bool learn(struct change *c, drift_time now)
{
    roster_mask known = find_known(c), alive = find_ready(c) & find_ours(c);

    if (now < c->until && roster_count(known) < c->roster->len)
        return false;
    find_foreign(c);
    if (c->newest.version == 0)
        end(c, CHANGE_NO_SET);
    else if (roster_members(&c->newest) != 0 &&
             (!roster_is_quorum(&c->newest, alive) || !roster_is_majority(c->wish, known)))
        end(c, CHANGE_TOO_FEW);
    choose_phase(c, now);
    return true;
}

/* ---- M3: ballots ---- */

static void begin_ballot(struct change *c, drift_time now, uint32_t random)
{
    drift_span lease = c->config.max_ttl_ms * DRIFT_MS;

    if (!roster_is_quorum(&c->newest, find_able(c)))
        return;
    if (c->round == UINT32_MAX) { /* A sound master knows no such ballot. */
        end(c, CHANGE_IMPOSSIBLE);
        return;
    }
    c->ballot = (change_ballot)++c->round << 32 | random;
    c->ballots++;
    c->ballot_end = drift_deadline(now, lease, &c->config.drift);
    c->accepting = false;
    c->voters = find_ready(c);
    c->promised = c->accepted = c->refused = 0;
    c->found_ballot = 0;
}

/* The next ballot begins after a pause, so that two machines do not go on at the same pace. */
static void end_ballot(struct change *c, drift_time now, uint32_t random)
{
    unsigned doublings = c->ballots - 1 < DOUBLINGS_MAX ? c->ballots - 1 : DOUBLINGS_MAX;
    drift_span pause = c->config.pause_min << doublings;

    if (pause > c->config.pause_max)
        pause = c->config.pause_max;
    c->ballot = 0;
    c->phase = CHANGE_PAUSING;
    c->until = drift_add(now, pause / 2 + pause / 2 / 1024 * (random % 1024));
}

/* The answer counts for the ballot that is out.  Rounds begin anew with each version. */
static bool is_in_time(const struct change *c, const struct change_master *m, drift_time now)
{
    return c->ballot != 0 && m->asked_ballot == c->ballot &&
           m->asked_version == c->newest.version && now < c->ballot_end;
}

static void on_promise(struct change *c, unsigned master, const struct change_reply *reply)
{
    if (c->accepting)
        return;
    c->promised |= roster_bit(master);
    if (reply->config != NULL && reply->ballot > c->found_ballot) {
        struct roster_lists found;

        if (!read_lists(c, reply->config, &found))
            return;
        if (!is_next(c, &found)) {
            blame(c, CHANGE_IMPOSSIBLE, master);
            return;
        }
        c->found_ballot = reply->ballot;
        c->found = found;
    }
    if (!roster_is_quorum(&c->newest, c->promised))
        return;
    c->accepting = true;
    c->refused = 0;
    c->value = c->found_ballot != 0 ? c->found : find_wanted(c);
}

static void on_accepted(struct change *c, unsigned master, drift_time now)
{
    c->accepted |= roster_bit(master);
    if (roster_is_quorum(&c->newest, c->accepted)) {
        struct roster_lists chosen = c->value;

        take_over(c, &chosen, now);
    }
}

static void on_other_ballot(struct change *c, unsigned master, change_ballot ballot)
{
    assert(ballot != 0);
    if (ballot >> 32 > c->round)
        c->round = (uint32_t)(ballot >> 32);
    c->refused |= roster_bit(master);
}

/* False: too many have refused, or there is a quorum only with members whose epoch is new.  The
 * next ballot asks those, too. */
static bool may_succeed(const struct change *c)
{
    roster_mask able = find_able(c);

    if (!roster_is_quorum(&c->newest, roster_members(&c->newest) & ~c->refused))
        return false;
    return c->accepting || !roster_is_quorum(&c->newest, able) ||
           roster_is_quorum(&c->newest, c->promised | (able & c->voters & ~c->refused));
}

/* Returns true if the ballot is over. */
static bool follow_ballot(struct change *c, drift_time now, uint32_t random)
{
    if (c->ballot == 0)
        begin_ballot(c, now, random);
    if (c->ballot == 0)
        return false;
    if (now < c->ballot_end && may_succeed(c))
        return false;
    end_ballot(c, now, random);
    return true;
}

/* ---- M5 and M8 ---- */

/* M5 (1). */
static bool see_joint(struct change *c, drift_time now)
{
    roster_mask able = find_able(c) & c->newest.from;

    if (!roster_is_majority(c->newest.from, able))
        return false;
    c->seen = able;
    c->since = now;
    for (unsigned i = 0; i < c->roster->len; i++)
        c->masters[i].seen_epoch = able & roster_bit(i) ? c->masters[i].epoch : 0;
    c->phase = CHANGE_WAITING;
    return true;
}

/* M5 (2).  Twice the drift, as for a master that forgot (guard_quarantine). */
static drift_time due_at(const struct change *c)
{
    drift_span lease = c->longest_ms * DRIFT_MS;

    return drift_add(c->since, drift_add(lease, 2 * drift_allowance(lease, &c->config.drift)));
}

static bool wait_for_leases(struct change *c, drift_time now)
{
    c->until = due_at(c);
    if (now < c->until)
        return false;
    c->checked_from = now;
    c->phase = CHANGE_CHECKING;
    return true;
}

static bool is_looked(const struct change *c, const struct change_master *m)
{
    return m->known && m->looked >= c->checked_from;
}

/* M5 (3), and the numbers of M8. */
static bool check_again(struct change *c, drift_time now)
{
    roster_mask same = 0, changed = 0;
    uint64_t number = 0;

    if (now < due_at(c)) { /* A master reported a longer lease. */
        c->phase = CHANGE_WAITING;
        return true;
    }
    for (unsigned i = 0; i < c->roster->len; i++) {
        const struct change_master *m = &c->masters[i];

        if (!(c->seen & roster_bit(i)) || !is_looked(c, m))
            continue;
        if (!m->ready || m->epoch != m->seen_epoch || m->version != c->newest.version) {
            changed |= roster_bit(i);
            continue;
        }
        same |= roster_bit(i);
        if (m->high > number)
            number = m->high;
    }
    if (roster_is_majority(c->newest.from, same)) {
        c->number = number;
        c->phase = CHANGE_COUNTING;
        return true;
    }
    if (roster_is_majority(c->newest.from, c->seen & ~changed))
        return false;
    c->phase = CHANGE_SEEING;
    return true;
}

static bool count_on(struct change *c)
{
    c->settled = roster_is_majority(c->newest.to, c->counted);
    if (c->settled)
        c->phase = CHANGE_CHOOSING;
    return c->settled;
}

/* ---- The end ---- */

static void tell(struct change *c, drift_time now)
{
    roster_mask told = find_told(c);

    if (roster_is_quorum(&c->newest, told) && (now >= c->until || !(find_recipients(c) & ~told)))
        end(c, c->verdict);
}

roster_mask change_awaited(const struct change *c)
{
    roster_mask ready = find_ready(c), new = c->wish & ~c->newest.from;

    return (roster_is_majority(c->wish, ready) ? new : c->wish) & ~ready;
}

/* Returns true if another phase began. */
static bool step(struct change *c, drift_time now, uint32_t random)
{
    switch (c->phase) {
    case CHANGE_LEARNING:
        return learn(c, now);
    case CHANGE_WATCHING:
        if (change_awaited(c) != 0)
            return false;
        c->phase = CHANGE_CHOOSING;
        return true;
    case CHANGE_CHOOSING:
        return follow_ballot(c, now, random);
    case CHANGE_PAUSING:
        if (now >= c->until)
            c->phase = CHANGE_CHOOSING;
        return now >= c->until;
    case CHANGE_SEEING:
        return see_joint(c, now);
    case CHANGE_WAITING:
        return wait_for_leases(c, now);
    case CHANGE_CHECKING:
        return check_again(c, now);
    case CHANGE_COUNTING:
        return count_on(c);
    case CHANGE_TELLING:
        tell(c, now);
        return false;
    case CHANGE_PHASES_LEN:
        break;
    }
    assert(!"a phase");
    return false;
}

/* ---- Requests ---- */

/* What the phase asks of a master that has an epoch and stores the newest version. */
static enum change_request find_request_of_phase(const struct change *c, unsigned master)
{
    roster_mask bit = roster_bit(master);

    switch (c->phase) {
    case CHANGE_CHOOSING:
        if (c->ballot == 0 || !(roster_members(&c->newest) & bit & ~c->refused))
            return CHANGE_ASK_NOTHING;
        if (c->accepting)
            return c->accepted & bit ? CHANGE_ASK_NOTHING : CHANGE_ASK_ACCEPT;
        return c->voters & bit & ~c->promised ? CHANGE_ASK_PREPARE : CHANGE_ASK_NOTHING;
    case CHANGE_CHECKING:
        if (!(c->seen & bit) || is_looked(c, &c->masters[master]))
            return CHANGE_ASK_NOTHING;
        return CHANGE_ASK_LOOK;
    case CHANGE_COUNTING:
        return c->newest.to & bit & ~c->counted ? CHANGE_ASK_COUNT : CHANGE_ASK_NOTHING;
    case CHANGE_LEARNING:
    case CHANGE_WATCHING:
    case CHANGE_PAUSING:
    case CHANGE_SEEING:
    case CHANGE_WAITING:
    case CHANGE_TELLING:
    case CHANGE_PHASES_LEN:
        break;
    }
    return CHANGE_ASK_NOTHING;
}

static enum change_request find_request(const struct change *c, unsigned master, drift_time now)
{
    const struct change_master *m = &c->masters[master];

    if (!m->linked || m->asked != CHANGE_ASK_NOTHING)
        return CHANGE_ASK_NOTHING;
    if (now >= m->look_at)
        return CHANGE_ASK_LOOK;
    if (!has_epoch(m) || m->foreign || c->phase == CHANGE_LEARNING)
        return CHANGE_ASK_NOTHING;
    if (m->version < c->newest.version) /* M3, M9. */
        return find_recipients(c) & roster_bit(master) ? CHANGE_ASK_WRITE : CHANGE_ASK_NOTHING;
    return find_request_of_phase(c, master);
}

static void send_requests(struct change *c, drift_time now, struct change_actions *act)
{
    for (unsigned i = 0; i < c->roster->len; i++) {
        struct change_master *m = &c->masters[i];
        enum change_request request = find_request(c, i, now);

        if (request == CHANGE_ASK_NOTHING)
            continue;
        m->asked = request;
        m->asked_at = now;
        m->asked_ballot = c->ballot;
        m->asked_version = c->newest.version;
        act->look |= request == CHANGE_ASK_LOOK ? roster_bit(i) : 0;
        act->prepare |= request == CHANGE_ASK_PREPARE ? roster_bit(i) : 0;
        act->accept |= request == CHANGE_ASK_ACCEPT ? roster_bit(i) : 0;
        act->write |= request == CHANGE_ASK_WRITE ? roster_bit(i) : 0;
        act->count |= request == CHANGE_ASK_COUNT ? roster_bit(i) : 0;
    }
}

static drift_time wake_at(const struct change *c, drift_time now)
{
    bool has_end = c->phase == CHANGE_LEARNING || c->phase == CHANGE_PAUSING ||
                   c->phase == CHANGE_WAITING || c->phase == CHANGE_TELLING;
    drift_time at = has_end && c->until > now ? c->until : DRIFT_NEVER;

    if (c->ballot != 0 && c->ballot_end < at)
        at = c->ballot_end;
    for (unsigned i = 0; i < c->roster->len; i++) {
        const struct change_master *m = &c->masters[i];

        if (m->linked && m->asked == CHANGE_ASK_NOTHING && m->look_at < at)
            at = m->look_at;
    }
    return at;
}

void change_next(struct change *c, drift_time now, uint32_t random,
                 struct change_actions *ret_actions)
{
    *ret_actions = (struct change_actions){.wake_at = DRIFT_NEVER};
    for (unsigned i = 0; i < STEPS_MAX && c->status == CHANGE_GOES_ON; i++)
        if (!step(c, now, random))
            break;
    if (c->status != CHANGE_GOES_ON)
        return;
    send_requests(c, now, ret_actions);
    ret_actions->wake_at = wake_at(c, now);
}

/* ---- Events ---- */

void change_init(struct change *c, const struct change_config *config, struct roster *roster,
                 const struct config *wish, drift_time now)
{
    struct roster_lists lists;

    memset(c, 0, sizeof *c);
    c->config = *config;
    c->roster = roster;
    if (c->config.max_ttl_ms < CHANGE_TTL_MIN_MS)
        c->config.max_ttl_ms = CHANGE_TTL_MIN_MS;
    c->longest_ms = c->config.max_ttl_ms;
    c->until = drift_add(now, config->timeout);
    for (unsigned i = 0; i < ROSTER_MAX; i++)
        c->masters[i].look_at = DRIFT_NEVER;
    if (read_lists(c, wish, &lists))
        c->wish = lists.from;
}

void change_on_link(struct change *c, unsigned master, bool up)
{
    struct change_master *m = &c->masters[master];

    assert(master < c->roster->len);
    m->linked = up;
    m->known = false;
    m->asked = CHANGE_ASK_NOTHING;
    m->look_at = up ? 0 : DRIFT_NEVER;
}

void change_look_again(struct change *c, unsigned master, drift_time now)
{
    struct change_master *m = &c->masters[master];
    drift_time at = drift_add(m->looked, c->config.look_every);

    if (!m->linked || m->asked != CHANGE_ASK_NOTHING)
        return;
    m->known = false;
    m->look_at = at > now ? at : now;
}

void change_on_failure(struct change *c, unsigned master, drift_time now)
{
    struct change_master *m = &c->masters[master];

    assert(master < c->roster->len);
    m->asked = CHANGE_ASK_NOTHING;
    m->known = false;
    m->look_at = drift_add(now, c->config.look_every);
}

static void on_config(struct change *c, unsigned master, const struct config *config,
                      drift_time now)
{
    struct change_master *m = &c->masters[master];
    unsigned len = c->roster->len;
    struct roster_lists lists;

    if (c->config.set == 0 && config != NULL)
        c->config.set = config->set;
    m->ours = config != NULL && config->set == c->config.set;
    m->foreign = config != NULL && !m->ours;
    m->version = m->ours ? config->version : 0;
    if (!m->ours || !read_lists(c, config, &lists))
        return;
    if (c->phase == CHANGE_LEARNING && c->roster->len > len)
        c->until = drift_add(now, c->config.timeout);
    if (lists.version > c->newest.version)
        take_over(c, &lists, now);
    else if (lists.version == c->newest.version &&
             (lists.from != c->newest.from || lists.to != c->newest.to))
        blame(c, CHANGE_IMPOSSIBLE, master);
}

void change_on_look(struct change *c, unsigned master, const struct change_look *look,
                    drift_time now)
{
    struct change_master *m = &c->masters[master];

    assert(master < c->roster->len && look->epoch != 0);
    if (!m->linked || m->asked != CHANGE_ASK_LOOK)
        return;
    m->asked = CHANGE_ASK_NOTHING;
    m->known = true;
    m->looked = m->asked_at;
    m->ready = look->ready;
    if (m->epoch != look->epoch)
        c->voters &= ~roster_bit(master);
    m->epoch = look->epoch;
    m->high = look->high;
    m->look_at = look->ready ? DRIFT_NEVER : drift_add(now, c->config.look_every);
    if (look->max_ttl_ms > c->longest_ms)
        c->longest_ms = look->max_ttl_ms;
    on_config(c, master, look->config, now);
}

static void on_yes(struct change *c, unsigned master, enum change_request asked,
                   const struct change_reply *reply, drift_time now)
{
    struct change_master *m = &c->masters[master];

    if (asked == CHANGE_ASK_WRITE) {
        m->ours = true;
        m->version = m->asked_version;
    } else if (asked == CHANGE_ASK_COUNT && m->asked_version == c->newest.version) {
        c->counted |= roster_bit(master);
    } else if (asked == CHANGE_ASK_PREPARE && is_in_time(c, m, now)) {
        on_promise(c, master, reply);
    } else if (asked == CHANGE_ASK_ACCEPT && is_in_time(c, m, now)) {
        on_accepted(c, master, now);
    }
}

void change_on_reply(struct change *c, unsigned master, const struct change_reply *reply,
                     drift_time now)
{
    struct change_master *m = &c->masters[master];
    enum change_request asked = m->asked;

    assert(master < c->roster->len);
    if (!m->linked || asked == CHANGE_ASK_NOTHING || asked == CHANGE_ASK_LOOK)
        return;
    m->asked = CHANGE_ASK_NOTHING;
    switch (reply->answer) {
    case CHANGE_YES:
        on_yes(c, master, asked, reply, now);
        break;
    case CHANGE_BALLOT:
        if (is_in_time(c, m, now) && c->accepting == (asked == CHANGE_ASK_ACCEPT))
            on_other_ballot(c, master, reply->ballot);
        break;
    case CHANGE_CHANGED:
        change_look_again(c, master, now);
        break;
    case CHANGE_FAILED:
        change_on_failure(c, master, now);
        break;
    }
}
