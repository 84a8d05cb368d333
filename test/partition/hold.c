/*
 * hold.c - see hold.h.
 */
#include "partition/hold.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/lib/info.h"

/* ---- Words ---- */

const char *hold_word(int status)
{
    switch ((enum redlock_status)status) {
    case REDLOCK_OK:
        return "ok";
    case REDLOCK_CONTENDED:
        return "CONTENDED";
    case REDLOCK_UNREACHABLE:
        return "UNREACHABLE";
    case REDLOCK_TOO_LATE:
        return "TOO_LATE";
    case REDLOCK_LOST:
        return "LOST";
    case REDLOCK_INTERRUPTED:
        return "INTERRUPTED";
    case REDLOCK_NOT_READY:
        return "NOT_READY";
    case REDLOCK_E_FORBIDDEN:
        return "E_FORBIDDEN";
    case REDLOCK_E_WRONG_SET:
        return "E_WRONG_SET";
    case REDLOCK_E_INVAL:
        return "E_INVAL";
    case REDLOCK_E_NOMEM:
        return "E_NOMEM";
    case REDLOCK_E_STATE:
        return "E_STATE";
    case REDLOCK_E_SYSTEM:
        return "E_SYSTEM";
    }
    return "UNKNOWN";
}

const char *hold_kind_word(enum holder_kind kind)
{
    static const char *const words[KINDS_LEN] = {"plain", "extended", "blocking", "run",
                                                 "loop",  "crowd",    "fencer"};

    return words[kind];
}

/* The mode of the hold, as a history names it. */
static const char *mode_word(const struct hold *hold)
{
    switch (hold->resource->mode) {
    case MODE_ALONE:
        return "alone";
    case MODE_SEVERAL:
        return "several";
    case MODE_FAIR:
        return "fair";
    case MODE_PERMIT:
        return "permit";
    case MODE_SHARED:
        return hold->reads ? "reader" : "writer";
    }
    return "unknown";
}

/* ---- The plan ---- */

/* Choose what the mode of the resource needs.  A queue has an order only for waiters. */
static void plan_mode(struct hold *hold, struct worker *worker)
{
    struct dice *dice = &worker->dice;
    enum resource_mode mode = hold->resource->mode;

    hold->reads = mode == MODE_SHARED && dice_chance(dice, 700);
    hold->fenced = (mode == MODE_ALONE || (mode == MODE_SHARED && !hold->reads)) &&
                   holder_is_guarded(worker->holder) && dice_chance(dice, 500);
    if (mode == MODE_FAIR && hold->wait_ms == 0 && dice_chance(dice, 800))
        hold->wait_ms = dice_range(dice, worker->holder->ttl_ms / 2, 2 * worker->holder->ttl_ms);
}

/* Some holds last as long as they can.  Most others are short, so that there are many. */
static uint32_t plan_length_ms(struct worker *worker, uint32_t ttl_ms)
{
    struct dice *dice = &worker->dice;

    if (dice_chance(dice, worker->holder->long_percent * 10))
        return dice_range(dice, ttl_ms, 3 * ttl_ms);
    return dice_range(dice, 0, dice_chance(dice, 900) ? ttl_ms / 20 : ttl_ms);
}

/* Only crowds take the locks that are theirs. */
static const struct resource *choose(struct worker *worker)
{
    const struct holder *holder = worker->holder;
    unsigned others = holder->locks_len - holder->crowds_len;

    if (worker->kind == KIND_CROWD)
        return &holder->locks[dice_range(&worker->dice, others, holder->locks_len - 1)];
    return &holder->locks[dice_range(&worker->dice, 0, others - 1)];
}

void hold_plan(struct hold *hold, struct worker *worker, struct redlock *rl)
{
    struct holder *holder = worker->holder;
    struct dice *dice = &worker->dice;

    *hold = (struct hold){.worker = worker, .rl = rl, .kind = worker->kind};
    if (hold->kind == KIND_LOOP)
        hold->kind = (enum holder_kind)dice_range(dice, KIND_PLAIN, KIND_BLOCKING);
    else if (hold->kind == KIND_CROWD)
        hold->kind = KIND_BLOCKING;
    (void)snprintf(hold->id, sizeof hold->id, "%.40s.%u", holder->record.who,
                   atomic_fetch_add(&holder->op, 1) + 1);
    hold->resource = choose(worker);
    /* With a short lease, the allowance is a greater part of it; but a command needs time. */
    hold->ttl_ms = holder->ttl_ms;
    if (hold->kind != KIND_RUN && dice_chance(dice, 250))
        hold->ttl_ms /= 4;
    hold->hold_ms = plan_length_ms(worker, hold->ttl_ms);
    hold->stubborn = dice_chance(dice, 500);
    if (hold->kind == KIND_BLOCKING || (hold->kind == KIND_RUN && dice_chance(dice, 500)))
        hold->wait_ms = dice_range(dice, holder->ttl_ms / 2, 2 * holder->ttl_ms);
    hold->renew = hold->kind == KIND_RUN || (hold->kind != KIND_PLAIN && dice_chance(dice, 500));
    hold->extends = hold->kind == KIND_EXTENDED && (!hold->renew || dice_chance(dice, 500));
    if (hold->renew && hold->kind != KIND_RUN && dice_chance(dice, 250))
        hold->max_hold_ms = dice_range(dice, 1, hold->ttl_ms);
    plan_mode(hold, worker);
}

/* Runs in the library's thread, or on the loop. */
static void on_lost(struct redlock_lease *lease, void *arg)
{
    struct hold *hold = arg;

    atomic_store(&hold->told_left_ms, redlock_remaining_ms(lease));
    atomic_store(&hold->told_ns, tool_now_ns());
}

void hold_options(struct hold *hold, struct redlock_lock_options *ret_opts)
{
    redlock_lock_options_init(ret_opts);
    ret_opts->ttl_ms = hold->ttl_ms;
    ret_opts->wait_ms = hold->wait_ms;
    ret_opts->retry_delay_min_ms = 10;
    ret_opts->retry_delay_max_ms = 100;
    ret_opts->no_renew = !hold->renew;
    ret_opts->max_hold_ms = hold->max_hold_ms;
    ret_opts->fence = hold->fenced;
    ret_opts->fair = hold->resource->mode == MODE_FAIR;
    ret_opts->permits = hold->resource->permits;
    ret_opts->shared = hold->reads;
    ret_opts->lost = on_lost;
    ret_opts->lost_arg = hold;
}

char *hold_names(const struct hold *hold)
{
    char *names = strdup(hold->resource->text);

    if (names == NULL)
        tool_die("out of memory");
    for (char *c = names; *c != 0; c++)
        if (*c == '+')
            *c = ',';
    return names;
}

/* ---- Looking ---- */

static uint64_t renewals(struct redlock *rl)
{
    struct redlock_stats stats = {.size = sizeof stats};

    return redlock_stats(rl, &stats) == REDLOCK_OK ? stats.extended : 0;
}

static struct look take_look(const struct hold *hold)
{
    struct look look;

    look.renewals_before = renewals(hold->rl);
    look.before_ns = tool_now_ns();
    look.left_ms = redlock_remaining_ms(hold->lease);
    look.after_ns = tool_now_ns();
    look.renewals_after = renewals(hold->rl);
    return look;
}

/* ---- Getting it, or not ---- */

void hold_invoke(struct hold *hold)
{
    enum holder_kind kind = hold->worker->kind;
    const char *via = kind == KIND_LOOP || kind == KIND_CROWD ? "loop" : "blocking";

    record_line(&hold->worker->holder->record, tool_now_ns(), "invoke",
                ",\"id\":\"%s\",\"lock\":\"%s\",\"kind\":\"%s\",\"ttl_ms\":%" PRIu32
                ",\"wait_ms\":%" PRIu32 ",\"renew\":%s,\"fenced\":%s,\"via\":\"%s\""
                ",\"mode\":\"%s\",\"permits\":%" PRIu32 ",\"max_hold_ms\":%" PRIu32,
                hold->id, hold->resource->text, hold_kind_word(hold->kind), hold->ttl_ms,
                hold->wait_ms, hold->renew ? "true" : "false", hold->fenced ? "true" : "false",
                hold->kind == KIND_RUN ? "command" : via, mode_word(hold), hold->resource->permits,
                hold->max_hold_ms);
}

void hold_failed_as(struct hold *hold, const char *why)
{
    record_line(&hold->worker->holder->record, tool_now_ns(), "fail",
                ",\"id\":\"%s\",\"why\":\"%s\"", hold->id, why);
}

void hold_failed(struct hold *hold, int status)
{
    hold_failed_as(hold, hold_word(status));
}

const char *hold_numbers(char text[HOLD_NUMBERS_MAX], uint64_t fence, unsigned permit)
{
    text[0] = 0;
    if (fence != 0)
        (void)snprintf(text, HOLD_NUMBERS_MAX, ",\"fence\":%" PRIu64, fence);
    else if (permit != 0)
        (void)snprintf(text, HOLD_NUMBERS_MAX, ",\"permit\":%u", permit);
    return text;
}

bool hold_begin(struct hold *hold, struct redlock_lease *lease)
{
    char numbers[HOLD_NUMBERS_MAX];
    struct look look;

    hold->lease = lease;
    hold->permit = info_permit(lease);
    look = take_look(hold);
    if (look.left_ms == 0) {
        hold_failed_as(hold, "RAN_OUT"); /* The process was stopped just then. */
        return false;
    }
    claim_begin(&hold->claim, &look);
    record_line(&hold->worker->holder->record, look.before_ns, "ok",
                ",\"id\":\"%s\",\"deadline\":%" PRIu64 ",\"token\":\"%s\"%s", hold->id,
                hold->claim.deadline_ns, info_token(lease),
                hold_numbers(numbers, info_fence(lease), hold->permit));
    hold->end_ns = look.before_ns + hold->hold_ms * NS_PER_MS;
    hold->write_ns = look.before_ns;
    hold->extend_ns = look.before_ns + hold->ttl_ms / 4 * NS_PER_MS;
    return true;
}

/* ---- Having it ---- */

static void tell_claim(const struct hold *hold, const struct look *look, bool unfounded)
{
    record_line(&hold->worker->holder->record, look->before_ns, "extend",
                ",\"id\":\"%s\",\"deadline\":%" PRIu64 "%s", hold->id, hold->claim.deadline_ns,
                unfounded ? ",\"unfounded\":true" : "");
}

void hold_write(struct hold *hold, uint64_t deadline_ns)
{
    const struct resource *resource = hold->resource;
    struct worker *worker = hold->worker;
    char name[RECORD_WORD_MAX + sizeof ":4294967295"];

    (void)snprintf(name, sizeof name, "%s",
                   resource->names[dice_range(&worker->dice, 0, resource->names_len - 1)]);
    if (resource->mode == MODE_PERMIT)
        (void)snprintf(name, sizeof name, "%s:%u", resource->names[0], hold->permit);
    (void)storelink_write(&worker->store, name, hold->id, worker->holder->record.who, deadline_ns);
}

/* A refused write came too late; the next look shows whether the lease is over. */
static void write_now(struct hold *hold, const struct look *look)
{
    hold_write(hold, claim_for_write(&hold->claim, look));
    hold->write_ns = tool_now_ns() + dice_range(&hold->worker->dice, 5, 60) * NS_PER_MS;
}

enum hold_next hold_work(struct hold *hold)
{
    struct look look = take_look(hold);
    enum claim_news news = claim_look(&hold->claim, &look);

    if (news == CLAIM_OVER) {
        hold->over_ns = look.before_ns;
        return HOLD_OVER;
    }
    if (news == CLAIM_LONGER || news == CLAIM_UNFOUNDED)
        tell_claim(hold, &look, news == CLAIM_UNFOUNDED);
    if (hold_was_told(hold) && !hold->stubborn)
        return HOLD_LEAVE;
    if (news == CLAIM_BLURRED)
        return HOLD_ON;
    if (look.before_ns >= hold->write_ns)
        write_now(hold, &look);
    if (look.before_ns >= hold->end_ns || atomic_load(&hold->worker->holder->stopping))
        return HOLD_RELEASE;
    if (!hold->extends || look.before_ns < hold->extend_ns)
        return HOLD_ON;
    hold->extend_ns = look.before_ns + hold->ttl_ms / 4 * NS_PER_MS;
    return HOLD_EXTEND;
}

/* Short enough to see each renewal before the next one: they are due each third of a lease. */
uint32_t hold_nap_ms(struct hold *hold)
{
    return dice_range(&hold->worker->dice, 2, 20);
}

/* ---- Ending it ---- */

void hold_releases(struct hold *hold)
{
    record_line(&hold->worker->holder->record, tool_now_ns(), "release", ",\"id\":\"%s\"",
                hold->id);
}

void hold_released_as(struct hold *hold, const char *result)
{
    record_line(&hold->worker->holder->record, tool_now_ns(), "released",
                ",\"id\":\"%s\",\"result\":\"%s\"", hold->id, result);
}

void hold_released(struct hold *hold, int status)
{
    hold_released_as(hold, hold_word(status));
}

bool hold_was_told(struct hold *hold)
{
    return atomic_load(&hold->told_ns) != 0;
}

/* In the history, "told" says whether lost was called; "late_ns" is the time from the claimed
 * deadline to its notice. */
void hold_lost(struct hold *hold)
{
    uint64_t t_ns = hold->over_ns != 0 ? hold->over_ns : tool_now_ns();
    char late[48] = "";

    if (t_ns > hold->claim.deadline_ns)
        (void)snprintf(late, sizeof late, ",\"late_ns\":%" PRIu64, t_ns - hold->claim.deadline_ns);
    record_line(&hold->worker->holder->record, t_ns, "lost",
                ",\"id\":\"%s\",\"deadline\":%" PRIu64 ",\"told\":%s,\"told_left_ms\":%" PRIu32
                "%s",
                hold->id, hold->claim.deadline_ns, hold_was_told(hold) ? "true" : "false",
                atomic_load(&hold->told_left_ms), late);
}
