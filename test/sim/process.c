/*
 * process.c - redlock/io/loop.h in virtual time: the turns of a loop, and the process around
 * it, which may be stopped at any instant.
 *
 * A turn has the order of libev: first arrived bytes, then the program, then timers, and the
 * flush before it sleeps.  Timers come later, so that after a pause answers come before
 * timeouts.  A turn happens at one event, but time passes in it: at each reading of the clock
 * the process may have been stopped.  Then it sends later, and its next turn comes later.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/client/client.h"
#include "redlock/io/loop.h"

#include <string.h>

#define TICK_MAX (20 * SIM_US) /* Chosen: a longer delay counts as a stop. */

struct sim_loop {
    struct loop loop; /* Must be first: a sim_loop is cast to its loop and back. */
    struct ev_loop *process;
    const struct loop_events *events;
    void *cookie;
};

static struct sim_loop loops[SIM_ALL_MAX];

void process_init(struct ev_loop *process, unsigned number)
{
    struct sim_clock clock = process->clock;

    memset(process, 0, sizeof *process);
    process->number = number;
    process->is_operator = number >= world.plan.processes;
    process->clock = clock;
    loops[number].process = process; /* Its clock is read before it has a client. */
    process->wake_at = process->turn_at = SIM_NEVER;
    process->act_at = world.now + dice_below(world.plan.think_max + 1);
    process_poke(process, process->act_at);
}

/* ---- The time of a process ---- */

sim_time process_now(const struct ev_loop *process)
{
    return world.now + (process->in_turn ? process->ahead : 0);
}

uint64_t process_clock(const struct ev_loop *process)
{
    return clock_at(&process->clock, process_now(process));
}

void process_sicken(struct ev_loop *process, sim_time until)
{
    process->sick_until = sim_max(process->sick_until, until);
}

const struct list *process_own_list(const struct ev_loop *process)
{
    return &world.plan.lists[world.plan.two_lists ? process->number & 1 : 0];
}

/* A list that shares a master with the set of the other list may find that set. */
const struct list *process_list(const struct ev_loop *process)
{
    const struct list *own = process_own_list(process);
    const struct list *other = &world.plan.lists[own == &world.plan.lists[0]];

    if (world.plan.two_lists && process->rl != NULL &&
        sets_number(other) == process->rl->masters.set.seats.now.set)
        return other;
    return own;
}

/* Of the configuration that its client knows. */
static uint64_t version_of(const struct ev_loop *process)
{
    return process->rl->masters.set.seats.now.version;
}

struct lists process_lists(const struct ev_loop *process)
{
    const struct list *list = process_list(process);
    unsigned all = ((1u << list->len) - 1) << list->first;

    if (world.plan.operators > 0 && process->rl != NULL && version_of(process) > 1)
        return moves_lists(version_of(process));
    return (struct lists){all, all};
}

unsigned process_master(const struct ev_loop *process, unsigned server)
{
    for (unsigned m = 0; m < process->rl->masters.peers.len; m++)
        if (process->servers[m] == server && process->rl->masters.peers.links[m] != NULL)
            return m;
    return QUORUM_MASTERS_MAX;
}

const struct conn *process_conn(const struct ev_loop *process, unsigned server)
{
    unsigned m = process->rl != NULL ? process_master(process, server) : QUORUM_MASTERS_MAX;
    const struct conn *conn = NULL;

    if (m < QUORUM_MASTERS_MAX && (process->rl->masters.peers.up & 1u << m))
        conn = conn_of(process, process->rl->masters.peers.links[m]);
    return conn != NULL && !conn->mute ? conn : NULL;
}

/* The client knows what the master stores of the set.  Else its votes do not count yet. */
static bool is_known(const struct ev_loop *process, unsigned m, const struct server *server)
{
    char state[SETS_STATE_ROOM];

    return server->marker.ver <= version_of(process) &&
           strcmp(sets_state(&server->marker, state), process->rl->masters.standing.states[m]) == 0;
}

/* The clock of this server is one of those that others outvote. */
static bool is_outvoted(unsigned server)
{
    return world.plan.far != 0 && !(moves_agreeing() >> server & 1);
}

/* True if all links are up, all masters may vote, and all servers obey. */
bool process_is_linked(const struct ev_loop *process)
{
    const struct lists lists = process_lists(process);
    struct reason why;

    if (process->rl == NULL || process_list(process) != process_own_list(process))
        return false;
    for (unsigned i = 0; i < world.plan.servers; i++) {
        const struct server *server = &world.servers[i];
        unsigned m;

        if (!((lists.from | lists.to) >> i & 1))
            continue;
        if (process_conn(process, i) == NULL)
            return false;
        m = process_master(process, i);
        if (world.plan.operators > 0 && !is_known(process, m, server))
            return false;
        if (!server->alive || server->hung || server->mood != MOOD_FINE)
            return false;
        if (!is_outvoted(i) &&
            clocks_explain(&process->rl->masters.clocks, m, process_clock(process), &why))
            return false;
    }
    return true;
}

/* While the clock guard keeps a master from voting, the process is not in good health. */
static void look_at_clocks(struct ev_loop *process)
{
    uint64_t now = process_clock(process);

    for (unsigned m = 0; m < process->rl->masters.peers.len; m++) {
        const struct clocks_node *node = &process->rl->masters.clocks.nodes[m];

        if (node->node.counts_from <= now)
            continue;
        process_sicken(process,
                       clock_when(&process->clock, node->node.counts_from) + 2 * world.plan.quick);
        if (node->why == WHY_CLOCK_STEPPED)
            world_fault(FAULT_STEP_SEEN);
    }
}

bool process_is_healthy(const struct ev_loop *process, sim_time since)
{
    return process->sick_until < since && process_is_linked(process);
}

void process_pause(struct ev_loop *process, sim_time span)
{
    sim_time until = world.now + span;

    if (until <= process->stopped_until)
        return;
    process->stopped_total += span;
    process->stopped_until = process->stopped_last = until;
    process_sicken(process, until + world.plan.quick);
}

/* Time passes, and the process may stall, when it reads the clock. */
static void pass_time(struct ev_loop *process)
{
    const struct plan *plan = &world.plan;
    sim_time stall;

    if (dice_chance(15))
        process->ahead += dice_range(1, TICK_MAX);
    if (world.phase != PHASE_CHAOS || !plan->enabled[FAULT_STALL] || dice_below(500) != 0)
        return;
    stall = dice_magnitude(plan->hop, 2 * plan->ttl_max_ms * DRIFT_MS);
    process->ahead += stall;
    world_fault(FAULT_STALL);
    world_note("stall: client, us", process->number, stall / SIM_US, 0);
}

/* Time that passed within the turn counts as a stop: the next turn comes after it. */
static void end_stall(struct ev_loop *process)
{
    if (process->ahead == 0)
        return;
    process->stopped_total += process->ahead;
    process->stopped_until = sim_max(process->stopped_until, world.now + process->ahead);
    if (process->ahead > TICK_MAX)
        process->stopped_last = process->stopped_until;
    if (process->ahead > world.plan.quick)
        process_sicken(process, process->stopped_until + world.plan.quick);
    process->ahead = 0;
}

/* ---- loop.h ---- */

struct ev_loop *process_of_loop(const struct loop *loop)
{
    return ((const struct sim_loop *)(const void *)loop)->process;
}

static void free_loop(struct loop *loop)
{
    process_of_loop(loop)->rl = NULL;
    process_of_loop(loop)->wake_at = SIM_NEVER;
}

static drift_time now(const struct loop *loop)
{
    struct ev_loop *process = process_of_loop(loop);

    if (process->in_turn && !process->observed)
        pass_time(process);
    return clock_at(&process->clock, process_now(process));
}

uint64_t process_reading(struct ev_loop *process, sim_time at)
{
    const bool in_turn = process->in_turn, observed = process->observed;
    const sim_time ahead = process->ahead;
    uint64_t reading;

    process->in_turn = process->observed = true;
    process->ahead = at - world.now;
    reading = now(&loops[process->number].loop);
    process->in_turn = in_turn;
    process->observed = observed;
    process->ahead = ahead;
    return reading;
}

/* A timer of a loop runs for a span, whatever the clock says meanwhile. */
static void wake_at(struct loop *loop, drift_time at)
{
    struct ev_loop *process = process_of_loop(loop);
    drift_span span = drift_until(process_reading(process, process_now(process)), at);

    process->wake_at = clock_when(&process->clock, drift_add(process_clock(process), span));
    if (span == 0 || !world.plan.enabled[FAULT_EARLY_WAKE] || !dice_chance(30))
        return;
    process->wake_at -= dice_below(process->wake_at - process_now(process) + 1) / 8;
    world_fault(FAULT_EARLY_WAKE);
}

/* The table has no functions for descriptors: only sockets use them, and transport.c has none. */
static const struct loop_ops ops = {.free = free_loop, .now = now, .wake_at = wake_at};

struct loop *loop_ev_new(struct ev_loop *process, const struct loop_events *events, void *cookie)
{
    struct sim_loop *loop = &loops[process->number];

    loop->loop.ops = &ops;
    loop->process = process;
    loop->events = events;
    loop->cookie = cookie;
    process->rl = cookie; /* The client is the cookie of its loop. */
    process->wake_at = SIM_NEVER;
    return &loop->loop;
}

/* ---- Turns ---- */

void process_poke(struct ev_loop *process, sim_time at)
{
    at = sim_max(at, sim_max(world.now, process->stopped_until));
    if (at == SIM_NEVER || at >= process->turn_at)
        return;
    process->turn_at = at;
    world_post(at, EVENT_TURN, process, ++process->turn_tag);
}

static void do_io(struct ev_loop *process)
{
    unsigned client = process->client, first = (unsigned)dice_below(SIM_TRANSPORTS_MAX);

    for (unsigned i = 0; i < SIM_TRANSPORTS_MAX; i++) {
        struct transport *transport = process->transports[(first + i) % SIM_TRANSPORTS_MAX];

        if (process->rl == NULL || process->client != client)
            return;
        if (transport != NULL && sim_transport_has_io(transport))
            sim_transport_on_io(transport);
    }
}

static void do_wake(struct ev_loop *process)
{
    if (process->rl == NULL || process->wake_at > world.now)
        return;
    process->wake_at = SIM_NEVER;
    loops[process->number].events->on_timer(loops[process->number].cookie);
}

static void do_timers(struct ev_loop *process)
{
    unsigned client = process->client;
    bool wake_first = dice_chance(500);

    if (wake_first)
        do_wake(process);
    for (unsigned i = 0; i < SIM_TRANSPORTS_MAX; i++) {
        struct transport *transport = process->transports[i];

        if (process->rl == NULL || process->client != client)
            return;
        if (transport != NULL &&
            sim_transport_timer(transport) <= clock_at(&process->clock, world.now))
            sim_transport_on_timer(transport);
    }
    if (!wake_first && process->client == client)
        do_wake(process);
}

static void do_program(struct ev_loop *process)
{
    if (process->act_at > world.now)
        return;
    process->act_at = SIM_NEVER;
    if (process->is_operator)
        operators_act(process);
    else
        actor_act(process);
}

/* Plan the next turn. */
static void plan_next(struct ev_loop *process)
{
    sim_time next = process->act_at;
    bool has_io = false;

    if (process->rl != NULL) {
        uint64_t timer = DRIFT_NEVER;

        for (unsigned i = 0; i < SIM_TRANSPORTS_MAX; i++) {
            const struct transport *transport = process->transports[i];

            if (transport == NULL)
                continue;
            sim_transport_rest(transport);
            timer = sim_min(timer, sim_transport_timer(transport));
            has_io = has_io || sim_transport_has_io(transport);
        }
        next = sim_min(next, clock_when(&process->clock, timer));
        next = sim_min(next, process->wake_at);
    }
    if (has_io)
        next = world.now;
    else if (next != SIM_NEVER && next > world.now)
        next += dice_below(TICK_MAX);
    process_poke(process, next);
}

static void watch_over(struct ev_loop *process)
{
    if (process->rl != NULL && process->version != version_of(process)) {
        process->version = version_of(process);
        process_sicken(process, process_now(process));
    }
    oracle_look(process);
    claims_on_turn(process);
    judge_on_turn(process);
    troubles_on_turn(process);
    waits_on_turn(process);
    line_on_turn(process);
    moves_on_turn(process);
}

void process_turn(struct ev_loop *process, uint64_t tag)
{
    if (tag != process->turn_tag)
        return;
    process->turn_at = SIM_NEVER;
    if (world.now < process->stopped_until) {
        process_poke(process, process->stopped_until);
        return;
    }
    world_note("turn: client", process->number, process->client, 0);
    process->in_turn = true;
    do_io(process);
    do_program(process);
    do_timers(process);
    if (process->is_operator)
        operators_on_turn(process);
    if (process->rl != NULL) {
        loops[process->number].events->before_sleep(loops[process->number].cookie);
        look_at_clocks(process);
    }
    if (!process->is_operator)
        watch_over(process);
    process->in_turn = false;
    end_stall(process);
    plan_next(process);
}
