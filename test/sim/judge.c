/*
 * judge.c - what must always be true of operations.
 *
 *  callback  done is called once, after its call has returned.  lost is called once.  Neither
 *            is called after the lease was cancelled or unlocked, or its client closed.
 *  ends      An operation ends in the time that its options allow.  Time in which its process
 *            was stopped does not count.
 *  pace      A round begins no sooner after the last one than the pause that was asked for.
 *            There are exceptions: the last round, a round after a message that the lock may
 *            be free, and a few rounds after a hint that another permit is free.
 *  lost      lost is called before the deadline, unless the process was stopped meanwhile.
 *            It is not called without a reason.
 *  truth     After CONTENDED, some master said no in the last round.  After a lock is OK, some
 *            of its lease is left.  After an unlock is OK, a majority has deleted the key.
 *            In good health nothing is UNREACHABLE, NOT_READY, TOO_LATE or LOST.  Good health
 *            means: all links up, all servers and messages quick since before the operation
 *            began.
 */
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/client/client.h"

#define SLACK (2 * DRIFT_MS)

static sim_time reply_timeout(void)
{
    return world.plan.reply_timeout_ms * DRIFT_MS;
}

static const char *name_of(enum op_kind kind)
{
    static const char *const names[] = {"lock", "extend", "unlock"};

    return names[kind];
}

/* ---- Rounds ---- */

static struct lease_rec *find(struct ev_loop *process, uint32_t serial)
{
    for (unsigned place = 0; place < world.plan.leases; place++) {
        struct lease_rec *rec = process->recs[place];

        if (rec != NULL && (uint32_t)rec->lease->serial == serial)
            return rec;
    }
    return NULL;
}

/* A message lets a round begin early.  A fair waiter may also do so once to send its ticket, and
 * once for each master that granted its join before it had one. */
static bool may_hurry(struct lease_rec *rec)
{
    if (!rec->is_fair)
        return waits_may_hurry(rec->process, rec);
    if (rec->process->heard_at >= rec->round_sent)
        return true;
    return rec->hurries++ <= world.plan.servers;
}

/* True if a round may begin now. */
static bool keeps_pace(struct lease_rec *rec, uint64_t now)
{
    bool has_paused = now >= rec->round_at + rec->pause || now >= rec->asked + rec->wait;

    if (rec->heard_hint && rec->detours < QUORUM_DETOURS && !has_paused) {
        rec->detours++;
        world_outcome(OUTCOME_DETOUR);
        return true;
    }
    rec->detours = 0;
    return has_paused || may_hurry(rec);
}

/* A token that waits at the masters is asked for again in the next round (quorum.c, rule 13).  A
 * master is asked once in each round. */
void judge_on_set(struct ev_loop *process, unsigned master, uint32_t serial, uint32_t round)
{
    struct lease_rec *rec = find(process, serial);
    uint64_t now = process_clock(process);

    if (rec == NULL)
        return;
    if (rec->round == round && !(rec->round_asked & 1u << master)) {
        rec->round_asked |= (quorum_mask)(1u << master);
        return;
    }
    rec->round_asked = (quorum_mask)(1u << master);
    line_on_round(rec);
    if (rec->round != 0 && !keeps_pace(rec, now))
        world_fail("pace", "client %u begins a round %.3f ms after the one before", process->number,
                   (double)(now - rec->round_at) / 1e6);
    storms_on_round(rec, now);
    rec->round = round;
    rec->round_sent = process_now(process);
    rec->round_at = clock_at(&process->clock, world.now);
    rec->raises = 0;
    rec->heard_no = rec->heard_hint = false;
}

/* All masters are asked to raise with one number. */
void judge_on_raise(struct ev_loop *process, uint32_t serial, uint32_t raise)
{
    struct lease_rec *rec = find(process, serial);

    if (rec == NULL || (rec->raises > 0 && rec->raise == raise))
        return;
    rec->raise = raise;
    rec->raises++;
}

void judge_on_waiter(struct ev_loop *process, uint32_t serial, const struct command *command)
{
    struct lease_rec *rec = find(process, serial);
    int waiter;

    if (rec == NULL || !rec->is_fair)
        return;
    waiter = args_token(command, 6);
    if (rec->waiter >= 0 && rec->waiter != waiter)
        world_fail("wire", "a waiter changes its name");
    rec->waiter = waiter;
    oracle_token_of(waiter)->is_probe = rec->is_probe;
}

void judge_on_no(struct ev_loop *process, uint32_t serial, uint32_t round, bool hints)
{
    struct lease_rec *rec = find(process, serial);

    if (rec != NULL && rec->is_fair)
        world_outcome(OUTCOME_FAIR_WAITS);
    if (rec == NULL || rec->round != round)
        return;
    rec->heard_no = true;
    rec->heard_hint = rec->heard_hint || hints;
}

/* ---- Time ---- */

/* How long the process of the operation has run since it began. */
static sim_time time_given(const struct op *op)
{
    sim_time gone = process_now(op->process) - op->began;
    sim_time stopped = op->process->stopped_total - op->stopped_total +
                       (op->process->in_turn ? op->process->ahead : 0);

    return gone > stopped ? gone - stopped : 0;
}

void judge_time(const struct op *op)
{
    if (op->span != SIM_NEVER && time_given(op) > op->span + SLACK)
        world_fail("ends", "%s of client %u takes %.3f ms; its limit is %.3f ms", name_of(op->kind),
                   op->process->number, (double)time_given(op) / 1e6, (double)op->span / 1e6);
}

/* ---- Truth ---- */

/* All was well for as long as it can matter to the operation that ends now. */
static bool is_healthy(const struct op *op)
{
    sim_time now = process_now(op->process), since = op->began;
    sim_time round = now - reply_timeout() - SLACK;

    if (op->kind == OP_LOCK && since < round)
        since = round; /* Only the last round counts. */
    return process_is_healthy(op->process, since - 2 * world.plan.quick) &&
           op->process->ahead <= world.plan.quick;
}

static void check_health(const struct op *op, int status, bool expects_ok)
{
    if (!is_healthy(op))
        return;
    world_outcome(OUTCOME_HEALTHY);
    if (expects_ok ? status != REDLOCK_OK : status != REDLOCK_OK && status != REDLOCK_CONTENDED)
        world_fail("truth", "%s of client %u gives %d (%s) although all is well", name_of(op->kind),
                   op->process->number, status, redlock_errmsg(NULL));
}

/* How long the latest round may take when all is well: to ask, and to raise the counters.  They are
 * raised again if another lock was granted meanwhile. */
static sim_time round_time(const struct lease_rec *rec)
{
    unsigned again = rec->raises > 1 ? rec->raises - 1 : 0;

    return (4 + 2 * (sim_time)again) * world.plan.quick;
}

static void check_lock(const struct op *op, int status)
{
    static const enum outcome outcomes[] = {OUTCOME_LOCK_OK, OUTCOME_LOCK_CONTENDED,
                                            OUTCOME_LOCK_UNREACHABLE, OUTCOME_LOCK_TOO_LATE};
    const struct lease_rec *rec = op->rec;

    if (status == REDLOCK_NOT_READY)
        world_outcome(OUTCOME_LOCK_NOT_READY);
    else if (status == REDLOCK_E_WRONG_SET)
        world_outcome(OUTCOME_LOCK_WRONG_SET);
    else if (status < REDLOCK_OK || status > REDLOCK_TOO_LATE)
        world_fail("truth", "a lock gives %d", status);
    else
        world_outcome(outcomes[status]);
    if (status == REDLOCK_CONTENDED && !rec->heard_no)
        world_fail("truth", "CONTENDED, and no master said no");
    if (status == REDLOCK_OK && op->process->ahead == 0 &&
        rec->deadline <= process_reading(op->process, world.now))
        world_fail("truth", "a lock gives OK, and nothing is left of it");
    if (plan_validity(rec->ttl_ms) > round_time(rec))
        check_health(op, status, false);
}

/* The set has changed since the lease was counted, and its next extension may fail (quorum.c, rule
 * 11). */
static bool is_moved(const struct lease_rec *rec)
{
    const struct lists now = process_lists(rec->process);

    return now.from != rec->lists.from || now.to != rec->lists.to;
}

static void check_extend(const struct op *op, int status)
{
    static const enum outcome outcomes[] = {
        [REDLOCK_OK] = OUTCOME_EXTEND_OK,
        [REDLOCK_UNREACHABLE] = OUTCOME_EXTEND_UNREACHABLE,
        [REDLOCK_TOO_LATE] = OUTCOME_EXTEND_TOO_LATE,
        [REDLOCK_LOST] = OUTCOME_EXTEND_LOST,
    };
    const struct lease_rec *rec = op->rec;
    sim_time now = process_now(op->process);
    bool safe = op->was_held && !partners_are_done(rec) && !is_moved(rec) && rec->hears_lost &&
                !op->lost_told && (world.plan.may_forget | world.plan.may_step) == 0 &&
                op->remaining_ms * DRIFT_MS > rec->margin + reply_timeout() &&
                plan_validity(rec->ttl_ms) > 4 * world.plan.quick;

    if (status == REDLOCK_NOT_READY)
        world_outcome(OUTCOME_EXTEND_NOT_READY);
    else if (status == REDLOCK_E_WRONG_SET)
        world_outcome(OUTCOME_EXTEND_UNREACHABLE); /* Rare, so that no series need see it. */
    else if (status < REDLOCK_OK || status > REDLOCK_LOST || status == REDLOCK_CONTENDED)
        world_fail("truth", "an extension gives %d", status);
    else
        world_outcome(outcomes[status]);
    if (status == REDLOCK_LOST && !rec->lost_told && rec->hears_lost && rec->deadline != 0 &&
        oracle_remaining_ms(rec, now) > 0)
        world_fail("truth", "an extension gives LOST while the lease is held");
    if (safe)
        check_health(op, status, true);
}

/* A majority of the old list deleted the token.  Members that joined may never have stored it, or a
 * late command may have left it there until it expires (quorum.c, rule 11). */
static bool is_released(const struct lists *lists, quorum_mask deleted)
{
    const struct lists old = {.from = lists->from, .to = lists->from};

    return moves_are_quorum(&old, deleted);
}

static void check_unlock(const struct op *op, int status)
{
    quorum_mask deleted = op->token >= 0 ? oracle_token_of(op->token)->deleted : 0;
    const struct lists lists = process_lists(op->process);
    /* If the token is stale, the client that gave it up is releasing it. */
    bool safe = op->was_held && !partners_are_done(op->rec) &&
                (world.plan.may_forget | world.plan.may_step) == 0 &&
                op->remaining_ms * DRIFT_MS > reply_timeout();

    if (status != REDLOCK_OK && status != REDLOCK_UNREACHABLE && status != REDLOCK_LOST)
        world_fail("truth", "an unlock gives %d", status);
    world_outcome(status == REDLOCK_OK     ? OUTCOME_UNLOCK_OK
                  : status == REDLOCK_LOST ? OUTCOME_UNLOCK_LOST
                                           : OUTCOME_UNLOCK_UNREACHABLE);
    /* The client may learn of a change in the turn in which it calls back. */
    if (status == REDLOCK_OK && !is_released(&lists, deleted) && !is_released(&op->lists, deleted))
        world_fail("truth",
                   "an unlock gives OK, and the masters that deleted the key (mask %x) are no "
                   "majority",
                   deleted);
    if (safe)
        check_health(op, status, true);
}

void judge_on_done(struct op *op, const struct redlock_lease *lease, int status)
{
    static const char *const states[] = {"before its call has returned", NULL, "twice",
                                         "after it was dropped"};

    if (op->state != OP_PENDING)
        world_fail("callback", "done of a %s of client %u is called %s", name_of(op->kind),
                   op->process->number, states[op->state]);
    if (lease != op->lease)
        world_fail("callback", "done is called with another lease");
    judge_time(op);
    troubles_check(op, status);
    switch (op->kind) {
    case OP_LOCK:
        check_lock(op, status);
        break;
    case OP_EXTEND:
        check_extend(op, status);
        break;
    case OP_UNLOCK:
        check_unlock(op, status);
        break;
    }
}

/* ---- Lost ---- */

/* lost is called at least so long before the deadline. */
static drift_span margin(const struct lease_rec *rec)
{
    drift_span half = plan_validity(rec->ttl_low_ms) / 2;

    return rec->margin < half ? rec->margin : half;
}

/* True if the lease could have been renewed. */
static bool is_needless(const struct lease_rec *rec)
{
    drift_span lost_at = plan_validity(rec->ttl_ms) - margin(rec);
    drift_span third = rec->ttl_ms * DRIFT_MS / 3;
    drift_span renew_at = third < lost_at / 2 ? third : lost_at / 2;

    return rec->renews && !partners_are_done(rec) &&
           (world.plan.may_forget | world.plan.may_step) == 0 && rec->ttl_ms == rec->ttl_low_ms &&
           lost_at > renew_at + 4 * world.plan.quick + SLACK &&
           process_is_healthy(rec->process, rec->published - reply_timeout()) &&
           rec->process->ahead <= world.plan.quick;
}

void judge_on_lost(struct lease_rec *rec)
{
    struct ev_loop *process = rec->process;
    uint64_t now = process_reading(process, process_now(process));
    uint64_t deadline = rec->deadline != 0 ? rec->deadline : rec->over;
    sim_time stop_matters = clock_when(&process->clock, deadline - margin(rec) / 2);

    world_outcome(OUTCOME_LOST_TOLD);
    if (rec->lost_told)
        world_fail("callback", "lost is called twice");
    if (rec->state == REC_GONE)
        world_fail("callback", "lost is called for a lease that is not the program's");
    if (deadline == 0)
        return; /* Granted and lost in one turn. */
    if (now >= deadline && process->stopped_last < stop_matters && process->ahead == 0 &&
        rec->published < stop_matters)
        world_fail("lost", "client %u is notified %.3f ms after the deadline, and was not stopped",
                   process->number, (double)(now - deadline) / 1e6);
    if (world.plan.exclusive && (world.plan.may_forget | world.plan.may_step) == 0 &&
        deadline > now && deadline - now > rec->margin + SLACK && oracle_has_keys(rec))
        world_fail("lost", "client %u is notified %.3f ms before the deadline, for no reason",
                   process->number, (double)(deadline - now) / 1e6);
    if (is_needless(rec))
        world_fail("lost", "client %u loses a lease that is renewed, although all is well",
                   process->number);
}

/* Find beliefs that have ended without a notice to the program. */
void judge_on_turn(struct ev_loop *process)
{
    uint64_t now = process_reading(process, world.now);

    for (unsigned place = 0; place < world.plan.leases; place++) {
        struct lease_rec *rec = process->recs[place];
        bool is_over;

        if (rec == NULL || !rec->hears_lost || rec->lost_told)
            continue;
        is_over = rec->deadline != 0 ? now >= rec->deadline : rec->over != 0;
        /* Callbacks that come due in a call run in the next turn. */
        if (is_over && ++rec->silent_turns > 2)
            world_fail("lost", "client %u is not notified that a lease is over", process->number);
    }
}
