/*
 * actor.c - the programs: each makes random calls, now and then and in its callbacks.
 */
#include "oracle.h"
#include "world.h"

#include <string.h>

#include "redlock/client/client.h"

static struct lease_rec *any_rec(const struct ev_loop *process)
{
    unsigned first = (unsigned)dice_below(world.plan.leases);

    for (unsigned i = 0; i < world.plan.leases; i++) {
        struct lease_rec *rec = process->recs[(first + i) % world.plan.leases];

        if (rec != NULL)
            return rec;
    }
    return NULL;
}

static bool has_place(const struct ev_loop *process)
{
    for (unsigned i = 0; i < world.plan.leases; i++)
        if (process->recs[i] == NULL)
            return calls_have_room();
    return false;
}

static unsigned any_resource(void)
{
    return (unsigned)dice_below(world.plan.resources);
}

/* 0: the ttl stays the same. */
static uint32_t any_ttl(void)
{
    return dice_chance(300) ? 0 : world.plan.ttls_ms[dice_below(SIM_TTLS_MAX)];
}

static void detach(struct lease_rec *rec)
{
    struct ev_loop *to = &world.processes[dice_below(world.plan.processes)];

    calls_detach(rec, dice_chance(700) ? to : NULL);
}

static void adopt_handed(struct ev_loop *process)
{
    char token[sizeof process->handed];

    memcpy(token, process->handed, sizeof token);
    process->handed[0] = '\0';
    world_fault(FAULT_ADOPTED);
    calls_adopt(process, process->handed_set, process->handed_shared, token, process->handed_stale);
}

static void adopt_stale(struct ev_loop *process)
{
    unsigned set = 1u << any_resource();
    const char *token = oracle_old_token(set);

    if (token != NULL)
        world_fault(FAULT_ADOPTED_STALE);
    calls_adopt(process, set, false,
                token != NULL        ? token
                : world.plan.permits ? "00"
                                     : "made-up",
                true);
}

/* A process that got a token extends the lock, and most often leaves it to the others. */
static void help(struct lease_rec *rec)
{
    unsigned dice = (unsigned)dice_below(100);

    if (rec->state == REC_ADOPTED || dice < 40)
        calls_extend(rec, any_ttl());
    else if (dice < 85)
        calls_detach(rec, NULL);
    else
        calls_unlock(rec);
}

static void work_with(struct lease_rec *rec)
{
    unsigned dice = (unsigned)dice_below(100);

    if (rec->is_partner && dice < 90) {
        help(rec);
        return;
    }
    if (calls_may_lock_again(rec) && dice % 2 == 0) {
        calls_lock_again(rec);
        return;
    }
    if (rec->state == REC_LOCKING)
        dice /= 8; /* More than half are cancels, the others are calls that are not allowed. */
    if (dice < 7)
        calls_cancel(rec);
    else if (dice < 12)
        detach(rec);
    else if (dice < 45)
        calls_extend(rec, any_ttl());
    else if (dice < 80)
        calls_unlock(rec);
}

/* In a crowd most leases wait, and are patient.  NULL: none has anything to do. */
static struct lease_rec *restless(const struct ev_loop *process)
{
    struct lease_rec *rec = any_rec(process);

    if (rec == NULL || rec->state != REC_LOCKING || dice_chance(30))
        return rec;
    for (unsigned i = 0; i < world.plan.leases; i++) {
        rec = process->recs[i];
        if (rec != NULL && rec->state != REC_LOCKING)
            return rec;
    }
    return NULL;
}

static void act(struct ev_loop *process)
{
    const struct plan *plan = &world.plan;
    struct lease_rec *rec = plan->is_crowd ? restless(process) : any_rec(process);
    unsigned dice = (unsigned)dice_below(1000);

    if (plan->enabled[FAULT_CLOSE] && dice < 10) {
        world_fault(FAULT_CLOSE);
        calls_close(process);
    } else if (plan->enabled[FAULT_MISUSE] && dice < 40) {
        calls_misuse(process);
    } else if (process->handed[0] != '\0' && process->handed_at <= world.now &&
               has_place(process)) {
        adopt_handed(process);
    } else if (plan->enabled[FAULT_ADOPTED_STALE] && dice < 60 && has_place(process)) {
        adopt_stale(process);
    } else if (plan->enabled[FAULT_PARTNER] && dice < 250 && has_place(process) &&
               partners_adopt(process)) {
        return;
    } else if (rec == NULL || (dice < 400 && has_place(process))) {
        if (has_place(process))
            calls_lock(process, any_resource(), false);
    } else {
        work_with(rec);
    }
}

/* The program begins nothing, and gives up its leases.  While the world heals, operations end by
 * themselves; later they are cancelled.  A crowd that probes waits on. */
static void tidy(struct ev_loop *process)
{
    for (unsigned i = 0; i < world.plan.leases; i++) {
        struct lease_rec *rec = process->recs[i];

        if (rec == NULL)
            continue;
        if (rec->is_again)
            continue; /* on_again() unlocks it. */
        if (rec->state == REC_HELD)
            calls_unlock(rec);
        else if (world.plan.is_crowd && world.phase == PHASE_PROBE && rec->is_probe)
            continue;
        else if (world.phase != PHASE_HEAL || rec->state == REC_ADOPTED)
            calls_cancel(rec);
    }
}

/* The list of the client has a master that is no member any more. */
static bool is_refused(const struct ev_loop *process)
{
    return world.plan.operators > 0 && process->rl->masters.set.refused;
}

/* Ask for a lock, in a crowd for as many as the client may have. */
static void probe(struct ev_loop *process)
{
    unsigned len = world.plan.is_crowd ? world.plan.leases : 1;

    for (unsigned i = 0; i < len; i++)
        calls_lock(process, process->number % world.plan.resources, true);
}

void actor_act(struct ev_loop *process)
{
    const struct plan *plan = &world.plan;

    if (process->rl != NULL && world.phase <= PHASE_HEAL && is_refused(process))
        calls_close(process);
    if (process->rl == NULL)
        calls_open(process);
    else if (world.phase == PHASE_CHAOS)
        act(process);
    if (world.phase == PHASE_CHAOS) {
        process->act_at = process_now(process) + dice_magnitude(plan->hop, plan->think_max);
        return;
    }
    tidy(process);
    if (world.phase == PHASE_HEAL && plan->operators > 0) /* Its list may turn out to be wrong. */
        process->act_at = process_now(process) + DRIFT_S;
    if (world.phase == PHASE_PROBE && run_expects(process) &&
        (!process->has_probed || operators_are_busy()))
        probe(process);
}

/* Returns true if the program closed its client. */
static bool may_close(struct ev_loop *process)
{
    if (world.phase != PHASE_CHAOS || !world.plan.enabled[FAULT_CLOSE_IN_CALLBACK] ||
        !dice_chance(15))
        return false;
    world_fault(FAULT_CLOSE_IN_CALLBACK);
    calls_close(process);
    return true;
}

static void act_soon(struct ev_loop *process)
{
    process->act_at = process_now(process) + dice_below(run_probe_retry_ms() * DRIFT_MS);
    process_poke(process, process->act_at);
}

/* The holder keeps the lock for a while, so that others wait, and need an announcement. */
static bool hold_a_while(struct ev_loop *process)
{
    if (world.phase != PHASE_PROBE || dice_chance(300))
        return false;
    act_soon(process);
    return true;
}

void actor_on_done(struct ev_loop *process, struct lease_rec *rec, enum op_kind kind, int status)
{
    if (rec->is_probe && kind == OP_LOCK && status == REDLOCK_OK &&
        (!process->has_probed || world.plan.is_crowd)) {
        run_on_probe();
        process->has_probed = true;
        if (hold_a_while(process))
            return;
    }
    if (may_close(process))
        return;
    if (world.phase != PHASE_CHAOS) {
        if (kind == OP_LOCK && status == REDLOCK_OK)
            calls_unlock(rec);
        if (kind == OP_LOCK && world.phase == PHASE_PROBE && operators_are_busy())
            act_soon(process);
        return;
    }
    if (kind != OP_UNLOCK && rec->state != REC_GONE && rec->op == NULL && dice_chance(300))
        work_with(rec);
    else if (dice_chance(100) && has_place(process))
        calls_lock(process, any_resource(), false);
}

void actor_on_lost(struct ev_loop *process, struct lease_rec *rec)
{
    if (may_close(process) || rec->state != REC_HELD)
        return;
    if (dice_chance(300))
        work_with(rec);
    else if (dice_chance(500))
        calls_unlock(rec);
}
