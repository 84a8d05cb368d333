/*
 * test-api.c - bad input to calls on a client gives a clear status and message, and harms nothing.
 *
 * Each row names the mistake and the exact message, because callers have only the message to go
 * by.  After each row the held lock is still held, other locks work, and the variable for the
 * result is unchanged.  Bad input to redlock_open() is in test/unit/test-open.c.
 */
#include "test/lib/check.h"

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

static struct cluster five;

/* A failed call must leave this pointer alone.  It is not NULL, and nothing dereferences it. */
static char untouched_byte;
#define UNTOUCHED ((void *)&untouched_byte)

/* ---- Locking ---- */

/* A client with one held lock, which bad input must not harm. */
struct bench {
    struct pilot pilot;
    struct redlock_lease *held;
};

static void set_up(struct bench *bench, enum pilot_kind kind)
{
    cluster_ready(&five, 5);
    pilot_open(&bench->pilot, kind, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&bench->pilot, five.len));
    CHECK_INT(pilot_lock(&bench->pilot, "held", NULL, &bench->held), REDLOCK_OK);
}

/* The lock is held when a majority has answered; the others may store it later. */
static bool has_one_key_each(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < five.len; i++) {
        if (server_locks(&five.server[i]) != 1)
            return false;
    }
    return true;
}

/* The lock is still held, it is the only one, and new locks work. */
static void check_nothing_lost(struct bench *bench)
{
    struct redlock_lease *lease;

    CHECK(redlock_remaining_ms(bench->held) > 0);
    CHECK(pilot_until_leases(&bench->pilot, 1));
    CHECK_INT(pilot_extend(&bench->pilot, bench->held, 0), REDLOCK_OK);
    CHECK_INT(pilot_lock(&bench->pilot, "other", NULL, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&bench->pilot, lease), REDLOCK_OK);
    CHECK(pilot_until(&bench->pilot, has_one_key_each, NULL));
}

static void tear_down(struct bench *bench)
{
    check_nothing_lost(bench);
    CHECK_INT(pilot_unlock(&bench->pilot, bench->held), REDLOCK_OK);
    pilot_close(&bench->pilot);
}

static void with_both(void (*try)(struct bench *bench))
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct bench bench;

        set_up(&bench, kind);
        try(&bench);
        check_row = pilot_kind_name(kind);
        tear_down(&bench);
    }
}

struct bad_lock {
    const char *row, *name, *message;
    struct redlock_lock_options opts; /* If its size is 0, the call gets no options. */
};

#define ALL_OF sizeof(struct redlock_lock_options)

static char long_name[REDLOCK_NAME_MAX + 2];

static const struct bad_lock bad_locks[] = {
    {"no name", NULL, "acquire: the resource name is NULL", {0}},
    {"empty name", "", "acquire: the resource name is empty", {0}},
    {"long name", long_name, "acquire: the resource name is longer than 512 bytes", {0}},
    {"name of the marker",
     "redlock:master",
     "acquire: the resource name is that of the masters' markers",
     {0}},
    {"name of the marks of witnesses",
     "redlock:witness",
     "acquire: the resource name is that of the marks of witnesses",
     {0}},
    {"name of a wait flag",
     "redlock:wait:x",
     "acquire: the resource name begins with redlock:wait:, as wait flags do",
     {0}},
    {"name of a permit",
     "redlock:permit:x:0",
     "acquire: the resource name begins with redlock:permit:, as permits do",
     {0}},
    {"too many permits",
     "x",
     "acquire: permits is 257, must be 0 to 256",
     {.size = ALL_OF, .ttl_ms = 1000, .permits = 257}},
    {"a permit that is reentrant",
     "x",
     "acquire: permits and reentrant do not go together: an owner that asks again may want the "
     "same permit or another",
     {.size = ALL_OF, .ttl_ms = 1000, .permits = 2, .reentrant = true}},
    {"name of a waiting token",
     "redlock:next:x",
     "acquire: the resource name begins with redlock:next:, as waiting tokens do",
     {0}},
    {"name of a queue",
     "redlock:queue:x",
     "acquire: the resource name begins with redlock:queue:, as queues do",
     {0}},
    {"fair permits",
     "x",
     "acquire: fair and permits do not go together: a queue belongs to one key, and each permit "
     "has its own",
     {.size = ALL_OF, .ttl_ms = 10000, .permits = 2, .fair = true}},
    {"tiny size", "x", "acquire: size is 8: the options were not initialized", {.size = 8}},
    {"ttl 0", "x", "acquire: ttl_ms is 0", {.size = ALL_OF}},
    {"ttl within its allowance",
     "x",
     "acquire: ttl_ms is 2, not longer than its drift allowance (10000 ppm and 2 ms)",
     {.size = ALL_OF, .ttl_ms = 2}},
    {"ttl over the maximum",
     "x",
     "acquire: ttl_ms is 60001, over max_ttl_ms, which is 60000",
     {.size = ALL_OF, .ttl_ms = 60001}},
    {"longest ttl",
     "x",
     "acquire: ttl_ms is 4294967295, over max_ttl_ms, which is 60000",
     {.size = ALL_OF, .ttl_ms = UINT32_MAX}},
    {"delays",
     "x",
     "acquire: retry_delay_min_ms is 2, over retry_delay_max_ms, which is 1",
     {.size = ALL_OF, .ttl_ms = 1000, .retry_delay_min_ms = 2, .retry_delay_max_ms = 1}},
    {"margin",
     "x",
     "acquire: lost_margin_ms is 1000, not less than the validity of a ttl_ms of 1000",
     {.size = ALL_OF, .ttl_ms = 1000, .lost_margin_ms = 1000}},
};

static void try_bad_locks(struct bench *bench)
{
    memset(long_name, 'n', REDLOCK_NAME_MAX + 1);
    for (size_t i = 0; i < sizeof bad_locks / sizeof *bad_locks; i++) {
        const struct bad_lock *bad = &bad_locks[i];
        struct redlock_lease *lease = UNTOUCHED;

        check_row = bad->row;
        CHECK_INT(
            pilot_lock(&bench->pilot, bad->name, bad->opts.size != 0 ? &bad->opts : NULL, &lease),
            REDLOCK_E_INVAL);
        CHECK_STR(bench->pilot.message, bad->message);
        CHECK(lease == UNTOUCHED);
    }
}

TEST(lock_refuses_bad_input)
{
    with_both(try_bad_locks);
}

/* Messages of an adoption differ from those of a lock only in the verb. */
static void try_bad_adoptions(struct bench *bench)
{
    struct redlock *rl = bench->pilot.rl;
    struct redlock_lease *lease = UNTOUCHED;
    char token[REDLOCK_TOKEN_MAX + 2] = "";
    struct redlock_lock_options permits;

    redlock_lock_options_init(&permits);
    permits.permits = 2;
    check_row = pilot_kind_name(bench->pilot.kind);
    CHECK_INT(redlock_adopt(rl, "x", token, NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: a token has 1 to 128 bytes");
    memset(token, 't', REDLOCK_TOKEN_MAX + 1);
    CHECK_INT(redlock_adopt(rl, "x", token, NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: a token has 1 to 128 bytes");
    CHECK_INT(redlock_adopt(rl, "x", "0g", &permits, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: the token belongs to none of 2 permits");
    CHECK_INT(redlock_adopt(rl, "x", NULL, NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: token is NULL");
    CHECK_INT(redlock_adopt(rl, "", "t", NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: the resource name is empty");
    CHECK_INT(redlock_adopt(rl, NULL, "t", NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: the resource name is NULL");
    CHECK_INT(redlock_adopt(rl, "x", "t", NULL, NULL), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: ret_lease is NULL");
    CHECK_INT(redlock_adopt(NULL, "x", "t", NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(rl), "adopt: the client is NULL");
    CHECK(lease == UNTOUCHED);
}

TEST(adopt_refuses_bad_input)
{
    with_both(try_bad_adoptions);
}

static void try_bad_extensions(struct bench *bench)
{
    struct pilot *pilot = &bench->pilot;

    check_row = pilot_kind_name(pilot->kind);
    CHECK_INT(pilot_extend(pilot, bench->held, 60001), REDLOCK_E_INVAL);
    CHECK_STR(pilot->message, "extend: ttl_ms is 60001, over max_ttl_ms, which is 60000");
    CHECK_INT(pilot_extend(pilot, bench->held, 2), REDLOCK_E_INVAL);
    CHECK_STR(pilot->message,
              "extend: ttl_ms is 2, not longer than its drift allowance (10000 ppm and 2 ms)");
    CHECK_INT(pilot_extend(pilot, NULL, 1000), REDLOCK_E_INVAL);
    CHECK_STR(pilot->message, "extend: the lease is NULL");
}

TEST(extend_refuses_bad_input)
{
    with_both(try_bad_extensions);
}

/* ---- NULL ---- */

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)status;
    ++*(unsigned *)arg;
}

TEST(null_is_told_on_a_loop)
{
    struct redlock_lease *lease = UNTOUCHED;
    struct bench bench;
    unsigned calls = 0;

    set_up(&bench, PILOT_LOOP);
    CHECK_INT(redlock_lock_async(NULL, "x", NULL, on_done, &calls, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: the client is NULL");
    CHECK_INT(redlock_lock_async(bench.pilot.rl, NULL, NULL, on_done, &calls, &lease),
              REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: the resource name is NULL");
    CHECK_INT(redlock_lock_async(bench.pilot.rl, "x", NULL, NULL, NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: done is NULL");
    CHECK_INT(redlock_extend_async(NULL, 0, on_done, &calls), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "extend: the lease is NULL");
    CHECK_INT(redlock_extend_async(bench.held, 0, NULL, NULL), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "extend: done is NULL");
    CHECK_INT(redlock_unlock_async(NULL, on_done, &calls), REDLOCK_OK);
    CHECK(lease == UNTOUCHED);
    tear_down(&bench);
    CHECK_UINT(calls, 0);
}

TEST(null_is_told_where_calls_block)
{
    struct redlock_lease *lease = UNTOUCHED;
    struct bench bench;

    set_up(&bench, PILOT_BLOCKING);
    CHECK_INT(redlock_lock(NULL, "x", NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: the client is NULL");
    CHECK_INT(redlock_lock(bench.pilot.rl, NULL, NULL, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: the resource name is NULL");
    CHECK_INT(redlock_lock(bench.pilot.rl, "x", NULL, NULL), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: ret_lease is NULL");
    CHECK_INT(redlock_extend(NULL, 0), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "extend: the lease is NULL");
    CHECK_INT(redlock_unlock(NULL), REDLOCK_OK);
    CHECK(lease == UNTOUCHED);
    tear_down(&bench);
}

/* ---- Lists ---- */

static const char *const seventeen[17] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                          "j", "k", "l", "m", "n", "o", "p", "q"};
static const char *const bad_lists[][3] = {
    {"a", "", "c"}, {"a", NULL, "c"}, {"a", "b", "a"}, {"a", "redlock:wait:x", "b"}};

static const struct {
    const char *row;
    const char *const *resources;
    size_t len;
    bool reentrant;
    const char *message;
} list_rows[] = {
    {"none", seventeen, 0, false, "0 resources, must be 1 to 16"},
    {"NULL", NULL, 3, false, "0 resources, must be 1 to 16"},
    {"too many", seventeen, 17, false, "17 resources, must be 1 to 16"},
    {"empty name", bad_lists[0], 3, false, "resource 2: the resource name is empty"},
    {"no name", bad_lists[1], 3, false, "resource 2: the resource name is NULL"},
    {"twice", bad_lists[2], 3, false, "resource 1 and resource 3 are the same"},
    {"wait flag", bad_lists[3], 3, false,
     "resource 2: the resource name begins with redlock:wait:, as wait flags do"},
    {"reentrant", seventeen, 3, true,
     "reentrant and several do not go together: an owner may have some of the names and not the "
     "others"},
};

static void check_told(const char *what, const char *message)
{
    char want[256];

    (void)snprintf(want, sizeof want, "%s: %s", what, message);
    CHECK_STR(redlock_errmsg(NULL), want);
}

static void try_bad_list(struct bench *bench, size_t i)
{
    struct redlock_lease *lease = UNTOUCHED;
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.reentrant = list_rows[i].reentrant;
    check_row = list_rows[i].row;
    CHECK_INT(
        redlock_lock_many(bench->pilot.rl, list_rows[i].resources, list_rows[i].len, &opts, &lease),
        REDLOCK_E_INVAL);
    check_told("acquire", list_rows[i].message);
    if (!opts.reentrant) { /* An adopted lease must not set reentrant. */
        CHECK_INT(redlock_adopt_many(bench->pilot.rl, list_rows[i].resources, list_rows[i].len, "t",
                                     &opts, &lease),
                  REDLOCK_E_INVAL);
        check_told("adopt", list_rows[i].message);
    }
    CHECK(lease == UNTOUCHED);
    check_row = NULL;
}

TEST(lists_are_checked)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease = UNTOUCHED;
    struct bench bench;
    unsigned calls = 0;

    set_up(&bench, PILOT_BLOCKING);
    for (size_t i = 0; i < sizeof list_rows / sizeof list_rows[0]; i++)
        try_bad_list(&bench, i);
    CHECK_INT(redlock_lock_many(bench.pilot.rl, seventeen, 2, NULL, NULL), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: ret_lease is NULL");
    redlock_lock_options_init(&opts);
    opts.permits = 2;
    CHECK_INT(redlock_lock_many(bench.pilot.rl, seventeen, 2, &opts, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "acquire: permits and several do not go together: a round asks "
                                    "for one permit of one semaphore");
    CHECK_INT(redlock_lock_many_async(bench.pilot.rl, seventeen, 2, NULL, on_done, &calls, &lease),
              REDLOCK_E_STATE);
    CHECK_INT(redlock_lock_many(bench.pilot.rl, seventeen, 1, NULL, &lease), REDLOCK_OK);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    tear_down(&bench);
    CHECK_UINT(calls, 0);
}

static const struct {
    const char *row;
    size_t len; /* 0: redlock_lock(). */
    bool fence;
    uint32_t permits;
    const char *message;
} shared_rows[] = {
    {"several", 2, false, 0,
     "acquire: several and shared do not go together: masters store readers in another form than "
     "the token of several names"},
    {"a list of one", 1, false, 0,
     "acquire: several and shared do not go together: masters store readers in another form than "
     "the token of several names"},
    {"fence", 0, true, 0,
     "acquire: fence and shared do not go together: the token of a later reader would shut out "
     "those that still read"},
    {"permits", 0, false, 3,
     "acquire: permits and shared do not go together: a permit has one holder"},
};

TEST(what_is_shared_is_checked)
{
    struct bench bench;

    set_up(&bench, PILOT_BLOCKING);
    for (size_t i = 0; i < sizeof shared_rows / sizeof shared_rows[0]; i++) {
        struct redlock_lease *lease = UNTOUCHED;
        struct redlock_lock_options opts;
        size_t len = shared_rows[i].len;

        redlock_lock_options_init(&opts);
        CHECK(!opts.shared);
        opts.shared = true;
        opts.fence = shared_rows[i].fence;
        opts.permits = shared_rows[i].permits;
        check_row = shared_rows[i].row;
        CHECK_INT(len > 0 ? redlock_lock_many(bench.pilot.rl, seventeen, len, &opts, &lease)
                          : redlock_lock(bench.pilot.rl, "a", &opts, &lease),
                  REDLOCK_E_INVAL);
        CHECK_STR(redlock_errmsg(NULL), shared_rows[i].message);
        CHECK(lease == UNTOUCHED);
    }
    check_row = NULL;
    tear_down(&bench);
}

TEST(null_is_told_by_all_else)
{
    struct redlock_stats stats = {.size = sizeof stats};
    struct redlock_lease_info info = {.size = sizeof info};
    struct bench bench;

    set_up(&bench, PILOT_BLOCKING);
    redlock_options_init_sized(NULL, sizeof(struct redlock_options));
    redlock_lock_options_init_sized(NULL, sizeof(struct redlock_lock_options));
    CHECK(redlock_close(NULL) == NULL);
    redlock_cancel(NULL);
    redlock_interrupt(NULL);
    CHECK_INT(redlock_detach(NULL), REDLOCK_OK);
    CHECK_UINT(redlock_remaining_ms(NULL), 0);
    CHECK_INT(redlock_lease_info(NULL, &info), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "lease info: the lease is NULL");
    CHECK_INT(redlock_lease_info(bench.held, NULL), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "lease info: NULL, or its size is not set");
    info.size = 0;
    CHECK_INT(redlock_lease_info(bench.held, &info), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "lease info: NULL, or its size is not set");
    CHECK_INT(redlock_stats(NULL, &stats), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "stats: the client is NULL");
    CHECK_INT(redlock_stats(bench.pilot.rl, NULL), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "stats: NULL, or its size is not set");
    stats.size = 0;
    CHECK_INT(redlock_stats(bench.pilot.rl, &stats), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "stats: NULL, or its size is not set");
    tear_down(&bench);
}

/* ---- Calls of the other kind ---- */

TEST(blocking_calls_are_not_for_a_loop)
{
    struct redlock_lease *lease = UNTOUCHED;
    struct bench bench;

    set_up(&bench, PILOT_LOOP);
    CHECK_INT(redlock_lock(bench.pilot.rl, "x", NULL, &lease), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "acquire: a blocking call on a client with a loop");
    CHECK(lease == UNTOUCHED);
    CHECK_INT(redlock_extend(bench.held, 0), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "extend: a blocking call on a client with a loop");
    CHECK_INT(redlock_unlock(bench.held), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "release: a blocking call on a client with a loop");
    tear_down(&bench);
}

TEST(asynchronous_calls_are_for_a_loop)
{
    struct redlock_lease *lease = UNTOUCHED;
    struct bench bench;
    unsigned calls = 0;

    set_up(&bench, PILOT_BLOCKING);
    CHECK_INT(redlock_lock_async(bench.pilot.rl, "x", NULL, on_done, &calls, &lease),
              REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "acquire: an asynchronous call on a blocking client");
    CHECK(lease == UNTOUCHED);
    CHECK_INT(redlock_extend_async(bench.held, 0, on_done, &calls), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "extend: an asynchronous call on a blocking client");
    CHECK_INT(redlock_unlock_async(bench.held, on_done, &calls), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "release: an asynchronous call on a blocking client");
    tear_down(&bench);
    CHECK_UINT(calls, 0);
}

/* ---- Structs of other versions ---- */

TEST(stats_of_other_sizes)
{
    struct {
        struct redlock_stats stats;
        uint64_t later;
    } larger = {.stats.size = sizeof larger, .later = 7};
    struct redlock_stats smaller = {.size = offsetof(struct redlock_stats, contended),
                                    .contended = 7};
    struct bench bench;

    set_up(&bench, PILOT_BLOCKING);
    CHECK_INT(redlock_stats(bench.pilot.rl, &smaller), REDLOCK_OK);
    CHECK_UINT(smaller.acquired, 1);
    CHECK_UINT(smaller.contended, 7);
    CHECK_UINT(smaller.size, offsetof(struct redlock_stats, contended));
    CHECK_INT(redlock_stats(bench.pilot.rl, &larger.stats), REDLOCK_OK);
    CHECK_UINT(larger.stats.acquired, 1);
    CHECK_UINT(larger.stats.masters, 5);
    CHECK_UINT(larger.later, 0); /* The library zeroes the fields that it does not know. */
    tear_down(&bench);
}

TEST(lease_info_of_other_sizes)
{
    struct {
        struct redlock_lease_info info;
        uint64_t later;
    } larger = {.info.size = sizeof larger, .later = 7};
    struct redlock_lease_info smaller = {.size = offsetof(struct redlock_lease_info, fence),
                                         .fence = 7};
    struct redlock_lease_info wild = {.size = 4097, .fence = 7};
    struct bench bench;

    set_up(&bench, PILOT_BLOCKING);
    CHECK_INT(redlock_lease_info(bench.held, &smaller), REDLOCK_OK);
    CHECK_STR(smaller.resource, "held");
    CHECK_UINT(smaller.fence, 7);
    CHECK_UINT(smaller.size, offsetof(struct redlock_lease_info, fence));
    CHECK_INT(redlock_lease_info(bench.held, &larger.info), REDLOCK_OK);
    CHECK_STR(larger.info.token, smaller.token);
    CHECK_UINT(larger.info.holds, 1);
    CHECK_UINT(larger.info.resources_len, 1);
    CHECK_UINT(larger.later, 0);
    CHECK_INT(redlock_lease_info(bench.held, &wild), REDLOCK_E_INVAL);
    CHECK_UINT(wild.fence, 7);
    tear_down(&bench);
}

/* A wild size is one that was never set.  The library must reject it, or it would zero memory
 * behind the struct. */
TEST(stats_of_a_wild_size)
{
    static const size_t sizes[] = {4097, 1u << 20, SIZE_MAX};
    struct {
        struct redlock_stats stats;
        char later[8192];
    } wild;
    struct bench bench;

    set_up(&bench, PILOT_BLOCKING);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(&wild, 7, sizeof wild);
        wild.stats.size = sizes[i];
        CHECK_INT(redlock_stats(bench.pilot.rl, &wild.stats), REDLOCK_E_INVAL);
        CHECK_STR(redlock_errmsg(NULL), "stats: NULL, or its size is not set");
        CHECK_UINT(wild.stats.size, sizes[i]);
        CHECK_INT(wild.later[0], 7);
    }
    wild.stats.size = 4096; /* The largest size that is accepted; not a byte more is zeroed. */
    CHECK_INT(redlock_stats(bench.pilot.rl, &wild.stats), REDLOCK_OK);
    CHECK_INT(wild.later[4095 - sizeof wild.stats], 0);
    CHECK_INT(wild.later[4096 - sizeof wild.stats], 7);
    tear_down(&bench);
}

CHECK_MAIN({"lock_refuses_bad_input", lock_refuses_bad_input},
           {"adopt_refuses_bad_input", adopt_refuses_bad_input},
           {"extend_refuses_bad_input", extend_refuses_bad_input},
           {"null_is_told_on_a_loop", null_is_told_on_a_loop},
           {"null_is_told_where_calls_block", null_is_told_where_calls_block},
           {"lists_are_checked", lists_are_checked},
           {"what_is_shared_is_checked", what_is_shared_is_checked},
           {"null_is_told_by_all_else", null_is_told_by_all_else},
           {"blocking_calls_are_not_for_a_loop", blocking_calls_are_not_for_a_loop},
           {"asynchronous_calls_are_for_a_loop", asynchronous_calls_are_for_a_loop},
           {"stats_of_other_sizes", stats_of_other_sizes},
           {"lease_info_of_other_sizes", lease_info_of_other_sizes},
           {"stats_of_a_wild_size", stats_of_a_wild_size})
