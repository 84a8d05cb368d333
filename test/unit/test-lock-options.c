/*
 * test-lock-options.c - the options of a lock: defaults, limits, and the configuration of
 * the machine that they become.
 */
#include "redlock/base/error.h"
#include "redlock/client/options.h"

#include "test/lib/check.h"

static struct options options; /* The client's options. */
static struct redlock_lock_options lock, full;
static struct quorum_config config;

/* A client with these options, and a lock with the defaults. */
static void begin_with(const struct redlock_options *opts)
{
    CHECK_INT(options_copy(opts, NULL, &options), REDLOCK_OK);
    redlock_lock_options_init(&lock);
}

/* A client with the defaults and three masters, and a lock with the defaults. */
static void begin(void)
{
    struct redlock_options opts;

    redlock_options_init(&opts);
    opts.masters = "a b c";
    begin_with(&opts);
}

static void lose_nothing(struct redlock_lease *lease, void *lost_arg)
{
    (void)lease, (void)lost_arg;
}

TEST(a_lock_becomes_a_configuration)
{
    begin();
    lock.ttl_ms = 20000;
    lock.wait_ms = 3;
    lock.retry_delay_min_ms = 4;
    lock.retry_delay_max_ms = 5;
    lock.no_renew = true;
    lock.fence = true;
    lock.max_hold_ms = 6;
    lock.lost_margin_ms = 7;
    lock.lost = lose_nothing;
    lock.lost_arg = &lock;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.lease, 20 * DRIFT_S);
    CHECK_UINT(config.reply_timeout, 50 * DRIFT_MS);
    CHECK_UINT(config.wait, 3 * DRIFT_MS);
    CHECK_UINT(config.pause_min, 4 * DRIFT_MS);
    CHECK_UINT(config.pause_max, 5 * DRIFT_MS);
    lock.fair = true; /* Each waiter sends heartbeats, which are rarer than rounds. */
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.pause_min, 18 * DRIFT_MS);
    CHECK_UINT(config.pause_max, 20 * DRIFT_MS);
    CHECK_UINT(config.hold_max, 6 * DRIFT_MS);
    CHECK_UINT(config.lost_margin, 7 * DRIFT_MS);
    CHECK_UINT(config.drift.ppm, 10000);
    CHECK_UINT(config.drift.fixed, 2 * DRIFT_MS);
    CHECK(!config.renew);
    CHECK(config.fence);
    CHECK(full.lost == lose_nothing && full.lost_arg == &lock);
    CHECK_UINT(full.lost_margin_ms, 7);
    CHECK_UINT(full.ttl_ms, 20000);
    options_done(&options);
}

TEST(a_lock_has_defaults)
{
    begin();
    CHECK_INT(options_lock(&options, NULL, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.lease, 10 * DRIFT_S);
    CHECK_UINT(config.wait, 0);
    CHECK_UINT(config.hold_max, DRIFT_NEVER);
    CHECK_UINT(config.lost_margin, DRIFT_S);
    CHECK_UINT(full.lost_margin_ms, 1000);
    CHECK(config.renew);
    CHECK(full.lost == NULL);

    lock.wait_ms = UINT32_MAX;
    lock.max_hold_ms = UINT32_MAX;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.wait, DRIFT_NEVER);
    CHECK_UINT(config.hold_max, UINT32_MAX * DRIFT_MS);
    lock.wait_ms = UINT32_MAX - 1;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.wait, (UINT32_MAX - 1) * DRIFT_MS);
    options_done(&options);
}

/* The lock is refused, and both structs are unchanged. */
static void check_lock_refused(const char *message)
{
    struct redlock_lock_options full_before;
    struct quorum_config config_before;

    memset(&full, 0x5a, sizeof full);
    memset(&full_before, 0x5a, sizeof full_before);
    memset(&config, 0x5a, sizeof config);
    memset(&config_before, 0x5a, sizeof config_before);
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_E_INVAL);
    CHECK_HAS(error_message(), message);
    CHECK(memcmp(&full, &full_before, sizeof full) == 0);
    CHECK(memcmp(&config, &config_before, sizeof config) == 0);
}

/* Without the restart guard, the loss of counters would not be noticed. */
static bool stands(uint32_t ttl_ms)
{
    lock.ttl_ms = ttl_ms;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    return config.stands;
}

/* docs/protocol.md, section 13: a release may pass these locks on.  The patience is 3404 ms. */
TEST(tokens_wait_for_plain_fair_locks)
{
    struct redlock_options opts;

    begin();
    CHECK(!stands(10000));
    lock.fair = true;
    CHECK(stands(10000));
    CHECK(stands(3404));
    CHECK(!stands(3403));
    lock.fence = true;
    CHECK(!stands(10000));
    options_done(&options);
    redlock_options_init(&opts);
    opts.masters = "a b c";
    opts.clock_guard = REDLOCK_CLOCK_GUARD_PER_VOTE;
    begin_with(&opts);
    lock.fair = true;
    CHECK(!stands(10000));
    options_done(&options);
}

TEST(a_fencing_token_needs_the_restart_guard)
{
    struct redlock_options opts;

    redlock_options_init(&opts);
    opts.masters = "h";
    opts.restart_guard = false;
    begin_with(&opts);
    lock.fence = true;
    check_lock_refused("fence is set, and restart_guard is not");
    options_done(&options);
}

/* With per_vote, a lease also subtracts the steps that the clock guard cannot detect. */
TEST(an_allowance_has_what_the_clock_guard_needs)
{
    static const struct {
        enum redlock_clock_guard guard;
        uint32_t ppm;
        drift_span fixed;
    } modes[] = {
        {REDLOCK_CLOCK_GUARD_OFF, 10000, 2 * DRIFT_MS},
        {REDLOCK_CLOCK_GUARD_PERIODIC, 10000, 2 * DRIFT_MS},
        {REDLOCK_CLOCK_GUARD_PER_VOTE, 20000, 102 * DRIFT_MS},
    };

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct redlock_options opts;

        redlock_options_init(&opts);
        opts.masters = "h";
        opts.clock_guard = modes[i].guard;
        begin_with(&opts);
        CHECK_INT(options.clock_guard, modes[i].guard);
        CHECK_UINT(options.drift.ppm, 10000);
        CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
        CHECK_UINT(config.drift.ppm, modes[i].ppm);
        CHECK_UINT(config.drift.fixed, modes[i].fixed);
        lock.ttl_ms = 104;
        if (modes[i].fixed < 100 * DRIFT_MS)
            CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
        else
            check_lock_refused("not longer than its drift allowance (20000 ppm and 102 ms)");
        options_done(&options);
    }
}

TEST(ttls_have_limits)
{
    begin();
    lock.ttl_ms = 0;
    check_lock_refused("ttl_ms is 0");
    lock.ttl_ms = 60000;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_INT(options_check_ttl(&options, 60000), REDLOCK_OK);
    lock.ttl_ms = 60001;
    check_lock_refused("over max_ttl_ms, which is 60000");
    CHECK_INT(options_check_ttl(&options, 60001), REDLOCK_E_INVAL);
    CHECK_INT(options_check_ttl(&options, UINT32_MAX), REDLOCK_E_INVAL);
    CHECK_INT(options_check_ttl(&options, 0), REDLOCK_E_INVAL);

    /* 1 % and 2 ms are more than 2 ms, and less than 3 ms. */
    lock.ttl_ms = 2;
    check_lock_refused("not longer than its drift allowance (10000 ppm and 2 ms)");
    lock.ttl_ms = 3;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    /* The allowance is the whole lease, and then 1 ns less. */
    options.drift.ppm = 0;
    options.drift.fixed = 3 * DRIFT_MS;
    check_lock_refused("drift allowance");
    options.drift.fixed = 3 * DRIFT_MS - 1;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    options_done(&options);
}

TEST(delays_are_in_order)
{
    begin();
    lock.retry_delay_min_ms = 7;
    lock.retry_delay_max_ms = 7;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    lock.retry_delay_max_ms = 6;
    check_lock_refused("retry_delay_min_ms is 7, over retry_delay_max_ms");
    options_done(&options);
}

TEST(the_margin_leaves_something_of_the_lease)
{
    begin();
    /* The allowance of 1000 ms is 12 ms, so the validity is 988 ms. */
    lock.ttl_ms = 1000;
    lock.lost_margin_ms = 987;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.lost_margin, 987 * DRIFT_MS);
    lock.lost_margin_ms = 988;
    check_lock_refused("lost_margin_ms is 988, not less than the validity");
    lock.lost_margin_ms = UINT32_MAX;
    check_lock_refused("lost_margin_ms");

    /* The default is a tenth of the lease, or half of the validity if that is less. */
    lock.lost_margin_ms = 0;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.lost_margin, 100 * DRIFT_MS);
    lock.ttl_ms = 15;
    options.drift.ppm = 0;
    options.drift.fixed = 12 * DRIFT_MS;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.lost_margin, 1500000);
    options.drift.fixed = 12 * DRIFT_MS + 2;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.lost_margin, 1499999);
    CHECK_UINT(full.lost_margin_ms, 1);
    /* With a validity of 1 ns, the margin is 0. */
    options.drift.fixed = 15 * DRIFT_MS - 1;
    CHECK_INT(options_lock(&options, &lock, &full, &config), REDLOCK_OK);
    CHECK_UINT(config.lost_margin, 0);
    options_done(&options);
}

CHECK_MAIN(RUN(a_lock_becomes_a_configuration), RUN(a_lock_has_defaults),
           RUN(tokens_wait_for_plain_fair_locks), RUN(a_fencing_token_needs_the_restart_guard),
           RUN(an_allowance_has_what_the_clock_guard_needs), RUN(ttls_have_limits),
           RUN(delays_are_in_order), RUN(the_margin_leaves_something_of_the_lease))
