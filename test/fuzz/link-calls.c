/*
 * link-calls.c - the program of fuzz-link: its calls, and what it may expect of them.
 */
#include "link.h"

#include <string.h>

#include "redlock/redlock.h"
#include "test/lib/info.h"

#define LEASES_MAX 128
#define DEPTH_MAX 2   /* Nested callbacks that run the loop. */
#define CALLS_MAX 400 /* Calls of one input. */

struct lease {
    struct redlock_lease *lease; /* NULL: the program does not have it any more. */
    unsigned locks;              /* How often its owner has locked it. */
    bool was_told;
    /* The operation that is under way. */
    enum { NONE, LOCK, EXTEND, UNLOCK } op;
    uintptr_t number; /* The number of the operation, which is its callback's argument. */
    drift_time ends_by;
};

static struct redlock *rl;
static struct redlock_options options;
static struct lease leases[LEASES_MAX];
static unsigned leases_len, calls, depth;
static uintptr_t ops;
static unsigned granted; /* Locks that on_granted() has counted. */
static bool in_call;
static struct ev_loop ev;

/* ---- Operations ---- */

static void run_calls(void);

static bool is_outcome(unsigned op, int status)
{
    switch (status) {
    case REDLOCK_OK:
    case REDLOCK_UNREACHABLE:
    case REDLOCK_LOST:
        return true;
    case REDLOCK_CONTENDED:
        return op == LOCK;
    case REDLOCK_NOT_READY:
    case REDLOCK_E_FORBIDDEN:
    case REDLOCK_E_WRONG_SET:
    case REDLOCK_TOO_LATE:
        return op != UNLOCK;
    default:
        return false;
    }
}

static void begin_op(struct lease *lease, unsigned op, uint32_t wait_ms)
{
    drift_span trips = 6 * options.reply_timeout_ms * DRIFT_MS;

    lease->op = op;
    lease->number = ops;
    lease->ends_by = DRIFT_NEVER;
    if (wait_ms != UINT32_MAX)
        lease->ends_by =
            net_now() + (wait_ms + options.connect_timeout_ms) * DRIFT_MS + trips + 3 * DRIFT_S;
}

/* The argument for the callback of the next operation. */
static void *next_op(void)
{
    return (void *)++ops;
}

static struct lease *find_op(const void *arg)
{
    for (unsigned i = 0; i < leases_len; i++)
        if (leases[i].op != NONE && leases[i].number == (uintptr_t)arg)
            return &leases[i];
    return NULL;
}

static void on_done(struct redlock_lease *handle, int status, void *arg)
{
    struct lease *lease = find_op(arg);
    unsigned op;

    MUST(!in_call && lease != NULL);
    op = lease->op;
    tell("done: lease %u, op %u, status %d: %s", (unsigned)(lease - leases), op, status,
         redlock_errmsg(rl));
    MUST(is_outcome(op, status));
    MUST(lease->lease == NULL ? op == UNLOCK : lease->lease == handle);
    lease->op = NONE;
    if (op == LOCK && status != REDLOCK_OK)
        lease->lease = NULL;
    net_progress();
    run_calls();
}

static void on_lost(struct redlock_lease *handle, void *arg)
{
    struct lease *lease = &leases[(uintptr_t)arg];

    tell("lost: lease %u", (unsigned)(lease - leases));
    MUST(!in_call && lease->lease == handle && !lease->was_told);
    lease->was_told = true;
    run_calls();
}

static void on_log(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)level;
    MUST(strpbrk(message, "\r\n") == NULL);
    tell("log: %s", message);
}

void calls_on_settled(void)
{
    for (unsigned i = 0; i < leases_len; i++)
        MUST(rl == NULL || leases[i].op == NONE || net_now() <= leases[i].ends_by);
}

/* ---- Calls ---- */

static void read_lock_options(struct redlock_lock_options *opts, unsigned lease)
{
    static const uint32_t ttls[] = {10000, 60000, 200, 30};
    static const uint32_t waits[] = {0, 300, 5000, UINT32_MAX};
    static const uint32_t delays[][2] = {{50, 200}, {1, 1}, {0, 0}, {500, 2000}};
    unsigned kind = next_byte(), limits = next_byte();

    redlock_lock_options_init(opts);
    opts->fence = kind % 8 == 1;
    opts->fair = kind % 8 == 2 || kind % 8 == 6;
    opts->shared = kind % 8 == 3;
    opts->permits = kind % 8 == 4 ? 1 + kind / 64 : 0;
    opts->reentrant = kind % 8 >= 5 && kind % 8 <= 6;
    opts->owner = kind & 8 ? &leases[0] : &leases[1];
    opts->no_renew = (kind & 16) != 0;
    opts->max_hold_ms = kind & 32 ? 3000 : 0;
    opts->ttl_ms = ttls[limits % 4];
    opts->wait_ms = waits[limits / 4 % 4];
    opts->retry_delay_min_ms = delays[limits / 16 % 4][0];
    opts->retry_delay_max_ms = delays[limits / 16 % 4][1];
    opts->lost_margin_ms = limits & 64 ? 10 : 0;
    opts->lost = limits & 128 ? NULL : on_lost;
    opts->lost_arg = (void *)(uintptr_t)lease;
}

/* An owner that locks again gets the lease that it has. */
static struct lease *find_lease(const struct redlock_lease *handle)
{
    for (unsigned i = 0; i < leases_len; i++)
        if (leases[i].lease == handle)
            return &leases[i];
    return NULL;
}

/* Names of resources.  The last one has the greatest length. */
static void list_names(const char *names[REDLOCK_NAMES_MAX])
{
    static const char *const some[] = {"a", "b", "jobs/7"};
    static char longest[REDLOCK_NAME_MAX + 1];

    memset(longest, 'x', REDLOCK_NAME_MAX);
    for (unsigned i = 0; i < 3; i++)
        names[i] = some[i];
    names[3] = longest;
}

static void call_lock(bool many)
{
    struct lease *lease;
    struct redlock_lock_options opts;
    struct redlock_lease *handle = NULL;
    const char *names[REDLOCK_NAMES_MAX];
    unsigned which = next_byte();
    int status;

    if (leases_len == LEASES_MAX)
        return;
    read_lock_options(&opts, leases_len);
    list_names(names);
    if (many)
        status =
            redlock_lock_many_async(rl, names, 1 + which % 4, &opts, on_done, next_op(), &handle);
    else
        status = redlock_lock_async(rl, names[which % 4], &opts, on_done, next_op(), &handle);
    tell("lock: %u%s, kind %d%d%d %u %d, wait %u: %d", which % 4, many ? ", many" : "", opts.fence,
         opts.fair, opts.shared, opts.permits, opts.reentrant, opts.wait_ms, status);
    MUST(status == REDLOCK_OK || status == REDLOCK_E_INVAL ||
         (opts.reentrant && (status == REDLOCK_E_STATE || status == REDLOCK_LOST)));
    if (status != REDLOCK_OK)
        return;
    lease = find_lease(handle);
    if (lease == NULL) {
        lease = &leases[leases_len++];
        *lease = (struct lease){.lease = handle};
    }
    MUST(lease->op == NONE && (lease->locks == 0 || opts.reentrant));
    lease->locks++;
    begin_op(lease, LOCK, opts.wait_ms);
}

static struct lease *pick_lease(void)
{
    unsigned n = next_byte();

    for (unsigned i = 0; i < leases_len; i++)
        if (leases[(n + i) % leases_len].lease != NULL)
            return &leases[(n + i) % leases_len];
    return NULL;
}

static void call_extend(struct lease *lease)
{
    static const uint32_t ttls[] = {0, 1000, 60000, 20000};
    int status = redlock_extend_async(lease->lease, ttls[next_byte() % 4], on_done, next_op());

    tell("extend: lease %u: %d", (unsigned)(lease - leases), status);
    MUST(status == REDLOCK_OK || status == REDLOCK_E_STATE || status == REDLOCK_E_INVAL);
    if (status != REDLOCK_OK)
        return;
    MUST(lease->op == NONE);
    begin_op(lease, EXTEND, 0);
}

static void call_unlock(struct lease *lease)
{
    bool is_told = next_byte() % 4 != 0;
    int status = redlock_unlock_async(lease->lease, is_told ? on_done : NULL, next_op());

    tell("unlock: lease %u: %d", (unsigned)(lease - leases), status);
    MUST(status == REDLOCK_OK || status == REDLOCK_E_STATE);
    if (status != REDLOCK_OK)
        return;
    lease->op = NONE; /* An unlock ends the operation under way. */
    if (--lease->locks == 0)
        lease->lease = NULL;
    if (is_told)
        begin_op(lease, UNLOCK, 0);
}

static void call_cancel(struct lease *lease)
{
    tell("cancel: lease %u", (unsigned)(lease - leases));
    redlock_cancel(lease->lease);
    lease->lease = NULL;
    lease->op = NONE;
}

static void call_detach(struct lease *lease)
{
    int status = redlock_detach(lease->lease);

    tell("detach: lease %u: %d", (unsigned)(lease - leases), status);
    MUST(status == (lease->op == LOCK ? REDLOCK_E_STATE : REDLOCK_OK));
    if (status != REDLOCK_OK)
        return;
    lease->lease = NULL;
    lease->op = NONE;
}

static void call_adopt(const struct lease *other)
{
    struct redlock_lock_options opts;
    struct redlock_lease *handle = NULL;
    const char *names[REDLOCK_NAMES_MAX];
    char token[REDLOCK_TOKEN_MAX + 1];
    unsigned which = next_byte();
    int status;

    if (leases_len == LEASES_MAX)
        return;
    list_names(names);
    read_lock_options(&opts, leases_len);
    (void)snprintf(token, sizeof token, "%s",
                   other != NULL && info_token(other->lease)[0] != 0
                       ? info_token(other->lease)
                       : "0123456789abcdef0123456789abcdef01234500");
    if (which & 4)
        status = redlock_adopt_many(rl, names, 1 + which % 4, token, &opts, &handle);
    else
        status = redlock_adopt(rl, names[which % 4], token, &opts, &handle);
    tell("adopt: %u: %d", which, status);
    MUST(status == REDLOCK_OK || status == REDLOCK_E_INVAL);
    if (status == REDLOCK_OK)
        leases[leases_len++] = (struct lease){.lease = handle, .locks = 1};
}

static void call_ask(const struct lease *lease)
{
    struct redlock_stats stats = {.size = sizeof stats};
    struct redlock_lease_info info = {.size = sizeof info};

    MUST(redlock_stats(rl, &stats) == REDLOCK_OK);
    MUST(stats.masters_up <= stats.masters);
    if (lease == NULL)
        return;
    MUST(redlock_lease_info(lease->lease, &info) == REDLOCK_OK);
    MUST(info.permit <= REDLOCK_PERMITS_MAX);
    MUST(info.resource[0] != 0);
    MUST(strlen(info.token) <= REDLOCK_TOKEN_MAX);
    MUST(info.remaining_ms <= 86400000);
    MUST(redlock_remaining_ms(lease->lease) <= 86400000);
    MUST(info.holds <= lease->locks);
    MUST(info.resources_len >= 1 && info.resources_len <= REDLOCK_NAMES_MAX);
}

void calls_close(void)
{
    tell("close");
    MUST(redlock_close(rl) == NULL);
    rl = NULL;
    for (unsigned i = 0; i < leases_len; i++)
        leases[i] = (struct lease){.op = NONE};
    net_check_gone();
}

void calls_one(unsigned which)
{
    struct lease *lease = which % 16 >= 4 ? pick_lease() : NULL;

    if (rl == NULL || ++calls > CALLS_MAX)
        return;
    in_call = true;
    if (which % 16 < 3)
        call_lock(false);
    else if (which % 16 == 3)
        call_lock(true);
    else if (which % 16 == 4)
        call_adopt(lease);
    else if (which % 16 == 5 || (lease == NULL && which % 16 < 15))
        call_ask(lease);
    else if (which % 16 <= 7)
        call_extend(lease);
    else if (which % 16 <= 11)
        call_unlock(lease);
    else if (which % 16 == 12)
        call_detach(lease);
    else if (which % 16 <= 14)
        call_cancel(lease);
    else if (which == 255)
        calls_close();
    in_call = false;
}

/* Calls from a callback, which may run the loop, too. */
static void run_calls(void)
{
    unsigned which = next_byte();

    if (which < 64)
        return;
    if (which >= 192 && which != 255 && depth < DEPTH_MAX) {
        depth++;
        net_turn();
        depth--;
    }
    calls_one(which);
}

void calls_on_stall(drift_span span)
{
    for (unsigned i = 0; i < leases_len; i++)
        leases[i].ends_by = drift_add(leases[i].ends_by, span + 2 * DRIFT_S);
}

/* ---- The client ---- */

void calls_open(void)
{
    static const char *const masters[] = {
        "10.0.0.1",
        "10.0.0.1,redis://u:p@10.0.0.2/3,unix:///run/s3",
        "10.0.0.1,:p@10.0.0.2,10.0.0.3",
        "10.0.0.1,unix:///run/s2",
    };
    static const char *const configs[] = {
        "10.0.0.1:6379",
        "10.0.0.1:6379 10.0.0.2:6379/3 unix:/run/s3",
        "10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379",
        "10.0.0.1:6379 unix:/run/s2",
    };
    static const uint32_t timeouts[] = {50, 1, 1000, 5000};
    unsigned which = next_byte(), guards = next_byte();

    leases_len = calls = depth = granted = 0;
    ops = 0;
    in_call = false;
    redlock_options_init(&options);
    options.masters = masters[which % 4];
    peer_config = configs[which % 4];
    peer_told_another_set = false;
    options.loop = &ev;
    options.connect_timeout_ms = which & 4 ? 20 : 1000;
    options.reply_timeout_ms = timeouts[which / 8 % 4];
    options.log = on_log;
    options.note = (which & 128) != 0 ? "fuzz" : "";
    options.restart_guard = (guards & 1) != 0;
    options.clock_guard = (enum redlock_clock_guard)(guards / 2 % 3);
    net_settings.is_auto = (which & 32) == 0;
    net_settings.rings_early = (which & 64) != 0;
    net_settings.tick = which & 128 ? 997 : 0;
    net_settings.refuses_at_once = (guards & 16) != 0;
    MUST(redlock_open(&options, &rl) == REDLOCK_OK);
}

bool calls_is_open(void)
{
    return rl != NULL;
}

bool calls_is_guarded(void)
{
    return options.restart_guard || options.clock_guard != REDLOCK_CLOCK_GUARD_OFF;
}

bool calls_all_up(void)
{
    struct redlock_stats stats = {.size = sizeof stats};
    struct redlock_lease_info info = {.size = sizeof info};

    MUST(redlock_stats(rl, &stats) == REDLOCK_OK);
    return stats.masters_up == stats.masters;
}

/* ---- At the end ---- */

static void on_granted(struct redlock_lease *handle, int status, void *arg)
{
    (void)handle, (void)arg;
    if (status != REDLOCK_OK)
        tell("not granted: %d: %s", status, redlock_errmsg(rl));
    MUST(status == REDLOCK_OK);
    granted++;
}

static struct redlock_lease *lock_number(unsigned number)
{
    struct redlock_lease *handle;
    char name[32];

    (void)snprintf(name, sizeof name, "recovered/%u", number);
    MUST(redlock_lock_async(rl, name, NULL, on_granted, NULL, &handle) == REDLOCK_OK);
    return handle;
}

void calls_recovered(bool bursts)
{
    struct redlock_lease *few[40];
    const unsigned few_len = bursts ? 40 : 1;

    for (unsigned i = 0; i < few_len; i++)
        few[i] = lock_number(i);
    net_pass(DRIFT_S);
    MUST(net_is_tired() || granted == few_len);
    if (net_is_tired())
        return;
    for (unsigned i = 0; i < few_len; i++) {
        (void)lock_number(few_len + i);
        MUST(redlock_unlock_async(few[i], NULL, NULL) == REDLOCK_OK);
    }
    net_pass(DRIFT_S);
    MUST(net_is_tired() || granted == 2 * few_len);
}
