/*
 * test-live-cuts.c - every kind of lock over a network that delays, cuts and resets connections
 * at any byte (proxy.h).  Nothing crashes, exclusion holds, and no key outlives its lease.
 * SEED=n repeats the faults, but not their times.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <ev.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "live/proxy.h"
#include "redlock/redlock.h"

#define TTL_MS 3000
#define FAULTS_S 6.0
#define FAULTS_MAX 4000

/* ---- What is locked ---- */

/* The witness of one name counts its holders: readers, and all others. */
struct witness {
    atomic_uint inside, readers;
    atomic_uint counter; /* A holder reads it, keeps it for a moment, and writes it back. */
    atomic_uint holds;
};

/* One way to lock. */
struct kind {
    const char *row;
    const char *names[2];
    unsigned names_len;
    unsigned permits;
    bool fence, fair, shared, reentrant;
    struct witness *witnesses[2];
};

static struct witness plain, fenced, first, second, third, pool, queued, book, again;

static const struct kind kinds[] = {
    {.row = "plain", .names = {"plain"}, .names_len = 1, .witnesses = {&plain}},
    {.row = "fence", .names = {"fenced"}, .names_len = 1, .fence = true, .witnesses = {&fenced}},
    {.row = "many", .names = {"first", "second"}, .names_len = 2, .witnesses = {&first, &second}},
    {.row = "many, too",
     .names = {"second", "third"},
     .names_len = 2,
     .witnesses = {&second, &third}},
    {.row = "permits", .names = {"pool"}, .names_len = 1, .permits = 2, .witnesses = {&pool}},
    {.row = "fair", .names = {"queued"}, .names_len = 1, .fair = true, .witnesses = {&queued}},
    {.row = "shared", .names = {"book"}, .names_len = 1, .shared = true, .witnesses = {&book}},
    {.row = "writer", .names = {"book"}, .names_len = 1, .witnesses = {&book}},
    {.row = "reentrant",
     .names = {"again"},
     .names_len = 1,
     .reentrant = true,
     .witnesses = {&again}},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static struct cluster three;
static atomic_bool over;
static atomic_uint overlaps, expired, wrong;
static char wrong_message[256]; /* The first message that counts in wrong. */

static void note_wrong(const struct kind *kind, const char *what, int status)
{
    if (atomic_fetch_add(&wrong, 1) == 0)
        (void)snprintf(wrong_message, sizeof wrong_message, "%s: %s: %d %s", kind->row, what,
                       status, redlock_errmsg(NULL));
}

static void come_in(const struct kind *kind, const struct redlock_lease *lease, unsigned seen[2])
{
    unsigned max = kind->permits > 0 ? kind->permits : 1;

    for (unsigned i = 0; i < kind->names_len; i++) {
        struct witness *witness = kind->witnesses[i];
        unsigned readers = atomic_fetch_add(&witness->readers, kind->shared);
        unsigned inside = atomic_fetch_add(&witness->inside, !kind->shared);

        if (redlock_remaining_ms(lease) > 0)
            atomic_fetch_add(&overlaps, inside >= max || (!kind->shared && readers > 0));
        seen[i] = atomic_load(&witness->counter);
    }
}

static void go_out(const struct kind *kind, const struct redlock_lease *lease,
                   const unsigned seen[2])
{
    bool alone = !kind->shared && kind->permits == 0;

    for (unsigned i = 0; i < kind->names_len; i++) {
        struct witness *witness = kind->witnesses[i];

        if (alone)
            atomic_store(&witness->counter, seen[i] + 1);
        atomic_fetch_add(&witness->holds, alone);
        atomic_fetch_sub(&witness->readers, kind->shared);
        atomic_fetch_sub(&witness->inside, !kind->shared);
    }
    if (redlock_remaining_ms(lease) == 0)
        atomic_fetch_add(&expired, 1);
}

static void set_options(const struct kind *kind, struct redlock_lock_options *opts)
{
    redlock_lock_options_init(opts);
    opts->ttl_ms = TTL_MS;
    opts->wait_ms = 700;
    opts->retry_delay_min_ms = 5;
    opts->retry_delay_max_ms = 40;
    opts->fence = kind->fence;
    opts->permits = kind->permits;
    opts->fair = kind->fair;
    opts->shared = kind->shared;
    opts->reentrant = kind->reentrant;
}

static bool is_an_outcome(int status)
{
    return status == REDLOCK_OK || status == REDLOCK_CONTENDED || status == REDLOCK_UNREACHABLE ||
           status == REDLOCK_NOT_READY || status == REDLOCK_TOO_LATE || status == REDLOCK_LOST;
}

/* ---- Where calls block ---- */

struct worker {
    const struct kind *kind;
    struct redlock *rl;
    pthread_t thread;
};

static void linger(unsigned us)
{
    const struct timespec nap = {.tv_nsec = us * 1000L};

    (void)nanosleep(&nap, NULL);
}

static int take(struct worker *worker, struct redlock_lease **ret_lease)
{
    const struct kind *kind = worker->kind;
    struct redlock_lock_options opts;

    set_options(kind, &opts);
    if (kind->names_len > 1)
        return redlock_lock_many(worker->rl, kind->names, kind->names_len, &opts, ret_lease);
    return redlock_lock(worker->rl, kind->names[0], &opts, ret_lease);
}

static void give_back(struct worker *worker, struct redlock_lease *lease)
{
    int status = redlock_unlock(lease);

    if (!is_an_outcome(status))
        note_wrong(worker->kind, "unlock", status);
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (unsigned round = 0; !atomic_load(&over); round++) {
        struct redlock_lease *lease, *same;
        unsigned seen[2];
        int status = take(worker, &lease);

        if (!is_an_outcome(status))
            note_wrong(worker->kind, "lock", status);
        if (status != REDLOCK_OK)
            continue;
        come_in(worker->kind, lease, seen);
        linger(500);
        if (worker->kind->reentrant && take(worker, &same) == REDLOCK_OK)
            give_back(worker, same);
        if (round % 4 == 0 && !is_an_outcome(status = redlock_extend(lease, 0)))
            note_wrong(worker->kind, "extend", status);
        go_out(worker->kind, lease, seen);
        give_back(worker, lease);
    }
    return NULL;
}

/* ---- On a loop ---- */

/* One kind of lock on the loop: it locks, lingers and unlocks in turn. */
struct task {
    const struct kind *kind;
    struct crew *crew;
    ev_timer timer;
    struct redlock_lease *lease; /* The lease that is held or asked for, or NULL. */
    bool inside;
    unsigned seen[2], rounds;
};

struct crew {
    struct redlock *rl;
    struct ev_loop *ev;
    ev_timer watch;
    struct task tasks[KINDS];
    pthread_t thread;
};

static void go_on_in(struct task *task, double seconds)
{
    ev_timer_stop(task->crew->ev, &task->timer);
    ev_timer_set(&task->timer, seconds, 0);
    ev_timer_start(task->crew->ev, &task->timer);
}

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct task *task = arg;

    (void)lease;
    if (!is_an_outcome(status))
        note_wrong(task->kind, "unlock on a loop", status);
    go_on_in(task, 0);
}

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct task *task = arg;

    task->inside = status == REDLOCK_OK;
    if (!is_an_outcome(status))
        note_wrong(task->kind, "lock on a loop", status);
    if (task->inside)
        come_in(task->kind, lease, task->seen);
    else
        task->lease = NULL;
    go_on_in(task, 0.001);
}

static int begin(struct task *task)
{
    const struct kind *kind = task->kind;
    struct redlock_lock_options opts;

    set_options(kind, &opts);
    opts.owner = kind->reentrant ? task : NULL;
    if (kind->names_len > 1)
        return redlock_lock_many_async(task->crew->rl, kind->names, kind->names_len, &opts,
                                       on_locked, task, &task->lease);
    return redlock_lock_async(task->crew->rl, kind->names[0], &opts, on_locked, task, &task->lease);
}

static void on_task(struct ev_loop *ev, ev_timer *timer, int events)
{
    struct task *task = timer->data;
    int status;

    (void)ev, (void)events;
    if (task->inside) {
        task->inside = false;
        go_out(task->kind, task->lease, task->seen);
        status = redlock_unlock_async(task->lease, on_unlocked, task);
        task->lease = NULL;
    } else if (task->lease != NULL) { /* It has waited long enough: cancel this one. */
        redlock_cancel(task->lease);
        task->lease = NULL;
        status = REDLOCK_OK;
        go_on_in(task, 0);
    } else {
        status = begin(task);
        if (++task->rounds % 5 == 0)
            go_on_in(task, 0.02);
    }
    if (status != REDLOCK_OK)
        note_wrong(task->kind, "a call on a loop", status);
}

static void on_watch(struct ev_loop *ev, ev_timer *watch, int events)
{
    (void)watch, (void)events;
    if (atomic_load(&over))
        ev_break(ev, EVBREAK_ALL);
}

static void *run_crew(void *arg)
{
    struct crew *crew = arg;

    ev_timer_init(&crew->watch, on_watch, 0.01, 0.01);
    ev_timer_start(crew->ev, &crew->watch);
    for (unsigned i = 0; i < KINDS; i++) {
        struct task *task = &crew->tasks[i];

        task->kind = &kinds[i];
        task->crew = crew;
        ev_timer_init(&task->timer, on_task, 0, 0);
        task->timer.data = task;
        go_on_in(task, 0);
    }
    ev_run(crew->ev, 0);
    for (unsigned i = 0; i < KINDS; i++) {
        ev_timer_stop(crew->ev, &crew->tasks[i].timer);
        if (crew->tasks[i].inside) /* The lease is released when the client is closed. */
            go_out(crew->tasks[i].kind, crew->tasks[i].lease, crew->tasks[i].seen);
    }
    ev_timer_stop(crew->ev, &crew->watch);
    return NULL;
}

/* ---- All of them ---- */

static uint64_t find_seed(void)
{
    const char *text = getenv("SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)(cluster_now_s() * 1e6);

    printf("SEED=%" PRIu64 "\n", seed);
    return seed;
}

static void set_patience(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 300;
    opts->connect_timeout_ms = 300;
}

static void open_on(struct pilot *pilot, enum pilot_kind kind, const struct proxy *proxy)
{
    CHECK_INT(pilot_try_open(pilot, kind, proxy_masters(proxy), set_patience), REDLOCK_OK);
}

/* No key of a lock lives longer than a lease, and in the end there is none.  A wait flag and the
 * tokens that wait in a queue may stay for a minute: they hold nothing. */
static void check_keys(void)
{
    static const char longest[] =
        "local max = 0 for _, key in ipairs(redis.call('keys', '*')) do "
        "local kind = string.match(key, '^redlock:(%l+)') "
        "if kind ~= 'master' and kind ~= 'witness' and kind ~= 'wait' and kind ~= 'next' then "
        "local left = redis.call('pttl', key) "
        "max = math.max(max, left == -1 and 999999 or left) end end return max";
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;

    for (unsigned m = 0; m < three.len; m++)
        CHECK(server_int(&three.server[m], "EVAL %s 0", longest) <= TTL_MS);
    for (unsigned m = 0; m < three.len; m++)
        while (server_int(&three.server[m], "EVAL %s 0", longest) > 0) {
            CHECK(cluster_now_s() < end_s);
            cluster_nap();
        }
}

static void check_witnesses(void)
{
    unsigned holds = 0;

    if (atomic_load(&wrong) > 0)
        printf("%s\n", wrong_message);
    CHECK_UINT(atomic_load(&wrong), 0);
    for (unsigned i = 0; i < KINDS; i++)
        for (unsigned n = 0; n < kinds[i].names_len; n++) {
            const struct witness *witness = kinds[i].witnesses[n];

            check_row = kinds[i].row;
            CHECK_UINT(atomic_load(&witness->inside) + atomic_load(&witness->readers), 0);
            holds += atomic_load(&witness->holds);
            if (atomic_load(&expired) == 0) /* After an expired hold, counts may differ. */
                CHECK_UINT(atomic_load(&witness->counter), atomic_load(&witness->holds));
        }
    check_row = NULL;
    CHECK(atomic_load(&overlaps) == 0 || atomic_load(&expired) > 0);
    printf("%u holds\n", holds);
    CHECK(holds > 0);
}

static void start_workers(struct worker *workers, struct redlock *rl)
{
    for (unsigned i = 0; i < KINDS; i++) {
        workers[i] = (struct worker){.kind = &kinds[i], .rl = rl};
        CHECK_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
}

static void join_workers(struct worker *workers)
{
    for (unsigned i = 0; i < KINDS; i++)
        (void)pthread_join(workers[i].thread, NULL);
}

static void let_fail(const struct proxy *proxy)
{
    double end_s = cluster_now_s() + FAULTS_S;

    while (cluster_now_s() < end_s && proxy_faults(proxy) < FAULTS_MAX)
        cluster_nap();
    printf("%u faults\n", proxy_faults(proxy));
    CHECK(proxy_faults(proxy) > 0);
}

/* A busy machine may miss a reply timeout. */
static bool works(void *arg)
{
    struct pilot *pilot = arg;
    struct redlock_lease *lease;

    return pilot_lock_for(pilot, "after", TTL_MS, false, 30000, &lease) == REDLOCK_OK &&
           pilot_unlock(pilot, lease) == REDLOCK_OK;
}

TEST(cut_at_any_byte)
{
    static struct worker ours[KINDS], theirs[KINDS];
    static struct crew crew;
    struct pilot one, other, loop;
    struct proxy *proxy;

    cluster_ready(&three, 3);
    proxy = proxy_start(&three, find_seed());
    open_on(&one, PILOT_BLOCKING, proxy);
    open_on(&other, PILOT_BLOCKING, proxy);
    open_on(&loop, PILOT_LOOP, proxy);
    crew = (struct crew){.rl = loop.rl, .ev = loop.ev};
    start_workers(ours, one.rl);
    start_workers(theirs, other.rl);
    CHECK_INT(pthread_create(&crew.thread, NULL, run_crew, &crew), 0);
    let_fail(proxy);
    atomic_store(&over, true);
    join_workers(ours);
    join_workers(theirs);
    (void)pthread_join(crew.thread, NULL);
    pilot_close(&other);
    pilot_close(&loop);
    proxy_calm(proxy);
    CHECK(pilot_until(&one, works, &one));
    pilot_close(&one);
    check_keys();
    check_witnesses();
    proxy_stop(proxy);
}

CHECK_MAIN({"cut_at_any_byte", cut_at_any_byte})
