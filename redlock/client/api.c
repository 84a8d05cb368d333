/*
 * api.c - redlock_open(), and the public calls on leases, for both kinds of client.
 *
 * A blocking call is an asynchronous call with a waiter in place of the callback.
 */
#include "redlock/redlock.h"

#include <string.h>

#include "redlock/base/error.h"
#include "redlock/client/blocking.h"
#include "redlock/client/client.h"
#include "redlock/client/wanted.h"
#include "redlock/lease/explain.h"
#include "redlock/lease/kind.h"
#include "redlock/lease/lease.h"
#include "redlock/lease/table.h"
#include "redlock/wire/keys.h"

int redlock_open(const struct redlock_options *opts, struct redlock **ret_rl)
{
    return client_open(opts, NULL, ret_rl);
}

/* ---- Shared by both kinds of client ---- */

/* client_enter() for a lease.  It also checks that the caller owns the lease. */
static int enter_lease(struct redlock_lease *lease, bool blocking)
{
    int status;

    error_clear();
    if (lease == NULL)
        return lease_check(lease);
    status = client_enter(client_of(lease));
    if (status != REDLOCK_OK)
        return status;
    status = lease_check(lease);
    if (status == REDLOCK_OK)
        status = client_need(client_of(lease), blocking);
    if (status != REDLOCK_OK)
        client_leave(client_of(lease));
    return status;
}

static void start(struct redlock_lease *lease, enum lease_op op, enum quorum_event_type type,
                  uint32_t ttl_ms)
{
    struct quorum_event event = {.type = type, .lease = ttl_ms * DRIFT_MS};

    lease->op = (uint8_t)op;
    lease_step(lease, &event);
}

/* Whether the lease can be extended now, and to this ttl. */
static int check_extend(const struct redlock_lease *lease, uint32_t ttl_ms)
{
    int status = ttl_ms != 0 ? options_check_ttl(&client_of(lease)->options, ttl_ms) : REDLOCK_OK;

    if (status != REDLOCK_OK)
        return error_wrap(status, "extend");
    if (lease->op != LEASE_OP_NONE || !quorum_may_extend(&lease->q))
        return error_set(REDLOCK_E_STATE, "extend: the lease is not held yet, or is busy");
    return REDLOCK_OK;
}

/* An unlock or a cancel ends an extend that is under way. */
static void drop_extend(struct redlock_lease *lease)
{
    if (lease->op == LEASE_OP_EXTEND && lease->waiter != NULL) {
        struct waiter *waiter = lease->waiter;

        lease->waiter = NULL;
        blocking_wake(client_of(lease)->blocking, waiter,
                      error_set(REDLOCK_LOST, "extend: unlocked meanwhile"));
    }
    lease->ready_done = false;
}

/*
 * Wait for a lost callback that runs, because the caller may free lost_arg when the call returns.
 * Returns OK.  If the client is closed meanwhile, this function unlocks the client and returns
 * E_STATE; then the caller touches neither the client nor the lease.
 */
static int leave_lost(struct redlock_lease *lease)
{
    struct redlock *rl = client_of(lease);

    lease->lost = NULL;
    /* The caller no longer owns the lease, which may be over when lost returns. */
    lease_pin(lease);
    while (lease->in_lost)
        blocking_wait_change(rl->blocking);
    lease_unpin(lease);
    if (rl->blocking == NULL || !rl->env.closing)
        return REDLOCK_OK;
    lease_reap(lease);
    blocking_unlock(rl->blocking);
    return error_set(REDLOCK_E_STATE, "the client was closed meanwhile");
}

/* Whether this thread may end the lease. */
static int check_owner(const struct redlock_lease *lease, const struct owner *thread)
{
    const struct owned *owned = lease_owned(lease);

    if (owned == NULL || owned->owner.pointer != NULL || owner_is_same(&owned->owner, thread))
        return REDLOCK_OK;
    return error_set(REDLOCK_E_STATE, "the lock belongs to another thread");
}

/* Whether the owner still has the lease after one unlock. */
static bool is_inner(const struct redlock_lease *lease)
{
    const struct owned *owned = lease_owned(lease);

    return owned != NULL && owned->count > 1;
}

/* Unlock without asking any master.  Returns OK or LOST, as the lease stands. */
static int unlock_inner(struct redlock_lease *lease)
{
    lease_owned(lease)->count--;
    return redlock_remaining_ms(lease) > 0 ? REDLOCK_OK : REDLOCK_LOST;
}

/* ---- On the caller's loop ---- */

/* Call done soon, for an operation that needed no master.  A done that an earlier unlock left
 * pending is dropped. */
static void end_soon(struct redlock_lease *lease, enum lease_op op, int status,
                     redlock_done_fn *done, void *arg)
{
    lease->op = (uint8_t)(done != NULL ? op : LEASE_OP_NONE);
    lease->status = (int8_t)status;
    lease->done = done;
    lease->arg = arg;
    lease->ready_done = done != NULL;
    if (done != NULL)
        table_make_ready(lease->leases, lease);
}

/* Whether the lease can be unlocked now.  A lock under way must be cancelled instead.  An inner
 * lock under way must end first, because a cancel would end the whole lease.  A lease has one
 * done, which an inner unlock would replace, so it must wait for an extend under way.  The last
 * unlock drops that extend, and its done is not called. */
static int check_unlock_async(const struct redlock_lease *lease)
{
    const struct owner thread = owner_make(NULL);

    if (lease->op == LEASE_OP_LOCK && !is_inner(lease))
        return error_set(REDLOCK_E_STATE, "not held yet; cancel it instead");
    if (lease->op == LEASE_OP_LOCK)
        return error_set(REDLOCK_E_STATE, "its owner is locking it again");
    if (lease->op == LEASE_OP_EXTEND && is_inner(lease))
        return error_set(REDLOCK_E_STATE, "an extend is under way");
    return check_owner(lease, &thread);
}

static int lock_async(struct redlock *rl, const struct wanted *wanted,
                      const struct redlock_lock_options *opts, redlock_done_fn *done, void *arg,
                      struct redlock_lease **ret_lease)
{
    struct redlock_lease *lease = NULL;
    int status = client_enter(rl);

    if (status != REDLOCK_OK)
        return error_wrap(status, "acquire");
    status = client_need(rl, false);
    if (status == REDLOCK_OK && done == NULL)
        status = error_set(REDLOCK_E_INVAL, "done is NULL");
    if (status == REDLOCK_OK)
        status = wanted_lease(rl, wanted, opts, &lease);
    if (status != REDLOCK_OK) {
        client_leave(rl);
        return error_wrap(status, "acquire");
    }
    if (ret_lease != NULL)
        *ret_lease = lease;
    if (is_inner(lease)) {
        end_soon(lease, LEASE_OP_LOCK, REDLOCK_OK, done, arg);
        client_leave(rl);
        return REDLOCK_OK;
    }
    lease->done = done;
    lease->arg = arg;
    start(lease, LEASE_OP_LOCK, QUORUM_EV_ACQUIRE, 0);
    client_leave(rl);
    return REDLOCK_OK;
}

int redlock_lock_async(struct redlock *rl, const char *resource,
                       const struct redlock_lock_options *opts, redlock_done_fn *done, void *arg,
                       struct redlock_lease **ret_lease)
{
    const struct wanted wanted = wanted_one(&resource);

    return lock_async(rl, &wanted, opts, done, arg, ret_lease);
}

int redlock_lock_many_async(struct redlock *rl, const char *const *resources, size_t resources_len,
                            const struct redlock_lock_options *opts, redlock_done_fn *done,
                            void *arg, struct redlock_lease **ret_lease)
{
    const struct wanted wanted = wanted_several(resources, resources_len);

    return lock_async(rl, &wanted, opts, done, arg, ret_lease);
}

int redlock_extend_async(struct redlock_lease *lease, uint32_t ttl_ms, redlock_done_fn *done,
                         void *arg)
{
    int status = enter_lease(lease, false);

    if (status != REDLOCK_OK)
        return error_wrap(status, "extend");
    status = done != NULL ? check_extend(lease, ttl_ms)
                          : error_set(REDLOCK_E_INVAL, "extend: done is NULL");
    if (status == REDLOCK_OK) {
        lease->done = done;
        lease->arg = arg;
        start(lease, LEASE_OP_EXTEND, QUORUM_EV_EXTEND, ttl_ms);
    }
    client_leave(client_of(lease));
    return status;
}

int redlock_unlock_async(struct redlock_lease *lease, redlock_done_fn *done, void *arg)
{
    struct redlock *rl;
    int status;

    if (lease == NULL)
        return REDLOCK_OK;
    rl = client_of(lease);
    status = enter_lease(lease, false);
    if (status != REDLOCK_OK)
        return error_wrap(status, "release");
    status = check_unlock_async(lease);
    if (status != REDLOCK_OK || is_inner(lease)) {
        if (status == REDLOCK_OK)
            end_soon(lease, LEASE_OP_UNLOCK, unlock_inner(lease), done, arg);
        client_leave(rl);
        return status == REDLOCK_OK ? status : error_wrap(status, "release");
    }
    drop_extend(lease);
    lease_disown(lease);
    lease->lost = NULL;
    lease->done = done;
    lease->arg = arg;
    start(lease, LEASE_OP_UNLOCK, QUORUM_EV_RELEASE, 0);
    client_leave(rl);
    return REDLOCK_OK;
}

/* End the lease without any callback. */
static void give_up(struct redlock_lease *lease, struct quorum_event *event)
{
    lease->ready_done = lease->ready_lost = false;
    lease->op = LEASE_OP_NONE;
    lease_step(lease, event);
    lease_let_go(lease);
}

void redlock_cancel(struct redlock_lease *lease)
{
    struct quorum_event event = {.type = QUORUM_EV_CANCEL};
    const struct owner thread = owner_make(NULL);
    struct redlock *rl;

    if (lease == NULL)
        return;
    rl = client_of(lease);
    if (enter_lease(lease, rl->blocking != NULL) != REDLOCK_OK)
        return;
    if (rl->blocking != NULL && check_owner(lease, &thread) != REDLOCK_OK) {
        client_leave(rl);
        return;
    }
    drop_extend(lease);
    lease_disown(lease);
    if (leave_lost(lease) != REDLOCK_OK)
        return;
    give_up(lease, &event);
    client_leave(rl);
}

/* ---- Blocking ---- */

void redlock_interrupt(struct redlock *rl)
{
    if (rl != NULL && rl->blocking != NULL && !client_is_forked(rl))
        blocking_interrupt(rl->blocking);
}

static int unlock_inner_now(struct redlock_lease *lease)
{
    int status = unlock_inner(lease);

    explain_end(lease, LEASE_OP_UNLOCK, status);
    return status;
}

/* A blocking call. */
struct call {
    struct waiter waiter; /* The first field. */
    struct redlock *rl;
    const struct wanted *wanted; /* Of a lock, as are the options. */
    const struct redlock_lock_options *opts;
    struct redlock_lease *lease;
    uint32_t ttl_ms;    /* Of an extend. */
    struct owner owner; /* The calling thread, of an unlock. */
};

static struct call *call_of(struct waiter *waiter)
{
    return (struct call *)(void *)waiter;
}

static enum begun end_at_once(struct call *call, int status)
{
    call->waiter.status = status;
    return BEGUN_OVER;
}

/* Let the call wait for what the lease does now. */
static enum begun let_wait(struct call *call, enum lease_op op, enum quorum_event_type type)
{
    struct redlock_lease *lease = call->lease;

    blocking_begin_wait(call->rl->blocking, &call->waiter);
    lease->waiter = &call->waiter;
    start(lease, op, type, call->ttl_ms);
    if (op != LEASE_OP_EXTEND)
        lease_reap(lease);
    return BEGUN_WAITS;
}

static enum begun begin_lock(struct waiter *waiter)
{
    struct call *call = call_of(waiter);
    int status = REDLOCK_OK;

    if (blocking_is_interrupted(call->rl->blocking, waiter))
        status = error_set(REDLOCK_INTERRUPTED, "%s", redlock_strerror(REDLOCK_INTERRUPTED));
    if (status == REDLOCK_OK)
        status = wanted_lease(call->rl, call->wanted, call->opts, &call->lease);
    if (status != REDLOCK_OK)
        return end_at_once(call, error_wrap(status, "acquire"));
    if (is_inner(call->lease))
        return end_at_once(call, REDLOCK_OK);
    return let_wait(call, LEASE_OP_LOCK, QUORUM_EV_ACQUIRE);
}

static int lock(struct redlock *rl, const struct wanted *wanted,
                const struct redlock_lock_options *opts, struct redlock_lease **ret_lease)
{
    struct call call = {.waiter.begin = begin_lock, .rl = rl, .wanted = wanted, .opts = opts};
    int status;

    if (ret_lease == NULL && rl != NULL && rl->blocking != NULL)
        return error_set(REDLOCK_E_INVAL, "acquire: ret_lease is NULL");
    status = client_call(rl, &call.waiter, "acquire");
    if (status == REDLOCK_OK)
        *ret_lease = call.lease;
    return status;
}

int redlock_lock(struct redlock *rl, const char *resource, const struct redlock_lock_options *opts,
                 struct redlock_lease **ret_lease)
{
    const struct wanted wanted = wanted_one(&resource);

    return lock(rl, &wanted, opts, ret_lease);
}

int redlock_lock_many(struct redlock *rl, const char *const *resources, size_t resources_len,
                      const struct redlock_lock_options *opts, struct redlock_lease **ret_lease)
{
    const struct wanted wanted = wanted_several(resources, resources_len);

    return lock(rl, &wanted, opts, ret_lease);
}

static enum begun begin_extend(struct waiter *waiter)
{
    struct call *call = call_of(waiter);
    int status = lease_check(call->lease);

    status = status != REDLOCK_OK ? error_wrap(status, "extend")
                                  : check_extend(call->lease, call->ttl_ms);
    if (status != REDLOCK_OK)
        return end_at_once(call, status);
    return let_wait(call, LEASE_OP_EXTEND, QUORUM_EV_EXTEND);
}

int redlock_extend(struct redlock_lease *lease, uint32_t ttl_ms)
{
    struct call call = {.waiter.begin = begin_extend, .lease = lease, .ttl_ms = ttl_ms};

    error_clear();
    if (lease == NULL)
        return error_wrap(lease_check(lease), "extend");
    call.rl = client_of(lease);
    return client_call(call.rl, &call.waiter, "extend");
}

static enum begun begin_unlock(struct waiter *waiter)
{
    struct call *call = call_of(waiter);
    struct redlock_lease *lease = call->lease;
    int status = lease_check(lease);

    if (status == REDLOCK_OK)
        status = check_owner(lease, &call->owner);
    if (status != REDLOCK_OK)
        return end_at_once(call, error_wrap(status, "release"));
    if (is_inner(lease))
        return end_at_once(call, unlock_inner_now(lease));
    drop_extend(lease);
    lease_disown(lease);
    status = leave_lost(lease);
    if (status != REDLOCK_OK) {
        (void)end_at_once(call, error_wrap(status, "release"));
        return BEGUN_LEFT;
    }
    return let_wait(call, LEASE_OP_UNLOCK, QUORUM_EV_RELEASE);
}

int redlock_unlock(struct redlock_lease *lease)
{
    struct call call = {.waiter.begin = begin_unlock, .lease = lease, .owner = owner_make(NULL)};

    if (lease == NULL)
        return REDLOCK_OK;
    call.rl = client_of(lease);
    return client_call(call.rl, &call.waiter, "release");
}

/* ---- Both kinds of client ---- */

static int adopt(struct redlock *rl, const struct wanted *wanted,
                 const struct redlock_lock_options *opts, struct redlock_lease **ret_lease)
{
    const char *token = wanted->token;
    struct redlock_lease *lease = NULL;
    int status = client_enter(rl);

    if (status != REDLOCK_OK)
        return error_wrap(status, "adopt");
    if (ret_lease == NULL || token == NULL)
        status = error_set(REDLOCK_E_INVAL, "%s is NULL", token == NULL ? "token" : "ret_lease");
    else if (token[0] == 0 || strlen(token) > REDLOCK_TOKEN_MAX)
        status = error_set(REDLOCK_E_INVAL, "a token has 1 to %d bytes", REDLOCK_TOKEN_MAX);
    else if (strncmp(token, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0)
        status = error_set(REDLOCK_E_INVAL, "no token begins with '" WIRE_REVOKED "'");
    if (status == REDLOCK_OK)
        status = wanted_lease(rl, wanted, opts, &lease);
    if (status == REDLOCK_OK) {
        start(lease, LEASE_OP_NONE, QUORUM_EV_ADOPT, 0);
        *ret_lease = lease;
    }
    client_leave(rl);
    return status == REDLOCK_OK ? status : error_wrap(status, "adopt");
}

int redlock_adopt(struct redlock *rl, const char *resource, const char *token,
                  const struct redlock_lock_options *opts, struct redlock_lease **ret_lease)
{
    struct wanted wanted = wanted_one(&resource);

    wanted.token = token;
    return adopt(rl, &wanted, opts, ret_lease);
}

int redlock_adopt_many(struct redlock *rl, const char *const *resources, size_t resources_len,
                       const char *token, const struct redlock_lock_options *opts,
                       struct redlock_lease **ret_lease)
{
    struct wanted wanted = wanted_several(resources, resources_len);

    wanted.token = token;
    return adopt(rl, &wanted, opts, ret_lease);
}

int redlock_detach(struct redlock_lease *lease)
{
    struct quorum_event event = {.type = QUORUM_EV_DETACH};
    const struct owner thread = owner_make(NULL);
    struct redlock *rl;
    int status;

    if (lease == NULL)
        return REDLOCK_OK;
    rl = client_of(lease);
    status = enter_lease(lease, rl->blocking != NULL);
    if (status != REDLOCK_OK)
        return error_wrap(status, "detach");
    if (lease->waiter != NULL || lease->op == LEASE_OP_LOCK) {
        client_leave(rl);
        return error_set(REDLOCK_E_STATE, "detach: a call with the lease is under way");
    }
    status = check_owner(lease, &thread);
    if (status != REDLOCK_OK) {
        client_leave(rl);
        return error_wrap(status, "detach");
    }
    lease_disown(lease);
    status = leave_lost(lease);
    if (status != REDLOCK_OK)
        return error_wrap(status, "detach");
    if (lease_kind(lease)->on_detach != NULL)
        lease_kind(lease)->on_detach(lease);
    give_up(lease, &event);
    client_leave(rl);
    return REDLOCK_OK;
}
