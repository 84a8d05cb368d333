/*
 * party.c - clients on one loop.
 */
#include "live/party.h"

#include <stddef.h>

#include <ev.h>

#include "live/cluster.h"
#include "live/pilot.h"

struct ev_loop *party_loop;
static unsigned places;

void party_open(struct party *party, const char *masters, uint32_t reply_timeout_ms)
{
    struct redlock_options opts;

    if (party_loop == NULL)
        party_loop = ev_loop_new(EVFLAG_AUTO);
    redlock_options_init(&opts);
    opts.masters = masters;
    pilot_set_loop(&opts, party_loop);
    opts.reply_timeout_ms = reply_timeout_ms;
    *party = (struct party){.status = PILOT_NEVER};
    if (redlock_open(&opts, &party->rl) != REDLOCK_OK)
        cluster_die("open: %s", redlock_errmsg(NULL));
    party->io = pilot_watch(&party->rl, party_loop);
}

void party_close_all(struct party *parties, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        struct redlock *rl = parties[i].rl;

        pilot_unwatch(party_loop, parties[i].io);
        parties[i].io = NULL;
        for (unsigned j = i; j < len; j++)
            if (parties[j].rl == rl)
                parties[j].rl = NULL;
        (void)redlock_close(rl);
    }
    places = 0;
}

int party_lock(struct party *party, const char *resource, const struct redlock_lock_options *opts)
{
    party->status = PILOT_NEVER;
    return redlock_lock_async(party->rl, resource, opts, party_on_end, party, &party->lease);
}

void party_on_end(struct redlock_lease *lease, int status, void *arg)
{
    struct party *party = arg;

    party->status = status;
    party->lease = status == REDLOCK_OK ? lease : NULL;
    party->at_s = cluster_now_s();
    party->place = ++places;
}

bool party_until(bool (*is_so)(void *arg), void *arg)
{
    struct pilot driver = {.kind = PILOT_LOOP, .ev = party_loop};

    return pilot_until(&driver, is_so, arg);
}

bool party_is_told(void *arg)
{
    const struct party *party = arg;

    return party->status != PILOT_NEVER;
}
