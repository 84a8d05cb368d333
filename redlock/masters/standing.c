/*
 * standing.c - reads the markers of masters and keeps the masks of those that may vote.
 */
#include "redlock/masters/standing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redlock/wire/reply.h"
#include "redlock/masters/peers.h"
#include "redlock/wire/answer.h"

_Static_assert(GUARD_HIGH_STEP == WIRE_FENCE_STEP && GUARD_AHEAD_US == WIRE_FENCE_AHEAD_US,
               "the guard counts as the scripts do");

int standing_init(struct standing *standing, struct peers *peers,
                  const struct standing_events *events, void *cookie)
{
    const struct guard_config config = {
        .members = &peers->members,
        .max_ttl_ms = peers->max_ttl_ms,
        .drift = peers->drift,
        /* With the guard per vote a client trusts no clock that it has not watched. */
        .witnesses = peers->clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE,
    };

    standing->peers = peers;
    standing->events = events;
    standing->cookie = cookie;
    guard_init(&standing->guard, &config);
    standing->alarm.pos = ALARM_OFF;
    standing->hope_until = drift_add(env_now(peers->env), peers->connect_timeout);
    standing->connecting = peers->coming = members_all(&peers->members);
    return alarm_reserve(&peers->env->alarms, 1);
}

/* ---- Reading markers ---- */

/* A random number of 64 bits, never 0.  Two draws make a repetition practically impossible. */
static void write_random(struct env *env, char digits[WIRE_NUMBER + 1])
{
    uint64_t number = (uint64_t)env_random(env) << 32 | env_random(env);

    (void)snprintf(digits, WIRE_NUMBER + 1, "%016" PRIx64, number == 0 ? 1 : number);
}

/* Read the marker.  floor: 0, or the value with which to give the master an epoch.  It gets the
 * epoch only if it still has the nonce that the last read saw. */
static void send_look(struct standing *standing, unsigned master, uint64_t floor)
{
    struct peers *peers = standing->peers;
    const struct master_info *info = link_info(peers->links[master]);
    const struct ask ask = {.what = WHAT_LOOK, .flags = ASK_LOOK};
    char random[WIRE_NUMBER + 1], nonce[WIRE_NUMBER + 1] = "";
    struct wire_look look = {
        .id = info->run_id, /* Not the replid, which changes when the first replica connects. */
        .keeps = handshake_keeps(info),
        .is_known = standing->guard.seen_epoch && !standing->guard.passive,
        .max_ttl_ms = peers->max_ttl_ms,
        .random = random,
        .nonce = nonce,
        .masters = standing->guard.passive ? 0 : peers->len,
        .floor = floor,
    };

    write_random(peers->env, random);
    if (floor != 0)
        (void)snprintf(nonce, sizeof nonce, "%016" PRIx64,
                       standing->guard.masters[master].look.number);
    link_send(peers->links[master], &ask, peers->scratch, wire_look(peers->scratch, &look));
}

/* Ask a master how old the nonce of a warming master is.  The ask carries a struct guard_ask. */
static void send_witness(struct standing *standing, unsigned master, unsigned warming, bool anew)
{
    struct peers *peers = standing->peers;
    const struct guard *guard = &standing->guard;
    uint64_t nonce = guard->masters[warming].look.number;
    const struct ask ask = {
        .slot = (uint32_t)nonce,
        .serial = (uint32_t)(nonce >> 32),
        .number = (uint32_t)guard->masters[master].steps << 16 | warming,
        .what = WHAT_WITNESS,
        .flags = ASK_LIFE,
    };
    enum wire_witness mode = guard->passive ? WIRE_WITNESS_READ
                             : anew         ? WIRE_WITNESS_ANEW
                                            : WIRE_WITNESS_KEEP;

    link_send(peers->links[master], &ask, peers->scratch,
              wire_witness(peers->scratch, mode, nonce, link_info(peers->links[warming])->run_id));
}

static struct guard_ask asked_of(const struct ask *ask)
{
    return (struct guard_ask){
        .master = ask->number & 0xffff,
        .nonce = (uint64_t)ask->serial << 32 | ask->slot,
        .steps = (uint16_t)(ask->number >> 16),
    };
}

/* ---- Reporting ---- */

/* Note why a master whose link is up has no vote.  Log it if it is news. */
static void tell(struct standing *standing, unsigned master, const char *text, bool is_news)
{
    link_note(standing->peers->links[master], text);
    if (is_news)
        peers_warn(standing->peers, master, text);
}

static void tell_of_warming(struct standing *standing, unsigned master, bool is_news,
                            drift_time now)
{
    drift_span left = guard_left(&standing->guard, master, now);
    char text[160];

    if (left > 0)
        (void)snprintf(
            text, sizeof text,
            "is warming up: it may have lost its data, and must be watched for at most %.1f s "
            "more",
            (double)left / (double)DRIFT_S);
    else if (guard_floor(&standing->guard) == 0)
        (void)snprintf(text, sizeof text,
                       "is warming up: it may have lost its data, and the fencing counters of "
                       "the others are days ahead of the clocks");
    else
        (void)snprintf(text, sizeof text,
                       "is warming up: it may have lost its data, and too few of the "
                       "others can be asked whether it may vote");
    tell(standing, master, text, is_news);
}

/* Report each master that has the epoch of another, until it has an epoch of its own. */
static void tell_of_twins(struct standing *standing)
{
    char text[128];

    for (unsigned m = 0; m < standing->peers->len; m++) {
        unsigned twin = guard_twin(&standing->guard, m);
        bool has_one = twin < standing->peers->len;

        if (has_one == ((standing->twins & mask_of(m)) != 0))
            continue;
        standing->twins ^= mask_of(m);
        if (!has_one && !(standing->linked & mask_of(m) && standing->guard.masters[m].look.ready))
            continue; /* The note already says that it is down or warming. */
        text[0] = '\0';
        if (has_one)
            (void)snprintf(text, sizeof text,
                           "has the same epoch as master %u: the data of one are a copy, and "
                           "must be emptied (redlock doctor)",
                           twin + 1);
        tell(standing, m, text, has_one);
    }
}

/* Find the masters that can be asked for locks now, and those that may be asked soon. */
static void find_masks(const struct standing *standing, drift_time now, quorum_mask *ret_up,
                       quorum_mask *ret_coming)
{

    *ret_up = standing->linked;
    *ret_coming = standing->connecting;
    if (standing->peers->restart_guard)
        *ret_up &= guard_voters(&standing->guard);
    if (standing->peers->restart_guard && now < standing->hope_until)
        *ret_coming |= guard_hopefuls(&standing->guard, standing->connecting, now);
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
    guard_next(&standing->guard, now, &actions);
    for (unsigned m = 0; m < standing->peers->len; m++) {
        if (actions.look & mask_of(m))
            send_look(standing, m, actions.install & mask_of(m) ? actions.floor : 0);
        for (unsigned k = 0; actions.ask[m] >> k != 0; k++)
            if (actions.ask[m] & mask_of(k))
                send_witness(standing, k, m, (actions.anew[m] & mask_of(k)) != 0);
    }
    if (now < standing->hope_until && standing->hope_until < actions.wake_at)
        actions.wake_at = standing->hope_until;
    alarm_set(&standing->peers->env->alarms, &standing->alarm, actions.wake_at);
}

/* ---- Events ---- */

void standing_on_link(struct standing *standing, unsigned master, bool up)
{
    bool guarded = standing->peers->restart_guard;

    standing->events->on_new_epoch(standing->cookie, master);
    standing_on_room(standing, master, up);
    standing->peers->full &= (quorum_mask)~mask_of(master);
    standing->connecting &= (quorum_mask)~mask_of(master);
    if (guarded && up && !handshake_is_known(link_info(standing->peers->links[master]))) {
        link_relink(standing->peers->links[master],
                    "INFO tells no run_id, which the restart guard needs");
        up = false;
    }
    guard_on_link(&standing->guard, master, up);
    tell_of_twins(standing);
    carry_out(standing);
    update(standing, guarded && up ? 0 : mask_of(master));
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
    if (!standing->peers->restart_guard || (guard_voters(&standing->guard) & mask_of(master)) != 0)
        standing->peers->up |= mask_of(master);
}

/* Say why an answer is not a marker. */
static void explain(const struct standing *standing, const struct reply *reply, char *text,
                    size_t size)
{
    bool is_other = reply->type == REPLY_TEXT && strncmp(reply->text, "other ", 6) == 0;

    if (is_other)
        (void)snprintf(text, size, "is one of %.2s masters to other clients, and one of %u here",
                       reply->text + 6, standing->peers->len);
    else
        (void)snprintf(text, size, "restart guard: %s",
                       reply->type == REPLY_ERROR ? reply->text : "answered with garbage");
}

void standing_on_look(struct standing *standing, unsigned master, const struct reply *reply)
{
    const struct guard_look before = standing->guard.masters[master].look;
    drift_time now = env_now(standing->peers->env);
    struct guard_look look;
    char text[160];

    if (!answer_look(reply, &look)) {
        explain(standing, reply, text, sizeof text);
        link_relink(standing->peers->links[master], text);
        return;
    }
    if (look.number != before.number)
        standing->events->on_new_epoch(standing->cookie,
                                       /* Votes that were held back belong to the old epoch. */
                                       master);
    guard_on_look(&standing->guard, master, &look, now);
    if (look.ready) {
        (void)snprintf(standing->epochs[master], sizeof standing->epochs[master], "%016" PRIx64,
                       look.number);
        if (!(standing->twins & mask_of(master)))
            link_note(standing->peers->links[master], "");
    }
    tell_of_twins(standing);
    carry_out(standing);
    if (!look.ready)
        tell_of_warming(standing, master, look.number != before.number, now);
    update(standing, look.number != before.number ? mask_of(master) : 0);
}

/* A master may refuse to be a witness: its user has no right to the key, say.  Then the client
 * watches by itself. */
void standing_on_witness(struct standing *standing, unsigned master, const struct ask *ask,
                         const struct reply *reply)
{
    const struct guard_ask asked = asked_of(ask);
    const struct guard_master *warming = &standing->guard.masters[asked.master];
    drift_time now = env_now(standing->peers->env);
    int64_t age_ms = -1;
    char text[160];

    if (!answer_witness(reply, &age_ms) && !(standing->refusing & mask_of(master))) {
        standing->refusing |= mask_of(master);
        (void)snprintf(text, sizeof text,
                       "cannot tell how long other masters have been warming: %s",
                       reply->type == REPLY_ERROR ? reply->text : "answered with garbage");
        peers_warn(standing->peers, master, text);
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

void standing_on_alarm(struct standing *standing)
{
    carry_out(standing);
    update(standing, 0);
}
