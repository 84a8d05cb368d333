/*
 * test-live-combine.c - walks the table of options on real masters: each two go together, or are
 * refused with the reason of the table.
 *
 * Two that go together must exclude others, wake a waiter, give numbers that grow, and release.
 */
#include "test/lib/check.h"

#include <stdlib.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/core/combine.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"
#include "redlock/wire/wire.h"
#include "test/lib/info.h"

static const char *const names[] = {"a", "b"};
static const char me[1], you[1]; /* Owners. */
static struct cluster three;

/* Two clients.  The second can wait while the first makes a blocking call. */
struct table {
    struct pilot a, b;
};

static bool has(combine_set set, enum combine option)
{
    return (set >> option & 1) != 0;
}

static struct redlock_lock_options options(combine_set set, const void *owner, uint32_t wait_ms)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = 30000;
    opts.wait_ms = wait_ms;
    opts.fair = has(set, COMBINE_FAIR);
    opts.fence = has(set, COMBINE_FENCE);
    opts.permits = has(set, COMBINE_PERMITS);
    opts.reentrant = has(set, COMBINE_REENTRANT);
    opts.owner = owner;
    opts.shared = has(set, COMBINE_SHARED);
    return opts;
}

static int lock(struct table *table, combine_set set, struct redlock_lease **ret_lease)
{
    const struct redlock_lock_options opts = options(set, me, 0);

    return has(set, COMBINE_SEVERAL) ? redlock_lock_many(table->a.rl, names, 2, &opts, ret_lease)
                                     : redlock_lock(table->a.rl, names[0], &opts, ret_lease);
}

static int adopt(struct table *table, combine_set set, const char *token,
                 struct redlock_lease **ret_lease)
{
    const struct redlock_lock_options opts = options(set, me, 0);

    return has(set, COMBINE_SEVERAL)
               ? redlock_adopt_many(table->a.rl, names, 2, token, &opts, ret_lease)
               : redlock_adopt(table->a.rl, names[0], token, &opts, ret_lease);
}

/* ---- Pairs that are refused ---- */

static void check_refused(struct table *table, combine_set set, const struct combine_clash *clash)
{
    struct redlock_lease *lease = NULL;
    int status =
        has(set, COMBINE_ADOPT) ? adopt(table, set, "00", &lease) : lock(table, set, &lease);
    char want[256];

    (void)snprintf(want, sizeof want, "%s: %s and %s do not go together: %s",
                   has(set, COMBINE_ADOPT) ? "adopt" : "acquire", combine_word(clash->one),
                   combine_word(clash->other), clash->why);
    CHECK_INT(status, REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), want);
    CHECK(lease == NULL);
}

/* ---- Pairs that go together ---- */

static int lock_other(struct table *table, combine_set set, uint32_t wait_ms,
                      redlock_done_fn *on_done, void *arg)
{
    const struct redlock_lock_options opts = options(set, you, wait_ms);
    struct redlock_lease *lease;

    return has(set, COMBINE_SEVERAL)
               ? redlock_lock_many_async(table->b.rl, names, 2, &opts, on_done, arg, &lease)
               : redlock_lock_async(table->b.rl, names[0], &opts, on_done, arg, &lease);
}

/* A lock of the second client. */
struct other {
    struct table *table;
    bool is_done;
    int status;
    struct redlock_lease *lease;
    uint64_t rounds; /* The client's rounds when it began. */
};

static void on_other(struct redlock_lease *lease, int status, void *arg)
{
    struct other *other = arg;

    other->is_done = true;
    other->status = status;
    other->lease = lease;
}

static bool is_done(void *arg)
{
    return ((struct other *)arg)->is_done;
}

static bool has_asked(void *arg)
{
    struct other *other = arg;

    return pilot_stats(&other->table->b).rounds > other->rounds;
}

static void begin_other(struct other *other, struct table *table, combine_set set, uint32_t wait_ms)
{
    *other = (struct other){.table = table, .rounds = pilot_stats(&table->b).rounds};
    CHECK_INT(lock_other(table, set, wait_ms, on_other, other), REDLOCK_OK);
}

static int end_other(struct other *other)
{
    CHECK(pilot_until(&other->table->b, is_done, other));
    return other->status;
}

/* Another client that asks for the same at the same time. */
static void check_excludes(struct table *table, combine_set set)
{
    struct other other;

    begin_other(&other, table, set, 0);
    CHECK_INT(end_other(&other), has(set, COMBINE_SHARED) ? REDLOCK_OK : REDLOCK_CONTENDED);
    if (other.status == REDLOCK_OK)
        CHECK_INT(pilot_unlock(&table->b, other.lease), REDLOCK_OK);
    begin_other(&other, table, set & ~(1u << COMBINE_SHARED), 0);
    CHECK_INT(end_other(&other), REDLOCK_CONTENDED);
}

/* The owner locks again at once, also while a writer waits. */
static void check_again(struct table *table, combine_set set, struct redlock_lease *lease)
{
    uint64_t commands = pilot_stats(&table->a).commands;
    struct redlock_lease *again;

    CHECK_INT(lock(table, set, &again), REDLOCK_OK);
    CHECK(again == lease);
    CHECK_UINT(info_holds(lease), 2);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    CHECK_UINT(pilot_stats(&table->a).commands, commands);
    if (!has(set, COMBINE_SHARED))
        return;
    CHECK_INT(lock(table, set & ~(1u << COMBINE_SHARED), &again), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "acquire: its owner has it as a reader");
}

static struct redlock_lease *hand_on(struct table *table, combine_set set,
                                     struct redlock_lease *lease)
{
    char token[REDLOCK_TOKEN_MAX + 1];

    (void)snprintf(token, sizeof token, "%s", info_token(lease));
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    CHECK_INT(adopt(table, set, token, &lease), REDLOCK_OK);
    CHECK_INT(redlock_extend(lease, 0), REDLOCK_OK);
    CHECK_UINT(info_fence(lease), 0);
    return lease;
}

/* The number is greater for each name. */
static void check_grows(struct table *table, combine_set set, uint64_t fence)
{
    for (unsigned i = 0; i < (has(set, COMBINE_SEVERAL) ? 2 : 1); i++) {
        combine_set alone = set & ~(1u << COMBINE_SEVERAL);
        const struct redlock_lock_options opts = options(alone, me, 60000);
        struct redlock_lease *lease;

        CHECK_INT(redlock_lock(table->a.rl, names[i], &opts, &lease), REDLOCK_OK);
        CHECK(info_fence(lease) > fence);
        CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    }
}

/* Readers are awaited by a writer. */
static void check_waits(struct table *table, combine_set set, struct redlock_lease *lease,
                        uint64_t fence)
{
    struct other other;

    begin_other(&other, table, set & ~(1u << COMBINE_SHARED), 60000);
    CHECK(pilot_until(&table->b, has_asked, &other));
    if (has(set, COMBINE_REENTRANT))
        check_again(table, set, lease);
    CHECK(!other.is_done);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    CHECK_INT(end_other(&other), REDLOCK_OK);
    CHECK(!has(set, COMBINE_FENCE) || info_fence(other.lease) > fence);
    fence = info_fence(other.lease);
    CHECK_INT(pilot_unlock(&table->b, other.lease), REDLOCK_OK);
    if (has(set, COMBINE_FENCE))
        check_grows(table, set, fence);
}

static bool has_no_keys(void *arg)
{
    (void)arg;
    return cluster_count(&three, "a", NULL) + cluster_count(&three, "b", NULL) +
               cluster_count(&three, "redlock:permit:a:0", NULL) ==
           0;
}

static void check_works(struct table *table, combine_set set)
{
    combine_set asked = set & ~(1u << COMBINE_ADOPT);
    struct redlock_lease *lease;
    uint64_t fence;

    CHECK_INT(lock(table, asked, &lease), REDLOCK_OK);
    fence = info_fence(lease);
    CHECK((fence != 0) == has(set, COMBINE_FENCE));
    if (has(set, COMBINE_REENTRANT))
        check_again(table, asked, lease);
    if (has(set, COMBINE_ADOPT))
        lease = hand_on(table, asked, lease);
    check_excludes(table, asked);
    CHECK_INT(redlock_extend(lease, 0), REDLOCK_OK);
    check_waits(table, asked, lease, fence);
    CHECK(pilot_until(&table->b, has_no_keys, NULL));
}

/* ---- The walk ---- */

static void check(struct table *table, combine_set set)
{
    const struct combine_clash *clash = combine_clash_in(set);

    if (clash != NULL)
        check_refused(table, set, clash);
    else
        check_works(table, set);
}

/* All pairs, with each option alone, and all larger sets whose pairs go together. */
TEST(each_pair_works_or_says_why_not)
{
    struct table table;
    char row[40];

    cluster_ready(&three, 3);
    pilot_open(&table.a, PILOT_BLOCKING, cluster_masters(&three), 0);
    pilot_open(&table.b, PILOT_LOOP, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&table.a, 3) && pilot_until_up(&table.b, 3));
    for (combine_set set = 0; set < 1u << COMBINE_LEN; set++) {
        if (__builtin_popcount(set) > 2 && combine_clash_in(set) != NULL)
            continue;
        (void)snprintf(row, sizeof row, "options %#x", set);
        check_row = row;
        check(&table, set);
    }
    check_row = NULL;
    pilot_close(&table.a);
    pilot_close(&table.b);
}

static uint64_t counted(unsigned m, const char *name)
{
    char field[8];
    const char *text;

    (void)snprintf(field, sizeof field, "%u", wire_counter(name, strlen(name)));
    text = server_text(&three.server[m], "HGET redlock:master %s", field);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static void set_counter(unsigned m, const char *name, unsigned count)
{
    (void)server_int(&three.server[m], "HSET redlock:master %u %u",
                     wire_counter(name, strlen(name)), count);
}

/* One name was locked more often than the other, and not on all masters. */
TEST(counters_of_several_names_become_one_number)
{
    struct redlock_lease *lease;
    struct table table;
    uint64_t fence;

    cluster_ready(&three, 3);
    pilot_open(&table.a, PILOT_BLOCKING, cluster_masters(&three), 0);
    CHECK(pilot_until_up(&table.a, 3));
    for (unsigned m = 0; m < 3; m++) {
        set_counter(m, "a", 10 + 10 * m);
        set_counter(m, "b", 5);
        (void)server_text(&three.server[m], "SCRIPT LOAD %s", script_all[SCRIPT_RAISE_MANY].text);
    }
    CHECK_INT(lock(&table, 1u << COMBINE_FENCE | 1u << COMBINE_SEVERAL, &lease), REDLOCK_OK);
    fence = info_fence(lease); /* The floor is 1. */
    CHECK(fence >= 1 + 22);
    CHECK_UINT(pilot_stats(&table.a).raised, 1);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    CHECK(pilot_until(&table.a, has_no_keys, NULL));
    for (unsigned m = 0; m < 3; m++)
        CHECK_UINT(counted(m, "a"), counted(m, "b"));
    CHECK_INT(lock(&table, 1u << COMBINE_FENCE | 1u << COMBINE_SEVERAL, &lease), REDLOCK_OK);
    CHECK(info_fence(lease) > fence);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    pilot_close(&table.a);
}

CHECK_MAIN(RUN(each_pair_works_or_says_why_not), RUN(counters_of_several_names_become_one_number))
