/*
 * run.c - one run: chaos, healing, a probe that locks can be had again, quiet, and the end.
 */
#include "net.h"
#include "oracle.h"
#include "tls.h"
#include "world.h"

#include "redlock/client/client.h"
#include "redlock/core/place.h"
#include "test/lib/heap.h"

static unsigned probes_left, probes_won, probes_expected;

static void enter(enum phase phase, sim_time span)
{
    world.phase = phase;
    world_note("phase", phase, 0, 0);
    world_post(world.now + span, EVENT_PHASE, NULL, phase + 1);
    for (unsigned i = 0; i < world.plan.processes; i++) {
        world.processes[i].act_at = world.now;
        process_poke(&world.processes[i], world.now);
    }
}

/* How long until no process is stopped. */
static sim_time longest_stop(void)
{
    sim_time until = world.now;

    for (unsigned i = 0; i < world_all_processes(); i++)
        until = sim_max(until, world.processes[i].stopped_until);
    return until - world.now;
}

/* How long a client watches clocks at most until it counts them. */
static sim_time longest_watch(void)
{
    return 3 * world.plan.ttl_max_ms * DRIFT_MS + 2 * CLOCKS_GAP;
}

/* New members are watched, and old leases end; perhaps twice, if a change is found unfinished. */
static sim_time longest_change(void)
{
    return 12 * world.plan.ttl_max_ms * DRIFT_MS + 8 * DRIFT_S;
}

/* Healing lasts until all operations have ended and all links are up. */
static void heal(void)
{
    const struct plan *plan = &world.plan;
    sim_time ops = (plan->wait_max_ms + plan->retry_max_ms + 2 * plan->reply_timeout_ms) * DRIFT_MS;
    sim_time links = NET_RETRY_LAST + 2 * plan->connect_timeout_ms * DRIFT_MS;

    if (plan->guarded) /* A master that lost its data warms up, by a clock that may be slow. */
        links += 4 * plan->ttl_max_ms * DRIFT_MS + 2 * DRIFT_S;
    if (plan->clock_guard != REDLOCK_CLOCK_GUARD_OFF) /* Stepped clocks are watched for longer. */
        links += longest_watch();
    if (plan->operators > 0)
        links += longest_change();
    if (plan->two_lists) /* The founders get in each other's way, and try again. */
        links += 10 * DRIFT_S;
    world.phase = PHASE_HEAL; /* No new faults from here on. */
    nemesis_end();
    enter(PHASE_HEAL, longest_stop() + ops + links + DRIFT_S);
}

/* Without the restart guard a list is its set. */
bool run_expects(const struct ev_loop *process)
{
    if (world.plan.far != 0 && !moves_clocks_decide())
        return false;
    return !world.plan.two_lists || sets_are_founded(process_own_list(process));
}

/* How long a waiter that left unheard may stand before others in a queue (core/place.h).  It pauses
 * four times as long where masters announce releases, and their clocks may be slow. */
static sim_time longest_patience(void)
{
    sim_time pause = 4 * world.plan.retry_max_ms + world.plan.reply_timeout_ms;

    return (PLACE_BEATS * pause * 11 / 10 + PLACE_PATIENCE_MIN_MS) * DRIFT_MS;
}

/* Every key expires within the longest ttl, and then a few rounds must be enough.  With per_vote a
 * client that had no lease for long may learn only now that another client has a longer maximum.
 * It then begins to watch anew (seed 2647941641269). */
static sim_time longest_probe(void)
{
    const struct plan *plan = &world.plan;
    sim_time rounds = 20 * (run_probe_retry_ms() + plan->reply_timeout_ms) * DRIFT_MS;

    return plan->ttl_max_ms * DRIFT_MS + rounds + longest_patience() +
           (plan->clock_guard == REDLOCK_CLOCK_GUARD_PER_VOTE ? longest_watch() : 0) +
           (plan->operators > 0 ? longest_change() : 0) +
           (plan->is_crowd ? SIM_CROWD * 2 * run_probe_retry_ms() * DRIFT_MS : 0);
}

static void probe(void)
{
    const struct plan *plan = &world.plan;

    probes_won = probes_expected = 0;
    for (unsigned i = 0; i < plan->processes; i++) {
        bool is_linked = process_is_linked(&world.processes[i]);

        if (run_expects(&world.processes[i]))
            probes_expected += plan->is_crowd ? plan->leases : 1;
        else if (is_linked && !sets_were_founded(process_list(&world.processes[i])))
            world_fail("sets", "client %u counts votes, and the set of its list was never founded",
                       i);
        else
            continue;
        if (!is_linked)
            world_fail("liveness", "client %u is not linked to all masters after the healing", i);
    }
    calls_check_ends();
    probes_left = probes_expected;
    enter(PHASE_PROBE, longest_probe());
    moves_on_probe();
    operators_on_probe();
}

uint32_t run_probe_retry_ms(void)
{
    return world.plan.ttl_max_ms / 10 > 50 ? world.plan.ttl_max_ms / 10 : 50;
}

void run_on_probe(void)
{
    probes_won++;
    if (--probes_left == 0 && !operators_are_busy())
        world_post(world.now, EVENT_PHASE, NULL, PHASE_QUIET);
}

void run_on_operator(void)
{
    if (world.phase == PHASE_PROBE && probes_left == 0 && !operators_are_busy())
        world_post(world.now, EVENT_PHASE, NULL, PHASE_QUIET);
}

static void quieten(void)
{
    const struct plan *plan = &world.plan;
    sim_time span = 4 * plan->reply_timeout_ms * DRIFT_MS;

    if (probes_won == 0 && probes_expected > 0)
        world_fail("liveness", "no client gets a lock although all is well");
    if ((plan->is_crowd || plan->far != 0) && probes_left > 0)
        world_fail("liveness", "%u of %u that wait get no lock", probes_left, probes_expected);
    /* A probe may be the first to find that a master lost its data.  Then its link connects
     * again, and releases wait for it. */
    if (plan->guarded)
        span += NET_RETRY_LAST + 2 * (plan->connect_timeout_ms + plan->ttl_max_ms) * DRIFT_MS;
    /* A client that has waited listens for a while longer, by a clock that may be slow. */
    enter(PHASE_QUIET, span + 2 * LINES_LINGER);
}

static void finish(void)
{
    oracle_on_quiet();
    world.phase = PHASE_OVER;
    for (unsigned i = 0; i < world.plan.processes; i++)
        if (world.processes[i].rl != NULL)
            calls_close(&world.processes[i]);
    operators_end();
    if (heap_blocks() != 0)
        world_fail("memory", "%ld blocks are not freed", heap_blocks());
}

static void on_phase(enum phase phase)
{
    if (phase != world.phase + 1)
        return;
    if (phase == PHASE_PROBE)
        probe();
    else if (phase == PHASE_QUIET)
        quieten();
    else if (phase == PHASE_OVER)
        finish();
}

static void on_event(const struct event *event)
{
    switch (event->type) {
    case EVENT_TURN:
        process_turn(event->what, event->tag);
        break;
    case EVENT_TO_SERVER:
        net_deliver(event->what);
        break;
    case EVENT_TO_CLIENT:
        net_arrive(event->what);
        break;
    case EVENT_FAULT:
        nemesis_strike();
        break;
    case EVENT_REVOKE:
        revokes_on_event(event->what, event->tag);
        break;
    case EVENT_MEND:
        nemesis_mend(event->what, event->tag);
        break;
    case EVENT_GIVE_UP:
        net_give_up(event->what);
        break;
    case EVENT_PHASE:
        on_phase((enum phase)event->tag);
        break;
    }
}

/* Chosen: a run with more events is stuck in a loop.  (In seed 8362 a lease of 5 ms is renewed on
 * seven masters for half a minute, which takes a million.) */
#define EVENTS_MAX 3000000

uint64_t run_seed(uint64_t seed, bool verbose)
{
    const struct plan *plan = &world.plan;
    struct event event;

    world_begin(seed, verbose);
    net_begin();
    sim_tls_begin();
    oracle_reset();
    calls_reset();
    partners_reset();
    waits_begin();
    storms_begin();
    moves_begin();
    revokes_reset();
    plan_draw();
    operators_begin();
    nemesis_begin();
    world_post(plan->ends_at, EVENT_PHASE, NULL, PHASE_CHAOS);
    while (world.phase != PHASE_OVER && world_next(&event)) {
        on_event(&event);
        if (world.phase == PHASE_CHAOS &&
            (world.events >= plan->events || world.now >= plan->ends_at || !calls_have_room()))
            heal();
        if (world.events > EVENTS_MAX)
            world_fail("liveness", "the run does not come to an end");
    }
    if (world.phase != PHASE_OVER)
        world_fail("simulator", "nothing happens any more");
    tally.events += world.events;
    tally.seeds++;
    return world.hash;
}
