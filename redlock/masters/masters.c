/*
 * masters.c - owns the links, sorts the answers, and writes to the log.
 */
#include "redlock/masters/masters.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "redlock/link/uri.h"

/* ---- One server, one vote ---- */

/* Find another link that leads to the same server and has its vote.  NULL: there is none. */
static const struct link *find_twin(const struct masters *masters, unsigned m, unsigned *ret_number)
{
    const struct peers *peers = &masters->peers;
    const struct master_info *info = link_info(peers->links[m]);

    for (unsigned other = 0; other < peers->len; other++) {
        const struct link *link = peers->links[other];

        if (other == m || link == NULL || !link_claims(link) ||
            !handshake_is_same(link_info(link), info) ||
            seats_has_way(&masters->set.seats, m, other))
            continue;
        *ret_number = other;
        return link;
    }
    return NULL;
}

/* One server has one vote, through the link that came up first.  The other links to it stay down
 * while that link is up. */
static bool may_serve(void *cookie, unsigned m, struct reason *ret_why)
{
    struct masters *masters = cookie;
    unsigned number = 0;
    const struct link *twin = find_twin(masters, m, &number);

    if (twin == NULL)
        return true;
    reason_quote(ret_why, WHY_TWIN, link_name(twin), NULL);
    ret_why->other = (uint8_t)number;
    return false;
}

/* ---- The log ---- */

/* Warn about settings with which a master may vote, but which make it unsafe. */
static void warn(const struct peers *peers, unsigned m)
{
    const struct master_info *info = link_info(peers->links[m]);
    struct reason why;

    if (handshake_evicts(info)) {
        reason_quote(&why, WHY_EVICTS, info->policy, NULL);
        peers_warn(peers, m, &why);
    }
    if (handshake_forgets(info)) {
        reason_set(&why, WHY_FORGETS);
        peers_warn(peers, m, &why);
    }
}

static void log_link(const struct peers *peers, unsigned m, const struct link_fall *fall)
{
    struct link *link = peers->links[m];
    char text[REASON_TEXT_MAX];

    if (fall == NULL) {
        env_log(peers->env, REDLOCK_LOG_INFO, MSG_UP, "master %u (%s): up, version %s", m + 1,
                link_name(link), link_info(link)->version);
        warn(peers, m);
    } else if (fall->is_news) {
        (void)reason_write(link_reason(link), env_now(peers->env), text, sizeof text);
        env_log(peers->env, REDLOCK_LOG_WARNING, reason_message(link_reason(link)),
                "master %u (%s): %s; next attempt in %d ms", m + 1, link_name(link), text,
                (int)drift_to_ms(fall->retry_in));
    }
}

/* ---- Events of the links ---- */

static void on_link(void *cookie, unsigned m, const struct link_fall *fall)
{
    struct masters *masters = cookie;
    bool up = fall == NULL;

    if (links_closes(&masters->links, m))
        return; /* The number belongs to another master already. */
    log_link(&masters->peers, m, fall);
    masters->peers.env->stats.connects += up;
    masters->peers.counts[m].connects += up;
    masters->peers.counts[m].breaks += !up;
    masters->events->on_link(masters->cookie, m, up);
    clocks_on_link(&masters->clocks, m, up);
    standing_on_link(&masters->standing, m, up);
}

static void on_reply(void *cookie, unsigned m, const struct ask *ask, const struct reply *reply)
{
    struct masters *masters = cookie;

    switch (ask->what) {
    case WHAT_LEAVE:
        return; /* A queue drops a waiter that did not leave when its patience ends. */
    case WHAT_FOUND:
        founding_on_answer(&masters->founding, m, ask, reply);
        return;
    case WHAT_LOOK:
        standing_on_look(&masters->standing, m, reply);
        return;
    case WHAT_WITNESS:
        standing_on_witness(&masters->standing, m, ask, reply);
        return;
    case WHAT_PROOF:
        proof_on_answer(&masters->proof, m, reply);
        return;
    case WHAT_TIME:
        if (clocks_on_time(&masters->clocks, m, ask, reply))
            proof_on_time(&masters->proof, m);
        return;
    case WHAT_COUNT:
        proof_on_count(&masters->proof, m, ask, reply);
        return;
    default:
        masters->events->on_answer(masters->cookie, m, ask, reply);
    }
}

static void on_room(void *cookie, unsigned m, bool room)
{
    struct masters *masters = cookie;

    standing_on_room(&masters->standing, m, room);
    if (room)
        masters->events->on_room(masters->cookie, m);
}

static void on_close(void *cookie, unsigned m)
{
    struct masters *masters = cookie;

    masters->events->on_close(masters->cookie, m);
}

static void on_done(void *cookie)
{
    struct masters *masters = cookie;

    masters->events->on_done(masters->cookie);
}

static const struct link_events link_events = {
    .may_serve = may_serve,
    .on_link = on_link,
    .on_reply = on_reply,
    .on_room = on_room,
    .on_done = on_done,
};

/* ---- Events of the guards ---- */

static void on_new_epoch(void *cookie, unsigned m)
{
    struct masters *masters = cookie;

    proof_forget(&masters->proof, m);
}

static void on_new_state(void *cookie, unsigned m)
{
    struct masters *masters = cookie;

    proof_on_state(&masters->proof, m);
}

static void on_change(void *cookie, unsigned m)
{
    struct masters *masters = cookie;

    proof_on_change(&masters->proof);
    masters->events->on_change(masters->cookie, m);
}

static void on_read(void *cookie, unsigned m)
{
    struct masters *masters = cookie;

    proof_on_look(&masters->proof, m);
}

static void log_set(const struct masters *masters)
{
    const struct config *now = &masters->set.seats.now;
    char text[SET_TEXT_MAX];

    set_print(now, text, sizeof text);
    env_log(masters->peers.env, REDLOCK_LOG_INFO, MSG_SET_CHANGED,
            "masters: version %" PRIu64 " of the set%s: %s", now->version,
            config_is_joint(now) ? ", which changes" : "", text);
}

static void on_set(void *cookie, const struct seats_change *change)
{
    struct masters *masters = cookie;

    for (unsigned m = 0; change->closed >> m != 0; m++) {
        if (!(change->closed & mask_of(m)))
            continue;
        proof_forget(&masters->proof, m);
        clocks_on_left(&masters->clocks, m);
        founding_on_break(&masters->founding, m);
        masters->peers.counts[m] = (struct peer_counts){.late = 0};
    }
    links_change(&masters->links, change->closed, change->opened);
    if (change->config && masters->set.seats.now.version > 1)
        log_set(masters);
    masters->events->on_set(masters->cookie, change->joined, change->closed);
}

static const struct standing_events standing_events = {
    .on_new_epoch = on_new_epoch,
    .on_new_state = on_new_state,
    .on_change = on_change,
    .on_read = on_read,
    .on_set = on_set,
};

/* ---- Events of the founding ---- */

static void on_founded(void *cookie, const struct seats_change *change)
{
    struct masters *masters = cookie;
    char text[SET_TEXT_MAX];

    set_print(&masters->set.seats.now, text, sizeof text);
    env_log(masters->peers.env, REDLOCK_LOG_INFO, MSG_SET_FOUNDED,
            "masters: they are a set now: %s", text);
    standing_on_founding(&masters->standing, change);
}

static void on_refused(void *cookie, unsigned m)
{
    struct masters *masters = cookie;

    env_log(masters->peers.env, REDLOCK_LOG_WARNING, MSG_WRONG_SET, "masters: %s",
            masters->set.why);
    standing_on_refusal(&masters->standing, m);
}

static const struct founding_events founding_events = {
    .on_founded = on_founded,
    .on_refused = on_refused,
};

static void on_vote(void *cookie, unsigned m, const struct ask *ask, const struct vote *vote)
{
    struct masters *masters = cookie;

    masters->events->on_vote(masters->cookie, m, ask, vote);
}

/* ---- Begin and end ---- */

static int make_links(struct masters *masters, const struct masters_config *config)
{
    const struct link_config link = {
        .env = config->env,
        .dirty = &masters->peers.dirty,
        .connect_timeout = config->connect_timeout,
        .reply_timeout = config->reply_timeout,
        .guarded = config->restart_guard,
    };

    return links_init(&masters->links, &masters->peers, &link, config->uris, config->len,
                      &link_events, masters);
}

int masters_init(struct masters *masters, const struct masters_config *config,
                 const struct masters_events *events, void *cookie)
{
    struct peers *peers = &masters->peers;

    masters->events = events;
    masters->cookie = cookie;
    peers->env = config->env;
    peers->len = config->len;
    peers->members = members_first(config->len);
    peers->restart_guard = config->restart_guard;
    peers->clock_guard = config->clock_guard;
    peers->max_ttl_ms = config->max_ttl_ms;
    peers->drift = config->drift;
    peers->connect_timeout = config->connect_timeout;
    set_init(&masters->set, peers, config->uris, config->len);
    if (founding_init(&masters->founding, peers, &masters->set, config->reply_timeout,
                      &founding_events, masters) != 0 ||
        standing_init(&masters->standing, peers, &masters->set, &masters->founding,
                      &standing_events, masters) != 0 ||
        clocks_init(&masters->clocks, peers, &masters->standing) != 0)
        return -1;
    masters->prospect = (struct prospect){
        .peers = peers,
        .set = &masters->set,
        .founding = &masters->founding,
        .standing = &masters->standing,
        .clocks = &masters->clocks,
    };
    masters->proof.peers = peers;
    masters->proof.standing = &masters->standing;
    masters->proof.clocks = &masters->clocks;
    masters->proof.on_vote = on_vote;
    masters->proof.cookie = masters;
    return proof_init(&masters->proof) == 0 ? make_links(masters, config) : -1;
}

void masters_start(struct masters *masters)
{
    for (unsigned m = 0; m < masters->peers.len; m++)
        link_start(masters->peers.links[m]);
}

void masters_done(struct masters *masters)
{
    links_done(&masters->links);
    proof_done(&masters->proof);
    queries_done(&masters->standing.queries);
}

/* ---- Requests of leases and of queues ---- */

void masters_send(struct masters *masters, unsigned m, const struct ask *ask, const char *command,
                  size_t command_len)
{
    masters->peers.env->stats.commands++;
    link_send(masters->peers.links[m], ask, command, command_len);
}

void masters_want_proof(struct masters *masters, enum quorum_command command, quorum_mask sent)
{
    proof_want(&masters->proof, command, sent);
}

bool masters_hold(struct masters *masters, unsigned m, const struct ask *ask,
                  const struct vote *vote)
{
    return proof_hold(&masters->proof, m, ask, vote);
}

bool masters_count(struct masters *masters, unsigned m, enum quorum_command command,
                   drift_time sent)
{
    return clocks_count(&masters->clocks, m, command, sent);
}

quorum_mask masters_barred(const struct masters *masters)
{
    return clocks_barred(&masters->clocks, env_now(masters->peers.env));
}

void masters_raised(struct masters *masters, unsigned m, uint64_t number)
{
    guard_on_raised(&masters->standing.guard, m, number);
}

void masters_look_again(struct masters *masters, unsigned m)
{
    standing_look_again(&masters->standing, m);
}

const char *masters_state(const struct masters *masters, unsigned m)
{
    return masters->standing.states[m];
}

/* ---- Writing ---- */

/* A link that breaks here may create work for other links.  The loop ends, because each link breaks
 * at most once: it is down from then on. */
void masters_flush(struct masters *masters)
{
    struct peers *peers = &masters->peers;

    assert(!peers->env->in_event);
    if ((masters->links.to_close | masters->links.to_open) != 0)
        links_tidy(&masters->links, &masters->set.seats, on_close);
    while (peers->dirty != 0) {
        unsigned m = (unsigned)__builtin_ctz(peers->dirty);

        proof_ask(&masters->proof, m);
        peers->dirty = mask_without(peers->dirty, m);
        link_flush(peers->links[m]);
    }
}

void masters_write(struct masters *masters)
{
    struct peers *peers = &masters->peers;

    for (quorum_mask left = peers->dirty; left != 0; left &= (quorum_mask)(left - 1)) {
        unsigned m = (unsigned)__builtin_ctz(left);

        proof_ask(&masters->proof, m);
        peers->dirty = mask_without(peers->dirty, m);
        link_write(peers->links[m]);
    }
}

bool masters_on_alarm(struct masters *masters, const struct alarm *alarm)
{
    if (alarm == &masters->standing.alarm)
        standing_on_alarm(&masters->standing);
    else if (alarm == &masters->clocks.alarm)
        clocks_on_alarm(&masters->clocks);
    else if (alarm == &masters->proof.alarm)
        proof_on_alarm(&masters->proof);
    else if (alarm == &masters->founding.alarm)
        founding_on_alarm(&masters->founding);
    else
        return false;
    return true;
}

/* ---- Outlook ---- */

bool masters_found(const struct masters *masters)
{
    return prospect_founds(&masters->prospect);
}

enum outlook masters_outlook(const struct masters *masters, quorum_mask refused, drift_time now,
                             struct outlook_view *ret_view)
{
    prospect_of_all(&masters->prospect, refused, now, ret_view);
    return outlook_judge(ret_view);
}

enum outlook masters_outlook_of(const struct masters *masters, quorum_mask failed,
                                quorum_mask refused, drift_time now, struct outlook_view *ret_view)
{
    prospect_of_failed(&masters->prospect, failed, refused, now, ret_view);
    return outlook_judge(ret_view);
}

/* ---- One link ---- */

void masters_note(struct masters *masters, unsigned m, const struct reason *why)
{
    link_note(masters->peers.links[m], why);
}

void masters_relink(struct masters *masters, unsigned m, const struct reason *why)
{
    link_relink(masters->peers.links[m], why);
}

const char *masters_name(const struct masters *masters, unsigned m)
{
    return masters->peers.links[m] != NULL ? link_name(masters->peers.links[m]) : "";
}

const struct reason *masters_reason(const struct masters *masters, unsigned m)
{
    static const struct reason none = {.why = WHY_NONE, .over_at = DRIFT_NEVER};
    static const struct reason closed = {.why = WHY_SET_CLOSED, .over_at = DRIFT_NEVER};
    const struct reason *why =
        masters->peers.links[m] != NULL ? link_reason(masters->peers.links[m]) : &none;

    /* No time and no data of its own would let it vote. */
    if (set_is_closed(&masters->set) &&
        (masters_is_linked(masters, m) || why->why == WHY_LOST_DATA))
        return &closed;
    return why;
}

void masters_recall(const struct masters *masters, unsigned m, enum why seen,
                    struct reason *ret_why)
{
    *ret_why = *masters_reason(masters, m);
    if (ret_why->why == seen)
        return;
    reason_set(ret_why, seen);
    if (reason_message(ret_why) == MSG_CLOCK &&
        !clocks_explain(&masters->clocks, m, env_now(masters->peers.env), ret_why))
        reason_set(ret_why, WHY_NONE);
}

/* Also a former member that the list names counts for nothing, unless it says so itself. */
bool masters_concern(const struct masters *masters, unsigned m)
{
    const struct set *set = &masters->set;
    enum seat_state state = seats_state(&set->seats, m);

    if (masters->peers.links[m] == NULL)
        return false;
    if (!set_is_known(set) || set_is_closed(set))
        return true;
    return !(seats_leaving(&set->seats) & mask_of(m)) && state != SEAT_UNKNOWN &&
           (state != SEAT_REMOVED || set_is_wrong(set, m));
}

bool masters_is_linked(const struct masters *masters, unsigned m)
{
    return (masters->standing.linked & mask_of(m)) != 0;
}

bool masters_link_is_up(const struct masters *masters, unsigned m)
{
    return masters->peers.links[m] != NULL && link_is_up(masters->peers.links[m]);
}
