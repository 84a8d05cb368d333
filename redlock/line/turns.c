/*
 * turns.c - which fair lease begins a round because masters told that it is its turn.
 *
 * Rules
 * - A message names one waiter, and wakes that one alone, however many wait in this client.
 * - Messages that came before a subscription was confirmed are lost.  So each confirmation counts
 *   as one, for the first waiter of each name: of one client's waiters only the first can be the
 *   first of all.
 * - A lost message costs the time up to the next heartbeat.
 * - "granted" is the vote of a master that passed the lock on (quorum.c, rule 13).  If the
 *   vote does not count, the message still tells whose turn it is: the token may have been given
 *   back just before, and no other message follows.
 * - The heartbeats of one client go together: in one packet and with one proof for each master,
 *   however many leases wait.  So the first that is due takes along those that are due soon.
 */
#include "redlock/line/turns.h"

#include <string.h>

#include "redlock/core/place.h"
#include "redlock/lease/lease.h"
#include "redlock/lease/table.h"
#include "redlock/wire/granted.h"

static struct place *place_of(const struct redlock_lease *lease)
{
    return lease_extra(lease);
}

static bool is_due(const struct channels *channels, const struct redlock_lease *lease)
{
    return lease->q.state == QUORUM_PAUSING &&
           place_is_due(place_of(lease), channels->masters->peers.up);
}

/* ---- Waiting ---- */

/* The channel stays while the lease waits. */
void turns_on_pause(struct channel *channel, const struct redlock_lease *lease)
{
    channel->over_at = DRIFT_NEVER;
    channel_subscribe_refused(channel);
    if (is_due(channel->all, lease))
        channel_ring_soon(channel);
}

/* The other heartbeats of the client follow when the channels ring, which is soon. */
static void gather(struct channels *channels)
{
    channels->gathers = true;
    for (uint32_t i = 0; i < channels->room; i++)
        for (struct channel *channel = channels->table[i]; channel != NULL; channel = channel->next)
            if (channel->fair != NULL)
                channel_ring_soon(channel);
}

void turns_on_round(struct channels *channels, struct redlock_lease *lease)
{
    place_on_round(place_of(lease));
    if (!channels->gathers)
        gather(channels);
}

void turns_join(struct channel *channel, struct redlock_lease *lease)
{
    lease->next = channel->fair;
    channel->fair = lease;
    lease->waits = true;
    channel_want_own(channel->all, place_of(lease)->waiter);
    if (lease->q.state == QUORUM_PAUSING)
        turns_on_pause(channel, lease);
}

bool turns_may_be_queued(const struct redlock_lease *lease)
{
    return place_of(lease)->asked != 0;
}

/* ---- Beginning rounds ---- */

/* This round gathers no others. */
static void begin(struct channels *channels, struct redlock_lease *lease)
{
    bool gathers = channels->gathers;

    channels->gathers = true;
    place_on_round(place_of(lease)); /* The round may fail at once. */
    lease_wake(lease, 0);
    channels->gathers = gathers;
}

/* The heartbeat of the lease goes together with one that has just begun. */
static bool joins(const struct channels *channels, const struct redlock_lease *lease,
                  drift_time now)
{
    return channels->gathers && lease->q.state == QUORUM_PAUSING &&
           lease->q.timeout < quorum_give_up(&lease->q) &&
           place_joins(lease->q.timeout, now,
                       lease->q.config.pause_max - lease->q.config.pause_min);
}

/* Others wait behind these leases, so they do not wait for the end of the loop's turn. */
void turns_call(struct channel *channel, drift_time now)
{
    struct redlock_lease *lease = channel->fair, *next;
    bool any = false;

    for (; lease != NULL; lease = next) {
        next = lease->next; /* A step takes out no other lease. */
        if (!is_due(channel->all, lease) && !joins(channel->all, lease, now))
            continue;
        begin(channel->all, lease);
        any = true;
    }
    if (any)
        channel_write(channel->all);
}

/* ---- News ---- */

static void name_first(struct channel *channel, unsigned master)
{
    struct place *first = NULL;

    for (struct redlock_lease *lease = channel->fair; lease != NULL; lease = lease->next)
        if (first == NULL || place_is_before(place_of(lease), first))
            first = place_of(lease);
    if (first != NULL)
        place_on_named(first, master);
}

void turns_on_hears(struct channel *channel, unsigned master)
{
    name_first(channel, master);
}

void turns_on_hears_own(struct channels *channels, unsigned master)
{
    channel_hears_own(channels, master, true);
    for (uint32_t i = 0; i < channels->room; i++)
        for (struct channel *channel = channels->table[i]; channel != NULL;
             channel = channel->next) {
            name_first(channel, master);
            if (channel->fair != NULL)
                channel_ring_soon(channel);
        }
}

/* The announcer speaks for all masters to fair leases, too. */
void turns_on_free(struct channel *channel, unsigned master)
{
    quorum_mask of = wait_speaks_for(&channel->wait, master);

    for (unsigned m = 0; m < channel->all->masters->peers.len; m++)
        if (of & mask_of(m))
            name_first(channel, m);
}

/* The lease may be gone, or may have the lock already. */
static struct redlock_lease *find(const struct channels *channels, const struct leases *leases,
                                  const char *waiter)
{
    struct redlock_lease *lease;
    uint32_t slot, serial;

    if (!place_read_name(waiter, channels->own + WIRE_CLIENT_LEN, &slot, &serial))
        return NULL;
    lease = table_find(leases, slot, serial);
    return lease != NULL && lease->waits && lease_kind(lease)->queued ? lease : NULL;
}

/* True if the vote counts. */
static bool is_good(const struct redlock_lease *lease, unsigned master,
                    const struct granted *granted)
{
    struct masters *masters = lease->leases->masters;
    const char *state = masters->peers.restart_guard ? masters_state(masters, master) : NULL;

    return lease->q.round != 0 && lease->token_round == lease->q.round &&
           (masters->peers.up & mask_of(master)) != 0 &&
           granted_is_good(granted, lease_token(lease), state, env_now(lease->leases->env)) &&
           masters_count(masters, master, QUORUM_CMD_SET, granted->sent);
}

static void count_vote(struct channels *channels, struct redlock_lease *lease, unsigned master,
                       const struct granted *granted)
{
    struct quorum_event event = {.type = QUORUM_EV_GRANT, .master = (uint8_t)master};

    event.sent = granted->sent;
    place_on_grant(place_of(lease), master);
    lease_step(lease, &event);
    lease_reap(lease);
    channel_write(channels);
}

static void on_named(struct channels *channels, struct redlock_lease *lease, unsigned master)
{
    place_on_named(place_of(lease), master);
    if (!is_due(channels, lease))
        return;
    begin(channels, lease);
    channel_write(channels);
}

/* Any client that may publish can forge "next".  At worst a round is tried in vain. */
void turns_on_message(struct channels *channels, const struct leases *leases, unsigned master,
                      const char *text)
{
    struct granted granted;
    struct redlock_lease *lease = NULL;
    bool is_granted = granted_parse(text, &granted);

    if (is_granted)
        lease = find(channels, leases, granted.waiter);
    else if (strncmp(text, "next ", 5) == 0)
        lease = find(channels, leases, text + 5);
    if (lease == NULL)
        return;
    if (is_granted && is_good(lease, master, &granted))
        count_vote(channels, lease, master, &granted);
    else
        on_named(channels, lease, master);
}
