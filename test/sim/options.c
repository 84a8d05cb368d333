/*
 * options.c - the options of a lock, drawn from the dice.
 */
#include "program.h"
#include "world.h"

#include "redlock/core/place.h"
#include "redlock/core/wait.h"

bool options_are_many(const struct lease_rec *rec)
{
    return !world.plan.permits && (rec->set & (rec->set - 1)) != 0;
}

/* Other dice, so that draws from these do not shift the main dice of a run. */
static uint64_t other_dice(const struct lease_rec *rec, uint64_t factor)
{
    return (world.seed + rec->number + 1) * factor;
}

/* Lock the one resource, or several with it. */
static void draw_set(struct lease_rec *rec)
{
    uint64_t dice = other_dice(rec, UINT64_C(0xe7037ed1a0b428db));

    if ((dice >> 40 & 15) >= world.plan.many)
        return;
    rec->set |= dice >> 45 & ((1u << world.plan.resources) - 1);
    rec->resource = (unsigned)__builtin_ctz(rec->set);
}

/* A lock of one resource may be shared. */
static void draw_shared(struct lease_rec *rec)
{
    uint64_t dice = other_dice(rec, UINT64_C(0x2545f4914f6cdd1d));

    rec->is_shared = !options_are_many(rec) && (dice >> 40 & 15) < world.plan.shared;
}

uint32_t options_cut_ttl(const struct ev_loop *process, uint32_t ttl_ms)
{
    return ttl_ms < process->max_ttl_ms ? ttl_ms : process->max_ttl_ms;
}

static bool draw_fence(const struct lease_rec *rec)
{
    uint64_t dice = other_dice(rec, UINT64_C(0x9fb21c651e98df25));

    return !rec->is_shared && (dice >> 40 & 15) < world.plan.fenced;
}

static bool draw_fair(const struct lease_rec *rec)
{
    uint64_t dice = other_dice(rec, UINT64_C(0xc2b2ae3d27d4eb4f));

    return !options_are_many(rec) && !rec->is_shared && (dice >> 40 & 15) < world.plan.fair;
}

static void draw_options(struct lease_rec *rec, struct redlock_lock_options *opts)
{
    drift_span whole;

    redlock_lock_options_init(opts);
    opts->ttl_ms = options_cut_ttl(rec->process, world.plan.ttls_ms[dice_below(SIM_TTLS_MAX)]);
    whole = plan_validity(opts->ttl_ms);
    opts->no_renew = dice_chance(300);
    if (dice_chance(200))
        opts->max_hold_ms = (uint32_t)dice_magnitude(1, 3 * world.plan.ttl_max_ms);
    if (dice_chance(300) && whole > 2 * DRIFT_MS)
        opts->lost_margin_ms = (uint32_t)dice_range(1, (whole - 1) / DRIFT_MS);
    opts->fair = rec->is_fair = draw_fair(rec);
    opts->fence = rec->is_fenced = draw_fence(rec);
    opts->permits = world.plan.permits ? world.plan.resources : 0;
    opts->shared = rec->is_shared;
    if (dice_chance(850)) {
        opts->lost = calls_on_lost;
        opts->lost_arg = rec;
    }
}

static void draw_wait(struct redlock_lock_options *opts)
{
    const struct plan *plan = &world.plan;

    opts->retry_delay_max_ms = (uint32_t)dice_range(0, plan->retry_max_ms);
    if (!plan->is_crowd && dice_chance(400)) {
        opts->wait_ms = 0;
    } else if (dice_chance(650)) {
        opts->wait_ms = (uint32_t)dice_range(1, plan->wait_max_ms);
        if (opts->retry_delay_max_ms < opts->wait_ms / 40)
            opts->retry_delay_max_ms = opts->wait_ms / 40; /* Else there are too many rounds. */
    } else {
        opts->wait_ms = UINT32_MAX;
        if (opts->retry_delay_max_ms < 50)
            opts->retry_delay_max_ms = 50;
    }
    opts->retry_delay_min_ms = (uint32_t)dice_range(0, opts->retry_delay_max_ms);
}

static void set_probe(const struct lease_rec *rec, struct redlock_lock_options *opts)
{
    opts->ttl_ms = rec->process->max_ttl_ms;
    opts->lost_margin_ms = 0;
    opts->wait_ms = UINT32_MAX;
    opts->retry_delay_max_ms = run_probe_retry_ms();
    opts->retry_delay_min_ms = run_probe_retry_ms() / 4;
}

/* Note the options that the oracle needs. */
static void note_options(struct lease_rec *rec, const struct redlock_lock_options *opts)
{
    drift_span whole = plan_validity(opts->ttl_ms);

    rec->ttl_ms = rec->ttl_low_ms = opts->ttl_ms;
    rec->renews = !opts->no_renew && opts->max_hold_ms == 0;
    rec->hold_max = opts->max_hold_ms * DRIFT_MS;
    rec->hears_lost = opts->lost != NULL;
    rec->margin = opts->lost_margin_ms * DRIFT_MS;
    if (rec->margin == 0)
        rec->margin = opts->ttl_ms * DRIFT_MS / 10;
    if (opts->lost_margin_ms == 0 && rec->margin > whole / 2)
        rec->margin = whole / 2;
    rec->pause = opts->retry_delay_min_ms * DRIFT_MS;
    if (opts->fair) { /* It may begin earlier to go together with others. */
        drift_span max = WAIT_PATIENCE * opts->retry_delay_max_ms * DRIFT_MS;

        rec->pause *= WAIT_PATIENCE;
        place_pauses(&rec->pause, &max);
        rec->pause -= max - rec->pause;
    }
    rec->wait = opts->wait_ms != UINT32_MAX ? opts->wait_ms * DRIFT_MS : DRIFT_NEVER / 2;
    rec->asked = clock_at(&rec->process->clock, world.now);
}

/* Adopt a token for more resources than it was granted for, or a shared one as exclusive.  The
 * client must not get that. */
static void widen(struct lease_rec *rec)
{
    if (other_dice(rec, UINT64_C(0x8ebc6af09c88c6e3)) >> 62 == 0)
        draw_set(rec);
    if (world.plan.shared > 0 && other_dice(rec, UINT64_C(0x5851f42d4c957f2d)) >> 62 == 0)
        draw_shared(rec);
    rec->is_shared = rec->is_shared && !options_are_many(rec);
}

void options_of_lock(struct lease_rec *rec, struct redlock_lock_options *ret_opts)
{
    draw_set(rec);
    if (world.plan.permits)
        rec->set = (1u << world.plan.resources) - 1; /* Any slot. */
    else
        draw_shared(rec);
    draw_options(rec, ret_opts);
    draw_wait(ret_opts);
    if (rec->is_probe)
        set_probe(rec, ret_opts);
    rec->is_reentrant =
        world.plan.reentrant && !rec->is_probe && rec->number % 2 == 0 && !options_are_many(rec);
    ret_opts->reentrant = rec->is_reentrant;
    ret_opts->owner = rec;
    note_options(rec, ret_opts);
}

void options_of_adopted(struct lease_rec *rec, const char *token,
                        struct redlock_lock_options *ret_opts)
{
    widen(rec);
    if (world.plan.permits) /* The token contains the slot. */
        rec->set = 1u << (rec->resource = (unsigned)(token[1] - '0'));
    draw_options(rec, ret_opts);
    ret_opts->fair = rec->is_fair = false;
    note_options(rec, ret_opts);
}
