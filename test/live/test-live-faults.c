/*
 * test-live-faults.c - five real masters, some of which are killed, stopped, given a password,
 * or made replicas.  With one or two down, locking goes on.  With three down it fails with
 * the right message, and works again when they are back.  Also: lost notices, keys of a wrong type,
 * and a flush.
 */
#include "test/lib/check.h"

#include <stdatomic.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

/* Chosen: short, because the client waits as long for a stopped master; and long enough for the
 * others to answer. */
#define REPLY_TIMEOUT_MS 2000

static struct cluster five;

/* ---- What can happen to a master ---- */

static void demand_password(struct server *server)
{
    (void)server_int(server, "CONFIG SET requirepass geheim");
    (void)server_int(server, "CLIENT KILL TYPE normal"); /* Open connections need no password. */
}

/* Make it a replica of the last master, which has no fault. */
static void make_replica(struct server *server)
{
    (void)server_int(server, "REPLICAOF 127.0.0.1 %d", (int)five.server[4].port);
}

/* Store another type under the name that will be locked. */
static void plant_hash(struct server *server)
{
    (void)server_int(server, "HSET x field value");
}

struct fault {
    const char *row;
    void (*strike)(struct server *server);
    const char *message; /* The error message about a master with this fault. */
    int status;          /* If too many masters have it. */
};

static const struct fault faults[] = {
    {"killed", server_kill, "Connection refused", REDLOCK_UNREACHABLE},
    {"stopped", server_pause, "answer", REDLOCK_UNREACHABLE},
    {"password", demand_password, "NOAUTH Authentication required", REDLOCK_E_FORBIDDEN},
    {"replica", make_replica, "is a replica, not a master", REDLOCK_UNREACHABLE},
};

#define FAULTS_LEN (sizeof faults / sizeof *faults)

/* ---- Working ---- */

static void work(struct pilot *pilot)
{
    for (unsigned i = 0; i < 5; i++) {
        struct redlock_lease *lease;

        CHECK_INT(pilot_lock_for(pilot, "x", 30000, false, 30000, &lease), REDLOCK_OK);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_OK);
        CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    }
}

/* Strike some masters before the client is opened, or while it holds a lock. */
struct strike {
    const struct fault *fault;
    unsigned len;
    bool early;
};

static void strike(const struct strike *plan)
{
    for (unsigned i = 0; i < plan->len; i++)
        plan->fault->strike(&five.server[i]);
}

static void open_and_strike(struct pilot *pilot, enum pilot_kind kind, const struct strike *plan,
                            struct redlock_lease **ret_held)
{
    static char row[64];

    (void)snprintf(row, sizeof row, "%u %s %s, %s", plan->len, plan->fault->row,
                   plan->early ? "before" : "meanwhile", pilot_kind_name(kind));
    check_row = row;
    cluster_ready(&five, 5);
    if (plan->early)
        strike(plan);
    pilot_open(pilot, kind, cluster_masters(&five), REPLY_TIMEOUT_MS);
    if (plan->early)
        return;
    CHECK(pilot_until_up(pilot, 5));
    CHECK_INT(pilot_lock_for(pilot, "held", 50000, true, 0, ret_held), REDLOCK_OK);
    strike(plan);
}

static void check_goes_on(enum pilot_kind kind, const struct strike *plan)
{
    struct redlock_lease *held = NULL;
    struct pilot pilot;

    open_and_strike(&pilot, kind, plan, &held);
    work(&pilot);
    if (held != NULL) {
        CHECK(redlock_remaining_ms(held) > 0);
        CHECK_INT(pilot_extend(&pilot, held, 0), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, held), REDLOCK_OK);
    }
    pilot_close(&pilot);
}

/* All faults, early and meanwhile, with either kind of client. */
static void with_all(unsigned masters, void (*check)(enum pilot_kind, const struct strike *))
{
    for (size_t i = 0; i < FAULTS_LEN; i++) {
        for (unsigned early = 0; early < 2; early++) {
            struct strike plan = {&faults[i], masters, early};

            check(PILOT_LOOP, &plan);
            check(PILOT_BLOCKING, &plan);
        }
    }
}

TEST(one_down)
{
    with_all(1, check_goes_on);
}

TEST(two_down)
{
    with_all(2, check_goes_on);
}

/* A token that no master stores is lost, also if one of five masters cannot be asked. */
static void ask_for_nothing(enum pilot_kind kind, const struct strike *plan)
{
    struct redlock_lease *held, *lease;
    struct pilot pilot;

    for (unsigned extends = 0; extends < 2; extends++) {
        open_and_strike(&pilot, kind, plan, &held);
        CHECK_INT(redlock_adopt(pilot.rl, "x", "not it", NULL, &lease), REDLOCK_OK);
        if (extends)
            CHECK_INT(pilot_extend(&pilot, lease, 0), REDLOCK_LOST);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        pilot_close(&pilot);
    }
}

TEST(lost_with_one_down)
{
    with_all(1, ask_for_nothing);
}

/* ---- Three down ---- */

static void heal(void)
{
    for (unsigned i = 0; i < 3; i++) {
        struct server *server = &five.server[i];

        if (server->pid == 0)
            server_restart(server);
        server_resume(server);
        (void)server_int(server, "CONFIG SET requirepass %s", "");
        (void)server_int(server, "REPLICAOF NO ONE");
        server_season(server); /* This test does not wait until it is warm. */
    }
}

/* The message names the fault of the first masters before all of them have it. */
static void check_told(struct pilot *pilot, const struct fault *fault)
{
    double end_s = cluster_now_s() + CLUSTER_WAIT_S;
    int status;

    do
        status = pilot_until_told(pilot, "x", fault->message);
    while (status != fault->status && pilot_lacks_votes(status) && cluster_now_s() < end_s);
    CHECK_INT(status, fault->status);
}

/* Locking fails with the right message, and works again after the masters are healed. */
static void check_stops(enum pilot_kind kind, const struct strike *plan)
{
    struct redlock_lease *held = NULL, *lease;
    struct pilot pilot;

    open_and_strike(&pilot, kind, plan, &held);
    check_told(&pilot, plan->fault);
    CHECK(pilot_blames(&pilot, 0x7));
    if (held != NULL)
        CHECK_INT(pilot_extend(&pilot, held, 0), plan->fault->status);
    heal();
    if (held != NULL) /* Its outcome is open: masters may have lost the key, or never had it. */
        (void)pilot_unlock(&pilot, held);
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, false, 60000, &lease), REDLOCK_OK);
    CHECK(pilot_until_up(&pilot, 5)); /* Otherwise a link could go down during the next call. */
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    work(&pilot);
    pilot_close(&pilot);
}

TEST(three_down_and_back)
{
    with_all(3, check_stops);
}

/* ---- Lost ---- */

static int lock_with_loss(struct pilot *pilot, const char *name, uint32_t ttl_ms,
                          struct pilot_loss *loss, struct redlock_lease **ret_lease)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = ttl_ms;
    opts.lost_margin_ms = 2000;
    opts.lost = pilot_on_lost;
    opts.lost_arg = loss;
    return pilot_lock(pilot, name, &opts, ret_lease);
}

static bool are_lost(void *arg)
{
    struct pilot_loss *losses = arg;

    return pilot_is_lost(&losses[0]) && pilot_is_lost(&losses[1]);
}

/* The lost notice comes while there is time left to stop working.  The test runs both kinds at
 * once, because it waits until a lease runs out. */
TEST(lost_is_told_before_the_end)
{
    struct redlock_lease *leases[PILOT_KINDS];
    struct pilot_loss losses[PILOT_KINDS] = {{.runs = 0}};
    struct pilot pilots[PILOT_KINDS];

    cluster_ready(&five, 5);
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        pilot_open(&pilots[kind], kind, cluster_masters(&five), REPLY_TIMEOUT_MS);
        CHECK_INT(lock_with_loss(&pilots[kind], pilot_kind_name(kind), 5000, &losses[kind],
                                 &leases[kind]),
                  REDLOCK_OK);
    }
    for (unsigned i = 0; i < 3; i++)
        server_pause(&five.server[i]);
    CHECK(pilot_until(&pilots[PILOT_LOOP], are_lost, losses));
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        check_row = pilot_kind_name(kind);
        CHECK(losses[kind].remaining_ms > 0);
        CHECK(losses[kind].remaining_ms <= 2000);
        CHECK_INT(pilot_extend(&pilots[kind], leases[kind], 0), REDLOCK_LOST);
        while (redlock_remaining_ms(leases[kind]) > 0)
            pilot_turn(&pilots[kind]);
        cluster_nap(); /* 0 is rounded down: up to a millisecond may be left. */
        CHECK_INT(pilot_unlock(&pilots[kind], leases[kind]), REDLOCK_LOST);
        CHECK_UINT(atomic_load(&losses[kind].runs), 1);
        CHECK_UINT(pilot_stats(&pilots[kind]).lost, 1);
        pilot_close(&pilots[kind]);
    }
}

/* The lost notice comes as soon as a renewal finds the keys gone, after 3 s.  Without that it would
 * come after 7 s. */
TEST(lost_is_told_when_the_keys_are_gone)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *other;
        struct pilot_loss loss = {.runs = 0};
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 5);
        pilot_open(&pilot, kind, cluster_masters(&five), 0);
        CHECK_INT(lock_with_loss(&pilot, "x", 9000, &loss, &lease), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 5));
        for (unsigned i = 0; i < 5; i++)
            server_forget_locks(&five.server[i]);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &other), REDLOCK_OK);
        CHECK(pilot_until(&pilot, pilot_is_lost, &loss));
        CHECK_UINT(loss.remaining_ms, 0);
        CHECK(redlock_remaining_ms(other) > 0);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        CHECK_INT(pilot_unlock(&pilot, other), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

/* ---- What is stored ---- */

TEST(wrong_type_on_one)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 5);
        plant_hash(&five.server[0]);
        pilot_open(&pilot, kind, cluster_masters(&five), 0);
        work(&pilot);
        CHECK_STR(server_text(&five.server[0], "HGET x field"), "value");
        pilot_close(&pilot);
    }
}

TEST(wrong_type_on_all)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        CHECK(pilot_open_five(&pilot, kind, &five));
        for (unsigned i = 0; i < 5; i++)
            plant_hash(&five.server[i]);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_CONTENDED);
        CHECK_INT(redlock_adopt(pilot.rl, "x", "token", NULL, &lease), REDLOCK_OK);
        CHECK_INT(pilot_extend(&pilot, lease, 0), REDLOCK_LOST);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        for (unsigned i = 0; i < 5; i++)
            CHECK_STR(server_text(&five.server[i], "HGET x field"), "value");
        CHECK_UINT(pilot_stats(&pilot).masters_up, 5);
        pilot_close(&pilot);
    }
}

static bool is_on_all(void *arg)
{
    (void)arg;
    return cluster_count(&five, "x", NULL) == 5;
}

/* The key becomes a hash while the lock is held. */
TEST(wrong_type_under_a_lease)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, false, 0, &lease), REDLOCK_OK);
    CHECK(pilot_until(&pilot, is_on_all, NULL));
    for (unsigned i = 0; i < 5; i++) {
        (void)server_int(&five.server[i], "DEL x");
        plant_hash(&five.server[i]);
    }
    CHECK_INT(pilot_extend(&pilot, lease, 0), REDLOCK_LOST);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

/* Between any two calls, all masters lose all keys or all scripts. */
TEST(flushed_in_between)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        CHECK(pilot_open_five(&pilot, kind, &five));
        for (unsigned round = 0; round < 5; round++) {
            CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
            for (unsigned i = 0; i < 5; i++)
                (void)server_int(&five.server[i], "SCRIPT FLUSH");
            CHECK_INT(pilot_extend(&pilot, lease, 0), REDLOCK_OK);
            for (unsigned i = 0; i < 5; i++)
                (void)server_int(&five.server[i], "SCRIPT FLUSH");
            CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);

            CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
            for (unsigned i = 0; i < 5; i++)
                server_forget_locks(&five.server[i]);
            CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_LOST);
        }
        CHECK_UINT(pilot_stats(&pilot).connects, 5);
        pilot_close(&pilot);
    }
}

CHECK_MAIN({"one_down", one_down}, {"two_down", two_down},
           {"lost_with_one_down", lost_with_one_down}, {"three_down_and_back", three_down_and_back},
           {"lost_is_told_before_the_end", lost_is_told_before_the_end},
           {"lost_is_told_when_the_keys_are_gone", lost_is_told_when_the_keys_are_gone},
           {"wrong_type_on_one", wrong_type_on_one}, {"wrong_type_on_all", wrong_type_on_all},
           {"wrong_type_under_a_lease", wrong_type_under_a_lease},
           {"flushed_in_between", flushed_in_between})
