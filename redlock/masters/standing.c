/*
 * standing.c - reads the markers of masters and keeps the masks of those that may vote.
 */
#include "redlock/masters/standing.h"

#include <stdio.h>
#include <string.h>

#include "redlock/wire/reply.h"
#include "redlock/masters/founding.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/set.h"
#include "redlock/wire/answer.h"
#include "redlock/wire/redis_error.h"

_Static_assert(GUARD_HIGH_STEP == WIRE_FENCE_STEP && GUARD_AHEAD_US == WIRE_FENCE_AHEAD_US,
               "the guard counts as the scripts do");

/* All masters of the list. */
static quorum_mask everyone(const struct standing *standing)
{
    return (quorum_mask)((1u << standing->peers->len) - 1);
}

int standing_init(struct standing *standing, struct peers *peers, struct set *set,
                  struct founding *founding, const struct standing_events *events, void *cookie)
{
    const struct guard_config config = {
        .members = &set->seats.members,
        .max_ttl_ms = peers->max_ttl_ms,
        .drift = peers->drift,
        /* With the guard per vote a client trusts no clock that it has not watched. */
        .witnesses = peers->clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE,
    };

    standing->peers = peers;
    standing->set = set;
    standing->founding = founding;
    standing->queries.peers = peers;
    standing->queries.set = set;
    standing->queries.guard = &standing->guard;
    standing->events = events;
    standing->cookie = cookie;
    guard_init(&standing->guard, &config);
    standing->alarm.pos = ALARM_OFF;
    standing->hope_until = drift_add(env_now(peers->env), peers->connect_timeout);
    standing->tidy_at = DRIFT_NEVER;
    standing->connecting = peers->coming = everyone(standing);
    return alarm_reserve(&peers->env->alarms, 1);
}

/* ---- Reporting ---- */

/* Note why a master whose link is up has no vote.  Log it if it is news. */
static void tell(struct standing *standing, unsigned master, const struct reason *why, bool is_news)
{
    link_note(standing->peers->links[master], why);
    if (is_news)
        peers_warn(standing->peers, master, why);
}

bool standing_has_witnesses(const struct standing *standing, unsigned master)
{
    const struct guard *guard = &standing->guard;
    quorum_mask others = mask_without(members_all(guard->config.members), master);

    for (unsigned k = 0; others >> k != 0; k++)
        if (!guard->masters[k].linked)
            others = mask_without(others, k);
    return guard->config.witnesses &&
           members_decide(guard->config.members, others & (quorum_mask)~standing->refusing);
}

/* Why it is not over yet.  A master that was emptied looks like a new one. */
static enum why why_warming(const struct standing *standing, unsigned master, drift_span left)
{
    bool is_new = standing->guard.masters[master].look.high == 0;

    if (set_is_closed(standing->set))
        return WHY_SET_CLOSED;
    if (standing->forgotten)
        return WHY_FORGOTTEN;
    if (left > 0 && standing_has_witnesses(standing, master))
        return is_new ? WHY_WARMING_NEW : WHY_WARMING_KNOWN;
    if (left > 0)
        return is_new ? WHY_WATCHED_NEW : WHY_WATCHED_KNOWN;
    if (guard_floor(&standing->guard) == 0)
        return is_new ? WHY_COUNTERS_NEW : WHY_COUNTERS_KNOWN;
    return is_new ? WHY_ALONE_NEW : WHY_ALONE_KNOWN;
}

static void tell_of_warming(struct standing *standing, unsigned master, bool is_news,
                            drift_time now)
{
    drift_span left = guard_left(&standing->guard, master, now);
    struct reason why;

    reason_set(&why, why_warming(standing, master, left));
    if (left > 0)
        why.over_at = drift_add(now, left);
    tell(standing, master, &why, is_news);
}

/* Whether warming masters may vote again also depends on the others. */
static void tell_of_forgetting(struct standing *standing)
{
    bool forgotten = guard_has_forgotten(&standing->guard);

    if (forgotten == standing->forgotten)
        return;
    standing->forgotten = forgotten;
    for (unsigned m = 0; m < standing->peers->len; m++) {
        const struct guard_master *master = &standing->guard.masters[m];

        if (standing->linked & mask_of(m) && master->look.number != 0 && !master->look.ready)
            tell_of_warming(standing, m, forgotten, env_now(standing->peers->env));
    }
}

/* Report each master that has the epoch of another, until it has an epoch of its own. */
static void tell_of_twins(struct standing *standing)
{
    struct reason why;

    for (unsigned m = 0; m < standing->peers->len; m++) {
        unsigned twin = guard_twin(&standing->guard, m);
        bool has_one = twin < standing->peers->len;

        if (has_one == ((standing->twins & mask_of(m)) != 0))
            continue;
        standing->twins ^= mask_of(m);
        if (!has_one && !(standing->linked & mask_of(m) && standing->guard.masters[m].look.ready))
            continue; /* The note already says that it is down or warming. */
        reason_set(&why, has_one ? WHY_COPY : WHY_NONE);
        why.other = (uint8_t)twin;
        tell(standing, m, &why, has_one);
    }
}

/* The guard lets them vote, and they are members of the set.  Masters that were members get
 * releases. */
static quorum_mask may_take(const struct standing *standing)
{
    const struct set *set = standing->set;

    if (set->refused)
        return 0;
    return (guard_voters(&standing->guard) & set->told & (quorum_mask)~seats_denied(&set->seats)) |
           seats_leaving(&set->seats);
}

/* Masters that may become members soon: the set is being founded, or is being sent to them.  If a
 * master of the list is down, no set can be founded. */
static quorum_mask find_hopefuls(const struct standing *standing, drift_time now)
{
    const struct set *set = standing->set;
    quorum_mask here = standing->linked | standing->connecting;
    quorum_mask hopefuls = guard_hopefuls(&standing->guard, standing->connecting, now);
    bool founds = !standing->guard.passive && !standing->founding->refused;

    if (set_is_known(set))
        return hopefuls | (guard_voters(&standing->guard) & (quorum_mask)~set->told);
    if (founds && here == everyone(standing))
        return hopefuls | standing->linked;
    for (unsigned m = 0; m < standing->peers->len; m++) /* Its answer may show the set. */
        if (!standing->guard.masters[m].asked)
            hopefuls = mask_without(hopefuls, m);
    return hopefuls;
}

/* Find the masters that can be asked for locks now, and those that may be asked soon. */
static void find_masks(const struct standing *standing, drift_time now, quorum_mask *ret_up,
                       quorum_mask *ret_coming)
{

    *ret_up = standing->linked;
    *ret_coming = standing->connecting;
    if (standing->peers->restart_guard)
        *ret_up &= may_take(standing);
    if (standing->peers->restart_guard && now < standing->hope_until)
        *ret_coming |= find_hopefuls(standing, now);
    *ret_coming &=
        /* A bit that is cleared stays clear: a link has one first attempt. */
        standing->peers->coming;
}

/*
 * Update the masks that leases use, and notify the leases of each change.  anew: masters that the
 * leases must hear of even if their bits did not change.  Masters are updated one by one.  To a
 * lease, the notification says that its requests to this master are void.  So no lease may ask the
 * master before all were notified.
 */
static void update(struct standing *standing, quorum_mask anew)
{
    drift_time now = env_now(standing->peers->env);
    quorum_mask up, coming;

    tell_of_forgetting(standing);
    for (unsigned m = 0; m < standing->peers->len; m++) {
        /* Computed anew for each master: a lease that was notified may have filled a queue. */
        find_masks(standing, now, &up, &coming);
        if (!(((up ^ standing->peers->up) | (coming ^ standing->peers->coming) | anew) &
              mask_of(m)))
            continue;
        standing->peers->up =
            (quorum_mask)((standing->peers->up & ~mask_of(m)) | (up & mask_of(m)));
        standing->peers->coming =
            (quorum_mask)((standing->peers->coming & ~mask_of(m)) | (coming & mask_of(m)));
        standing->events->on_change(standing->cookie, m);
    }
}

/* Do what the guard decides. */
static void carry_out(struct standing *standing)
{
    drift_time now = env_now(standing->peers->env);
    struct guard_actions actions;

    if (!standing->peers->restart_guard || now == DRIFT_NEVER)
        return; /* Without a clock no master has been watched long enough. */
    if (standing->peers->env->deaf)
        return; /* A loop client that closes reads no answers.  A blocking client goes on. */
    standing->guard.version = standing->set->seats.now.version;
    guard_next(&standing->guard, now, &actions);
    for (unsigned m = 0; m < standing->peers->len; m++) {
        if (actions.install & mask_of(m))
            queries_install(&standing->queries, m, actions.floor, &actions.recalls[m]);
        else if (actions.look & mask_of(m))
            queries_look(&standing->queries, m);
        for (unsigned k = 0; actions.ask[m] >> k != 0; k++)
            if (actions.ask[m] & mask_of(k))
                queries_witness(&standing->queries, k, m, (actions.anew[m] & mask_of(k)) != 0);
    }
    if (now < standing->hope_until && standing->hope_until < actions.wake_at)
        actions.wake_at = standing->hope_until;
    if (standing->tidy_at < actions.wake_at)
        actions.wake_at = standing->tidy_at;
    alarm_set(&standing->peers->env->alarms, &standing->alarm, actions.wake_at);
}

/* ---- Events ---- */

void standing_on_link(struct standing *standing, unsigned master, bool up)
{
    bool guarded = standing->peers->restart_guard;
    enum why refusal = WHY_NONE;

    standing->events->on_new_epoch(standing->cookie, master);
    standing_on_room(standing, master, up);
    standing->peers->full &= (quorum_mask)~mask_of(master);
    standing->connecting &= (quorum_mask)~mask_of(master);
    set_on_link(standing->set, master);
    if (!up)
        set_on_fall(standing->set, master);
    if (guarded && up)
        refusal = handshake_refuses(link_info(standing->peers->links[master]));
    if (refusal != WHY_NONE) {
        link_relink_for(standing->peers->links[master], refusal);
        up = false;
    }
    guard_on_link(&standing->guard, master, up);
    tell_of_twins(standing);
    carry_out(standing);
    /* A master that was removed is up at once. */
    update(standing, guarded && up ? standing->peers->up & mask_of(master) : mask_of(master));
    founding_on_break(standing->founding, master);
}

void standing_on_room(struct standing *standing, unsigned master, bool room)
{
    if (!room) {
        standing->linked &= (quorum_mask)~mask_of(master);
        standing->peers->up &= (quorum_mask)~mask_of(master);
        standing->peers->full |= mask_of(master);
        return;
    }
    standing->peers->full &= (quorum_mask)~mask_of(master);
    standing->linked |= mask_of(master);
    if (!standing->peers->restart_guard || (may_take(standing) & mask_of(master)) != 0)
        standing->peers->up |= mask_of(master);
}

/* Why a master that belongs to no set may not vote.  NONE: it belongs to one. */
static void missing_set(const struct standing *standing, unsigned master, struct reason *ret_why)
{
    const struct founding *founding = standing->founding;

    if (standing->guard.passive || !(standing->set->none & mask_of(master)))
        reason_set(ret_why, WHY_NONE);
    else if (set_is_known(standing->set))
        reason_set(ret_why, set_is_closed(standing->set) ? WHY_SET_CLOSED : WHY_UNTOLD);
    else if (founding->refused && founding->founder.other.master == master)
        *ret_why = founding->why;
    else
        reason_set(ret_why, WHY_UNFOUNDED);
}

/* Query the markers again, because the set has become known, or has changed. */
static void look_at_all_again(struct standing *standing)
{
    for (unsigned m = 0; m < standing->peers->len; m++)
        guard_look_again(&standing->guard, m);
}

/* Forget what was known of the masters with these numbers. */
static void forget(struct standing *standing, quorum_mask left)
{
    struct peers *peers = standing->peers;

    peers->up &= (quorum_mask)~left;
    peers->coming &= (quorum_mask)~left;
    peers->full &= (quorum_mask)~left;
    standing->linked &= (quorum_mask)~left;
    standing->connecting &= (quorum_mask)~left;
    standing->twins &= (quorum_mask)~left;
    standing->refusing &= (quorum_mask)~left;
    set_on_left(standing->set, left);
    for (unsigned m = 0; left >> m != 0; m++)
        if (left & mask_of(m))
            standing->states[m][0] = '\0';
}

/* Leases wait for new members as they do for those of the list. */
static void expect(struct standing *standing, quorum_mask opened)
{
    struct peers *peers = standing->peers;

    if (opened == 0)
        return;
    standing->connecting |= opened;
    peers->coming |= opened;
    standing->hope_until = drift_add(env_now(peers->env), peers->connect_timeout);
}

/* All hear of the change before any further event. */
static void on_set(struct standing *standing, const struct seats_change *change)
{
    forget(standing, change->closed);
    expect(standing, change->opened);
    guard_on_change(&standing->guard, change->closed);
    if (change->config)
        standing->tidy_at = 0; /* The alarm finds out when. */
    standing->events->on_set(standing->cookie, change);
    look_at_all_again(standing);
}

static bool is_news(const struct seats_change *change)
{
    return change->config || (change->opened | change->closed) != 0;
}

/* Numbers that were counted under the text before are judged before it is forgotten. */
static void take_state(struct standing *standing, unsigned master, const struct answer_set *set)
{
    char state[WIRE_STATE_MAX + 1];

    (void)snprintf(state, sizeof state, "%.*s", (int)set->state_len,
                   set->state != NULL ? set->state : "");
    if (strcmp(state, standing->states[master]) != 0)
        standing->events->on_new_state(standing->cookie, master);
    memcpy(standing->states[master], state, sizeof state);
}

/* Read what a master says of itself and of its set.  False: its link was taken down, and nothing
 * is kept of what it says of itself. */
static bool take_look(struct standing *standing, unsigned master, const struct reply *reply,
                      struct guard_look *ret_look, struct answer_set *ret_set)
{
    struct link *link = standing->peers->links[master];
    struct seats_change change;
    struct reason why;
    bool is_good;

    reason_set(&why, WHY_NONE);
    if (answer_look(reply, ret_look, ret_set))
        reason_set(&why, queries_check(&standing->queries, master, ret_set));
    else if (reply->type == REPLY_ERROR)
        redis_error_reason(&why, reply->text);
    else
        answer_look_fault(reply, &why);
    if (why.why != WHY_NONE) {
        reason_answers(&why, AT_MARKER);
        link_relink(link, &why);
        return false;
    }
    is_good = set_on_look(standing->set, master, ret_set, &why, &change);
    if (ret_set->set != standing->set->seats.now.set)
        ret_look->told = (struct recall_told){.is_foreign = ret_set->set != 0};
    if (is_good)
        take_state(standing, master, ret_set);
    if (is_news(&change))
        on_set(standing, &change);
    if (change.closed & mask_of(master))
        return false; /* Another master has its number. */
    if (!is_good)
        link_relink(link, &why);
    return is_good;
}

/* A member that said that it is in no set, or has a smaller version, is sent the newest at once. */
static bool is_to_be_told(const struct standing *standing, unsigned master)
{
    const struct set *set = standing->set;

    return !standing->guard.passive && (set_uninformed(set) & mask_of(master)) != 0 &&
           !(set->claimed & mask_of(master));
}

void standing_on_look(struct standing *standing, unsigned master, const struct reply *reply)
{
    const struct guard_look before = standing->guard.masters[master].look;
    drift_time now = env_now(standing->peers->env);
    struct guard_look look;
    struct answer_set set;
    struct reason missing;

    if (!take_look(standing, master, reply, &look, &set)) {
        carry_out(standing);
        update(standing, 0);
        return;
    }
    if (look.number != before.number)
        standing->events->on_new_epoch(standing->cookie,
                                       /* Votes that were held back belong to the old epoch. */
                                       master);
    queries_on_look(&standing->queries, master, &set);
    guard_on_look(&standing->guard, master, &look, now);
    missing_set(standing, master, &missing);
    if (!(standing->twins & mask_of(master)))
        link_note(standing->peers->links[master], &missing);
    if (is_to_be_told(standing, master))
        guard_look_again(&standing->guard, master);
    tell_of_twins(standing);
    carry_out(standing);
    missing_set(standing, master, &missing);
    if (!look.ready && missing.why == WHY_NONE)
        tell_of_warming(standing, master, look.number != before.number, now);
    update(standing, look.number != before.number ? mask_of(master) : 0);
    standing->events->on_read(standing->cookie, master);
    if (!standing->guard.passive)
        founding_on_look(standing->founding, master);
}

void standing_on_founding(struct standing *standing, const struct seats_change *change)
{
    on_set(standing, change);
    carry_out(standing);
    update(standing, 0);
}

void standing_watch(struct standing *standing, const struct config *newest,
                    const struct members *members, quorum_mask guests)
{
    standing->set->seats.now = *newest;
    standing->set->seats.members = *members;
    standing->guard.guests = guests;
    guard_on_change(&standing->guard, 0);
    look_at_all_again(standing);
    carry_out(standing);
    update(standing, 0);
}

void standing_on_refusal(struct standing *standing, unsigned master)
{
    link_note(standing->peers->links[master], &standing->founding->why);
    guard_look_again(&standing->guard, master);
    carry_out(standing);
    update(standing, 0);
}

void standing_look_again(struct standing *standing, unsigned master)
{
    guard_look_again(&standing->guard, master);
    carry_out(standing);
}

uint64_t standing_version(const struct standing *standing)
{
    return standing->set->seats.now.version;
}

/* A master may refuse to be a witness: its user has no right to the key, say.  Then the client
 * watches by itself. */
void standing_on_witness(struct standing *standing, unsigned master, const struct ask *ask,
                         const struct reply *reply)
{
    const struct guard_ask asked = queries_asked(ask);
    const struct guard_master *warming = &standing->guard.masters[asked.master];
    drift_time now = env_now(standing->peers->env);
    int64_t age_ms = -1;
    char words[REASON_TEXT_MAX];
    struct reason why;

    if (!answer_witness(reply, &age_ms) && !(standing->refusing & mask_of(master))) {
        standing->refusing |= mask_of(master);
        reply_reason(reply, &why);
        (void)reason_write(&why, now, words, sizeof words);
        reason_quote(&why, WHY_NO_WITNESS, words, NULL);
        peers_warn(standing->peers, master, &why);
    }
    guard_on_age(&standing->guard, master, &asked, age_ms, now);
    carry_out(standing);
    if (warming->linked && !warming->look.ready && warming->look.number == asked.nonce)
        tell_of_warming(standing, asked.master, false, now);
    update(standing, 0);
}

void standing_on_step(struct standing *standing, unsigned master)
{
    if (!standing->peers->restart_guard || !standing->guard.config.witnesses)
        return;
    guard_on_step(&standing->guard, master);
    carry_out(standing);
    update(standing, 0);
}

/* Masters that were removed long enough ago lose their links. */
static void tidy(struct standing *standing)
{
    drift_time now = env_now(standing->peers->env);
    struct seats_change change = {.config = false};

    if (now < standing->tidy_at)
        return;
    standing->tidy_at = seats_tidy(&standing->set->seats, now, &change);
    if (is_news(&change))
        on_set(standing, &change);
}

/* A new member to which no link could be made is not waited for. */
static void give_up(struct standing *standing)
{
    for (unsigned m = 0; m < standing->peers->len; m++)
        if (standing->peers->links[m] == NULL)
            standing->connecting = mask_without(standing->connecting, m);
}

void standing_on_alarm(struct standing *standing)
{
    tidy(standing);
    if (env_now(standing->peers->env) >= standing->hope_until)
        give_up(standing);
    carry_out(standing);
    update(standing, 0);
}
