/*
 * test-live-many.c - several resources in one lease, on real masters.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define THREADS 8
#define NAMES 5
#define ROUNDS 30 /* Rounds of each thread. */

static struct cluster five;
static const char *const names[NAMES] = {"disk", "tape", "printer", "modem", "plotter"};

static struct redlock_lock_options options(uint32_t wait_ms)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.wait_ms = wait_ms;
    return opts;
}

/* Wait until so many masters store the token.  A call ends when a majority has answered, and the
 * others may be later. */
static bool comes_to(const char *name, const char *token, unsigned count)
{
    double began_s = cluster_now_s();

    while (cluster_count(&five, name, token) != count && cluster_now_s() < began_s + CLUSTER_WAIT_S)
        cluster_nap();
    return cluster_count(&five, name, token) == count;
}

/* Lock, and wait until all masters store the token.  Otherwise a master that lacks the script could
 * report that after the next call, and would not get the script for this lock. */
static struct redlock_lease *lock_on_all(struct pilot *pilot, unsigned len,
                                         const struct redlock_lock_options *opts)
{
    struct redlock_lease *many;

    CHECK_INT(redlock_lock_many(pilot->rl, names, len, opts, &many), REDLOCK_OK);
    CHECK(comes_to(names[len - 1], info_token(many), 5));
    return many;
}

static bool is_longer(const char *name, long long than_ms)
{
    bool longer = true;

    for (unsigned m = 0; m < 5; m++)
        longer = longer && server_pttl(&five.server[m], name) > than_ms;
    return longer;
}

/* ---- One at a time ---- */

TEST(all_or_nothing)
{
    struct redlock_lock_options opts = options(0);
    struct redlock_lease *many, *one;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    many = lock_on_all(&pilot, 3, &opts);
    for (unsigned i = 0; i < 3; i++)
        CHECK(comes_to(names[i], info_token(many), 5));
    CHECK_STR(info_resource(many), "disk");
    CHECK_UINT(info_holds(many), 1);
    CHECK_UINT(info_of(many).resources_len, 3);
    CHECK_INT(redlock_lock(pilot.rl, "printer", &opts, &one), REDLOCK_CONTENDED);
    CHECK_INT(redlock_unlock(many), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        CHECK(comes_to(names[i], NULL, 0));

    CHECK_INT(redlock_lock(pilot.rl, "printer", &opts, &one), REDLOCK_OK);
    CHECK_INT(redlock_lock_many(pilot.rl, names, 3, &opts, &many), REDLOCK_CONTENDED);
    CHECK_STR(redlock_errmsg(pilot.rl),
              "acquire disk,tape,printer: another client holds it, or another lease of this one: "
              "printer was taken");
    for (unsigned i = 0; i < 2; i++)
        CHECK(comes_to(names[i], NULL, 0));
    CHECK_INT(redlock_lock_many(pilot.rl, names, 2, &opts, &many), REDLOCK_OK);
    CHECK_INT(redlock_unlock(many), REDLOCK_OK);
    CHECK_INT(redlock_unlock(one), REDLOCK_OK);
    pilot_close(&pilot);
}

/* Extend two names until all masters have done so.  A master takes part as soon as the client knows
 * that it stores them. */
static void extend_everywhere(struct redlock_lease *many, uint32_t ttl_ms, long long than_ms)
{
    double began_s = cluster_now_s();

    do {
        CHECK_INT(redlock_extend(many, ttl_ms), REDLOCK_OK);
        cluster_nap();
    } while (!(is_longer(names[0], than_ms) && is_longer(names[1], than_ms)) &&
             cluster_now_s() < began_s + CLUSTER_WAIT_S);
}

/* An extension extends all names, and never shortens. */
TEST(an_extension_is_of_all)
{
    struct redlock_lock_options opts = options(0);
    struct redlock_lease *many;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    opts.no_renew = true;
    many = lock_on_all(&pilot, 2, &opts);
    extend_everywhere(many, 50000, 30000);
    for (unsigned i = 0; i < 2; i++)
        CHECK(is_longer(names[i], 30000));
    CHECK_INT(redlock_extend(many, 1000), REDLOCK_OK);
    CHECK(is_longer("tape", 20000));
    for (unsigned m = 0; m < 3; m++)
        (void)server_int(&five.server[m], "DEL tape");
    CHECK_INT(redlock_extend(many, 0), REDLOCK_LOST);
    CHECK_UINT(redlock_remaining_ms(many), 0);
    (void)redlock_unlock(many);
    pilot_close(&pilot);
}

/* When a loss is noticed, the other names are released at once, before the unlock. */
TEST(who_loses_one_of_several_releases_the_others)
{
    struct redlock_lock_options opts = options(0);
    double end_s = cluster_now_s() + 30; /* Well before the keys would expire. */
    struct redlock_lease *many;
    struct pilot pilot;

    opts.no_renew = true;
    opts.ttl_ms = 60000;
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    many = lock_on_all(&pilot, 3, &opts);
    for (unsigned m = 0; m < 5; m++)
        (void)server_int(&five.server[m], "DEL tape");
    CHECK_INT(redlock_extend(many, 0), REDLOCK_LOST);
    CHECK(comes_to("disk", NULL, 0));
    CHECK(comes_to("printer", NULL, 0));
    CHECK(cluster_now_s() < end_s);
    CHECK_INT(redlock_unlock(many), REDLOCK_LOST);
    pilot_close(&pilot);
}

/* A master that lost one name no longer counts for the lease, which lives on with the others. */
TEST(one_master_loses_one_of_several)
{
    struct redlock_lock_options opts = options(0);
    double end_s = cluster_now_s() + 30;
    struct redlock_lease *many;
    struct pilot pilot;

    opts.no_renew = true;
    opts.ttl_ms = 60000;
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    many = lock_on_all(&pilot, 2, &opts);
    (void)server_int(&five.server[1], "DEL tape");
    CHECK_INT(redlock_extend(many, 0), REDLOCK_OK);
    CHECK(comes_to("disk", info_token(many), 4));
    CHECK(server_get(&five.server[1], "disk") == NULL);
    CHECK(cluster_now_s() < end_s);
    CHECK_INT(redlock_extend(many, 0), REDLOCK_OK);
    CHECK_INT(redlock_unlock(many), REDLOCK_OK);
    CHECK(comes_to("disk", NULL, 0));
    pilot_close(&pilot);
}

/* A key of another type counts as taken.  It does not keep the other names locked. */
TEST(a_key_of_another_type_is_among_them)
{
    struct redlock_lock_options opts = options(0);
    struct redlock_lease *many;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned m = 0; m < 5; m++)
        (void)server_int(&five.server[m], "RPUSH tape x");
    CHECK_INT(redlock_lock_many(pilot.rl, names, 3, &opts, &many), REDLOCK_CONTENDED);
    CHECK(comes_to("disk", NULL, 0));
    for (unsigned m = 0; m < 5; m++)
        (void)server_int(&five.server[m], "DEL tape");
    many = lock_on_all(&pilot, 3, &opts);
    for (unsigned m = 0; m < 5; m++) {
        (void)server_int(&five.server[m], "DEL tape");
        (void)server_int(&five.server[m], "RPUSH tape x");
    }
    CHECK_INT(redlock_unlock(many), REDLOCK_LOST);
    CHECK(comes_to("disk", NULL, 0));
    CHECK(comes_to("printer", NULL, 0));
    for (unsigned m = 0; m < 5; m++)
        (void)server_int(&five.server[m], "DEL tape");
    pilot_close(&pilot);
}

/* Adopting one name too many fails, and takes nothing from the holder. */
TEST(a_lease_of_many_changes_hands)
{
    static const char *const turned[] = {"printer", "tape", "disk"};
    struct redlock_lock_options opts = options(0);
    struct redlock_lease *many, *adopted;
    struct pilot pilot;
    char token[REDLOCK_TOKEN_MAX + 1];

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    many = lock_on_all(&pilot, 3, &opts);
    CHECK_INT(redlock_unlock(many), REDLOCK_OK); /* Now all masters have the release script. */
    CHECK(comes_to(names[0], NULL, 0));
    many = lock_on_all(&pilot, 3, &opts);
    (void)snprintf(token, sizeof token, "%s", info_token(many));
    CHECK_INT(redlock_detach(many), REDLOCK_OK);
    CHECK_INT(redlock_adopt_many(pilot.rl, names, 4, token, &opts, &adopted), REDLOCK_OK);
    CHECK_INT(redlock_extend(adopted, 0), REDLOCK_LOST); /* The fourth was never locked. */
    CHECK(comes_to("disk", token, 5));
    CHECK_INT(redlock_detach(adopted), REDLOCK_OK);
    CHECK_INT(redlock_adopt_many(pilot.rl, turned, 3, token, &opts, &adopted), REDLOCK_OK);
    CHECK_INT(redlock_extend(adopted, 0), REDLOCK_OK);
    CHECK_INT(redlock_unlock(adopted), REDLOCK_OK);
    CHECK(comes_to("tape", NULL, 0));
    pilot_close(&pilot);
}

/* Sixteen of the longest names, on masters that lack the scripts. */
TEST(the_longest_list)
{
    static char long_names[REDLOCK_NAMES_MAX][REDLOCK_NAME_MAX + 1];
    const char *list[REDLOCK_NAMES_MAX];
    struct redlock_lock_options opts = options(0);
    struct redlock_lease *many;
    struct pilot pilot;

    for (unsigned i = 0; i < REDLOCK_NAMES_MAX; i++) {
        memset(long_names[i], 'a' + (int)i, REDLOCK_NAME_MAX);
        list[i] = long_names[i];
    }
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "SCRIPT FLUSH");
    CHECK_INT(redlock_lock_many(pilot.rl, list, REDLOCK_NAMES_MAX, &opts, &many), REDLOCK_OK);
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "SCRIPT FLUSH");
    CHECK_INT(redlock_extend(many, 0), REDLOCK_OK);
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "SCRIPT FLUSH");
    CHECK_INT(redlock_unlock(many), REDLOCK_OK);
    CHECK(comes_to(long_names[15], NULL, 0));
    pilot_close(&pilot);
}

/* ---- Waiting ---- */

struct waiter {
    pthread_t thread;
    struct redlock *rl;
    int status;
};

static void *wait_for_three(void *arg)
{
    struct waiter *waiter = arg;
    struct redlock_lock_options opts = options(UINT32_MAX);
    struct redlock_lease *many;

    waiter->status = redlock_lock_many(waiter->rl, names, 3, &opts, &many);
    if (waiter->status == REDLOCK_OK)
        waiter->status = redlock_unlock(many);
    return NULL;
}

static bool is_marked(const char *name)
{
    unsigned marked = 0;

    for (unsigned m = 0; m < 5; m++)
        marked += server_int(&five.server[m], "EXISTS redlock:wait:%s", name) == 1;
    return marked == 5;
}

static void until_marked(const char *name)
{
    double began_s = cluster_now_s();

    while (!is_marked(name) && cluster_now_s() < began_s + CLUSTER_WAIT_S)
        cluster_nap();
    CHECK(is_marked(name));
}

/* The waiter waits for a name that is taken; when that is free, for the next one. */
TEST(who_waits_waits_for_what_is_taken)
{
    struct redlock_lock_options opts = options(0);
    struct redlock_lease *tape, *printer;
    struct waiter waiter;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    CHECK_INT(redlock_lock(pilot.rl, "tape", &opts, &tape), REDLOCK_OK);
    CHECK_INT(redlock_lock(pilot.rl, "printer", &opts, &printer), REDLOCK_OK);
    waiter.rl = pilot.rl;
    if (pthread_create(&waiter.thread, NULL, wait_for_three, &waiter) != 0)
        cluster_die("no thread");
    until_marked("tape");
    CHECK(!is_marked("printer"));
    CHECK_INT(redlock_unlock(tape), REDLOCK_OK);
    until_marked("printer");
    CHECK_INT(redlock_unlock(printer), REDLOCK_OK);
    (void)pthread_join(waiter.thread, NULL);
    CHECK_INT(waiter.status, REDLOCK_OK);
    pilot_close(&pilot);
}

/* ---- All at once ---- */

static unsigned counters[NAMES]; /* The holder of a name raises its counter, not atomically. */
static atomic_int inside[NAMES];
static atomic_uint overlaps;

struct worker {
    pthread_t thread;
    struct redlock *rl;
    uint32_t dice;
    unsigned raised[NAMES];
    int status;
};

static unsigned roll(struct worker *worker, unsigned below)
{
    worker->dice = worker->dice * 1664525 + 1013904223;
    return (worker->dice >> 16) % below;
}

/* Pick one to five names, in any order. */
static unsigned pick(struct worker *worker, unsigned ret_picked[NAMES])
{
    unsigned len = 1 + roll(worker, NAMES), all[NAMES] = {0, 1, 2, 3, 4};

    for (unsigned i = 0; i < len; i++) {
        unsigned at = i + roll(worker, NAMES - i), one = all[at];

        all[at] = all[i];
        all[i] = ret_picked[i] = one;
    }
    return len;
}

static void raise_all(struct worker *worker, const unsigned *picked, unsigned len)
{
    unsigned before[NAMES];

    for (unsigned i = 0; i < len; i++) {
        if (atomic_fetch_add(&inside[picked[i]], 1) != 0)
            atomic_fetch_add(&overlaps, 1);
        before[i] = __atomic_load_n(&counters[picked[i]], __ATOMIC_RELAXED);
    }
    cluster_nap();
    for (unsigned i = 0; i < len; i++) {
        __atomic_store_n(&counters[picked[i]], before[i] + 1, __ATOMIC_RELAXED);
        atomic_fetch_sub(&inside[picked[i]], 1);
        worker->raised[picked[i]]++;
    }
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct redlock_lock_options opts = options(UINT32_MAX);

    for (unsigned round = 0; round < ROUNDS && worker->status == REDLOCK_OK; round++) {
        unsigned picked[NAMES], len = pick(worker, picked);
        const char *list[NAMES];
        struct redlock_lease *lease;

        for (unsigned i = 0; i < len; i++)
            list[i] = names[picked[i]];
        worker->status = len == 1 ? redlock_lock(worker->rl, list[0], &opts, &lease)
                                  : redlock_lock_many(worker->rl, list, len, &opts, &lease);
        if (worker->status != REDLOCK_OK)
            break;
        raise_all(worker, picked, len);
        worker->status = redlock_unlock(lease);
    }
    return NULL;
}

static void check_counters(const struct worker *workers)
{
    for (unsigned i = 0; i < NAMES; i++) {
        unsigned want = 0;

        for (unsigned t = 0; t < THREADS; t++)
            want += workers[t].raised[i];
        check_row = names[i];
        CHECK_UINT(counters[i], want);
        CHECK(want > 0);
    }
    check_row = NULL;
}

/* Half of the threads use another client, as if on another host. */
static void contend(unsigned masters_down)
{
    struct worker workers[THREADS];
    struct pilot pilots[2];

    memset(counters, 0, sizeof counters);
    atomic_store(&overlaps, 0);
    CHECK(pilot_open_five(&pilots[0], PILOT_BLOCKING, &five));
    pilot_open(&pilots[1], PILOT_BLOCKING, cluster_masters(&five), 0);
    CHECK(pilot_until_up(&pilots[1], 5));
    if (masters_down > 0)
        server_kill(&five.server[2]);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] = (struct worker){.rl = pilots[t % 2].rl, .dice = t + 1};
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0)
            cluster_die("no thread");
    }
    for (unsigned t = 0; t < THREADS; t++)
        (void)pthread_join(workers[t].thread, NULL);
    for (unsigned t = 0; t < THREADS; t++)
        CHECK_INT(workers[t].status, REDLOCK_OK);
    CHECK_UINT(atomic_load(&overlaps), 0);
    check_counters(workers);
    pilot_close(&pilots[0]);
    pilot_close(&pilots[1]);
}

TEST(eight_threads_with_random_sets)
{
    contend(0);
}

TEST(eight_threads_with_one_master_down)
{
    contend(1);
}

CHECK_MAIN({"all_or_nothing", all_or_nothing}, {"an_extension_is_of_all", an_extension_is_of_all},
           {"who_loses_one_of_several_releases_the_others",
            who_loses_one_of_several_releases_the_others},
           {"one_master_loses_one_of_several", one_master_loses_one_of_several},
           {"a_key_of_another_type_is_among_them", a_key_of_another_type_is_among_them},
           {"a_lease_of_many_changes_hands", a_lease_of_many_changes_hands},
           {"the_longest_list", the_longest_list},
           {"who_waits_waits_for_what_is_taken", who_waits_waits_for_what_is_taken},
           {"eight_threads_with_random_sets", eight_threads_with_random_sets},
           {"eight_threads_with_one_master_down", eight_threads_with_one_master_down})
