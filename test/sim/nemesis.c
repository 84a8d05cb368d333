/*
 * nemesis.c - faults at random instants, on random victims, for a random time.
 *
 * Other files cause the faults that happen within another event.  net.c: slow messages,
 * late commands of old connections.  process.c: stalls, early wake-ups.  transport.c: cut
 * reads and writes.  actor.c: misuse by programs.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/client/client.h"
#include "redlock/core/change.h"

#include <string.h>

static const enum fault strikes[] = {
    FAULT_RESET_BEFORE, FAULT_RESET_AFTER, FAULT_RESET_MIDDLE, FAULT_SILENCE,  FAULT_CUT,
    FAULT_HANG,         FAULT_CRASH,       FAULT_CRASH_EMPTY,  FAULT_FLUSHALL, FAULT_SCRIPT_FLUSH,
    FAULT_OOM,          FAULT_MISCONF,     FAULT_READONLY,     FAULT_LOADING,  FAULT_PAUSE,
    FAULT_FOREIGN,      FAULT_WRONG_TYPE,  FAULT_STEP,         FAULT_COPY,     FAULT_REVOKED,
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

/* How long a fault lasts: from one hop to three leases.  While a set changes, it may outlast
 * several changes. */
static sim_time duration(void)
{
    unsigned leases = world.plan.operators > 0 ? 12 : 3;

    return dice_magnitude(world.plan.hop, leases * world.plan.ttl_max_ms * DRIFT_MS);
}

static struct ev_loop *any_process(void)
{
    return &world.processes[dice_below(world_all_processes())];
}

static struct conn *any_conn(void)
{
    struct ev_loop *process = any_process();
    const struct link *link;
    unsigned m;

    if (process->rl == NULL)
        return NULL;
    m = (unsigned)dice_below(world.plan.servers);
    link = process->rl->masters.peers.links[m];
    if (process->rl->lines.channels.listener.links[m] != NULL && dice_chance(400)) {
        waits_on_trouble(process);
        link = process->rl->lines.channels.listener.links[m];
    }
    return conn_of(process, link);
}

/* in and out: which directions of open connections.  New ones are cut in both. */
static void cut_until(struct ev_loop *process, unsigned number, sim_time until, bool in, bool out)
{
    process->cut[number] = until;
    process_sicken(process, until + 2 * world.plan.quick);
    for (struct conn *conn = world.servers[number].conns; conn != NULL; conn = conn->next) {
        if (conn->process != process || conn->client == NULL || conn->mute)
            continue;
        if (out)
            conn->to_server.blocked_until = until;
        if (in)
            conn->to_client.blocked_until = until;
        world_fault(FAULT_CUT);
    }
}

static void cut(struct ev_loop *process, unsigned number)
{
    sim_time until = world.now + duration();
    bool in = dice_chance(750), out = !in || dice_chance(650);

    cut_until(process, number, until, in, out);
}

static bool forgets(const struct server *server, enum fault fault)
{
    return fault == FAULT_CRASH_EMPTY || (fault == FAULT_CRASH && !server->keeps);
}

/* A server hangs, crashes or answers with errors for a while. */
static void disturb(struct server *server, enum fault fault)
{
    if (!server->alive || server->hung || server->mood != MOOD_FINE)
        return;
    if (forgets(server, fault) && !moves_may_forget(server))
        return;
    server->fault = ++serial;
    world_post(world.now + duration(), EVENT_MEND, server, server->fault);
    if (fault == FAULT_HANG) {
        server->hung = true;
    } else if (fault == FAULT_CRASH || fault == FAULT_CRASH_EMPTY) {
        world_fault(fault);
        if (forgets(server, fault))
            moves_on_loss(server);
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

/* A server that may lose its keys. */
static struct server *any_forgetful(void)
{
    unsigned m;

    do
        m = (unsigned)dice_below(world.plan.servers);
    while (!(world.plan.may_forget & 1u << m));
    return &world.servers[m];
}

/* All clients know the server's epoch, so they recognise it on another server. */
static bool is_known_to_all(const struct server *server)
{
    for (unsigned i = 0; i < world.plan.processes; i++) {
        const struct redlock *rl = world.processes[i].rl;

        if (rl == NULL ||
            rl->masters.standing.guard.masters[server->number].epoch != server->marker.epoch)
            return false;
    }
    return server->marker.exists && server->marker.epoch != 0;
}

static bool has_keys(struct server *server)
{
    for (unsigned r = 0; r < world.plan.resources; r++)
        if (store_key(server, r) != NULL)
            return true;
    return false;
}

/* A server that may come back with the data of another, and has keys to lose.  A server that was
 * copied itself is left out: without it, its copy would be the only one with the epoch. */
static struct server *any_to_be_replaced(void)
{
    unsigned first = (unsigned)dice_below(world.plan.servers);

    for (unsigned i = 0; i < world.plan.servers; i++) {
        struct server *server = &world.servers[(first + i) % world.plan.servers];
        bool is_fine = server->alive && !server->hung && server->mood == MOOD_FINE;

        if ((world.plan.may_copy & 1u << server->number) != 0 && is_fine && has_keys(server) &&
            !server->was_copied)
            return server;
    }
    return NULL;
}

/* The tag of an event that empties a master, and does not end a fault. */
#define EMPTY (UINT64_C(1) << 62)

/* The tag of an event by which a master forgets what it has just accepted or stored. */
#define FORGET (UINT64_C(1) << 61)

/* How long a member that forgot warms up: see CHANGE_TTL_MIN_MS. */
static sim_time watch_max(void)
{
    return sim_max(world.plan.ttl_max_ms, CHANGE_TTL_MIN_MS) * 2 * DRIFT_MS;
}

static bool is_about_losses(unsigned permille)
{
    return world_theme(world.seed) == THEME_LOSSES && world.phase == PHASE_CHAOS &&
           dice_chance(permille);
}

static void forget_soon(struct server *server)
{
    world_post(world.now + dice_magnitude(world.plan.hop, DRIFT_S / 4), EVENT_MEND, server, FORGET);
}

/* A value is chosen when most of three members accept it.  Now its operator is not heard, one of
 * those that accepted forgets, and the other operator does not reach the other one. */
void nemesis_on_accept(struct server *server)
{
    sim_time until = world.now + dice_range(1, 4) * watch_max();
    const struct server *other = NULL;
    unsigned len = 0;

    for (unsigned i = 0; i < world.plan.servers; i++) {
        if (world.servers[i].marker.accepted_in != server->marker.accepted_in)
            continue;
        other = &world.servers[i] != server ? &world.servers[i] : other;
        len++;
    }
    if (len != 2 || !is_about_losses(500))
        return;
    forget_soon(server);
    for (unsigned i = world.plan.processes; i < world_all_processes(); i++) {
        bool accepts = operators_is_accepting(&world.processes[i]);

        for (unsigned s = 0; s < world.plan.servers; s++)
            if (accepts || s == other->number)
                cut_until(&world.processes[i], s, until, !accepts, true);
    }
}

/* An operator begins to wait for old leases (M5).  Two of the members that it saw forget, the
 * second one when the first one is back.  The operator cannot look again before both are back. */
void nemesis_on_wait(struct ev_loop *process, unsigned seen)
{
    sim_time at = world.now + world.plan.hop;
    unsigned left = 2;

    if (!is_about_losses(700))
        return;
    for (unsigned i = 0; i < world.plan.servers && left > 0; i++) {
        if (!(seen >> i & 1))
            continue;
        world_post(at, EVENT_MEND, &world.servers[i], FORGET);
        cut_until(process, i, world.now + 3 * watch_max(), true, true);
        at += watch_max();
        left--;
    }
}

static void forget(struct server *server)
{
    if (!server->alive || !moves_may_forget(server))
        return;
    world_note("forget: master", server->number, 0, 0);
    moves_on_loss(server);
    if (server_flushall(server))
        world_fault(FAULT_FLUSHALL);
}

/* A server soon comes back with the data of other, which keeps its own.  Perhaps it is emptied a
 * little later.  Both happen while the leases on it are not over. */
static void copy(struct server *other)
{
    struct server *server = any_to_be_replaced();
    sim_time soon = dice_range(world.plan.hop, world.plan.ttl_max_ms * DRIFT_MS / 4);

    if (server == NULL || other == server || !other->keeps || !is_known_to_all(other))
        return;
    server->fault = ++serial;
    world_post(world.now + soon, EVENT_MEND, server, server->fault);
    world_fault(FAULT_COPY);
    world_note("copy: master, of master", server->number, other->number, 0);
    server_copy(server, other);
    other->was_copied = true;
    if (dice_chance(300))
        world_post(world.now + 2 * soon, EVENT_MEND, server, EMPTY);
}

static void pause_process(struct ev_loop *process)
{
    sim_time span = duration();

    if (world.plan.operators > 0 && dice_chance(300)) /* It sleeps while the set changes. */
        span = dice_range(3, 12) * world.plan.ttl_max_ms * DRIFT_MS;
    if (process->rl == NULL)
        return;
    world_fault(FAULT_PAUSE);
    world_note("pause: client, us", process->number, span / SIM_US, 0);
    process_pause(process, span);
}

/* A step forward and back within one lease may go unnoticed, so it is not made. */
static bool may_go_back(const struct server *server)
{
    sim_time leases = world.plan.ttl_max_ms * DRIFT_MS;

    return server->forward_at == 0 || world.now >= server->forward_at + leases + leases / 10;
}

/* A bit in the tag of an event that puts a clock forward, by the rest of the tag. */
#define PUT_RIGHT (UINT64_C(1) << 63)
#define PUT_RIGHT_MAX (2 * DRIFT_S)

static bool step_by(struct server *server, int64_t by)
{
    if (server->clock.step + by > (int64_t)PLAN_STEP_MAX ||
        server->clock.step + by < -(int64_t)PLAN_STEP_MAX)
        return false;
    server->clock.step += by;
    if (by > 0)
        server->forward_at = world.now;
    else
        server->was_set_back = true;
    world_fault(FAULT_STEP);
    world_note(by < 0 ? "step back: master, us" : "step forward: master, us", server->number,
               (uint64_t)(by < 0 ? -by : by) / SIM_US, 0);
    for (unsigned i = 0; i < world.plan.processes; i++)
        process_sicken(&world.processes[i],
                       world.now + 2 * world.plan.ttl_max_ms * DRIFT_MS + 2 * CLOCKS_GAP);
    return true;
}

/* Set a clock back, and forward again at right_at. */
static void step_back(struct server *server, uint64_t by, sim_time right_at)
{
    if (may_go_back(server) && step_by(server, -(int64_t)by) && right_at != SIM_NEVER)
        world_post(right_at, EVENT_MEND, server, PUT_RIGHT | by);
}

/* Step one clock, or all that may be stepped, as if one time server set them. */
static void step(struct server *only)
{
    uint64_t by = dice_magnitude(DRIFT_MS, 2 * PLAN_STEP_MAX);
    sim_time right_at = world.now + dice_range(world.plan.hop, PUT_RIGHT_MAX);
    bool all = dice_chance(300), back = dice_chance(500);

    if (world.plan.dips) {
        by = dice_range(2 * DRIFT_TOLERANCE, PLAN_STEP_MAX);
        right_at = world.now + dice_range(world.plan.hop, PUT_RIGHT_MAX / 4);
        if (world_theme(world.seed) == THEME_CLOCKS)
            right_at += (right_at - world.now) * dice_below(4);
        all = dice_chance(700);
        back = true;
    } else if (dice_chance(400)) {
        right_at = SIM_NEVER;
    }
    for (unsigned i = 0; i < world.plan.servers; i++) {
        struct server *server = &world.servers[i];

        if (!(world.plan.may_step & 1u << i) || (!all && server != only))
            continue;
        if (back)
            step_back(server, by, right_at);
        else
            (void)step_by(server, (int64_t)by);
    }
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
        if (conn != NULL)
            net_silence(conn);
    } else if (fault == FAULT_CUT) {
        cut(any_process(), server->number);
    } else if (fault == FAULT_STEP) {
        step(server);
    } else if (fault == FAULT_COPY) {
        copy(server);
    } else if (fault == FAULT_REVOKED) {
        revokes_begin(server, resource);
    } else if (fault == FAULT_PAUSE) {
        pause_process(any_process());
    } else if (fault == FAULT_FOREIGN || fault == FAULT_WRONG_TYPE) {
        server_plant(server, resource, fault == FAULT_WRONG_TYPE, duration() / DRIFT_MS + 1);
    } else if (fault == FAULT_SCRIPT_FLUSH) {
        server_set_scripts(server, false);
    } else if (fault == FAULT_FLUSHALL) {
        server = any_forgetful();
        if (!moves_may_forget(server))
            return;
        moves_on_loss(server);
        if (server_flushall(server))
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

    if (world.phase == PHASE_CHAOS && tag == EMPTY && server->is_copy) {
        world_note("empty: master", server->number, 0, 0);
        (void)server_flushall(server);
    }
    if (world.phase == PHASE_CHAOS && tag == FORGET)
        forget(server);
    if (world.phase == PHASE_CHAOS && (tag & PUT_RIGHT) != 0)
        (void)step_by(server, (int64_t)(tag & ~PUT_RIGHT));
    if (server->fault != tag || world.phase != PHASE_CHAOS)
        return;
    world_note("mend: master", server->number, 0, 0);
    server_mend(server);
}

/* End all faults, and empty the copies. */
void nemesis_end(void)
{
    world.plan.asks_max = PLAN_ASKS_MAX;
    world.plan.window = PLAN_WINDOW;
    for (unsigned i = 0; i < world_all_processes(); i++) {
        memset(world.processes[i].cut, 0, sizeof world.processes[i].cut);
        if (world.processes[i].rl != NULL)
            world.processes[i].rl->env.asks_max = PLAN_ASKS_MAX;
    }
    for (unsigned i = 0; i < world.plan.servers; i++) {
        struct server *server = &world.servers[i];

        for (struct conn *conn = server->conns; conn != NULL; conn = conn->next) {
            if (conn->mute && conn->client != NULL && dice_chance(500))
                net_reset(conn);
            net_hurry(conn);
        }
        if (server->is_copy)
            (void)server_flushall(server);
        server_mend(server);
    }
}
