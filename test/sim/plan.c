/*
 * plan.c - draw what one run is like: sizes, spans of time, and faults.
 *
 * No run has all faults.  If all come at once, little else happens, and many states are
 * only reached when some things go well.
 *
 * When exclusion is promised.  Two majorities of n masters share 2 (n / 2 + 1) - n of them:
 * one if n is odd, two if n is even.  So no master may lose its keys if n is odd, and one
 * may if n is even.  All other faults are within the promise.  In some runs more masters
 * lose their keys: exclusion is not promised then, but all else is.
 *
 * Clocks are stepped only in runs with a clock guard.  With per_vote, exclusion is promised
 * for all steps but one: a clock that is put forward, and back within the longest lease.
 * So such a step is not made.  With periodic, exclusion is not promised if clocks step.
 *
 * In a few runs masters come back on a copy of another's data, and lose data in no other
 * way.  The clients know the original, and are not closed: a new client takes the copy for
 * the original if that is down, and every client does if the original was emptied.
 *
 * A theme narrows the plan, so that runs reach states that few runs of all kinds reach.  Its runs
 * have other dice, and their seeds are written with its name, as clocks:12.
 *
 * With the restart guard, masters form sets.  Most sets of seasoned masters are founded when the
 * run begins, clients found the others.  In a few runs the clients have two lists, with one or two
 * masters in both.  At most one of the lists becomes a set.  That is promised if the masters in
 * both never forget: else they may be founded again, while no client of the first set is there.
 *
 * In a quarter of the runs, operators change the set of masters (operators.c).  In half
 * of these, masters lose their data, but never so many at once that the others do not remember the
 * set any more (moves_may_forget()): it would need a rescue.  Clocks are not stepped.
 *
 * With the restart guard, exclusion is promised if any masters lose data, but for two cases.
 * If all masters claim to keep their data and all lose them, they look like new ones.  If
 * clients differ in their longest lease, masters may lose the longest with their data.
 */
#include "world.h"

#include <string.h>

#include "drift/node.h"
#include "redlock/masters/clocks.h"
#include "redlock/wire/keys.h"

#define PICK(array) ((array)[dice_below(sizeof(array) / sizeof((array)[0]))])

/* The faults that a theme has.  ANY has those that draw_faults() draws. */
static const enum fault theme_faults[THEME_LEN][4] = {
    [THEME_CLOCKS] = {FAULT_STEP, FAULT_PAUSE, FAULT_SLOW, FAULT_SILENCE},
    [THEME_RESTARTS] = {FAULT_CRASH, FAULT_CRASH_EMPTY, FAULT_CLOSE, FAULT_RESET_AFTER},
    [THEME_STARTS] = {FAULT_SLOW, FAULT_CRASH_EMPTY, FAULT_FLUSHALL, FAULT_RESET_AFTER},
    [THEME_LINES] = {FAULT_WAKE_TWICE, FAULT_WAKE_LOST, FAULT_SLOW, FAULT_PAUSE},
    [THEME_SETS] = {FAULT_SLOW, FAULT_CRASH_EMPTY, FAULT_RESET_AFTER, FAULT_CLOSE},
    [THEME_MOVES] = {FAULT_PAUSE, FAULT_CRASH, FAULT_CUT, FAULT_SLOW},
    [THEME_TLS] = {FAULT_CUT_READ, FAULT_WRITE_FAILS, FAULT_RESET_AFTER, FAULT_NO_MEMORY},
    [THEME_PARTNERS] = {FAULT_CUT, FAULT_PAUSE, FAULT_SLOW, FAULT_SILENCE},
    [THEME_REVOKES] = {FAULT_CUT, FAULT_PAUSE, FAULT_SLOW, FAULT_RESET_AFTER},
    [THEME_LOSSES] = {FAULT_CRASH_EMPTY, FAULT_PAUSE, FAULT_CUT, FAULT_SLOW},
    [THEME_CROWDS] = {FAULT_WAKE_LOST, FAULT_RESET_AFTER, FAULT_CLOSE, FAULT_PAUSE},
};

static bool is_about(enum theme theme)
{
    return world_theme(world.seed) == theme;
}

static bool is_about_changes(void)
{
    return is_about(THEME_MOVES) || is_about(THEME_LOSSES);
}

static void draw_sizes(struct plan *plan)
{
    static const unsigned servers[] = {1, 2, 3, 3, 3, 4, 5, 5, 5, 5, 6, 7};

    plan->servers = PICK(servers);
    plan->processes = (unsigned)dice_range(2, SIM_PROCESSES_MAX);
    plan->leases = SIM_LEASES_MAX;
    plan->resources = dice_chance(600) ? 1 : (unsigned)dice_range(2, SIM_RESOURCES_MAX);
    if (is_about(THEME_ANY))
        return;
    plan->servers = is_about(THEME_SETS)       ? (unsigned)dice_range(3, 5)
                    : is_about(THEME_MOVES)    ? (unsigned)dice_range(4, SIM_SERVERS_MAX)
                    : is_about(THEME_LOSSES)   ? (unsigned)dice_range(4, 5)
                    : is_about(THEME_PARTNERS) ? (unsigned)dice_range(3, 5)
                    : is_about(THEME_REVOKES)  ? (unsigned)dice_range(3, 5)
                                               : 3;
    plan->resources = 1;
}

static void draw_spans(struct plan *plan)
{
    static const uint32_t ppm[] = {0, 100, 10000, 10000, 50000, 200000, 500000};
    static const uint32_t fixed_ms[] = {0, 1, 2, 2, 5};
    static const uint32_t reply_timeouts_ms[] = {5, 20, 50, 50, 100, 200};
    static const uint32_t connect_timeouts_ms[] = {20, 100, 1000};
    sim_time reply_timeout;

    plan->drift_ppm = PICK(ppm);
    plan->drift_fixed_ms = PICK(fixed_ms);
    plan->reply_timeout_ms = PICK(reply_timeouts_ms);
    plan->connect_timeout_ms = sim_max(PICK(connect_timeouts_ms), plan->reply_timeout_ms);
    reply_timeout = plan->reply_timeout_ms * DRIFT_MS;
    plan->hop = dice_magnitude(10 * SIM_US, reply_timeout / 20);
    plan->quick = reply_timeout / 8;
}

/* Other dice, so that draws from these do not shift the main dice of a seed. */
static uint64_t other_dice(uint64_t factor)
{
    uint64_t dice = (world.seed + 1) * factor;

    return dice ^ dice >> 32;
}

/* In a quarter of the runs, operators change the set of masters.  The first factor was sought: the
 * general seeds that test/mutants/mutants.txt had then have no operators.  Likewise that of
 * draw_guard(): masters do not forget in runs that catch planted bugs. */
static void draw_operators(struct plan *plan)
{
    bool moves = is_about(THEME_ANY) && plan->servers >= 3 &&
                 (other_dice(UINT64_C(0x1a0397efc064f031)) >> 8) % 10 < 3;

    if (is_about(THEME_LOSSES))
        plan->operators = SIM_OPERATORS_MAX;
    else if (moves || is_about(THEME_MOVES))
        plan->operators = 1 + (unsigned)(other_dice(UINT64_C(0x8cb92ba72f3d8dd7)) >> 40 & 1);
}

/* In some runs of moves, which masters' clocks are far from those of the others.  Votes of members
 * that are outvoted do not count.  Masters that left the set must not help to outvote them. */
static quorum_mask draw_far(const struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0xe7037ed1a0b428db));

    if (!is_about(THEME_MOVES) || (dice >> 8) % 8 != 5)
        return 0;
    return (quorum_mask)(dice >> 16 & ((1u << plan->servers) - 1));
}

/* A clock guard needs quick answers and even clocks, or it accepts no vote. */
static void draw_clock_guard(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0x9fb21c651e98df25));
    quorum_mask all = (quorum_mask)((1u << plan->servers) - 1);
    bool steps = (dice >> 8 & 3) != 0 || is_about(THEME_CLOCKS);

    plan->far = draw_far(plan);
    steps = steps && plan->far == 0;
    if (is_about(THEME_CLOCKS)) /* per_vote, and any clock is stepped. */
        dice = dice / 4 * 4 | 1 << 9;
    else if (plan->far != 0)
        dice = dice / 4 * 4 | 1; /* periodic */
    else if (!is_about(THEME_ANY) || plan->operators > 0)
        dice |= 2; /* No clock guard. */
    plan->allowance = (struct drift_bound){plan->drift_ppm, plan->drift_fixed_ms * DRIFT_MS};
    plan->clock_gap = CLOCKS_GAP;
    if (dice % 4 > 1)
        return;
    plan->clock_guard = dice % 4 == 0 ? REDLOCK_CLOCK_GUARD_PER_VOTE : REDLOCK_CLOCK_GUARD_PERIODIC;
    plan->drift_ppm = sim_min(plan->drift_ppm, 20000);
    plan->reply_timeout_ms = sim_min(plan->reply_timeout_ms, 50);
    plan->connect_timeout_ms = sim_max(plan->connect_timeout_ms, 100);
    plan->hop = plan->hop < 2 * DRIFT_MS ? plan->hop : 2 * DRIFT_MS;
    plan->quick = plan->reply_timeout_ms * DRIFT_MS / 8;
    plan->may_step = steps ? (quorum_mask)(dice >> 9 & 1 ? all : dice >> 16 & all) : 0;
    plan->dips = (dice >> 24 & 3) == 0;
    plan->allowance = (struct drift_bound){plan->drift_ppm, plan->drift_fixed_ms * DRIFT_MS};
    if (plan->clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE)
        return;
    plan->allowance.ppm *= 2;
    plan->allowance.fixed += DRIFT_TOLERANCE;
}

static void draw_ttls(struct plan *plan)
{
    uint32_t low = 1, reply_timeout_ms = plan->reply_timeout_ms;

    while (drift_allowance(low * DRIFT_MS, &plan->allowance) >= low * DRIFT_MS)
        low++;
    plan->ttl_min_ms = low;
    plan->ttls_ms[0] = (uint32_t)dice_range(low, 3 * low);
    plan->ttls_ms[1] =
        sim_max(low, (uint32_t)dice_magnitude(reply_timeout_ms, 6 * reply_timeout_ms));
    plan->ttls_ms[2] =
        sim_max(low, (uint32_t)dice_magnitude(4 * reply_timeout_ms, 30 * reply_timeout_ms));
    plan->ttls_ms[3] = sim_max(low, (uint32_t)dice_magnitude(reply_timeout_ms, 10000));
    for (unsigned i = 0; i < SIM_TTLS_MAX && plan->clock_guard != REDLOCK_CLOCK_GUARD_OFF; i++)
        plan->ttls_ms[i] = sim_min(plan->ttls_ms[i], sim_max(3000, 2 * low)); /* Else all wait. */
    if (plan->clock_guard != REDLOCK_CLOCK_GUARD_OFF) /* Some clients' longest; see draw_guard(). */
        plan->ttls_ms[2] = sim_max(plan->ttls_ms[2], low + 4 * reply_timeout_ms);
    for (unsigned i = 0; i < SIM_TTLS_MAX; i++)
        plan->ttl_max_ms = sim_max(plan->ttl_max_ms, plan->ttls_ms[i]);
    plan->wait_max_ms = (uint32_t)dice_magnitude(reply_timeout_ms, 20 * reply_timeout_ms);
    plan->retry_max_ms = (uint32_t)dice_magnitude(1, 4 * reply_timeout_ms);
    /* A client must watch for a gap, and runs are short. */
    if (plan->clock_guard == REDLOCK_CLOCK_GUARD_PER_VOTE)
        plan->clock_gap =
            dice_magnitude(plan->ttl_max_ms * DRIFT_MS, plan->ttl_max_ms * DRIFT_MS * 8);
}

/* Locks of several resources, if there are several. */
static void draw_many(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0xa0761d6478bd642f));

    if (plan->resources > 1 && (dice >> 8 & 1) != 0)
        plan->many = 1 + (unsigned)(dice >> 16 & 15);
}

/* A semaphore.  Its permits replace the resources. */
static void draw_permits(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0x94d049bb133111eb));

    plan->permits = (dice >> 39) % 6 == 0 && is_about(THEME_ANY);
    if (!plan->permits)
        return;
    plan->many = plan->shared = 0;
    plan->reentrant = false;
    if ((dice >> 8 & 3) != 0 && plan->resources == 1)
        plan->resources = 2;
}

/* All locks are fair, or some are. */
static void draw_fair(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0xe4b06ce60741c7a9));

    if (!plan->permits && (dice >> 8 & 3) == 0)
        plan->fair = (dice >> 10 & 1) != 0 ? 16 : 1 + (unsigned)(dice >> 16 & 15);
}

/* From few readers to nearly no writer. */
static void draw_shared(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0xc2b2ae3d27d4eb4f));

    if ((dice >> 8 & 1) != 0)
        plan->shared = 1 + (unsigned)(dice >> 16 & 15);
}

static void draw_promise(struct plan *plan)
{
    plan->exclusive = true;
    if (dice_chance(150)) {
        plan->exclusive = false;
        plan->may_forget = (quorum_mask)dice_range(1, (1u << plan->servers) - 1);
    } else if (plan->servers % 2 == 0 && dice_chance(500)) {
        plan->may_forget = (quorum_mask)(1u << dice_below(plan->servers));
    }
}

/* Only masters that claim to keep their data: others would warm up after a restart. */
static void draw_copies(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0xbf58476d1ce4e5b9));

    if (plan->exclusive && (dice >> 16 & 15) == 0 && plan->operators == 0)
        plan->may_copy = plan->may_forget & plan->keep;
}

static void draw_guard(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0xd1342543de82ef95));
    quorum_mask all = (quorum_mask)((1u << plan->servers) - 1), keep;
    bool knows_less; /* Some clients have a much shorter longest lease than others. */

    plan->guarded = is_about(THEME_ANY) ? dice % 2 == 0
                                        : is_about(THEME_RESTARTS) || is_about(THEME_STARTS) ||
                                              is_about(THEME_SETS) || is_about(THEME_REVOKES) ||
                                              (is_about(THEME_TLS) && dice % 2 == 0);
    plan->guarded = plan->guarded || plan->operators > 0;
    if (!plan->guarded)
        return;
    keep = (quorum_mask)(dice >> 8 & 1 ? all : dice >> 16 & all);
    if (dice >> 24 & 1)
        plan->may_forget = (quorum_mask)(dice >> 32 & all);
    if (is_about(THEME_RESTARTS)) {
        keep = 0;
        plan->may_forget = all;
    } else if (is_about(THEME_STARTS)) {
        keep = all;
        plan->may_forget = mask_without(all, (unsigned)dice_below(plan->servers));
        dice &= ~(UINT64_C(3) << 25); /* Not seasoned. */
    } else if (is_about(THEME_REVOKES)) {
        keep = all;
        plan->may_forget = 0;
        dice |= UINT64_C(1) << 25; /* Seasoned. */
    } else if (is_about(THEME_LOSSES)) {
        keep = 0;
        plan->may_forget = all;
        dice |= UINT64_C(1) << 25; /* Seasoned. */
    } else if (plan->operators > 0) {
        bool forgets = other_dice(UINT64_C(0xbd446b315d07fa77)) >> 8 & 1;

        keep = forgets ? keep : all;
        plan->may_forget = forgets ? (quorum_mask)(dice >> 32 & all) : 0;
        dice |= UINT64_C(1) << 25; /* Seasoned. */
    }
    plan->exclusive = keep != all || plan->may_forget != all || plan->operators > 0;
    plan->keep = keep;
    plan->seasoned = (dice >> 25 & 3) != 0;
    plan->fenced = (unsigned)(dice >> 50 & 1) * (unsigned)(dice >> 51 & 15);
    plan->one_counter = (dice >> 55 & 3) == 0;
    plan->floors = (unsigned)(dice >> 58 & 3);
    plan->near_high = (dice >> 60 & 3) == 0;
    if (plan->servers > 1 && (plan->may_forget & (plan->may_forget - 1)) == 0) /* At most one. */
        plan->modest = (unsigned)(dice >> 40 & ((1u << SIM_PROCESSES_MAX) - 1));
    knows_less = plan->modest != 0 && (dice >> 61 & 1) != 0;
    draw_copies(plan);
    plan->lasting = (dice >> 56 & 1) != 0 || knows_less || plan->may_copy != 0;
    plan->reentrant = (dice >> 57 & 1) != 0;
    if (plan->lasting)
        plan->ttls_ms[0] = plan->ttls_ms[1] = plan->ttls_ms[3] = plan->ttl_max_ms;
    if (knows_less) { /* The leases of these clients are soon over. */
        uint32_t low = plan->ttl_min_ms + 4 * plan->reply_timeout_ms;

        plan->ttls_ms[2] = sim_min(sim_max(plan->ttl_max_ms / 8, low), plan->ttl_max_ms);
    }
}

/* Where a counter begins: the same on all masters, nearly the same, or far apart. */
static uint64_t floor_of(const struct plan *plan, unsigned server)
{
    static const uint64_t steps[] = {0, 0, 1, UINT64_C(1000000000)};

    return 1000 + server * steps[plan->floors];
}

static void draw_long_leases(struct plan *plan)
{
    plan->lasting = true;
    plan->ttl_max_ms = (uint32_t)dice_range(1000, 3000);
    for (unsigned i = 0; i < SIM_TTLS_MAX; i++)
        plan->ttls_ms[i] = plan->ttl_max_ms;
}

/* All wait for one name: the leases of one client, of a few, or one of each of many. */
static void draw_crowd(struct plan *plan)
{
    static const unsigned processes[] = {1, 5, SIM_CROWD, SIM_CROWD};

    draw_long_leases(plan);
    plan->is_crowd = true;
    plan->processes = PICK(processes);
    plan->leases = SIM_CROWD / plan->processes;
    plan->wait_max_ms = 8 * plan->ttl_max_ms;
    plan->retry_max_ms = (uint32_t)dice_magnitude(20, 400);
    plan->fair = dice_chance(500) ? 16 : 0;
    plan->shared = dice_chance(250) ? 4 : 0;
    if (other_dice(UINT64_C(0xd6e8feb86659fd93)) >> 16 & 3)
        return;
    plan->permits = true; /* Fewer permits than masters, so that waiters split them. */
    plan->resources = 2;
    plan->fair = plan->shared = 0;
}

/* THEME_CLOCKS: in half of the runs clocks are set back for a moment, while clients hold long
 * leases or sleep for as long.  THEME_LINES: many clients wait in a queue for a long time. */
static void draw_theme(struct plan *plan)
{
    if (is_about(THEME_CLOCKS) && dice_chance(500)) {
        draw_long_leases(plan);
        plan->dips = true;
        plan->clock_gap = plan->ttl_max_ms * DRIFT_MS * dice_range(2, 8);
    } else if (is_about(THEME_LINES)) {
        draw_long_leases(plan);
        plan->processes = SIM_PROCESSES_MAX;
        plan->wait_max_ms = 8 * plan->ttl_max_ms;
        plan->retry_max_ms = (uint32_t)dice_magnitude(1, 100);
        plan->fair = 16;
        plan->shared = (unsigned)dice_range(8, 14);
    } else if (is_about(THEME_CROWDS)) {
        draw_crowd(plan);
    } else if (is_about(THEME_SETS)) {
        plan->processes = SIM_PROCESSES_MAX;
        plan->fair = plan->shared = 0;
    } else if (is_about(THEME_REVOKES)) {
        plan->fenced = 16;
        plan->shared = 0;
    } else if (is_about_changes()) {
        plan->processes = is_about(THEME_LOSSES) ? 2 : plan->processes;
        plan->ttl_max_ms = plan->ttl_min_ms;
        for (unsigned i = 0; i < SIM_TTLS_MAX; i++) { /* A change takes some of the longest. */
            plan->ttls_ms[i] = sim_min(plan->ttls_ms[i], 20 * plan->reply_timeout_ms + 100);
            plan->ttls_ms[i] = sim_max(plan->ttls_ms[i], plan->ttl_min_ms);
            plan->ttl_max_ms = sim_max(plan->ttl_max_ms, plan->ttls_ms[i]);
        }
    }
}

/* Two lists are each of a bare majority of all masters.  What the oracle knows of waiters, copies
 * and clocks is of one list. */
static void draw_sets(struct plan *plan)
{
    uint64_t dice = other_dice(UINT64_C(0x9e6c63d0676a9a99));
    unsigned len = plan->servers / 2 + 1;
    quorum_mask both;

    plan->lists[0] = (struct list){0, plan->servers};
    if (!plan->guarded)
        return;
    plan->founded = plan->seasoned && (dice >> 8 & 3) != 0;
    if (plan->operators > 0) { /* Some servers are no members at first. */
        plan->founded = true;
        plan->lists[0].len =
            is_about(THEME_LOSSES) ? 3 : (unsigned)dice_range(2, sim_min(5, plan->servers));
        return;
    }
    if (!is_about(THEME_SETS) && ((dice >> 16 & 3) != 0 || !is_about(THEME_ANY)))
        return;
    if (plan->servers < 3 || plan->permits || plan->fair != 0 || plan->shared != 0 ||
        plan->clock_guard != REDLOCK_CLOCK_GUARD_OFF || plan->may_copy != 0)
        return;
    plan->two_lists = true;
    plan->founded = plan->founded && (dice >> 24 & 1) != 0;
    plan->lists[0] = (struct list){0, len};
    plan->lists[1] = (struct list){plan->servers - len, len};
    both = (quorum_mask)((1u << len) - (1u << (plan->servers - len)));
    plan->keep |= both;
    plan->may_forget &= (quorum_mask)~both;
    plan->exclusive = true;
}

static void draw_markers(const struct plan *plan)
{
    for (unsigned i = 0; i < plan->processes; i++)
        world.processes[i].max_ttl_ms =
            plan->guarded && (plan->modest >> i & 1) ? plan->ttls_ms[2] : plan->ttl_max_ms;
    for (unsigned i = 0; i < plan->servers; i++) {
        world.servers[i].keeps = plan->keep >> i & 1;
        if (plan->seasoned)
            world.servers[i].marker = (struct marker){.exists = true,
                                                      .epoch = i + 1,
                                                      .floor = floor_of(plan, i),
                                                      .high = floor_of(plan, i) + WIRE_FENCE_STEP};
        if (plan->founded)
            sets_join(&world.servers[i]);
        for (unsigned r = 0; plan->seasoned && plan->near_high && r < SIM_RESOURCES_MAX; r++)
            world.servers[i].marker.counters[r] = WIRE_FENCE_STEP - 3;
        world.servers[i].saved = world.servers[i].marker;
    }
}

/* A theme has few faults, and none that ANY would not have in such a run. */
static void draw_theme_faults(struct plan *plan)
{
    bool may[FAULT_LEN] = {false};

    if (is_about(THEME_ANY))
        return;
    for (unsigned i = 0; i < sizeof theme_faults[0] / sizeof theme_faults[0][0]; i++)
        may[theme_faults[world_theme(world.seed)][i]] = i == 0 || dice_chance(300);
    may[FAULT_CRASH_EMPTY] = may[FAULT_CRASH_EMPTY] && plan->may_forget != 0;
    if (is_about_changes())
        may[FAULT_CRASH_EMPTY] = may[FAULT_FLUSHALL] = plan->may_forget != 0;
    memcpy(plan->enabled, may, sizeof may);
}

/* THEME_TLS: streams end, fail and stop anywhere, in handshakes as well. */
static void draw_tls(struct plan *plan)
{
    static const enum fault faults[] = {FAULT_CUT_WRITE, FAULT_WINDOW_FULL, FAULT_RESET_MIDDLE,
                                        FAULT_SILENCE,   FAULT_CRASH,       FAULT_SLOW,
                                        FAULT_PAUSE};
    uint64_t dice = other_dice(UINT64_C(0x2545f4914f6cdd1d));

    plan->cut_permille = 60;
    plan->tls = is_about(THEME_TLS);
    if (!plan->tls)
        return;
    plan->cut_permille = 300;
    plan->tls_old = (dice >> 8 & 3) == 0 ? (quorum_mask)((1u << plan->servers) - 1) : 0;
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
        plan->enabled[faults[i]] = (dice >> (16 + i) & 1) != 0;
}

static void draw_faults(struct plan *plan)
{
    static const unsigned slow_permille[] = {2, 5, 20, 60};
    bool calm = dice_chance(80);

    for (unsigned i = 0; i < FAULT_STEP; i++) /* Steps are drawn with the clock guard. */
        plan->enabled[i] = !calm && dice_chance(350);
    plan->enabled[FAULT_CRASH_EMPTY] = plan->enabled[FAULT_FLUSHALL] =
        plan->may_forget != 0 && plan->may_copy == 0;
    plan->enabled[FAULT_STEP] = plan->may_step != 0;
    plan->enabled[FAULT_COPY] = plan->may_copy != 0;
    draw_theme_faults(plan);
    draw_tls(plan);
    plan->enabled[FAULT_REVOKED] = is_about(THEME_PARTNERS) || is_about(THEME_REVOKES) ||
                                   (other_dice(UINT64_C(0x8a5cd789635d2dff)) >> 24 & 7) == 0;
    plan->enabled[FAULT_PARTNER] =
        is_about(THEME_PARTNERS) ||
        (is_about(THEME_ANY) && (other_dice(UINT64_C(0xd6e8feb86659fd93)) >> 32 & 7) == 0);
    if (plan->may_copy != 0)
        plan->enabled[FAULT_CLOSE] = plan->enabled[FAULT_CLOSE_IN_CALLBACK] = false;
    if (plan->lasting && plan->may_forget != 0)
        plan->enabled[FAULT_CRASH] = true; /* A crash keeps the marker, but not all keys. */
    plan->slow_permille = plan->enabled[FAULT_SLOW] ? PICK(slow_permille) : 0;
    plan->asks_max = PLAN_ASKS_MAX;
    if (plan->enabled[FAULT_QUEUE_FULL] && dice_chance(700))
        plan->asks_max = (uint32_t)dice_range(2, 8);
    plan->window = PLAN_WINDOW;
    if (plan->enabled[FAULT_WINDOW_FULL] && dice_chance(500))
        plan->window = dice_range(100, 2000);
    plan->calm_max = dice_magnitude(plan->hop * 4, plan->ttl_max_ms * DRIFT_MS);
    plan->think_max = dice_magnitude(plan->hop * 8, plan->ttl_max_ms * DRIFT_MS);
    if (plan->lasting) {
        plan->calm_max = plan->ttl_max_ms * DRIFT_MS / 4;
        plan->think_max = plan->ttl_max_ms * DRIFT_MS;
    }
    plan->events = dice_range(300, 4000);
    if (is_about(THEME_STARTS)) { /* Data are lost while a start is under way. */
        plan->calm_max = plan->hop * 16;
        plan->slow_permille = 200;
        plan->events = 400;
    }
    if (plan->clock_guard != REDLOCK_CLOCK_GUARD_OFF || is_about(THEME_LINES))
        plan->events *= 4; /* The guard, or waiters, cause most of them. */
    if (plan->operators > 0)
        plan->events *= is_about(THEME_LOSSES) ? 12 : is_about(THEME_MOVES) ? 4 : 2;
    if (plan->is_crowd) { /* Fifty connect first.  Holders are quick, or few get a turn. */
        plan->events = 4000 + 5 * plan->events;
        plan->think_max = plan->ttl_max_ms * DRIFT_MS / 8;
    }
    if (is_about(THEME_SETS)) /* A set is founded early, or its founders meet often. */
        plan->events /= 4;
    plan->ends_at = world.now + 60 * DRIFT_S;
}

/* Most clocks are as fast or as slow as the bound allows: rates in between find nothing more. */
static void draw_clocks(const struct plan *plan)
{
    bool slow_client = false, fast_server = false;
    bool extreme = dice_chance(700);

    for (unsigned i = 0; i < world_all_processes(); i++) {
        struct sim_clock *clock = &world.processes[i].clock;

        clock->origin = dice_range(1, UINT64_C(1) << 50);
        clock->fast_ppm =
            (uint32_t)(extreme ? plan->drift_ppm * dice_below(2) : dice_range(0, plan->drift_ppm));
        slow_client = slow_client || clock->fast_ppm == 0;
    }
    for (unsigned i = 0; i < plan->servers; i++) {
        struct sim_clock *clock = &world.servers[i].clock;

        clock->fast_ppm = (uint32_t)(extreme && dice_chance(800) ? plan->drift_ppm
                                                                 : dice_range(0, plan->drift_ppm));
        fast_server = fast_server || clock->fast_ppm == plan->drift_ppm;
    }
    if (plan->drift_ppm > 0 && slow_client && fast_server)
        world_fault(FAULT_DRIFT);
}

drift_span plan_validity(uint32_t ttl_ms)
{
    return drift_deadline(0, ttl_ms * DRIFT_MS, &world.plan.allowance);
}

void plan_draw(void)
{
    struct plan *plan = &world.plan;

    memset(plan, 0, sizeof *plan);
    draw_sizes(plan);
    draw_operators(plan);
    draw_spans(plan);
    draw_clock_guard(plan);
    draw_ttls(plan);
    draw_promise(plan);
    draw_guard(plan);
    draw_many(plan);
    draw_shared(plan);
    draw_permits(plan);
    draw_fair(plan);
    draw_theme(plan);
    draw_sets(plan);
    if (plan->clock_guard == REDLOCK_CLOCK_GUARD_PERIODIC && plan->may_step != 0)
        plan->exclusive = false;
    draw_faults(plan);
    for (unsigned i = 0; i < world_all_processes(); i++)
        process_init(&world.processes[i], i);
    for (unsigned i = 0; i < plan->servers; i++)
        server_init(&world.servers[i], i);
    draw_markers(plan);
    draw_clocks(plan);
    world_say("%u clients, %u masters, %u %s; reply timeout %u ms, drift %u ppm + %u ms; "
              "ttl %u %u %u %u ms%s",
              plan->processes, plan->servers, plan->resources,
              plan->permits ? "permits" : "resources", plan->reply_timeout_ms, plan->drift_ppm,
              plan->drift_fixed_ms, plan->ttls_ms[0], plan->ttls_ms[1], plan->ttls_ms[2],
              plan->ttls_ms[3],
              plan->exclusive ? "" : "; masters forget, exclusion is not promised");
}
