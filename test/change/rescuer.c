/*
 * rescuer.c - a rescue in place of the machines, by the real redlock/core/rescue.c, without faults.
 *
 * Two of three masters are lost, and the third is to have two new ones beside it.  The clocks of
 * masters are beyond every number.  A rescue is large, and few different ones occur, so each is
 * stored once.  All its times are told as of NOW.
 */
#include <stdlib.h>
#include <string.h>

#include "change/machines.h"
#include "redlock/core/rescue.h"

enum { CLOSED = 3, FOUNDED = 4, RESCUES_MAX = 4096 };

static struct rescue rescues[RESCUES_MAX];
static unsigned rescues_len;

static uint32_t store(const struct rescue *rescue)
{
    unsigned i = 0;

    while (i < rescues_len && memcmp(&rescues[i], rescue, sizeof *rescue) != 0)
        i++;
    if (i == RESCUES_MAX)
        exit(2);
    if (i == rescues_len)
        rescues[rescues_len++] = *rescue;
    return i + 1;
}

static const struct rescue *load(const struct world *w)
{
    return &rescues[w->machines[0] - 1];
}

static void fill(struct world *w, const struct rescue *r, unsigned master)
{
    const struct rescue_master *m = &r->masters[master];
    static const uint8_t kinds[] = {[RESCUE_ASK_LOOK] = CHANGE_ASK_LOOK,
                                    [RESCUE_ASK_CLOSE] = CHANGE_ASK_WRITE,
                                    [RESCUE_ASK_NOTE] = CHANGE_ASK_ACCEPT,
                                    [RESCUE_ASK_COUNT] = CHANGE_ASK_COUNT,
                                    [RESCUE_ASK_FOUND] = CHANGE_ASK_WRITE};
    struct request *out = &w->out[0][master];

    *out = (struct request){.kind = kinds[m->asked]};
    if (m->asked == RESCUE_ASK_LOOK)
        return;
    out->epoch = (uint8_t)m->look.number;
    out->at_version = (uint8_t)m->look.told.version;
    if (m->asked == RESCUE_ASK_COUNT)
        out->number = (uint8_t)r->number;
    else
        out->version = m->asked == RESCUE_ASK_CLOSE ? CLOSED : FOUNDED;
    if (m->asked == RESCUE_ASK_NOTE)
        out->ballot = BALLOT(1, 0);
    if (m->asked == RESCUE_ASK_FOUND || m->asked == RESCUE_ASK_NOTE)
        out->from = out->to = scenario->rescued;
}

static void go_on(struct world *w, struct rescue *r)
{
    struct rescue_actions act;
    quorum_mask asked;

    rescue_next(r, NOW, &act);
    asked = act.look | act.close | act.note | act.count | act.found;
    for (unsigned i = 0; i < MASTERS; i++) {
        if (asked & mask_of(i))
            fill(w, r, i);
        r->masters[i].since = 0; /* No master is warming. */
        if (r->masters[i].asked == RESCUE_ASK_NOTHING)
            r->masters[i].asked_at = 0;
    }
    w->machines[0] = store(r);
}

void rescuer_begin(struct world *w)
{
    const struct rescue_config config = {.masters = scenario->rescued,
                                         .list = scenario->rescued,
                                         .closed = CLOSED,
                                         .founded = FOUNDED,
                                         .max_ttl_ms = TTL * 1000,
                                         .look_every = TICK};
    struct rescue r;

    memset(&r, 0, sizeof r);
    rescue_init(&r, &config);
    for (unsigned i = 0; i < MASTERS; i++)
        if (scenario->rescued >> i & 1)
            rescue_on_link(&r, i, true);
    w->history.chosen[FOUNDED][0] = w->history.chosen[FOUNDED][1] = scenario->rescued;
    go_on(w, &r);
}

static uint64_t clock_of(const struct world *w)
{
    uint64_t most = w->history.last;

    for (unsigned i = 0; i < MASTERS; i++)
        most = w->masters[i].number > most ? w->masters[i].number : most;
    return most;
}

void rescuer_give(struct world *w, unsigned master, const struct answer *answer)
{
    struct rescue r = *load(w);
    const struct guard_look look = {
        .ready = answer->epoch != 0,
        .number = answer->epoch,
        .max_ttl_ms = TTL * 1000,
        .high = answer->number,
        .time_us = clock_of(w),
        .told = {.version = answer->version, .accepted = answer->ballot != 0 ? RESCUE_BALLOT : 0}};

    w->out[0][master] = (struct request){0};
    if (answer->kind == CHANGE_ASK_LOOK)
        rescue_on_look(&r, master, &look, NOW);
    else
        rescue_on_reply(&r, master, answer->answer == CHANGE_YES, NOW);
    go_on(w, &r);
}

static void one_tick_less(drift_time *at)
{
    if (*at > NOW - 2 * TTL * TICK && *at != DRIFT_NEVER)
        *at -= TICK;
}

void rescuer_age(struct world *w)
{
    struct rescue r = *load(w);

    one_tick_less(&r.closed_at);
    one_tick_less(&r.checked_from);
    for (unsigned i = 0; i < MASTERS; i++) {
        one_tick_less(&r.masters[i].asked_at);
        one_tick_less(&r.masters[i].look_at);
        one_tick_less(&r.masters[i].looked);
    }
    go_on(w, &r);
}

const char *rescuer_text(const struct world *w)
{
    const struct rescue *r = load(w);

    return r->status == RESCUE_GOES_ON ? rescue_phase_text(r->phase)
                                       : rescue_status_text(r->status);
}
