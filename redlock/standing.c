/*
 * standing.c - looks sent, markers read, masks kept.
 */
#include "redlock/standing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/client.h"
#include "redlock/handshake.h"
#include "redlock/keys.h"
#include "redlock/loop.h"

_Static_assert(GUARD_HIGH_STEP == WIRE_FENCE_STEP && GUARD_AHEAD_US == WIRE_FENCE_AHEAD_US,
               "the guard counts as the scripts do");

static quorum_mask bit(unsigned master)
{
    return (quorum_mask)(1u << master);
}

int standing_init(struct redlock *rl)
{
    const struct guard_config config = {
        .masters = rl->options.masters_len,
        .max_ttl_ms = rl->options.max_ttl_ms,
        .drift = rl->options.drift,
    };

    guard_init(&rl->standing.guard, &config);
    rl->standing.alarm.pos = ALARM_OFF;
    rl->standing.hope_until = drift_add(loop_now(rl->loop), rl->options.connect_timeout);
    rl->standing.connecting = rl->coming = (quorum_mask)((1u << config.masters) - 1);
    return alarm_reserve(&rl->alarms, 1);
}

/* ---- Looks ---- */

/* Two draws: nobody else ever draws the same. */
static void write_random(struct redlock *rl, char digits[WIRE_NUMBER + 1])
{
    uint64_t number = (uint64_t)client_random(rl) << 32 | client_random(rl);

    (void)snprintf(digits, WIRE_NUMBER + 1, "%016" PRIx64, number == 0 ? 1 : number);
}

/* floor: 0, or to give it an epoch, if it still has the nonce that was seen. */
static void send_look(struct redlock *rl, unsigned master, uint64_t floor)
{
    const struct standing *standing = &rl->standing;
    const struct master_info *info = master_info(rl->masters[master]);
    const struct master_ask ask = {.command = MASTER_LOOK};
    char random[WIRE_NUMBER + 1], nonce[WIRE_NUMBER + 1] = "";
    struct wire_look look = {
        .id = info->run_id, /* Not its replid, which a first replica changes. */
        .keeps = handshake_keeps(info),
        .is_known = standing->guard.seen_epoch && !standing->guard.passive,
        .max_ttl_ms = rl->options.max_ttl_ms,
        .random = random,
        .nonce = nonce,
        .masters = standing->guard.passive ? 0 : rl->options.masters_len,
        .floor = floor,
    };

    write_random(rl, random);
    if (floor != 0)
        (void)snprintf(nonce, sizeof nonce, "%016" PRIx64,
                       standing->guard.masters[master].look.number);
    master_send(rl->masters[master], &ask, rl->scratch, wire_look(rl->scratch, &look));
}

/* A number of 16 digits, but 0; what comes behind it, or NULL. */
static const char *parse_number(const char *p, uint64_t *ret_number)
{
    if (strspn(p, "0123456789abcdef") != WIRE_NUMBER)
        return NULL;
    *ret_number = strtoull(p, NULL, 16);
    return *ret_number != 0 ? p + WIRE_NUMBER : NULL;
}

#define COUNT_DIGITS_MAX 19 /* Of any: what strtoull() can take. */

/* A decimal number; what comes behind it, or NULL. */
static const char *parse_digits(const char *p, uint64_t max, uint64_t *ret_count)
{
    size_t digits = strspn(p, "0123456789");

    if (digits == 0 || digits > COUNT_DIGITS_MAX)
        return NULL;
    *ret_count = strtoull(p, NULL, 10);
    return *ret_count <= max ? p + digits : NULL;
}

/* A space and a decimal number; what comes behind them, or NULL.  p: likewise. */
static const char *parse_count(const char *p, uint64_t max, uint64_t *ret_count)
{
    return p != NULL && p[0] == ' ' ? parse_digits(p + 1, max, ret_count) : NULL;
}

bool standing_parse_max(const char *text, uint32_t *ret_max_ttl_ms)
{
    uint64_t max_ttl_ms;
    const char *end = parse_digits(text, WIRE_TTL_MAX_MS, &max_ttl_ms);

    if (end == NULL || *end != '\0')
        return false;
    *ret_max_ttl_ms = (uint32_t)max_ttl_ms;
    return true;
}

bool standing_parse(const struct reply *reply, struct guard_look *ret_look)
{
    struct guard_look look = {.ready = false};
    uint64_t max_ttl_ms = 0, fresh = 0, age_ms;
    const char *p;

    if (reply->type != REPLY_TEXT)
        return false;
    look.ready = strncmp(reply->text, "ready ", 6) == 0;
    if (!look.ready && strncmp(reply->text, "warming ", 8) != 0)
        return false;
    p = parse_number(reply->text + (look.ready ? 6 : 8), &look.number);
    p = parse_count(p, WIRE_TTL_MAX_MS, &max_ttl_ms);
    if (!look.ready)
        p = parse_count(parse_count(p, 1, &fresh), UINT64_MAX, &age_ms);
    else
        p = parse_count(p, QUORUM_FENCE_MAX, &look.floor);
    p = parse_count(p, UINT64_MAX, &look.high);
    p = parse_count(p, QUORUM_FENCE_MAX, &look.time_us);
    if (p == NULL || *p != '\0')
        return false;
    look.max_ttl_ms = (uint32_t)max_ttl_ms;
    look.fresh = fresh == 1;
    *ret_look = look;
    return true;
}

/* ---- Telling ---- */

/* Of a master that is up, and why it has no vote; it is logged when it is news. */
static void tell(struct redlock *rl, unsigned master, const char *text, bool is_news)
{
    master_note(rl->masters[master], text);
    if (is_news)
        client_log(rl, REDLOCK_LOG_WARNING, "master %u (%s): %s", master + 1,
                   master_name(rl->masters[master]), text);
}

static void tell_of_warming(struct redlock *rl, unsigned master, bool is_news, drift_time now)
{
    struct standing *standing = &rl->standing;
    drift_span left = guard_left(&standing->guard, master, now);
    char text[128];

    if (left > 0)
        (void)snprintf(text, sizeof text, "is warming up: it has no memory, and may vote in %.1f s",
                       (double)left / (double)DRIFT_S);
    else if (guard_floor(&standing->guard) == 0)
        (void)snprintf(text, sizeof text,
                       "is warming up: it has no memory, and the fencing counters of "
                       "the others are days ahead of the clocks");
    else
        (void)snprintf(text, sizeof text,
                       "is warming up: it has no memory, and too few of the "
                       "others can be asked whether it may vote");
    tell(rl, master, text, is_news);
}

/* Of each that has the epoch of another, and until it has one of its own. */
static void tell_of_twins(struct redlock *rl)
{
    struct standing *standing = &rl->standing;
    char text[128];

    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        unsigned twin = guard_twin(&standing->guard, m);
        bool has_one = twin < rl->options.masters_len;

        if (has_one == ((standing->twins & bit(m)) != 0))
            continue;
        standing->twins ^= bit(m);
        if (!has_one && !(standing->linked & bit(m) && standing->guard.masters[m].look.ready))
            continue; /* That it is down or warming is what there is to tell. */
        text[0] = '\0';
        if (has_one)
            (void)snprintf(text, sizeof text,
                           "has the same epoch as master %u: the data of one are a copy, and "
                           "must be emptied (redlock doctor)",
                           twin + 1);
        tell(rl, m, text, has_one);
    }
}

/* Masters that can be asked for locks, and those that may soon be. */
static void find_masks(const struct redlock *rl, drift_time now, quorum_mask *ret_up,
                       quorum_mask *ret_coming)
{
    const struct standing *standing = &rl->standing;

    *ret_up = standing->linked;
    *ret_coming = standing->connecting;
    if (rl->options.restart_guard)
        *ret_up &= guard_voters(&standing->guard);
    if (rl->options.restart_guard && now < standing->hope_until)
        *ret_coming |= guard_hopefuls(&standing->guard, standing->connecting);
    *ret_coming &= rl->coming; /* Only of the first attempt, which never comes again. */
}

/*
 * The masks that the leases go by, who are told of what changed.  anew: masters
 * of which they must hear even if their bits are what they were.  One after the
 * other: to a lease it means that what it has asked of this master is void, so
 * none may be asked before it is told of.
 */
static void update(struct redlock *rl, quorum_mask anew)
{
    drift_time now = loop_now(rl->loop);
    quorum_mask up, coming;

    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        find_masks(rl, now, &up, &coming); /* Whoever was told may have filled a queue. */
        if (!(((up ^ rl->up) | (coming ^ rl->coming) | anew) & bit(m)))
            continue;
        rl->up = (quorum_mask)((rl->up & ~bit(m)) | (up & bit(m)));
        rl->coming = (quorum_mask)((rl->coming & ~bit(m)) | (coming & bit(m)));
        client_tell_leases(rl, m);
    }
}

/* Do what the guard says. */
static void carry_out(struct redlock *rl)
{
    struct standing *standing = &rl->standing;
    drift_time now = loop_now(rl->loop);
    struct guard_actions actions;

    if (!rl->options.restart_guard || now == DRIFT_NEVER)
        return; /* Without a clock nobody has been watched long enough. */
    if (rl->closing && rl->blocking == NULL)
        return; /* A blocking client may still wait for a master to take a release. */
    guard_next(&standing->guard, now, &actions);
    for (unsigned m = 0; m < rl->options.masters_len; m++)
        if (actions.look & bit(m))
            send_look(rl, m, actions.install & bit(m) ? actions.floor : 0);
    if (now < standing->hope_until && standing->hope_until < actions.wake_at)
        actions.wake_at = standing->hope_until;
    alarm_set(&rl->alarms, &standing->alarm, actions.wake_at);
}

/* ---- Events ---- */

void standing_on_link(struct redlock *rl, unsigned master, bool up)
{
    struct standing *standing = &rl->standing;
    bool guarded = rl->options.restart_guard;

    proof_forget(rl, master);
    standing_on_room(rl, master, up);
    standing->connecting &= (quorum_mask)~bit(master);
    if (guarded && up && !handshake_is_known(master_info(rl->masters[master]))) {
        master_relink(rl->masters[master], "INFO tells no run_id, which the restart guard needs");
        up = false;
    }
    guard_on_link(&standing->guard, master, up);
    tell_of_twins(rl);
    carry_out(rl);
    update(rl, guarded && up ? 0 : bit(master));
}

void standing_on_room(struct redlock *rl, unsigned master, bool room)
{
    struct standing *standing = &rl->standing;

    if (!room) {
        standing->linked &= (quorum_mask)~bit(master);
        rl->up &= (quorum_mask)~bit(master);
        return;
    }
    standing->linked |= bit(master);
    if (!rl->options.restart_guard || (guard_voters(&standing->guard) & bit(master)) != 0)
        rl->up |= bit(master);
}

/* Why an answer to a look is no look. */
static void explain(const struct redlock *rl, const struct reply *reply, char *text, size_t size)
{
    bool is_other = reply->type == REPLY_TEXT && strncmp(reply->text, "other ", 6) == 0;

    if (is_other)
        (void)snprintf(text, size, "is one of %.2s masters to other clients, and one of %u here",
                       reply->text + 6, rl->options.masters_len);
    else
        (void)snprintf(text, size, "restart guard: %s",
                       reply->type == REPLY_ERROR ? reply->text : "answered with garbage");
}

void standing_on_look(struct redlock *rl, unsigned master, const struct reply *reply)
{
    struct standing *standing = &rl->standing;
    const struct guard_look before = standing->guard.masters[master].look;
    drift_time now = loop_now(rl->loop);
    struct guard_look look;
    char text[128];

    if (!standing_parse(reply, &look)) {
        explain(rl, reply, text, sizeof text);
        master_relink(rl->masters[master], text);
        return;
    }
    if (look.number != before.number)
        proof_forget(rl, master); /* What it voted for had another epoch. */
    guard_on_look(&standing->guard, master, &look, now);
    if (look.ready) {
        (void)snprintf(standing->epochs[master], sizeof standing->epochs[master], "%016" PRIx64,
                       look.number);
        if (!(standing->twins & bit(master)))
            master_note(rl->masters[master], "");
    }
    tell_of_twins(rl);
    carry_out(rl);
    if (!look.ready)
        tell_of_warming(rl, master, look.number != before.number, now);
    update(rl, look.number != before.number ? bit(master) : 0);
}

void standing_on_alarm(struct redlock *rl)
{
    carry_out(rl);
    update(rl, 0);
}
