/*
 * calls.c - the calls of the library that programs make, what each must return, and the
 * callbacks.
 */
#include "oracle.h"
#include "tls.h"
#include "world.h"

#include "redlock/client/client.h"
#include "test/lib/heap.h"

#include <stdio.h>
#include <string.h>

#define RECS_MAX 1500 /* Leases of one run.  Chosen: a run that needs more does not end. */

static unsigned recs_len;
static struct op *ops;
static struct redlock_lease *spent[SIM_CROWD]; /* The last lease that was given up. */

void calls_reset(void)
{
    recs_len = 0;
    ops = NULL;
    memset(spent, 0, sizeof spent);
}

bool calls_have_room(void)
{
    return recs_len < RECS_MAX;
}

static void expect(const char *call, int got, int want)
{
    if (got != want)
        world_fail("api", "%s gives %d (%s), must give %d", call, got, redlock_errmsg(NULL), want);
}

/* ---- Leases and operations ---- */

static struct lease_rec *new_rec(struct ev_loop *process, unsigned set)
{
    struct lease_rec *rec = memory_take(sizeof *rec);
    unsigned place = 0;

    while (process->recs[place] != NULL)
        place++;
    rec->number = recs_len++;
    rec->process = process;
    rec->place = place;
    rec->set = set;
    rec->resource = (unsigned)__builtin_ctz(set);
    rec->token = rec->waiter = -1;
    rec->called = process_now(process);
    process->recs[place] = rec;
    return rec;
}

/* Members that the list does not name are connected to when the first answer names them. */
static sim_time connects_for(void)
{
    const struct plan *plan = &world.plan;

    return (plan->two_lists || plan->operators > 0 ? 2 : 1) * plan->connect_timeout_ms * DRIFT_MS;
}

static struct op *new_op(enum op_kind kind, struct lease_rec *rec)
{
    struct op *op = memory_take(sizeof *op);

    op->kind = kind;
    op->state = OP_CALLING;
    op->process = rec->process;
    op->rec = rec;
    op->lease = rec->lease;
    op->began = process_now(rec->process);
    op->stopped_total = rec->process->stopped_total + rec->process->ahead;
    op->span = connects_for() + world.plan.reply_timeout_ms * DRIFT_MS;
    op->was_held = rec->state == REC_HELD && rec->deadline != 0;
    op->lost_told = rec->lost_told;
    op->token = rec->token;
    op->lists = process_lists(rec->process);
    op->next = ops;
    ops = op;
    return op;
}

/* The callback of the operation must not run any more. */
static void drop_op(struct lease_rec *rec)
{
    if (rec->op == NULL)
        return;
    rec->op->state = OP_DROPPED;
    rec->op = NULL;
    world_outcome(OUTCOME_CANCELLED);
}

/* A lock call on the lease is under way. */
static bool is_busy(const struct lease_rec *rec)
{
    return rec->state == REC_LOCKING || rec->is_again;
}

/* The program does not have the lease any more. */
static void end_rec(struct lease_rec *rec)
{
    drop_op(rec);
    rec->state = REC_GONE;
    rec->is_again = false;
    rec->deadline = 0;
    rec->process->recs[rec->place] = NULL;
    spent[rec->process->number] = rec->lease;
}

void calls_check_ends(void)
{
    for (struct op *op = ops; op != NULL; op = op->next)
        if (op->state == OP_PENDING)
            judge_time(op);
}

/* ---- Callbacks ---- */

void calls_on_lost(struct redlock_lease *lease, void *arg)
{
    struct lease_rec *rec = arg;

    world_note("lost: client, lease", rec->process->number, rec->number, 0);
    if (lease != rec->lease)
        world_fail("callback", "lost is called with another lease");
    oracle_look(rec->process);
    judge_on_lost(rec);
    rec->lost_told = true;
    actor_on_lost(rec->process, rec);
}

static void after_lock(struct lease_rec *rec, int status)
{
    if (status == REDLOCK_OK) {
        if (options_are_many(rec))
            world_outcome(OUTCOME_MANY_OK);
        if (world.plan.permits)
            world_outcome(OUTCOME_PERMIT_OK);
        if (rec->is_fair)
            world_outcome(OUTCOME_FAIR_OK);
        rec->state = REC_HELD;
        rec->holds = 1;
        return;
    }
    rec->state = REC_GONE;
    rec->process->recs[rec->place] = NULL;
}

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    struct op *op = arg;
    struct lease_rec *rec = op->rec;
    struct ev_loop *process = op->process;

    world_note("done: client, operation, status", process->number, op->kind, (uint64_t)status);
    world_say("    lease %u: %s", rec->number, redlock_errmsg(process->rl));
    oracle_look(process);
    judge_on_done(op, lease, status);
    op->state = OP_DONE;
    if (op->kind != OP_UNLOCK)
        rec->op = NULL;
    if (op->kind == OP_LOCK)
        after_lock(rec, status);
    else if (op->kind == OP_EXTEND && rec->state == REC_ADOPTED && status == REDLOCK_OK)
        rec->state = REC_HELD;
    actor_on_done(process, rec, op->kind, status);
}

static void on_log(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)level;
    world_say("    log: %s", message);
}

/* ---- Clients ---- */

/* Now and then an allocation fails.  Returns true if the call may fail for that. */
static bool begin_shortage(void)
{
    if (world.phase != PHASE_CHAOS || !world.plan.enabled[FAULT_NO_MEMORY] || !dice_chance(30))
        return false;
    heap_fail_after((unsigned)dice_below(4));
    return true;
}

static bool end_shortage(bool had_begun)
{
    bool has_failed = heap_has_failed();

    heap_reset();
    if (!had_begun || !has_failed)
        return false;
    world_fault(FAULT_NO_MEMORY);
    return true;
}

static bool knows_set(unsigned servers)
{
    for (unsigned i = 0; i < world.plan.servers; i++)
        if ((servers >> i & 1) && world.servers[i].marker.set != 0)
            return true;
    return false;
}

/* Some or all members of the newest configuration.  One of them knows the set: else the client
 * would found another one (docs/operate-members.md).  While a change replaces all members, perhaps
 * only the old ones know it. */
static unsigned draw_members(void)
{
    const struct lists lists = moves_lists(moves_newest());
    unsigned servers = dice_chance(700) ? lists.to : lists.to & (unsigned)dice_next();

    if (knows_set(servers))
        return servers;
    return knows_set(lists.to) ? lists.to : lists.from;
}

/* The masters of the list; if the set changes, of a list that is right now. */
static void write_masters(struct ev_loop *process, char *masters, size_t room)
{
    const struct list *list = process_own_list(process);
    unsigned servers = ((1u << list->len) - 1) << list->first;

    if (world.plan.operators > 0)
        servers = process->listed = draw_members();
    masters[0] = '\0';
    for (unsigned i = 0; i < world.plan.servers; i++)
        if (servers >> i & 1)
            (void)snprintf(masters + strlen(masters), room - strlen(masters), "%s%s",
                           masters[0] != '\0' ? "," : "", sets_name(i));
}

void calls_open(struct ev_loop *process)
{
    char masters[32 * SIM_SERVERS_MAX];
    const struct plan *plan = &world.plan;
    struct redlock_options opts;
    struct redlock *rl = NULL;

    write_masters(process, masters, sizeof masters);
    redlock_options_init(&opts);
    opts.masters = masters;
    opts.loop = process;
    opts.connect_timeout_ms = plan->connect_timeout_ms;
    opts.reply_timeout_ms = plan->reply_timeout_ms;
    opts.drift_ppm = plan->drift_ppm;
    opts.drift_fixed_ms = plan->drift_fixed_ms;
    opts.max_ttl_ms = process->max_ttl_ms;
    opts.note = ""; /* The host's name must not change what a seed does. */
    opts.restart_guard = plan->guarded;
    opts.clock_guard = plan->clock_guard;
    opts.tls_ca = plan->tls ? sim_tls_ca() : NULL;
    opts.log = world.verbose ? on_log : NULL;
    const bool is_short = begin_shortage();
    const int status = redlock_open(&opts, &rl);
    process->client++;
    if (status == REDLOCK_OK)
        rl->env.asks_max = plan->asks_max + 3;
    if (status == REDLOCK_OK)
        rl->masters.clocks.guard.gap = plan->clock_gap;
    if (end_shortage(is_short) && status == REDLOCK_E_NOMEM)
        return;
    expect("redlock_open", status, REDLOCK_OK);
    process_sicken(process, process_now(process));
    world_note("open: client", process->number, 0, 0);
}

void calls_close(struct ev_loop *process)
{
    struct redlock *rl = process->rl;

    world_note("close: client", process->number, 0, 0);
    tally.outcomes[OUTCOME_LATE_YES] += rl->env.stats.late_yes;
    for (unsigned place = 0; place < world.plan.leases; place++)
        if (process->recs[place] != NULL)
            end_rec(process->recs[place]);
    for (struct op *op = ops; op != NULL; op = op->next)
        if (op->process == process && op->state == OP_PENDING)
            op->state = OP_DROPPED;
    (void)redlock_close(rl);
    claims_on_close(process);
    process->client++;
    spent[process->number] = NULL;
    if (process->rl != NULL)
        world_fail("contract", "a closed client keeps its loop");
}

/* ---- Locks ---- */

static const char *const names[SIM_RESOURCES_MAX] = {"r0", "r1", "r2"};

/* List the names in rising or falling order; returns how many. */
static unsigned list_names(const struct lease_rec *rec, const char *list[SIM_RESOURCES_MAX])
{
    unsigned len = 0;

    for (unsigned i = 0; i < SIM_RESOURCES_MAX; i++) {
        unsigned r = rec->number % 2 == 0 ? i : SIM_RESOURCES_MAX - 1 - i;

        if (rec->set & 1u << r)
            list[len++] = names[r];
    }
    return len;
}

static int lock_async(struct lease_rec *rec, const struct redlock_lock_options *opts, struct op *op)
{
    const char *list[SIM_RESOURCES_MAX];
    struct redlock *rl = rec->process->rl;
    unsigned len = list_names(rec, list);

    if (world.plan.permits)
        return redlock_lock_async(rl, "s", opts, on_done, op, &rec->lease);
    if (!options_are_many(rec))
        return redlock_lock_async(rl, list[0], opts, on_done, op, &rec->lease);
    return redlock_lock_many_async(rl, list, len, opts, on_done, op, &rec->lease);
}

static int adopt(struct lease_rec *rec, const char *token, const struct redlock_lock_options *opts)
{
    const char *list[SIM_RESOURCES_MAX];
    struct redlock *rl = rec->process->rl;
    unsigned len = list_names(rec, list);

    if (world.plan.permits)
        return redlock_adopt(rl, "s", token, opts, &rec->lease);
    if (!options_are_many(rec))
        return redlock_adopt(rl, list[0], token, opts, &rec->lease);
    return redlock_adopt_many(rl, list, len, token, opts, &rec->lease);
}

void calls_lock(struct ev_loop *process, unsigned resource, bool is_probe)
{
    struct lease_rec *rec = new_rec(process, 1u << resource);
    struct op *op = new_op(OP_LOCK, rec);
    uint32_t leases = process->rl->env.stats.leases;
    struct redlock_lock_options opts;
    bool is_short;
    int status;

    rec->is_probe = is_probe;
    options_of_lock(rec, &opts);
    op->span += (opts.wait_ms + world.plan.reply_timeout_ms) * DRIFT_MS;
    if (rec->is_fenced)
        op->span += world.plan.reply_timeout_ms * DRIFT_MS; /* The second round trip. */
    if (world.plan.permits)
        op->span += QUORUM_DETOURS * world.plan.reply_timeout_ms * DRIFT_MS;
    if (opts.wait_ms == UINT32_MAX)
        op->span = SIM_NEVER;
    world_note("lock: client, lease, ttl", process->number, rec->number, opts.ttl_ms);
    is_short = begin_shortage();
    status = lock_async(rec, &opts, op);
    if (end_shortage(is_short) && status == REDLOCK_E_NOMEM) {
        if (process->rl->env.stats.leases != leases)
            world_fail("api", "a lock returns E_NOMEM, and the number of leases changed");
        process->recs[rec->place] = NULL;
        return;
    }
    expect("redlock_lock_async", status, REDLOCK_OK);
    op->lease = rec->lease;
    op->state = OP_PENDING;
    rec->op = op;
}

void calls_extend(struct lease_rec *rec, uint32_t ttl_ms)
{
    struct op *op;
    int status;

    ttl_ms = options_cut_ttl(rec->process, ttl_ms);
    if (rec->op != NULL || is_busy(rec)) {
        expect("redlock_extend_async", redlock_extend_async(rec->lease, ttl_ms, on_done, NULL),
               REDLOCK_E_STATE);
        world_fault(FAULT_MISUSE);
        return;
    }
    op = new_op(OP_EXTEND, rec);
    op->remaining_ms = oracle_remaining_ms(rec, process_now(rec->process));
    if (ttl_ms != 0 && !rec->lost_told) {
        rec->ttl_ms = ttl_ms;
        rec->ttl_low_ms = ttl_ms < rec->ttl_low_ms ? ttl_ms : rec->ttl_low_ms;
    }
    rec->is_extended = true;
    world_note("extend: client, lease, ttl", rec->process->number, rec->number, ttl_ms);
    status = redlock_extend_async(rec->lease, ttl_ms, on_done, op);
    expect("redlock_extend_async", status, REDLOCK_OK);
    op->state = OP_PENDING;
    rec->op = op;
}

/* ---- Inner locks ---- */

/* An inner lock sends no command, and changes the number of holds. */
static void check_inner(const struct lease_rec *rec, uint64_t commands)
{
    uint32_t holds = info_holds(rec->lease);

    tally.checks++;
    if (rec->process->rl->env.stats.commands != commands)
        world_fail("reentry", "client %u sends commands for a lock that it holds",
                   rec->process->number);
    if (holds != rec->holds)
        world_fail("reentry", "client %u holds resource %u %u times, not %u times",
                   rec->process->number, rec->resource, holds, rec->holds);
}

static void on_again(struct redlock_lease *lease, int status, void *arg)
{
    struct lease_rec *rec = arg;

    if (!rec->is_again || lease != rec->lease)
        world_fail("callback", "done is called of an inner lock that was dropped");
    expect("done of an inner lock", status, REDLOCK_OK);
    rec->is_again = false;
    if (world.phase != PHASE_CHAOS)
        calls_unlock(rec);
}

bool calls_may_lock_again(const struct lease_rec *rec)
{
    return rec->is_reentrant && rec->state == REC_HELD && rec->op == NULL && !rec->is_again &&
           rec->holds < 4;
}

/* A holder may lock again as a reader.  A reader that becomes a writer would wait for itself. */
void calls_lock_again(struct lease_rec *rec)
{
    uint64_t commands = rec->process->rl->env.stats.commands;
    bool is_over = oracle_remaining_ms(rec, process_now(rec->process)) == 0;
    bool is_reader = rec->number % 4 != 0, upgrades = rec->is_shared && !is_reader;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    int status;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = rec->process->max_ttl_ms;
    opts.reentrant = true;
    opts.owner = rec;
    opts.shared = is_reader;
    world_note("lock again: client, lease", rec->process->number, rec->number, 0);
    status =
        redlock_lock_async(rec->process->rl, names[rec->resource], &opts, on_again, rec, &lease);
    if (status == REDLOCK_LOST) /* The process may have been stopped in the call. */
        is_over = oracle_remaining_ms(rec, process_now(rec->process)) == 0;
    expect("redlock_lock_async of an owner", status,
           upgrades  ? REDLOCK_E_STATE
           : is_over ? REDLOCK_LOST
                     : REDLOCK_OK);
    rec->is_again = status == REDLOCK_OK;
    rec->holds += rec->is_again;
    if (rec->is_again && lease != rec->lease)
        world_fail("reentry", "client %u has two leases of what it owns", rec->process->number);
    check_inner(rec, commands);
}

/* Returns false if the lease may not be unlocked now. */
static bool unlock_inner(struct lease_rec *rec)
{
    uint64_t commands = rec->process->rl->env.stats.commands;
    bool busy = rec->op != NULL;

    expect("redlock_unlock_async of an inner lock", redlock_unlock_async(rec->lease, NULL, NULL),
           busy ? REDLOCK_E_STATE : REDLOCK_OK);
    rec->holds -= !busy;
    check_inner(rec, commands);
    return !busy;
}

void calls_unlock(struct lease_rec *rec)
{
    bool wants_done = !dice_chance(200);
    struct op *op;

    if (is_busy(rec)) {
        expect("redlock_unlock_async", redlock_unlock_async(rec->lease, on_done, NULL),
               REDLOCK_E_STATE);
        world_fault(FAULT_MISUSE);
        return;
    }
    while (rec->holds > 1)
        if (!unlock_inner(rec))
            return;
    op = new_op(OP_UNLOCK, rec);
    op->remaining_ms = oracle_remaining_ms(rec, process_now(rec->process));
    world_note("unlock: client, lease", rec->process->number, rec->number, 0);
    end_rec(rec);
    expect("redlock_unlock_async",
           redlock_unlock_async(rec->lease, wants_done ? on_done : NULL, op), REDLOCK_OK);
    op->state = wants_done ? OP_PENDING : OP_DROPPED;
}

void calls_cancel(struct lease_rec *rec)
{
    world_note("cancel: client, lease", rec->process->number, rec->number, 0);
    world_outcome(OUTCOME_CANCELLED);
    end_rec(rec);
    redlock_cancel(rec->lease);
}

void calls_detach(struct lease_rec *rec, struct ev_loop *to)
{
    struct ev_loop *process = rec->process;
    /* The lost lease is being released, so the client that adopts its token has no promise. */
    bool is_stale = rec->is_stale || rec->lease->q.state == QUORUM_LOST;
    char token[REDLOCK_TOKEN_MAX + 1];

    if (is_busy(rec)) {
        expect("redlock_detach", redlock_detach(rec->lease), REDLOCK_E_STATE);
        world_fault(FAULT_MISUSE);
        return;
    }
    (void)snprintf(token, sizeof token, "%s", info_token(rec->lease));
    world_note("detach: client, lease", process->number, rec->number, 0);
    world_outcome(OUTCOME_DETACHED);
    oracle_token_of(oracle_token(token, strlen(token)))->is_excused = true;
    claims_on_detach(process, (uint32_t)rec->lease->serial);
    end_rec(rec);
    expect("redlock_detach", redlock_detach(rec->lease), REDLOCK_OK);
    line_on_detach(rec);
    if (to == NULL || to->handed[0] != '\0')
        return;
    (void)snprintf(to->handed, sizeof to->handed, "%s", token);
    to->handed_set = rec->set;
    to->handed_shared = rec->is_shared;
    to->handed_at = process_now(process);
    to->handed_stale = is_stale;
}

struct lease_rec *calls_adopt(struct ev_loop *process, unsigned set, bool shared, const char *token,
                              bool is_stale)
{
    struct lease_rec *rec = new_rec(process, set);
    struct redlock_lock_options opts;
    bool is_short;
    int status;

    rec->is_shared = shared;
    options_of_adopted(rec, token, &opts);
    rec->is_stale = is_stale;
    rec->token = oracle_token(token, strlen(token));
    rec->state = REC_ADOPTED;
    world_note("adopt: client, lease", process->number, rec->number, 0);
    is_short = begin_shortage();
    status = adopt(rec, token, &opts);
    if (end_shortage(is_short) && status == REDLOCK_E_NOMEM)
        return process->recs[rec->place] = NULL;
    expect("redlock_adopt", status, REDLOCK_OK);
    if (redlock_remaining_ms(rec->lease) != 0)
        world_fail("api", "an adopted lease is held before it was extended");
    return rec;
}

/* ---- Calls that are not allowed ---- */

static void misuse_options(struct redlock *rl)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = dice_chance(500) ? 0 : world.plan.ttl_max_ms + 1;
    expect("redlock_lock_async", redlock_lock_async(rl, "r0", &opts, on_done, NULL, &lease),
           REDLOCK_E_INVAL);
    expect("redlock_lock_async", redlock_lock_async(rl, "", NULL, on_done, NULL, &lease),
           REDLOCK_E_INVAL);
    expect("redlock_lock_async", redlock_lock_async(rl, "r0", NULL, NULL, NULL, &lease),
           REDLOCK_E_INVAL);
    expect("redlock_lock", redlock_lock(rl, "r0", NULL, &lease), REDLOCK_E_STATE);
}

static void misuse_spent(struct redlock_lease *lease)
{
    expect("redlock_unlock_async", redlock_unlock_async(lease, on_done, NULL), REDLOCK_E_STATE);
    expect("redlock_extend_async", redlock_extend_async(lease, 0, on_done, NULL), REDLOCK_E_STATE);
    expect("redlock_detach", redlock_detach(lease), REDLOCK_E_STATE);
    redlock_cancel(lease);
}

void calls_misuse(struct ev_loop *process)
{
    world_fault(FAULT_MISUSE);
    expect("redlock_unlock_async", redlock_unlock_async(NULL, on_done, NULL), REDLOCK_OK);
    expect("redlock_extend_async", redlock_extend_async(NULL, 0, on_done, NULL), REDLOCK_E_INVAL);
    redlock_cancel(NULL);
    if (dice_chance(500))
        misuse_options(process->rl);
    else if (spent[process->number] != NULL)
        misuse_spent(spent[process->number]);
}
