/*
 * lease.c - carries out what the machine decides, and decides nothing itself.
 *
 * It is longer than others: the shell of one lease is one idea, and the machine has many events.
 */
#include "redlock/lease/lease.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/lease/counts.h"
#include "redlock/lease/explain.h"
#include "redlock/lease/table.h"
#include "redlock/wire/redis_error.h"

/* A client with 100 000 leases takes 528 bytes of heap for each, without names: this struct, and
 * up to 42 bytes for the slot, the alarm, and spare room in their tables (test/bench/leases.c). */
_Static_assert(sizeof(struct redlock_lease) <= 432, "a lease has grown");

/* ---- Allocation ---- */

static size_t extra_size(const struct kind *kind, const struct quorum_config *config)
{
    size_t fence = config->fence ? sizeof(struct quorum_fence) : 0;
    size_t extra = fence + kind->extra;

    return extra > 0 ? _Alignof(uint64_t) + extra : 0;
}

/* The length of what is behind the name: an adopted token, or a token of its own and the note. */
static size_t behind_len(const struct lease_wanted *wanted, const char *note)
{
    size_t note_len = strlen(note);

    if (wanted->token != NULL)
        return strlen(wanted->token);
    return note_len > 0 ? TOKEN_LEN + 1 + note_len : TOKEN_LEN;
}

/* Its own token comes with the first round, and until then the text is empty. */
static void write_behind(const struct lease_wanted *wanted, const char *note, size_t len,
                         char *text)
{
    if (wanted->token != NULL) {
        memcpy(text, wanted->token, len + 1);
        return;
    }
    text[0] = '\0';
    text[TOKEN_LEN] = TOKEN_NOTE;
    if (len > TOKEN_LEN)
        memcpy(text + TOKEN_LEN + 1, note, len - TOKEN_LEN - 1);
    text[len] = '\0';
}

/* The name and the token are copied behind the struct. */
static struct redlock_lease *make(const struct lease_wanted *wanted, const char *note)
{
    size_t token_len = behind_len(wanted, note);
    size_t extra = extra_size(kinds[wanted->kind], wanted->config);
    size_t size = sizeof(struct redlock_lease) + wanted->name_len + 1 + token_len + 1 + extra;
    struct redlock_lease *lease = malloc(size);

    if (lease == NULL)
        return NULL;
    *lease = (struct redlock_lease){.kind = (uint8_t)wanted->kind, .owned = true, .alive = true};
    memcpy(lease->name, wanted->name, wanted->name_len);
    lease->name[wanted->name_len] = '\0';
    lease->name_len = (uint16_t)wanted->name_len;
    write_behind(wanted, note, token_len, lease->name + wanted->name_len + 1);
    lease->token_len = (uint8_t)token_len;
    lease->adopted = wanted->token != NULL;
    if (extra > 0)
        memset(lease_behind(lease), 0, extra - _Alignof(uint64_t));
    return lease;
}

struct redlock_lease *lease_new(struct leases *leases, const struct lease_wanted *wanted)
{
    struct redlock_lease *lease;

    if (table_reserve(leases) != 0)
        return NULL;
    lease = make(wanted, wanted->opts->note != NULL ? wanted->opts->note : leases->note);
    if (lease == NULL)
        return NULL;
    lease->leases = leases;
    lease->lost = wanted->opts->lost;
    lease->lost_arg = wanted->opts->lost_arg;
    lease->alarm.pos = ALARM_OFF;
    lease->wake_at = DRIFT_NEVER;
    quorum_init(&lease->q, wanted->config);
    table_take_slot(leases, lease);
    if (lease_kind(lease)->init != NULL)
        lease_kind(lease)->init(lease, wanted->opts, wanted->token);
    return lease;
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
    struct leases *leases = lease->leases;

    alarm_set(&leases->env->alarms, &lease->alarm, DRIFT_NEVER);
    lease_disown(lease);
    lease->alive = false;
    atomic_store_explicit(&lease->deadline, 0, memory_order_relaxed);
    leases->events->on_free(leases->cookie, lease);
    table_bury(leases, lease);
}

void lease_reap(struct redlock_lease *lease)
{
    if (lease->owned || lease->pins > 0 || lease->is_ready || !quorum_is_settled(&lease->q))
        return;
    lease_free(lease);
}

void lease_disown(struct redlock_lease *lease)
{
    if (lease->has_owner)
        owner_drop(&lease->leases->owners, lease->name, lease);
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

const char *lease_awaited(const struct redlock_lease *lease, size_t *ret_len)
{
    if (lease_kind(lease)->awaited != NULL)
        return lease_kind(lease)->awaited(lease, ret_len);
    *ret_len = lease->name_len;
    return lease->name;
}

struct owned *lease_owned(const struct redlock_lease *lease)
{
    return lease->has_owner ? owner_of(&lease->leases->owners, lease->name, lease) : NULL;
}

/* ---- Actions ---- */

static void write_token(const struct redlock_lease *lease, uint32_t round, unsigned master,
                        char *ret_token)
{
    token_write(&lease->leases->tokens, lease->serial, round, ret_token);
    if (lease_kind(lease)->stamp != NULL)
        lease_kind(lease)->stamp(lease, master, ret_token);
}

/* Only the live token is written into the lease; any other goes to spare, with the note.  Another
 * thread may be reading that of the lease (redlock_lease_info). */
static struct wire_args args_of(struct redlock_lease *lease, enum quorum_command command,
                                unsigned master, char spare[REDLOCK_TOKEN_MAX + 1])
{
    uint32_t round = lease->q.round_of[master];
    char *token = lease->name + lease->name_len + 1;
    drift_time now = command == QUORUM_CMD_GIVE ? env_now(lease->leases->env) : 0;
    struct wire_args args = {
        .name = lease->name,
        .name_len = lease->name_len,
        .token = token,
        .token_len = lease->token_len,
        .ttl_ms = drift_to_ms(quorum_span(&lease->q, command, now)),
    };

    if (lease->adopted || lease->token_round == round)
        return args;
    if (round == lease->q.round) {
        write_token(lease, round, master, token);
        lease->token_round = round;
    } else {
        memcpy(spare, token, lease->token_len + 1u);
        write_token(lease, round, master, spare);
        args.token = spare;
    }
    return args;
}

static size_t encode(struct redlock_lease *lease, enum quorum_command command, unsigned master,
                     bool in_full, char *buf)
{
    const struct kind *kind = lease_kind(lease);
    char spare[REDLOCK_TOKEN_MAX + 1], key[WIRE_KEY_MAX];
    struct wire_args args = args_of(lease, command, master, spare);

    if (command == QUORUM_CMD_RAISE) {
        args.epoch = masters_state(lease->leases->masters, master);
        args.counter = lease_fence(lease)->counter;
    }
    if (kind->fill != NULL)
        kind->fill(lease, master, key, &args);
    return kind_write(kind, buf, command, in_full, &args);
}

static struct ask make_ask(const struct redlock_lease *lease, uint32_t number, unsigned what,
                           bool in_full)
{
    return (struct ask){
        .slot = lease->slot,
        .serial = (uint32_t)lease->serial,
        .number = number,
        .what = (uint8_t)what,
        .flags = in_full ? ASK_IN_FULL : 0,
    };
}

/* The bytes are the same for all masters of a round: a permit has one slot in it. */
static size_t encode_count(const struct redlock_lease *lease, unsigned master, char *buf)
{
    char key[WIRE_KEY_MAX];
    struct wire_args args = {.name = lease->name, .name_len = lease->name_len};

    if (lease_kind(lease)->fill != NULL)
        lease_kind(lease)->fill(lease, master, key, &args);
    if (lease_kind(lease)->write_count != NULL)
        return lease_kind(lease)->write_count(buf, &args);
    return wire_count(buf, &args);
}

/* For a fencing token, count once on each master, whether it grants the lock before or not. */
static void send_counts(struct redlock_lease *lease, uint32_t number, quorum_mask to)
{
    struct masters *masters = lease->leases->masters;
    const struct ask ask = make_ask(lease, number, WHAT_COUNT, false);
    size_t len = 0;

    for (unsigned m = 0; to >> m != 0; m++) {
        if (!(to & mask_of(m)))
            continue;
        if (len == 0)
            len = encode_count(lease, m, masters->peers.scratch);
        masters_send(masters, m, &ask, masters->peers.scratch, len);
    }
}

/* A loop client that closes never sees NOSCRIPT.  So its first release of each kind carries the
 * full script to each master.  Later releases find the script there. */
static bool brings_script(const struct redlock_lease *lease, enum quorum_command command,
                          unsigned master)
{
    struct leases *leases = lease->leases;
    quorum_mask *brought = &leases->brought[lease->kind];

    if (command != QUORUM_CMD_RELEASE || !leases->env->deaf || (*brought & mask_of(master)))
        return false;
    *brought |= mask_of(master);
    return true;
}

static bool begins(enum quorum_command command)
{
    return command == QUORUM_CMD_SET || command == QUORUM_CMD_FENCE;
}

/* A yes to it says that the key was set. */
static bool stores(enum quorum_command command)
{
    return begins(command) || command == QUORUM_CMD_GIVE;
}

static void on_begin(struct redlock_lease *lease, const struct quorum_send *send)
{
    if (lease->q.asked == send->to) /* The first request of the round. */
        lease->leases->env->stats.rounds++;
    if (lease_kind(lease)->on_ask != NULL)
        lease_kind(lease)->on_ask(lease, send);
}

/* The bytes are the same for all masters.  Exceptions: an older round, a command that names an
 * epoch, and one that carries a script. */
static void carry_out(struct redlock_lease *lease, const struct quorum_send *send)
{
    struct masters *masters = lease->leases->masters;
    char *scratch = masters->peers.scratch;
    struct ask ask = make_ask(lease, send->ask, send->command, false);
    bool has_epoch = send->command == QUORUM_CMD_RAISE;
    uint32_t encoded = 0; /* No round has this number. */
    size_t len = 0;

    if (begins(send->command))
        on_begin(lease, send);
    if (send->command == QUORUM_CMD_GIVE && lease_kind(lease)->on_give != NULL)
        lease_kind(lease)->on_give(lease, send->to);
    for (unsigned m = 0; send->to >> m != 0; m++) {
        uint8_t flags;

        if (!(send->to & mask_of(m)))
            continue;
        flags = brings_script(lease, send->command, m) ? ASK_IN_FULL : 0;
        if (lease->q.round_of[m] != encoded || has_epoch || flags != ask.flags) {
            encoded = lease->q.round_of[m];
            ask.flags = flags;
            len = encode(lease, send->command, m, flags != 0, scratch);
        }
        masters_send(masters, m, &ask, scratch, len);
    }
    if (send->command == QUORUM_CMD_FENCE)
        send_counts(lease, send->ask, send->to);
    masters_want_proof(masters, send->command, send->to);
}

static void end_op(struct redlock_lease *lease, int status)
{
    struct leases *leases = lease->leases;

    if (lease->has_owner && lease->op == LEASE_OP_LOCK && status == REDLOCK_OK)
        lease_owned(lease)->count = 1;
    leases->events->on_end(leases->cookie, lease, status);
}

/* An alarm moves to an earlier time at once, and to a later one when it rings: see alarm.h. */
static void set_alarm(struct redlock_lease *lease, drift_time at)
{
    lease->wake_at = at;
    if (at == DRIFT_NEVER || (lease->alarm.pos != ALARM_OFF && lease->alarm.at <= at))
        return;
    alarm_set(&lease->leases->env->alarms, &lease->alarm, at);
}

/* The copy serves redlock_remaining_ms(), which any thread may call. */
static void publish_deadline(struct redlock_lease *lease, drift_time now)
{
    drift_time earlier = atomic_load_explicit(&lease->deadline, memory_order_relaxed);
    drift_time after = quorum_is_held(&lease->q) ? lease->q.deadline : 0;

    if (after == earlier)
        return;
    lease->leases->env->stats.extended += earlier != 0 && after != 0;
    if (earlier != 0)
        counts_on_hold(lease, now, after != 0);
    lease->silent = 0;
    atomic_store_explicit(&lease->deadline, after, memory_order_relaxed);
}

static void on_lost(struct redlock_lease *lease)
{
    lease->leases->env->stats.lost++;
    if (lease->lost == NULL)
        return;
    lease->ready_lost = true;
    table_make_ready(lease->leases, lease);
}

/* Too few masters voted.  Returns the status that says why. */
static int name_trouble(struct redlock_lease *lease, quorum_mask failed, drift_time now)
{
    struct outlook_view view;
    int status;

    /* Each failure of a release is UNREACHABLE. */
    lease->deciding = (quorum_mask)~0u;
    if (lease->op == LEASE_OP_UNLOCK)
        return REDLOCK_UNREACHABLE;
    status = outlook_status(masters_outlook_of(lease->leases->masters, failed | lease->silent,
                                               lease_refused(lease), now, &view));
    lease->deciding = outlook_deciding(&view, status);
    return status;
}

void lease_step(struct redlock_lease *lease, struct quorum_event *event)
{
    struct leases *leases = lease->leases;
    const struct peers *peers = &leases->masters->peers;
    /* Read before quorum_step(), which adds the releases of a failed operation. */
    quorum_mask owing = lease->q.owing;
    enum quorum_state before = lease->q.state;
    drift_time since = lease->q.since, sent = lease->q.sent;
    drift_time timeout = lease->q.timeout;
    struct quorum_actions actions;

    event->members = peers->members;
    event->up = peers->up;
    event->coming = peers->coming;
    event->full = peers->full;
    event->random = env_random(leases->env);
    event->linked = leases->masters->standing.linked;
    event->fence = lease_fence(lease);
    event->now = env_now(leases->env);
    if (event->type == QUORUM_EV_REPLY)
        counts_on_answer(lease, event);
    quorum_step(&lease->q, event, &actions);
    if (lease_kind(lease)->on_step != NULL)
        lease_kind(lease)->on_step(lease);
    for (unsigned i = 0; i < actions.send_len; i++)
        carry_out(lease, &actions.send[i]);
    set_alarm(lease, actions.wake_at);
    publish_deadline(lease, event->now);
    leases->events->on_step(leases->cookie, lease, before);
    if (event->type == QUORUM_EV_TIMER && event->now >= timeout && quorum_awaits(before)) {
        counts_on_timeout(lease, sent, owing, event->now);
        if (before == QUORUM_EXTENDING)
            lease->silent = owing;
    }
    if (actions.lost)
        on_lost(lease);
    if (!actions.ended)
        return;
    lease->silent = event->type == QUORUM_EV_TIMER ? owing : 0;
    lease->deciding = 0;
    if (actions.status == REDLOCK_UNREACHABLE)
        actions.status = name_trouble(lease, actions.failed, event->now);
    leases->env->stats.raised += lease->op == LEASE_OP_LOCK && actions.status == REDLOCK_OK &&
                                 event->type == QUORUM_EV_REPLY &&
                                 event->command == QUORUM_CMD_RAISE;
    counts_on_end(lease, actions.status, since, sent, event->now);
    if (lease->op == LEASE_OP_UNLOCK && actions.status == REDLOCK_UNREACHABLE)
        explain_unconfirmed(lease);
    end_op(lease, actions.status);
}

/* ---- Answers ---- */

/* A master that lacks the script gets it in full, and has it from then on.  A release is sent also
 * to a master that may not vote now, or whose queue is full: nothing else would repeat it, and the
 * answer made room for it. */
static bool send_in_full(struct redlock_lease *lease, unsigned master, uint32_t number,
                         enum quorum_command command)
{
    struct masters *masters = lease->leases->masters;
    const struct ask again = make_ask(lease, number, command, true);
    bool can = command == QUORUM_CMD_RELEASE ? masters_link_is_up(masters, master)
                                             : (masters->peers.up & mask_of(master)) != 0;
    size_t len;

    if (!can || lease->q.ask_of[master] != number)
        return false;
    len = encode(lease, command, master, true, masters->peers.scratch);
    masters_send(masters, master, &again, masters->peers.scratch, len);
    if (command == QUORUM_CMD_FENCE) /* The count behind the first request was of no vote. */
        send_counts(lease, number, mask_of(master));
    masters_want_proof(masters, command, mask_of(master));
    if (begins(command) && lease_kind(lease)->on_ask_again != NULL)
        lease_kind(lease)->on_ask_again(lease, master);
    return true;
}

/* Take in a master's vote.  why says what is wrong with that master, or is NULL. */
static void on_vote(struct redlock_lease *lease, unsigned master, const struct ask *ask,
                    const struct vote *vote, const struct reason *why)
{
    const struct kind *kind = lease_kind(lease);
    struct masters *masters = lease->leases->masters;
    enum quorum_command command = (enum quorum_command)ask->what;
    bool in_full = (ask->flags & ASK_IN_FULL) != 0;
    bool lacks_script = vote->noscript && kind_is_script(kind, command) && !in_full;
    enum why seen = lacks_script ? WHY_NONE : why != NULL ? why->why : vote->why;
    struct quorum_event event = {
        .type = QUORUM_EV_REPLY,
        .master = master,
        .ask = ask->number,
        .command = command,
        .vote = vote->vote,
        .counter = vote->counter,
        .unkept = vote->unkept,
        .elsewhere = vote->hint != 0,
        .revoked = vote->revoked,
        .stands =
            vote->vote != QUORUM_VOTE_YES && kind->stands != NULL && kind->stands(lease, master),
    };

    if (vote->vote > QUORUM_VOTE_NO && !lacks_script)
        counts_on_refusal(lease, master, vote, why != NULL);
    if (vote->outdated)
        masters_look_again(masters, master);
    if (vote->relink)
        masters_relink(masters, master, why);
    /* The link's note already says why a vote is void. */
    else if (!lacks_script && vote->vote != QUORUM_VOTE_VOID)
        masters_note(masters, master, why);
    if (vote->vote == QUORUM_VOTE_YES && !masters_count(masters, master, command, lease->q.sent)) {
        event.vote = stores(command) ? QUORUM_VOTE_VOID : QUORUM_VOTE_NONE;
        masters->peers.counts[master].void_clock++;
        seen = masters_reason(masters, master)->why;
    }
    if (vote->vote == QUORUM_VOTE_YES && command == QUORUM_CMD_RAISE)
        masters_raised(masters, master, vote->counter);
    if (lacks_script && send_in_full(lease, master, ask->number, command))
        return;
    if (kind->on_answer != NULL)
        kind->on_answer(lease, master, ask, vote);
    if (begins(command) && vote->vote == QUORUM_VOTE_YES && ask->number != lease->q.round)
        lease->leases->env->stats.late_yes++;
    lease_note_gone(lease, &event);
    lease_note_why(lease, master, command, seen);
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

void lease_wake(struct redlock_lease *lease, drift_time until)
{
    struct quorum_event event = {.type = QUORUM_EV_WAKE, .until = until};

    lease_step(lease, &event);
    lease_reap(lease);
}

/* ---- All leases ---- */

void leases_on_answer(struct leases *leases, unsigned master, const struct ask *ask,
                      const struct reply *reply)
{
    struct redlock_lease *lease = table_find(leases, ask->slot, ask->serial);
    struct vote vote;
    struct reason why;

    if (lease == NULL)
        return;
    vote = kind_read_vote(lease_kind(lease), (enum quorum_command)ask->what, reply);
    if (ask->what == QUORUM_CMD_EXTEND && vote_revoked(reply) != NULL)
        explain_revoked(lease, master, vote_revoked(reply));
    if (masters_hold(leases->masters, master, ask, &vote))
        return;
    if (reply->type == REPLY_ERROR || vote.relink) {
        reply_reason(reply, &why);
        on_vote(lease, master, ask, &vote, &why);
    } else {
        on_vote(lease, master, ask, &vote, NULL);
    }
}

void leases_on_vote(struct leases *leases, unsigned master, const struct ask *ask,
                    const struct vote *vote)
{
    struct redlock_lease *lease = table_find(leases, ask->slot, ask->serial);

    if (lease != NULL)
        on_vote(lease, master, ask, vote, NULL);
}

/* The machine knows nothing of it. */
static bool is_due(const struct redlock_lease *lease, unsigned master)
{
    return lease_kind(lease)->is_due != NULL && lease_kind(lease)->is_due(lease, master);
}

void leases_on_change(struct leases *leases, unsigned master)
{
    for (uint32_t i = 0; i < leases->slots_len; i++) {
        struct redlock_lease *lease = leases->slots[i];
        struct quorum_event event = {.type = QUORUM_EV_LINK, .master = master};

        if (lease == NULL || !(quorum_cares(&lease->q, master) || is_due(lease, master)))
            continue;
        lease_step(lease, &event);
        lease_reap(lease);
    }
}

void leases_on_set(struct leases *leases, quorum_mask joined, quorum_mask left)
{
    for (unsigned kind = 0; kind < KINDS; kind++)
        leases->brought[kind] &= (quorum_mask)~left;
    for (uint32_t i = 0; i < leases->slots_len; i++) {
        struct redlock_lease *lease = leases->slots[i];
        struct quorum_event event = {.type = QUORUM_EV_CHANGE, .joined = joined, .left = left};

        if (lease == NULL)
            continue;
        lease->silent &= (quorum_mask)~left;
        lease->deciding &= (quorum_mask)~left;
        for (unsigned m = 0; left >> m != 0; m++)
            if (left & mask_of(m))
                lease->why[m] = WHY_NONE;
        if (lease_kind(lease)->on_left != NULL)
            lease_kind(lease)->on_left(lease, left);
        lease_step(lease, &event);
        lease_reap(lease);
    }
}

void leases_on_room(struct leases *leases, unsigned master)
{
    for (uint32_t i = 0; i < leases->slots_len; i++) {
        struct redlock_lease *lease = leases->slots[i];
        /* A TIMER before its time does no harm. */
        struct quorum_event event = {.type = QUORUM_EV_TIMER};

        if (!(leases->masters->peers.up & mask_of(master)))
            return;
        if (lease == NULL || !(quorum_must_release(&lease->q, master) || is_due(lease, master)))
            continue;
        lease_step(lease, &event);
        lease_reap(lease);
    }
}
