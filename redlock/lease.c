/*
 * lease.c - carries out what the machine decides, and nothing else.
 */
#include "redlock/lease.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/blocking.h"
#include "redlock/client.h"
#include "redlock/error.h"
#include "redlock/fair.h"
#include "redlock/loop.h"
#include "redlock/place.h"
#include "redlock/vote.h"

#define QUOTED_MAX 80 /* Of a name in a message. */

/* A client that holds 100 000 leases takes 512 bytes of heap for each, names
 * aside: this, and up to 42 for the slot, the alarm, and the growth of their
 * tables (measured by test/bench/leases.c). */
_Static_assert(sizeof(struct redlock_lease) <= 456, "a lease has grown");

/* ---- Memory ---- */

static int grow_slots(struct redlock *rl)
{
    uint32_t room = rl->slots_room ? rl->slots_room * 2 : 64;
    struct redlock_lease **slots;
    uint32_t *slots_free;

    if (rl->slots_room > UINT32_MAX / 4 || alarm_reserve(&rl->alarms, room + 3) != 0)
        return -1;
    slots = realloc(rl->slots, room * sizeof(struct redlock_lease *));
    if (slots == NULL)
        return -1;
    rl->slots = slots;
    slots_free = realloc(rl->slots_free, room * sizeof *slots_free);
    if (slots_free == NULL)
        return -1;
    rl->slots_free = slots_free;
    rl->slots_room = room;
    return 0;
}

/* The newest LEASE_SPENT of the leases that are over stay in memory. */
static void bury(struct redlock *rl, struct redlock_lease *lease)
{
    struct redlock_lease *oldest = rl->spent_first;

    lease->next = NULL;
    if (oldest == NULL)
        rl->spent_first = lease;
    else
        rl->spent_last->next = lease;
    rl->spent_last = lease;
    if (rl->spent_len < LEASE_SPENT) {
        rl->spent_len++;
        return;
    }
    rl->spent_first = oldest->next;
    free(oldest);
}

static void take_slot(struct redlock *rl, struct redlock_lease *lease)
{
    lease->slot = rl->slots_free_len > 0 ? rl->slots_free[--rl->slots_free_len] : rl->slots_len++;
    rl->slots[lease->slot] = lease;
    lease->serial = ++rl->serial;
}

/* What some leases have behind all else: never two of these. */
union extra {
    struct quorum_fence fence;
    struct permit permit;
    struct place place;
};

static size_t extra_size(enum lease_kind kind, const struct quorum_config *config)
{
    if (config->fence)
        return sizeof(struct quorum_fence);
    return kind == LEASE_PERMIT ? sizeof(struct permit)
           : kind == LEASE_FAIR ? sizeof(struct place)
                                : 0;
}

/* At most one alignment behind the end of the rest. */
static void *extra_of(const struct redlock_lease *lease)
{
    size_t end =
        offsetof(struct redlock_lease, name) + lease->name_len + 1u + lease->adopted_len + 1u;
    size_t align = _Alignof(union extra);

    return (char *)(uintptr_t)lease + (end + align - 1) / align * align;
}

struct quorum_fence *lease_fence(const struct redlock_lease *lease)
{
    return lease->q.config.fence ? extra_of(lease) : NULL;
}

struct permit *lease_permit(const struct redlock_lease *lease)
{
    return lease->kind == LEASE_PERMIT ? extra_of(lease) : NULL;
}

struct place *lease_place(const struct redlock_lease *lease)
{
    return lease->kind == LEASE_FAIR ? extra_of(lease) : NULL;
}

struct redlock_lease *lease_new(struct redlock *rl, enum lease_kind kind, const char *name,
                                size_t name_len, const char *token,
                                const struct redlock_lock_options *opts,
                                const struct quorum_config *config)
{
    size_t token_len = token != NULL ? strlen(token) : 0;
    size_t size = sizeof(struct redlock_lease) + name_len + 1 + token_len + 1;
    struct redlock_lease *lease;

    if (rl->slots_free_len == 0 && rl->slots_len == rl->slots_room && grow_slots(rl) != 0)
        return NULL;
    if (extra_size(kind, config) > 0)
        size += _Alignof(union extra) + extra_size(kind, config);
    lease = malloc(size);
    if (lease == NULL)
        return NULL;
    *lease = (struct redlock_lease){.rl = rl, .kind = kind, .owned = true, .alive = true};
    memcpy(lease->name, name, name_len);
    lease->name[name_len] = '\0';
    lease->name_len = (uint16_t)name_len;
    memcpy(lease->name + name_len + 1, token != NULL ? token : "", token_len + 1);
    lease->adopted_len = (uint8_t)token_len;
    lease->lost = opts->lost;
    lease->lost_arg = opts->lost_arg;
    lease->alarm.pos = ALARM_OFF;
    lease->wake_at = DRIFT_NEVER;
    quorum_init(&lease->q, config);
    if (config->fence)
        memset(lease_fence(lease), 0, sizeof(struct quorum_fence));
    if (kind == LEASE_PERMIT)
        *lease_permit(lease) = (struct permit){.slots = (uint16_t)opts->permits};
    if (kind == LEASE_PERMIT && token != NULL)
        (void)permit_adopt(lease_permit(lease), token); /* That was checked. */
    take_slot(rl, lease);
    fair_init(lease);
    rl->stats.leases++;
    return lease;
}

const char *lease_name(const struct redlock_lease *lease)
{
    return lease->name + (lease->kind == LEASE_PERMIT ? WIRE_PERMIT_LEN : 0);
}

const char *lease_awaited(const struct redlock_lease *lease, size_t *ret_len)
{
    const char *name = lease->name;

    if (lease->kind != LEASE_MANY) {
        *ret_len = lease->name_len;
        return name;
    }
    for (unsigned i = 0; i < lease->line; i++)
        name += strlen(name) + 1;
    *ret_len = strlen(name);
    return name;
}

const char *lease_token(const struct redlock_lease *lease)
{
    return lease->adopted_len > 0 ? lease->name + lease->name_len + 1 : lease->token;
}

void lease_pin(struct redlock_lease *lease)
{
    assert(lease->alive && lease->pins < UINT8_MAX);
    lease->pins++;
}

void lease_unpin(struct redlock_lease *lease)
{
    assert(lease->alive && lease->pins > 0);
    lease->pins--;
}

void lease_free(struct redlock_lease *lease)
{
    struct redlock *rl = lease->rl;

    assert(lease->pins == 0 || rl->blocking == NULL);
    listen_forget(lease);
    alarm_set(&rl->alarms, &lease->alarm, DRIFT_NEVER);
    rl->slots[lease->slot] = NULL;
    rl->slots_free[rl->slots_free_len++] = lease->slot;
    lease_disown(lease);
    lease->alive = false;
    atomic_store_explicit(&lease->deadline, 0, memory_order_relaxed);
    bury(rl, lease);
    rl->stats.leases--;
}

void lease_reap(struct redlock_lease *lease)
{
    struct redlock *rl = lease->rl;

    if (lease->owned || lease->pins > 0 || lease->is_ready || !quorum_is_settled(&lease->q))
        return;
    lease_free(lease);
    if (rl->stats.leases == 0 && rl->blocking != NULL)
        blocking_idle(rl->blocking);
}

void lease_disown(struct redlock_lease *lease)
{
    owner_drop(&lease->rl->owners, lease);
    lease->owned = lease->has_owner = false;
}

void lease_let_go(struct redlock_lease *lease)
{
    lease_disown(lease);
    lease->lost = NULL;
    lease_reap(lease);
}

int lease_check(const struct redlock_lease *lease)
{
    if (lease == NULL)
        return error_set(REDLOCK_E_INVAL, "the lease is NULL");
    if (!lease->alive || !lease->owned)
        return error_set(REDLOCK_E_STATE, "the lease has been unlocked or given up already");
    return REDLOCK_OK;
}

bool lease_is_waiting(const struct redlock_lease *lease)
{
    enum quorum_state state = lease->q.state;

    return state == QUORUM_PAUSING || state == QUORUM_ACQUIRING || state == QUORUM_RAISING ||
           state == QUORUM_CONNECTING;
}

/* ---- Actions ---- */

/* That of a permit tells of its slot. */
static void write_token(const struct redlock_lease *lease, uint32_t round, unsigned master,
                        char *ret_token)
{
    const struct permit *permit = lease_permit(lease);

    token_write(&lease->rl->tokens, lease->serial, round, ret_token);
    if (permit != NULL)
        permit_mark(ret_token, permit->slot_of[master]);
}

/* A token that is not the live one is written to spare: lease->token may be
 * being read by other threads (redlock_token). */
static struct wire_args args_of(struct redlock_lease *lease, unsigned master,
                                char spare[TOKEN_LEN + 1])
{
    uint32_t round = lease->q.round_of[master];
    struct wire_args args = {
        .name = lease->name,
        .name_len = lease->name_len,
        .token = lease->token,
        .token_len = TOKEN_LEN,
        .ttl_ms = drift_to_ms(lease->q.lease),
    };

    if (lease->adopted_len > 0) {
        args.token = lease_token(lease);
        args.token_len = lease->adopted_len;
    } else if (round == lease->q.round && lease->token_round != round) {
        write_token(lease, round, master, lease->token);
        lease->token_round = round;
    } else if (lease->token_round != round) {
        write_token(lease, round, master, spare);
        args.token = spare;
    }
    return args;
}

static size_t encode(struct redlock_lease *lease, enum quorum_command command, unsigned master,
                     bool in_full, char *buf)
{
    char spare[TOKEN_LEN + 1], key[WIRE_KEY_MAX];
    struct wire_args args = args_of(lease, master, spare);
    const struct permit *permit = lease_permit(lease);

    fair_fill(lease, &args);
    if (command == QUORUM_CMD_RAISE) {
        args.epoch = lease->rl->standing.epochs[master];
        args.counter = lease_fence(lease)->counter;
    }
    if (permit != NULL) {
        args.slot = permit->slot_of[master];
        args.slots = permit->slots;
        args.name_len = permit_key(key, lease->name, lease->name_len, args.slot);
        args.name = key;
    }
    return kind_write(buf, lease->kind, command, in_full, &args);
}

/* For a fencing token: one on each, whether the SET before it is granted or not. */
static void send_counts(struct redlock_lease *lease, const struct quorum_send *send)
{
    struct redlock *rl = lease->rl;
    const struct master_ask ask = {lease->slot, (uint32_t)lease->serial, send->ask, MASTER_COUNT,
                                   false};
    const struct wire_args args = {
        .name = lease->name,
        .name_len = lease->name_len,
    };
    size_t len = wire_count(rl->scratch, &args);

    for (unsigned m = 0; m < lease->q.config.masters; m++) {
        if (!(send->to & 1u << m))
            continue;
        master_send(rl->masters[m], &ask, rl->scratch, len);
        rl->stats.commands++;
    }
}

/* Whoever closes a client on a loop hears no answer, nor who lacks a script: the first release
 * of each kind brings its text to each master, and the others find it there. */
static bool brings_script(const struct redlock_lease *lease, enum quorum_command command,
                          unsigned master)
{
    struct redlock *rl = lease->rl;
    quorum_mask bit = (quorum_mask)(1u << master);

    if (!rl->closing || rl->blocking != NULL || command != QUORUM_CMD_RELEASE ||
        (rl->brought[lease->kind] & bit))
        return false;
    rl->brought[lease->kind] |= bit;
    return true;
}

/* The bytes are the same for all masters but those with an older round, and where they
 * tell an epoch, or bring a script. */
static void carry_out(struct redlock_lease *lease, const struct quorum_send *send)
{
    struct redlock *rl = lease->rl;
    struct master_ask ask = {lease->slot, (uint32_t)lease->serial, send->ask,
                             (uint8_t)send->command, false};
    bool has_epoch = send->command == QUORUM_CMD_RAISE;
    bool begins = send->command == QUORUM_CMD_FENCE || send->command == QUORUM_CMD_SET, in_full;
    uint32_t encoded = 0; /* No round has this number. */
    size_t len = 0;

    if (begins && lease->token_round != lease->q.round)
        rl->stats.rounds++;
    if (lease->kind == LEASE_PERMIT && send->command == QUORUM_CMD_SET)
        permit_ask(lease_permit(lease), send->ask, send->to, client_random(rl));
    if (begins)
        fair_on_ask(lease, send->to);
    for (unsigned m = 0; m < lease->q.config.masters; m++) {
        if (!(send->to & 1u << m))
            continue;
        in_full = brings_script(lease, send->command, m);
        if (lease->q.round_of[m] != encoded || has_epoch || in_full != ask.in_full) {
            encoded = lease->q.round_of[m];
            ask.in_full = in_full;
            len = encode(lease, send->command, m, in_full, rl->scratch);
        }
        master_send(rl->masters[m], &ask, rl->scratch, len);
        rl->stats.commands++;
    }
    if (send->command == QUORUM_CMD_FENCE)
        send_counts(lease, send);
    proof_want(rl, send->command, send->to);
}

static void count_end(struct redlock_lease *lease, int status)
{
    struct redlock *rl = lease->rl;
    bool fenced = status == REDLOCK_OK && lease->q.config.fence;

    switch ((enum lease_op)lease->op) {
    case LEASE_OP_LOCK:
        rl->stats.fenced += fenced;
        rl->stats.acquired += status == REDLOCK_OK;
        rl->stats.contended += status == REDLOCK_CONTENDED;
        rl->stats.unreachable += status == REDLOCK_UNREACHABLE;
        rl->stats.too_late += status == REDLOCK_TOO_LATE;
        break;
    case LEASE_OP_UNLOCK:
        rl->stats.released += status == REDLOCK_OK;
        break;
    case LEASE_OP_EXTEND:
    case LEASE_OP_NONE:
        break;
    }
}

/* The operation is over: wake who waits for it, or line up its callback. */
static void end_op(struct redlock_lease *lease, int status)
{
    count_end(lease, status);
    if (lease->has_owner && lease->op == LEASE_OP_LOCK && status == REDLOCK_OK)
        owner_of(&lease->rl->owners, lease)->count = 1;
    if (lease->waiter != NULL) {
        struct waiter *waiter = lease->waiter;

        lease->waiter = NULL;
        if (lease->op == LEASE_OP_LOCK && status != REDLOCK_OK)
            lease_disown(lease);
        lease_explain(lease, lease->op, status);
        lease->op = LEASE_OP_NONE;
        blocking_wake(lease->rl->blocking, waiter, status);
        return;
    }
    if (lease->rl->blocking != NULL) { /* Nobody waits any more, and there is no callback. */
        lease->op = LEASE_OP_NONE;
        return;
    }
    lease->status = (int8_t)status;
    lease->ready_done = true;
    client_make_ready(lease->rl, lease);
}

/* Forward at once, backward when it rings: see alarm.h. */
static void set_alarm(struct redlock_lease *lease, drift_time at)
{
    lease->wake_at = at;
    if (at == DRIFT_NEVER || (lease->alarm.pos != ALARM_OFF && lease->alarm.at <= at))
        return;
    alarm_set(&lease->rl->alarms, &lease->alarm, at);
}

/* For redlock_remaining_ms() in any thread. */
static void publish_deadline(struct redlock_lease *lease)
{
    bool held = lease->q.state == QUORUM_HELD || lease->q.state == QUORUM_EXTENDING;
    drift_time before = atomic_load_explicit(&lease->deadline, memory_order_relaxed);
    drift_time after = held ? lease->q.deadline : 0;

    if (after == before)
        return;
    lease->rl->stats.extended += before != 0 && after != 0;
    atomic_store_explicit(&lease->deadline, after, memory_order_relaxed);
}

void lease_step(struct redlock_lease *lease, struct quorum_event *event)
{
    struct redlock *rl = lease->rl;
    quorum_mask owing = lease->q.owing; /* Before the releases of what failed. */
    enum quorum_state before = lease->q.state;
    struct quorum_actions actions;

    event->up = rl->up;
    event->coming = rl->coming;
    event->random = client_random(rl);
    event->fence = lease_fence(lease);
    event->now = loop_now(rl->loop);
    quorum_step(&lease->q, event, &actions);
    fair_on_step(lease);
    for (unsigned i = 0; i < actions.send_len; i++)
        carry_out(lease, &actions.send[i]);
    set_alarm(lease, actions.wake_at);
    publish_deadline(lease);
    listen_on_step(lease, before);
    if (actions.lost) {
        rl->stats.lost++;
        if (lease->lost != NULL) {
            lease->ready_lost = true;
            client_make_ready(rl, lease);
        }
    }
    if (!actions.ended)
        return;
    lease->silent = event->type == QUORUM_EV_TIMER ? owing : 0;
    rl->stats.raised += lease->op == LEASE_OP_LOCK && actions.status == REDLOCK_OK &&
                        event->type == QUORUM_EV_REPLY && event->command == QUORUM_CMD_RAISE;
    end_op(lease, actions.status);
}

/* A master without our scripts gets this one in full, and has it then. */
static bool send_in_full(struct redlock_lease *lease, unsigned master, uint32_t ask,
                         enum quorum_command command)
{
    struct redlock *rl = lease->rl;
    struct master_ask again = {lease->slot, (uint32_t)lease->serial, ask, (uint8_t)command, true};
    size_t len;

    if (!(rl->up & 1u << master) || lease->q.ask_of[master] != ask)
        return false;
    len = encode(lease, command, master, true, rl->scratch);
    master_send(rl->masters[master], &again, rl->scratch, len);
    rl->stats.commands++;
    proof_want(rl, command, (quorum_mask)(1u << master));
    if (command == QUORUM_CMD_SET)
        fair_on_ask_again(lease, master);
    return true;
}

/* That is what it waits for from now on. */
static void note_taken(struct redlock_lease *lease, unsigned number)
{
    if (number <= wire_count_names(lease->name, lease->name_len))
        lease->taken = (uint8_t)(number - 1);
}

void lease_on_vote(struct redlock_lease *lease, unsigned master, const struct master_ask *ask,
                   const struct vote *vote, const char *error)
{
    struct redlock *rl = lease->rl;
    enum quorum_command command = (enum quorum_command)ask->command;
    bool begins = command == QUORUM_CMD_SET || command == QUORUM_CMD_FENCE;
    bool lacks_script = vote->noscript && kind_is_script(lease->kind, command) && !ask->in_full;
    struct quorum_event event = {
        .type = QUORUM_EV_REPLY,
        .master = master,
        .ask = ask->ask,
        .command = command,
        .vote = vote->vote,
        .counter = vote->counter,
        .unkept = vote->unkept,
        .elsewhere = vote->hint != 0,
    };

    if (vote->relink)
        master_relink(rl->masters[master], error);
    else if (!lacks_script && vote->vote != QUORUM_VOTE_VOID) /* Of which it knows already. */
        master_note(rl->masters[master], error);
    if (vote->vote == QUORUM_VOTE_YES && !clocks_count(rl, master, command, lease->q.sent))
        event.vote = begins ? QUORUM_VOTE_VOID : QUORUM_VOTE_NONE;
    if (vote->vote == QUORUM_VOTE_YES && command == QUORUM_CMD_RAISE)
        guard_on_raised(&rl->standing.guard, master, vote->counter);
    if (lacks_script && send_in_full(lease, master, ask->ask, command))
        return;
    if (vote->taken != 0 && ask->ask == lease->q.round)
        note_taken(lease, vote->taken);
    if (vote->hints && ask->ask == lease->q.round)
        permit_hint(lease_permit(lease), master, vote->hint);
    fair_on_answer(lease, master, command, vote);
    if (begins && vote->vote == QUORUM_VOTE_YES && ask->ask != lease->q.round)
        rl->stats.late_yes++;
    lease_step(lease, &event);
    lease_reap(lease);
}

void lease_on_alarm(struct redlock_lease *lease, drift_time now)
{
    struct quorum_event event = {.type = QUORUM_EV_TIMER};

    if (lease->wake_at > now) {
        set_alarm(lease, lease->wake_at);
        return;
    }
    lease_step(lease, &event);
    lease_reap(lease);
}

/* ---- Messages ---- */

static const char *op_name(enum lease_op op)
{
    switch (op) {
    case LEASE_OP_LOCK:
        return "acquire";
    case LEASE_OP_EXTEND:
        return "extend";
    case LEASE_OP_UNLOCK:
        return "release";
    case LEASE_OP_NONE:
        break;
    }
    return "lease";
}

/* Empty: it is none. */
static const char *trouble_of(const struct redlock_lease *lease, unsigned m, const char *silence)
{
    const struct redlock *rl = lease->rl;
    const char *error = master_error(rl->masters[m]);

    if ((rl->up & lease->silent & 1u << m) != 0)
        return silence;
    if (!(rl->standing.linked & 1u << m) && error[0] == 0)
        return "has too much to do"; /* Its queue is full: see MASTER_ASKS_MAX. */
    return error;
}

/* The first masters that are to blame, and dots where there is no room for more. */
static void list_troubles(const struct redlock_lease *lease, char *buf, size_t size)
{
    static const char dots[] = "; ...";
    const struct redlock *rl = lease->rl;
    char silence[48];
    size_t len = 0;

    (void)snprintf(silence, sizeof silence, "no answer within %u ms",
                   drift_to_ms(rl->options.reply_timeout));
    buf[0] = 0;
    for (unsigned m = 0; m < rl->options.masters_len; m++) {
        const char *error = trouble_of(lease, m, silence);
        size_t room = size - len - sizeof dots, more;

        if (error[0] == 0)
            continue;
        more = (size_t)snprintf(buf + len, room, "%smaster %u (%s): %s", len > 0 ? "; " : "", m + 1,
                                master_name(rl->masters[m]), error);
        if (more >= room) { /* The first is told as far as it goes. */
            memcpy(buf + (len > 0 ? len : room - 1), dots, sizeof dots);
            return;
        }
        len += more;
    }
}

/* Several as a list. */
static void quote_names(const struct redlock_lease *lease, char *buf, size_t size)
{
    char names[QUOTED_MAX];
    const char *name = lease_name(lease);
    size_t len = lease->name_len - (size_t)(name - lease->name);

    if (len > sizeof names)
        len = sizeof names;
    for (size_t i = 0; i < len; i++)
        names[i] = (char)(name[i] != '\0' ? name[i] : ',');
    (void)error_quote(names, len, buf, size);
}

void lease_explain(const struct redlock_lease *lease, enum lease_op op, int status)
{
    char name[QUOTED_MAX], troubles[ERROR_MESSAGE_MAX - QUOTED_MAX - 64];
    const char *why = redlock_strerror(status);

    if (status == REDLOCK_OK) {
        error_clear();
        return;
    }
    quote_names(lease, name, sizeof name);
    troubles[0] = 0;
    if (status == REDLOCK_UNREACHABLE || status == REDLOCK_TOO_LATE)
        list_troubles(lease, troubles, sizeof troubles);
    if (status == REDLOCK_CONTENDED && lease_place(lease) != NULL &&
        place_is_full(lease_place(lease)))
        (void)snprintf(troubles, sizeof troubles, "its queue is full, of %d who wait",
                       WIRE_QUEUE_MAX);
    if (status == REDLOCK_LOST && op == LEASE_OP_EXTEND && redlock_remaining_ms(lease) > 0)
        why = "the lock is held still, but lost was told, or was due";
    if (status == REDLOCK_E_STATE) /* The only way for it to befall a call under way. */
        why = "the client was closed meanwhile";
    (void)error_set(status, "%s %s: %s%s%s", op_name(op), name, why, troubles[0] != 0 ? ": " : "",
                    troubles);
}
