/*
 * nemesis.c - faults at random instants, on random victims, for a while.
 *
 * Faults that need no instant of their own are elsewhere: slow messages and
 * late commands of old connections in net.c, stalls and early wakes in
 * process.c, full queues in link.c, and what programs do in actor.c.
 */
#include "sim.h"

#include "redlock/client.h"

#include <string.h>

/* What strikes. */
static const enum fault strikes[] = {
    FAULT_RESET_BEFORE, FAULT_RESET_AFTER, FAULT_RESET_MIDDLE, FAULT_SILENCE,  FAULT_CUT,
    FAULT_HANG,         FAULT_CRASH,       FAULT_CRASH_EMPTY,  FAULT_FLUSHALL, FAULT_SCRIPT_FLUSH,
    FAULT_OOM,          FAULT_MISCONF,     FAULT_READONLY,     FAULT_LOADING,  FAULT_PAUSE,
    FAULT_FOREIGN,      FAULT_WRONG_TYPE,
};

#define STRIKES_LEN (sizeof strikes / sizeof strikes[0])

static enum fault armed[STRIKES_LEN];
static unsigned armed_len;
static uint64_t serial;

static void plan_next(void)
{
    if (armed_len > 0 && world.phase == PHASE_CHAOS)
        world_post(world.now + dice_magnitude(world.plan.hop, world.plan.calm_max * 2), EVENT_FAULT,
                   NULL, 0);
}

void nemesis_begin(void)
{
    armed_len = 0;
    serial = 0;
    for (unsigned i = 0; i < STRIKES_LEN; i++)
        if (world.plan.enabled[strikes[i]])
            armed[armed_len++] = strikes[i];
    plan_next();
}

/* How long it lasts: from hardly at all to three leases. */
static sim_time duration(void)
{
    return dice_magnitude(world.plan.hop, 3 * world.plan.ttl_max_ms * DRIFT_MS);
}

static struct ev_loop *any_process(void)
{
    return &world.processes[dice_below(world.plan.processes)];
}

static struct conn *any_conn(void)
{
    struct ev_loop *process = any_process();
    const struct master *link;
    unsigned m;

    if (process->rl == NULL)
        return NULL;
    m = (unsigned)dice_below(world.plan.servers);
    link = process->rl->masters[m];
    if (process->rl->listen.links[m] != NULL && dice_chance(400)) {
        waits_on_trouble(process);
        link = process->rl->listen.links[m];
    }
    return link_conn(link);
}

static void cut(struct ev_loop *process, unsigned number)
{
    sim_time until = world.now + duration();
    bool in = dice_chance(750), out = !in || dice_chance(650);

    process->cut[number] = until;
    process_sicken(process, until + 2 * world.plan.quick);
    for (struct conn *conn = world.servers[number].conns; conn != NULL; conn = conn->next) {
        if (conn->process != process || conn->link == NULL || conn->mute)
            continue;
        if (out)
            conn->to_server.blocked_until = until;
        if (in)
            conn->to_client.blocked_until = until;
        world_fault(FAULT_CUT);
    }
}

static void silence(struct conn *conn)
{
    if (conn == NULL || conn->reset)
        return;
    conn->mute = true;
    conn->to_client.blocked_until = SIM_NEVER;
}

/* A server is not itself for a while. */
static void disturb(struct server *server, enum fault fault)
{
    if (!server->alive || server->hung || server->mood != MOOD_FINE)
        return;
    server->fault = ++serial;
    world_post(world.now + duration(), EVENT_MEND, server, server->fault);
    if (fault == FAULT_HANG) {
        server->hung = true;
    } else if (fault == FAULT_CRASH || fault == FAULT_CRASH_EMPTY) {
        world_fault(fault);
        server_crash(server, fault == FAULT_CRASH_EMPTY);
    } else if (fault == FAULT_OOM) {
        server->mood = MOOD_OOM;
    } else if (fault == FAULT_MISCONF) {
        server->mood = MOOD_MISCONF;
    } else if (fault == FAULT_READONLY) {
        server->mood = MOOD_READONLY;
    } else {
        server->mood = MOOD_LOADING;
    }
}

/* One that may lose its keys. */
static struct server *any_forgetful(void)
{
    unsigned m;

    do
        m = (unsigned)dice_below(world.plan.servers);
    while (!(world.plan.may_forget & 1u << m));
    return &world.servers[m];
}

static void pause_process(struct ev_loop *process)
{
    sim_time span = duration();

    if (process->rl == NULL)
        return;
    world_fault(FAULT_PAUSE);
    world_note("pause: client, us", process->number, span / SIM_US, 0);
    process_pause(process, span);
}

static void strike(enum fault fault)
{
    struct server *server = &world.servers[dice_below(world.plan.servers)];
    unsigned resource = (unsigned)dice_below(world.plan.resources);
    struct conn *conn = any_conn();

    world_note("strike: fault, master", fault, server->number, 0);
    if (fault == FAULT_RESET_BEFORE || fault == FAULT_RESET_AFTER || fault == FAULT_RESET_MIDDLE) {
        if (conn != NULL)
            conn->doom = fault;
    } else if (fault == FAULT_SILENCE) {
        silence(conn);
    } else if (fault == FAULT_CUT) {
        cut(any_process(), server->number);
    } else if (fault == FAULT_PAUSE) {
        pause_process(any_process());
    } else if (fault == FAULT_FOREIGN || fault == FAULT_WRONG_TYPE) {
        server_plant(server, resource, fault == FAULT_WRONG_TYPE, duration() / DRIFT_MS + 1);
    } else if (fault == FAULT_SCRIPT_FLUSH) {
        server_set_scripts(server, false);
    } else if (fault == FAULT_FLUSHALL) {
        if (server_flushall(any_forgetful()))
            world_fault(FAULT_FLUSHALL);
    } else {
        disturb(fault == FAULT_CRASH_EMPTY ? any_forgetful() : server, fault);
    }
}

void nemesis_strike(void)
{
    if (world.phase != PHASE_CHAOS)
        return;
    strike(armed[dice_below(armed_len)]);
    plan_next();
}

void nemesis_mend(void *what, uint64_t tag)
{
    struct server *server = what;

    if (server->fault != tag || world.phase != PHASE_CHAOS)
        return;
    world_note("mend: master", server->number, 0, 0);
    server_mend(server);
}

/* All is well from here on. */
void nemesis_end(void)
{
    world.plan.asks_max = PLAN_ASKS_MAX;
    world.plan.window = PLAN_WINDOW;
    for (unsigned i = 0; i < world.plan.processes; i++)
        memset(world.processes[i].cut, 0, sizeof world.processes[i].cut);
    for (unsigned i = 0; i < world.plan.servers; i++) {
        struct server *server = &world.servers[i];

        for (struct conn *conn = server->conns; conn != NULL; conn = conn->next) {
            if (conn->mute && conn->link != NULL && dice_chance(500))
                net_reset(conn);
            net_hurry(conn);
        }
        server_mend(server);
    }
}
